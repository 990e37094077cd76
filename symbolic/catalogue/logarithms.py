"""log(p/q) = log p − log q, where p and q are known to be positive: probabilities, their sums, exponentials, sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sympy import Add, Expr, Mul, Number, Pow, exp, log

from gradproof.symbolic.equations.expr import Access, Reduce, Size, open_, rebuild, reduce_
from gradproof.symbolic.equations.system import Array, Equation


def split(equations: Sequence[Equation], arrays: Mapping[str, Array]) -> list[Equation]:
    """The equations with every logarithm of a product of positive factors written as a sum.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("log(p/q)", {"p": "n:simplex", "q": "n:simplex"})
    >>> print(split(system.equations, system.arrays)[0].body)
    log(p[o0]) - log(q[o0])
    """
    known = {name for name, array in arrays.items() if "simplex" in array.properties}
    for equation in equations:
        if positive(equation.body, known):
            known.add(equation.name)
    return [replace(e, body=_written(e.body, known)) for e in equations]


def positive(expr: Expr, known: set[str]) -> bool:
    """Whether an expression is positive for certain; `known` are arrays whose entries are."""
    if isinstance(expr, Number):
        return bool(expr > 0)
    if isinstance(expr, (Size, exp)):
        return True
    if isinstance(expr, Access):
        return expr.name in known
    if isinstance(expr, (Add, Mul)):
        return all(positive(arg, known) for arg in expr.args)
    if isinstance(expr, Pow):
        return positive(expr.base, known)
    return isinstance(expr, Reduce) and positive(expr.body, known)


def _written(expr: Expr, known: set[str]) -> Expr:
    if isinstance(expr, Access) or not expr.args:
        return expr
    if isinstance(expr, Reduce):
        body, axes = open_(expr, ())
        return reduce_(expr.op, _written(body, known), axes)
    expr = rebuild(expr, [_written(arg, known) for arg in expr.args])
    if isinstance(expr, log) and isinstance(expr.args[0], (Mul, Pow)) and positive(expr.args[0], known):
        return Add(*(_log(factor) for factor in Mul.make_args(expr.args[0])))
    return expr


def _log(factor: Expr) -> Expr:
    base, power = factor.as_base_exp() if isinstance(factor, Pow) else (factor, 1)
    return power * log(base)

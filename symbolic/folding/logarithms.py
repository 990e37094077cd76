"""z_i − log Σ_k exp(z_k) is log p_i where the softmax p of z has a name: focal losses and entropies as in textbooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sympy import Add, Expr, Mul, Pow, log

from gradproof.symbolic.equations.definitions import plain
from gradproof.symbolic.equations.expr import Access, Index, Reduce, accesses, letters, names, open_, rebuild, reduce_
from gradproof.symbolic.equations.system import System


@dataclass(frozen=True)
class Softmax:
    """p[place] = exp(x) / total."""

    name: str
    place: tuple[Expr, ...]
    x: Expr
    total: Access


def softmaxes(system: System) -> Iterator[Softmax]:
    for equation in system.equations:
        if equation.origin is None or equation.name in system.hidden or plain(system, equation.name) is None:
            continue
        below = [f.base for f in Mul.make_args(equation.body) if isinstance(f, Pow) and f.exp == -1]
        if len(below) == 1 and isinstance(below[0], Access):
            yield Softmax(equation.name, equation.place, equation.origin.argument, below[0])


def with_logarithms(system: System, derived: Iterable[str]) -> System:
    """The derived equations with such differences by their name."""
    found, wanted = list(softmaxes(system)), set(derived)
    if not found:
        return system
    return system.with_equations(
        e.with_body(named(e.body, found, [axis[0] for axis in e.axes])) if e.name in wanted else e
        for e in system.equations
    )


def named(expr: Expr, found: Sequence[Softmax], scope: Sequence[Index]) -> Expr:
    """The expression with z_i − log Z as log p_i."""
    if not expr.has(log) or isinstance(expr, Access) or names(expr).isdisjoint(p.total.name for p in found):
        return expr
    if isinstance(expr, Reduce):
        body, axes = open_(expr, [*scope, *letters(expr)])
        return reduce_(expr.op, named(body, found, [*scope, *(axis[0] for axis in axes)]), axes)
    expr = rebuild(expr, [named(arg, found, scope) for arg in expr.args])
    while isinstance(expr, Add):
        pair = next(_pairs(expr, found), None)
        if pair is None:
            break
        expr = Add(*(term for term in expr.args if term not in pair[:2]), pair[2])
    return expr


def _pairs(expr: Add, found: Sequence[Softmax]) -> Iterator[tuple[Expr, Expr, Expr]]:
    """c log Z, −c z_i and −c log p_i, for two terms of a sum."""
    for term in expr.args:
        for factor in Mul.make_args(term):
            if not isinstance(factor, log) or not isinstance(total := factor.args[0], Access):
                continue
            for p in found:
                for other in expr.args if total.name == p.total.name else ():
                    place = _place(p, total, -other * factor / term)
                    if place is not None:
                        yield term, other, -term / factor * log(Access(p.name, *place))


def _place(p: Softmax, total: Access, expr: Expr) -> tuple[Expr, ...] | None:
    """The indices under which an expression is the argument of the softmax, in the row of a total."""
    row = {a: b for a, b in zip(p.total.indices, total.indices, strict=True) if isinstance(a, Index)}
    (column,) = (letter for letter in p.place if letter not in row)
    for index in dict.fromkeys(index for access in accesses(expr) for index in access.indices):
        mapping = {**row, column: index}
        if p.x.xreplace(mapping) == expr:
            return tuple(letter.xreplace(mapping) for letter in p.place)
    return None

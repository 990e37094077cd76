"""Rewriting that keeps generated code inside the range of floating-point numbers.

Each rule is an identity of real numbers; it is applied to index expressions before they are lowered.

    exp(f) / Σ exp(g)   →  exp(f − m) / Σ exp(g − m)    m = max g: softmax
    log Σ exp(g)        →  m + log Σ exp(g − m)         logsumexp
    log(1 + exp f)      →  softplus(f)                  log(exp f + exp g) → logaddexp(f, g)
    log(1 + f)          →  log1p(f)                     exp(f) − 1 → expm1(f)
    1 / (1 + exp(−f))   →  sigmoid(f)                   1 − sigmoid(f) → sigmoid(−f);  log sigmoid(f) → −softplus(−f)
    log P               →  f − log Σ exp(g)             where P = exp(f) / Σ exp(g)
    f / ‖x‖             →  0 where ‖x‖ = 0              in derivatives only: of all subgradients of the norm, the zero

`exponentials.py` has the rules for one expression; here stands which expressions are put together before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sympy import Add, Expr, Mul, Pow, S, Symbol, exp, log

from gradproof.numeric.passes.exponentials import GROWING, Safe, may_be_infinite
from gradproof.symbolic.equations.definitions import plain, put_in
from gradproof.symbolic.equations.expr import Access, Compare, Reduce, compare, letters, names, open_, rebuild, reduce_
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.system import Equation, System


def stabilise(system: System, derived: Iterable[str] = ()) -> System:
    """The system with exponentials inlined where they are read, and every rule of this file applied.

    `derived` names the arrays that are derivatives.
    """
    derived = frozenset(derived)
    system = inline_logarithms(inline_divisors(inline_exponentials(system)))
    infinite = possibly_infinite(system)
    norms = frozenset(name for name, equations in system.defined.items() if any(is_norm(e.body) for e in equations))
    equations = []
    for equation in system.equations:
        body = equation.body
        if equation.name in derived:
            body = guarded_norms(body, norms)
        safe = Safe(infinite, frozenset(axis[0] for axis in equation.axes))
        equations.append(equation.with_body(safe.form(body)))
    return system.with_equations(equations)


def inline_exponentials(system: System) -> System:
    """Put helpers that are exponentials, or sums of them, where they are read: only there can they be made safe."""
    for name in [name for group in system.groups for name in group if name in system.hidden]:
        definition = plain(system, name)
        if definition is None or name in system.outputs or not exponential(definition.body):
            continue
        system = system.with_equations(put_in(e, definition) for e in system.equations if e.name != name)
        arrays = {key: array for key, array in system.arrays.items() if key != name}
        system = replace(system, arrays=arrays, _cache={})
    return system


def inline_divisors(system: System) -> System:
    """Put exponentials that have a name into the quotients and logarithms of them: E/Z with E = exp(z), Z = ΣE."""
    known: dict[str, Equation] = {}
    for name in [name for group in system.groups for name in group]:
        definition = plain(system, name)
        if definition is not None:
            for other in known.keys() & names(definition.body):
                definition = put_in(definition, known[other])
            if unscaled(system, definition.body):
                known[name] = definition
    equations = []
    for equation in system.equations:
        if any(divides(equation.body, name) for name in known.keys() & names(equation.body)):
            for name in known.keys() & names(equation.body):
                equation = put_in(equation, known[name])
        equations.append(equation)
    return system.with_equations(equations).needed() if known else system


def unscaled(system: System, expr: Expr) -> bool:
    """Whether an expression is made of exponentials, numbers and conditions, with no maximum in an exponent."""
    powers = expr.atoms(*GROWING)
    hidden = expr.xreplace({part: Symbol("_") for part in (*powers, *expr.atoms(Compare))})
    read = [e.body for power in powers for name in names(power) for e in system.defined.get(name, ())]
    maxima = (part for source in (*powers, *read) for part in source.atoms(Reduce) if part.op == "max")
    return bool(powers) and not names(hidden) and next(maxima, None) is None


def divides(expr: Expr, name: str) -> bool:
    """Whether an array is read below a fraction line, under a root or in a logarithm."""
    if isinstance(expr, log) or (isinstance(expr, Pow) and not (expr.exp.is_Integer and expr.exp > 0)):
        return name in names(expr)
    return any(divides(arg, name) for arg in expr.args)


def inline_logarithms(system: System) -> System:
    """Put softmax weights into logarithms of them: log P is then a difference, which does not underflow."""
    weights = {
        name: definition
        for name in system.defined
        if (definition := plain(system, name)) is not None and is_softmax(definition.body)
    }

    def put(expr: Expr) -> Expr:
        if weights.keys().isdisjoint(names(expr)) or not expr.args or isinstance(expr, Access):
            return expr
        if isinstance(expr, log) and isinstance(expr.args[0], Access) and expr.args[0].name in weights:
            return log(weights[expr.args[0].name].at(expr.args[0].indices))
        if isinstance(expr, Reduce):
            body, axes = open_(expr, letters(expr))
            return reduce_(expr.op, put(body), axes)
        return rebuild(expr, [put(arg) for arg in expr.args])

    if not weights:
        return system
    return system.with_equations(equation.with_body(put(equation.body)) for equation in system.equations)


def is_softmax(expr: Expr) -> bool:
    factors = Mul.make_args(expr)
    return len(factors) == 2 and any(isinstance(f, exp) for f in factors) and any(map(_inverse_sum, factors))


def _inverse_sum(expr: Expr) -> bool:
    base, power = expr.as_base_exp()
    return power == -1 and isinstance(base, Reduce) and base.op == "sum" and exponential(base.body)


def is_norm(expr: Expr) -> bool:
    """The root of a sum of squares."""
    return isinstance(expr, Pow) and expr.exp == S.Half and _sum_of_squares(expr.base)


def _sum_of_squares(expr: Expr) -> bool:
    """Σ x², (4/s²) Σ x² y²; not Σ x² + ε or Σ exp(x), which are never 0."""
    factors = Mul.make_args(expr)
    sums = [factor for factor in factors if isinstance(factor, Reduce) and factor.op == "sum"]
    rest = [factor for factor in factors if factor not in sums]
    if len(sums) != 1:
        return False
    inner = Mul.make_args(sums[0].body)
    return all(map(_square, (*rest, *inner))) and not all(factor.is_positive for factor in inner)


def _square(expr: Expr) -> bool:
    """Whether an expression is at least 0 because it is a square, a sum of squares or a positive number."""
    return expr.is_positive is True or (isinstance(expr, Pow) and expr.exp.is_even is True) or _sum_of_squares(expr)


def guarded_norms(expr: Expr, norms: frozenset[str]) -> Expr:
    """A division by a norm, times the condition that the norm is not 0."""
    if isinstance(expr, Access) or not expr.args:
        return expr
    if isinstance(expr, Reduce):
        body, axes = open_(expr, letters(expr))
        return reduce_(expr.op, guarded_norms(body, norms), axes)
    expr = rebuild(expr, [guarded_norms(arg, norms) for arg in expr.args])
    if not isinstance(expr, (Mul, Pow)):
        return expr
    conditions = []
    for factor in Mul.make_args(expr):
        base, power = factor.as_base_exp()
        known = isinstance(base, Access) and base.name in norms
        if power.is_negative and (known or (_sum_of_squares(base) and (2 * power).is_Integer)):
            conditions.append(compare("!=", base, 0))
    return Mul(expr, *conditions)


def exponential(expr: Expr) -> bool:
    """Whether an expression grows like an exponential: exp(f), multiples, sums and powers of it."""
    if isinstance(expr, exp):
        return True
    if isinstance(expr, Reduce):
        return expr.op == "sum" and exponential(expr.body)
    if isinstance(expr, Pow):
        return exponential(expr.base)
    if isinstance(expr, where):
        return any(map(exponential, expr.args[1:]))
    return isinstance(expr, (Add, Mul)) and any(map(exponential, expr.args))


def possibly_infinite(system: System) -> frozenset[str]:
    """The arrays that may hold −∞: inputs (a user's mask), and what is made from them by adding and choosing."""
    found = {name for name in system.inputs if system.arrays[name].below is None and system.arrays[name].rank}
    for group in system.groups:
        for name in group:
            if any(may_be_infinite(equation.body, found) for equation in system.defined[name]):
                found.add(name)
    return frozenset(found)

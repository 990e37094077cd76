"""Rewriting that keeps generated code inside the range of floating-point numbers.

Each rule is an identity of real numbers; it is applied to index expressions before they are lowered.

    exp(f) / Σ exp(g)   →  exp(f − m) / Σ exp(g − m)    m = max g: softmax
    log Σ exp(g)        →  m + log Σ exp(g − m)         logsumexp
    log(1 + exp f)      →  softplus(f)                  log(exp f + exp g) → logaddexp(f, g)
    log(1 + f)          →  log1p(f)                     exp(f) − 1 → expm1(f)
    1 / (1 + exp(−f))   →  sigmoid(f)                   1 − sigmoid(f) → sigmoid(−f);  log sigmoid(f) → −softplus(−f)
    log P               →  f − log Σ exp(g)             where P = exp(f) / Σ exp(g)
    f / ‖x‖             →  0 where ‖x‖ = 0              in derivatives only: of all subgradients of the norm, the zero

Where g may be −∞ everywhere (a fully masked row), m is replaced by 0 and the sum by at least 1, so that the weights
come out as 0 and the logarithm as −∞, without a NaN on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sympy import Add, Expr, Function, Mul, Pow, S, exp, log

from gradproof.symbolic.equations.expr import (
    Access,
    Compare,
    Index,
    Reduce,
    compare,
    letters,
    names,
    open_,
    rebuild,
    reduce_,
    sum_,
)
from gradproof.symbolic.equations.functions import maximum, sigmoid, softplus, where
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.folding.fold import plain, put_in


class log1p(Function):
    """log(1 + x)."""

    is_real = True


class expm1(Function):
    """exp(x) − 1."""

    is_real = True


class logaddexp(Function):
    """log(exp(x) + exp(y))."""

    is_real = True


def stabilise(system: System, derived: Iterable[str] = ()) -> System:
    """The system with exponentials inlined where they are read, and every rule of this file applied.

    `derived` names the arrays that are derivatives.
    """
    derived = frozenset(derived)
    system = inline_logarithms(inline_exponentials(system))
    infinite = possibly_infinite(system)
    norms = frozenset(name for name, equations in system.defined.items() if any(is_norm(e.body) for e in equations))
    equations = []
    for equation in system.equations:
        body = equation.body
        if equation.name in derived:
            body = guarded_norms(body, norms)
        equations.append(equation.with_body(stable(body, infinite, (axis[0] for axis in equation.axes))))
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
            definition = weights[expr.args[0].name]
            return log(definition.body.xreplace(dict(zip(definition.place, expr.args[0].indices, strict=True))))
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
    """Σ x², (4/s²) Σ x² y²; not Σ x² + ε, which is never 0."""
    factors = Mul.make_args(expr)
    sums = [factor for factor in factors if isinstance(factor, Reduce) and factor.op == "sum"]
    rest = [factor for factor in factors if factor not in sums]
    return len(sums) == 1 and all(map(_square, (*rest, *Mul.make_args(sums[0].body))))


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


def may_be_infinite(expr: Expr, infinite: Iterable[str]) -> bool:
    if isinstance(expr, Access):
        return expr.name in infinite
    if isinstance(expr, (Add, Mul, where, maximum)):
        return any(may_be_infinite(arg, infinite) for arg in expr.args if not isinstance(arg, Compare))
    return isinstance(expr, log) or expr is S.NegativeInfinity


def stable(expr: Expr, infinite: frozenset[str], scope: Iterable[Index]) -> Expr:
    """An expression in its safe form.

    >>> x = Access("x")
    >>> stable(log(1 + exp(x)), frozenset(), [])
    softplus(x)
    """
    scope = frozenset(scope) | letters(expr)
    if isinstance(expr, Access) or not expr.args:
        return expr
    if isinstance(expr, Reduce):
        body, axes = open_(expr, scope)
        inner = scope.union(axis[0] for axis in axes)
        return reduce_(expr.op, stable(body, infinite, inner), axes)
    # The sums of exponentials are rewritten together with what stands around them, so they come first.
    expr = _shift(expr, infinite, scope)
    expr = rebuild(expr, [stable(arg, infinite, scope) for arg in expr.args]) if expr.args else expr
    for kind, rule in RULES:
        if isinstance(expr, kind):
            expr = rule(expr)
    return expr


# ------------------------------------------------------------------------------------------------ sums of exponentials


def _shift(expr: Expr, infinite: frozenset[str], scope: frozenset[Index]) -> Expr:
    """Subtract the maximum in exp(f)/Σ exp(g) and in log Σ exp(g)."""
    if isinstance(expr, log):
        inside, rest = [], []
        for factor in Mul.make_args(expr.args[0]):
            base, degree = factor.as_base_exp() if not isinstance(factor, exp) else (factor, S.One)
            shifted = shifted_sum(base, infinite, scope)
            if shifted is not None:
                inside.append(degree * (shifted[0] + log(shifted[2])))
            elif isinstance(factor, exp):
                inside.append(factor.args[0])
            else:
                rest.append(factor)
        if inside and (len(rest) == 0 or all(factor.is_positive for factor in rest)):
            return Add(*inside, log(Mul(*rest)))
        return expr
    if isinstance(expr, Mul):
        power = next((f for f in expr.args if isinstance(f, exp)), None)
        if power is None:
            return expr
        exponent, factors = power.args[0], []
        for factor in expr.args:
            base, degree = factor.as_base_exp()
            shifted = shifted_sum(base, infinite, scope) if degree.is_Integer and degree < 0 else None
            if shifted is not None:
                _, offset, total = shifted
                exponent, factor = exponent + degree * offset, total**degree
            if factor is not power:
                factors.append(factor)
        return Mul(exp(exponent), *factors)
    return expr


def shifted_sum(expr: Expr, infinite: frozenset[str], scope: frozenset[Index]) -> tuple[Expr, Expr, Expr] | None:
    """For Σ exp(g): the maximum of g, what is subtracted from g, and the sum that is then left."""
    if not isinstance(expr, Reduce) or expr.op != "sum":
        return None
    body, axes = open_(expr, scope)
    factors = Mul.make_args(body)
    powers = [factor for factor in factors if isinstance(factor, exp)]
    if len(powers) != 1 or not any(axis[0] in letters(powers[0]) for axis in axes):
        return None
    exponent = powers[0].args[0]
    if any(
        isinstance(term, Reduce) and term.op == "max" for part in Add.make_args(exponent) for term in part.atoms(Reduce)
    ):
        return None  # the maximum is subtracted already
    conditions = [factor for factor in factors if isinstance(factor, Compare)]
    rest = Mul(*(factor for factor in factors if factor is not powers[0]))
    if conditions:
        exponent = where(Mul(*conditions), exponent, S.NegativeInfinity)
    largest = reduce_("max", exponent, axes)
    total = lambda offset: sum_(rest * exp(powers[0].args[0] - offset), axes)  # noqa: E731
    weighted = len(conditions) + 1 < len(factors)
    if not weighted and (conditions or may_be_infinite(exponent, infinite)):
        finite = where(compare("<", S.NegativeInfinity, largest), largest, S.Zero)
        return largest, finite, maximum(total(finite), S.One)
    return largest, largest, total(largest)


# ---------------------------------------------------------------------------------------------------- elementwise rules


def _logarithm(expr: log) -> Expr:
    argument = expr.args[0]
    if isinstance(argument, sigmoid):
        return -softplus(-argument.args[0])
    if isinstance(argument, Add) and len(argument.args) == 2 and names(argument):
        one, other = argument.args
        if isinstance(one, exp) and isinstance(other, exp):
            return logaddexp(one.args[0], other.args[0])
        if one == 1:
            return softplus(other.args[0]) if isinstance(other, exp) else log1p(other)
    return expr


def _difference(expr: Add) -> Expr:
    """exp(f) − 1 and 1 − sigmoid(f)."""
    for sign, number in ((1, S.NegativeOne), (-1, S.One)):
        if number in expr.args:
            for term in expr.args:
                if isinstance(term, exp) and sign == 1:
                    return expr - term + 1 + expm1(term.args[0])
                if sign == 1 or not isinstance(-term, (exp, sigmoid)):
                    continue
                new = -expm1(-term.args[0] * -1) if isinstance(-term, exp) else sigmoid(-(-term).args[0])
                return expr - term - 1 + new
    return expr


def _quotient(expr: Pow) -> Expr:
    """1/(1 + exp(−f)), and its powers."""
    base, power = expr.base, expr.exp
    if not (power.is_Integer and power < 0 and isinstance(base, Add) and len(base.args) == 2 and names(base)):
        return expr
    one, other = base.args
    return sigmoid(-other.args[0]) ** -power if one == 1 and isinstance(other, exp) else expr


def _fraction(expr: Mul) -> Expr:
    """exp(f)/(1 + exp f), where the division has become sigmoid(−f) already: exp(f) sigmoid(−f) is sigmoid(f)."""
    power = next((factor for factor in expr.args if isinstance(factor, exp)), None)
    for factor in expr.args:
        base, count = factor.as_base_exp()
        if power is None or not isinstance(base, sigmoid) or not count.is_Integer or count < 1:
            continue
        argument = -base.args[0]
        for term in Add.make_args(power.args[0]):
            multiple = term / argument
            if multiple.is_Integer and multiple >= 1:
                turned = min(multiple, count)
                rest = Mul(*(f for f in expr.args if f is not factor and f is not power))
                left = exp(power.args[0] - turned * argument) * base ** (count - turned)
                return rest * left * sigmoid(argument) ** turned
    return expr


RULES: tuple[tuple[type, Callable[[Expr], Expr]], ...] = (
    (log, _logarithm),
    (Add, _difference),
    (Pow, _quotient),
    (Mul, _fraction),
)

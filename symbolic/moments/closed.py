"""Closed forms: conditions, geometric sums, linear recurrences, and the shortest of several ways to write a result."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Add, Dummy, Expr, Integer, Mul, Number, Pow, S, cancel, expand, factor

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Reduce,
    compare,
    fresh,
    letters,
    names,
    nonnegative,
    open_,
    rebuild,
    sum_,
)
from gradproof.symbolic.equations.system import Equation, System, out_letters
from gradproof.symbolic.errors import RuleError
from gradproof.symbolic.folding.rows import common_factor

# ---------------------------------------------------------------------------------------------------- geometric sums


def geometric(expr: Expr, assumed: dict[Expr, Expr] | None = None) -> Expr:
    """Every Σ_s r^s in closed form: r^lo (1 − r^n)/(1 − r) for n terms; each ratio r ≠ 1 is put into `assumed`, with n.

    >>> from gradproof.symbolic.equations.expr import Index, Size
    >>> s, t, b = Index("s"), Size("t"), Access("b")
    >>> geometric(sum_(b ** (t - 1 - s), [(s, 0, t)]))
    (1 - b**t)/(1 - b)
    """
    assumed = {} if assumed is None else assumed
    if isinstance(expr, Access) or not expr.args:
        return expr
    if isinstance(expr, Reduce):
        if expr.op == "sum" and len(expr.axes) == 1:
            body, axes = open_(expr, letters(expr))
            found = _geometric_sum(body, axes[0], assumed)
            if found is not None:
                return found
        return expr
    return rebuild(expr, [geometric(arg, assumed) for arg in expr.args])


def _geometric_sum(body: Expr, axis: Axis, assumed: dict[Expr, Expr]) -> Expr | None:
    letter, lo, hi = axis
    outside: list[Expr] = []
    powers: dict[Expr, tuple[Expr, Expr]] = {}  # base → (a, c) of its exponent a·letter + c
    for own in Mul.make_args(body):
        if letter not in letters(own):
            outside.append(own)
            continue
        base, exponent = own.as_base_exp()
        exponent = exponent.expand()
        slope = exponent.coeff(letter)
        rest = (exponent - slope * letter).expand()
        if letter in letters(base) or letter in letters(rest) or not isinstance(slope, Integer):
            return None
        powers[base] = slope, rest
    if not powers:
        return None
    falling = all(slope < 0 for slope, _ in powers.values())  # sum from the other end, so that exponents are positive
    start = hi - 1 if falling else lo
    first = Mul(*(base ** (slope * start + rest).expand() for base, (slope, rest) in powers.items()))
    steps = {base: -slope if falling else slope for base, (slope, _) in powers.items()}
    count = hi - lo
    ratio = Mul(*(base**step for base, step in steps.items()))
    assumed.setdefault(ratio, count)
    last = Mul(*(base ** (step * count).expand() for base, step in steps.items()))
    return Mul(*outside, first, 1 - last, _reciprocal(steps))


def _reciprocal(steps: dict[Expr, Integer]) -> Expr:
    """1/(1 − r); 1 − b^k is written (1 − b)(1 + b + … + b^{k−1}), so that a factor 1 − b cancels."""
    ((base, step), *more) = steps.items()
    if more or step < 2:
        return 1 / (1 - Mul(*(base**step for base, step in steps.items())))
    return 1 / (1 - base) / Add(*(base**k for k in range(int(step))))


# ------------------------------------------------------------------------------------------------------ conditions


def decided(expr: Expr, assumed: list[Expr] | None = None) -> Expr:
    """Conditions that always or never hold become 1 or 0; one that bounds a summed letter becomes its range.

    Where a range might be turned round for small sizes, its length is added to `assumed`: it must not be negative.

    >>> from gradproof.symbolic.equations.expr import Index, Size, compare
    >>> t, n = Index("t"), Size("n")
    >>> decided(sum_(compare("<=", 1, t) * Access("x", t), [(t, 0, n)])), decided(compare("==", t, t + 1))
    (sum[b1=1:n](x[b1]), 0)
    """
    assumed = [] if assumed is None else assumed
    if isinstance(expr, Compare):
        left, right = expr.sides
        difference = (left - right).expand()
        return compare(expr.op, difference, 0) if isinstance(difference, Integer) else expr
    if isinstance(expr, Access) or not expr.args:
        return expr
    if isinstance(expr, Reduce) and expr.op == "sum":
        body, axes = open_(expr, letters(expr))
        factors = [decided(factor, assumed) for factor in Mul.make_args(decided(body, assumed))]
        for factor in list(factors):
            bounded = _bounded(factor, axes, assumed)
            if bounded is not None:
                factors.remove(factor)
                axes = bounded
        read = letters(Mul(*factors)).union(*(letters(lo) | letters(hi) for _, lo, hi in axes))
        counted = [axis for axis in axes if axis[0] not in read and (axis[2] - axis[1]).expand() in assumed]
        lengths = ((hi - lo).expand() for _, lo, hi in counted)
        return Mul(*lengths, sum_(Mul(*factors), [axis for axis in axes if axis not in counted]))
    return rebuild(expr, [decided(arg, assumed) for arg in expr.args])


def _bounded(factor: Expr, axes: list[Axis], assumed: list[Expr]) -> list[Axis] | None:
    """The axes with the range of one letter cut by a condition on it, None if the factor is no such condition."""
    if not isinstance(factor, Compare) or factor.op not in ("<", "<="):
        return None
    left, right = factor.sides
    space = (right - left - (1 if factor.op == "<" else 0)).expand()  # at least 0 where the condition holds
    for position, (letter, lo, hi) in enumerate(axes):
        slope = space.coeff(letter)
        if slope not in (1, -1) or any(letter in letters(other[1]) | letters(other[2]) for other in axes):
            continue
        rest = (space - slope * letter).expand()
        if rest.atoms(Access) or letters(rest):
            continue
        first, last = (-rest, hi - 1) if slope == 1 else (lo, rest)
        if not nonnegative(first - lo if slope == 1 else hi - 1 - last):
            continue
        length = (last + 1 - first).expand()
        if not nonnegative(length) and length not in assumed:
            assumed.append(length)
        return [*axes[:position], (letter, first.expand(), (last + 1).expand()), *axes[position + 1 :]]
    return None


# -------------------------------------------------------------------------------------------------- shortest form


def measure(expr: Expr) -> tuple[int, int]:
    """How long an expression reads: how often it names something, then the number of its parts (signs not counted)."""
    if isinstance(expr, Access) or not expr.args:
        return int(not isinstance(expr, Number)), 1
    if isinstance(expr, Mul) and expr.args[0] == -1:
        return measure(-expr)
    parts = [measure(arg) for arg in expr.args]
    return sum(part[0] for part in parts), 1 + sum(part[1] for part in parts)


def shortest(expr: Expr) -> Expr:
    """The shortest of several equal forms: as it is, multiplied out, with common factors in front, factored.

    >>> from sympy.abc import a, b, d
    >>> shortest(d**2 * a**2 + d * b - d**2 * a**2 + d * a * b)
    b*d*(a + 1)
    """
    masks: dict[Expr, Expr] = {}
    masked = _masked(expr, masks)
    back = {dummy: part for part, dummy in masks.items()}
    forms: list[Callable[[], Expr]] = [
        lambda: masked,
        lambda: _grouped(masked),
        lambda: _grouped(expand(masked)),
        lambda: cancel(masked),
        lambda: factor(masked),
    ]
    found = [form() for form in forms]
    return min(found, key=measure).xreplace(back)


def _grouped(expr: Expr) -> Expr:
    return common_factor(expr) if isinstance(expr, Add) else expr


def _masked(expr: Expr, masks: dict[Expr, Expr]) -> Expr:
    """A rational function in symbols that stand for all that is none."""
    rational = isinstance(expr, (Add, Mul)) or (isinstance(expr, Pow) and isinstance(expr.exp, Integer))
    if rational:
        return expr.func(*(_masked(arg, masks) for arg in expr.args))
    if isinstance(expr, Number):
        return expr
    if expr not in masks:
        masks[expr] = Dummy(f"m{len(masks)}")
    return masks[expr]


# ----------------------------------------------------------------------------------------------- linear recurrences


def unrolled(system: System, name: str) -> Equation:
    """h[0] = c; h[t] = a h[t−1] + f(t)   becomes   h[t] = a^t c + Σ_{s=1…t} a^{t−s} f(s).

    Raises RuleError unless the recurrence is of that kind, with a that does not depend on t.
    """
    pieces = system.defined[name]
    array = system.arrays[name]
    outs = out_letters(array.rank)
    axis = next((k for k in range(array.rank) if any(not letters(piece.place[k]) for piece in pieces)), None)
    fail = RuleError(f"the recurrence of {name} has no closed form here: h[0] = c; h[t+1] = a*h[t] + f(t) has one")
    if axis is None or len(pieces) != 2:
        raise fail
    first, step = sorted(pieces, key=lambda piece: bool(letters(piece.place[axis])))
    t, before = outs[axis], Access(name, *(out - 1 if k == axis else out for k, out in enumerate(outs)))
    (low,) = [lo for letter, lo, _ in step.axes if letter == step.place[axis]]
    body = step.at(outs).expand(deep=False)
    linear = [term for term in Add.make_args(body) if before in term.args or term == before]
    rest = Add(*(term for term in Add.make_args(body) if term not in linear))
    slope = Add(*(term / before for term in linear))
    if first.place[axis] != 0 or low != 1 or name in names(rest) or name in names(slope) or t in letters(slope):
        raise fail
    start = first.body.xreplace({p: out for p, out in zip(first.place, outs, strict=True) if letters(p)})
    (s,) = fresh({*outs, *letters(body)}, 1)
    total = slope**t * start + sum_(slope ** (t - s) * rest.xreplace({t: s}), [(s, S.One, t + 1)])
    return Equation(name, outs, array.axes(outs), total)

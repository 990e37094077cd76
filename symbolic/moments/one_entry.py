"""The expectation of a function of one random entry, and of relu by symmetry."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Add, Expr, Integer, Mul, S

from gradproof.symbolic.equations.expr import (
    Access,
    Compare,
    Index,
    fresh,
    letters,
    map_accesses,
    names,
    sum_,
)
from gradproof.symbolic.equations.functions import absolute, relu, sign
from gradproof.symbolic.equations.laws import ORDER, Law
from gradproof.symbolic.moments.expansion import Term, terms


def power_of(function: Expr, entry: Access) -> int:
    """k if the function is the k-th power of the entry, 0 if it is something else."""
    base, power = function.as_base_exp()
    return int(power) if base == entry and isinstance(power, Integer) and 0 < power <= ORDER else 0


def order_of(function: Expr) -> int:
    """How fast a function of an entry may grow: the powers of all its factors."""
    powers = (factor.as_base_exp()[1] for factor in Mul.make_args(function) if not isinstance(factor, Compare))
    return sum(int(power) for power in powers if isinstance(power, Integer))


def replaced(function: Expr, entry: Access, value: Expr, scope: frozenset[Index]) -> Expr:
    """The function with something else in place of an entry."""
    return map_accesses(function, lambda access: value if access == entry else access, [entry.name], scope)


def by_values(law: Law, function: Expr, entry: Access, scope: frozenset[Index]) -> Expr:
    """E f(x) = Σ_v P(x = v) f(v)."""
    if law.family == "categorical":
        (v,) = fresh(scope | letters(function), 1)
        chance = law.at(law.parameters[0], (v,))
        return sum_(chance * replaced(function, entry, v, scope | {v}), [(v, S.Zero, law.below)])
    found = []
    for value, chance in (law.values or {}).items():
        conditions = [factor for factor in Mul.make_args(function) if isinstance(factor, Compare)]
        held = Mul(*(replaced(condition, entry, value, scope) for condition in conditions))
        if held != 0 and chance != 0:  # what a condition excludes need not be defined
            rest = Mul(*(factor for factor in Mul.make_args(function) if factor not in conditions))
            found.append(chance * held * replaced(rest, entry, value, scope))
    return Add(*found)


# x^k f(c x) for a law that is symmetric about 0 and a constant c, where order is the sum of all powers: c x is |c| x or
# −|c| x, which have one law, so that f(c x)^m x^k gives |c|^m sign(c)^k times what c = 1 gives:
#   relu(x)^m x^k, 1[x > 0] x^k      |x|^order on the positive half, 0 on the other:  E = E|x|^order / 2
#   |x|^m x^k                        |x|^order for even k, and cancels for odd k:     E = E|x|^order or 0
HALF = {"positive": (S.Half, S.Half), "negative": (S.Half, -S.Half), "both": (S.One, S.Zero)}  # for even and odd k


def function_moment(law: Law, function: Expr, entry: Access) -> Expr | None:
    """E of a function of one entry in the moments of its law; None where no rule gives it."""
    half, odd, order, inside, empty = "both", False, 0, 0, False
    scale, weight = S.Zero, S.One
    for factor in Mul.make_args(function):
        base, power = factor.as_base_exp()
        found = side_of(base, entry)
        if not (isinstance(power, Integer) and power > 0) or found is None:
            return None
        side, times = found
        if base == entry:
            odd ^= power % 2 == 1
        else:
            scale = scale or times
            ratio = times / scale
            if not ratio.is_number:
                return None
            side = FLIPPED[side] if ratio < 0 else side
        if isinstance(base, (relu, absolute)):
            inside += int(power)
            weight *= abs(ratio) ** power
        empty |= {side, half} == {"positive", "negative"}
        half = half if side == "both" else side
        order += 0 if isinstance(base, Compare) else int(power)
    if not law.centred or (order == 0 and not (law.of.atomless and scale.is_number)):
        return None
    value = law.absolute(order)
    if value is None or empty:
        return S.Zero if empty else None
    scale = scale or S.One
    if (inside + odd) % 2 == 0:  # |c|^m sign(c)^k is c^m
        weight *= scale**inside
    else:
        weight *= absolute(scale) ** inside if inside % 2 else scale**inside * sign(scale)
    return HALF[half][odd] * weight * value


FLIPPED = {"positive": "negative", "negative": "positive", "both": "both"}


def side_of(base: Expr, entry: Access) -> tuple[str, Expr] | None:
    """On which side of 0 a function of c x is |c x| or 1, and not 0 (`both` for x itself and |c x|); and c."""
    if base == entry:
        return "both", S.One
    if isinstance(base, Compare) and base.op in ("<", "<=") and S.Zero in base.sides:
        side, argument = ("positive", base.sides[1]) if base.sides[0] == 0 else ("negative", base.sides[0])
    elif isinstance(base, (relu, absolute)):
        side, argument = ("positive" if isinstance(base, relu) else "both"), base.args[0]
    else:
        return None
    times = argument / entry
    return None if entry.name in names(times) else (side, times)


def halved(expr: Expr, name: str, scope: frozenset[Index], tidy: Callable[[Expr], Expr]) -> Expr:
    """relu(A)^m h → A^m h / 2 where −A and (−1)^m h are what A and h become when the sign of one array changes.

    That array must be distributed as its negative: averaging over both signs, relu(A)^m + (−1)^m relu(−A)^m = A^m.
    """

    def flip(expr: Expr) -> Expr:
        return tidy(map_accesses(expr, lambda access: -access, [name], scope | letters(expr)))

    def inside(node: Expr) -> bool:
        return isinstance(node, relu) and name in names(node)

    found = []
    for term in terms(expr, lambda e: any(inside(node) for node in e.atoms(relu)), scope):
        factors = list(term.factors)
        for position, factor in enumerate(factors):
            base, power = factor.as_base_exp()
            if not inside(base) or not isinstance(power, Integer) or power < 1:
                continue
            (argument,) = base.args
            rest = Mul(*factors[:position], *factors[position + 1 :])
            if flip(argument) == tidy(-argument) and flip(rest) == tidy((-1) ** power * rest):
                factors[position] = argument**power / 2
        found.append(Term(term.axes, tuple(factors)).expr)
    return Add(*found)

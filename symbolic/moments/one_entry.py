"""The expectation of a function of one random entry, and of relu by symmetry."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Add, Expr, Integer, Mul, S

from gradproof.symbolic.equations.expr import (
    Access,
    Compare,
    Index,
    compare,
    fresh,
    letters,
    map_accesses,
    names,
    sum_,
)
from gradproof.symbolic.equations.functions import absolute, relu
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
    if law.family == "rademacher":
        chances = {S.NegativeOne: S.Half, S.One: S.Half}
    else:
        (p,) = law.parameters
        chances = {S.Zero: 1 - p, S.One: p}
    return Add(*(chance * replaced(function, entry, value, scope) for value, chance in chances.items()))


# x^k f(x) for a law that is symmetric about 0, where order is the sum of all powers:
#   relu(x)^m x^k, 1[x > 0] x^k      |x|^order on the positive half, 0 on the other:  E = E|x|^order / 2
#   |x|^m x^k                        |x|^order for even k, and cancels for odd k:     E = E|x|^order or 0
HALF = {"positive": (S.Half, S.Half), "negative": (S.Half, -S.Half), "both": (S.One, S.Zero)}  # for even and odd k


def function_moment(law: Law, function: Expr, entry: Access) -> Expr | None:
    """E of a function of one entry in the moments of its law; None where no rule gives it."""
    half, odd, order = "both", False, 0
    for factor in Mul.make_args(function):
        base, power = factor.as_base_exp()
        if not (isinstance(power, Integer) and power > 0):
            return None
        side = side_of(base, entry)
        if side is None:
            return None
        if {side, half} == {"positive", "negative"}:
            return S.Zero
        half = half if side == "both" else side
        order += 0 if isinstance(base, Compare) else int(power)
        odd ^= base == entry and power % 2 == 1
    if not law.centred or (order == 0 and not law.of.atomless):
        return None
    value = law.absolute(order)
    return None if value is None else HALF[half][odd] * value


def side_of(base: Expr, entry: Access) -> str | None:
    """On which side of 0 a factor is |x| or 1, and not 0; `both` for x itself and |x|."""
    if base == entry or base == absolute(entry):
        return "both"
    if base in (relu(entry), compare(">", entry, 0), compare(">=", entry, 0)):
        return "positive"
    return "negative" if base in (relu(-entry), compare("<", entry, 0), compare("<=", entry, 0)) else None


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

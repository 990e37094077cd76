"""Conditions in normal forms: [d < 0] and [d = 0] for a difference d with a fixed sign, the others written in these.

    [d ≤ 0] = [d < 0] + [d = 0]        [d ≠ 0] = 1 − [d = 0]        [−d < 0] = 1 − [d < 0] − [d = 0]

Of indices, which are whole numbers, [d ≤ 0] is [d − 1 < 0], and what the ranges decide is decided. Of positive numbers,
[a < b] is [log a < log b].
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, gcd
from typing import TYPE_CHECKING

from sympy import Expr, S, Symbol
from sympy.core.symbol import Str

from gradproof.symbolic.equations.expr import Access, Compare, Index, Reduce, Size, accesses, letters, nonnegative
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.judging.polynomials import (
    ONE,
    NoNormalForm,
    Poly,
    added,
    atom,
    common,
    constant,
    contains,
    content,
    expr_of,
    frozen,
    head,
    leading,
    merged,
    product_expr,
    scaled,
)

if TYPE_CHECKING:
    from gradproof.symbolic.judging.normal_form import Normal, Scope


def _bracket(op: str, difference: Expr) -> Expr:
    return Expr.__new__(Compare, Str(op), difference, S.Zero)


class Conditions:
    """The rules for conditions, for one `Normal`."""

    def __init__(self, normal: Normal) -> None:
        self.normal = normal

    def of(self, op: str, left: Expr, right: Expr, scope: Scope) -> Poly:
        """The normal form of one condition."""
        difference = added([self.normal.of(left, scope), scaled(self.normal.of(right, scope), -1)])
        if op == "!=":
            return added([constant(1), scaled(self.related("==", difference, scope), -1)])
        if op == "<=":
            if self.whole(difference):
                return self.related("<", added([difference, constant(-1)]), scope)
            return added([self.related("<", difference, scope), self.related("==", difference, scope)])
        return self.related(op, difference, scope)

    def whole(self, poly: Poly) -> bool:
        """Whether a sum is a whole number by construction."""
        return all(
            number.denominator == 1 and all(self._is_index(base) and power > 0 for base, power in mono)
            for mono, number in poly.items()
        )

    def _is_index(self, expr: Expr) -> bool:
        return isinstance(expr, Symbol) or (
            isinstance(expr, Access) and self.normal.system.arrays[expr.name].below is not None
        )

    def related(self, op: str, poly: Poly, scope: Scope) -> Poly:
        """[poly op 0] for < and =."""
        if set(poly) <= {ONE}:
            number = poly.get(ONE, Fraction(0))
            return constant(int(number < 0 if op == "<" else number == 0))
        if any(isinstance(base, Compare) for mono in poly for base, _ in mono):
            return self.normal.by_cases(poly, lambda case, inner: self.related(op, case, inner), scope)
        whole = self.whole(poly)
        if not whole:
            factor = {base: -power for base, power in common(poly, False).items() if not hollow(base)}
            poly = self.normal.product([scaled(poly, 1 / content(poly)), {frozen(factor): Fraction(1)}], scope)
            if (found := self.of_positives(op, poly, scope)) is not None:
                return found
        elif (known := self.decided(op, expr_of(poly), scope)) is not None:
            return constant(int(known))
        else:
            poly = lowest(op, poly)
            if op == "==" and any(number.denominator != 1 for number in poly.values()):
                return {}  # 2i = 2j + 1 never holds
        if poly[leading(poly)] < 0:
            opposite = scaled(poly, -1)
            if op == "==":
                poly = opposite
            elif whole:  # [−d < 0] = 1 − [d < 1]
                return added([constant(1), scaled(self.related("<", added([opposite, constant(-1)]), scope), -1)])
            else:
                parts = (self.related("<", opposite, scope), self.related("==", opposite, scope))
                return added([constant(1), *(scaled(part, -1) for part in parts)])
        difference = expr_of(poly)
        if self.normal.generic and op == "==" and not whole and smooth(difference):
            return {}
        return atom(_bracket(op, difference))

    def of_positives(self, op: str, poly: Poly, scope: Scope) -> Poly | None:
        """[a < b] is [log a < log b] for positive a and b, since logarithms rise; nothing positive is below 0."""
        normal = self.normal
        above = {mono: number for mono, number in poly.items() if number > 0}
        below = {mono: -number for mono, number in poly.items() if number < 0}
        sides = [expr_of(side) for side in (above, below) if side]
        if not all(normal.positive(side) and not hollow(side) for side in sides):
            return None
        if not above or not below:
            return constant(int(op == "<" and not above))
        if len(poly) > 2 or not expr_of(poly).atoms(Access):
            return None
        logs = added([normal.powers.logarithm(above, scope), scaled(normal.powers.logarithm(below, scope), -1)])
        return self.related(op, logs, scope)

    def decided(self, op: str, difference: Expr, scope: Scope) -> bool | None:
        """What the ranges of the letters and of the entries of index arrays say of a condition on indices."""
        axes = [(letter, lo, hi) for letter, (lo, hi) in scope.items()]
        lookups: dict[Expr, Expr] = {}
        for access in accesses(difference):
            below = self.normal.system.arrays[access.name].below
            if below is not None:
                lookups[access] = letter = Index(f"_lookup_{len(lookups)}")
                axes.append((letter, S.Zero, below))
        difference = difference.xreplace(lookups)  # the outer one of nested lookups
        if nonnegative(-difference - 1, axes):
            return op == "<"
        if nonnegative(difference - (1 if op == "==" else 0), axes):
            return False
        return None

    def applied(self, factors: dict[Expr, Fraction], base: Expr, number: Fraction, scope: Scope) -> Poly | None:
        """A product with a condition among its factors, if the condition changes the others; else None."""
        others = {other: power for other, power in factors.items() if other != base}
        if factors[base] < 0:
            raise NoNormalForm("a division by a condition")
        if factors[base] != 1:
            return self.normal.settled({**others, base: Fraction(1)}, number, scope)
        opposite = _bracket("==" if base.op == "<" else "<", base.sides[0])
        if opposite in others:
            return {}
        if base.op != "==":
            return None
        poly = self.normal.of(base.sides[0], scope)
        if self.whole(poly):
            return self._substituted(others, base, number, scope)
        top = head(poly)  # l · [l + r = 0] = −r · [l + r = 0]
        if top == ONE or not contains(others, top):
            return None
        rest = merged(others.items(), ((b, -power) for b, power in top), ((base, Fraction(1)),))
        remaining = {mono: -value / poly[top] for mono, value in poly.items() if mono != top}
        return self.normal.product([remaining, self.normal.settled(rest, number, scope)], scope) if remaining else {}

    def _substituted(self, others: dict[Expr, Fraction], base: Expr, number: Fraction, scope: Scope) -> Poly | None:
        """f(i) [i = e] is f(e) [i = e]."""
        difference = base.sides[0].expand()
        used = frozenset().union(*(letters(other) for other in others))
        inside_lookup = frozenset().union(*(letters(access) for access in difference.atoms(Access)))
        for letter in sorted(letters(difference) - inside_lookup, key=str, reverse=True):
            slope = difference.coeff(letter)
            rest = difference - slope * letter
            if slope not in (1, -1) or letter in letters(rest):
                continue
            if letter in used:
                value = product_expr(others).xreplace({letter: (-slope * rest).expand()})
                new = self.normal.of(value, scope)
                return self.normal.product([new, scaled(atom(base), number)], scope)
            return None
        return None


def lowest(op: str, poly: Poly) -> Poly:
    """A condition on whole numbers without the numbers and sizes that all its terms are multiples of.

    [2i − 2j = 0] is [i − j = 0], [2i − 3 < 0] is [i − 2 < 0].
    """
    rest = {mono: number for mono, number in poly.items() if mono != ONE}
    step = gcd(*(number.numerator for number in rest.values()))
    number = poly.get(ONE, Fraction(0)) / step
    if not number:
        shared = common(rest, False)
        rest = {frozen(merged(mono, ((size, -power) for size, power in shared.items()))): n for mono, n in rest.items()}
    return added([scaled(rest, Fraction(1, step)), constant(number if op == "==" else floor(number))])


def hollow(expr: Expr) -> bool:
    """Whether an expression holds a sum that may have no terms, such as one over j < i: positive terms may sum to 0."""
    return any(
        not nonnegative(hi - lo - 1, [(letter, S.Zero, Size("_")) for letter in letters(hi - lo)])
        for node in expr.atoms(Reduce)
        for _, lo, hi in node.axes
    )


def smooth(difference: Expr) -> bool:
    """Whether an expression of entries is 0 at isolated points only: it holds no maximum and no condition."""
    return bool(difference.atoms(Access)) and not any(
        isinstance(node, (Compare, where)) or (isinstance(node, Reduce) and node.op == "max")
        for node in difference.atoms(Compare, where, Reduce)
    )


def bounds(condition: Expr, letter: Index) -> tuple[Expr | None, Expr | None]:
    """The least value and the end of a letter under a condition letter < e or e < letter; (None, None) for any other.

    >>> k, n = Index("k"), Symbol("n")
    >>> bounds(_bracket("<", k - n), k), bounds(_bracket("<", n - k), k)
    ((None, n), (n + 1, None))
    """
    difference = condition.sides[0].expand()
    slope = difference.coeff(letter)
    rest = (difference - slope * letter).expand()
    if condition.op != "<" or slope not in (1, -1) or letter in letters(rest) or difference.atoms(Access):
        return None, None
    return (None, -rest) if slope == 1 else (rest + 1, None)


def solved(condition: Expr, letter: Index) -> Expr | None:
    """The one value of a letter under a condition letter = e; None for any other.

    >>> k, n = Index("k"), Symbol("n")
    >>> solved(_bracket("==", n - k), k)
    n
    """
    difference = condition.sides[0].expand()
    slope = difference.coeff(letter)
    rest = (difference - slope * letter).expand()
    if condition.op != "==" or slope not in (1, -1) or letter in letters(rest) or difference.atoms(Access):
        return None
    return -slope * rest

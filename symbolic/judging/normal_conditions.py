"""Conditions in normal forms: [d < 0] and [d = 0] for a difference d with a fixed sign, the others written in these.

    [d ≤ 0] = [d < 0] + [d = 0]        [d ≠ 0] = 1 − [d = 0]        [−d < 0] = 1 − [d < 0] − [d = 0]

Of indices, which are whole numbers, [d ≤ 0] is [d − 1 < 0], and what the ranges decide is decided.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sympy import Expr, Integer, S, Symbol
from sympy.core.symbol import Str

from gradproof.symbolic.equations.expr import Access, Compare, Index, Reduce, accesses, letters, nonnegative
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
        whole = self.whole(poly)
        if not whole:
            factor = {base: -power for base, power in common(poly, False).items()}
            poly = self.normal.product([scaled(poly, 1 / content(poly)), {frozen(factor): Fraction(1)}], scope)
        elif (known := self.decided(op, expr_of(poly), scope)) is not None:
            return constant(int(known))
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


def smooth(difference: Expr) -> bool:
    """Whether an expression of entries is 0 at isolated points only: it holds no maximum and no condition."""
    return bool(difference.atoms(Access)) and not any(
        isinstance(node, (Compare, where)) or (isinstance(node, Reduce) and node.op == "max")
        for node in difference.atoms(Compare, where, Reduce)
    )


def threshold(condition: Expr, letter: Index) -> Expr | None:
    """The e of a condition letter < e; None for any other."""
    if condition.op != "<":
        return None
    difference = condition.sides[0].expand()
    rest = difference - letter
    if difference.coeff(letter) != 1 or letter in letters(rest) or difference.atoms(Access):
        return None
    return (-rest).expand() if not isinstance(rest, Integer) or rest else S.Zero

"""Products over letters in normal forms.

    Π_k c·x_k²·exp(y_k) = cⁿ · (Π_k x_k)² · exp(Σ_k y_k)        Π_k x_k = exp(Σ_k log x_k) for positive x
    Π_k (1 if k = i else x_k) = Π_k x_k / x_i

A product of one factor is that factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sympy import Expr, Pow

from gradproof.symbolic.equations.expr import Axis, Compare, letters, nonnegative, reduce_
from gradproof.symbolic.judging.normal_conditions import solved
from gradproof.symbolic.judging.polynomials import Poly, added, atom, constant, expr_of, rational, scaled

if TYPE_CHECKING:
    from gradproof.symbolic.judging.normal_form import Normal, Scope


class Products:
    """The rules for products over letters, for one `Normal`."""

    def __init__(self, normal: Normal) -> None:
        self.normal = normal

    def total(self, poly: Poly, axes: Sequence[Axis], scope: Scope) -> Poly:
        """Π over `axes` of a normal form, as a normal form."""
        normal = self.normal
        inner = scope | {letter: (lo, hi) for letter, lo, hi in axes}
        if not poly:
            return {}
        if normal.positive(expr_of(poly)):
            logs = normal.sums.total(normal.powers.logarithm(poly, inner), axes, scope)
            return normal.powers.exponential(logs, scope)
        if (found := self._singled_out(poly, axes, scope)) is not None:
            return found
        if len(poly) > 1 or any(isinstance(base, Compare) for mono in poly for base, _ in mono):
            return atom(reduce_("prod", expr_of(poly), axes))
        ((mono, number),) = poly.items()
        count = normal.sums.total(constant(1), axes, scope)
        parts = [self._repeated(rational(number), count, scope)]
        for base, power in mono:
            if not letters(base) & {axis[0] for axis in axes}:
                parts.append(self._repeated(base, scaled(count, power), scope))
            elif normal.positive(base):
                logs = normal.sums.total(scaled(normal.powers.logarithm(atom(base), inner), power), axes, scope)
                parts.append(normal.powers.exponential(logs, scope))
            else:
                parts.append(atom(reduce_("prod", base, axes), power))
        return normal.product(parts, scope)

    def _singled_out(self, poly: Poly, axes: Sequence[Axis], scope: Scope) -> Poly | None:
        """Π_j (a_j if j = i else b_j) = Π_j b_j · a_i/b_i, for an i in the range of j."""
        if len(axes) > 1:
            return None
        ((letter, lo, hi),) = axes
        known = [(other, *ends) for other, ends in scope.items()]
        for base in dict.fromkeys(base for mono in poly for base, _ in mono if isinstance(base, Compare)):
            place = solved(base, letter)
            if place is None or not (nonnegative(place - lo, known) and nonnegative(hi - 1 - place, known)):
                continue
            condition = frozenset(((base, Fraction(1)),))
            inside = expr_of(added({mono - condition: number} for mono, number in poly.items()))
            others = {mono: number for mono, number in poly.items() if not condition <= mono}
            at = {letter: place}
            parts = [self.normal.of(side.xreplace(at), scope) for side in (inside, expr_of(others))]
            if not parts[1]:
                continue
            inverse = self.normal.powers.power(parts[1], Fraction(-1), scope)
            return self.normal.product([self.total(others, axes, scope), parts[0], inverse], scope)
        return None

    def _repeated(self, base: Expr, count: Poly, scope: Scope) -> Poly:
        """base · base · …, so many times."""
        return self.normal.of(Pow(base, expr_of(count)), scope)

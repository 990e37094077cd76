"""Sums over letters in normal forms: flat, without deltas, free factors outside, one sum for each connected part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from sympy import Add, Expr, Function, Mul, Pow, S, bernoulli, exp

from gradproof.symbolic.equations.calculus import solve_deltas
from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Index,
    Reduce,
    compare,
    letters,
    nonnegative,
    open_,
    sum_,
)
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.judging.normal_conditions import bounds
from gradproof.symbolic.judging.polynomials import (
    Mono,
    Poly,
    added,
    atom,
    expr_of,
    frozen,
    head,
    merged,
    product_expr,
    rational,
    scaled,
)

if TYPE_CHECKING:
    from gradproof.symbolic.judging.normal_form import Normal, Scope

Factors = dict[Expr, Fraction]
Part = tuple[Factors, list[Axis]]
MAX_FLIPS = 4  # symmetric accesses in one sum of which both ways round are tried
MAX_POWER = 6  # Σ t^k is a polynomial of the end of the range: up to this k


class Sums:
    """The rules for sums, for one `Normal`."""

    def __init__(self, normal: Normal) -> None:
        self.normal = normal

    def entry(self, access: Access, scope: Scope) -> Poly:
        """An entry of an array that is not replaced; of a symmetric matrix one of the two that are equal."""
        value = self.normal.facts.entry(access)
        return atom(access) if value == access else self.normal.of(value, scope)

    def total(self, poly: Poly, axes: Sequence[Axis], scope: Scope) -> Poly:
        """Σ over `axes` of a normal form, as a normal form."""
        if self.normal.patient and (found := self.parted(poly, axes, scope)):
            condition, *parts = found
            whole = added(self.total(*part, scope) for part in parts)
            first, second = (expr_of(part) for part, _ in parts)
            self.normal.splits.append((sum_(where(condition, first, second), axes), expr_of(whole), scope))
            return whole
        return added(self.one(dict(mono), number, list(axes), scope) for mono, number in poly.items())

    def parted(
        self, poly: Poly, axes: Sequence[Axis], scope: Scope
    ) -> tuple[Expr, tuple[Poly, list[Axis]], tuple[Poly, list[Axis]]] | None:
        """A condition on one of the letters, and the part of a sum where it holds and the one where it does not."""
        for axis in axes:
            letter, lo, hi = axis
            others = [other for other in axes if other is not axis]
            known = [*_axes(scope), *others]
            for base in dict.fromkeys(base for mono in poly for base, _ in mono if isinstance(base, Compare)):
                first, end = bounds(base, letter)
                seam = end if first is None else first
                if seam is None or seam in (lo, hi):
                    continue
                if nonnegative(seam - lo, known) and nonnegative(hi - seam, known):
                    left, right = ([*others, (letter, lo, seam)], [*others, (letter, seam, hi)])
                    below, above = (self.normal.of(expr_of(poly), scope | _ranges(part)) for part in (left, right))
                    return compare("<", letter, seam), (below, left), (above, right)
        return None

    def one(self, factors: Factors, number: Fraction, axes: list[Axis], scope: Scope) -> Poly:
        """Σ over `axes` of one product."""
        self.normal.spend(2)
        inner = scope | _ranges(axes)
        if not axes:
            return self.normal.settled(factors, number, scope)
        for step in (self.ranged, self.solved, self.flattened, self.cancelled, self.known):
            found = step(factors, axes, scope, inner)
            if found is not None:
                new, left = found
                return scaled(self.total(new, left, scope), number)
        summed = {axis[0] for axis in axes}
        outside = {base: power for base, power in factors.items() if summed.isdisjoint(letters(base))}
        inside = {base: power for base, power in factors.items() if base not in outside}
        parts = [self.part(*part, scope) for part in connected(inside, axes)]
        return self.normal.product([self.normal.settled(outside, number, scope), *parts], scope)

    # --- steps: each returns what is left to sum, and the letters left, or None where it does not apply

    def ranged(self, factors: Factors, axes: list[Axis], scope: Scope, inner: Scope) -> tuple[Poly, list[Axis]] | None:
        """Ranges start at 0, an empty sum is 0, single values are put in, a condition t < e is the end of t's range."""
        for axis in axes:
            letter, lo, hi = axis
            others = [other for other in axes if other is not axis]
            if (hi - lo).expand() == 0:
                return {}, others
            if (hi - lo).expand() == 1:
                new = _moved(others, {letter: lo})
                return self._replaced(factors, {letter: lo}, new, scope), new
            if lo != 0:
                shift = {letter: letter + lo}
                new = [*_moved(others, shift), (letter, S.Zero, (hi - lo).expand())]
                return self._replaced(factors, shift, new, scope), new
            for base in factors:
                cut = self._cut(base, axis, others, scope)
                if cut is not None:
                    rest = {other: power for other, power in factors.items() if other != base}
                    return self._replaced(rest, {}, [*others, cut], scope), [*others, cut]
        return None

    def _cut(self, base: Expr, axis: Axis, others: Sequence[Axis], scope: Scope) -> Axis | None:
        """The part of a range in which a condition holds, where it is known to be a part; None for other factors."""
        letter, lo, hi = axis
        if not isinstance(base, Compare) or letter not in letters(base):
            return None
        first, end = bounds(base, letter)
        if first is None and end is None:
            return None
        first, end = lo if first is None else first, hi if end is None else end
        known = [*_axes(scope), *others]
        inside = all(nonnegative(length, known) for length in (first - lo, end - first, hi - end))
        return (letter, first, end) if inside else None

    def _replaced(self, factors: Factors, mapping: dict[Index, Expr], axes: Sequence[Axis], scope: Scope) -> Poly:
        inner = scope | _ranges(axes)
        return self.normal.of(product_expr(factors).xreplace(mapping), inner)

    def solved(self, factors: Factors, axes: list[Axis], scope: Scope, inner: Scope) -> tuple[Poly, list[Axis]] | None:
        """Deltas of a summed letter are removed."""
        summed = {axis[0] for axis in axes}
        if not any(isinstance(b, Compare) and b.op == "==" and letters(b) & summed for b in factors):
            return None
        given = [product_expr({base: power}) for base, power in factors.items()]
        rest, left, solved = solve_deltas(given, axes, _axes(scope), guarded=not self.normal.patient)
        if not solved:
            return None
        return self.normal.of(Mul(*rest), scope | _ranges(left)), left

    def flattened(
        self, factors: Factors, axes: list[Axis], scope: Scope, inner: Scope
    ) -> tuple[Poly, list[Axis]] | None:
        """Σ_i a_i Σ_j b_ij is one sum."""
        summed = {axis[0] for axis in axes}
        for base, power in factors.items():
            if isinstance(base, Reduce) and base.op == "sum" and power >= 1 and not summed.isdisjoint(letters(base)):
                used = {*inner, *(letter for other in factors for letter in letters(other))}
                body, new = open_(base, used)
                inner = inner | {letter: (lo, hi) for letter, lo, hi in new}
                left = [*axes, *new]
                rest = merged(factors.items(), ((base, Fraction(-1)),))
                opened = self.normal.of(body, inner)
                return self.normal.product([{frozen(rest): Fraction(1)}, opened], inner), left
        return None

    def cancelled(
        self, factors: Factors, axes: list[Axis], scope: Scope, inner: Scope
    ) -> tuple[Poly, list[Axis]] | None:
        """A part of the sum that divides by a bracket in the factors: Σ_ij a_i e_ij / Σ_k e_ik = Σ_i a_i."""
        summed = {axis[0] for axis in axes}
        for base, power in factors.items():
            if power >= 0 or not isinstance(base, (Add, Mul, Pow, Reduce)) or summed.isdisjoint(letters(base)):
                continue
            whole = atom(base) if isinstance(base, Reduce) else self.normal.of(base, inner)
            top = head(whole)
            found = self.without(factors, axes, top, inner)
            if found is not None:
                rest, left = found
                if isinstance(base, Reduce):
                    new = self.normal.settled(merged(rest.items(), ((base, Fraction(1)),)), Fraction(1), inner)
                    return new, left
                return self.normal.quotient(rest, base, whole, top, Fraction(1), inner), left
        return None

    def without(self, factors: Factors, axes: list[Axis], pattern: Mono, scope: Scope) -> Part | None:
        """Factors and letters without those that multiply to `pattern`, if they are there."""
        if not any(isinstance(base, Reduce) for base, _ in pattern):
            return None  # `Normal.divided` has looked at these
        for base, power in pattern:
            if isinstance(base, Reduce) and base.op == "sum" and power.denominator == 1 and power > 0:
                for _ in range(int(power)):
                    found = self._without_sum(factors, axes, base, scope)
                    if found is None:
                        return None
                    factors, axes = found
            elif factors.get(base, Fraction(0)) >= power > 0:
                factors = merged(factors.items(), ((base, -power),))
            else:
                return None
        return factors, axes

    def _without_sum(self, factors: Factors, axes: list[Axis], wanted: Reduce, scope: Scope) -> Part | None:
        if wanted in factors and factors[wanted] >= 1:
            return merged(factors.items(), ((wanted, Fraction(-1)),)), axes
        free = [axis for axis in axes if axis[0] not in letters(wanted)]
        inside = {base: power for base, power in factors.items() if letters(base) & {axis[0] for axis in free}}
        for part, own in connected(inside, free):
            if len(own) == len(wanted.axes) and part and self.closed(part, own, scope) == (wanted, Fraction(1)):
                rest = {base: power for base, power in factors.items() if base not in part}
                return rest, [axis for axis in axes if axis not in own]
        return None

    def known(self, factors: Factors, axes: list[Axis], scope: Scope, inner: Scope) -> tuple[Poly, list[Axis]] | None:
        """Facts: Σ_j P_ij = 1, Σ_k A_ik A⁻¹_kj = δ_ij, Σ_k Q_ki Q_kj = δ_ij."""
        for axis in axes:
            letter = axis[0]
            readers = [base for base in factors if letter in letters(base)]
            powers = {factors[base] for base in readers}
            value = None
            if len(readers) == 1 and powers == {1}:
                value = self.normal.facts.summed(readers[0], axis)
            elif len(readers) == 1 and powers == {2}:
                value = self.normal.facts.contracted(readers[0], readers[0], axis)
            elif len(readers) == 2 and powers == {1}:
                value = self.normal.facts.contracted(readers[0], readers[1], axis)
            if value is not None:
                rest = {base: power for base, power in factors.items() if base not in readers}
                new = self.normal.product([{frozen(rest): Fraction(1)}, self.normal.of(value, inner)], inner)
                return new, [other for other in axes if other is not axis]
        return None

    # --- what is left

    def part(self, factors: Factors, axes: list[Axis], scope: Scope) -> Poly:
        """The sum of one connected part."""
        if not factors and len(axes) == 1:
            return self.normal.of(axes[0][2] - axes[0][1], scope)
        if len(axes) == 1 and set(factors) == {axes[0][0]}:
            power, end = factors[axes[0][0]], axes[0][2]
            if power in range(1, MAX_POWER + 1) and nonnegative(end, _axes(scope)):
                return self.normal.of(power_sum(int(power), end), scope)
        if len(axes) == 1 and (found := self.geometric(factors, axes[0], scope)) is not None:
            return found
        value, sign = self.closed(factors, axes, scope)
        return scaled(atom(value), sign)

    def geometric(self, factors: Factors, axis: Axis, scope: Scope) -> Poly | None:
        """Σ_t r^t = (1 − r^n)/(1 − r) for an r without t; None for any other sum."""
        letter, _, end = axis
        ratio = _ratio(factors, letter)
        if ratio is None or ratio.has(Compare) or not nonnegative(end, _axes(scope)):
            return None
        return self.normal.of((1 - ratio**end) / (1 - ratio), scope)

    def closed(self, factors: Factors, axes: list[Axis], scope: Scope) -> tuple[Expr, Fraction]:
        """A connected part as one sum with canonical letters, and a number before it."""
        self.normal.spend(5)
        flips = [base for base in factors if isinstance(base, Access) and self.normal.facts.is_symmetric(base.name)]
        flips = [base for base in flips if base.indices[-1] != base.indices[-2]][:MAX_FLIPS]
        best = min((sum_(product_expr(new), axes) for new in _flipped(factors, flips)), key=str)
        number = Fraction(1)
        if not flips and any(_oriented(base, axes) for base in factors):
            for _ in range(2):
                inner = scope | {letter: (lo, hi) for letter, lo, hi in best.axes}
                poly = self.normal.of(best.body, inner)
                if len(poly) != 1:
                    break
                ((mono, value),) = poly.items()
                again = sum_(product_expr(mono), best.axes)
                number *= value
                if again == best:
                    break
                best = again
        return best, number


def _ratio(factors: Factors, letter: Index) -> Expr | None:
    """The r of a product r^letter; None where the product is none such."""
    found = []
    for base, power in factors.items():
        root, exponent = (S.Exp1, base.args[0]) if isinstance(base, exp) else base.as_base_exp()
        slope = exponent / letter
        if letter in letters(root) or letter in letters(slope):
            return None
        found.append(Pow(root, rational(power) * slope))
    return Mul(*found) if found else None


def power_sum(power: int, end: Expr) -> Expr:
    """Σ t^power over t = 0 … end − 1, by Bernoulli polynomials.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> power_sum(1, Size("n"))
    n**2/2 - n/2
    """
    return ((bernoulli(power + 1, end) - bernoulli(power + 1, 0)) / (power + 1)).expand()


def _oriented(base: Expr, axes: Sequence[Axis]) -> bool:
    """Whether the sign of an atom was chosen by the names of letters that are renamed now."""
    signed = isinstance(base, (Compare, Add, Mul, Pow)) or (isinstance(base, Function) and not isinstance(base, exp))
    return signed and len(letters(base) & {axis[0] for axis in axes}) > 1


def _flipped(factors: Factors, flips: Sequence[Access]) -> list[Factors]:
    found = []
    for choice in product((False, True), repeat=len(flips)):
        mapping = {}
        for base, swap in zip(flips, choice, strict=True):
            i, j = base.indices[-2:]
            mapping[base] = Access(base.args[0], *base.indices[:-2], j, i) if swap else base
        found.append({mapping.get(base, base): power for base, power in factors.items()})
    return found


def _axes(scope: Mapping[Index, tuple[Expr, Expr]]) -> list[Axis]:
    return [(letter, lo, hi) for letter, (lo, hi) in scope.items()]


def _ranges(axes: Sequence[Axis]) -> dict[Index, tuple[Expr, Expr]]:
    return {letter: (lo, hi) for letter, lo, hi in axes}


def _moved(axes: Sequence[Axis], mapping: dict[Index, Expr]) -> list[Axis]:
    return [(letter, lo.xreplace(mapping), hi.xreplace(mapping)) for letter, lo, hi in axes]


def connected(factors: Factors, axes: Sequence[Axis]) -> list[Part]:
    """Factors and axes in groups that share no summed letter."""
    summed = {letter for letter, _, _ in axes}
    groups: list[tuple[set[Expr], Factors, list[Axis]]] = []
    items: list[tuple[set[Expr], Factors, list[Axis]]] = [
        ({axis[0], *((letters(axis[1]) | letters(axis[2])) & summed)}, {}, [axis]) for axis in axes
    ]
    items += [(set(letters(base) & summed), {base: power}, []) for base, power in factors.items()]
    for own, own_factors, own_axes in items:
        touching = [group for group in groups if group[0] & own]
        for group in touching:
            own, own_factors, own_axes = own | group[0], {**group[1], **own_factors}, [*group[2], *own_axes]
            groups.remove(group)
        groups.append((own, own_factors, own_axes))
    return [(group_factors, group_axes) for _, group_factors, group_axes in groups]

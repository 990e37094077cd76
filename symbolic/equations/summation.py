"""Sums over several letters, one letter at a time: Σ_kl A[i,k] B[k,l] C[l,j] costs n² per entry of the chain, not n³.

The factors of a sum are put at the first letter at which all that they read is known. What is left from a letter on is
remembered under the letters that it still reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sympy import Expr, Integer, Mul

from gradproof.symbolic.equations.expr import Axis, Compare, Index, Reduce, letters

if TYPE_CHECKING:
    from gradproof.symbolic.equations.evaluate import Point


@dataclass(frozen=True)
class Level:
    """One letter of a sum, the conditions and factors that are known with it, and what is read from here on."""

    axis: Axis
    conditions: tuple[Expr, ...]
    factors: tuple[Expr, ...]
    reads: tuple[Index, ...]


@lru_cache(maxsize=20_000)
def plan(expr: Reduce) -> tuple[tuple[Expr, ...], tuple[Level, ...]]:
    """The factors that read no letter of the sum, and the levels.

    A factor does not come before a condition on one of its letters: the condition may keep it inside its array.

    >>> from gradproof.symbolic.equations.expr import Access, Size, sum_
    >>> i, k, n, x = Index("i"), Index("k"), Size("n"), Access("x", Index("k"))
    >>> outside, levels = plan(sum_(Access("A", Index("j"), i) * Access("B", i, k) * x, [(i, 0, n), (k, 0, n)]))
    >>> [(level.axis[0], level.factors, level.reads) for level in levels]
    [(b2, (A[j, b2],), (j,)), (b1, (x[b1], B[b2, b1]), (b2,))]
    """
    places = {axis[0]: level for level, axis in enumerate(expr.axes)}
    factors = Mul.make_args(expr.body)
    levels = {factor: max((places[x] for x in letters(factor) if x in places), default=-1) for factor in factors}
    conditions = [factor for factor in factors if isinstance(factor, Compare)]
    for factor in factors:
        tied = [levels[c] for c in conditions if letters(c) & letters(factor)]
        levels[factor] = max([levels[factor], *tied])
    outside = tuple(factor for factor in factors if levels[factor] < 0)
    found: list[Level] = []
    needed: frozenset[Index] = frozenset()
    for level in range(len(expr.axes) - 1, -1, -1):
        axis = expr.axes[level]
        here = [factor for factor in factors if levels[factor] == level]
        needed = needed.union(*(letters(factor) for factor in here)) - {axis[0]} | letters(axis[1]) | letters(axis[2])
        tests = tuple(factor for factor in here if isinstance(factor, Compare))
        found.append(Level(axis, tests, tuple(f for f in here if f not in tests), tuple(sorted(needed, key=str))))
    return outside, tuple(reversed(found))


@dataclass(frozen=True)
class Plan:
    """How a sum is added up, and the sum itself; equal sums of one point have the same number."""

    expr: Reduce
    outside: tuple[Expr, ...]
    levels: tuple[Level, ...]
    number: int


def planned(point: Point, expr: Reduce) -> Plan:
    found = point.plans.get(id(expr))
    if found is None:
        number = point.numbers.setdefault(expr, len(point.numbers))
        found = point.plans[id(expr)] = Plan(expr, *plan(expr), number)
    return found


def sum_value(point: Point, expr: Reduce, given: dict[Index, int]) -> Any:
    """The value of a sum under given letters."""
    how = planned(point, expr)
    outside, levels = how.outside, how.levels
    zero, one = (point.field.number(Integer(number)) for number in (0, 1))
    inner = dict(given)

    def run(level: int) -> Any:
        if level == len(levels):
            return one
        here = levels[level]
        key = (how.number, level, *(inner[letter] for letter in here.reads))
        if key not in point.sums:
            point.sums[key] = total(here, level)
        return point.sums[key]

    def total(here: Level, level: int) -> Any:
        letter, lo, hi = here.axis
        terms = []
        for value in range(point.integer(lo, inner), point.integer(hi, inner)):
            inner[letter] = value
            if all(point.condition(test, inner) for test in here.conditions):
                term = product(here.factors)
                terms.append(point.field.multiply(term, run(level + 1)))
        return point.field.add(terms)

    def product(factors: tuple[Expr, ...]) -> Any:
        value = one
        for factor in factors:
            value = point.field.multiply(value, point.value(factor, inner))
        return value

    if not all(point.condition(test, inner) for test in outside if isinstance(test, Compare)):
        return zero
    known = product(tuple(factor for factor in outside if not isinstance(factor, Compare)))
    return point.field.multiply(known, run(0))

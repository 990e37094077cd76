"""Sums over several letters, one letter at a time: Σ_kl A[i,k] B[k,l] C[l,j] costs n² per entry of the chain, not n³.

The factors of a sum are put at the first letter at which all that they read is known. What is left from a letter on is
remembered under the letters that it still reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sympy import Add, Expr, Integer, Mul

from gradproof.symbolic.equations.expr import Axis, Compare, Index, Reduce, letters, rebuild

if TYPE_CHECKING:
    from gradproof.symbolic.equations.evaluate import Point


@dataclass(frozen=True)
class Level:
    """One letter of a sum, the conditions and factors that are known with it, and what is read from here on."""

    axis: Axis
    conditions: tuple[Expr, ...]
    factors: tuple[Expr, ...]
    reads: tuple[Index, ...]


MANY = 3  # letters that a bracket may read before its terms are summed one by one


@lru_cache(maxsize=20_000)
def spread(expr: Reduce) -> tuple[Reduce, ...]:
    """The sums of the terms of a bracket that reads many letters, each of which has an order of its own; or nothing."""
    summed = {axis[0] for axis in expr.axes}
    factors = Mul.make_args(expr.body)
    for bracket in factors:
        if isinstance(bracket, Add) and len(letters(bracket) & summed) >= MANY:
            rest = [factor for factor in factors if factor is not bracket]
            bodies = (Mul(*rest, term) for term in bracket.args)
            return tuple(rebuild(expr, [expr.args[0], body, *expr.args[2:]]) for body in bodies)
    return ()


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
    factors = Mul.make_args(expr.body)
    axes = _outermost_first(expr.axes, factors)
    places = {axis[0]: level for level, axis in enumerate(axes)}
    levels = {factor: max((places[x] for x in letters(factor) if x in places), default=-1) for factor in factors}
    conditions = [factor for factor in factors if isinstance(factor, Compare)]
    for factor in factors:
        tied = [levels[c] for c in conditions if letters(c) & letters(factor)]
        levels[factor] = max([levels[factor], *tied])
    outside = tuple(factor for factor in factors if levels[factor] < 0)
    found: list[Level] = []
    needed: frozenset[Index] = frozenset()
    for level in range(len(axes) - 1, -1, -1):
        axis = axes[level]
        here = [factor for factor in factors if levels[factor] == level]
        needed = needed.union(*(letters(factor) for factor in here)) - {axis[0]} | letters(axis[1]) | letters(axis[2])
        tests = tuple(factor for factor in here if isinstance(factor, Compare))
        found.append(Level(axis, tests, tuple(f for f in here if f not in tests), tuple(sorted(needed, key=str))))
    return outside, tuple(reversed(found))


def _outermost_first(axes: Sequence[Axis], factors: Sequence[Expr]) -> list[Axis]:
    """The letters in an order in which few are known at a time: innermost the one that stands beside the fewest others.

    A letter whose range reads another one stays inside it.
    """
    summed = {axis[0] for axis in axes}
    sets: list[frozenset[Index]] = [letters(factor) & summed for factor in factors]
    sets += [(letters(axis[1]) | letters(axis[2])) & summed | {axis[0]} for axis in axes]
    left, order = list(axes), []
    while left:
        mentioned = {letter for axis in left for letter in (letters(axis[1]) | letters(axis[2])) - {axis[0]}}
        beside = {axis: frozenset[Index]().union(*(own for own in sets if axis[0] in own)) for axis in left}
        # the last of equals, as the sum is written
        axis = min(reversed([a for a in left if a[0] not in mentioned] or left), key=lambda a: len(beside[a]))
        joined = beside[axis] - {axis[0]}
        sets = [own for own in sets if axis[0] not in own] + [joined]
        left.remove(axis)
        order.append(axis)
    return order[::-1]


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
    if parts := spread(expr):
        return point.field.add([sum_value(point, part, given) for part in parts])
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

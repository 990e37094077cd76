"""Two arrays that should be equal, and how they compare at points: exactly, or to many digits.

Points are drawn in several ways, since a formula may be right on one side of a kink only: small numbers, positive ones,
and numbers of very different sizes. Numbers are drawn as free fractions; declared properties are then imposed on them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import mpmath
from sympy import Expr, Integer, Rational, Symbol

from gradproof.symbolic.equations.evaluate import (
    PRIME,
    Beyond,
    HighPrecision,
    Modular,
    NotAlgebraic,
    Point,
    Undefined,
)
from gradproof.symbolic.equations.expr import Reduce, names
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import at_least_one, small_sizes
from gradproof.symbolic.judging.assumptions import PROPERTIES, Impose

Place = tuple[int, ...]
Entries = dict[Place, Any]
Sizes = Mapping[Symbol, int]
TOLERANCE = mpmath.mpf(10) ** -18
MAX_SIZES = 60  # combinations of sizes that are tried
MAX_PLACES = 60  # of a large array that are compared


@dataclass(frozen=True)
class Pair:
    """The array that is right and the array that is claimed, of one shape, in one system."""

    system: System
    right: str
    claim: str

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The given arrays that either side reads."""
        needed = self.system.needed((self.right, self.claim))
        read = set().union(*(names(equation.body) for equation in needed.equations)) | {self.right, self.claim}
        return tuple(name for name in needed.inputs if name in read)

    @cached_property
    def scales(self) -> list[Fraction]:
        """1 and the numbers that stand in the formulas: kinks lie near them."""
        bodies = [e.body for e in self.system.needed((self.right, self.claim)).equations]
        numbers = {abs(Fraction(int(n.p), int(n.q))) for body in bodies for n in body.atoms(Rational) if n != 0}
        return sorted({Fraction(1), *numbers})

    @cached_property
    def numerals(self) -> list[int]:
        """The whole numbers that stand in the formulas, as thresholds of indices and of sizes do."""
        equations = self.system.needed((self.right, self.claim)).equations
        return sorted({abs(int(n)) for e in equations for n in e.body.atoms(Integer)} - {0, 1})

    @cached_property
    def ordered(self) -> bool:
        """Whether either side compares numbers or takes a maximum: that has no meaning modulo a prime."""
        bodies = [e.body for e in self.system.needed((self.right, self.claim)).equations]
        return any(node.op == "max" for body in bodies for node in body.atoms(Reduce))


@dataclass(frozen=True)
class Draw:
    """One point: sizes, and free numbers by array and place; `imposed` are properties beyond the declared ones."""

    sizes: Sizes
    free: Mapping[str, Mapping[Place, Fraction]]
    imposed: Mapping[str, Impose] | None = None
    digits: int = 40

    def with_entries(self, name: str, entries: Mapping[Place, Fraction]) -> Draw:
        return replace(self, free={**self.free, name: {**self.free[name], **entries}})

    def moved(self, step: Fraction) -> Draw:
        """The point shifted a little, every number by a different amount."""
        rng = random.Random(7)

        def shift(entries: Mapping[Place, Fraction]) -> dict[Place, Fraction]:
            return {place: value + step * rng.randrange(300, 1000) / 1000 for place, value in entries.items()}

        return replace(self, free={name: shift(entries) for name, entries in self.free.items()})


def growing(system: System, limit: Sizes, smallest: int = 1) -> Iterator[Sizes]:
    """Sizes up to the given ones, smallest first, under which every axis has an entry."""
    shapes = at_least_one(system)
    combinations = product(*(range(smallest, value + 1) for value in limit.values()))
    for combination in sorted(combinations, key=lambda c: (sum(c), max(c, default=0)))[:MAX_SIZES]:
        sizes = dict(zip(limit, combination, strict=True))
        if all(int(shape.xreplace(sizes)) >= 1 for shape in shapes):
            yield sizes


class Precise(HighPrecision):
    def __init__(self, digits: int) -> None:
        self.digits = digits
        super().__init__(0)


def drawn(pair: Pair, sizes: Sizes, seed: int, kind: str = "small") -> Draw:
    """A random point; `kind` is small, positive, narrow (near 0), wide or wide positive."""
    rng = random.Random(repr((seed, kind)))
    free: dict[str, dict[Place, Fraction]] = {}
    for name in pair.inputs:
        array = pair.system.arrays[name]
        shape = [int(size.xreplace(dict(sizes))) for size in array.shape]
        places = product(*map(range, shape))
        if array.below is not None:
            top = int(array.below.xreplace(dict(sizes)))
            free[name] = {place: Fraction(rng.randrange(top)) for place in places}
        else:
            free[name] = {place: _number(rng, kind, pair.scales) for place in places}
    return Draw(sizes, free, digits=100 if "wide" in kind else 40)


def _number(rng: random.Random, kind: str, scales: Sequence[Fraction]) -> Fraction:
    value = Fraction(rng.randrange(200, 1500), 1000)
    if "far" in kind:  # evenly in the logarithm, from 1/1000 to 1000
        value = Fraction(round(10 ** rng.uniform(3, 9)), 10**6)
    if "wide" in kind:
        value *= rng.choice(scales) * rng.choice((Fraction(1, 10), 1, 3, 20))
    if "narrow" in kind:
        value /= rng.choice((30, 100, 1000))
    return value if "positive" in kind else value * rng.choice((1, -1))


def given(pair: Pair, draw: Draw) -> dict[str, Entries]:
    """The numbers of all inputs at a point, with what is declared or imposed on them."""
    mpmath.mp.dps = draw.digits
    found: dict[str, Entries] = {}
    for name, entries in draw.free.items():
        array = pair.system.arrays[name]
        if array.below is not None:
            found[name] = {place: int(value) for place, value in entries.items()}
            continue
        values: Entries = {place: mpmath.mpf(v.numerator) / v.denominator for place, v in entries.items()}
        rules = [PROPERTIES[word] for word in sorted(array.properties) if word in PROPERTIES]
        for rule in [*rules, *([draw.imposed[name]] if draw.imposed and name in draw.imposed else [])]:
            values = rule(values)
        found[name] = values
    return found


@dataclass(frozen=True)
class Sides:
    """Both sides at one point, place by place; None where a side has no value there."""

    right: Entries
    claim: Entries

    @cached_property
    def scale(self) -> Any:
        values = [abs(v) for v in (*self.right.values(), *self.claim.values()) if v is not None]
        return max([mpmath.mpf(1), *values])

    @property
    def defined(self) -> bool:
        return all(value is not None for value in self.right.values())

    def gaps(self, tolerance: Any = TOLERANCE) -> list[Place]:
        """The places where the right side has a value and the claim has none or another one."""
        return [place for place in self.right if self.apart(place, tolerance)]

    @cached_property
    def widest(self) -> tuple[Place, Any]:
        """The place where the two sides differ most in proportion to their size, and by how much they differ there."""
        both = [(place, self.right[place], self.claim[place]) for place in self.right]
        gaps = [(place, abs(a - b), abs(a) + abs(b)) for place, a, b in both if a is not None and b is not None]
        place, apart, _ = max((gap for gap in gaps if gap[1]), key=lambda gap: gap[1] / gap[2], default=((), 0, 0))
        return place, apart

    def apart(self, place: Place, tolerance: Any = TOLERANCE) -> bool:
        right, claim = self.right[place], self.claim[place]
        if right is None:
            return False
        return claim is None or abs(right - claim) > tolerance * self.scale


def point_at(pair: Pair, draw: Draw) -> Point:
    return Point(pair.system, draw.sizes, Precise(draw.digits), given=given(pair, draw))


def places(pair: Pair, sizes: Sizes, limit: int = MAX_PLACES) -> list[Place]:
    """The places that are compared: all, or of a large array those at its ends and next to the numbers that occur."""
    array = pair.system.arrays[pair.right]
    shape = [int(size.xreplace(dict(sizes))) for size in array.shape]
    if prod(shape) <= limit:
        return list(product(*map(range, shape)))
    rng = random.Random(repr((shape, limit)))
    near = {number + step for number in pair.numerals for step in (-1, 0, 1)}
    along = [
        sorted({*(k for k in (0, 1, *near, size - 2, size - 1) if 0 <= k < size), rng.randrange(size)})
        for size in shape
    ]
    found = {tuple(rng.choice(values) for values in along) for _ in range(4 * limit)}
    return sorted(found, key=lambda place: rng.random())[:limit]


def entries(pair: Pair, draw: Draw, limit: int = MAX_PLACES) -> Iterator[tuple[Place, Any, Any]]:
    """Place, right value and claimed value, entry by entry; None for a value that does not exist."""
    point = point_at(pair, draw)

    def entry(name: str, place: Place) -> Any:
        try:
            value = point.entry(name, place)
        except Beyond:
            raise
        except (Undefined, OverflowError, ZeroDivisionError):
            point.pending.clear()
            return None
        return value if mpmath.isfinite(value) else None

    for place in places(pair, draw.sizes, limit):
        yield place, entry(pair.right, place), entry(pair.claim, place)


def sides(pair: Pair, draw: Draw, limit: int = MAX_PLACES) -> Sides:
    """Both sides at a point."""
    found = list(entries(pair, draw, limit))
    return Sides({place: right for place, right, _ in found}, {place: claim for place, _, claim in found})


@dataclass(frozen=True)
class Comparison:
    """What points say: how many were compared, the first at which the two sides differ, sizes that were too large."""

    compared: int
    differs: Draw | None
    reason: str = ""
    skipped: tuple[Sizes, ...] = ()

    def and_then(self, more: Comparison) -> Comparison:
        """Both comparisons as one."""
        skipped = (*self.skipped, *more.skipped)
        return Comparison(self.compared + more.compared, more.differs, self.reason or more.reason, skipped)


KINDS = (
    *("small", "positive", "wide", "narrow", "far", "wide positive", "wide", "small"),
    *("far positive", "wide", "positive", "far"),
)


def compared(pair: Pair, seed: int = 0, kinds: Iterable[str] = KINDS) -> Comparison:
    """Compare the two sides at random points of random small sizes, to 40 digits and more."""
    points = (drawn(pair, small_sizes(pair.system, seed + k), seed + k, kind) for k, kind in enumerate(kinds))
    return compared_at(pair, points)


def compared_at(pair: Pair, points: Iterable[Draw]) -> Comparison:
    """Compare the two sides at points.

    A difference counts if it stays when it is computed with more digits, however small it is.
    """
    count, reason, skipped = 0, "", []
    for draw in points:
        try:
            found = sides(pair, draw)
        except Undefined as error:
            reason = str(error)
            continue
        except GradproofError:  # too large
            skipped.append(draw.sizes)
            continue
        if all(value is None for value in found.right.values()):
            reason = "the derivative has no value at the points that were tried"
            continue
        if (finer := _seen(pair, draw, found)) is not None:
            return Comparison(count, finer)
        count += 1
    return Comparison(count, None, reason, tuple(skipped))


MAX_DIGITS = 3000


def _seen(pair: Pair, draw: Draw, found: Sides) -> Draw | None:
    """The point, with as many digits as it takes to see that the two sides differ there; None if they do not.

    A difference that comes from rounding shrinks with more digits, a real one stays.
    """
    if found.gaps():
        finer = replace(draw, digits=3 * draw.digits)
        return draw if sides(pair, finer).gaps() else None
    place, apart = found.widest
    if apart == 0:
        return None
    digits = draw.digits + 20 + max(0, int(-mpmath.log10(apart)))
    if digits > MAX_DIGITS:
        return None
    finer = replace(draw, digits=digits)
    beyond = sides(pair, finer)
    if beyond.right[place] is None or beyond.claim[place] is None:
        return None
    return finer if abs(beyond.right[place] - beyond.claim[place]) > apart / 2 else None


# -------------------------------------------------------------------------------------------------- modulo a prime


class Exact(Modular):
    """Arithmetic modulo a prime that refuses to compare numbers, which has no meaning there."""

    def compare(self, op: str, left: int, right: int) -> bool:
        raise NotAlgebraic("a comparison")

    def function(self, name: str, arguments: list[int]) -> int:
        if name == "maximum":
            raise NotAlgebraic("a maximum")
        return super().function(name, arguments)


class Degrees:
    """Instead of numbers, how large the degrees of a value's numerator and denominator can be in the random numbers."""

    def number(self, value: Rational) -> tuple[int, int]:
        return 0, 0

    def constant(self, value: Expr) -> tuple[int, int]:
        return 1, 0

    def random(self, rng: random.Random) -> tuple[int, int]:
        return 1, 0

    def add(self, terms: list[tuple[int, int]]) -> tuple[int, int]:
        below = sum(down for _, down in terms)
        return max((up + below - down for up, down in terms), default=0), below

    def multiply(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]

    def power(self, base: tuple[int, int], exponent: Any) -> tuple[int, int]:
        if not isinstance(exponent, Rational) or exponent.q != 1:
            raise NotAlgebraic("a root")
        times = abs(int(exponent))
        return (base[0] * times, base[1] * times) if exponent > 0 else (base[1] * times, base[0] * times)

    def function(self, name: str, arguments: list[tuple[int, int]]) -> tuple[int, int]:
        return 1, 0

    def eliminated(self, rows: list[list[tuple[int, int]]]) -> tuple[list[list[tuple[int, int]]], tuple[int, int]]:
        """Cofactors are sums of products of the entries of all rows but one, over a common denominator."""
        every = sum(entry[1] for row in rows for entry in row)
        bound = sum(max(entry[0] for entry in row) for row in rows) + every
        return [[(bound + every, bound + every)] * len(rows) for _ in rows], (bound, every)

    def compare(self, op: str, left: object, right: object) -> bool:
        raise NotAlgebraic("a comparison")


def equal_modulo_prime(pair: Pair, points: int = 3, seed: int = 0) -> tuple[int, int] | None:
    """(points, k): the sides are equal at so many points modulo 2⁶¹ − 1, which has chance < 10^−k if they are not.

    None where they differ, or where this arithmetic does not apply. By the lemma of Schwartz and Zippel a quotient of
    polynomials of degree d that is not 0 vanishes at a random point with chance at most d/p.
    """
    words = set().union(*(pair.system.arrays[name].properties for name in pair.inputs))
    if pair.ordered or words & {"orthogonal"}:
        return None
    digits = 0.0
    for k in range(points):
        sizes = small_sizes(pair.system, seed + k)
        try:
            point = Point(pair.system, sizes, Exact(seed + k), seed + k)
            measure = Point(pair.system, sizes, Degrees(), seed + k)  # type: ignore[arg-type]
            worst = 1
            for place in point.indices(pair.right):
                if point.entry(pair.right, place) != point.entry(pair.claim, place):
                    return None
                (a, b), (c, d) = measure.entry(pair.right, place), measure.entry(pair.claim, place)
                worst = max(worst, a + d, b + c)
        except (NotAlgebraic, Undefined, TypeError, GradproofError):
            return None
        digits += float(mpmath.log10(mpmath.mpf(PRIME) / worst))
    return (points, int(digits)) if digits >= 12 else None

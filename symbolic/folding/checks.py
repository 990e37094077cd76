"""How every step of a derivation is checked when it is made.

A rewriting is checked by evaluating both sides at random points: exactly in a prime field where it is algebraic, to 40
digits otherwise. An adjoint is checked against the forward equations alone: along a random direction, the change of the
output must be the one that the adjoint predicts. A step that fails raises `StepError`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import mpmath
from sympy import Expr, Symbol

from gradproof.symbolic.equations.evaluate import (
    PRIME,
    HighPrecision,
    Letters,
    Modular,
    NotAlgebraic,
    Point,
    Scaled,
    Singular,
    Undefined,
    Value,
)
from gradproof.symbolic.equations.expr import Access, Compare, Reduce, accesses, letters
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import Defect, GradproofError

TOLERANCE = mpmath.mpf(10) ** -18
TRIES = 16  # random points, the second half of them positive: for log, sqrt
DEEP = 8  # so many letters inside one another are tried at small sizes alone: a product over the entries of a kron
LAST = 80  # further ones of other sizes, for log(x − 5)


def numbers(seed: int, attempt: int) -> HighPrecision:
    """The real numbers of an attempt."""
    return HighPrecision(seed, attempt >= TRIES // 2) if attempt < TRIES else Scaled(seed)


@dataclass(frozen=True)
class Difference:
    """An entry that has two values, or one value and none."""

    name: str
    index: tuple[int, ...]
    left: Value
    right: Value | Undefined


class StepError(Defect):
    """A step of a derivation that does not hold.

    `difference` says where two values differ, if that is what was found.
    """

    def __init__(self, message: str, difference: Difference | None = None) -> None:
        super().__init__(message, difference)  # both, so that the error can be pickled
        self.message, self.difference = message, difference

    def __str__(self) -> str:
        return self.message


class NoPoint(GradproofError):
    """An expression without a value wherever it was looked at."""


def small_sizes(system: System, seed: int = 0) -> dict[Symbol, int]:
    """Small sizes under which every axis of every array has at least one entry and, where possible, every sum too."""
    rng = random.Random(seed)
    symbols = system.sizes
    shapes = at_least_one(system)
    both = [*shapes, *_ranges(system)]
    least = {s: max(1 - (shape - s) for shape in both if (shape - s).is_Integer) for s in symbols if s in shapes}
    highest = max((array.rank for array in system.arrays.values()), default=0)
    deep = highest > 3 or any(_depth(e.body) + len(e.axes) >= DEEP for e in system.equations)
    for attempt in range(400):
        bottom, top = 2 if attempt < 100 else 1, (2 if deep else 3) if attempt < 40 else 6
        start = rng.randrange(2)
        sizes = {
            symbol: 2 + (start + k) % (top - 1) if attempt == 0 else rng.randint(bottom, top)
            for k, symbol in enumerate(symbols)
        }
        for symbol, size in least.items():  # x[6] needs seven entries
            if sizes[symbol] < size:
                sizes[symbol] += int(size) - bottom
        if all(int(shape.xreplace(sizes)) >= 1 for shape in (both if attempt < 200 else shapes)):
            return sizes
    raise GradproofError("no small sizes fit the declared shapes; is a size such as n-m+1 ever positive?")


@lru_cache(maxsize=10_000)
def _depth(expr: Expr) -> int:
    """How many letters run inside one another."""
    inner = max(map(_depth, expr.args), default=0)
    return inner + (len(expr.axes) if isinstance(expr, Reduce) else 0)


def at_least_one(system: System) -> list[Expr]:
    """What must be at least 1 for every axis to have an entry, and to reach to the fixed indices that are read."""
    return [*(size for array in system.arrays.values() for size in array.shape), *_fixed_places(system)]


def _fixed_places(system: System) -> Iterator[Expr]:
    """What must be at least 1 so that axes of unknown size reach to the fixed indices that are read, as in A[1, 1]."""
    for access in {access for equation in system.equations for access in accesses(equation.body)}:
        array = system.arrays[access.name]
        for axis, index in enumerate(access.indices):
            if array.shape[axis].free_symbols and not letters(index) and not index.atoms(Access):
                place = index - array.first(axis)
                yield from (place + 1, array.shape[axis] - place)


def _ranges(system: System) -> set[Expr]:
    """How many values the letters of sums take: v[t] v[t+9] needs ten entries to be seen at all."""
    sums = {part for equation in system.equations for part in equation.body.atoms(Reduce)}
    return {hi - lo for part in sums for _, lo, hi in part.axes if not letters(hi - lo) and (hi - lo).free_symbols}


def said(sizes: Mapping[Symbol, int]) -> str:
    return ", ".join(f"{symbol}={value}" for symbol, value in sizes.items()) or "no sizes"


def same_values(old: System, new: System, names: Iterable[str], seed: int = 0) -> str:
    """How it was established that two systems give the same values to the named arrays.

    Raises StepError where they do not.
    """
    names = list(names)
    found: Difference | None = None
    for field in (Modular, HighPrecision):
        for attempt in range(TRIES if field is Modular else LAST):
            sizes = small_sizes(old, seed + attempt)
            try:
                kind = Modular(seed + attempt) if field is Modular else numbers(seed + attempt, attempt)
                found = _difference(old, new, names, sizes, kind, seed + attempt)
            except Undefined:
                continue
            except NotAlgebraic:
                break
            if found is None:
                how = (
                    f"equal modulo {PRIME} at random points"
                    if field is Modular
                    else "equal to 40 digits at random points"
                )
                return f"{how} ({said(sizes)})"
            break
    if found is None:
        raise NoPoint(f"no random point could be evaluated for {', '.join(names)}")
    raise StepError(f"the two forms of {found.name} differ at {found.index}: {found.left} against {found.right}", found)


def _difference(
    old: System, new: System, names: list[str], sizes: Mapping[Symbol, int], field: Modular | HighPrecision, seed: int
) -> Difference | None:
    """The first entry at which two systems differ."""
    first, second = Point(old, sizes, field, seed), Point(new, sizes, field, seed)
    for name in names:
        for index in first.indices(name):
            a = first.entry(name, index)
            try:
                b = second.entry(name, index)
            except Undefined as error:  # where the old form has a value, the new one must have it too
                return Difference(name, index, a, error)
            if a != b and not (isinstance(a, mpmath.mpf) and close(a, b)):
                return Difference(name, index, a, b)
    return None


def close(a: Value, b: Value, tolerance: mpmath.mpf = TOLERANCE) -> bool:
    """Whether two high-precision numbers agree relative to the larger of them and 1."""
    return bool(abs(a - b) <= tolerance * max(1, abs(a), abs(b)))


Direction = Callable[[str, tuple[int, ...]], Value]


class Moved(Point):
    """A point at which all entries of some arrays are shifted along a direction, whatever defines them."""

    def __init__(self, base: Point, step: mpmath.mpf, moved: Iterable[str], direction: Direction) -> None:
        super().__init__(base.system, base.sizes, base.field, base.seed, base.given)
        self.base, self.step, self.moved, self.direction = base, step, frozenset(moved), direction
        self.affected = self.moved | base.system.readers_of(self.moved)

    def entry(self, name: str, index: tuple[int, ...]) -> Value:
        if name not in self.affected:
            return self.base.entry(name, index)
        key = (name, index)
        if key not in self.entries:
            value = super().entry(name, index)
            if name in self.moved:
                value = value + self.step * self.direction(name, index)
            self.entries[key] = value
        return self.entries[key]

    def condition(self, expr: Expr, letters: Letters) -> bool:
        """As at the base: a derivative takes conditions as constants, also x = m with m = max(x) when m alone moves."""
        return self.base.condition(expr, letters) if isinstance(expr, Compare) else super().condition(expr, letters)


def _random_direction(seed: int) -> Direction:
    def direction(name: str, index: tuple[int, ...]) -> mpmath.mpf:
        return mpmath.mpf(random.Random(repr((seed, "direction", name, index))).randrange(200, 1000)) / 1000

    return direction


STEP = mpmath.mpf(10) ** -12
AGREES = "agrees with differences of the forward to 14 digits"


def _rate(ahead: Value, behind: Value) -> Value:
    """The central difference; what stays at −∞, as a masked score does, does not change."""
    return mpmath.mpf(0) if ahead == behind else (ahead - behind) / (2 * STEP)


def _both_sides(base: Point, moved: Iterable[str], direction: Direction) -> tuple[Moved, Moved]:
    return Moved(base, STEP, moved, direction), Moved(base, -STEP, moved, direction)


class AdjointCheck:
    """Checks Σ X̄ · dX = d⟨cotangent, output⟩ for one array after the other, at the same random points."""

    def __init__(self, system: System, output: str, cotangent: str | None, seed: int = 0) -> None:
        self.system, self.output, self.cotangent, self.seed = system, output, cotangent, seed
        self.points: dict[int, Point] = {}

    def point(self, attempt: int) -> Point:
        if attempt not in self.points:
            sizes = small_sizes(self.system, self.seed + attempt)
            self.points[attempt] = Point(self.system, sizes, numbers(self.seed, attempt), self.seed + attempt)
        return self.points[attempt]

    def holds(self, name: str) -> str:
        """How the adjoint of one array was checked: by central differences to 40 digits along a random direction.

        Raises StepError where the two sides differ.
        """
        bar, singular = self.system.adjoint_of(name), None
        nowhere, missing = "", 0
        for attempt in range(LAST):
            base, direction = self.point(attempt), _random_direction(self.seed + attempt)
            try:
                sides = _both_sides(base, [name], direction)
                points = (*sides, base)
                ahead, behind, _ = (_contracted(point, self.output, self.cotangent) for point in points)
            except Singular as error:
                nowhere = f"{error} wherever it was looked at: it has no inverse"
                if attempt < TRIES:
                    continue
                break
            except Undefined as error:
                nowhere = f"no random point could be evaluated: {error}"
                continue
            try:
                predicted = sum(base.entry(bar, i) * direction(name, i) for i in base.indices(name))
            except Singular as error:  # det has a value at a singular matrix; its derivative d A⁻ᵀ is for the others
                if singular is not None and attempt >= TRIES // 4:
                    break
                singular = error
                continue
            except Undefined as error:
                missing += 1  # a row of a softmax that is masked as a whole: the forward is 0 by convention
                if missing > TRIES // 4:
                    message = f"the adjoint of {name} has no value where the forward has one: {error}"
                    raise StepError(message) from None
                continue
            measured = _rate(ahead, behind)
            if close(measured, predicted, mpmath.mpf(10) ** -14):
                return f"{AGREES} ({said(base.sizes)})"
            message = f"the adjoint of {name} predicts {predicted}, differences of the forward give {measured}"
            raise StepError(message, Difference(name, (), measured, predicted))
        if singular is not None:
            message = f"{singular} wherever it was looked at: the derivative of its determinant needs an inverse"
            raise GradproofError(message)
        raise NoPoint(nowhere)


def _contracted(point: Point, output: str, cotangent: str | None) -> Value:
    if cotangent is None:
        return point.entry(output, ())
    return sum(point.entry(cotangent, index) * point.entry(output, index) for index in point.indices(output))


def _given_direction(base: Point, directions: Mapping[str, str], name: str, index: tuple[int, ...]) -> Value:
    return base.entry(directions[name], index)


def tangents_hold(
    system: System,
    directions: Mapping[str, str],
    predicted: Mapping[str, Callable[[Point, tuple[int, ...]], Value]],
    seed: int = 0,
) -> str:
    """Check the predicted changes of arrays when the variables move along the arrays that `directions` names.

    Returns how it was checked; raises StepError where a prediction differs from central differences to 40 digits.
    """
    nowhere = ""
    for attempt in range(LAST):
        sizes = small_sizes(system, seed + attempt)
        base = Point(system, sizes, numbers(seed, attempt), seed + attempt)
        try:
            ahead, behind = _both_sides(base, directions, partial(_given_direction, base, directions))
            for name, prediction in predicted.items():
                for index in base.indices(name):
                    measured = _rate(ahead.entry(name, index), behind.entry(name, index))
                    change = prediction(base, index)
                    if not close(measured, change, mpmath.mpf(10) ** -14):
                        message = f"the tangent of {name} at {index} differs from differences of the forward"
                        raise StepError(message, Difference(name, index, measured, change))
        except Undefined as error:
            nowhere = str(error)
            continue
        return f"{AGREES} ({said(sizes)})"
    raise NoPoint(f"no random point could be evaluated: {nowhere}")

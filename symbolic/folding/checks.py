"""How every step of a derivation is checked when it is made.

A rewriting is checked by evaluating both sides at random points: exactly in a prime field where it is algebraic, to 40
digits otherwise. Derivatives are checked in `differences.py`. A step that fails raises `StepError`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import mpmath
from sympy import Expr, Symbol

from gradproof.symbolic.equations.evaluate import (
    PRIME,
    HighPrecision,
    Modular,
    NotAlgebraic,
    Point,
    Scaled,
    Undefined,
    Value,
)
from gradproof.symbolic.equations.expr import Access, Reduce, accesses, letters
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import Defect, GradproofError
from gradproof.symbolic.phrases import phrase

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
    return [*(size for array in system.arrays.values() for size in array.shape), *fixed_places(system)]


def fixed_places(system: System) -> Iterator[Expr]:
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
                if field is Modular:
                    return phrase("equal modulo {} at random points ({})", PRIME, said(sizes))
                return phrase("equal to 40 digits at random points ({})", said(sizes))
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

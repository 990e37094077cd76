"""What may be assumed of an array: each assumption with a way to make random numbers obey it.

A claim that is wrong in general is tried under each of them: "right if the rows of T sum to 1".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath

from gradproof.symbolic.equations.system import Array

Place = tuple[int, ...]
Entries = dict[Place, Any]
Impose = Callable[[Entries], Entries]


def _lines(entries: Mapping[Place, Any], axis: int | None) -> list[list[Place]]:
    """The places along one axis, line by line; all of them for None."""
    if axis is None:
        return [list(entries)]
    groups: dict[Place, list[Place]] = {}
    for place in entries:
        k = axis % len(place)
        groups.setdefault((*place[:k], *place[k + 1 :]), []).append(place)
    return list(groups.values())


def _by_line(axis: int | None, change: Callable[[list[Any]], list[Any]]) -> Impose:
    def impose(entries: Entries) -> Entries:
        found: Entries = {}
        for places in _lines(entries, axis):
            found.update(zip(places, change([entries[place] for place in places]), strict=True))
        return found

    return impose


def _each(change: Callable[[Any], Any]) -> Impose:
    return lambda entries: {place: change(value) for place, value in entries.items()}


def sum_to_one(values: list[Any]) -> list[Any]:
    shift = (1 - mpmath.fsum(values)) / len(values)
    return [value + shift for value in values]


def sum_to_zero(values: list[Any]) -> list[Any]:
    mean = mpmath.fsum(values) / len(values)
    return [value - mean for value in values]


def unit_norm(values: list[Any]) -> list[Any]:
    norm = mpmath.sqrt(mpmath.fsum(value**2 for value in values))
    return [value / norm for value in values] if norm else [mpmath.mpf(k == 0) for k in range(len(values))]


def shares(values: list[Any]) -> list[Any]:
    """Nonnegative numbers that sum to 1."""
    squares = [value**2 for value in values]
    total = mpmath.fsum(squares)
    return [square / total for square in squares] if total else [mpmath.mpf(1) / len(values)] * len(values)


def symmetric(entries: Entries) -> Entries:
    return {place: entries[(*place[:-2], *sorted(place[-2:]))] for place in entries}


def diagonal(entries: Entries) -> Entries:
    return {place: value if place[-1] == place[-2] else mpmath.mpf(0) for place, value in entries.items()}


def psd(entries: Entries) -> Entries:
    """B Bᵀ + I."""
    size = 1 + max(place[-1] for place in entries)

    def entry(place: Place) -> Any:
        *batch, i, j = place
        return mpmath.fsum(entries[*batch, i, k] * entries[*batch, j, k] for k in range(size)) + (i == j)

    return {place: entry(place) for place in entries}


def orthogonal(entries: Entries) -> Entries:
    """Gram and Schmidt, row by row; a row that depends on the others becomes a unit vector that does not."""
    size = 1 + max(place[-1] for place in entries)
    rows: list[list[Any]] = []
    for i in range(size):
        candidates = [[entries[i, k] for k in range(size)]]
        candidates += [[mpmath.mpf(k == (i + shift) % size) for k in range(size)] for shift in range(size)]
        for row in candidates:
            for other in rows:
                along = mpmath.fsum(a * b for a, b in zip(row, other, strict=True))
                row = [a - along * b for a, b in zip(row, other, strict=True)]
            if mpmath.fsum(a * a for a in row) > mpmath.mpf(10) ** -6:
                rows.append(unit_norm(row))
                break
    return {(i, k): rows[i][k] for i, k in entries}


# Declared properties, as `X:n,n:symmetric` has them.
PROPERTIES: dict[str, Impose] = {
    "symmetric": symmetric,
    "psd": psd,
    "diagonal": diagonal,
    "orthogonal": orthogonal,
    "simplex": _by_line(-1, shares),
}


@dataclass(frozen=True)
class Assumption:
    """`text` says it of an array {}; `fits` says of which arrays it can be said."""

    text: str
    fits: Callable[[Array], bool]
    impose: Impose
    fixes: bool = False  # nothing is left to vary


def _square(array: Array) -> bool:
    return array.rank == 2 and array.shape[0] == array.shape[1]


def _rank(*ranks: int) -> Callable[[Array], bool]:
    return lambda array: array.rank in ranks


SYMMETRIC = Assumption("{} is symmetric", _square, symmetric)
ASSUMPTIONS: tuple[Assumption, ...] = (
    SYMMETRIC,
    Assumption("the entries of {} sum to 1", _rank(1), _by_line(0, sum_to_one)),
    Assumption("the rows of {} sum to 1", _rank(2, 3, 4), _by_line(-1, sum_to_one)),
    Assumption("the columns of {} sum to 1", _rank(2), _by_line(0, sum_to_one)),
    Assumption("the entries of {} sum to 1", _rank(2), _by_line(None, sum_to_one)),
    Assumption("the entries of {} sum to 0", _rank(1), _by_line(0, sum_to_zero)),
    Assumption("the rows of {} sum to 0", _rank(2, 3, 4), _by_line(-1, sum_to_zero)),
    Assumption("the columns of {} sum to 0", _rank(2), _by_line(0, sum_to_zero)),
    Assumption("the entries of {} sum to 0", _rank(2), _by_line(None, sum_to_zero)),
    Assumption("{} has norm 1", _rank(1), _by_line(0, unit_norm)),
    Assumption("the rows of {} have norm 1", _rank(2), _by_line(-1, unit_norm)),
    Assumption("{} has (Frobenius) norm 1", _rank(2), _by_line(None, unit_norm)),
    Assumption("{} is orthogonal", _square, orthogonal),
    Assumption("{} is diagonal", _square, diagonal),
    Assumption("the entries of {} are positive", _rank(1, 2, 3, 4), _each(abs)),
    Assumption("{} is positive", _rank(0), _each(abs)),
    Assumption("the entries of {} are 0 or 1", _rank(1, 2, 3, 4), _each(lambda value: mpmath.mpf(value > 0))),
    Assumption("all entries of {} are 1", _rank(1, 2, 3, 4), _each(lambda value: mpmath.mpf(1)), True),
    Assumption("{} is 1", _rank(0), _each(lambda value: mpmath.mpf(1)), True),
    Assumption("{} is 0", _rank(0), _each(lambda value: mpmath.mpf(0)), True),
    Assumption("all entries of {} are 0", _rank(1, 2, 3, 4), _each(lambda value: mpmath.mpf(0)), True),
)

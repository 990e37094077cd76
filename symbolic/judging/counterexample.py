"""The smallest counterexample: smallest sizes first, then 0, 1, −1, 2 for its numbers while the claim stays wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import mpmath

from gradproof.symbolic.equations.evaluate import Undefined
from gradproof.symbolic.judging.sampling import Draw, Pair, Place, Sides, Sizes, drawn, given, growing, sides
from gradproof.symbolic.phrases import Phrase, phrase

LADDER = tuple(map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "3")))
VISIBLE = mpmath.mpf(10) ** -6
MAX_EVALUATIONS = 600
KINDS = ("small", "positive", "narrow", *["wide", "wide positive"] * 3)  # points that are tried at each size
STEP = Fraction(1, 10**18)


@dataclass(frozen=True)
class Counterexample:
    """Sizes, inputs, and the place where the claimed value is not the right one (None: it has no value there)."""

    sizes: Mapping[str, int]
    inputs: Mapping[str, Any]
    name: str
    place: Place
    claimed: float | None
    right: float
    claimed_text: str
    right_text: str
    who: str = "your formula"

    @property
    def said(self) -> Phrase:
        """All of it in one sentence."""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        inputs = ", ".join(f"{name} = {_listed(value)}" for name, value in self.inputs.items())
        at = "; ".join(part for part in (sizes, inputs) if part)
        name = phrase("{} at {}", self.name, list(self.place)) if self.place else self.name
        result = phrase("{} is {}, {} gives {}", name, self.right_text, self.who, self.claimed_text)
        return phrase("for {}: {}", at, result) if at else result

    def __str__(self) -> str:
        return str(self.said)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sizes": dict(self.sizes),
            "inputs": dict(self.inputs),
            "place": list(self.place),
            "claimed": _written(self.claimed, self.claimed_text),
            "right": _written(self.right, self.right_text),
        }


def _written(value: float | None, shown: str) -> float | str | None:
    """A value for JSON, which has no number beyond those of a float."""
    return value if value is None or isfinite(value) else shown


def smallest(pair: Pair, start: Draw, name: str) -> Counterexample | None:
    """A small counterexample, given one point at which the two sides differ; `name` is what the result is called."""
    for valued in (True, False):  # rather where both sides have a value
        search = Search(pair, valued)
        for sizes in growing(pair.system, start.sizes):
            first = search.first(sizes)
            if first is not None:
                return shown(pair, search.shrunk(first), name)
        if search.fails(start):
            return shown(pair, search.shrunk(start), name)
    return shown(pair, start, name)


class Search:
    """Looks for simple points at which a pair differs; the number of evaluations is bounded.

    With `valued` the claim must have a value there.
    """

    def __init__(self, pair: Pair, valued: bool) -> None:
        self.pair, self.valued, self.left = pair, valued, MAX_EVALUATIONS
        beyond = [scale + 1 for scale in pair.scales if scale.denominator == 1 and scale > 2]
        self.ladder = (*LADDER, *beyond, *(-number for number in beyond))

    def first(self, sizes: Sizes) -> Draw | None:
        """A random point of the given sizes at which the sides differ visibly."""
        for seed, kind in enumerate(KINDS):
            draw = drawn(self.pair, sizes, seed, kind)
            if self.fails(draw):
                return draw
        return None

    def fails(self, draw: Draw) -> bool:
        """Whether the sides differ visibly at a point that is no kink: close by, both have almost the same values."""
        self.left -= 1
        if self.left < 0:
            return False
        here = self._sides(draw)
        if here is None or not here.defined or not here.gaps(VISIBLE):
            return False
        if self.valued and None in here.claim.values():
            return False
        for step in (STEP, -STEP):
            beside = self._sides(draw.moved(step))
            if beside is None or not _close(here, beside):
                return False
        return True

    def _sides(self, draw: Draw) -> Sides | None:
        try:
            return sides(self.pair, draw)
        except Undefined:
            return None

    def shrunk(self, draw: Draw) -> Draw:
        """The point with numbers as simple as they can be while the sides still differ."""
        if not self.fails(draw):
            return draw
        for name in self.pair.inputs:
            places = list(draw.free[name])
            for value in LADDER[:2]:
                whole = draw.with_entries(name, dict.fromkeys(places, value))
                if self.fails(whole):
                    draw = whole
                    break
            else:
                draw = self._simpler(draw, name, places)
        return draw

    def _simpler(self, draw: Draw, name: str, places: list[Place]) -> Draw:
        for place in places:
            value = draw.free[name][place]
            for simple in (*self.ladder, Fraction(round(value)), Fraction(round(value * 10), 10)):
                candidate = draw.with_entries(name, {place: simple})
                if self.pair.system.arrays[name].below is None and self.fails(candidate):
                    draw = candidate
                    break
        return draw


def _close(a: Sides, b: Sides) -> bool:
    for mine, other in ((a.right, b.right), (a.claim, b.claim)):
        for place, value in mine.items():
            beside = other[place]
            if (value is None) != (beside is None):
                return False
            if value is not None and abs(value - beside) > VISIBLE * a.scale / 1000:
                return False
    return True


def shown(pair: Pair, draw: Draw, name: str) -> Counterexample | None:
    """A point as a counterexample; None if the sides do not differ there."""
    here = sides(pair, draw)
    gaps = here.gaps(VISIBLE) or here.gaps()
    place, apart = here.widest
    if not gaps and not apart:
        return None
    place = gaps[0] if gaps else place
    right, claim = here.right[place], here.claim[place]
    write = number if gaps else mpmath.nstr  # a tiny difference is not rounded away
    digits = next((d for d in range(6, draw.digits, 3) if claim is None or write(right, d) != write(claim, d)), 36)
    inputs = {key: _nested(entries) for key, entries in given(pair, draw).items()}
    return Counterexample(
        {str(symbol): value for symbol, value in draw.sizes.items()},
        inputs,
        name,
        place,
        None if claim is None else float(claim),
        float(right),
        "no value" if claim is None else write(claim, digits),
        write(right, digits),
    )


def number(value: Any, digits: int = 6) -> str:
    """A number as a person would write it.

    >>> number(mpmath.mpf(1) / 3), number(mpmath.mpf(2)), number(mpmath.sqrt(2))
    ('1/3', '2', '1.41421')
    """
    if value and not mpmath.mpf(10) ** -15 < abs(value) < mpmath.mpf(10) ** 15:
        return mpmath.nstr(value, digits)
    near = Fraction(str(mpmath.nstr(value, 30))).limit_denominator(60)
    exact = abs(value - mpmath.mpf(near.numerator) / near.denominator) < mpmath.mpf(10) ** -14 * max(1, abs(value))
    if exact and (near.denominator <= 4 or 10**6 % near.denominator):
        return str(near)
    return mpmath.nstr(value, digits)


def _numbers(value: Any) -> list[Any]:
    return [number for row in value for number in _numbers(row)] if isinstance(value, list) else [value]


def _plain(value: Any) -> int | float:
    nearest = mpmath.nint(value)
    return int(nearest) if abs(value - nearest) < mpmath.mpf(10) ** -20 else float(value)


def _nested(entries: Mapping[Place, Any]) -> Any:
    """Entries by place as nested lists."""
    if list(entries) == [()]:
        return _plain(entries[()])
    rows: dict[int, dict[Place, Any]] = {}
    for place, value in entries.items():
        rows.setdefault(place[0], {})[place[1:]] = value
    return [_nested(row) for _, row in sorted(rows.items())]


LONG = 40  # numbers of an array that are written out


def _listed(value: Any) -> str:
    numbers = _numbers(value)
    if len(numbers) > LONG:
        alike = len(set(numbers)) == 1
        return f"all {_listed(numbers[0])}" if alike else f"{_listed(numbers[:3])[:-1]}, …] ({len(numbers)} numbers)"
    if isinstance(value, list):
        return f"[{', '.join(map(_listed, value))}]"
    return str(value) if isinstance(value, int) else number(mpmath.mpf(value))

"""Points on both sides of whatever decides in a formula: conditions, kinks, thresholds of indices and of sizes.

    relu(log(x) − 7)          x = 1000 and x = 2000, and x just below and just above e⁷
    where(i < 128, x[i], 0)   n = 129
    where(n < 20, 1, 2)       n = 19 and n = 20

A `Switch` is a difference whose sign decides. For one of numbers, points are sought on both sides of its boundary, and
the boundary is then closed in on: two formulas with other thresholds differ next to one of them. For one of whole
numbers, sizes are sought at which it takes another sign.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, permutations, product
from math import prod

import sympy
from sympy import Expr

from gradproof.symbolic.equations.evaluate import HighPrecision, Letters, Point, Undefined
from gradproof.symbolic.equations.expr import Access, Axis, Compare, Reduce, letters, names, open_
from gradproof.symbolic.equations.functions import absolute, maximum, relu, sign
from gradproof.symbolic.equations.system import System, out_letters
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import at_least_one, small_sizes
from gradproof.symbolic.judging.polynomials import nonnegative_square
from gradproof.symbolic.judging.sampling import (
    KINDS,
    Comparison,
    Draw,
    Pair,
    Sizes,
    compared,
    compared_at,
    drawn,
    point_at,
)
from gradproof.symbolic.printing import text

KINKED = (relu, absolute, sign, sympy.Abs)
ROUNDS = 2  # boundaries of one switch that are closed in on
MAX_SWITCHES = 24
MAX_PAIRS = 20  # of switches that are looked at together
HALVINGS = 30
BESIDE = Fraction(1, 50)  # how far beside a boundary, in parts of the way from one side to the other
FAR = tuple(Fraction(10) ** power for power in (1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -6, 9, 12))
SMALL = 3  # what the other sizes are while one is large
DENSE = 24  # up to which every size is looked at
BIGGEST = 6000  # size that is tried, where a number in the formula asks for it
MAX_INPUTS = 200_000  # entries of all inputs at the largest sizes


@dataclass(frozen=True)
class Switch:
    """A difference whose sign decides which branch is taken; `axes` are the letters it may read, outer ones first."""

    difference: Expr
    axes: tuple[Axis, ...] = ()

    def assignment(self, point: Point, rng: random.Random) -> Letters | None:
        """Values of the letters: rather at the ends of their ranges; None where a range is empty."""
        found: Letters = {}
        for letter, lo, hi in self.axes:
            first, end = point.integer(lo, found), point.integer(hi, found)
            if first >= end:
                return None
            found[letter] = rng.choice((first, end - 1, rng.randrange(first, end)))
        return found

    def sign(self, point: Point, at: Letters) -> int | None:
        """The sign at a point; None where the difference has no value."""
        try:
            if point.is_index(self.difference):
                value = point.integer(self.difference, at)
            else:
                value = point.value(self.difference, at)
        except (Undefined, OverflowError, ZeroDivisionError):
            point.pending.clear()
            return None
        return int(value > 0) - int(value < 0)

    def shown(self, system: System, side: int) -> str:
        """What holds on one side: `log(x) − 7 > 0`."""
        outs = out_letters(len(self.axes))
        renamed = self.difference.xreplace(dict(zip((axis[0] for axis in self.axes), outs, strict=True)))
        return f"{text.expression_text(renamed, outs, system, 'index')} {'>' if side > 0 else '<'} 0"


def switches(system: System, wanted: Iterable[str]) -> list[Switch]:
    """Whatever decides in the equations that some arrays need."""
    found: dict[Switch, None] = {}
    for equation in system.needed(wanted).equations:
        for difference, axes in _decisions(equation.body, equation.axes):
            if letters(difference) or difference.atoms(sympy.Symbol, Access):
                found[Switch(difference, axes)] = None
    return list(found)[:MAX_SWITCHES]


def _decisions(expr: Expr, axes: tuple[Axis, ...]) -> Iterator[tuple[Expr, tuple[Axis, ...]]]:
    if isinstance(expr, Access):
        return
    if isinstance(expr, Reduce):
        body, inner = open_(expr, [axis[0] for axis in axes])
        yield from _decisions(body, (*axes, *inner))
        return
    if isinstance(expr, (Compare, maximum)):
        left, right = expr.sides if isinstance(expr, Compare) else expr.args
        yield left - right, axes
    elif isinstance(expr, KINKED):
        yield expr.args[0], axes
    for arg in expr.args:
        if isinstance(arg, Expr):
            yield from _decisions(arg, axes)


class Reach:
    """The points that the switches of a pair ask for, and what could not be reached."""

    def __init__(self, pair: Pair, seed: int = 0, wanted: Sequence[str] = ()) -> None:
        self.pair, self.seed = pair, seed
        self.missing: list[str] = []
        found = switches(pair.system, wanted or (pair.right, pair.claim))
        probe = Point(pair.system, {}, HighPrecision(0))
        self.whole = [switch for switch in found if probe.is_index(switch.difference)]
        self.real = [switch for switch in found if switch not in self.whole]

    def points(self) -> Iterator[Draw]:
        """Where both sides are to be compared."""
        for k, sizes in enumerate(self.sizes()):
            yield drawn(self.pair, sizes, self.seed + k, "small")
        known: dict[Switch, dict[int, Draw]] = {}
        for switch in self.real:
            seen: set[int] = set()
            for round_ in range(ROUNDS):
                found = self.both_sides(switch, round_)
                yield from self._around(switch, found, round_)
                seen |= set(found)
                known.setdefault(switch, {side: draw for side, (draw, _) in found.items() if side})
            self.missing += [switch.shown(self.pair.system, side) for side in self._open(switch) if side not in seen]
        for one, other in islice(permutations(known, 2), MAX_PAIRS):
            yield from self._together(one, other, known)

    def _around(self, switch: Switch, found: dict[int, tuple[Draw, bool]], round_: int) -> list[Draw]:
        """The points around the boundary of a switch; where only one side is found, those that lie far away."""
        if {-1, 1} <= set(found):
            return self.boundary(switch, found[-1][0], found[1][0], round_)
        return [draw for draw, far in found.values() if far]

    def _together(self, one: Switch, other: Switch, known: dict[Switch, dict[int, Draw]]) -> Iterator[Draw]:
        """Both sides of one switch on each side of another one, as far as they can be reached."""
        own = [name for name in self._reads(other) if name not in self._reads(one)]
        for draw in known[one].values() if own else ():
            found = self.both_sides(other, 0, draw, own)
            yield from (point for point, _ in found.values())
            yield from self._around(other, found, 1)
        if not own:  # both hang on the same numbers
            seen: set[tuple[int | None, ...]] = set()
            for draw in (*known[one].values(), *known[other].values(), *self._pool()):
                signs = tuple(self._sign(switch, draw) for switch in (one, other))
                if None not in signs and signs not in seen:
                    seen.add(signs)
                    yield draw

    def _pool(self) -> Iterator[Draw]:
        sizes = small_sizes(self.pair.system, self.seed)
        for k, kind in enumerate((*KINDS, *KINDS)):
            yield drawn(self.pair, sizes, self.seed + 1000 + k, kind)

    def _sign(self, switch: Switch, draw: Draw) -> int | None:
        at = self._place(switch, draw, 0)
        try:
            return None if at is None else switch.sign(point_at(self.pair, draw), at)
        except GradproofError:
            return None

    def _open(self, switch: Switch) -> list[int]:
        """The signs that a switch may have as far as is known."""
        return [side for side in (1, -1) if not nonnegative_square(-side * switch.difference)]

    # --- numbers

    def both_sides(
        self, switch: Switch, round_: int = 0, base: Draw | None = None, vary: Sequence[str] | None = None
    ) -> dict[int, tuple[Draw, bool]]:
        """A point for each sign that is found, all of the same sizes, and whether it was sought far away.

        With `base`, only the arrays in `vary` take other numbers than they have there.
        """
        seed = self.seed + round_
        first = drawn(self.pair, small_sizes(self.pair.system, seed), seed) if base is None else base
        at = self._place(switch, first, round_)
        found: dict[int, tuple[Draw, bool]] = {}
        for draw, far in self._moved(switch, first, seed, vary) if at is not None else ():
            try:
                side = switch.sign(point_at(self.pair, draw), at or {})
            except GradproofError:
                continue
            if side is not None:
                found.setdefault(side, (draw, far))
            if {-1, 1} <= set(found):
                break
        return found

    def _moved(self, switch: Switch, first: Draw, seed: int, vary: Sequence[str] | None) -> Iterator[tuple[Draw, bool]]:
        """Points of the same sizes and integers: other numbers, then numbers that are much larger or smaller."""
        numbers = [name for name in first.free if self.pair.system.arrays[name].below is None]
        changed = [name for name in numbers if vary is None or name in vary]

        def like(other: Draw) -> Draw:
            return replace(first, free={**first.free, **{n: other.free[n] for n in changed}}, digits=other.digits)

        if vary is not None:
            yield first, False
        for k, kind in enumerate(KINDS):
            yield like(drawn(self.pair, first.sizes, seed + 100 * k, kind)), False
        reads = [name for name in self._reads(switch) if name in changed]
        base = like(drawn(self.pair, first.sizes, seed, "positive"))
        for scale, towards in product(FAR, (1, -1)):
            for some in [reads, *([name] for name in reads)] if len(reads) > 1 else [reads]:
                draw = base
                for name in some:
                    draw = draw.with_entries(name, {p: v * scale * towards for p, v in base.free[name].items()})
                yield draw, True

    def _place(self, switch: Switch, draw: Draw, round_: int) -> Letters | None:
        return switch.assignment(point_at(self.pair, draw), random.Random(repr((self.seed, round_, "letters"))))

    def _reads(self, switch: Switch) -> list[str]:
        """The arrays of numbers that a switch depends on."""
        system = self.pair.system
        direct = [name for name in names(switch.difference) if name in system.arrays]
        inputs = system.needed(direct).inputs if direct else ()
        below = {read for e in system.needed(direct).equations for read in names(e.body)} if direct else set()
        return [
            name
            for name in inputs
            if system.arrays[name].below is None and name in self.pair.inputs and name in {*direct, *below}
        ]

    def boundary(self, switch: Switch, low: Draw, high: Draw, round_: int = 0) -> list[Draw]:
        """Points next to where a switch changes its sign between two points, on both sides, and a little beside."""
        at = self._place(switch, low, round_)
        if at is None:
            return []
        ends = [Fraction(0), Fraction(1)]
        for _ in range(HALVINGS):
            middle = (ends[0] + ends[1]) / 2
            try:
                side = switch.sign(point_at(self.pair, between(low, high, middle)), at)
            except GradproofError:
                side = None
            if side is None:
                break
            ends[side > 0] = middle
        beside = [] if round_ else [max(Fraction(0), ends[0] - BESIDE), min(Fraction(1), ends[1] + BESIDE)]
        return [between(low, high, t) for t in (*ends, *beside)]

    # --- sizes

    def sizes(self) -> Iterator[Sizes]:
        """Sizes at which a switch of whole numbers takes a sign that it had not; a large one for every size."""
        system = self.pair.system
        seen: dict[Switch, set[int]] = {switch: set() for switch in self.whole}
        before: dict[tuple[Switch, object], int | None] = {}
        for sizes, kind in self._candidates():
            point, new = Point(system, sizes, HighPrecision(0), self.seed), False
            rng = random.Random(repr((self.seed, str(sizes))))
            for switch in self.whole:
                placed = [switch.assignment(point, rng) for _ in range(12 if switch.axes else 1)]
                found = {switch.sign(point, at) for at in placed if at is not None}
                signs = {side for side in found if side is not None}
                new = new or not signs <= seen[switch]
                seen[switch] |= signs
                if not letters(switch.difference) and signs:  # on both sides of n = 20
                    (side,) = signs
                    new = new or before.get((switch, kind), side) != side
                    before[switch, kind] = side
            if new:
                yield sizes
        yield from self.largest()

    def _candidates(self) -> Iterator[tuple[Sizes, object]]:
        """All sizes alike, and one size after the other with the rest small."""
        symbols = self.pair.system.sizes
        near = {number + step for number in self.pair.numerals for step in (-1, 0, 1, 2)}
        values = sorted({*range(1, DENSE + 1), *(value for value in near if 1 <= value <= BIGGEST)})
        if not self.whole:
            return
        for kind in (None, *(symbols if len(symbols) > 1 else ())):
            for value in values:
                sizes = {s: value if kind in (None, s) else SMALL for s in symbols}
                if self.fits(sizes):
                    yield sizes, kind

    def fits(self, sizes: Sizes, least: int = 1, ranged: bool = True) -> bool:
        """Whether all arrays have entries under some sizes, and not too many, and no range ends before it starts.

        With `least` 0 an axis may be empty; unless `ranged`, a range may end before it starts.
        """
        system = self.pair.system
        if any(int(size.xreplace(dict(sizes))) < least for size in at_least_one(system)):
            return False
        if any(int(length.xreplace(dict(sizes))) < 0 for length in lengths(system) if ranged):
            return False
        arrays = [system.arrays[name] for name in self.pair.inputs]
        counts = [prod(int(size.xreplace(dict(sizes))) for size in array.shape) for array in arrays]
        ends = [1 if array.below is None else int(array.below.xreplace(dict(sizes))) for array in arrays]
        return sum(counts) <= MAX_INPUTS and all(end > 0 or not count for end, count in zip(ends, counts, strict=True))

    def largest(self) -> Iterator[Sizes]:
        """For every size a point at which it is large and the others are small: (n − 1)(n − 2) is not 0 there."""
        try:
            small = small_sizes(self.pair.system, self.seed)
        except GradproofError:
            return
        for symbol in self.pair.system.sizes:
            large = max([LARGE, *(number + 2 for number in self.pair.numerals if number <= 2 * DENSE)])
            for value in dict.fromkeys((large, LARGE)):
                if self.fits(sizes := {**small, symbol: value}):
                    yield sizes
                    break


LARGE = 11


def compared_everywhere(pair: Pair, seed: int = 0) -> tuple[Comparison, Reach]:
    """Compare the two sides at random points and, where these do not differ, wherever a switch asks for it."""
    reach, found = Reach(pair, seed), compared(pair, seed)
    if found.differs is None and found.compared:
        found = found.and_then(compared_at(pair, reach.points()))
    return found, reach


def lengths(system: System) -> list[Expr]:
    """How many values the letters of sums and products take, where that depends on sizes alone."""
    nodes = {node for equation in system.equations for node in equation.body.atoms(Reduce)}
    found = {(hi - lo).expand() for node in nodes for _, lo, hi in node.axes}
    return sorted((x for x in found if not letters(x) and x.free_symbols and not x.atoms(Access)), key=str)


def between(low: Draw, high: Draw, t: Fraction) -> Draw:
    """A point on the line from one to another."""
    free = {
        name: {place: value + (high.free[name][place] - value) * t for place, value in entries.items()}
        for name, entries in low.free.items()
    }
    return replace(low, free=free, digits=max(low.digits, high.digits))

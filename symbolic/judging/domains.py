"""Where a claim holds: what its text needs and the expression's does not, and sizes that a proof takes for granted.

    exp(log(x)) for x           where x > 0
    x**2/x for x                where x ≠ 0
    n − 2 for sum[i=0:n-2](1)   where n ≥ 2: the sum of an empty range is 0

A condition is stated where a point is found at which it fails though the expression and its derivative have a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import Any

import mpmath
from sympy import Expr, S

from gradproof.symbolic.equations.evaluate import Letters, Point, Undefined
from gradproof.symbolic.equations.expr import Implicit
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.system import System, out_letters
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import small_sizes
from gradproof.symbolic.judging.normal_form import Normal
from gradproof.symbolic.judging.polynomials import NoNormalForm, expr_of, nonnegative_square, positive
from gradproof.symbolic.judging.reaching import Reach, Switch, lengths
from gradproof.symbolic.judging.sampling import Draw, Pair, Sizes, compared_at, drawn, point_at, sides
from gradproof.symbolic.language.demands import Demand
from gradproof.symbolic.printing import text
from gradproof.symbolic.printing.convention import at_least

SIGNS = {">": ">", ">=": "≥", "!=": "≠"}
MAX_PLACES = 40  # values of the letters of a demand that are looked at
MAX_SIZES = 40
BLOWN = mpmath.mpf(10) ** 6  # a value that grows so much next to a root has none there
NEAR = mpmath.mpf(10) ** -6


@dataclass(frozen=True)
class Domain:
    """What the text of a claim needs, and what that of the expression needs anyhow; `fixed` inputs are not varied."""

    pair: Pair
    needs: Sequence[Demand]
    given: Sequence[Demand]
    fixed: str | None = None

    def conditions(self) -> list[str]:
        """What must hold for the claim to have the value that the derivative has, beyond what this needs."""
        own = [need for need in self.needs if not any(known.implies(need) for known in self.given)]
        found = [shown(self.pair.system, need) for need in own if not self.always(need) and self.fails(need)]
        return list(dict.fromkeys(found))

    def always(self, need: Demand) -> bool:
        """Whether a demand is known to be met everywhere."""
        scope = {letter: (lo, hi) for letter, lo, hi in need.axes}
        bodies = [need.body]
        try:
            normal = Normal(self.pair.system)
            bodies.append(expr_of(normal.of(need.body, scope)))
        except (NoNormalForm, RecursionError):
            pass
        known = normal.positives
        sure = nonnegative_square if need.op == ">=" else positive
        return any(sure(body, known) or (need.op == "!=" and positive(-body, known)) for body in bodies)

    def fails(self, need: Demand) -> bool:
        """Whether a demand fails at a point where the expression and its derivative have a value."""
        reach = Reach(self.pair)
        if any(self._broken(need, draw) and self._valued(draw) for draw in self._special()):
            return True
        switch = Switch(need.body, need.axes)
        for round_ in range(2):
            found = reach.both_sides(switch, round_)
            if need.op != "!=" and -1 in found and self._valued(found[-1][0]):
                return True
            if {-1, 1} <= set(found):
                close, other, *_ = near = reach.boundary(switch, found[-1][0], found[1][0], round_)
                if need.op != "!=" and any(self._broken(need, d) and self._valued(d) for d in near):
                    return True
                if need.op == "!=" and self._crosses(close, other, found[-1][0]):
                    return True
        return False

    def _special(self) -> Iterator[Draw]:
        """Points at which much is 0: all inputs alike, one of them 0, the first entry of one 0."""
        pair = self.pair
        draw = drawn(pair, small_sizes(pair.system), 0)
        free = [n for n in pair.inputs if pair.system.arrays[n].below is None and n != self.fixed]
        for value in (0, 1, -1):
            alike = draw
            for name in free:
                alike = alike.with_entries(name, dict.fromkeys(draw.free[name], Fraction(value)))
            yield alike
        for name in free:
            yield draw.with_entries(name, dict.fromkeys(draw.free[name], Fraction(0)))
            yield draw.with_entries(name, dict.fromkeys(islice(draw.free[name], 1), Fraction(0)))

    def _values(self, need: Demand, draw: Draw) -> list[Any]:
        point = point_at(self.pair, draw)
        return [value_of(point, need.body, at) for at in islice(placed(point, need), MAX_PLACES)]

    def _broken(self, need: Demand, draw: Draw) -> bool:
        """Whether a demand is not met at a point (None: its own parts have no value)."""
        return any(value is not None and not _met(value, need.op) for value in self._values(need, draw))

    def _valued(self, draw: Draw) -> bool:
        """Whether the expression as typed and its derivative have a value at a point."""
        for known in self.given:
            if any(value is None or not _met(value, known.op) for value in self._values(known, draw)):
                return False
        return self._size(draw) is not None

    def _size(self, draw: Draw) -> Any:
        """The largest entry of the derivative; None where one has no value."""
        try:
            found = sides(self.pair, draw).right.values()
        except GradproofError:
            return None
        return None if None in found else max([mpmath.mpf(1), *map(abs, found)])

    def _crosses(self, low: Draw, high: Draw, beside: Draw) -> bool:
        """Whether the derivative has a value at the root between two close points."""
        small = [abs(v) < NEAR for known in self.given for v in self._values(known, low) if v is not None]
        here, there = self._size(low), self._size(beside)
        return not any(small) and self._size(high) is not None and None not in (here, there) and here < BLOWN * there

    # --- sizes

    def sizes(self) -> list[str]:
        """The sizes for which the claim holds, where it is not right for all: `n ≥ 2`."""
        pair, found = self.pair, dict[str, None]()
        ranges = lengths(pair.system.needed((pair.right, pair.claim)))
        for sizes in edges(pair):
            negative = [length for length in ranges if int(length.xreplace(dict(sizes))) < 0]
            empty = [symbol for symbol, value in sizes.items() if value == 0]
            if compared_at(pair, (drawn(pair, sizes, seed, "small") for seed in range(2))).differs is not None:
                found.update(dict.fromkeys(at_least(length) for length in negative))
                found.update({} if negative else dict.fromkeys(f"{symbol} ≥ 1" for symbol in empty))
        return list(found)


def edges(pair: Pair) -> Iterator[Sizes]:
    """Small sizes at which an axis or a range is empty, and the result is not."""
    system = pair.system
    reach = Reach(pair)
    ranges = lengths(system.needed((pair.right, pair.claim)))
    grid = sorted(product(range(4), repeat=len(system.sizes)), key=lambda values: (sum(values), values))
    count = 0
    for values in grid:
        sizes = dict(zip(system.sizes, values, strict=True))
        shape = [int(size.xreplace(sizes)) for size in system.arrays[pair.right].shape]
        if min(shape, default=1) < 1 or not reach.fits(sizes, 0, ranged=False):
            continue
        if 0 in values or any(int(length.xreplace(sizes)) < 0 for length in ranges):
            count += 1
            yield sizes
        if count >= MAX_SIZES:
            return


def placed(point: Point, need: Demand) -> Iterator[Letters]:
    """All values of the letters of a demand."""

    def run(left: Sequence[tuple[Any, Expr, Expr]], at: Letters) -> Iterator[Letters]:
        if not left:
            yield dict(at)
            return
        letter, lo, hi = left[0]
        for value in range(point.integer(lo, at), point.integer(hi, at)):
            yield from run(left[1:], {**at, letter: value})

    return run(need.axes, {})


def value_of(point: Point, body: Expr, at: Letters) -> Any:
    try:
        return point.value(body, at)
    except (Undefined, OverflowError, ZeroDivisionError):
        point.pending.clear()
        return None


def _met(value: Any, op: str) -> bool:
    return bool(value != 0 if op == "!=" else value >= 0 if op == ">=" else value > 0)


def shown(system: System, need: Demand) -> str:
    """A demand as text: `x > 0`, `A is invertible`."""
    if isinstance(need.body, Implicit):
        return f"{text.printed(need.body.matrix, system)} is invertible"
    outs = out_letters(len(need.axes))
    body = need.body.xreplace(dict(zip((axis[0] for axis in need.axes), outs, strict=True)))
    condition = ""
    while isinstance(body, where):
        condition = f" wherever {text.condition_text(body.args[0], outs, system)}"
        body = body.args[1]
    number, rest = body.as_coeff_Add() if body.is_Add else (S.Zero, body)
    left = text.expression_text(rest, outs, system)
    return f"{left} {SIGNS[need.op]} {text.expression_text(-number, (), system)}{condition}"

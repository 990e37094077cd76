"""The factors of a product, and what conditions on letters do to the ranges of these letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sympy import Expr, Integer, Max, Min, Mul, S

from gradproof.numeric.lowering.lower import Lowering, Part, Ranges, range_conditions, truth
from gradproof.numeric.lowering.nodes import Cut, Place
from gradproof.symbolic.equations.calculus import solve_deltas
from gradproof.symbolic.equations.expr import Axis, Compare, Index, letters, names, nonnegative


@dataclass(frozen=True)
class Overlap:
    """A free letter that is step · row + column + offset: blocks of columns, `step` apart, are added up."""

    free: Index
    row: Index
    column: Index
    step: Expr
    offset: Expr


@dataclass
class Terms:
    """The factors of a product while conditions are taken out of it."""

    factors: list[Expr]
    conditions: list[Expr]
    axes: list[Axis]
    ranges: dict[Index, tuple[Expr, Expr]]
    placed: dict[Index, Place] = field(default_factory=dict)  # free letters whose range was narrowed
    scattered: list[tuple[Index, Expr]] = field(default_factory=list)  # free letters that a lookup gives
    running: set[Index] = field(default_factory=set)  # what these lookups run over
    overlaps: list[Overlap] = field(default_factory=list)  # free letters that are a sum of two others
    after: list[Expr] = field(default_factory=list)  # factors that are multiplied in after these are put together

    @property
    def summed(self) -> frozenset[Index]:
        return frozenset(letter for letter, _, _ in self.axes)

    def replace(self, new: Mapping[Index, Expr]) -> None:
        """Put other expressions in the place of letters, in all that is still to be lowered."""
        self.factors = [piece for factor in self.factors for piece in Mul.make_args(factor.xreplace(new))]
        self.conditions = [condition.xreplace(new) for condition in self.conditions]
        self.scattered = [(free, index.xreplace(new)) for free, index in self.scattered]


def sorted_terms(factors: Sequence[Expr], axes: Sequence[Axis], ranges: Ranges, low: Lowering) -> Terms:
    """Conditions apart from other factors; deltas between letters are solved."""
    outer = [(letter, lo, hi) for letter, (lo, hi) in ranges.items()]
    pieces, axes = list(factors), list(axes)
    if axes and any(isinstance(f, Compare) and f.op == "==" and not names(f) for f in pieces):
        pieces, axes, _ = solve_deltas(pieces, axes, outer)
    inner = dict(low.over(ranges, axes))
    pieces += range_conditions(axes, inner)
    known = [(letter, lo, hi) for letter, (lo, hi) in inner.items()]
    conditions = [piece for piece in pieces if isinstance(piece, Compare) and truth(piece, known) is not True]
    others = [piece for piece in pieces if not isinstance(piece, Compare)]
    return Terms(others, conditions, axes, inner)


def narrow(terms: Terms, condition: Expr) -> bool:
    """Use a condition on one letter to narrow the range of that letter."""
    if names(condition) or condition.op == "!=":
        return False
    inside = [letter for letter in letters(condition) if letter in terms.ranges]
    difference = (condition.args[2] - condition.args[1]).expand()  # right − left
    if len(inside) != 1:
        return condition.op == "==" and _stride(terms, condition, difference, inside)
    (letter,) = inside
    slope = difference.coeff(letter)
    rest = (difference - slope * letter).expand()
    if slope not in (1, -1) or letter in letters(rest):
        return False
    lo, hi = terms.ranges[letter]
    bound = (-slope * rest).expand()  # the letter where both sides are equal
    if condition.op == "==":
        new = (bound, bound + 1)
    elif slope == 1:  # bound < letter or bound <= letter
        new = (larger(lo, bound + 1 if condition.op == "<" else bound), hi)
    else:
        new = (lo, smaller(hi, bound if condition.op == "<" else bound + 1))
    readers = any(letter in letters(f) for f in (*terms.factors, *terms.conditions) if f is not condition)
    if letter not in terms.summed and not readers and condition.op != "==":
        return False  # nothing else runs over this letter: a mask does it
    terms.conditions.remove(condition)
    terms.ranges[letter] = new
    if condition.op == "==":
        _fix(terms, letter, bound)
    elif letter not in terms.summed:
        terms.placed[letter] = Cut(new[0], (new[1] - new[0]).expand())
    return True


def _fix(terms: Terms, letter: Index, value: Expr) -> None:
    """A letter that can have one value only."""
    terms.replace({letter: value})
    if letter in terms.summed:
        terms.axes = [axis for axis in terms.axes if axis[0] != letter]
    else:
        terms.placed[letter] = value
    del terms.ranges[letter]


def _stride(terms: Terms, condition: Expr, difference: Expr, inside: Sequence[Index]) -> bool:
    """δ(p, 2t + 1) with p free and t summed: the terms lie at every second place."""
    if len(inside) != 2:
        return False
    for free, running in (inside, inside[::-1]):
        slope = -difference.coeff(running) * difference.coeff(free)
        if free in terms.summed or running not in terms.summed or difference.coeff(free) not in (1, -1):
            continue
        others = [f for f in (*terms.factors, *terms.conditions) if f is not condition]
        if not isinstance(slope, Integer) or slope <= 0 or any(free in letters(f) for f in others):
            continue
        offset = (free - difference.coeff(free) * difference).expand()  # the value of `free`
        lo, hi = terms.ranges[running]
        terms.placed[free] = Cut(offset.xreplace({running: lo}).expand(), (hi - lo).expand(), int(slope))
        terms.conditions.remove(condition)
        terms.axes = [axis for axis in terms.axes if axis[0] != running]
        terms.replace({running: free})
        terms.ranges[free] = terms.ranges.pop(running)
        return True
    return False


def larger(a: Expr, b: Expr) -> Expr:
    """The larger of two index expressions, decided where it can be.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> larger(S.Zero, Size("n") - 1)
    n - 1
    """
    if nonnegative(a - b):
        return a
    return b if nonnegative(b - a) else Max(a, b)


def smaller(a: Expr, b: Expr) -> Expr:
    if nonnegative(b - a):
        return a
    return b if nonnegative(a - b) else Min(a, b)


def put_in_place(low: Lowering, terms: Terms, part: Part, ranges: Ranges) -> Part:
    """Zeros around a result whose free letters were narrowed."""
    if not terms.placed:
        return part
    order = [letter for letter in ranges if letter in part.letters or letter in terms.placed]
    order = sorted(order, key=lambda x: part.letters.index(x) if x in part.letters else -1)
    places: list[Place] = []
    shape: list[Expr] = []
    for letter in order:
        lo, hi = ranges[letter]
        size = (hi - lo).expand()
        shape.append(size)
        place = terms.placed.get(letter, Cut(S.Zero, size))
        if isinstance(place, Cut):
            start = place.start - lo if letter in terms.placed else place.start
            places.append(Cut(start.expand(), place.count, place.step))
        else:
            places.append((place - lo).expand())
    return Part(low.graph.put(part.node, places, shape), tuple(order))


def bound_of(condition: Expr) -> Expr | None:
    """The expression that is at least 0 where an inequality holds."""
    left, right = condition.args[1:]
    if condition.op not in ("<", "<="):
        return None
    return (right - left - (1 if condition.op == "<" else 0)).expand()

"""Products with conditions, and sums over them.

    Σ over b of  coefficient · factors · conditions

A condition on one letter (1 ≤ t) narrows its range: a summed letter then runs over fewer values, a free one gets zeros
around the result. δ(p, w[t]) is a scatter-add. Every other condition masks: it is multiplied in, or put into a `where`
when a factor may be infinite or undefined where the condition fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sympy import Add, Expr, Integer, Mul, Number, Pow, S, exp, log, tan

from gradproof.numeric.contract import contract
from gradproof.numeric.lower import Lowering, Part, Ranges, order_of, range_conditions
from gradproof.numeric.nodes import Cut, Node, Place
from gradproof.symbolic.calculus import solve_deltas
from gradproof.symbolic.expr import (
    Access,
    Axis,
    Compare,
    Index,
    Reduce,
    letters,
    names,
    nonnegative,
)


def lower_sum(
    low: Lowering, body: Expr, axes: Sequence[Axis], ranges: Ranges, wanted: Sequence[Index]
) -> Part:
    """Σ over `axes` of an expression; a sum is split where its terms can be contracted on their own."""
    if isinstance(body, Add) and any(_contracts(term, axes) for term in body.args):
        return low.add([lower_terms(low, Mul.make_args(term), axes, ranges, wanted) for term in body.args], wanted)
    return lower_terms(low, Mul.make_args(body), axes, ranges, wanted)


def _contracts(term: Expr, axes: Sequence[Axis]) -> bool:
    """Whether a term of a sum is better summed alone: a matrix product, a condition, or a letter that it lacks."""
    summed = {letter for letter, _, _ in axes}
    factors = [factor for factor in Mul.make_args(term) if letters(factor)]
    if any(isinstance(factor, Compare) for factor in factors) or not summed <= letters(term):
        return True
    return len({letters(factor) for factor in factors}) > 1


@dataclass
class _Terms:
    """The factors of a product while conditions are taken out of it."""

    factors: list[Expr]
    conditions: list[Expr]
    axes: list[Axis]
    ranges: dict[Index, tuple[Expr, Expr]]
    placed: dict[Index, Place] = field(default_factory=dict)  # free letters whose range was narrowed
    scattered: list[tuple[Index, Expr]] = field(default_factory=list)  # free letters that a lookup gives
    running: set[Index] = field(default_factory=set)  # what these lookups run over
    merged: dict[Index, tuple[Index, Index]] = field(default_factory=dict)  # free letters that are two digits

    @property
    def summed(self) -> frozenset[Index]:
        return frozenset(letter for letter, _, _ in self.axes)


def lower_terms(
    low: Lowering, factors: Sequence[Expr], axes: Sequence[Axis], ranges: Ranges, wanted: Sequence[Index]
) -> Part:
    """Σ over `axes` of a product of factors."""
    terms = _sorted(factors, axes, ranges, low)
    for condition in list(terms.conditions):
        _narrow(terms, condition) or _scatter(low, terms, condition, ranges) or _digits(terms, condition)
    _drop_padded(low, terms)
    part = _masked_sum(low, terms, wanted)
    if terms.scattered:
        part = _scatter_add(low, terms, part, ranges)
    return _put_in_place(low, terms, _undigit(low, terms, part), ranges)


def _sorted(factors: Sequence[Expr], axes: Sequence[Axis], ranges: Ranges, low: Lowering) -> _Terms:
    """Conditions apart from other factors; deltas between letters are solved."""
    outer = [(letter, lo, hi) for letter, (lo, hi) in ranges.items()]
    pieces, axes = list(factors), list(axes)
    if axes and any(isinstance(f, Compare) and f.op == "==" and not names(f) for f in pieces):
        pieces, axes, _ = solve_deltas(pieces, axes, outer)
    inner = dict(low.over(ranges, axes))
    pieces += range_conditions(axes, inner)
    conditions = [piece for piece in pieces if isinstance(piece, Compare)]
    others = [piece for piece in pieces if not isinstance(piece, Compare)]
    return _Terms(others, conditions, axes, inner)


# ------------------------------------------------------------------------------------------------- narrowing of ranges


def _narrow(terms: _Terms, condition: Expr) -> bool:
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


def _fix(terms: _Terms, letter: Index, value: Expr) -> None:
    """A letter that can have one value only."""
    fixed = {letter: value}
    terms.factors = [piece for f in terms.factors for piece in Mul.make_args(f.xreplace(fixed))]
    terms.conditions = [condition.xreplace(fixed) for condition in terms.conditions]
    if letter in terms.summed:
        terms.axes = [axis for axis in terms.axes if axis[0] != letter]
    else:
        terms.placed[letter] = value
    del terms.ranges[letter]


def _stride(terms: _Terms, condition: Expr, difference: Expr, inside: Sequence[Index]) -> bool:
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
        offset = (-difference.coeff(free) * difference - -difference.coeff(free) * difference).expand()
        offset = (free - difference.coeff(free) * difference).expand()  # the value of `free`
        lo, hi = terms.ranges[running]
        terms.placed[free] = Cut(offset.xreplace({running: lo}).expand(), (hi - lo).expand(), int(slope))
        terms.conditions.remove(condition)
        terms.axes = [axis for axis in terms.axes if axis[0] != running]
        renamed = {running: free}
        terms.factors = [f.xreplace(renamed) for f in terms.factors]
        terms.conditions = [c.xreplace(renamed) for c in terms.conditions]
        terms.ranges[free] = terms.ranges.pop(running)
        return True
    return False


def _digits(terms: _Terms, condition: Expr) -> bool:
    """δ(o, p·x + y) with y below p: o has the digits x and y, and both are kept instead of summed."""
    if condition not in terms.conditions or condition.op != "==" or names(condition):
        return False
    for free, value in (condition.sides, condition.sides[::-1]):
        inside = [letter for letter, _, _ in terms.axes if letter in letters(value)]
        if not isinstance(free, Index) or free in terms.summed or len(inside) != 2 or free not in terms.ranges:
            continue
        for high, digit in (inside, inside[::-1]):
            base = value.expand().coeff(high)
            count = (base * terms.ranges[high][1]).expand()
            if (
                (value - base * high - digit).expand() == 0
                and terms.ranges[digit] == (0, base)
                and terms.ranges[high][0] == 0
                and terms.ranges[free][0] == 0
                and (terms.ranges[free][1] - count).expand() == 0
            ):
                terms.conditions.remove(condition)
                terms.factors = [f.xreplace({free: value}) for f in terms.factors]
                terms.conditions = [c.xreplace({free: value}) for c in terms.conditions]
                terms.axes = [axis for axis in terms.axes if axis[0] not in (high, digit)]
                terms.merged[free] = (high, digit)
                return True
    return False


def _undigit(low: Lowering, terms: _Terms, part: Part) -> Part:
    """Two axes that are the digits of one letter become one."""
    for free, pair in terms.merged.items():
        missing = [letter for letter in pair if letter not in part.letters]
        extent = {x: (terms.ranges[x][1] - terms.ranges[x][0]).expand() for x in terms.ranges}
        start = next((k for k, x in enumerate(part.letters) if x in pair), 0)
        rest = [x for x in part.letters if x not in pair]
        order = [*rest[:start], *pair, *rest[start:]]
        node = low.align(part, order)
        if missing:
            node = low.graph.broadcast(node, [extent[x] for x in order])
        sizes = [extent[x] for x in order]
        sizes[start : start + 2] = [(sizes[start] * sizes[start + 1]).expand()]
        order[start : start + 2] = [free]
        part = Part(low.graph.reshape(node, sizes), tuple(order))
    return part


def larger(a: Expr, b: Expr) -> Expr:
    """The larger of two index expressions, decided where it can be.

    >>> from gradproof.symbolic.expr import Size
    >>> larger(S.Zero, Size("n") - 1)
    n - 1
    """
    if nonnegative(a - b):
        return a
    return b if nonnegative(b - a) else _extremum("Max", a, b)


def smaller(a: Expr, b: Expr) -> Expr:
    if nonnegative(b - a):
        return a
    return b if nonnegative(a - b) else _extremum("Min", a, b)


def _extremum(kind: str, a: Expr, b: Expr) -> Expr:
    import sympy

    return getattr(sympy, kind)(a, b)


def _put_in_place(low: Lowering, terms: _Terms, part: Part, ranges: Ranges) -> Part:
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
    return Part(low.graph.place(part.node, places, shape), tuple(order))


# ------------------------------------------------------------------------------------------------------- scatter-adds


def _scatter(low: Lowering, terms: _Terms, condition: Expr, ranges: Ranges) -> bool:
    """δ(p, w[t]) with p free: remember that the value belongs to place w[t], and use p = w[t] everywhere else."""
    if condition not in terms.conditions or condition.op != "==" or not names(condition):
        return False
    for free, looked_up in (condition.sides, condition.sides[::-1]):
        if not isinstance(free, Index) or free in terms.summed or free not in ranges or free in letters(looked_up):
            continue
        arrays = [low.system.arrays[name] for name in names(looked_up)]
        if any(array.below is None for array in arrays) or not letters(looked_up) & (terms.summed | terms.running):
            continue
        terms.conditions.remove(condition)
        found = {free: looked_up}
        terms.factors = [f.xreplace(found) for f in terms.factors]
        terms.conditions = [c.xreplace(found) for c in terms.conditions]
        # What the lookup runs over is not summed before the values are added at their places.
        terms.running |= letters(looked_up) & terms.summed
        terms.axes = [axis for axis in terms.axes if axis[0] not in terms.running]
        terms.scattered.append((free, looked_up))
        return True
    return False


def _scatter_add(low: Lowering, terms: _Terms, part: Part, ranges: Ranges) -> Part:
    """Add values at the places that lookups give."""
    indices = [low.lower(index, terms.ranges) for _, index in terms.scattered]
    running = order_of([index.letters for index in indices], [x for x in terms.ranges if x not in ranges])
    running = tuple(x for x in running if x not in ranges)
    rest = [x for x in part.letters if x not in running]
    free = [letter for letter, _ in terms.scattered]
    sizes = {x: part.node.shape[k] for k, x in enumerate(part.letters)}
    shape = [(ranges[x][1] - ranges[x][0]).expand() for x in free] + [sizes[x] for x in rest]
    aligned = [low.align(index, running) for index in indices]
    extent = [(terms.ranges[x][1] - terms.ranges[x][0]).expand() for x in running]
    values = low.graph.broadcast(low.align(part, [*running, *rest]), [*extent, *(sizes[x] for x in rest)])
    node = low.graph.make("scatter", [low.graph.floating(values), *aligned], (), shape)
    return Part(node, (*free, *rest))


# -------------------------------------------------------------------------------------------------- masks and products


def _drop_padded(low: Lowering, terms: _Terms) -> None:
    """Leave out conditions that only say that a factor lies inside its array: it is padded with zeros there."""
    from gradproof.numeric.access import padded_bounds

    for factor in terms.factors:
        if isinstance(factor, Access):
            bounds = padded_bounds(low, factor, terms.ranges)
            terms.conditions = [c for c in terms.conditions if names(c) or _bound(c) not in bounds]


def _bound(condition: Expr) -> Expr | None:
    """The expression that is at least 0 where an inequality holds."""
    left, right = condition.args[1:]
    if condition.op not in ("<", "<="):
        return None
    return (right - left - (1 if condition.op == "<" else 0)).expand()


def _masked_sum(low: Lowering, terms: _Terms, wanted: Sequence[Index]) -> Part:
    """Σ of the product of all factors and masks."""
    summed = terms.summed
    inner = [*wanted, *(letter for letter, _, _ in terms.axes)]
    factors = [(factor, low.lower(factor, terms.ranges, inner)) for factor in terms.factors if factor != 1]
    masks = [low.lower(condition, terms.ranges, wanted) for condition in terms.conditions if condition != 1]
    if any(condition == 0 for condition in terms.conditions):
        return Part(low.graph.scalar(0))
    outside = [part for _, part in factors if not summed & set(part.letters)]
    inside = [(factor, part) for factor, part in factors if summed & set(part.letters)]
    present = {x for _, part in inside for x in part.letters} | {x for part in masks for x in part.letters}
    repeated = [(hi - lo).expand() for x, (lo, hi) in terms.ranges.items() if x in summed - present]
    scalars = [part for part in outside if part.node.op == "scalar"] + [Part(low.graph.scalar(s)) for s in repeated]
    outside = [part for part in outside if part.node.op != "scalar"]
    if not masks:
        middle = [contract(low, [part for _, part in inside], summed, wanted)] if inside else []
        return low.mul([*scalars, *outside, *middle], wanted)
    if not summed:
        return low.mul([*scalars, _masked(low, factors, masks, scalars, wanted)], wanted)
    # A factor outside of the sum that may be undefined must meet its mask, so it goes inside.
    unsafe = [(f, p) for f, p in factors if p in outside and may_be_undefined(low, f)]
    inside += unsafe
    outside = [part for part in outside if all(part is not p for _, p in unsafe)]
    operands = _apply_masks(low, inside, masks, wanted)
    return low.mul([*scalars, *outside, contract(low, operands, summed, wanted)], wanted)


def _masked(
    low: Lowering,
    factors: Sequence[tuple[Expr, Part]],
    masks: Sequence[Part],
    scalars: Sequence[Part],
    wanted: Sequence[Index],
) -> Part:
    """A product without a sum: where(mask, rest, 0), or mask · rest when the rest is always finite."""
    mask = low.mul(masks, wanted)
    rest = [part for _, part in factors if part.node.op != "scalar"]
    if not rest:
        return mask
    if not any(may_be_undefined(low, factor) for factor, _ in factors):
        return low.mul([*rest, mask], wanted)
    return where_zero(low, mask, low.mul(rest, wanted), wanted)


def where_zero(low: Lowering, mask: Part, value: Part, wanted: Sequence[Index]) -> Part:
    parts = [mask, value, Part(low.graph.scalar(0))]
    return low.elementwise("where", lambda nodes: low.graph.where(*nodes, True), parts, wanted)


def _apply_masks(
    low: Lowering, factors: Sequence[tuple[Expr, Part]], masks: Sequence[Part], wanted: Sequence[Index]
) -> list[Part]:
    """Operands of a contraction with every mask multiplied into one of them, and guarding the unsafe ones."""
    operands = list(factors)
    for mask in masks:
        own = set(mask.letters)
        guarded = False
        for k, (factor, part) in enumerate(operands):
            if may_be_undefined(low, factor) and (own & set(part.letters) or not part.letters):
                operands[k] = (factor, where_zero(low, mask, part, wanted))
                guarded = True
        if guarded:
            continue
        hosts = [k for k, (_, part) in enumerate(operands) if own <= set(part.letters)]
        if hosts:
            host = min(hosts, key=lambda k: len(operands[k][1].letters))
            operands[host] = (operands[host][0], low.mul([operands[host][1], mask], wanted))
        else:
            operands.append((S.One, mask))
    return [part for _, part in operands]


def may_be_undefined(low: Lowering, expr: Expr) -> bool:
    """Whether an expression can be infinite or undefined somewhere: a logarithm, a division, a large exponential."""
    if isinstance(expr, Access):
        return expr.name in low.undefined
    if not names(expr):
        return False
    if isinstance(expr, Pow):
        counted = isinstance(expr.base, Reduce) and all(isinstance(f, Compare) for f in Mul.make_args(expr.base.body))
        if counted:  # how many entries are the largest: at least one
            return False
        if not (isinstance(expr.exp, Integer) and expr.exp > 0):
            return True
    elif isinstance(expr, (log, exp, tan)) or type(expr).__name__ in ("log1p", "sinh", "cosh", "expm1"):
        return True
    return any(may_be_undefined(low, arg) for arg in expr.args)

"""Sums that add values at places: lookups (E[w[t]]), and overlapping blocks (x[2 t + k])."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Mul, S

from gradproof.numeric.lowering.access import placed
from gradproof.numeric.lowering.lower import Lowering, Part, Ranges, bounds, order_of
from gradproof.numeric.lowering.nodes import Cut, Node, Place
from gradproof.numeric.lowering.terms import Overlap, Terms, bound_of
from gradproof.symbolic.equations.expr import Access, Compare, Index, compare, letters, names, nonnegative

BLOCK_NAMES = ("k", "l", "q", "r", "u", "v", "a", "b", "c")  # of the letters that number the blocks' columns


def find_lookups(low: Lowering, terms: Terms, condition: Expr, ranges: Ranges) -> bool:
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
        terms.replace({free: looked_up})
        lo, hi = ranges[free]
        known = {bound_of(c) for c in terms.conditions if isinstance(c, Compare)}
        outside = bounds(low, (looked_up - lo).expand(), (hi - lo).expand(), terms.ranges)
        terms.conditions += [c for c in outside if bound_of(c) not in known]
        # What the lookup runs over is not summed before the values are added at their places.
        terms.running |= letters(looked_up) & terms.summed
        terms.axes = [axis for axis in terms.axes if axis[0] not in terms.running]
        terms.scattered.append((free, looked_up))
        return True
    return False


def add_at(low: Lowering, terms: Terms, part: Part, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    """Add values at the places that lookups give.

    A free letter that a lookup reads, i in x̄[i, w[i, t]] += v[i, t], is an axis of the result and of the lookup: its
    places are 0, 1, 2, …, so every letter of the lookups and of the values has a place of its own.
    """
    places = {}
    for free, index in terms.scattered:
        lo, hi = ranges[free]
        places[free] = placed(low, (index - lo).expand(), (hi - lo).expand(), terms.ranges)
    inside = order_of(
        [*(place.letters for place in places.values()), part.letters], list(dict.fromkeys([*wanted, *terms.ranges]))
    )
    read = {x for place in places.values() for x in place.letters}
    extent = {x: (hi - lo).expand() for x, (lo, hi) in terms.ranges.items()}
    for letter in [x for x in inside if x in read and x not in terms.running]:
        places[letter] = Part(low.graph.arange(S.Zero, extent[letter]), (letter,))
    at = [x for x in wanted if x in places] if set(places) <= set(wanted) else list(places)
    over, rest = [x for x in inside if x in read], [x for x in part.letters if x not in read]
    sizes = {x: (hi - lo).expand() for x, (lo, hi) in ranges.items()} | {x: extent[x] for x in (*read, *rest)}
    values = low.graph.number(low.align(part, [*over, *rest]))
    if values.rank:  # np.add.at of NumPy 2.4 reads past the end of values that it would have to repeat
        values = low.graph.broadcast(values, [sizes[x] for x in (*over, *rest)])
    indices = [low.align(places[x], over) for x in at]
    node = low.graph.make("scatter", [values, *indices], (), [sizes[x] for x in (*at, *rest)])
    return Part(node, (*at, *rest))


# ------------------------------------------------------------------------------------------------- overlapping blocks


def find_overlaps(low: Lowering, terms: Terms) -> None:
    """0 ≤ p − s t + a < K with t summed: p is s·t + k − a, so sum over t and k instead and put the blocks in place."""
    for letter in list(terms.ranges):
        for row, step, offset, count, used in _stretches(terms, letter):
            column = _column(low, terms)
            value = step * row + column - offset
            terms.conditions = [c for c in terms.conditions if c not in used]
            lo, hi = terms.ranges[letter]
            if letter in terms.summed:
                terms.axes = [axis if axis[0] != letter else (column, S.Zero, count) for axis in terms.axes]
                inside = [(x, *terms.ranges[x]) for x in terms.ranges] + [(column, S.Zero, count)]
                if not nonnegative(value - lo, inside):
                    terms.conditions.append(compare("<=", lo, value))
                if not nonnegative(hi - 1 - value, inside):
                    terms.conditions.append(compare("<", value, hi))
            else:
                terms.axes = [axis for axis in terms.axes if axis[0] != row]
                terms.overlaps.append(Overlap(letter, row, column, step, -offset))
                inner = terms.summed | terms.running | {row}
                terms.after += [f for f in terms.factors if letter in letters(f) and not letters(f) & inner]
                terms.factors = [f for f in terms.factors if f not in terms.after]
            terms.ranges[column] = (S.Zero, count)
            moved = {letter: value}
            terms.factors = [p for f in terms.factors for p in Mul.make_args(_moved(f, moved))]
            terms.conditions = [_moved(c, moved) for c in terms.conditions]
            break


def _moved(expr: Expr, moved: dict[Index, Expr]) -> Expr:
    """The expression with a letter replaced, and indices that fall together again expanded."""
    new = expr.xreplace(moved)
    return new.xreplace({a: Access(a.args[0], *(i.expand() for i in a.indices)) for a in new.atoms(Access)})


def _stretches(terms: Terms, letter: Index) -> list[tuple[Index, Expr, Expr, Expr, list[Expr]]]:
    """Pairs of conditions 0 ≤ letter − step·row + offset < count, as (row, step, offset, count, conditions)."""
    lower: dict[tuple[Index, Expr], tuple[Expr, Expr]] = {}
    upper: dict[tuple[Index, Expr], tuple[Expr, Expr]] = {}
    for condition in terms.conditions:
        bound = None if names(condition) else bound_of(condition)
        inside = [] if bound is None else [x for x in letters(bound) if x in terms.ranges]
        if bound is None or len(inside) != 2 or letter not in inside or bound.coeff(letter) not in (1, -1):
            continue
        (row,) = (x for x in inside if x != letter)
        sign = bound.coeff(letter)
        step = (-sign * bound.coeff(row)).expand()
        rest = (bound - sign * letter + sign * step * row).expand()
        if row in terms.summed and nonnegative(step - 1) and not {row, letter} & letters(rest):
            (lower if sign == 1 else upper)[row, step] = (rest, condition)
    found = []
    for (row, step), (offset, first) in lower.items():
        if (row, step) in upper:
            rest, second = upper[row, step]
            found.append((row, step, offset, (offset + rest + 1).expand(), [first, second]))
    return found


def _column(low: Lowering, terms: Terms) -> Index:
    taken = {*low.system.arrays, *map(str, low.system.sizes), *map(str, terms.ranges)}
    return Index(next(name for name in BLOCK_NAMES if name not in taken))


def put_together(low: Lowering, terms: Terms, part: Part, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    """Add up the blocks, then multiply by what does not depend on the block."""
    if not terms.overlaps:
        return part
    extent = {x: (hi - lo).expand() for x, (lo, hi) in terms.ranges.items()}
    digits = [o for o in terms.overlaps if _exact(o, terms, ranges)]
    for overlap in digits:
        part = _joined(low, overlap, part, extent)
    others = [o for o in terms.overlaps if o not in digits]
    if others:
        part = _added(low, others, terms, part, ranges, extent)
    return low.mul([part, *(low.lower(factor, ranges, wanted) for factor in terms.after)], wanted)


def _exact(overlap: Overlap, terms: Terms, ranges: Ranges) -> bool:
    """Whether the blocks lie side by side and fill the range of the free letter."""
    row, column = terms.ranges[overlap.row], terms.ranges[overlap.column]
    lo, hi = ranges[overlap.free]
    start = overlap.step * row[0] + overlap.offset
    stop = start + overlap.step * (row[1] - row[0])
    return column[1] == overlap.step and (start - lo).expand() == 0 and (stop - hi).expand() == 0


def _with(low: Lowering, part: Part, order: Sequence[Index], extent: dict[Index, Expr]) -> Part:
    """A part with all the letters in `order`, those that it lacks repeated."""
    node = low.align(part, order)
    return Part(low.graph.broadcast(node, [extent[x] for x in order]), tuple(order))


def _joined(low: Lowering, overlap: Overlap, part: Part, extent: dict[Index, Expr]) -> Part:
    pair = (overlap.row, overlap.column)
    start = next((k for k, x in enumerate(part.letters) if x in pair), 0)
    rest = [x for x in part.letters if x not in pair]
    part = _with(low, part, [*rest[:start], *pair, *rest[start:]], extent)
    sizes = list(part.node.shape)
    sizes[start : start + 2] = [(sizes[start] * sizes[start + 1]).expand()]
    extent[overlap.free] = sizes[start]
    return Part(low.graph.reshape(part.node, sizes), (*rest[:start], overlap.free, *rest[start:]))


def _added(
    low: Lowering, overlaps: Sequence[Overlap], terms: Terms, part: Part, ranges: Ranges, extent: dict[Index, Expr]
) -> Part:
    rows = {overlap.row: overlap for overlap in overlaps}
    needed = [x for overlap in overlaps for x in (overlap.column, overlap.row)]
    values = _with(low, part, [*(x for x in needed if x not in part.letters), *part.letters], extent)
    columns = {overlap.column: values.letters.index(overlap.column) for overlap in overlaps}
    rest = [x for x in values.letters if x not in columns]
    shape: list[Expr] = []
    steps: list[tuple[Index, Expr, Expr] | None] = []
    crop: list[Cut | tuple[Expr, Expr, Expr, Expr]] = []
    for letter in rest:
        if letter not in rows:
            shape.append(extent[letter])
            steps.append(None)
            crop.append(Cut(S.Zero, extent[letter]))
            continue
        overlap = rows[letter]
        length = (overlap.step * (extent[letter] - 1) + extent[overlap.column]).expand()
        lo, hi = ranges[overlap.free]
        first = (overlap.step * terms.ranges[letter][0] + overlap.offset).expand()
        shape.append(length)
        steps.append((overlap.column, extent[letter], overlap.step))
        crop.append((first, length, lo, hi))
    node = low.graph.make("overlap", [low.graph.number(values.node)], (tuple(columns.items()), tuple(steps)), shape)
    node = _cropped(low, node, crop)
    return Part(node, tuple(rows[x].free if x in rows else x for x in rest))


def _cropped(low: Lowering, node: Node, crop: Sequence[Cut | tuple[Expr, Expr, Expr, Expr]]) -> Node:
    """The places inside the range of the free letters; zeros where the blocks do not reach."""
    cuts: list[Place] = []
    places: list[Place] = []
    shape = []
    for item in crop:
        if isinstance(item, Cut):
            cuts.append(item)
            places.append(item)
            shape.append(item.count)
            continue
        first, length, lo, hi = item
        before = S.Zero if nonnegative(first - lo) else (lo - first).expand()  # entries that are cut off
        behind = S.Zero if nonnegative(hi - first - length) else (first + length - hi).expand()
        count = (length - before - behind).expand()
        cuts.append(Cut(before, count))
        places.append(Cut(S.Zero if before != 0 else (first - lo).expand(), count))
        shape.append((hi - lo).expand())
    return low.graph.put(low.graph.index(node, cuts), places, shape)

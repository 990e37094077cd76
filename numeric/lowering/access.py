"""Accesses as views: slices, windows, diagonals and lookups.

    X[i, r]       X                     v[t+1], v[2*t]    v[1:], v[::2]
    X[0, r]       X[0]                  v[t+k]            sliding_window_view(v, K)
    X[i, i]       X.diagonal()          E[w[t], k]        E[w]

An index that leaves the array where a condition forbids it reads a zero (windows) or some other entry (lookups).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Expr, S

from gradproof.numeric.lowering.lower import Lowering, Part, Ranges, bounds, extreme, order_of, surely
from gradproof.numeric.lowering.nodes import Cut, Node, Place
from gradproof.symbolic.equations.expr import Access, Index, letters, nonnegative


@dataclass(frozen=True)
class Affine:
    """An index: whole multiples of letters and a constant."""

    slopes: tuple[tuple[Index, Expr], ...]
    constant: Expr

    @property
    def letters(self) -> tuple[Index, ...]:
        return tuple(letter for letter, _ in self.slopes)


def affine(index: Expr, ranges: Ranges) -> Affine | None:
    """An index as a sum of multiples of letters, or None if it is not one (a lookup).

    >>> t = Index("t")
    >>> affine(2 * t + 1, {t: (S.Zero, S.One)})
    Affine(slopes=((t, 2),), constant=1)
    """
    index = index.expand()
    if index.atoms(Access):
        return None
    inside = sorted(letters(index) & ranges.keys(), key=str)
    slopes = tuple((letter, index.coeff(letter)) for letter in inside)
    constant = (index - sum((slope * letter for letter, slope in slopes), S.Zero)).expand()
    if any(sign(slope) == 0 for _, slope in slopes) or letters(constant) & ranges.keys():
        return None
    return Affine(slopes, constant)


def sign(slope: Expr) -> int:
    """1 or −1; 0 where it is not known."""
    return 1 if nonnegative(slope - 1) else -1 if nonnegative(-slope - 1) else 0


def lower_access(low: Lowering, access: Access, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    array = low.system.arrays[access.name]
    if low.loop is not None and (local := low.loop.local(access)) is not None:
        node, indices, first = local
    else:
        node, indices = low.value(access.name), access.indices
        first = [array.first(axis) for axis in range(array.rank)]
    indices = [(index - start).expand() for index, start in zip(indices, first, strict=True)]
    plans = [affine(index, ranges) for index in indices]
    kinds = _kinds(plans, indices, node.shape, ranges)
    steps = [plan or Affine((), S.Zero) for plan in plans]
    node, labels = _cut(low, node, steps, kinds, ranges)
    for axis, kind in enumerate(kinds):
        if kind == "digits":
            node, labels = _split(low, node, labels, axis, steps[axis], ranges)
    for axis, kind in enumerate(kinds):
        if kind == "window":
            node, labels = _window(low, node, labels, axis, steps[axis], ranges, wanted)
    node, labels = _diagonals(low, node, labels)
    looked_up = {k: indices[k] for k, kind in enumerate(kinds) if kind == "lookup"}
    node, labels = _lookup(low, node, labels, looked_up, ranges, wanted)
    return Part(node, tuple(labels))  # type: ignore[arg-type]


def _kinds(plans: Sequence[Affine | None], indices: Sequence[Expr], sizes: Sequence[Expr], ranges: Ranges) -> list[str]:
    """How each axis is read: at one place, cut, as windows, along a diagonal, or looked up."""
    used = Counter(letter for plan in plans if plan for letter in plan.letters)
    kinds = []
    for plan, size in zip(plans, sizes, strict=True):
        if plan is None:
            kinds.append("lookup")
        elif not plan.slopes:
            kinds.append("at")
        elif len(plan.slopes) == 1:
            same = [other for other in plans if other and other.slopes == plan.slopes]
            kinds.append("cut" if used[plan.letters[0]] == len(same) and len(same) <= 2 else "lookup")
            if plan.slopes[0][1] not in (1, -1) and leaves(plan, size, ranges):
                kinds[-1] = "lookup"
        else:
            alone = len(plan.slopes) == 2 and all(used[letter] == 1 for letter in plan.letters)
            kinds.append("lookup" if not alone else "digits" if digits(plan, ranges) else "window")
    shared: set[Index] = set()
    while True:  # an axis that shares a letter with a lookup is looked up too
        for index, kind in zip(indices, kinds, strict=True):
            if kind == "lookup":
                shared |= letters(index) & ranges.keys()
        joined = [k for k, kind in enumerate(kinds) if kind not in ("lookup", "at") and letters(indices[k]) & shared]
        if not joined:
            return kinds
        for k in joined:
            kinds[k] = "lookup"


Labels = list[object]  # for each axis its letter, or the number of the axis of the array


def _cut(
    low: Lowering, node: Node, plans: Sequence[Affine], kinds: Sequence[str], ranges: Ranges
) -> tuple[Node, Labels]:
    places: list[Place] = []
    labels: Labels = []
    turned, padded = [], []
    for axis, (plan, kind) in enumerate(zip(plans, kinds, strict=True)):
        if kind == "at":
            places.append(plan.constant)
        elif kind == "cut":
            ((letter, slope),) = plan.slopes
            if leaves(plan, node.shape[axis], ranges):
                padded.append((axis, span(plan, node.shape[axis], ranges)))
            lo, hi = ranges[letter]
            start = slope * (lo if sign(slope) > 0 else hi - 1) + plan.constant
            places.append(Cut(start.expand(), (hi - lo).expand(), slope * sign(slope)))
            if sign(slope) < 0:
                turned.append(len(labels))
            labels.append(letter)
        else:
            places.append(Cut(S.Zero, node.shape[axis]))
            labels.append(axis)
    for axis, stretch in padded:  # a condition forbids the places outside
        node, places[axis] = _padded_axis(low, node, axis, stretch)
    node = low.graph.index(node, places)
    for axis in turned:
        node = low.graph.flip(node, axis)
    return node, labels


def _padded_axis(low: Lowering, node: Node, axis: int, stretch: Span) -> tuple[Node, Cut]:
    """The node with zeros before and behind an axis, and the stretch of it that is read."""
    whole = [Cut(S.Zero, length) for length in node.shape]
    start = S.Zero if stretch.before != 0 else stretch.first
    stop = node.shape[axis] if stretch.behind != 0 else stretch.last + 1
    inner = Cut(start, (stop - start).expand())
    node = low.graph.index(node, [*whole[:axis], inner, *whole[axis + 1 :]])
    total = (stretch.last - stretch.first + 1).expand()
    shape = [*node.shape[:axis], total, *node.shape[axis + 1 :]]
    node = low.graph.put(node, [*whole[:axis], Cut(stretch.before, inner.count), *whole[axis + 1 :]], shape)
    return node, Cut(S.Zero, total)


@dataclass(frozen=True)
class Span:
    """The stretch of an axis that an affine index runs over, and the zeros needed before and behind the array."""

    first: Expr
    last: Expr
    before: Expr
    behind: Expr


def span(plan: Affine, size: Expr, ranges: Ranges) -> Span:
    index = sum((slope * letter for letter, slope in plan.slopes), plan.constant)
    first, last = extreme(index, ranges, -1), extreme(index, ranges, 1)
    before = S.Zero if surely(first) else -first
    behind = S.Zero if surely(size - 1 - last) else (last - size + 1).expand()
    return Span(first, last, before, behind)


def digits(plan: Affine, ranges: Ranges) -> tuple[Index, Index] | None:
    """The letters x, y of an index p·x + y + c where y runs through all numbers below p."""
    for (high, base), (digit, one) in (plan.slopes, plan.slopes[::-1]):
        if one == 1 and sign(base) == 1 and (ranges[digit][1] - ranges[digit][0] - base).expand() == 0:
            return high, digit
    return None


def _split(low: Lowering, node: Node, labels: Labels, axis: int, plan: Affine, ranges: Ranges) -> tuple[Node, Labels]:
    """x[p i + k]: the axis as two."""
    high, digit = digits(plan, ranges) or plan.letters
    position = labels.index(axis)
    counts = [(ranges[letter][1] - ranges[letter][0]).expand() for letter in (high, digit)]
    stretch = span(plan, node.shape[position], ranges)
    places: list[Place] = [Cut(S.Zero, length) for length in node.shape]
    places[position] = Cut(stretch.first, (counts[0] * counts[1]).expand())
    node = low.graph.index(node, places)
    shape = [*node.shape[:position], *counts, *node.shape[position + 1 :]]
    return low.graph.reshape(node, shape), [*labels[:position], high, digit, *labels[position + 1 :]]


def leaves(plan: Affine, size: Expr, ranges: Ranges) -> bool:
    """Whether an index may leave its axis."""
    stretch = span(plan, size, ranges)
    return stretch.before != 0 or stretch.behind != 0


def padded_bounds(low: Lowering, access: Access, ranges: Ranges) -> set[Expr]:
    """The expressions that are at least 0 inside the array, for the windows of an access that need padding."""
    array = low.system.arrays[access.name]
    indices = [(index - array.first(axis)).expand() for axis, index in enumerate(access.indices)]
    plans = [affine(index, ranges) for index in indices]
    found: set[Expr] = set()
    for index, plan, kind, size in zip(
        indices, plans, _kinds(plans, indices, array.shape, ranges), array.shape, strict=True
    ):
        if kind == "window" and plan is not None:
            stretch = span(plan, size, ranges)
            found |= {index} if stretch.before != 0 else set()
            found |= {(size - 1 - index).expand()} if stretch.behind != 0 else set()
    return found


def _window(
    low: Lowering, node: Node, labels: Labels, axis: int, plan: Affine, ranges: Ranges, wanted: Sequence[Index]
) -> tuple[Node, Labels]:
    """x[a p + b q + c]: windows of the stretch that is read, thinned out by the slopes."""
    slopes = dict(plan.slopes)
    row, column = sorted(slopes, key=lambda x: (x not in wanted, wanted.index(x) if x in wanted else 0))
    counts = {letter: (ranges[letter][1] - ranges[letter][0]).expand() for letter in slopes}
    position = labels.index(axis)
    stretch = span(plan, node.shape[position], ranges)
    node, _ = _padded_axis(low, node, position, stretch)
    node = low.graph.windows(
        node, position, (slopes[column] * sign(slopes[column]) * (counts[column] - 1) + 1).expand()
    )
    labels = [*labels, column]
    labels[position] = row
    thin = [Cut(S.Zero, length) for length in node.shape]
    thin[position] = Cut(S.Zero, counts[row], slopes[row] * sign(slopes[row]))
    thin[-1] = Cut(S.Zero, counts[column], slopes[column] * sign(slopes[column]))
    node = low.graph.index(node, thin)
    for place, letter in ((position, row), (len(labels) - 1, column)):
        if sign(slopes[letter]) < 0:
            node = low.graph.flip(node, place)
    return node, labels


def _diagonals(low: Lowering, node: Node, labels: Labels) -> tuple[Node, Labels]:
    while repeated := [label for label, count in Counter(labels).items() if count > 1]:
        first = labels.index(repeated[0])
        second = labels.index(repeated[0], first + 1)
        node = low.graph.diagonal(node, first, second)
        labels = [label for k, label in enumerate(labels) if k not in (first, second)] + [repeated[0]]
    return node, labels


def _lookup(
    low: Lowering,
    node: Node,
    labels: Labels,
    indices: dict[int, Expr],
    ranges: Ranges,
    wanted: Sequence[Index],
) -> tuple[Node, Labels]:
    """NumPy's indexing by arrays of numbers, on the axes that need it; the result is laid out as the reader wants."""
    axes = [labels.index(axis) for axis in indices]
    parts = [placed(low, index, node.shape[k], ranges) for k, index in zip(axes, indices.values(), strict=True)]
    single = {k: part for k, part in zip(axes, parts, strict=True) if not part.letters}
    if single:  # one entry of an axis, which is read first: libraries differ in where it would put the others' axes
        node = low.graph.take(node, list(single), [part.node for part in single.values()])
        labels = [label for k, label in enumerate(labels) if k not in single]
        indices = {axis: index for (axis, index), k in zip(indices.items(), axes, strict=True) if k not in single}
        axes = [labels.index(axis) for axis in indices]
        parts = [part for part in parts if part.letters]
    if not indices:
        return node, labels
    order = order_of([part.letters for part in parts], wanted)
    aligned = [low.align(part, order) for part in parts]
    taken = low.graph.take(node, axes, aligned)
    rest = [label for k, label in enumerate(labels) if k not in axes]
    start = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    return taken, [*rest[:start], *order, *rest[start:]]


def placed(low: Lowering, index: Expr, size: Expr, ranges: Ranges) -> Part:
    """An index kept inside the array; what is read outside is masked by the condition that goes with it."""
    part, plan = low.lower(index, ranges), affine(index, ranges)
    inside = not bounds(low, index, size, ranges) if plan is None else not leaves(plan, size, ranges)
    if inside:
        return part
    return Part(low.graph.make("clip", [part.node], ((size - 1).expand(),), part.node.shape, "i"), part.letters)

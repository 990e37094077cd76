"""Sums of products as matrix products.

Each letter of two operands is one of four kinds: summed (in both, not needed any more), batch (in both, kept), or kept
in one of them. One summed letter without batch is `A @ B` on two axes; groups of letters that lie together are reshaped
to two axes; batch letters lead and are `@`'s broadcast axes; what is left over is `tensordot` or `einsum`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from sympy import Expr

from gradproof.numeric.lowering.gram import halves, weighted
from gradproof.numeric.lowering.lower import Lowering, Part, reduced
from gradproof.numeric.lowering.nodes import Node, product
from gradproof.symbolic.equations.expr import Index

TYPICAL = 64  # the value assumed for an unknown size when an order of contraction is chosen


def contract(low: Lowering, parts: Sequence[Part], over: Iterable[Index], wanted: Sequence[Index]) -> Part:
    """The sum over some letters of the product of arrays."""
    over = frozenset(over)
    counts = Counter(letter for part in parts for letter in part.letters)
    parts = [reduced(low, "sum", part, [x for x in part.letters if x in over and counts[x] == 1]) for part in parts]
    if elementwise_only(parts, over):
        return _sum_of_product(low, parts, over, wanted)
    parts = halves(low, parts, over, wanted) or weighted(low, parts, over) or _merged(low, parts)
    while len(parts) > 2 and (made := known_pair(low, parts, over)) is not None:
        parts = combined(low, parts, made, over, wanted)
    for places in contraction_order(parts, over):
        parts = combined(low, parts, places, over, wanted)
    return parts[0]


def combined(
    low: Lowering, parts: Sequence[Part], places: tuple[int, int], over: frozenset[Index], wanted: Sequence[Index]
) -> list[Part]:
    """The operands with the product of two of them in their place, at the end."""
    first, second = (parts[place] for place in places)
    rest = [part for k, part in enumerate(parts) if k not in places]
    return [*rest, pair(low, first, second, needed_of(parts, places, over), wanted)]


def needed_of(parts: Sequence[Part], places: tuple[int, int], over: frozenset[Index]) -> set[Index]:
    """The letters of two operands that are read after their product, by others or in the result."""
    rest = {letter for k, part in enumerate(parts) if k not in places for letter in part.letters}
    return rest | {letter for part in parts for letter in part.letters if letter not in over}


def known_pair(low: Lowering, parts: Sequence[Part], over: frozenset[Index]) -> tuple[int, int] | None:
    """Two operands whose product is there already, if it costs nothing to begin with them: X W of X W Wᵀ."""
    best = None
    for places in combinations(range(len(parts)), 2):
        first, second = (parts[place] for place in places)
        needed = needed_of(parts, places, over)
        own = {*first.letters, *second.letters}
        summed = [x for x in first.letters if x in second.letters and x not in needed]
        alone = own - needed - set(summed)
        key = ("contract", frozenset((id(first.node), id(second.node))), _pattern(first, second, summed))
        if alone or key not in low._shared:
            continue
        best = _cost(parts, over) if best is None else best
        left = [x for x in (*first.letters, *second.letters) if x in needed]
        sizes = {x: size for part in (first, second) for x, size in zip(part.letters, part.node.shape, strict=True)}
        whole = Node("product", shape=tuple(sizes[x] for x in dict.fromkeys(left)))
        rest = [part for k, part in enumerate(parts) if k not in places]
        made = Part(whole, tuple(dict.fromkeys(left)))
        if _cost([first, second], frozenset(own - needed)) + _cost([*rest, made], over) <= best:
            return places
    return None


def _cost(parts: Sequence[Part], over: frozenset[Index]) -> Any:
    """The operations of the cheapest order, for typical sizes."""
    return _path(parts, over)[1].opt_cost


def _merged(low: Lowering, parts: Sequence[Part]) -> list[Part]:
    """Operands with the same letters multiplied, where more than two are there."""
    groups: dict[frozenset[Index], list[Part]] = {}
    for part in parts:
        groups.setdefault(frozenset(part.letters), []).append(part)
    return list(parts) if len(groups) < 2 else [low.mul(members, []) for members in groups.values()]


def elementwise_only(parts: Sequence[Part], over: frozenset[Index]) -> bool:
    """Whether no two operands gain by a matrix product: the largest has all letters."""
    union = {letter for part in parts for letter in part.letters}
    full = [part for part in parts if set(part.letters) == union]
    if len(parts) < 2 or not full:
        return len(parts) < 2
    kept = union - over
    if not kept:  # everything is summed: a scalar product of two arrays
        return len(parts) != 2 and len(full) == len(parts)
    return all(kept <= set(part.letters) for part in parts)


def _sum_of_product(low: Lowering, parts: Sequence[Part], over: frozenset[Index], wanted: Sequence[Index]) -> Part:
    part = low.mul(parts, [] if len(parts) > 1 else wanted)
    return reduced(low, "sum", part, [letter for letter in part.letters if letter in over])


def contraction_order(parts: Sequence[Part], over: frozenset[Index]) -> list[tuple[int, int]]:
    """Which operands to combine, pair by pair; a result goes to the end of the list."""
    if len(parts) < 3:
        return [(0, 1)] if len(parts) == 2 else []
    return [(min(pair), max(pair)) for pair in _path(parts, over)[0]]


def _path(parts: Sequence[Part], over: frozenset[Index]) -> tuple[Any, Any]:
    """The path of opt_einsum, and what it says of it."""
    import opt_einsum

    known = list(dict.fromkeys(letter for part in parts for letter in part.letters))
    symbol = {letter: opt_einsum.get_symbol(k) for k, letter in enumerate(known)}
    inputs = ",".join("".join(symbol[x] for x in part.letters) for part in parts)
    output = "".join(symbol[x] for x in known if x not in over)
    shapes = [tuple(map(typical, part.node.shape)) for part in parts]
    return opt_einsum.contract_path(f"{inputs}->{output}", *shapes, shapes=True, optimize="auto")


def typical(size: Expr) -> int:
    """A number for a size, where an order has to be chosen without knowing it."""
    value = size.xreplace({symbol: TYPICAL for symbol in size.free_symbols})
    return max(int(value), 1)


def pair(low: Lowering, a: Part, b: Part, needed: set[Index], wanted: Sequence[Index]) -> Part:
    """The product of two arrays, summed over the letters that only they have."""
    a = reduced(low, "sum", a, [x for x in a.letters if x not in b.letters and x not in needed])
    b = reduced(low, "sum", b, [x for x in b.letters if x not in a.letters and x not in needed])
    both = [letter for letter in a.letters if letter in b.letters]
    summed = [letter for letter in both if letter not in needed]
    batch = [letter for letter in both if letter in needed]
    if not summed:
        return low.mul([a, b], wanted)
    key = ("contract", frozenset((id(a.node), id(b.node))), _pattern(a, b, summed))
    return _shared(low, key, a, b, batch, summed, wanted)


def _pattern(a: Part, b: Part, summed: Sequence[Index]) -> frozenset[tuple[object, ...]]:
    """Which axes of the two operands belong together, and which are summed."""
    return frozenset(
        (
            frozenset((id(part.node), part.letters.index(letter)) for part in (a, b) if letter in part.letters),
            letter in summed,
        )
        for letter in (*a.letters, *b.letters)
    )


def _shared(
    low: Lowering,
    key: tuple[object, ...],
    a: Part,
    b: Part,
    batch: Sequence[Index],
    summed: Sequence[Index],
    wanted: Sequence[Index],
) -> Part:
    """Make a product once; `origin` says which axis of which operand a letter of the result is."""
    if a.node is b.node:
        return _product(low, a, b, batch, summed, wanted)
    origin = {
        letter: frozenset((id(part.node), part.letters.index(letter)) for part in (a, b) if letter in part.letters)
        for letter in (*a.letters, *b.letters)
    }
    if key not in low._shared:
        made = _product(low, a, b, batch, summed, wanted)
        low._shared[key] = (made.node, tuple(origin[letter] for letter in made.letters))
    node, places = low._shared[key]
    back = {place: letter for letter, place in origin.items()}
    return Part(node, tuple(back[place] for place in places))


def _product(
    low: Lowering, a: Part, b: Part, batch: Sequence[Index], summed: Sequence[Index], wanted: Sequence[Index]
) -> Part:
    rows = [letter for letter in a.letters if letter not in b.letters]
    columns = [letter for letter in b.letters if letter not in a.letters]
    if _swap(a, b, rows, columns, summed, wanted):
        a, b, rows, columns = b, a, columns, rows
    if batch:
        return _batched(low, a, b, batch, rows, columns, summed, wanted)
    if not rows and not columns:
        if len(summed) == 1:
            return Part(low.graph.matmul(a.node, b.node))
        return Part(low.graph.dot(a.node, low.align(b, a.letters)))
    if len(summed) == 1 and len(rows) <= 1 and len(columns) <= 1:
        left, right = low.align(a, [*rows, *summed]), low.align(b, [*summed, *columns])
        return Part(low.graph.matmul(left, right), (*rows, *columns))
    return _flattened(low, a, b, rows, columns, summed)


def _swap(
    a: Part, b: Part, rows: Sequence[Index], columns: Sequence[Index], summed: Sequence[Index], wanted: Sequence[Index]
) -> bool:
    """Whether the second operand should stand first: a matrix before a vector, rows of the result before columns."""
    if not rows or not columns:
        return bool(columns)
    place = {letter: k for k, letter in enumerate(wanted)}
    if rows[0] in place and columns[0] in place:
        return place[columns[0]] < place[rows[0]]
    turned = [part.letters[-1] not in summed for part in (a, b)]  # otherwise: with fewer transposes
    return turned == [True, False]


def _flattened(
    low: Lowering, a: Part, b: Part, rows: Sequence[Index], columns: Sequence[Index], summed: Sequence[Index]
) -> Part:
    """Several letters in a group: reshape to two axes where the group lies together, else tensordot."""
    graph = low.graph
    order = [letter for letter in a.letters if letter in summed]
    other = [letter for letter in b.letters if letter in summed]
    if order != other and _matrix(low, a, rows, order) is not None:  # one operand is laid out as the other
        turned = (*order, *columns)
        b, other = Part(graph.view(b.node, _axes(b, turned)), turned), order
    left, right = _matrix(low, a, rows, order), _matrix(low, b, order, columns)
    if left is None or right is None or order != other:
        axes_a = [a.letters.index(letter) for letter in summed]
        axes_b = [b.letters.index(letter) for letter in summed]
        return Part(graph.tensordot(a.node, b.node, axes_a, axes_b), (*rows, *columns))
    made = graph.matmul(left, right)
    shape = [a.node.shape[a.letters.index(x)] for x in rows] + [b.node.shape[b.letters.index(x)] for x in columns]
    return Part(graph.reshape(made, shape), (*rows, *columns))


def _matrix(low: Lowering, part: Part, first: Sequence[Index], second: Sequence[Index]):  # type: ignore[no-untyped-def]
    """An array as a matrix with two groups of letters as its axes, if each group lies together."""
    size = {letter: part.node.shape[k] for k, letter in enumerate(part.letters)}
    for groups, turned in (((first, second), False), ((second, first), True)):
        if list(part.letters) == [*groups[0], *groups[1]]:
            shape = [product([size[x] for x in group]) for group in groups if group]
            node = low.graph.reshape(part.node, shape)
            return low.graph.view(node, (1, 0)) if turned and len(shape) == 2 else node
    return None


def _batched(
    low: Lowering,
    a: Part,
    b: Part,
    batch: Sequence[Index],
    rows: Sequence[Index],
    columns: Sequence[Index],
    summed: Sequence[Index],
    wanted: Sequence[Index],
) -> Part:
    """Batch letters lead; more than one letter of rows or columns become batch letters of their own."""
    if not rows and not columns:
        return _sum_of_product(low, [a, b], frozenset(summed), wanted)
    if len(summed) > 1:
        return _einsum(low, a, b, (*batch, *rows, *columns))
    ordered = sorted(batch, key=lambda x: wanted.index(x) if x in wanted else 99)
    lead = [*ordered, *rows[:-1], *columns[:-1]]
    row, column = rows[-1:], columns[-1:]
    left = low.graph.view(a.node, _axes(a, [*lead, row[0] if row else None, *summed]))
    right = low.graph.view(b.node, _axes(b, [*lead, *summed, column[0] if column else None]))
    node = low.graph.matmul(left, right)
    if not row or not column:
        keep = [k for k in range(node.rank) if k != node.rank - (2 if not row else 1)]
        node = low.graph.make("squeeze", [node], (node.rank - (2 if not row else 1),), [node.shape[k] for k in keep])
    return Part(node, (*lead, *row, *column))


def _axes(part: Part, order: Sequence[Index | None]) -> list[int | None]:
    return [part.letters.index(x) if x in part.letters else None for x in order]


def _einsum(low: Lowering, a: Part, b: Part, result: Sequence[Index]) -> Part:
    known = list(dict.fromkeys((*a.letters, *b.letters)))
    symbol = {letter: chr(ord("a") + k) for k, letter in enumerate(known)}
    size = {letter: part.node.shape[k] for part in (a, b) for k, letter in enumerate(part.letters)}
    text = ",".join("".join(symbol[x] for x in part.letters) for part in (a, b))
    text += "->" + "".join(symbol[x] for x in result)
    return Part(low.graph.einsum(text, [a.node, b.node], [size[x] for x in result]), tuple(result))

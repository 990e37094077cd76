"""Indexing for the reference forward: how far an index runs, and what `A[0, i, 1:]` picks."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from gradproof.symbolic.errors import RuleError, ShapeError
from gradproof.symbolic.language.syntax import IndexRange, Reduction, items, reduction

if TYPE_CHECKING:
    from gradproof.numeric.reference.evaluator import Evaluator

Bounds = tuple[int, int]  # the smallest and the largest value, both included


@dataclass(frozen=True)
class Index:
    """An index in scope: its range, and its value as an integer tensor without axes (all values at once under vmap)."""

    bounds: Bounds
    value: Tensor


class Visit(NamedTuple):
    """A node, the reductions around it from the outside in, and whether a `where` guards it."""

    node: ast.expr
    inside: tuple[Reduction, ...]
    guarded: bool

    @property
    def hidden(self) -> frozenset[str]:
        """The indices that the reductions around it bind."""
        return frozenset(r.name for found in self.inside for r in found.ranges)


def walk(node: ast.expr, inside: tuple[Reduction, ...] = (), guarded: bool = False) -> Iterator[Visit]:
    """All nodes in reading order, except the names of functions.

    >>> from gradproof.symbolic.language.syntax import parse
    >>> visits = walk(parse("z[i] + sum[j](w[j])").statements[0].value)
    >>> [(v.node.id, sorted(v.hidden)) for v in visits if isinstance(v.node, ast.Name)]
    [('z', []), ('i', []), ('w', ['j']), ('j', ['j'])]
    """
    yield Visit(node, inside, guarded)
    if found := reduction(node):
        for bound in (bound for r in found.ranges for bound in (r.lower, r.upper) if bound):
            yield from walk(bound, inside, guarded)
        yield from walk(found.body, (*inside, found), guarded)
    elif isinstance(node, ast.Call):
        branches = isinstance(node.func, ast.Name) and node.func.id == "where"
        for k, argument in enumerate([*node.args, *(keyword.value for keyword in node.keywords)]):
            yield from walk(argument, inside, guarded or (branches and k > 0))
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from walk(child, inside, guarded)


# Ranges


def bounds(ev: Evaluator, node: ast.expr, ranges: Mapping[str, Bounds]) -> Bounds | None:
    """The smallest and largest value of an integer expression; None where that cannot be told beforehand."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value, value
        case ast.Name() if node.id in ranges:
            return ranges[node.id]
        case ast.Name() if node.id in ev.sizes and node.id not in ev.names:
            return ev.sizes[node.id], ev.sizes[node.id]
        case ast.Name() | ast.Subscript(value=ast.Name()):
            return _data_bounds(ev, node if isinstance(node, ast.Name) else node.value)
        case ast.UnaryOp(op=op, operand=operand):
            inner = bounds(ev, operand, ranges)
            return inner if inner is None or isinstance(op, ast.UAdd) else (-inner[1], -inner[0])
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            left, right = bounds(ev, node.left, ranges), bounds(ev, node.right, ranges)
            return _combined(node.op, left, right) if left and right else None
    return None


def _combined(op: ast.operator, left: Bounds, right: Bounds) -> Bounds:
    if isinstance(op, ast.Add):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(op, ast.Sub):
        return left[0] - right[1], left[1] - right[0]
    products = [a * b for a in left for b in right]
    return min(products), max(products)


def _data_bounds(ev: Evaluator, node: ast.expr) -> Bounds | None:
    """Of an integer input, all entries; what a statement defines may depend on the indices at hand."""
    data = ev.inputs.get(node.id) if isinstance(node, ast.Name) else None
    if data is None or data.is_floating_point() or data.numel() == 0:
        return None
    return int(data.min()), int(data.max())


@dataclass(frozen=True)
class Reading:
    """An item between index brackets that mentions an index, the size of its axis, and the reductions around it."""

    item: ast.expr
    size: int
    names: frozenset[str]
    visit: Visit

    def is_plain(self, name: str) -> bool:
        return isinstance(self.item, ast.Name) and self.item.id == name


def _readings(ev: Evaluator, names: Iterable[str], body: ast.expr) -> list[Reading]:
    wanted = frozenset(names)
    found = []
    for visit in walk(body) if wanted else ():
        node = visit.node
        if not isinstance(node, ast.Subscript) or (isinstance(node.value, ast.Name) and node.value.id in ev.pending):
            continue  # an array without a shape yet tells nothing
        axes = [item for item in items(node.slice) if not _is_new_axis(item)]
        for axis, item in enumerate(axes):
            mentioned = frozenset(_direct_names(item)) - visit.hidden & wanted
            if mentioned & wanted:
                shape = ev.shape(node.value, visit.hidden | wanted)
                if axis >= len(shape):
                    ev.fail(f"{len(axes)} indices for an array of shape {shape}", node, ShapeError)
                found.append(Reading(item, shape[axis], mentioned, visit))
    return found


def _is_new_axis(item: ast.expr) -> bool:
    return isinstance(item, ast.Constant) and item.value is None


def _direct_names(item: ast.expr) -> set[str]:
    """The names in an item, less those inside a lookup `w[t]`, whose value is data."""
    if isinstance(item, ast.Name):
        return {item.id}
    if not isinstance(item, ast.UnaryOp | ast.BinOp):
        return set()
    sides = [item.operand] if isinstance(item, ast.UnaryOp) else [item.left, item.right]
    return {name for side in sides for name in _direct_names(side)}


def find_ranges(ev: Evaluator, wanted: Sequence[IndexRange], body: ast.expr) -> dict[str, Bounds]:
    """How far each index runs: as written, or over the axis that it reads alone, or as far as all readings allow."""
    readings = _readings(ev, (r.name for r in wanted if r.upper is None), body)
    known = _direct_ranges(ev, wanted, readings)
    waiting = [r for r in wanted if r.name not in known]
    while waiting:
        solved = {r.name: found for r in waiting if (found := _solved(ev, r, readings, known))}
        if not solved:
            name = waiting[0].name
            ev.fail(f"nothing tells how far the index {name} runs; write {name}=0:n", waiting[0].node)
        known |= solved
        waiting = [r for r in waiting if r.name not in known]
    return known


def _direct_ranges(ev: Evaluator, wanted: Sequence[IndexRange], readings: Sequence[Reading]) -> dict[str, Bounds]:
    """The ranges that are written, and those of indices that read an axis alone."""
    known: dict[str, Bounds] = {}
    for r in wanted:
        low = ev.integer(r.lower) if r.lower else 0
        plain = [reading for reading in readings if reading.is_plain(r.name)]
        if r.upper is not None:
            known[r.name] = low, ev.integer(r.upper) - 1
        elif plain := [reading for reading in plain if not reading.visit.guarded] or plain[:1]:
            for reading in plain:
                if reading.size != plain[0].size:
                    sizes = f"{plain[0].size} and {reading.size}"
                    ev.fail(f"the index {r.name} runs over axes of different sizes, {sizes}", reading.item, ShapeError)
            known[r.name] = low, plain[0].size - 1
    return known


def _inner_ranges(ev: Evaluator, reading: Reading, outer: Iterable[str]) -> dict[str, Bounds]:
    """The ranges of the indices that reductions around a reading bind, where they do not depend on outer ones."""
    known: dict[str, Bounds] = {}
    names = {*outer, *reading.visit.hidden}
    zero = Index((0, 0), ev.integers(0))
    with ev.having(scope={**ev.scope, **dict.fromkeys(names, zero)}):
        for found in reading.visit.inside:
            readings = _readings(ev, (r.name for r in found.ranges if r.upper is None), found.body)
            known |= _direct_ranges(ev, found.ranges, readings)
    return known


def _solved(ev: Evaluator, r: IndexRange, readings: list[Reading], known: Mapping[str, Bounds]) -> Bounds | None:
    """The values of an index for which all its readings, such as x[t+k], stay inside their axes."""
    lows, highs = [ev.integer(r.lower)] if r.lower else [], []
    own = [reading for reading in readings if r.name in reading.names]
    for reading in [reading for reading in own if not reading.visit.guarded] or own:
        ranges = {**ev.ranges(), **known, **_inner_ranges(ev, reading, {r.name, *known})}
        at = [bounds(ev, reading.item, {**ranges, r.name: (t, t)}) for t in (0, 1, 2)]
        if not (at[0] and at[1] and at[2]):
            continue
        slope = at[1][0] - at[0][0]
        if any(after[k] - before[k] != slope for before, after in ((at[0], at[1]), (at[1], at[2])) for k in (0, 1)):
            continue
        low, high = -at[0][0], reading.size - 1 - at[0][1]  # low <= slope·t <= high
        if slope < 0:
            slope, low, high = -slope, -high, -low
        if slope:
            lows += [] if r.lower else [-(-low // slope)]
            highs.append(high // slope)
    return (max(0, *lows) if not r.lower else max(lows), min(highs)) if highs else None


# Picking

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def subscript(ev: Evaluator, node: ast.Subscript) -> Tensor:
    """`A[0, i, 1:, None, w]` with NumPy's meaning; an index in scope counts as an integer."""
    value = ev.value(node.value)
    entries = list(items(node.slice))
    if (count := sum(not _is_new_axis(item) for item in entries)) > value.ndim:
        ev.fail(f"{count} indices for an array of shape {tuple(value.shape)}", node, ShapeError)
    places = [item if isinstance(item, ast.Slice) or _is_new_axis(item) else position(ev, item) for item in entries]
    if any(isinstance(p, Tensor) and p.ndim for p in places):
        return _pick_arrays(ev, value, places, entries, node)
    axis = 0
    for item, p in zip(entries, places, strict=True):
        if isinstance(p, ast.Slice):
            value = _sliced(ev, value, axis, p)
        elif isinstance(p, ast.expr):
            value = value.unsqueeze(axis)
        else:
            value = _selected(ev, value, axis, p, item)
            continue
        axis += 1
    return value


def position(ev: Evaluator, node: ast.expr) -> int | Tensor:
    """An item as an integer or an integer tensor."""
    match node:
        case ast.Name() if node.id in ev.scope:
            return ev.scope[node.id].value
        case ast.Name() if node.id not in ev.names and node.id in ev.sizes:
            return ev.sizes[node.id]
        case ast.Constant(value=int() as value):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            inner = position(ev, node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            left, right = position(ev, node.left), position(ev, node.right)
            return ev.torch(node, "this index", _ARITHMETIC[type(node.op)], left, right)
    found = ev.value(node)
    if found.dtype == torch.bool:
        ev.fail("a condition as an index has no fixed size; use where(condition, a, b)", node, RuleError)
    if found.is_floating_point():
        ev.fail(f"an index is an integer, and {ast.unparse(node)} is not", node)
    return found.long()


def _sliced(ev: Evaluator, value: Tensor, axis: int, item: ast.Slice) -> Tensor:
    parts = [None if part is None else ev.integer(part) for part in (item.lower, item.upper, item.step)]
    if parts[2] == 0:
        ev.fail("the step of a slice is not 0", item)
    chosen = range(value.shape[axis])[slice(*parts)]  # torch has no negative steps
    return torch.index_select(value, axis, torch.tensor(chosen, dtype=torch.long, device=value.device))


def _selected(ev: Evaluator, value: Tensor, axis: int, p: int | Tensor, item: ast.expr) -> Tensor:
    """One entry along an axis."""
    size = value.shape[axis]
    if ev.probing:
        return value.new_zeros([*value.shape[:axis], *value.shape[axis + 1 :]])
    p = _inside(ev, item, p, size)
    if isinstance(p, int):
        return value.select(axis, p)
    if not ev.guarded:
        return ev.torch(item, "this index", lambda v: torch.index_select(v, axis, p.reshape(1)).squeeze(axis), value)
    picked = torch.index_select(value, axis, p.clamp(0, size - 1).reshape(1)).squeeze(axis)
    nothing = torch.where(ev.guard, torch.nan, picked) if picked.is_floating_point() else picked
    return torch.where((p >= 0) & (p < size), picked, nothing)


def _inside(ev: Evaluator, item: ast.expr, p: int | Tensor, size: int) -> int | Tensor:
    """An index that is known to lie inside its axis; a negative number counts from the end."""
    if isinstance(p, int):
        if not -size <= p < size:
            ev.fail(f"the index {p} is outside an axis of size {size}", item, ShapeError)
        return p % size
    found = bounds(ev, item, ev.ranges())
    if found and not ev.guarded and (found[0] < 0 or found[1] >= size):
        message = f"the index {ast.unparse(item)} runs from {found[0]} to {found[1]}, outside an axis of size {size}"
        ev.fail(message, item, ShapeError)
    return p


def _pick_arrays(
    ev: Evaluator, value: Tensor, places: list[Any], entries: list[ast.expr], node: ast.Subscript
) -> Tensor:
    """Indexing with arrays of integers; integers beside them broadcast, as in NumPy."""
    key: list[Any] = []
    axis = 0
    for item, p in zip(entries, places, strict=True):
        if isinstance(p, ast.Slice):
            value = _sliced(ev, value, axis, p)
            key.append(slice(None))
        elif isinstance(p, ast.expr):
            key.append(None)
            continue
        else:
            p = torch.as_tensor(_inside(ev, item, p, value.shape[axis]), device=value.device)
            key.append(p if p.ndim else p.reshape(1))
        axis += 1
    return ev.torch(node, "this indexing", lambda x: x[tuple(key)], value)

"""Recurrences for the reference forward: arrays that are defined piece by piece and read themselves.

    h[0,k] = h0[k];  h[t+1,k] = tanh(sum[l](W[k,l]*h[t,l]) + x[t,k])

First all pieces are evaluated for all values of their indices, again and again, until nothing changes: an entry that
lies d steps from the start is right after d rounds. That needs no knowledge of which entry reads which, and finds every
entry's d. Then the entries are computed once more, in the order of their d, and torch records that for derivatives.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gradproof.numeric.reference.indexing import Bounds, bounds, find_ranges
from gradproof.symbolic.errors import ExpressionError, RuleError, ShapeError
from gradproof.symbolic.language.syntax import IndexRange, Statement

if TYPE_CHECKING:
    from gradproof.numeric.reference.evaluator import Evaluator


@dataclass(frozen=True)
class Part:
    """A statement of the recurrence, its indices with their ranges, and which entries it defines, axis by axis."""

    statement: Statement
    names: tuple[str, ...]
    ranges: dict[str, Bounds]
    entries: tuple[range, ...]
    fixed: tuple[bool, ...]  # axes where a number stands

    @property
    def name(self) -> str:
        return self.statement.name or ""


def run_recurrence(ev: Evaluator, statements: Sequence[Statement], pieced: frozenset[str]) -> None:
    """Evaluate statements of which some define an array in pieces; the arrays are in `ev.names` afterwards."""
    ev.pending |= pieced
    parts = []
    for statement in statements:
        if statement.name in pieced or _mentions(statement.value, ev.pending):
            parts.append(_part(ev, statement))
            if statement.name not in pieced:
                _allocate(ev, [parts[-1]])  # its shape is known now, its values wait for the others
        else:
            ev.statement(statement)
    for name in sorted(pieced):
        _allocate(ev, [part for part in parts if part.statement.name == name])
    ev.pending -= pieced
    with torch.no_grad():
        steps = _settle(ev, parts)
    for step in range(1, max(int(found.max()) for found in steps.values()) + 1):
        for part in parts:
            _compute(ev, part, steps[part.name] == step)


def _mentions(node: ast.expr, names: frozenset[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _part(ev: Evaluator, statement: Statement) -> Part:
    if statement.indices is None or statement.name is None:
        message = "a statement between the pieces of a recurrence that reads it has indices on the left: S[i] = …"
        ev.fail(message, statement.value, RuleError)
    places = statement.place or tuple(ast.Name(letter) for letter in statement.indices)
    letters = [_letter(ev, place, statement) for place in places]
    names = tuple(letter for letter in letters if letter)
    if len(set(names)) < len(names):
        ev.fail("each index stands once on the left", statement.value, RuleError)
    ranges = find_ranges(ev, [IndexRange(name, None, None, statement.value) for name in names], statement.value)
    entries = []
    for place in places:
        found = bounds(ev, place, ranges)
        if found is None or found[0] < 0:
            raise ExpressionError("the left side has an index below 0", ev.text, statement.start, statement.end)
        entries.append(range(found[0], found[1] + 1))
    return Part(statement, names, ranges, tuple(entries), tuple(not letter for letter in letters))


def _letter(ev: Evaluator, place: ast.expr, statement: Statement) -> str:
    """The index in t+1 or 2+t or t; none in a number or a size, as in h[T] = …"""
    if isinstance(place, ast.Name) and place.id not in ev.sizes:
        return place.id
    found = {part.id for part in ast.walk(place) if isinstance(part, ast.Name)} - ev.sizes.keys()
    letter = min(found, default="")
    at = [bounds(ev, place, {letter: (t, t)}) for t in (0, 1)]
    if len(found) > 1 or not (at[0] and at[1]) or at[1][0] - at[0][0] != len(found):
        message = "left of = an index is a number or a letter, shifted or not: h[0,k] = …; h[t+1,k] = …"
        raise ExpressionError(message, ev.text, statement.start, statement.end)
    return letter


def _allocate(ev: Evaluator, parts: Sequence[Part]) -> None:
    """An array of the shape that its pieces cover together, each entry once."""
    statement = parts[0].statement
    ranks = {len(part.entries) for part in parts}
    if len(ranks) > 1:
        raise ShapeError("the pieces have different numbers of indices", ev.text, statement.start, statement.end)
    shape = tuple(max(part.entries[axis].stop for part in parts) for axis in range(ranks.pop()))
    times = torch.zeros(shape, dtype=torch.long)
    for part in parts:
        times[_grid(part, times)] += 1
    if (times != 1).any():
        place = tuple((times != 1).nonzero()[0].tolist())
        what = "twice" if times[place] else "nowhere"
        message = f"the entry {place} of {parts[0].name} is defined {what}"
        raise ShapeError(message, ev.text, statement.start, statement.end)
    ev.names[parts[0].name] = torch.full(shape, torch.nan, dtype=ev.dtype, device=ev.device)


def _grid(part: Part, like: Tensor) -> tuple[Tensor, ...]:
    """Index arrays for the entries that a part defines; together they broadcast to all its axes."""
    rank = len(part.entries)
    return tuple(
        torch.tensor(list(entries), dtype=torch.long, device=like.device).reshape(
            [-1 if k == axis else 1 for k in range(rank)]
        )
        for axis, entries in enumerate(part.entries)
    )


def _compute(ev: Evaluator, part: Part, wanted: Tensor) -> None:
    """Evaluate a part for those of its entries that are wanted."""
    chosen = wanted[_grid(part, wanted)].nonzero(as_tuple=True)
    if not len(chosen[0]):
        return
    letters = [axis for axis, fixed in enumerate(part.fixed) if not fixed]
    starts = [part.ranges[name][0] for name in part.names]
    given = {name: chosen[axis] + low for name, axis, low in zip(part.names, letters, starts, strict=True)}
    values = ev.for_each(given, part.ranges, part.statement.value)
    if values.ndim != (1 if letters else 0):
        ev.fail(f"an entry of {part.name} is a number, not an array", part.statement.value, ShapeError)
    places = tuple(found + entries.start for found, entries in zip(chosen, part.entries, strict=True))
    ev.names[part.name] = ev.names[part.name].index_put(places, values)


def _settle(ev: Evaluator, parts: Sequence[Part]) -> dict[str, Tensor]:
    """Find all values, and how many steps from the start each lies.

    What is then not a number must be so from any other start too, else it depends on itself.
    """
    steps = _rounds(ev, parts)
    found = {name: ev.names[name] for name in steps}
    if any(value.isnan().any() for value in found.values()):
        ev.names |= {name: torch.zeros_like(value) for name, value in found.items()}
        if not _rounds(ev, parts) or not all(_same(value, ev.names[name]).all() for name, value in found.items()):
            steps = {}
    if not steps:
        message = f"{', '.join(sorted({part.name for part in parts}))}: an entry depends on itself"
        raise ExpressionError(message, ev.text, parts[0].statement.start, parts[0].statement.end)
    return steps


def _rounds(ev: Evaluator, parts: Sequence[Part]) -> dict[str, Tensor]:
    """Evaluate all parts until nothing changes: the round in which each entry changed last; empty if it never ends."""
    arrays = {part.name: ev.names[part.name] for part in parts}
    everything = {name: torch.ones_like(value, dtype=torch.bool) for name, value in arrays.items()}
    steps = {name: torch.ones_like(value, dtype=torch.long) for name, value in arrays.items()}
    for count in range(1, sum(value.numel() for value in arrays.values()) + 2):
        before = {name: ev.names[name] for name in arrays}
        for part in parts:
            _compute(ev, part, everything[part.name])
        changed = {name: ~_same(value, ev.names[name]) for name, value in before.items()}
        if not any(where.any() for where in changed.values()):
            return steps
        steps = {name: torch.where(changed[name], count, step) for name, step in steps.items()}
    return {}


def _same(a: Tensor, b: Tensor) -> Tensor:
    return (a == b) | (a.isnan() & b.isnan())

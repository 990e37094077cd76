"""Arrays that are defined piece by piece, and may read themselves: recurrences.

    h[0, k] = h0[k];   h[t+1, k] = tanh(sum[l](W[k, l] * h[t, l]) + x[t, k])

Each piece gives the entries at its place; together the pieces must cover the array from index 0 on.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from sympy import Expr, S

from gradproof.symbolic.equations.evaluate import Circular, HighPrecision, Point, Undefined
from gradproof.symbolic.equations.expr import Access, Axis, letters, nonnegative
from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters
from gradproof.symbolic.errors import ExpressionError, ShapeError
from gradproof.symbolic.folding.checks import small_sizes
from gradproof.symbolic.language.builder import UNKNOWN, Builder, Reading, extremes
from gradproof.symbolic.language.syntax import Statement
from gradproof.symbolic.language.values import Value


@dataclass
class Recurrence:
    """One such array under construction."""

    builder: Builder
    name: str
    pieces: list[tuple[Equation, Statement]] = field(default_factory=list)
    waiting: list[tuple[tuple[Expr, ...], ast.AST, bool]] = field(default_factory=list)
    complete: bool = False
    letters: list[list[str]] = field(default_factory=list)  # of the left sides, piece by piece
    typed: list[dict[Expr, Axis]] = field(default_factory=list)  # the letters of the text, and what stands for them

    def read(self, indices: Sequence[Expr], node: ast.AST) -> Value:
        """An entry, before the shape is known; its indices are checked in the end."""
        self.waiting.append((tuple(indices), node, self.builder.guards > 0))
        if self.pieces and len(indices) == len(self.pieces[-1][0].place):  # as far as a step reaches, if it is known
            last = self.pieces[-1][0]
            steps = [axis for axis, place in enumerate(last.place) if letters(place)]
            reach = [(indices[axis], self.span(last, axis)[1]) for axis in steps]
            self.builder.pending += [Reading(index, end, node, True) for index, end in reach if not end.has(UNKNOWN)]
        return Value(Access(self.name, *indices))

    def add(
        self, place: Sequence[Expr], axes: Sequence[Axis], body: Expr, statement: Statement, written: list[str]
    ) -> str:
        """One piece; an index such as t+1 on the left becomes a letter of its own, running from 1."""
        self.letters.append(written)
        outs = out_letters(len(place))
        new_place: list[Expr] = []
        new_axes: list[Axis] = []
        typed: dict[Expr, Axis] = {}
        for out, index in zip(outs, place, strict=True):
            inside = letters(index)
            if not inside:
                new_place.append(index)
                continue
            axis = next((a for a in axes if inside == {a[0]} and index.coeff(a[0]) == 1), None)
            if axis is None:
                shown = str(index).split("~")[0]
                message = f"left of = an index is a number or a letter, shifted or not; this is a multiple of {shown}"
                raise ExpressionError(message, self.builder.text, statement.start, statement.start + 1)
            shift = index - axis[0]
            body = body.xreplace({axis[0]: out - shift})
            new_place.append(out)
            typed[out] = axis
            new_axes.append((out, axis[1] + shift, axis[2] + shift))
        self.typed.append(typed)
        self.pieces.append((Equation(self.name, tuple(new_place), tuple(new_axes), body), statement))
        return self.name

    def finish(self) -> None:
        """Define the array: its shape is what the pieces cover."""
        if self.complete:
            return
        self.complete = True
        b = self.builder
        rank = len(self.pieces[0][0].place)
        if any(len(piece.place) != rank for piece, _ in self.pieces):
            self.fail(f"the pieces of {self.name} have different numbers of indices", ShapeError)
        pieces = zip(self.pieces, self.typed, strict=True)
        self.pieces = [(self.completed(piece, typed), statement) for (piece, statement), typed in pieces]
        spans = [tuple(self.span(piece, axis) for axis in range(rank)) for piece, _ in self.pieces]
        if len({str(span) for span in spans}) < len(spans):
            self.fail(f"{self.name} is defined twice at the same places", ExpressionError)
        shape = tuple(self.size(axis) for axis in range(rank))
        b.arrays[self.name] = Array(self.name, shape)
        for written in self.letters:
            b.note_letters(self.name, written)
        b.equations += [piece for piece, _ in self.pieces]
        for indices, node, guarded in self.waiting:
            if len(indices) != rank:
                b.fail(f"{self.name} has {rank} indices", node, ShapeError)
            read = zip(indices, shape, strict=True)
            b.readings += [Reading(index, size, node, guarded, partly=True) for index, size in read]

    def completed(self, piece: Equation, typed: dict[Expr, Axis]) -> Equation:
        """A piece whose letters all have an end: one that reads nothing (`h[0,k] = 0`) runs as far as in others."""
        axes = []
        for letter, lo, hi in piece.axes:
            axis = piece.place.index(letter)
            others = [other for other, _ in self.pieces if letters(other.place[axis])]
            ends = [end for other in others if not (end := self.span(other, axis)[1]).has(UNKNOWN)]
            written, first, _ = typed[letter]
            ends = ends or [end + lo - first for end in self.read_to(axis)]
            if hi.has(UNKNOWN) and not ends:
                self.fail(f"no piece of {self.name} tells how far axis {axis} runs", ShapeError)
            axes.append((letter, lo, ends[0] if hi.has(UNKNOWN) else hi))
            self.builder.ranges[written] = (written, first, (axes[-1][2] - lo + first).expand())
        return replace(piece, axes=tuple(axes))

    def read_to(self, axis: int) -> list[Expr]:
        """How far an axis is read, where that is known: the t of P[t+1] = f(P[t]) runs as that of sum[t=0:T](P[t])."""
        found: list[Expr] = []
        for indices, _, _ in self.waiting:
            _, last = extremes(indices[axis], list(self.builder.ranges.values()))
            if last is not None and letters(indices[axis]) and not last.has(UNKNOWN):
                found.append(last + 1)
        return [end for end in found if all(nonnegative(end - other) for other in found)]

    def check_first_step(self, system: System) -> None:
        """Follow the recurrence at a small size: an entry that needs itself is an error."""
        point = Point(system, small_sizes(system), HighPrecision(0))
        try:
            point.array(self.name)
        except Undefined:
            return  # some value has no logarithm, say; that is not the recurrence's doing
        except Circular as error:
            self.fail(str(error), ExpressionError)

    def size(self, axis: int) -> Expr:
        """How far the pieces reach along one axis; they must join without a gap, starting at 0."""
        spans = [self.span(piece, axis) for piece, _ in self.pieces]
        if all(same(lo, spans[0][0]) and same(hi, spans[0][1]) for lo, hi in spans):
            spans = spans[:1]
        reach: Expr = S.Zero
        while spans:
            following = next((span for span in spans if same(span[0], reach)), None)
            if following is None:
                self.fail(
                    f"the pieces of {self.name} leave a gap or overlap at index {reach} of axis {axis}"
                    f"; a step is written {self.name}[t+1] = … {self.name}[t] …",
                    ShapeError,
                )
            spans.remove(following)
            reach = following[1]
        return reach

    def span(self, piece: Equation, axis: int) -> tuple[Expr, Expr]:
        index = piece.place[axis]
        found = next(((lo, hi) for letter, lo, hi in piece.axes if letter == index), None)
        return found or (index, index + 1)

    def fail(self, message: str, kind: type[ExpressionError]) -> NoReturn:
        statement = self.pieces[0][1]
        raise kind(message, self.builder.text, statement.start, statement.start + len(self.name))

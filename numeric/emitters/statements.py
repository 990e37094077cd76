"""Spell the statements of a program: assignments, updates, scatter-adds and loops.

How an array operation is spelled stands in `table` and in the methods of `expressions.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy import Expr, S

from gradproof.numeric.emitters.numbers import COMPARE, POSTFIX, NumberEmitter
from gradproof.numeric.lowering.lower import length
from gradproof.numeric.lowering.nodes import Cut, Node, Place
from gradproof.numeric.lowering.program import (
    Assign,
    Delete,
    Loop,
    Measure,
    ScatterAdd,
    Statement,
    Update,
    Write,
)
from gradproof.symbolic.equations.expr import letters

INDENT = "    "


class StatementEmitter(NumberEmitter, ABC):
    """Spells statements; it is the printer of `sympy.lambdify`."""

    repeated_level = COMPARE  # how tightly an array must bind that `full` repeats

    def __init__(self, like: Mapping[tuple[Expr, ...], str] | None = None, dtype: str = "") -> None:
        super().__init__()
        self.like = dict(like or {})  # an input of each shape, for zeros_like
        self.dtype = dtype  # where results take their type of number from, such as X.dtype
        self.spelled: dict[Node, tuple[str, int]] = {}  # texts, and how tightly they bind: the schedule asks often

    def doprint(self, item: Any) -> str:
        """What `sympy.lambdify` asks for: a node, or the sides of an assignment, which `assignments` has spelled."""
        return self.expression(item) if isinstance(item, Node) else str(item)

    def assignments(self, statements: Iterable[Statement]) -> list[tuple[str, str]]:
        """The program as assignments, each with the statements that complete it: lambdify knows nothing else."""
        found: list[tuple[str, str]] = []
        for item in statements:
            if isinstance(item, (Assign, Measure)):
                comment = "".join(f"{line}\n{INDENT}" for line in item.comment) if isinstance(item, Assign) else ""
                target, value = self.assigned(item) if isinstance(item, Assign) else self.measured(item)
                found.append((comment + target, value))
            else:
                target, value = found.pop()
                found.append((target, f"\n{INDENT}".join([value, *self.lines(item)])))
        return found

    def lines(self, item: Statement) -> list[str]:
        if isinstance(item, Assign):
            return [*item.comment, " = ".join(self.assigned(item))]
        if isinstance(item, Measure):
            return [" = ".join(self.measured(item))]
        if isinstance(item, Loop):
            order = f"range({self.bounds(item.start, item.stop)})"
            head = f"for {item.letter} in {f'reversed({order})' if item.down else order}:"
            return [head, *(INDENT + line for part in item.body for line in self.lines(part))]
        if isinstance(item, Write):
            return [*item.comment, self.written(item.value, self.expression(item.out))]
        if isinstance(item, Update):
            return [self.updated(item)]
        if isinstance(item, Delete):
            return [f"del {', '.join(item.names)}"]
        return [self.scattered(item)]

    def bounds(self, start: Expr, stop: Expr) -> str:
        return self.number(stop) if start == 0 else f"{self.number(start)}, {self.number(stop)}"

    def assigned(self, item: Assign) -> tuple[str, str]:
        """Both sides of an assignment."""
        target = self.expression(item.target)
        if item.out is not None:
            return target, self.written(item.value, self.expression(item.out))
        return target, self.expression(item.value)

    def measured(self, item: Measure) -> tuple[str, str]:
        """Sizes read off an array: `n, d = X.shape`, `m = v.shape[0] - n + 1`."""
        name, rank = self.expression(item.array), item.array.rank
        (reading, *others) = item.readings
        if others:
            sizes = {reading.axis: reading.size.name for reading in item.readings}
            return ", ".join(sizes.get(axis, "_") for axis in range(rank)), f"{name}.shape"
        text = f"{name}.shape[{reading.axis}]"
        if reading.slope == 1 and reading.rest == 0:
            return reading.size.name, f"len({name})" if rank == 1 else text
        text += "".join(f" {'-' if sign else '+'} {part}" for sign, part in self.size_terms(-reading.rest))
        if reading.slope != 1:
            text = text if reading.rest == 0 else f"({text})"
            text += f" // {self.bracketed(reading.slope, POSTFIX)}"
        return reading.size.name, text

    def updated(self, item: Update) -> str:
        target = self.expression(item.target)
        if item.sign == "+":
            minus, what = self.term(item.value, COMPARE)
            return f"{target} {'-' if minus else '+'}= {what}"
        if item.sign == "/":
            return f"{target} /= {self.inverse(item.value)}"
        return f"{target} *= {self.expression(item.value)}"

    def scattered(self, item: ScatterAdd) -> str:
        target, places = self.expression(item.target), [self.expression(place) for place in item.places]
        inside = places[0] if len(places) == 1 else f"({', '.join(places)})"
        return self.form("scatter", target=target, places=inside, values=self.expression(item.values))

    def written(self, node: Node, out: str) -> str:
        """The statement that writes a value into the memory of an array, for a library that works in place."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------- places and shapes

    def form(self, key: str, *args: str, **options: str) -> str:
        options = {"dtype": self.typed(), "device": self.placed(), **options}
        return self.use(self.table[key]).format(*args, **options)

    def subscript(self, places: Sequence[Place | Node], shape: Sequence[Expr]) -> str:
        marks = [self.mark(place, size) for place, size in zip(places, shape, strict=True)]
        while len(marks) > 1 and marks[-1] == ":":
            marks.pop()
        return f"[{', '.join(marks)}]"

    def mark(self, place: Place | Node, size: Expr) -> str:
        if isinstance(place, Node):
            return self.expression(place)
        if not isinstance(place, Cut):
            return self.number((place - size).expand() if (place - size).expand() == -1 else place)
        start = "" if place.start == 0 else self.number(place.start)
        behind = (place.stop - size).expand()
        inside = behind.is_Integer and behind < 0
        end = place.stop if letters(place.stop) else length(S.Zero, place.stop)  # a count from a letter on is positive
        stop = "" if behind == 0 else self.number(behind if inside else end)
        return f"{start}:{stop}" + (f":{self.number(sympy.sympify(place.step))}" if place.step != 1 else "")

    def placed(self) -> str:
        """The option that says on which device a new array lies; NumPy has none."""
        return ""

    def typed(self) -> str:
        return f", dtype={self.dtype}" if self.dtype else ""

    def allocate(self, kind: str, shape: Sequence[Expr]) -> str:
        if tuple(shape) in self.like:
            return self.form(f"{kind}_like", like=self.like[tuple(shape)])
        return self.form(kind, shape=self.shape(shape), dtype=self.typed())

    def shape(self, sizes: Sequence[Expr]) -> str:
        texts = [self.number(length(S.Zero, size)) for size in sizes]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    # ----------------------------------------------------------------------------- what the emitter of a library gives

    @abstractmethod
    def expression(self, node: Node, level: int = COMPARE) -> str:
        """The spelling of a node, in brackets if it binds less tightly than `level`."""

    @abstractmethod
    def term(self, node: Node, level: int) -> tuple[bool, str]:
        """Whether a term of a sum is subtracted, and its absolute value."""

    @abstractmethod
    def inverse(self, node: Node) -> str:
        """What is divided by, of something to a negative power."""

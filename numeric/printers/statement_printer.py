"""Print the statements of a function: assignments, blocks put into zeros, scatter-adds and loops.

How an array operation is spelled stands in `table` and in the methods of `numpy_printer.py` and `torch_printer.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
from sympy import Expr, Symbol

from gradproof.numeric.lowering.nodes import Cut, Node, Place, broadcast_shape
from gradproof.numeric.lowering.statements import Fill, Lines, Loop, Store, Target
from gradproof.numeric.printers.number_printer import COMPARE, POSTFIX, NumberPrinter

INDENT = "    "
REDUCTIONS = frozenset({"sum", "max", "prod", "mean"})
STATEMENTS = frozenset({"place", "scatter", "overlap", "blocks"})
VIEWS = frozenset({"array", "view", "index", "flip", "diagonal", "windows", "reshape", "squeeze"})


class StatementPrinter(NumberPrinter, ABC):
    """Prints what `sympy.lambdify` gets from a schedule, given the names of some nodes."""

    repeated_level = COMPARE  # how tightly an array must bind that `full` repeats

    def __init__(
        self, names: dict[Node, str], like: Mapping[tuple[Expr, ...], str] | None = None, dtype: str = ""
    ) -> None:
        self.names = names
        self.like = dict(like or {})  # an input of each shape, for zeros_like
        self.single: frozenset[Node] = frozenset()  # nodes that one line reads
        self.risky = False  # whether a line computes something undefined that `where` throws away
        self.dtype = dtype  # where results take their type of number from, such as X.dtype

    def prepare(self, schedule: Any) -> None:
        """Look at the whole schedule before it is printed."""

    # ----------------------------------------------------------------------------------- what sympy.lambdify asks for

    def doprint(self, item: Any) -> str:
        if isinstance(item, Target):
            return f"{item.comment}{item.name}"
        if isinstance(item, Symbol):
            return str(item.name)
        if isinstance(item, Lines):
            return self.lines(item)
        return self.expression(item) if isinstance(item, Node) else str(item)

    def lines(self, item: Lines) -> str:
        """The right side of an assignment and the lines that follow it."""
        text, rest = self.assigned(item.target, item.first)
        for statement in item.rest:
            rest += self.statement(statement)
        return f"\n{INDENT}".join([text, *rest])

    def statement(self, item: Store | Loop | Fill) -> list[str]:
        if isinstance(item, Loop):
            order = f"range({self.bounds(item.start, item.stop)})"
            head = f"for {item.letter} in {f'reversed({order})' if item.down else order}:"
            return [head, *(INDENT + line for part in item.body for line in self.statement(part))]
        if isinstance(item, Fill):
            return [f"{item.name} = {self.allocate('empty', item.shape)}"]
        target = f"{item.name}{self.subscript(item.places, item.shape)}" if item.places else item.name
        text, rest = self.assigned(target, item.node)
        return [*item.comment, f"{target} = {text}", *rest]

    def bounds(self, start: Expr, stop: Expr) -> str:
        return self.number(stop) if start == 0 else f"{self.number(start)}, {self.number(stop)}"

    def assigned(self, target: str, node: Node | Fill) -> tuple[str, list[str]]:
        """What stands behind `target =`, and the lines that complete it."""
        if isinstance(node, Fill):
            return self.allocate("empty", node.shape), []
        if node in self.names and self.names[node] != target:
            return self.names[node], []
        if node.op == "broadcast":
            return self.full(node), []
        terms = node.args if node.op == "add" else (node,)
        later = [term for term in terms if term.op in STATEMENTS and (term is node or term not in self.names)]
        if node.op == "place" and len(terms) == 1 and self.paddable(node):
            later = []
        if not later:
            return self.unnamed(node), []
        first = [term for term in terms if term not in later]
        whole = bool(first) and broadcast_shape(first) == tuple(node.shape)
        if not whole or (node.kind == "f" and all(term.kind != "f" for term in first)):  # 2, or 2 I in whole numbers
            text = self.allocate("zeros", node.shape)
            if first:
                added = self.expression(first[0]) if len(first) == 1 else self.sum_of(first)
                lines = [f"{target} += {added}"]
                return text, lines + [self.put(target, term, "+=") for term in later]
        elif len(first) == 1:
            text = self.expression(first[0])
            kept = (first[0] in self.names or first[0].op in VIEWS) and not self.own(first[0])
            text = self.form("copy", text) if kept else text
        else:
            text = self.sum_of(first)
        lines = [self.put(target, term, "=" if term is node else "+=") for term in later]
        return text, lines

    def own(self, node: Node) -> bool:
        """Whether nothing else reads the memory of an array, so that it may be added to in place."""
        while node.op in VIEWS and node.args and node in self.single:
            (node, *_) = node.args
        return node in self.single and node.op in ("matmul", "mul", "tensordot", "einsum")

    def overlap(self, target: str, term: Node) -> str:
        """Add blocks, one column after another."""
        columns, steps = dict(term.data[0]), term.data[1]
        (values,) = term.args
        marks = [self.block(*step) if step is not None else ":" for step in steps]
        while marks[-1] == ":":
            marks.pop()
        inside = [str(next((x for x, place in columns.items() if place == k), ":")) for k in range(values.rank)]
        while inside[-1] == ":":
            inside.pop()
        lines = [
            f"{INDENT * depth}for {letter} in range({self.number(values.shape[place])}):"
            for depth, (letter, place) in enumerate(columns.items())
        ]
        read = f"{self.expression(values, POSTFIX)}[{', '.join(inside)}]"
        lines.append(f"{INDENT * len(columns)}{target}[{', '.join(marks)}] += {read}")
        return f"\n{INDENT}".join(lines)

    def diagonal_blocks(self, target: str, term: Node, sign: str) -> str:
        """`target[:, k, :, k] += values` with k = 0 … n-1."""
        first, second = term.data
        every = self.form("arange0", "0", self.number(term.shape[first]))
        marks = ", ".join(every if k in (first, second) else ":" for k in range(second + 1))
        return f"{target}[{marks}] {sign} {self.expression(term.args[0])}"

    def block(self, start: Expr, count: Expr, width: Expr) -> str:
        """The places of one column of all blocks."""
        stop = (start + width * (count - 1) + 1).expand()
        return f"{start}:{self.number(stop)}" + (f":{self.number(width)}" if width != 1 else "")

    def put(self, target: str, term: Node, sign: str) -> str:
        if term.op == "place":
            return f"{target}{self.subscript(term.data, term.shape)} {sign} {self.expression(term.args[0])}"
        if term.op == "overlap":
            return self.overlap(target, term)
        if term.op == "blocks":
            return self.diagonal_blocks(target, term, sign)
        values, *places = term.args
        return self.scattered(target, [self.expression(place) for place in places], values)

    def scattered(self, target: str, places: Sequence[str], values: Node) -> str:
        inside = places[0] if len(places) == 1 else f"({', '.join(places)})"
        return self.form("scatter", target=target, places=inside, values=self.expression(values))

    # ---------------------------------------------------------------------------------------------- places and shapes

    def form(self, key: str, *args: str, **options: str) -> str:
        return self.table[key].format(*args, **{"dtype": self.typed(), "device": self.placed(), **options})

    def subscript(self, places: Sequence[Place], shape: Sequence[Expr]) -> str:
        marks = [self.mark(place, size) for place, size in zip(places, shape, strict=True)]
        while len(marks) > 1 and marks[-1] == ":":
            marks.pop()
        return f"[{', '.join(marks)}]"

    def mark(self, place: Place, size: Expr) -> str:
        if not isinstance(place, Cut):
            return self.number((place - size).expand() if (place - size).expand() == -1 else place)
        start = "" if place.start == 0 else self.number(place.start)
        behind = (place.stop - size).expand()
        stop = "" if behind == 0 else self.number(behind if behind.is_Integer and behind < 0 else place.stop)
        return f"{start}:{stop}" + (f":{self.number(sympy.sympify(place.step))}" if place.step != 1 else "")

    def paddable(self, node: Node) -> bool:
        return all(isinstance(place, Cut) and place.step == 1 for place in node.data)

    def full(self, node: Node) -> str:
        """An array of its own that holds one value along some axes."""
        text = self.expression(node.args[0], self.repeated_level)
        if node.args[0].op != "scalar":
            return self.form("full", text, shape=self.shape(node.shape))
        if node.shape in self.like and text == "0":
            return self.form("zeros_like", like=self.like[node.shape])
        if node.shape in self.like:
            return self.form("full_like", text, like=self.like[node.shape])
        return self.form("full_number", text, shape=self.shape(node.shape), dtype=self.typed() or ", float")

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
        if len(sizes) == 1:
            return self.number(sizes[0])
        return f"({', '.join(map(self.number, sizes))})"

    # ----------------------------------------------------------------------------- what the printer of a library gives

    @abstractmethod
    def expression(self, node: Node, level: int = COMPARE) -> str:
        """The printed form of a node, in brackets if it binds less tightly than `level`."""

    @abstractmethod
    def unnamed(self, node: Node) -> str:
        """The printed form of a node without its own name."""

    @abstractmethod
    def sum_of(self, args: Sequence[Node]) -> str: ...

"""The typed program between equations and code: statements over nodes. Passes rewrite it, an emitter spells it.

    Assign      target = value;  target[places] = value;  target = value, written into the memory of `out`
    Write       value, written into the memory of an array
    Update      target += value;  target[places] *= value
    ScatterAdd  target[places[i]] += values[i] for all i in turn
    Loop        for letter in range(start, stop), or downwards
    Delete      del names
    Measure     sizes that are read off the axes of an array

The lowering makes assignments and loops whose nodes share what they have in common. After the schedule, an array that
has a name is read by its name, and every other node belongs to one statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sympy import Expr, Symbol

from gradproof.numeric.lowering.nodes import Graph, Node, Place, parts
from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.equations.system import Equation


def base(target: Node) -> Node:
    """The array that a target is, or is a part of."""
    return base(target.args[0]) if target.args else target


@dataclass(frozen=True)
class Assign:
    target: Node  # an array, or a part of one
    value: Node
    out: Node | None = None
    comment: tuple[str, ...] = ()
    equation: Equation | None = None

    @property
    def name(self) -> str:
        return str(base(self.target).data[0])

    @property
    def whole(self) -> bool:
        """Whether the name is set, and not a part of an array that it names."""
        return not self.target.args


@dataclass(frozen=True)
class Write:
    out: Node
    value: Node
    comment: tuple[str, ...] = ()


@dataclass(frozen=True)
class Update:
    target: Node
    sign: str  # +, *, or / where the value is an inverse; a term that is subtracted is spelled so
    value: Node


@dataclass(frozen=True)
class ScatterAdd:
    target: Node
    places: tuple[Node, ...]
    values: Node


@dataclass(frozen=True)
class Loop:
    letter: Index
    start: Expr
    stop: Expr
    down: bool
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Delete:
    names: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """A size that is read off an axis: (length of the axis − rest) / slope."""

    size: Symbol
    array: str
    axis: int
    slope: Expr  # a number, or made of sizes that are read before: n in v:m*n
    rest: Expr


@dataclass(frozen=True)
class Measure:
    array: Node
    readings: tuple[Reading, ...]


Statement = Assign | Write | Update | ScatterAdd | Loop | Delete | Measure


@dataclass(frozen=True)
class Program:
    """The statements of a function, what it returns, and what the schedule knows of the arrays that it named."""

    statements: tuple[Statement, ...]
    returned: tuple[str, ...]
    temporaries: frozenset[str] = frozenset()  # arrays that no equation names
    owned: frozenset[str] = frozenset()  # new arrays that one line reads: it may change them


def assign(
    graph: Graph, name: str, value: Node, places: Sequence[Place], shape: Sequence[Expr], equation: Equation
) -> Assign:
    """name = value, or name[places] = value; `shape` is that of the whole array."""
    target = graph.array(name, shape)
    if places:
        target = graph.make("index", [target], places, value.shape)
    return Assign(target, value, equation=equation)


def unset(graph: Graph, name: str, shape: Sequence[Expr]) -> Assign:
    """name = an array whose entries are not set yet."""
    return Assign(graph.array(name, shape), Node("empty", shape=tuple(shape)))


def walk(statements: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those inside loops included."""
    for statement in statements:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)


def nodes_of(statement: Statement) -> tuple[Node, ...]:
    """What a statement computes and reads, without the array that it changes and what stands inside a loop."""
    if isinstance(statement, (Assign, Write, Update)):
        return (statement.value,)
    return (*statement.places, statement.values) if isinstance(statement, ScatterAdd) else ()


def arrays_in(*nodes: Node) -> set[str]:
    """The names of the arrays that nodes are made of."""
    return {str(node.data[0]) for node in parts(*nodes) if node.op == "array"}


def entries(statements: Iterable[Statement]) -> list[list[Statement]]:
    """Each assignment with the statements that complete it."""
    found: list[list[Statement]] = []
    for statement in statements:
        if isinstance(statement, (Assign, Measure)) or not found:
            found.append([])
        found[-1].append(statement)
    return found

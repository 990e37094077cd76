"""Array operations as a graph: what the lowering makes and the emitters spell.

A node stands for one array. Its axes are numbered, as in NumPy; the letters of the index expression are gone. Equal
nodes are one object (`Graph.make`), so whatever two equations have in common is found without a search.

    array (name)        scalar (expr)          arange (lo, hi)        eye (n)
    add, mul, pow, call (function), where, compare (op), float
    view (axes)         the axes in another order; None is a new axis of length 1, as in v[:, None]
    index (places)      per axis a number or a cut (start, count, step)
    place (places)      the reverse: an array of zeros that holds the argument at these places
    take (axes)         A[…, w, …] with arrays of numbers for the named axes
    scatter (axes)      zeros to which the values are added at the places w
    diagonal, windows, flip, reshape, diag, broadcast
    sum, max, prod, mean (axes);  cumsum (axis);  matmul, dot, tensordot, einsum
    empty, zeros, ones, full, copy   arrays of their own memory, which the passes put where one is needed
"""

from __future__ import annotations

import keyword
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from sympy import Expr, Integer, Mul, S, Symbol, sympify

from gradproof.symbolic.equations.expr import nonnegative
from gradproof.symbolic.equations.functions import spellings

Shape = tuple[Expr, ...]

LEAVES = frozenset({"array", "scalar", "empty"})
REDUCTIONS = frozenset({"sum", "max", "prod", "mean"})
PRODUCTS = frozenset({"matmul", "mul", "tensordot", "einsum"})  # a new array each time
STATEMENTS = frozenset({"place", "scatter", "overlap", "blocks"})  # what is added to an array by a statement
VIEWS = frozenset({"array", "view", "index", "flip", "diagonal", "windows", "reshape", "squeeze"})  # of other memory

# what generated code calls or imports, in any library: no array may have such a name
BUILTINS = frozenset({"abs", "float", "len", "max", "min", "range", "reversed"})
LIBRARIES = frozenset({"np", "math", "torch", "jax", "jnp", "partial", "sigmoid", "add_rows", "sliding_window_view"})
RESERVED = frozenset(keyword.kwlist) | BUILTINS | LIBRARIES | {form.split()[-1] for form in spellings("scipy").values()}


@cache
def identifier(name: str) -> str:
    """A name that Python accepts.

    >>> identifier("h'"), identifier("lambda")
    ('h_prime', 'lambda_')
    """
    name = "".join(c if c.isidentifier() or c.isalnum() or c == "_" else "_" for c in name.replace("'", "_prime"))
    name = name if name.isidentifier() else f"_{name}"
    return f"{name}_" if name in RESERVED else name


@dataclass(frozen=True)
class Cut:
    """`count` entries of an axis, from `start` on, every `step`-th one.

    >>> Cut(Integer(1), Integer(3), 2).stop
    6
    """

    start: Expr
    count: Expr
    step: Expr | int = 1

    @property
    def stop(self) -> Expr:
        return (self.start + self.step * (self.count - 1) + 1).expand()

    def covers(self, size: Expr) -> bool:
        return self.step == 1 and self.start == 0 and (self.count - size).expand() == 0


Place: TypeAlias = Cut | Expr  # an index along an axis, or a range of them


@dataclass(frozen=True, eq=False)
class Node:
    op: str
    args: tuple[Node, ...] = ()
    data: tuple[Any, ...] = ()
    shape: Shape = ()
    kind: str = "f"  # b: booleans, i: whole numbers, f: floats

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        inside = ", ".join([*map(str, self.data), *map(repr, self.args)])
        return f"{self.op}({inside})"


def broadcast_shape(nodes: Sequence[Node]) -> Shape:
    """NumPy's rule: aligned at the right, length 1 gives way."""
    rank = max((node.rank for node in nodes), default=0)
    shape: list[Expr] = [S.One] * rank
    for node in nodes:
        for axis, size in enumerate(node.shape, rank - node.rank):
            if shape[axis] == 1:
                shape[axis] = size
    return tuple(shape)


def product(sizes: Sequence[Expr]) -> Expr:
    return Mul(*sizes)


class Graph:
    """Makes nodes, each distinct one once.

    >>> g = Graph()
    >>> g.array("x", (Integer(3),)) is g.array("x", (Integer(3),))
    True
    """

    def __init__(self) -> None:
        self._table: dict[Hashable, Node] = {}
        self.fixed: set[Node] = set()  # arrays that an equation names: views do not look inside

    def make(
        self, op: str, args: Sequence[Node] = (), data: Sequence[Any] = (), shape: Sequence[Expr] = (), kind: str = "f"
    ) -> Node:
        key = (op, tuple(map(id, args)), tuple(data), kind, tuple(shape))
        if key not in self._table:
            self._table[key] = Node(op, tuple(args), tuple(data), tuple(shape), kind)
        return self._table[key]

    # ------------------------------------------------------------------------------------------------------- leaves

    def array(self, name: str, shape: Sequence[Expr], kind: str = "f") -> Node:
        return self.make("array", (), (name,), shape, kind)

    def scalar(self, value: Expr | int) -> Node:
        value = sympify(value)
        return self.make("scalar", (), (value,), (), "i" if value.is_integer else "f")

    def arange(self, lo: Expr, hi: Expr) -> Node:
        return self.make("arange", (), (lo, hi), ((hi - lo).expand(),), "i")

    # -------------------------------------------------------------------------------------------------- elementwise

    def add(self, args: Sequence[Node]) -> Node:
        args = [self.number(arg) for arg in args if not is_scalar(arg, 0)]
        if len(args) < 2:
            return args[0] if args else self.scalar(0)
        return self.make("add", args, (), broadcast_shape(args), "i" if all(a.kind == "i" for a in args) else "f")

    def mul(self, args: Sequence[Node]) -> Node:
        """Numbers come first, then the product of arrays as a node of its own, so that multiples share it."""
        number = product([arg.data[0] for arg in args if arg.op == "scalar"])
        arrays = [arg for arg in args if arg.op != "scalar"]
        if not arrays:
            return self.scalar(number)
        node = arrays[0]
        if len(arrays) == 2 and arrays[1].op == "eye" and _column(arrays[0]):
            node = self.make("diag", [self.floating(arrays[0].args[0])], (), arrays[1].shape)
        elif len(arrays) > 1:
            kinds = {arg.kind for arg in arrays}
            kind = "b" if kinds == {"b"} else "f" if "f" in kinds else "i"
            node = self.make("mul", arrays, (), broadcast_shape(arrays), kind)
        if node.op == "sum" and node.args[0].kind == "f":  # 1/n times a sum over n entries is a mean
            summed = node.args[0]
            rest = number * product([summed.shape[axis] for axis in node.data])
            if rest.is_Rational and not number.is_Rational:
                number, node = rest, self.make("mean", [summed], node.data, node.shape)
        if number == 1:
            return node
        if node.op == "mul" and node.args[0].op == "scalar" and node not in self.fixed:
            return self.mul([self.scalar(number), *node.args])
        if not number.is_integer:
            node = self.floating(node)
        kind = "i" if node.kind in "bi" else "f"
        return self.make("mul", [self.scalar(number), node], (), node.shape, kind)

    def pow(self, base: Node, exponent: Node) -> Node:
        if is_scalar(exponent, 1):
            return base
        base = base if is_natural(exponent) else self.floating(base)
        kind = "i" if base.kind == "i" else "f"
        return self.make("pow", [self.number(base), exponent], (), broadcast_shape([base, exponent]), kind)

    def call(self, function: str, args: Sequence[Node]) -> Node:
        args = [self.floating(arg) for arg in args]
        return self.make("call", args, (function,), broadcast_shape(args))

    def where(self, args: Sequence[Node], risky: bool) -> Node:
        """`risky`: the branch that is not taken may be undefined."""
        condition, *branches = args
        a, b = map(self.number, branches)
        return self.make("where", [condition, a, b], (risky,), broadcast_shape([condition, a, b]))

    def compare(self, op: str, left: Node, right: Node) -> Node:
        return self.make("compare", [left, right], (op,), broadcast_shape([left, right]), "b")

    def number(self, node: Node) -> Node:
        """Booleans as floats, everything else as it is."""
        return self.floating(node) if node.kind == "b" else node

    def floating(self, node: Node) -> Node:
        return node if node.kind == "f" or node.op == "scalar" else self.make("float", [node], (), node.shape)

    # -------------------------------------------------------------------------------------------------------- views

    def view(self, node: Node, axes: Sequence[int | None]) -> Node:
        """The axes of a node in another order, with new ones of length 1; leading new axes are left out."""
        axes = list(axes)
        while axes and axes[0] is None:
            axes.pop(0)
        if node.op == "eye":  # equal to its transpose
            order = iter(range(2))
            axes = [None if axis is None else next(order) for axis in axes]
        if axes == list(range(node.rank)):
            return node
        if node.op == "view":
            return self.view(node.args[0], [None if axis is None else node.data[axis] for axis in axes])
        if node not in self.fixed and (inner := self._passed(node, axes)) is not None:
            return inner
        shape = [S.One if axis is None else node.shape[axis] for axis in axes]
        return self.make("view", [node], axes, shape, node.kind)

    def _passed(self, node: Node, axes: Sequence[int | None]) -> Node | None:
        """A sign, a number, a division, a cast and zeros around an array stay outside of a view of it."""
        order = [axis for axis in axes if axis is not None]
        if node.op == "place" and len(order) == len(axes) and all(isinstance(place, Cut) for place in node.data):
            places, shape = ([sizes[axis] for axis in order] for sizes in (node.data, node.shape))
            return self.put(self.view(node.args[0], order), places, shape)
        if node.op == "pow" and is_scalar(node.args[1], -1):
            return self.pow(self.view(node.args[0], axes), node.args[1])
        if node.op == "float":
            return self.floating(self.view(node.args[0], axes))
        if node.op == "mul" and sum(arg.op != "scalar" for arg in node.args) == 1:
            return self.mul([arg if arg.op == "scalar" else self.view(arg, axes) for arg in node.args])
        return None

    def index(self, node: Node, places: Sequence[Place]) -> Node:
        if all(isinstance(p, Cut) and p.covers(size) for p, size in zip(places, node.shape, strict=True)):
            return node
        shape = [place.count for place in places if isinstance(place, Cut)]
        return self.make("index", [node], places, shape, node.kind)

    def put(self, node: Node, places: Sequence[Place], shape: Sequence[Expr]) -> Node:
        """Zeros of a shape that hold `node` at the given places."""
        if all(isinstance(p, Cut) and p.covers(size) for p, size in zip(places, shape, strict=True)):
            return node
        return self.make("place", [self.number(node)], places, shape)

    def flip(self, node: Node, axis: int) -> Node:
        return self.make("flip", [node], (axis,), node.shape, node.kind)

    def diagonal(self, node: Node, first: int, second: int) -> Node:
        """The entries with equal indices on two axes; their axis comes last."""
        rest = [size for axis, size in enumerate(node.shape) if axis not in (first, second)]
        return self.make("diagonal", [node], (first, second), [*rest, node.shape[first]], node.kind)

    def windows(self, node: Node, axis: int, width: Expr) -> Node:
        """All windows of a width along an axis; the place inside the window becomes the last axis."""
        shape = list(node.shape)
        shape[axis] = (shape[axis] - width + 1).expand()
        return self.make("windows", [node], (axis, width), [*shape, width], node.kind)

    def take(self, node: Node, axes: Sequence[int], indices: Sequence[Node]) -> Node:
        """NumPy's indexing by arrays on some axes."""
        inner = broadcast_shape(indices)
        rest = [size for axis, size in enumerate(node.shape) if axis not in axes]
        start = axes[0] if list(axes) == list(range(axes[0], axes[0] + len(axes))) else 0
        return self.make("take", [node, *indices], axes, [*rest[:start], *inner, *rest[start:]], node.kind)

    def reshape(self, node: Node, shape: Sequence[Expr]) -> Node:
        if tuple(shape) == node.shape:
            return node
        if node.op == "reshape":
            return self.reshape(node.args[0], shape)
        return self.make("reshape", [node], (), shape, node.kind)

    def broadcast(self, node: Node, shape: Sequence[Expr]) -> Node:
        return node if node.shape == tuple(shape) else self.make("broadcast", [node], (), shape, node.kind)

    # -------------------------------------------------------------------------------------- reductions and products

    def reduce(self, op: str, node: Node, axes: Sequence[int]) -> Node:
        if not axes:
            return node
        shape = [size for axis, size in enumerate(node.shape) if axis not in axes]
        kind = "f" if node.kind == "f" else "i"
        return self.make(op, [node], sorted(axes), shape, kind)

    def cumsum(self, node: Node, axis: int) -> Node:
        return self.make("cumsum", [self.floating(node)], (axis,), node.shape)

    def matmul(self, a: Node, b: Node) -> Node:
        """NumPy's `@`."""
        a, b = self.floating(a), self.floating(b)
        shape = list(broadcast_shape([_batch(a), _batch(b)]))
        shape += a.shape[-2:-1] if a.rank > 1 else []
        shape += b.shape[-1:] if b.rank > 1 else []
        return self.make("matmul", [a, b], (), shape)

    def dot(self, a: Node, b: Node) -> Node:
        """The sum of all products of entries."""
        return self.make("dot", [self.floating(a), self.floating(b)])

    def tensordot(self, a: Node, b: Node, axes_a: Sequence[int], axes_b: Sequence[int]) -> Node:
        shape = [size for axis, size in enumerate(a.shape) if axis not in axes_a]
        shape += [size for axis, size in enumerate(b.shape) if axis not in axes_b]
        return self.make("tensordot", [self.floating(a), self.floating(b)], (tuple(axes_a), tuple(axes_b)), shape)

    def einsum(self, subscripts: str, args: Sequence[Node], shape: Sequence[Expr]) -> Node:
        return self.make("einsum", [self.floating(arg) for arg in args], (subscripts,), shape)


def _batch(node: Node) -> Node:
    return Node("shape", shape=node.shape[:-2])


def _column(node: Node) -> bool:
    """A vector along the first of two axes."""
    return node.op == "view" and node.data == (0, None) and node.kind == "f"


def extent(node: Node) -> int:
    """The number of axes along which a node is longer than 1."""
    return sum(size != 1 for size in node.shape)


def paddable(node: Node) -> bool:
    """Whether an array in zeros lies there as one block, which is not longer than the zeros at any size."""
    return all(isinstance(place, Cut) and place.step == 1 and nonnegative(place.count) for place in node.data)


def free_symbols(item: object) -> set[Symbol]:
    """The sizes and letters in what a node holds."""
    if isinstance(item, Cut):
        return free_symbols(item.start) | free_symbols(item.count) | free_symbols(item.step)
    return item.free_symbols if isinstance(item, Expr) else set()


def parts(*nodes: Node) -> Iterator[Node]:
    """Nodes and what they are made of, each once."""
    stack, seen = list(nodes), set()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.args
            yield node


def factors(node: Node) -> list[Node]:
    """The factors of a product, those of products inside of it among them."""
    return [part for arg in node.args for part in factors(arg)] if node.op == "mul" else [node]


def is_inverse(node: Node) -> bool:
    """Whether a node is something to a negative power."""
    if node.op != "pow" or node.args[1].op != "scalar":
        return False
    exponent = node.args[1].data[0]
    return bool(exponent.is_number and exponent.is_negative)


def is_scalar(node: Node, value: Expr | int) -> bool:
    return node.op == "scalar" and node.data[0] == value


def is_natural(node: Node) -> bool:
    return node.op == "scalar" and isinstance(node.data[0], Integer) and node.data[0] >= 0


def negative(node: Node) -> bool:
    """Whether a node is a negative number times something."""
    if node.op == "mul" and node.args[0].op == "scalar":
        node = node.args[0]
    return node.op == "scalar" and bool(node.data[0].could_extract_minus_sign())


def common_scale(nodes: Sequence[Node]) -> Expr:
    """The number that all terms of a sum are multiples of: ±2 for 2 x − 2 y, −1 for −x − y, 1 if there is none."""
    numbers = [node.args[0].data[0] if node.op == "mul" and node.args[0].op == "scalar" else S.One for node in nodes]
    if len(nodes) < 2 or any(node.op == "scalar" for node in nodes):
        return S.NegativeOne if len(nodes) > 1 and all(map(negative, nodes)) else S.One
    sign = S.NegativeOne if all(number.could_extract_minus_sign() for number in numbers) else S.One
    size = numbers[0] if numbers[0] == abs(numbers[0]) else -numbers[0]
    return sign * size if all(number in (size, -size) for number in numbers) else sign

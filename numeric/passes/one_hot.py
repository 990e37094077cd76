"""δ(v, y[b]) in a sum: one entry of each row changes, and no array of zeros and ones is made.

D[b, v] = P[b, v] − δ(v, y[b])   →   D = P.copy();  D[arange(B), y] −= 1
"""

from __future__ import annotations

from sympy import Expr, S

from gradproof.numeric.lowering.nodes import Node, broadcast_shape, factors, negative
from gradproof.numeric.lowering.program import Update


def one_hot(target: Node, term: Node) -> Update | None:
    """δ(v, y[b]) times what does not depend on v, added to one entry of each row of the target."""
    if term.rank < 2 or term.op == "array":
        return None
    parts = factors(term)
    found = [place for place in map(looked_up, parts) if place is not None]
    rest = [factor for factor in parts if looked_up(factor) is None]
    if len(found) != 1 or found[0].shape != (*term.shape[:-1], S.One):
        return None
    if any(factor.rank and (factor.op != "view" or factor.data != found[0].data) for factor in rest):
        return None
    order = found[0].data[:-1]
    rows = [_rows(size, len(order) - 1 - k) for k, size in enumerate(term.shape[:-1])]
    places = (*rows, _turned(found[0].args[0], order))
    return Update(Node("index", (target,), places, term.shape[:-1]), "+", _value(rest, order))


def _rows(size: Expr, behind: int) -> Node:
    """0 … size − 1 along an axis with so many behind it."""
    numbers = Node("arange", (), (S.Zero, size), (size,), "i")
    if not behind:
        return numbers
    return Node("view", (numbers,), (0, *[None] * behind), (size, *[S.One] * behind), "i")


def _turned(node: Node, order: tuple[int, ...]) -> Node:
    if list(order) == sorted(order):
        return node
    return Node("view", (node,), order, tuple(node.shape[axis] for axis in order), node.kind)


def _value(rest: list[Node], order: tuple[int, ...]) -> Node:
    """The product of the other factors, without the axis of v; its numbers stay outside of a transposition."""
    numbers = [factor for factor in rest if not factor.rank]
    arrays = [factor.args[0] for factor in rest if factor.rank]
    if list(order) == sorted(order) or not arrays:
        return times([*numbers, *arrays])
    return times(
        [
            *(n for n in numbers if negative(n)),
            _turned(times([*(n for n in numbers if not negative(n)), *arrays]), order),
        ]
    )


def times(parts: list[Node]) -> Node:
    if len(parts) < 2:
        return parts[0] if parts else Node("scalar", (), (S.One,), (), "i")
    return Node("mul", tuple(parts), (), broadcast_shape(parts))


def looked_up(node: Node) -> Node | None:
    """y[b, None] of a comparison y[b] == v."""
    if node.op == "float":
        (node,) = node.args
    if node.op != "compare" or node.data[0] != "==" or node.rank < 2:
        return None
    row, *others = sorted(node.args, key=lambda arg: arg.op != "arange")
    plain = row.op == "arange" and row.data[0] == 0
    (place,) = others or (row,)
    known = place.op == "view" and place.rank == node.rank and place.args[0].op == "array"
    known = known and place.data[-1] is None and None not in place.data[:-1]
    return place if plain and known and place.kind == "i" else None

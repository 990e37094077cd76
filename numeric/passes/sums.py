"""Sums over the last axis, or over all axes before it, as products: one pass over the arrays, and none to make them.

Σ over j of A[i,j] B[i,j]  →  einsum("...i,...i->...", A, B)
Σ over i of A[i,j] B[i,j]  →  einsum("ij,ij->j", A, B)
Σ over j of X[i,j]         →  X @ ones(n)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradproof.numeric.lowering.nodes import VIEWS, Node, is_scalar
from gradproof.numeric.lowering.program import Assign, Loop, ScatterAdd, Statement, Update, Write


def sums_as_products(statements: Iterable[Statement]) -> list[Statement]:
    return [_statement(item) for item in statements]


def _statement(item: Statement) -> Statement:
    if isinstance(item, Loop):
        return replace(item, body=tuple(sums_as_products(item.body)))
    if isinstance(item, (Assign, Update, Write)):
        return replace(item, value=faster(item.value))
    return replace(item, values=faster(item.values)) if isinstance(item, ScatterAdd) else item


def faster(node: Node) -> Node:
    """A node with the sums inside of it as products."""
    args = tuple(faster(arg) for arg in node.args)
    if any(new is not old for new, old in zip(args, node.args, strict=True)):
        node = Node(node.op, args, node.data, node.shape, node.kind)
    return as_product(node) or node if node.op in ("sum", "mean") else node


def as_product(node: Node) -> Node | None:
    (arg,) = node.args
    last = tuple(node.data) == (arg.rank - 1,)
    lead = node.op == "sum" and tuple(node.data) == tuple(range(arg.rank - 1))
    if arg.rank < 2 or arg.kind != "f" or not (last or lead):
        return None
    pair = two_factors(arg)
    length = arg.shape[-1]
    if lead and not last:
        axes = "ijklmnop"[: arg.rank]
        return Node("einsum", pair, (f"{axes},{axes}->{axes[-1]}",), node.shape) if pair else None
    if pair is not None:
        found = Node("einsum", pair, ("...i,...i->...",), node.shape)
        scale = Node("scalar", (), (1 / length,))
        return found if node.op == "sum" else Node("mul", (scale, found), (), node.shape)
    if arg.op != "array":
        return None
    if node.op == "sum":
        weights = Node("ones", (), (), (length,))
    else:
        weights = Node("full", (Node("scalar", (), (1 / length,)),), (), (length,))
    return Node("matmul", (arg, weights), (), node.shape)


def two_factors(node: Node) -> tuple[Node, Node] | None:
    """The two factors of a product of arrays of one shape, neither of them computed here."""
    found = node.args if node.op == "mul" else ()
    if node.op == "pow" and is_scalar(node.args[1], 2):
        found = (node.args[0], node.args[0])
    if len(found) != 2 or any(f.shape != node.shape or f.kind != "f" or f.op not in VIEWS for f in found):
        return None
    return found[0], found[1]

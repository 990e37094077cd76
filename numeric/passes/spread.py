"""Assignments of what needs statements of its own: blocks put into zeros, scatter-adds, entries on a diagonal.

Y = X + place(V)     →   Y = X.copy();  Y[1:] += V
G = scatter(w, V)    →   G = zeros;  G[w[i]] += V[i] for all i
x = overlap(V)       →   x = zeros;  for k in range(K):  x[k : k + n] += V[:, k]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from sympy import S

from gradproof.numeric.lowering.nodes import PRODUCTS, STATEMENTS, VIEWS, Cut, Node, Place, broadcast_shape, paddable
from gradproof.numeric.lowering.program import Assign, Loop, Program, ScatterAdd, Statement, Update


def spread_out(program: Program) -> Program:
    return replace(program, statements=tuple(spread_all(program.statements, program.owned)))


def spread_all(statements: Iterable[Statement], owned: Collection[str]) -> list[Statement]:
    found: list[Statement] = []
    for item in statements:
        if isinstance(item, Loop):
            found.append(replace(item, body=tuple(spread_all(item.body, owned))))
        else:
            found += spread(item, owned) if isinstance(item, Assign) else [item]
    return found


def spread(item: Assign, owned: Collection[str]) -> list[Statement]:
    """An assignment with the statements that complete it; arrays that are `owned` need not be copied."""
    node = item.value
    if node.op == "broadcast":
        (value,) = node.args
        return [replace(item, value=Node("full", (value,), (), node.shape, node.kind) if item.whole else value)]
    terms = node.args if node.op == "add" else (node,)
    later = [] if node.op == "place" and paddable(node) else [term for term in terms if term.op in STATEMENTS]
    if not later:
        return [item]
    first = [term for term in terms if term not in later]
    start: Node | None = None
    if first:
        start = first[0] if len(first) == 1 else Node("add", tuple(first), (), broadcast_shape(first), node.kind)
    whole = start is not None and start.shape == node.shape
    if start is None or not whole or (node.kind == "f" and all(term.kind != "f" for term in first)):
        found: list[Statement] = [replace(item, value=Node("zeros", shape=node.shape))]  # 2, or 2 I in whole numbers
        found += [Update(item.target, "+", start)] if start is not None else []
    else:
        kept = start.op in VIEWS and not own(start, owned)
        found = [replace(item, value=Node("copy", (start,), (), start.shape, start.kind) if kept else start)]
    return [*found, *(statement for term in later for statement in put(item.target, term, term is node))]


def own(node: Node, owned: Collection[str]) -> bool:
    """Whether nothing else reads the memory of an array, so that it may be added to in place."""
    while node.op in VIEWS and node.args:
        (node, *_) = node.args
    return node.op in PRODUCTS or (node.op == "array" and node.data[0] in owned)


def put(target: Node, term: Node, alone: bool = False) -> list[Statement]:
    """The statements that add a term to an array; `alone` says that the array holds zeros."""
    if term.op == "scatter":
        return [ScatterAdd(target, term.args[1:], term.args[0])]
    if term.op == "overlap":
        return [overlap(target, term)]
    (values,) = term.args
    if term.op == "place":
        places: list[Place | Node] = list(term.data)
    else:  # target[:, k, :, k] += values with k = 0 … n-1
        every = Node("arange", (), (S.Zero, term.shape[term.data[0]]), (term.shape[term.data[0]],), "i")
        places = [every if k in term.data else Cut(S.Zero, size) for k, size in enumerate(term.shape)]
    part = Node("index", (target,), tuple(places), values.shape)
    return [Assign(part, values) if alone else Update(part, "+", values)]


def overlap(target: Node, term: Node) -> Loop:
    """Add blocks, one column after another."""
    columns, steps = dict(term.data[0]), term.data[1]
    (values,) = term.args
    places: list[Place] = [Cut(*step) if step else Cut(S.Zero, n) for step, n in zip(steps, term.shape, strict=True)]
    letters = {place: letter for letter, place in columns.items()}
    read: list[Place] = [letters.get(k, Cut(S.Zero, size)) for k, size in enumerate(values.shape)]
    shape = [size for k, size in enumerate(values.shape) if k not in letters]
    part = Node("index", (target,), tuple(places), tuple(shape))
    statement: Statement = Update(part, "+", Node("index", (values,), tuple(read), tuple(shape)))
    for letter, place in reversed(columns.items()):
        statement = Loop(letter, S.Zero, values.shape[place], False, (statement,))
    assert isinstance(statement, Loop)
    return statement

"""Products with an inverse as solutions of linear equations, which is more accurate and no more work.

    A⁻¹ Y  →  solve(A, Y)        Y A⁻¹  →  solve(Aᵀ, Yᵀ)ᵀ

An inverse costs 2n³ operations and a solution ⅔n³, beside what the right side costs in both ways. So an inverse that is
read by at most three products, and by nothing else, is never computed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from gradproof.numeric.lowering.nodes import Graph, Node, Shape
from gradproof.numeric.lowering.program import Assign, Loop, Statement

MOST = 3


def with_solutions(graph: Graph, statements: Sequence[Statement], returned: Collection[str]) -> list[Statement]:
    """The statements with such products replaced, and without the inverses that nobody reads then."""
    stores = [s for s in statements if isinstance(s, Assign)]
    if any(isinstance(s, Loop) for s in statements) or not any(s.value.op == "inv" for s in stores):
        return list(statements)  # what a loop reads is computed once, before it
    readers: dict[Node, set[Node]] = {}
    stack, seen = [s.value for s in stores], set()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.args
            for arg in node.args:
                readers.setdefault(arg, set()).add(node)
    given = {s.value for s in stores if s.name in returned}
    named = {s.value for s in stores}
    gone = {
        node
        for node in seen
        if node.op == "inv" and node not in given and solvable(node, products(node, readers, named))
    }
    new: dict[Node, Node] = {}
    kept = [s for s in statements if not (isinstance(s, Assign) and s.value in gone)]
    return [replace(s, value=_rewritten(graph, s.value, gone, new)) if isinstance(s, Assign) else s for s in kept]


def products(inverse: Node, readers: dict[Node, set[Node]], named: Collection[Node]) -> list[tuple[Node, Node]]:
    """Who reads an inverse, or its transpose, and in which of these two forms."""
    found = []
    for reader in readers.get(inverse, ()):
        turned = reader.op == "view" and reader.data == swapped(inverse) and reader not in named
        found += [(other, reader) for other in readers.get(reader, ())] if turned else [(reader, inverse)]
    return found


def solvable(inverse: Node, found: Sequence[tuple[Node, Node]]) -> bool:
    """Whether all readers are products with something that fits on the right side of an equation, and few enough."""
    for reader, form in found:
        others = [arg for arg in reader.args if arg is not form]
        if reader.op != "matmul" or len(others) != 1 or inverse in _inside(others[0]):
            return False
        if others[0].rank != inverse.rank and not (inverse.rank == 2 and others[0].rank == 1):
            return False
    return 0 < len(found) <= MOST


def _inside(node: Node) -> set[Node]:
    return {node, *(node.args if node.op == "view" else ())}


def swapped(node: Node) -> tuple[int, ...]:
    return (*range(node.rank - 2), node.rank - 1, node.rank - 2)


def _rewritten(graph: Graph, node: Node, gone: Collection[Node], new: dict[Node, Node]) -> Node:
    if node not in new:
        solution = _solution(graph, node, gone, new) if node.op == "matmul" else None
        args = [] if solution else [_rewritten(graph, arg, gone, new) for arg in node.args]
        if solution is None and any(new_arg is not arg for new_arg, arg in zip(args, node.args, strict=True)):
            turned = node.op == "view"
            solution = graph.view(args[0], node.data) if turned else graph.make(node.op, args, *_rest(node))
        new[node] = solution or node
    return new[node]


def _rest(node: Node) -> tuple[tuple[object, ...], Shape, str]:
    return node.data, node.shape, node.kind


def _solution(graph: Graph, node: Node, gone: Collection[Node], new: dict[Node, Node]) -> Node | None:
    for place, form in enumerate(node.args):
        inverse = form if form.op == "inv" else form.args[0] if form.op == "view" else None
        if inverse is None or inverse not in gone:
            continue
        other = _rewritten(graph, node.args[1 - place], gone, new)
        matrix = _rewritten(graph, inverse.args[0], gone, new)
        if (form is inverse) == (place == 1):  # Aᵀ is solved with
            matrix = graph.view(matrix, swapped(matrix))
        if place == 0:
            return graph.make("solve", [matrix, other], (), node.shape)
        right = graph.view(other, swapped(other)) if other.rank > 1 else other
        shape = [node.shape[axis] for axis in swapped(node)] if other.rank > 1 else node.shape
        solved = graph.make("solve", [matrix, right], (), shape)
        return graph.view(solved, swapped(solved)) if other.rank > 1 else solved
    return None

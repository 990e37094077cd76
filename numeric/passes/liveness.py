"""Which arrays a statement reads for the last time, so that it may take their memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from gradproof.numeric.lowering.nodes import VIEWS, Node
from gradproof.numeric.lowering.program import Assign, Program, arrays_in, nodes_of, walk

FRESH = frozenset(
    {"matmul", "cumsum", "tensordot", "einsum", "add", "mul", "call", "where", "float"}
)  # a new array each time
PASSED = frozenset({"view", "reshape", "squeeze"})  # a view of a new array is as good


def last_reads(program: Program, overwrite: Collection[str]) -> dict[int, frozenset[str]]:
    """For each statement, the new arrays that no later one reads, that no view shows, and that are not returned.

    `overwrite` names arguments that count as new.
    """
    new, shared = set(overwrite), set(program.returned)
    last: dict[str, int] = {}
    for position, statement in enumerate(program.statements):
        for part in walk([statement]):
            names = arrays_in(*nodes_of(part))
            last.update(dict.fromkeys(names, position))
            if part is not statement or not isinstance(part, Assign) or not part.whole:
                shared |= names | ({part.name} if isinstance(part, Assign) else set())
            elif (viewed := shown(part.value)) is not None:
                shared |= {viewed, part.name}
            elif fresh(part.value):
                new.add(part.name)
    found: dict[int, set[str]] = defaultdict(set)
    for name, position in last.items():
        if name in new - shared:
            found[position].add(name)
    return {position: frozenset(names) for position, names in found.items()}


def shown(node: Node) -> str | None:
    """The array that a node is, or shows in another way."""
    while node.op in VIEWS and node.args:
        (node, *_) = node.args
    return str(node.data[0]) if node.op == "array" else None


def fresh(node: Node) -> bool:
    """Whether a node is a new array of floats, or shows nothing but one."""
    while node.op in PASSED:
        (node, *_) = node.args
    return node.op in FRESH and node.kind == "f"

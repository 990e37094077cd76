"""Decide which intermediate arrays get a name, and in which order statements stand.

An array that is read more than once is computed once and named; so is what a loop reads but does not change, what
needs statements of its own, and a part of a line that would be too long.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from gradproof.numeric.lowering.nodes import (
    LEAVES,
    PRODUCTS,
    REDUCTIONS,
    STATEMENTS,
    VIEWS,
    Graph,
    Node,
    free_symbols,
    identifier,
    paddable,
    parts,
)
from gradproof.numeric.lowering.program import Assign, Loop, Program, Statement, walk
from gradproof.numeric.passes.naming import suggested
from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.equations.system import Equation

WIDTH = 96  # of a line, without the function's indentation


class Ruler(Protocol):
    """How long code will be: the schedule breaks up what is too long for a line."""

    def line(self, statement: Assign, owned: Collection[str]) -> int:
        """The length of the longest line of a statement."""
        ...

    def part(self, node: Node) -> int:
        """The length of an expression."""
        ...


class Schedule:
    """Turns what the lowering made into the statements of one function."""

    def __init__(
        self,
        graph: Graph,
        statements: Sequence[Statement],
        ruler: Ruler,
        returned: Iterable[str],
        taken: Iterable[str],
        comment: Callable[[Equation], str] = lambda equation: "",
    ) -> None:
        self.graph, self.statements, self.ruler, self.comment = graph, statements, ruler, comment
        self.names: dict[Node, str] = {}
        self.returned = tuple(returned)
        assigned = [s for s in walk(statements) if isinstance(s, Assign)]
        self.taken = {*taken, *self.returned, *(s.name for s in assigned)}
        self.roots = {s.value: s.name for s in reversed(assigned) if s.whole and s.value.op not in LEAVES}
        self.readers: dict[Node, set[Node]] = defaultdict(set)
        self.uses = self._count()
        self.done: set[Node] = set()
        self.inlined: set[Node] = set()
        self.owned: set[str] = set()
        self.found: list[Statement] = []
        loops = [s for s in statements if isinstance(s, Loop)]
        self.looped = {s.equation for s in walk(loops) if isinstance(s, Assign)}  # their comments stand in the loop
        for statement in statements:
            self._emit(statement)

    @property
    def program(self) -> Program:
        inside = {
            s.name for loop in self.found if isinstance(loop, Loop) for s in walk([loop]) if isinstance(s, Assign)
        }
        # a loop may have no turn (one step in all): what is set inside it need not exist
        temporaries = {name for node, name in self.names.items() if node not in self.roots} - inside
        return Program(tuple(self.found), self.returned, frozenset(temporaries), frozenset(self.owned))

    # ------------------------------------------------------------------------------------------------------ counting

    def _count(self) -> Counter[Node]:
        """How often each node is computed if only nodes that are worth a name get one."""
        order: list[Node] = []
        seen: set[Node] = set()
        found = list(walk(self.statements))
        roots = [s.value for s in found if isinstance(s, Assign)]
        for root in roots:
            _post_order(root, seen, order)
        uses = Counter(roots)
        for node in reversed(order):
            weight = uses[node] if cheap(node) and node not in self.roots else 1
            for arg in node.args:
                uses[arg] += weight + (node.op == "overlap")  # it is read once for every column
                self.readers[arg].add(node)
        for loop in (s for s in found if isinstance(s, Loop)):
            self._count_loop(loop, uses)
        return uses

    def _count_loop(self, loop: Loop, uses: Counter[Node]) -> None:
        """What a loop reads but does not change is computed before it."""
        changed = changed_names(loop)
        stack = [s.value for s in walk(loop.body) if isinstance(s, Assign)]
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if depends(node, loop.letter, changed):
                stack.extend(node.args)
            elif not cheap(node):
                uses[node] += 1
            else:
                stack.extend(node.args)

    # ------------------------------------------------------------------------------------------------------ emitting

    def _emit(self, statement: Statement) -> None:
        if isinstance(statement, Loop):
            self._loop(statement)
        elif not isinstance(statement, Assign):
            self.found.append(statement)
        elif statement.whole:
            self._root(statement, self._comment(statement), self.found)
        else:
            self._need(statement.value, self.found)
            self._append(statement, self._comment(statement), self.found)

    def _root(self, statement: Assign, comment: tuple[str, ...], into: list[Statement]) -> None:
        node, name = statement.value, statement.name
        if node in self.done and self.names.get(node) == name:
            return
        known = node in self.done
        if not known:
            self._prepare(statement, into)
            self.done.add(node)
        self._append(statement, comment, into)
        if not known and node.op not in LEAVES:
            self._give(node, name)

    def _append(self, statement: Assign, comment: tuple[str, ...], into: list[Statement]) -> None:
        """A statement with the names of what it reads."""
        self._note_inlined(statement.value)
        into.append(replace(statement, value=self.resolved(statement.value), comment=comment))

    def _give(self, node: Node, name: str) -> None:
        self.names[node] = name
        self.taken.add(name)
        if self._own(node):
            self.owned.add(name)

    def _own(self, node: Node) -> bool:
        """Whether nothing but one line reads the memory of an array."""
        while node.op in VIEWS and node.args and self._single(node):
            (node, *_) = node.args
        return self._single(node) and node.op in PRODUCTS

    def _single(self, node: Node) -> bool:
        return self.uses[node] == 1 and node not in self.roots

    def _note_inlined(self, node: Node) -> None:
        """A node that an earlier line holds without a name must not get one further down."""
        stack = list(node.args)
        while stack:
            part = stack.pop()
            if part not in self.names and part not in self.inlined:
                self.inlined.add(part)
                stack.extend(part.args)

    def resolved(self, node: Node) -> Node:
        """A node that reads named arrays by their names."""
        if node in self.names:
            return self.graph.array(self.names[node], node.shape, node.kind)
        args = [self.resolved(arg) for arg in node.args]
        if all(new is old for new, old in zip(args, node.args, strict=True)):
            return node
        return self.graph.make(node.op, args, node.data, node.shape, node.kind)

    def _comment(self, statement: Assign) -> tuple[str, ...]:
        return () if statement.equation in self.looped else self._told(statement)

    def _told(self, statement: Assign) -> tuple[str, ...]:
        text = self.comment(statement.equation) if statement.equation is not None else ""
        return tuple(f"# {line}" for line in textwrap.wrap(text, WIDTH - 2, break_long_words=False))

    def _prepare(self, statement: Assign, into: list[Statement]) -> None:
        """Name what a line needs, and parts of it until it is short enough."""
        node = statement.value
        for arg in node.args:
            self._need(arg, into, inside=node.op == "add")
        while True:
            length = self.ruler.line(replace(statement, value=self.resolved(node)), self.owned)
            chosen = self._parts_to_name(node, length) if length > WIDTH else []
            if not chosen:
                return
            for part in chosen:
                self._name(part, into)

    def _need(self, node: Node, into: list[Statement], inside: bool = False) -> None:
        """Emit the named nodes that `node` is made of, and itself if it gets a name.

        `inside` says that the reader is a sum, whose terms may be statements of their own.
        """
        if node in self.names or node in self.done:
            return
        for arg in node.args:
            self._need(arg, into)
        if self._deserves_name(node, inside):
            self._name(node, into)

    def _deserves_name(self, node: Node, inside_sum: bool) -> bool:
        if node.op in STATEMENTS and not (node.op == "place" and paddable(node)):
            return not (inside_sum and self.uses[node] == 1)
        if node in self.roots and node.op not in LEAVES:
            return True  # an equation further down names it
        if node.op == "view" and self._kept(node.args[0]) is node:
            return self.uses[node.args[0]] > 1
        if cheap(node) or self._kept(node) is not None:
            return False
        return self.uses[node] > 1

    def _kept(self, node: Node) -> Node | None:
        """The only reader of a reduction, if that is the form with the summed axes kept."""
        if node.op not in REDUCTIONS or node in self.roots or len(self.readers[node]) != 1:
            return None
        (reader,) = self.readers[node]
        kept = reader.op == "view" and tuple(k for k, axis in enumerate(reader.data) if axis is None) == node.data
        return reader if kept else None

    def _name(self, node: Node, into: list[Statement]) -> None:
        name = self.roots.get(node) or self._free(suggested(node, self.names))
        statement = Assign(self.graph.array(name, node.shape, node.kind), node)
        self._prepare(statement, into)
        self._append(statement, (), into)
        self._give(node, name)
        self.done.add(node)

    def _free(self, name: str) -> str:
        name = identifier(name)
        if name not in self.taken:
            return name
        return next(f"{name}_{k}" for k in range(2, 10_000) if f"{name}_{k}" not in self.taken)

    def _parts_to_name(self, node: Node, total: int) -> list[Node]:
        """The unnamed part of a long expression that splits it most evenly; of a very long one, half of its parts."""
        whole = node.op == "add" and any(arg.op in STATEMENTS for arg in node.args)  # what the rest is added to
        stack, found = list(node.args), {}
        while stack:
            part = stack.pop()
            if part in self.names or part in found:
                continue
            stack.extend(part.args)
            if part in self.inlined or part.op in STATEMENTS or (whole and part in node.args):
                continue
            length = self.ruler.part(self.resolved(part))
            if length > 20 and part.op not in ("scalar", "array"):
                found[part] = cheap(part), abs(length - total / 2), length
        if total <= 4 * WIDTH:
            return [min(found, key=found.__getitem__)] if found else []
        chosen: list[Node] = []
        inside: set[Node] = set()
        left = total
        for part in sorted(found, key=found.__getitem__):
            own = set(parts(part))
            if left > total / 2 and inside.isdisjoint(own):
                chosen.append(part)
                inside |= own & found.keys()
                left -= found[part][2]
        return chosen

    # --------------------------------------------------------------------------------------------------------- loops

    def _loop(self, loop: Loop) -> None:
        """What does not change stands before the loop; the rest inside, line by line."""
        changed = changed_names(loop)
        for statement in walk(loop.body):
            if isinstance(statement, Assign):
                self._hoist(statement.value, loop.letter, changed)
        body: list[Statement] = []
        for statement in loop.body:
            if isinstance(statement, Assign) and statement.whole:
                self._root(statement, (), body)
            elif isinstance(statement, Assign):
                self._prepare(statement, body)
                self._append(statement, self._told(statement), body)
        self.found.append(replace(loop, body=tuple(body)))

    def _hoist(self, node: Node, letter: Index, changed: frozenset[str]) -> None:
        if node in self.names or node in self.done:
            return
        if depends(node, letter, changed):
            for arg in node.args:
                self._hoist(arg, letter, changed)
        else:
            self._need(node, self.found)


def _post_order(node: Node, seen: set[Node], order: list[Node]) -> None:
    stack = [(node, False)]
    while stack:
        current, ready = stack.pop()
        if ready:
            order.append(current)
        elif current not in seen:
            seen.add(current)
            stack.append((current, True))
            stack.extend((arg, False) for arg in current.args)


def cheap(node: Node) -> bool:
    """Whether computing a node again costs nothing: views, numbers, and one division that belongs to its reader."""
    if node.op in VIEWS or node.op in ("scalar", "broadcast"):
        return True
    if node.op == "pow":
        exponent = node.args[1]
        return exponent.op == "scalar" and exponent.data[0] == -1
    return all(arg.op == "scalar" for arg in node.args) and not node.rank and node.op in ("add", "mul")


def changed_names(loop: Loop) -> frozenset[str]:
    return frozenset(s.name for s in walk(loop.body) if isinstance(s, Assign))


def depends(node: Node, letter: Index, changed: frozenset[str]) -> bool:
    """Whether a node differs from one turn of a loop to the next."""
    stack, seen = [node], set()
    while stack:
        part = stack.pop()
        if part in seen:
            continue
        seen.add(part)
        if part.op == "array" and part.data[0] in changed:
            return True
        if any(letter in free_symbols(item) for item in part.data):
            return True
        stack.extend(part.args)
    return False

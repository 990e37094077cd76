"""Decide which intermediate arrays get a name, in which order lines stand, and where a name is deleted.

An array that is read more than once is computed once and named; so is what a loop reads but does not change, what
needs statements of its own, and a part of a line that would be too long.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sympy import Expr, Symbol

from gradproof.numeric.lowering.nodes import Cut, Node, identifier, is_scalar, negative
from gradproof.numeric.lowering.statements import Fill, Lines, Loop, Statement, Store, Target
from gradproof.numeric.printers.numpy_printer import extent
from gradproof.numeric.printers.statement_printer import REDUCTIONS, STATEMENTS, VIEWS, StatementPrinter
from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.equations.system import Equation

LEAVES = ("array", "scalar")
WIDTH = 96  # of a line, without the function's indentation
Entry = tuple[Symbol, Node | Lines | None]


class Schedule:
    """Turns statements into the assignments of one function, ready for `sympy.lambdify`."""

    def __init__(
        self,
        statements: Sequence[Statement],
        printer: StatementPrinter,
        returned: Iterable[str],
        taken: Iterable[str],
        comment: Callable[[Equation], str] = lambda equation: "",
    ) -> None:
        self.statements, self.printer, self.comment = statements, printer, comment
        self.names = printer.names
        self.returned = frozenset(returned)
        self.taken = {*taken, *self.returned, *(s.name for s in walk(statements) if not isinstance(s, Loop))}
        stores = [s for s in walk(statements) if isinstance(s, Store) and not s.places and s.node.op not in LEAVES]
        self.roots = {store.node: store.name for store in reversed(stores)}
        self.readers: dict[Node, set[Node]] = defaultdict(set)
        self.uses = self._count()
        printer.single = frozenset(node for node, count in self.uses.items() if count == 1 and node not in self.roots)
        self.done: set[Node] = set()
        self.inlined: set[Node] = set()
        self.entries: list[Entry] = []
        loops = [s for s in statements if isinstance(s, Loop)]
        self.looped = {s.equation for s in walk(loops) if isinstance(s, Store)}  # their comments stand in the loop
        for statement in statements:
            self._emit(statement)
        self._delete()

    # ------------------------------------------------------------------------------------------------------ counting

    def _count(self) -> Counter[Node]:
        """How often each node is computed if only nodes that are worth a name get one."""
        order: list[Node] = []
        seen: set[Node] = set()
        found = list(walk(self.statements))
        roots = [s.node for s in found if isinstance(s, Store)]
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
        stack = [s.node for s in walk(loop.body) if isinstance(s, Store)]
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
        elif isinstance(statement, Fill):
            self._append(Target(statement.name), Lines(statement.name, statement))
        elif statement.places:
            self._need(statement.node, self.entries)
            subscript = self.printer.subscript(statement.places, statement.shape)
            self._note_inlined(statement.node)
            self._append(Target(statement.name + subscript, self._comment(statement)), statement.node)
        else:
            self._root(statement, self.entries)

    def _root(self, statement: Store, into: list[Entry]) -> None:
        if statement.node in self.done and self.names.get(statement.node) == statement.name:
            return
        if statement.node not in self.done:
            self._prepare(statement.node, statement.name, into)
            self.done.add(statement.node)
            into.append(self._entry(statement.name, statement.node, self._comment(statement)))
            if statement.node.op not in LEAVES:
                self.names[statement.node] = statement.name
        else:
            into.append((Target(statement.name, self._comment(statement)), statement.node))

    def _entry(self, name: str, node: Node, comment: str = "") -> Entry:
        self._note_inlined(node)
        return Target(name, comment), Lines(name, node)

    def _note_inlined(self, node: Node) -> None:
        """A node that an earlier line holds without a name must not get one further down."""
        stack = list(node.args)
        while stack:
            part = stack.pop()
            if part not in self.names and part not in self.inlined:
                self.inlined.add(part)
                stack.extend(part.args)

    def _append(self, target: Target, value: Node | Lines) -> None:
        self.entries.append((target, value))

    def _comment(self, statement: Store) -> str:
        lines = [] if statement.equation in self.looped else commented(self._text(statement))
        return "".join(f"{line}\n    " for line in lines)

    def _text(self, statement: Store) -> str:
        return self.comment(statement.equation) if statement.equation is not None else ""

    def _prepare(self, node: Node, name: str, into: list[Entry]) -> None:
        """Name what a line needs, and parts of it until it is short enough."""
        for arg in node.args:
            self._need(arg, into, inside=node.op == "add" or None)
        while len(line := self._line(name, node)) > WIDTH:
            part = self._part_to_name(node, len(line))
            if part is None:
                return
            self._name(part, into)

    def _line(self, name: str, node: Node) -> str:
        text, rest = self.printer.assigned(name, node)
        return max([f"{name} = {text}", *rest], key=len)

    def _need(self, node: Node, into: list[Entry], inside: bool | None = None) -> None:
        """Emit the named nodes that `node` is made of, and itself if it gets a name.

        `inside` says that the reader is a sum, whose terms may be statements of their own.
        """
        if node in self.names or node in self.done:
            return
        for arg in node.args:
            self._need(arg, into)
        if self._deserves_name(node, bool(inside)):
            self._name(node, into)

    def _deserves_name(self, node: Node, inside_sum: bool) -> bool:
        if node.op in STATEMENTS and not (node.op == "place" and self.printer.paddable(node)):
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

    def _name(self, node: Node, into: list[Entry]) -> None:
        name = self.roots.get(node) or self._free(suggested(node, self.names))
        self._prepare(node, name, into)
        into.append(self._entry(name, node))
        self.names[node] = name
        self.done.add(node)
        self.taken.add(name)

    def _free(self, name: str) -> str:
        name = identifier(name)
        if name not in self.taken:
            return name
        return next(f"{name}_{k}" for k in range(2, 10_000) if f"{name}_{k}" not in self.taken)

    def _part_to_name(self, node: Node, total: int) -> Node | None:
        """The unnamed part of a long expression that splits it most evenly."""
        whole = node.op == "add" and any(arg.op in STATEMENTS for arg in node.args)  # what the rest is added to
        stack, found = list(node.args), []
        while stack:
            part = stack.pop()
            if part in self.names:
                continue
            stack.extend(part.args)
            if part in self.inlined or part.op in STATEMENTS or (whole and part in node.args):
                continue
            length = len(self.printer.expression(part))
            if length > 20 and part.op not in ("scalar", "array"):
                found.append((cheap(part), abs(length - total / 2), length, part))
        return min(found, key=lambda item: item[:3])[3] if found else None

    # --------------------------------------------------------------------------------------------------------- loops

    def _loop(self, loop: Loop) -> None:
        """What does not change stands before the loop; the rest inside, line by line."""
        changed = changed_names(loop)
        for statement in walk(loop.body):
            if isinstance(statement, Store):
                self._hoist(statement.node, loop.letter, changed)
        body: list[Statement] = []
        for statement in loop.body:
            entries: list[Entry] = []
            if isinstance(statement, Store) and statement.places:
                target = statement.name + self.printer.subscript(statement.places, statement.shape)
                self._prepare(statement.node, target, entries)
                self._note_inlined(statement.node)
                body += [_as_store(entry) for entry in entries]
                body.append(replace(statement, comment=tuple(commented(self._text(statement)))))
            elif isinstance(statement, Store):
                self._root(statement, entries)
                body += [_as_store(entry) for entry in entries]
        self._attach(Loop(loop.letter, loop.start, loop.stop, loop.down, tuple(body)))

    def _attach(self, loop: Loop) -> None:
        """Lambdify knows assignments only: a loop is printed behind the last one."""
        target, value = self.entries.pop()
        lines = value if isinstance(value, Lines) else Lines(str(target), value)  # type: ignore[arg-type]
        self.entries.append((target, Lines(lines.target, lines.first, (*lines.rest, loop))))

    def _hoist(self, node: Node, letter: Index, changed: frozenset[str]) -> None:
        if node in self.names or node in self.done:
            return
        if depends(node, letter, changed):
            for arg in node.args:
                self._hoist(arg, letter, changed)
        else:
            self._need(node, self.entries)

    # ------------------------------------------------------------------------------------------------------ deleting

    def _delete(self) -> None:
        """Delete a large array that no equation names behind the last line that reads it, unless the end is near."""
        nodes = {name: node for node, name in self.names.items()}
        last: dict[str, int] = {}
        for position, (target, value) in enumerate(self.entries):
            names = {str(target).split("[")[0]}
            for node in _nodes_of(value):
                names |= self._read(node)
                if node in self.names:  # a second name for the same array
                    names.add(self.names[node])
            for name in names:
                last[name] = position
        # a loop may have no turn (one step in all): what is set inside it need not exist
        stores = (s for _, value in self.entries if isinstance(value, Lines) for s in walk(value.rest))
        inside = {s.name for s in stores if isinstance(s, Store) and not s.places}
        doomed: dict[int, list[str]] = {}
        for name, position in last.items():
            temporary = name in nodes and nodes[name] not in self.roots and nodes[name].rank >= 2 and name not in inside
            if temporary and position < len(self.entries) - 2:
                doomed.setdefault(position, []).append(name)
        entries: list[Entry] = []
        for position, entry in enumerate(self.entries):
            entries.append(entry)
            if position in doomed:
                entries.append((Symbol(", ".join(sorted(doomed[position]))), None))
        self.entries = entries

    def _read(self, node: Node) -> set[str]:
        """The names that the printed form of a node contains."""
        found: set[str] = set()
        stack = list(node.args)
        if node.op == "array":
            found.add(node.data[0])
        while stack:
            part = stack.pop()
            if part in self.names:
                found.add(self.names[part])
            elif part.op == "array":
                found.add(part.data[0])
            else:
                stack.extend(part.args)
        return found


def commented(text: str) -> list[str]:
    """A formula as lines of comment."""
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH - 2, break_long_words=False)]


def _nodes_of(value: Node | Lines | None) -> list[Node]:
    if isinstance(value, Lines):
        first = [value.first] if isinstance(value.first, Node) else []
        return first + [s.node for s in walk(value.rest) if isinstance(s, Store)]
    return [value] if isinstance(value, Node) else []


def _as_store(entry: Entry) -> Store:
    target, value = entry
    node = value.first if isinstance(value, Lines) else value
    return Store(str(target), node)  # type: ignore[arg-type]


def walk(statements: Iterable[Statement]) -> Iterable[Statement]:
    """All statements, those inside loops included."""
    for statement in statements:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)


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
    return frozenset(s.name for s in walk(loop.body) if isinstance(s, (Store, Fill)))


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


def free_symbols(item: object) -> set[Symbol]:
    if isinstance(item, Cut):
        return item.start.free_symbols | item.count.free_symbols
    return item.free_symbols if isinstance(item, Expr) else set()


# ------------------------------------------------------------------------------------------------------------- naming


def suggested(node: Node, names: Mapping[Node, str]) -> str:
    """A name that says what a temporary holds."""
    main = [name for arg in sorted(node.args, key=lambda arg: -extent(arg)) if (name := main_name(arg, names))]
    first = stem(main[0]) if main else "part"
    if node.op in ("view", "float"):
        return suggested(node.args[0], names)
    if node.op == "where":
        branches = [name for arg in node.args[1:] if (name := main_name(arg, names))]
        return f"{stem(branches[0])}_masked" if branches else "masked"
    if node.op in REDUCTIONS:
        return f"{first}_{node.op}"
    if node.op == "matmul" and len(main) == 2:
        return "".join(main) if all(len(name) <= 2 for name in main) else "_".join(main)
    if node.op == "call" and node.data[0] == "maximum":
        return suggested(node.args[0], names)
    if node.op == "call":
        return f"{node.data[0]}_{first}"
    if node.op == "mul" and len(main) == 2 and all(len(name) <= 6 for name in main):
        return "_".join(main)
    if node.op == "add" and len(main) == 2 and sum(map(len, main)) < 12:
        signs = [negative(arg) for arg in sorted(node.args, key=lambda arg: -extent(arg)) if main_name(arg, names)]
        return f"{main[1]}_minus_{main[0]}" if signs[0] else f"{main[0]}_{'minus' if signs[1] else 'plus'}_{main[1]}"
    if node.op == "add" and len(node.args) == 2 and is_one_minus_square(node):
        return f"{first}_slope"
    if node.op == "pow" and node.args[1].op == "scalar":
        return f"{first}_{POWERS.get(str(node.args[1].data[0]), 'power')}"
    return FALLBACK.get(node.op, "{}_part").format(first)


def is_one_minus_square(node: Node) -> bool:
    """1 − x², the slope of tanh."""
    one, other = sorted(node.args, key=lambda arg: arg.op != "scalar")
    square = other.args[-1] if other.op == "mul" and is_scalar(other.args[0], -1) else one
    return is_scalar(one, 1) and square.op == "pow" and is_scalar(square.args[1], 2)


def stem(name: str) -> str:
    """A name without the endings that say how it was made, where there is more than one of them.

    >>> stem("X_squared_shifted"), stem("W_Q_max")
    ('X', 'W_Q_max')
    """
    parts = name.split("_")
    count = sum(part in ENDINGS or part.isdigit() for part in parts[1:])
    if count < 2:
        return name
    return "_".join(part for k, part in enumerate(parts) if k == 0 or not (part in ENDINGS or part.isdigit()))


ENDINGS = frozenset({"shifted", "scaled", "masked", "squared", "power", "root", "part", "mask", "sum", "max", "mean"})
POWERS = {"2": "squared", "1/2": "root", "-1/2": "scale"}
FALLBACK = {
    "compare": "mask",
    "eye": "identity",
    "arange": "index",
    "where": "{}_masked",
    "add": "{}_shifted",
    "mul": "{}_scaled",
    "place": "{}_padded",
    "overlap": "{}_added",
    "scatter": "{}_scattered",
    "take": "{}_taken",
    "float": "{}_mask",
    "solve": "{}_solved",
}


def main_name(node: Node, names: Mapping[Node, str]) -> str | None:
    """The name of the first array that a node is made of."""
    if node in names:
        return names[node]
    if node.op == "array":
        return str(node.data[0])
    if node.op == "matmul":
        pair = [main_name(arg, names) or "" for arg in node.args]
        if all(1 <= len(name) <= 2 for name in pair):
            return "".join(pair)
    found = (main_name(arg, names) for arg in sorted(node.args, key=lambda arg: -extent(arg)))
    return next((name for name in found if name), None)

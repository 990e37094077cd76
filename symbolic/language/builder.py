"""The state of a system under construction: arrays, equations, names that are free, index letters and their ranges."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NoReturn

from sympy import Expr, Integer, Pow, S, floor

from gradproof.symbolic.equations.expr import Access, Axis, Index, Size, height, letters, nonnegative
from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.equations.origins import Softmax
from gradproof.symbolic.equations.roles import PLAIN, Kind, Role
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters
from gradproof.symbolic.errors import ExpressionError, ShapeError
from gradproof.symbolic.language.demands import Demands
from gradproof.symbolic.language.operators import MAX_SUMS
from gradproof.symbolic.language.random_arrays import OPTIONS, declared_law
from gradproof.symbolic.language.syntax import Declaration
from gradproof.symbolic.language.values import ShapeMismatch, Value
from gradproof.symbolic.language.whitelist import place
from gradproof.symbolic.printing.text import plain_name

UNKNOWN = Size("unknown")  # where a range ends that another piece of a recurrence will tell


@dataclass
class Letter:
    """An index letter in scope, and the range that its readings have given it so far."""

    index: Index
    lower: Expr | None = None
    upper: Expr | None = None

    @property
    def known(self) -> bool:
        return self.upper is not None

    @property
    def axis(self) -> Axis:
        assert self.lower is not None and self.upper is not None
        return self.index, self.lower, self.upper


@dataclass
class Reading:
    """An index expression that reads an axis of some size, to be checked once all ranges are known."""

    index: Expr
    size: Expr
    node: ast.AST
    guarded: bool
    partly: bool = False  # of a recurrence: h[t] may run over fewer entries than h has


@dataclass
class Builder:
    """Collects arrays and equations; `text` is the user's input, for messages."""

    text: str
    arrays: dict[str, Array] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)
    equations: list[Equation] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    frames: list[dict[str, Letter]] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    pending: list[Reading] = field(default_factory=list)  # of recurrences that are not complete yet
    ranges: dict[Index, Axis] = field(default_factory=dict)
    memo: dict[object, Value] = field(default_factory=dict)
    softmaxes: dict[str, tuple[Value, Value, int]] = field(default_factory=dict)  # by name: what of, total, axis
    equal_letters: list[tuple[Expr, Expr]] = field(default_factory=list)  # pairs that a delta compares
    preferred: str | None = None  # the name of the statement under construction, for the value that it names
    given: set[Index] = field(default_factory=set)  # letters whose range was written down
    kept: frozenset[str] = frozenset()  # names that stay as they were written
    demands: Demands = field(default_factory=Demands)
    guards: int = 0  # how many `where` enclose the expression under construction
    _letters: int = 0

    def fail(self, message: str, node: ast.AST, kind: type[ExpressionError] = ExpressionError) -> NoReturn:
        raise kind(message, self.text, *place(node))

    # --- letters

    def new(self) -> Index:
        self._letters += 1
        return Index(f"v{self._letters}")

    def letter(self, name: str) -> Letter | None:
        """The innermost letter of that name in scope."""
        return next((frame[name] for frame in reversed(self.frames) if name in frame), None)

    def add_letter(self, name: str, frame: dict[str, Letter], index: Index | None = None) -> Letter:
        self._letters += 1
        frame[name] = Letter(index or Index(f"{name}~{self._letters}"))
        return frame[name]

    def read(self, index: Expr, size: Expr, node: ast.AST, partly: bool = False) -> None:
        """Note that `index` reads an axis of the given size; a bare letter takes its range from it."""
        for frame in self.frames:
            for letter in frame.values():
                if letter.index == index and not letter.known:
                    letter.lower, letter.upper = S.Zero, size
        self.readings.append(Reading(index, size, node, self.guards > 0, partly))

    def settle(self, letter: Letter, name: str, node: ast.AST, required: bool = True) -> Axis:
        """The range of a letter whose readings are complete.

        A letter read only inside sums (`x[t+k]`) gets the range that keeps every reading inside its axis. Unless it is
        `required`, a letter that reads nothing runs to UNKNOWN.
        """
        for reading in (*self.readings, *self.pending) if not letter.known else ():
            slope = reading.index.expand().coeff(letter.index)
            if slope == 0 or letters(slope) or not (nonnegative(slope) or nonnegative(-slope)):
                continue
            rest = (reading.index - slope * letter.index).expand()
            low, high = extremes(
                rest, [e.axis for f in self.frames for e in f.values() if e.known] + list(self.ranges.values())
            )
            if low is None or high is None:
                continue
            ends = [reading.size - 1 - high, low] if nonnegative(slope) else [low, reading.size - 1 - high]
            last, first = (_whole(end, abs(slope)) for end in ends)
            if last is None or first is None:
                continue
            first = -first
            letter.lower, letter.upper = S.Zero if nonnegative(-first) else first, last + 1
            break
        if not letter.known:  # an index of delta(i, j) alone runs as far as the other
            others = [b for a, b in self.equal_letters if a == letter.index and b in self.ranges]
            if others:
                _, letter.lower, letter.upper = self.ranges[others[0]]
        if not letter.known and required:
            self.fail(f"the index {name} has no range: it reads no axis; write {name}=0:n", node)
        if not letter.known:
            letter.lower, letter.upper = S.Zero, UNKNOWN
        axis = letter.axis
        self.ranges[axis[0]] = axis
        return axis

    def check_readings(self) -> None:
        """Every index stays inside the axis that it reads; called when a statement is complete."""
        for reading in self.readings:
            index, size = reading.index, reading.size
            if reading.guarded:
                continue
            index, looked_up = self.numbered(index)
            known = [*self.ranges.values(), *looked_up]
            bare = next((axis for axis in known if axis[0] == index), None)
            short = bare is not None and not nonnegative(size - bare[2], known)
            other = bare is not None and bare[0] not in self.given and (size - bare[2]).expand() != 0
            if bare is not None and bare[1] == 0 and (short or (other and not reading.partly)):
                self.fail(
                    f"this index runs over 0 … {bare[2] - 1}, but the axis has size {size}", reading.node, ShapeError
                )
            fits = nonnegative(index, known) and nonnegative(size - 1 - index, known)
            if not fits and not _fits_when_large(index, size):
                hint = "; give a range such as sum[t=0:n-1](…)" if letters(reading.index) else ""
                hint = "; where(condition, …, 0) leaves these entries out" if looked_up else hint
                self.fail(
                    f"the index {ast.unparse(reading.node)} leaves its axis of size {size}{hint}",
                    reading.node,
                    ShapeError,
                )
        self.readings.clear()

    def numbered(self, index: Expr) -> tuple[Expr, list[Axis]]:
        """An index with a letter of its own for each entry of an array of whole numbers, and how far these run."""
        entries = sorted((a for a in index.atoms(Access) if self.arrays[a.name].below is not None), key=str)
        found = {entry: self.new() for entry in entries}
        axes = [(letter, S.Zero, self.arrays[entry.name].below) for entry, letter in found.items()]
        return index.xreplace(found), axes

    def is_whole(self, index: Expr) -> bool:
        """Whether an expression is a whole number by construction: of letters, sizes and entries of index arrays."""
        return self.numbered(index)[0].is_integer is True

    def check_lookup(self, name: str, size: Expr, node: ast.AST) -> None:
        """An array whose entries are indices holds integers below the size of the axis that they read."""
        array = self.arrays[name]
        if array.below is None:
            self.fail(f"{name} is not declared as an index; write {name}:…:index={size}", node)
        if not same(array.below, size):
            self.fail(f"{name} holds integers below {array.below}, the axis has size {size}", node, ShapeError)

    def note_letters(self, name: str, written: Sequence[str]) -> None:
        """The letters with which an array is written, "" where there is none; the first ones stay."""
        array = self.arrays[name]
        found = list(array.letters or [""] * array.rank)
        for axis, letter in enumerate(written):
            if letter not in found:
                found[axis] = found[axis] or letter
        self.arrays[name] = replace(array, letters=tuple(found))

    # --- names and equations

    def is_helper(self, name: str) -> bool:
        return self.arrays[name].role.kind is Kind.HELPER

    def name_for(self, wanted: str) -> str:
        """A name that nothing else uses: the statement's own for the value it names, else `wanted` or `wanted1` …"""
        if self.preferred:
            name, self.preferred = self.preferred, None
            return name
        name, number = wanted, 0
        shown = {plain_name(other)[0] for other in (*self.taken, *self.sizes)}
        while plain_name(name)[0] in shown:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name

    @contextmanager
    def unnamed(self) -> Iterator[None]:
        """Within it, nothing takes the statement's name: what is built is a part of the value that it names."""
        preferred, self.preferred = self.preferred, None
        yield
        self.preferred = preferred

    def define(
        self,
        name: str,
        value: Value,
        role: Role = PLAIN,
        origin: Softmax | None = None,
        latex: str = "",
    ) -> Value:
        """Add the equation `name = value` and return the array as a value.

        Inside sum[t](…) the value may read t: the array then has an axis for it, and its entry at t is returned.
        """
        if height(value.expr) > MAX_SUMS:
            message = f"more than {MAX_SUMS} sums inside each other; name an intermediate: S = …; …"
            raise ExpressionError(message, self.text, 0)
        outer = [self.range_of(letter) for letter in sorted(letters(value.expr) - set(value.letters), key=str)]
        outs = out_letters(len(outer) + value.rank)
        array = Array(name, (*((hi - lo).expand() for _, lo, hi in outer), *value.sizes), latex=latex, role=role)
        names = {entry.index: key for frame in self.frames for key, entry in frame.items()}
        written = [names.get(letter, "") for letter in (*(axis[0] for axis in outer), *value.letters)]
        self.arrays[name] = array
        self.note_letters(name, written)
        renamed: dict[Index, Expr] = dict(zip(value.letters, outs[len(outer) :], strict=True))
        renamed |= {axis[0]: out + axis[1] for axis, out in zip(outer, outs, strict=False)}
        origin = origin and origin.xreplace(renamed)
        self.equations.append(Equation(name, outs, array.axes(outs), value.expr.xreplace(renamed), origin))
        whole = self.array_value(name)
        at = dict(zip(whole.letters, (letter - lo for letter, lo, _ in outer), strict=False))
        return Value(whole.expr.xreplace(at), whole.letters[len(outer) :], whole.sizes[len(outer) :])

    def range_of(self, letter: Index) -> Axis:
        """The range of an index of an enclosing sum, where it is known and does not depend on another index.

        Raises ShapeMismatch where it is not.
        """
        found = next((e for frame in self.frames for e in frame.values() if e.index == letter and e.known), None)
        if found is None or letters(found.lower) | letters(found.upper):
            shown = str(letter).split("~")[0]
            hint = f"give it as {shown}=0:n, or name the value: S[{shown}] = …"
            raise ShapeMismatch(f"this needs the range of {shown} here; {hint}")
        return found.axis

    def array_value(self, name: str) -> Value:
        array = self.arrays[name]
        new = tuple(self.new() for _ in array.shape)
        return Value(Access(name, *new), new, array.shape)

    def named(self, value: Value, wanted: str) -> Value:
        """The value itself if it is an entry of an array, otherwise an array defined as it."""
        plain = isinstance(value.expr, Access) and value.expr.indices == value.letters
        inside = isinstance(value.expr, Access) and not set(value.letters) >= letters(value.expr)
        if plain or inside:
            return value
        preferred, self.preferred = self.preferred, None
        found = self.define(self.name_for(wanted), value)
        self.preferred = preferred
        return found

    def remember(self, key: str, value: Value, *more: object) -> object:
        """A key under which the same construction from the same value is found again."""
        return (key, value.at(*out_letters(value.rank)), value.sizes, *more)

    def system(self, output: str) -> System:
        found = System(dict(self.arrays), tuple(self.equations), (output,))
        found.validate()
        return found

    # --- declarations

    def declare(self, declaration: Declaration) -> None:
        name = declaration.name
        shape = tuple(self.size(node, declaration.text) for node in declaration.sizes)
        below = None
        if "index" in declaration.options:
            below = self.size(declaration.options["index"][0], declaration.text)
        properties = frozenset(declaration.properties) - OPTIONS - {"index"}
        self.arrays[name] = Array(name, shape, (), properties, below)
        self.taken.add(name)

    def declare_law(self, declaration: Declaration) -> None:
        """The distribution of an array's entries; its parameters may name any other declared array."""
        from gradproof.symbolic.language.reader import number_value

        text, self.text = self.text, declaration.text  # for messages
        law = declared_law(self, declaration, number_value)
        self.text = text
        if law is None:
            return
        array = self.arrays[declaration.name]
        below = array.below if law.below is None else law.below  # a categorical entry is an integer
        self.arrays[declaration.name] = replace(array, law=law, below=below)

    def size(self, node: ast.expr, text: str) -> Expr:
        """A size expression: names are sizes, created where they are first seen."""
        if isinstance(node, ast.Constant):
            return Integer(node.value)
        if isinstance(node, ast.Name):
            return self.sizes.setdefault(node.id, Size(node.id))
        if isinstance(node, ast.UnaryOp):
            value = self.size(node.operand, text)
            return -value if isinstance(node.op, ast.USub) else value
        assert isinstance(node, ast.BinOp)
        left, right = self.size(node.left, text), self.size(node.right, text)
        if isinstance(node.op, ast.Add):
            return left + right
        return left - right if isinstance(node.op, ast.Sub) else left * right


def _fits_when_large(index: Expr, size: Expr) -> bool:
    """A fixed index such as A[1, 1] of A:n,n asks for n ≥ 2, and cannot be said to leave its axis."""
    if letters(index) or not size.free_symbols:
        return False
    large = {symbol: symbol + 1000 for symbol in size.free_symbols | index.free_symbols}
    return nonnegative(index.xreplace(large)) and nonnegative((size - 1 - index).xreplace(large))


def _whole(expr: Expr, divisor: Expr) -> Expr | None:
    """⌊expr/divisor⌋, where unknown sizes must divide evenly; None where they do not."""
    constant, rest = (expr / divisor).expand().as_coeff_Add()
    return None if any(power.exp.is_negative for power in rest.atoms(Pow)) else (floor(constant) + rest).expand()


def extremes(expr: Expr, axes: Sequence[Axis]) -> tuple[Expr | None, Expr | None]:
    """The smallest and largest value of an affine expression over known ranges; None where a range is unknown."""
    low = high = expr.expand()
    for letter, lower, upper in axes:
        slope = low.coeff(letter)
        if slope != 0:
            first, last = (lower, upper - 1) if slope > 0 else (upper - 1, lower)
            low = (low - slope * letter + slope * first).expand()
        slope = high.coeff(letter)
        if slope != 0:
            first, last = (lower, upper - 1) if slope > 0 else (upper - 1, lower)
            high = (high - slope * letter + slope * last).expand()
    return (None, None) if letters(low) or letters(high) else (low, high)

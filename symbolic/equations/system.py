"""Systems of index equations: the one object that everything else works on.

An equation `Y[o1, …, om] = f` gives the entries of a named array for all values of its letters; `f` is an index
expression (see `expr.py`). A system is a list of such equations with its inputs and outputs. An array may be defined
by several equations over disjoint ranges, and may read itself at an earlier place: that is a recurrence.

    h[0, k] = h0[k];   h[t, k] = tanh(sum[l](W[k, l] h[t-1, l]) + z[t-1, k])  for t = 1 … T
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count

from sympy import Expr, Integer, Symbol, sympify

from gradproof.symbolic.equations.expr import Access, Axis, Implicit, Index, accesses, letters, map_accesses, names
from gradproof.symbolic.equations.expr import out_letters as out_letters
from gradproof.symbolic.equations.laws import Law
from gradproof.symbolic.errors import GradproofError


@dataclass(frozen=True)
class Array:
    """A named array: its shape, where its indices start, and what is known of it.

    `properties` holds declared facts ("symmetric", "simplex", …); `below` is the size under which the entries of an
    array of integers lie, for lookups; `latex` overrides the printed name; `law` is the distribution of its entries.
    """

    name: str
    shape: tuple[Expr, ...] = ()
    origin: tuple[int, ...] = ()
    properties: frozenset[str] = frozenset()
    below: Expr | None = None
    latex: str = ""
    law: Law | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def moments(self) -> tuple[Expr, Expr] | None:
        """Mean and variance of an entry, of a random array."""
        return (self.law.mean, self.law.variance) if self.law else None

    def first(self, axis: int) -> Expr:
        return Integer(self.origin[axis]) if self.origin else Integer(0)

    def axes(self, letters: Iterable[Index]) -> tuple[Axis, ...]:
        """The ranges of all axes, under the given letters."""
        return tuple(
            (letter, self.first(k), self.first(k) + size)
            for k, (letter, size) in enumerate(zip(letters, self.shape, strict=True))
        )


@dataclass(frozen=True)
class Equation:
    """`name[place] = body` for all values of the letters in `axes`.

    `place` is, axis by axis, a letter of `axes` or a fixed number. `shown` is how the right side is printed where that
    is shorter than the body (`softmax(S)`), as a (function, arguments) pair.
    """

    name: str
    place: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    body: Expr
    shown: tuple[str, tuple[Expr, ...]] | None = None

    @property
    def target(self) -> Access:
        return Access(self.name, *self.place)

    def with_body(self, body: Expr) -> Equation:
        return replace(self, body=body)

    def at(self, indices: Iterable[Expr]) -> Expr:
        """The right side at these indices."""
        return self.body.xreplace(dict(zip(self.place, indices, strict=True)))


@dataclass(frozen=True)
class System:
    """Arrays, equations in an order in which they can be read, and what is asked for."""

    arrays: Mapping[str, Array]
    equations: tuple[Equation, ...]
    outputs: tuple[str, ...]
    hidden: frozenset[str] = frozenset()  # helper arrays that a printed result avoids
    _cache: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def defined(self) -> dict[str, list[Equation]]:
        """The equations of each defined array."""
        found: dict[str, list[Equation]] = {}
        for equation in self.equations:
            found.setdefault(equation.name, []).append(equation)
        return found

    @cached_property
    def position(self) -> dict[str, int]:
        """Where the last equation of each defined array stands."""
        return {equation.name: place for place, equation in enumerate(self.equations)}

    @cached_property
    def readers(self) -> dict[str, list[Equation]]:
        """The equations that read each array."""
        found: dict[str, list[Equation]] = {}
        for equation in self.equations:
            for name in names(equation.body):
                found.setdefault(name, []).append(equation)
        return found

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.arrays if name not in self.defined)

    @cached_property
    def sizes(self) -> tuple[Symbol, ...]:
        """Every size symbol that a shape mentions, in order of appearance."""
        found: dict[Symbol, None] = {}
        for array in self.arrays.values():
            for size in (*array.shape, *([array.below] if array.below is not None else [])):
                found.update(dict.fromkeys(sorted(sympify(size).free_symbols, key=str)))
        return tuple(found)

    @cached_property
    def lengths(self) -> tuple[Expr, ...]:
        """Every length that an axis has, in order of appearance."""
        return tuple(dict.fromkeys(size for array in self.arrays.values() for size in array.shape))

    @cached_property
    def taken(self) -> frozenset[str]:
        """The names of all arrays and sizes."""
        return frozenset([*self.arrays, *map(str, self.sizes)])

    def extended(self, arrays: Iterable[Array], equations: Iterable[Equation], outputs: Iterable[str]) -> System:
        """The system with further arrays; one of a name that is there already would hide it."""
        arrays = list(arrays)
        if taken := next((array.name for array in arrays if array.name in self.arrays), None):
            raise GradproofError(f"{taken} is the name of a derived array here; call your array otherwise")
        return System(
            {**self.arrays, **{array.name: array for array in arrays}},
            (*self.equations, *equations),
            tuple(outputs),
            self.hidden,
        )

    def with_equations(self, equations: Iterable[Equation]) -> System:
        return replace(self, equations=tuple(equations), _cache={})

    def renamed(self, new: Mapping[str, str]) -> System:
        """The system with arrays called by other names."""
        new = {old: name for old, name in new.items() if old in self.arrays}
        if not new:
            return self
        if taken := set(new.values()) & (set(self.arrays) - set(new)):
            raise GradproofError(f"the name {min(taken)} is taken; call one of the two arrays otherwise")

        def body(expr: Expr, axes: Iterable[Axis]) -> Expr:
            if isinstance(expr, Implicit):
                return Implicit(expr.kind, new.get(expr.matrix, expr.matrix), expr.size, *expr.indices)
            letters_in_scope = [letter for letter, _, _ in axes]
            return map_accesses(expr, lambda a: Access(new[a.name], *a.indices), new, letters_in_scope)

        equations = [
            replace(
                e,
                name=new.get(e.name, e.name),
                body=body(e.body, e.axes),
                shown=e.shown and (e.shown[0], tuple(body(arg, e.axes) for arg in e.shown[1])),
            )
            for e in self.equations
        ]
        arrays = {new.get(name, name): replace(a, name=new.get(name, name)) for name, a in self.arrays.items()}
        outputs = tuple(new.get(name, name) for name in self.outputs)
        return System(arrays, tuple(equations), outputs, frozenset(new.get(name, name) for name in self.hidden))

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Defined arrays in reading order; arrays that need each other (a recurrence) form one group."""
        needs = {
            name: {read for equation in equations for read in names(equation.body) if read in self.defined}
            for name, equations in self.defined.items()
        }
        return tuple(_components(needs))

    def reached(self, outputs: Iterable[str]) -> set[str]:
        """The given arrays and all that they are computed from."""
        wanted: set[str] = set()
        stack = list(outputs)
        while stack:
            name = stack.pop()
            if name not in wanted:
                wanted.add(name)
                stack.extend(read for equation in self.defined.get(name, ()) for read in names(equation.body))
        return wanted

    def needed(self, outputs: Iterable[str] | None = None) -> System:
        """The system without the equations that no output needs, in reading order."""
        outputs = tuple(outputs or self.outputs)
        wanted = self.reached(outputs)
        order = [name for group in self.groups for name in group if name in wanted]
        equations = [equation for name in order for equation in self.defined[name]]
        arrays = {name: array for name, array in self.arrays.items() if name in wanted or name not in self.defined}
        return System(arrays, tuple(equations), outputs, self.hidden)

    def free_name(self, wanted: str) -> str:
        """The wanted name, or the first of wanted1, wanted2 … that nothing has."""
        candidates = chain([wanted], (f"{wanted}{number}" for number in count(1)))
        return next(name for name in candidates if name not in self.taken)

    def readers_of(self, sources: Iterable[str]) -> frozenset[str]:
        """The given arrays and all that depend on them."""
        found: set[str] = set()
        stack = list(sources)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack.extend(equation.name for equation in self.readers.get(name, ()))
        return frozenset(found)

    @cached_property
    def recurrences(self) -> frozenset[str]:
        """The arrays that need entries of themselves."""
        found = (group for group in self.groups if len(group) > 1 or self.reads_itself(group[0]))
        return frozenset(name for group in found for name in group)

    def reads_itself(self, name: str) -> bool:
        return any(name in names(equation.body) for equation in self.defined.get(name, ()))

    def recurrent(self, name: str) -> bool:
        """Whether an array needs entries of itself."""
        return name in self.recurrences

    def validate(self) -> None:
        """Every access has the array's rank, every letter a range.

        Raises GradproofError naming the equation.
        """
        for equation in self.equations:
            known = {letter for letter, _, _ in equation.axes}
            loose = letters(equation.body) - known
            if loose:
                raise GradproofError(f"{equation.name}: the letters {sorted(map(str, loose))} have no range")
            for access in accesses(equation.body):
                array = self.arrays.get(access.name)
                if array is None:
                    raise GradproofError(f"{equation.name} reads {access.name}, which is not defined")
                if len(access.indices) != array.rank:
                    raise GradproofError(
                        f"{access} has {len(access.indices)} indices, {access.name} has {array.rank} axes"
                    )


def _components(needs: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Strongly connected components, dependencies first (Tarjan), without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    place = {name: position for position, name in enumerate(needs)}
    stack: dict[str, None] = {}
    found: list[tuple[str, ...]] = []
    for root in needs:
        work = [(root, iter(sorted(needs[root])))] if root not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack[node] = None
            for child in rest:
                if child not in index:
                    work.append((child, iter(sorted(needs[child]))))
                    break
                if child in stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = [stack.popitem()[0]]
                    while members[-1] != node:
                        members.append(stack.popitem()[0])
                    found.append(tuple(sorted(members, key=place.__getitem__)))
    return found

"""Systems of index equations: the one object that everything else works on.

An equation `Y[o1, …, om] = f` gives the entries of a named array for all values of its letters; `f` is an index
expression (see `expr.py`). A system is a list of such equations with its inputs and outputs. An array may be defined
by several equations over disjoint ranges, and may read itself at an earlier place: that is a recurrence.

    h[0, k] = h0[k];   h[t, k] = tanh(sum[l](W[k, l] h[t-1, l]) + z[t-1, k])  for t = 1 … T
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count

from sympy import Expr, Integer, Symbol, sympify

from gradproof.symbolic.equations.expr import Access, Axis, Implicit, Index, accesses, letters, map_accesses, names
from gradproof.symbolic.equations.expr import out_letters as out_letters
from gradproof.symbolic.equations.laws import Law
from gradproof.symbolic.equations.origins import Softmax
from gradproof.symbolic.equations.roles import PLAIN, Kind, Role, suggested
from gradproof.symbolic.errors import GradproofError


@dataclass(frozen=True)
class Array:
    """A named array: its shape, where its indices start, and what is known of it.

    `properties` holds declared facts ("symmetric", "simplex", …); `below` is the size under which the entries of an
    array of integers lie, for lookups; `latex` overrides the printed name; `law` is the distribution of its entries;
    `role` says what the array is; `letters` are those that the user wrote its indices with, for printing.
    """

    name: str
    shape: tuple[Expr, ...] = ()
    starts: tuple[int, ...] = ()
    properties: frozenset[str] = frozenset()
    below: Expr | None = None
    latex: str = ""
    law: Law | None = None
    role: Role = PLAIN
    letters: tuple[str, ...] = field(default=(), compare=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def moments(self) -> tuple[Expr, Expr] | None:
        """Mean and variance of an entry, of a random array."""
        return (self.law.mean, self.law.variance) if self.law else None

    def first(self, axis: int) -> Expr:
        return Integer(self.starts[axis]) if self.starts else Integer(0)

    def axes(self, letters: Iterable[Index]) -> tuple[Axis, ...]:
        """The ranges of all axes, under the given letters."""
        return tuple(
            (letter, self.first(k), self.first(k) + size)
            for k, (letter, size) in enumerate(zip(letters, self.shape, strict=True))
        )

    def like(self, name: str, role: Role) -> Array:
        """An array of the same shape and letters, of which nothing is known."""
        return Array(name, self.shape, self.starts, role=role, letters=self.letters)


@dataclass(frozen=True)
class Equation:
    """`name[place] = body` for all values of the letters in `axes`.

    `place` is, axis by axis, a letter of `axes` or a fixed number. `origin` says what the body was built as, where a
    reader of the body alone would not know: softmax(S).
    """

    name: str
    place: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    body: Expr
    origin: Softmax | None = None

    @property
    def target(self) -> Access:
        return Access(self.name, *self.place)

    def with_body(self, body: Expr) -> Equation:
        return replace(self, body=body)

    def at(self, indices: Iterable[Expr]) -> Expr:
        """The right side at these indices."""
        return self.body.xreplace(dict(zip(self.place, indices, strict=True)))

    @property
    def written(self) -> Expr:
        """What the equation is read as: the argument of a softmax, else the body."""
        return self.body if self.origin is None else self.origin.argument


@dataclass(frozen=True)
class System:
    """Arrays, equations in an order in which they can be read, and what is asked for."""

    arrays: Mapping[str, Array]
    equations: tuple[Equation, ...]
    outputs: tuple[str, ...]
    _cache: dict[str, object] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The helpers, which a printed result avoids."""
        return frozenset(name for name, array in self.arrays.items() if array.role.kind is Kind.HELPER)

    def of(self, kind: Kind, name: str) -> str | None:
        """The array that is the adjoint, tangent, inverse … of another one; None where there is none."""
        return self._roles.get((kind, name))

    @cached_property
    def _roles(self) -> dict[tuple[Kind, str], str]:
        return {(array.role.kind, array.role.of): name for name, array in self.arrays.items() if array.role.of}

    def adjoint_of(self, name: str) -> str:
        """The name of the adjoint of an array.

        Raises GradproofError where the system has none; so do the next two.
        """
        return self._related(Kind.ADJOINT, name)

    def tangent_of(self, name: str) -> str:
        """The name of the tangent of an array."""
        return self._related(Kind.TANGENT, name)

    def gradient_of(self, name: str) -> str:
        """The name of the first derivative by an array, which is differentiated once more."""
        return self._related(Kind.GRADIENT, name)

    def _related(self, kind: Kind, name: str) -> str:
        found = self.of(kind, name)
        if found is None:
            raise GradproofError(f"there is no {kind.value} of {name} here")
        return found

    def derived(self, kind: Kind, of: str, name: str = "", along: str = "", taken: Collection[str] = ()) -> Array:
        """A new array of the shape of another one: its adjoint, its tangent …

        It is called `name`, or a free name that says what it is, `taken` ones aside.
        """
        source = self.arrays[of]
        role = Role(kind, of, source.role, along, named=bool(name))
        return source.like(name or self.free_name(suggested(kind, of), taken), role)

    def with_roles(self, roles: Mapping[str, Role]) -> System:
        """The system with other roles of some arrays."""
        arrays = {n: replace(a, role=roles[n]) if n in roles else a for n, a in self.arrays.items()}
        return replace(self, arrays=arrays, _cache={})

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
    def written(self) -> tuple[tuple[Expr, str], ...]:
        """Lengths of axes with the letters that the user wrote for such an axis."""
        pairs = (pair for array in self.arrays.values() for pair in zip(array.shape, array.letters, strict=False))
        return tuple(dict.fromkeys((size, letter) for size, letter in pairs if letter))

    @cached_property
    def taken(self) -> frozenset[str]:
        """The names of all arrays and sizes."""
        return frozenset([*self.arrays, *map(str, self.sizes)])

    def extended(self, arrays: Iterable[Array], equations: Iterable[Equation], outputs: Iterable[str]) -> System:
        """The system with further arrays; one of a name that is there already would hide it."""
        known = set(self.arrays)
        for array in (arrays := list(arrays)):
            if array.name in known:
                raise GradproofError(f"the name {array.name} is taken; choose another")
            known.add(array.name)
        return System(
            {**self.arrays, **{array.name: array for array in arrays}},
            (*self.equations, *equations),
            tuple(outputs),
        )

    def with_equations(self, equations: Iterable[Equation]) -> System:
        return replace(self, equations=tuple(equations), _cache={})

    def renamed(self, new: Mapping[str, str]) -> System:
        """The system with arrays called by other names, under which they print."""
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
                origin=e.origin and replace(e.origin, argument=body(e.origin.argument, e.axes)),
            )
            for e in self.equations
        ]
        arrays = {}
        for name, array in self.arrays.items():
            role = array.role.renamed(new)
            own = new.get(name, name)
            arrays[own] = replace(array, name=own, role=role.called() if name in new else role)
        return System(arrays, tuple(equations), tuple(new.get(name, name) for name in self.outputs))

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
        return System(arrays, tuple(equations), outputs)

    def free_name(self, wanted: str, taken: Collection[str] = ()) -> str:
        """The wanted name, or the first of wanted1, wanted2 … that nothing has and that is not `taken`."""
        candidates = chain([wanted], (f"{wanted}{number}" for number in count(1)))
        return next(name for name in candidates if name not in self.taken and name not in taken)

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

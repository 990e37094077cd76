"""Definitions put where they are read: h[k] = tanh(z[k]) in Σ_i v[i] h[i] gives Σ_i v[i] tanh(z[i])."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gradproof.symbolic.equations.expr import Access, Expr, Index, count_accesses, map_accesses, names
from gradproof.symbolic.equations.system import Array, Equation, System


def plain(system: System, name: str) -> Equation | None:
    """The single equation that defines a whole array, if there is one and it is no recurrence."""
    return _whole(system.defined.get(name, ()), system.arrays[name])


def _whole(equations: Sequence[Equation], array: Array) -> Equation | None:
    if len(equations) != 1 or array.name in names(equations[0].body):
        return None
    (equation,) = equations
    letters = all(isinstance(index, Index) for index in equation.place)
    return equation if letters and equation.axes == array.axes(equation.place) else None


def put_in(equation: Equation, definition: Equation) -> Equation:
    """An equation with every access to a defined array replaced by its definition."""

    def replace(access: Access) -> Expr:
        return definition.at(access.indices)

    return equation.with_body(
        map_accesses(equation.body, replace, [definition.name], (axis[0] for axis in equation.axes))
    )


def spelled_out(system: System, equation: Equation, wanted: Callable[[Equation], bool]) -> Equation:
    """An equation with the definitions put in that are wanted, those that stand last in the system first.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("z = a * x; h = tanh(z); sum(h * z)", {"x": "n", "a": ""})
    >>> spelled_out(system, system.equations[-1], lambda definition: definition.name == "z").body
    sum[b1=0:n](a*h[b1]*x[b1])
    """
    end = len(system.equations)
    while True:
        read = sorted(names(equation.body) - {equation.name}, key=lambda name: system.position.get(name, -1))
        found = (plain(system, name) for name in reversed(read) if -1 < system.position.get(name, -1) < end)
        definition = next((known for known in found if known is not None and wanted(known)), None)
        if definition is None:
            return equation
        end = system.position[definition.name]
        equation = put_in(equation, definition)


class Substitution:
    """The equations of a system while definitions are put where they are read, each at the cost of its readers."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.equations = dict(enumerate(system.equations))
        self.places: dict[str, list[int]] = {}
        self.readers: dict[str, set[int]] = {}
        for place, equation in self.equations.items():
            self.places.setdefault(equation.name, []).append(place)
            for name in names(equation.body):
                self.readers.setdefault(name, set()).add(place)

    def plain(self, name: str) -> Equation | None:
        """The single equation that defines a whole array by now."""
        return _whole([self.equations[place] for place in self.places.get(name, ())], self.system.arrays[name])

    def uses(self, name: str) -> int:
        """At how many places the array is read."""
        return sum(count_accesses(self.equations[place].body, name) for place in self.readers.get(name, ()))

    def put_in(self, definition: Equation) -> None:
        """Put a definition where it is read and forget it."""
        (own,) = self.places.pop(definition.name)
        del self.equations[own]
        for name in names(definition.body):
            self.readers[name].discard(own)
        for place in self.readers.pop(definition.name, ()):
            self.equations[place] = put_in(self.equations[place], definition)
            for name in names(self.equations[place].body):
                self.readers.setdefault(name, set()).add(place)

    def result(self) -> System:
        arrays = {
            name: array
            for name, array in self.system.arrays.items()
            if name in self.places or name not in self.system.defined
        }
        equations = tuple(self.equations[place] for place in sorted(self.equations))
        return System(arrays, equations, self.system.outputs)


def without(system: System, eliminated: Iterable[str]) -> System:
    """The system without some of its arrays: their definitions are put in, where there is one."""
    work = Substitution(system)
    for name in eliminated:
        if (definition := work.plain(name)) is not None:
            work.put_in(definition)
    return work.result()

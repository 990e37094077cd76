"""From system to system: composition, masks, dropout, residual connections, parts with names of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sympy import Add, Expr, Function, Integer, Mul, S

from gradproof.symbolic.equations.expr import Access, compare, letters, map_accesses, names, out_letters
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.rewriting import lettered, rewrite, rewritten, with_reads
from gradproof.symbolic.equations.roles import PLAIN
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.errors import GradproofError

Make = Callable[[Expr, tuple[Expr, ...]], Expr]  # a new right side, from the old one and the place


def compose(first: System, then: System) -> System:
    """Both systems as one; what `first` gives under the name of an input of `then` is that input.

    Helpers step aside where their names are taken. Raises GradproofError where any other array is defined twice.
    """
    first = _aside(first, then.inputs)
    then = _aside(then, first.arrays)
    if twice := [name for name in then.defined if name in first.arrays]:
        raise GradproofError(f"{', '.join(twice)} is defined in both systems; rename it in one of them")
    arrays = {**first.arrays, **{name: array for name, array in then.arrays.items() if name not in first.arrays}}
    equations = (*first.equations, *then.equations)
    return System(arrays, equations, then.outputs)


def same(system: System, inputs: Mapping[str, str]) -> System:
    """The system in which some inputs are other arrays: {"Y": "X"} for self-attention. Their shapes must agree.

    Raises GradproofError where they do not.
    """
    for name, other in inputs.items():
        if system.arrays[name].shape != system.arrays[other].shape:
            raise GradproofError(f"{name} and {other} have different shapes")
    equations = [with_reads(e, inputs, lambda a: Access(inputs[a.name], *a.indices)) for e in system.equations]
    arrays = {name: array for name, array in system.arrays.items() if name not in inputs}
    return replace(system, arrays=arrays, equations=tuple(equations), _cache={})


def part(system: System, outputs: Sequence[str], given: Iterable[str] = ()) -> System:
    """The equations that the outputs need where some arrays are given; inputs that they do not need are gone.

    A softmax of what they need anyway stays: their derivative will want it.
    """
    given = set(given)
    cut = replace(system, equations=tuple(e for e in system.equations if e.name not in given), _cache={})
    needed = cut.needed(outputs)
    there = {*needed.defined, *(name for e in needed.equations for name in names(e.body))}
    there |= {e.name for e in cut.equations if e.origin and there.issuperset(names(e.body))}
    arrays = {name: array for name, array in system.arrays.items() if name in there}
    equations = tuple(e for e in cut.equations if e.name in there)
    return replace(system, arrays=arrays, equations=equations, outputs=tuple(outputs), _cache={})


def _aside(system: System, names: Iterable[str]) -> System:
    """The system with helpers renamed that have one of these names."""
    taken = {*names, *system.arrays}
    new: dict[str, str] = {}
    for name in system.hidden.intersection(names):
        new[name] = next(free for k in range(1, len(taken) + 1) if (free := f"{name}{k}") not in taken)
        taken.add(new[name])
    return system.renamed(new)


def _with_inputs(system: System, arrays: Iterable[Array]) -> System:
    """The system with further inputs. Raises GradproofError where another array has that name."""
    new = {array.name: array for array in arrays}
    system = _aside(system, new)
    for name, array in new.items():
        if system.arrays.get(name, array) != array or name in system.defined:
            raise GradproofError(f"the name {name} is taken; call one of the two arrays otherwise")
    return replace(system, arrays={**system.arrays, **new}, _cache={})


# ------------------------------------------------------------------------------------------------ changes of equations


def changed(system: System, name: str, make: Make, arrays: Iterable[Array] = ()) -> System:
    """The system with another right side of one array, and the inputs that it reads."""
    system = _with_inputs(system, arrays)
    return system.with_equations(e.with_body(make(e.body, e.place)) if e.name == name else e for e in system.equations)


def behind(system: System, name: str, called: str, make: Make, arrays: Iterable[Array] = ()) -> System:
    """A new array that is made of another one entry by entry and takes its place wherever it is read."""
    system = _with_inputs(system, arrays)
    array = system.arrays[name]
    place = out_letters(array.rank)
    new = Equation(called, place, array.axes(place), make(Access(name, *place), place))
    equations: list[Equation] = []
    for k, e in enumerate(system.equations):
        equations.append(with_reads(e, [name], lambda a: Access(called, *a.indices)))
        if e.name == name and all(other.name != name for other in system.equations[k + 1 :]):
            equations.append(new)
    arrays_now = {**system.arrays, called: array.like(called, PLAIN)}
    outputs = tuple(called if output == name else output for output in system.outputs)
    return replace(system, arrays=arrays_now, equations=tuple(equations), outputs=outputs, _cache={})


def masked(system: System, scores: str, mask: str, axes: Sequence[int], called: str) -> System:
    """Scores become −∞ where the mask, over the given axes of theirs, is 0: no softmax gives them weight."""
    array = Array(mask, _shape(system, scores, axes), below=Integer(2))

    def make(body: Expr, place: tuple[Expr, ...]) -> Expr:
        return where(compare("==", Access(mask, *(place[k] for k in axes)), 1), body, -S.Infinity)

    return behind(system, scores, called, make, [array])


def dropped(system: System, name: str, mask: str, called: str = "") -> System:
    """An array times a mask of its shape; under a name of its own where what was there is read too."""
    array = Array(mask, system.arrays[name].shape)

    def make(body: Expr, place: tuple[Expr, ...]) -> Expr:
        return body * Access(mask, *place)

    return behind(system, name, called, make, [array]) if called else changed(system, name, make, [array])


def biased(system: System, name: str, bias: str, axes: Sequence[int]) -> System:
    """An array plus an input over some of its axes."""
    array = Array(bias, _shape(system, name, axes))
    return changed(system, name, lambda body, place: body + Access(bias, *(place[k] for k in axes)), [array])


def residual(system: System, name: str, source: str) -> System:
    """An input of the shape of an array, the first of all, plus that array."""
    array = Array(source, system.arrays[name].shape)
    whole = changed(system, name, lambda body, place: body + Access(source, *place), [array])
    return replace(whole, arrays={source: array, **whole.arrays}, _cache={})


def added(system: System, name: str, summand: System, axes: Sequence[int] | None = None) -> System:
    """An array plus what another system of one equation makes, over some of its axes."""
    (equation,) = summand.equations
    axes = range(system.arrays[name].rank) if axes is None else axes
    arrays = [summand.arrays[read] for read in summand.inputs]

    def make(body: Expr, place: tuple[Expr, ...]) -> Expr:
        new = {letter: place[k] for letter, k in zip(equation.place, axes, strict=True)}
        return body + equation.body.xreplace(new)

    return changed(system, name, make, arrays)


def times(system: System, name: str, factor: Expr) -> System:
    """An array times a number."""
    return changed(system, name, lambda body, place: factor * body)


def fixed(system: System, values: Mapping[str, Expr]) -> System:
    """The system with numbers for some scalar inputs."""
    equations = tuple(with_reads(e, values, lambda a: values[a.name]) for e in system.equations)
    arrays = {name: array for name, array in system.arrays.items() if name not in values}
    return replace(system, arrays=arrays, equations=equations, _cache={})


def inlined(system: System, *arrays: str) -> System:
    """The system with the definitions of some arrays put where they are read."""
    for name in arrays:
        (definition,) = system.defined[name]

        def read(access: Access, definition: Equation = definition) -> Expr:
            return definition.body.xreplace(dict(zip(definition.place, access.indices, strict=True)))

        equations = tuple(with_reads(e, [name], read) for e in system.equations if e.name != name)
        rest = {other: array for other, array in system.arrays.items() if other != name}
        system = replace(system, arrays=rest, equations=equations, _cache={})
    return system


def product(system: System, called: str, factors: Sequence[str]) -> System:
    """The product of two arrays of one shape, read at the same place, as an array of its own."""
    first, second = factors
    array = system.arrays[first]
    place = out_letters(array.rank)
    new = Equation(called, place, array.axes(place), Access(first, *place) * Access(second, *place))

    def visit(node: Expr) -> Expr | None:
        if not isinstance(node, Mul):
            return None
        args = [rewrite(arg, visit) for arg in node.args]
        for one in [arg for arg in args if isinstance(arg, Access) and arg.name == first]:
            other = Access(second, *one.indices)
            if other in args:
                args = [Access(called, *one.indices), *(arg for arg in args if arg not in (one, other))]
        return Mul(*args)

    equations = [rewritten(e, lambda expr: rewrite(expr, visit)) for e in system.equations]
    last = max((k for k, e in enumerate(equations) if e.name in factors), default=-1)
    arrays = {**system.arrays, called: array.like(called, PLAIN)}
    ordered = (*equations[: last + 1], new, *equations[last + 1 :])
    return replace(system, arrays=arrays, equations=ordered, _cache={})


def split_off(system: System, name: str, called: str, free_of: Iterable[str]) -> System:
    """The summands of an array that depend on none of the given ones, as an array of its own.

    >>> from gradproof.symbolic.language.reader import build
    >>> step = build("u = x @ W + h @ U", {"x": "p", "W": "p,d", "h": "d", "U": "d,d"})
    >>> [str(e.target) for e in split_off(step, "u", "input", ["h"]).equations]
    ['input[o0]', 'u[o0]']
    """
    dependent = set(system.readers_of(free_of)) | set(free_of)
    (whole,) = system.defined[name]
    free = [term for term in Add.make_args(whole.body) if dependent.isdisjoint(names(term))]
    rest = [term for term in Add.make_args(whole.body) if term not in free]
    kept = [k for k, letter in enumerate(whole.place) if letter in letters(Add(*free))]
    place = tuple(whole.place[k] for k in kept)
    axes = tuple(axis for axis in whole.axes if axis[0] in place)
    summand = lettered(Equation(called, place, axes, Add(*free)))
    array = Array(called, _shape(system, name, kept))
    equations: list[Equation] = []
    for e in system.equations:
        equations += [summand, e.with_body(Add(*rest, Access(called, *place)))] if e is whole else [e]
    return replace(system, arrays={**system.arrays, called: array}, equations=tuple(equations), _cache={})


def abbreviated(system: System, numbers: System) -> System:
    """The system with the names of scalars, which `numbers` defines and now are inputs, where their values stood."""
    names_of = {equation.body: Access(equation.name) for equation in numbers.equations}
    system = _with_inputs(system, (Array(equation.name) for equation in numbers.equations))
    system = system.with_equations(rewritten(e, lambda expr: rewrite(expr, names_of.get)) for e in system.equations)
    return part(system, system.outputs)


def applied(system: System, function: type[Function], definition: System) -> System:
    """The system with a definition, of one scalar, for a function of which only the name was known (`sigma`)."""
    (argument,), (equation,) = definition.inputs, definition.equations

    def visit(node: Expr) -> Expr | None:
        if not isinstance(node, function):
            return None
        (inner,) = node.args
        return map_accesses(equation.body, lambda _: rewrite(inner, visit), [argument], [])

    return system.with_equations(rewritten(e, lambda expr: rewrite(expr, visit)) for e in system.equations)


def _shape(system: System, name: str, axes: Iterable[int]) -> tuple[Expr, ...]:
    return tuple(system.arrays[name].shape[k] for k in axes)

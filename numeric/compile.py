"""Compile a system of index equations to a function on arrays, whose source can be read and stands alone.

One call of `sympy.lambdify` makes the function: `printer=` is our printer, and `cse=` is a callable that lowers the
equations and returns the lines.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import sympy
from sympy import Symbol

from gradproof.numeric.arguments import Arguments, readings
from gradproof.numeric.lowering.lower import Lowering
from gradproof.numeric.lowering.nodes import identifier
from gradproof.numeric.lowering.schedule import Entry, Schedule
from gradproof.numeric.lowering.solving import with_solutions
from gradproof.numeric.lowering.stable import stabilise
from gradproof.numeric.lowering.statements import lower_system
from gradproof.numeric.printers.inplace_printer import InPlacePrinter
from gradproof.numeric.printers.numpy_printer import NumpyPrinter
from gradproof.numeric.printers.source import complete, documented, guarded, header, namespace, read_sizes
from gradproof.symbolic.equations.expr import Access, Size, names
from gradproof.symbolic.equations.roles import Kind
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.language.syntax import Program


class Derived(Protocol):
    """A derived array, by its equation."""

    @property
    def equation(self) -> Equation: ...


class Derivation(Protocol):
    """What is used of a derivation: its systems, what was differentiated by what, and the results."""

    @property
    def system(self) -> System: ...
    @property
    def forward(self) -> System: ...
    @property
    def output(self) -> str: ...
    @property
    def wrt(self) -> tuple[str, ...]: ...
    @property
    def cotangent(self) -> str | None: ...
    @property
    def gradients(self) -> Mapping[str, Derived]: ...
    @property
    def program(self) -> Program: ...
    def line(self, equation: Equation) -> str: ...


@dataclass(frozen=True)
class Compiled:
    """A function on arrays; call it with the arrays by name."""

    name: str
    source: str
    function: Callable[..., Any]
    arguments: Arguments
    gradients: tuple[str, ...] | None  # the variables, if the function returns (value, gradients)

    def __call__(self, **arrays: Any) -> Any:
        values, dtype = self.arguments.check(arrays)
        result = self.function(**values)
        inputs = list(values.values())
        value, found = (None, result) if self.gradients is None else result
        finished = {name: self.arguments.finish(array, dtype, inputs) for name, array in found.items()}
        return finished if self.gradients is None else (self.arguments.finish(value, dtype, inputs), finished)

    def __repr__(self) -> str:
        return f"<compiled {self.name}({', '.join(self.arguments.names)})>"


def compile_numpy(
    derived: System | Derivation,
    outputs: Sequence[str] | None = None,
    name: str = "",
    comment: Callable[[Equation], str] | None = None,
    reuse: bool = False,
    overwrite: Sequence[str] = (),
) -> Compiled:
    """The function that computes a system's outputs, or a derivation's value and gradients.

    With `reuse` its lines work in place and give the memory of arrays that are done with to others: faster, less plain.
    Arguments that are named in `overwrite` give theirs, too.

    `comment` gives the line of comment above each equation; a derivation's own formulas are taken otherwise.

    >>> from gradproof.symbolic.equations.expr import Index, Size, sum_
    >>> from gradproof.symbolic.equations.system import Array
    >>> from gradproof.symbolic.equations.calculus import whole
    >>> i, n = Index("i"), Size("n")
    >>> total = whole(Array("L"), sum_(Access("x", i) ** 2, [(i, 0, n)]))
    >>> f = compile_numpy(System({"x": Array("x", (n,)), "L": Array("L")}, (total,), ("L",)))
    >>> float(f(x=[1.0, 2.0, 2.0])["L"])
    9.0
    """
    printer = partial(InPlacePrinter, overwrite=overwrite) if reuse or overwrite else NumpyPrinter
    return compile_with(printer, Arguments.of, derived, outputs, name, comment)


def compile_torch(
    derived: System | Derivation,
    outputs: Sequence[str] | None = None,
    name: str = "",
    comment: Callable[[Equation], str] | None = None,
    device: str = "auto",
) -> Compiled:
    """The function of `compile_numpy`, printed as torch code and run on `device`.

    "auto" is the GPU where there is one. The function takes and returns tensors; autograd is not used.
    """
    from gradproof.numeric.printers.torch_printer import TorchArguments, TorchPrinter, chosen_device

    make = partial(TorchArguments.on, chosen_device(device))
    return compile_with(TorchPrinter, make, derived, outputs, name, comment)


def compile_with(
    printer_type: Callable[..., NumpyPrinter],
    make_arguments: Callable[..., Arguments],
    derived: System | Derivation,
    outputs: Sequence[str] | None,
    name: str,
    comment: Callable[[Equation], str] | None,
) -> Compiled:
    """Lower, print and compile, for one array library."""
    if comment is None and not isinstance(derived, System):
        comment = comments(derived)
    if isinstance(derived, System):
        wanted = tuple(outputs or derived.outputs)
        system, result = derived.needed(wanted), Result(wanted, None)
        arrays = inputs_of(system, derived)
        unused: list[Array] = []
    else:
        pairs = {name: gradient.equation.name for name, gradient in derived.gradients.items()}
        wanted = (derived.output, *pairs.values())
        system, result = with_forward(derived).needed(wanted), Result(wanted, tuple(pairs))
        read = {name for equation in system.equations for name in names(equation.body)}
        declared = dict.fromkeys([*derived.forward.inputs, *([derived.cotangent] if derived.cotangent else [])])
        declared.update(dict.fromkeys(name for name in system.inputs if name in read))
        arrays, unused = parted(system, [system.arrays[name] for name in declared], {*read, *derived.wrt})
    name = name or ("forward" if result.variables is None else "value_and_gradients")
    derived_names = (
        [] if isinstance(derived, System) else [n for n in system.defined if n not in derived.forward.defined]
    )
    builder = Builder(stabilise(system, derived_names), printer_type, make_arguments, arrays, result, comment)
    return builder.build(name, unused)


def comments(derived: Derivation) -> Callable[[Equation], str]:
    """Each equation as the derivation prints it."""
    printed = {(e.name, e.place, e.axes): e for e in derived.system.equations}

    def comment(equation: Equation) -> str:
        original = printed.get((equation.name, equation.place, equation.axes))
        return derived.line(original) if original is not None else ""

    return comment


def with_forward(derived: Derivation) -> System:
    """The system of a derivation, with the forward equations that it left out."""
    system, forward = derived.system, derived.forward
    missing = [e for e in forward.equations if e.name not in system.defined]
    if derived.output in system.defined and not set(forward.inputs) - set(system.arrays):
        return system
    arrays = {**forward.arrays, **system.arrays}
    return System(arrays, (*missing, *system.equations), system.outputs)


def inputs_of(system: System, whole: System) -> list[Array]:
    """The arrays that a function must be given: those that are read, and those that show a size."""
    read = {name for equation in system.equations for name in names(equation.body)}
    found = [array for name, array in system.arrays.items() if name in read and name not in system.defined]
    known = readings(found)
    for name in whole.inputs:
        array = whole.arrays[name]
        shows = any(size in system.sizes and size not in known for size in readings([array]))
        if name not in read and shows and array.role.kind not in (Kind.ADJOINT, Kind.TANGENT, Kind.COTANGENT):
            found.append(array)
            known = readings(found)
    return found


def parted(system: System, arrays: Sequence[Array], read: Collection[str]) -> tuple[list[Array], list[Array]]:
    """The arrays that are read, or show a size that is, and the others."""
    used = [array for array in arrays if array.name in read]
    sizes = {
        size
        for equation in system.equations
        for expr in (equation.body, *(bound for _, *bounds in equation.axes for bound in bounds))
        for size in expr.atoms(Size)
    }
    for array in arrays:
        if array not in used and not (readings([array]).keys() & sizes) <= readings(used).keys():
            used.append(array)
    return [array for array in arrays if array in used], [array for array in arrays if array not in used]


@dataclass(frozen=True)
class Result:
    """What a function returns: a dictionary of outputs, or a value and a dictionary of gradients."""

    names: tuple[str, ...]
    variables: tuple[str, ...] | None

    def __str__(self) -> str:
        if self.variables is None:
            return f"{{{', '.join(f'{name!r}: {identifier(name)}' for name in self.names)}}}".replace("'", '"')
        value, *gradients = self.names
        pairs = [f'"{name}": {identifier(bar)}' for name, bar in zip(self.variables, gradients, strict=True)]
        return f"{identifier(value)}, {{{', '.join(pairs)}}}"


class Builder:
    """Everything between a system and its compiled function."""

    def __init__(
        self,
        system: System,
        printer_type: Callable[..., NumpyPrinter],
        make_arguments: Callable[..., Arguments],
        arrays: Sequence[Array],
        result: Result,
        comment: Callable[[Equation], str] | None,
    ) -> None:
        self.system, self.result, self.comment = system, result, comment or (lambda equation: "")
        self.arrays = list(arrays)
        floats = [a for a in arrays if a.below is None and a.rank]
        like = {array.shape: identifier(array.name) for array in reversed(floats)}
        dtype = f"{identifier(floats[0].name)}.dtype" if floats else ""
        self.printer = printer_type({}, like, dtype)
        self.entries = self.scheduled()
        self.arguments = make_arguments(self.arrays, self.used_sizes())

    def scheduled(self) -> list[Entry]:
        low = Lowering(self.system)
        returned = [identifier(name) for name in self.result.names]
        statements = with_solutions(low.graph, lower_system(low, self.system), returned)
        taken = [*map(identifier, self.system.arrays), *(size.name for size in self.system.sizes)]
        schedule = Schedule(statements, self.printer, returned, taken, self.comment)
        self.printer.prepare(schedule)
        return schedule.entries

    def used_sizes(self) -> list[Symbol]:
        """The sizes that the lines mention, and those that are needed to read them off the arrays."""
        text = "\n".join(
            f"{self.printer.doprint(value)}\n{target}" for target, value in self.entries if value is not None
        )
        words = set(re.findall(r"\w+", text))
        known = dict.fromkeys(self.system.sizes)
        for equation in self.system.equations:  # a size may stand in a range only
            for expr in (equation.body, *(bound for _, *bounds in equation.axes for bound in bounds)):
                known.update(dict.fromkeys(sorted(expr.atoms(Size), key=str)))
        used = [size for size in known if size.name in words]
        read = readings(self.arrays)
        for size in used:  # the list grows while it is read
            if size in read:
                needed = read[size].rest.free_symbols | read[size].slope.free_symbols
                used += [other for other in sorted(needed, key=str) if other not in used]
        return used

    def build(self, name: str, unused: Sequence[Array] = ()) -> Compiled:
        symbols = [Symbol(identifier(argument)) for argument in self.arguments.names]
        entries = [*read_sizes(self.printer, self.arguments, self.used_sizes()), *self.entries]
        function = sympy.lambdify(
            symbols,
            sympy.Tuple(*(Access(name) for name in self.result.names)),
            modules=[namespace(self.printer)],
            printer=self.printer,
            cse=lambda outputs: (entries, self.result),
        )
        text = "".join(linecache.getlines(function.__code__.co_filename))
        body = text.partition(":\n")[2]
        docstring = self.docstring()
        source = complete(self.printer, header(name, [str(symbol) for symbol in symbols]), docstring, body)
        function.__name__, function.__doc__ = name, docstring.strip().strip('"')
        arguments = replace(self.arguments, unused=tuple(unused))
        return Compiled(name, source, guarded(self.printer, function), arguments, self.result.variables)

    def docstring(self) -> str:
        """What the function computes, and the shapes of its arguments."""
        value, *_ = self.result.names
        what = ", ".join(self.result.names)
        if self.result.variables is not None:
            what = f"{value} and its gradients with respect to {', '.join(self.result.variables)}"
        shapes = [f"{a.name} ({', '.join(map(self.printer.number, a.shape))})" for a in self.arguments.arrays]
        return documented(f"{what}.", shapes)

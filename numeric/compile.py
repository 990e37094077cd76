"""Compile a system of index equations to a function on arrays, whose source can be read and stands alone.

One call of `sympy.lambdify` makes the function: `printer=` is our printer, and `cse=` is a callable that lowers the
equations and returns the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import sympy
from sympy import Symbol

from gradproof.numeric.emitters.arguments import Arguments
from gradproof.numeric.emitters.expressions import Emitter
from gradproof.numeric.emitters.numpy_emitter import InPlaceNumpyEmitter, NumpyEmitter, ufuncs
from gradproof.numeric.emitters.source import Result, complete, documented, header, namespace
from gradproof.numeric.emitters.torch_emitter import TorchEmitter
from gradproof.numeric.lowering.lower import Lowering
from gradproof.numeric.lowering.nodes import Node, identifier, parts
from gradproof.numeric.lowering.program import Assign, Program, nodes_of, walk
from gradproof.numeric.lowering.stable import stabilise
from gradproof.numeric.lowering.statements import lower_system
from gradproof.numeric.passes.deleting import with_deletions
from gradproof.numeric.passes.in_place import InPlace
from gradproof.numeric.passes.schedule import Schedule
from gradproof.numeric.passes.sizes import measures, mentioned, readings
from gradproof.numeric.passes.solving import with_solutions
from gradproof.numeric.passes.spread import spread, spread_out
from gradproof.numeric.passes.sums import faster, sums_as_products
from gradproof.symbolic.equations.expr import Access, Size, names
from gradproof.symbolic.equations.roles import Kind
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.language.syntax import Program as Sentences


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
    def program(self) -> Sentences: ...
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
    emitter = InPlaceNumpyEmitter if reuse or overwrite else NumpyEmitter
    return compile_for(emitter, derived, outputs, name, comment, overwrite=overwrite)


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
    return compile_for(TorchEmitter, derived, outputs, name, comment, device)


def compile_for(
    emitter: type[Emitter],
    derived: System | Derivation,
    outputs: Sequence[str] | None = None,
    name: str = "",
    comment: Callable[[Equation], str] | None = None,
    device: str = "auto",
    overwrite: Sequence[str] = (),
) -> Compiled:
    """Lower, rewrite, spell and compile, for one array library."""
    return builder(emitter, derived, outputs, comment, overwrite).build(name, device)


def source_for(emitter: type[Emitter], derived: System | Derivation) -> str:
    """The code alone: the library that it calls need not be installed."""
    return builder(emitter, derived).source("")


def builder(
    emitter: type[Emitter],
    derived: System | Derivation,
    outputs: Sequence[str] | None = None,
    comment: Callable[[Equation], str] | None = None,
    overwrite: Sequence[str] = (),
) -> Builder:
    if isinstance(derived, System):
        wanted = tuple(outputs or derived.outputs)
        system, result = derived.needed(wanted), Result(wanted, None)
        arrays = inputs_of(system, derived)
        unused: list[Array] = []
        derivatives: list[str] = []
    else:
        comment = comment or comments(derived)
        pairs = {name: gradient.equation.name for name, gradient in derived.gradients.items()}
        wanted = (derived.output, *pairs.values())
        system, result = with_forward(derived).needed(wanted), Result(wanted, tuple(pairs))
        read = {name for equation in system.equations for name in names(equation.body)}
        declared = dict.fromkeys([*derived.forward.inputs, *([derived.cotangent] if derived.cotangent else [])])
        declared.update(dict.fromkeys(name for name in system.inputs if name in read))
        arrays, unused = parted(system, [system.arrays[name] for name in declared], {*read, *derived.wrt})
        derivatives = [n for n in system.defined if n not in derived.forward.defined]
    silent = comment or (lambda equation: "")
    return Builder(stabilise(system, derivatives), emitter, arrays, unused, result, silent, overwrite)


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


class Builder:
    """Everything between a system and its compiled function: the passes in their order, and the spelling."""

    def __init__(
        self,
        system: System,
        emitter: type[Emitter],
        arrays: Sequence[Array],
        unused: Sequence[Array],
        result: Result,
        comment: Callable[[Equation], str],
        overwrite: Sequence[str],
    ) -> None:
        self.system, self.result, self.comment = system, result, comment
        self.arrays, self.unused = list(arrays), tuple(unused)
        floats = [a for a in arrays if a.below is None and a.rank]
        like = {array.shape: identifier(array.name) for array in reversed(floats)}
        dtype = f"{identifier(floats[0].name)}.dtype" if floats else ""
        self.quick = InPlace(ufuncs(), bool(dtype), overwrite) if issubclass(emitter, InPlaceNumpyEmitter) else None
        self.emitter, self.measuring = emitter(like, dtype), emitter(like, dtype)
        self.program = self.rewritten()
        lines = self.emitter.assignments(self.program.statements)
        read = readings(self.arrays)
        self.used = mentioned(system, self.emitter.symbols, read)
        self.lines = [*self.emitter.assignments(measures(self.arrays, read, self.used)), *lines]
        self.sizes = [str(size) for size in self.used if size not in read]
        self.risky = any(
            node.op == "where" and node.data[0] for s in walk(self.program.statements) for node in parts(*nodes_of(s))
        )

    def rewritten(self) -> Program:
        low = Lowering(self.system)
        returned = [identifier(name) for name in self.result.names]
        statements = with_solutions(low.graph, lower_system(low, self.system), returned)
        taken = [*map(identifier, self.system.arrays), *(size.name for size in self.system.sizes)]
        program = Schedule(low.graph, statements, self, returned, taken, self.comment).program
        program = with_deletions(program)
        return self.quick.program(program) if self.quick else spread_out(program)

    def line(self, statement: Assign, owned: Collection[str]) -> int:
        """The length of the longest line of a statement, as the passes will leave it."""
        found = self.quick.statement(statement, owned) if self.quick else spread(statement, owned)
        found = sums_as_products(found) if self.quick else found
        return max(len(line) for s in found for line in self.measuring.lines(s))

    def part(self, node: Node) -> int:
        return len(self.measuring.expression(faster(node) if self.quick else node))

    def build(self, name: str, device: str) -> Compiled:
        name = self.named(name)
        arguments = replace(self.emitter.arguments(self.arrays, self.used, device), unused=self.unused)
        function = self.function(namespace(self.emitter))
        function.__name__, function.__doc__ = name, self.docstring().strip().strip('"')
        run = self.emitter.decorate(function, self.risky, self.sizes)
        return Compiled(name, self.source(name), run, arguments, self.result.variables)

    def function(self, names: dict[str, Any]) -> Callable[..., Any]:
        """The last step: `sympy.lambdify` with our printer, and the program as the schedule of its lines."""
        return sympy.lambdify(
            [Symbol(name) for name in self.parameters],
            sympy.Tuple(*(Access(name) for name in self.result.names)),
            modules=[names],
            printer=self.emitter,
            cse=lambda outputs: (self.lines, self.result),
        )

    @property
    def parameters(self) -> list[str]:
        return [*(identifier(array.name) for array in self.arrays), *map(identifier, self.sizes)]

    def named(self, name: str) -> str:
        return name or ("forward" if self.result.variables is None else "value_and_gradients")

    def source(self, name: str) -> str:
        """A file that stands alone."""
        body = [f"    {target} = {value}" for target, value in self.lines] + self.result.lines()
        head = header(self.named(name), self.parameters)
        decorator = self.emitter.decorator(self.risky, self.sizes)
        return complete(self.emitter, head, decorator, self.docstring(), body)

    def docstring(self) -> str:
        """What the function computes, and the shapes of its arguments."""
        value, *_ = self.result.names
        what = ", ".join(self.result.names)
        if self.result.variables is not None:
            what = f"{value} and its gradients with respect to {', '.join(self.result.variables)}"
        shapes = [f"{a.name} ({', '.join(map(self.measuring.number, a.shape))})" for a in self.arrays]
        return documented(f"{what}.", shapes)

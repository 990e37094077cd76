"""Compile a system of index equations to a function on arrays, whose source can be read and stands alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gradproof.numeric.backends import emitter
from gradproof.numeric.emitters.arguments import ArgumentError, Arguments
from gradproof.numeric.emitters.expressions import Emitter
from gradproof.numeric.emitters.source import Result, Source
from gradproof.numeric.passes.sizes import readings
from gradproof.numeric.passes.stable import stabilise
from gradproof.numeric.pipeline import Builder
from gradproof.symbolic.equations.expr import Size, names
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
    @property
    def directions(self) -> Mapping[str, str]: ...
    def line(self, equation: Equation) -> str: ...


@dataclass(frozen=True)
class Compiled:
    """A function on arrays; call it with the arrays by name."""

    name: str
    code: Source
    function: Callable[..., Any]
    arguments: Arguments
    gradients: tuple[str, ...] | None  # the variables, if the function returns (value, gradients)

    @property
    def source(self) -> str:
        """A file that stands alone."""
        return str(self.code)

    def __call__(self, **arrays: Any) -> Any:
        values, dtype = self.arguments.check(arrays)
        try:
            result = self.function(**values)
        except ZeroDivisionError:
            raise ArgumentError("a number that sizes give is divided by 0: a mean over no entries, say") from None
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

    >>> from gradproof.symbolic.equations.expr import Access, Index, Size, sum_
    >>> from gradproof.symbolic.equations.system import Array
    >>> from gradproof.symbolic.equations.calculus import whole
    >>> i, n = Index("i"), Size("n")
    >>> total = whole(Array("L"), sum_(Access("x", i) ** 2, [(i, 0, n)]))
    >>> f = compile_numpy(System({"x": Array("x", (n,)), "L": Array("L")}, (total,), ("L",)))
    >>> float(f(x=[1.0, 2.0, 2.0])["L"])
    9.0
    """
    chosen = emitter("in-place numpy" if reuse or overwrite else "numpy")
    return compile_for(chosen, derived, outputs, name, comment, overwrite=overwrite)


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
    return compile_for(emitter("torch"), derived, outputs, name, comment, device)


def compile_jax(
    derived: System | Derivation,
    outputs: Sequence[str] | None = None,
    name: str = "",
    comment: Callable[[Equation], str] | None = None,
) -> Compiled:
    """The function of `compile_numpy` as JAX code, under `jax.jit`; it takes and returns arrays of JAX."""
    return compile_for(emitter("jax"), derived, outputs, name, comment)


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
    made = builder(emitter, derived, outputs, comment, overwrite)
    function, arguments = made.function(name, device)
    return Compiled(made.named(name), made.source(name), function, arguments, made.result.variables)


def source_for(backend: str, derived: System | Derivation) -> str:
    """The code for an array library, which need not be installed.

    >>> from gradproof.symbolic import derive
    >>> print(source_for("jax", derive("x @ x", shapes={"x": "n"}, wrt="x")).splitlines()[-1])
        return L, {"x": x_bar}
    """
    return str(builder(emitter(backend), derived).source(""))


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
    typed = derived if isinstance(derived, System) else derived.forward
    return Builder(stabilise(system, derivatives), emitter, arrays, unused, result, silent, overwrite, typed)


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

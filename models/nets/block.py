"""A block: equations of the expression language, and the generated code of its forward and its backward pass.

The backward pass is derived once, from the equations alone: the adjoint of Σ (output · cotangent), folded into textbook
form and split where the forward pass ends. What the derived equations read of the forward pass is what it must keep.

>>> import numpy as np
>>> dense = Block(stated("dense", "Y = X @ W + b", {"X": "n,d", "W": "d,m", "b": "m"}, ("Y",)))
>>> x, w = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])
>>> outputs, kept = dense.forward({"X": x, "W": w, "b": np.zeros(1)})
>>> outputs["Y"].tolist(), dense.backward({"Y": np.ones((1, 1))}, kept)["W"].tolist()
([[11.0]], [[1.0], [2.0]])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from numpy.typing import NDArray
from sympy import Expr, S

from gradproof.numeric.compile import Compiled, compile_numpy
from gradproof.numeric.lowering.nodes import identifier
from gradproof.symbolic.deriving.derivation import derive_system
from gradproof.symbolic.equations.calculus import adjoint
from gradproof.symbolic.equations.expr import Access, out_letters, reduce_
from gradproof.symbolic.equations.roles import PLAIN
from gradproof.symbolic.equations.system import Array as Named
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.folding.halves import backward_system, forward_system
from gradproof.symbolic.folding.textbook import textbook
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Equations:
    """What a block states: its system of equations, and what comes out. Equal are those that state the same.

    `extra` are results that nothing is differentiated through (attention weights, to be looked at). `constant` are
    inputs without a gradient (positions, first states); integers have none anyway, nor have `masks`, which dropout
    draws. `entries` are the catalogue's entries that the system was made from.
    """

    name: str
    system: System
    outputs: tuple[str, ...]
    extra: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Equations) and self.key == other.key)

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Two blocks with the same key share their code."""
        inputs = tuple(self.system.arrays[name] for name in self.system.inputs)
        return self.system.equations, inputs, self.outputs, self.extra, self.constant, self.masks

    @cached_property
    def shapes(self) -> dict[str, tuple[str, ...]]:
        """The sizes of each input, by their names."""
        return {name: tuple(map(str, self.system.arrays[name].shape)) for name in self.system.inputs}

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The inputs that have a gradient."""
        arrays, still = self.system.arrays, {*self.constant, *self.masks}
        return tuple(name for name in self.system.inputs if name not in still and arrays[name].below is None)

    def contracted(self) -> System:
        """The equations with Σ (output · its cotangent), the scalar whose adjoint is the backward pass.

        The cotangent of output Y is called G_Y.
        """
        arrays = [self.system.arrays[name].like(cotangent(name), PLAIN) for name in self.outputs]
        total: Expr = S.Zero
        for name, array in zip(self.outputs, arrays, strict=True):
            place = out_letters(array.rank)
            total += reduce_("sum", Access(name, *place) * Access(array.name, *place), array.axes(place))
        scalar = self.system.free_name("L")
        return self.system.extended([Named(scalar), *arrays], [Equation(scalar, (), (), total)], (scalar,))


def stated(
    name: str,
    text: str,
    shapes: Mapping[str, str],
    outputs: tuple[str, ...],
    extra: tuple[str, ...] = (),
    masks: tuple[str, ...] = (),
) -> Equations:
    """A block from equations in the expression language, for what the catalogue does not have."""
    return Equations(name, build(text, shapes), outputs, extra, masks=masks)


def cotangent(name: str) -> str:
    """The name of the cotangent of an output."""
    return f"G_{name}"


def derived(equations: Equations, checked: bool = False) -> System:
    """The forward equations and those of the adjoints of all variables; `checked` verifies every step (slower)."""
    system, wrt = equations.contracted(), equations.variables
    if checked:
        return derive_system(system, wrt, None, (), parse("0")).system
    raw = adjoint(system, wrt)
    shown = (*equations.outputs, *equations.extra)
    return textbook(raw, [e.name for e in raw.equations if e.name not in system.defined], beside=shown)


class Block:
    """The generated code of a block, made when it is needed and shared by all blocks of the same equations."""

    def __init__(self, equations: Equations) -> None:
        self.equations = equations

    @cached_property
    def ahead(self) -> Compiled:
        """The code of the forward pass alone."""
        return compile_forward(self.equations, (*self.equations.outputs, *self.equations.extra))

    @cached_property
    def differentiated(self) -> Differentiated:
        """Derived and compiled when it is first needed: decoding needs no backward pass."""
        return differentiated(self.equations)

    def evaluate(self, arrays: Arrays) -> dict[str, Array]:
        """The outputs alone."""
        return called(self.ahead, arrays)

    def forward(self, arrays: Arrays) -> tuple[dict[str, Array], dict[str, Array]]:
        """The outputs, and what the backward pass needs."""
        code = self.differentiated
        values = called(code.forward, arrays)
        kept = {name: values[name] if name in values else arrays[name] for name in code.kept}
        for name, (array, axis) in code.sizes.items():
            kept[name] = arrays[array].shape[axis]
        return {name: values[name] for name in (*self.equations.outputs, *self.equations.extra)}, kept

    def backward(self, cotangents: Arrays, kept: Arrays) -> dict[str, Array]:
        """The gradients of all variables, from those of all outputs."""
        code = self.differentiated
        given = {cotangent(name): value for name, value in cotangents.items() if cotangent(name) in code.cotangents}
        found = code.backward.function(**{identifier(name): value for name, value in {**kept, **given}.items()})
        return {name: found[code.systems[1].adjoint_of(name)] for name in self.equations.variables}


@dataclass(frozen=True)
class Differentiated:
    """Forward code that returns what the backward code needs, and that backward code."""

    forward: Compiled
    backward: Compiled
    kept: tuple[str, ...]  # arrays of the forward pass, inputs among them, that the backward pass reads
    cotangents: tuple[str, ...]
    sizes: Mapping[str, tuple[str, int]]  # sizes that no array of the backward pass shows: where they are read
    systems: tuple[System, System]  # what was compiled


@lru_cache(maxsize=500)
def differentiated(equations: Equations) -> Differentiated:
    """Derive, split and compile; once for each distinct block."""
    forward, whole = equations.system, derived(equations)
    behind = backward_system(whole, forward, [whole.adjoint_of(name) for name in equations.variables])
    kept = [name for name in behind.inputs if name in forward.arrays]
    saved = [name for name in kept if name in forward.defined]
    returned = tuple(dict.fromkeys((*equations.outputs, *equations.extra, *saved)))
    backward = compile_numpy(behind, behind.outputs, f"{equations.name}_backward", reuse=True)
    sizes = {size.name: _shown(forward, str(size)) for size in backward.arguments.given}
    return Differentiated(
        compile_forward(equations, returned),
        backward,
        tuple(kept),
        tuple(name for name in behind.inputs if name not in forward.arrays),
        sizes,
        (forward_system(forward, returned), behind),
    )


def _shown(system: System, size: str) -> tuple[str, int]:
    """An input of the forward pass whose axis has that size."""
    found = (
        (name, axis)
        for name in system.inputs
        for axis, length in enumerate(system.arrays[name].shape)
        if str(length) == size
    )
    return next(found)


@lru_cache(maxsize=500)
def compile_forward(equations: Equations, outputs: tuple[str, ...]) -> Compiled:
    """The forward code that returns these arrays; compiled once for each distinct block."""
    return compile_numpy(forward_system(equations.system, outputs), outputs, equations.name, reuse=True)


def called(code: Compiled, arrays: Arrays) -> dict[str, Array]:
    """The results of generated code, without the checks of its arguments: the wiring guarantees names and shapes."""
    return dict(code.function(**{identifier(name): arrays[name] for name in code.arguments.names}))

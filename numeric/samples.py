"""A derivation at random inputs: what its generated code says there, to be compared with what is independent of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import mpmath
import numpy as np
from sympy import Symbol

from gradproof.numeric.compile import Compiled, Derivation, compile_numpy
from gradproof.numeric.random_inputs import random_inputs, random_sizes
from gradproof.symbolic.equations.evaluate import HighPrecision, Point, Undefined
from gradproof.symbolic.equations.expr import Implicit
from gradproof.symbolic.equations.roles import Kind, Role
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError

FLOOR = 1e-3  # a gradient whose entries are all smaller is measured against this instead of its largest entry
TRIES = 20
Arrays = Mapping[str, np.ndarray]


class Oracle(Protocol):
    """An independent forward: from tensors by name, and sizes by name, to the output tensor."""

    def __call__(self, tensors: Mapping[str, Any], sizes: Mapping[str, int]) -> Any: ...


def relative_error(mine: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, relative to the largest entry; infinite where shapes differ or an entry is no number.

    >>> relative_error(np.array([1.0, 4.0]), np.array([1.0, 5.0]))
    0.2
    """
    if np.shape(mine) != np.shape(theirs) or not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
        return float("inf")
    scale = max(float(np.abs(theirs).max(initial=0.0)), FLOOR)
    return float(np.abs(mine - theirs).max(initial=0.0)) / scale


# what the array of a result is, and whether it is turned: what it is compared with
COMPARED = {
    (Kind.ADJOINT, False): "gradient",
    (Kind.GRADIENT, True): "turned gradient",
    (Kind.JACOBIAN, False): "jacobian",
    (Kind.JACOBIAN, True): "turned jacobian",
    (Kind.PROPAGATION, False): "jacobian",
    (Kind.HESSIAN, False): "hessian",
}


@dataclass(frozen=True)
class Sample:
    """A derivation at random inputs, with the results of its generated code."""

    derivation: Derivation
    compiled: Compiled
    sizes: Mapping[Symbol, int]
    inputs: Arrays
    value: np.ndarray
    gradients: Arrays

    @classmethod
    def draw(cls, derivation: Derivation, seed: int) -> Sample:
        """Draw sizes and inputs until everything has a value; those of logarithms and roots are positive."""
        compiled = compile_numpy(derivation)
        for attempt in range(TRIES):
            sizes = random_sizes(derivation.system, seed + attempt // 2)
            drawn = random_inputs(derivation.system, sizes, seed + 1000 * attempt, positive=attempt % 2 == 1)
            inputs = {array.name: np.asarray(drawn[array.name]) for array in compiled.arguments.declared}
            extra = {size.name: sizes[size] for size in compiled.arguments.given}
            with np.errstate(all="ignore"):
                try:
                    value, gradients = compiled(**inputs, **extra)
                except np.linalg.LinAlgError:
                    continue
            finite = np.isfinite(value).all() and all(np.isfinite(g).all() for g in gradients.values())
            if finite and not _singular(derivation.system, sizes, inputs):
                break
        else:
            raise GradproofError("the expression has no value at the points that were tried")
        return cls(
            derivation, compiled, sizes, inputs, np.asarray(value), {k: np.asarray(g) for k, g in gradients.items()}
        )

    @property
    def system(self) -> System:
        return self.derivation.system

    def shape(self, name: str) -> tuple[int, ...]:
        arrays = self.system.arrays if name in self.system.arrays else self.derivation.forward.arrays
        return tuple(int(size.xreplace(dict(self.sizes))) for size in arrays[name].shape)

    @property
    def cotangent(self) -> np.ndarray | None:
        name = self.derivation.cotangent
        return None if name is None else self.inputs[name]

    @property
    def directions(self) -> list[str]:
        """The arrays along which variables change, in the order of the variables (a Jacobian–vector product)."""
        return list(self.derivation.directions.values())

    def role(self, name: str) -> Role:
        """What the array of a result is."""
        return self.system.arrays[self.derivation.gradients[name].equation.name].role

    def kind(self, name: str) -> str:
        """What a result is: a row of `COMPARED`, or "tangent" of the output, "product" of a Hessian, or "other"."""
        role = self.role(name)
        if role.kind is Kind.TANGENT:
            second = role.source is not None and role.source.kind is Kind.GRADIENT
            return "product" if second else "tangent" if role.of == self.derivation.output else "other"
        return COMPARED.get((role.kind, role.turned), "other")

    def variables(self, name: str) -> tuple[str, ...]:
        """What a result is the derivative by."""
        role = self.role(name)
        if role.kind is Kind.TANGENT:
            return (role.source.of,) if role.source else ()
        pairs = {Kind.HESSIAN: (role.of, role.along)}
        return pairs.get(role.kind, (role.along if role.kind in (Kind.JACOBIAN, Kind.PROPAGATION) else role.of,))

    @cached_property
    def forward(self) -> Callable[[Arrays], np.ndarray]:
        """The generated forward alone."""
        output = self.derivation.output
        function = compile_numpy(self.derivation.forward, [output])
        extra = {size.name: self.sizes[size] for size in function.arguments.given}

        def run(inputs: Arrays) -> np.ndarray:
            own = {array.name: inputs[array.name] for array in function.arguments.arrays}
            with np.errstate(all="ignore"):
                return np.asarray(function(**own, **extra)[output])

        return run

    def contracted(self, jacobian: np.ndarray, kind: str) -> np.ndarray:
        """What a result should be, given the Jacobian with the output's axes first."""
        rank = self.value.ndim
        if kind in ("gradient", "turned gradient"):
            weight = np.ones(()) if self.cotangent is None else self.cotangent
            found = np.tensordot(weight, jacobian, axes=rank)
            return found if kind == "gradient" else found.transpose()
        if kind == "turned jacobian":
            order = [*range(rank, jacobian.ndim), *range(rank)]
            return jacobian.transpose(order)
        return jacobian


def _singular(system: System, sizes: Mapping[Symbol, int], inputs: Arrays) -> bool:
    """Whether a matrix that is inverted is singular but for rounding: A Aᵀ of a tall A."""
    inverted = [e.name for e in system.equations if e.body.has(Implicit)]
    if not inverted:
        return False
    given = {name: exact(system, name, array) for name, array in inputs.items() if name in system.arrays}
    point = Point(system, dict(sizes), HighPrecision(0), given=given)
    try:
        for name in inverted:
            point.array(name)
    except Undefined:
        return True
    return False


def exact(system: System, name: str, values: np.ndarray) -> dict[tuple[int, ...], Any]:
    array = system.arrays[name]
    first = [int(array.first(axis)) for axis in range(array.rank)]
    convert = int if array.below is not None else lambda value: mpmath.mpf(float(value))
    return {tuple(i + f for i, f in zip(index, first, strict=True)): convert(v) for index, v in np.ndenumerate(values)}

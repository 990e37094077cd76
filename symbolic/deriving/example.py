"""A worked example: one small input, the forward values and the derivatives, number by number."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
from sympy import Symbol

from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.equations.evaluate import HighPrecision, Point, Undefined
from gradproof.symbolic.equations.expr import names
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import small_sizes

Nested = Any  # a number or nested lists of numbers


@dataclass(frozen=True)
class Example:
    """Sizes, and the values of inputs, intermediates and results as nested lists."""

    sizes: Mapping[str, int]
    inputs: Mapping[str, Nested]
    values: Mapping[str, Nested]
    results: Mapping[str, Nested]


class SmallNumbers(HighPrecision):
    """Random inputs with one decimal, so that a reader can follow."""

    def random(self, rng: random.Random) -> mpmath.mpf:
        return mpmath.mpf(rng.choice([k for k in range(-20, 21) if k])) / 10


def worked_example(derivation: Derivation, seed: int = 0, sizes: Mapping[Symbol, int] | None = None) -> Example:
    """Numbers for one small input of a derivation.

    Raises GradproofError where no small input gives a value.

    >>> from gradproof.symbolic.derive import derive
    >>> example = worked_example(derive("sum(x**2)", {"x": "n"}, "x"))
    >>> all(abs(g - 2 * x) < 1e-12 for x, g in zip(example.inputs["x"], example.results["x_bar"]))
    True
    """
    system = derivation.system
    results = [equation.name for equation in derivation.results]
    shown = [e.name for e in derivation.definitions]
    output = [derivation.output] if derivation.output in system.arrays else []
    for attempt in range(seed, seed + 20):
        chosen = dict(sizes or small_sizes(system, attempt))
        point = Point(system, chosen, SmallNumbers(attempt), attempt)
        used = [name for name in system.inputs if any(name in _reads(system, r) for r in [*results, *output])]
        try:
            inputs, values, found = (
                {name: nested(point, name) for name in dict.fromkeys(group)}
                for group in (used, [*shown, *output], results)
            )
        except Undefined:
            continue
        return Example({str(size): value for size, value in chosen.items()}, inputs, values, found)
    raise GradproofError("no small example has a value")


def _reads(system: System, name: str) -> set[str]:
    """All arrays that an array depends on."""
    needed = system.needed([name])
    return set().union(*(names(e.body) for e in needed.equations), {name})


def nested(point: Point, name: str) -> Nested:
    """The values of an array as nested lists of Python numbers."""

    def build(index: tuple[int, ...], depth: int) -> Nested:
        if depth == len(shape):
            value = point.entry(name, index)
            return value if isinstance(value, int) else float(value)
        first = int(point.system.arrays[name].first(depth))
        return [build((*index, first + k), depth + 1) for k in range(shape[depth])]

    shape = point.shape(name)
    return build((), 0)


def numbers_text(value: Nested) -> str:
    """Nested lists as rows of short numbers.

    >>> numbers_text([[1.0, 0.5], [-0.25, 3.0]])
    '[[1, 0.5], [-0.25, 3]]'
    """
    if isinstance(value, list):
        return f"[{', '.join(map(numbers_text, value))}]"
    return f"{value:.6g}"

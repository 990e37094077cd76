"""Random sizes and inputs for a system, which respect what was declared of each array."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import count

import numpy as np
from sympy import Expr, Symbol, sympify

from gradproof.symbolic.equations.system import Array, System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import at_least_one


def random_sizes(system: System, seed: int = 0) -> dict[Symbol, int]:
    """Small sizes, all different, so that an array of the wrong shape does not fit by accident.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> n, m = Size("n"), Size("m")
    >>> sizes = random_sizes(System({"v": Array("v", (n - m,))}, (), ()))
    >>> sizes[n] > sizes[m] >= 2
    True
    """
    rng = random.Random(f"sizes {seed}")
    shapes = at_least_one(system)  # x[6] needs seven entries
    for attempt in count():
        top = 2 + len(system.sizes) + attempt // 20
        sizes = dict(zip(system.sizes, rng.sample(range(2, top + 1), len(system.sizes)), strict=True))
        if all(_positive(sympify(size.xreplace(sizes))) for size in shapes):
            return sizes
        if attempt > 2000:
            raise GradproofError(f"no small sizes {', '.join(map(str, system.sizes))} fit the shapes")
    raise AssertionError


def _positive(size: Expr) -> bool:
    return bool(size.is_Integer and size >= 1)


def random_inputs(
    system: System, sizes: Mapping[Symbol, int], seed: int = 0, positive: bool = False
) -> dict[str, np.ndarray]:
    """An array for every input; `positive` keeps real numbers between 0.2 and 1.5, inside the domain of logarithms.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> n = Size("n")
    >>> p = random_inputs(System({"p": Array("p", (n,), properties=frozenset(["simplex"]))}, (), ()), {n: 4})["p"]
    >>> bool(abs(p.sum() - 1) < 1e-12)
    True
    """
    return {name: _array(system.arrays[name], sizes, seed, positive) for name in system.inputs}


def _array(array: Array, sizes: Mapping[Symbol, int], seed: int, positive: bool) -> np.ndarray:
    # One generator for each array: its values do not depend on what else a system reads.
    rng = np.random.default_rng([seed, *array.name.encode()])
    shape = tuple(int(size.xreplace(dict(sizes))) for size in array.shape)
    if array.below is not None:
        numbers = np.asarray(rng.integers(0, int(array.below.xreplace(dict(sizes))), shape))
        if array.below == 2 and array.rank > 1 and shape[-1]:
            numbers[..., 0] = 1  # a mask: no row forbids everything
        return numbers
    values: np.ndarray = rng.uniform(0.2, 1.5, shape) if positive else rng.normal(size=shape)
    for name, rule in PROPERTIES.items():
        if name in array.properties:
            values = rule(values)
    return values


def _turned(values: np.ndarray) -> np.ndarray:
    return np.swapaxes(values, -1, -2)


PROPERTIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "simplex": lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
    "symmetric": lambda x: (x + _turned(x)) / 2,
    "psd": lambda x: x @ _turned(x) / x.shape[-1] + np.eye(x.shape[-1]) / 2,
    "diagonal": lambda x: x * np.eye(x.shape[-1]),
    "orthogonal": lambda x: np.linalg.qr(x)[0],
}

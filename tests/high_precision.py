"""Help for the tests: gradients and Hessians of gradproof at given float64 arrays, beside those of torch's autograd."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import mpmath
import numpy as np

from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import hessian
from gradproof.symbolic.equations.evaluate import HighPrecision, Point
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import Program, parse

Arrays = dict[str, np.ndarray]
Torch = Callable[..., object]
COTANGENT = "G_"


def drawn(system: System, sizes: Mapping[str, int], seed: int = 0) -> Arrays:
    """Random inputs of a system that have their declared properties, away from 0; integers for lookups."""
    point = Point(system, {s: sizes[str(s)] for s in system.sizes}, HighPrecision(seed), seed)
    found = {}
    for name in system.inputs:
        values = point.array(name)
        kind = float if system.arrays[name].below is None else int
        found[name] = np.array([kind(v) for v in values.values()]).reshape(point.shape(name))
    return found


def valued(system: System, names: Sequence[str], arrays: Arrays, sizes: Mapping[str, int]) -> list[np.ndarray]:
    """The named arrays of a system at given inputs, computed to 40 digits."""
    given = {
        name: {index: mpmath.mpf(float(v)) if a.dtype.kind == "f" else int(v) for index, v in np.ndenumerate(a)}
        for name, a in arrays.items()
    }
    point = Point(system, {s: sizes[str(s)] for s in system.sizes}, HighPrecision(0), 0, given)
    return [np.array([float(v) for v in point.array(name).values()]).reshape(point.shape(name)) for name in names]


def close(mine: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-10) -> None:
    assert mine.shape == theirs.shape
    scale = max(1.0, float(np.abs(theirs).max(initial=0)))
    assert np.abs(mine - theirs).max(initial=0) <= tolerance * scale


def compare_gradients(
    text: str | Program, shapes: Mapping[str, object], torch_value: Torch, sizes: Mapping[str, int], seed: int = 0
) -> None:
    """Every gradient of an expression against torch.autograd of a hand-written forward, with a random cotangent."""
    import torch

    program = parse(text) if isinstance(text, str) else text
    system = build(program, shapes)
    (output,) = system.outputs
    cotangent = COTANGENT if system.arrays[output].rank else None
    found = derive(program, shapes, cotangent=cotangent)
    arrays = drawn(system, sizes, seed)
    tensors = {name: torch.tensor(a, requires_grad=a.dtype.kind == "f") for name, a in arrays.items()}
    value = torch_value(**tensors)
    (mine,) = valued(system, [output], arrays, sizes)
    close(mine, value.detach().numpy())
    if cotangent is not None:
        arrays[cotangent] = np.random.default_rng(seed).normal(size=value.shape)
        value = (value * torch.tensor(arrays[cotangent])).sum()
    theirs = torch.autograd.grad(value, [tensors[name] for name in found.wrt], allow_unused=True)
    names = [found.gradients[name].equation.name for name in found.wrt]
    for name, mine, other in zip(found.wrt, valued(found.system, names, arrays, sizes), theirs, strict=True):
        close(mine, np.zeros_like(arrays[name]) if other is None else other.numpy())


def compare_hessians(
    text: str,
    shapes: Mapping[str, object],
    wrt: Sequence[str],
    torch_value: Torch,
    sizes: Mapping[str, int],
    seed: int = 0,
) -> None:
    """Every block of a Hessian against torch.autograd.functional.hessian."""
    import torch

    system = build(text, shapes)
    found = hessian(system, list(wrt), parse(text))
    arrays = drawn(system, sizes, seed)
    constants = {name: torch.tensor(a) for name, a in arrays.items()}

    def value(*variables: object) -> object:
        return torch_value(**{**constants, **dict(zip(wrt, variables, strict=True))})

    blocks = torch.autograd.functional.hessian(value, tuple(constants[name] for name in wrt))
    for (k, row), (m, column) in itertools.combinations_with_replacement(enumerate(wrt), 2):
        gradient = found.gradients[row if row == column else f"{row},{column}"]
        (mine,) = valued(gradient.system, [gradient.equation.name], arrays, sizes)
        close(mine, blocks[k][m].numpy())

"""What torch autograd says of a derivation's forward: gradients, Jacobians, Hessians and tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.autograd import functional

from gradproof.numeric.reference.evaluator import evaluate
from gradproof.numeric.samples import Oracle, Sample


def torch_results(
    sample: Sample, device: str, oracle: Oracle | None, notes: list[str]
) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    """The device, the value of the forward, and each result that torch can compute, by name."""
    used = device_for(device, notes)
    forward = _forward(sample, used, oracle)
    variables = list(sample.derivation.wrt)
    point = [torch.as_tensor(sample.inputs[name], dtype=torch.float64, device=used) for name in variables]
    value = forward(*point)
    found: dict[str, Tensor] = {}
    gradients: dict[str, Tensor] | None = None
    for name in sample.gradients:
        kind, by = sample.kind(name), [variables.index(v) for v in sample.variables(name) if v in variables]
        if kind in ("gradient", "turned gradient"):
            gradients = gradients or _gradients(sample, forward, point)
            found[name] = gradients[variables[by[0]]]
        elif kind in ("jacobian", "turned jacobian"):
            found[name] = _jacobian(forward, point, by[0])
        elif kind == "hessian":
            found[name] = _hessian(forward, point, *by)
        elif kind == "tangent":
            along = [torch.as_tensor(sample.inputs[d], dtype=torch.float64, device=used) for d in sample.directions]
            found[name] = functional.jvp(forward, tuple(point), tuple(along))[1]
        elif kind == "product":
            vector = torch.as_tensor(sample.inputs[sample.directions[0]], dtype=torch.float64, device=used)
            found[name] = functional.hvp(_of_one(forward, point, by[0]), point[by[0]], vector)[1]
    results = {}
    for name, result in found.items():
        array = result.detach().cpu().numpy()
        kind = sample.kind(name)
        results[name] = array.transpose() if kind == "turned gradient" else array
        if kind == "turned jacobian":
            results[name] = sample.contracted(array, kind)
    return used, value.detach().cpu().numpy(), results


def device_for(device: str, notes: list[str]) -> str:
    """The device that is used; a note says so when there is no GPU."""
    if device != "cpu" and not torch.cuda.is_available():
        notes.append("there is no CUDA device: torch ran on the CPU")
        return "cpu"
    return "cuda" if device == "auto" else device


def _forward(sample: Sample, device: str, oracle: Oracle | None) -> Callable[..., Tensor]:
    """The independent forward as a function of the variables."""
    derivation = sample.derivation
    sizes = {str(size): value for size, value in sample.sizes.items()}
    rest = {
        array.name: torch.as_tensor(sample.inputs[array.name], device=device)
        for array in sample.compiled.arguments.declared
        if array.name in derivation.forward.arrays
    }

    def forward(*values: Tensor) -> Tensor:
        tensors = {**rest, **dict(zip(derivation.wrt, values, strict=True))}
        return oracle(tensors, sizes) if oracle is not None else evaluate(derivation.program, tensors, sizes)

    return forward


def _gradients(sample: Sample, forward: Callable[..., Tensor], point: Sequence[Tensor]) -> dict[str, Tensor]:
    leaves = [tensor.clone().requires_grad_() for tensor in point]
    value = forward(*leaves)
    if sample.cotangent is not None:
        value = (value * torch.as_tensor(sample.cotangent, device=value.device)).sum()
    if not value.requires_grad:  # no variable has any influence
        return {name: torch.zeros_like(leaf) for name, leaf in zip(sample.derivation.wrt, leaves, strict=True)}
    made = torch.autograd.grad(value, leaves, allow_unused=True)
    return {
        name: torch.zeros_like(leaf) if gradient is None else gradient
        for name, leaf, gradient in zip(sample.derivation.wrt, leaves, made, strict=True)
    }


def _jacobian(forward: Callable[..., Tensor], point: Sequence[Tensor], position: int) -> Tensor:
    return functional.jacobian(_of_one(forward, point, position), point[position])


def _of_one(forward: Callable[..., Tensor], point: Sequence[Tensor], position: int) -> Callable[[Tensor], Tensor]:
    return lambda value: forward(*point[:position], value, *point[position + 1 :])


def _hessian(forward: Callable[..., Tensor], point: Sequence[Tensor], row: int, column: int) -> Tensor:
    return functional.hessian(forward, tuple(point))[row][column]

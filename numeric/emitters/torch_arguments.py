"""Tensors as the arguments of a compiled function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sympy import Symbol

from gradproof.numeric.emitters.arguments import ArgumentError, Arguments
from gradproof.symbolic.equations.system import Array


@dataclass(frozen=True)
class TorchArguments(Arguments):
    """Tensors on one device."""

    device: str = "cpu"

    @classmethod
    def on(cls, device: str, arrays: Iterable[Array], sizes: Iterable[Symbol]) -> TorchArguments:
        plain = Arguments.of(arrays, sizes)
        return cls(plain.arrays, plain.readings, plain.given, device)

    def convert(self, array: Array, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            made = value.detach()
        else:
            made = torch.as_tensor(super().convert(array, value))
        if made.is_complex() or (array.below is not None and made.is_floating_point()):
            raise ArgumentError(f"{array.name} must hold {'whole' if array.below is not None else 'real'} numbers")
        return made.to(self.device)

    def dtype(self, values: Iterable[Any]) -> torch.dtype:
        given = [value.dtype for value in values if isinstance(value, (torch.Tensor, np.ndarray))]
        narrow = bool(given) and all(dtype in (torch.float32, np.dtype(np.float32)) for dtype in given)
        return torch.float32 if narrow else torch.float64

    def number(self, value: Any, dtype: Any) -> Any:
        return value.to(dtype)

    def lookup(self, value: Any) -> Any:
        return value.long()

    def finish(self, value: Any, dtype: Any, inputs: Iterable[Any] = ()) -> Any:
        made = torch.as_tensor(value, dtype=dtype, device=self.device)
        own = made._base is None and all(made is not other for other in inputs)
        return made if own else made.clone()


def chosen_device(device: str) -> str:
    """`auto` is the GPU where there is one.

    >>> chosen_device("cpu")
    'cpu'
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ArgumentError("there is no CUDA device here: use device='cpu'")
    return device

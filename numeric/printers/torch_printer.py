"""The same schedule as torch code: autograd is not used, and the arrays lie where the arguments lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sympy import Expr, Symbol

from gradproof.numeric.arguments import ArgumentError, Arguments
from gradproof.numeric.lowering.nodes import Node
from gradproof.numeric.printers.number_printer import POSTFIX, UNARY
from gradproof.numeric.printers.numpy_printer import FUNCTIONS, TABLE, NumpyPrinter
from gradproof.symbolic.equations.functions import ELEMENTWISE
from gradproof.symbolic.equations.system import Array

TORCH_TABLE = {
    **{key: form.replace("np.", "torch.") for key, form in TABLE.items()},
    "arange": "torch.arange({0}, {1}{device})",
    "arange0": "torch.arange({1}{device})",
    "eye": "torch.eye({0}, dtype=torch.bool{device})",
    "eye_float": "torch.eye({0}{dtype}{device})",
    "float": "{0}.to({dtype})",
    "dot": "({0} * {1}).sum()",
    "clip": "torch.clamp({0}, 0, {1})",
    "tensordot": "torch.tensordot({0}, {1}, dims={axes})",
    "windows": "{0}.unfold({axis}, {width}, 1)",
    "max": "{0}.amax({options})",
    "broadcast": "{0}.expand({shape})",
    "full": "{0}.expand({shape}).clone()",
    "full_number": "torch.full({shape}, {0}{dtype}{device})",
    "zeros": "torch.zeros({shape}{dtype}{device})",
    "empty": "torch.empty({shape}{dtype}{device})",
    "scatter": "{target}.index_put_({places}, {values}, accumulate=True)",
    "transpose": "{0}.permute({axes})",
    "copy": "{0}.clone()",
    "inf": "math.inf",
}

TORCH_FUNCTIONS = {
    **{name: form.replace("np.", "torch.") for name, form in FUNCTIONS.items()},
    **{name: entry.torch for name, entry in ELEMENTWISE.items()},
    "softplus": "torch.nn.functional.softplus({}, threshold=40)",  # beyond 40 it is x to the last digit
    "absolute": "torch.abs({})",
}


class TorchPrinter(NumpyPrinter):
    """Prints nodes as torch code.

    >>> from gradproof.numeric.lowering.nodes import Graph
    >>> g, n = Graph(), Symbol("n")
    >>> TorchPrinter({}).doprint(g.reduce("max", g.array("x", (n,)), [0]))
    'x.amax()'
    """

    table: Mapping[str, str] = TORCH_TABLE
    functions: Mapping[str, str] = TORCH_FUNCTIONS
    helpers: Mapping[str, str] = {}
    imports: Mapping[str, str] = {"math.": "import math", "torch.": "import torch"}
    repeated_level = POSTFIX
    axis_word, keep_word = "dim", "keepdim"
    decorator = "@torch.no_grad()"

    def decorated(self) -> bool:
        return True

    def decorate(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return torch.no_grad()(function)

    def placed(self) -> str:
        return f", device={self.dtype.removesuffix('.dtype')}.device" if self.dtype else ""

    def shape(self, sizes: Sequence[Expr]) -> str:
        return f"({self.number(sizes[0])},)" if len(sizes) == 1 else super().shape(sizes)

    def print_dot(self, node: Node) -> tuple[str, int]:
        return self.form("dot", *(self.expression(arg, UNARY) for arg in node.args)), POSTFIX

    def chosen(self, condition: Node, a: Node, b: Node) -> str:
        texts = [self.expression(node) for node in (condition, a, b)]
        if a.op == b.op == "scalar" and self.dtype:  # two Python numbers would give float32
            texts[1] = f"torch.full_like({self.expression(condition)}, {texts[1]}, dtype={self.dtype})"
        return self.form("where", *texts)

    def cast(self, node: Node) -> str:
        return self.form("float", self.expression(node, POSTFIX), dtype=self.dtype or "torch.float64")

    def term(self, node: Node) -> tuple[bool, str]:
        """torch does not subtract booleans."""
        negative, text = super().term(node)
        if negative and node.op == "mul" and all(arg.op == "scalar" or arg.kind == "b" for arg in node.args):
            text = f"({text}).to({self.dtype or 'torch.float64'})"
        return negative, text

    def called(self, function: str, args: Sequence[Node]) -> str:
        if function == "maximum" and any(arg.op == "scalar" for arg in args):
            number, array = sorted(args, key=lambda arg: arg.op != "scalar")
            return f"torch.clamp({self.expression(array)}, min={self.expression(number)})"
        return super().called(function, args)

    def print_prod(self, node: Node, keep: bool = False) -> tuple[str, int]:
        """torch multiplies along one axis at a time."""
        text = self.expression(node.args[0], POSTFIX)
        option = ", keepdim=True" if keep else ""
        for axis in sorted(node.data, reverse=True):
            text += f".prod(dim={axis}{option})"
        return text, POSTFIX

    def reduction(self, node: Node, keep: bool = False) -> tuple[str, int]:
        return self.print_prod(node, keep) if node.op == "prod" else super().reduction(node, keep)

    print_sum = print_max = print_mean = reduction

    def axes_of(self, axes: Sequence[Sequence[int]]) -> tuple[int | list[int], ...]:
        return tuple(list(axis) for axis in axes)

    def windowed(self, arg: Node, axis: int, width: str) -> str:
        return self.form("windows", self.expression(arg, POSTFIX), width=width, axis=str(axis))

    def flipped(self, text: str, axis: int) -> str:
        return f"{text}.flip({axis})"

    def padded(self, text: str, pads: Sequence[str]) -> str:
        inside = ", ".join(pad.strip("()") for pad in reversed(pads))  # torch lists the last axis first
        return f"torch.nn.functional.pad({text}, ({inside}))"

    def print_broadcast(self, node: Node) -> tuple[str, int]:
        return self.form("broadcast", self.expression(node.args[0], POSTFIX), shape=self.shape(node.shape)), POSTFIX

    def scattered(self, target: str, places: Sequence[str], values: Node) -> str:
        inside = f"({', '.join(places)},)" if len(places) == 1 else f"({', '.join(places)})"
        text = self.expression(values)
        text = f"torch.tensor({text}{self.typed()}{self.placed()})" if values.op == "scalar" else text
        return self.form("scatter", target=target, places=inside, values=text)


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

"""Programs as torch code: autograd is not used, and the arrays lie where the arguments lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sympy import Expr, Symbol

from gradproof.numeric.emitters.arguments import Arguments
from gradproof.numeric.emitters.expressions import Emitter
from gradproof.numeric.emitters.numbers import MUL, POSTFIX, UNARY
from gradproof.numeric.emitters.numpy_emitter import FUNCTIONS, SCIPY, TABLE
from gradproof.numeric.lowering.nodes import Node
from gradproof.numeric.lowering.program import ScatterAdd
from gradproof.symbolic.equations.functions import spellings
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
    "pad": "torch.nn.functional.pad({0}, ({pads}))",
    "number": "torch.tensor({0}{dtype}{device})",
    "ones": "torch.ones({shape}{dtype}{device})",
    "chosen_number": "torch.full_like({0}, {1}, dtype={dtype})",
    "clamp": "torch.clamp({0}, min={1})",
    "float_of": "({0}).to({dtype})",
}

TORCH_FUNCTIONS = {
    **{name: form.replace("np.", "torch.") for name, form in FUNCTIONS.items()},
    **spellings("torch"),
}


class TorchEmitter(Emitter):
    """Spells programs as torch code.

    >>> from gradproof.numeric.lowering.nodes import Graph
    >>> g, n = Graph(), Symbol("n")
    >>> TorchEmitter().doprint(g.reduce("max", g.array("x", (n,)), [0]))
    'x.amax()'
    """

    table: Mapping[str, str] = TORCH_TABLE
    functions: Mapping[str, str] = TORCH_FUNCTIONS
    imports: Mapping[str, str] = {"math.": "import math", "torch.": "import torch", **SCIPY}
    repeated_level = POSTFIX
    axis_word, keep_word = "dim", "keepdim"

    @classmethod
    def arguments(cls, arrays: Iterable[Array], sizes: Iterable[Symbol], device: str) -> Arguments:
        from gradproof.numeric.emitters.torch_arguments import TorchArguments, chosen_device

        return TorchArguments.on(chosen_device(device), arrays, sizes)

    def decorator(self, risky: bool, sizes: Sequence[str]) -> str:
        return "@torch.no_grad()"

    def decorate(self, function: Callable[..., Any], risky: bool, sizes: Sequence[str]) -> Callable[..., Any]:
        import torch

        return torch.no_grad()(function)

    def placed(self) -> str:
        return f", device={self.dtype.removesuffix('.dtype')}.device" if self.dtype else ""

    def shape(self, sizes: Sequence[Expr]) -> str:
        return f"({self.number(sizes[0])},)" if len(sizes) == 1 else super().shape(sizes)

    def spell_dot(self, node: Node) -> tuple[str, int]:
        return self.form("dot", *(self.expression(arg, UNARY) for arg in node.args)), POSTFIX

    def chosen(self, condition: Node, a: Node, b: Node) -> str:
        texts = [self.expression(node) for node in (condition, a, b)]
        if a.op == b.op == "scalar" and self.dtype:  # two Python numbers would give float32
            texts[1] = self.form("chosen_number", self.expression(condition), texts[1], dtype=self.dtype)
        return self.form("where", *texts)

    def cast(self, node: Node) -> str:
        return self.form("float", self.expression(node, POSTFIX), dtype=self.dtype or "torch.float64")

    def term(self, node: Node, level: int = MUL) -> tuple[bool, str]:
        """torch does not subtract booleans."""
        negative, text = super().term(node, level)
        if negative and node.op == "mul" and all(arg.op == "scalar" or arg.kind == "b" for arg in node.args):
            text = self.form("float_of", text, dtype=self.dtype or "torch.float64")
        return negative, text

    def called(self, function: str, args: Sequence[Node]) -> str:
        if function == "maximum" and any(arg.op == "scalar" for arg in args):
            number, array = sorted(args, key=lambda arg: arg.op != "scalar")
            return self.form("clamp", self.expression(array), self.expression(number))
        return super().called(function, args)

    def spell_prod(self, node: Node, keep: bool = False) -> tuple[str, int]:
        """torch multiplies along one axis at a time."""
        text = self.expression(node.args[0], POSTFIX)
        option = ", keepdim=True" if keep else ""
        for axis in sorted(node.data, reverse=True):
            text += f".prod(dim={axis}{option})"
        return text, POSTFIX

    def reduction(self, node: Node, keep: bool = False) -> tuple[str, int]:
        return self.spell_prod(node, keep) if node.op == "prod" else super().reduction(node, keep)

    spell_sum = spell_max = spell_mean = reduction

    def axes_of(self, axes: Sequence[Sequence[int]]) -> tuple[int | list[int], ...]:
        return tuple(list(axis) for axis in axes)

    def windowed(self, arg: Node, axis: int, width: str) -> str:
        return self.form("windows", self.expression(arg, POSTFIX), width=width, axis=str(axis))

    def flipped(self, text: str, axis: int) -> str:
        return f"{text}.flip({axis})"

    def padded(self, text: str, pads: Sequence[tuple[str, str]]) -> str:
        inside = ", ".join(
            f"{before}, {behind}" for before, behind in reversed(pads)
        )  # torch lists the last axis first
        return self.form("pad", text, pads=inside)

    def spell_broadcast(self, node: Node) -> tuple[str, int]:
        return self.form("broadcast", self.expression(node.args[0], POSTFIX), shape=self.shape(node.shape)), POSTFIX

    def scattered(self, item: ScatterAdd) -> str:
        target, *places = map(self.expression, (item.target, *item.places))
        text = self.expression(item.values)
        if item.values.op == "scalar":
            text = self.form("number", text)
        inside = f"({places[0]},)" if len(places) == 1 else f"({', '.join(places)})"
        return self.form("scatter", target=target, places=inside, values=text)

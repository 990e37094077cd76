"""The functions of the expression language straight from torch, with NumPy's meaning of every argument.

One function a name. What a parameter is called says what it receives: `axis`, `keepdims`, `shape`, `n`, `m` are plain
numbers, `approximate` and `subscripts` are texts, `condition` is an array of truth values, the rest are arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from gradproof.symbolic.equations.functions import UNARY

Axis = int | tuple[int, ...] | None


def _axes(x: Tensor, axis: Axis) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return axis if isinstance(axis, tuple) else (axis,)


def sum_(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.sum(x, dim=_axes(x, axis), keepdim=keepdims)


def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.mean(x, dim=_axes(x, axis), keepdim=keepdims)


def max_(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.amax(x, dim=_axes(x, axis), keepdim=keepdims)


def min_(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.amin(x, dim=_axes(x, axis), keepdim=keepdims)


def prod(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """torch.prod takes one axis; its derivative is right at zeros too."""
    axes = sorted({a % x.ndim for a in _axes(x, axis)}) if x.ndim else []
    for a in reversed(axes):
        x = torch.prod(x, dim=a, keepdim=keepdims)
    return x


def norm(x: Tensor, ord: object = None, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The root of the sum of squares, over all axes unless told: Frobenius for a matrix; 1 and inf for vectors."""
    power = ord if isinstance(ord, int | float) else 2
    return torch.linalg.vector_norm(x, power, dim=_axes(x, axis), keepdim=keepdims)


def logsumexp(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Over all axes unless told, as in SciPy."""
    return torch.logsumexp(x, dim=_axes(x, axis), keepdim=keepdims) if x.ndim else x


def log_softmax(x: Tensor, axis: Axis = -1) -> Tensor:
    return x - torch.logsumexp(x, dim=_axes(x, axis), keepdim=True)


def softmax(x: Tensor, axis: Axis = -1) -> Tensor:
    return torch.softmax(x, dim=axis) if isinstance(axis, int) else torch.exp(log_softmax(x, axis))


def layernorm(x: Tensor, eps: Tensor | float = 1e-5, axis: Axis = -1) -> Tensor:
    """(x − mean)/√(variance + ε), with the variance that divides by n."""
    centred = x - mean(x, axis, keepdims=True)
    return centred / torch.sqrt(mean(centred**2, axis, keepdims=True) + eps)


def rmsnorm(x: Tensor, eps: Tensor | float = 1e-5, axis: Axis = -1) -> Tensor:
    """x/√(mean of x² + ε)."""
    return x / torch.sqrt(mean(x**2, axis, keepdims=True) + eps)


def softplus(x: Tensor) -> Tensor:
    """log(1 + eˣ); torch's own softplus is linear above 20, which is wrong in the tenth digit."""
    return torch.logaddexp(x, torch.zeros_like(x))


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return functional.gelu(x, approximate=approximate)


def step(x: Tensor) -> Tensor:
    """1 where x > 0, else 0; so the derivative of relu."""
    return x > 0


def delta(i: Tensor, j: Tensor) -> Tensor:
    return i == j


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return torch.where(condition, x, y)


def trace(x: Tensor) -> Tensor:
    if x.ndim != 2:
        raise IndexError("a trace needs a matrix")
    return torch.diagonal(x, dim1=0, dim2=1).sum(-1)


def inv(x: Tensor) -> Tensor:
    return torch.linalg.inv(x)


def det(x: Tensor) -> Tensor:
    return torch.linalg.det(x)


def logdet(x: Tensor) -> Tensor:
    """log(det x): not a number for a negative determinant."""
    return torch.logdet(x)


def solve(a: Tensor, b: Tensor) -> Tensor:
    """a⁻¹b; as in NumPy 2, b is a vector only if it has one axis."""
    if b.ndim == 1:
        return torch.linalg.solve(a, b[:, None])[..., 0]
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return torch.linalg.solve(a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]))


def diag(x: Tensor) -> Tensor:
    """A vector to a diagonal matrix, a matrix to its diagonal."""
    return torch.diag(x)


def outer(a: Tensor, b: Tensor) -> Tensor:
    return torch.outer(a.reshape(-1), b.reshape(-1))


def dot(a: Tensor, b: Tensor) -> Tensor:
    """NumPy's dot: the last axis of a with the last but one of b."""
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return torch.tensordot(a, b, dims=([a.ndim - 1], [max(b.ndim - 2, 0)]))


def kron(a: Tensor, b: Tensor) -> Tensor:
    return torch.kron(a.contiguous(), b.contiguous())  # torch views its result, which fails after a transpose


def vec(x: Tensor) -> Tensor:
    """The columns of a matrix under each other."""
    return transpose(x).reshape(-1)


def einsum(subscripts: str, *operands: Tensor) -> Tensor:
    return torch.einsum(subscripts.replace(" ", ""), *operands)


def eye(n: int, m: int | None = None) -> Tensor:
    return torch.eye(n, n if m is None else m)


def ones(*shape: int) -> Tensor:
    return torch.ones(shape)


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape)


def maximum(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(x, y)


def minimum(x: Tensor, y: Tensor) -> Tensor:
    return torch.minimum(x, y)


def clip(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.clamp(x, low, high)


def power(x: Tensor, y: Tensor) -> Tensor:
    return torch.pow(x, y)


def transpose(x: Tensor) -> Tensor:
    return x.permute(tuple(reversed(range(x.ndim))))


def swish(x: Tensor) -> Tensor:
    return functional.silu(x)


def trigamma(x: Tensor) -> Tensor:
    return torch.special.zeta(2, x)  # torch.polygamma(1, x) has nine digits


def tetragamma(x: Tensor) -> Tensor:
    return torch.polygamma(2, x)


def _by_name(name: str) -> Callable[..., Tensor] | None:
    """What torch calls a function of one array."""
    found = next((getattr(room, name) for room in (torch, torch.special, functional) if hasattr(room, name)), None)
    return found and (lambda x: found(x))


def pad(x: Tensor, width: int | tuple) -> Tensor:
    """Zeros around an array: one width, a pair for every axis alike, or a pair for each axis."""
    one = (width, width) if isinstance(width, int) else width
    widths = one if isinstance(one[0], tuple) else [one] * x.ndim
    return functional.pad(x, [number for pair in reversed(widths) for number in pair])


def matrix_power(x: Tensor, exponent: int) -> Tensor:
    return torch.linalg.matrix_power(x, exponent)


def tril(x: Tensor, k: int = 0) -> Tensor:
    return torch.tril(x, k)


def triu(x: Tensor, k: int = 0) -> Tensor:
    return torch.triu(x, k)


def cumsum(x: Tensor, axis: int = 0) -> Tensor:
    return torch.cumsum(x, axis)


def concat(x: Tensor, y: Tensor, axis: int = 0) -> Tensor:
    return torch.cat([x, y], axis)


def onehot(y: Tensor, n: int) -> Tensor:
    return functional.one_hot(y.long(), n)


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{name: function for name in UNARY if (function := _by_name(name))},
    **{"swish": swish, "trigamma": trigamma, "tetragamma": tetragamma},
    **{"sum": sum_, "mean": mean, "max": max_, "min": min_, "prod": prod, "norm": norm, "logsumexp": logsumexp},
    **{"softmax": softmax, "log_softmax": log_softmax, "layernorm": layernorm, "rmsnorm": rmsnorm},
    **{"softplus": softplus, "gelu": gelu, "step": step, "delta": delta, "where": where},
    **{"tr": trace, "trace": trace, "inv": inv, "det": det, "logdet": logdet, "solve": solve},
    **{"diag": diag, "outer": outer, "dot": dot, "kron": kron, "vec": vec, "einsum": einsum},
    **{"eye": eye, "ones": ones, "zeros": zeros, "maximum": maximum, "minimum": minimum},
    **{"clip": clip, "pow": power, "transpose": transpose, "pad": pad, "matrix_power": matrix_power},
    **{"tril": tril, "triu": triu, "cumsum": cumsum, "concat": concat, "onehot": onehot},
}

CONSTANTS = {"pi": math.pi, "inf": math.inf}

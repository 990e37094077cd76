"""The functions of arrays that are built from equations of their own: softmax and its relatives, layernorm, norm …

Each names what a derivation may show (P, x̂, s) and hides the helpers that it eliminates (E = exp x, Z = Σ E, …).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy
from sympy import Expr, Rational, S

from gradproof.symbolic.equations.expr import Access
from gradproof.symbolic.equations.origins import Softmax
from gradproof.symbolic.equations.roles import HELPER
from gradproof.symbolic.language.builder import Builder
from gradproof.symbolic.language.values import ShapeMismatch, Value, elementwise, inserted, positions, reduced

Axes = int | Sequence[int] | None
EPSILON = Rational(1, 100000)


def _over(b: Builder, op: str, value: Value, axis: Axes) -> Value:
    """A reduction that keeps its axes, so that it broadcasts against the value."""
    return reduced(op, value, axis, True, b.new)


def _helper(b: Builder, name: str, value: Value, axis: Axes = ()) -> Value:
    """A hidden equation; axes of size 1 that a reduction kept are not part of the array."""
    kept = positions(axis, value.rank)
    left = [k for k in range(value.rank) if k not in kept]
    flat = Value(value.expr, tuple(value.letters[k] for k in left), tuple(value.sizes[k] for k in left))
    preferred, b.preferred = b.preferred, None
    found = b.define(b.name_for(name), flat, HELPER)
    b.preferred = preferred
    for k in sorted(kept):
        found = inserted(found, k, b.new)
    return found


def _map(b: Builder, function: Callable[..., Expr], *values: Value) -> Value:
    return elementwise(function, values, b.new)


def softmax_parts(b: Builder, x: Value, axis: int) -> tuple[Value, Value, Value]:
    """x by name, E = exp(x), and Z = Σ E over the axis."""
    key = b.remember("softmax parts", x, axis)
    if key not in b.memo:
        x = b.named(x, "S")
        e = _helper(b, "E", _map(b, sympy.exp, x))
        b.memo[key] = x, e, _helper(b, "Z", _over(b, "sum", e, axis), axis)  # type: ignore[assignment]
    return b.memo[key]  # type: ignore[return-value]


def _one_axis(axis: Axes, x: Value) -> int:
    found = positions(axis, x.rank)
    if len(found) != 1:
        raise ShapeMismatch("one axis is needed, as in axis=-1")
    return found[0]


def softmax(b: Builder, x: Value, axis: int = -1) -> Value:
    """P = E/Z with E = exp(x) and Z = Σ E over the axis."""
    axis = _one_axis(axis, x)
    key = b.remember("softmax", x, axis)
    if key not in b.memo:
        x, e, z = softmax_parts(b, x, axis)
        p = _map(b, lambda e, z: e / z, e, z)
        name = b.name_for("P")
        b.memo[key] = b.define(name, p, origin=Softmax(x.at(*p.letters), p.letters[axis]))
        b.softmaxes[name] = x, z, axis
    return b.memo[key]


def logsumexp(b: Builder, x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """log Σ exp(x); its gradient is softmax(x), which is therefore defined along with it."""
    axes = positions(axis, x.rank)
    if len(axes) != 1:
        body = _over(b, "sum", _map(b, sympy.exp, x), axes)
        return _dropped(_map(b, sympy.log, body), axes, keepdims)
    softmax_beside(b, x, axes[0])
    x, _, z = softmax_parts(b, x, axes[0])
    return _dropped(_map(b, sympy.log, z), axes, keepdims)


def softmax_beside(b: Builder, x: Value, axis: int) -> None:
    """Define softmax(x) without giving it the statement's name."""
    preferred, b.preferred = b.preferred, None
    softmax(b, x, axis)
    b.preferred = preferred


def _dropped(value: Value, axes: Sequence[int], keepdims: bool) -> Value:
    if keepdims:
        return value
    left = [k for k in range(value.rank) if k not in axes]
    return Value(value.expr, tuple(value.letters[k] for k in left), tuple(value.sizes[k] for k in left))


def log_softmax(b: Builder, x: Value, axis: int = -1) -> Value:
    """x − log Σ exp(x)."""
    axis = _one_axis(axis, x)
    softmax_beside(b, x, axis)
    x, _, z = softmax_parts(b, x, axis)
    return _map(b, lambda x, z: x - sympy.log(z), x, z)


def _argument(b: Builder, x: Value) -> Value:
    """What is normalised, by name: its derivative is read more than once."""
    return x if isinstance(x.expr, Access) else b.named(x, "Z" if x.rank > 1 else "z")


def layernorm(b: Builder, x: Value, eps: Expr = EPSILON, axis: Axes = -1) -> Value:
    """x̂ = (x − μ)/s with μ = mean x, s = √(mean (x − μ)² + ε): the biased variance, ε inside the root."""
    axes = positions(axis, x.rank)
    key = b.remember("layernorm", x, tuple(axes), eps)
    if key not in b.memo:
        preferred, b.preferred = b.preferred, None
        x = _argument(b, x)
        mu = _helper(b, "mu", _over(b, "mean", x, axes), axes)
        c = _helper(b, "c", _map(b, lambda x, mu: x - mu, x, mu))
        v = _helper(b, "v", _over(b, "mean", _map(b, lambda c: c**2, c), axes), axes)
        s = _kept(b, "s", _map(b, lambda v: sympy.sqrt(v + eps), v), axes)
        b.preferred = preferred
        b.memo[key] = b.define(b.name_for("xhat"), _map(b, lambda c, s: c / s, c, s))
    return b.memo[key]


def rmsnorm(b: Builder, x: Value, eps: Expr = EPSILON, axis: Axes = -1) -> Value:
    """x̂ = x/r with r = √(mean x² + ε)."""
    axes = positions(axis, x.rank)
    key = b.remember("rmsnorm", x, tuple(axes), eps)
    if key not in b.memo:
        preferred, b.preferred = b.preferred, None
        x = _argument(b, x)
        c = _helper(b, "c", x)  # a name to eliminate: the derivative is written with x̂ in place of x
        r = _kept(
            b, "r", _map(b, lambda q: sympy.sqrt(q + eps), _over(b, "mean", _map(b, lambda c: c**2, c), axes)), axes
        )
        b.preferred = preferred
        b.memo[key] = b.define(b.name_for("xhat"), _map(b, lambda c, r: c / r, c, r))
    return b.memo[key]


def _kept(b: Builder, name: str, value: Value, axes: Sequence[int]) -> Value:
    found = b.define(b.name_for(name), _dropped(value, axes, False))
    for k in sorted(axes):
        found = inserted(found, k, b.new)
    return found


def maximum_of(b: Builder, x: Value, axis: Axes, keepdims: bool, op: str) -> Value:
    """A maximum or minimum gets a name: its subgradient compares every entry with it."""
    sign = S.One if op == "max" else S.NegativeOne
    axes = positions(axis, x.rank)
    key = b.remember(op, x, tuple(axes))
    if key not in b.memo:
        preferred, b.preferred = b.preferred, None
        largest = _over(b, "max", _map(b, lambda x: sign * x, x), axes)
        b.memo[key] = _kept(b, "m", largest, axes)
        b.preferred = preferred
    return _dropped(_map(b, lambda m: sign * m, b.memo[key]), axes, keepdims)


def norm(b: Builder, x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """The Euclidean (Frobenius) norm, √Σ x²."""
    axes = positions(axis, x.rank)
    if not axes:
        raise ShapeMismatch("norm needs an array")
    squares = _over(b, "sum", _map(b, lambda x: x**2, x), axes)
    key = b.remember("norm", x, tuple(axes))
    if key not in b.memo:
        preferred, b.preferred = b.preferred, None if keepdims else b.preferred  # its axis of size 1 is not named
        b.memo[key] = _kept(b, "r", _map(b, sympy.sqrt, squares), axes)
        b.preferred = preferred if keepdims else None
    return _dropped(b.memo[key], axes, keepdims)


def is_plain(value: Value) -> bool:
    """Whether a value is a named array, axis by axis."""
    return isinstance(value.expr, Access) and value.expr.indices == value.letters

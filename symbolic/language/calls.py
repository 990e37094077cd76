"""Every function that an expression may call: one line each, with the arguments it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sympy import Expr, S, sympify

from gradproof.symbolic.equations.expr import compare, delta
from gradproof.symbolic.equations.functions import UNARY, gelu_tanh, maximum, where
from gradproof.symbolic.language import composites, linear, values
from gradproof.symbolic.language.builder import Builder
from gradproof.symbolic.language.values import ShapeMismatch, Value, constant, elementwise, reduced


@dataclass(frozen=True)
class Call:
    """`build(builder, *arrays, **options)`; `arrays` is their number (None: all positional arguments)."""

    build: Callable[..., Value]
    arrays: int | None = 1
    options: tuple[str, ...] = ()
    text_first: bool = False  # the first argument is a text (einsum)


def _unary(function: Callable[[Expr], Expr]) -> Call:
    return Call(lambda b, x: Value(function(x.expr), x.letters, x.sizes))


def _elementwise(function: Callable[..., Expr], arrays: int) -> Call:
    return Call(lambda b, *given: elementwise(function, given, b.new), arrays)


def _reduction(op: str) -> Call:
    def build(b: Builder, x: Value, axis: Any = None, keepdims: bool = False) -> Value:
        if op in ("max", "min"):
            return composites.maximum_of(b, x, axis, keepdims, op)
        return reduced(op, x, axis, keepdims, b.new)

    return Call(build, 1, ("axis", "keepdims"))


def _gelu(b: Builder, x: Value, approximate: str = "none") -> Value:
    if approximate not in ("none", "tanh"):
        raise ShapeMismatch('approximate is "none" or "tanh"')
    function = gelu_tanh if approximate == "tanh" else UNARY["gelu"]
    return Value(function(x.expr), x.letters, x.sizes)


def _filled(number: int) -> Call:
    def build(b: Builder, *sizes: Value, **options: object) -> Value:
        return constant(number, [_size(value) for value in sizes], b.new)

    return Call(build, None)


def _size(value: Value) -> Expr:
    if value.rank or value.expr.is_integer is not True:
        raise ShapeMismatch("a size is a whole number or a size's name")
    if value.expr.is_negative:
        raise ShapeMismatch(f"a size is not negative: {value.expr}")
    return value.expr


def _eye(b: Builder, n: Value, m: Value | None = None) -> Value:
    i, j = b.new(), b.new()
    return Value(delta(i, j), (i, j), (_size(n), _size(m or n)))


def _dot(b: Builder, x: Value, y: Value) -> Value:
    if x.rank > 1 or y.rank > 1:
        raise ShapeMismatch("dot takes two vectors; use @ for matrices")
    return values.matmul(x, y, b.new)


def _vec(b: Builder, a: Value) -> Value:
    """Stack the columns: entry j·n + i is A[i, j]."""
    if a.rank != 2:
        raise ShapeMismatch(f"vec needs a matrix, not shape {a.shape}")
    place, i, j = b.new(), b.new(), b.new()
    n, m = a.sizes
    body = values.sum_(a.at(i, j) * delta(place, j * n + i), [(i, S.Zero, n), (j, S.Zero, m)])
    return Value(body, (place,), (n * m,))


def _pad(b: Builder, x: Value, width: Any) -> Value:
    """`pad(x, 1)`, `pad(x, (1, 2))` on every axis, or one pair for each axis: `pad(x, ((0, 0), (1, 1)))`."""
    pair = isinstance(width, tuple) and len(width) == 2 and not any(isinstance(w, tuple) for w in width)
    widths = width if isinstance(width, tuple) and not pair else [width if pair else (width, width)] * x.rank
    if len(widths) != x.rank or not all(isinstance(w, tuple) and len(w) == 2 for w in widths):
        raise ShapeMismatch(f"a width, or a pair of widths for each of the {x.rank} axes, is needed")
    if any(sympify(w).is_integer is not True or sympify(w).is_negative for pair in widths for w in pair):
        raise ShapeMismatch("widths are whole numbers from 0 on, or sizes")
    return values.padded(x, [(sympify(a), sympify(z)) for a, z in widths], b.new)


def _norm(b: Builder, x: Value, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Value:
    """NumPy's norm: √Σ x², and for vectors Σ |x| (ord=1) and max |x| (ord=inf)."""
    axes = values.positions(axis, x.rank)
    if ord is None or (ord == 2 and len(axes) == 1) or (ord == "fro" and len(axes) == 2):
        return composites.norm(b, x, axis, keepdims)
    if len(axes) != 1 or ord not in (1, S.Infinity):
        known = "ord is 1, 2 or inf for vectors, 'fro' for matrices"
        raise ShapeMismatch(f"there is no norm with ord={ord} of a {'matrix' if len(axes) == 2 else 'vector'}; {known}")
    size = Value(UNARY["abs"](x.expr), x.letters, x.sizes)
    if ord == 1:
        return reduced("sum", size, axes, keepdims, b.new)
    return composites.maximum_of(b, size, axes, keepdims, "max")


def _triangle(lower: bool) -> Call:
    """The entries of a matrix (or of a batch of them) up to the k-th diagonal, or from it on."""

    def build(b: Builder, a: Value, k: Any = 0) -> Value:
        if a.rank < 2 or sympify(k).is_integer is not True:
            raise ShapeMismatch(f"a matrix and a whole number k are needed, not shape {a.shape}")
        i, j = a.letters[-2:]
        inside = compare("<=", j, i + k) if lower else compare("<=", i + k, j)
        return Value(a.expr * inside, a.letters, a.sizes)

    return Call(build, 1, ("k",))


def _cumsum(b: Builder, x: Value, axis: Any = None) -> Value:
    """Σ_j x[j] over all j ≤ i."""
    if axis is None and x.rank != 1:
        raise ShapeMismatch("cumsum needs axis= for more than one axis")
    (position,) = values.positions(0 if axis is None else axis, x.rank)
    summed = b.new()
    letter, size = x.letters[position], x.sizes[position]
    body = x.expr.xreplace({letter: summed}) * compare("<=", summed, letter)
    return Value(values.sum_(body, [(summed, S.Zero, size)]), x.letters, x.sizes)


def _concat(b: Builder, x: Value, y: Value, axis: Any = 0) -> Value:
    """x and y one after the other along an axis."""
    if x.rank != y.rank or not x.rank:
        raise ShapeMismatch(f"two arrays of one rank are needed, not shapes {x.shape} and {y.shape}")
    if len(found := values.positions(axis, x.rank)) != 1:
        raise ShapeMismatch("the axis is one whole number")
    (position,) = found
    letters = tuple(b.new() for _ in x.letters)
    sizes = list(x.sizes)
    for k, (mine, other) in enumerate(zip(x.sizes, y.sizes, strict=True)):
        if k == position:
            sizes[k] = mine + other
        elif not values.same(mine, other):
            raise ShapeMismatch(f"the shapes {x.shape} and {y.shape} differ beside axis {position}")
    first, letter = x.sizes[position], letters[position]
    behind = (*letters[:position], letter - first, *letters[position + 1 :])
    return Value(where(compare("<", letter, first), x.at(*letters), y.at(*behind)), letters, tuple(sizes))


def _onehot(b: Builder, y: Value, n: Any) -> Value:
    """A row for every entry of an array of indices: 1 at the index, 0 elsewhere."""
    letter = b.new()
    return Value(delta(letter, y.expr), (*y.letters, letter), (*y.sizes, sympify(n)))


def _clip(x: Expr, low: Expr, high: Expr) -> Expr:
    """Between two bounds; at a bound the slope is 1, as in torch's clamp."""
    if low.is_number and high.is_number and low <= high:
        return where(compare("<", x, low), low, where(compare("<", high, x), high, x))
    raised = where(compare("<", x, low), low, x)
    return where(compare("<", high, raised), high, raised)


CALLS: dict[str, Call] = {
    **{name: _unary(function) for name, function in UNARY.items() if name != "gelu"},
    "gelu": Call(_gelu, 1, ("approximate",)),
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "max": _reduction("max"),
    "min": _reduction("min"),
    "prod": _reduction("prod"),
    "maximum": _elementwise(maximum, 2),
    "minimum": _elementwise(lambda a, b: -maximum(-a, -b), 2),
    "where": _elementwise(where, 3),
    "clip": _elementwise(_clip, 3),
    "pow": _elementwise(lambda a, b: a**b, 2),
    "delta": _elementwise(delta, 2),
    "softmax": Call(composites.softmax, 1, ("axis",)),
    "log_softmax": Call(composites.log_softmax, 1, ("axis",)),
    "logsumexp": Call(composites.logsumexp, 1, ("axis", "keepdims")),
    "layernorm": Call(composites.layernorm, 1, ("eps", "axis")),
    "rmsnorm": Call(composites.rmsnorm, 1, ("eps", "axis")),
    "norm": Call(_norm, 1, ("ord", "axis", "keepdims")),
    "tr": Call(lambda b, a: values.trace(a, b.new)),
    "trace": Call(lambda b, a: values.trace(a, b.new)),
    "diag": Call(lambda b, a: values.diagonal(a, b.new)),
    "outer": Call(lambda b, x, y: values.outer(x, y, b.new), 2),
    "dot": Call(_dot, 2),
    "kron": Call(lambda b, x, y: values.kron(x, y, b.new), 2),
    "vec": Call(_vec),
    "pad": Call(_pad, 1, ("width",)),
    "tril": _triangle(lower=True),
    "triu": _triangle(lower=False),
    "cumsum": Call(_cumsum, 1, ("axis",)),
    "concat": Call(_concat, 2, ("axis",)),
    "onehot": Call(_onehot, 1, ("n",)),
    "transpose": Call(lambda b, a: a.T),
    "inv": Call(linear.inverse),
    "det": Call(linear.determinant),
    "logdet": Call(linear.log_determinant),
    "solve": Call(linear.solve, 2),
    "matrix_power": Call(linear.matrix_power, 1, ("exponent",)),
    "einsum": Call(lambda b, *arrays, spec="": values.einsum(str(spec), arrays, b.new), None, (), True),
    "eye": Call(_eye, None),
    "ones": _filled(1),
    "zeros": _filled(0),
}

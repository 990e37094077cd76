"""Generated code: what it looks like, and that it computes what the equations say, to 40 digits."""

import warnings
from functools import lru_cache

import mpmath
import numpy as np
import pytest

from gradproof.numeric import compile_numpy, compile_torch
from gradproof.numeric.random_inputs import random_inputs, random_sizes
from gradproof.symbolic.derive import derive
from gradproof.symbolic.equations.evaluate import HighPrecision, Point

ATTENTION = "softmax(Q @ K.T / sqrt(d)) @ V"
HEADS = "S[b,h,i,j] = sum[k](Q[b,h,i,k] * K[b,h,j,k]) / sqrt(d); softmax(S) @ V"
CAUSAL = "S[i,j] = where(j <= i, sum[k](Q[i,k] * K[j,k]), -inf); sum((softmax(S) @ V) * G)"
RNN = "h[0,k] = h0[k]; h[t+1,k] = tanh(sum[l](W[k,l] * h[t,l]) + sum[r](U[k,r] * x[t,r])); sum[t,k](h[t,k] * G[t,k])"
GATED = (
    "h[0,k] = h0[k]; g[t,k] = sigmoid(sum[l](W[k,l] * h[t,l]) + x[t,k]);"
    "h[t+1,k] = g[t,k] * h[t,k] + (1 - g[t,k]) * tanh(x[t,k] + sum[l](U[k,l] * h[t,l])); sum[t,k](h[t,k] * G[t,k])"
)
HEAD_SHAPES = {"Q": "B,H,n,d", "K": "B,H,m,d", "V": "B,H,m,p"}

# expression, shapes, cotangent, what the source must contain, what it must not contain
ROWS = [
    (
        "sum((X @ W - Y)**2)",
        {"X": "n,d", "W": "d,k", "Y": "n,k"},
        None,
        ["XW_minus_Y = X @ W - Y", "W_bar = 2 * (X.T @ XW_minus_Y)", "Y_bar = -2 * XW_minus_Y"],
        ["einsum", "import math"],
    ),
    (
        ATTENTION,
        {"Q": "n,d", "K": "m,d", "V": "m,k"},
        "G",
        ["S = Q @ K.T / math.sqrt(d)", "exp_S = np.exp(S - S.max(axis=1, keepdims=True))", "V_bar = P.T @ G"],
        ["einsum", "np.where"],
    ),
    (HEADS, HEAD_SHAPES, "G", ["Q @ K.swapaxes(2, 3) / math.sqrt(d)", "F = P @ V"], ["einsum", "tensordot"]),
    (
        "sum(T * (layernorm(Z, eps=1e-5) * g + b))",
        {"T": "n,d", "Z": "n,d", "g": "d", "b": "d"},
        None,
        ["mu = Z.mean(axis=1)", "c = Z - mu[:, None]", "s = np.sqrt(v + 1e-05)", "xhat = c / s[:, None]"],
        ["einsum"],
    ),
    (
        "-sum(T * log_softmax(Z, axis=-1))",
        {"T": "n,m", "Z": "n,m"},
        None,
        ["Z.max(axis=1)", "Z_bar = T.sum(axis=1, keepdims=True) * P - T"],
        ["errstate"],
    ),
    ("logsumexp(x)", {"x": "n"}, None, ["x.max()"], []),
    ("sum(log(1 + exp(x)))", {"x": "n"}, None, ["np.logaddexp(0, x).sum()", "x_bar = sigmoid(x)"], []),
    ("E[w]", {"E": "V,d", "w": "T:index=V"}, "G", ["F = E[w]", "np.add.at(E_bar, w, G)"], ["einsum"]),
    ("sum[t](P[t, y[t]])", {"P": "T,V", "y": "T:index=V"}, None, ["P[np.arange(T), y].sum()"], []),
    ("sum[t](A[w[t], y[t]])", {"A": "n,m", "w": "T:index=n", "y": "T:index=m"}, None,
     ["np.add.at(A_bar, (w, y), 1)"], []),
    (
        "sum[t,k](x[t+k] * w[k] * G[t])",
        {"x": "T+K-1", "w": "K", "G": "T"},
        None,
        ["sliding_window_view(x, K)", "for k in range(K):"],
        ["einsum"],
    ),
    (
        "sum[t,k,a,c](x[3*t+k,a] * w[k,a,c] * G[t,c])",
        {"x": "3*T+K-3,p", "w": "K,p,q", "G": "T,q"},
        None,
        ["[::3]", "x_bar[k:3 * T + k - 2:3] +="],
        ["einsum"],
    ),
    ("sum[t](max[k=0:2](x[2*t+k]) * G[t])", {"x": "2*T", "G": "T"}, None, ["x.reshape(T, 2).max(axis=1)"], ["windows"]),
    (RNN, {"h0": "d", "W": "d,d", "U": "d,p", "x": "T,p", "G": "T+1,d"},
     None, ["for t in range(", "for t in reversed(range("], []),
    (GATED, {"h0": "d", "W": "d,d", "U": "d,d", "x": "T,d", "G": "T+1,d"}, None, ["for t in range(T):"], ["einsum"]),
    ("sum(max(X, axis=1) * y)", {"X": "n,m", "y": "n"}, None, ["X.max(axis=1)"], []),
    ("sum(prod(X, axis=1) * y)", {"X": "n,m", "y": "n"}, None, ["X.prod(axis=1)"], []),
    ("trace(A @ B)", {"A": "n,m", "B": "m,n"}, None, ["A_bar = B.T", "B_bar = A.T"], ["einsum"]),
    ("trace(A)", {"A": "n,n"}, None, ["np.trace(A)", "np.eye(n"], []),
    ("diag(x) @ A", {"x": "n", "A": "n,m"}, "G", ["x[:, None] * A"], ["np.diag", "einsum"]),
    ("sum(diag(A) * x)", {"A": "n,n", "x": "n"}, None, ["A.diagonal()", "np.diag(x)"], ["einsum"]),
    (CAUSAL, {"Q": "n,d", "K": "n,d", "V": "n,k", "G": "n,k"}, None, ["-np.inf"], ["einsum"]),
    ("sum[i,j](A[i,j] * exp(v[i+j]))", {"A": "n,m", "v": "n+m-1"}, None, ["for k in range("], ["einsum"]),
    ("sum[t=0:n-1](v[t] * v[t+1])", {"v": "n"}, None, ["v[1:] @ v[:-1]", "v_bar[1:] +=", "v_bar[:-1] +="], []),
    ("A[1,2]", {"A": "n+2,m+3"}, None, ["A_bar = np.zeros_like(A)", "A_bar[1, 2] = 1"], []),
    ("sum(x[::-1] * y)", {"x": "n", "y": "n"}, None, ["[::-1]"], []),
    ("x @ A @ A @ x", {"x": "n", "A": "n,n"}, None, ["@"], ["einsum"]),
    ("c @ tanh(2*x + U @ tanh(x))", {"c": "n", "U": "n,n", "x": "n"}, None, ["tanh_x = np.tanh(x)"], ["einsum"]),
    ("kron(A, B)", {"A": "n,m", "B": "p,q"}, "G", [".reshape("], ["clip"]),
    ("x @ inv(S) @ x + logdet(S)", {"x": "n", "S": "n,n:psd"},
     None, ["np.linalg.inv(S)", "np.linalg.slogdet(S)[1]"], []),
    ("sum(gelu(X @ W) * G)", {"X": "n,d", "W": "d,k", "G": "n,k"}, None, ["X @ W"], ["W.T @ X.T"]),
    ("sum[i, j=0:i](A[i,j]**2)", {"A": "n,n"}, None, [], ["einsum"]),
    ("outer(x, y)", {"x": "n", "y": "m"}, "G", ["x[:, None] * y", "x_bar = G @ y", "y_bar = G.T @ x"], []),
    ("sum((X - X@W@W.T)**2)", {"X": "n,d", "W": "d,k"}, None, ["XW = X @ W"], ["WW ="]),
    ("y[i,j] = x[i,t[i,j]]; sum(y*g)", {"x": "n,m", "t": "n,p:index=m", "g": "n,p"},
     None, ["np.add.at(x_bar, (index[:, None], t), g)"], []),
    ("sum((x[2:] + a)**2)", {"x": "n", "a": ""}, None, ["max(0, n - 2) * a", "x_bar = np.zeros_like(x)"], ["np.pad"]),
    ("sum(X, axis=0)", {"X": "n,m"}, "G", ["np.full((n, m), G)"], []),
    ("sum(x * lam)", {"x": "n", "lam": ""}, None, ["x_bar = np.full(n, lam)"], []),
    ("sum[i](i * x[i])", {"x": "n"}, None, ["np.arange(n)"], []),
    ("einsum('bij,bjk->bik', A, B)", {"A": "b,i,j", "B": "b,j,k"}, "G", ["A @ B"], ["einsum"]),
    ("sum[b,t,m,k](X[b,t,m] * W[m,k] * G[b,t,k])", {"X": "B,T,d", "W": "d,p", "G": "B,T,p"},
     None, ["reshape(-1"], ["einsum"]),
]  # fmt: skip


@lru_cache
def row(number):
    text, shapes, cotangent, *_ = ROWS[number]
    found = derive(text, shapes, cotangent=cotangent)
    return found, compile_numpy(found)


NUMBERS = [pytest.param(k, id=row_[0]) for k, row_ in enumerate(ROWS)]


def exact(system, sizes, inputs, name):
    """An array of a system, entry by entry to 40 digits."""
    given = {}
    for key, values in inputs.items():
        convert = int if system.arrays[key].below is not None else lambda v: mpmath.mpf(float(v))
        given[key] = {index: convert(v) for index, v in np.ndenumerate(values)}
    point = Point(system, sizes, HighPrecision(0), given=given)
    return np.array([float(v) for v in point.array(name).values()]).reshape(point.shape(name))


def sample(found, function, seed=0):
    sizes = random_sizes(found.system, seed)
    drawn = random_inputs(found.system, sizes, seed)
    inputs = {array.name: np.asarray(drawn[array.name]) for array in function.arguments.arrays}
    return sizes, inputs, {size.name: sizes[size] for size in function.arguments.given}


def close(mine, theirs, tolerance=1e-12):
    assert np.shape(mine) == np.shape(theirs)
    assert np.abs(mine - theirs).max(initial=0) <= tolerance * max(np.abs(theirs).max(initial=0), 1e-3)


@pytest.mark.parametrize("number", NUMBERS)
def test_code(number):
    found, function = row(number)
    *_, there, absent = ROWS[number]
    for fragment in there:
        assert fragment in function.source, function.source
    for fragment in absent:
        assert fragment not in function.source, function.source
    for seed in range(3 if len(found.system.sizes) < 5 else 1):
        sizes, inputs, extra = sample(found, function, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradients = function(**inputs, **extra)
        close(value, exact(found.system, sizes, inputs, found.output))
        for name, gradient in gradients.items():
            assert gradient.dtype == np.float64
            close(gradient, exact(found.system, sizes, inputs, found.gradients[name].equation.name))


@pytest.mark.parametrize("number", NUMBERS)
def test_torch_code_gives_the_same(number):
    torch = pytest.importorskip("torch")
    found, function = row(number)
    printed = compile_torch(found, device="cpu")
    assert "np." not in printed.source
    _, inputs, extra = sample(found, function)
    value, gradients = function(**inputs, **extra)
    other, others = printed(**inputs, **extra)
    close(other.numpy(), value)
    for name, gradient in gradients.items():
        assert others[name].dtype == torch.float64
        close(others[name].numpy(), gradient)


@pytest.mark.parametrize("number", NUMBERS)
def test_source_stands_alone(number):
    found, function = row(number)
    names: dict = {}
    exec(function.source, names)
    _, inputs, extra = sample(found, function)
    value, gradients = names["value_and_gradients"](**inputs, **extra)
    mine, own = function(**inputs, **extra)
    assert np.array_equal(value, mine)
    assert all(np.array_equal(gradients[name], own[name]) for name in own)
    assert all(len(line) <= 105 for line in function.source.splitlines()), function.source


@pytest.mark.parametrize("number", NUMBERS)
def test_float32_stays_float32(number):
    found, function = row(number)
    _, inputs, extra = sample(found, function)
    narrow = {name: a.astype(np.float32) if a.dtype.kind == "f" else a for name, a in inputs.items()}
    value, gradients = function(**narrow, **extra)
    wide, wides = function(**inputs, **extra)
    assert value.dtype == np.float32
    close(value, wide, 1e-4)
    for name, gradient in gradients.items():
        assert gradient.dtype == np.float32
        close(gradient, wides[name], 1e-3)


def test_a_recurrence_does_its_weight_products_once():
    """The input's product stands before the loop, the weights' gradients behind it."""
    shapes = {"h0": "d", "W": "d,d", "U": "d,p", "x": "T,p", "G": "T+1,d"}
    lines = compile_numpy(derive(RNN, shapes)).source.splitlines()
    loops = [k for k, line in enumerate(lines) if line.lstrip().startswith("for t in")]
    inside = [k for k, line in enumerate(lines) if line.startswith("        ")]
    hoisted = next(k for k, line in enumerate(lines) if "x @ U.T" in line)
    assert hoisted < loops[0]
    for name in ("W_bar", "U_bar"):
        position = next(k for k, line in enumerate(lines) if line.strip().startswith(f"{name} ="))
        assert position > max(loops) and position not in inside


def test_the_length_of_a_recurrence_does_not_matter():
    shapes = {"h0": "d", "W": "d,d", "U": "d,p", "x": "T,p", "G": "T+1,d"}
    function = compile_numpy(derive(RNN, shapes))
    rng = np.random.default_rng(0)
    for length in (1, 2, 7):
        inputs = {"h0": (3,), "W": (3, 3), "U": (3, 2), "x": (length, 2), "G": (length + 1, 3)}
        arrays = {name: rng.normal(size=shape) for name, shape in inputs.items()}
        value, gradients = function(**arrays)
        step = 1e-6 * np.eye(3)[0]
        up, _ = function(**{**arrays, "h0": arrays["h0"] + step})
        down, _ = function(**{**arrays, "h0": arrays["h0"] - step})
        assert abs((up - down) / 2e-6 - gradients["h0"][0]) < 1e-7
        assert np.isfinite(value)

"""The independent forward against NumPy: each expression beside the same computation typed by hand."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

torch = pytest.importorskip("torch")

from gradproof.numeric.reference.evaluator import evaluate, function_names  # noqa: E402
from gradproof.symbolic.errors import ExpressionError, RuleError, ShapeError, UnknownNameError  # noqa: E402
from gradproof.symbolic.language.syntax import parse  # noqa: E402

SIZES = {"n": 4, "d": 3, "k": 2, "m": 3, "T": 5, "V": 6}
_random = np.random.default_rng(0)
_SHAPES = {"X": (4, 3), "W": (3, 2), "Y": (4, 2), "A": (3, 3), "B": (3, 3), "x": (4,), "y": (4,), "z": (3,), "w": (3,)}
DATA: dict[str, np.ndarray] = {name: _random.normal(size=shape) for name, shape in _SHAPES.items()}
DATA |= {
    "P": DATA["A"] @ DATA["A"].T + np.eye(3),
    "Q": _random.normal(size=(2, 4, 3)),
    "K": _random.normal(size=(2, 4, 3)),
    "E": _random.normal(size=(6, 3)),
    "lam": np.array(0.7),
    "t": np.array([1, 5, 0, 5, 2]),  # T tokens below V
    "c": np.array([2, 0, 1, 0]),  # n classes below d
    "long": _random.normal(size=6),  # n + m − 1
    "pos": _random.uniform(0.5, 2, size=(4, 3)),
}
X, W, Y, A, B, x, y, z, w, P, Q, K, E, lam, t, c, long, pos = (DATA[name] for name in DATA)
n, d, k, m, T, V = SIZES.values()


def softmax(s: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(s - s.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def sigmoid(s: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-s))


# expression -> NumPy
NUMPY = [
    ("sum((X @ W - Y)**2)", lambda: ((X @ W - Y) ** 2).sum()),
    ("logdet(P) / 2 + z @ inv(P) @ z / 2", lambda: np.linalg.slogdet(P)[1] / 2 + z @ np.linalg.inv(P) @ z / 2),
    ("S = softmax(X, axis=0); sum(S*X)", lambda: (softmax(X, 0) * X).sum()),
    ("X + z - lam*X/2 + -z", lambda: X + z - lam * X / 2 + -z),
    ("x[:, None] - x", lambda: x[:, None] - x),
    ("2**3**2 - +7/2", lambda: np.array(2**9 - 3.5)),
    ("pos**z + pos**0.5", lambda: pos**z + pos**0.5),
    ("X.T @ Y * lam.T", lambda: X.T @ Y * lam),
    ("Q.T", lambda: Q.T),
    ("x.T @ X", lambda: x @ X),
    ("Q @ K.mT", lambda: Q @ K.swapaxes(1, 2)),
    ("Q @ z", lambda: Q @ z),
    ("x @ Q", lambda: x @ Q),
    ("softmax(Q @ K.mT / sqrt(d)) @ K", lambda: softmax(Q @ K.swapaxes(1, 2) / np.sqrt(d)) @ K),
    ("X[0, 1] + X[-1, 2] + x[n-1]", lambda: X[0, 1] + X[-1, 2] + x[3]),
    ("X[:, 0] @ x", lambda: X[:, 0] @ x),
    ("X[1:, :2] - X[:-1, 1:]", lambda: X[1:, :2] - X[:-1, 1:]),
    ("x[::-1] + x[1:n:2][0] + x[-3:][::2][0]", lambda: x[::-1] + x[1:4:2][0] + x[-3:][::2][0]),
    ("Q[0, :, None, 1:]", lambda: Q[0, :, None, 1:]),
    ("E[t]", lambda: E[t]),
    ("E[t, 1]", lambda: E[t, 1]),
    ("Q[1, :, c]", lambda: Q[1, :, c]),
    ("Q[:, 1, c]", lambda: Q[:, 1, c]),
    ("Q[:, c, c]", lambda: Q[:, c, c]),
    ("sum(X, axis=0) + sum(X.T, 1) + sum(X)", lambda: 2 * X.sum(0) + X.sum()),
    ("mean(Q, axis=(0, 2)) + mean(Q, axis=-1, keepdims=True)[0, :, 0]", lambda: Q.mean((0, 2)) + Q.mean(-1)[0]),
    ("X - max(X, axis=1, keepdims=True) + min(X)", lambda: X - X.max(1, keepdims=True) + X.min()),
    ("prod(pos) + prod(Q, axis=(0, 1)) + prod(X, axis=0, keepdims=True)",
     lambda: pos.prod() + Q.prod((0, 1)) + X.prod(0, keepdims=True)),
    ("sum(Q, axis=[0, -1], keepdims=True)", lambda: Q.sum((0, -1), keepdims=True)),
    ("exp(X) + expm1(X) + sin(X)*cos(X) + tan(X)", lambda: np.exp(X) + np.expm1(X) + np.sin(X) * np.cos(X) + np.tan(X)),
    ("log(pos) + log1p(pos) + sqrt(pos) + abs(X) + sign(X)",
     lambda: np.log(pos) + np.log1p(pos) + pos**0.5 + abs(X) + np.sign(X)),
    ("sinh(X) - cosh(X) + tanh(X) + arctan(X)", lambda: np.sinh(X) - np.cosh(X) + np.tanh(X) + np.arctan(X)),
    ("sigmoid(X) + silu(X) + relu(X) + step(X)", lambda: sigmoid(X) + X * sigmoid(X) + np.maximum(X, 0) + (X > 0)),
    ("gelu(X) + erf(X)", lambda: X * special.ndtr(X) + special.erf(X)),
    ('gelu(X, approximate="tanh")', lambda: X / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))),
    ("softplus(X) + softplus(100*X)", lambda: np.logaddexp(0, X) + np.logaddexp(0, 100 * X)),
    ("log_softmax(X) + log(softmax(X, axis=0))", lambda: np.log(softmax(X)) + np.log(softmax(X, 0))),
    ("softmax(Q, axis=(1, 2))", lambda: special.softmax(Q, (1, 2))),
    ("logsumexp(X) + logsumexp(X, axis=1) @ x", lambda: special.logsumexp(X) + special.logsumexp(X, 1) @ x),
    ("logsumexp(lam) + logsumexp(Q, axis=(0, 2), keepdims=True)",
     lambda: lam + special.logsumexp(Q, (0, 2), keepdims=True)),
    ("layernorm(X)", lambda: (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5)),
    ("layernorm(X, eps=lam, axis=0)", lambda: (X - X.mean(0)) / np.sqrt(X.var(0) + lam)),
    ("rmsnorm(X, 0)", lambda: X / np.sqrt((X**2).mean(-1, keepdims=True))),
    ("where(X > 0, X, exp(X)) + where(X <= z, 1, 0)", lambda: np.where(X > 0, X, np.exp(X)) + (z >= X)),
    ("where((X > 0) & ~(X >= 1) | (X != X), 1, -X)", lambda: np.where((X > 0) & ~(X >= 1), 1, -X)),
    ("M = x < y; sum(where(M and x == x, x, y) * (x > y))", lambda: (np.where(x < y, x, y) * (x > y)).sum()),
    ("norm(X) + norm(x)**2 + norm(X, axis=0) @ z", lambda: np.linalg.norm(X) + x @ x + np.linalg.norm(X, axis=0) @ z),
    ("norm(X, 'fro') + norm(x, 1) + norm(x, inf)", lambda: np.linalg.norm(X) + abs(x).sum() + abs(x).max()),
    ("X.sum(axis=0) + X.mean() + X.T.max(axis=1)", lambda: X.sum(0) + X.mean() + X.max(0)),
    ("tril(A) - triu(A, 1) + tril(B, -1)", lambda: np.tril(A) - np.triu(A, 1) + np.tril(B, -1)),
    ("cumsum(x) @ X + cumsum(X, axis=0)[1]", lambda: np.cumsum(x) @ X + X[:2].sum(0)),
    ("concat(x, z) @ concat(X, B, axis=0)", lambda: np.concatenate([x, z]) @ np.concatenate([X, B])),
    ("onehot(t, V)", lambda: np.eye(len(E))[t]),
    ("matrix_power(A, 3)", lambda: A @ A @ A),
    ("norm(Q, axis=(1, 2), keepdims=True)", lambda: np.linalg.norm(Q, axis=(1, 2), keepdims=True)),
    ("tr(A) + trace(A @ B) + trace(X)", lambda: np.trace(A) + np.trace(A @ B) + np.trace(X)),
    ("det(A) + logdet(P)", lambda: np.linalg.det(A) + np.log(np.linalg.det(P))),
    ("solve(A, z) + solve(A, B) @ z", lambda: np.linalg.solve(A, z) + np.linalg.solve(A, B) @ z),
    ("solve(A, Q.mT)", lambda: np.linalg.solve(A, Q.swapaxes(1, 2))),
    ("inv(P) + diag(z) + diag(A)", lambda: np.linalg.inv(P) + np.diag(z) + np.diag(A)),
    ("outer(x, z) + outer(X[:, :1], A[0])", lambda: np.outer(x, z) + np.outer(X[:, :1], A[0])),
    ("dot(x, X) + dot(z, w) + dot(2, z)", lambda: x @ X + z @ w + 2 * z),
    ("dot(Q, K.mT)", lambda: np.dot(Q, K.swapaxes(1, 2))),
    ("kron(A, W) + kron(z, W)[0, 0] + kron(x, z)[1]", lambda: np.kron(A, W) + np.kron(z, W)[0, 0] + np.kron(x, z)[1]),
    ("vec(A @ B) + kron(B.T, eye(d)) @ vec(A)", lambda: 2 * (A @ B).T.reshape(-1)),
    ("eye(n, d) + ones((n, d)) + zeros(d) + ones(n, 1) + eye(1)", lambda: np.eye(4, 3) + 3),
    ("einsum('ij,jk->ki', X, W) + einsum('ii', A) + einsum('bij, bkj -> k', Q, K)[0]",
     lambda: (X @ W).T + np.trace(A) + np.einsum("bij,bkj->k", Q, K)[0]),
    ("maximum(X, z) - minimum(X, 0)", lambda: np.maximum(X, z) - np.minimum(X, 0)),
    ("clip(X, -0.5, z) + pow(pos, z) + transpose(X).T", lambda: np.clip(X, -0.5, z) + pos**z + X),
    ("pi + exp(1) - exp(-inf) + sqrt(n) + d**2", lambda: np.array(math.pi + math.e + 2 + 9)),
]  # fmt: skip

# index notation -> the same in NumPy's spelling, or its value
INDEXED = [
    ("sum[i,j](A[i,j] * z[i]**2)", "sum(A * z[:, None]**2)"),
    ("R[i,j] = sum[k](X[i,k]*W[k,j]) - Y[i,j]; sum[i,j](R[i,j]**2)", "sum((X @ W - Y)**2)"),
    ("exp(z[i])/sum[j](exp(z[j]))", "softmax(z)"),
    ("exp(z[i])/sum[i](exp(z[i]))", "softmax(z)"),
    ("X[j,i]*x[j]", "(X*x[:, None])"),
    ("x[j]*z[i]", "outer(x, z)"),
    ("Z[i,j] = x[j]*z[i]", "outer(z, x)"),
    ("sum[i](A[i,i]) + sum[i](A.T[i,0])", "tr(A) + sum(A[0])"),
    ("max[i,j](X[i,j]) + min[i](x[i])", "max(X) + min(x)"),
    ("mean[i](X[i,j])", "mean(X, axis=0)"),
    ("prod[i,j](X[i,j]) + prod[k=1:n+1](k)", "prod(X) + 24"),
    ("sum[i](i*x[i])", "x[1] + 2*x[2] + 3*x[3]"),
    ("sum[i](x[i]*X[i,:])", "x @ X"),
    ("sum[i](X[i] @ W @ Y[i])", "trace(X @ W @ Y.T)"),
    ("sum[b](tr(Q[b].T @ K[b]))", "sum(Q*K)"),
    ("sum[b,i](norm(Q[b,i])**2)", "sum(Q**2)"),
    ("sum[t=0:n-1](x[t])", "sum(x[:n-1])"),
    ("sum[t=1:n](x[t]*x[t-1])", "x[1:] @ x[:-1]"),
    ("sum[t=1:](x[t]*x[t-1])", "x[1:] @ x[:-1]"),
    ("sum[t=:2](x[t])", "sum(x[:2])"),
    ("sum[t=2:2](x[t]) + prod[t=2:1](X[t, 0])", "1"),
    ("sum[i, s=0:d](X[i,s]) + sum[s=0:d](2)", "sum(X) + 2*d"),
    ("sum[i,j](long[i+j]*x[i]*z[j])", "sum(x[0]*z*long[:3] + x[1]*z*long[1:4] + x[2]*z*long[2:5] + x[3]*z*long[3:])"),
    ("C[s] = sum[j](long[s+j]*z[j])", "z[0]*long[:4] + z[1]*long[1:5] + z[2]*long[2:]"),
    ("C[s] = sum[j](long[s+d-1-j]*z[j])", "z[2]*long[:4] + z[1]*long[1:5] + z[0]*long[2:]"),
    ("C[s] = sum[j=0:2](long[2*s+j])", "long[::2] + long[1::2]"),
    ("R[s] = x[n-1-s]", "x[::-1]"),
    ("sum[s](x[s-1])", "sum(x)"),
    ("R[s] = x[s+1] - x[0]", "x[1:] - x[0]"),
    ("E[t[s], j]", "E[t]"),
    ("sum[s,j](E[t[s],j]*E[t[0],j])", "sum(E[t] @ E[t[0]])"),
    ("-sum[i](log_softmax(X)[i, c[i]])/n", lambda: -np.log(softmax(X))[np.arange(4), c].mean()),
    ("sum[i,j](delta(i, j)*A[i,j]) + sum[i,j](where(i == j, A[i,j], 0))", "2*tr(A)"),
    ("sum[i,j](where(j <= i, A[i,j], 0))", "A[0,0] + A[1,0] + A[1,1] + A[2,0] + A[2,1] + A[2,2]"),
    ("D[s] = x[s] - where(s > 0, x[s-1], 0)", lambda: np.diff(x, prepend=0)),
    ("D[s] = where((s > 0) & (s < n-1), x[s+1]*x[s-1], x[s]*s)",
     lambda: np.array([0, x[0] * x[2], x[1] * x[3], 3 * x[3]])),
    ("D[s] = x[s] + where(s >= 0, x[s-1], 0)", lambda: x + np.array([np.nan, *x[:-1]])),
    ("D[s] = 0*x[s] + where(z > 0, x[s-1], 0)", lambda: np.where(z > 0, np.array([np.nan, *x[:-1]])[:, None], 0)),
    ("S = X @ W; sum[i,j](S[i,j]**2)", "sum((X @ W)**2)"),
    ("sum[i](sum[j](A[i][j]*z[j])**2)", "sum((A @ z)**2)"),
    ("sum[i,j]((A @ B)[i,j]*softmax(A)[j,i])", "sum((A @ B)*softmax(A).T)"),
    ("sum[e](z[e]*pi)", "sum(z)*pi"),
    ("G[b,i,j] = exp(sum[k](Q[b,i,k]*K[b,j,k])/sqrt(d)); U[b,i,k] = sum[j](G[b,i,j]*K[b,j,k])/sum[j](G[b,i,j])",
     "softmax(Q @ K.mT/sqrt(d)) @ K"),
    ("sum[i](where(i < n, x[i], long[i-n]))", "sum(x)"),
    ("sum[i=0:n+m](where(i < n, x[i], z[i-n]))", "sum(x) + sum(z)"),
]  # fmt: skip

REFUSED = [
    ("foo + x", UnknownNameError, "no name foo", 0),
    ("soft(x)", UnknownNameError, "no function soft", 0),
    ("softmx(x)", UnknownNameError, "did you mean softmax", 0),
    ("X + x", ShapeError, "(4, 3) and (4,)", 0),
    ("X @ X", ShapeError, "@ does not fit (4, 3) and (4, 3)", 0),
    ("lam @ x", ShapeError, "@ does not fit", 0),
    ("x[4]", ShapeError, "outside an axis of size 4", 2),
    ("x[0, 1]", ShapeError, "2 indices for an array of shape (4,)", 0),
    ("x[1.5]", ExpressionError, "an index is an integer", 2),
    ("x[lam]", ExpressionError, "an index is an integer", 2),
    ("x[x > 0]", RuleError, "no fixed size", 2),
    ("x[lam:]", ExpressionError, "an integer stands here", 2),
    ("x[::0]", ExpressionError, "not 0", 2),
    ("x[i:]", ExpressionError, "how far the index i runs", 2),
    ("sum[s](x[s] - x[s-1])", ShapeError, "s - 1 runs from -1 to 2, outside an axis of size 4", 16),
    ("sum[s=0:n+1](x[s])", ShapeError, "runs from 0 to 4", 15),
    ("sum[s](x[s]*z[s])", ShapeError, "different sizes, 4 and 3", 14),
    ("sum[i](lam)", ExpressionError, "how far the index i runs; write i=0:n", 4),
    ("R[i,j] = x[i]", ExpressionError, "how far the index j runs", None),
    ("sum[s,j](x[s+j])", ExpressionError, "how far the index s runs", 4),
    ("sum[s, j=0:s](X[s,j])", ExpressionError, "an integer stands here", 11),
    ("R[s] = x[s-1]", ShapeError, "starts at 1, not at 0", None),
    ("A2 = x[i]", UnknownNameError, "defined as A2[i] = …", 7),
    ("R[i] = x[i] + y[j]", UnknownNameError, "no name j", 16),
    ("x = 2*y; x", ExpressionError, "an input already", None),
    ("E[t[s] + 1, j]", ShapeError, "outside an axis of size 6", 2),
    ("E[t + 1]", ShapeError, "outside an axis of size 6", 2),
    ("exp('x')", RuleError, "'x' is not a value", 4),
    ("sum(x, y)", ExpressionError, "an integer stands here", 7),
    ("sum(X, axis=2)", ShapeError, "sum does not fit", 0),
    ("sum(X, keepdims=1)", ExpressionError, "keepdims is True or False", 16),
    ("exp(x, 2)", RuleError, "exp is called as exp(x)", 0),
    ("tr(x)", ShapeError, "a trace needs a matrix", 0),
    ("x.mT", ShapeError, "two axes", 0),
    ("E[t + c]", ShapeError, "this index does not fit (5,) and (4,)", 2),
    ("inv(X)", ShapeError, "inv does not fit (4, 3)", 0),
    ("einsum(X, 'ij')", ExpressionError, "subscripts is a text", 7),
    ("sum[i](X[i] + x)", ShapeError, "+ does not fit (3,) and (4,)", 7),
]


def value(text: str) -> np.ndarray:
    return evaluate(parse(text), {name: torch.as_tensor(array) for name, array in DATA.items()}, SIZES).numpy()


def check(text: str, expected: np.ndarray) -> None:
    found = value(text)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("text", "expected"), NUMPY, ids=[text[:40] for text, _ in NUMPY])
def test_numpy_spelling(text: str, expected: Callable[[], np.ndarray]) -> None:
    check(text, expected())


@pytest.mark.parametrize(("text", "same"), INDEXED, ids=[text[:40] for text, _ in INDEXED])
def test_index_notation(text: str, same: str | Callable[[], np.ndarray]) -> None:
    check(text, value(same) if isinstance(same, str) else same())


@pytest.mark.parametrize(("text", "kind", "part", "caret"), REFUSED, ids=[text for text, *_ in REFUSED])
def test_refused(text: str, kind: type[ExpressionError], part: str, caret: int | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)
    assert part in caught.value.message
    assert type(caught.value) is kind
    assert caret is None or caught.value.position == caret


@pytest.mark.parametrize("text", [text for text, same in INDEXED if isinstance(same, str)])
def test_gradients_of_both_spellings_agree(text: str) -> None:
    """Through a random cotangent, with respect to every input that both spellings read."""
    same = dict(INDEXED)[text]
    leaves = {
        name: torch.as_tensor(array).clone().requires_grad_(array.dtype.kind == "f") for name, array in DATA.items()
    }
    gradients = []
    for spelling in (text, same):
        out = evaluate(parse(spelling), leaves, SIZES)
        torch.manual_seed(0)
        loss = (out * torch.randn_like(out)).sum()
        floats = [leaf for leaf in leaves.values() if leaf.requires_grad]
        if not loss.requires_grad:
            return
        gradients.append(torch.autograd.grad(loss, floats, allow_unused=True))
    for left, right in zip(*gradients, strict=True):
        if left is None or right is None:
            assert not any(part is not None and part.any() for part in (left, right))
        else:
            torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-12)


def by_hand(xs: torch.Tensor, w_: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
    states = [h0]
    for x_ in xs:
        states.append(torch.tanh(w_ @ states[-1] + x_))
    return torch.stack(states)


LSTM = """c[0,a] = 0*h0[a]; h[0,a] = h0[a]
f[s,a] = sigmoid(sum[b](A[a,b]*h[s,b]) + X[s,a])
c[s+1,a] = f[s,a]*c[s,a] + (1 - f[s,a])*X[s,a]
h[s+1,a] = f[s,a]*tanh(c[s+1,a])
sum[s=1:n+1, a](h[s,a]*c[s,a])"""


def test_recurrence_equals_a_loop_with_its_gradients() -> None:
    leaves = [torch.as_tensor(DATA[name]).clone().requires_grad_() for name in ("X", "A", "z")]
    text = "h[0,a] = z[a]; h[s+1,a] = tanh(sum[b](A[a,b]*h[s,b]) + X[s,a])"
    found = evaluate(parse(text), dict(zip("XAz", leaves, strict=True)), SIZES)
    expected = by_hand(*leaves)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-14)
    weights = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pairs = [torch.autograd.grad((out**2 * weights).sum(), leaves, create_graph=True) for out in (found, expected)]
    torch.testing.assert_close(*pairs, rtol=1e-12, atol=1e-13)
    second = [torch.autograd.grad(sum((g**3).sum() for g in gradients), leaves) for gradients in pairs]
    torch.testing.assert_close(*second, rtol=1e-11, atol=1e-12)


def test_recurrence_of_several_arrays() -> None:
    x_, a_, h, c_ = X, A, z, np.zeros(3)
    total = 0.0
    for row in x_:
        f = sigmoid(a_ @ h + row)
        c_ = f * c_ + (1 - f) * row
        h = f * np.tanh(c_)
        total += h @ c_
    tensors = {name: torch.as_tensor(DATA[name]) for name in "XA"} | {"h0": torch.as_tensor(z)}
    assert evaluate(parse(LSTM), tensors, SIZES).item() == pytest.approx(total, rel=1e-13)


def test_recurrence_along_two_axes() -> None:
    text = "D[0,0] = 1; D[i+1,0] = 1 + 0*x[i]; D[0,j+1] = 1 + 0*z[j]; D[i+1,j+1] = D[i,j+1] + D[i+1,j] + 0*x[i]*z[j]"
    check(text, np.array([[math.comb(i + j, j) for j in range(4)] for i in range(5)]))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("h[0] = 1; h[s+1] = 2*h[s]", "how far the index s runs"),
        ("h[0] = 1; h[s+2] = x[s]", "the entry (1,) of h is defined nowhere"),
        ("h[0] = 1; h[s] = x[s]", "the entry (0,) of h is defined twice"),
        ("h[0] = 1; h[s+1] = x[s] + 2*h[s+1]", "depends on itself"),
        ("h[0] = 1; h[s+1] = x[s]*(h*2)[s]", "read before its shape is known"),
        ("h[0] = 1; h[2*s+1] = x[s]", "a number or a letter, shifted or not"),
        ("h[0] = 1; h[s-1] = x[s]", "an index below 0"),
        ("h[0] = 1; h[s+1] = x[s]; h[0,0] = 2", "different numbers of indices"),
        ("h[0] = 1; h[s+1] = x[s]*X[s]", "not an array"),
        ("h[0] = 1; S = sum(h); h[s+1] = x[s]*S", "has indices on the left"),
        ("h[0] = 1; h[s+1] = x[s]*sum(h)", "depends on itself"),
    ],
)
def test_recurrence_refused(text: str, part: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)
    assert part in caught.value.message


def test_guarded_reading_keeps_gradients_finite() -> None:
    x_, a_ = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor(2.0, requires_grad=True)
    out = evaluate(parse("sum[s=0:3](where(s > 0, a*exp(x[s-1]), 0))"), {"x": x_, "a": a_})
    gradients = torch.autograd.grad(out, (x_, a_))
    torch.testing.assert_close(gradients[0], torch.tensor([2 * math.e, 2 * math.e**2, 0.0]))
    torch.testing.assert_close(gradients[1], torch.tensor(math.e + math.e**2))


def test_maximum_shares_its_subgradient_among_all_ties() -> None:
    x_ = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(evaluate(parse("max[i,j](X[i,j])"), {"X": x_}), x_)
    torch.testing.assert_close(gradient, torch.full((2, 3), 1 / 6, dtype=torch.float64))


def test_second_derivatives() -> None:
    x_ = torch.tensor([0.3, -0.5, 1.1], dtype=torch.float64, requires_grad=True)
    hessians = [
        torch.autograd.functional.hessian(lambda v, text=text: evaluate(parse(text), {"x": v}), x_)
        for text in ("log(sum[i](exp(x[i])))", "logsumexp(x)")
    ]
    torch.testing.assert_close(*hessians, rtol=1e-12, atol=1e-14)


def test_inputs_may_be_plain_numbers_and_arrays() -> None:
    out = evaluate(parse("lam*sum(x)/n"), {"lam": 2, "x": np.array([1, 2, 3])}, {"n": 3})
    assert out.dtype == torch.float64 and out.item() == 4
    assert evaluate(parse("x*2"), {"x": torch.ones(2)}).dtype == torch.float32


def test_nothing_huge_is_computed() -> None:
    assert evaluate(parse("9**9**9**9"), {}).item() == math.inf


def test_function_names() -> None:
    listed = (
        "sum mean max prod exp log log1p sqrt abs sin cos tanh sigmoid relu silu gelu erf softplus softmax log_softmax "
        "logsumexp layernorm where norm tr trace det logdet inv diag outer kron eye ones zeros einsum"
    )
    assert set(listed.split()) <= function_names()

"""Inverse, determinant, solve, kron, slices and the inputs of public reports, against hand-written torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import hessian, jacobian
from gradproof.symbolic.equations.evaluate import HighPrecision, Modular, Point
from gradproof.symbolic.equations.expr import Index, Size, nonnegative
from gradproof.symbolic.errors import ExpressionError, ShapeError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse

torch = pytest.importorskip("torch")

from high_precision import compare_gradients, compare_hessians, drawn, valued  # noqa: E402

SIZES = {"n": 3, "m": 2, "d": 2, "p": 2, "q": 3, "T": 2, "k": 3, "a": 2, "b": 3, "c": 2}
eye, inv, det, solve = torch.eye, torch.linalg.inv, torch.linalg.det, torch.linalg.solve


def logdet(a: object) -> object:
    return torch.linalg.slogdet(a)[1]


def power(a: object, k: int) -> object:
    return torch.linalg.matrix_power(a, k)


# expression, shapes, hand-written torch
GRADIENTS: list[tuple[str, dict[str, str], Callable[..., object]]] = [
    ("u @ kron(A, B) @ v", {"A": "m,n", "B": "p,q", "u": "m*p", "v": "n*q"}, lambda A, B, u, v: u @ torch.kron(A, B) @ v),
    ("vec(A) @ v", {"A": "m,n", "v": "m*n"}, lambda A, v: A.T.reshape(-1) @ v),
    ("inv(A)", {"A": "n,n"}, lambda A: inv(A)),
    ("inv(A.T)", {"A": "n,n"}, lambda A: inv(A.T)),
    ("inv(A).T @ x", {"A": "n,n", "x": "n"}, lambda A, x: inv(A).T @ x),
    ("inv(A) + A", {"A": "n,n"}, lambda A: inv(A) + A),
    ("inv(2*A + eye(n))", {"A": "n,n"}, lambda A: inv(2 * A + eye(3))),
    ("inv(A @ B)", {"A": "n,n", "B": "n,n"}, lambda A, B: inv(A @ B)),
    ("inv(inv(A) + B)", {"A": "n,n", "B": "n,n"}, lambda A, B: inv(inv(A) + B)),
    ("inv(A)[0, 1]", {"A": "n,n"}, lambda A: inv(A)[0, 1]),
    ("inv(A)", {"A": "T,n,n"}, lambda A: inv(A)),
    ("inv(A[0])", {"A": "T,n,n"}, lambda A: inv(A[0])),
    ("inv(A[1:]) @ x", {"A": "T,n,n", "x": "n"}, lambda A, x: inv(A[1:]) @ x),
    ("inv(A + B)", {"A": "T,n,n", "B": "n,n"}, lambda A, B: inv(A + B)),
    ("trace(inv(A))", {"A": "n,n"}, lambda A: torch.trace(inv(A))),
    ("x @ inv(A) @ y", {"A": "n,n", "x": "n", "y": "n"}, lambda A, x, y: x @ inv(A) @ y),
    ("det(A)", {"A": "n,n"}, lambda A: det(A)),
    ("det(A)**2 + 1", {"A": "n,n"}, lambda A: det(A) ** 2 + 1),
    ("det(A @ A.T)", {"A": "n,k"}, lambda A: det(A @ A.T)),
    ("det(lam * A)", {"A": "n,n", "lam": ""}, lambda A, lam: det(lam * A)),
    ("det(A)", {"A": "T,n,n"}, lambda A: det(A)),
    ("sum(det(A) * y)", {"A": "T,n,n", "y": "T"}, lambda A, y: (det(A) * y).sum()),
    ("logdet(A)", {"A": "n,n"}, lambda A: logdet(A)),
    ("log(abs(det(A)))", {"A": "n,n"}, lambda A: logdet(A)),
    ("logdet(inv(A))", {"A": "n,n"}, lambda A: -logdet(A)),
    ("logdet(X.T @ X + lam**2 * eye(d))", {"X": "n,d", "lam": ""}, lambda X, lam: logdet(X.T @ X + lam**2 * eye(2))),
    ("sum(logdet(A) * y)", {"A": "T,n,n", "y": "T"}, lambda A, y: (logdet(A) * y).sum()),
    ("sum[t](y[t] * logdet(A[t]))", {"A": "T,n,n", "y": "T"}, lambda A, y: (logdet(A) * y).sum()),
    ("sum[t](logdet(A[t] + eye(n)))", {"A": "T,n,n"}, lambda A: logdet(A + eye(3)).sum()),
    ("solve(A, b)", {"A": "n,n", "b": "n"}, lambda A, b: solve(A, b)),
    ("solve(A, B)", {"A": "n,n", "B": "n,m"}, lambda A, B: solve(A, B)),
    ("solve(A, B)", {"A": "T,n,n", "B": "T,n,m"}, lambda A, B: solve(A, B)),
    ("solve(X.T @ X + lam**2 * eye(d), X.T @ y)", {"X": "n,d", "y": "n", "lam": ""},
     lambda X, y, lam: solve(X.T @ X + lam**2 * eye(2), X.T @ y)),
    ("solve(A, A @ x)", {"A": "n,n", "x": "n"}, lambda A, x: solve(A, A @ x)),
    ("matrix_power(A, 3)", {"A": "n,n"}, lambda A: power(A, 3)),
    ("a * sum(matrix_power(T, 0)) + sum(T**0) * a", {"T": "k,n,n", "a": ""},
     lambda T, a: a * (T.shape[0] * T.shape[1] + T.numel())),
    ("matrix_power(A, -2)", {"A": "n,n"}, lambda A: power(inv(A), 2)),
    ("logdet(S)/2 + x @ inv(S) @ x/2", {"S": "n,n", "x": "n"}, lambda S, x: logdet(S) / 2 + x @ inv(S) @ x / 2),
    ("trace(kron(A, B))", {"A": "n,n", "B": "p,p"}, lambda A, B: torch.trace(torch.kron(A, B))),
    ("sum(kron(A, B)**2)", {"A": "n,m", "B": "p,q"}, lambda A, B: (torch.kron(A, B) ** 2).sum()),
    ("kron(A, B) @ vec(X)", {"A": "n,m", "B": "p,q", "X": "q,m"}, lambda A, B, X: torch.kron(A, B) @ X.T.reshape(-1)),
    ("vec(A @ X)", {"A": "n,m", "X": "m,d"}, lambda A, X: (A @ X).T.reshape(-1)),
    ("vec(A) @ vec(B)", {"A": "n,m", "B": "n,m"}, lambda A, B: (A * B).sum()),
    ("sum(x[1:] * x[:-1])", {"x": "n"}, lambda x: (x[1:] * x[:-1]).sum()),
    ("x[::-1] * y", {"x": "n", "y": "n"}, lambda x, y: x.flip(0) * y),
    ("x[-2] * x[0]", {"x": "n"}, lambda x: x[-2] * x[0]),
    ("sum(A[1:, 0] * x[:-1])", {"A": "n,m", "x": "n"}, lambda A, x: (A[1:, 0] * x[:-1]).sum()),
    ("sum(x[::2]**2)", {"x": "5"}, lambda x: (x[::2] ** 2).sum()),
    ("x[:, None] * A", {"A": "n,m", "x": "n"}, lambda A, x: x[:, None] * A),
    ("ones((n, m)) @ x + zeros(n)", {"x": "m", "y": "n"}, lambda x, y: torch.ones(3, 2, dtype=x.dtype) @ x),
    ("eye(n, m) @ x", {"x": "m", "y": "n"}, lambda x, y: eye(3, 2, dtype=x.dtype) @ x),
    ("sum[t](norm(X[t]))", {"X": "n,d"}, lambda X: X.norm(dim=1).sum()),
    ("sum[t](softmax(X[t]) @ y)", {"X": "n,d", "y": "d"}, lambda X, y: (torch.softmax(X, 1) @ y).sum()),
    ("sum[t](y[t] * max(X[t]))", {"X": "n,d", "y": "n"}, lambda X, y: (y * X.amax(1)).sum()),
    ("sum[t=1:n](norm(X[t] - X[t-1]))", {"X": "n,d"}, lambda X: (X[1:] - X[:-1]).norm(dim=1).sum()),
    ("R[t] = logsumexp(X[t]); sum(R**2)", {"X": "n,d"}, lambda X: (torch.logsumexp(X, 1) ** 2).sum()),
    ("sum[i](y[i] * sum[j=0:k-1](softmax(Z, axis=1)[i,j]))", {"Z": "n,k", "y": "n"},
     lambda Z, y: (y * torch.softmax(Z, 1)[:, :-1].sum(1)).sum()),
    ("norm(prod(X, axis=1))", {"X": "n,d"}, lambda X: X.prod(1).norm()),
    ("min(X, axis=0) + max(X)", {"X": "n,d"}, lambda X: X.amin(0) + X.amax()),
    ("einsum('tij,tjk->tik', A, B)", {"A": "T,n,m", "B": "T,m,k"}, lambda A, B: A @ B),
    # the inputs of public reports
    ("trace(A) + 1", {"A": "n,n"}, lambda A: torch.trace(A) + 1),
    ("trace(A.T @ A) - 3", {"A": "n,m"}, lambda A: torch.trace(A.T @ A) - 3),
    ("trace(A @ A @ A @ A)", {"A": "n,n"}, lambda A: torch.trace(power(A, 4))),
    ("log(det(A @ A.T))", {"A": "n,n"}, lambda A: torch.log(det(A @ A.T))),
    ("trace(eye(n) - A)**2", {"A": "n,n"}, lambda A: torch.trace(eye(3) - A) ** 2),
    ("A[1, 1]", {"A": "n,n"}, lambda A: A[1, 1]),
    ("sum[i](c[i]*x[i])", {"c": "n", "x": "n"}, lambda c, x: (c * x).sum()),
    ("exp(z[i])/sum[i](exp(z[i]))", {"z": "n"}, lambda z: torch.softmax(z, 0)),
    ("sum[j](delta(i,j)*A[j]*B[j])", {"A": "n", "B": "n"}, lambda A, B: A * B),
    ("w @ (x * (A.T @ x))", {"w": "n", "x": "n", "A": "n,n"}, lambda w, x, A: w @ (x * (A.T @ x))),
    ("sum[i,j](A[i,j]*exp(v[i+j]))", {"A": "n,m", "v": "n+m-1"},
     lambda A, v: sum(A[i, j] * torch.exp(v[i + j]) for i in range(3) for j in range(2))),
    ("sum[j,k](log(sum[l](P[j,k,l]**2*R[j,k,l]**2)))", {"P": "a,b,c", "R": "a,b,c"},
     lambda P, R: torch.log((P**2 * R**2).sum(-1)).sum()),
    ("sum[t=0:n-1](v[t]*v[t+1])", {"v": "n"}, lambda v: (v[1:] * v[:-1]).sum()),
    ("log(1 + exp(b))", {"b": ""}, lambda b: torch.log(1 + torch.exp(b))),
    ("-sum(T*log_softmax(Z, axis=-1))", {"T": "m,k", "Z": "m,k"}, lambda T, Z: -(T * torch.log_softmax(Z, -1)).sum()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes", "forward"), GRADIENTS, ids=[row[0] for row in GRADIENTS])
def test_gradient_equals_autograd(text: str, shapes: dict[str, str], forward: Callable[..., object]) -> None:
    torch.set_default_dtype(torch.float64)
    compare_gradients(text, shapes, forward, SIZES)


# expression, shapes, variables, hand-written torch
HESSIANS: list[tuple[str, dict[str, str], list[str], Callable[..., object]]] = [
    ("logdet(A)", {"A": "n,n"}, ["A"], lambda A: logdet(A)),
    ("det(A)", {"A": "n,n"}, ["A"], lambda A: det(A)),
    ("det(A)**2", {"A": "m,m"}, ["A"], lambda A: det(A) ** 2),
    ("trace(inv(A))", {"A": "n,n"}, ["A"], lambda A: torch.trace(inv(A))),
    ("x @ inv(A) @ x", {"A": "n,n", "x": "n"}, ["A", "x"], lambda A, x: x @ inv(A) @ x),
    ("logdet(X.T @ X + eye(d))", {"X": "n,d"}, ["X"], lambda X: logdet(X.T @ X + eye(2))),
    ("y @ solve(A + lam*eye(n), y)", {"A": "n,n", "lam": "", "y": "n"}, ["lam", "y"],
     lambda A, lam, y: y @ solve(A + lam * eye(3), y)),
    ("trace(A @ A @ A)", {"A": "n,n"}, ["A"], lambda A: torch.trace(power(A, 3))),
    ("trace(kron(A, B) @ kron(A, B))", {"A": "n,n", "B": "p,p"}, ["A", "B"],
     lambda A, B: torch.trace(power(torch.kron(A, B), 2))),
    ("-sum(T*log_softmax(Z, axis=-1))", {"T": "m,k", "Z": "m,k"}, ["T", "Z"],
     lambda T, Z: -(T * torch.log_softmax(Z, -1)).sum()),
    ("sum[t=0:n-1](v[t]**2*v[t+1])", {"v": "n"}, ["v"], lambda v: (v[:-1] ** 2 * v[1:]).sum()),
    ("sum[i,j](A[i,j]*exp(v[i+j]))", {"A": "n,m", "v": "n+m-1"}, ["v", "A"],
     lambda A, v: sum(A[i, j] * torch.exp(v[i + j]) for i in range(3) for j in range(2))),
    ("sum(x[1:]**2 * x[:-1])", {"x": "n"}, ["x"], lambda x: (x[1:] ** 2 * x[:-1]).sum()),
    ("sum[t](logdet(A[t]))", {"A": "T,m,m"}, ["A"], lambda A: logdet(A).sum()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes", "wrt", "forward"), HESSIANS, ids=[row[0] for row in HESSIANS])
def test_hessian_equals_autograd(
    text: str, shapes: dict[str, str], wrt: list[str], forward: Callable[..., object]
) -> None:
    torch.set_default_dtype(torch.float64)
    compare_hessians(text, shapes, wrt, forward, SIZES)


# expression, shapes, variable, what is printed, its shape
PRINTED = [
    ("trace(A) + 1", {"A": "n,n"}, "A", "I", "(n, n)"),
    ("trace(A.T @ A) - 3", {"A": "n,m"}, "A", "2 A", "(n, m)"),
    ("trace(A @ A @ A @ A)", {"A": "n,n"}, "A", "4 (A³)ᵀ", "(n, n)"),
    ("log(det(A))", {"A": "n,n"}, "A", "A⁻ᵀ", "(n, n)"),
    ("logdet(A)", {"A": "n,n"}, "A", "A⁻ᵀ", "(n, n)"),
    ("trace(inv(A))", {"A": "n,n"}, "A", "−(A⁻²)ᵀ", "(n, n)"),
    ("trace(inv(A) @ A)", {"A": "n,n"}, "A", "0", "(n, n)"),
    ("trace(eye(n) - A)", {"A": "n,n"}, "A", "−I", "(n, n)"),
    ("A[1, 1]", {"A": "n,n"}, "A", "E₁₁", "(n, n)"),
    ("x @ inv(A) @ y", {"A": "n,n", "x": "n", "y": "n"}, "A", "−A⁻ᵀxyᵀA⁻ᵀ", "(n, n)"),
    ("x @ solve(A, y)", {"A": "n,n", "x": "n", "y": "n"}, "y", "A⁻ᵀx", "(n,)"),
    ("solve(A, A @ x) @ y", {"A": "n,n", "x": "n", "y": "n"}, "x", "y", "(n,)"),
    ("trace(kron(A, B))", {"A": "n,n", "B": "p,p"}, "A", "tr(B) I", "(n, n)"),
    ("vec(A) @ vec(A)", {"A": "n,m"}, "A", "2 A", "(n, m)"),
    ("sum[i](c[i]*x[i])", {"c": "n", "x": "n"}, "x", "c", "(n,)"),
]


@pytest.mark.parametrize(("text", "shapes", "wrt", "printed", "shape"), PRINTED, ids=[row[0] for row in PRINTED])
def test_printed(text: str, shapes: dict[str, str], wrt: str, printed: str, shape: str) -> None:
    gradient = derive(text, shapes, wrt).gradients[wrt]
    assert (str(gradient), str(gradient.shape)) == (printed, shape)


def test_shapes_of_reports() -> None:
    found = hessian(build("trace(A@A@A)", {"A": "n,n"}), "A", parse("trace(A@A@A)"))
    assert len(found.gradients["A"].shape) == 4
    text = "exp(z[i])/sum[i](exp(z[i]))"
    system = build(text, {"z": "n"})
    found = jacobian(system, "z", parse(text))
    arrays = drawn(system, SIZES)
    (mine,) = valued(found.system, [found.gradients["z"].equation.name], arrays, SIZES)
    p = torch.softmax(torch.tensor(arrays["z"]), 0)
    assert torch.allclose(torch.tensor(mine), torch.diag(p) - torch.outer(p, p))
    assert len(build("sum[j](delta(i,j)*A[j]*B[j])", {"A": "n", "B": "n"}).arrays["F"].shape) == 1


def test_where_an_inverse_is_read_once_it_is_found_again() -> None:
    system = build("logdet(A) + det(A) + trace(inv(A)) + trace(inv(A.T))", {"A": "n,n"})
    assert [e.name for e in system.equations].count("A_inv") == 1
    assert len(system.equations) == 4


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("inv(A)", {"A": "n,m"}, "inv needs a square matrix"),
        ("inv(x)", {"x": "n"}, "inv needs a square matrix"),
        ("det(A) + logdet(B)", {"A": "n,n", "B": "n,n,m"}, "logdet needs a square matrix"),
        ("solve(A, b)", {"A": "n,n", "b": "m"}, "n rows are needed"),
        ("matrix_power(A, 1/2)", {"A": "n,n"}, "whole number"),
        ("x[n]", {"x": "n"}, "leaves its axis"),
        ("x[3]", {"x": "3"}, "leaves its axis"),
        ("x[w]", {"x": "n", "w": "b:index=m"}, "w holds integers below m, the axis has size n"),
        ("x[w + 1]", {"x": "n", "w": "b:index=n"}, "leaves its axis of size n; where"),
        ("x[-w]", {"x": "n", "w": "b:index=n"}, "leaves its axis of size n; where"),
        ("E[w, v]", {"E": "n,n", "w": "b:index=n", "v": "c:index=n"}, r"paired: A\[w\[:, None\], v\] reads all pairs"),
        ("sum[t](x[t+1])", {"x": "n"}, None),
        ("sum[i](norm(i * x))", {"x": "n"}, "range of i"),
    ],
)
def test_errors(text: str, shapes: dict[str, str], message: str | None) -> None:
    if message is None:
        build(text, shapes)
        return
    with pytest.raises(ExpressionError, match=message) as caught:
        build(text, shapes)
    assert isinstance(caught.value, ShapeError)


def test_a_condition_is_no_index() -> None:
    with pytest.raises(ExpressionError, match=r"no fixed size; use where\(condition, a, b\)"):
        build("sum(x[x > 0])", {"x": "n"})


def test_singular_matrix_has_a_determinant_and_no_inverse() -> None:
    system = build("det(A)", {"A": "n,n"})
    size = {system.sizes[0]: 2}
    given = {"A": {(0, 0): 1, (0, 1): 2, (1, 0): 2, (1, 1): 4}}
    for field in (Modular(0), HighPrecision(0)):
        assert Point(system, size, field, 0, given).entry("d", ()) == 0
        with pytest.raises(Exception, match="singular"):
            Point(system, size, field, 0, given).entry("A_inv", (0, 0))


def test_a_fixed_index_asks_for_a_size() -> None:
    assert str(derive("A[3, 0]", {"A": "n,m"}).gradients["A"]) == "E₃₀"


def test_nonnegative_with_sizes_as_factors() -> None:
    i, k, n, p = Index("i"), Index("k"), Size("n"), Size("p")
    axes = [(i, 0, n), (k, 0, p)]
    assert nonnegative(n * p - 1 - i * p - k, axes)
    assert not nonnegative(n * p - 2 - i * p - k, axes)
    assert not nonnegative(i * p - k, axes)

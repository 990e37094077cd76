"""Declared properties: random values have them, formulas are simplified with them, and derivatives stay right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import hessian
from gradproof.symbolic.equations.calculus import adjoint
from gradproof.symbolic.equations.evaluate import PRIME, Modular, Point
from gradproof.symbolic.equations.system import Array
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import StepError, same_values
from gradproof.symbolic.folding.differences import AdjointCheck
from gradproof.symbolic.folding.fold import facts, normalised
from gradproof.symbolic.folding.symmetry import restored, withheld
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse
from gradproof.symbolic.printing.convention import convention

torch = pytest.importorskip("torch")

from high_precision import compare_gradients, compare_hessians, drawn  # noqa: E402

SIZES = {"n": 3, "m": 2, "d": 2, "k": 3}
inv = torch.linalg.inv
MATRIX = ("symmetric", "psd", "diagonal", "orthogonal", "diagonal:psd", "orthogonal:symmetric", "symmetric:psd")


def logdet(a: object) -> object:
    return torch.linalg.slogdet(a)[1]


# expression, shapes, hand-written torch: autograd takes all entries as free, as `convention` says
GRADIENTS: list[tuple[str, dict[str, str], Callable[..., object]]] = [
    ("x @ A @ x", {"x": "n", "A": "n,n:symmetric"}, lambda x, A: x @ A @ x),
    ("x @ A @ y", {"x": "n", "y": "n", "A": "n,n:symmetric"}, lambda x, y, A: x @ A @ y),
    ("A[0, 1]**2 + A[1, 0]", {"A": "n,n:symmetric"}, lambda A: A[0, 1] ** 2 + A[1, 0]),
    ("sum((A + A.T)*B)", {"A": "n,n:symmetric", "B": "n,n"}, lambda A, B: ((A + A.T) * B).sum()),
    ("sum(A**2) + trace(A @ A)", {"A": "n,n:symmetric"}, lambda A: (A**2).sum() + torch.trace(A @ A)),
    ("x @ A @ B @ A @ y + y @ A @ B @ A @ x", {"x": "n", "y": "n", "A": "n,n:symmetric", "B": "n,n:symmetric"},
     lambda x, y, A, B: 2 * x @ A @ B @ A @ y + y @ A @ B @ A @ x - x @ A @ B @ A @ y),
    ("logdet(A)", {"A": "n,n:symmetric"}, lambda A: logdet(A)),
    ("logdet(A) + x @ inv(A) @ x", {"A": "n,n:psd", "x": "n"}, lambda A, x: logdet(A) + x @ inv(A) @ x),
    ("log(det(A))", {"A": "n,n:psd"}, lambda A: torch.log(torch.linalg.det(A))),
    ("sqrt(x @ A @ x)", {"A": "n,n:psd", "x": "n"}, lambda A, x: (x @ A @ x).sqrt()),
    ("trace(A @ inv(B) @ A)", {"A": "n,n:symmetric", "B": "n,n:psd"}, lambda A, B: torch.trace(A @ inv(B) @ A)),
    ("x @ D @ x", {"x": "n", "D": "n,n:diagonal"}, lambda x, D: x @ D @ x),
    ("x @ inv(D) @ y", {"x": "n", "y": "n", "D": "n,n:diagonal"}, lambda x, y, D: x @ inv(D) @ y),
    ("sum((D @ A @ D)**2)", {"A": "n,n", "D": "n,n:diagonal"}, lambda A, D: ((D @ A @ D) ** 2).sum()),
    ("logdet(D) + trace(D)", {"D": "n,n:diagonal:psd"}, lambda D: logdet(D) + torch.trace(D)),
    ("sum((Q @ x)**2)", {"x": "n", "Q": "n,n:orthogonal"}, lambda x, Q: ((Q @ x) ** 2).sum()),
    ("trace(Q @ A @ Q.T) + sum(Q**2)", {"A": "n,n", "Q": "n,n:orthogonal"},
     lambda A, Q: torch.trace(Q @ A @ Q.T) + (Q**2).sum()),
    ("logdet(Q) + x @ inv(Q) @ y", {"x": "n", "y": "n", "Q": "n,n:orthogonal"},
     lambda x, y, Q: logdet(Q) + x @ inv(Q) @ y),
    ("x @ Q.T @ A @ Q @ x", {"x": "n", "A": "n,n:symmetric", "Q": "n,n:orthogonal"},
     lambda x, A, Q: x @ Q.T @ A @ Q @ x),
    ("x @ H @ H @ y", {"x": "n", "y": "n", "H": "n,n:orthogonal:symmetric"}, lambda x, y, H: x @ H @ H @ y),
    ("sum(p*log(p/q))", {"p": "n:simplex", "q": "n:simplex"}, lambda p, q: (p * torch.log(p / q)).sum()),
    ("-sum(T*log_softmax(Z, axis=-1))", {"T": "m,k:simplex", "Z": "m,k"},
     lambda T, Z: -(T * torch.log_softmax(Z, -1)).sum()),
    ("logdet(X.T @ X + lam**2*eye(d))", {"X": "n,d", "lam": ""},
     lambda X, lam: logdet(X.T @ X + lam**2 * torch.eye(2))),
    ("M = X.T @ X; x @ M @ x + x @ inv(M) @ x", {"X": "n,d", "x": "d"},
     lambda X, x: x @ X.T @ X @ x + x @ inv(X.T @ X) @ x),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes", "forward"), GRADIENTS, ids=[row[0] for row in GRADIENTS])
def test_gradient_equals_autograd(text: str, shapes: dict[str, str], forward: Callable[..., object]) -> None:
    torch.set_default_dtype(torch.float64)
    compare_gradients(text, shapes, forward, SIZES)


HESSIANS: list[tuple[str, dict[str, str], list[str], Callable[..., object]]] = [
    ("logdet(A)", {"A": "n,n:symmetric"}, ["A"], lambda A: logdet(A)),
    ("x @ A @ A @ x", {"A": "n,n:symmetric", "x": "n"}, ["A", "x"], lambda A, x: x @ A @ A @ x),
    ("logdet(A) + x @ inv(A) @ x", {"A": "n,n:psd", "x": "n"}, ["A", "x"], lambda A, x: logdet(A) + x @ inv(A) @ x),
    ("sum((D @ x)**2)", {"D": "n,n:diagonal", "x": "n"}, ["D", "x"], lambda D, x: ((D @ x) ** 2).sum()),
    ("x @ Q.T @ Q @ x", {"Q": "n,n:orthogonal", "x": "n"}, ["Q", "x"], lambda Q, x: x @ Q.T @ Q @ x),
    ("sum(p)**2 * sum(x**2)", {"p": "n:simplex", "x": "n"}, ["p", "x"], lambda p, x: p.sum() ** 2 * (x**2).sum()),
    ("-sum(T*log_softmax(Z, axis=-1))", {"T": "m,k:simplex", "Z": "m,k"}, ["T", "Z"],
     lambda T, Z: -(T * torch.log_softmax(Z, -1)).sum()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes", "wrt", "forward"), HESSIANS, ids=[row[0] for row in HESSIANS])
def test_hessian_equals_autograd(
    text: str, shapes: dict[str, str], wrt: list[str], forward: Callable[..., object]
) -> None:
    """A gradient that was simplified with a property of its variable has another derivative: it must not be used."""
    torch.set_default_dtype(torch.float64)
    compare_hessians(text, shapes, wrt, forward, SIZES)


PRINTED = [
    ("x @ A @ x", {"x": "n", "A": "n,n:symmetric"}, {"x": "2 Ax", "A": "xxᵀ"}),
    ("x @ A @ x", {"x": "n", "A": "n,n"}, {"x": "(A + Aᵀ)x"}),
    ("sum((A + A.T)*B)", {"A": "n,n:symmetric", "B": "n,n"}, {"B": "2 A"}),
    ("logdet(A)", {"A": "n,n:symmetric"}, {"A": "A⁻¹"}),
    ("x @ inv(A) @ x", {"A": "n,n:psd", "x": "n"}, {"x": "2 A⁻¹x", "A": "−A⁻¹xxᵀA⁻¹"}),
    ("-(x - m) @ inv(S) @ (x - m)/2", {"S": "n,n:psd", "x": "n", "m": "n"}, {"x": "−S⁻¹(x − m)"}),
    (
        "x @ S @ T @ S @ y + y @ S @ T @ S @ x",
        {"x": "n", "y": "n", "S": "n,n:symmetric", "T": "n,n:symmetric"},
        {"x": "2 STSy"},
    ),
    ("logdet(X.T @ X + lam*eye(d))", {"X": "n,d", "lam": ""}, {"X": "2 XM⁻¹", "lam": "tr(M⁻¹)"}),
    ("M = X.T @ X; x @ M @ x", {"X": "n,d", "x": "d"}, {"X": "2 Xxxᵀ", "x": "2 Mx"}),
    ("sum((Q @ x)**2)", {"x": "n", "Q": "n,n:orthogonal"}, {"x": "2 x"}),
    ("trace(Q @ A @ Q.T)", {"A": "n,n", "Q": "n,n:orthogonal"}, {"A": "I"}),
    ("x @ inv(Q) @ y", {"x": "n", "y": "n", "Q": "n,n:orthogonal"}, {"x": "Qᵀy", "y": "Qx"}),
    ("x @ D @ x", {"x": "n", "D": "n,n:diagonal"}, {"x": "2 x ⊙ diag(D)"}),
    ("sum(p)", {"p": "n:simplex"}, {"p": "𝟏"}),
]


@pytest.mark.parametrize(("text", "shapes", "printed"), PRINTED, ids=[row[0] for row in PRINTED])
def test_printed(text: str, shapes: dict[str, str], printed: dict[str, str]) -> None:
    found = derive(text, shapes, list(printed))
    assert {name: str(gradient) for name, gradient in found.gradients.items()} == printed


@pytest.mark.parametrize("declared", MATRIX)
@pytest.mark.parametrize("seed", range(3))
def test_random_values_have_the_property(declared: str, seed: int) -> None:
    system = build("sum(A)", {"A": f"n,n:{declared}"})
    a = drawn(system, {"n": 4}, seed)["A"]
    exact = Point(system, {system.sizes[0]: 4}, Modular(seed), seed).array("A")
    properties = declared.split(":")
    if set(properties) & {"symmetric", "psd", "diagonal"}:
        assert (a == a.T).all()
        assert all(exact[i, j] == exact[j, i] for i, j in exact)
    if "psd" in properties:
        assert np.linalg.eigvalsh(a).min() > 0
    if "diagonal" in properties:
        assert (a == np.diag(np.diag(a))).all()
        assert all(v == 0 for (i, j), v in exact.items() if i != j)
    if "orthogonal" in properties:
        assert np.allclose(a @ a.T, np.eye(4), atol=1e-14)
        products = {(i, j): sum(exact[k, i] * exact[k, j] for k in range(4)) % PRIME for i, j in exact}
        assert all(v == (i == j) for (i, j), v in products.items())
    assert np.abs(np.diag(a)).min() > 0


def test_simplex() -> None:
    system = build("sum(P)", {"P": "n,m:simplex"})
    p = drawn(system, {"n": 4, "m": 3})["P"]
    assert np.allclose(p.sum(1), 1)
    assert (p > 0).all()


def test_properties_that_do_not_go_together() -> None:
    with pytest.raises(GradproofError, match="not supported together"):
        drawn(build("sum(A)", {"A": "n,n:simplex:symmetric"}), {"n": 2})


def test_the_raw_adjoint_knows_nothing_of_the_property() -> None:
    """The check along free directions passes for it, and would not for one that the property had simplified."""
    system = build("x @ S @ y", {"S": "n,n:symmetric", "x": "n", "y": "n"})
    raw = adjoint(system, ["S"])
    assert "agrees" in AdjointCheck(raw, "L", None).holds("S")
    wrong = raw.with_equations(
        e.with_body(e.body.xreplace(dict(zip(e.place, e.place[::-1], strict=True)))) if e.name == "S_bar" else e
        for e in raw.equations
    )
    with pytest.raises(StepError):
        AdjointCheck(wrong, "L", None).holds("S")


def test_a_fact_that_does_not_hold_is_caught() -> None:
    general = adjoint(build("x @ A @ y", {"A": "n,n", "x": "n", "y": "n"}), ["x"])
    symmetric = build("x @ A @ y", {"A": "n,n:symmetric", "x": "n", "y": "n"})
    wrong = normalised(restored(general, symmetric), ["x_bar"], facts(restored(general, symmetric)))
    with pytest.raises(StepError):
        same_values(general, restored(wrong, general), ["x_bar"])


def test_withheld() -> None:
    system = build("logdet(S)", {"S": "n,n:symmetric"})
    assert "symmetric" in system.arrays["S_inv"].properties
    assert not any(array.properties for array in withheld(system, ["S"]).arrays.values())


def test_sums_over_part_of_an_axis_are_not_known() -> None:
    text = "sum[i](y[i]*sum[l=0:k-1](P[i,l]))"
    found = derive(text, {"y": "n", "P": "n,k:simplex"}, "y")
    assert str(found.gradients["y"]) != "𝟏"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_convention_is_stated(lang: str) -> None:
    assert "S" in convention(Array("S", properties=frozenset({"symmetric"})), lang)
    assert convention(Array("X"), lang) == ""
    found = derive("x @ S @ x", {"x": "n", "S": "n,n:symmetric"})
    assert len(found.conventions(lang)) == 1
    text = "x @ S @ x"
    second = hessian(build(text, {"x": "n", "S": "n,n:symmetric"}), ["S", "x"], parse(text))
    assert second.conventions(lang) == found.conventions(lang)

"""Linear algebra that is recognised in index equations: what is printed, and that it equals the entries.

Every row is checked twice over: the printed text, and the tree behind it, evaluated by NumPy at a random point.
"""

import warnings

import pytest
from matrix_forms import FORMS, ROLES, shapes_of
from sympy import Integer, tanh
from tree_values import assert_equal

from gradproof.symbolic.derive import derive
from gradproof.symbolic.equations.expr import Access, Implicit, Index, Size, delta, sum_
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.printing.matrix import to_matrix
from gradproof.symbolic.printing.text import equation_text

# An expression, its shapes, the variables, and the printed gradients
GRADIENTS = [
    ("sum((X @ W - Y)**2)", "X:n,d W:d,k Y:n,k", {"W": "2 Xᵀ(XW − Y)", "X": "2 (XW − Y)Wᵀ"}),
    ("sum(softmax(Q @ K.T / sqrt(d), axis=1) @ V * G)", "Q:n,d K:m,d V:m,e G:n,e",
     {"Q": "S̄K/√d", "K": "S̄ᵀQ/√d", "V": "PᵀG"}),
    ("-sum(T * log_softmax(Z, axis=-1))", "T:n,m Z:n,m", {"Z": "P ⊙ rowsum(T) − T"}),
    ("sum[i,j](A[i,j]*x[i]**2)", "A:n,m x:n", {"A": "x²𝟏ᵀ", "x": "2 x ⊙ rowsum(A)"}),
    ("sum(exp(sum(X * Y, axis=1) / t))", "X:n,d Y:n,d t:", {"X": "(1/t) Y ⊙ exp(rowsum(X ⊙ Y)/t)"}),
    ("x @ A @ x", "A:n,n x:n", {"x": "(A + Aᵀ)x", "A": "xxᵀ"}),
    ("trace(A) + 1", "A:n,n", {"A": "I"}),
    ("trace(A.T@A) - 3", "A:n,n", {"A": "2 A"}),
    ("trace(A@A@A@A)", "A:n,n", {"A": "4 (A³)ᵀ"}),
    ("trace(eye(n)-A)**2", "A:n,n", {"A": "−2 tr(I − A) I"}),
    ("log(det(A))", "A:n,n", {"A": "A⁻ᵀ"}),
    ("trace(inv(A))", "A:n,n", {"A": "−(A⁻²)ᵀ"}),
    ("A[1,1]", "A:3,3", {"A": "E₁₁"}),
    ("sum[i](c[i]*x[i])", "c:n x:n", {"x": "c"}),
    ("w @ (x * (A.T @ x))", "w:n x:n A:n,n", {"x": "A(w ⊙ x) + w ⊙ (Aᵀx)", "A": "x(w ⊙ x)ᵀ"}),
    ("c @ tanh(U @ x)", "c:n U:n,m x:m", {"x": "Uᵀ(c ⊙ (1 − tanh(Ux)²))", "U": "(c ⊙ (1 − tanh(Ux)²))xᵀ"}),
    ("sum[j,k](log(sum[l](P[j,k,l]*R[j,k,l])))", "P:n,m,d R:n,m,d", {"P": "R_j ⊘ rowsum(P_j ⊙ R_j)"}),
    ("sum[t,k](E[w[t],k]*G[t,k])", "E:V,d w:T:index=V G:T,d", {"E": "Σ_{t: w_t = v} G_t"}),
    ("sum((U@V.T - M)**2*W)", "U:n,r V:m,r M:n,m W:n,m",
     {"U": "2 (W ⊙ (UVᵀ − M))V", "V": "2 (W ⊙ (UVᵀ − M))ᵀU"}),
    ("sum((A@B@C-D)**2)", "A:n,m B:m,p C:p,q D:n,q",
     {"A": "2 (ABC − D)CᵀBᵀ", "B": "2 Aᵀ(ABC − D)Cᵀ", "C": "2 BᵀAᵀ(ABC − D)"}),
    ("lam*x@x + sum((A@x-b)**2)", "lam: A:m,n x:n b:m", {"x": "2 (λ x + Aᵀ(Ax − b))", "lam": "‖x‖²"}),
    ("sum((X-mean(X,axis=0))**2)", "X:n,m", {"X": "2 (X − colmean(X))"}),
    ("sum((X@W)**2)", "X:B,n,d W:d,k", {"X": "2 X_b WWᵀ", "W": "2 Σ_b X_bᵀX_b W"}),
    ("einsum('bihd,bjhd,bhij->',Q,K,G)", "Q:B,n,H,d K:B,m,H,d G:B,H,n,m", {"Q": "G_bh K_bh", "K": "G_bhᵀQ_bh"}),
    ("sum[i,j,k](A[i,j]*B[j,k]*C[k,i])", "A:n,m B:m,p C:p,n", {"A": "CᵀBᵀ", "B": "AᵀCᵀ", "C": "BᵀAᵀ"}),
    ("sum[i,j](A[i,j]*(x[i]-y[j])**2)", "A:n,m x:n y:m", {"x": "2 rowsum(A ⊙ (x𝟏ᵀ − 𝟏yᵀ))"}),
    ("sum(log(1 + exp(-y*(X@w))))", "X:n,d w:d y:n", {"w": "−Xᵀ(y ⊙ sigmoid(−y ⊙ (Xw)))"}),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), FORMS, ids=[expression for expression, _ in FORMS])
def test_form(expression: str, expected: str) -> None:
    system = build(expression, shapes_of(expression)).with_roles(ROLES)
    (equation,) = system.defined[system.outputs[0]]
    assert equation_text(equation, system).partition(" = ")[2] == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a root that is undefined at one point is tried at another
        for form in ("matrix", "index"):
            assert_equal(equation, system, form)


@pytest.mark.parametrize(("expression", "shapes", "expected"), GRADIENTS, ids=[row[0] for row in GRADIENTS])
def test_gradient(expression: str, shapes: str, expected: dict[str, str]) -> None:
    declared = dict(item.split(":", 1) for item in shapes.split())
    derivation = derive(expression, declared, wrt=list(expected))
    printed = {name: str(gradient) for name, gradient in derivation.gradients.items()}
    assert printed == expected
    for equation in (e for e in derivation.system.equations if e.origin is None and not isinstance(e.body, Implicit)):
        for form in ("matrix", "index"):
            assert_equal(equation, derivation.system, form)


def recurrence() -> System:
    """h_t = tanh(W h_{t−1} + U x_{t−1}), h_0 given."""
    steps, n, d = Size("T"), Size("n"), Size("d")
    o0, o1 = out_letters(2)
    j, zero = Index("j"), Integer(0)
    shapes = {"W": (n, n), "U": (n, d), "start": (n,), "x": (steps, d), "h": (steps + 1, n)}
    inner = sum_(Access("W", o1, j) * Access("h", o0 - 1, j), [(j, 0, n)])
    inner += sum_(Access("U", o1, j) * Access("x", o0 - 1, j), [(j, 0, d)])
    equations = (
        Equation("h", (zero, o1), ((o1, zero, n),), Access("start", o1)),
        Equation("h", (o0, o1), ((o0, Integer(1), steps + 1), (o1, zero, n)), tanh(inner)),
    )
    return System({name: Array(name, shape) for name, shape in shapes.items()}, equations, ("h",))


def test_recurrence_is_written_step_by_step() -> None:
    system = recurrence()
    first, later = system.equations
    assert equation_text(first, system) == "h_0 = s\u0304t" or equation_text(first, system) == "h_0 = start"
    assert equation_text(later, system) == "h_t = tanh(Wh_{t−1} + Ux_{t−1}),  t = 1 … T"
    for equation in system.equations:
        for form in ("matrix", "index"):
            assert_equal(equation, system, form)


# What has no matrix form, as bodies over the letters i, j
ROW, COLUMN, INNER = Index("i"), Index("j"), Index("k")
N = Size("n")
NONE = [
    sum_(Access("A", ROW, INNER) * Access("B", COLUMN, INNER) * Access("x", INNER + ROW), [(INNER, 0, N)]),
    Access("x", ROW + COLUMN),
    sum_(Access("A", ROW, COLUMN) * Access("x", INNER), [(INNER, 0, COLUMN)]),
]


@pytest.mark.parametrize("body", NONE, ids=str)
def test_no_form(body: object) -> None:
    arrays = {"A": Array("A", (N, N)), "B": Array("B", (N, N)), "x": Array("x", (2 * N,))}
    assert to_matrix(body, (ROW, COLUMN), System(arrays, (), ())) is None


def test_to_matrix() -> None:
    system = System({"A": Array("A", (N, N)), "p": Array("p", (N,))}, (), ())
    body = Access("p", ROW) * delta(ROW, COLUMN) - Access("p", ROW) * Access("p", COLUMN)
    equation = Equation("H", (ROW, COLUMN), ((ROW, Integer(0), N), (COLUMN, Integer(0), N)), body)
    assert to_matrix(body, (ROW, COLUMN), system, equation.axes) is not None
    assert to_matrix(sum_(Access("A", INNER, INNER), [(INNER, 0, N)]), (), system) is not None

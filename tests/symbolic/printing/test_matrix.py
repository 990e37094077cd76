"""Linear algebra that is recognised in index equations: what is printed, and that it equals the entries.

Every row is checked twice over: the printed text, and the tree behind it, evaluated by NumPy at a random point.
"""

import re
import warnings

import pytest
from sympy import Integer, tanh
from tree_values import assert_equal

from gradproof.symbolic.derive import derive
from gradproof.symbolic.equations.expr import Access, Implicit, Index, Size, delta, sum_
from gradproof.symbolic.equations.roles import Kind, Role
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.printing.matrix import to_matrix
from gradproof.symbolic.printing.text import equation_text

SHAPES = {
    **dict.fromkeys("ABC", "n,n"),
    **dict.fromkeys(["x", "y", "z", "p", "g", "u", "xhat", "gamma"], "n"),
    **dict.fromkeys(["P", "T", "D", "S_bar", "A_bar"], "n,m"),
    **{"X": "n,d", "W": "d,l", "Y": "n,l", "w": "d", "v": "m", "s": "", "lam": "", "K": "m,d", "R_bar": "n,d"},
    **{"W_Q": "d,d_k", "Q_bar": "n,d_k", "W_K": "d,d_k", "K_bar": "n,d_k", "W_1": "d,h", "b_1": "h"},
    **{"q": "n:index=n", "c": ":index=n", "S": "n,n:symmetric", "V": "B,n,d", "M": "B,m,d", "o": "3"},
}

# What arrays of these names are meant to be
ROLES = {name: Role(Kind.ADJOINT, name[0]) for name in ("S_bar", "A_bar", "R_bar", "Q_bar", "K_bar")}

# An expression in NumPy's spelling, and its matrix form
FORMS = [
    # products and transposes
    ("A", "A"),
    ("A.T", "Aᵀ"),
    ("A @ B", "AB"),
    ("A.T @ B.T", "AᵀBᵀ"),
    ("A @ A @ A", "A³"),
    ("A.T @ A.T", "(A²)ᵀ"),
    ("A @ A.T", "AAᵀ"),
    ("x @ A", "Aᵀx"),
    ("A @ x", "Ax"),
    ("A @ x + A.T @ x", "(A + Aᵀ)x"),
    ("A @ A @ x + B @ x", "(B + A²)x"),
    ("S.T @ x", "Sx"),
    ("(A @ B).T @ C", "BᵀAᵀC"),
    ("A @ diag(x) @ B", "A diag(x) B"),
    ("R[i,j] = sum[k](A[i,k]*x[k]*B[k,j])", "A diag(x) B"),
    ("r[i] = sum[j,k](A[i,j]*B[j,k])", "A rowsum(B)"),
    ("A @ ones(n)", "rowsum(A)"),
    # dot products, norms, traces
    ("x @ y", "xᵀy"),
    ("x @ x", "‖x‖²"),
    ("x @ A @ y", "xᵀAy"),
    ("x @ A @ A @ x", "xᵀA²x"),
    ("x @ (A*B) @ y", "xᵀ(A ⊙ B)y"),
    ("sum(A**2)", "‖A‖_F²"),
    ("sum((X @ W - Y)**2)", "‖XW − Y‖_F²"),
    ("sum(A*B)", "sum(A ⊙ B)"),
    ("sum(A*B.T)", "tr(AB)"),
    ("sum(outer(x,y)*A)", "xᵀAy"),
    ("sum(x*y*z)", "sum(x ⊙ y ⊙ z)"),
    ("trace(A)", "tr(A)"),
    ("trace(A @ B @ C)", "tr(ABC)"),
    ("trace(A @ A)", "tr(A²)"),
    ("trace(A.T @ B)", "sum(A ⊙ B)"),
    ("trace(eye(n) - A @ B)", "tr(I − AB)"),
    ("norm(x)", "‖x‖"),
    ("(x @ y)*(x @ A @ y)*B", "(xᵀy) (xᵀAy) B"),
    ("(x @ y)*z", "z(xᵀy)"),
    ("1/(x @ y)", "1/(xᵀy)"),
    # diagonal, outer, unit and identity matrices
    ("outer(x, y)", "xyᵀ"),
    ("outer(A @ x, y)", "Axyᵀ"),
    ("outer(x, ones(n))", "x𝟏ᵀ"),
    ("diag(x) @ A @ diag(y)", "diag(x) A diag(y)"),
    ("A*x[:,None]*y", "diag(x) A diag(y)"),
    ("A/x[:,None]", "diag(x)⁻¹ A"),
    ("A/(x**2)[:,None]", "diag(x)⁻² A"),
    ("diag(A)", "diag(A)"),
    ("diag(p) - outer(p, p)", "diag(p) − ppᵀ"),
    ("R[i,j] = p[i]*(delta(i,j) - p[j])", "diag(p) − ppᵀ"),
    ("A + lam*eye(n)", "A + λ I"),
    ("R[i,j] = A[j,i]*A[i,i]", "diag(diag(A)) Aᵀ"),
    ("r[i] = p[i] - delta(i,c)", "p − e_c"),
    ("R[i,j] = A[i,j] - delta(j,q[i])", "A − onehot(q)"),
    ("R[i,j] = (j <= i)*A[i,j]", "1[i ≥ j] ⊙ A"),
    ("R[i,j] = where(j <= i, A[i,j], -inf)", "where(i ≥ j, A, −∞)"),
    # entry by entry
    ("x*y", "x ⊙ y"),
    ("x*(A @ y)", "x ⊙ (Ay)"),
    ("A * (B @ C)", "A ⊙ (BC)"),
    ("A @ (B*C)", "A(B ⊙ C)"),
    ("(A*B) @ x", "(A ⊙ B)x"),
    ("A/B", "A ⊘ B"),
    ("x**3/y", "x³ ⊘ y"),
    ("1 - x**2", "1 − x²"),
    ("1 - A**2", "1 − A⊙²"),
    ("A*(1 - A)/s", "(1/s) A ⊙ (1 − A)"),
    ("tanh(A @ x + y)", "tanh(Ax + y)"),
    ("exp(A) @ x", "exp(A) x"),
    ("(x > 0)*y", "1[x > 0] ⊙ y"),
    ("where(A > B, A, B)", "where(A > B, A, B)"),
    ("gelu(x)", "(1/2) x ⊙ (1 + erf(x/√2))"),
    ("exp(-x**2/2)/sqrt(2*pi)", "exp(−x²/2)/√(2 π)"),
    ("sqrt(x)", "√x"),
    ("1/sqrt(x)", "1 ⊘ √x"),
    ("x**s", "x^s"),
    ("abs(x)", "|x|"),
    # sums along an axis, and what they broadcast to
    ("sum(A, axis=1)", "rowsum(A)"),
    ("sum(A, axis=0)", "colsum(A)"),
    ("mean(A, axis=1)", "rowmean(A)"),
    ("mean(A)", "mean(A)"),
    ("mean((X @ W - Y)**2)", "mean((XW − Y)⊙²)"),
    ("mean(x*y)", "mean(x ⊙ y)"),
    ("max(P, axis=1)", "rowmax(P)"),
    ("prod(x)", "prod(x)"),
    ("A - mean(A, axis=1, keepdims=True)", "A − rowmean(A)"),
    ("A - mean(A, axis=0)", "A − colmean(A)"),
    ("A - mean(A)", "A − mean(A)"),
    ("A - x", "A − 𝟏xᵀ"),
    ("A - x[:,None]", "A − x𝟏ᵀ"),
    ("A + s", "A + s 𝟏𝟏ᵀ"),
    ("P*sum(T, axis=1, keepdims=True) - T", "P ⊙ rowsum(T) − T"),
    ("P*(D - sum(P*D, axis=1, keepdims=True))", "P ⊙ (D − rowsum(D ⊙ P))"),
    ("A/sum(A, axis=1, keepdims=True)", "A ⊘ rowsum(A)"),
    ("sum(exp(x))", "sum(exp(x))"),
    ("R[i,j] = x[i]*sum[k](A[i,k])*B[i,j]", "diag(x) (B ⊙ rowsum(A))"),
    # numbers, signs and the order of terms
    ("2*A - 3*B", "2 A − 3 B"),
    ("A/2 + A.T/2", "(A + Aᵀ)/2"),
    ("-2*x + 2*y", "−2 (x − y)"),
    ("-A @ (x - y)", "−A(x − y)"),
    ("-A - B", "−A − B"),
    ("(x - y)/s", "(1/s)[x − y]"),
    ("A/s", "A/s"),
    ("2*x/3", "(2/3) x"),
    ("0.044715*x**3", "0.044715 x³"),
    ("x + 1e-5", "x + 10⁻⁵"),
    ("x @ y/sqrt(n)", "xᵀy/√n"),
    ("x @ A @ x + x @ x + lam", "‖x‖² + xᵀAx + λ"),
    ("(A + 2*B)/3", "(A + 2 B)/3"),
    ("inv(A).T", "A⁻ᵀ"),
    ("inv(A) @ inv(A)", "A⁻²"),
    ("-inv(A) @ (x - y)", "−A⁻¹(x − y)"),
    # one matrix for each index of further axes
    ("V @ M.mT", "V_b M_bᵀ"),
    ("einsum('bid,bjd->ij', V, V)", "Σ_b V_b V_bᵀ"),
    ("R[i,j,k] = A[i,j]*x[k]", "A_i xᵀ"),
    # the forms of the textbook, C15.1 to C15.5
    ("2*X.T @ (X @ W - Y)", "2 Xᵀ(XW − Y)"),
    ("A_bar @ K", "ĀK"),
    ("P*(A_bar - sum(P*A_bar, axis=1, keepdims=True))", "P ⊙ (Ā − rowsum(Ā ⊙ P))"),
    ("S_bar @ K/sqrt(d)", "S̄K/√d"),
    ("S_bar.T @ X/sqrt(d)", "S̄ᵀX/√d"),
    ("X.T @ Q_bar", "XᵀQ̄"),
    ("R_bar + Q_bar @ W_Q.T + K_bar @ W_K.T", "R̄ + Q̄W_Qᵀ + K̄W_Kᵀ"),
    ("X @ W_1 + b_1", "XW₁ + 𝟏b₁ᵀ"),
    ("g*gamma", "g ⊙ γ"),
    ("g*xhat", "g ⊙ x̂"),
    ("(u - mean(u) - xhat*mean(u*xhat))/s", "(1/s)[u − mean(u) − x̂ mean(u ⊙ x̂)]"),
    ("p*(g - sum(p*g))", "p ⊙ (g − gᵀp)"),
]


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


def shapes_of(expression: str) -> dict[str, str]:
    names = set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]", _array_names, expression)))
    return {name: shape for name, shape in SHAPES.items() if name in names}


def _array_names(found: re.Match) -> str:
    """Of what stands in brackets, the names of arrays only: a letter may be called like an array elsewhere."""
    return f" {' '.join(re.findall(r'[cq]', found.group()))} "


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

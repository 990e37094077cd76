"""Expressions and the matrix form in which each is printed; shared by the tests of the printers."""

import re

from gradproof.symbolic.equations.roles import Kind, Role

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


def shapes_of(expression: str) -> dict[str, str]:
    names = set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]", _array_names, expression)))
    return {name: shape for name, shape in SHAPES.items() if name in names}


def _array_names(found: re.Match) -> str:
    """Of what stands in brackets, the names of arrays only: a letter may be called like an array elsewhere."""
    return f" {' '.join(re.findall(r'[cq]', found.group()))} "

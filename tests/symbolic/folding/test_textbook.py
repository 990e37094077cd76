"""Well-known derivatives in the form that a textbook prints, and the same from other spellings.

Numbers in brackets are equations of the Matrix Cookbook (2012).
"""

import pytest

from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.deriving.products import hessian, jacobian
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.matlab.parser import parse_matlab
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import Program, parse

A = {"A": "n,n"}
AX = {"A": "n,n", "x": "n"}
DATA = {"X": "n,d", "w": "d", "y": "n"}
XAB = {"A": "k,n", "X": "n,m", "B": "m,k"}
GAUSS = {"S": "n,n:psd", "x": "n", "m": "n"}
LOGISTIC = "Xᵀ(sigmoid(Xw) − y)"
WEIGHT = "sigmoid(−y ⊙ (Xw))"

# kind, NumPy, index notation, MATLAB, arrays, variable, the last printed right side
ROWS: list[tuple[str, str, str, str, dict[str, str], str, str]] = [
    ("gradient", "sum((X @ W - Y)**2)", "sum[i,j]((sum[k](X[i,k]*W[k,j]) - Y[i,j])**2)",
     "sum(sum((X*W - Y).^2))", {"X": "n,d", "W": "d,k", "Y": "n,k"}, "W", "2 Xᵀ(XW − Y)"),
    ("gradient", "sum((Y - X @ W)**2)", "", "norm2(Y - X*W)^2", {"X": "n,d", "W": "d,k", "Y": "n,k"}, "W", "2 Xᵀ(XW − Y)"),
    ("gradient", "norm(A @ x - b)**2", "sum[i]((sum[j](A[i,j]*x[j]) - b[i])**2)", "norm2(A*x - b)^2",
     {"A": "m,n", "x": "n", "b": "m"}, "x", "2 Aᵀ(Ax − b)"),
    ("gradient", "sum((X @ w - y)**2) + lam * sum(w**2)", "", "norm2(X*w - y)^2 + lam*w'*w",
     {**DATA, "lam": ""}, "w", "2 (λ w + Xᵀ(Xw − y))"),
    ("gradient", "b @ x", "sum[i](b[i]*x[i])", "b'*x", {"b": "n", "x": "n"}, "x", "b"),  # (69)
    ("gradient", "a @ X @ b", "sum[i,j](a[i]*X[i,j]*b[j])", "a'*X*b", {"a": "n", "X": "n,m", "b": "m"}, "X", "abᵀ"),  # (70)
    ("gradient", "a @ X.T @ b", "sum[i,j](a[j]*X[i,j]*b[i])", "a'*X'*b", {"a": "m", "X": "n,m", "b": "n"}, "X", "baᵀ"),
    ("gradient", "a @ X.T @ X @ b", "", "a'*X'*X*b", {"a": "m", "X": "n,m", "b": "m"}, "X", "X(baᵀ + abᵀ)"),  # (77)
    ("gradient", "x @ A @ x", "sum[i,j](x[i]*A[i,j]*x[j])", "x'*A*x", AX, "x", "(A + Aᵀ)x"),  # (81)
    ("gradient", "x @ A @ x", "sum[i,j](x[i]*A[i,j]*x[j])", "x'*A*x", AX, "A", "xxᵀ"),
    ("gradient", "x @ S @ x", "sum[i,j](x[i]*S[i,j]*x[j])", "x'*S*x", {"S": "n,n:symmetric", "x": "n"}, "x", "2 Sx"),
    ("gradient", "trace(A)", "sum[i](A[i,i])", "tr(A)", A, "A", "I"),  # (99)
    ("gradient", "trace(A @ X)", "sum[i,j](A[i,j]*X[j,i])", "tr(A*X)", {"A": "n,m", "X": "m,n"}, "X", "Aᵀ"),  # (100)
    ("gradient", "trace(A @ X @ B)", "sum[i,j,l](A[i,j]*X[j,l]*B[l,i])", "tr(A*X*B)", XAB, "X", "AᵀBᵀ"),  # (101)
    ("gradient", "trace(A @ X.T)", "sum[i,j](A[i,j]*X[i,j])", "tr(A*X')", {"A": "n,m", "X": "n,m"}, "X", "A"),  # (103)
    ("gradient", "trace(A @ A)", "sum[i,j](A[i,j]*A[j,i])", "tr(A*A)", A, "A", "2 Aᵀ"),  # (106)
    ("gradient", "trace(X.T @ A @ X)", "", "tr(X'*A*X)", {"X": "n,m", "A": "n,n"}, "X", "(A + Aᵀ)X"),  # (108)
    ("gradient", "trace(X @ A @ X.T)", "", "tr(X*A*X')", {"X": "n,m", "A": "m,m"}, "X", "X(A + Aᵀ)"),  # (111)
    ("gradient", "trace(A.T @ A)", "sum[i,j](A[i,j]**2)", "tr(A'*A)", A, "A", "2 A"),  # (115)
    ("gradient", "trace(A @ X @ B @ X.T @ C)", "", "tr(A*X*B*X'*C)", {"A": "k,n", "X": "n,m", "B": "m,m", "C": "n,k"}, "X",
     "CAXB + AᵀCᵀXBᵀ"),  # (118)
    ("gradient", "trace(A @ A @ A @ A)", "", "tr(A*A*A*A)", A, "A", "4 (A³)ᵀ"),  # (121)
    ("gradient", "trace(inv(A))", "", "tr(inv(A))", A, "A", "−(A⁻²)ᵀ"),
    ("gradient", "trace(A @ inv(X) @ B)", "", "tr(A*inv(X)*B)", {"A": "n,n", "X": "n,n", "B": "n,n"}, "X",
     "−X⁻ᵀAᵀBᵀX⁻ᵀ"),  # (124)
    ("gradient", "x @ inv(A) @ y", "", "x'*inv(A)*y", {**A, "x": "n", "y": "n"}, "A", "−A⁻ᵀxyᵀA⁻ᵀ"),  # (61)
    ("gradient", "det(A)", "", "det(A)", A, "A", "d A⁻ᵀ"),  # (49)
    ("gradient", "log(det(A))", "", "log(det(A))", A, "A", "A⁻ᵀ"),  # (57)
    ("gradient", "logdet(X.T @ X)", "", "", {"X": "n,m"}, "X", "2 XM⁻¹"),
    ("gradient", "trace(eye(n) - A)**2", "", "tr(eye(n) - A)^2", A, "A", "−2 tr(I − A) I"),
    ("gradient", "norm(x)", "sqrt(sum[i](x[i]**2))", "norm2(x)", {"x": "n"}, "x", "x/r"),  # (129)
    ("gradient", "norm(x - a)", "", "norm2(x - a)", {"x": "n", "a": "n"}, "x", "(1/r)[x − a]"),
    ("gradient", "-logdet(S)/2 - (x - m) @ inv(S) @ (x - m)/2", "", "-log(det(S))/2 - (x - m)'*inv(S)*(x - m)/2", GAUSS, "x",
     "−S⁻¹(x − m)"),
    ("gradient", "-logdet(S)/2 - (x - m) @ inv(S) @ (x - m)/2", "", "", GAUSS, "S", "(S⁻¹(x − m)(x − m)ᵀS⁻¹ − S⁻¹)/2"),
    ("gradient", "logsumexp(x)", "log(sum[i](exp(x[i])))", "log(sum(exp(x)))", {"x": "n"}, "x", "P"),
    ("gradient", "-x[y] + logsumexp(x)", "-x[y] + log(sum[i](exp(x[i])))", "", {"x": "n", "y": ":index=n"}, "x", "P − e_y"),
    ("gradient", "-sum(T*log_softmax(Z, axis=-1))", "", "", {"T": "n,k:simplex", "Z": "n,k"}, "Z", "P − T"),
    ("gradient", "sum(softmax(S, axis=1) * G)", "sum[i,j](exp(S[i,j])/sum[k](exp(S[i,k]))*G[i,j])", "",
     {"S": "n,m", "G": "n,m"}, "S", "P ⊙ (G − rowsum(G ⊙ P))"),
    ("gradient", "sum(log(1 + exp(-y * (X @ w))))", "sum[i](log(1 + exp(-y[i]*sum[j](X[i,j]*w[j]))))",
     "sum(log(1 + exp(-y.*(X*w))))", DATA, "w", f"−Xᵀ(y ⊙ {WEIGHT})"),
    ("gradient", "-sum(y*log(sigmoid(X @ w)) + (1 - y)*log(1 - sigmoid(X @ w)))", "", "", DATA, "w", LOGISTIC),
    ("gradient", "sum((U @ V.T - Y)**2)", "sum[i,j]((sum[k](U[i,k]*V[j,k]) - Y[i,j])**2)", "norm2(U*V' - Y)^2",
     {"U": "n,k", "V": "m,k", "Y": "n,m"}, "U", "2 (UVᵀ − Y)V"),
    ("gradient", "(x @ S @ x)/(x @ x)", "", "x'*S*x/(x'*x)", {"x": "n", "S": "n,n:symmetric"}, "x",
     "(2/‖x‖²)[Sx − x(xᵀSx)/‖x‖²]"),
    ("gradient", "sum(tanh(W @ x + b) * g)", "", "g'*tanh(W*x + b)", {"W": "m,n", "x": "n", "b": "m", "g": "m"}, "x",
     "Wᵀ(g ⊙ (1 − tanh(Wx + b)²))"),
    ("gradient", "prod(x)", "prod[i](x[i])", "", {"x": "n"}, "x", "∏_{j ≠ i} x_j"),
    ("gradient", "A[1,1]", "A[1,1]", "", {"A": "3,3"}, "A", "E₁₁"),
    ("gradient", "w @ (x * (A.T @ x))", "sum[i](w[i]*x[i]*sum[j](A[j,i]*x[j]))", "w'*(x.*(A'*x))",
     {"w": "n", "x": "n", "A": "n,n"}, "x", "A(w ⊙ x) + w ⊙ (Aᵀx)"),
    ("gradient", "log(1 + exp(b))", "", "log(1 + exp(b))", {"b": ""}, "b", "sigmoid(b)"),
    ("gradient", "", "sum[i,j](A[i,j]*exp(v[i+j]))", "", {"A": "n,m", "v": "n+m-1"}, "v",
     "exp(v_j) Σ_{i: j−m < i ≤ j} A_{i,j−i}"),
    ("gradient", "sum(v[:-1] * v[1:])", "sum[i=0:n-1](v[i]*v[i+1])", "", {"v": "n"}, "v",
     "1[i < n − 1] v_{i+1} + 1[i ≥ 1] v_{i−1}"),
    ("gradient", "sum(log(sum(P*R, axis=2)))", "sum[i,j](log(sum[k](P[i,j,k]*R[i,j,k])))", "", {"P": "a,b,c", "R": "a,b,c"},
     "P", "R_i ⊘ rowsum(P_i ⊙ R_i)"),
    # Jacobians
    ("jacobian", "softmax(z)", "p[i] = exp(z[i])/sum[i](exp(z[i]))", "exp(z)/sum(exp(z))", {"z": "n"}, "z", "diag(P) − PPᵀ"),
    ("jacobian", "log_softmax(z)", "", "", {"z": "n"}, "z", "I − 𝟏Pᵀ"),
    ("jacobian", "A @ x", "y[i] = sum[j](A[i,j]*x[j])", "A*x", {"A": "m,n", "x": "n"}, "x", "A"),
    ("jacobian", "x/norm(x)", "", "x/norm2(x)", {"x": "n"}, "x", "(1/r)[I − xxᵀ/r²]"),
    ("jacobian", "tanh(A @ x)", "", "tanh(A*x)", {"A": "m,n", "x": "n"}, "x", "diag(1 − F²) A"),
    ("jacobian", "x * y", "F[i] = x[i]*y[i]", "x.*y", {"x": "n", "y": "n"}, "x", "diag(y)"),
    ("jacobian", "relu(A @ x)", "", "relu(A*x)", {"A": "m,n", "x": "n"}, "x", "diag(1[Ax > 0]) A"),
    ("jacobian", "", "F[i] = sum[j](delta(i,j)*A[j]*B[j])", "", {"A": "n", "B": "n"}, "A", "diag(B)"),
    ("jacobian", "layernorm(x, eps=1e-5)", "", "", {"x": "n"}, "x", "(1/s)[I − 𝟏𝟏ᵀ/n − x̂x̂ᵀ/n]"),
    # Hessians
    ("hessian", "x @ A @ x", "sum[i,j](x[i]*A[i,j]*x[j])", "x'*A*x", AX, "x", "A + Aᵀ"),  # (98)
    ("hessian", "sum((X @ w - y)**2)", "", "norm2(X*w - y)^2", DATA, "w", "2 XᵀX"),
    ("hessian", "logsumexp(x)", "log(sum[i](exp(x[i])))", "log(sum(exp(x)))", {"x": "n"}, "x", "diag(P) − PPᵀ"),
    ("hessian", "-x[y] + logsumexp(x)", "", "", {"x": "n", "y": ":index=n"}, "x", "diag(P) − PPᵀ"),
    ("hessian", "sum(log(1 + exp(-y * (X @ w))))", "", "sum(log(1 + exp(-y.*(X*w))))", DATA, "w",
     f"Xᵀ diag(y² ⊙ {WEIGHT} ⊙ (1 − {WEIGHT})) X"),
    ("hessian", "norm(x)", "sqrt(sum[i](x[i]**2))", "norm2(x)", {"x": "n"}, "x", "(1/r)[I − xxᵀ/r²]"),
    ("hessian", "(x @ x)**2", "", "(x'*x)^2", {"x": "n"}, "x", "4 (‖x‖² I + 2 xxᵀ)"),
    ("hessian", "sum(exp(x))", "sum[i](exp(x[i]))", "sum(exp(x))", {"x": "n"}, "x", "diag(exp(x))"),
    ("hessian", "sum(exp(A @ x))", "", "sum(exp(A*x))", {"A": "m,n", "x": "n"}, "x", "Aᵀ diag(exp(Ax)) A"),
    ("hessian", "-sum(T*log_softmax(Z, axis=-1))", "", "", {"T": "n,k", "Z": "n,k"}, "Z",
     "δ_il sum(T_i) (diag(P_i) − P_i P_iᵀ)"),
    ("hessian", "-sum(T*log_softmax(Z, axis=-1))", "", "", {"T": "n,k:simplex", "Z": "n,k"}, "Z", "δ_il (diag(P_i) − P_i P_iᵀ)"),
    ("hessian", "trace(A @ A @ A)", "", "tr(A*A*A)", A, "A", "3 (δ_il A + A_li I)"),
    ("hessian", "x @ inv(S) @ x/2 + logdet(S)/2", "", "x'*inv(S)*x/2", {"x": "n", "S": "n,n:psd"}, "x", "S⁻¹"),
]  # fmt: skip


def derived(kind: str, program: Program, shapes: dict[str, str], variable: str) -> Derivation:
    if kind == "gradient":
        return derive(program, shapes, variable)
    system = build(program, shapes)
    return (jacobian if kind == "jacobian" else hessian)(system, variable, program)


def right_side(kind: str, program: Program, shapes: dict[str, str], variable: str) -> str:
    return derived(kind, program, shapes, variable).lines()[-1].partition(" = ")[2]


SPELLINGS = [
    pytest.param(kind, reader, text, shapes, variable, printed, id=f"{kind} {text} by {variable} {shapes}")
    for kind, numpy, index, matlab, shapes, variable, printed in ROWS
    for reader, text in ((parse, numpy), (parse, index), (parse_matlab, matlab))
    if text
]


@pytest.mark.parametrize(("kind", "reader", "text", "shapes", "variable", "printed"), SPELLINGS)
def test_printed(kind, reader, text, shapes, variable, printed) -> None:
    program = reader(text) if reader is parse else reader(text, shapes)
    assert right_side(kind, program, shapes, variable) == printed


def test_the_table_is_long_enough() -> None:
    assert len({(row[0], row[1] or row[2], row[5], str(row[4])) for row in ROWS}) >= 60
    assert sum(bool(row[1]) + bool(row[2]) + bool(row[3]) == 3 for row in ROWS) >= 20


def test_shapes_of_higher_rank() -> None:
    """The Hessian of tr(A³) has four axes."""
    program = parse("trace(A @ A @ A)")
    (block,) = hessian(build(program, A), "A", program).gradients.values()
    assert list(map(str, block.shape)) == ["n", "n", "n", "n"]


def test_an_index_has_one_range() -> None:
    with pytest.raises(GradproofError):
        build("sum[c](w[c]*u[c])", {"w": "n", "u": "n+2"})
    assert build("sum[c=0:n](w[c]*u[c])", {"w": "n", "u": "n+2"}).outputs

"""Claims and what `check` must say of them: tables of (expression, shapes, variable, claim, fragment of the note)."""

import json
import re

import pytest

from gradproof.symbolic.checking.check import check
from gradproof.symbolic.errors import ExpressionError, ShapeError, UnknownNameError

SG = {"S": "n,m", "G": "n,m"}
XWY = {"X": "n,d", "W": "d,k", "Y": "n,k"}
ZT = {"Z": "n,k", "T": "n,k"}
TARGETS = {"Z": "n,k", "T": "n,k:simplex"}
AFFINE = {"Z": "n,k", "T": "n,k", "g": "k", "b": "k"}
ATTENTION = {"Q": "n,d", "K": "m,d", "V": "m,e", "G": "n,e"}
RNN = {"c": "n", "x": "n", "U": "n,n"}
NORM = {"x": "d", "u": "d"}
XA = {"x": "n", "A": "n,n"}
XY = {"x": "n", "y": "n"}

SOFTMAX = "sum(softmax(S, axis=1) * G)"
CROSS_ENTROPY = "-sum(T * log_softmax(Z, axis=1))"
SMOOTHED = "-sum(((1 - q) * T + q / k) * log_softmax(Z, axis=1))"
LAYERNORM = "sum(u * layernorm(x, eps=1e-5))"
AFFINE_NORM = "sum(T * (layernorm(Z, eps=1e-5) * g + b))"
RMSNORM = "sum(u * x / sqrt(mean(x**2) + eps))"
ATTEND = "sum(softmax(Q @ K.T / sqrt(d), axis=1) @ V * G)"
SQUARES = "sum((X @ W - Y)**2)"
CELL = "c @ tanh(2*x + U @ tanh(x))"
GELU_TANH = "t = tanh(sqrt(2/pi)*(x + 0.044715*x**3)); (1 + t)/2 + x*(1 - t**2)*sqrt(2/pi)*(1 + 0.134145*x**2)/2"
STABLE = "top = max(S, axis=1, keepdims=True); E = exp(S - top); A = E/sum(E, axis=1, keepdims=True); "


def statistics(deviation: str = "sqrt(mean((x - mu)**2) + 1e-5)") -> str:
    return f"mu = mean(x); s = {deviation}; z = (x - mu)/s; "


def scores(scale: str = "sqrt(d)") -> str:
    return f"A = softmax(Q @ K.T / {scale}); B = G @ V.T; D = A*(B - sum(A*B, axis=1, keepdims=True)); "


JOINED = {"W": "m,2*d", "a": "d", "s": "d"}

# Right formulas, in the form of the textbook and rearranged: all of these are proved.
PROVED = [
    ("sum[i=0:n-1](v[i+1]*c[i])", {"v": "n", "c": "n-1"}, "v", "F[i] = where(i > 0, c[i-1], 0)"),
    ("sum(v[1:]*v[:-1])", {"v": "n"}, "v", "F[i] = where(i < n-1, v[i+1], 0) + where(i > 0, v[i-1], 0)"),
    (
        "sum[t,k](E[w[t],k]*G[t,k])",
        {"E": "V,d", "w": "T:index=V", "G": "T,d"},
        "E",
        "F[v,k] = sum[t](delta(v,w[t])*G[t,k])",
    ),
    ("sum(x**2)", {"x": "n"}, "x", "2*x"),
    ("sum(x**2)", {"x": "n"}, "x", "x + x"),
    ("sum(x**2)", {"x": "n"}, "x", "2*x[i]"),
    (SOFTMAX, SG, "S", "softmax(S, axis=1) * (G - sum(softmax(S, axis=1) * G, axis=1, keepdims=True))"),
    (SOFTMAX, SG, "S", "A = exp(S)/sum(exp(S), axis=1, keepdims=True); A*G - A*sum(A*G, axis=1, keepdims=True)"),
    (SOFTMAX, SG, "S", STABLE + "A*(G - sum(A*G, axis=1, keepdims=True))"),
    (SOFTMAX, SG, "S", "P[i,j] = exp(S[i,j])/sum[k](exp(S[i,k])); P[i,j]*(G[i,j] - sum[k](P[i,k]*G[i,k]))"),
    (SQUARES, XWY, "W", "2 * X.T @ (X @ W - Y)"),
    (SQUARES, XWY, "W", "2*X.T@X@W - 2*X.T@Y"),
    (SQUARES, XWY, "W", "R[i,j] = sum[l](X[i,l]*W[l,j]) - Y[i,j]; D[l,j] = 2*sum[i](X[i,l]*R[i,j])"),
    ("R = X @ W - Y; sum(R**2)", XWY, "W", "2*X.T @ R"),
    ("R = X @ W - Y; sum(R**2)", XWY, "X", "2*R @ W.T"),
    (LAYERNORM, NORM, "x", statistics() + "(u - mean(u) - z*mean(u*z))/s"),
    (LAYERNORM, NORM, "x", statistics() + "(d*u - sum(u) - z*sum(u*z))/(d*s)"),
    (LAYERNORM, NORM, "x", "c = x - sum(x)/d; v = c @ c/d + 1e-5; (u - mean(u))/v**0.5 - c*(u @ c)/(d*v**1.5)"),
    (RMSNORM, NORM | {"eps": ""}, "x", "r = sqrt(sum(x**2)/d + eps); u/r - x*(u@x)/(d*r**3)"),
    (AFFINE_NORM, AFFINE, "g", "sum(T * layernorm(Z, eps=1e-5), axis=0)"),
    (AFFINE_NORM, AFFINE, "b", "ones(n) @ T"),
    (CROSS_ENTROPY, ZT, "Z", "softmax(Z, axis=1)*sum(T, axis=1, keepdims=True) - T"),
    (CROSS_ENTROPY, TARGETS, "Z", "softmax(Z, axis=1) - T"),
    (SMOOTHED, TARGETS | {"q": ""}, "Z", "softmax(Z, axis=1) - (1 - q)*T - q/k"),
    (ATTEND, ATTENTION, "Q", scores() + "D @ K / sqrt(d)"),
    (ATTEND, ATTENTION, "K", scores() + "D.T @ Q / d**0.5"),
    (ATTEND, ATTENTION, "V", "softmax(Q @ K.T / sqrt(d)).T @ G"),
    (CELL, RNN, "U", "outer(c*(1 - tanh(2*x + U @ tanh(x))**2), tanh(x))"),
    (CELL, RNN, "U", "z = 4*x + 2*U @ tanh(x); outer(4*c*sigmoid(z)*sigmoid(-z), 2*sigmoid(2*x) - 1)"),
    (
        "sum(exp(sum(X * Y, axis=1) / t))",
        {"X": "n,d", "Y": "n,d", "t": ""},
        "t",
        "r = sum(X*Y, axis=1); -(exp(r/t)@r)/t**2",
    ),
    ("sum(log(1 + exp(-y * (X @ w))))", {"y": "n", "X": "n,d", "w": "d"}, "w", "-X.T @ (y*sigmoid(-y*(X @ w)))"),
    ("log(1 + exp(b))", {"b": ""}, "b", "1/(1 + exp(-b))"),
    ("log(1 + exp(b))", {"b": ""}, "b", "(1 + tanh(b/2))/2"),
    ("sum(silu(x))", {"x": "n"}, "x", "sigmoid(x)*(1 + x*(1 - sigmoid(x)))"),
    ("sum(gelu(x))", {"x": "n"}, "x", "(1 + erf(x/sqrt(2)))/2 + x*exp(-x**2/2)/sqrt(2*pi)"),
    ("sum(gelu(x, approximate='tanh'))", {"x": "n"}, "x", GELU_TANH),
    ("sum(x**p)", {"x": "n", "p": ""}, "x", "p*x**(p - 1)"),
    ("norm(x)", {"x": "n"}, "x", "x/sqrt(x @ x)"),
    ("norm(A)**2", XA, "A", "2*A"),
    ("trace(A @ A @ A @ A)", XA, "A", "4*(A @ A @ A).T"),
    ("trace(A) + 1", XA, "A", "eye(n)"),
    ("x @ A @ x", XA, "x", "A @ x + A.T @ x"),
    ("x @ A @ x", {"x": "n", "A": "n,n:symmetric"}, "x", "2*x @ A"),
    ("sum(log(x))", {"x": "n"}, "x", "1/x"),
    ("sum[i,j](A[i,j]*x[i]**2)", {"A": "n,m", "x": "n"}, "x", "2*x*sum(A, axis=1)"),
    ("sum(where(x > 0, x, exp(x) - 1))", {"x": "n"}, "x", "where(x > 0, 1, exp(x))"),
    ("sum[i,j](tanh(x[i] - x[j])) + sum(x)", {"x": "n"}, "x", "ones(n)"),
    ("x @ y / (norm(x) * norm(y))", XY, "x", "y/(norm(x)*norm(y)) - x*(x@y)/(norm(x)**3*norm(y))"),
    ("sum(sin(2*x))", {"x": "n"}, "x", "2*(cos(x)**2 - sin(x)**2)"),
    ("v[0] = 0; v[s+1] = b*v[s] + q[s]; v[t]", {"b": "", "q": "t"}, "q", "F[i] = b**(t-1-i) + 0*q[i]"),
    ("v[0] = c; v[s+1] = b*v[s] + q[s]; v[t]**2", {"b": "", "c": "", "q": "t"}, "c", "2*v[t]*b**t"),
    ("c[k] = a[k]; c[d+k] = s[k]; sum((W @ c)**2)", JOINED, "s", "2*W[:, d:].T @ (W[:, :d] @ a + W[:, d:] @ s)"),
    ("log(det(A))", XA, "A", "inv(A).T"),
    ("x @ inv(A) @ x", XA, "x", "(inv(A) + inv(A).T) @ x"),
]

# Right, but no proof is found.
AGREES = [
    ("sum(x - sin(x))", {"x": "n"}, "x", "2*sin(x/2)**2", ""),
    (
        "v[0] = c; v[s+1] = b*v[s]*v[s] + 0*q[s]; v[t]",
        {"b": "", "c": "", "q": "t"},
        "c",
        "F = c; 2**t*b**(2**t-1)*F**(2**t-1)",
        "",
    ),
]

# Equal but at single points, where the derivative is a matter of convention.
KINKS = [
    ("sum(relu(x))", {"x": "n"}, "x", "where(x >= 0, 1, 0)", "kink x = 0"),
    ("sum(abs(x))", {"x": "n"}, "x", "where(x > 0, 1, -1)", "kink x = 0"),
    ("sum(relu(x - 3))", {"x": "n"}, "x", "x >= 3", "at a kink"),
    ("sum(abs(A @ x))", {"A": "m,n", "x": "n"}, "x", "A.T @ where(A @ x > 0, 1, -1)", "at a kink"),
    ("sum(max(X, axis=1))", {"X": "n,d"}, "X", "X == max(X, axis=1, keepdims=True)", "kink X = 0"),
    ("prod(x)", {"x": "n"}, "x", "prod(x)/x", "no value at x = 0"),
]

AB = {"A": "n,n", "B": "n,n"}
UPDATED = {"A": "n,n", "u": "n", "v": "n"}
# (expression, shapes, wrt, claim, verdict): inverses and determinants of products, multiples and sums.
INVERSES = [
    ("logdet(A @ B)", AB, "A", "inv(A).T", "proved"),
    ("logdet(A @ B)", AB, "A", "inv(A)", "refuted"),
    ("logdet(A @ B)", AB, "A", "inv(B).T", "refuted"),
    ("logdet(A @ B @ C)", AB | {"C": "n,n"}, "B", "inv(B).T", "proved"),
    ("logdet(A.T @ A)", XA, "A", "2*inv(A).T", "proved"),
    ("det(A @ B)", AB, "A", "det(A)*det(B)*inv(A).T", "proved"),
    ("det(2*A)", XA, "A", "2**n*det(A)*inv(A).T", "proved"),
    ("det(2*A)", XA, "A", "2*det(A)*inv(A).T", "refuted"),
    ("det(matrix_power(A, 3))", XA, "A", "3*det(A)**3*inv(A).T", "proved"),
    ("trace(inv(A @ B))", AB, "A", "-(inv(A) @ inv(B) @ inv(A)).T", "proved"),
    ("trace(inv(A @ B))", AB, "A", "-(inv(B) @ inv(A) @ inv(A)).T", "refuted"),
    ("x @ inv(A @ A.T) @ x", XA, "x", "2*inv(A).T @ (inv(A) @ x)", "proved"),
    ("logdet(A + outer(u, v))", UPDATED, "u", "inv(A).T @ v/(1 + v @ inv(A) @ u)", "proved"),
    ("logdet(A + outer(u, v))", UPDATED, "A", "B = inv(A); (B - outer(B @ u, v @ B)/(1 + v @ B @ u)).T", "proved"),
    ("logdet(A + outer(u, v))", UPDATED, "A", "B = inv(A); (B - outer(B @ u, v @ B)/(1 - v @ B @ u)).T", "refuted"),
    ("det(eye(n) + outer(u, v))", UPDATED, "u", "v", "proved"),
    ("trace(solve(A @ B, C))", AB | {"C": "n,n"}, "C", "(inv(B) @ inv(A)).T", "proved"),
    ("logdet(eye(d) + X.T @ X)", {"X": "m,d"}, "X", "2*inv(eye(m) + X @ X.T) @ X", "agrees"),
    ("logdet(A*s)", {"A": "n,n", "s": ""}, "s", "n/s", "proved"),
]


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "expected"), INVERSES)
def test_inverses_of_products_and_sums(
    expression: str, shapes: dict[str, str], wrt: str, claim: str, expected: str
) -> None:
    assert check(expression, shapes, wrt, claim).verdict == expected


SQUARE = "sum(x**2)/2"
ONLY_BELOW = ("x > 0 wherever x ≤ 0", "x ≠ 0 wherever x ≤ 0")
# (expression, shapes, wrt, claim, conditions): right where the claim, as it is typed, has a value.
DOMAINS = [
    (SQUARE, {"x": "n"}, "x", "exp(log(x))", ("x > 0",)),
    (SQUARE, {"x": "n"}, "x", "sqrt(x)**2", ("x ≥ 0",)),
    (SQUARE, {"x": "n"}, "x", "(x**0.5)**2", ("x ≥ 0",)),
    (SQUARE, {"x": "n"}, "x", "x**2/x", ("x ≠ 0",)),
    (SQUARE, {"x": "n"}, "x", "x**2*x**-1", ("x ≠ 0",)),
    (SQUARE, {"x": "n"}, "x", "F[i] = x[i]*x[i]/x[i]", ("x ≠ 0",)),
    (SQUARE, {"x": "n"}, "x", "(x - 3)**2/(x - 3) + 3", ("x ≠ 3",)),
    (SQUARE, {"x": "n"}, "x", "x*(x @ x)/(x @ x)", ("‖x‖² ≠ 0",)),
    (SQUARE, {"x": "n"}, "x", "exp(log1p(x)) - 1", ("x > −1",)),
    (SQUARE, {"x": "n"}, "x", "x + log(x - 5) - log(x - 5)", ("x > 5",)),
    ("trace(A)", {"A": "n,n"}, "A", "A @ inv(A)", ("A is invertible",)),
    ("sum(x*y)", XY, "x", "y*exp(log(x))/x", ("x > 0",)),
    # what the expression needs as well is no condition, nor what holds anyhow or where the branch is not taken
    ("sum(exp(log(x))**2)/2", {"x": "n"}, "x", "exp(log(x))", ()),
    ("sum(x**2/x)", {"x": "n"}, "x", "x/x", ()),
    ("sum(x*log(x))", {"x": "n"}, "x", "log(x) + x/x", ()),
    (SQUARE, {"x": "n"}, "x", "x*sqrt(1 + x**2)/sqrt(1 + x**2)", ()),
    (SQUARE, {"x": "n"}, "x", "x*exp(x)/exp(x)", ()),
    ("sum(where(x > 0, x**2, -x))", {"x": "n"}, "x", "where(x > 0, 2*sqrt(x)**2, -1)", ()),
    ("sum(where(x > 0, x**2, -x))", {"x": "n"}, "x", "where(x > 0, 2*x, -exp(log(x))/x)", ONLY_BELOW),
    ("norm(x)", {"x": "n"}, "x", "x/norm(x)", ()),
    ("logdet(A)", {"A": "n,n"}, "A", "inv(A).T", ()),
]

# (expression, shapes, wrt, claim, conditions): an empty range is empty, which a formula in n may forget.
SIZES = [
    ("sum(x)*sum[i=0:n-2](1)", {"x": "n"}, "x", "(n - 2)*ones(n)", ("n ≥ 2",)),
    ("sum(x[2:] + a)", {"x": "n", "a": ""}, "a", "n - 2", ("n ≥ 2",)),
    ("sum(x[2:] + a)", {"x": "n", "a": ""}, "a", "where(n >= 2, n - 2, 0)", ()),
    ("sum((x[2:] + a)**2)", {"x": "n", "a": ""}, "x", "F[i] = where(i >= 2, 2*(x[i] + a), 0)", ()),
]


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "conditions"), SIZES)
def test_a_claim_that_holds_from_a_size_on_says_so(
    expression: str, shapes: dict[str, str], wrt: str, claim: str, conditions: tuple[str, ...]
) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.right and verdict.conditions == conditions, verdict
    assert all(f"for all sizes with {condition}" in verdict.how for condition in conditions)


def test_a_huge_number_is_written_in_json() -> None:
    found = check("sum(relu(exp(x) - 10**40))", {"x": "n"}, "x", "0*x").as_dict()
    assert found["verdict"] == "refuted" and json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    "expression", ["abs(sum(layernorm(x, eps=0.1)))", "sum(relu(sum(softmax(x)) - 1))", "sum(relu(x - x))"]
)
def test_a_kink_that_is_hit_everywhere_has_the_slope_of_the_convention(expression: str) -> None:
    assert check(expression, {"x": "n"}, "x", "0*x").right


# The errors that people make.
REFUTED = [
    ("v[0] = 0; v[s+1] = b*v[s] + q[s]; v[t]", {"b": "", "q": "t"}, "q", "F[i] = b**(t-i) + 0*q[i]", "b times"),
    (SOFTMAX, SG, "S", "softmax(S, axis=1) * G", ""),
    (SOFTMAX, SG, "S", "softmax(S, axis=1) * (1 - softmax(S, axis=1)) * G", ""),
    (SOFTMAX, SG, "S", "A = softmax(S, axis=1); A*(G - sum(A*G, axis=0, keepdims=True))", ""),
    (LAYERNORM, NORM, "x", statistics() + "u/s", ""),
    (LAYERNORM, NORM, "x", statistics() + "(u - z*mean(u*z))/s", "the entries of u sum to 0"),
    (LAYERNORM, NORM, "x", statistics() + "(u - mean(u))/s", ""),
    # ε outside the root, and forgotten
    (LAYERNORM, NORM, "x", statistics("sqrt(mean((x - mu)**2)) + 1e-5") + "(u - mean(u) - z*mean(u*z))/s", ""),
    (RMSNORM, NORM | {"eps": ""}, "x", "r = sqrt(mean(x**2)); u/r - x*(u@x)/(d*r**3)", "eps is 0"),
    # unbiased variance
    (LAYERNORM, NORM, "x", statistics("sqrt(sum((x - mu)**2)/(d - 1) + 1e-5)") + "(u - mean(u) - z*mean(u*z))/s", ""),
    ("mean((x - mean(x))**2)", {"x": "n"}, "x", "2*(x - mean(x))/(n - 1)", "n/(n − 1) times"),
    # smoothing ε/(K − 1) against ε/K
    (SMOOTHED, TARGETS | {"q": ""}, "Z", "softmax(Z, axis=1) - (1 - q)*T - q/(k - 1)", "q is 0"),
    (CROSS_ENTROPY, ZT, "Z", "softmax(Z, axis=1) - T", "the rows of T sum to 1"),
    # transposes and layouts
    (SQUARES, XWY, "W", "2*(X @ W - Y).T @ X", "other layout"),
    ("trace(A @ A @ A @ A)", XA, "A", "4*A @ A @ A", "other layout"),
    ("log(det(A))", XA, "A", "inv(A)", "other layout"),
    ("trace(A @ B)", {"A": "n,n", "B": "n,n"}, "A", "B", "other layout"),
    ("x @ A @ x", XA, "x", "2*A @ x", "A is symmetric"),
    ("x @ A @ B @ x", XA | {"B": "n,n"}, "x", "2*A @ B @ x", ""),
    ("x @ A @ x + x @ B @ x", XA | {"B": "n,n"}, "x", "2*A @ x + 2*B @ x", "A and B are symmetric"),
    # factors, signs, temperature, scale
    (SQUARES, XWY, "W", "X.T @ (X @ W - Y)", "1/2 times"),
    ("mean((x - y)**2)", XY, "x", "2*(x - y)", "n times"),
    ("sum(1/x)", {"x": "n"}, "x", "1/x**2", "−1 times"),
    ("sum(softmax(x / t) * u)", NORM | {"t": ""}, "x", "A = softmax(x / t); A*(u - A @ u)", "t times"),
    (ATTEND, ATTENTION, "Q", scores() + "D @ K", "√d times"),
    (ATTEND, ATTENTION, "Q", scores("d") + "D @ K / sqrt(d)", ""),
    # a missing term, a missing weight
    ("sum(y * x) + lam * sum(x**2)", XY | {"lam": ""}, "x", "y", "lam is 0"),
    ("sum(y * tanh(x))", XY, "x", "1 - tanh(x)**2", "all entries of y are 1"),
    (AFFINE_NORM, AFFINE, "g", "sum(T * (Z - mean(Z, axis=1, keepdims=True)), axis=0)", ""),
    # GELU's tanh form taken for the exact one
    ("sum(gelu(x))", {"x": "n"}, "x", GELU_TANH, ""),
    # a branch that small numbers do not reach, and one that is wrong on one side only
    ("sum(clip(x, -5, 5))", {"x": "n"}, "x", "ones(n)", "x has norm 1"),
    ("sum(x**2)", {"x": "n"}, "x", "2*abs(x)", "the entries of x are positive"),
    ("sum(x**2)", {"x": "n"}, "x", "2*x**1.5/sqrt(abs(x))", "the entries of x are positive"),
    ("norm(x)", {"x": "n"}, "x", "x", "norm 1"),
    # right but for very small numbers, only at very small ones, only at small sizes
    ("sum(x**2) + 1e-30*sum(x)", {"x": "n"}, "x", "2*x", ""),
    ("sum(x**2)", {"x": "n"}, "x", "2*x + 1e-30", ""),
    ("sum(exp(-10000*x**2))", {"x": "n"}, "x", "0*x", ""),
    ("sum(x)", {"x": "n"}, "x", "1 + (n - 1)*(n - 2)*(n - 3)*(n - 4)*(n - 5)*(n - 6)*x", ""),
    # a threshold of indices, of sizes, of numbers that small points do not reach
    ("sum(triu(A, -16)*B)", {"A": "n,n", "B": "n,n"}, "A", "B", ""),
    ("sum[i,j](where(i - j < 16, A[i,j]*B[i,j], 0))", {"A": "n,n", "B": "n,n"}, "A", "B", ""),
    ("sum[i](where(i < 128, x[i], 0))", {"x": "n"}, "x", "ones(n)", ""),
    ("where(n < 20, 1, 2)*sum(x)", {"x": "n"}, "x", "ones(n)", ""),
    ("where(n**2 < 500, 1, 2)*sum(x)", {"x": "n"}, "x", "where(n < 22, 1, 2)*ones(n)", ""),
    ("sum(relu(log(x) - 7))", {"x": "n"}, "x", "0*x", ""),
    ("sum(relu(x - 50*n**3))", {"x": "n"}, "x", "0*x", ""),
    ("sum(relu(exp(x) - 10**40))", {"x": "n"}, "x", "0*x", ""),
    # two thresholds that differ a little; a branch of a branch
    ("sum(where(x > 0.14, x, 2*x))", {"x": "n"}, "x", "where(x > 0.1, 1, 2)", ""),
    ("sum(where(x > 0.14, x, 2*x))", {"x": "n"}, "x", "where(x > 0.1400001, 1, 2)", ""),
    ("sum(where(x*y > 0.14, x, 2*x))", XY, "x", "where(x*y > 0.15, 1, 2)", ""),
    ("sum(where(x > 700, where(y > 800, 1, 2)*x, x))", XY, "x", "where(x > 700, 2, 1) + 0*y", "x has norm 1"),
    # shapes
    ("sum(2*x)", {"x": "n"}, "x", "2", "repeated over the shape (n,)"),
    ("sum(3*x)", {"x": "n"}, "x", "2", ""),
    ("sum(X + b)", {"X": "n,d", "b": "d"}, "b", "ones(n, d)", "sum over the axes 0"),
    ("sum(x**2)", {"x": "n"}, "x", "2*x[:, None]", "an axis of size 1"),
    ("sum(tanh(W))", {"W": "a,b,c"}, "W", "1 - tanh(einsum('abc->acb', W))**2", "its last two axes are exchanged"),
]


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim"), PROVED)
def test_right_formulas_are_proved(expression: str, shapes: dict[str, str], wrt: str, claim: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.verdict == "proved", verdict
    assert verdict.counterexample is None and verdict.exit_code == 0 and verdict.correct
    assert verdict.conditions == ()


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "note"), AGREES)
def test_what_is_right_but_not_proved(expression: str, shapes: dict[str, str], wrt: str, claim: str, note: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.verdict == "agrees" and verdict.exit_code == 0, verdict
    assert note in verdict.note
    assert re.search(r"chance below 10\^−\d\d|40 digits", verdict.how)


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "note"), KINKS)
def test_kinks_are_noted(expression: str, shapes: dict[str, str], wrt: str, claim: str, note: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.right and verdict.conditions, verdict
    assert note in verdict.note


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "conditions"), DOMAINS)
def test_a_claim_is_right_where_its_text_has_a_value(
    expression: str, shapes: dict[str, str], wrt: str, claim: str, conditions: tuple[str, ...]
) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.verdict == "proved" and verdict.exit_code == 0, verdict
    assert verdict.conditions == conditions == tuple(verdict.as_dict()["conditions"])
    assert all(
        condition in str(verdict) and condition in verdict.note for condition in conditions if "inv" not in claim
    )


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "note"), REFUTED)
def test_errors_are_refuted(expression: str, shapes: dict[str, str], wrt: str, claim: str, note: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.verdict == "refuted" and verdict.exit_code == 1, verdict
    assert note in verdict.note and bool(note) == bool(verdict.note), verdict
    assert verdict.correct
    if "has the shape" not in verdict.how:
        example = verdict.counterexample
        assert example is not None
        larger = {"(n - 6)": 7, "triu": 18, "16": 17, "128": 129, "20": 20, "n**2": 22}  # what has a threshold there
        at_most = next((size for part, size in larger.items() if part in expression + claim), 3)
        assert max(example.sizes.values(), default=1) <= at_most
        assert example.claimed_text != example.right_text
        assert str(example)
    assert set(json.loads(json.dumps(verdict.as_dict()))) >= {"verdict", "how", "counterexample", "correct"}


def test_the_counterexample_is_small() -> None:
    """The softmax backward with its row sum left out."""
    example = check(SOFTMAX, SG, "S", "softmax(S, axis=1) * G").counterexample
    assert example is not None
    assert (example.sizes, example.inputs) == ({"n": 1, "m": 1}, {"S": [[0]], "G": [[1]]})
    assert (example.place, example.claimed, example.right) == ((0, 0), 1, 0)
    shown = "for n = 1, m = 1; S = [[0]], G = [[1]]: the gradient by S at [0, 0] is 0, your formula gives 1"
    assert str(example) == shown


# (expression, shapes, wrt, claim, options, verdict, fragment of the printed verdict)
MORE = [
    # names of a whole system
    (SOFTMAX, SG, "S", "A*(G - sum(A*G, axis=1, keepdims=True))", {"let": {"A": "softmax(S, axis=1)"}}, "proved", ""),
    ("R = X @ W - Y; sum(R**2)", XWY, "W", "D", {"let": {"D": "2*X.T @ R"}}, "proved", ""),
    ("sum(A * G)", SG, "S", "A*G", {"let": {"A": "softmax(S, axis=1)"}}, "refuted", "at [0, 0] is 0"),
    ("P = softmax(S); sum(P * G)", SG, "S", "P = softmax(S); P*(G - (P*G) @ ones(m, m))", {}, "proved", ""),
    # a cotangent
    ("X @ W", XWY, "W", "X.T @ G", {"cotangent": "G"}, "proved", ""),
    ("X @ W", XWY, "W", "X.T @ G * 2", {"cotangent": "G"}, "refuted", "2 times"),
    ("softmax(S)", {"S": "n,m"}, "S", "P = softmax(S); P*(G - (P*G) @ ones(m, m))", {"cotangent": "G"}, "proved", ""),
    # the other layout, asked for
    (SQUARES, XWY, "W", "2*(X @ W - Y).T @ X", {"layout": "numerator"}, "proved", "2 (XW − Y)ᵀX"),
    (SQUARES, XWY, "W", "2*X.T @ (X @ W - Y)", {"layout": "numerator"}, "refuted", "right in denominator layout"),
    # Jacobians
    ("tanh(A @ x)", XA, "x", "diag(1 - tanh(A @ x)**2) @ A", {}, "proved", ""),
    ("A @ x", {"A": "m,n", "x": "n"}, "x", "A", {}, "proved", ""),
    ("A @ x", {"A": "m,n", "x": "n"}, "x", "A.T", {}, "refuted", "right in denominator layout"),
    ("A @ x", {"A": "m,n", "x": "n"}, "x", "A.T", {"layout": "denominator"}, "proved", ""),
    ("softmax(x)", {"x": "n"}, "x", "p = softmax(x); diag(p) - outer(p, p)", {}, "proved", "diag("),
    ("softmax(x)", {"x": "n"}, "x", "p = softmax(x); p[i]*(delta(i,j) - p[j])", {}, "proved", ""),
    (
        "softmax(x)",
        {"x": "n"},
        "x",
        "p = softmax(x); diag(p) + outer(p, p)",
        {},
        "refuted",
        "is 0, your formula gives 2",
    ),
    ("X @ W", {"X": "n,d", "W": "d,k"}, "W", "J[i,j,a,b] = X[i,a]*eye(k)[j,b]", {}, "proved", ""),
    # second order
    ("x @ A @ x", XA, "x", "A + A.T", {"order": 2}, "proved", ""),
    ("x @ A @ x", XA, "x", "2*A", {"order": 2}, "refuted", "A is symmetric"),
    ("logsumexp(x)", {"x": "n"}, "x", "p = softmax(x); diag(p) - outer(p, p)", {"order": 2}, "proved", ""),
    ("x @ A @ y", XA | {"y": "n"}, ["x", "y"], "A", {"order": 2}, "proved", ""),
    # what has no value anywhere
    ("sum(log(-exp(x)))", {"x": "n"}, "x", "ones(n)", {}, "undecided", "no random point"),
]


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "options", "expected", "shown"), MORE)
def test_options(
    expression: str, shapes: dict[str, str], wrt: object, claim: str, options: dict, expected: str, shown: str
) -> None:
    verdict = check(expression, shapes, wrt, claim, **options)  # type: ignore[arg-type]
    assert verdict.verdict == expected, verdict
    assert shown in str(verdict)


ERRORS = [
    ("2*y", UnknownNameError, "y is not declared"),
    ("2*x +", ExpressionError, "2*x +"),
    ("x @ ones(n, m)[0]", ShapeError, "do not fit"),
    ("n = x; n", ExpressionError, "n is a size already"),
    ("z = x; z = 2*x; z", ExpressionError, "defined twice"),
    ("__import__('os')", ExpressionError, "__import__"),
]


@pytest.mark.parametrize(("claim", "kind", "message"), ERRORS)
def test_bad_claims_are_errors(claim: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        check("sum(x**2) + 0*sum(A)", {"x": "n", "A": "n,m"}, "x", claim)


def test_bad_questions_are_errors() -> None:
    with pytest.raises(ExpressionError, match="no variable q"):
        check("sum(x**2)", {"x": "n"}, "q", "2*x")
    with pytest.raises(ExpressionError, match="by one variable"):
        check("sum(x*y)", XY, ["x", "y"], "y")
    with pytest.raises(ExpressionError, match="P is defined by the expression already"):
        check("P = 2*x; sum(P**2)", {"x": "n"}, "x", "P = x; 8*P")
    with pytest.raises(ExpressionError, match="numerator or denominator"):
        check("sum(x**2)", {"x": "n"}, "x", "2*x", layout="mixed")

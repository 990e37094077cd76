"""Claims and what `check` must say of them: tables of (expression, shapes, variable, claim, verdict, fragment of the note)."""

import json
import re

import pytest

from gradproof.symbolic.check import Verdict, check
from gradproof.symbolic.errors import ExpressionError, ShapeError, UnknownNameError

SG = {"S": "n,m", "G": "n,m"}
XWY = {"X": "n,d", "W": "d,k", "Y": "n,k"}
ZT = {"Z": "n,k", "T": "n,k"}
ATTENTION = {"Q": "n,d", "K": "m,d", "V": "m,e", "G": "n,e"}
RNN = {"c": "n", "x": "n", "U": "n,n"}
NORM = {"x": "d", "u": "d"}
XA = {"x": "n", "A": "n,n"}

SOFTMAX = "sum(softmax(S, axis=1) * G)"
LAYERNORM = "sum(u * layernorm(x, eps=1e-5))"
STATISTICS = "mu = mean(x); s = sqrt(mean((x - mu)**2) + 1e-5); z = (x - mu)/s; "
RMS = "sum(u * x / sqrt(mean(x**2) + eps))"
ATTEND = "sum(softmax(Q @ K.T / sqrt(d), axis=1) @ V * G)"
SMOOTH = "-sum(((1 - q) * T + q / k) * log_softmax(Z, axis=1))"

# Right formulas, in the form of the textbook and rearranged: all of these are proved.
PROVED = [
    ("sum(x**2)", {"x": "n"}, "x", "2*x"),
    ("sum(x**2)", {"x": "n"}, "x", "x + x"),
    ("sum(x**2)", {"x": "n"}, "x", "2*x[i]"),
    (SOFTMAX, SG, "S", "softmax(S, axis=1) * (G - sum(softmax(S, axis=1) * G, axis=1, keepdims=True))"),
    (SOFTMAX, SG, "S", "A = exp(S)/sum(exp(S), axis=1, keepdims=True); A*G - A*sum(A*G, axis=1, keepdims=True)"),
    (SOFTMAX, SG, "S", "top = max(S, axis=1, keepdims=True); E = exp(S - top); A = E/sum(E, axis=1, keepdims=True); A*(G - sum(A*G, axis=1, keepdims=True))"),
    (SOFTMAX, SG, "S", "P[i,j] = exp(S[i,j])/sum[k](exp(S[i,k])); P[i,j]*(G[i,j] - sum[k](P[i,k]*G[i,k]))"),
    ("sum((X @ W - Y)**2)", XWY, "W", "2 * X.T @ (X @ W - Y)"),
    ("sum((X @ W - Y)**2)", XWY, "W", "2*X.T@X@W - 2*X.T@Y"),
    ("sum((X @ W - Y)**2)", XWY, "W", "R[i,j] = sum[l](X[i,l]*W[l,j]) - Y[i,j]; D[l,j] = 2*sum[i](X[i,l]*R[i,j])"),
    ("R = X @ W - Y; sum(R**2)", XWY, "W", "2*X.T @ R"),
    ("R = X @ W - Y; sum(R**2)", XWY, "X", "2*R @ W.T"),
    (LAYERNORM, NORM, "x", STATISTICS + "(u - mean(u) - z*mean(u*z))/s"),
    (LAYERNORM, NORM, "x", STATISTICS + "(d*u - sum(u) - z*sum(u*z))/(d*s)"),
    (LAYERNORM, NORM, "x", "c = x - sum(x)/d; v = sum(c**2)/d + 1e-5; u/v**0.5 - mean(u)/v**0.5 - c*(u @ c)/(d*v**1.5)"),
    (RMS, NORM | {"eps": ""}, "x", "r = sqrt(sum(x**2)/d + eps); u/r - x*(u@x)/(d*r**3)"),
    ("sum(T * (layernorm(Z, eps=1e-5) * g + b))", ZT | {"g": "k", "b": "k"}, "g", "sum(T * layernorm(Z, eps=1e-5), axis=0)"),
    ("sum(T * (layernorm(Z, eps=1e-5) * g + b))", ZT | {"g": "k", "b": "k"}, "b", "ones(n) @ T"),
    ("-sum(T * log_softmax(Z, axis=1))", ZT, "Z", "softmax(Z, axis=1)*sum(T, axis=1, keepdims=True) - T"),
    ("-sum(T * log_softmax(Z, axis=1))", {"Z": "n,k", "T": "n,k:simplex"}, "Z", "softmax(Z, axis=1) - T"),
    (SMOOTH, {"Z": "n,k", "T": "n,k:simplex", "q": ""}, "Z", "softmax(Z, axis=1) - (1 - q)*T - q/k"),
    (ATTEND, ATTENTION, "Q", "A = softmax(Q @ K.T / sqrt(d)); B = G @ V.T; A*(B - sum(A*B, axis=1, keepdims=True)) @ K / sqrt(d)"),
    (ATTEND, ATTENTION, "K", "A = softmax(Q @ K.T / sqrt(d)); B = G @ V.T; (A*B - A*sum(A*B, axis=1, keepdims=True)).T @ Q / d**0.5"),
    (ATTEND, ATTENTION, "V", "softmax(Q @ K.T / sqrt(d)).T @ G"),
    ("c @ tanh(2*x + U @ tanh(x))", RNN, "U", "outer(c*(1 - tanh(2*x + U @ tanh(x))**2), tanh(x))"),
    ("c @ tanh(2*x + U @ tanh(x))", RNN, "U", "outer(4*c*sigmoid(4*x + 2*U @ tanh(x))*sigmoid(-4*x - 2*U @ tanh(x)), 2*sigmoid(2*x) - 1)"),
    ("sum(exp(sum(X * Y, axis=1) / t))", {"X": "n,d", "Y": "n,d", "t": ""}, "t", "r = sum(X*Y, axis=1); -(exp(r/t) @ r)/t**2"),
    ("log(1 + exp(b))", {"b": ""}, "b", "1/(1 + exp(-b))"),
    ("log(1 + exp(b))", {"b": ""}, "b", "(1 + tanh(b/2))/2"),
    ("sum(silu(x))", {"x": "n"}, "x", "sigmoid(x)*(1 + x*(1 - sigmoid(x)))"),
    ("sum(gelu(x))", {"x": "n"}, "x", "(1 + erf(x/sqrt(2)))/2 + x*exp(-x**2/2)/sqrt(2*pi)"),
    ("sum(x**p)", {"x": "n", "p": ""}, "x", "p*x**(p - 1)"),
    ("norm(x)", {"x": "n"}, "x", "x/sqrt(x @ x)"),
    ("norm(A)**2", XA, "A", "2*A"),
    ("trace(A @ A @ A @ A)", XA, "A", "4*(A @ A @ A).T"),
    ("trace(A) + 1", XA, "A", "eye(n)"),
    ("x @ A @ x", XA, "x", "A @ x + A.T @ x"),
    ("x @ A @ x", {"x": "n", "A": "n,n:symmetric"}, "x", "2*x @ A"),
    ("log(det(A))", XA, "A", "inv(A).T"),
    ("x @ inv(A) @ x", XA, "x", "(inv(A) + inv(A).T) @ x"),
    ("sum(log(x))", {"x": "n"}, "x", "1/x"),
    ("sum[i,j](A[i,j]*x[i]**2)", {"A": "n,m", "x": "n"}, "x", "2*x*sum(A, axis=1)"),
    ("sum(where(x > 0, x, exp(x) - 1))", {"x": "n"}, "x", "where(x > 0, 1, exp(x))"),
    ("sum[i,j](tanh(x[i] - x[j])) + sum(x)", {"x": "n"}, "x", "ones(n)"),
    ("x @ y / (norm(x) * norm(y))", {"x": "n", "y": "n"}, "x", "y/(norm(x)*norm(y)) - x*(x@y)/(norm(x)**3*norm(y))"),
]  # fmt: skip

AGREES = [
    # no rule for a product without one factor, and it fails at 0
    ("prod(x)", {"x": "n"}, "x", "prod(x)/x", "no value at x = 0"),
    ("sum(sin(2*x))", {"x": "n"}, "x", "2*(cos(x)**2 - sin(x)**2)", ""),
]

# Equal but at single points, where the derivative is a matter of convention.
KINKS = [
    ("sum(relu(x))", {"x": "n"}, "x", "where(x >= 0, 1, 0)", "kink x = 0"),
    ("sum(abs(x))", {"x": "n"}, "x", "where(x > 0, 1, -1)", "kink x = 0"),
    ("sum(max(X, axis=1))", {"X": "n,d"}, "X", "X == max(X, axis=1, keepdims=True)", "kink X = 0"),
]

# The errors that people make: (expression, shapes, variable, claim, fragment of the note).
REFUTED = [
    (SOFTMAX, SG, "S", "softmax(S, axis=1) * G", ""),
    (SOFTMAX, SG, "S", "softmax(S, axis=1) * (1 - softmax(S, axis=1)) * G", ""),
    (SOFTMAX, SG, "S", "A = softmax(S, axis=1); A*(G - sum(A*G, axis=0, keepdims=True))", ""),
    (LAYERNORM, NORM, "x", STATISTICS + "u/s", ""),
    (LAYERNORM, NORM, "x", STATISTICS + "(u - z*mean(u*z))/s", "the entries of u sum to 0"),
    (LAYERNORM, NORM, "x", STATISTICS + "(u - mean(u))/s", ""),
    # ε outside the root
    (LAYERNORM, NORM, "x", "mu = mean(x); s = sqrt(mean((x - mu)**2)) + 1e-5; z = (x - mu)/s; (u - mean(u) - z*mean(u*z))/s", ""),
    (RMS, NORM | {"eps": ""}, "x", "r = sqrt(mean(x**2)); u/r - x*(u@x)/(d*r**3)", "eps is 0"),
    # unbiased variance
    (LAYERNORM, NORM, "x", "mu = mean(x); s = sqrt(sum((x - mu)**2)/(d - 1) + 1e-5); z = (x - mu)/s; (u - mean(u) - z*mean(u*z))/s", ""),
    ("mean((x - mean(x))**2)", {"x": "n"}, "x", "2*(x - mean(x))/(n - 1)", "n/(n − 1) times"),
    # smoothing ε/(K − 1) against ε/K
    (SMOOTH, {"Z": "n,k", "T": "n,k:simplex", "q": ""}, "Z", "softmax(Z, axis=1) - (1 - q)*T - q/(k - 1)", "q is 0"),
    ("-sum(T * log_softmax(Z, axis=1))", ZT, "Z", "softmax(Z, axis=1) - T", "the rows of T sum to 1"),
    # transposes and layouts
    ("sum((X @ W - Y)**2)", XWY, "W", "2*(X @ W - Y).T @ X", "other layout"),
    ("trace(A @ A @ A @ A)", XA, "A", "4*A @ A @ A", "other layout"),
    ("log(det(A))", XA, "A", "inv(A)", "other layout"),
    ("x @ A @ x", XA, "x", "2*A @ x", "A is symmetric"),
    ("x @ A @ B @ x", XA | {"B": "n,n"}, "x", "2*A @ B @ x", ""),
    ("trace(A @ B)", {"A": "n,n", "B": "n,n"}, "A", "B", "other layout"),
    # factors, signs, temperature, scale
    ("sum((X @ W - Y)**2)", XWY, "W", "X.T @ (X @ W - Y)", "1/2 times"),
    ("mean((x - y)**2)", {"x": "n", "y": "n"}, "x", "2*(x - y)", "n times"),
    ("sum(1/x)", {"x": "n"}, "x", "1/x**2", "−1 times"),
    ("sum(softmax(S / t, axis=1) * G)", SG | {"t": ""}, "S", "A = softmax(S / t, axis=1); A*(G - sum(A*G, axis=1, keepdims=True))", "t times"),
    (ATTEND, ATTENTION, "Q", "A = softmax(Q @ K.T / sqrt(d)); B = G @ V.T; A*(B - sum(A*B, axis=1, keepdims=True)) @ K", "√d times"),
    # a missing term, a missing weight
    ("sum(y * x) + lam * sum(x**2)", {"x": "n", "y": "n", "lam": ""}, "x", "y", "lam is 0"),
    ("sum(g * layernorm(x, eps=1e-5))", {"x": "d", "g": "d"}, "g", "x - mean(x)", ""),
    # GELU's tanh form taken for the exact one
    ("sum(gelu(x))", {"x": "n"}, "x", "t = tanh(sqrt(2/pi)*(x + 0.044715*x**3)); (1 + t)/2 + x*(1 - t**2)*sqrt(2/pi)*(1 + 3*0.044715*x**2)/2", ""),
    # a branch that small numbers do not reach, and one that is wrong on one side only
    ("sum(clip(x, -5, 5))", {"x": "n"}, "x", "ones(n)", "norm 1"),
    ("sum(x**2)", {"x": "n"}, "x", "2*abs(x)", "the entries of x are positive"),
    ("sum(x**2)", {"x": "n"}, "x", "2*x**1.5/sqrt(abs(x))", "the entries of x are positive"),
    # shapes
    ("sum(2*x)", {"x": "n"}, "x", "2", "repeated over the shape (n,)"),
    ("sum(X + b)", {"X": "n,d", "b": "d"}, "b", "ones(n, d)", "sum over the axes 0"),
    ("sum(x**2)", {"x": "n"}, "x", "2*x[:, None]", "an axis of size 1"),
    # with norm 1
    ("norm(x)", {"x": "n"}, "x", "x", "norm 1"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim"), PROVED)
def test_right_formulas_are_proved(expression: str, shapes: dict[str, str], wrt: str, claim: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.verdict == "proved", verdict
    assert verdict.counterexample is None and verdict.exit_code == 0 and verdict.correct


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "note"), AGREES)
def test_what_is_right_but_not_proved(expression: str, shapes: dict[str, str], wrt: str, claim: str, note: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.verdict == "agrees", verdict
    assert note in verdict.note
    assert re.search(r"chance below 10\^−\d\d|40 digits", verdict.how)


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "note"), KINKS)
def test_kinks_are_noted(expression: str, shapes: dict[str, str], wrt: str, claim: str, note: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.right, verdict
    assert note in verdict.note


@pytest.mark.parametrize(("expression", "shapes", "wrt", "claim", "note"), REFUTED)
def test_errors_are_refuted(expression: str, shapes: dict[str, str], wrt: str, claim: str, note: str) -> None:
    verdict = check(expression, shapes, wrt, claim)
    assert verdict.verdict == "refuted" and verdict.exit_code == 1, verdict
    assert note in verdict.note and bool(note) == bool(verdict.note), verdict
    assert verdict.correct
    if "shape" not in verdict.how:
        example = verdict.counterexample
        assert example is not None and example.claimed != example.right
        assert max(example.sizes.values(), default=1) <= 3
        assert str(example)
    assert set(json.loads(json.dumps(verdict.as_dict()))) >= {"verdict", "how", "counterexample", "correct"}


def test_the_counterexample_is_small() -> None:
    """The softmax backward with its row sum left out, as the issue asks."""
    example = check(SOFTMAX, SG, "S", "softmax(S, axis=1) * G").counterexample
    assert example is not None
    assert (example.sizes, example.inputs) == ({"n": 1, "m": 1}, {"S": [[0]], "G": [[1]]})
    assert (example.place, example.claimed, example.right) == ((0, 0), 1, 0)
    assert str(example) == "for n = 1, m = 1; S = [[0]], G = [[1]]: the gradient by S at [0, 0] is 0, your formula gives 1"

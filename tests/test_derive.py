"""Derivations: the printed result of each row, and every step checked. One row, one fact."""

import pytest

from gradproof.symbolic.derive import derive, derive_system
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse
from gradproof.symbolic.products import hessian, hvp, jacobian, jvp

LEAST_SQUARES = {"X": "n,d", "W": "d,k", "Y": "n,k"}
ATTENTION = "sum(softmax(Q @ K.T / sqrt(d), axis=1) @ V * G)"
ATTENTION_SHAPES = {"Q": "n,d", "K": "m,d", "V": "m,e", "G": "n,e"}
LAYERNORM = "sum(T * (layernorm(Z, eps=1e-5) * g + b))"
LAYERNORM_SHAPES = {"T": "n,d", "Z": "n,d", "g": "d", "b": "d"}

GRADIENTS = [
    # expression, shapes, variable, printed gradient
    ("sum((X @ W - Y)**2)", LEAST_SQUARES, "W", "2 Xᵀ(XW − Y)"),
    ("sum((X @ W - Y)**2)", LEAST_SQUARES, "X", "2 (XW − Y)Wᵀ"),
    ("R[i,j] = sum[k](X[i,k]*W[k,j]) - Y[i,j]; sum[i,j](R[i,j]**2)", LEAST_SQUARES, "W", "2 XᵀR"),
    (ATTENTION, ATTENTION_SHAPES, "V", "PᵀG"),
    ("-sum(T * log_softmax(Z, axis=-1))", {"T": "n,k", "Z": "n,k"}, "Z", "P ⊙ rowsum(T) − T"),
    ("-sum(T * log_softmax(Z, axis=-1))", {"T": "n,k:simplex", "Z": "n,k"}, "Z", "P − T"),
    (LAYERNORM, LAYERNORM_SHAPES, "g", "colsum(T ⊙ x̂)"),
    (LAYERNORM, LAYERNORM_SHAPES, "b", "colsum(T)"),
    ("sum[i,j](A[i,j]*x[i]**2)", {"A": "n,m", "x": "n"}, "x", "2 x ⊙ rowsum(A)"),
    (
        "c @ tanh(2*x + U @ tanh(x))",
        {"c": "n", "x": "n", "U": "n,n"},
        "U",
        "(c ⊙ (1 − tanh(2 x + U tanh(x))²)) tanh(x)ᵀ",
    ),
    ("trace(A) + 1", {"A": "n,n"}, "A", "I"),
    ("trace(A.T @ A) - 3", {"A": "n,n"}, "A", "2 A"),
    ("norm(x)", {"x": "n"}, "x", "x/r"),
    ("log(1 + exp(b))", {"b": ""}, "b", "sigmoid(b)"),
]


@pytest.mark.parametrize(("expression", "shapes", "variable", "printed"), GRADIENTS)
def test_gradient_prints_as_in_the_textbook(expression, shapes, variable, printed):
    assert str(derive(expression, shapes, variable).gradients[variable]) == printed


SPELLINGS = [
    # two spellings of one thing print alike
    ("sum((X @ W - Y)**2)", "sum[i,j]((sum[k](X[i,k]*W[k,j]) - Y[i,j])**2)", LEAST_SQUARES, "W"),
    ("sum(c * softmax(z))", "sum[i](c[i] * exp(z[i])/sum[j](exp(z[j])))", {"c": "n", "z": "n"}, "z"),
    ("logsumexp(z)", "log(sum[i](exp(z[i])))", {"z": "n"}, "z"),
    ("trace(A @ B)", "sum[i,j](A[i,j]*B[j,i])", {"A": "n,m", "B": "m,n"}, "A"),
    ("sum(x**2)", "x @ x", {"x": "n"}, "x"),
    ("mean(X, axis=0) @ c", "einsum('ij,j->', X, c) / n", {"X": "n,d", "c": "d"}, "X"),
    ("(X @ w) @ (X @ w)", "w @ X.T @ X @ w", {"X": "n,d", "w": "d"}, "w"),
]


@pytest.mark.parametrize(("first", "second", "shapes", "variable"), SPELLINGS)
def test_two_spellings_print_alike(first, second, shapes, variable):
    one, two = (derive(text, shapes, variable) for text in (first, second))
    assert str(one.gradients[variable]) == str(two.gradients[variable])


SECOND = [
    ("-z[y] + logsumexp(z)", {"z": "n", "y": ":index=n"}, "z", "P_i(δ_ij − P_j)"),
    ("x @ A @ x", {"A": "n,n", "x": "n"}, "x", "A_ij + A_ji"),
    ("trace(A @ A @ A)", {"A": "n,n"}, "A", "3 (δ_il A_jk + δ_jk A_li)"),
]


@pytest.mark.parametrize(("expression", "shapes", "variable", "printed"), SECOND)
def test_hessian(expression, shapes, variable, printed):
    program = parse(expression)
    assert hessian(build(program, shapes), variable, program).gradients[variable].index == printed


def test_softmax_jacobian_and_its_shape():
    program = parse("a = softmax(s)")
    found = jacobian(build(program, {"s": "n"}), "s", program)
    assert found.gradients["s"].index == "a_i(δ_ij − a_j)"
    assert [str(size) for size in found.gradients["s"].shape] == ["n", "n"]


@pytest.mark.parametrize("length", ["T", "2", "7"])
def test_the_derivation_of_a_recurrence_has_the_same_size_for_every_length(length):
    text = "h[0,k] = h_0[k]; h[t+1,k] = tanh(sum[l](W[k,l]*h[t,l]) + x[t,k]); sum(G * h)"
    shapes = {"h_0": "d", "W": "d,d", "x": f"{length},d", "G": "T+1,d" if length == "T" else f"{int(length) + 1},d"}
    found = derive(text, shapes, ["W", "x", "h_0"])
    assert len(found.system.equations) == 7
    assert all(step.checked for step in found.steps)


def test_products_agree_with_the_gradient_of_a_contraction():
    shapes = {"A": "n,n", "x": "n", "v": "n"}
    program = parse("sum(tanh(A @ x)**2)")
    system = build(program, {name: shapes[name] for name in ("A", "x")})
    product = hvp(system, "x", "v", program)
    assert product.gradients["x_grad"].shape == system.arrays["x"].shape
    change = jvp(system, {"x": "v"}, program)
    assert "v" in str(change.gradients["L"])


def test_every_step_says_how_it_was_checked():
    found = derive(ATTENTION, ATTENTION_SHAPES, ["Q", "K", "V"])
    assert all(step.reason and step.checked for step in found.steps)
    assert {step.rule for step in found.steps} >= {"forward", "chain rule", "kept names", "substitute"}


def test_a_temperature_and_a_missing_scale_change_the_derived_backward():
    plain = derive("sum(softmax(Q @ K.T, axis=1) @ V * G)", ATTENTION_SHAPES, "Q")
    scaled = derive(ATTENTION, ATTENTION_SHAPES, "Q")
    warm = derive("sum(softmax(Q @ K.T / tau, axis=1) @ V * G)", {**ATTENTION_SHAPES, "tau": ""}, "Q")
    assert len({str(d.gradients["Q"]) for d in (plain, scaled, warm)}) == 3


def test_a_user_defined_intermediate_keeps_its_name():
    program = parse("S = X @ W; A = tanh(S); sum(A * G)")
    system = build(program, {"X": "n,d", "W": "d,k", "G": "n,k"})
    assert str(derive_system(system, "W", None, (), program).gradients["W"]) == "Xᵀ(G ⊙ (1 − A⊙²))"

"""Derivations: the printed result of each row, and every step checked. One row, one fact."""

import copy
import pickle

import pytest

from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.derivation import derive_system
from gradproof.symbolic.deriving.products import hessian, hvp, jacobian, jvp
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse

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


NAMED = [
    # statements, the printed definitions: a name goes to the value as a whole, not to a part of it
    ("r = norm(g); sum(r * u)", ["r = ‖g‖"]),
    ("r = -norm(g); sum(r * u)", ["r₁ = ‖g‖", "r = −r₁"]),
    ("P = -softmax(g); sum(P * u)", ["P₁ = softmax(g)", "P = −P₁"]),
    ("P = softmax(A).T; sum(P.T @ u)", ["P₁ = softmax(A)", "P = P₁ᵀ"]),
    # the start of a recurrence is printed where it says more than its name
    ("h[0,i] = h_0[i]; h[t+1,i] = h[t,i]*A[t,i]; sum(h * h)", ["h_t = A_{t−1} ⊙ h_{t−1},  t = 1 … T"]),
    ("h[0,i] = u[i]; h[t+1,i] = h[t,i]*A[t,i]; sum(h * h)", ["h_0 = u", "h_t = A_{t−1} ⊙ h_{t−1},  t = 1 … T"]),
]


@pytest.mark.parametrize(("statements", "printed"), NAMED)
def test_definitions(statements, printed):
    shapes = {"g": "n", "u": "n", "h_0": "n", "A": "T,n"}
    used = {name: shape for name, shape in shapes.items() if name in statements.replace("h[0", "")}
    found = derive(statements, used)
    assert [found.line(e) for e in found.definitions if e.name in found.forward.defined] == printed


def test_the_second_derivation_says_what_it_starts_from():
    program = parse("-l[y] + logsumexp(l)")
    system = build(program, {"l": "N", "y": ":index=N"})
    for found in (hessian(system, ["l"], program), hvp(system, "l", "v", program)):
        assert [step.rule for step in found.steps if step.rule in ("forward", "once more")] == ["forward", "once more"]


# Expressions without a value at most points, and what they give.
NARROW = [
    ("sum(log(x - 5))", {"x": "n"}, "1 ⊘ (x − 5)"),
    ("sum(sqrt(x - 100) + sqrt(3 - y))", {"x": "n", "y": "n"}, "1 ⊘ (2 √(x − 100))"),
    ("sum(log(log(log(x))))", {"x": "n"}, "1 ⊘ (x ⊙ log(x) ⊙ log(log(x)))"),
    ("log(0.1 - norm(x))", {"x": "n"}, "−x/((1/10 − r) r)"),
    ("log(det(x @ x.T))", {"x": "m,n"}, "2 M⁻¹x"),
    ("x[6]*x[20]", {"x": "n"}, "x_20 e₆ + x_6 e₂₀"),
]


@pytest.mark.parametrize(("text", "shapes", "gradient"), NARROW)
def test_narrow_domains(text, shapes, gradient) -> None:
    assert str(derive(text, shapes).gradients["x"]) == gradient


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("sum(log(-x**2))", {"x": "n"}, "no random point could be evaluated: log outside its domain"),
        ("b @ inv(outer(x, x)) @ b", {"b": "n", "x": "n"}, "M is singular wherever it was looked at"),
    ],
)
def test_no_domain(text, shapes, message) -> None:
    with pytest.raises(GradproofError, match=message):
        derive(text, shapes)


def test_steps_are_checked_where_every_sum_has_a_term() -> None:
    """v[t] v[t+9] is not there before ten entries are."""
    checked = [step.checked for step in derive("sum[t=0:n-9](v[t]*v[t+9])", {"v": "n"}).steps if "n=" in step.checked]
    assert checked and all(int(text.rpartition("n=")[2].rstrip(")")) > 9 for text in checked)


# Changes along given directions, as printed.
CHANGES = [
    ("softmax(A @ x)", {"A": "m,n", "x": "n"}, {"x": "dx"}, "P ⊙ (Ṡ − PᵀṠ)"),
    ("logsumexp(x)", {"x": "n"}, {"x": "dx"}, "Pᵀ dx"),
    (
        "softmax(Q @ K.T, axis=1) @ V",
        {"Q": "n,d", "K": "m,d", "V": "m,e"},
        {"Q": "dQ"},
        "(P ⊙ (Ṡ − rowsum(P ⊙ Ṡ)))V",
    ),
]


@pytest.mark.parametrize(("text", "shapes", "directions", "change"), CHANGES, ids=[row[0] for row in CHANGES])
def test_changes(text, shapes, directions, change) -> None:
    found = jvp(build(text, shapes), directions, parse(text))
    (gradient,) = found.gradients.values()
    assert str(gradient) == change


# Focal loss, entropy and divergence in the names p and log p; sums over powers of one matrix.
TEXTBOOK = [
    ("p = softmax(z); -(1 - p[y])**2*log(p[y])", {"z": "n", "y": ":index=n"}, "−log(p_y) (1 − p_y)²", []),
    ("p = softmax(z); sum(p*log(p))", {"z": "n"}, "log(p)ᵀp", ["p = softmax(z)", "p̄ = log(p)", "z̄ = p ⊙ (p̄ − pᵀp̄)"]),
    ("trace(A @ A @ A)", {"A": "n,n"}, "tr(A³)", ["Ā = 3 (A²)ᵀ"]),
    ("sum(log(cosh(x)))", {"x": "n"}, "sum(log(cosh(x)))", ["x̄ = tanh(x)"]),
    ("sum(a/(a + b))", {"a": "n", "b": "n"}, "sum(a ⊘ (a + b))", ["ā = b ⊘ (a + b)²", "b̄ = −a ⊘ (a + b)²"]),
    (
        "sum(layernorm(X @ W)*G)", {"X": "n,d", "W": "d,k", "G": "n,k"}, "sum(G ⊙ x̂)",
        ["Z̄ = diag(s)⁻¹ (G − rowmean(G) − x̂ ⊙ rowmean(G ⊙ x̂))", "X̄ = Z̄Wᵀ", "W̄ = XᵀZ̄", "Ḡ = x̂"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes", "value", "lines"), TEXTBOOK, ids=[row[0] for row in TEXTBOOK])
def test_as_in_textbooks(text, shapes, value, lines) -> None:
    found = derive(text, shapes)
    assert found.value.partition(" = ")[2] == value
    assert found.lines()[len(found.lines()) - len(lines) :] == lines
    assert not any("log(Z)" in line for line in found.lines())


@pytest.mark.parametrize(
    "text", ["softmax(x) @ y", "E[w[0]] @ x + sum[t=0:n-1](x[t]*x[t+1])", "logdet(S) + x @ inv(S) @ y"]
)
def test_a_derivation_is_copied_and_stored(text):
    shapes = {"x": "n", "y": "n", "E": "V,n", "w": "b:index=V", "S": "n,n:psd"}
    found = derive(text, shapes, ["x"])
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other.lines() == found.lines()
        assert other.system == found.system
        assert [step.after for step in other.steps] == [step.after for step in found.steps]

"""What an array is, is data: whatever a user calls an array, it prints as named and its derivative is right."""

import pytest

from gradproof.numeric.crosschecks import crosscheck
from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.deriving.products import jvp
from gradproof.symbolic.equations.calculus import adjoint, tangent
from gradproof.symbolic.equations.roles import Kind
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse
from gradproof.symbolic.printing.latex import equation_latex
from gradproof.symbolic.printing.text import equation_text

# a name, how it is printed as text and in LaTeX
ENDINGS = [
    ("x_bar", "x_bar", r"x_{\mathrm{bar}}"),
    ("x_dot", "x_dot", r"x_{\mathrm{dot}}"),
    ("x_inv", "x_inv", r"x_{\mathrm{inv}}"),
    ("x_grad", "x_grad", r"x_{\mathrm{grad}}"),
    ("x_hat", "x̂", r"\hat{x}"),
    ("x_tilde", "x̃", r"\tilde{x}"),
    ("L_bar", "L_bar", r"L_{\mathrm{bar}}"),
    ("A_inv", "A_inv", r"A_{\mathrm{inv}}"),
    ("f_grad", "f_grad", r"f_{\mathrm{grad}}"),
    ("x_bar_dot", "x_{bar,dot}", r"x_{\mathrm{bar},\mathrm{dot}}"),
]
OPERATORS = [
    (name, name, rf"\mathrm{{{name}}}")
    for name in [
        "inv",
        "det",
        "logdet",
        "softmax",
        "logsumexp",
        "layernorm",
        "exp",
        "log",
        "sqrt",
        "tanh",
        "relu",
        "sigmoid",
        "erf",
        "norm",
        "tr",
        "trace",
        "diag",
        "outer",
        "where",
        "einsum",
        "eye",
        "ones",
        "zeros",
        "inf",
    ]
]
LETTERS = [
    (letter, letter, letter)
    for letter in ["L", "P", "E", "I", "S", "N", "Z", "M", "F", "G", "T", "d", "l", "e", "r", "s", "c", "v", "m1"]
    if len(letter) == 1
]
GREEK = [("pi", "π", r"\pi"), ("beta", "β", r"\beta"), ("delta", "δ", r"\delta"), ("mu", "μ", r"\mu")]
CHOSEN = [  # names that a derivation would choose for its own arrays
    ("h_0", "h₀", "h_{0}"),
    ("J_x", "J_x", "J_{x}"),
    ("H_x", "H_x", "H_{x}"),
    ("D_x", "D_x", "D_{x}"),
    ("Hv", "Hv", r"\mathrm{Hv}"),
]
NAMES = [*ENDINGS, *OPERATORS, *LETTERS, *GREEK, *CHOSEN]


def agrees(found: Derivation, against: tuple[str, ...] = ("torch", "differences", "mpmath")) -> None:
    report = crosscheck(found, against=against, device="cpu")
    assert report.passed
    for kind in against:
        assert any(row.error is not None for row in report.rows if row.against == kind), f"nothing compared with {kind}"


def entry(text: str, simple: bool, latex: bool = False) -> str:
    """The entry i of an array: an index below a name that has one already stands behind brackets."""
    base = text if simple else f"({text})"
    return f"{base}_{{i}}" if latex else f"{base}_i"


@pytest.mark.parametrize(("name", "text", "latex"), NAMES)
def test_an_input_prints_as_named(name: str, text: str, latex: str) -> None:
    """L = Σ a² x: the gradient by x is a²."""
    found = derive(f"sum({name}**2 * x)", {name: "m", "x": "m"})
    gradient = found.gradients["x"]
    assert (str(gradient), gradient.latex) == (f"{text}²", f"{latex}^{{2}}")
    simple = "_" not in latex
    assert gradient.index == f"{entry(text, simple)}²"
    (equation,) = found.system.defined[gradient.equation.name]
    printed = equation_latex(equation, found.system, "index")
    assert printed == rf"\bar{{x}}_{{i}} = {entry(latex, simple, True)}^{{2}}"
    assert found.forward.arrays[name].role.kind is Kind.PLAIN
    agrees(found)


@pytest.mark.parametrize(("name", "text", "latex"), NAMES)
def test_an_intermediate_prints_as_named(name: str, text: str, latex: str) -> None:
    """a = A x, L = Σ a²: what is defined prints as named in both forms; Ā = 2 a xᵀ."""
    found = derive(f"{name} = A @ x; sum({name}**2)", {"A": "m,n", "x": "n"})
    (definition,) = found.forward.defined[name]
    assert equation_text(definition, found.forward) == f"{text} = Ax"
    assert equation_latex(definition, found.forward) == f"{latex} = A x"
    assert equation_text(definition, found.forward, "index") == f"{entry(text, '_' not in latex)} = Σ_j A_ij x_j"
    assert found.lines()[0] == f"{text} = Ax"
    agrees(found)


@pytest.mark.parametrize("name", [row[0] for row in NAMES])
def test_a_change_and_a_second_derivative_of_it_are_checked(name: str) -> None:
    """What is asked of a result goes by its role, also where its name looks like another one."""
    text, shapes = f"{name} = tanh(x) * x; sum({name}**2)", {"x": "n"}
    program = parse(f"{name} = tanh(x) * x; {name}")
    agrees(jvp(build(program, shapes), {"x": "w"}, program))
    agrees(derive(text, shapes, hvp="w", wrt="x"), ("torch", "mpmath"))
    agrees(derive(text, shapes, order=2, wrt="x"), ("torch", "mpmath"))


MATRICES = [
    ("A_inv = A.T; sum((A_inv @ x)**2)", {"A": "n,n", "x": "n"}, ["A_inv = Aᵀ", "Ā = 2 xxᵀA_invᵀ", "x̄ = 2 A_invᵀA_inv x"]),
    ("sum(A_inv*x_grad)", {"A_inv": "n,n", "x_grad": "n,n"}, ["Ā_inv = x_grad", "x̄_grad = A_inv"]),
    ("x @ inv(A_inv) @ x", {"A_inv": "n,n", "x": "n"}, ["x̄ = (A_inv⁻¹ + A_inv⁻ᵀ)x"]),
    ("A_inv = A + A.T; trace(inv(A) @ A_inv)", {"A": "n,n"}, ["A_inv = A + Aᵀ"]),
    ("trace(A) + sum(I*A)", {"A": "n,n", "I": "n,n"}, ["Ā = 𝐈 + I", "Ī = A"]),
    ("x[2] + sum(e)", {"x": "n", "e": "n"}, ["x̄ = 𝐞₂", "ē = 𝟏"]),
    ("E[1,1]**2", {"E": "3,3"}, ["Ē = 2 E_11 𝐄₁₁"]),
    ("sum(erf(pi*x))", {"x": "n", "pi": ""}, ["x̄ = (2 π/√𝛑) exp(−π² x²)"]),
    ("d = det(A); l = logdet(A); d*l", {"A": "n,n"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes", "lines"), MATRICES, ids=[row[0] for row in MATRICES])
def test_a_name_beside_a_sign(text: str, shapes: dict[str, str], lines: list[str]) -> None:
    found = derive(text, shapes)
    assert set(lines) <= set(found.lines())
    agrees(found)


def test_the_mean_called_x_bar_is_no_adjoint() -> None:
    found = derive("x_bar = mean(x); sum((x - x_bar)**2)", {"x": "n"})
    assert found.lines()[0] == "x_bar = mean(x)"
    assert found.gradients["x"].equation.name == found.system.adjoint_of("x") != "x_bar"
    assert found.lines()[-1].startswith("x̄ = ")
    agrees(found)


# an expression, its shapes, form, and the printed value and gradients: letters are those that were typed
TYPED = [
    ("y[o,i,j] = sum[c,u,v](K[o,c,u,v]*x[c,i+u,j+v]); sum(y**2)", {"K": "O,C,k,l", "x": "C,n+k-1,m+l-1"},
     ["y_oij = Σ_cuv K_ocuv x_{c,i+u,j+v}", "K̄_ocuv = 2 Σ_ij y_oij x_{c,i+u,j+v}"]),
    ("R[a,b] = sum[k](X[a,k]*W[k,b]); sum[a,b](R[a,b]**2)", {"X": "n,d", "W": "d,k"},
     ["R_ab = Σ_k X_ak W_kb", "X̄_ak = 2 Σ_b R_ab W_kb", "W̄_kb = 2 Σ_a X_ak R_ab"]),
    ("h[0,k] = 0; h[s+1,k] = tanh(sum[l](W[k,l]*h[s,l]) + z[s,k]); sum(h*G)", {"W": "d,d", "z": "T,d", "G": "T+1,d"},
     ["h_sk = tanh(Σ_l W_kl h_{s−1,l} + z_{s−1,k}),  s = 1 … T", "W̄_kl = Σ_{s=1}^T h̄_sk h_{s−1,l}(1 − h_sk²)"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes", "lines"), TYPED, ids=[row[0] for row in TYPED])
def test_letters_stay_the_users(text: str, shapes: dict[str, str], lines: list[str]) -> None:
    assert set(lines) <= set(derive(text, shapes).lines("index"))


SOFTMAX = [  # over which axis, the matrix form, the index form, LaTeX of both
    ("softmax(X)", "P = softmax(X)", "P_ij = softmax_j(X_ij)", r"\operatorname{softmax}(X)",
     r"\operatorname{softmax}_{j}(X_{ij})"),
    ("softmax(X, axis=0)", "P = softmax_{axis=0}(X)", "P_ij = softmax_i(X_ij)",
     r"\operatorname{softmax}_{\mathrm{axis}=0}(X)", r"\operatorname{softmax}_{i}(X_{ij})"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "matrix", "index", "matrix_latex", "index_latex"), SOFTMAX)
def test_a_softmax_prints_its_axis(text: str, matrix: str, index: str, matrix_latex: str, index_latex: str) -> None:
    system = build(text, {"X": "n,m"})
    (equation,) = system.defined[system.outputs[0]]
    assert (equation_text(equation, system), equation_text(equation, system, "index")) == (matrix, index)
    forms = [equation_latex(equation, system, form).partition(" = ")[2] for form in ("matrix", "index")]
    assert forms == [matrix_latex, index_latex]


def test_what_refers_to_another_array_is_looked_up() -> None:
    system = adjoint(build("x_bar = 2*x; y = tanh(x_bar); sum(y**2)", {"x": "n"}), ["x"])
    for name in ("x", "x_bar", "y"):
        role = system.arrays[system.adjoint_of(name)].role
        assert (role.kind, role.of) == (Kind.ADJOINT, name)
    assert system.adjoint_of("x") not in ("x", "x_bar")
    changed = tangent(build("sum(x**2)", {"x": "n", "x_dot": "n"}), {"x": "v"})
    assert changed.tangent_of("x") == "v" and changed.arrays["v"].role.along == "v"
    with pytest.raises(GradproofError, match="there is no tangent of x here"):
        system.tangent_of("x")


def test_roles_follow_a_renaming() -> None:
    system = adjoint(build("y = tanh(x); sum(y**2)", {"x": "n"}), ["x"]).renamed({"x": "z", "y_bar": "u"})
    assert system.arrays[system.adjoint_of("z")].role.marked  # it is printed as z̄
    assert system.adjoint_of("y") == "u" and not system.arrays["u"].role.marked  # as u

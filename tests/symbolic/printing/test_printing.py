"""How formulas are written: names, letters, entries, LaTeX."""

import re

import latex2mathml.converter
import pytest
from matrix_forms import FORMS, ROLES, shapes_of
from sympy import Integer, Rational, oo, sqrt

from gradproof.symbolic.derive import derive
from gradproof.symbolic.equations.expr import Access, Index, Size, compare, delta, sum_
from gradproof.symbolic.equations.roles import Kind, Role
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.printing.latex import (
    LatexPrinter,
    equation_latex,
    expression_latex,
    markdown_safe,
    system_latex,
)
from gradproof.symbolic.printing.text import TextPrinter, equation_text, expression_text, plain_name, shape_text

NAMES = [
    ("X", "X", "X"),
    ("X_bar", "X_bar", r"X_{\mathrm{bar}}"),
    ("X_dot", "X_dot", r"X_{\mathrm{dot}}"),
    ("W_Q", "W_Q", "W_{Q}"),
    ("W_out", "W_out", r"W_{\mathrm{out}}"),
    ("W1", "W₁", "W_{1}"),
    ("b_1", "b₁", "b_{1}"),
    ("alpha", "α", r"\alpha"),
    ("eps", "ε", r"\varepsilon"),
    ("lam", "λ", r"\lambda"),
    ("xhat", "x̂", r"\hat{x}"),
    ("xhat1", "x̂₁", r"\hat{x}_{1}"),
    ("logits", "logits", r"\mathrm{logits}"),
    ("A_inv", "A_inv", r"A_{\mathrm{inv}}"),
    ("x_grad", "x_grad", r"x_{\mathrm{grad}}"),
    ("d_k", "d_k", "d_{k}"),
    ("h_t_alpha", "h_{t,α}", r"h_{t,\alpha}"),
]


@pytest.mark.parametrize(("name", "text", "latex"), NAMES)
def test_name(name: str, text: str, latex: str) -> None:
    system = System({}, (), ())
    assert plain_name(name)[0] == text
    assert LatexPrinter(system).name(name) == latex


ADJOINT, TANGENT, GRADIENT, INVERSE = Kind.ADJOINT, Kind.TANGENT, Kind.GRADIENT, Kind.INVERSE

# role, the array that it belongs to, and how it is printed, whatever its name is
MARKED = [
    (ADJOINT, "X", "X̄", r"\bar{X}"),
    (ADJOINT, "A", "Ā", r"\bar{A}"),
    (TANGENT, "X", "Ẋ", r"\dot{X}"),
    (ADJOINT, "W_Q", "W̄_Q", r"\bar{W}_{Q}"),
    (ADJOINT, "W1", "W̄₁", r"\bar{W}_{1}"),
    (ADJOINT, "mu", "μ̄", r"\bar{\mu}"),
    (ADJOINT, "xhat", "bar(x̂)", r"\bar{\hat{x}}"),
    (ADJOINT, "logits", "l̅o̅g̅i̅t̅s̅", r"\overline{\mathrm{logits}}"),
    (INVERSE, "A", "A⁻¹", "A^{-1}"),
    (GRADIENT, "x", "∇_x", r"\nabla_{x}"),
    (GRADIENT, "W_Q", "∇_{W_Q}", r"\nabla_{W_{Q}}"),
]


@pytest.mark.parametrize(("kind", "of", "text", "latex"), MARKED)
@pytest.mark.parametrize("name", ["a", "X_bar", "A_inv"])
def test_mark_of_a_role(name: str, kind: Kind, of: str, text: str, latex: str) -> None:
    system = System({name: Array(name, role=Role(kind, of))}, (), ())
    assert TextPrinter(system).name(name) == text
    assert LatexPrinter(system).name(name) == latex


def test_latex_name_of_an_array_and_of_its_adjoint() -> None:
    source = Array("Y", (Size("n"),), latex=r"\mathcal{Y}")
    system = System({"Y": source, "Y_bar": source.like("Y_bar", Role(ADJOINT, "Y"))}, (), ())
    printer = LatexPrinter(system)
    assert printer.name("Y_bar", (Index("i"),)) == r"\bar{\mathcal{Y}}_{i}"
    assert TextPrinter(system).name("Y_bar", (Index("i"),)) == "Ȳ_i"


NUMBERS = [
    (Integer(-3), "−3", "-3"),
    (Rational(2, 3), "2/3", r"\frac{2}{3}"),
    (Rational("0.044715"), "0.044715", "0.044715"),
    (Rational("1e-5"), "10⁻⁵", "10^{-5}"),
    (sqrt(2) / 2, "√2/2", r"\frac{\sqrt{2}}{2}"),
    (1 / sqrt(Size("d_k")), "1/√d_k", r"\frac{1}{\sqrt{d_{k}}}"),
    (-oo, "−∞", r"-\infty"),
    (Index("t") - 1, "t − 1", "t - 1"),
    (Size("n") - Index("t") - 1, "n − t − 1", "n - t - 1"),
    (2 * Index("i") + 1, "2 i + 1", "2 i + 1"),
]


@pytest.mark.parametrize(("number", "text", "latex"), NUMBERS, ids=[row[1] for row in NUMBERS])
def test_number(number: object, text: str, latex: str) -> None:
    system = System({}, (), ())
    assert TextPrinter(system).expr(number)[0] == text
    assert LatexPrinter(system).expr(number)[0] == latex


# expression, its index form, its LaTeX in index form
ENTRIES = [
    ("2*X.T @ (X @ W - Y)", "F_jk = 2 Σ_i X_ij(Σ_m X_im W_mk − Y_ik)",
     r"F_{jk} = 2 \sum_{i} X_{ij} \left(\sum_{m} X_{im} W_{mk} - Y_{ik}\right)"),
    ("R[i,j] = p[i]*(delta(i,j) - p[j])", "R_ij = p_i(δ_ij − p_j)", r"R_{ij} = p_{i} (\delta_{ij} - p_{j})"),
    ("r[i] = p[i] - delta(i,c)", "r_i = p_i − 1[i = c]", r"r_{i} = p_{i} - \mathbf{1}_{i = c}"),
    ("P*(A_bar - sum(P*A_bar, axis=1, keepdims=True))", "F_ij = P_ij(Ā_ij − Σ_k Ā_ik P_ik)",
     r"F_{ij} = P_{ij} \left(\bar{A}_{ij} - \sum_{k} \bar{A}_{ik} P_{ik}\right)"),
    ("(u - mean(u) - xhat*mean(u*xhat))/s", "F_i = (1/s)[u_i − (1/n) Σ_j u_j − (1/n) x̂_i Σ_j u_j x̂_j]",
     r"F_{i} = \frac{1}{s} \left[u_{i} - \frac{1}{n} \sum_{j} u_{j} - \frac{1}{n} \hat{x}_{i} \sum_{j} u_{j} "
     r"\hat{x}_{j}\right]"),
    ("S_bar @ K/sqrt(d)", "F_ik = (1/√d) Σ_j S̄_ij K_jk", r"F_{ik} = \frac{1}{\sqrt{d}} \sum_{j} \bar{S}_{ij} K_{jk}"),
    ("x/y", "F_i = x_i/y_i", r"F_{i} = \frac{x_{i}}{y_{i}}"),
    ("prod(x)", "L = ∏_i x_i", r"L = \prod_{i} x_{i}"),
    ("where(A > 0, A, 0)", "F_ij = where(A_ij > 0, A_ij, 0)", r"F_{ij} = \operatorname{where}(A_{ij} > 0, A_{ij}, 0)"),
    ("sum[j=0:n-1](x[j]*x[j+1])", "L = Σ_{j=0}^{n−2} x_j x_{j+1}", r"L = \sum_{j=0}^{n-2} x_{j} x_{j+1}"),
    ("r[j] = o[2]*A[j,q[j]]", "r_j = A_{j,q_j} o_2", r"r_{j} = A_{j,q_{j}} o_{2}"),
    ("W_Q @ W_Q.T", "F_ik = Σ_j (W_Q)_ij(W_Q)_kj", r"F_{ik} = \sum_{j} (W_{Q})_{ij} (W_{Q})_{kj}"),
    ("1/(x @ y)", "L = 1/(Σ_i x_i y_i)", r"L = \frac{1}{\sum_{i} x_{i} y_{i}}"),
    ("(x @ y)*z", "F_i = z_i Σ_j x_j y_j", r"F_{i} = z_{i} \sum_{j} x_{j} y_{j}"),
    ("tanh(A @ x + y)", "F_i = tanh(Σ_j A_ij x_j + y_i)", r"F_{i} = \tanh\left(\sum_{j} A_{ij} x_{j} + y_{i}\right)"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "text", "latex"), ENTRIES, ids=[row[0] for row in ENTRIES])
def test_entries(expression: str, text: str, latex: str) -> None:
    system = build(expression, shapes_of(expression)).with_roles(ROLES)
    (equation,) = system.defined[system.outputs[0]]
    assert equation_text(equation, system, "index") == text
    assert equation_latex(equation, system, "index") == latex


LATEX = [
    ("2*X.T @ (X @ W - Y)", r"2 X^{\top} (X W - Y)"),
    ("S_bar.T @ X/sqrt(d)", r"\frac{\bar{S}^{\top} X}{\sqrt{d}}"),
    ("diag(p) - outer(p, p)", r"\operatorname{diag}(p) - p p^{\top}"),
    ("P*(A_bar - sum(P*A_bar, axis=1, keepdims=True))",
     r"P \odot (\bar{A} - \operatorname{rowsum}(\bar{A} \odot P))"),
    ("R_bar + Q_bar @ W_Q.T + K_bar @ W_K.T", r"\bar{R} + \bar{Q} W_{Q}^{\top} + \bar{K} W_{K}^{\top}"),
    ("(u - mean(u) - xhat*mean(u*xhat))/s",
     r"\frac{1}{s} \left[u - \operatorname{mean}(u) - \hat{x} \operatorname{mean}(u \odot \hat{x})\right]"),
    ("X @ W_1 + b_1", r"X W_{1} + \mathbf{1} b_{1}^{\top}"),
    ("1 - A**2", r"1 - A^{\odot 2}"),
    ("1 - x**2", r"1 - x^{2}"),
    ("A/B", r"A \oslash B"),
    ("sum((X @ W - Y)**2)", r"\lVert X W - Y \rVert_{F}^{2}"),
    ("A/2 + A.T/2", r"\frac{1}{2} (A + A^{\top})"),
    ("inv(A).T", r"A^{-\top}"),
    ("-inv(A) @ (x - y)", r"-A^{-1} (x - y)"),
    ("abs(x)", r"\lvert x \rvert"),
    ("softmax(P)", r"\operatorname{softmax}(P)"),
    ("relu(X @ W)", r"\operatorname{ReLU}(X W)"),
    ("exp(x @ y/s)", r"\exp\left(\frac{x^{\top} y}{s}\right)"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "latex"), LATEX, ids=[row[0] for row in LATEX])
def test_latex(expression: str, latex: str) -> None:
    system = build(expression, shapes_of(expression)).with_roles(ROLES)
    (equation,) = system.defined[system.outputs[0]]
    assert equation_latex(equation, system).partition(" = ")[2] == latex


# What KaTeX knows of what is written here; a new command has to be looked up in its list of functions first.
KATEX = r"""
    \bar \dot \hat \tilde \overline \widehat \widetilde \mathrm \mathbf \operatorname \top \odot \oslash \cdot \infty
    \frac \sqrt \sum \prod \max \left \right \lVert \rVert \lvert \rvert \le \ge \ne \ldots \quad \delta \gamma \lambda
    \exp \log \tanh \sin \cos \pi \sigma \nabla \, \varepsilon \alpha \mu \beta \thinspace \cr \theta
"""


@pytest.mark.parametrize("expression", [row[0] for row in FORMS])
@pytest.mark.parametrize("form", ["matrix", "index"])
def test_latex_is_plain(expression: str, form: str) -> None:
    system = build(expression, shapes_of(expression)).with_roles(ROLES)
    latex = system_latex(system.defined[system.outputs[0]], system, form)
    inside = latex.removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    assert set(re.findall(r"\\(?:[a-zA-Z]+|.)", inside)) <= {*KATEX.split(), "\\\\"}
    assert inside.count("{") == inside.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")
    assert "<math" in latex2mathml.converter.convert(latex)
    assert not re.search(r"\S_|_\S|\\\\|\\,", markdown_safe(inside))


def test_letters_belong_to_sizes() -> None:
    system = build("A = softmax(S); R = A @ V; sum(R*G)", {"S": "n,m", "V": "m,d", "G": "n,d"})
    lines = [equation_text(equation, system, "index") for equation in system.equations if equation.origin is None]
    assert lines[-2:] == ["R_ik = Σ_j A_ij V_jk", "L = Σ_ik G_ik R_ik"]


def test_letters_avoid_names_and_can_be_given() -> None:
    system = build("softmax(i)", {"i": "k"})
    (equation,) = system.defined[system.outputs[0]]
    assert equation_text(equation, system, "index") == "P_j = softmax_j(i_j)"
    assert equation_text(equation, system, "index", {"k": "r"}) == "P_r = softmax_r(i_r)"
    assert equation_text(equation, system, "index", {"o0": "s"}) == "P_s = softmax_s(i_s)"


def test_steps_are_called_t() -> None:
    system = build("sum(X, axis=1)", {"X": "T,d"})
    (equation,) = system.defined[system.outputs[0]]
    assert equation_text(equation, system, "index") == "F_t = Σ_i X_ti"


def test_conditions_stand_under_the_sum() -> None:
    i, j, t, n, m = Index("o0"), Index("j"), Index("t"), Size("n"), Size("m")
    arrays = {"G": Array("G", (m,)), "w": Array("w", (m,), below=n), "y": Array("y", (n,))}
    system = System(arrays, (), ())
    looked_up = sum_(delta(i, Access("w", t)) * Access("G", t), [(t, 0, m)])
    assert expression_text(looked_up, [i], system, "index", {"1": "v"}) == "Σ_{i: w_i = v} G_i"
    band = sum_(compare("<=", j, i) * compare("<", i - m, j) * Access("G", j), [(j, 0, m)])
    equation = Equation("y", (i,), ((i, Integer(0), n),), band)
    assert equation_text(equation, system, "index") == "y_j = Σ_{i: j−m < i ≤ j} G_i"
    assert equation_latex(equation, system, "index") == r"y_{j} = \sum_{i: j-m < i \le j} G_{i}"


def test_a_condition_with_a_sum_stands_before_the_term() -> None:
    text = "sum[r](a[r]*sum[k](W[r,k]*X[i,k]*(sum[j](W[r,j]*X[i,j]) < 0)))"
    last = derive(text, {"a": "h", "W": "h,d", "X": "n,d"}, "a", cotangent="G").steps[-1]
    assert last.shown(last.after) == ["ā_r = Σ_i 1[Σ_k X_ik W_rk < 0] G_i Σ_k X_ik W_rk"]


def test_long_equations_break() -> None:
    names = "ABCDEGHK"
    shapes = {**dict.fromkeys(names, "n,m"), **dict.fromkeys(names.lower(), "m")}
    system = build(" + ".join(f"tanh({c} @ {c.lower()})" for c in names), shapes)
    block = system_latex(system.equations, system)
    assert block.startswith("\\begin{aligned}\nF &= ")
    first, *rest = block.splitlines()[1:-1]
    assert first.endswith(r" \\") and rest and all(line.startswith(r"&\quad + ") for line in rest)
    assert all(len(re.sub(r"\\tanh", "tanh", line)) < 100 for line in (first, *rest))


def test_expression_and_shape() -> None:
    system = build("X @ W", {"X": "n,d", "W": "d,h+1"})
    (equation,) = system.equations
    assert expression_text(equation.body, equation.place, system) == "XW"
    assert expression_latex(equation.body, equation.place, system) == "X W"
    assert shape_text(system.arrays["W"], system) == "d×(h + 1)"
    assert shape_text(Array("s"), system) == "scalar"

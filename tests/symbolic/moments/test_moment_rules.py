"""Rules of moment algebra one by one, what is refused, how steps are told; and a wrong rule never passes its check."""

from __future__ import annotations

from typing import Any

import mpmath
import pytest
from sympy import Symbol, expand

from gradproof.symbolic import moments
from gradproof.symbolic.equations.evaluate import HighPrecision, Point
from gradproof.symbolic.equations.expr import Access
from gradproof.symbolic.equations.laws import CentralMoment
from gradproof.symbolic.errors import ExpressionError, GradproofError, RuleError, ShapeError
from gradproof.symbolic.folding.checks import StepError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.moments import closed, cumulants, derivation, integral, one_entry

UNIT = {"q": "d:iid=0,1", "k": "d:iid=0,1"}
# kind, expression, declarations
DOT = ("variance", "sum[l](q[l]*k[l])", {"q": "d:iid=mu_q,sigma_q**2", "k": "d:iid=mu_k,sigma_k**2"})
SCALED = ("variance", "q @ k / sqrt(d)", UNIT)
AVERAGE = ("expectation", "sum[s=0:t]((1-b)*b**(t-1-s)*g[s])", {"g": "t:iid=mu,sigma**2", "b": ""})
STEPWISE = ("expectation", "m[0]=0; m[s+1]=b*m[s]+(1-b)*g[s]; m[t]/(1 - b**t)", AVERAGE[2])
HE = ("variance", "W @ relu(z)", {"W": "m,n:iid=0,s_w**2", "z": "n:iid=0,s**2:even"})
TWO = (
    "variance",
    "W_2 @ relu(W_1 @ x)",
    {"W_1": "h,n:iid=0,s_1**2:even", "W_2": "m,h:iid=0,s_2**2", "x": "n:iid=mu,s_x**2"},
)
SMOOTHED = ("expectation", "(1-c)*eye(V)[y] + c/V", {"y": ":categorical=p", "p": "V:simplex", "c": ""})

# kind, expression, declarations, the formula stated by hand
MORE = [
    ("expectation", "mean((x-mean(x))**2)*n/(n-1)", {"x": "n:iid=mu,v"}, "v"),
    ("variance", "mean((x-mean(x))**2)*n/(n-1)", {"x": "n:normal=mu,s**2"}, "2*s**4/(n-1)"),
    ("variance", "W @ where(z > 0, z, a*z)", {**HE[2], "a": ""}, "n*s_w**2*s**2*(1 + a**2)/2"),
    ("variance", "W @ (d*step(z))", {"W": "m,n:iid=0,s_w**2", "d": "n:iid=0,v", "z": "n:normal=0,1"}, "n*s_w**2*v/2"),
    ("variance", "theta - lr*mean(g, axis=0)", {"theta": "d", "g": "B,d:iid=mu,v", "lr": ""}, "lr**2*v/B"),
    ("variance", "x @ A @ y", {"x": "n:iid=0,1", "y": "m:iid=0,v", "A": "n,m"}, "v*sum(A**2)"),
    ("variance", "trace(A @ B)", {"A": "n,n:iid=0,1", "B": "n,n:iid=0,1"}, "n**2"),
    ("expectation", "norm(W @ x)**2", {"W": "m,n:normal=0,1/n", "x": "n"}, "m/n*sum(x**2)"),
    ("expectation", "sum(relu(W @ x)**2)/m", {"W": "m,n:normal=0,2/n", "x": "n"}, "sum(x**2)/n"),
    ("variance", "E[y[i],k]", {"E": "V,d:iid=mu,v", "y": "n:categorical=p", "p": "V:simplex"}, "v"),
    (
        "variance", "sum[i](E[y[i]])", {"E": "V", "y": "n:categorical=p", "p": "V:simplex"},
        "n*(sum(p*E**2) - sum(p*E)**2)",
    ),
    (
        "variance", "sum[i](E[y[i],0])", {"E": "V,d:iid=mu,v", "y": "n:categorical=p", "p": "V:simplex"},
        "v*(n + n*(n-1)*sum(p**2))",
    ),
    ("variance", "where(c > 0, x, y)", {"c": "", "x": ":iid=0,1", "y": ":iid=0,2"}, "step(c) + 2*(c <= 0)"),
    ("variance", "x*y*z", {"x": ":iid=0,1", "y": ":iid=0,1", "z": ":iid=e,f", "e": "", "f": ""}, "e**2 + f"),
    ("variance", "softmax(z) @ x", {"z": "n", "x": "n:iid=mu,v"}, "v*sum(softmax(z)**2)"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "declared", "formula"), MORE)
def test_more_formulas(kind: str, text: str, declared: dict, formula: str) -> None:
    found = getattr(moments, kind)(text, declared)
    body = build(formula, declared).equations[-1].body
    assert expand(found.value - body) == 0
    assert found.checked.startswith("equal")


@pytest.mark.parametrize("text", ["h[0]=x; h[l+1]=h[l]+f[l]; h", "h[0]=x; h[l+1]=a*h[l]+f[l]; h"])
def test_recurrence(text: str) -> None:
    declared = {"x": ":iid=0,v_0", "f": "L:iid=0,v", "a": ""}
    found = moments.variance(text, declared)
    a = 1 if "a*" not in text else None
    for length in (0, 1, 3):
        wanted = f"v_0*{1 if a else f'a**{2 * length}'}" + "".join(
            f" + v*{1 if a else f'a**{2 * k}'}" for k in range(length)
        )
        value = found.value.xreplace({found.outs[0]: length})
        body = build(wanted, declared).equations[-1].body
        assert (value - body).factor() == 0


def test_covariance_of_entries() -> None:
    """Every entry with every entry: the δ says which are correlated."""
    declared = {"W": "m,n:iid=0,v", "x": "n", "y": "n"}
    found = moments.covariance("W @ x", "W @ y", declared)
    i, j = found.outs
    assert str(found.value.xreplace({i: j})) != str(found.value)
    assert found.text == "v δ_ij Σ_k x_k y_k" or "δ" in found.text or "1[" in found.text
    same = moments.variance("W @ x", declared).value
    squares = moments.covariance("W @ x", "W @ x", declared).value
    assert closed.decided(squares.xreplace({j: i})) == same


def test_independent_expressions_are_uncorrelated() -> None:
    assert moments.covariance("sum(q)", "sum(k)", UNIT).value == 0
    assert moments.covariance("sum(q)", "sum(q) + sum(k)", UNIT).value == build("d", UNIT).equations[0].body


def test_third_and_fourth_moments_are_symbols() -> None:
    found = moments.variance("sum(q**2)", {"q": "d:iid=mu,s**2"})
    mu3, mu4 = CentralMoment("q", 3), CentralMoment("q", 4)
    mu, s = (Symbol(name, real=True) for name in ("mu", "s"))
    (d,) = found.system.sizes
    assert expand(found.value - d * (mu4 - s**4 + 4 * mu * mu3 + 4 * mu**2 * s**2)) == 0
    assert any("E[(q − E q)^3]" in text for text in found.assumptions)


LAYERNORM = [
    ("mean(layernorm(x, eps=eps)**2)", "v", "v/(v + eps)"),
    ("mean(layernorm(x, eps=eps))", "v", "0"),
    ("mean(layernorm(x, eps=eps)**2) - mean(layernorm(x, eps=eps))**2", "v", "v/(v + eps)"),
    ("m = mean(x); v = mean((x - m)**2); mean(((x - m)/sqrt(v + eps))**4 * v)", "v", None),
]


@pytest.mark.parametrize(("text", "kept", "wanted"), LAYERNORM)
def test_layernorm_moments(text: str, kept: str, wanted: str | None) -> None:
    found = moments.in_terms_of(text, kept, {"x": "n", "eps": ""})
    if wanted is None:  # no closed form in v: what is left is still right
        assert found.checked.startswith("equal") and found.value.has(Access("v"))
        return
    body = build(wanted, {"v": "", "eps": ""}).equations[-1].body if wanted != "0" else 0
    assert expand(found.value - body) == 0


FUNCTIONS = [
    ("relu(z)", "normal=0,s**2", "s/sqrt(2*pi)"),
    ("relu(z)**2", "iid=0,s**2:even", "s**2/2"),
    ("relu(-z)**2", "iid=0,s**2:even", "s**2/2"),
    ("relu(z)*z", "iid=0,s**2:even", "s**2/2"),
    ("relu(-z)*z", "iid=0,s**2:even", "-s**2/2"),
    ("abs(z)", "normal=0,s**2", "s*sqrt(2/pi)"),
    ("abs(z)*z", "normal=0,s**2", "0"),
    ("abs(z)", "uniform=-a,a", "a/2"),
    ("step(z)", "normal=0,s**2", "1/2"),
    ("step(z)*z**2", "iid=0,s**2:even", "s**2/2"),
    ("relu(z)**4", "normal=0,s**2", "3*s**4/2"),
    ("relu(z)", "bernoulli=p", "p"),
    ("exp(z)", "rademacher", "(exp(1) + exp(-1))/2"),
    ("tanh(z)", "bernoulli=p", "p*tanh(1)"),
    ("z**4", "normal=mu,s**2", "mu**4 + 6*mu**2*s**2 + 3*s**4"),
    ("z**3", "bernoulli=p", "p"),
    ("z**4", "uniform=0,a", "a**4/5"),
    ("z**8", "normal=0,1", "105"),
    ("z**4 + relu(z)**2", "rademacher", "3/2"),
]


@pytest.mark.parametrize(("text", "law", "wanted"), FUNCTIONS)
def test_function_of_an_entry(text: str, law: str, wanted: str) -> None:
    shapes = {"z": f":{law}"}
    found = moments.expectation(text, shapes).value
    body = build(wanted, shapes).equations[-1].body
    assert (found - body).equals(0)


INSIDE = [
    "relu({}*z)",
    "relu({}*z)**2",
    "abs({}*z)**3",
    "step({}*z)*abs(z)",
    "relu({}*z)*relu({}*2*z)",
    "relu({}*z)*relu(-z)",
]
SCALED_FUNCTIONS = [
    (f"{inside.replace('{}', c)}{outside}", law)
    for inside in INSIDE
    for outside in ("", "*z", "*z**2")
    for c in ("3/2", "-2", "a")
    for law in ("normal=0,9/4", "uniform=-2,2")
]


@pytest.mark.parametrize(("text", "law"), SCALED_FUNCTIONS)
@pytest.mark.parametrize("a", [mpmath.mpf("1.25"), mpmath.mpf("-0.75")])
def test_scaled_functions_against_quadrature(text: str, law: str, a: Any) -> None:
    """E f(a z) for constants of both signs, by integrating f times the density."""
    shapes = {"z": f":{law}", "a": ""}
    try:
        found = moments.expectation(text, shapes)
    except RuleError:  # where a = 0 would be another case
        assert "step(a*z)" in text or ("a*z" in text and "-z" in text)
        return
    point = Point(found.system, {}, HighPrecision(0), 0, {"a": {(): a}})
    names = {"relu": lambda x: max(x, 0), "step": lambda x: mpmath.mpf(x > 0), "abs": abs, "a": a}

    def f(z: Any) -> Any:
        return eval(text, {}, {**names, "z": z}) * (mpmath.npdf(z, 0, 1.5) if "normal" in law else mpmath.mpf(1) / 4)

    ends = [-mpmath.inf, 0, mpmath.inf] if "normal" in law else [-2, 0, 2]
    assert mpmath.almosteq(point.value(found.value, {}), mpmath.quad(f, ends), 1e-12, 1e-12)


# kind, expression, declarations, the value by hand: Σ c_i x_i is normal with variance Σ c_i² s²
SUMS = [
    ("expectation", "relu(3*x[0] + 4*x[1])", {"x": "2:normal=0,s**2"}, "5*s/sqrt(2*pi)"),
    ("expectation", "relu(x[0] - x[1])", {"x": "2:normal=0,1"}, "1/sqrt(pi)"),
    ("expectation", "abs(x[0] + 2*x[1])**3", {"x": "2:normal=0,1"}, "2*sqrt(2/pi)*5*sqrt(5)"),
    ("variance", "relu(a @ x)", {"a": "n", "x": "n:normal=0,1"}, "(1/2 - 1/(2*pi))*sum(a**2)"),
    ("expectation", "step(x[0] + x[1])", {"x": "2:normal=0,1"}, "1/2"),
]


@pytest.mark.parametrize(("kind", "text", "declared", "formula"), SUMS)
def test_functions_of_a_sum_of_normal_entries(kind: str, text: str, declared: dict, formula: str) -> None:
    found = getattr(moments, kind)(text, declared)
    body = build(formula, declared).equations[-1].body
    assert expand(found.value - body) == 0 or (found.value - body).equals(0)
    assert found.checked == "step by step"


# kind, expression, declarations, what is stated beside the laws
STATED = [
    ("expectation", "abs(x)", {"x": ":normal=0,s**2"}, ["s > 0"]),
    ("expectation", "abs(x)", {"x": ":normal=0,s**2", "s": ""}, ["s > 0"]),
    ("expectation", "abs(x)", {"x": ":normal=0,(s - 1)**2*t**4/9"}, ["s − 1 > 0"]),
    ("expectation", "abs(x)", {"x": ":normal=0,v"}, []),
    ("expectation", "relu(x)**2", {"x": ":normal=0,s**2"}, []),
    ("expectation", "sum(relu(x))", {"x": "n:normal=0,s**2/n"}, ["s > 0"]),
    (
        "expectation", "sum[s=0:n](a**(2*s)*g[s])", {"a": "", "g": "n:iid=mu,1"},
        ["|a| ≠ 1 (where |a| = 1, (1/(1 − a²))[1 − a^(2 n)] stands for n)"],
    ),
    (
        "expectation", "sum[s=0:t](b**s*g[s])", {"b": "", "g": "t:iid=mu,1"},
        ["b ≠ 1 (where b = 1, (1/(1 − b))[1 − b^t] stands for t)"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "declared", "stated"), STATED)
def test_what_a_closed_form_takes_for_granted(kind: str, text: str, declared: dict, stated: list[str]) -> None:
    assert list(getattr(moments, kind)(text, declared).assumptions[1:]) == stated


REFUSED = [
    ("tanh(q)", {"q": "d:iid=0,1"}, r"E of tanh\(q\)"),
    ("softmax(q)", {"q": "d:normal=0,1"}, "no rule for the expectation"),
    ("layernorm(q)", {"q": "d:normal=0,1"}, "no rule for the expectation"),
    ("sum(relu(z))", {"z": "n:iid=0,1"}, "declared as normal=0"),
    ("sum(relu(z)**2)", {"z": "n:normal=1,1"}, "declared as normal=0"),
    ("step(z)", {"z": ":iid=0,1:even"}, "declared as normal=0"),
    ("1/q[0]", {"q": "d:normal=1,1"}, "E of 1/q"),
    ("max(q)", {"q": "d:normal=0,1"}, "no rule for the expectation"),
    ("q[0]**10", {"q": "d:iid=0,1:even"}, "beyond order 8"),
    ("q[0]**9", {"q": "d:iid=0,1"}, "E of q"),
    ("sum(q)**7", {"q": "d:normal=0,1"}, "more than 6 entries"),
    ("sum(q**4)", {"q": "d:independent=0,v", "v": "d"}, "may differ from entry to entry"),
    ("tr(inv(A))", {"A": "n,n:iid=0,1"}, r"expectation of inv\(A\)"),
    ("step(a @ q)", {"a": "d", "q": "d:normal=0,1"}, "several entries of q"),
    ("relu(a @ q)", {"a": "d", "q": "d:uniform=-1,1"}, "several entries of q"),
    ("h[0]=q[0]; h[t+1]=h[t]**2+q[t]; h", {"q": "d:iid=0,1"}, "no closed form"),
]


@pytest.mark.parametrize(("text", "declared", "message"), REFUSED)
def test_refused(text: str, declared: dict, message: str) -> None:
    """What has no rule is said, never guessed."""
    with pytest.raises(RuleError, match=message):
        moments.expectation(text, declared)


MISDECLARED = [
    ({"q": "d:iid=0,1:normal=0,1"}, "iid and normal"),
    ({"q": "d:even"}, "no distribution"),
    ({"q": "d:normal=0,1:kurt=2"}, "go with iid="),
    ({"q": "d:iid=0,1:kurt=1/2"}, "at least 1"),
    ({"q": "d:iid=0,-1"}, "is negative"),
    ({"A": "n,n:symmetric:iid=0,1"}, "cannot be symmetric"),
    ({"y": ":categorical=p", "p": "V"}, "sum to 1"),
    ({"y": ":categorical=1/2"}, "sum to 1"),
    ({"q": "d:iid=m,1", "m": "d"}, "write independent="),
    ({"q": "d:independent=m,1", "m": "n"}, "give it the shape of q"),
    ({"q": "d:norml=0,1"}, "did you mean normal"),
    ({"q": "d:uniform=1"}, "written uniform=LOW,HIGH"),
    ({"q": "d:rademacher=1"}, "written rademacher"),
    ({"q": "d:uniform=3,1"}, "the lower one stands first"),
    ({"q": "d:bernoulli=2"}, "between 0 and 1"),
    ({"q": "d:normal=0,inf"}, "are finite numbers"),
    ({"q": "d:bernoulli=-1/2"}, "between 0 and 1"),
]


@pytest.mark.parametrize(("declared", "message"), MISDECLARED)
def test_misdeclared(declared: dict, message: str) -> None:
    with pytest.raises((ExpressionError, ShapeError), match=message):
        build("1 + 1", declared)


def test_declaration_order_does_not_matter() -> None:
    late = moments.variance("w @ x", {"x": "n:independent=m,v", "w": "n", "m": "n", "v": "n"})
    early = moments.variance("w @ x", {"m": "n", "v": "n", "w": "n", "x": "n:independent=m,v"})
    assert late.value == early.value


def test_a_constant_inverse() -> None:
    """The solution of a linear system with a random right side, checked by solving it in fractions."""
    found = moments.variance("solve(A, b)", {"A": "n,n", "b": "n:iid=0,1"})
    assert found.checked.startswith("equal exactly")
    assert found.value == moments.variance("inv(A) @ b", {"A": "n,n", "b": "n:iid=0,1"}).value


# --- steps


def test_steps_are_told() -> None:
    found = moments.variance(*DOT[1:])
    rules = [step.rule for step in found.steps]
    assert rules[0] == "forward" and rules[-2:] == ["variance", "collect"]
    assert {"expand", "expectation over", "deltas"} <= set(rules)
    last = found.steps[-1].as_dict()
    assert set(last) == {"rule", "reason", "before", "after", "checked"}
    assert last["after"] == f"Var(L) = {found.text}"
    chinese = moments.variance("sum(q)", {"q": "d:iid=0,1"}, lang="zh")
    assert "独立" in chinese.steps[1].reason and "独立同分布" in chinese.assumptions[0]


def test_printed() -> None:
    found = moments.variance(*DOT[1:])
    assert found.text == "d (μ_k² σ_q² + μ_q² σ_k² + σ_k² σ_q²)"
    assert "Var" in str(found) and r"\operatorname{Var}" in found._repr_latex_()
    assert found.at(d=10, mu_q=0, mu_k=0, sigma_q=1, sigma_k=1) == 10
    assert str(moments.expectation(*AVERAGE[1:])).endswith("= μ (1 − b^t)")


def test_constants_are_no_entries() -> None:
    found = moments.expectation("sum(x * y)", {"x": "n", "y": "n"})
    assert found.value.has(Access) and not found.assumptions


# --- a wrong rule must not pass its check: each of these defects is planted, and the step that uses it must fail


def doubled_spread(powers: tuple[int, ...]) -> Any:
    return cumulants.power_cumulant(powers).xreplace({cumulants.C[2]: 2 * cumulants.C[2]})


def without_coincidences(items: tuple[int, ...]) -> list:
    return cumulants.partitions(items)[-1:]


DEFECTS = [
    (integral, "power_cumulant", doubled_spread, DOT),
    (integral, "partitions", without_coincidences, DOT),
    (integral, "equal", lambda a, b: 1, DOT),
    (one_entry, "HALF", {side: (1, 1) for side in ("positive", "negative", "both")}, HE),
    (one_entry, "halved", None, TWO),
    (derivation, "geometric", lambda expr, ratios: 2 * expr, AVERAGE),
    (derivation, "shortest", lambda expr: expr + 1, DOT),
    (derivation, "unrolled", None, STEPWISE),
    (derivation, "expanded", lambda expr, arrays, scope: 2 * expr, SCALED),
    (integral, "normalise", lambda expr, outer, facts: 2 * expr, SCALED),
    (integral, "by_values", lambda *args: 1, SMOOTHED),
]


@pytest.mark.parametrize(("module", "name", "wrong", "case"), DEFECTS, ids=[name for _, name, _, _ in DEFECTS])
def test_defect_is_caught(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, wrong: Any, case: tuple) -> None:
    if name == "halved":
        right = one_entry.halved
        monkeypatch.setattr(derivation, name, lambda *args: 2 * right(*args))
    elif name == "unrolled":
        unrolled = closed.unrolled
        monkeypatch.setattr(derivation, name, lambda s, n: unrolled(s, n).with_body(2 * unrolled(s, n).body))
    else:
        monkeypatch.setattr(module, name, wrong)
    kind, text, declared = case
    with pytest.raises(GradproofError) as caught:
        getattr(moments, kind)(text, declared)
    assert isinstance(caught.value, StepError)

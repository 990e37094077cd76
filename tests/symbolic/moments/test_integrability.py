"""Whether an expectation exists: random functions under random laws against quadrature, and rows decided by hand.

E[x f(y)] with x independent of y and of mean 0 is 0 if E|f(y)| < ∞, and does not exist otherwise. The quadrature knows
nothing of rules: it integrates |f| times the density over shells that shrink to each special point, or go out to
infinity, and looks whether they become smaller and smaller.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import pytest

from gradproof.symbolic.errors import NoExpectation, RuleError
from gradproof.symbolic.moments import covariance, expectation, variance

Value = Callable[[Any], Any]


@dataclass(frozen=True)
class Known:
    """A law with numbers: its density and support, or its values."""

    declared: str
    density: Value | None = None
    support: tuple[Any, Any] = (-mpmath.inf, mpmath.inf)
    values: tuple[int, ...] = ()


def normal(mean: float, spread: float) -> Value:
    return lambda y: mpmath.npdf(y, mean, mpmath.sqrt(spread))


def flat(low: float, high: float) -> Value:
    return lambda y: 1 / mpmath.mpf(high - low)


LAWS = [
    Known("normal=0,1", normal(0, 1)),
    Known("normal=1/2,2", normal(0.5, 2)),
    Known("uniform=0,1", flat(0, 1), (0, 1)),
    Known("uniform=-1,2", flat(-1, 2), (-1, 2)),
    Known("uniform=1,3", flat(1, 3), (1, 3)),
    Known("bernoulli=1/3", values=(0, 1)),
    Known("rademacher", values=(-1, 1)),
]

# a factor in y, its value, and the places where it may be infinite or change its form
FACTORS: list[tuple[str, Value, tuple[float, ...]]] = [
    ("y", lambda y: y, (0,)),
    ("y**3", lambda y: y**3, (0,)),
    ("abs(y)", abs, (0,)),
    ("1/y", lambda y: 1 / y, (0,)),
    ("1/y**2", lambda y: 1 / y**2, (0,)),
    ("1/(y - 1)", lambda y: 1 / (y - 1), (1,)),
    ("1/(2*y + 1)", lambda y: 1 / (2 * y + 1), (-0.5,)),
    ("1/(y**2 - 1)", lambda y: 1 / (y**2 - 1), (1, -1)),
    ("1/(y**2 + 1)", lambda y: 1 / (y**2 + 1), ()),
    ("abs(y)**(-1/2)", lambda y: abs(y) ** -0.5, (0,)),
    ("abs(y - 1)**(-3/4)", lambda y: abs(y - 1) ** -0.75, (1,)),
    ("sqrt(abs(y))", lambda y: mpmath.sqrt(abs(y)), (0,)),
    ("sqrt(y)", mpmath.sqrt, (0,)),
    ("sqrt(1 - y)", lambda y: mpmath.sqrt(1 - y), (1,)),
    ("sqrt(1 + y**2)", lambda y: mpmath.sqrt(1 + y**2), ()),
    ("log(y)", mpmath.log, (0, 1)),
    ("log(abs(y))", lambda y: mpmath.log(abs(y)), (0, 1, -1)),
    ("log(1 + y**2)", lambda y: mpmath.log(1 + y**2), (0,)),
    ("exp(y)", mpmath.exp, ()),
    ("exp(-y**2)", lambda y: mpmath.exp(-(y**2)), ()),
    ("exp(y**2/5)", lambda y: mpmath.exp(y**2 / 5), ()),
    ("exp(2*y**2)", lambda y: mpmath.exp(2 * y**2), ()),
    ("exp(y**3)", lambda y: mpmath.exp(y**3), ()),
    ("exp(-y**4)", lambda y: mpmath.exp(-(y**4)), ()),
    ("tanh(y)", mpmath.tanh, (0,)),
    ("1/tanh(y)", lambda y: 1 / mpmath.tanh(y), (0,)),
    ("1/(1 + exp(y))", lambda y: 1 / (1 + mpmath.exp(y)), ()),
    ("relu(y)", lambda y: max(y, 0), (0,)),
    ("1/relu(y)", lambda y: 1 / max(y, mpmath.mpf(0)), (0,)),
    ("sigmoid(y)", lambda y: 1 / (1 + mpmath.exp(-y)), ()),
]


def shell(f: Value, law: Known, low: Any, high: Any) -> Any:
    assert law.density is not None
    low, high = max(low, law.support[0]), min(high, law.support[1])
    if low >= high:
        return mpmath.mpf(0)
    return mpmath.quad(lambda y: abs(f(y)) * law.density(y), [low, high], maxdegree=4)


def shrinks(shells: list[Any], factor: float) -> bool:
    return all(after <= factor * before for before, after in itertools.pairwise(shells))


def real(values: tuple[Value, ...], y: Any) -> bool:
    """Whether every factor is a finite real number."""
    try:
        found = [mpmath.mpmathify(value(mpmath.mpf(y))) for value in values]
    except (ZeroDivisionError, ValueError):
        return False
    return all(mpmath.im(value) == 0 and mpmath.isfinite(value) for value in found)


def integrable(values: tuple[Value, ...], law: Known, places: set[float]) -> bool:
    """Whether the factors are defined with probability 1 and E|Π factors| is finite."""
    if law.density is None:
        return all(real(values, v) for v in law.values)
    rng = random.Random(1)
    low, high = (float(end) if mpmath.isfinite(end) else 3.0 * float(mpmath.sign(end)) for end in law.support)
    if not all(real(values, rng.uniform(low, high)) for _ in range(50)):
        return False

    def f(y: Any) -> Any:
        return mpmath.fprod(value(y) for value in values)

    for place in places:
        for side in (1, -1):
            ends = [sorted(place + side * mpmath.mpf(10) ** -(k + j) for j in (0, 1)) for k in (8, 9, 10)]
            if not shrinks([shell(f, law, *pair) for pair in ends], 0.95):
                return False
    if mpmath.isfinite(law.support[1]):
        return True
    tails = [[sorted(side * mpmath.mpf(2) ** (k + j) for j in (0, 1)) for k in (4, 5, 6)] for side in (1, -1)]
    return all(shrinks([shell(f, law, *pair) for pair in tail], 0.5) for tail in tails)


def judged(text: str, declared: str) -> str:
    """What is said of E|f(y)| < ∞: yes, no, or unknown (it is printed as an assumption and nothing is checked)."""
    try:
        found = expectation(f"x*({text})", {"x": ":normal=0,1", "y": f":{declared}"})
    except NoExpectation:
        return "no"
    assert found.value == 0
    return "unknown" if found.checked.startswith("not checked") else "yes"


def drawn(count: int, seed: int = 0) -> list[tuple[Known, tuple[tuple[str, Value, tuple[float, ...]], ...]]]:
    """Products without a factor and a divisor that cancel when the text is read."""
    rng, found = random.Random(seed), []
    while len(found) < count:
        law, factors = rng.choice(LAWS), tuple(rng.sample(FACTORS, rng.choice((1, 1, 2, 3))))
        read = {text for text, _, _ in factors}
        if not any(read >= pair for pair in CANCELLING) and not (read & {"y", "y**3"} and read & {"1/y", "1/y**2"}):
            found.append((law, factors))
    return found


CANCELLING = (
    {"relu(y)", "1/relu(y)"},
    {"tanh(y)", "1/tanh(y)"},
    {"abs(y)**(-1/2)", "sqrt(abs(y))"},
    {"abs(y)**(-1/2)", "abs(y)"},
)
CASES = drawn(160)


@pytest.mark.parametrize(
    ("law", "factors"), CASES, ids=[f"{law.declared} {'*'.join(f[0] for f in fs)}" for law, fs in CASES]
)
def test_random_products_against_quadrature(law: Known, factors: tuple) -> None:
    """What is said to exist exists, what is said not to exist does not."""
    text = "*".join(f"({text})" for text, _, _ in factors)
    said = judged(text, law.declared)
    if said != "unknown":
        places = {place for _, _, own in factors for place in own}
        exists = integrable(tuple(value for _, value, _ in factors), law, places)
        assert said == ("yes" if exists else "no")


def test_most_are_decided() -> None:
    said = [judged("*".join(f"({text})" for text, _, _ in factors), law.declared) for law, factors in CASES[:60]]
    assert said.count("unknown") <= 6


# expression, declarations, what the message says
N = ":normal=0,1"
NONE = [
    ("x/y", {"x": N, "y": N}, "no E of 1/y"),
    ("x*log(y)", {"x": N, "y": N}, "not defined where y < 0"),
    ("x*sqrt(y)", {"x": N, "y": N}, "not defined where y < 0"),
    ("x/m", {"x": N, "m": ":bernoulli=p"}, "not defined where m = 0"),
    ("x*exp(y**4)", {"x": N, "y": N}, "grows faster"),
    ("x/sum(q)", {"x": N, "q": "n:normal=0,1"}, "density that is positive at 0"),
    ("x/mean(q)", {"x": N, "q": "n:normal=1,1"}, "density that is positive at 0"),
    ("1/x**2", {"x": N}, "no E of"),
    ("x*log(y + z)", {"x": N, "y": N, "z": N}, "not defined where y [+] z < 0"),
    ("x/(y - z)", {"x": N, "y": N, "z": N}, "no E of"),
    ("x/(y - c)", {"x": N, "y": N, "c": ""}, "density at c"),
    ("sum(q/r)", {"q": "n:normal=0,1", "r": "n:normal=0,1"}, "no E of 1/r"),
    ("x/(m[0] + m[1])", {"x": N, "m": "3:bernoulli=1/2"}, "not defined where m_0 = 0"),
    ("x/sum(m)", {"x": N, "m": "n:bernoulli=1/2"}, "not defined where m_. = 0"),
    ("x*log(m)", {"x": N, "m": ":bernoulli=1/2"}, "not defined where m = 0"),
    ("x*sqrt(s)", {"x": N, "s": ":rademacher"}, "not defined where s = −1"),
    ("x*tanh(log(y))", {"x": N, "y": N}, "not defined where y < 0"),
    ("x/c", {"x": N, "c": ":normal=0,0"}, "not defined"),
    ("m*x/(y*(y - 1))", {"x": N, "y": ":uniform=0,1", "m": N}, "no E of"),
    ("x*log(sum(q))", {"x": N, "q": "n:normal=0,1"}, "not defined where"),
    ("x*cosh(y**3)", {"x": N, "y": N}, "grows faster"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "declared", "message"), NONE)
def test_no_expectation(text: str, declared: dict, message: str) -> None:
    with pytest.raises(NoExpectation, match=message):
        expectation(text, declared)


# expression, declarations, the assumption that is printed
ASSUMED = [
    ("x/q", {"x": N, "q": ":iid=0,1"}, "E|1/q| < ∞"),
    ("x*log(q)", {"x": N, "q": ":iid=1,1"}, "E|log(q)| < ∞"),
    ("x*q**3", {"x": N, "q": ":iid=0,1"}, "E|q|³ < ∞"),
    ("x*exp(q)", {"x": N, "q": ":iid=0,1"}, "E|exp(q)| < ∞"),
    ("q**3", {"q": ":iid=0,1:even"}, "E|q|³ < ∞"),
    ("x*sum(q)**4", {"x": N, "q": "n:iid=0,1"}, "E|q_i|⁴ < ∞"),
    ("x/(y**2 + c)", {"x": N, "y": N, "c": ""}, "E|1/(y² + c)| < ∞"),
    ("x*exp(c*y**2)", {"x": N, "y": N, "c": ""}, "E|exp(c y²)| < ∞"),
    ("x/sum(q**2)", {"x": N, "q": "n:normal=0,1"}, "E|1/(Σ_i q_i²)| < ∞"),
    ("x/(s[0] + s[1])", {"x": N, "s": "3:rademacher"}, "E|1/(s_0 + s_1)| < ∞"),  # only equal values are tried
]


@pytest.mark.parametrize(("text", "declared", "assumed"), ASSUMED)
def test_what_is_not_known_is_assumed(text: str, declared: dict, assumed: str) -> None:
    found = expectation(text, declared)
    assert found.value == 0 and found.assumptions[-1] == assumed
    assert found.checked == f"not checked: it holds if {assumed}"
    assert all(step.checked.startswith("not checked") for step in found.steps if step.rule == "expectation over")


# expression, declarations: 0 because x has mean 0 and the rest is integrable, and nothing is assumed
EXISTS = [
    ("x*exp(y)", {"x": N, "y": N}),
    ("x*tanh(q)", {"x": N, "q": ":iid=0,1"}),
    ("x*q**2", {"x": N, "q": ":iid=0,1"}),
    ("x*q**4", {"x": N, "q": ":iid=0,1:kurt=3"}),
    ("x*log(y)", {"x": N, "y": ":uniform=0,1"}),
    ("x/sqrt(y)", {"x": N, "y": ":uniform=0,a"}),
    ("x/(1 + sum(q**2))", {"x": N, "q": "n:iid=0,1"}),
    ("x*where(y > 0, log(y), 0)", {"x": N, "y": N}),
    ("x*where(m > 0, 1/m, 0)", {"x": N, "m": ":bernoulli=p"}),
    ("x*softmax(q)[0]", {"x": N, "q": "n:normal=0,1"}),
    ("softmax(q @ k.T) @ v", {"q": "n,d:iid=0,1", "k": "n,d:iid=0,1", "v": "n,d:iid=0,1"}),
    ("x*sigmoid(sum(q))", {"x": N, "q": "n:iid=0,1"}),
    ("x*log(1 + q**4)", {"x": N, "q": ":iid=0,1"}),
    ("x/c", {"x": N, "c": ""}),
    ("x/c", {"x": N, "c": ":normal=2,0"}),
    ("x*q[0]**2*q[1]**2", {"x": N, "q": "3:iid=0,1"}),
    ("x*layernorm(q, eps=1)[0]", {"x": N, "q": "n:iid=0,1"}),
]


@pytest.mark.parametrize(("text", "declared"), EXISTS)
def test_exists_without_assumption(text: str, declared: dict) -> None:
    found = expectation(text, declared)
    assert found.value == 0 and not any("∞" in line for line in found.assumptions)
    assert not found.checked.startswith("not checked")


def test_second_moments_must_exist_too() -> None:
    """E|y|^(−1/2) is finite, E|y|^−1 is not: there is no variance; and none of a Cauchy-like quotient."""
    assert expectation("x*abs(y)**(-1/2)", {"x": N, "y": N}).value == 0
    for text in ("x*abs(y)**(-1/2)", "x/y"):
        with pytest.raises(NoExpectation):
            variance(text, {"x": N, "y": N})
    with pytest.raises(NoExpectation):
        covariance("x/sqrt(abs(y))", "x/sqrt(abs(y))", {"x": N, "y": N})


def test_a_term_that_has_no_expectation_is_not_hidden_by_another() -> None:
    with pytest.raises(RuleError):
        expectation("x/y + z", {"x": N, "y": N, "z": N})

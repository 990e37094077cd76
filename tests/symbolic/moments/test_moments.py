"""Expectations and variances against the documented formulas, against all outcomes, and against Monte Carlo.

Each case states the formula by hand. The same forward function, written in NumPy, serves both tests by numbers: on
all outcomes of two-valued entries, in fractions, where formula and average must be equal; and on random samples, where
the formula must lie in a confidence interval of four standard errors, narrow enough to exclude a formula off by 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest
from sympy import Rational, Symbol, expand

from gradproof.symbolic import moments
from gradproof.symbolic.equations.evaluate import HighPrecision, Point
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.moments import MomentResult
from gradproof.symbolic.moments.enumeration import Exact

SAMPLES, BATCHES, ERRORS = 400_000, 200, 4.0  # standard errors: a true formula fails once in 16 000 runs


@dataclass(frozen=True)
class Entry:
    """A distribution of one entry: its outcomes with their probabilities, and a sampler with the same moments."""

    outcomes: list[tuple[Any, F]]
    sample: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def skewed(mean: Any, root: Any) -> Entry:
    """Skewed, so that a formula that needs a vanishing third moment is not let through."""
    outcomes = [(F(mean) + 2 * F(root), F(1, 5)), (F(mean) - F(root) / 2, F(4, 5))]
    return Entry(outcomes, lambda rng, shape: float(mean) + float(root) * (rng.exponential(size=shape) - 1))


def symmetric(root: Any) -> Entry:
    outcomes = [(s * z * F(root), p) for z, p in ((F(2), F(1, 10)), (F(1, 2), F(2, 5))) for s in (-1, 1)]
    return Entry(outcomes, lambda rng, shape: float(root) * rng.uniform(-(3**0.5), 3**0.5, size=shape))


def normal(mean: Any, root: Any) -> Entry:
    """−2 … 2 with the moments of a normal entry up to the fifth."""
    chances = {-2: F(1, 12), -1: F(1, 6), 0: F(1, 2), 1: F(1, 6), 2: F(1, 12)}
    outcomes = [(F(mean) + z * F(root), p) for z, p in chances.items()]
    return Entry(outcomes, lambda rng, shape: rng.normal(float(mean), float(root), size=shape))


def bernoulli(p: F) -> Entry:
    return Entry([(F(0), 1 - p), (F(1), p)], lambda rng, shape: (rng.random(shape) < float(p)).astype(float))


def categorical(p: list[F]) -> Entry:
    chances = [float(x) for x in p]
    return Entry([(k, x) for k, x in enumerate(p)], lambda rng, shape: rng.choice(len(p), size=shape, p=chances))


SIGN = Entry([(F(-1), F(1, 2)), (F(1), F(1, 2))], lambda rng, shape: rng.choice([-1.0, 1.0], size=shape))


@dataclass(frozen=True)
class Case:
    """`forward` takes the random arrays, with a leading axis of samples, and the constants."""

    name: str
    kind: str
    text: str
    shapes: Mapping[str, str]
    formula: str
    forward: Callable[..., np.ndarray]
    entries: Mapping[str, Entry]
    small: Mapping[str, int]  # sizes for the enumeration
    large: Mapping[str, int]  # sizes for the samples
    values: Mapping[str, Any] = field(default_factory=dict)  # symbols
    constants: Callable[[Mapping[str, int]], dict[str, Any]] = lambda sizes: {}
    used: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # sizes of a sampled part
    index: tuple[int, ...] = ()


def relu(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0)


def decay(b: Any, t: int) -> np.ndarray:
    return np.array([(1 - b) * b ** (t - 1 - s) for s in range(t)])


def ramp(n: int) -> np.ndarray:
    return np.array([F(k + 2, 2) for k in range(n)], dtype=object)


AVERAGE = "sum[s=0:t]((1-b)*b**(t-1-s)*g[s])"
SQUARES = "sum[s=0:t]((1-b)*b**(t-1-s)*g[s]**2)"
G = {"g": "t:iid=mu,sigma**2", "b": ""}
ADAM: dict[str, Any] = {
    "shapes": G,
    "entries": {"g": skewed(3, 2)},
    "small": {"t": 4},
    "large": {"t": 5},
    "values": {"mu": 3, "sigma": 2},
    "constants": lambda sizes: {"b": F(2, 3)},
}
HE = {"W": "m,n:iid=0,s_w**2", "z": "n:iid=0,s**2:even"}
QK = {"q": "d:iid=mu_q,sigma_q**2", "k": "d:iid=mu_k,sigma_k**2"}
UNIT = {"q": "d:iid=0,1", "k": "d:iid=0,1"}


def dot(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return (q * k).sum(-1)


CASES = [
    Case(
        "variance.dot_product general", "variance", "sum[l](q[l]*k[l])", QK,
        "d*(sigma_q**2*sigma_k**2 + sigma_q**2*mu_k**2 + sigma_k**2*mu_q**2)",
        lambda q, k: dot(q, k), {"q": skewed(1, 2), "k": skewed(F(-1, 2), F(3, 2))}, {"d": 3}, {"d": 6},
        {"mu_q": 1, "sigma_q": 2, "mu_k": F(-1, 2), "sigma_k": F(3, 2)},
    ),
    Case(
        "variance.dot_product special", "variance", "sum[l](q[l]*k[l])", UNIT, "d",
        lambda q, k: dot(q, k), {"q": skewed(0, 1), "k": skewed(0, 1)}, {"d": 4}, {"d": 8},
    ),
    Case(
        "variance.scaled_dot_product", "variance", "q @ k / sqrt(d)", UNIT, "1",
        lambda q, k: dot(q, k) / int(q.shape[1] ** 0.5), {"q": skewed(0, 1), "k": skewed(0, 1)}, {"d": 4}, {"d": 9},
    ),
    Case(
        "adam E[m]", "expectation", AVERAGE, formula="(1 - b**t)*mu",
        forward=lambda g, b: g @ decay(b, g.shape[1]), **ADAM,
    ),
    Case(
        "adam E[v]", "expectation", SQUARES, formula="(1 - b**t)*(mu**2 + sigma**2)",
        forward=lambda g, b: g**2 @ decay(b, g.shape[1]), **ADAM,
    ),
    Case(
        "adam corrected m", "expectation", f"{AVERAGE}/(1 - b**t)", formula="mu",
        forward=lambda g, b: g @ decay(b, g.shape[1]) / (1 - b ** g.shape[1]), **ADAM,
    ),
    Case(
        "adam corrected v", "expectation", f"{SQUARES}/(1 - b**t)", formula="mu**2 + sigma**2",
        forward=lambda g, b: g**2 @ decay(b, g.shape[1]) / (1 - b ** g.shape[1]), **ADAM,
    ),
    Case(
        "adam Var[m]", "variance", AVERAGE, formula="sigma**2*(1-b)*(1 - b**(2*t))/(1 + b)",
        forward=lambda g, b: g @ decay(b, g.shape[1]), **ADAM,
    ),
    Case(
        "adam as a recurrence", "expectation", "m[0]=0; m[s+1]=b*m[s]+(1-b)*g[s]; m[t]/(1 - b**t)", formula="mu",
        forward=lambda g, b: g @ decay(b, g.shape[1]) / (1 - b ** g.shape[1]), **ADAM,
    ),
    Case(
        "linear layer (Xavier)", "variance", "W @ x", {"W": "m,n:iid=0,s_w**2", "x": "n:iid=mu_x,s_x**2"},
        "n*s_w**2*(s_x**2 + mu_x**2)", lambda W, x: dot(W, x), {"W": skewed(0, F(1, 2)), "x": skewed(2, 3)},
        {"n": 3, "m": 1}, {"n": 5, "m": 1}, {"s_w": F(1, 2), "mu_x": 2, "s_x": 3}, used={"W": ("n",)}, index=(0,),
    ),
    Case(
        "linear layer after relu (He)", "variance", "W @ relu(z)", HE, "n*s_w**2*s**2/2",
        lambda W, z: dot(W, relu(z)), {"W": skewed(0, F(1, 2)), "z": symmetric(3)}, {"n": 3, "m": 1}, {"n": 6, "m": 1},
        {"s_w": F(1, 2), "s": 3}, used={"W": ("n",)}, index=(0,),
    ),
    Case(
        "two layers (He)", "variance", "W_2 @ relu(W_1 @ x)",
        {"W_1": "h,n:iid=0,s_1**2:even", "W_2": "m,h:iid=0,s_2**2", "x": "n:iid=mu,s_x**2"},
        "h*n*s_1**2*s_2**2*(mu**2 + s_x**2)/2",
        lambda W_1, W_2, x: dot(W_2, relu((W_1 * x[:, None, :]).sum(-1))),
        {"W_1": symmetric(1), "W_2": skewed(0, 2), "x": skewed(1, F(1, 2))}, {"n": 2, "h": 2, "m": 1},
        {"n": 3, "h": 4, "m": 1}, {"s_1": 1, "s_2": 2, "mu": 1, "s_x": F(1, 2)}, used={"W_2": ("h",)}, index=(0,),
    ),
    Case(
        "residual stream", "variance", "x[i] + sum[l](f[l,i])", {"x": "d:iid=mu,s_0**2", "f": "L,d:iid=0,s**2"},
        "s_0**2 + L*s**2", lambda x, f: x + f.sum(-1), {"x": skewed(1, 2), "f": skewed(0, 1)}, {"L": 5, "d": 1},
        {"L": 12, "d": 1}, {"s_0": 2, "s": 1, "mu": 1}, used={"x": (), "f": ("L",)}, index=(0,),
    ),
    Case(
        "residual stream scaled", "variance", "x[i] + sum[l=0:2*L](f[l,i])/sqrt(2*L)",
        {"x": "d:iid=0,s_0**2", "f": "2*L,d:iid=0,s**2"}, "s_0**2 + s**2",
        lambda x, f: x + f.sum(-1) / int(f.shape[1] ** 0.5), {"x": skewed(0, 2), "f": skewed(0, 3)}, {"L": 2, "d": 1},
        {"L": 8, "d": 1}, {"s_0": 2, "s": 3}, used={"x": (), "f": ("2L",)}, index=(0,),
    ),
    Case(
        "mini-batch gradient", "variance", "mean(g)", {"g": "B:iid=mu,sigma**2"}, "sigma**2/B",
        lambda g: g.sum(-1) / g.shape[1], {"g": skewed(2, 3)}, {"B": 5}, {"B": 7}, {"mu": 2, "sigma": 3},
    ),
    Case(
        "label smoothing", "expectation", "(1-e_)*eye(V)[y] + e_/V",
        {"y": ":categorical=p", "p": "V:simplex", "e_": ""},
        "(1-e_)*p[i] + e_/V", lambda y, p, e_: (y == 1) * (1 - e_) + e_ / len(p),
        {"y": categorical([F(1, 2), F(1, 3), F(1, 6)])}, {"V": 3}, {"V": 3},
        constants=lambda sizes: {"p": np.array([F(1, 2), F(1, 3), F(1, 6)]), "e_": F(1, 10)}, index=(1,),
    ),
    Case(
        "dropout E", "expectation", "x[i]*keep[i]/(1-p)", {"x": "n", "keep": "n:bernoulli=1-p", "p": ""}, "x[i]",
        lambda keep, x, p: keep * x[1] / (1 - p), {"keep": bernoulli(F(3, 4))}, {"n": 2}, {"n": 2},
        constants=lambda sizes: {"x": ramp(sizes["n"]), "p": F(1, 4)}, used={"keep": ()}, index=(1,),
    ),
    Case(
        "dropout Var", "variance", "x[i]*keep[i]/(1-p)",
        {"x": "n", "keep": "n:bernoulli=1-p", "p": ""}, "x[i]**2*p/(1-p)",
        lambda keep, x, p: keep * x[1] / (1 - p), {"keep": bernoulli(F(3, 4))}, {"n": 2}, {"n": 2},
        constants=lambda sizes: {"x": ramp(sizes["n"]), "p": F(1, 4)}, used={"keep": ()}, index=(1,),
    ),
    Case(
        "sum of normal squares", "variance", "sum(q**2)", {"q": "d:normal=mu,s**2"}, "2*d*s**2*(s**2 + 2*mu**2)",
        lambda q: (q**2).sum(-1), {"q": normal(1, 2)}, {"d": 3}, {"d": 5}, {"mu": 1, "s": 2},
    ),
    Case(
        "sum of squares, known kurtosis", "variance", "sum(q**2)",
        {"q": "d:iid=0,s**2:kurt=kappa"}, "d*s**4*(kappa - 1)",
        lambda q: (q**2).sum(-1), {"q": normal(0, 2)}, {"d": 3}, {"d": 5}, {"s": 2, "kappa": 3},
    ),
    Case(
        "squared sum", "variance", "sum(q)**2", {"q": "d:iid=0,s**2:kurt=kappa"}, "s**4*(2*d**2 + (kappa - 3)*d)",
        lambda q: q.sum(-1) ** 2, {"q": normal(0, 2)}, {"d": 3}, {"d": 5}, {"s": 2, "kappa": 3},
    ),
    Case(
        "neighbours", "variance", "sum[t=0:n-1](v[t]*v[t+1])", {"v": "n:iid=0,s**2"}, "(n-1)*s**4",
        lambda v: (v[:, 1:] * v[:, :-1]).sum(-1), {"v": skewed(0, 2)}, {"n": 6}, {"n": 9}, {"s": 2},
    ),
    Case(
        "neighbours with a mean", "variance", "sum[t=0:n-1](v[t]*v[t+1])", {"v": "n:iid=mu,s**2"},
        "(n-1)*(s**4 + 2*s**2*mu**2) + 2*(n-2)*mu**2*s**2",
        lambda v: (v[:, 1:] * v[:, :-1]).sum(-1), {"v": skewed(1, 2)}, {"n": 6}, {"n": 9}, {"s": 2, "mu": 1},
    ),
    Case(
        "random signs", "expectation", "sum[i,j,k](s[i]*s[j]*X[i,k]*X[j,k])", {"s": "n:rademacher", "X": "n,d"},
        "sum(X**2)", lambda s, X: ((s @ X) ** 2).sum(-1), {"s": SIGN}, {"n": 4, "d": 2}, {"n": 6, "d": 3},
        constants=lambda sizes: {"X": np.outer(ramp(sizes["n"]), ramp(sizes["d"]) + 1)},
    ),
    Case(
        "random signs, fourth powers", "variance", "sum(s)**2", {"s": "n:rademacher"}, "2*n*(n-1)",
        lambda s: s.sum(-1) ** 2, {"s": SIGN}, {"n": 4}, {"n": 6},
    ),
    Case(
        "weighted sum of entries that differ", "variance", "w @ x",
        {"w": "n", "x": "n:independent=m,v", "m": "n", "v": "n"}, "sum(w**2*v)",
        lambda x, w, m, v, root: (w * (m + root * x)).sum(-1), {"x": skewed(0, 1)}, {"n": 4}, {"n": 4},
        constants=lambda sizes: {
            "w": ramp(sizes["n"]), "m": ramp(sizes["n"]), "v": ramp(sizes["n"]) ** 2, "root": ramp(sizes["n"]),
        },
    ),
]  # fmt: skip
IDS = [case.name for case in CASES]
SLOTS: dict[str, MomentResult] = {}


def derived(case: Case) -> MomentResult:
    if case.name not in SLOTS:
        SLOTS[case.name] = getattr(moments, case.kind)(case.text, dict(case.shapes))
    return SLOTS[case.name]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_formula(case: Case) -> None:
    """What is derived is the documented formula, for symbolic sizes."""
    found = derived(case)
    (equation,) = build(case.formula, dict(case.shapes)).equations if case.formula != "1" else (None,)
    wanted = 1 if equation is None else equation.body
    difference = expand(found.value - wanted)
    assert difference == 0 or expand(difference.factor()) == 0, f"{found.value} is not {case.formula}"
    assert all(step.checked and not step.checked.startswith("by the rule alone") for step in found.steps)
    assert found.checked.startswith("equal"), found.checked


def shape_of(case: Case, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    declared = case.shapes[name].split(":")[0]
    wanted = case.used.get(name, tuple(part for part in declared.split(",") if part))
    return tuple(2 * sizes["L"] if size == "2L" else sizes[size] for size in wanted)


def number(case: Case, sizes: Mapping[str, int], exact: bool) -> Any:
    """The derived formula at the case's numbers."""
    found = derived(case)
    symbols = {Symbol(name, real=True): Rational(F(value)) for name, value in case.values.items()}
    given: dict[str, dict] = {}
    for name, value in case.constants(sizes).items():
        flat = np.asarray(value, dtype=object)
        given[name] = {index: flat[index] if exact else float(flat[index]) for index in np.ndindex(flat.shape)}
    arithmetic = Exact(0) if exact else HighPrecision(0)
    known = {size: sizes[size.name] for size in found.system.sizes}
    point = Point(found.system, known, arithmetic, 0, given)  # type: ignore[arg-type]
    return point.value(found.value.xreplace(symbols), dict(zip(found.outs, case.index, strict=True)))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_all_outcomes(case: Case) -> None:
    """Equal, in fractions, to the average over every outcome of entries with a few values."""
    sizes, entries = case.small, []
    shapes = {name: shape_of(case, name, sizes) for name in case.entries}
    for name, entry in case.entries.items():
        entries += [entry.outcomes] * int(np.prod(shapes[name]))
    outcomes = list(product(*entries))
    assert len(outcomes) <= 40_000
    weights = np.array([np.prod([p for _, p in outcome]) for outcome in outcomes], dtype=object)
    drawn = np.array([[x for x, _ in outcome] for outcome in outcomes], dtype=object)
    arrays, start = {}, 0
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        arrays[name] = drawn[:, start : start + count].reshape(len(outcomes), *shape)
        start += count
    values = case.forward(**arrays, **case.constants(sizes))
    mean = (weights * values).sum()
    wanted = mean if case.kind == "expectation" else (weights * values**2).sum() - mean**2
    assert number(case, sizes, exact=True) == wanted


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_monte_carlo(case: Case) -> None:
    """Inside four standard errors of the estimate from 400 000 samples; 5 % more or less is outside."""
    rng = np.random.default_rng(sum(map(ord, case.name)))
    arrays = {n: entry.sample(rng, (SAMPLES, *shape_of(case, n, case.large))) for n, entry in case.entries.items()}
    given = {name: _float(value) for name, value in case.constants(case.large).items()}
    values = np.asarray(case.forward(**arrays, **given), dtype=float)
    terms = values if case.kind == "expectation" else (values - values.mean()) ** 2
    batches = terms.reshape(BATCHES, -1).mean(1)
    estimate, error = batches.mean(), batches.std(ddof=1) / BATCHES**0.5
    wanted = float(number(case, case.large, exact=False))
    assert abs(estimate - wanted) <= ERRORS * error
    for wrong in (0.95 * wanted, 1.05 * wanted):
        assert abs(estimate - wrong) > ERRORS * error, "the interval is too wide to exclude an error of 5 %"


def _float(value: Any) -> Any:
    return np.asarray(value).astype(float) if isinstance(value, np.ndarray) else float(value)

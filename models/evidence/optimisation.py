"""Numbers for the entries about Adam and the Bayesian reading of training: plain Python and mpmath."""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at, at_most, same
from gradproof.symbolic.catalogue.optimisation import ADAM_SHAPES, ADAM_STEP
from gradproof.symbolic.derive import derive
from gradproof.symbolic.phrases import phrase

BETAS = {"beta_1": 0.9, "beta_2": 0.999}


def _adam(theta: float, g: float, eta: float, t: int = 1, m: float = 0.0, v: float = 0.0) -> dict[str, float]:
    """One step of the catalogue's equations for one parameter."""
    given = {"theta": [theta], "g": [g], "m_0": [m], "v_0": [v], **BETAS, "eta": eta, "epsilon": 1e-8, "t": t}
    found = at(ADAM_STEP, ADAM_SHAPES, given)
    return {"theta": found["value"][0], "m": found["m"][0], "v": found["v"][0]}


def second_moment(steps: int, lag: int, beta: float = 0.999) -> float:
    """v̂_t for g² = 1 throughout, from v_{t−lag}; what lies before the first step is 0.

    >>> second_moment(1, 1), round(second_moment(10, 2), 4)
    (1.0, 0.5013)
    """
    v = [0.0] * (lag + steps)
    for t in range(lag, lag + steps):
        v[t] = beta * v[t - lag] + (1 - beta)
    return v[-1] / (1 - beta**steps)


def adam() -> list[Evidence]:
    """A tiny gradient, three steps against a hand-written loop, and how far v_{t−2} drifts from v_{t−1}."""
    found = [same("|change| at g = 1e−8, step 1, rate 1e−3, ε = 1e−8", -_adam(0.0, 1e-8, 1e-3)["theta"], 5.0e-4, 1e-12)]
    theta, m, v = 0.5, 0.0, 0.0
    state = {"theta": theta, "m": m, "v": v}
    for t, g in enumerate((0.3, -1.2, 0.7), 1):
        state = _adam(state["theta"], g, 0.01, t, state["m"], state["v"])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        theta -= 0.01 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
    found.append(same("three steps, against a loop written by hand", state["theta"], theta))
    for t in (2, 10, 100, 1000):
        right, wrong = second_moment(t, 1), second_moment(t, 2)
        found.append(same(phrase("v̂_{} from {} with g² = 1", t, "v_{t−1}"), right, 1.0))
        found.append(apart(phrase("v̂_{} from {}, the document's form", t, "v_{t−2}"), wrong, 1.0, 0.3))
    longer = math.sqrt((1 - 0.999**10) / (1 - 0.999**5))
    found.append(same("the document's steps are longer by this factor at t = 10", second_moment(10, 2) ** -0.5, longer))
    return found


def bias_correction() -> list[Evidence]:
    """Monte Carlo: the mean of m_t and v_t for g ~ N(0.5, 2²), with confidence bounds of 4.5 standard errors.

    A factor that is off by 5 % would lie outside.
    """
    rng, runs, steps = random.Random(0), 20000, 10
    ms, vs = [], []
    for _ in range(runs):
        m = v = 0.0
        for _ in range(steps):
            g = rng.gauss(0.5, 2.0)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        ms.append(m)
        vs.append(v)
    found = []
    for label, sample, beta, moment in (("E[m_10]", ms, 0.9, 0.5), ("E[v_10]", vs, 0.999, 4.25)):
        expected = (1 - beta**steps) * moment
        mean = math.fsum(sample) / runs
        error = math.sqrt(math.fsum((x - mean) ** 2 for x in sample)) / runs
        found.append(same(phrase("{} of {} runs against (1 − βᵗ) E", label, runs), mean, expected, 4.5 * error))
        found.append(
            at_most(
                phrase("the interval's half-width, relative, is under 5 % ({})", label), 4.5 * error / expected, 0.05
            )
        )
    return found


def posterior() -> list[Evidence]:
    """Beta prior and coin tosses: the normalised product of likelihood and prior, by quadrature."""
    mpmath.mp.dps = 20
    a, b, heads, tails = 2, 3, 7, 4

    def product(p: mpmath.mpf) -> mpmath.mpf:
        return p ** (a - 1 + heads) * (1 - p) ** (b - 1 + tails)

    evidence = mpmath.quad(product, [0, 0.5, 1])
    mean = mpmath.quad(lambda p: p * product(p), [0, 0.5, 1]) / evidence
    conjugate = mpmath.beta(a + heads, b + tails)
    return [
        same("the evidence is the normaliser of Beta(a + heads, b + tails)", float(evidence / conjugate), 1.0, 1e-12),
        same("posterior mean of Beta(2, 3) after 7 heads and 4 tails", float(mean), 9 / 16, 1e-12),
    ]


def training() -> list[Evidence]:
    """Gradient descent on ½Σ(θ − x)² from two starts, against the posterior for two prior means."""
    data = (1.0, 2.0, 6.0)
    loss = compile_numpy(derive("sum((theta - x)**2)/2", {"theta": "", "x": "n"}, ["theta"]))

    def descend(theta: float) -> float:
        for _ in range(200):
            theta -= 0.1 * float(loss(theta=theta, x=np.array(data))[1]["theta"])
        return theta

    def posterior_mean(prior: float) -> float:
        return (prior + sum(data)) / (1 + len(data))

    return [
        same("the trained point from θ₀ = −10", descend(-10.0), 3.0),
        same("the trained point from θ₀ = +10: the start leaves no trace", descend(10.0), 3.0),
        apart(
            "the posterior mean with prior mean −10, against that with +10",
            posterior_mean(-10.0),
            posterior_mean(10.0),
            4.9,
        ),
        apart("the posterior's variance, against that of a point", 1 / (1 + len(data)), 0.0, 0.2),
    ]


def decay() -> list[Evidence]:
    """w = 1, g = 0, decay 0.1, rate 0.01: AdamW, Adam with the penalty in its gradient, and plain descent."""
    coupled = _adam(1.0, 0.1, 0.01)["theta"]
    decoupled = _adam(1.0, 0.0, 0.01)["theta"] - 0.01 * 0.1 * 1.0
    penalty = at("lam/2*w**2", {"w": "", "lam": ""}, {"w": 1.0, "lam": 0.1}, ["w"])
    return [
        same("AdamW", decoupled, 0.9990, 1e-9),
        same("Adam with L2 added to the gradient", coupled, 0.9900, 1e-8),
        apart("AdamW against Adam with L2", decoupled, coupled, 0.008),
        same(
            "gradient descent with the penalty: the same as decay",
            1.0 - 0.01 * penalty["w_bar"],
            (1 - 0.01 * 0.1) * 1.0,
        ),
    ]

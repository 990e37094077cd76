"""The neural tangent kernel: its limit at large width, and training under a fixed kernel.

The kernel at finite width is the inner product of gradients that the engine derives from the forward formula.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.experiments import Experiment, concluded
from gradproof.numeric.compile import Compiled, compile_numpy
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at_least, at_most, same
from gradproof.symbolic.derive import derive
from gradproof.symbolic.phrases import phrase

Array = NDArray[Any]
WIDTHS = (16, 64, 256, 1024, 4096)
RUNS = 24


@lru_cache(maxsize=1)
def network() -> Compiled:
    """The generated value and gradients of f = a·relu(Wx)/√m."""
    return compile_numpy(derive("a @ relu(W @ x) / sqrt(m)", {"W": "m,d", "x": "d", "a": "m"}, ["W", "a"]))


def kernel(weights: Array, outer: Array, x: Array, y: Array) -> float:
    """Σ over all parameters of the products of the gradients at x and y."""
    one, two = (network()(W=weights, a=outer, x=point)[1] for point in (x, y))
    return float(sum((one[name] * two[name]).sum() for name in one))


def limit(x: Array, y: Array) -> float:
    """The kernel at infinite width, for standard normal weights: the arc-cosine kernels of order 1 and 0."""
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    angle = float(np.arccos(np.clip(x @ y / lengths, -1, 1)))
    first = lengths * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    return float(first + (x @ y) * (np.pi - angle) / (2 * np.pi))


def run() -> Experiment:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5))
    rows = []
    for width in WIDTHS:
        found = np.array([kernel(rng.normal(size=(width, 5)), rng.normal(size=width), x, y) for _ in range(RUNS)])
        rows.append(
            (float(width), float(np.sqrt(np.mean((found - limit(x, y)) ** 2))), float(found.mean() - limit(x, y)))
        )
    slope = float(np.polyfit(np.log([r[0] for r in rows]), np.log([r[1] for r in rows]), 1)[0])
    checks = (
        same("slope of log deviation over log width", slope, -0.5, 0.12),
        at_most("deviation at width 4096, relative to the limit", rows[-1][1] / abs(limit(x, y)), 0.1),
        at_most(
            "|mean − limit| at width 16, in standard errors: no bias", abs(rows[0][2]) / (rows[0][1] / RUNS**0.5), 3.5
        ),
    )
    right = phrase("the kernel tends to its closed form; the deviation falls like m to the power {}", f"{slope:.2f}")
    return Experiment(
        "Neural tangent kernel: deviation from its limit",
        ("width m", "root mean square deviation"),
        tuple(row[:2] for row in rows),
        concluded(checks, right, "no limit in these numbers"),
        checks,
        True,
    )


def evidence() -> list[Evidence]:
    return list(run().checks)


def dynamics() -> list[Evidence]:
    """A linear model under gradient flow, in 20000 small steps, against the formula at time t and against its limit."""
    rng = np.random.default_rng(1)
    train, test = rng.normal(size=(3, 6)), rng.normal(size=(2, 6))
    start, target = rng.normal(size=6), rng.normal(size=3)
    theta, time, steps = start.copy(), 0.3, 20000
    loss = compile_numpy(derive("sum((X @ theta - y)**2)/2", {"X": "n,d", "theta": "d", "y": "n"}, ["theta"])).function
    for _ in range(steps):
        # the middle of each step, so that the error of the method is below the tolerance
        middle = theta - time / steps / 2 * loss(X=train, theta=theta, y=target)[1]["theta"]
        theta -= time / steps * loss(X=train, theta=middle, y=target)[1]["theta"]
    values, vectors = np.linalg.eigh(train @ train.T)
    inverse = vectors / values @ vectors.T
    residual = target - train @ start
    shrunk = vectors * (1 - np.exp(-values * time)) @ vectors.T @ residual
    formula = test @ start + test @ train.T @ inverse @ shrunk
    document = test @ start + test @ train.T @ inverse @ residual
    late = start + train.T @ inverse @ (vectors * (1 - np.exp(-values * 1e6)) @ vectors.T @ residual)
    return [
        same(
            "at t = 0.3, integrated, against the formula with I − exp(−ηΘt)",
            (test @ theta).tolist(),
            formula.tolist(),
            1e-8,
        ),
        apart("at t = 0.3 against the document's form", (test @ theta).tolist(), document.tolist(), 0.1),
        same("as t → ∞ the document's form", (test @ late).tolist(), document.tolist(), 1e-9),
        at_least("smallest eigenvalue of the kernel", float(values[0]), 0.1),
    ]

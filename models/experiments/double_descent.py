"""Double descent: random ReLU features, minimum-norm least squares, test error over the number of features."""

from __future__ import annotations

import numpy as np

from gradproof.models.experiments import Experiment, concluded
from gradproof.symbolic.catalogue.evidence import Evidence, at_least
from gradproof.symbolic.phrases import phrase

POINTS, INPUTS, NOISE, RUNS = 40, 8, 0.3, 15
FEATURES = (2, 4, 8, 12, 16, 24, 32, 36, 40, 44, 50, 64, 100, 200, 400, 800)


def errors(features: int, seed: int) -> tuple[float, float]:
    """Training and test error of one run; the test targets have no noise."""
    rng = np.random.default_rng(seed)
    teacher = rng.normal(size=INPUTS) / np.sqrt(INPUTS)
    train, test = rng.normal(size=(POINTS, INPUTS)), rng.normal(size=(300, INPUTS))
    hidden = rng.normal(size=(INPUTS, features)) / np.sqrt(INPUTS)
    target = train @ teacher + NOISE * rng.normal(size=POINTS)
    inside, outside = (np.maximum(x @ hidden, 0) / np.sqrt(features) for x in (train, test))
    weights = np.linalg.pinv(inside) @ target  # of all exact or best fits, the one of least norm
    return float(np.mean((inside @ weights - target) ** 2)), float(np.mean((outside @ weights - test @ teacher) ** 2))


def run() -> Experiment:
    rows = []
    for features in FEATURES:
        train, test = np.median([errors(features, seed) for seed in range(RUNS)], axis=0)
        rows.append((float(features), float(train), float(test)))
    checks = tuple(_checks({int(p): (train, test) for p, train, test in rows}))
    right = phrase(
        "the test error falls, rises to a peak where P is near N = {}, and falls again below its first minimum", POINTS
    )
    return Experiment(
        phrase("Double descent: {} points, random features", POINTS),
        ("features P", "training error", "test error"),
        tuple(rows),
        concluded(checks, right, "no double descent in these numbers"),
        checks,
        True,
    )


def _checks(found: dict[int, tuple[float, float]]) -> list[Evidence]:
    test = {p: errors[1] for p, errors in found.items()}
    peak = max(test, key=test.__getitem__)
    valley = min((p for p in test if p < POINTS), key=test.__getitem__)
    return [
        at_least(
            phrase("first descent: test error at P = 2 over that at the first minimum, P = {}", valley),
            test[2] / test[valley],
            1.2,
        ),
        at_least(phrase("the peak, at P = {}, over the first minimum", peak), test[peak] / test[valley], 3.0),
        at_least("nearness of the peak to N = 40: min(P, N)/max(P, N)", min(peak, POINTS) / max(peak, POINTS), 0.8),
        at_least("second descent: the peak over the error at P = 800", test[peak] / test[800], 3.0),
        at_least("the first minimum over the error at P = 800", test[valley] / test[800], 1.0),
    ]


def evidence() -> list[Evidence]:
    return list(run().checks)

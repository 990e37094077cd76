"""Softmax saturation: how small the softmax Jacobian gets as d grows, with scores q·k and with q·k/√d."""

from __future__ import annotations

import numpy as np

from gradproof.models.experiments import Experiment, concluded
from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.evidence import Evidence, at_least, at_most

WIDTHS = (4, 16, 64, 256, 1024)
KEYS, RUNS = 16, 200


def norms(width: int, scaled: bool) -> tuple[float, float]:
    """Mean spectral norm of the derived Jacobian and mean largest weight over random queries and keys."""
    softmax = compile_numpy(derive_entry(get("softmax.jacobian")))
    rng = np.random.default_rng(width)
    found, largest = [], []
    for _ in range(RUNS):
        scores = rng.normal(size=(KEYS, width)) @ rng.normal(size=width) / (np.sqrt(width) if scaled else 1.0)
        a, jacobian = softmax(s=scores)
        found.append(float(np.linalg.eigvalsh(jacobian["s"])[-1]))
        largest.append(float(a.max()))
    return float(np.mean(found)), float(np.mean(largest))


def run() -> Experiment:
    rows = tuple((float(d), *norms(d, False), *norms(d, True)) for d in WIDTHS)
    raw, scaled = [row[1] for row in rows], [row[3] for row in rows]
    checks = (
        at_most("unscaled: the Jacobian's norm at d = 1024 over that at d = 4", raw[-1] / raw[0], 0.5),
        at_least("unscaled: mean largest weight at d = 1024", rows[-1][2], 0.9),
        at_least("scaled: the norm at d = 1024 over that at d = 4", scaled[-1] / scaled[0], 0.8),
        at_most("every norm, against ½", max(raw + scaled), 0.5),
    )
    return Experiment(
        "Softmax saturation over the width of queries and keys",
        ("d", "norm", "largest weight", "norm, scaled", "largest weight, scaled"),
        rows,
        concluded(
            checks,
            "unscaled scores push softmax to one-hot and its Jacobian to 0; scaled by 1/√d it does not depend on d",
            "no saturation",
        ),
        checks,
        True,
    )


def evidence() -> list[Evidence]:
    return list(run().checks)

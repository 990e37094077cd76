"""The intrinsic dimension of data whose dimension is known, by the ratio of the two nearest distances (TwoNN)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.experiments import Experiment, concluded
from gradproof.symbolic.catalogue.evidence import Evidence, same
from gradproof.symbolic.phrases import phrase

AMBIENT, POINTS = 30, 1500
KNOWN = (1, 2, 3, 5, 8)


def two_nearest(points: NDArray[Any]) -> float:
    """The maximum-likelihood dimension: the number of points over Σ log(r₂/r₁)."""
    squares = (points**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * points @ points.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.sqrt(np.maximum(np.partition(distances, 1, axis=1)[:, :2], 1e-300))
    return float(len(points) / np.log(nearest[:, 1] / nearest[:, 0]).sum())


def surface(dimension: int, seed: int) -> NDArray[Any]:
    """Points of a curved surface of that dimension in 30-dimensional space."""
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(POINTS, dimension))
    turned = np.linalg.qr(rng.normal(size=(AMBIENT, AMBIENT)))[0]
    bent = np.zeros((POINTS, AMBIENT))
    bent[:, :dimension] = flat
    bent[:, dimension : 2 * dimension] = 0.3 * np.sin(2 * flat)
    return bent @ turned


def run() -> Experiment:
    rows = tuple((float(d), float(AMBIENT), two_nearest(surface(d, d))) for d in KNOWN)
    checks = tuple(
        same(phrase("estimate at dimension {} in {}", f"{d:.0f}", AMBIENT), found, d, 0.15 * d) for d, _, found in rows
    )
    return Experiment(
        "Intrinsic dimension, estimated and known",
        ("dimension", "ambient", "estimate"),
        rows,
        concluded(
            checks,
            "the estimator finds the known dimension within 15 %, far below the ambient one",
            "the estimator misses",
        ),
        checks,
    )


def evidence() -> list[Evidence]:
    return list(run().checks)

"""How often a Rademacher bound holds: threshold classifiers on [0, 1] with noisy labels, 0–1 loss, fresh samples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.experiments import Experiment, concluded
from gradproof.symbolic.catalogue.evidence import Evidence, at_least, at_most
from gradproof.symbolic.phrases import phrase

SAMPLES, FLIPPED, DELTA = 150, 0.2, 0.1
SIZES = (50, 100, 200)


def losses(x: NDArray[Any], y: NDArray[Any], thresholds: NDArray[Any]) -> NDArray[Any]:
    """(thresholds, points): the 0–1 losses of all classifiers [x > threshold]."""
    return ((x > thresholds[:, None]) != y).astype(float)


def true_risk(thresholds: NDArray[Any]) -> NDArray[Any]:
    """The exact risk: labels are [x > ½], flipped with probability 0.2, x uniform."""
    return FLIPPED + (1 - 2 * FLIPPED) * np.abs(thresholds - 0.5)


def one(size: int, seed: int) -> tuple[float, float]:
    """The largest L − L̂ over all thresholds of one sample, and the bound 2 R̂ + 3 √(log(2/δ)/2n)."""
    rng = np.random.default_rng([size, seed])
    x = rng.random(size)
    y = (x > 0.5) != (rng.random(size) < FLIPPED)
    # between two neighbouring points the losses do not change and the risk is largest at an end
    points = np.concatenate([[0.0], np.sort(x), [1.0]])
    ends = np.concatenate([points, np.nextafter(points, -1)]).clip(0, 1)
    table = losses(x, y, ends)
    gap = float((true_risk(ends) - table.mean(axis=1)).max())
    signs = rng.choice([-1.0, 1.0], size=(size, 60))
    complexity = float((table @ signs / size).max(axis=0).mean())
    return gap, 2 * complexity + 3 * float(np.sqrt(np.log(2 / DELTA) / (2 * size)))


def run() -> Experiment:
    rows = []
    for size in SIZES:
        gaps, bounds = np.array([one(size, seed) for seed in range(SAMPLES)]).T
        rows.append((float(size), float((gaps <= bounds).mean()), float(gaps.mean()), float(bounds.mean())))
    checks = tuple(
        check
        for size, covered, gap, bound in rows
        for check in (
            at_least(
                phrase("share of {} samples of {} in which the bound holds for all thresholds", SAMPLES, f"{size:.0f}"),
                covered,
                1 - DELTA,
            ),
            at_most(phrase("mean largest gap L − L̂ at {}, against the mean bound", f"{size:.0f}"), gap, bound),
        )
    )
    checks += (
        at_most("the bound at 200 points over that at 50: falls like 1/√n", rows[-1][3] / rows[0][3], 4**-0.5 * 1.15),
    )
    return Experiment(
        "Coverage of a generalisation bound",
        ("sample size n", "coverage", "mean largest gap", "mean bound"),
        tuple(rows),
        concluded(
            checks,
            phrase("the bound holds at least as often as promised ({}); it is far from tight", f"{1 - DELTA:.0%}"),
            "the bound fails",
        ),
        checks,
        True,
    )


def evidence() -> list[Evidence]:
    return [*lemmas(), *run().checks]


def lemmas() -> list[Evidence]:
    """Both lemmas of the proof in fractions: over all samples of three among four points, and all signs.

    Symmetrisation: E sup (L − L̂) ≤ 2 E R̂. For McDiarmid's inequality: another point changes the supremum by ≤ 1/n.
    """
    labels, n, zero = (0, 1, 0, 1), 3, Fraction(0)
    table = [[Fraction(int((x >= t) != labels[x])) for x in range(4)] for t in range(5)]

    def gap(sample: Sequence[int]) -> Fraction:
        return max(sum(row, zero) / 4 - sum((row[x] for x in sample), zero) / n for row in table)

    def complexity(sample: Sequence[int]) -> Fraction:
        signs = list(product((1, -1), repeat=n))
        suprema = (
            max(sum((s * row[x] for s, x in zip(sign, sample, strict=True)), zero) / n for row in table)
            for sign in signs
        )
        return sum(suprema, zero) / len(signs)

    samples = list(product(range(4), repeat=n))
    mean, bound = (sum(map(of, samples), zero) / len(samples) for of in (gap, complexity))
    changes = [abs(gap(s) - gap((*s[:k], x, *s[k + 1 :]))) for s in samples for k in range(n) for x in range(4)]
    return [
        at_most("E sup(L − L̂) over all samples of 3 among 4 points, in fractions, against 2 E R̂", mean, 2 * bound),
        at_most(
            "largest change of sup(L − L̂) by another third of the sample, against 1/3", max(changes), Fraction(1, n)
        ),
    ]

"""Numbers for the entries about dynamical systems: plain Python and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from gradproof.symbolic.catalogue.evidence import Evidence, at_least, at_most, holds, same


def _iterate(step: Callable[[float], float], start: float, count: int) -> float:
    for _ in range(count):
        start = step(start)
    return start


def fixed_point() -> list[Evidence]:
    """F(h) = h + 1 runs away; F(h) = tanh(h)/2 + 1 is a contraction with factor ½."""

    def contraction(h: float) -> float:
        return math.tanh(h) / 2 + 1

    limit = _iterate(contraction, 0.0, 200)
    errors = [abs(_iterate(contraction, -5.0, t) - limit) for t in range(12)]
    first = abs(contraction(-5.0) + 5.0)
    return [
        same("h after 100 steps of h + 1 from 0", _iterate(lambda h: h + 1, 0.0, 100), 100.0),
        same("the contraction's fixed point: F(h) − h", contraction(limit) - limit, 0.0, 1e-15),
        same("the same from another start", _iterate(contraction, 50.0, 200), limit, 1e-15),
        at_most(
            "largest error over Banach's bound qᵗ|h₁ − h₀|/(1 − q)",
            max(e / (0.5**t * first / 0.5) for t, e in enumerate(errors)),
            1.0,
        ),
    ]


def lyapunov() -> list[Evidence]:
    """A = [[½, 1], [0, ½]], Q = I: P from P − AᵀPA = I, in fractions; and what fails without continuity."""
    a = [[Fraction(1, 2), Fraction(1)], [Fraction(0), Fraction(1, 2)]]
    # p_11 − p_11/4 = 1;  p_12 − (p_11/2 + p_12/4) = 0;  p_22 − (p_11 + p_12 + p_22/4) = 1
    p11 = Fraction(4, 3)
    p12 = Fraction(4, 3) * p11 / 2
    p22 = Fraction(4, 3) * (1 + p11 + p12)
    p = [[p11, p12], [p12, p22]]
    residual = [
        [p[i][j] - sum(a[k][i] * p[k][m] * a[m][j] for k in range(2) for m in range(2)) for j in range(2)]
        for i in range(2)
    ]

    def value(h: list[Fraction]) -> Fraction:
        return sum((h[i] * p[i][j] * h[j] for i in range(2) for j in range(2)), Fraction(0))

    h = [Fraction(3), Fraction(-2)]
    falls = True
    for _ in range(30):
        following = [a[0][0] * h[0] + a[0][1] * h[1], a[1][1] * h[1]]
        falls &= value(following) < value(h)
        h = following

    def jump(x: float) -> float:
        """Continuous but at 1: |F(x)| < |x| for every x ≠ 0, yet nothing from above 1 gets below it."""
        return (1 + x) / 2 if x > 1 else x / 2

    return [
        holds("P − AᵀPA = I in fractions", residual == [[1, 0], [0, 1]], f"P = [[{p11}, {p12}], [{p12}, {p22}]]"),
        holds("P is positive definite", p11 > 0 and p11 * p22 - p12 * p12 > 0),
        holds("V falls in 30 steps from (3, −2)", falls),
        at_most("length after 30 steps", float(max(map(abs, h))), 1e-6),
        at_least("F not continuous: V = |x| falls, yet x stays above 1 from 3", _iterate(jump, 3.0, 40), 1.0),
        at_least(
            "V not positive definite: |x| after 20 steps of 2x from 1, V = −x² falling",
            _iterate(lambda x: 2 * x, 1.0, 20),
            1e6,
        ),
    ]


def spectral_radius() -> list[Evidence]:
    """J₁ = [[0, 2], [0, 0]], J₂ = [[0, 0], [2, 0]]."""
    j1, j2 = [[0, 2], [0, 0]], [[0, 0], [2, 0]]

    def product(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
        return [[sum(a[i][k] * b[k][j] for k in range(2)) for j in range(2)] for i in range(2)]

    def radius(m: list[list[int]]) -> float:
        trace, det = m[0][0] + m[1][1], m[0][0] * m[1][1] - m[0][1] * m[1][0]
        root = math.sqrt(max(trace * trace - 4 * det, 0))
        return max(abs(trace + root), abs(trace - root)) / 2

    def singular(m: list[list[int]]) -> float:
        return math.sqrt(radius(product([list(column) for column in zip(*m, strict=True)], m)))

    both = product(j2, j1)
    return [
        same("spectral radius of each factor", [radius(j1), radius(j2)], [0.0, 0.0], 0.0),
        same("spectral radius of the product", radius(both), 4.0, 0.0),
        same("its bound from the largest singular values, 2 · 2", singular(j2) * singular(j1), radius(both), 0.0),
        same("the gradient's growth over ten pairs of layers", radius(both) ** 10, 4.0**10, 0.0),
    ]

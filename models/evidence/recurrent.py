"""Numbers for the entries about recurrent networks: mpmath and the derived systems."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import mpmath

from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.entry import get
from gradproof.symbolic.catalogue.evidence import Evidence, at, at_most, matrix_at, point, same
from gradproof.symbolic.catalogue.recurrent import ONE_STEP, ONE_STEP_SHAPES
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.deriving.products import jacobian
from gradproof.symbolic.equations.evaluate import HighPrecision, Point
from gradproof.symbolic.folding.checks import small_sizes
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse
from gradproof.symbolic.phrases import phrase

Matrix = Any  # an mpmath matrix


def norm(matrix: Matrix) -> mpmath.mpf:
    """The largest singular value of a square matrix."""
    return max(mpmath.svd_r(matrix, compute_uv=False))


def loss_chain() -> list[Evidence]:
    """h̄₀ by back-propagation against the last state's gradient times the propagated Jacobian, for growing lengths."""
    backward, jacobian = derive_entry(get("rnn.bptt")).system, derive_entry(get("rnn.jacobian_product")).system
    found = []
    for length in (1, 2, 3, 5):
        sizes = {size: length if str(size) == "T" else value for size, value in small_sizes(backward).items()}
        size = next(value for symbol, value in sizes.items() if str(symbol) == "d")
        rng = random.Random(length)
        last = [mpmath.mpf(rng.randint(1, 9)) / 4 for _ in range(size)]
        direct: dict[tuple[int, ...], Any] = {
            (t, k): last[k] if t == length else mpmath.mpf(0) for t in range(length + 1) for k in range(size)
        }
        first = Point(backward, sizes, HighPrecision(0), 0, {"G": direct})
        second = Point(jacobian, sizes, HighPrecision(0), 0)
        propagated = [
            mpmath.fsum(last[k] * second.entry("J_h", (length, k, j)) for k in range(size)) for j in range(size)
        ]
        by_chain = [first.entry("h_0_bar", (j,)) for j in range(size)]
        found.append(same(phrase("h̄₀ from J_{} = c·h_{}", length, length), by_chain, propagated, 1e-30))
    return found


def step_jacobian() -> list[Evidence]:
    """One step with W = [[1,2],[0,1]] and σ′ = (1, ¼): the two layouts are different matrices."""
    w, s = [[1.0, 2.0], [0.0, 1.0]], [1.0, 0.25]
    given = {"W": w, "s": s}
    shapes = {"W": "d,d", "s": "d"}
    document = at("W.T @ diag(s)", shapes, given)["value"]
    right = at("diag(s) @ W", shapes, given)["value"]
    return [
        same("the document's W_hᵀ diag(σ′)", document, [[1.0, 0.0], [2.0, 0.25]]),
        same("the Jacobian diag(σ′) W_h", right, [[1.0, 2.0], [0.0, 0.25]]),
        same("one is the transpose of the other", document, [list(row) for row in zip(*right, strict=True)]),
    ]


def scalar_network() -> list[Evidence]:
    """h_t = w h_{t−1} + u x_t without activation: h₀ = 0, w = ½, u = 1, x = (1, 1, 1) gives ∂h₃/∂w = 2."""
    text = "h[0] = 0; h[t+1] = w*h[t] + u*x[t]; L = h[T]"
    found = at(text, {"w": "", "u": "", "x": "T"}, {"w": 0.5, "u": 1, "x": [1, 1, 1]}, ["w"])
    return [same("∂h₃/∂w", found["w_bar"], 2.0)]


def product_norm(factors: list[Matrix]) -> mpmath.mpf:
    total = factors[0]
    for factor in factors[1:]:
        total = factor * total
    return norm(total)


@lru_cache
def step() -> Derivation:
    """The derivation of one step tanh(W h + u): the Jacobian J_h by the state."""
    program = parse(ONE_STEP)
    return jacobian(build(program, ONE_STEP_SHAPES), "h", program)


def steps(w: list[list[Any]], h: list[Any], inputs: list[list[Any]]) -> list[Matrix]:
    """The derived Jacobian of every step from the state h."""
    factors = []
    for u in inputs:
        given = {"W_h": w, "h": h, "u": u}
        factors.append(matrix_at(step().system, "J_h", given))
        found = point(step().system, given)
        h = [found.entry(step().output, (k,)) for k in range(len(h))]
    return factors


def singular_bound() -> list[Evidence]:
    """Random tanh networks stay below the bound; a scaled rotation with σ(z) = z reaches it; below 1 it vanishes."""
    mpmath.mp.dps = 30
    rng = random.Random(0)
    worst = mpmath.mpf("-inf")
    for _ in range(40):
        w = [[mpmath.mpf(rng.gauss(0, 0.7)) for _ in range(3)] for _ in range(3)]
        start, *inputs = ([mpmath.mpf(rng.gauss(0, 1)) for _ in range(3)] for _ in range(rng.randint(2, 6)))
        factors = steps(w, start, inputs)
        worst = max(worst, product_norm(factors) - norm(mpmath.matrix(w)) ** len(factors))
    found = [at_most("largest ‖product‖ − σ_max^(t−k) in 40 random tanh networks (γ = 1)", worst, 0.0, 1e-25)]
    c, s = mpmath.cos(1), mpmath.sin(1)
    rotation = mpmath.matrix([[c, -s], [s, c]])
    for scale in ("0.9", "1.1"):
        value = product_norm([mpmath.mpf(scale) * rotation] * 10)
        found.append(
            same(
                phrase("{} × a rotation, 10 steps, σ(z) = z: the bound is reached", scale),
                value,
                mpmath.mpf(scale) ** 10,
                1e-20,
            )
        )
    found.append(
        at_most("γ σ_max = 0.9: norm after 100 steps", product_norm([mpmath.mpf("0.9") * rotation] * 100), 3e-5)
    )
    return found


def explosion() -> list[Evidence]:
    """σ_max > 1 and yet no explosion: a nilpotent matrix, and saturated units."""
    mpmath.mp.dps = 30
    nilpotent = mpmath.matrix([[0, 2], [0, 0]])
    found = [same("W = [[0,2],[0,0]]: σ_max", norm(nilpotent), 2.0, 1e-20)]
    found.append(same("W = [[0,2],[0,0]], σ(z) = z: norm after 2 steps", product_norm([nilpotent] * 2), 0.0, 1e-20))
    factors = steps([[3]], [1], [[2]] * 5)
    found.append(same("h ← tanh(3h + 2): σ_max = 3", norm(mpmath.matrix([[3]])), 3.0, 1e-20))
    found.append(at_most("h ← tanh(3h + 2): norm after 5 saturated steps", product_norm(factors), 1e-12))
    return found

"""Numbers for the entries about attention: shapes read off the equations, small examples, the generated code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

import mpmath
import numpy as np

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.attention import (
    ATTENTION_SHAPES,
    BLOCK_SHAPES,
    CAUSAL,
    CAUSAL_WEIGHTS,
    OUTPUT,
    PROJECTIONS,
    SCORE,
    WEIGHTS,
)
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.entry import get
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at, at_least, at_most, holds, matrix_at, same
from gradproof.symbolic.catalogue.seq2seq import ADDITIVE, ADDITIVE_SHAPES, DOT, SCALED, SCORE_SHAPES
from gradproof.symbolic.counting import parameters, size_text
from gradproof.symbolic.equations.axes import with_axis
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.phrases import phrase
from gradproof.symbolic.printing import text

DRAWS = 200_000
SIGMAS = 5.0  # the confidence interval of a Monte Carlo estimate, in standard errors


def sampled(label: str, values: np.ndarray, expected: float) -> Evidence:
    """The variance of a sample against the formula, within five standard errors of the estimate (at most 5 %)."""
    centred = (values - values.mean()) ** 2
    error = float(SIGMAS * centred.std() / np.sqrt(values.size))
    assert error < 0.05 * expected, "too few draws to tell the formula from one that is 5 % off"
    return same(
        phrase("{}: {} draws, {} standard errors", label, values.size, f"{SIGMAS:g}"),
        float(centred.mean()),
        expected,
        error,
    )


def _products(mean_q: float, sigma_q: float, mean_k: float, sigma_k: float, size: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    q, k = (rng.normal(mean, sigma, (DRAWS, size)) for mean, sigma in ((mean_q, sigma_q), (mean_k, sigma_k)))
    product = compile_numpy(with_axis(build(SCORE, {"q": "d_k", "k": "d_k"}), "n", {"q": 0, "k": 0}))
    (found,) = product(q=q, k=k).values()
    return np.asarray(found)


def dot_product_variance() -> list[Evidence]:
    """d_k = 16: mean 0 and variance 1, and another case of the general formula."""
    general = 16 * (0.5**2 * 2**2 + 0.5**2 * 0.3**2 + 2**2 * 1**2)
    return [
        sampled("Var(qᵀk), mean 0, variance 1, d_k = 16", _products(0, 1, 0, 1, 16), 16.0),
        sampled("Var(qᵀk), μ_q = 1, σ_q = ½, μ_k = 0.3, σ_k = 2, d_k = 16", _products(1, 0.5, 0.3, 2, 16), general),
    ]


def scaled_variance() -> list[Evidence]:
    return [sampled(f"Var(qᵀk/√{size})", _products(0, 1, 0, 1, size) / np.sqrt(size), 1.0) for size in (4, 32)]


def causal_mask() -> list[Evidence]:
    """Scores 0: E22 as printed gives rows that sum to i/n; a row with nothing allowed is never NaN."""
    scores = np.zeros((3, 3))
    (masked,) = compile_numpy(build(CAUSAL + "A", {"S": "n,n"}))(S=scores).values()
    printed = np.where(np.tril(np.ones((3, 3))) == 1, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), 0)
    found = [
        same("rows of the masked softmax sum to", masked.sum(axis=1).tolist(), [1.0, 1.0, 1.0]),
        same("rows of E22 as printed sum to", printed.sum(axis=1).tolist(), [1 / 3, 2 / 3, 1.0]),
    ]
    blocked = compile_numpy(build("softmax(where(M == 1, S, -inf))", {"S": "n,n", "M": "n,n:index=2"}))
    try:
        (value,) = blocked(S=scores, M=np.array([[0, 0, 0], [1, 1, 0], [1, 1, 1]])).values()
        outcome = "NaN" if np.isnan(value).any() else "zeros" if not value[0].any() else "numbers"
    except ValueError:
        outcome = "error"
    return [
        *found,
        holds("a row with nothing allowed gives an error or zeros, never NaN", outcome in ("error", "zeros"), outcome),
    ]


def permutation() -> list[Evidence]:
    """All permutations of four tokens; and the counterexample with a causal mask."""
    rng = np.random.default_rng(0)
    shapes = {name: BLOCK_SHAPES[name] for name in ("X", "W_Q", "W_K", "W_V")}
    weights = {name: rng.normal(size=(3, 2)) for name in ("W_Q", "W_K", "W_V")}
    x = rng.normal(size=(4, 3))

    def largest(text: str) -> float:
        attention = compile_numpy(build(text, shapes))

        def run(inputs: np.ndarray) -> np.ndarray:
            (value,) = attention(X=inputs, **weights).values()
            return np.asarray(value)

        return max(float(np.abs(run(x[list(p)]) - run(x)[list(p)]).max()) for p in permutations(range(4)))

    return [
        at_most(
            "no mask: largest |Attention(PX) − P Attention(X)| over all 24 permutations",
            largest(PROJECTIONS + WEIGHTS + "A @ V"),
            1e-13,
        ),
        at_least("causal mask: the same difference", largest(PROJECTIONS + CAUSAL_WEIGHTS + "A @ V"), 0.1),
    ]


def score_variants() -> list[Evidence]:
    """One s and H, three scores, three sets of weights; and how many parameters each score has."""
    given = {"s": [1.0, 2.0], "H": [[1.0, 0.0], [0.0, 1.0]]}
    learned = {"W_1": [[1.0, 0.0]], "W_2": [[0.0, 1.0]], "v": [1.0]}
    dot = at(f"{DOT}; softmax(e)", SCORE_SHAPES, given)["value"]
    scaled = at(f"{SCALED}; softmax(e)", SCORE_SHAPES, given)["value"]
    additive = at(f"{ADDITIVE}; softmax(e)", ADDITIVE_SHAPES, {**given, **learned})["value"]
    count = parameters(build(ADDITIVE, ADDITIVE_SHAPES), ["W_1", "W_2", "v"])
    return [
        apart("weights for s = (1,2), H = I: dot against scaled", dot, scaled, 0.05),
        apart("weights for s = (1,2), H = I: dot against additive", dot, additive, 0.05),
        holds(
            "the additive score prefers position 1, the dot score position 2",
            additive[0] > additive[1] and dot[0] < dot[1],
        ),
        same("parameters of the additive score", size_text(count), "2·d·d_a + d_a"),
        same(
            "parameters of the dot scores",
            [len({*build(text, SCORE_SHAPES).inputs} - {*given}) for text in (DOT, SCALED)],
            [0, 0],
        ),
    ]


def outer_product() -> list[Evidence]:
    """q = (1, 2), k = (3, 4): q kᵀ is 11, qᵀk of two rows is a matrix."""
    given, shapes = {"q": [1, 2], "k": [3, 4]}, {"q": "d", "k": "d"}
    return [
        same("q kᵀ of the rows (1,2) and (3,4)", at("q @ k", shapes, given)["value"], 11.0),
        same("qᵀk of the same rows", at("outer(q, k)", shapes, given)["value"], [[3.0, 4.0], [6.0, 8.0]]),
    ]


def shapes() -> list[Evidence]:
    """The document's table, read off the equations."""
    system = build(f"{WEIGHTS}{OUTPUT}", ATTENTION_SHAPES)
    transposed = build("K.T", {"K": "n,d_k"})
    found = {name: text.shape_text(system.arrays[name], system) for name in ("Q", "S", "A", "V", "O")}
    found["Kᵀ"] = text.shape_text(transposed.arrays[transposed.outputs[0]], transposed)
    table = {"Q": "n×d_k", "Kᵀ": "d_k×n", "S": "n×n", "A": "n×n", "V": "n×d_v", "O": "n×d_v"}
    return [
        same(phrase("shape of {}", name), found[name].replace("(", "").replace(")", "").replace(", ", "×"), table[name])
        for name in table
    ]


def bilinear() -> list[Evidence]:
    """The two-vector example: a reads b with 1, b reads a with 0; without projections both are 0."""
    given = {"X": [[1, 0], [0, 1]], "W_Q": [[1], [0]], "W_K": [[0], [1]]}
    scores = at("Q = X @ W_Q; K = X @ W_K; Q @ K.T", {"X": "n,d", "W_Q": "d,d_k", "W_K": "d,d_k"}, given)["value"]
    plain = at("X @ X.T", {"X": "n,d"}, {"X": given["X"]})["value"]
    return [
        same("a reads b", scores[0][1], 1.0),
        same("b reads a", scores[1][0], 0.0),
        same("the dot product of the inputs themselves", plain[0][1], 0.0),
        same(
            "d_k = 1, d = 2: the determinant of W_Q W_Kᵀ (rank ≤ 1)",
            scores[0][0] * scores[1][1] - scores[0][1] * scores[1][0],
            0.0,
        ),
    ]


# ------------------------------------------------------------------------------------------- softmax and its saturation


@lru_cache
def softmax_jacobian() -> System:
    """The derivation of the entry softmax.jacobian: the derivative J_s of the weights a by the scores s."""
    return derive_entry(get("softmax.jacobian")).system


def jacobian_norm(scores: Sequence[Any]) -> Any:
    """The spectral norm of the derived Jacobian of softmax at these scores, by mpmath's symmetric eigenvalues."""
    matrix = matrix_at(softmax_jacobian(), "J_s", {"s": list(scores)})
    return max(abs(value) for value in mpmath.eigsy(matrix, eigvals_only=True))


def saturated_loss() -> list[Evidence]:
    """Logits (t, 0, 0) and target 1: the softmax Jacobian vanishes, the gradient of the loss does not."""
    found = []
    for t in (5, 10, 20, 40):
        point = at("L = -l[y] + logsumexp(l)", {"l": "N", "y": ":index=N"}, {"l": [t, 0, 0], "y": 1}, ["l"])
        bound = 3 * mpmath.exp(-t)
        found.append(
            at_most(phrase("t = {}: spectral norm of the softmax Jacobian", t), jacobian_norm([t, 0, 0]), bound)
        )
        found.append(
            same(phrase("t = {}: gradient at the target", t), point["l_bar"][1], -1.0, 2 * float(mpmath.exp(-t)))
        )
    return found


def saturation() -> list[Evidence]:
    """‖J‖₂ ≤ max 2a(1 − a) ≤ ½: at random points, where it is tight, and as a weight goes to 1."""
    rng = random.Random(0)
    mpmath.mp.dps = 40
    worst = 0.0
    for _ in range(200):
        scores = [mpmath.mpf(rng.gauss(0, 3)) for _ in range(rng.randint(2, 6))]
        total = mpmath.fsum(map(mpmath.exp, scores))
        bound = max(2 * a * (1 - a) for a in (mpmath.exp(s) / total for s in scores))
        worst = max(worst, float(jacobian_norm(scores) - bound))
    found = [at_most("largest norm − max 2a(1 − a) in 200 random weights", worst, 0.0, 1e-30)]
    found.append(same("the norm at (½, ½), where the bound is reached", float(jacobian_norm([0, 0])), 0.5))
    for k in (1, 2, 4, 8):
        small = mpmath.mpf(10) ** -k
        norm = jacobian_norm([mpmath.log(1 - small), mpmath.log(small)])
        found.append(at_most(phrase("the norm at largest weight {}", f"1 − 1e−{k}"), norm, 2 * small))
    return found

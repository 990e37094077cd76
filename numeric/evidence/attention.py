"""Numbers for the entries about attention, computed with the generated code."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.attention import BLOCK_SHAPES, CAUSAL, PROJECTIONS, SCORE, WEIGHTS
from gradproof.symbolic.catalogue.evidence import Evidence, at_least, at_most, holds, same
from gradproof.symbolic.language.reader import build

DRAWS = 200_000
SIGMAS = 5.0  # the confidence interval of a Monte Carlo estimate, in standard errors


def sampled(label: str, values: np.ndarray, expected: float) -> Evidence:
    """The variance of a sample against the formula, within five standard errors of the estimate (at most 5 %)."""
    centred = (values - values.mean()) ** 2
    error = float(SIGMAS * centred.std() / np.sqrt(values.size))
    assert error < 0.05 * expected, "too few draws to tell the formula from one that is 5 % off"
    return same(f"{label}: {values.size} draws, {SIGMAS:g} standard errors", float(centred.mean()), expected, error)


def _products(mean_q: float, sigma_q: float, mean_k: float, sigma_k: float, size: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    q, k = (rng.normal(mean, sigma, (DRAWS, size)) for mean, sigma in ((mean_q, sigma_q), (mean_k, sigma_k)))
    product = compile_numpy(
        build(f"F[i] = {SCORE.replace('[l]*', '[i,l]*').replace('k[l]', 'k[i,l]')}", {"q": "n,d_k", "k": "n,d_k"})
    )
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

    masked = WEIGHTS.replace("A = softmax(S)", CAUSAL.rstrip("; "))
    return [
        at_most(
            "no mask: largest |Attention(PX) − P Attention(X)| over all 24 permutations",
            largest(PROJECTIONS + WEIGHTS + "A @ V"),
            1e-13,
        ),
        at_least("causal mask: the same difference", largest(PROJECTIONS + masked + "A @ V"), 0.1),
    ]

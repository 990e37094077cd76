"""Which tokens may be drawn: top-k and top-p; and the k best entries of a row. Among equals the lowest index wins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradproof.models.errors import DecodingError

Array = NDArray[Any]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def _best_mask(scores: Array, k: int) -> BoolArray:
    """Exactly k true entries in each row (N,M): the largest, and of equal ones those of lowest index."""
    # A partition finds the k-th largest value without sorting, but says nothing about ties: these are counted off.
    threshold = np.partition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k, None]
    above = scores > threshold
    ties = scores == threshold
    missing = k - above.sum(axis=1, keepdims=True)
    return above | (ties & (ties.cumsum(axis=1) <= missing))


def best(scores: Array, k: int) -> tuple[Array, IntArray]:
    """The k largest entries of each row of (N,M), largest first, and their indices.

    >>> values, index = best(np.array([[1.0, 3.0, 2.0, 3.0]]), 3)
    >>> values.tolist(), index.tolist()
    ([[3.0, 3.0, 2.0]], [[1, 3, 2]])
    """
    index = np.nonzero(_best_mask(scores, k))[1].reshape(len(scores), k)
    values = np.take_along_axis(scores, index, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(index, order, axis=1)


def top_k_filter(log_probabilities: ArrayLike, k: int) -> Array:
    """Keep the k most probable tokens (last axis); the others become −∞. The kept ones are not renormalised.

    >>> top_k_filter([-1.0, -2.0, -1.0], 1).tolist()
    [-1.0, -inf, -inf]
    """
    scores = _floats(log_probabilities)
    if k < 1:
        raise DecodingError(f"top-k keeps at least 1 token; got k = {k}")
    if k >= scores.shape[-1]:
        return scores
    rows = scores.reshape(-1, scores.shape[-1])
    return np.where(_best_mask(rows, k), rows, -np.inf).reshape(scores.shape)


def top_p_filter(log_probabilities: ArrayLike, p: float) -> Array:
    """Keep the smallest set of most probable tokens whose probabilities add up to at least p; the others become −∞.

    p = 0 keeps the best token, p = 1 all. Probabilities are normalised first. "At least" is meant up to rounding:
    .4 + .3 reaches .7, whatever their logarithms and sums were rounded to.

    >>> [int(np.isfinite(top_p_filter(np.log(q), p)).sum()) for q, p in (
    ...     ([0.5, 0.41, 0.09], 0.9), ([0.4, 0.3, 0.2, 0.1], 0.7), ([0.4, 0.6], 0.0), ([0.4, 0.6], 1.0))]
    [2, 2, 1, 2]
    """
    scores = _floats(log_probabilities)
    if not 0 <= p <= 1:
        raise DecodingError(f"top-p needs a probability between 0 and 1; got p = {p}")
    if p == 1:
        return scores
    order = np.argsort(-scores, axis=-1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=-1).astype(np.float64)
    weights = np.exp(ranked - ranked[..., :1])
    before = np.zeros_like(weights)  # the weight of all tokens ranked higher
    before[..., 1:] = np.cumsum(weights, axis=-1)[..., :-1]
    # A token is needed as long as those before it do not reach p.
    slack = 16 * np.finfo(scores.dtype).eps
    keep = before < (p - slack) * weights.sum(axis=-1, keepdims=True)
    keep[..., 0] = True
    kept = np.zeros(scores.shape, bool)
    np.put_along_axis(kept, order, keep, axis=-1)
    return np.where(kept, scores, -np.inf)


def _floats(log_probabilities: ArrayLike) -> Array:
    scores = np.asarray(log_probabilities)
    if not np.issubdtype(scores.dtype, np.floating):
        scores = scores.astype(np.float64)
    if scores.ndim == 0 or not scores.shape[-1]:
        raise DecodingError(f"log-probabilities need a last axis with the tokens; got shape {scores.shape}")
    if np.isnan(scores).any() or (scores.max(axis=-1) == -np.inf).any():
        raise DecodingError("log-probabilities must be numbers, and not all −∞ in one row")
    return scores

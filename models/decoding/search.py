"""Greedy decoding, beam search and sampling for any model that can be asked for the next token.

The model is a function  step(tokens (N,t), state) → (log-probabilities (N,V), state).  `tokens` are the prompt and all
that followed; a model with a cache reads only those that its state has not seen yet (the whole prompt in the first
call). A state is whatever the model likes: nested dicts, tuples, lists of arrays with the batch as first axis, or
objects with a method `reorder(index)`. Rows that are finished are taken out, so a step never sees a sequence beyond its
end token (but for beams of probability zero, which fill up the batch and whose scores are ignored).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradproof.models.data.tokens import EOS
from gradproof.models.decoding.filters import best, top_k_filter, top_p_filter
from gradproof.models.errors import DecodingError

Array = NDArray[Any]
IntArray = NDArray[np.int64]
State = Any
NextWord = Callable[[IntArray, State], tuple[Array, State]]


@dataclass(frozen=True)
class Hypothesis:
    """What was decoded: `tokens` without prompt and end token, `finished` whether the end token came within the limit.

    `log_probability` is the model's, of the new tokens and the end token, never of the prompt; `score` is that divided
    by length**alpha (greedy and sampling: undivided).
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    finished: bool


def normalised_score(log_probability: ArrayLike, length: ArrayLike, alpha: float) -> Any:
    """log-probability / length**alpha; an empty hypothesis counts as length 1.

    >>> normalised_score(-1.0, 2, 1.0), normalised_score(-1.5, 4, 1.0), normalised_score(-1.5, 4, 0.0)
    (-0.5, -0.375, -1.5)
    """
    score = np.asarray(log_probability) / np.maximum(length, 1) ** float(alpha)
    return float(score) if score.ndim == 0 else score


def reorder(state: State, index: Sequence[int] | IntArray) -> State:
    """The state whose row i is row index[i] of `state`; numbers, strings and None are left as they are.

    >>> reorder({"h": np.array([[1], [2]]), "t": 3}, [1, 1])["h"].tolist()
    [[2], [2]]
    """
    if isinstance(state, dict):
        return {key: reorder(value, index) for key, value in state.items()}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(reorder(value, index) for value in state))
    if isinstance(state, tuple | list):
        return type(state)(reorder(value, index) for value in state)
    if isinstance(state, np.ndarray):
        return state[np.asarray(index)] if state.ndim else state
    if hasattr(state, "reorder"):
        return state.reorder(index)
    if state is None or isinstance(state, int | float | str | np.generic):
        return state
    raise DecodingError(
        f"a decoding state may hold arrays, dicts, tuples, lists, or objects with a method reorder(index); "
        f"it holds a {type(state).__name__}"
    )


def start_tokens(count: int, token: int) -> IntArray:
    """The usual prompt of an encoder–decoder: one start token a row, shape (count, 1)."""
    return np.full((count, 1), token, dtype=np.int64)


def greedy(step: NextWord, state: State, prompt: ArrayLike, *, limit: int, eos: int | None = EOS) -> list[Hypothesis]:
    """The most probable token at each step (ties: the lowest number), at most `limit` new tokens.

    >>> import math
    >>> table = np.log([[0.05, 0.05, 0.9], [0.2, 0.5, 0.3], [0.3, 0.6, 0.1]])
    >>> [h] = greedy(lambda tokens, state: (table[tokens[:, -1]], None), None, [[0]], limit=9, eos=1)
    >>> h.tokens, h.finished, round(math.exp(h.log_probability), 2)
    ((2,), True, 0.54)
    """
    return _one_each(step, state, prompt, lambda scores, rows, at: scores.argmax(axis=1), limit, eos)


def sample(
    step: NextWord,
    state: State,
    prompt: ArrayLike,
    *,
    limit: int,
    seed: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    eos: int | None = EOS,
) -> list[Hypothesis]:
    """Draw each token from the model's distribution, sharpened by `temperature` (0: greedy), then top-k, then top-p.

    Each row has random numbers of its own, from the seed and its place: it does not depend on the rest of the batch.

    >>> fair = lambda tokens, state: (np.log(np.full((len(tokens), 4), 0.25)), None)
    >>> a, b = (sample(fair, None, [[0], [0]], limit=5, seed=1, eos=None)[1].tokens for _ in range(2))
    >>> a == b, len(a)
    (True, 5)
    """
    if not 0 <= temperature < np.inf:
        raise DecodingError(f"the temperature must be a finite number of at least 0; got {temperature}")
    top_p_filter(np.zeros((1, 1)), top_p)  # wrong settings are reported before the model runs
    if top_k is not None:
        top_k_filter(np.zeros((1, 1)), top_k)
    if temperature == 0:
        return greedy(step, state, prompt, limit=limit, eos=eos)
    rows = len(_prompt(prompt))
    draws = np.array([np.random.default_rng([seed, row]).random(max(limit, 1)) for row in range(rows)])

    def choose(scores: Array, alive: IntArray, at: int) -> IntArray:
        scores = scores / temperature
        if top_k is not None:
            scores = top_k_filter(scores, top_k)
        return _draw(top_p_filter(scores, top_p), draws[alive, at])

    return _one_each(step, state, prompt, choose, limit, eos)


def _draw(scores: Array, uniform: Array) -> IntArray:
    """Tokens by inversion: the first whose cumulative weight exceeds uniform · total; never one of weight zero."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    cumulative = weights.cumsum(axis=1)
    place = (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(axis=1)
    # Rounding could push the product up to the total; then the last token that has weight is meant.
    last = weights.shape[1] - 1 - (weights[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(place, last)


def _one_each(
    step: NextWord,
    state: State,
    prompt: ArrayLike,
    choose: Callable[[Array, IntArray, int], IntArray],
    limit: int,
    eos: int | None,
) -> list[Hypothesis]:
    """One continuation a row; `choose(scores, rows, step)` picks the next tokens."""
    tokens = _prompt(prompt)
    _check_limit(limit)
    alive = np.arange(len(tokens))
    ended = np.zeros(len(tokens), bool)
    lengths = np.zeros(len(tokens), np.int64)
    totals = np.zeros(len(tokens))
    written = np.zeros((len(tokens), limit), np.int64)
    for at in range(limit):
        if not len(alive):
            break
        scores, state = _scores(step, tokens, state, eos)
        chosen = choose(scores, alive, at)
        totals[alive] += scores[np.arange(len(alive)), chosen]
        written[alive, at] = chosen
        over = chosen == eos if eos is not None else np.zeros(len(alive), bool)
        ended[alive[over]] = True
        lengths[alive[~over]] += 1
        tokens = np.concatenate([tokens, chosen[:, None]], axis=1)
        if over.any():
            keep = np.flatnonzero(~over)
            alive, tokens, state = alive[keep], tokens[keep], reorder(state, keep)
    return [
        Hypothesis(tuple(row[:n].tolist()), float(total), float(total), bool(end))
        for row, n, total, end in zip(written, lengths, totals, ended, strict=True)
    ]


def _prompt(prompt: ArrayLike) -> IntArray:
    tokens = np.asarray(prompt)
    if tokens.ndim != 2 or not tokens.shape[1] or not np.issubdtype(tokens.dtype, np.integer):
        raise DecodingError(
            f"the prompt must be whole numbers of shape (N, t) with t ≥ 1; got {tokens.dtype} of shape {tokens.shape}"
        )
    return tokens.astype(np.int64)


def _check_limit(limit: int) -> None:
    if limit < 1:
        raise DecodingError(f"the limit on new tokens must be at least 1; got {limit}")


def _scores(
    step: NextWord, tokens: IntArray, state: State, eos: int | None, needed: NDArray[np.bool_] | None = None
) -> tuple[Array, State]:
    """Run one step and check what comes back, in the rows that are `needed`."""
    scores, state = step(tokens, state)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or len(scores) != len(tokens):
        raise DecodingError(f"the step must return shape ({len(tokens)}, V); it returned {scores.shape}")
    if eos is not None and not 0 <= eos < scores.shape[1]:
        raise DecodingError(f"the end token {eos} is outside the {scores.shape[1]} tokens that the model scores")
    largest = scores.max(axis=1)  # NaN if any entry of the row is
    wrong = ~((largest > -np.inf) & (largest <= 1e-3))  # float32 may round a probability to just above 1
    if needed is not None:
        wrong &= needed
    if wrong.any():
        value = largest[wrong][0]
        what = "not a number" if np.isnan(value) else f"at most {value:.6g}"
        raise DecodingError(
            f"after {tokens.shape[1]} tokens, row {int(np.flatnonzero(wrong)[0])}: the scores are {what}; "
            "log-probabilities are expected: 0 or below, and not all −∞"
        )
    return scores, state


def beam_search(
    step: NextWord,
    state: State,
    prompt: ArrayLike,
    *,
    limit: int,
    width: int = 5,
    n_best: int = 1,
    alpha: float = 1.0,
    count_eos: bool = True,
    exact: bool = False,
    eos: int | None = EOS,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each row, best first; at each step the `width` best extensions are kept.

    A hypothesis ends with the end token, or unfinished after `limit` tokens. They compete by log-probability of the new
    tokens (end token included) / length**alpha; the length counts new tokens, and the end token if `count_eos`.
    A row is done when `width` hypotheses have ended and the best open one, at its present length, is not better than
    the `n_best`-th of them. With `exact` it is done only when no continuation of an open one could be: slower.
    A wider beam does not always find a better score; a width of V**limit finds the best of all.

    >>> import math
    >>> table = np.log([[0.1, 0.4, 0.4, 0.1], [0.05, 0.05, 0.1, 0.8], [0.3, 0.3, 0.3, 0.1], [0.1, 0.1, 0.1, 0.7]])
    >>> ask = lambda tokens, state: (table[tokens[:, -1]], None)
    >>> [[h]] = beam_search(ask, None, [[0]], limit=2, width=2, alpha=0.0, eos=3)
    >>> h.tokens, h.finished, round(math.exp(h.log_probability), 2)
    ((1,), True, 0.32)
    """
    tokens = _prompt(prompt)
    _check_limit(limit)
    _check_beam(width, n_best, alpha)
    count, first = tokens.shape
    done = _Pool(count, width, limit, alpha)
    rows = np.arange(count)  # the rows whose search goes on
    totals = np.zeros((count, 1))  # log-probabilities of their open beams, best first
    for at in range(1, limit + 1):
        if not len(rows):
            break
        scores, state = _scores(step, tokens, state, eos, totals.reshape(-1) > -np.inf)
        values, parents, chosen = _extensions(totals, scores, width)
        tokens = np.concatenate([tokens[parents.reshape(-1)], chosen.reshape(-1, 1)], axis=1)
        texts = tokens[:, first:].reshape(*values.shape, at)
        over = chosen == eos if eos is not None else np.zeros(chosen.shape, bool)
        # An ended extension counts if it is among the `width` best of all; the open ones are filled up to `width`.
        done.add(rows, np.where(over, values, -np.inf)[:, :width], texts[:, :width], at - (not count_eos), at - 1, True)
        values = np.where(over, -np.inf, values)
        order = np.argsort(over, axis=1, kind="stable")[:, :width]
        totals = np.take_along_axis(values, order, axis=1)
        if at == limit:
            done.add(rows, totals, np.take_along_axis(texts, order[:, :, None], axis=1), at, at, False)
            break
        stay = np.flatnonzero(~done.settled(rows, totals[:, 0], limit if exact else at, n_best, exact))
        used = max(1, int((totals[stay] > -np.inf).sum(axis=1).max(initial=0)))  # trailing dead beams are dropped
        picked = (stay[:, None] * values.shape[1] + order[stay, :used]).reshape(-1)
        rows, totals, tokens = rows[stay], totals[stay, :used], tokens[picked]
        state = reorder(state, parents.reshape(-1)[picked])
    return [done.hypotheses(row, n_best) for row in range(count)]


def _check_beam(width: int, n_best: int, alpha: float) -> None:
    if width < 1:
        raise DecodingError(f"the beam must be at least 1 wide; got {width}")
    if not 1 <= n_best <= width:
        raise DecodingError(f"a beam of width {width} gives 1 to {width} hypotheses; {n_best} were asked for")
    if not 0 <= alpha < np.inf:
        raise DecodingError(f"the length exponent alpha must be a finite number of at least 0; got {alpha}")


def _extensions(totals: Array, scores: Array, width: int) -> tuple[Array, IntArray, IntArray]:
    """The 2·width best extensions (n,k): their log-probabilities, the rows of `scores` they extend, their new tokens.

    Twice the width, because as many as `width` of them may end: as many open ones then remain.
    """
    n, beams = totals.shape
    size = scores.shape[1]
    with np.errstate(invalid="ignore"):  # a dead beam may have scores that are not numbers
        candidates = totals[:, :, None] + scores.reshape(n, beams, size)
    candidates = np.where(totals[:, :, None] > -np.inf, candidates, -np.inf).reshape(n, beams * size)
    values, index = best(candidates, min(2 * width, beams * size))
    return values, np.arange(n)[:, None] * beams + index // size, index % size


class _Pool:
    """The best ended hypotheses of every row, at most `width` each, best first (earlier ones first among equals)."""

    def __init__(self, count: int, width: int, limit: int, alpha: float) -> None:
        self.alpha = alpha
        self.width = width
        self.scores = np.full((count, width), -np.inf)
        self.totals = np.full((count, width), -np.inf)
        self.lengths = np.zeros((count, width), np.int64)
        self.finished = np.zeros((count, width), bool)
        self.texts = np.zeros((count, width, limit), np.int64)

    def add(self, rows: IntArray, totals: Array, texts: IntArray, counted: int, kept: int, finished: bool) -> None:
        """Offer hypotheses (n,k) with log-probabilities `totals` (−∞: none) and the same length `counted`."""
        scores = normalised_score(totals, counted, self.alpha)
        padded = np.zeros((*totals.shape, self.texts.shape[2]), np.int64)
        padded[:, :, :kept] = texts[:, :, :kept]
        everyone = np.concatenate([self.scores[rows], scores], axis=1)
        self.scores[rows], place = best(everyone, self.width)
        for name, new in (
            ("totals", totals),
            ("lengths", np.full(totals.shape, kept)),
            ("finished", np.full(totals.shape, finished)),
        ):
            old = getattr(self, name)
            old[rows] = np.take_along_axis(np.concatenate([old[rows], new], axis=1), place, axis=1)
        both = np.concatenate([self.texts[rows], padded], axis=1)
        self.texts[rows] = np.take_along_axis(both, place[:, :, None], axis=1)

    def settled(self, rows: IntArray, open_best: Array, length: int, n_best: int, exact: bool) -> NDArray[np.bool_]:
        """Whether the open beams of a row need no longer be followed.

        Log-probabilities only fall, so at the largest length that counts the best open one has its highest score.
        """
        bound = normalised_score(open_best, length, self.alpha)
        enough = n_best if exact else self.width
        full = self.scores[rows, enough - 1] > -np.inf
        return (open_best == -np.inf) | (full & (self.scores[rows, n_best - 1] >= bound))

    def hypotheses(self, row: int, n_best: int) -> list[Hypothesis]:
        return [
            Hypothesis(
                tuple(self.texts[row, k, : self.lengths[row, k]].tolist()),
                float(self.totals[row, k]),
                float(self.scores[row, k]),
                bool(self.finished[row, k]),
            )
            for k in range(n_best)
            if self.scores[row, k] > -np.inf
        ]

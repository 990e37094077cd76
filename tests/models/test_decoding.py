"""Greedy, beam and sampling against enumeration of all sequences, and the rules for ties, lengths and ends."""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradproof.models.decoding.filters import best, top_k_filter, top_p_filter
from gradproof.models.decoding.search import (
    NextWord,
    _draw,
    beam_search,
    greedy,
    normalised_score,
    reorder,
    sample,
    start_tokens,
)
from gradproof.models.errors import DecodingError

END = 1


def log_softmax(x: np.ndarray) -> np.ndarray:
    return x - np.logaddexp.reduce(x, axis=-1, keepdims=True)


def random_model(size: int, seed: int, sharpness: float = 2.0) -> NextWord:
    """Next-token scores that depend on every token so far."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(scale=sharpness, size=(40, size, size))

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        return log_softmax(weights[np.arange(tokens.shape[1]), tokens].sum(axis=1)), state

    return step


def all_hypotheses(
    step: NextWord, prompt: list[int], size: int, limit: int, alpha: float, count_end: bool
) -> list[tuple]:
    """Every sequence of at most `limit` new tokens that ends, and every unfinished one of that length, best first."""
    found = []
    for length in range(1, limit + 1):
        for new in itertools.product(range(size), repeat=length):
            ended = new[-1] == END
            if END in new[:-1] or not (ended or length == limit):
                continue
            total = 0.0
            for place, token in enumerate(new):
                scores, _ = step(np.array([[*prompt, *new[:place]]]), None)
                total += scores[0, token]
            counted = length - (ended and not count_end)
            found.append((total / max(counted, 1) ** alpha, total, new[:-1] if ended else new, ended))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("count_end", [True, False])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_width_v_to_the_t_is_brute_force(alpha: float, count_end: bool, exact: bool, seed: int) -> None:
    step, prompts = random_model(3, seed), [[0, 2], [2, 2], [2, 0]]
    found = beam_search(
        step, None, prompts, limit=4, width=3**4, n_best=10, alpha=alpha, count_eos=count_end, exact=exact, eos=END
    )
    for prompt, hypotheses in zip(prompts, found, strict=True):
        expected = all_hypotheses(step, prompt, 3, 4, alpha, count_end)[:10]
        assert [h.tokens for h in hypotheses] == [e[2] for e in expected]
        assert [h.finished for h in hypotheses] == [e[3] for e in expected]
        np.testing.assert_allclose([h.score for h in hypotheses], [e[0] for e in expected], rtol=1e-12)
        np.testing.assert_allclose([h.log_probability for h in hypotheses], [e[1] for e in expected], rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_of_width_one_is_greedy(seed: int, alpha: float) -> None:
    step, prompt = random_model(5, seed), np.random.default_rng(seed).integers(0, 5, (7, 3))
    beams = beam_search(step, None, prompt, limit=9, width=1, alpha=alpha, eos=END)
    for [beam], one in zip(beams, greedy(step, None, prompt, limit=9, eos=END), strict=True):
        assert (beam.tokens, beam.finished) == (one.tokens, one.finished)
        assert beam.log_probability == pytest.approx(one.log_probability, rel=1e-13)


def naive_beam(
    step: NextWord, prompt: list[int], limit: int, width: int, n_best: int, alpha: float, stop_early: bool
) -> list[tuple]:
    """The same search for one row with Python lists."""
    opened, ended = [(0.0, tuple(prompt))], []
    for length in range(1, limit + 1):
        options = []
        for total, tokens in opened:
            scores = step(np.array([tokens]), None)[0][0]
            options += [(total + s, (*tokens, v)) for v, s in enumerate(scores)]
        options.sort(key=lambda option: -option[0])
        ended += [(t / length**alpha, tokens) for t, tokens in options[:width] if tokens[-1] == END]
        ended.sort(key=lambda option: -option[0])
        opened = [option for option in options if option[1][-1] != END][:width]
        if length == limit:
            ended += [(t / length**alpha, tokens) for t, tokens in opened]
        elif stop_early and len(ended) >= width and ended[n_best - 1][0] >= opened[0][0] / length**alpha:
            break
    return sorted(ended, key=lambda option: -option[0])[:n_best]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.7, 1.0]),
    st.integers(2, 6),
    st.integers(1, 9),
    st.booleans(),
)
def test_beam_against_a_plain_search(seed: int, width: int, alpha: float, size: int, limit: int, exact: bool) -> None:
    step, prompts = random_model(size, seed, 1.0), np.random.default_rng(seed).integers(0, size, (4, 2)).tolist()
    n_best = (width + 1) // 2
    found = beam_search(step, None, prompts, limit=limit, width=width, n_best=n_best, alpha=alpha, exact=exact, eos=END)
    for prompt, hypotheses in zip(prompts, found, strict=True):
        expected = naive_beam(step, prompt, limit, width, n_best, alpha, stop_early=not exact)
        ours = [(*prompt, *h.tokens, *[END] * h.finished) for h in hypotheses]
        assert ours == [tokens for _, tokens in expected]


def test_exact_goes_on_where_a_later_end_may_score_better() -> None:
    """Ending at once scores −.6, one more token −1; but the tokens after that are so sure that nine score −.12 each."""
    table = np.full((4, 4), -30.0)
    table[0, END], table[0, 2], table[2, 2], table[2, END] = -0.6, -1.0, -0.01, -5.0
    calls = []

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        calls.append(tokens.shape[1])
        return table[tokens[:, -1]], state

    found = [beam_search(step, None, [[0]], limit=9, width=1, exact=exact, eos=END)[0][0] for exact in (False, True)]
    assert [h.tokens for h in found] == [(), (2,) * 9]
    assert calls == [1, *range(1, 10)]


def test_a_row_does_not_depend_on_the_batch() -> None:
    step, prompt = random_model(6, 3, 1.0), np.random.default_rng(0).integers(0, 6, (9, 2))
    together = beam_search(step, None, prompt, limit=8, width=4, n_best=3, eos=END)
    alone = [beam_search(step, None, prompt[k : k + 1], limit=8, width=4, n_best=3, eos=END)[0] for k in range(9)]
    assert together == alone
    drawn = sample(step, None, prompt, limit=8, seed=1, eos=END)
    assert drawn[:4] == sample(step, None, prompt[:4], limit=8, seed=1, eos=END)
    prompt[:4] = prompt[4:8]  # other rows before them, which end at other times
    assert drawn[4:] == sample(step, None, prompt, limit=8, seed=1, eos=END)[4:]


def test_documented_scores() -> None:
    """−1.0 over 2 tokens and −1.5 over 4, α = 1: −0.5 and −0.375; the prompt's length plays no part."""
    assert (normalised_score(-1.0, 2, 1.0), normalised_score(-1.5, 4, 1.0)) == (-0.5, -0.375)
    # Two ways to the end: 2 then the end token, and 3 3 3 then the end token. Unlikely tokens stay unlikely.
    table = np.full((4, 4), -20.0)
    table[0, 2], table[2, END] = -0.25, -0.75
    table[0, 3], table[3, 3], table[3, END] = -0.3, -0.4, -0.4

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        return table[tokens[:, -1]], state

    for prompt in ([[0]], [[3, 2, 2, 2, 0]]):
        short, long = (
            next(h for h in beam_search(step, None, prompt, limit=5, width=40, n_best=40, eos=END)[0] if h.tokens == t)
            for t in ((2,), (3, 3, 3))
        )
        assert (short.log_probability, short.score) == (-1.0, -0.5)
        assert (long.log_probability, long.score) == pytest.approx((-1.5, -0.375), rel=1e-15)
    uncounted = beam_search(step, None, [[0]], limit=5, width=40, n_best=40, count_eos=False, eos=END)[0]
    assert next(h for h in uncounted if h.tokens == (2,)).score == -1.0
    assert next(h for h in uncounted if h.tokens == (3, 3, 3)).score == pytest.approx(-0.5, rel=1e-15)


def test_a_beam_finds_what_greedy_misses() -> None:
    """Greedy takes 2 (.6) and ends with .6 · .4; the beam finds 3 (.4), surely followed by the end."""
    with np.errstate(divide="ignore"):
        table = np.log([[0.0, 0, 0.6, 0.4], [0.25] * 4, [0.2, 0.4, 0.2, 0.2], [0, 1.0, 0, 0]])

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        return table[tokens[:, -1]], state

    [one] = greedy(step, None, [[0]], limit=3, eos=END)
    [[two]] = beam_search(step, None, [[0]], limit=3, width=2, alpha=0.0, eos=END)
    assert (one.tokens, two.tokens) == ((2,), (3,))
    assert math.exp(one.log_probability) == pytest.approx(0.24)
    assert math.exp(two.log_probability) == pytest.approx(0.4)


def test_ties_go_to_the_lowest_index() -> None:
    def fair(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        return np.full((len(tokens), 5), -math.log(5)), state

    assert greedy(fair, None, [[3]], limit=3, eos=None)[0].tokens == (0, 0, 0)
    hypotheses = beam_search(fair, None, [[3]], limit=2, width=3, n_best=3, eos=None)[0]
    assert [h.tokens for h in hypotheses] == [(0, 0), (0, 1), (0, 2)]
    assert not any(h.finished for h in hypotheses)


def test_finished_rows_are_taken_out_and_states_follow() -> None:
    """A cached model: the state carries each row's own countdown; a mix-up of rows would change the lengths."""
    calls = []

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        calls.append(len(tokens))
        left = state["layers"][0].left
        assert (tokens[:, 0] == state["first"]).all()
        scores = np.log(np.where(np.arange(4) == np.where(left == 0, END, 2)[:, None], 0.97, 0.01))
        return scores, {**state, "layers": [state["layers"][0]._replace(left=left - 1)], "seen": tokens.shape[1]}

    Layer = namedtuple("Layer", ["left", "name"])
    lengths, first = np.array([3, 0, 5, 1]), np.array([7, 8, 9, 6])
    state = {"layers": [Layer(lengths, "a")], "first": first, "seen": 0}
    found = greedy(step, state, first[:, None], limit=9, eos=END)
    assert [len(h.tokens) for h in found] == [3, 0, 5, 1] and all(h.finished for h in found)
    assert calls == [4, 3, 2, 2, 1, 1]
    beams = beam_search(step, state, first[:, None], limit=9, width=3, alpha=0.0, eos=END)
    assert [[len(h.tokens) for h in row] for row in beams] == [[3], [0], [5], [1]]


def test_the_limit_leaves_hypotheses_unfinished() -> None:
    def never(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        return np.tile(np.log([0.1, 0.1, 0.8]), (len(tokens), 1)), state

    for found in (
        greedy(never, None, [[0]], limit=4, eos=END)[0],
        beam_search(never, None, [[0]], limit=4, width=1, eos=END)[0][0],
    ):
        assert (found.tokens, found.finished) == ((2, 2, 2, 2), False)
        assert found.log_probability == pytest.approx(4 * math.log(0.8))
    assert greedy(never, None, start_tokens(0, 0), limit=4, eos=END) == []
    assert beam_search(never, None, start_tokens(0, 0), limit=4, eos=END) == []


def test_reorder() -> None:
    class Cache:
        def __init__(self, rows: list[int]) -> None:
            self.rows = rows

        def reorder(self, index: np.ndarray) -> Cache:
            return Cache([self.rows[i] for i in index])

    x = np.arange(6).reshape(3, 2)
    state = ({"k": x, "t": 4, "name": "a", "none": None}, [x[:, 0], (np.array(5.0),)], Cache([1, 2, 3]))
    found = reorder(state, np.array([2, 2, 0, 1]))
    assert found[0]["k"].tolist() == x[[2, 2, 0, 1]].tolist() and (found[0]["t"], found[0]["name"]) == (4, "a")
    assert found[1][0].tolist() == [4, 4, 0, 2] and found[1][1][0] == 5.0 and found[2].rows == [3, 3, 1, 2]
    with pytest.raises(DecodingError, match="it holds a set"):
        reorder({"a": {1}}, [0])


# --- filters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probabilities", "p", "kept"),
    [
        ([0.5, 0.41, 0.09], 0.9, [0, 1]),
        ([0.4, 0.3, 0.2, 0.1], 0.7, [0, 1]),  # exactly reached
        ([0.4, 0.3, 0.2, 0.1], 0.71, [0, 1, 2]),
        ([0.1, 0.2, 0.3, 0.4], 0.7, [2, 3]),
        ([0.3, 0.4, 0.3], 0.0, [1]),
        ([0.3, 0.4, 0.3], 1.0, [0, 1, 2]),
        ([0.3, 0.4, 0.3], 0.4, [1]),
        ([0.3, 0.4, 0.3], 0.7, [0, 1]),  # ties: the lowest index
        ([0.25, 0.25, 0.25, 0.25], 0.5, [0, 1]),
        ([0.5, 0.5], 0.0, [0]),
        ([0.5, 0.0, 0.5], 1.0, [0, 2]),
        ([1.0, 0.0], 0.999, [0]),
        ([0.9999999, 1e-7], 1.0, [0, 1]),
        ([0.1] * 10, 0.3, [0, 1, 2]),  # .1 + .1 + .1 is a little more than .3
        ([0.1] * 10, 0.8, list(range(8))),  # and eight of them a little less than .8
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_top_p(probabilities: list[float], p: float, kept: list[int], dtype: type) -> None:
    with np.errstate(divide="ignore"):
        scores = np.log(np.array(probabilities)).astype(dtype)
    found = top_p_filter(scores, p)
    assert np.flatnonzero(np.isfinite(found)).tolist() == kept
    assert (found[kept] == scores[kept]).all() and found.dtype == dtype
    assert np.array_equal(np.isfinite(top_p_filter(scores - dtype(3.0), p)), np.isfinite(found))  # not normalised


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(0, 100))
def test_top_p_is_the_smallest_set(weights: list[int], percent: int) -> None:
    total = sum(weights)
    kept = np.isfinite(top_p_filter(np.log(np.array(weights) / total), percent / 100)).sum()
    ranked = sorted(weights, reverse=True)
    # In whole numbers, where nothing is rounded: the first length whose sum · 100 reaches percent · total.
    expected = next(n for n in range(1, len(ranked) + 1) if sum(ranked[:n]) * 100 >= percent * total)
    assert kept == expected


@pytest.mark.parametrize(
    ("scores", "k", "kept"),
    [
        ([-1.0, -3.0, -2.0], 2, [0, 2]),
        ([-1.0, -1.0, -1.0], 2, [0, 1]),
        ([-2.0, -1.0], 5, [0, 1]),
        ([-2.0, -1.0], 1, [1]),
    ],
)
def test_top_k(scores: list[float], k: int, kept: list[int]) -> None:
    assert np.flatnonzero(np.isfinite(top_k_filter(scores, k))).tolist() == kept
    stacked = np.array([[scores, scores[::-1]]])
    assert np.isfinite(top_k_filter(stacked, k)).sum(axis=-1).tolist() == [[len(kept)] * 2]


@given(st.lists(st.sampled_from([-math.inf, -2.0, -1.0, 0.0]), min_size=1, max_size=9), st.integers(1, 9))
def test_best_is_a_stable_sort(row: list[float], k: int) -> None:
    k = min(k, len(row))
    values, index = best(np.array([row, row[::-1]]), k)
    for place, one in enumerate((row, row[::-1])):
        expected = sorted(range(len(one)), key=lambda i, one=one: -one[i])[:k]
        assert index[place].tolist() == expected and values[place].tolist() == [one[i] for i in expected]


# --- sampling ----------------------------------------------------------------------------------------------------

PROBABILITIES = np.array([0.5, 0.0, 0.3, 0.15, 0.05])


def fixed(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
    with np.errstate(divide="ignore"):
        return np.tile(np.log(PROBABILITIES), (len(tokens), 1)), state


@pytest.mark.parametrize(
    ("settings_", "weights"),
    [
        ({}, [0.5, 0.0, 0.3, 0.15, 0.05]),
        ({"temperature": 0.5}, [0.25, 0.0, 0.09, 0.0225, 0.0025]),
        ({"temperature": 2.0}, [0.5**0.5, 0.0, 0.3**0.5, 0.15**0.5, 0.05**0.5]),
        ({"top_k": 2}, [0.5, 0.0, 0.3, 0.0, 0.0]),
        ({"top_p": 0.9}, [0.5, 0.0, 0.3, 0.15, 0.0]),
        ({"top_p": 0.0}, [1.0, 0.0, 0.0, 0.0, 0.0]),
        ({"temperature": 0.0}, [1.0, 0.0, 0.0, 0.0, 0.0]),
        ({"top_k": 3, "top_p": 0.6}, [0.5, 0.0, 0.3, 0.0, 0.0]),
    ],
)
def test_sampled_frequencies(settings_: dict[str, Any], weights: list[float]) -> None:
    found = sample(fixed, None, start_tokens(2000, 0), limit=10, seed=7, eos=None, **settings_)
    counts = np.bincount(np.concatenate([h.tokens for h in found]), minlength=5)
    expected = np.array(weights) / sum(weights)
    # Five standard deviations of a binomial count; what has no weight never comes.
    assert (np.abs(counts - 20_000 * expected) <= 5 * np.sqrt(20_000 * expected * (1 - expected))).all()


def test_sampling_is_seeded_and_scored_by_the_model() -> None:
    runs = [sample(fixed, None, start_tokens(3, 0), limit=40, seed=seed, top_k=2, eos=None) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert len({h.tokens for h in runs[0]}) == 3  # the rows draw their own numbers
    for h in runs[0]:
        assert h.log_probability == pytest.approx(np.log(PROBABILITIES[list(h.tokens)]).sum())


def test_the_extreme_random_numbers() -> None:
    scores = np.log([[1e-300, 0.3, 0.7, 1e-300]] * 2)
    scores[:, [0, 3]] = -np.inf  # what has no weight is never drawn
    assert _draw(scores, np.array([0.0, np.nextafter(1.0, 0.0)])).tolist() == [1, 2]


def test_sampling_ends() -> None:
    found = sample(fixed, None, start_tokens(200, 0), limit=50, seed=0, eos=2)
    assert all(h.finished and 2 not in h.tokens for h in found)
    assert abs(np.mean([len(h.tokens) for h in found]) - 0.7 / 0.3) < 0.6


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, "limit on new tokens must be at least 1"),
        ({"width": 0}, "at least 1 wide"),
        ({"n_best": 6}, "width 5 gives 1 to 5 hypotheses; 6"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"alpha": math.nan}, "alpha must be"),
        ({"eos": 9}, "end token 9 is outside the 5 tokens"),
        ({"prompt": [1]}, r"shape \(N, t\)"),
        ({"prompt": [[]]}, "t ≥ 1"),
        ({"prompt": [[0.5]]}, "whole numbers"),
    ],
)
def test_beam_settings(arguments: dict[str, Any], message: str) -> None:
    prompt = arguments.pop("prompt", [[0]])
    with pytest.raises(DecodingError, match=message):
        beam_search(fixed, None, prompt, **{"limit": 3, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"top_p": 1.5}, "between 0 and 1; got p = 1.5"),
        ({"top_p": math.nan}, "between 0 and 1"),
        ({"top_k": 0}, "at least 1 token; got k = 0"),
    ],
)
def test_sampling_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodingError, match=message):
        sample(fixed, None, [[0]], limit=3, seed=0, **arguments)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1.0, 2.0]], "at most 2; log-probabilities are expected"),
        ([[math.nan, -1.0]], "row 0: the scores are not a number"),
        ([[-math.inf, -math.inf]], "not all −∞"),
        ([-1.0, -2.0], r"must return shape \(1, V\); it returned \(2,\)"),
        ([[-1.0, -1.0]] * 2, r"must return shape \(1, V\)"),
    ],
)
def test_steps_that_return_something_else(scores: list, message: str) -> None:
    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        return np.array(scores), state

    for decode in (greedy, beam_search):
        with pytest.raises(DecodingError, match=message):
            decode(step, None, [[0]], limit=3, eos=END)
    with pytest.raises(DecodingError):
        top_p_filter([math.nan], 0.5)

"""Perplexity, error rates, BLEU, and the error of quantisation, against independent sources."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from gradproof.models.decoding.metrics import Perplexity, bleu, edit_distance, error_rates, perplexity
from gradproof.models.errors import MetricError, QuantisationError
from gradproof.models.nets.quantise import quantise, quantise_parameters, report

WORDS = st.lists(st.sampled_from("abcd"), max_size=12)
SENTENCES = st.lists(st.sampled_from("abc"), min_size=1, max_size=14)

# --- perplexity --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 7, 50_000])
def test_a_uniform_model_has_perplexity_v(size: int) -> None:
    assert perplexity(np.full((3, 5), math.log(size))) == pytest.approx(size, rel=1e-12)


@pytest.mark.parametrize(
    ("nll", "mask", "expected"),
    [
        ([0.0], None, 1.0),
        ([math.log(2), math.log(8)], None, 4.0),
        ([[1.0, 3.0], [2.0, math.nan]], [[1, 1], [1, 0]], math.exp(2)),  # padding may hold anything
        ([[1.0, math.inf]], [[True, False]], math.e),
        ([math.inf, 1.0], None, math.inf),
        ([709.0], None, math.exp(709.0)),
        ([710.0], None, math.inf),
        ([1e300, 1e300], None, math.inf),
    ],
)
def test_perplexity(nll: list[float], mask: list[int] | None, expected: float) -> None:
    assert perplexity(nll, mask) == pytest.approx(expected, rel=1e-14)


def test_perplexity_does_not_depend_on_the_batches() -> None:
    rng = np.random.default_rng(0)
    nll = rng.exponential(2.0, (60, 17))
    mask = np.arange(17) < rng.integers(1, 18, 60)[:, None]
    expected = math.exp(nll[mask].sum() / mask.sum())
    mean_of_means = np.mean([math.exp(nll[k][mask[k]].mean()) for k in range(60)])
    for size in (1, 7, 60):
        total = Perplexity()
        for start in range(0, 60, size):
            total.add(nll[start : start + size], mask[start : start + size])
        assert total.value == pytest.approx(expected, rel=1e-14)
        assert total.tokens == mask.sum()
    assert abs(mean_of_means - expected) > 0.1  # what it must not be


@pytest.mark.parametrize(
    ("nll", "mask", "message"),
    [
        ([], None, "no tokens at all"),
        ([1.0], [0], "no tokens at all"),
        ([[1.0, math.nan]], None, r"at \(0, 1\) is not a number"),
        ([-0.5], None, "pass −log p"),
        ([1.0, 2.0], [1], r"shape \(1,\)"),
    ],
)
def test_perplexity_refuses(nll: list[float], mask: list[int] | None, message: str) -> None:
    with pytest.raises(MetricError, match=message):
        perplexity(nll, mask)


def test_zero_probabilities_are_counted() -> None:
    total = Perplexity()
    total.add([math.inf, 1.0, math.inf])
    assert (total.impossible, total.value) == (2, math.inf)


# --- edit distance and error rates -------------------------------------------------------------------------------


@functools.cache
def distance_by_definition(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    if not first or not second:
        return len(first) + len(second)
    return min(
        distance_by_definition(first[1:], second) + 1,
        distance_by_definition(first, second[1:]) + 1,
        distance_by_definition(first[1:], second[1:]) + (first[0] != second[0]),
    )


@given(WORDS, WORDS)
def test_edit_distance_by_its_definition(first: list[str], second: list[str]) -> None:
    assert edit_distance(first, second) == distance_by_definition(tuple(first), tuple(second))


@pytest.mark.parametrize(
    ("hypotheses", "references", "per", "wer"),
    [
        (["A B C"], [["A B C"]], 0, 0),
        (["A B C"], [["A X C", "A B C"]], 0, 0),
        (["A B C"], [["A X Y", "A B Y Z"]], 2 / 3, 1),  # equally close: the first counts
        (["A B C"], [["A X Y", "A B"]], 1 / 2, 1),  # the closest has two tokens
        (["", "A"], [["A B"], ["A"]], 2 / 3, 1 / 2),
        (["A A A A"], [["B"]], 4, 1),
        (["A", "B B B"], [["X"], ["B B B"]], 1 / 4, 1 / 2),  # rates of the corpus, no mean of rates
        (["A"], [[""]], math.inf, 1),
        ([""], [[""]], 0, 0),
    ],
)
def test_error_rates(hypotheses: list[str], references: list[list[str]], per: float, wer: float) -> None:
    rates = error_rates([h.split() for h in hypotheses], [[r.split() for r in options] for options in references])
    assert (rates.per, rates.wer) == (per, wer)


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "nothing to evaluate"),
        ([["A"]], [], "as many lists of references; got 0"),
        ([["A"]], [[]], "needs a list of references"),
        ([["A"]], ["A"], "needs a list of references"),
        (["AH B"], [[["AH", "B"]]], r"give tokens, such as \['AH', 'B'\]"),
        ([["AH"]], [["AH B"]], "give tokens"),
    ],
)
def test_corpora_that_are_refused(hypotheses: list[Sequence[str]], references: list, message: str) -> None:
    for metric in (error_rates, bleu):
        with pytest.raises(MetricError, match=message):
            metric(hypotheses, references)


# --- BLEU --------------------------------------------------------------------------------------------------------


def sacre(hypotheses: list[list[str]], references: list[list[list[str]]]) -> float:
    """sacrebleu wants the k-th references of all sentences together, None where a sentence has fewer."""
    count = max(map(len, references))
    streams = [[" ".join(r[k]) if k < len(r) else None for r in references] for k in range(count)]
    texts = [" ".join(hypothesis) for hypothesis in hypotheses]
    result = sacrebleu.corpus_bleu(texts, streams, smooth_method="none", tokenize="none", use_effective_order=False)
    return result.score


@settings(deadline=None)
@given(st.lists(st.tuples(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=3)), min_size=1, max_size=8))
def test_bleu_agrees_with_sacrebleu(corpus: list[tuple[list[str], list[list[str]]]]) -> None:
    hypotheses, references = [c[0] for c in corpus], [c[1] for c in corpus]
    assert bleu(hypotheses, references).percent == pytest.approx(sacre(hypotheses, references), abs=1e-9)


def test_bleu_agrees_with_sacrebleu_on_long_sentences() -> None:
    rng = np.random.default_rng(0)
    references = [[rng.choice(list("abcde"), rng.integers(8, 30)).tolist() for _ in range(2)] for _ in range(50)]
    hypotheses = [
        [w if rng.random() > 0.2 else "z" for w in options[0]][: rng.integers(5, 40)] for options in references
    ]
    score = bleu(hypotheses, references)
    assert 20 < score.percent < 100
    assert score.percent == pytest.approx(sacre(hypotheses, references), abs=1e-9)


@pytest.mark.parametrize(
    ("hypothesis", "references", "order", "score"),
    [
        ("yes", ["no"], 4, 0.0),
        ("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"], 1, 2 / 7),  # clipped
        ("a b", ["a b c d"], 1, math.exp(1 - 4 / 2)),  # too short
        ("a b c d", ["a b"], 1, 0.5),  # too long: no bonus
        ("a b c d", ["a b c d"], 4, 1.0),
        ("a b c", ["a b c"], 4, 0.0),  # no 4-grams at all
        ("a b c x", ["a b c d"], 2, math.sqrt(3 / 4 * 2 / 3)),
        ("", ["a"], 1, 0.0),
    ],
)
def test_bleu_by_hand(hypothesis: str, references: list[str], order: int, score: float) -> None:
    result = bleu([hypothesis.split()], [[r.split() for r in references]], order=order)
    assert result.score == pytest.approx(score, abs=1e-15)


def test_bleu_is_of_the_corpus() -> None:
    """The second sentence alone scores 0, and yet the corpus does not."""
    a, b = list("abcde"), ["x"]
    assert bleu([a, b], [[a], [["y"]]]).score == pytest.approx(sacre([a, b], [[a], [["y"]]]) / 100)
    assert bleu([a, b], [[a], [["y"]]]).score > 0.9
    with pytest.raises(MetricError, match="at least one token"):
        bleu([a], [[a]], order=0)


# --- quantisation ------------------------------------------------------------------------------------------------

NUMBERS = arrays(np.float64, array_shapes(max_dims=3, max_side=6), elements=st.floats(-1e6, 1e6))


@given(NUMBERS, st.integers(1, 16))
def test_the_error_keeps_its_bound(x: np.ndarray, bits: int) -> None:
    back = quantise(x, bits).dequantise()
    bound = (x.max() - x.min()) / (2 * (2**bits - 1))
    assert np.abs(back - x).max() <= bound * (1 + 1e-9) + 1e-15 * np.abs(x).max()
    assert (back.shape, back.dtype) == (x.shape, x.dtype)
    assert np.array_equal(quantise(back, bits).dequantise(), back)  # exact on the grid


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e300, 5e-324])
@pytest.mark.parametrize("bits", [1, 4, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_tensor_comes_back_exactly(value: float, bits: int, dtype: type) -> None:
    with np.errstate(over="ignore"):
        x = np.full((3, 5), value).astype(dtype)
    if np.isfinite(x).all():
        assert np.array_equal(quantise(x, bits).dequantise(), x)


def test_ends_of_the_range_and_the_tight_case() -> None:
    x = np.array([0.1, 0.35, 0.7])
    assert quantise(x, 3).dequantise()[[0, 2]].tolist() == [0.1, 0.7]
    assert (1.7 - -0.9) + -0.9 != 1.7  # the formula alone would miss the end
    assert quantise([-0.9, 1.7], 2).dequantise().tolist() == [-0.9, 1.7]
    wide = np.array([-60000.0, 0.0, 60000.0], np.float16)  # the range itself overflows float16
    assert np.abs(quantise(wide, 8).dequantise().astype(float) - wide).max() < 256
    middle = np.array([0.0, 0.5, 1.0])  # halfway between two levels: the bound is reached
    assert report("x", middle, quantise(middle, 1)).largest_error == 0.5


def test_ranges_of_rows_and_packing() -> None:
    rng = np.random.default_rng(0)
    w = rng.normal(size=(5, 7)).astype(np.float32) * 10.0 ** np.arange(5)[:, None].astype(np.float32)
    whole, rows = (quantise(w, 4, axis) for axis in (None, 0))
    assert whole.codes.nbytes == rows.codes.nbytes == 18  # 35 codes, two a byte
    error = np.abs(rows.dequantise() - w).max(axis=1)
    assert (error <= np.ptp(w, axis=1) / 30 * (1 + 1e-5)).all()
    assert error[0] < np.abs(whole.dequantise() - w)[0].max() / 100
    assert np.array_equal(quantise(w.T, 4, 1).dequantise(), rows.dequantise().T)
    assert quantise(w, 8).codes.dtype == np.uint8 and quantise(w, 8).codes.nbytes == 35


def test_parameters_and_their_report() -> None:
    rng = np.random.default_rng(1)
    parameters = {"W": rng.normal(size=(8, 8)), "b": rng.normal(size=8), "constant": np.ones((2, 2))}
    for bits, saving in ((8, 7), (4, 12)):
        weights, rows = quantise_parameters(parameters, bits)
        assert np.array_equal(weights["b"], parameters["b"])
        assert [row.name for row in rows] == ["W", "constant"]
        assert 0 < rows[0].rms_error < rows[0].largest_error <= rows[0].bound * (1 + 1e-12)
        assert rows[0].bytes_before / (rows[0].bytes_after - 16) > saving and rows[1].largest_error == 0


@pytest.mark.parametrize(
    ("x", "bits", "axis", "message"),
    [
        ([1.0, math.nan], 8, None, r"at \(1,\) is nan"),
        ([1.0, math.inf], 8, None, "inf"),
        ([], 8, None, "without entries"),
        ([1.0], 0, None, "between 1 and 16"),
        ([1.0], 17, None, "between 1 and 16"),
        ([1.0, 2.0], 2.5, None, "a whole number"),
        ([1.0], 8, 1, "no axis 1"),
        ([-1.7e308, 1.7e308], 8, None, "overflows"),
    ],
)
def test_what_cannot_be_quantised(x: list[float], bits: float, axis: int | None, message: str) -> None:
    with pytest.raises(QuantisationError, match=message):
        quantise(x, bits, axis)
    with pytest.raises(QuantisationError, match=r"^layer\.W: "):
        quantise_parameters({"layer.W": np.array([[math.nan]])})

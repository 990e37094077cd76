"""Perplexity, error rates with several references, corpus BLEU.

All of them are sums over the whole corpus, divided once: a mean of batch means would depend on the batch size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from gradproof.models.errors import MetricError

Tokens = Sequence[Hashable]


@dataclass
class Perplexity:
    """exp of the mean negative log-likelihood per token, over all batches; padding does not count.

    >>> p = Perplexity()
    >>> p.add([[math.log(4), math.log(4)], [math.log(4), 99.0]], mask=[[1, 1], [1, 0]])
    >>> round(p.value, 12), p.tokens
    (4.0, 3)
    """

    tokens: int = 0
    impossible: int = 0
    _sums: list[float] = field(default_factory=list)

    def add(self, nll: ArrayLike, mask: ArrayLike | None = None) -> None:
        """Negative log-likelihoods (any shape) and which of them count (same shape); the others may be anything."""
        values = np.asarray(nll, dtype=np.float64)
        counted = np.ones(values.shape, bool) if mask is None else np.asarray(mask).astype(bool)
        if counted.shape != values.shape:
            raise MetricError(f"the mask has shape {counted.shape}, the negative log-likelihoods {values.shape}")
        kept = values[counted]
        if np.isnan(kept).any():
            place = tuple(int(i) for i in np.argwhere(counted & np.isnan(values))[0])
            raise MetricError(f"the negative log-likelihood at {place} is not a number")
        # Rounding in float32 may give a tiny negative value; anything below that is no probability.
        if kept.size and kept.min() < -1e-3:
            raise MetricError(
                f"a negative log-likelihood of {kept.min():.6g} means a probability above 1; pass −log p, not log p"
            )
        self.tokens += kept.size
        self.impossible += int(np.isinf(kept).sum())
        self._sums.append(math.fsum(kept.tolist()))

    @property
    def mean(self) -> float:
        """The mean negative log-likelihood per token; infinite if a token had probability zero."""
        if not self.tokens:
            raise MetricError("perplexity is not defined for no tokens at all (everything is padding?)")
        return math.fsum(self._sums) / self.tokens

    @property
    def value(self) -> float:
        """Infinite if a token had probability zero (`impossible` counts them) or if exp overflows."""
        try:
            return math.exp(self.mean)
        except OverflowError:
            return math.inf


def perplexity(nll: ArrayLike, mask: ArrayLike | None = None) -> float:
    """exp of the mean of `nll` where `mask` is true.

    >>> perplexity([math.log(2), math.log(8)]), perplexity([800.0]), perplexity([math.inf, 0.0])
    (4.0, inf, inf)
    """
    total = Perplexity()
    total.add(nll, mask)
    return total.value


def edit_distance(first: Tokens, second: Tokens) -> int:
    """The least number of insertions, deletions and substitutions that turn one into the other.

    >>> edit_distance("kitten", "sitting"), edit_distance([], ["A", "B"])
    (3, 2)
    """
    if len(first) < len(second):
        first, second = second, first
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, two in enumerate(second, start=1):
            here = diagonal if one == two else 1 + min(diagonal, row[j], row[j - 1])
            diagonal, row[j] = row[j], here
    return row[-1]


@dataclass(frozen=True)
class ErrorRates:
    """Counts over a corpus; `per` is the rate of wrong tokens, `wer` that of sequences that are not wholly right.

    In grapheme-to-phoneme work a token is a phoneme and a sequence the pronunciation of a word, hence the names.
    """

    edits: int
    tokens: int
    wrong: int
    sequences: int

    @property
    def per(self) -> float:
        return self.edits / self.tokens if self.tokens else math.inf if self.edits else 0.0

    @property
    def wer(self) -> float:
        return self.wrong / self.sequences


def error_rates(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> ErrorRates:
    """Each hypothesis against the closest of its references (fewest edits; the first of several equally close ones).

    >>> r = error_rates([["A", "B"], ["C"]], [[["A", "X"], ["A", "B"]], [["C", "D"]]])
    >>> r.per, r.wer
    (0.25, 0.5)
    """
    _check_corpus(hypotheses, references)
    edits = tokens = wrong = 0
    for hypothesis, options in zip(hypotheses, references, strict=True):
        distance, closest = min((edit_distance(hypothesis, option), place) for place, option in enumerate(options))
        edits += distance
        tokens += len(options[closest])
        wrong += distance > 0
    return ErrorRates(edits, tokens, wrong, len(hypotheses))


def _check_corpus(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> None:
    if not hypotheses:
        raise MetricError("there is nothing to evaluate: no hypothesis was given")
    if len(hypotheses) != len(references):
        raise MetricError(f"{len(hypotheses)} hypotheses need as many lists of references; got {len(references)}")
    for place, (hypothesis, options) in enumerate(zip(hypotheses, references, strict=True)):
        if isinstance(options, str) or not options:
            raise MetricError(f"hypothesis {place} needs a list of references, each a list of tokens; got {options!r}")
        for tokens in (hypothesis, *options):
            if isinstance(tokens, str):  # it would silently be compared letter by letter
                raise MetricError(
                    f"hypothesis {place}: give tokens, such as {tokens.split()!r}, not the string {tokens!r}"
                )


@dataclass(frozen=True)
class Bleu:
    """Corpus BLEU on the scale 0 to 1 (`percent`: 0 to 100), with what it is made of."""

    score: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int

    @property
    def percent(self) -> float:
        return 100 * self.score


def bleu(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]], order: int = 4) -> Bleu:
    """Corpus BLEU without smoothing: BP · (p₁ ⋯ p_N)^(1/N), p_n with clipped counts, BP = 1 if c > r else e^(1 − r/c).

    r adds up, for each hypothesis, the length of the reference closest in length (the shorter one of two). If some
    n-gram order has no match, or the hypotheses are too short to have any, the score is 0.

    >>> bleu([["yes"]], [[["no"]]]).score
    0.0
    >>> bleu(["the cat sat on a mat".split()], [["the cat sat on a mat".split()]]).score
    1.0
    """
    _check_corpus(hypotheses, references)
    if order < 1:
        raise MetricError(f"BLEU needs n-grams of at least one token; the order given is {order}")
    matches, totals = [0] * order, [0] * order
    c = r = 0
    for hypothesis, options in zip(hypotheses, references, strict=True):
        c += len(hypothesis)
        r += min((len(option) for option in options), key=lambda n: (abs(n - len(hypothesis)), n))
        for n in range(1, order + 1):
            counts = _ngrams(hypothesis, n)
            allowed: Counter[Tokens] = Counter()
            for option in options:
                allowed |= _ngrams(option, n)  # the maximum over the references
            matches[n - 1] += (counts & allowed).total()
            totals[n - 1] += counts.total()
    precisions = tuple(match / total if total else 0.0 for match, total in zip(matches, totals, strict=True))
    penalty = 1.0 if c > r else math.exp(1 - r / c) if c else 0.0
    score = penalty * math.exp(math.fsum(map(math.log, precisions)) / order) if all(precisions) else 0.0
    return Bleu(score, precisions, penalty, c, r)


def _ngrams(tokens: Tokens, n: int) -> Counter[Tokens]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

"""Batches of windows of a text, for language models (next token) and masked-token training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof.models.data.batches import Batches, BoolArray, IntArray, positive
from gradproof.models.data.tokens import PAD, Tokeniser
from gradproof.models.errors import DataError


@dataclass(frozen=True)
class TextBatch:
    """inputs, targets, mask (B,T): where the mask is true, the model is asked for targets[b,t]."""

    inputs: IntArray
    targets: IntArray
    mask: BoolArray
    valid: BoolArray

    @property
    def tokens(self) -> int:
        return int(self.mask.sum())

    def part(self, rows: slice) -> TextBatch:
        return TextBatch(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


class TextBatches(Batches[TextBatch]):
    """Batches of windows of a text, for a language model.

    Each epoch cuts the text at another random offset, so that every token but the first is predicted exactly once, from
    ever new beginnings. With `masked` (a share such as .15) the batches are for masked-token training instead.
    """

    def __init__(
        self,
        ids: Sequence[int] | IntArray,
        batch_size: int,
        length: int,
        *,
        seed: int = 0,
        masked: float | None = None,
        vocabulary: Tokeniser | None = None,
    ) -> None:
        super().__init__(batch_size, seed)
        self.ids = _text_ids(ids, length)
        self.length = length
        self.masked = masked
        self.vocabulary = vocabulary
        if masked is not None and vocabulary is None:
            raise DataError("masked-token training needs the vocabulary (for <mask> and the random replacements)")

    def _order(self, rng: np.random.Generator) -> list[IntArray]:
        offset = int(rng.integers(self.length))
        starts = rng.permutation(_window_starts(len(self.ids), self.length, offset))
        return [starts[cut : cut + self.batch_size] for cut in range(0, len(starts), self.batch_size)]

    def _batch(self, rows: IntArray, rng: np.random.Generator) -> TextBatch:
        batch = _windows(self.ids, rows, self.length)
        if self.masked is None or self.vocabulary is None:
            return batch
        return mask_tokens(batch.inputs, batch.valid, self.vocabulary, rng, rate=self.masked)

    def _content(self) -> list[Any]:
        size = self.vocabulary.size if self.vocabulary is not None else None
        return [self.length, self.masked, size, self.ids]


def text_windows(ids: Sequence[int] | IntArray, batch_size: int, length: int) -> Iterator[TextBatch]:
    """The whole text in order, for evaluation: every token but the first is predicted exactly once.

    >>> [batch.targets.tolist() for batch in text_windows([5, 6, 7, 8], 1, 2)]
    [[[6, 7]], [[8, 0]]]
    """
    text = _text_ids(ids, length)
    starts = _window_starts(len(text), length, 0)
    for cut in range(0, len(starts), positive(batch_size)):
        yield _windows(text, starts[cut : cut + batch_size], length)


def _text_ids(ids: Sequence[int] | IntArray, length: int) -> IntArray:
    text = np.asarray(ids, dtype=np.int64)
    if text.ndim != 1 or len(text) < 2:
        raise DataError(f"a language model needs a text of at least two tokens; got {text.size}")
    if length < 1:
        raise DataError(f"the length of a window must be at least 1; got {length}")
    return text


def _window_starts(count: int, length: int, offset: int) -> IntArray:
    """Where the windows begin; a negative start means that the window's first tokens lie before the text."""
    first = offset - length if offset else 0
    return np.arange(first, count - 1, length)


def _windows(ids: IntArray, starts: IntArray, length: int) -> TextBatch:
    # A window that would begin before the text is shortened and begins with it: padding stays at the end.
    ends = np.minimum(starts + length, len(ids) - 1)
    begins = np.maximum(starts, 0)
    places = begins[:, None] + np.arange(length)
    valid = places < ends[:, None]
    safe = np.minimum(places, len(ids) - 2)
    inputs = np.where(valid, ids[safe], PAD)
    targets = np.where(valid, ids[safe + 1], PAD)
    return TextBatch(inputs, targets, valid, valid)


def mask_tokens(
    tokens: IntArray, valid: BoolArray, vocabulary: Tokeniser, rng: np.random.Generator, rate: float = 0.15
) -> TextBatch:
    """Masked-token training: each valid token is chosen with probability `rate` and is to be predicted.

    Of the chosen ones 80 % are replaced by <mask>, 10 % by a random ordinary symbol, 10 % stay. At least one token is
    chosen in every batch, so that its mean loss exists.
    """
    if not 0 < rate <= 1:
        raise DataError(f"the share of masked tokens must lie above 0 and be at most 1; got {rate}")
    if not valid.any():
        raise DataError("a batch without a single valid token cannot be masked")
    chosen = (rng.random(tokens.shape) < rate) & valid
    if not chosen.any():
        places = np.flatnonzero(valid)
        chosen.flat[places[rng.integers(len(places))]] = True
    how = rng.random(tokens.shape)
    first = vocabulary.mask + 1  # ordinary symbols come after <mask>, the last special one
    if vocabulary.size <= first:
        raise DataError("the vocabulary has no ordinary symbol to replace a token by")
    inputs = np.where(chosen & (how < 0.8), vocabulary.mask, tokens)
    inputs = np.where(chosen & (how >= 0.9), rng.integers(first, vocabulary.size, tokens.shape), inputs)
    return TextBatch(inputs, np.where(chosen, tokens, PAD), chosen, valid)

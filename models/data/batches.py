"""Batches: sequences of unequal length padded together, in an order that depends on the seed and the epoch alone.

The place in the data is (epoch, position), two numbers: a run that is stopped in the middle of an epoch goes on with
exactly the batches that the uninterrupted run would have seen.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradproof.models.data.pairs import Pair
from gradproof.models.data.tokens import BOS, EOS, PAD, Tokeniser
from gradproof.models.errors import CheckpointError, DataError

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Ragged:
    """Sequences of unequal length in one flat array.

    >>> r = Ragged.of([[5, 6], [7]])
    >>> tokens, mask = r.padded([1, 0])
    >>> tokens.tolist(), mask.tolist()
    ([[7, 0], [5, 6]], [[True, False], [True, True]])
    """

    def __init__(self, values: IntArray, lengths: IntArray) -> None:
        self.values = values
        self.lengths = lengths
        self._starts = np.cumsum(lengths) - lengths

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> Ragged:
        arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
        lengths = np.array([len(array) for array in arrays], dtype=np.int64)
        return cls(np.concatenate(arrays) if arrays else np.zeros(0, np.int64), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> IntArray:
        return self.values[self._starts[index] : self._starts[index] + self.lengths[index]]

    def padded(self, index: Sequence[int] | IntArray, multiple: int = 1) -> tuple[IntArray, BoolArray]:
        """Tokens (B,T) with <pad> at the end and the mask (B,T) of the real ones; T is rounded up to `multiple`."""
        rows = np.asarray(index, dtype=np.int64)
        lengths = self.lengths[rows]
        width = -(-int(lengths.max(initial=0)) // multiple) * multiple
        places = np.arange(width)
        mask = places < lengths[:, None]
        tokens = np.full(mask.shape, PAD, dtype=np.int64)
        tokens[mask] = self.values[(self._starts[rows, None] + places)[mask]]
        return tokens, mask


@dataclass(frozen=True)
class Examples:
    """Encoded pairs: source with <eos> at its end, target without control symbols, references for evaluation."""

    source: Ragged
    target: Ragged
    pairs: tuple[Pair, ...]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True)
class PairBatch:
    """source, target_in (<bos> y), target_out (y <eos>) with their masks, all (B, length); `rows`: which examples."""

    source: IntArray
    source_mask: BoolArray
    target_in: IntArray
    target_out: IntArray
    target_mask: BoolArray
    rows: IntArray

    @property
    def source_lengths(self) -> IntArray:
        return self.source_mask.sum(axis=1)

    @property
    def target_lengths(self) -> IntArray:
        return self.target_mask.sum(axis=1)

    @property
    def tokens(self) -> int:
        """The number of predictions that count."""
        return int(self.target_mask.sum())

    def part(self, rows: slice) -> PairBatch:
        """Some rows of the batch, for micro-batches and shards; the padding stays as it is."""
        return PairBatch(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def encode_pairs(
    pairs: Iterable[Pair],
    source: Tokeniser,
    target: Tokeniser,
    *,
    variants: bool = True,
    source_limit: int | None = None,
    target_limit: int | None = None,
    too_long: str = "error",
) -> Examples:
    """Encode pairs. With `variants` every target of a source is an example of its own; else only the first one.

    The limits are the model's: they count the control symbol that is added to either side. `too_long` is "error" or
    "drop"; the number of pairs dropped is kept in the result.
    """
    if too_long not in ("error", "drop"):
        raise DataError(f"too_long must be 'error' or 'drop'; got {too_long!r}")
    sources, targets, kept, dropped = [], [], [], 0
    for pair in pairs:
        encoded = [*source.encode(pair.source), EOS]
        for text in pair.targets if variants else pair.targets[:1]:
            wanted = target.encode(text)
            problem = _too_long(pair, "source", len(encoded), source_limit)
            problem = problem or _too_long(pair, "target", len(wanted) + 1, target_limit)
            if problem and too_long == "error":
                raise DataError(problem)
            if problem:
                dropped += 1
                continue
            sources.append(encoded)
            targets.append(wanted)
            kept.append(pair)
    if not kept:
        raise DataError(f"no pair is left to learn from ({dropped} were longer than the model's limit)")
    return Examples(Ragged.of(sources), Ragged.of(targets), tuple(kept), dropped)


def _too_long(pair: Pair, side: str, length: int, limit: int | None) -> str:
    if limit is None or length <= limit:
        return ""
    place = pair.where or f"the pair {pair.source[:40]!r}{'…' if len(pair.source) > 40 else ''}"
    return (
        f"{place}: the {side} has {length} tokens (its control symbol included), the model takes at most {limit}; "
        "shorten it, or leave the pair out"
    )


def pair_batch(examples: Examples, rows: Sequence[int] | IntArray, multiple: int = 1) -> PairBatch:
    """The examples of these numbers, padded together.

    >>> from gradproof.models.data.tokens import Vocabulary
    >>> v = Vocabulary.build(["ab"], kind="char")
    >>> batch = pair_batch(encode_pairs([Pair("ab", ("b",)), Pair("a", ("ab",))], v, v), [0, 1])
    >>> batch.source.tolist(), batch.target_in.tolist(), batch.target_out.tolist()
    ([[4, 5, 2], [4, 2, 0]], [[1, 5, 0], [1, 4, 5]], [[5, 2, 0], [4, 5, 2]])
    """
    index = np.asarray(rows, dtype=np.int64)
    source, source_mask = examples.source.padded(index, multiple)
    plain, _ = examples.target.padded(index)
    lengths = examples.target.lengths[index]
    width = -(-(plain.shape[1] + 1) // multiple) * multiple
    target_mask = np.arange(width) <= lengths[:, None]
    target_in = np.full(target_mask.shape, PAD, dtype=np.int64)
    target_out = target_in.copy()
    target_in[:, 0] = BOS
    target_in[:, 1 : plain.shape[1] + 1] = plain
    target_out[:, : plain.shape[1]] = plain
    target_out[np.arange(len(index)), lengths] = EOS
    return PairBatch(source, source_mask, target_in, target_out, target_mask, index)


def evaluation_batches(examples: Examples, batch_size: int, multiple: int = 1) -> Iterator[PairBatch]:
    """Every example once, similar lengths together; `batch.rows` says which ones they are."""
    order = np.lexsort((examples.target.lengths, examples.source.lengths))
    for start in range(0, len(order), positive(batch_size)):
        yield pair_batch(examples, order[start : start + batch_size], multiple)


def positive(batch_size: int) -> int:
    """The batch size itself, or an error."""
    if batch_size < 1:
        raise DataError(f"the batch size must be at least 1; got {batch_size}")
    return batch_size


Batch = TypeVar("Batch")


class Batches(ABC, Generic[Batch]):
    """Endless batches, epoch after epoch; `state` and `restore` save and find the place."""

    def __init__(self, batch_size: int, seed: int) -> None:
        self.batch_size = positive(batch_size)
        self.seed = seed
        self.epoch = 0
        self.position = 0
        self._plan_of = -1
        self._plan: list[IntArray] = []
        self._fingerprint = ""

    @abstractmethod
    def _order(self, rng: np.random.Generator) -> list[IntArray]:
        """Which examples make up which batch in one epoch."""

    @abstractmethod
    def _batch(self, rows: IntArray, rng: np.random.Generator) -> Batch: ...

    @abstractmethod
    def _content(self) -> list[Any]:
        """What decides the batches, beside the seed."""

    def plan(self) -> list[IntArray]:
        """The batches of the present epoch, as numbers of examples."""
        if self._plan_of != self.epoch:
            self._plan = self._order(np.random.default_rng([self.seed, self.epoch]))
            self._plan_of = self.epoch
        return self._plan

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        rng = np.random.default_rng([self.seed, self.epoch, self.position])
        batch = self._batch(self.plan()[self.position], rng)
        self.position += 1
        if self.position == len(self.plan()):  # at once, so that epoch and position always name the next batch
            self.epoch, self.position = self.epoch + 1, 0
        return batch

    def fingerprint(self) -> str:
        """A short hash of the data and settings: a run can only be resumed on the same ones."""
        if not self._fingerprint:  # computed once: the data do not change, and they may be large
            digest = hashlib.blake2b(digest_size=12)
            for item in (type(self).__name__, self.batch_size, self.seed, *self._content()):
                digest.update(item.tobytes() if isinstance(item, np.ndarray) else f"|{item!r}|".encode())
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def state(self) -> dict[str, Any]:
        """The place in the data, ready for JSON."""
        return {"epoch": self.epoch, "position": self.position, "fingerprint": self.fingerprint()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        if state.get("fingerprint") != self.fingerprint():
            raise CheckpointError(
                "the run cannot be resumed exactly: the data, the batch size or the seed differ from those of the "
                "checkpoint; give the same ones, or start a new run"
            )
        self.epoch, self.position = int(state["epoch"]), int(state["position"])


class PairBatches(Batches[PairBatch]):
    """Batches of pairs of similar length.

    The pairs of an epoch are shuffled, sorted by length within groups of `bucket` batches, cut into batches, and the
    batches shuffled: little padding, and a new composition in every epoch.
    """

    def __init__(
        self, examples: Examples, batch_size: int, *, seed: int = 0, bucket: int = 50, multiple: int = 1
    ) -> None:
        super().__init__(batch_size, seed)
        self.examples = examples
        self.bucket = positive(bucket)
        self.multiple = positive(multiple)

    def _order(self, rng: np.random.Generator) -> list[IntArray]:
        shuffled = rng.permutation(len(self.examples))
        lengths = self.examples.source.lengths, self.examples.target.lengths
        batches = []
        for start in range(0, len(shuffled), self.batch_size * self.bucket):
            group = shuffled[start : start + self.batch_size * self.bucket]
            group = group[np.lexsort((lengths[1][group], lengths[0][group]))]
            batches += [group[cut : cut + self.batch_size] for cut in range(0, len(group), self.batch_size)]
        return [batches[place] for place in rng.permutation(len(batches))]

    def _batch(self, rows: IntArray, rng: np.random.Generator) -> PairBatch:
        return pair_batch(self.examples, rows, self.multiple)

    def _content(self) -> list[Any]:
        data = self.examples
        return [self.bucket, self.multiple, *(a for r in (data.source, data.target) for a in (r.values, r.lengths))]


def shards(batch: Any, count: int) -> list[Any]:
    """Parts of a batch along its first axis, at most `count`, none of them without a target.

    A part's padding stays as it is: it is padding for the masks, too.
    """
    rows = len(batch.target_in if hasattr(batch, "target_in") else batch.inputs)
    cuts = np.linspace(0, rows, min(count, rows) + 1).astype(int)
    parts = [batch.part(slice(a, b)) for a, b in pairwise(cuts)]
    return [part for part in parts if part.tokens]

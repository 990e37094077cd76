"""Where a run's data come from: a file, a task made by code, or the CMU dictionary."""

from __future__ import annotations

from dataclasses import dataclass

from gradproof.models.data.cmu import read_cmudict, split_cmudict
from gradproof.models.data.pairs import Pair, merge_references, read_pairs, read_text, split_pairs
from gradproof.models.data.tasks import TASKS, task_pairs
from gradproof.models.errors import DataError


@dataclass(frozen=True)
class DataSettings:
    """Where the data come from: `cmudict`, a task made by code (`dates`, `numbers`), or a file.

    `tokens`: char, word or space, for the source and (`target_tokens`) the target; `bpe` is a number of byte-pair
    symbols for a text; `count` pairs of a task; windows of `length` tokens of a text.
    """

    data: str
    tokens: str = "char"
    target_tokens: str = ""
    split: str = "word"
    count: int = 5000
    length: int = 64
    bpe: int = 0
    batch: int = 64
    seed: int = 0


@dataclass(frozen=True)
class Pairs:
    """Pairs in three parts."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


def load_pairs(settings: DataSettings) -> Pairs:
    """The pairs of a data source; a file or task without a test part is tested on its validation part."""
    if settings.data == "cmudict":
        return Pairs(*split_cmudict(read_cmudict(), settings.split))
    if settings.data in TASKS:
        pairs = task_pairs(settings.data, settings.count, settings.seed)
    else:
        pairs = merge_references(read_pairs(settings.data))
    train, validation = split_pairs(pairs)
    return Pairs(train, validation, validation)


def load_text(settings: DataSettings) -> str:
    """The text of a file, or of a task: one pair a line."""
    if settings.data == "cmudict":
        raise DataError("cmudict holds pairs, words and their phonemes: train seq2seq or transformer on it")
    if settings.data in TASKS:
        return "".join(f"{p.source} = {p.target}\n" for p in task_pairs(settings.data, settings.count, settings.seed))
    return read_text(settings.data)


def target_kind(settings: DataSettings) -> str:
    return settings.target_tokens or ("space" if settings.data == "cmudict" else settings.tokens)

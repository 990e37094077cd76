"""Reading the user's data: pairs from TSV files, texts for language models, and their splits."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gradproof.models.errors import DataError
from gradproof.models.files import reason

FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class Pair:
    """A source and what it may be turned into: the first target is the usual one, all of them are references."""

    source: str
    targets: tuple[str, ...]
    where: str = ""

    @property
    def target(self) -> str:
        return self.targets[0]


class Split(NamedTuple):
    """Three parts of the same data."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


def read_lines(path: FilePath) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, without their ends; what is not UTF-8 is named by its line."""
    try:
        with open(path, "rb") as handle:
            # Bytes are split at \n only: str.splitlines would also split at characters inside a line (U+2028, \x0b).
            for number, raw in enumerate(handle, start=1):
                yield number, _decoded(raw, number, path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from None


def _decoded(raw: bytes, number: int, path: FilePath) -> str:
    if number == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")  # the byte-order mark that some editors write
    try:
        text = raw.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "; it looks like UTF-16: save it as UTF-8" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise DataError(
            f"{path}, line {number}: byte {error.start + 1} ({raw[error.start]:#04x}) is not UTF-8 text{hint}"
        ) from None
    if "\0" in text:
        raise DataError(f"{path}, line {number}: a NUL character; this is no text file (or UTF-16: save it as UTF-8)")
    return text


def read_pairs(path: FilePath) -> list[Pair]:
    """Pairs from a file with one pair a line: source, a tab, target. Blank lines are skipped.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pairs.tsv")
    ...     _ = file.write_text("ab\\tAH B\\n\\nba\\tB AH\\n")
    ...     [(pair.source, pair.target) for pair in read_pairs(file)]
    [('ab', 'AH B'), ('ba', 'B AH')]
    """
    pairs = []
    for number, line in read_lines(path):
        if not line.strip():
            if "\t" in line:
                raise DataError(f"{path}, line {number}: neither source nor target, only blanks around a tab")
            continue
        fields = [field.strip() for field in line.split("\t")]
        pairs.append(_pair(fields, f"{path}, line {number}"))
    if not pairs:
        raise DataError(f"{path} is empty; expected lines of the form source<tab>target")
    return pairs


def _pair(fields: Sequence[str], where: str) -> Pair:
    if len(fields) == 1:
        raise DataError(f"{where}: no target; expected source<tab>target, found no tab in {_short(fields[0])}")
    if len(fields) > 2:
        raise DataError(f"{where}: {len(fields)} columns; expected two, source<tab>target")
    source, target = (unicodedata.normalize("NFC", field) for field in fields)
    if not target:
        raise DataError(f"{where}: the target of {_short(source)} is empty")
    if not source:
        raise DataError(f"{where}: the source of the target {_short(target)} is empty")
    return Pair(source, (target,), where)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


def merge_references(pairs: Iterable[Pair]) -> list[Pair]:
    """One pair for each source, with all its different targets as references, in order of appearance.

    >>> merge_references([Pair("a", ("x",)), Pair("b", ("y",)), Pair("a", ("z",)), Pair("a", ("x",))])
    [Pair(source='a', targets=('x', 'z'), where=''), Pair(source='b', targets=('y',), where='')]
    """
    merged: dict[str, dict[str, None]] = {}
    places: dict[str, str] = {}
    for pair in pairs:
        merged.setdefault(pair.source, {}).update(dict.fromkeys(pair.targets))
        places.setdefault(pair.source, pair.where)
    return [Pair(source, tuple(targets), places[source]) for source, targets in merged.items()]


def read_text(path: FilePath) -> str:
    """The whole text of a file for a language model (line ends become \\n)."""
    text = unicodedata.normalize("NFC", "".join(line + "\n" for _, line in read_lines(path)))
    if not text.strip():
        raise DataError(f"{path} is empty; a language model needs text to learn from")
    return text


def hash_number(key: str, modulus: int) -> int:
    """A number below `modulus` that depends on `key` alone: the same on every machine, in every year.

    >>> hash_number("word", 100)
    29
    """
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8"), digest_size=8).digest(), "big") % modulus


def split_by_hash(
    pairs: Iterable[Pair], percent: tuple[int, int, int] = (88, 2, 10), key: Callable[[Pair], str] | None = None
) -> Split:
    """Train, validation and test by a fixed hash of the source (or of `key`): adding pairs never moves another one.

    Pairs with the same key stay together. On small data a part may be empty; `split_pairs` avoids that.
    """
    if len(percent) != 3 or sum(percent) != 100 or min(percent) < 0:
        raise DataError(f"the shares of a split must be three numbers that add up to 100; got {percent}")
    parts = Split([], [], [])
    for pair in pairs:
        number = hash_number(key(pair) if key else pair.source, 100)
        parts[(number >= percent[0]) + (number >= percent[0] + percent[1])].append(pair)
    return parts


def split_pairs(
    pairs: Sequence[Pair], validation: float = 0.05, key: Callable[[Pair], str] | None = None
) -> tuple[list[Pair], list[Pair]]:
    """Train and validation for a user's own file: that share of the sources, at least one, chosen by their hash.

    >>> train, held_out = split_pairs([Pair(c, (c,)) for c in "abcdefgh"], validation=0.25)
    >>> len(train), len(held_out)
    (6, 2)
    """
    if not 0 < validation < 1:
        raise DataError(f"the validation share must lie between 0 and 1; got {validation}")
    keys = {pair: key(pair) if key else pair.source for pair in pairs}
    ranked = sorted(set(keys.values()), key=lambda name: (hash_number(name, 2**64), name))
    if len(ranked) < 2:
        raise DataError("to split off validation data there must be at least two different sources")
    count = min(max(1, round(validation * len(ranked))), len(ranked) - 1)
    chosen = set(ranked[:count])
    return (
        [pair for pair in pairs if keys[pair] not in chosen],
        [pair for pair in pairs if keys[pair] in chosen],
    )


def split_text(text: str, validation: float = 0.1) -> tuple[str, str]:
    """Train and validation text: the last part is held out, whole, so that no sentence is in both.

    >>> split_text("0123456789", 0.2)
    ('01234567', '89')
    """
    if not 0 < validation < 1:
        raise DataError(f"the validation share must lie between 0 and 1; got {validation}")
    cut = len(text) - max(1, round(validation * len(text)))
    if cut < 1:
        raise DataError(f"a text of {len(text)} character(s) cannot be split into train and validation")
    return text[:cut], text[cut:]

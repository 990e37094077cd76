"""From text to token numbers and back: characters, words, space-separated tokens, byte-pair encoding.

Four symbols have fixed numbers in every vocabulary: <pad> 0, <bos> 1, <eos> 2, <unk> 3; <mask> is 4 where it is asked
for (masked-token training). The user's text can never produce a control symbol: a literal "<eos>" in it is text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from gradproof.models.errors import DataError

PAD, BOS, EOS, UNK, MASK = range(5)
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
MASK_SYMBOL = "<mask>"
KINDS = ("char", "word", "space")

_WORDS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class Tokeniser(Protocol):
    """What the models need of a vocabulary; `Vocabulary` and `BytePairTokeniser` have it."""

    @property
    def size(self) -> int: ...

    @property
    def mask(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Iterable[int]) -> str: ...

    def pieces(self, ids: Iterable[int]) -> list[str]: ...

    def to_json(self) -> dict[str, Any]: ...


def split(text: str, kind: str) -> list[str]:
    """The symbols of a text. `char`: characters; `word`: words and punctuation marks; `space`: what spaces separate.

    Text is put into one Unicode form first (NFC), so that é typed as one or as two code points is the same symbol.

    >>> split("Don't go!", "word"), split("AH0 B", "space"), split("né", "char")
    (["Don't", 'go', '!'], ['AH0', 'B'], ['n', 'é'])
    """
    text = unicodedata.normalize("NFC", text)
    if kind == "char":
        return list(text)
    if kind == "word":
        return _WORDS.findall(text)
    if kind == "space":
        return text.split()
    raise DataError(f"unknown kind of tokens {kind!r}; known: {', '.join(KINDS)} (and bpe, which is trained on a text)")


class Vocabulary:
    """Symbols with their numbers; the special ones come first.

    >>> v = Vocabulary.build(["abba", "a b"], kind="char")
    >>> v.symbols
    ('<pad>', '<bos>', '<eos>', '<unk>', 'a', 'b', ' ')
    >>> v.encode("abc"), v.decode([4, 5, EOS, 4])
    ([4, 5, 3], 'ab')
    """

    def __init__(self, kind: str, symbols: Sequence[str], *, mask: bool = False) -> None:
        split("", kind)  # an unknown kind is an error here
        first = (*SPECIALS, MASK_SYMBOL) if mask else SPECIALS
        self.kind = kind
        self.has_mask = mask
        self.symbols: tuple[str, ...] = (*first, *symbols)
        # Only ordinary symbols can be looked up, so that no text is ever read as a control symbol.
        self._numbers = {symbol: number for number, symbol in enumerate(self.symbols) if number >= len(first)}
        if len(self._numbers) != len(symbols):
            twice = [symbol for symbol, count in Counter(symbols).items() if count > 1]
            raise DataError(f"the vocabulary lists {twice[0]!r} twice; each symbol needs one number")

    @classmethod
    def build(
        cls, texts: Iterable[str], *, kind: str, min_count: int = 1, max_size: int | None = None, mask: bool = False
    ) -> Vocabulary:
        """The symbols of `texts`, most frequent first (ties in code-point order, so the result is always the same)."""
        counts = Counter(piece for text in texts for piece in split(text, kind))
        for special in (*SPECIALS, MASK_SYMBOL):
            counts.pop(special, None)
        ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
        ranked = [symbol for symbol in ranked if counts[symbol] >= min_count]
        if not ranked:
            raise DataError(
                f"no symbol occurs at least {min_count} time(s), so there is no vocabulary; is the text empty?"
            )
        room = None if max_size is None else max_size - len(SPECIALS) - mask
        if room is not None and room < 1:
            raise DataError(f"a vocabulary of {max_size} has no room for a symbol beside the special ones")
        return cls(kind, ranked[:room], mask=mask)

    @property
    def size(self) -> int:
        return len(self.symbols)

    @property
    def mask(self) -> int:
        if not self.has_mask:
            raise DataError("this vocabulary has no <mask> symbol; build it with mask=True for masked-token training")
        return MASK

    def encode(self, text: str) -> list[int]:
        """Numbers of the symbols, <unk> for unknown ones; no <bos> or <eos> is added."""
        return [self._numbers.get(piece, UNK) for piece in split(text, self.kind)]

    def unknown(self, text: str) -> list[str]:
        """The symbols of `text` that the vocabulary lacks, each once, for a warning."""
        return list(dict.fromkeys(piece for piece in split(text, self.kind) if piece not in self._numbers))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the numbers up to <eos>; <pad> and <bos> are left out, <unk> stays visible."""
        return ("" if self.kind == "char" else " ").join(self.pieces(ids))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self.symbols[number] for number in _until_end(ids, self.size)]

    def to_json(self) -> dict[str, Any]:
        first = len(SPECIALS) + self.has_mask
        return {"type": "vocabulary", "kind": self.kind, "mask": self.has_mask, "symbols": list(self.symbols[first:])}


class BytePairTokeniser:
    """Byte-level byte-pair encoding by the `tokenizers` library: every text can be written, nothing is unknown.

    >>> t = BytePairTokeniser.train(["low lower lowest"] * 9, size=270)
    >>> t.decode(t.encode("slower ✓"))
    'slower ✓'
    >>> len(t.encode(" lower")) < 6
    True
    """

    def __init__(self, serialised: str) -> None:
        from tokenizers import Tokenizer

        self._serialised = serialised
        try:
            self._tokenizer = Tokenizer.from_str(serialised)
        except Exception as error:  # the library raises plain Exception
            raise DataError(f"the stored tokenizer cannot be read: {error}") from None
        # A literal "<eos>" in a text is text, not the control symbol.
        self._tokenizer.encode_special_tokens = True
        self.has_mask = self._tokenizer.token_to_id(MASK_SYMBOL) is not None

    @classmethod
    def train(cls, texts: Iterable[str], *, size: int, mask: bool = False) -> BytePairTokeniser:
        """Learn at most `size` symbols: the special ones, the 256 bytes and the most useful merges."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        specials = [*SPECIALS, MASK_SYMBOL] if mask else list(SPECIALS)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        if size < len(specials) + len(alphabet):
            raise DataError(
                f"byte-pair encoding needs at least {len(specials) + len(alphabet)} symbols "
                f"({len(specials)} special ones and {len(alphabet)} bytes); {size} were asked for"
            )
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=specials, initial_alphabet=sorted(alphabet), show_progress=False
        )
        tokenizer.train_from_iterator((_normal(text) for text in texts), trainer)
        return cls(tokenizer.to_str())

    @property
    def size(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    @property
    def mask(self) -> int:
        if not self.has_mask:
            raise DataError("this tokeniser has no <mask> symbol; train it with mask=True for masked-token training")
        return MASK

    def encode(self, text: str) -> list[int]:
        """Numbers of the pieces. Lines are encoded one by one (in parallel), which leaves the text the same."""
        lines = _normal(text).splitlines(keepends=True)
        return [number for line in self._tokenizer.encode_batch(lines) for number in line.ids]

    def unknown(self, text: str) -> list[str]:
        return []

    def decode(self, ids: Iterable[int]) -> str:
        return str(self._tokenizer.decode(_until_end(ids, self.size), skip_special_tokens=False))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self.decode([number]) for number in _until_end(ids, self.size)]

    def to_json(self) -> dict[str, Any]:
        return {"type": "bpe", "tokenizer": self._serialised}


def tokeniser_from_json(data: Mapping[str, Any]) -> Vocabulary | BytePairTokeniser:
    """The tokeniser that `to_json` described.

    >>> tokeniser_from_json(Vocabulary.build(["ab"], kind="char").to_json()).encode("ba")
    [5, 4]
    """
    try:
        if data["type"] == "vocabulary":
            return Vocabulary(data["kind"], data["symbols"], mask=data["mask"])
        if data["type"] == "bpe":
            return BytePairTokeniser(data["tokenizer"])
        raise DataError(f"unknown type of vocabulary {data['type']!r}; known: vocabulary, bpe")
    except (KeyError, TypeError) as error:
        raise DataError(f"the stored vocabulary is not complete: {error} is missing or of the wrong type") from None


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _until_end(ids: Iterable[int], size: int) -> list[int]:
    """The numbers before <eos>, without <pad> and <bos>."""
    kept = []
    for number in map(int, ids):
        if not 0 <= number < size:
            raise DataError(f"token number {number} is outside the vocabulary of {size} symbols (0 to {size - 1})")
        if number == EOS:
            break
        if number not in (PAD, BOS):
            kept.append(number)
    return kept

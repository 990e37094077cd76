"""Vocabularies, files, splits, tasks and batches: nothing lost, nothing invented, the same order every time."""

from __future__ import annotations

import datetime
import json
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradproof.models.data import cmu, tasks
from gradproof.models.data import pairs as data
from gradproof.models.data.batches import PairBatches, Ragged, encode_pairs, evaluation_batches, pair_batch
from gradproof.models.data.pairs import Pair
from gradproof.models.data.text_batches import TextBatches, mask_tokens, text_windows
from gradproof.models.data.tokens import BOS, EOS, MASK, PAD, UNK, BytePairTokeniser, Vocabulary, tokeniser_from_json
from gradproof.models.errors import CheckpointError, DataError, MissingPackageError

LETTERS = Vocabulary.build(["abcdefghij"], kind="char")


def pairs_of(lengths: list[int]) -> list[Pair]:
    return [Pair("a" * n + LETTERS.symbols[4 + i % 10], ("b" * (n % 7 + 1),)) for i, n in enumerate(lengths)]


# --- vocabularies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "texts", "text", "ids", "back"),
    [
        ("char", ["aab"], "ab!", [4, 5, UNK], "ab<unk>"),
        ("word", ["the cat, the dog"], "the dog, the fox", [4, 7, 5, 4, UNK], "the dog , the <unk>"),
        ("space", ["AH0 B AH0"], " B  AH0 ", [5, 4], "B AH0"),
        ("char", ["e\N{COMBINING ACUTE ACCENT}"], "é", [4], "é"),  # two code points or one: the same symbol
        ("char", ["<eos>"], "<e", [4, 6], "<e"),
        ("space", ["<eos> a"], "<eos> <pad> a", [UNK, UNK, 4], "<unk> <unk> a"),  # text is never a control symbol
        ("char", ["ab"], "", [], ""),
    ],
)
def test_vocabulary(kind: str, texts: list[str], text: str, ids: list[int], back: str) -> None:
    vocabulary = Vocabulary.build(texts, kind=kind)
    assert vocabulary.encode(text) == ids
    assert vocabulary.decode(ids) == back
    again = tokeniser_from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again.encode(text) == ids and again.size == vocabulary.size


def test_decoding_stops_at_the_end_and_skips_padding() -> None:
    assert LETTERS.decode([BOS, 4, 5, PAD, EOS, 6]) == "ab"
    assert LETTERS.unknown("axxy") == ["x", "y"]
    with pytest.raises(DataError, match="14 symbols"):
        LETTERS.decode([14])


def test_vocabulary_sizes() -> None:
    assert Vocabulary.build(["aaabbc"], kind="char", min_count=2).symbols[4:] == ("a", "b")
    assert Vocabulary.build(["aaabbc"], kind="char", max_size=5).symbols[4:] == ("a",)
    assert Vocabulary.build(["ab"], kind="char", mask=True).mask == MASK
    for wrong in (
        lambda: LETTERS.mask,
        lambda: Vocabulary.build([" "], kind="word"),
        lambda: Vocabulary.build(["a"], kind="letters"),
        lambda: Vocabulary.build(["a"], kind="char", max_size=4),
        lambda: Vocabulary("char", ["a", "a"]),
        lambda: tokeniser_from_json({"type": "vocabulary"}),
        lambda: tokeniser_from_json({"type": "bpe", "tokenizer": "{"}),
        lambda: tokeniser_from_json({"type": "sentencepiece"}),
    ):
        with pytest.raises(DataError):
            wrong()


TEXT = "the cat sat on the mat.\nthe dog sat on the log.\n\n" * 20
BPE = BytePairTokeniser.train([TEXT], size=300)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40))
def test_byte_pairs_lose_nothing(text: str) -> None:
    normal = unicodedata.normalize("NFC", text)
    ids = BPE.encode(text)
    assert BPE.decode(ids) == normal
    assert min(ids, default=4) > UNK  # not even a literal "<eos>" gives a control symbol


def test_byte_pairs() -> None:
    assert BPE.decode(BPE.encode("<eos><pad> ok")) == "<eos><pad> ok"
    assert len(BPE.encode(TEXT)) < len(TEXT) / 2 and BPE.size <= 300
    again = tokeniser_from_json(json.loads(json.dumps(BPE.to_json())))
    assert again.encode(TEXT) == BPE.encode(TEXT)
    assert BytePairTokeniser.train([TEXT], size=300).to_json() == BPE.to_json()  # the same text, the same tokeniser
    masked = BytePairTokeniser.train([TEXT], size=300, mask=True)
    assert masked.mask == MASK and masked.decode(masked.encode("<mask>")) == "<mask>"
    assert MASK not in masked.encode("<mask>")
    with pytest.raises(DataError, match="at least 260 symbols"):
        BytePairTokeniser.train([TEXT], size=200)


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "pairs.tsv is empty"),
        (b"\n \n", "pairs.tsv is empty"),
        (b"a\tx\nb\n", "line 2: no target.*'b'"),
        (b"a\tx\n\nb\t\n", "line 3: the target of 'b' is empty"),
        (b"\tx\n", "line 1: the source of the target 'x' is empty"),
        (b"\t\n", "line 1: neither source nor target"),
        (b"a\tx\ty\n", "line 1: 3 columns"),
        (b"a\tx\nb\t\xff\n", r"line 2: byte 3 \(0xff\) is not UTF-8"),
        ("a\tx\n".encode("utf-16"), "UTF-16"),
        (b"a\x00\tx\n", "NUL"),
    ],
)
def test_bad_pair_files(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        data.read_pairs(file)
    assert "pairs.tsv" in str(caught.value)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        data.read_pairs(tmp_path / "none.tsv")
    with pytest.raises(DataError, match="it is a folder"):
        data.read_text(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(DataError, match=r"empty\.txt is empty"):
        data.read_text(tmp_path / "empty.txt")


def test_pair_file_with_windows_ends_and_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "p.tsv"
    file.write_bytes(b"\xef\xbb\xbfa b\tx\r\n\r\nc\x0bd\te\xe2\x80\xa8f")  # \x0b and U+2028 do not end a line
    found = data.read_pairs(file)
    assert [(p.source, p.target) for p in found] == [("a b", "x"), ("c\x0bd", "e\u2028f")]
    assert found[1].where.endswith("p.tsv, line 3")
    assert data.read_text(file).startswith("a b\tx\n\nc")


# --- splits ------------------------------------------------------------------------------------------------------


def test_hash_split_is_fixed_and_keeps_keys_together() -> None:
    pairs = [Pair(f"word{i}", ("x",)) for i in range(5000)]
    parts = data.split_by_hash(pairs)
    assert [len(part) for part in parts] == [4391, 85, 524]
    # printf WORD | b2sum -l 64, as a number, modulo 100
    assert [data.hash_number(word, 100) for word in ("word", "abbey", "café")] == [29, 96, 59]
    more = data.split_by_hash([*pairs, Pair("new", ("y",))])
    assert all(set(old) <= set(new) for old, new in zip(parts, more, strict=True))
    grouped = data.split_by_hash(pairs, key=lambda pair: pair.source[:6])
    seen = [{pair.source[:6] for pair in part} for part in grouped]
    assert not (seen[0] & seen[2] or seen[0] & seen[1] or seen[1] & seen[2])
    with pytest.raises(DataError, match="add up to 100"):
        data.split_by_hash(pairs, (80, 10, 20))


@pytest.mark.parametrize(("sources", "share", "held_out"), [(2, 0.05, 1), (10, 0.3, 3), (3, 0.99, 2)])
def test_split_of_a_small_file_leaves_no_part_empty(sources: int, share: float, held_out: int) -> None:
    pairs = [Pair(f"s{i}", (t,)) for i in range(sources) for t in "xy"]
    train, validation = data.split_pairs(pairs, share)
    assert len({p.source for p in validation}) == held_out
    assert not {p.source for p in train} & {p.source for p in validation}
    assert len(train) + len(validation) == len(pairs)


def test_impossible_splits() -> None:
    with pytest.raises(DataError, match="two different sources"):
        data.split_pairs([Pair("a", ("x",)), Pair("a", ("y",))])
    with pytest.raises(DataError, match="between 0 and 1"):
        data.split_pairs([Pair("a", ("x",)), Pair("b", ("y",))], 1.0)
    with pytest.raises(DataError, match="cannot be split"):
        data.split_text("a")


# --- the CMU dictionary ------------------------------------------------------------------------------------------

SAMPLE = """\
;;; an old comment
'bout B AW1 T
a AH0
a(2) EY1
aaa T R IH2 P AH0 L EY1
read R EH1 D
read(2) R IY1 D
read(3) R EH2 D
aalborg(2) AA1 L B AO0 R G # place, danish
x-ray EH1 K S R EY2
d'artagnan D AH0 R T AE1 NG Y AH0 N # foreign french
"""


def test_cmudict_sample(tmp_path: Path) -> None:
    file = tmp_path / "cmudict.dict"
    file.write_text(SAMPLE)
    found = {pair.source: pair.targets for pair in cmu.read_cmudict(file)}
    assert found == {
        "a": ("AH", "EY"),
        "aaa": ("T R IH P AH L EY",),
        "read": ("R EH D", "R IY D"),  # the third variant differed in stress only
        "aalborg": ("AA L B AO R G",),
    }
    file.write_text("abbey AE1 B IY0\nabbot\n")
    with pytest.raises(DataError, match=r"cmudict\.dict, line 2: 'abbot' has no phonemes"):
        cmu.read_cmudict(file)
    file.write_text("# nothing\n")
    with pytest.raises(DataError, match="has no entry"):
        cmu.read_cmudict(file)


def test_cmudict_package_is_optional_and_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingPackageError, match=r"gradproof\[cmudict\]"):
        cmu.cmudict_path()
    monkeypatch.undo()
    try:
        path = cmu.cmudict_path()
    except MissingPackageError:
        pytest.skip("the cmudict package is not installed")
    assert len([line for _, line in data.read_lines(path) if line]) > 130_000
    words = cmu.read_cmudict(path)
    parts = cmu.split_cmudict(words)
    shares = [round(100 * len(part) / len(words)) for part in parts]
    assert shares == [88, 2, 10] and "cmudict" not in sys.modules


def test_stem_split_keeps_forms_together() -> None:
    words = [
        f"{w}{ending}" for w in ("walk", "paint", "plann", "conv", "statu") for ending in ("ed", "ing", "er", "ers")
    ]
    parts = cmu.split_cmudict([Pair(word, ("x",)) for word in words], by="stem")
    stems = [{cmu.stem(pair.source) for pair in part} for part in parts]
    assert sum(map(len, stems)) == len(set.union(*stems)) == 5
    with pytest.raises(DataError, match="known: word, stem"):
        cmu.split_cmudict([], by="letter")


# --- tasks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety nine"),
        (100, "one hundred"),
        (101, "one hundred and one"),
        (1000, "one thousand"),
        (12005, "twelve thousand and five"),
        (999_999, "nine hundred and ninety nine thousand nine hundred and ninety nine"),
    ],
)
def test_number_words(number: int, words: str) -> None:
    assert tasks.number_words(number) == words


def test_number_words_are_unambiguous() -> None:
    assert len({tasks.number_words(n) for n in range(20_000)}) == 20_000


def test_tasks_are_seeded_and_without_repetition() -> None:
    for name in tasks.TASKS:
        pairs = tasks.task_pairs(name, 3000, seed=1)
        assert pairs == tasks.task_pairs(name, 3000, seed=1) != tasks.task_pairs(name, 3000, seed=2)
        assert len({p.source for p in pairs}) == len({p.target for p in pairs}) == 3000
    for pair in tasks.task_pairs("dates", 200):
        assert pair.source in tasks.date_forms(datetime.date.fromisoformat(pair.target))
    with pytest.raises(DataError, match="known: dates, numbers"):
        tasks.task_pairs("sums", 3)
    with pytest.raises(DataError, match="1000000 different pairs"):
        tasks.task_pairs("numbers", 2_000_000)


def test_ordinals() -> None:
    forms = [
        tasks.date_forms(datetime.date(2000, 1, day))[3].split()[1] for day in (1, 2, 3, 4, 11, 12, 13, 21, 22, 30)
    ]
    assert forms == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "30th"]


# --- batches of pairs --------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 7), st.integers(1, 4))
def test_an_epoch_has_every_pair_once_and_unharmed(lengths: list[int], size: int, multiple: int) -> None:
    pairs = pairs_of(lengths)
    examples = encode_pairs(pairs, LETTERS, LETTERS)
    batches = PairBatches(examples, size, seed=3, bucket=2, multiple=multiple)
    seen = []
    for batch in (next(batches) for _ in range(len(batches.plan()))):
        seen += batch.rows.tolist()
        assert batch.source.shape[1] % multiple == 0 and batch.target_in.shape[1] % multiple == 0
        for row, number in enumerate(batch.rows):
            source = batch.source[row][batch.source_mask[row]]
            assert LETTERS.decode(source) == pairs[number].source and source[-1] == EOS
            count = batch.target_lengths[row]
            assert LETTERS.decode(batch.target_in[row, :count]) == pairs[number].target
            assert batch.target_in[row, 0] == BOS and batch.target_out[row, count - 1] == EOS
            assert batch.target_out[row, : count - 1].tolist() == batch.target_in[row, 1:count].tolist()
            assert not batch.target_out[row, count:].any() and not batch.target_in[row, count:].any()
    assert sorted(seen) == list(range(len(pairs)))
    seen = [number for batch in evaluation_batches(examples, size, multiple) for number in batch.rows.tolist()]
    assert sorted(seen) == list(range(len(pairs)))


def test_batches_are_bucketed_shuffled_and_seeded() -> None:
    rng = np.random.default_rng(0)
    examples = encode_pairs(pairs_of(rng.integers(1, 30, 600).tolist()), LETTERS, LETTERS)

    def epochs(seed: int) -> list[list[list[int]]]:
        batches = PairBatches(examples, 20, seed=seed, bucket=10)
        return [[next(batches).rows.tolist() for _ in range(30)] for _ in range(2)]

    assert epochs(1) == epochs(1) != epochs(2)
    first, second = epochs(1)
    assert first != second
    batches = PairBatches(examples, 20, bucket=10)
    padding = [1 - float(next(batches).source_mask.mean()) for _ in range(30)]
    random_order = examples.source.padded(rng.permutation(600)[:20])[1]
    assert np.mean(padding) < 0.15 < 0.3 < 1 - random_order.mean()


@pytest.mark.parametrize("stop", [0, 1, 7, 29, 30, 31, 95])
def test_resuming_in_the_middle_of_an_epoch(stop: int) -> None:
    examples = encode_pairs(pairs_of(list(range(1, 30)) * 2), LETTERS, LETTERS)
    whole, first, resumed = (PairBatches(examples, 2, seed=5) for _ in range(3))
    expected = [next(whole).rows.tolist() for _ in range(130)]
    assert [next(first).rows.tolist() for _ in range(stop)] == expected[:stop]
    resumed.restore(json.loads(json.dumps(first.state())))
    assert [next(resumed).rows.tolist() for _ in range(130 - stop)] == expected[stop:]


def test_resuming_on_other_data_is_refused() -> None:
    state = PairBatches(encode_pairs(pairs_of([1, 2, 3]), LETTERS, LETTERS), 2).state()
    for other in (
        PairBatches(encode_pairs(pairs_of([1, 2, 4]), LETTERS, LETTERS), 2),
        PairBatches(encode_pairs(pairs_of([1, 2, 3]), LETTERS, LETTERS), 3),
        PairBatches(encode_pairs(pairs_of([1, 2, 3]), LETTERS, LETTERS), 2, seed=1),
    ):
        with pytest.raises(CheckpointError, match="cannot be resumed exactly"):
            other.restore(state)


def test_variants_limits_and_parts() -> None:
    pairs = [Pair("ab", ("a", "b"), "f.tsv, line 1"), Pair("abcde", ("a",), "f.tsv, line 2")]
    assert len(encode_pairs(pairs, LETTERS, LETTERS)) == 3
    assert len(encode_pairs(pairs, LETTERS, LETTERS, variants=False)) == 2
    assert len(encode_pairs(pairs, LETTERS, LETTERS, source_limit=6)) == 3  # five letters and the end token
    with pytest.raises(DataError, match=r"f\.tsv, line 2: the source has 6 tokens .* at most 5"):
        encode_pairs(pairs, LETTERS, LETTERS, source_limit=5)
    with pytest.raises(DataError, match=r"line 1: the target has 2 tokens .* at most 1"):
        encode_pairs(pairs, LETTERS, LETTERS, target_limit=1)
    short = encode_pairs(pairs, LETTERS, LETTERS, source_limit=5, too_long="drop")
    assert (len(short), short.dropped) == (2, 1)
    with pytest.raises(DataError, match="no pair is left"):
        encode_pairs(pairs, LETTERS, LETTERS, source_limit=1, too_long="drop")
    batch = pair_batch(encode_pairs(pairs, LETTERS, LETTERS), [0, 1, 2])
    assert batch.part(slice(1, 3)).source.tolist() == batch.source[1:].tolist()
    assert batch.tokens == 6 and batch.source_lengths.tolist() == [3, 3, 6]
    with pytest.raises(DataError, match="at least 1"):
        PairBatches(short, 0)


def test_ragged() -> None:
    ragged = Ragged.of([[1, 2, 3], [], [4]])
    tokens, mask = ragged.padded([2, 0, 1])
    assert tokens.tolist() == [[4, 0, 0], [1, 2, 3], [0, 0, 0]] and mask.sum(axis=1).tolist() == [1, 3, 0]
    assert ragged[0].tolist() == [1, 2, 3] and len(ragged) == 3
    assert Ragged.of([]).padded([])[0].shape == (0, 0)


# --- batches of text ---------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(2, 60), st.integers(1, 9), st.integers(1, 5))
def test_every_token_is_predicted_once_in_each_epoch(count: int, length: int, size: int) -> None:
    ids = np.arange(100, 100 + count)
    batches = TextBatches(ids, size, length, seed=2)
    for _ in range(3):
        epoch = [next(batches) for _ in range(len(batches.plan()))]
        for source in (epoch, list(text_windows(ids, size, length))):
            predicted = np.concatenate([batch.targets[batch.mask] for batch in source])
            assert sorted(predicted.tolist()) == ids[1:].tolist()
            for batch in source:
                assert batch.inputs.shape == (len(batch.inputs), length)
                assert (batch.targets[batch.mask] == batch.inputs[batch.mask] + 1).all()
                assert (np.diff(batch.mask.astype(int), axis=1) <= 0).all()  # padding at the end only


def test_text_batches_resume_and_refuse() -> None:
    def fresh(masked: float | None) -> TextBatches:
        vocabulary = Vocabulary.build(["abcdefgh"], kind="char", mask=True)
        ids = vocabulary.encode("abcdefgh" * 20)
        return TextBatches(ids, 3, 7, seed=4, masked=masked, vocabulary=vocabulary)

    for masked in (None, 0.15):
        whole, resumed = fresh(masked), fresh(masked)
        expected = [next(whole) for _ in range(40)]
        resumed.restore({**fresh(masked).state(), "epoch": 2, "position": 1})
        start = sum(len(fresh(masked)._order(np.random.default_rng([4, epoch]))) for epoch in range(2)) + 1
        for batch in expected[start:]:
            again = next(resumed)
            assert (again.inputs == batch.inputs).all() and (again.mask == batch.mask).all()
    with pytest.raises(DataError, match="at least two tokens"):
        TextBatches([5], 1, 4)
    with pytest.raises(DataError, match="needs the vocabulary"):
        TextBatches([5, 6], 1, 4, masked=0.1)


def test_masking_shares() -> None:
    vocabulary = Vocabulary.build(["abcdefgh"], kind="char", mask=True)
    tokens = np.full((400, 50), 5)
    valid = np.ones(tokens.shape, bool)
    valid[:, 40:] = False
    batch = mask_tokens(tokens, valid, vocabulary, np.random.default_rng(0), rate=0.15)
    assert not (batch.mask & ~valid).any()
    assert abs(batch.mask.sum() / valid.sum() - 0.15) < 0.01
    assert (batch.inputs[~batch.mask] == 5).all() and (batch.targets[batch.mask] == 5).all()
    counts = Counter(batch.inputs[batch.mask].tolist())
    total = batch.tokens
    assert abs(counts[MASK] / total - 0.8) < 0.03
    assert abs(counts[5] / total - (0.1 + 0.1 / 8)) < 0.02  # kept, or replaced by itself
    assert set(counts) <= set(range(MASK, vocabulary.size))
    alone = mask_tokens(tokens[:1, :1], valid[:1, :1], vocabulary, np.random.default_rng(0), rate=1e-9)
    assert alone.tokens == 1
    for rate, valid_now in ((0.0, valid), (1.5, valid), (0.1, valid & False)):
        with pytest.raises(DataError):
            mask_tokens(tokens, valid_now, vocabulary, np.random.default_rng(0), rate=rate)

"""Recurrent encoder–decoders on generated code: torch's own modules, padding, configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradproof.models.data.batches import PairBatch
from gradproof.models.errors import TrainingError
from gradproof.models.nets import seq2seq
from gradproof.models.nets.seq2seq import Seq2Seq, Seq2SeqConfig
from gradproof.models.torch.equivalence import compare, random_pairs, seq2seq_other

MODELS: list[dict[str, Any]] = [
    {"cell": "gru", "score": "dot"},
    {"cell": "rnn", "score": "none", "layers": 2},
    {"cell": "lstm", "score": "additive", "bidirectional": True, "layers": 2, "hidden": 5},
    {"cell": "gru", "score": "scaled", "feeding": True, "bidirectional": True, "readout": 7},
    {"cell": "lstm", "score": "dot", "feeding": True, "layers": 2, "smoothing": 0.1},
    {"cell": "rnn", "score": "additive", "feeding": True},
]
IDS = ["-".join(f"{k}={v}" for k, v in settings.items()) for settings in MODELS]


def made(seed: int = 0, **settings: Any) -> Seq2Seq:
    config = Seq2SeqConfig(**{"source_size": 9, "target_size": 11, "width": 8, "embedded": 6, **settings})
    model = Seq2Seq(config, seed=seed, dtype=np.float64)
    model.parameters.vector[:] += 0.3 * np.random.default_rng(seed + 1).normal(size=model.parameters.vector.size)
    return model


def some_batch() -> PairBatch:
    return random_pairs(np.random.default_rng(0), 4, 6, 7, (9, 11))


@pytest.mark.parametrize("settings", MODELS, ids=IDS)
def test_torch_computes_the_same(settings: dict[str, Any]) -> None:
    """Logits, loss, every gradient, ten steps of AdamW with clipping: float64 within 1e-10 of torch's modules."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    model = made(**settings)
    rows = compare(model, seq2seq_other(model), some_batch(), model.config.smoothing)
    assert len(rows) == 2 + 2 * len(model.parameters)
    worst = max(rows, key=lambda row: row.error)
    assert worst.error <= 1e-10, worst


@pytest.mark.parametrize("settings", MODELS[1:4], ids=IDS[1:4])
def test_a_padded_batch_equals_its_sentences_one_by_one(settings: dict[str, Any]) -> None:
    model, batch = made(**settings), some_batch()
    whole = model.loss_and_gradients(batch)
    parts = []
    for row in range(4):
        n, m, part = int(batch.source_mask[row].sum()), int(batch.target_mask[row].sum()), slice(row, row + 1)
        arrays = (batch.source[part, :n], batch.source_mask[part, :n], batch.target_in[part, :m])
        one = PairBatch(*arrays, batch.target_out[part, :m], batch.target_mask[part, :m], batch.rows[part])
        parts.append(model.loss_and_gradients(one, tokens=batch.tokens))
    assert sum(part.loss for part in parts) == pytest.approx(whole.loss, rel=1e-12)
    total = sum(part.gradients.vector for part in parts)
    assert np.abs(total - whole.gradients.vector).max() <= 1e-12 * np.abs(whole.gradients.vector).max()


@pytest.mark.parametrize("settings", MODELS[:3], ids=IDS[:3])
def test_products_of_the_vocabulary_equal_those_of_the_batch(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small vocabulary's input products are made once and looked up; a large one's are those of all embeddings."""
    few = made(**settings)
    looked_up = few.loss_and_gradients(some_batch())
    monkeypatch.setattr(seq2seq, "SMALL", 0)
    many = made(**settings)
    embedded = many.loss_and_gradients(some_batch())
    assert len(many.evaluation_steps) == len(few.evaluation_steps) + 2
    assert many.parameters.shapes == few.parameters.shapes
    assert looked_up.loss == pytest.approx(embedded.loss, rel=1e-13)
    largest = np.abs(embedded.gradients.vector).max()
    assert np.abs(looked_up.gradients.vector - embedded.gradients.vector).max() <= 1e-13 * largest


def test_sequences_of_one_token() -> None:
    model = made()
    batch = random_pairs(np.random.default_rng(0), 2, 2, 2, (9, 11))
    part = PairBatch(
        batch.source[:, :1],
        batch.source_mask[:, :1],
        batch.target_in[:, :1],
        batch.target_out[:, :1],
        batch.target_mask[:, :1],
        batch.rows,
    )
    assert np.isfinite(model.loss_and_gradients(part).gradients.vector).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"cell": "magic"},
        {"score": "magic"},
        {"width": 7, "bidirectional": True},
        {"feeding": True, "score": "none"},
        {"layers": 0},
        {"dropout": -0.1},
    ],
)
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(TrainingError):
        Seq2SeqConfig(**{"source_size": 9, "target_size": 11, **wrong})

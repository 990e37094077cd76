"""Transformers on generated code: torch's own modules, masks, padding, who sees whom, the catalogue's equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradproof.models.data.batches import PairBatch
from gradproof.models.data.text_batches import TextBatch
from gradproof.models.errors import TrainingError
from gradproof.models.nets import transformer_equations as equations
from gradproof.models.nets.block import Block
from gradproof.models.nets.positions import rotations, sinusoids
from gradproof.models.nets.transformer import Transformer, TransformerConfig, allowed
from gradproof.models.torch.equivalence import compare, random_pairs, random_text, transformer_other
from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.attention import MASKED_BLOCK, MASKED_WEIGHTS
from gradproof.symbolic.language.reader import build

MODELS: list[dict[str, Any]] = [
    {"kind": "decoder"},
    {"kind": "decoder", "order": "post", "activation": "gelu", "smoothing": 0.1},
    {"kind": "decoder", "positions": "rope", "norm": "rmsnorm", "activation": "swiglu", "tied": True, "bias": False},
    {"kind": "encoder", "activation": "gelu_tanh", "positions": "none", "tied": True},
    {"kind": "encoder-decoder", "order": "post", "shared": True, "tied": True, "smoothing": 0.1},
    {"kind": "encoder-decoder", "order": "post", "final_norm": True, "positions": "rope"},
]
SIZES = {"target_size": 11, "width": 8, "heads": 2, "inner": 12, "layers": 2}


def made(seed: int = 0, dtype: Any = np.float64, **settings: Any) -> Transformer:
    """A small model whose parameters are all random, biases and gains too."""
    source = {"source_size": 11} if settings.get("kind") == "encoder-decoder" else {}
    model = Transformer(TransformerConfig(**{**SIZES, **source, **settings}), seed=seed, dtype=dtype)
    model.parameters.vector[:] += 0.3 * np.random.default_rng(seed + 1).normal(size=model.parameters.vector.size)
    return model


def batch_for(model: Transformer, seed: int = 0) -> PairBatch | TextBatch:
    rng = np.random.default_rng(seed)
    if model.config.kind == "encoder-decoder":
        return random_pairs(rng, 3, 6, 7, (model.config.source_size, model.config.target_size))
    return random_text(rng, 3, 6, model.config.target_size)


@pytest.mark.parametrize("settings", MODELS, ids=lambda s: "-".join(f"{k}={v}" for k, v in s.items()))
def test_torch_computes_the_same(settings: dict[str, Any]) -> None:
    """Logits, loss, every gradient, ten steps of AdamW with clipping: float64 within 1e-10 of torch's modules."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    model = made(**settings)
    rows = compare(model, transformer_other(model), batch_for(model), model.config.smoothing)
    assert len(rows) > 2 * len(model.parameters) - 8
    worst = max(rows, key=lambda row: row.error)
    assert worst.error <= 1e-10, worst


def rows_of(batch: PairBatch, row: int) -> PairBatch:
    """One row without its padding."""
    source, target = int(batch.source_mask[row].sum()), int(batch.target_mask[row].sum())
    part = slice(row, row + 1)
    return PairBatch(
        batch.source[part, :source],
        batch.source_mask[part, :source],
        batch.target_in[part, :target],
        batch.target_out[part, :target],
        batch.target_mask[part, :target],
        batch.rows[part],
    )


@pytest.mark.parametrize("settings", [MODELS[4], MODELS[5]], ids=["sinusoidal", "rope"])
def test_a_padded_batch_equals_its_sentences_one_by_one(settings: dict[str, Any]) -> None:
    """So do micro-batches of unequal length: their gradients add up to those of the whole."""
    model = made(**settings)
    batch = batch_for(model)
    assert isinstance(batch, PairBatch)
    whole = model.loss_and_gradients(batch)
    parts = [model.loss_and_gradients(rows_of(batch, row), tokens=batch.tokens) for row in range(3)]
    assert sum(part.loss for part in parts) == pytest.approx(whole.loss, rel=1e-12)
    total = sum(part.gradients.vector for part in parts)
    assert np.abs(total - whole.gradients.vector).max() <= 1e-12 * np.abs(whole.gradients.vector).max()


def test_two_backward_passes_give_the_same() -> None:
    model = made(kind="decoder")
    first, second = (model.loss_and_gradients(batch_for(model)).gradients.vector for _ in range(2))
    assert np.array_equal(first, second)


def test_tied_weights_get_both_gradients() -> None:
    """Input path and output path add up: the tied gradient is the sum of those of two equal, separate arrays."""
    tied, free = made(kind="encoder", tied=True), made(kind="encoder", tied=False)
    for name, value in tied.parameters.items():
        free.parameters[name][...] = value
    free.parameters["output.U"][...] = tied.parameters["E"].T
    batch = batch_for(tied)
    both, apart = tied.loss_and_gradients(batch).gradients, free.loss_and_gradients(batch).gradients
    assert np.allclose(both["E"], apart["E"] + apart["output.U"].T, rtol=1e-12, atol=1e-15)


def test_repeated_tokens_add_up_and_unused_rows_get_nothing() -> None:
    block = Block(equations.embedding(False, False, False))
    outputs, kept = block.forward({"w": np.array([[1, 1, 2]]), "E": np.zeros((4, 2))})
    found = block.backward({"x": np.array([[[1.0, 2], [3, 4], [5, 6]]])}, kept)["E"]
    assert outputs["x"].shape == (1, 3, 2)
    assert found.tolist() == [[0, 0], [4, 6], [5, 6], [0, 0]]


def zero_pattern(kind: str) -> np.ndarray:
    """[i, j]: whether the logits at i depend on the token at j, by changing that token."""
    model = made(kind=kind)
    batch = random_text(np.random.default_rng(2), 2, 5, 11)
    tokens, seen = batch.inputs[:1], np.ones((1, 5), bool)
    base = model.logits(TextBatch(tokens, tokens, seen, seen))
    found = np.zeros((5, 5), bool)
    for j in range(5):
        other = tokens.copy()
        other[0, j] = 3 if tokens[0, j] != 3 else 4
        found[:, j] = (model.logits(TextBatch(other, tokens, seen, seen)) != base).any(axis=(0, 2))
    return found


def test_who_sees_whom() -> None:
    """A decoder's logits depend on the past and present only, an encoder's on everything."""
    assert np.array_equal(zero_pattern("decoder"), np.tri(5, dtype=bool))
    assert zero_pattern("encoder").all()


@pytest.mark.parametrize("rotary", [False, True])
def test_rows_with_nothing_allowed_are_zero_forward_and_backward(rotary: bool) -> None:
    """Fully masked rows, a causal row that padding empties too among them: weights 0, gradients 0, never NaN."""
    rng = np.random.default_rng(0)
    block = Block(equations.attention(False, True, rotary, False))
    head = (2, 2, 2) if rotary else (2, 4)
    arrays: dict[str, Any] = {"X0": rng.normal(size=(2, 4, 6)), "X": rng.normal(size=(2, 4, 6))}
    arrays |= {f"W_{n}": rng.normal(size=(6, *(head if n != "V" else (2, 4)))) for n in "QKV"}
    arrays |= {f"b_{n}": rng.normal(size=head if n != "V" else (2, 4)) for n in "QKV"}
    arrays |= {"W_O": rng.normal(size=(2, 4, 6)), "b_O": rng.normal(size=6)}
    if rotary:
        arrays["C"], arrays["Z"] = rotations(4, 4)
    seen = np.array([[False, True, True, False], [False, False, False, False]])
    arrays["M"] = allowed(seen, 4, causal=True)
    outputs, kept = block.forward(arrays)
    empty = ~arrays["M"].any(axis=2)
    assert empty.sum() == 5
    assert (outputs["A"].transpose(0, 2, 1, 3)[empty] == 0).all()
    assert np.allclose(outputs["R"][empty], (arrays["X0"] + arrays["b_O"])[empty])
    cotangent = np.where(empty[..., None], rng.normal(size=(2, 4, 6)), 0.0)  # a loss at the empty rows only
    gradients = block.backward({"R": cotangent}, kept)
    assert all(np.isfinite(value).all() for value in gradients.values())
    assert all((gradients[name] == 0).all() for name in ("X", "W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"))


def test_a_causal_mask_with_one_query_and_eight_keys_sees_all_eight() -> None:
    assert allowed(np.ones((1, 8), bool), 1, causal=True, first=7).all()


def test_rotary_scores_depend_on_the_distance_only() -> None:
    """Positions (3,1), (5,3) and (102,100) have the same scores."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 2, 4))
    cosine, sine = rotations(128, 8)

    def turned(x: np.ndarray, at: int) -> np.ndarray:
        return x * cosine[at] + x[::-1] * sine[at]

    scores = [(turned(q, i) * turned(k, j)).sum() for i, j in ((3, 1), (5, 3), (102, 100))]
    assert scores == pytest.approx([scores[0]] * 3, rel=1e-12)


def test_sinusoids() -> None:
    assert sinusoids(1, 4, start=1)[0] == pytest.approx([0.84147, 0.54030, 0.0099998, 0.99995], abs=1e-5)
    with pytest.raises(TrainingError):
        sinusoids(3, 5)


def test_the_block_runs_the_catalogues_equations() -> None:
    """For one sentence and one head, `equations.attention` is the catalogue's masked attention block."""
    assert "softmax(where(M == 1, S, -inf))" in MASKED_WEIGHTS
    rng = np.random.default_rng(0)
    shapes = {"X": (4, 6), "W_Q": (6, 3), "W_K": (6, 3), "W_V": (6, 3), "W_O": (3, 6)}
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    declared = {"X": "n,d", "W_Q": "d,d_k", "W_K": "d,d_k", "W_V": "d,d_k", "W_O": "d_k,d", "M": "n,n:index=2"}
    causal = np.tri(4, dtype=int)
    documented = compile_numpy(build(MASKED_BLOCK, declared))(**arrays, M=causal)["R"]
    ours = Block(equations.attention(False, False, False, False)).evaluate(
        {
            "X0": arrays["X"][None],
            "X": arrays["X"][None],
            "M": causal[None],
            **{name: arrays[name][:, None] for name in ("W_Q", "W_K", "W_V")},
            "W_O": arrays["W_O"][None],
        }
    )
    assert np.allclose(ours["R"][0], documented, rtol=1e-13, atol=1e-13)


def test_dropout_is_seeded_derived_and_off_in_evaluation() -> None:
    model = made(kind="decoder", dropout=0.4, layers=1)
    batch = batch_for(model)
    same = [model.loss_and_gradients(batch, seed=(0, 1)) for _ in range(2)]
    other, off = model.loss_and_gradients(batch, seed=(0, 2)), model.loss_and_gradients(batch)
    assert same[0].loss == same[1].loss
    assert np.array_equal(same[0].gradients.vector, same[1].gradients.vector)
    assert len({same[0].loss, other.loss, off.loss}) == 3
    rng = np.random.default_rng(0)
    for k in rng.choice(model.parameters.vector.size, 20, replace=False):
        losses = []
        for step in (1e-5, -2e-5):
            model.parameters.vector[k] += step
            losses.append(model.loss_and_gradients(batch, seed=(0, 1)).loss)
        model.parameters.vector[k] += 1e-5
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(same[0].gradients.vector[k], abs=1e-8)


def test_equal_logits_have_the_perplexity_of_the_vocabulary() -> None:
    model = made(kind="decoder")
    for name in ("output.U", "output.b_U"):
        model.parameters[name][...] = 0
    losses = model.token_losses(batch_for(model))
    assert np.exp(losses) == pytest.approx(np.full(losses.shape, 11.0), rel=1e-12)


def test_a_loss_that_is_not_finite_names_the_block() -> None:
    model = made(kind="decoder")
    model.parameters["decoder.1.ffn.W_1"][0, 0] = np.nan
    with pytest.raises(TrainingError, match=r"decoder\.1\.ffn reads decoder\.1\.ffn\.W_1"):
        model.loss_and_gradients(batch_for(model))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "magic"},
        {"heads": 3},
        {"positions": "rope", "width": 6},
        {"kind": "encoder-decoder"},
        {"dropout": 1.0},
        {"layers": 0},
        {"shared": True, "source_size": 5},
    ],
)
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(TrainingError):
        TransformerConfig(**{**SIZES, "kind": "decoder", **wrong})


def test_batches_that_do_not_fit() -> None:
    model = made(kind="decoder", limit=4)
    with pytest.raises(TrainingError, match="longer than the model's limit"):
        model.loss_and_gradients(batch_for(model))
    with pytest.raises(TrainingError, match="cannot read"):
        model.loss_and_gradients(random_pairs(np.random.default_rng(0), 2, 3, 3, (9, 9)))

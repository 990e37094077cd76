"""Training, resuming, stopping, decoding step by step, and the commands."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click import ClickException
from click.testing import CliRunner

from gradproof.cli.commands.decode import decode_command, evaluate_command
from gradproof.cli.commands.train import train_command
from gradproof.models.data.batches import PairBatch, PairBatches, encode_pairs
from gradproof.models.data.tasks import task_pairs
from gradproof.models.data.tokens import BOS, Vocabulary
from gradproof.models.decoding.incremental import stepper
from gradproof.models.decoding.search import beam_search, greedy, start_tokens
from gradproof.models.errors import CheckpointError, DataError, DecodingError, TrainingError
from gradproof.models.nets.model import Model
from gradproof.models.nets.seq2seq import Seq2Seq, Seq2SeqConfig
from gradproof.models.nets.transformer import Transformer, TransformerConfig
from gradproof.models.training.checkpoint import load_checkpoint, save_checkpoint
from gradproof.models.training.trainer import Settings, Trainer, added, gradients_of, shards

PAIRS = task_pairs("dates", 60)
VOCABULARY = Vocabulary.build([pair.source + pair.target for pair in PAIRS], kind="char")
EXAMPLES = encode_pairs(PAIRS, VOCABULARY, VOCABULARY)
SIZE = VOCABULARY.size


def made(kind: str, dtype: Any = np.float32, dropout: float = 0.2) -> Model[Any]:
    if kind == "seq2seq":
        sizes = {"width": 16, "embedded": 8, "dropout": dropout}
        return Seq2Seq(Seq2SeqConfig(source_size=SIZE, target_size=SIZE, **sizes), dtype=dtype)
    sizes = {"width": 16, "heads": 2, "inner": 24, "layers": 1, "dropout": dropout}
    source = {"source_size": SIZE} if kind == "encoder-decoder" else {}
    return Transformer(TransformerConfig(kind, SIZE, **source, **sizes), dtype=dtype)  # type: ignore[arg-type]


def trainer(kind: str, out: Path | None, config: dict[str, Any] | None = None, **settings: Any) -> Trainer:
    given = Settings(**{"steps": 8, "every": 4, "warmup": 2, "rate": 0.01, **settings})
    return Trainer(made(kind), PairBatches(EXAMPLES, 16, seed=3), given, out, config=config)


@pytest.mark.parametrize("kind", ["encoder-decoder", "seq2seq"])
def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(kind: str, tmp_path: Path) -> None:
    whole = trainer(kind, tmp_path / "whole", clip=0.5)
    whole.run()
    first = trainer(kind, tmp_path / "part", clip=0.5)
    for _ in range(3):
        with first.workers() as pool:
            first.step(pool)
    first.save()
    second = trainer(kind, tmp_path / "part", clip=0.5)
    second.resume()
    second.run()
    assert np.array_equal(whole.model.parameters.vector, second.model.parameters.vector)
    assert whole.state.history == second.state.history
    files = [(tmp_path / name / "loss.csv").read_text() for name in ("whole", "part")]
    assert files[0] == files[1]


def test_the_loss_falls_and_the_same_seed_gives_the_same_run() -> None:
    runs = [trainer("encoder-decoder", None, steps=40, every=10).run() for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0][-1]["loss"] < 0.8 * runs[0][0]["loss"]


def test_ctrl_c_finishes_the_step_and_saves(tmp_path: Path) -> None:
    run = trainer("seq2seq", tmp_path, steps=100_000, every=100_000)

    def interrupt() -> None:
        while run.state.step < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    run.run()
    thread.join()
    saved = load_checkpoint(tmp_path)
    assert 3 <= run.state.step < 100_000
    assert saved.progress["step"] == run.state.step
    assert np.array_equal(saved.parameters["output.U"], run.model.parameters["output.U"])


def test_a_loss_that_is_not_finite_stops_before_anything_is_changed(tmp_path: Path) -> None:
    run = trainer("encoder-decoder", tmp_path, rate=1e-4)
    with run.workers() as pool:
        run.step(pool)
        run.model.parameters["decoder.0.cross.W_O"][0, 0, 0] = np.inf
        before = run.optimiser.state["m"].copy()
        with pytest.raises(TrainingError, match=r"step 2: .*decoder\.0\.cross reads decoder\.0\.cross\.W_O"):
            run.step(pool)
    assert run.state.step == 1
    assert np.array_equal(run.optimiser.state["m"], before)


@pytest.mark.parametrize("kind", ["encoder-decoder", "seq2seq"])
def test_shards_and_unequal_micro_batches_add_up(kind: str) -> None:
    model = made(kind, np.float64)
    batch = next(PairBatches(EXAMPLES, 16, seed=1))
    whole = model.loss_and_gradients(batch)
    parts = [batch.part(slice(0, 3)), batch.part(slice(3, 16))]
    for several in (parts, shards(batch, 3)):
        assert np.allclose(gradients_of(model, several).vector, whole.gradients.vector, rtol=1e-11, atol=1e-13)
    total = added(model.parameters, [model.differentiated(part, batch.tokens) for part in parts])
    assert (total.loss, total.tokens) == (pytest.approx(whole.loss), whole.tokens)
    assert len(shards(batch.part(slice(0, 1)), 4)) == 1


def test_resuming_with_other_settings_or_data_is_refused(tmp_path: Path) -> None:
    run = trainer("seq2seq", tmp_path)
    run.run()
    with pytest.raises(TrainingError, match="made with rate"):
        trainer("seq2seq", tmp_path, rate=0.02).resume()
    for before, now in (("dot", "scaled"), (0.1, 0.2)):  # neither shows in the shapes of the parameters
        run.config = {"setting": before}
        run.save()
        with pytest.raises(TrainingError, match=f"made with setting {before}, not {now}"):
            trainer("seq2seq", tmp_path, config={"setting": now}).resume()
    other = Trainer(made("seq2seq"), PairBatches(EXAMPLES, 8, seed=3), run.settings, tmp_path)
    with pytest.raises(CheckpointError, match="cannot be resumed exactly"):
        other.resume()
    with pytest.raises(CheckpointError, match="belongs to another model"):
        trainer("encoder-decoder", tmp_path).resume()


def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trainer("seq2seq", tmp_path)
    run.run()
    before = (tmp_path / "checkpoint.safetensors").read_bytes()

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(CheckpointError, match=r"the disk is full; the earlier checkpoint is intact"):
        run.save()
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"optimiser": "x"}, {"rate": 0.0}, {"clip": -1.0}, {"shards": 0}])
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(TrainingError):
        Settings(**wrong)


# ------------------------------------------------------------------------------------------------------------ decoding

DECODED: list[tuple[str, dict[str, Any]]] = [
    ("transformer", {"kind": "decoder"}),
    ("transformer", {"kind": "decoder", "positions": "rope", "norm": "rmsnorm", "activation": "swiglu", "bias": False}),
    ("transformer", {"kind": "encoder-decoder", "order": "post", "final_norm": True, "tied": True}),
    ("transformer", {"kind": "encoder-decoder", "positions": "rope"}),
    ("seq2seq", {"cell": "gru", "score": "dot", "layers": 2, "bidirectional": True}),
    ("seq2seq", {"cell": "lstm", "score": "none"}),
    ("seq2seq", {"cell": "rnn", "score": "additive", "feeding": True}),
]


@pytest.mark.parametrize(
    ("family", "settings"), DECODED, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values()))
)
def test_the_cache_changes_nothing(family: str, settings: dict[str, Any]) -> None:
    """Log-probabilities of steps of 2, 1, 3 tokens equal those of the whole sequence: 1e−12 in float64."""
    batch = next(PairBatches(EXAMPLES, 4, seed=0))
    model: Any
    if family == "seq2seq":
        sizes = {"source_size": SIZE, "target_size": SIZE, "width": 8, "embedded": 6}
        model = Seq2Seq(Seq2SeqConfig(**{**sizes, **settings}), dtype=np.float64)
    else:
        sizes = {"target_size": SIZE, "source_size": SIZE, "width": 8, "heads": 2, "inner": 12, "layers": 2}
        model = Transformer(TransformerConfig(**{**sizes, **settings}), dtype=np.float64)
    model.parameters.vector[:] += 0.2 * np.random.default_rng(0).normal(size=model.parameters.vector.size)
    tokens = batch.target_in
    whole = model.logits(batch if settings.get("kind") != "decoder" else _text(tokens))
    whole = whole - np.log(np.exp(whole).sum(axis=2, keepdims=True))
    step, found = stepper(model), []
    state: Any = step.start() if settings.get("kind") == "decoder" else step.start(batch.source, batch.source_mask)
    for seen in (2, 3, 6):
        log_probabilities, state = step.advance(tokens[:, :seen], state)
        found.append(log_probabilities)
    assert np.abs(np.concatenate(found, axis=1) - whole[:, :6]).max() <= 1e-12


def _text(tokens: Any) -> Any:
    from gradproof.models.data.text_batches import TextBatch

    seen = np.ones(tokens.shape, bool)
    return TextBatch(tokens, tokens, seen, seen)


def test_beam_one_is_greedy_and_a_wider_beam_scores_what_the_model_says() -> None:
    model = made("encoder-decoder", np.float64, dropout=0.0)
    batch = next(PairBatches(EXAMPLES, 3, seed=0))
    step = stepper(model)  # type: ignore[arg-type]
    start = start_tokens(3, BOS)
    one = greedy(step, step.start(batch.source, batch.source_mask), start, limit=6)
    same = beam_search(step, step.start(batch.source, batch.source_mask), start, limit=6, width=1, alpha=0.0)
    wide = beam_search(step, step.start(batch.source, batch.source_mask), start, limit=6, width=4, alpha=0.0)
    assert [h.tokens for h in one] == [found[0].tokens for found in same]
    for row, found in enumerate(wide):
        best = found[0]
        target = np.array([[BOS, *best.tokens]])
        mask = np.ones(target.shape, bool)
        part = slice(row, row + 1)
        alone = PairBatch(batch.source[part], batch.source_mask[part], target, target, mask, batch.rows[part])
        scores = model.logits(alone)[0]
        scores = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        said = sum(scores[t, token] for t, token in enumerate([*best.tokens, *([2] if best.finished else [])]))
        assert best.log_probability == pytest.approx(said, abs=1e-10)


def test_decoding_beyond_the_limit_or_with_an_encoder() -> None:
    model = Transformer(TransformerConfig("decoder", 9, width=8, heads=2, inner=8, layers=1, limit=3))
    step = stepper(model)
    with pytest.raises(DecodingError, match="limit"):
        step.advance(np.full((1, 4), 5), {"seen": 0})
    with pytest.raises(DecodingError, match="encoder-only"):
        stepper(Transformer(TransformerConfig("encoder", 9, width=8, heads=2, inner=8, layers=1)))


# ------------------------------------------------------------------------------------------------------------ commands

SMALL = ["--steps", "6", "--every", "3", "--width", "16", "--layers", "1", "--batch", "16", "--count", "80", "--quiet"]


def call(command: Any, *arguments: str) -> Any:
    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def test_train_decode_evaluate_pairs(tmp_path: Path) -> None:
    run, picture = str(tmp_path / "run"), tmp_path / "attention.png"
    assert call(train_command, "transformer", "--data", "dates", "--out", run, *SMALL).return_value == 0
    result = call(decode_command, run, "3 march 1998", "--beam", "3", "--n-best", "2", "--bits", "8", "--json")
    document = json.loads(result.output)
    assert len(document["results"][0]["hypotheses"]) == 2
    assert 0 < document["quantisation"]["largest_relative_error"] < 0.05
    call(decode_command, run, "3 märz 1998", "--plot", str(picture))
    assert picture.stat().st_size > 1000
    found = json.loads(call(evaluate_command, run, "--count", "4", "--json").output)
    assert found["pairs"] == 4 and found["perplexity"] > 1
    with pytest.raises(Exception, match="holds a run already"):
        call(train_command, "transformer", "--data", "dates", "--out", run, *SMALL)
    more = ["8" if word == "6" else word for word in SMALL]
    call(train_command, "transformer", "--data", "dates", "--out", run, "--resume", *more)
    assert load_checkpoint(run).progress["step"] == 8


@pytest.mark.parametrize("kind", ["gpt", "bert"])
def test_train_and_evaluate_text(kind: str, tmp_path: Path) -> None:
    text, run = tmp_path / "text.txt", str(tmp_path / "run")
    text.write_text("the cat sat on the mat; the dog sat on the log.\n" * 30)
    call(train_command, kind, "--data", str(text), "--length", "16", "--out", run, *SMALL)
    assert json.loads(call(evaluate_command, run, "--json").output)["perplexity"] < 100
    if kind == "gpt":
        found = call(decode_command, run, "the ", "--limit", "5", "--temperature", "0.8", "--json").output
        assert len(json.loads(found)["results"][0]["hypotheses"][0]["tokens"]) <= 5
    else:
        with pytest.raises(DecodingError):
            call(decode_command, run, "the ")


UNUSABLE = [
    ("seq2seq", "", "is empty"),
    ("seq2seq", "a\tb\nc\n", "no target"),
    ("seq2seq", "b\tc\n" + 600 * "a" + "\tb\n", "the source has 601 tokens"),
    ("transformer", "b\tc\na\t" + 600 * "b" + "\n", "the target has 601 tokens"),
    ("gpt", "", "is empty"),
    ("gpt", "abcdefghi", "too short: of the part held out for validation 1 token"),
    ("bert", "abcdefghi", "too short: of the part held out for validation 1 token"),
]


@pytest.mark.parametrize(("kind", "content", "message"), UNUSABLE)
def test_files_that_cannot_be_used(kind: str, content: str, message: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        call(train_command, kind, "--data", str(data), "--out", str(tmp_path / "run"), *SMALL)
    assert len(str(caught.value)) < 250  # it does not repeat a long line
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A trained run of pairs and one of a text."""
    folder = tmp_path_factory.mktemp("runs")
    found = {kind: str(folder / kind) for kind in ("seq2seq", "gpt")}
    for kind, run in found.items():
        call(train_command, kind, "--data", "dates", "--out", run, *SMALL)
    return found


MISUSE = [  # command, run, arguments, message
    (decode_command, "gpt", ["a", "--plot", "a.png"], "draws the attention to a source"),
    (decode_command, "gpt", ["a", "--n-best", "2"], "needs a beam at least that wide"),
    (decode_command, "seq2seq", ["a", "--n-best", "2"], "needs a beam at least that wide"),
    (decode_command, "gpt", ["a", "--beam", "2", "--temperature", "1"], "choose one"),
    (decode_command, "seq2seq", ["a", "--beam", "2", "--top-p", "0.5"], "choose one"),
    (decode_command, "seq2seq", ["a", "--seed", "-1"], "not in the range"),
    (decode_command, "gpt", [600 * "a"], "has 600 tokens and the model's limit is 512"),
    (decode_command, "seq2seq", [600 * "a"], "the source has 601 tokens"),
    (evaluate_command, "gpt", ["--beam", "2"], "are for pairs"),
    (evaluate_command, "gpt", ["--count", "2"], "are for pairs"),
]


@pytest.mark.parametrize(("command", "kind", "arguments", "message"), MISUSE)
def test_options_that_do_not_fit(
    command: Any, kind: str, arguments: list[str], message: str, runs: dict[str, str]
) -> None:
    with pytest.raises((ClickException, DataError), match=message):
        call(command, runs[kind], *arguments)


DAMAGED: list[tuple[Any, str]] = [  # what is done to the checkpoint's description, message
    (lambda c: c.config.clear(), "no run that this version"),
    (lambda c: c.config.pop("data"), "no run that this version"),
    (lambda c: c.config["data"].update(magic=1), "no run that this version"),
    (lambda c: c.config.update(magic=1), "no run that this version"),
    (lambda c: c.config.update(width="a"), "no run that this version"),
    (lambda c: c.config.update(model="magic"), "there is no model 'magic'"),
    (lambda c: c.config.update(model="bert"), "belongs to another model"),
    (lambda c: c.config.update(width=8), "belongs to another model"),
    (lambda c: c.vocabularies.clear(), "no run that this version"),
    (lambda c: c.vocabularies["target"]["symbols"].pop(), "do not have the size"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGED)
def test_runs_that_cannot_be_decoded(change: Any, message: str, runs: dict[str, str], tmp_path: Path) -> None:
    found = load_checkpoint(runs["gpt"])
    change(found)
    save_checkpoint(tmp_path, found)
    with pytest.raises((CheckpointError, TrainingError), match=message):
        call(decode_command, str(tmp_path), "a")


def decoded(run: str, *arguments: str) -> dict[str, Any]:
    return dict(
        json.loads(call(decode_command, run, "1 may", *arguments, "--json").output)["results"][0]["hypotheses"][0]
    )


@pytest.mark.parametrize("kind", ["seq2seq", "gpt"])
def test_every_option_of_decoding_counts(kind: str, runs: dict[str, str]) -> None:
    plain = decoded(runs[kind])
    for greedy_too in (["--top-k", "1"], ["--top-p", "0"], ["--temperature", "0"]):
        assert decoded(runs[kind], *greedy_too) == plain
    assert decoded(runs[kind], "--limit", "3")["tokens"] == plain["tokens"][:3]
    assert len(decoded(runs[kind], "--limit", "3", "--beam", "2")["tokens"]) <= 3
    drawn = [decoded(runs[kind], "--temperature", "1", "--seed", seed)["tokens"] for seed in ("1", "1", "2")]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("seed", ["-1", "-7"])
@pytest.mark.parametrize("kind", ["seq2seq", "bert"])
def test_a_negative_seed_is_refused(kind: str, seed: str, tmp_path: Path) -> None:
    with pytest.raises(ClickException, match="not in the range"):
        call(train_command, kind, "--data", "dates", "--out", str(tmp_path), "--seed", seed)


def test_a_run_that_cannot_be_written_fails_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out, message in ((tmp_path / "file", "is a file"), (tmp_path / "file" / "run", "cannot write to the folder")):
        run = trainer("seq2seq", out)
        with pytest.raises(CheckpointError, match=message):
            run.run()
        assert run.state.step == 0


def test_a_validation_that_is_not_finite_names_step_block_and_tensor(tmp_path: Path) -> None:
    run = trainer("seq2seq", None)

    def validate() -> dict[str, float]:
        run.model.parameters["output.U"][0, 0] = np.inf
        return {"loss": float(run.model.token_losses(next(run.batches)).sum())}

    run.validate = validate
    with pytest.raises(TrainingError, match=r"validation after step 4: .* output reads output\.U \(U\), which is not"):
        run.run()


def test_a_batch_that_does_not_fit_into_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Model, "differentiated", full)
    with pytest.raises(TrainingError, match=r"step 1: a batch of \d+ targets does not fit into the memory"):
        trainer("seq2seq", None).run()


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="this system does not say which cores a thread may use"
)
def test_as_many_threads_as_cores_take_one_core_each() -> None:
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    from gradproof.models.training.trainer import spread

    before = os.sched_getaffinity(0)
    count = len(before)
    together = Barrier(count)

    def own(_: int) -> set[int]:
        together.wait(10)
        return os.sched_getaffinity(0)

    with ThreadPoolExecutor(count, initializer=spread(count)) as pool:
        cores = list(pool.map(own, range(count)))
    assert sorted(core for (core,) in cores) == sorted(before) and os.sched_getaffinity(0) == before
    assert spread(count + 1) is None

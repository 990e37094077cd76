"""Models on the command line: comparison with torch, stand-alone files."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradproof.cli.main import run
from gradproof.models.data.batches import PairBatch
from gradproof.models.data.text_batches import TextBatch
from gradproof.models.data.tokens import BOS, EOS, PAD
from gradproof.models.decoding.incremental import stepper
from gradproof.models.decoding.search import beam_search, greedy, sample
from gradproof.models.nets.kinds import PAIR_MODELS, make_model
from gradproof.models.standalone.file import CONFIGS, RATE, standalone
from gradproof.models.training.tiny import train_tiny
from gradproof.models.training.trainer import Settings, Trainer

MODELS = ("transformer", "gpt", "bert", "seq2seq")
STEPS = 12


def loaded(source: str) -> ModuleType:
    module = ModuleType("model")
    exec(compile(source, "model.py", "exec"), module.__dict__)
    return module


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which NumPy can be imported, and no other package."""
    folder = tmp_path_factory.mktemp("bare")
    found = Path(np.__file__).parent
    for place in found.parent.glob("numpy*"):
        if place.name in ("numpy", "numpy.libs"):
            (folder / place.name).symlink_to(place)
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONNOUSERSITE": "1"}


def losses(file: Path, environment: dict[str, str]) -> list[float]:
    """The loss curve of the file, run where neither gradproof nor anything but NumPy is installed."""
    command = (
        "import importlib.util, json, model; "
        "assert not any(map(importlib.util.find_spec, ('gradproof', 'scipy', 'sympy', 'torch'))); "
        f"print(json.dumps(model.train({STEPS})))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", command], cwd=file.parent, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.splitlines()[-1]))


def batches(module: ModuleType, kind: str) -> Iterator[Any]:
    """The file's data, as the batches of the training loop."""
    rng = random.Random(0)
    while True:
        data = module.batch(rng)
        counted = data["weight"] > 0
        if kind in PAIR_MODELS:
            rows = np.arange(len(counted))
            yield PairBatch(data["source"], data["source"] != 0, data["target"], data["y"], counted, rows)
        else:
            yield TextBatch(data["target"], data["y"], counted, np.ones_like(counted))


@pytest.mark.parametrize("kind", MODELS)
def test_the_file_learns_as_the_training_loop(kind: str, tmp_path: Path, bare: dict[str, str]) -> None:
    file = tmp_path / "model.py"
    assert run(["code", kind, "-o", str(file)]) == 0
    assert file.stat().st_size and "gradproof" not in file.read_text().partition('"""\n')[2]
    model = make_model(kind, CONFIGS[kind], seed=0)
    settings = Settings(steps=STEPS, optimiser="adam", rate=RATE, schedule="constant", clip=0.0, shards=1)
    trainer = Trainer(model, batches(loaded(file.read_text()), kind), settings)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as pool:
        expected = [trainer.step(pool).loss for _ in range(STEPS)]
    found = losses(file, bare)
    assert found == pytest.approx(expected, rel=2e-4)  # float32, in another order
    assert found[:2] == pytest.approx(expected[:2], rel=1e-6)
    assert np.mean(found[-3:]) < np.mean(found[:3])


def test_the_file_of_the_tiny_model_learns_as_the_command(tmp_path: Path, bare: dict[str, str]) -> None:
    file = tmp_path / "model.py"
    assert run(["code", "tiny", "-o", str(file)]) == 0
    expected = [row["loss"] for row in train_tiny(STEPS, "adam", RATE).history[:STEPS]]
    assert losses(file, bare) == pytest.approx(expected, rel=1e-12)
    done = subprocess.run([sys.executable, "-S", str(file)], env=bare, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("step    1  loss 2.541928\n")


@pytest.mark.parametrize("kind", (*MODELS, "tiny"))
def test_the_torch_file_has_the_same_gradients_and_no_autograd(kind: str) -> None:
    torch = pytest.importorskip("torch")
    source = standalone(kind, "torch")
    assert ".backward(" not in source.replace("block.backward(", "") and "np." not in source and "numpy" not in source
    plain, other = loaded(standalone(kind)), loaded(source)
    parameters = plain.start(0)
    data, same = plain.batch(random.Random(0)), other.batch(random.Random(0))
    for name in data:
        assert np.allclose(np.asarray(data[name]), same[name].numpy())
    loss, gradients = plain.loss_and_gradients(parameters, data)
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in parameters.items()}
    theirs, found = other.loss_and_gradients(tensors, same)
    assert not theirs.requires_grad
    assert float(theirs) == pytest.approx(float(loss), rel=1e-5)
    largest = max(np.abs(gradients[name]).max() for name in parameters)
    for name in parameters:
        assert np.abs(found[name].numpy() - gradients[name]).max() < 1e-5 * largest, name
    assert kind != "tiny" or len(other.train(2)) == 2


@pytest.mark.parametrize("kind", ("transformer", "seq2seq", "gpt"))
def test_padding_and_the_start_token_are_never_written(kind: str) -> None:
    model = make_model(kind, CONFIGS[kind])
    model.parameters["E" if kind == "gpt" else "output.b_U"][...] = 0  # all logits alike, ties: the lowest number
    step: Any = stepper(model)  # type: ignore[arg-type]
    source = np.array([[5, 6, EOS], [7, EOS, PAD]])
    prompt = np.array([[BOS], [BOS]])

    def start() -> Any:
        return step.start() if kind == "gpt" else step.start(source, source != PAD)

    if kind != "gpt":
        model.parameters["output.U"][...] = 0
        model.parameters["output.b_U"][[PAD, BOS]] = 9
    scores, _ = step(prompt, start())
    assert (scores[:, [PAD, BOS]] == -np.inf).all() and np.isfinite(scores[:, EOS:]).all()
    found = [*greedy(step, start(), prompt, limit=5, eos=None)]
    found += sample(step, start(), prompt, limit=20, seed=0, eos=None)
    found += [h for row in beam_search(step, start(), prompt, limit=4, width=9, n_best=9, eos=None) for h in row]
    assert not any({PAD, BOS} & set(h.tokens) for h in found) and all(h.tokens for h in found)


def test_each_block_stands_there_once_with_its_equations() -> None:
    source = standalone("transformer")
    names = [line[4:].partition("(")[0] for line in source.splitlines() if line.startswith("def ")]
    assert len(names) == len(set(names))
    assert {"attention", "attention_backward", "cross_attention", "layernorm_backward", "adam", "main"} <= set(names)
    assert re.search(r"# A_\w+ = softmax", source) and re.search(r"# \(W̄_Q\)_\w+ = Σ", source)


def test_a_model_has_all_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code", "gpt", "--wrt", "E"]) == 2
    assert "leave --wrt" in capsys.readouterr().err


def test_a_prior_pulls_the_parameters_to_zero() -> None:
    """One step of gradient descent: θ − η(∇L + l2·θ)."""
    module, after = loaded(standalone("gpt")), []
    for l2 in (0.0, 0.3):
        model = make_model("gpt", CONFIGS["gpt"], dtype=np.float64)
        before = model.parameters.vector.copy()
        settings = Settings(steps=1, optimiser="sgd", rate=0.1, schedule="constant", clip=0.0, shards=1, l2=l2)
        with ThreadPoolExecutor(1) as pool:
            Trainer(model, batches(module, "gpt"), settings).step(pool)  # type: ignore[arg-type]
        after.append(model.parameters.vector)
    assert np.allclose(after[0] - after[1], 0.1 * 0.3 * before, rtol=1e-12, atol=1e-15)


def test_a_run_with_a_prior(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data", "numbers", "--count", "40", "--width", "8", "--embedded", "4", "--layers", "1", "--quiet"]
    out = str(tmp_path / "run")
    assert run(["train", "seq2seq", *options, "--steps", "2", "--every", "2", "--prior", "0.1", "--out", out]) == 0
    assert run(["train", "seq2seq", *options, "--steps", "3", "--every", "2", "--out", out, "--resume"]) == 2
    assert "the run was made with" in capsys.readouterr().err
    assert run(["train", "seq2seq", *options, "--steps", "2", "--prior", "-1", "--out", out + "2"]) == 2


def test_the_cache_pays(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--new", "60", "--rows", "4", "--width", "32", "--layers", "2", "--rounds", "1", "--json"]
    run(["bench", "decode", *options])
    found = json.loads(capsys.readouterr().out)
    assert found["largest_difference"] < 1e-4 and found["ratio"] < 1


def test_models_and_entries_are_verified_together(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert run(["verify", "bert", "softmax.shift", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["passed"] == 2 and document["failed"] == 0
    entry, model = document["results"]
    assert entry["id"] == "softmax.shift" and model["id"] == "bert (post, gelu, tied)"
    assert model["max_rel_error"] <= model["tolerance"] == 1e-10 < model["float32_error"] < 1e-3
    compared = [row["compared"] for row in model["rows"]]
    assert compared[:2] == ["logits", "loss"] and compared[-1] == "gradients of the code printed for torch"
    parameters = {name.removeprefix("gradient of ") for name in compared if name.startswith("gradient of")}
    assert "E" in parameters and "encoder.1.ffn.W_2" in parameters
    assert sum(name.endswith("after 10 steps") for name in compared) > 0.8 * len(parameters)
    assert "CUDA" in captured.err or "cuda" in model["compared"]


def test_without_torch_a_model_is_skipped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run(["verify", "gpt"]) == 0
    captured = capsys.readouterr()
    assert "skipped" in captured.out and "torch is not" in captured.out.replace("\n", " ")
    assert "without torch" in captured.err


def test_a_wrong_gradient_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from gradproof.models.torch import equivalence

    rows = [equivalence.Comparison("loss", 1e-16), equivalence.Comparison("gradient of E", float("nan"))]
    monkeypatch.setattr(equivalence, "verify", lambda *_: iter([({"tied": True}, rows)]))
    assert run(["verify", "gpt"]) == 1
    assert "gpt (tied): gradient of E: the relative error is nan, above 1e-10" in capsys.readouterr().out

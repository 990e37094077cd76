"""The model with 24 parameters: printed numbers, differences, torch, training."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gradproof.cli.commands.train import train_command
from gradproof.models.errors import TrainingError
from gradproof.models.training import tiny


@pytest.mark.parametrize("row", [*tiny.evidence(), *tiny.loss_and_weight()], ids=lambda row: row.label)
def test_every_printed_number(row: tiny.PrintedNumber) -> None:
    assert tiny.agrees(row)


def test_there_are_24_parameters() -> None:
    assert sum(value.size for value in tiny.start().values()) == 24


def test_equal_gradients_are_a_coincidence() -> None:
    same, other = tiny.coincidence()
    assert same.computed == 0.0
    assert other.computed > 0.2


@pytest.mark.parametrize("seed", range(3))
def test_gradients_elsewhere_equal_differences_and_torch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parameters = {name: rng.normal(size=value.shape) for name, value in tiny.start().items()}
    loss, gradients = tiny.value_and_gradients(parameters)
    expected_loss, expected = torch_gradients(parameters)
    numeric = tiny.differences(parameters)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    for name in tiny.NAMES:
        scale = np.abs(expected[name]).max()
        assert np.abs(gradients[name] - expected[name]).max() <= 1e-12 * scale, name
        assert np.abs(gradients[name] - numeric[name]).max() <= 1e-7 * max(scale, 1), name


def torch_gradients(parameters: tiny.Parameters) -> tuple[float, tiny.Parameters]:
    torch = pytest.importorskip("torch")
    p = {name: torch.tensor(value, requires_grad=True) for name, value in parameters.items()}
    x = torch.nn.functional.embedding(torch.tensor([0, 1]), p["E"])
    z = torch.nn.functional.scaled_dot_product_attention(
        (x @ p["W_Q"])[None], (x @ p["W_K"])[None], (x @ p["W_V"])[None], is_causal=True
    )[0]
    logits = (x + z @ p["W_O"])[-1] @ p["U"]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(2))
    loss.backward()
    return loss.item(), {name: value.grad.numpy() for name, value in p.items()}


@pytest.mark.parametrize(
    ("optimiser", "rate", "below"),
    [("sgd", 0.1, 0.01), ("momentum", 0.01, 0.01), ("adam", 0.1, 1e-6), ("adamw", 0.1, 1e-3)],
)
def test_training_lowers_the_loss(optimiser: str, rate: float, below: float) -> None:
    history = tiny.train_tiny(150, optimiser, rate).history
    assert history[0]["loss"] == pytest.approx(2.541928, abs=1e-6)
    assert history[-1]["loss"] < below


def test_training_writes_its_files(tmp_path: Path) -> None:
    run = tiny.train_tiny(10, "adam", 0.1, tmp_path / "run")
    rows = list(csv.DictReader((tmp_path / "run" / "loss.csv").open()))
    assert [int(float(row["step"])) for row in rows] == list(range(11))
    assert float(rows[-1]["loss"]) == pytest.approx(run.history[-1]["loss"])
    saved = json.loads((tmp_path / "run" / "parameters.json").read_text())
    assert all(np.array_equal(saved[name], run.parameters[name]) for name in tiny.NAMES)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"rate": 0.0}, {"rate": float("nan")}, {"optimiser": "magic"}])
def test_wrong_settings(wrong: dict) -> None:
    with pytest.raises(TrainingError):
        tiny.train_tiny(**{"steps": 2, **wrong})


def test_a_diverging_run_stops_and_says_where() -> None:
    with pytest.raises(TrainingError, match=r"step [0-9]+"):
        tiny.train_tiny(200, "momentum", 1e200)


def test_the_command(tmp_path: Path) -> None:
    arguments = ["tiny", "--steps", "5", "--quiet", "--out", str(tmp_path / "r")]
    result = CliRunner().invoke(train_command, arguments, standalone_mode=False)
    assert result.exception is None
    assert result.return_value == 0
    assert "35 of 35 printed numbers" in result.output
    assert (tmp_path / "r" / "loss.csv").exists()

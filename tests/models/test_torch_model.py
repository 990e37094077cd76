"""Models printed for torch: the gradients of the NumPy code; two processes give those of one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradproof.models.errors import TrainingError
from gradproof.models.nets.kinds import make_model
from gradproof.models.nets.seq2seq import Seq2Seq
from gradproof.models.torch.backend import TorchModel
from gradproof.models.torch.equivalence import random_pairs

torch = pytest.importorskip("torch")
CONFIG = {"source_size": 9, "target_size": 11, "width": 8, "embedded": 4}
SCRIPT = """
import json, sys
import numpy as np
from gradproof.models.torch.equivalence import random_pairs
from gradproof.models.nets.kinds import make_model
from gradproof.models.torch.backend import TorchModel, group
from gradproof.models.training.trainer import Settings, Trainer

model = make_model("seq2seq", json.loads(sys.argv[1]), dtype=np.float64)
batch = random_pairs(np.random.default_rng(0), 5, 6, 7, (9, 11))
with group("cpu") as (rank, device):
    found = TorchModel(model, device).loss_and_gradients(batch)
    trainer = Trainer(TorchModel(model, device), iter([batch] * 3), Settings(steps=3, shards=1, schedule="constant"))
    trainer.run()
    open(f"{sys.argv[2]}/{rank}.json", "w").write(
        json.dumps([found.loss, found.gradients.vector.tolist(), model.parameters.vector.tolist()])
    )
"""


@pytest.mark.parametrize("kind", ("seq2seq", "transformer"))
def test_torch_code_has_the_gradients_of_the_numpy_code(kind: str) -> None:
    config: dict[str, Any] = CONFIG if kind == "seq2seq" else {"source_size": 9, "target_size": 11, "width": 8}
    model = make_model(kind, {**config, **({} if kind == "seq2seq" else {"heads": 2, "layers": 1})}, dtype=np.float64)
    batch = random_pairs(np.random.default_rng(0), 5, 6, 7, (9, 11))
    expected, found = model.loss_and_gradients(batch), TorchModel(model).loss_and_gradients(batch)
    assert found.loss == pytest.approx(expected.loss, rel=1e-13) and found.tokens == expected.tokens
    assert np.allclose(found.gradients.vector, expected.gradients.vector, rtol=1e-11, atol=1e-14)


def test_two_processes_train_as_two_threads(tmp_path: Path) -> None:
    """Dropout included: process k draws the masks of shard k."""
    from gradproof.models.training.trainer import Settings, Trainer

    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    config = {**CONFIG, "dropout": 0.2}
    done = subprocess.run([*command, json.dumps(config), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    both = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert both[0] == both[1]
    model = make_model("seq2seq", config, dtype=np.float64)
    assert isinstance(model, Seq2Seq)
    batch = random_pairs(np.random.default_rng(0), 5, 6, 7, (9, 11))
    whole = model.loss_and_gradients(batch)
    assert both[0][0] == pytest.approx(whole.loss, rel=1e-13)
    assert np.allclose(both[0][1], whole.gradients.vector, rtol=1e-11, atol=1e-14)
    trainer = Trainer(model, iter([batch] * 3), Settings(steps=3, shards=2, schedule="constant"))  # type: ignore[arg-type]
    trainer.run()
    assert np.allclose(both[0][2], model.parameters.vector, rtol=1e-7, atol=1e-9)


def test_the_command_trains_with_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gradproof.cli.main import run

    common = ["train", "gpt", "--data", "dates", "--count", "300", "--steps", "4", "--batch", "4", "--length", "16"]
    common += ["--width", "8", "--heads", "2", "--layers", "1", "--shards", "1", "--every", "2", "--quiet"]
    found = {}
    for backend in ("numpy", "torch"):
        assert (
            run(
                [
                    *common,
                    "--backend",
                    backend,
                    "--device",
                    "cpu" if backend == "torch" else "auto",
                    "--out",
                    str(tmp_path / backend),
                ]
            )
            == 0
        )
        found[backend] = np.genfromtxt(tmp_path / backend / "loss.csv", delimiter=",", names=True)["validation_loss"]
    assert np.allclose(found["numpy"], found["torch"], rtol=1e-5)
    capsys.readouterr()
    assert run([*common, "--device", "cuda", "--out", str(tmp_path / "none")]) == 2
    assert "--device cuda needs --backend torch" in capsys.readouterr().err


def test_a_loss_that_is_not_finite_names_block_and_tensor() -> None:
    model = make_model("seq2seq", CONFIG, dtype=np.float64)
    batch = random_pairs(np.random.default_rng(0), 5, 6, 7, (9, 11))
    model.parameters["attention.W_s"][0, 0] = np.nan
    for side in (model, TorchModel(model)):
        with pytest.raises(
            TrainingError, match=r"the loss is \w+: attention reads attention\.W_s \(W_s\), which is not"
        ):
            side.loss_and_gradients(batch)

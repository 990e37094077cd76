"""Models printed for torch: the gradients of the NumPy code; two processes give those of one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradproof.models.equivalence import random_pairs
from gradproof.models.errors import TrainingError
from gradproof.models.runs import make_model
from gradproof.models.seq2seq import Seq2Seq
from gradproof.models.torch_model import TorchModel

torch = pytest.importorskip("torch")
CONFIG = {"source_size": 9, "target_size": 11, "width": 8, "embedded": 4}
SCRIPT = """
import json, sys
import numpy as np
import torch
import torch.distributed as dist
from gradproof.models.equivalence import random_pairs
from gradproof.models.runs import make_model
from gradproof.models.torch_model import TorchModel
from gradproof.models.training import Settings, Trainer

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = make_model("seq2seq", json.loads(sys.argv[1]), dtype=np.float64)
batch = random_pairs(np.random.default_rng(0), 5, 6, 7, (9, 11))
found = TorchModel(model).loss_and_gradients(batch)
settings = Settings(steps=3, shards=1, schedule="constant")
trainer = Trainer(TorchModel(model), iter([batch] * 3), settings)
trainer.run()
open(f"{sys.argv[2]}/{dist.get_rank()}.json", "w").write(
    json.dumps([found.loss, found.gradients.vector.tolist(), model.parameters.vector.tolist()])
)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("kind", ("seq2seq", "transformer"))
def test_torch_code_has_the_gradients_of_the_numpy_code(kind: str) -> None:
    config: dict[str, Any] = CONFIG if kind == "seq2seq" else {"source_size": 9, "target_size": 11, "width": 8}
    model = make_model(kind, {**config, **({} if kind == "seq2seq" else {"heads": 2, "layers": 1})}, dtype=np.float64)
    batch = random_pairs(np.random.default_rng(0), 5, 6, 7, (9, 11))
    expected, found = model.loss_and_gradients(batch), TorchModel(model).loss_and_gradients(batch)
    assert found.loss == pytest.approx(expected.loss, rel=1e-13) and found.tokens == expected.tokens
    assert np.allclose(found.gradients.vector, expected.gradients.vector, rtol=1e-11, atol=1e-14)


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    from gradproof.models.training import Settings, Trainer

    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    done = subprocess.run([*command, json.dumps(CONFIG), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    both = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert both[0] == both[1]
    model = make_model("seq2seq", CONFIG, dtype=np.float64)
    assert isinstance(model, Seq2Seq)
    batch = random_pairs(np.random.default_rng(0), 5, 6, 7, (9, 11))
    whole = model.loss_and_gradients(batch)
    assert both[0][0] == pytest.approx(whole.loss, rel=1e-13)
    assert np.allclose(both[0][1], whole.gradients.vector, rtol=1e-11, atol=1e-14)
    trainer = Trainer(model, iter([batch] * 3), Settings(steps=3, shards=1, schedule="constant"))  # type: ignore[arg-type]
    trainer.run()
    assert np.allclose(both[0][2], model.parameters.vector, rtol=1e-7, atol=1e-9)


def test_dropout_is_refused() -> None:
    with pytest.raises(TrainingError, match="no dropout"):
        TorchModel(make_model("seq2seq", {**CONFIG, "dropout": 0.1}))

"""Checkpoints and pictures: what is saved comes back bit for bit, and a failure never harms the earlier file."""

from __future__ import annotations

import json
import math
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gradproof.models.data.tokens import Vocabulary, tokeniser_from_json
from gradproof.models.errors import CheckpointError, DataError, MissingPackageError
from gradproof.models.files import replacing
from gradproof.models.training import plots
from gradproof.models.training.checkpoint import FILE_NAME, Checkpoint, load_checkpoint, save_checkpoint


def example(seed: int = 0) -> Checkpoint:
    rng = np.random.default_rng(seed)
    return Checkpoint(
        parameters={"encoder.W": rng.normal(size=(3, 4)), "b": rng.normal(size=4).astype(np.float32)},
        optimiser={"m/encoder.W": rng.normal(size=(3, 4)), "step": np.array(17), "flags": np.array([True, False])},
        config={"model": "seq2seq", "d": 4, "α": 0.1},
        vocabularies={"source": Vocabulary.build(["añ\n\"b'"], kind="char").to_json()},
        progress={"step": 17, "best": math.inf, "rng": np.random.default_rng(0).bit_generator.state, "loss": 1 / 3},
    )


def same(a: Checkpoint, b: Checkpoint) -> bool:
    for one, two in ((a.parameters, b.parameters), (a.optimiser, b.optimiser)):
        if list(one) != sorted(two, key=list(one).index):
            return False
        for name in one:
            x, y = one[name], two[name]
            if (x.dtype, x.shape) != (y.dtype, y.shape) or x.tobytes() != y.tobytes():
                return False
    return (a.config, a.vocabularies, a.progress) == (b.config, b.vocabularies, b.progress)


def test_round_trip(tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "other.safetensors", tmp_path / "new" / "c.safetensors"):
        file = save_checkpoint(target, example())
        assert same(example(), load_checkpoint(target))
        assert os.listdir(file.parent).count(file.name) == 1 and not list(file.parent.glob(".*"))
    restored = load_checkpoint(tmp_path).vocabularies["source"]
    assert tokeniser_from_json(restored).encode("ñ?") == [9, 3]


def test_arrays_in_any_layout(tmp_path: Path) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    tensors = {
        "t": x.T,
        "strided": x[:, ::2],
        "empty": np.zeros((0, 3)),
        "scalar": np.array(2.5),
        "half": x.astype("f2"),
    }
    save_checkpoint(tmp_path, Checkpoint(tensors))
    back = load_checkpoint(tmp_path).parameters
    for name, value in tensors.items():
        assert np.array_equal(back[name], value) and back[name].dtype == value.dtype and back[name].shape == value.shape
    back["t"][0] = 1.0  # one's own copy, not the file


def test_the_file_is_readable_by_safetensors_alone_and_by_others(tmp_path: Path) -> None:
    from safetensors import safe_open

    file = save_checkpoint(tmp_path, example())
    with safe_open(file, framework="numpy") as handle:
        assert set(handle.keys()) >= {"parameters/encoder.W", "optimiser/step"}
        assert json.loads(handle.metadata()["gradproof"])["config"]["model"] == "seq2seq"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize(
    ("shapes", "model", "message"),
    [
        ({"encoder.W": (3, 4), "b": (4,)}, "seq2seq", None),
        ({"encoder.W": (3, 4), "b": (4,)}, None, None),
        (
            {"encoder.W": (3, 5), "b": (4,)},
            None,
            r"another model: encoder.W has shape \(3, 4\), the model's is \(3, 5\)",
        ),
        ({"encoder.W": (3, 4)}, None, "the model has no b"),
        ({"encoder.W": (3, 4), "b": (4,), "c": ()}, None, "c is missing"),
        ({f"x{i}": () for i in range(9)}, None, "x2 is missing; and 8 more differences"),
        (None, "gpt", "it is a seq2seq model, not gpt"),
    ],
)
def test_a_checkpoint_of_another_model(
    tmp_path: Path, shapes: dict | None, model: str | None, message: str | None
) -> None:
    save_checkpoint(tmp_path, example())
    if message is None:
        load_checkpoint(tmp_path, shapes=shapes, model=model)
        return
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(tmp_path, shapes=shapes, model=model)
    assert FILE_NAME in str(caught.value)


def test_files_cut_short_or_damaged(tmp_path: Path) -> None:
    file = save_checkpoint(tmp_path, example())
    whole = file.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1]:
        file.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=rf"is damaged or cut short \({length} bytes\)"):
            load_checkpoint(file)
    for place in (-1, -100):
        bad = bytearray(whole)
        bad[place] ^= 1
        file.write_bytes(bad)
        with pytest.raises(CheckpointError, match="do not match their checksum"):
            load_checkpoint(file)
    file.write_bytes(b"not a checkpoint at all, but a text of some length")
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(file)
    file.write_bytes(whole)
    assert same(example(), load_checkpoint(file))


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no checkpoint at .*checkpoint\.safetensors"):
        load_checkpoint(tmp_path)
    file = tmp_path / "other.safetensors"
    save_file({"w": np.ones(2)}, file)
    with pytest.raises(CheckpointError, match="not a checkpoint of gradproof"):
        load_checkpoint(file)
    for text, message in (
        ("{", "cannot be read"),
        ('{"format": 1}', "cannot be read"),
        ('{"format": 9, "checksum": "", "config": {}, "vocabularies": {}, "progress": {}}', "reads format 1"),
        ('{"format": 1, "checksum": "", "config": 3, "vocabularies": {}, "progress": {}}', "not complete"),
        ('{"format": 1, "checksum": "", "config": {}, "vocabularies": {}, "progress": {}}', "checksum"),
    ):
        save_file({"parameters/w": np.ones(2)}, file, metadata={"gradproof": text})
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(file)


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    for wrong, message in (
        (Checkpoint({"w": np.array(["a"])}), "parameters/w: arrays of type <U1"),
        (Checkpoint({"w": np.ones(1, complex)}), "complex128"),
        (Checkpoint({}, config={"x": {1}}), "cannot be written as JSON"),
    ):
        with pytest.raises(CheckpointError, match=message):
            save_checkpoint(tmp_path, wrong)
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot write the checkpoint"):
        save_checkpoint(tmp_path / "file" / "c.safetensors", example())


FILL_DISK = """
import resource, signal, sys
import numpy as np
from gradproof.models.training.checkpoint import Checkpoint, save_checkpoint
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    save_checkpoint(sys.argv[1], Checkpoint({"w": np.zeros(100_000)}))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="the system has no limit on file sizes")
def test_a_write_that_fails_leaves_the_earlier_checkpoint(tmp_path: Path) -> None:
    """A real failure in the middle of writing: the system refuses to let the file grow."""
    file = save_checkpoint(tmp_path, example())
    before = file.read_bytes()
    result = subprocess.run([sys.executable, "-c", FILL_DISK, tmp_path], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("CheckpointError cannot write the checkpoint"), result
    assert "the earlier checkpoint is intact" in result.stdout
    assert file.read_bytes() == before and os.listdir(tmp_path) == [FILE_NAME]
    assert same(example(), load_checkpoint(tmp_path))


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path, example())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="the disk is full; the earlier checkpoint is intact"):
        save_checkpoint(tmp_path, example(1))
    monkeypatch.undo()
    assert same(example(), load_checkpoint(tmp_path)) and os.listdir(tmp_path) == [FILE_NAME]


FULL_DISK = """
import os, sys
import numpy as np
from gradproof.models.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
save_checkpoint(sys.argv[1], Checkpoint({"w": np.arange(9)}))
try:
    save_checkpoint(sys.argv[1], Checkpoint({"w": np.zeros(100_000)}))
except Exception as error:
    print(type(error).__name__, error)
print(load_checkpoint(sys.argv[1]).parameters["w"].sum(), os.listdir(sys.argv[1]))
"""


def test_a_really_full_disk(tmp_path: Path) -> None:
    """A disk of 64 kB, mounted in a namespace of its own: it is gone when the command ends."""
    script = 'mount -t tmpfs -o size=64k none "$0" && echo mounted && exec "$1" -c "$2" "$0"'
    command = ["unshare", "-m", "sh", "-c", script, tmp_path, sys.executable, FULL_DISK]
    try:
        result = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no command unshare here")
    if not result.stdout.startswith("mounted"):
        pytest.skip("mounting is not allowed here")
    _, error, rest = result.stdout.splitlines()
    assert error.startswith("CheckpointError") and error.endswith("the disk is full; the earlier checkpoint is intact")
    assert rest == f"36 ['{FILE_NAME}']"


def test_ctrl_c_while_writing(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(file) as temporary:
        temporary.write_text("half of the n")
        raise KeyboardInterrupt
    assert file.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]
    with open(file) as reader:  # someone who is reading the old file is not disturbed by the new one
        with replacing(file) as temporary:
            temporary.write_text("new")
        assert (reader.read(), file.read_text()) == ("old", "new")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"


# --- pictures ----------------------------------------------------------------------------------------------------

HISTORY = [
    {"step": k, "train_loss": 1 / k, **({"validation_loss": 2 / k, "per": 9 - k} if k % 2 else {})} for k in range(1, 9)
]


def is_png(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_history_as_csv(tmp_path: Path) -> None:
    lines = plots.save_history(HISTORY, tmp_path / "h.csv").read_text().splitlines()
    assert lines[:3] == ["step,train_loss,validation_loss,per", "1,1.0,2.0,8", "2,0.5,,"] and len(lines) == 9
    assert plots.save_history([], tmp_path / "e.csv").read_text() == "step\n"


def test_curves(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [*HISTORY, {"step": 9, "train_loss": math.nan, "note": "stopped"}]
    assert is_png(plots.save_curves(rows, tmp_path / "loss.png"))
    assert plots.save_curves(rows, tmp_path / "loss.svg").read_text().startswith("<?xml")
    assert "matplotlib.pyplot" not in sys.modules
    with pytest.raises(DataError, match="nothing to draw"):
        plots.save_curves([{"step": 1, "note": "x"}], tmp_path / "x.png")
    with pytest.raises(DataError, match=r"cannot draw .*x\.docx"):
        plots.save_curves(rows, tmp_path / "x.docx")
    assert sorted(os.listdir(tmp_path)) == ["loss.png", "loss.svg"]


@pytest.mark.filterwarnings("error")
def test_attention(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    weights = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    source, target = ["a", " ", "$x^$", "\n"], ["AH", "<unk>", "</s>"]
    assert is_png(plots.save_attention(weights, source, target, tmp_path / "a.png"))
    heads = np.stack([weights] * 5)
    assert is_png(plots.save_attention(heads, source, target, tmp_path / "h.png", titles=[f"$ {k}" for k in range(5)]))
    with pytest.raises(DataError, match=r"must have shape \(4, 3\).*got \(3, 4\)"):
        plots.save_attention(weights, target, source, tmp_path / "b.png")
    with pytest.raises(DataError, match="finite"):
        plots.save_attention(weights * math.nan, source, target, tmp_path / "b.png")


def test_pictures_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r'pip install "gradproof\[plot\]"'):
        plots.save_curves(HISTORY, tmp_path / "loss.png")
    assert os.listdir(tmp_path) == []


def test_importing_the_models_is_light() -> None:
    code = (
        "import sys, gradproof.models; print(sorted({'numpy', 'torch', 'matplotlib', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"

"""Checkpoints: parameters, optimiser state, vocabularies and the place in the run, in one safetensors file.

Arrays are stored under `parameters/NAME` and `optimiser/NAME`; everything else is JSON in the file's metadata, with a
checksum over the arrays. The file replaces the earlier one in one step, when it is complete and on the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.errors import CheckpointError
from gradproof.models.files import reason, replacing

Array = NDArray[Any]
FORMAT = 1
FILE_NAME = "checkpoint.safetensors"
_GROUPS = ("parameters", "optimiser")
_JSON = ("config", "vocabularies", "progress")


@dataclass
class Checkpoint:
    """A run at one moment: `config` describes the model (its entry "model" is the kind), `progress` how far it is."""

    parameters: dict[str, Array]
    optimiser: dict[str, Array] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    vocabularies: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> Path:
    """Write the checkpoint; until it is complete, the earlier file of that name stays as it is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = save_checkpoint(folder, Checkpoint({"W": np.eye(2)}, config={"model": "gpt"}))
    ...     print(file.name, load_checkpoint(folder, shapes={"W": (2, 2)}).parameters["W"].tolist())
    checkpoint.safetensors [[1.0, 0.0], [0.0, 1.0]]
    """
    from safetensors.numpy import save_file

    file = checkpoint_file(path)
    tensors = _flat(checkpoint)
    metadata = {"format": FORMAT, "checksum": _checksum(tensors)} | {name: getattr(checkpoint, name) for name in _JSON}
    try:
        text = json.dumps(metadata)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the checkpoint's settings cannot be written as JSON: {error}") from None
    try:
        with replacing(file) as temporary:
            save_file(tensors, temporary, metadata={"gradproof": text})
    except Exception as error:  # safetensors raises errors of its own, OSError among their causes
        earlier = "; the earlier checkpoint is intact" if file.is_file() else ""
        raise CheckpointError(f"cannot write the checkpoint {file}: {reason(error)}{earlier}") from None
    return file


def checkpoint_file(path: str | os.PathLike[str]) -> Path:
    """The file itself: in a run's folder it is called checkpoint.safetensors."""
    path = Path(path)
    return path / FILE_NAME if path.is_dir() else path


def _flat(checkpoint: Checkpoint) -> dict[str, Array]:
    tensors = {}
    for group in _GROUPS:
        for name, value in getattr(checkpoint, group).items():
            array = np.asarray(value, order="C")
            if array.dtype.kind not in "fiub":
                raise CheckpointError(f"{group}/{name}: arrays of type {array.dtype} cannot be stored in a checkpoint")
            tensors[f"{group}/{name}"] = array
    return tensors


def _checksum(tensors: Mapping[str, Array]) -> str:
    """Safetensors notices a file that is cut short, but not a flipped bit."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}|{array.dtype.str}|{tensors[name].shape}|".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def load_checkpoint(
    path: str | os.PathLike[str], *, shapes: Mapping[str, tuple[int, ...]] | None = None, model: str | None = None
) -> Checkpoint:
    """Read a checkpoint; with `shapes` (of the model's parameters) or `model` (its kind) it must fit that model."""
    file = checkpoint_file(path)
    tensors, metadata = _read(file)
    groups: dict[str, dict[str, Array]] = {group: {} for group in _GROUPS}
    for full_name, array in tensors.items():
        group, _, name = full_name.partition("/")
        if group not in groups:
            raise CheckpointError(f"{file}: the tensor {full_name!r} belongs to none of {', '.join(_GROUPS)}")
        groups[group][name] = array
    checkpoint = Checkpoint(**groups, **{name: metadata[name] for name in _JSON})
    check_belongs(checkpoint, shapes=shapes, model=model, where=str(file))
    return checkpoint


def _read(file: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    from safetensors import safe_open

    if file.is_dir() or not file.exists():
        raise CheckpointError(f"there is no checkpoint at {file}; give a run's folder or its {FILE_NAME}")
    try:
        with safe_open(file, framework="numpy") as handle:
            text = (handle.metadata() or {}).get("gradproof")
            # Reading may fail too, so it happens inside; a copy, for the file may be replaced later.
            tensors = {name: np.array(handle.get_tensor(name)) for name in handle.keys()}  # noqa: SIM118
    except OSError as error:
        raise CheckpointError(f"cannot read the checkpoint {file}: {reason(error)}") from None
    except Exception as error:  # SafetensorError derives from Exception only
        raise CheckpointError(
            f"{file} is damaged or cut short ({file.stat().st_size} bytes): {error}; "
            "restore it from a copy, or start the run anew"
        ) from None
    if text is None:
        raise CheckpointError(f"{file} is a safetensors file, but not a checkpoint of gradproof")
    metadata = _metadata(text, file)
    if metadata["checksum"] != _checksum(tensors):
        raise CheckpointError(f"{file} is damaged: its numbers do not match their checksum; restore it from a copy")
    return tensors, metadata


def _metadata(text: str, file: Path) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
        version = metadata["format"]
        complete = all(isinstance(metadata[name], dict) for name in _JSON) and isinstance(metadata["checksum"], str)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file} is damaged: its description cannot be read ({error})") from None
    if version != FORMAT:
        raise CheckpointError(
            f"{file} has checkpoint format {version}; this version of gradproof reads format {FORMAT}"
        )
    if not complete:
        raise CheckpointError(f"{file} is damaged: its description is not complete")
    return dict(metadata)


def check_belongs(
    checkpoint: Checkpoint,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    model: str | None = None,
    where: str = "the checkpoint",
) -> None:
    """An error unless the checkpoint has the model's parameters, each in its shape, and no others.

    >>> check_belongs(Checkpoint({"W": np.eye(2)}), shapes={"W": (2, 3)}, where="run1")
    Traceback (most recent call last):
    gradproof.models.errors.CheckpointError: run1 belongs to another model: W has shape (2, 2), the model's is (2, 3)
    """
    found = checkpoint.config.get("model")
    if model is not None and found != model:
        raise CheckpointError(f"{where} belongs to another model: it is a {found or 'nameless'} model, not {model}")
    if shapes is None:
        return
    parameters = checkpoint.parameters
    problems = [f"{name} is missing" for name in shapes if name not in parameters]
    problems += [f"the model has no {name}" for name in parameters if name not in shapes]
    problems += [
        f"{name} has shape {parameters[name].shape}, the model's is {tuple(shape)}"
        for name, shape in shapes.items()
        if name in parameters and parameters[name].shape != tuple(shape)
    ]
    if problems:
        more = f"; and {len(problems) - 3} more differences" if len(problems) > 3 else ""
        raise CheckpointError(f"{where} belongs to another model: {'; '.join(problems[:3])}{more}")

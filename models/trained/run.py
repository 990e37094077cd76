"""A model with its vocabularies, and from a run's folder back to it.

A run's folder holds checkpoint.safetensors with everything that decoding and evaluation need: parameters, optimiser,
vocabularies, the model's configuration and where the data came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradproof.models.data.tokens import Tokeniser, tokeniser_from_json
from gradproof.models.errors import CheckpointError
from gradproof.models.nets.kinds import PAIR_MODELS, make_model
from gradproof.models.nets.model import Model
from gradproof.models.trained.sources import DataSettings
from gradproof.models.training.checkpoint import check_belongs, load_checkpoint


@dataclass
class Run:
    """A model with its vocabularies."""

    model: Model[Any]
    kind: str
    source: Tokeniser
    target: Tokeniser
    data: DataSettings

    @property
    def limit(self) -> int:
        return int(self.model.config.limit)  # type: ignore[attr-defined]


def load_run(path: str | Path) -> Run:
    """The run of a folder, ready to decode."""
    checkpoint = load_checkpoint(path)
    config = dict(checkpoint.config)
    try:
        kind, data = str(config.pop("model")), DataSettings(**config.pop("data"))
        model = make_model(kind, config)
        source, target = (tokeniser_from_json(checkpoint.vocabularies[side]) for side in ("source", "target"))
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} holds no run that this version of gradproof can read: {error}") from None
    check_belongs(checkpoint, shapes=model.parameters.shapes, where=str(path))
    if target.size != config["target_size"] or (kind in PAIR_MODELS and source.size != config["source_size"]):
        raise CheckpointError(f"{path} is damaged: its vocabularies do not have the size of its model")
    model.parameters.load(checkpoint.parameters)
    return Run(model, kind, source, target, data)

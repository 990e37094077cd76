"""The kinds of models by name: seq2seq and transformer read pairs, gpt and bert read texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradproof.models.errors import TrainingError
from gradproof.models.nets.model import Model
from gradproof.models.nets.seq2seq import Seq2Seq, Seq2SeqConfig
from gradproof.models.nets.transformer import Transformer, TransformerConfig

PAIR_MODELS = ("seq2seq", "transformer")
TEXT_MODELS = ("gpt", "bert")
TRANSFORMERS = {"transformer": "encoder-decoder", "gpt": "decoder", "bert": "encoder"}


def make_model(kind: str, config: dict[str, Any], seed: int = 0, dtype: Any = np.float32) -> Model[Any]:
    """A new model of a kind: seq2seq, transformer, gpt or bert.

    >>> make_model("gpt", {"target_size": 9, "width": 8, "heads": 2, "inner": 16}).config.kind
    'decoder'
    """
    if kind == "seq2seq":
        return Seq2Seq(Seq2SeqConfig(**config), seed=seed, dtype=dtype)
    if kind not in TRANSFORMERS:
        raise TrainingError(f"there is no model {kind!r}; there are {', '.join((*PAIR_MODELS, *TEXT_MODELS))}")
    return Transformer(TransformerConfig(kind=TRANSFORMERS[kind], **config), seed=seed, dtype=dtype)

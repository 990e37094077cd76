"""Recurrent encoder–decoders as wirings of generated blocks: tanh RNN, GRU or LSTM, with or without attention.

>>> config = Seq2SeqConfig(source_size=7, target_size=9, width=8, embedded=6)
>>> model = Seq2Seq(config, seed=0)
>>> [step.where for step in model.evaluation_steps]
['encoder.0', 'decoder.0', 'attention', 'output']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.data.batches import PairBatch
from gradproof.models.errors import TrainingError
from gradproof.models.nets import recurrent_equations as recurrent
from gradproof.models.nets import transformer_equations as equations
from gradproof.models.nets.model import Model
from gradproof.models.nets.parameters import Parameters, initialise
from gradproof.models.nets.wiring import Network, Placed

Array = NDArray[Any]
SMALL = 256  # a vocabulary of this size has fewer tokens than a batch: its input products are made once and looked up


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Everything that makes a recurrent encoder–decoder. `score` "none" gives the decoder the fixed context instead.

    With `bidirectional` each direction is half as wide. `feeding`: the readout of a step is an input of the next.
    """

    source_size: int
    target_size: int
    cell: str = "gru"
    score: str = "dot"
    width: int = 128
    embedded: int = 64
    readout: int = 0
    hidden: int = 0
    layers: int = 1
    bidirectional: bool = False
    feeding: bool = False
    dropout: float = 0.0
    smoothing: float = 0.0
    limit: int = 512

    def __post_init__(self) -> None:
        if self.cell not in recurrent.CELLS:
            raise TrainingError(f"cell must be one of {', '.join(recurrent.CELLS)}; got {self.cell!r}")
        if self.score not in ("none", *recurrent.SCORES):
            raise TrainingError(f"score must be one of none, {', '.join(recurrent.SCORES)}; got {self.score!r}")
        if min(self.source_size, self.target_size, self.width, self.embedded, self.layers, self.limit) < 1:
            raise TrainingError("all sizes must be at least 1")
        if self.bidirectional and self.width % 2:
            raise TrainingError(f"two directions share the width: {self.width} must be even")
        if self.feeding and self.score == "none":
            raise TrainingError("input feeding feeds the readout of the attention: choose a score")
        if not (0 <= self.dropout < 1 and 0 <= self.smoothing < 1):
            raise TrainingError("dropout and label smoothing lie between 0 and 1")

    @property
    def readout_width(self) -> int:
        return self.width if self.score == "none" else self.readout or self.width

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Seq2Seq(Model[PairBatch]):
    """One recurrent encoder–decoder."""

    def __init__(self, config: Seq2SeqConfig, *, seed: int = 0, dtype: Any = np.float32) -> None:
        self.config = config
        self.dropout = config.dropout
        self.parameters = Parameters(self.planned(False).shapes, dtype)
        initialise(self.parameters, seed, self.scale)

    def scale(self, name: str, shape: tuple[int, ...]) -> float:
        """Biases start at 0, everything else at 1/√(inputs)."""
        last = name.split(".")[-1]
        if last.startswith("b_"):
            return 0.0
        return float(shape[1] if last == "E" else shape[0]) ** -0.5

    # --------------------------------------------------------------------------------------------------------- wiring

    @property
    def states(self) -> tuple[str, ...]:
        """What a cell carries from step to step."""
        return ("h", "c") if self.config.cell == "lstm" else ("h",)

    def plan(self) -> Network:
        c = self.config
        widths = {"d": c.width, "u": c.width, "q": c.readout_width, "d_a": c.hidden or c.width, "p": c.embedded}
        return Network({**widths, "N": c.target_size})

    def planned(self, dropout: bool) -> Network:
        """The whole model, from tokens to the loss."""
        plan = self.plan()
        memory, starts = self.encoder(plan, dropout, small=SMALL)
        value = self.decoder(plan, dropout, memory, starts, context=starts[-1]["h"], small=SMALL)
        stated = equations.loss(False, True, self.config.smoothing > 0, turned=True)
        data = {"H": value, "y": "y", "weight": "weight", "epsilon": "epsilon"}
        plain = {own: own for own in (*stated.outputs, *stated.extra)}
        widths = {"d": self.config.readout_width}
        plan.add("output", stated, {k: v for k, v in data.items() if k in stated.shapes}, plain, widths)
        return plan

    def embed(self, plan: Network, side: str, tokens: str, size: int, dropout: bool, small: int) -> dict[str, str]:
        """What the first layer reads: embeddings x, or the tokens themselves where there are at most `small` of them.

        Dropout of embeddings leaves no two tokens the same.
        """
        name = f"{side}.embedding"
        if size <= small and not dropout:
            plan.shapes[f"{name}.E"] = (size, self.config.embedded)
            return {"w": tokens, "E": f"{name}.E"}
        return {"x": plan.add(name, recurrent.embedding(dropout), {"w": tokens}, widths={"N": size})}

    def encoder(self, plan: Network, dropout: bool, small: int = 0) -> tuple[str, list[dict[str, str]]]:
        """The memory (S,B,width), and the last states of each layer."""
        c = self.config
        inputs = self.embed(plan, "encoder", "source", c.source_size, dropout, small)
        starts = []
        for number in range(c.layers):
            width = c.embedded if number == 0 else c.width
            if not c.bidirectional:
                value, ends = self.direction(plan, f"encoder.{number}", inputs, width, False)
            else:
                sides = [
                    self.direction(plan, f"encoder.{number}.{d}", inputs, width, d == "back") for d in ("ahead", "back")
                ]
                (first, ahead), (second, back) = sides
                value = plan.add(f"encoder.{number}.joined", recurrent.joined(3), {"f": first, "g": second})
                ends = {
                    s: plan.add(f"encoder.{number}.{s}", recurrent.joined(2), {"f": ahead[s], "g": back[s]})
                    for s in ahead
                }
            starts.append(ends)
            inputs = {"x": value}
        return value, starts

    def direction(
        self, plan: Network, where: str, inputs: dict[str, str], width: int, reverse: bool
    ) -> tuple[str, dict[str, str]]:
        """One direction of one layer of the encoder: its states and its last states."""
        c = self.config
        stated = recurrent.layer(c.cell, encoder=True, reverse=reverse, tokens="w" in inputs)
        data = {**inputs, "m": "source.m", **{f"{s}_0": "encoder.zero" for s in self.states}}
        own = c.width // 2 if c.bidirectional else c.width
        value = plan.add(where, stated, data, widths={"p": width, "d": own})
        return value, {s: f"{where}.{'last' if s == 'h' else 'last_c'}" for s in self.states}

    def decoder(
        self, plan: Network, dropout: bool, memory: str, starts: list[dict[str, str]], context: str, small: int = 0
    ) -> str:
        """Adds the decoder; returns the name of its readout (T,B,q). `starts` names the initial states."""
        c = self.config
        inputs = self.embed(plan, "decoder", "target", c.target_size, dropout, 0 if c.feeding else small)
        attended = {"H": memory, "M": "source.M"}
        if c.feeding:
            stated = recurrent.fed_decoder(c.cell, c.score, c.layers, dropout)
            names = [("" if c.layers == 1 else str(k + 1), start) for k, start in enumerate(starts)]
            data = {f"{s}_0{n}": name for n, start in names for s, name in start.items()}
            return plan.add("decoder", stated, {**inputs, "y_0": "decoder.feed", **attended, **data})
        value = ""
        for number, start in enumerate(starts):
            fixed = c.score == "none" and number == 0
            stated = recurrent.layer(c.cell, context=fixed, tokens="w" in inputs)
            data = {**inputs, **{f"{s}_0": name for s, name in start.items()}, **({"ctx": context} if fixed else {})}
            width = c.embedded if number == 0 else c.width
            value = plan.add(f"decoder.{number}", stated, data, widths={"p": width})
            inputs = {"x": value}
        if c.score != "none":
            return plan.add("attention", recurrent.attention(c.score, dropout), {"s": value, **attended})
        return plan.add("readout", recurrent.dropped_states(), {"s": value}) if dropout else value

    def steps(self, dropout: bool) -> list[Placed]:
        return self.planned(dropout).steps

    @property
    def logit_step(self) -> Placed:
        plan = self.plan()
        value = self.evaluation_steps[-1].reads["H"]
        plan.add("output", equations.output(False, True, turned=True), {"H": value}, {"l": "l", "lp": "lp"})
        return plan.steps[-1]

    def source_weights(self, values: Mapping[str, Array]) -> Array | None:
        if self.config.score == "none":
            return None
        return values["decoder.alpha" if self.config.feeding else "attention.alpha"].swapaxes(0, 1)

    # -------------------------------------------------------------------------------------------------------- batches

    def mask(self, batch: PairBatch) -> NDArray[np.bool_]:
        return batch.target_mask

    def values(self, batch: PairBatch, weight: float) -> dict[str, Array]:
        longest = max(batch.source.shape[1], batch.target_in.shape[1])
        if longest > self.config.limit:
            raise TrainingError(f"a sequence of {longest} tokens is longer than the model's limit, {self.config.limit}")
        return {
            **self.source_values(batch.source, batch.source_mask),
            "target": batch.target_in,
            "y": batch.target_out,
            "weight": (batch.target_mask * weight).astype(self.dtype),
            "epsilon": self.dtype.type(self.config.smoothing),
        }

    def source_values(self, source: Array, mask: NDArray[np.bool_]) -> dict[str, Array]:
        own = self.config.width // 2 if self.config.bidirectional else self.config.width
        return {
            "source": source,
            "source.m": mask.astype(self.dtype),
            "source.M": mask,
            "encoder.zero": np.zeros((len(source), own), self.dtype),
            "decoder.feed": np.zeros((len(source), self.config.readout_width), self.dtype),
        }

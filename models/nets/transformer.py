"""Transformers as wirings of generated blocks: encoder–decoder, decoder-only, encoder-only; every size a parameter.

>>> config = TransformerConfig("decoder", target_size=10, width=8, heads=2, inner=16, layers=1)
>>> model = Transformer(config, seed=0)
>>> len(model.evaluation_steps), model.parameters["decoder.0.attention.W_Q"].shape
(7, (8, 2, 4))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.data.batches import PairBatch
from gradproof.models.data.text_batches import TextBatch
from gradproof.models.errors import TrainingError
from gradproof.models.nets import transformer_equations as equations
from gradproof.models.nets.block import Equations
from gradproof.models.nets.model import Model
from gradproof.models.nets.parameters import Parameters, initialise
from gradproof.models.nets.positions import rotations, sinusoids
from gradproof.models.nets.wiring import Network, Placed

Array = NDArray[Any]
KINDS = ("encoder-decoder", "decoder", "encoder")
CHOICES = {
    "kind": KINDS,
    "norm": ("layernorm", "rmsnorm"),
    "order": ("pre", "post"),
    "activation": ("relu", "gelu", "gelu_tanh", "swiglu"),
    "positions": ("sinusoidal", "rope", "none"),
}


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that makes a Transformer. `order` "post" is the 2017 paper's, "pre" normalises before each sublayer.

    `final_norm` (None: as `order` "pre" needs it) adds a norm behind the last layer. `tied`: the output uses the target
    embedding; `shared`: source and target have one embedding. `limit` is the longest sequence.
    """

    kind: str
    target_size: int
    source_size: int = 0
    width: int = 128
    heads: int = 4
    inner: int = 512
    layers: int = 2
    norm: str = "layernorm"
    order: str = "pre"
    final_norm: bool | None = None
    activation: str = "relu"
    positions: str = "sinusoidal"
    tied: bool = False
    shared: bool = False
    bias: bool = True
    scaled: bool = True
    dropout: float = 0.0
    smoothing: float = 0.0
    limit: int = 512

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise TrainingError(f"{name} must be one of {', '.join(known)}; got {getattr(self, name)!r}")
        if self.width % self.heads:
            raise TrainingError(f"the width {self.width} is not a multiple of the {self.heads} heads")
        if self.positions == "rope" and (self.width // self.heads) % 2:
            raise TrainingError(f"rotary positions need heads of even width, not {self.width // self.heads}")
        if self.positions == "sinusoidal" and self.width % 2:
            raise TrainingError(f"sinusoidal positions need an even width, not {self.width}")
        if min(self.target_size, self.width, self.heads, self.inner, self.layers, self.limit) < 1:
            raise TrainingError("all sizes must be at least 1")
        if self.kind == "encoder-decoder" and self.source_size < 1:
            raise TrainingError("an encoder–decoder needs the size of the source vocabulary")
        if self.shared and self.source_size != self.target_size:
            raise TrainingError("a shared embedding needs one vocabulary for source and target")
        if not (0 <= self.dropout < 1 and 0 <= self.smoothing < 1):
            raise TrainingError("dropout and label smoothing lie between 0 and 1")

    @property
    def closing_norm(self) -> bool:
        return self.order == "pre" if self.final_norm is None else self.final_norm

    def lengths(self) -> dict[str, int]:
        """The lengths behind the names of the blocks' sizes."""
        head = self.width // self.heads
        own = {"d": self.width, "h": self.heads, "d_k": head, "d_v": head, "d_p": head // 2, "m": self.inner}
        return {**own, "N": self.target_size}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Wiring(Network):
    """The plan of one Transformer."""

    config: TransformerConfig = field(kw_only=True)
    dropout: bool = field(kw_only=True)

    def embed(self, side: str, tokens: str, table: str, size: int) -> str:
        config = self.config
        added = config.positions == "sinusoidal"
        stated = equations.embedding(added, config.scaled, self.dropout)
        data = {"w": tokens, "E": table, **({"p": f"{side}.p"} if added else {})}
        self.shapes[table] = (size, config.width)
        return self.add(f"{side}.embedding", stated, data)

    def norm(self, where: str, value: str) -> str:
        return self.add(where, equations.norm(self.config.norm), {"x": value})

    def sublayer(self, where: str, stated: Equations, value: str, data: dict[str, str]) -> str:
        """x + F(norm(x)), or norm(x + F(x))."""
        if self.config.order == "pre":
            normed = self.norm(f"{where}.norm", value)
            return self.add(where, stated, {"X0": value, "X": normed, **data})
        return self.norm(f"{where}.norm", self.add(where, stated, {"X0": value, "X": value, **data}))

    def layer(self, where: str, value: str, mask: str, rotary: str, memory: str | None) -> str:
        """Self-attention, cross-attention where there is a memory, feed-forward network."""
        config = self.config
        turns = {"C": f"{rotary}.C", "Z": f"{rotary}.Z"} if config.positions == "rope" else {}
        value = self.self_attention(f"{where}.attention", value, {"M": mask, **turns})
        if memory is not None:
            value = self.cross_attention(f"{where}.cross", value, {"M": "cross.M", "Y": memory})
        stated = equations.feed_forward(config.activation, self.dropout)
        return self.sublayer(f"{where}.ffn", stated, value, {})

    def self_attention(self, where: str, value: str, data: dict[str, str]) -> str:
        stated = equations.attention(False, self.config.bias, "C" in data, self.dropout)
        return self.sublayer(where, stated, value, data)

    def cross_attention(self, where: str, value: str, data: dict[str, str]) -> str:
        return self.sublayer(where, equations.attention(True, self.config.bias, False, self.dropout), value, data)

    def stack(self, side: str, value: str, memory: str | None = None) -> str:
        for layer in range(self.config.layers):
            value = self.layer(f"{side}.{layer}", value, f"{side}.M", side, memory)
        return self.norm(f"{side}.norm", value) if self.config.closing_norm else value

    def close(self, value: str, stated: Equations) -> None:
        """The logits, with or without the loss."""
        config = self.config
        data = {"H": value, "y": "y", "weight": "weight", "epsilon": "epsilon"}
        data |= {"E": self.table("target")} if config.tied else {}
        plain = {own: own for own in (*stated.outputs, *stated.extra)}  # L, nll, l, lp: under their own names
        self.add("output", stated, {own: name for own, name in data.items() if own in stated.shapes}, plain)

    def table(self, side: str) -> str:
        return "E" if self.config.shared or self.config.kind != "encoder-decoder" else f"{side}.E"


class Transformer(Model[PairBatch | TextBatch]):
    """One Transformer. Batches are `PairBatch`es for an encoder–decoder, else `TextBatch`es."""

    def __init__(self, config: TransformerConfig, *, seed: int = 0, dtype: Any = np.float32) -> None:
        self.config = config
        self.dropout = config.dropout
        self.parameters = Parameters(self.wired(False, loss=True).shapes, dtype)
        initialise(self.parameters, seed, self.scale)

    def scale(self, name: str, shape: tuple[int, ...]) -> float:
        """The deviation of a parameter's first values: 1/√(inputs); less for what is added to the residual stream."""
        last = name.split(".")[-1]
        if last.startswith("b_") or last == "c":
            return 0.0
        if last == "E":
            return float(shape[1]) ** -0.5
        inputs = shape[0] * shape[1] if last == "W_O" else shape[0]
        added = last in ("W_O", "W_2", "U") and not name.startswith("output")
        return float(inputs) ** -0.5 * ((2 * self.config.layers) ** -0.5 if added and self.config.order == "pre" else 1)

    def wired(self, dropout: bool, loss: bool) -> Wiring:
        config = self.config
        wiring = Wiring(config.lengths(), config=config, dropout=dropout)
        memory = None
        if config.kind == "encoder-decoder":
            table = wiring.table("source")
            memory = wiring.stack("encoder", wiring.embed("encoder", "source", table, config.source_size))
        side = "encoder" if config.kind == "encoder" else "decoder"
        value = wiring.embed(side, "target", wiring.table("target"), config.target_size)
        value = wiring.stack(side, value, memory)
        output = equations.loss(config.tied, config.bias, config.smoothing > 0)
        wiring.close(value, output if loss else equations.output(config.tied, config.bias))
        return wiring

    def steps(self, dropout: bool) -> list[Placed]:
        return self.wired(dropout, loss=True).steps

    @property
    def logit_step(self) -> Placed:
        return self.wired(False, loss=False).steps[-1]

    def source_weights(self, values: Mapping[str, Array]) -> Array | None:
        if self.config.kind != "encoder-decoder":
            return None
        weights: Array = values[f"decoder.{self.config.layers - 1}.cross.A"][0]
        return weights

    # -------------------------------------------------------------------------------------------------------- batches

    def mask(self, batch: PairBatch | TextBatch) -> NDArray[np.bool_]:
        return batch.target_mask if isinstance(batch, PairBatch) else batch.mask

    def values(self, batch: PairBatch | TextBatch, weight: float) -> dict[str, Array]:
        self.check(batch)
        return {
            **dict(self.data(batch)),
            "weight": (self.mask(batch) * weight).astype(self.dtype),
            "epsilon": self.dtype.type(self.config.smoothing),
        }

    def data(self, batch: PairBatch | TextBatch) -> Iterator[tuple[str, Array]]:
        """Tokens, masks (1: may be seen) and positions under the names that the blocks read."""
        if isinstance(batch, PairBatch):
            seen = batch.source_mask
            yield from (("source", batch.source), ("target", batch.target_in), ("y", batch.target_out))
            yield "encoder.M", allowed(seen, seen.shape[1], causal=False)
            yield "cross.M", allowed(seen, batch.target_in.shape[1], causal=False)
            yield "decoder.M", allowed(batch.target_mask, batch.target_in.shape[1], causal=True)
            yield from self.position_values("encoder", batch.source.shape[1])
            yield from self.position_values("decoder", batch.target_in.shape[1])
            return
        length = batch.inputs.shape[1]
        yield from (("target", batch.inputs), ("y", batch.targets))
        side = "encoder" if self.config.kind == "encoder" else "decoder"
        yield f"{side}.M", allowed(batch.valid, length, causal=side == "decoder")
        yield from self.position_values(side, length)

    def position_values(self, side: str, count: int, start: int = 0) -> Iterator[tuple[str, Array]]:
        config = self.config
        if config.positions == "sinusoidal":
            yield f"{side}.p", sinusoids(count, config.width, start).astype(self.dtype)
        elif config.positions == "rope":
            cosine, sine = rotations(count, config.width // config.heads, start)
            yield from ((f"{side}.C", cosine.astype(self.dtype)), (f"{side}.Z", sine.astype(self.dtype)))

    def check(self, batch: PairBatch | TextBatch) -> None:
        if isinstance(batch, PairBatch) != (self.config.kind == "encoder-decoder"):
            raise TrainingError(f"a {self.config.kind} model cannot read a {type(batch).__name__}")
        tokens = (batch.source, batch.target_in) if isinstance(batch, PairBatch) else (batch.inputs,)
        longest = max(array.shape[1] for array in tokens)
        if longest > self.config.limit:
            raise TrainingError(f"a sequence of {longest} tokens is longer than the model's limit, {self.config.limit}")


def allowed(seen: NDArray[np.bool_], queries: int, causal: bool, first: int = 0) -> Array:
    """M[b,i,j] = 1 where query i (at position first + i) may see key j: a real token, and none of the future if causal.

    >>> allowed(np.array([[True, True, False]]), 2, causal=True).astype(int).tolist()
    [[[1, 0, 0], [1, 1, 0]]]
    """
    shape = (len(seen), queries, seen.shape[1])
    if not causal:
        return np.broadcast_to(seen[:, None, :], shape)
    places = np.arange(seen.shape[1])
    return seen[:, None, :] & (places <= first + np.arange(queries)[:, None])

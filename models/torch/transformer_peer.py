"""The Transformer once more, in torch's own modules: the other side of the comparison. Nothing of ours computes here.

`nn.TransformerEncoderLayer`, `nn.TransformerDecoderLayer` where they can do it (LayerNorm, ReLU or GELU, biases);
`nn.MultiheadAttention`, `scaled_dot_product_attention`, `nn.RMSNorm` for the rest. `Names` maps our
parameters to theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradproof.models.nets.transformer import Transformer, TransformerConfig

Array = np.ndarray[Any, Any]


class Rotary(nn.Module):
    """Self-attention with rotary positions: pairs are complex numbers, turned by e^{iθ}."""

    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width)) if bias else None
        self.out_proj = nn.Linear(width, width, bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        projected = functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in projected.chunk(3, dim=2))
        head = width // self.heads
        frequency = 10000.0 ** (-torch.arange(0, head, 2, dtype=x.dtype, device=x.device) / head)
        angle = torch.arange(length, dtype=x.dtype, device=x.device)[:, None] * frequency
        turn = torch.polar(torch.ones_like(angle), angle)
        q, k = (
            torch.view_as_real(torch.complex(*part.chunk(2, dim=3)) * turn).transpose(3, 4).flatten(3)
            for part in (q, k)
        )
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        return self.out_proj(out.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A layer from parts, with the attribute names of torch's own layers."""

    def __init__(self, c: TransformerConfig, cross: bool) -> None:
        super().__init__()
        self.c = c
        norm = nn.LayerNorm if c.norm == "layernorm" else nn.RMSNorm
        rotary = c.positions == "rope"
        own = (
            Rotary(c.width, c.heads, c.bias)
            if rotary
            else nn.MultiheadAttention(c.width, c.heads, bias=c.bias, batch_first=True)
        )
        self.self_attn = own
        if cross:
            self.multihead_attn = nn.MultiheadAttention(c.width, c.heads, bias=c.bias, batch_first=True)
        for number in range(1, 4 if cross else 3):
            setattr(self, f"norm{number}", norm(c.width, eps=1e-5))
        bias = c.activation != "swiglu"
        self.linear1, self.linear2 = nn.Linear(c.width, c.inner, bias), nn.Linear(c.inner, c.width, bias)
        if c.activation == "swiglu":
            self.gate = nn.Linear(c.width, c.inner, False)

    def attend(self, x: Tensor, mask: Tensor) -> Tensor:
        if isinstance(self.self_attn, Rotary):
            return self.self_attn(x, mask)
        return attended(self.self_attn, x, x, mask)

    def feed(self, x: Tensor) -> Tensor:
        hidden = self.linear1(x)
        if self.c.activation == "swiglu":
            return self.linear2(functional.silu(hidden) * self.gate(x))
        if self.c.activation == "relu":
            return self.linear2(hidden.relu())
        return self.linear2(functional.gelu(hidden, approximate="tanh" if self.c.activation == "gelu_tanh" else "none"))

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None, memory_mask: Tensor | None) -> Tensor:
        parts = [lambda y: self.attend(y, mask)]
        if memory is not None:
            parts.append(lambda y: attended(self.multihead_attn, y, memory, memory_mask))
        for number, part in enumerate([*parts, self.feed], start=1):
            norm = getattr(self, f"norm{number}")
            x = x + part(norm(x)) if self.c.order == "pre" else norm(x + part(x))
        return x


def attended(module: nn.MultiheadAttention, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
    """torch's attention; its mask says what is forbidden, for every head."""
    assert mask is not None
    forbidden = (~mask).repeat_interleave(module.num_heads, dim=0)
    return module(x, memory, memory, attn_mask=forbidden, need_weights=False)[0]


class TorchTransformer(nn.Module):
    """The whole model. `stock` layers are torch's own TransformerEncoderLayer and TransformerDecoderLayer."""

    def __init__(self, c: TransformerConfig) -> None:
        super().__init__()
        self.c = c
        self.stock = c.norm == "layernorm" and c.activation in ("relu", "gelu") and c.positions != "rope" and c.bias
        pairs = c.kind == "encoder-decoder"
        self.embed = nn.Embedding(c.target_size, c.width)
        if pairs:
            self.source_embed = self.embed if c.shared else nn.Embedding(c.source_size, c.width)
            self.encoder = nn.ModuleList(self.layer(False) for _ in range(c.layers))
        self.decoder = nn.ModuleList(self.layer(pairs) for _ in range(c.layers))
        if c.closing_norm:
            norm = nn.LayerNorm if c.norm == "layernorm" else nn.RMSNorm
            self.decoder_norm = norm(c.width, eps=1e-5)
            if pairs:
                self.encoder_norm = norm(c.width, eps=1e-5)
        self.out = nn.Linear(c.width, c.target_size, c.bias)
        if c.tied:
            self.out.weight = self.embed.weight

    def layer(self, cross: bool) -> nn.Module:
        c = self.c
        if not self.stock:
            return Layer(c, cross)
        kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
        return kind(c.width, c.heads, c.inner, 0.0, c.activation, batch_first=True, norm_first=c.order == "pre")

    def forward(
        self, tokens: Tensor, seen: Tensor, causal: bool, source: Tensor | None, source_seen: Tensor | None
    ) -> Tensor:
        memory = memory_mask = None
        if source is not None and source_seen is not None:
            memory = self.embedded(self.source_embed, source)
            mask = source_seen[:, None, :].expand(-1, source.shape[1], -1)
            for layer in self.encoder:
                memory = self.run(layer, memory, mask, None, None)
            if self.c.closing_norm:
                memory = self.encoder_norm(memory)
            memory_mask = source_seen[:, None, :].expand(-1, tokens.shape[1], -1)
        mask = seen[:, None, :].expand(-1, tokens.shape[1], -1)
        if causal:
            mask = mask & torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).tril()
        x = self.embedded(self.embed, tokens)
        for layer in self.decoder:
            x = self.run(layer, x, mask, memory, memory_mask)
        return self.out(self.decoder_norm(x) if self.c.closing_norm else x)

    def run(
        self, layer: nn.Module, x: Tensor, mask: Tensor, memory: Tensor | None, memory_mask: Tensor | None
    ) -> Tensor:
        if not self.stock:
            return layer(x, mask, memory, memory_mask)
        heads = self.c.heads
        forbidden = (~mask).repeat_interleave(heads, dim=0)
        if memory is None:
            return layer(x, src_mask=forbidden)
        assert memory_mask is not None
        return layer(x, memory, tgt_mask=forbidden, memory_mask=(~memory_mask).repeat_interleave(heads, dim=0))

    def embedded(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        x = table(tokens) * (math.sqrt(self.c.width) if self.c.scaled else 1.0)
        if self.c.positions != "sinusoidal":
            return x
        place = torch.arange(tokens.shape[1], dtype=x.dtype, device=x.device)[:, None]
        frequency = torch.exp(
            torch.arange(0, self.c.width, 2, dtype=x.dtype, device=x.device) * (-math.log(10000.0) / self.c.width)
        )
        code = torch.zeros(tokens.shape[1], self.c.width, dtype=x.dtype, device=x.device)
        code[:, 0::2], code[:, 1::2] = torch.sin(place * frequency), torch.cos(place * frequency)
        return x + code


class Names:
    """Which of torch's parameters hold which of ours: `view(tensors)` gives arrays of our names and shapes."""

    def __init__(self, ours: Transformer, theirs: TorchTransformer) -> None:
        self.shapes = ours.parameters.shapes
        self.table = dict(self.pairs(ours.config, theirs))

    def pairs(self, c: TransformerConfig, model: TorchTransformer) -> Iterator[tuple[str, tuple[str, slice | None]]]:
        """Our name → (their name, the rows of it that are ours)."""
        whole = slice(None)
        side = "encoder" if c.kind == "encoder" else "decoder"
        yield ("E" if "E" in self.shapes else "target.E"), ("embed.weight", None)
        if c.kind == "encoder-decoder":
            if not c.shared:
                yield "source.E", ("source_embed.weight", None)
            yield from self.stack(c, "encoder", "encoder", cross=False)
        yield from self.stack(c, side, "decoder", cross=c.kind == "encoder-decoder")
        if not c.tied:
            yield "output.U", ("out.weight", whole)
        if c.bias:
            yield "output.b_U", ("out.bias", whole)

    def stack(
        self, c: TransformerConfig, ours: str, theirs: str, cross: bool
    ) -> Iterator[tuple[str, tuple[str, slice | None]]]:
        whole, d = slice(None), c.width
        kinds = [("attention", "self_attn"), *([("cross", "multihead_attn")] if cross else [])]
        linears = {"W_1": "linear1.weight", "b_1": "linear1.bias", "W_2": "linear2.weight", "b_2": "linear2.bias"}
        swiglu = {"W": "linear1.weight", "V": "gate.weight", "U": "linear2.weight"}
        for layer in range(c.layers):
            at, there = f"{ours}.{layer}", f"{theirs}.{layer}"
            for own, name in kinds:
                for place, letter in enumerate("QKV"):
                    rows = slice(place * d, (place + 1) * d)
                    yield f"{at}.{own}.W_{letter}", (f"{there}.{name}.in_proj_weight", rows)
                    yield f"{at}.{own}.b_{letter}", (f"{there}.{name}.in_proj_bias", rows)
                yield f"{at}.{own}.W_O", (f"{there}.{name}.out_proj.weight", whole)
                yield f"{at}.{own}.b_O", (f"{there}.{name}.out_proj.bias", whole)
            for own, name in (linears if c.activation != "swiglu" else swiglu).items():
                yield f"{at}.ffn.{own}", (f"{there}.{name}", whole)
            for number, own in enumerate([*(own for own, _ in kinds), "ffn"], start=1):
                yield f"{at}.{own}.norm.g", (f"{there}.norm{number}.weight", whole)
                yield f"{at}.{own}.norm.c", (f"{there}.norm{number}.bias", whole)
        yield f"{ours}.norm.g", (f"{theirs}_norm.weight", whole)
        yield f"{ours}.norm.c", (f"{theirs}_norm.bias", whole)

    def view(self, tensors: dict[str, Tensor]) -> dict[str, Array]:
        """Their weights are (out, in), ours (in, out) with the heads' axes apart; embeddings (rows None) agree."""
        found = {}
        for name, shape in self.shapes.items():
            theirs, rows = self.table[name]
            array = tensors[theirs].detach().cpu().numpy()
            found[name] = (array if rows is None else array[rows].T).reshape(shape)
        return found

    def load(self, arrays: dict[str, Array], tensors: dict[str, Tensor]) -> None:
        """Copy our parameters into theirs."""
        with torch.no_grad():
            for name, value in arrays.items():
                theirs, rows = self.table[name]
                target = tensors[theirs]
                part = target if rows is None else target[rows]
                flat = value if rows is None or part.dim() == 1 else value.reshape(part.shape[1], -1).T
                part.copy_(torch.from_numpy(np.ascontiguousarray(flat).reshape(part.shape)))

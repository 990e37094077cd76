"""The peer of `gradproof bench train`: the same models with torch's modules, fused attention and fused Adam.

Runs as a process of its own and imports nothing of gradproof, so that its peak memory is torch's alone.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


class Layer(nn.Module):
    """Pre-norm attention and feed-forward network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        read = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(read.transpose(1, 2).reshape(batch, length, width))
        return x + self.outer(functional.relu(self.inner(self.norm2(x))))


class Decoder(nn.Module):
    """A decoder-only Transformer with fixed positions."""

    def __init__(self, c: dict[str, Any], p: dict[str, Tensor]) -> None:
        super().__init__()
        width, size = c["width"], c["target_size"]
        self.scale = width**0.5
        self.table = nn.Embedding(size, width)
        self.register_buffer("places", p["places"])
        self.layers = nn.ModuleList(Layer(width, c["heads"]) for _ in range(c["layers"]))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, size)
        self.load(p)

    def load(self, p: dict[str, Tensor]) -> None:
        put(self.table.weight, p["E"])
        for k, layer in enumerate(self.layers):
            assert isinstance(layer, Layer)
            at = f"decoder.{k}"
            width = self.table.weight.shape[1]
            put(layer.qkv.weight, torch.cat([p[f"{at}.attention.W_{n}"].reshape(width, -1).T for n in "QKV"]))
            put(layer.qkv.bias, torch.cat([p[f"{at}.attention.b_{n}"].reshape(-1) for n in "QKV"]))
            put(layer.out.weight, p[f"{at}.attention.W_O"].reshape(-1, width).T)
            put(layer.out.bias, p[f"{at}.attention.b_O"])
            for module, n in ((layer.inner, "1"), (layer.outer, "2")):
                put(module.weight, p[f"{at}.ffn.W_{n}"].T)
                put(module.bias, p[f"{at}.ffn.b_{n}"])
        put(self.output.weight, p["output.U"].T)
        put(self.output.bias, p["output.b_U"])

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens) * self.scale + self.places
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


class EncoderDecoder(nn.Module):
    """Encoder and decoder of one layer, attention to the encoder's states."""

    def __init__(self, c: dict[str, Any], p: dict[str, Tensor]) -> None:
        super().__init__()
        width, kind = c["width"], nn.GRU if c["cell"] == "gru" else nn.RNN
        self.source, self.target = (nn.Embedding(c[f"{side}_size"], c["embedded"]) for side in ("source", "target"))
        self.encoder, self.decoder = (kind(c["embedded"], width, batch_first=True) for _ in range(2))
        self.combine, self.output = nn.Linear(2 * width, width), nn.Linear(width, c["target_size"])
        self.additive = c["score"] == "additive"
        if self.additive:
            self.keys, self.queries = (nn.Linear(width, width, bias=False) for _ in range(2))
            self.v = nn.Linear(width, 1, bias=False)
        self.load(p, "rzn" if c["cell"] == "gru" else "n")

    def load(self, p: dict[str, Tensor], gates: str) -> None:
        for side, table, cells in (("encoder", self.source, self.encoder), ("decoder", self.target, self.decoder)):
            put(table.weight, p[f"{side}.embedding.E"])
            for own, theirs in (("W_i", "weight_ih_l0"), ("W_h", "weight_hh_l0"), ("b_i", "bias_ih_l0")):
                put(getattr(cells, theirs), torch.cat([p[f"{side}.0.{own}{g}"].t() for g in gates]))
            second = [p.get(f"{side}.0.b_h{g}", torch.zeros(self.output.in_features)) for g in gates]
            put(cells.bias_hh_l0, torch.cat(second))
            cells.bias_hh_l0.requires_grad_(len(gates) > 1)  # the documented tanh cell has one bias
        put(self.combine.weight, torch.cat([p["attention.W_a"], p["attention.W_s"]]).T)
        put(self.combine.bias, p["attention.b_c"])
        put(self.output.weight, p["output.U"].T)
        put(self.output.bias, p["output.b_U"])
        if self.additive:
            put(self.keys.weight, p["attention.W_1"].T)
            put(self.queries.weight, p["attention.W_2"].T)
            put(self.v.weight, p["attention.v"][None])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encoder(self.source(source))
        states, _ = self.decoder(self.target(target), last)
        if self.additive:
            scores = self.v(torch.tanh(self.keys(memory)[:, None] + self.queries(states)[:, :, None])).squeeze(3)
        else:
            scores = states @ memory.transpose(1, 2)
        read = scores.softmax(dim=2) @ memory
        return self.output(torch.tanh(self.combine(torch.cat([read, states], dim=2))))


def put(parameter: Any, value: Tensor) -> None:
    with torch.no_grad():
        parameter.copy_(value)


def main() -> None:
    """Read the case, then answer `step` with loss, seconds and seconds of all cores, `memory` with megabytes."""
    case = json.loads(sys.argv[1])
    torch.set_num_threads(case["threads"])
    arrays = {name: torch.from_numpy(value) for name, value in np.load(case["file"]).items()}
    inputs = [arrays[name] for name in ("source", "target") if name in arrays]
    wanted = arrays["y"].reshape(-1)
    model: Any = (Decoder if case["kind"] == "transformer" else EncoderDecoder)(case["config"], arrays)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], case["rate"], fused=True)
    if case["compiled"]:
        model = torch.compile(model)
    for line in sys.stdin:
        if line.strip() == "memory":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)
            continue
        start, used = time.perf_counter(), time.process_time()
        optimiser.zero_grad()
        logits = model(*inputs)
        loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted)
        loss.backward()
        optimiser.step()
        value = loss.item()
        print(value, time.perf_counter() - start, time.process_time() - used, flush=True)


if __name__ == "__main__":
    main()

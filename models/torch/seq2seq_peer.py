"""The recurrent encoder–decoder once more, in torch's own modules: the other side of the comparison.

`nn.RNN`, `nn.GRU`, `nn.LSTM` over packed sequences, their cells where the readout is fed back, and `nn.Linear`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from gradproof.models.nets.recurrent_equations import CELLS
from gradproof.models.nets.seq2seq import Seq2Seq, Seq2SeqConfig

Array = np.ndarray[Any, Any]
WHOLE = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
CELL = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}


class TorchSeq2Seq(nn.Module):
    """The model; a bias that the documented cell has not (the second one of tanh RNN and LSTM) is 0 and stays so."""

    def __init__(self, c: Seq2SeqConfig) -> None:
        super().__init__()
        self.c = c
        side = c.width // 2 if c.bidirectional else c.width
        self.source = nn.Embedding(c.source_size, c.embedded)
        self.target = nn.Embedding(c.target_size, c.embedded)
        self.encoder = WHOLE[c.cell](c.embedded, side, c.layers, batch_first=True, bidirectional=c.bidirectional)
        if c.feeding:
            sizes = [c.embedded + c.readout_width] + [c.width] * (c.layers - 1)
            self.cells = nn.ModuleList(CELL[c.cell](size, c.width) for size in sizes)
        else:
            size = c.embedded + (c.width if c.score == "none" else 0)
            self.decoder = WHOLE[c.cell](size, c.width, c.layers, batch_first=True)
        if c.score == "additive":
            hidden = c.hidden or c.width
            self.keys, self.queries = (nn.Linear(c.width, hidden, bias=False) for _ in range(2))
            self.v = nn.Linear(hidden, 1, bias=False)
        if c.score != "none":
            self.combine = nn.Linear(2 * c.width, c.readout_width)
        self.out = nn.Linear(c.readout_width, c.target_size)
        if c.cell != "gru":
            for name, value in self.named_parameters():
                if "bias_hh" in name:
                    nn.init.zeros_(value)
                    value.requires_grad_(False)

    def forward(self, source: Tensor, seen: Tensor, target: Tensor) -> Tensor:
        c = self.c
        packed = pack_padded_sequence(self.source(source), seen.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        states, last = self.encoder(packed)
        memory, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        start: Any = tuple(self.both(part) for part in last) if c.cell == "lstm" else self.both(last)
        x = self.target(target)
        if c.feeding:
            return self.out(self.fed(x, start, memory, seen))
        if c.score == "none":
            top = (start[0] if c.cell == "lstm" else start)[-1]
            x = torch.cat([x, top[:, None].expand(-1, x.shape[1], -1)], dim=2)
        s, _ = self.decoder(x, start)
        return self.out(s if c.score == "none" else self.readout(s, memory, seen))

    def both(self, last: Tensor) -> Tensor:
        """(layers·directions, B, side) → (layers, B, width)."""
        if not self.c.bidirectional:
            return last
        return torch.cat([last[0::2], last[1::2]], dim=2)

    def readout(self, s: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """s (B,T,d) → tanh(W_c [a; s])."""
        if self.c.score == "additive":
            scores = self.v(torch.tanh(self.keys(memory)[:, None] + self.queries(s)[:, :, None])).squeeze(3)
        else:
            scores = torch.einsum("btk,bsk->bts", s, memory)
            scores = scores / self.c.width**0.5 if self.c.score == "scaled" else scores
        weights = scores.masked_fill(~seen[:, None], -torch.inf).softmax(dim=2)
        return torch.tanh(self.combine(torch.cat([weights @ memory, s], dim=2)))

    def fed(self, x: Tensor, start: Any, memory: Tensor, seen: Tensor) -> Tensor:
        lstm = self.c.cell == "lstm"
        states: list[Any] = [(start[0][k], start[1][k]) if lstm else start[k] for k in range(self.c.layers)]
        feed, found = x.new_zeros(len(x), self.c.readout_width), []
        for step in range(x.shape[1]):
            value: Any = torch.cat([x[:, step], feed], dim=1)
            for k, cell in enumerate(self.cells):
                states[k] = cell(value, states[k])
                value = states[k][0] if lstm else states[k]
            feed = self.readout(value[:, None], memory, seen)[:, 0]
            found.append(feed)
        return torch.stack(found, dim=1)


Place = tuple[str, slice, slice]


class SeqNames:
    """Which of torch's parameters hold which of ours: (their name, rows, columns); theirs are (out, in)."""

    def __init__(self, ours: Seq2Seq) -> None:
        self.shapes = ours.parameters.shapes
        self.table = dict(self.pairs(ours.config))

    def pairs(self, c: Seq2SeqConfig) -> Iterator[tuple[str, Place]]:
        whole = slice(None)
        yield "source.E", ("source.weight", whole, whole)
        yield from (
            (f"{side}.embedding.E", (f"{name}.weight", whole, whole))
            for side, name in (("encoder", "source"), ("decoder", "target"))
        )
        for k in range(c.layers):
            for own, suffix in ((f"encoder.{k}.ahead", ""), (f"encoder.{k}.back", "_reverse"), (f"encoder.{k}", "")):
                side = c.width // 2 if c.bidirectional else c.width
                yield from gates(c.cell, own, "", f"encoder.{{}}_l{k}{suffix}", side, c.embedded if k == 0 else c.width)
            first = c.embedded if k == 0 else c.width
            if c.feeding:
                n = str(k + 1) if c.layers > 1 else ""
                yield from gates(c.cell, "decoder", n, f"cells.{k}.{{}}", c.width, first, "W_y" if k == 0 else "")
            else:
                yield from gates(c.cell, f"decoder.{k}", "", f"decoder.{{}}_l{k}", c.width, first, "W_c")
        at = "decoder" if c.feeding else "attention"
        yield f"{at}.W_1", ("keys.weight", whole, whole)
        yield f"{at}.W_2", ("queries.weight", whole, whole)
        yield f"{at}.v", ("v.weight", whole, whole)
        yield f"{at}.W_a", ("combine.weight", whole, slice(0, c.width))
        yield f"{at}.W_s", ("combine.weight", whole, slice(c.width, None))
        yield f"{at}.b_c", ("combine.bias", whole, whole)
        yield "output.U", ("out.weight", whole, whole)
        yield "output.b_U", ("out.bias", whole, whole)

    def view(self, tensors: Mapping[str, Tensor]) -> dict[str, Array]:
        found = {}
        for name, shape in self.shapes.items():
            theirs, rows, columns = self.table[name]
            array = tensors[theirs].detach().cpu().numpy()
            part = array[rows] if array.ndim == 1 else array[rows, columns]
            found[name] = (part if name.endswith(".E") else part.T).reshape(shape)
        return found

    def load(self, arrays: Mapping[str, Array], tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in arrays.items():
                theirs, rows, columns = self.table[name]
                target = tensors[theirs]
                part = target[rows] if target.dim() == 1 else target[rows, columns]
                flat = value if name.endswith(".E") else value.T
                part.copy_(torch.from_numpy(np.ascontiguousarray(flat)).reshape(part.shape))


def gates(
    cell: str, own: str, n: str, theirs: str, width: int, first: int, more: str = ""
) -> Iterator[tuple[str, Place]]:
    """The parameters of one layer: torch stacks the gates' rows; further inputs are further columns."""
    for place, g in enumerate(CELLS[cell]):
        rows = slice(place * width, (place + 1) * width)
        yield f"{own}.W_i{g}{n}", (theirs.format("weight_ih"), rows, slice(0, first))
        if more:
            yield f"{own}.{more}{g}", (theirs.format("weight_ih"), rows, slice(first, None))
        yield f"{own}.W_h{g}{n}", (theirs.format("weight_hh"), rows, slice(None))
        yield f"{own}.b_i{g}{n}", (theirs.format("bias_ih"), rows, slice(None))
        yield f"{own}.b_h{g}{n}", (theirs.format("bias_hh"), rows, slice(None))

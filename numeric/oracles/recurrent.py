"""Recurrent networks, sequence to sequence, clipping. The generic activation is tanh."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from gradproof.numeric.oracles import oracle


def cell(W_h: Tensor, W_x: Tensor, b: Tensor) -> tuple[nn.RNNCell, dict[str, Tensor]]:
    """torch's cell with given weights; its second bias is 0."""
    module = nn.RNNCell(W_x.shape[1], W_x.shape[0], dtype=W_x.dtype, device=W_x.device)
    return module, {"weight_ih": W_x, "weight_hh": W_h, "bias_ih": b, "bias_hh": torch.zeros_like(b)}


@oracle("rnn.cell", "rnn.step_jacobian")
def rnn_step(W_h: Tensor, h_0: Tensor, W_x: Tensor, x: Tensor, b: Tensor) -> Tensor:
    module, weights = cell(W_h, W_x, b)
    return functional_call(module, weights, (x, h_0))


@oracle("rnn.bptt", "rnn.jacobian_product")
def rnn_states(h_0: Tensor, W_h: Tensor, W_x: Tensor, x: Tensor, b: Tensor) -> Tensor:
    module, weights = cell(W_h, W_x, b)
    states = [h_0]
    for word in x:
        states.append(functional_call(module, weights, (word, states[-1])))
    return torch.stack(states)


@oracle("grad.clip_norm")
def clip(g: Tensor, tau: Tensor) -> Tensor:
    return g * torch.clamp(tau / torch.linalg.vector_norm(g), max=1)


@oracle("seq2seq.encoder")
def encoder(h_0: Tensor, W_h: Tensor, W_x: Tensor, b_h: Tensor, F: Tensor, x: Tensor) -> Tensor:
    module = nn.RNN(F.shape[1], W_h.shape[0], batch_first=True, dtype=F.dtype, device=F.device)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights = dict(zip(names, (W_x, W_h, b_h, torch.zeros_like(b_h)), strict=True))
    _, last = functional_call(module, weights, (nn.functional.embedding(x, F), h_0[None]))
    return last[0]


@oracle("seq2seq.decoder")
def decoder(c: Tensor, W_s: Tensor, W_y: Tensor, W_c: Tensor, b_s: Tensor, E: Tensor, w: Tensor) -> Tensor:
    module, weights = cell(W_s, torch.cat([W_y, W_c], dim=1), b_s)
    states = [c]
    for words in w.T:
        read = torch.cat([F.embedding(words, E), c], dim=1)
        states.append(functional_call(module, weights, (read, states[-1])))
    return torch.stack(states)


@oracle("seq2seq.output")
def target_probabilities(s: Tensor, W_o: Tensor, y: Tensor) -> Tensor:
    return torch.exp(-F.cross_entropy(F.linear(s, W_o), y, reduction="none"))


@oracle("seq2seq.loss")
def translation_loss(
    h_0: Tensor, W_h: Tensor, W_x: Tensor, b_h: Tensor, F: Tensor, x: Tensor,
    W_s: Tensor, W_y: Tensor, W_c: Tensor, b_s: Tensor, E: Tensor, w: Tensor, W_o: Tensor, y: Tensor,
) -> Tensor:  # fmt: skip
    states = decoder(encoder(h_0, W_h, W_x, b_h, F, x), W_s, W_y, W_c, b_s, E, w)
    logits = nn.functional.linear(states[1:], W_o)
    return nn.functional.cross_entropy(logits.flatten(0, 1), y.T.flatten(), reduction="sum")


@oracle("attention.score_dot")
def dot_score(s: Tensor, H: Tensor) -> Tensor:
    return torch.stack([torch.dot(s, h) for h in H.unbind(1)])


@oracle("attention.score_scaled")
def scaled_score(s: Tensor, H: Tensor) -> Tensor:
    return torch.stack([torch.dot(s, h) / len(s) ** 0.5 for h in H.unbind(1)])


@oracle("attention.score_additive")
def additive_score(s: Tensor, H: Tensor, W_1: Tensor, W_2: Tensor, v: Tensor) -> Tensor:
    return F.linear(torch.tanh(F.linear(H.T, W_1) + F.linear(s, W_2)), v[None])[:, 0]


@oracle("attention.context")
def context(H: Tensor, alpha: Tensor) -> Tensor:
    return torch.stack([weight * h for weight, h in zip(alpha, H.T, strict=True)]).sum(0)


@oracle("attention.readout")
def readout(W_c: Tensor, a: Tensor, s: Tensor) -> Tensor:
    return torch.tanh(F.linear(torch.cat([a, s]), W_c))

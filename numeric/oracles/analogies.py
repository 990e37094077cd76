"""Views and analogies, by torch's own functions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gradproof.numeric.oracles import oracle


@oracle("geometry.cosine")
def cosine(x: Tensor, y: Tensor) -> Tensor:
    return F.cosine_similarity(x, y, dim=0, eps=0.0)


@oracle("boltzmann.free_energy")
def free_energy(E: Tensor, beta: Tensor) -> Tensor:
    return -torch.logsumexp(-beta * E, dim=0) / beta


@oracle("ntk.kernel")
def two_layers(W: Tensor, x: Tensor, a: Tensor) -> Tensor:
    hidden = F.linear(x, W).tanh()  # tanh stands in for σ
    return torch.dot(a, hidden) / len(a) ** 0.5

"""Losses and language models, by torch's own functions."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from gradproof.numeric.oracles import oracle


@oracle("softmax.jacobian")
def softmax(s: Tensor) -> Tensor:
    return F.softmax(s, dim=-1)


@oracle("softmax.cross_entropy", "hessian.loss")
def cross_entropy(l: Tensor, y: Tensor) -> Tensor:  # noqa: E741
    return F.cross_entropy(l, y)


@oracle("loss.cross_entropy")
def cross_entropy_of_weights(l: Tensor, y: Tensor) -> Tensor:  # noqa: E741
    return F.cross_entropy(l, y)  # torch takes a vector of weights as the target too


@oracle("loss.label_smoothing")
def label_smoothing(l: Tensor, y: Tensor, epsilon: Tensor) -> Tensor:  # noqa: E741
    if 0 <= float(epsilon) <= 1:
        return F.cross_entropy(l, y, label_smoothing=float(epsilon))
    # torch refuses an ε outside [0, 1]; the loss is linear in it
    plain, smooth = F.cross_entropy(l, y), F.cross_entropy(l, y, label_smoothing=1.0)
    return plain + float(epsilon) * (smooth - plain)


@oracle("lm.next_token")
def next_token(h: Tensor, W_O: Tensor, b_O: Tensor) -> Tensor:
    return F.softmax(F.linear(h, W_O.T, b_O), dim=-1)


@oracle("lm.nll")
def nll(h: Tensor, W_O: Tensor, b_O: Tensor, w: Tensor) -> Tensor:
    return F.nll_loss(F.log_softmax(F.linear(h, W_O.T, b_O), dim=-1), w)


@oracle("lm.batch_loss")
def batch_loss(o: Tensor, w: Tensor, keep: Tensor) -> Tensor:
    """Positions of the padding are ignored by number, as a program would do it."""
    target = w.masked_fill(keep == 0, -100)
    return F.cross_entropy(o.flatten(0, 1), target.flatten(), ignore_index=-100, reduction="sum") / o.shape[0]


@oracle("lm.perplexity")
def perplexity(o: Tensor, w: Tensor) -> Tensor:
    return F.cross_entropy(o, w).exp()


@oracle("info.gradient")
def divergence(p: Tensor, l: Tensor) -> Tensor:  # noqa: E741
    return F.kl_div(F.log_softmax(l, dim=-1), p, reduction="sum")


@oracle("bayes.map")
def map_loss(X: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    return F.cross_entropy(X @ W, y, reduction="sum") + lam / 2 * W.square().sum()

"""Components of the Transformer and the tiny model. The generic activation is tanh."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gradproof.numeric.oracles import oracle
from gradproof.numeric.oracles.attention import transformer_heads


@oracle("embedding.lookup")
def lookup(E: Tensor, w: Tensor) -> Tensor:
    return F.embedding(w, E)


@oracle("embedding.position_sum")
def positioned(E: Tensor, w: Tensor, P: Tensor) -> Tensor:
    return F.embedding(w, E) + P


@oracle("rope.rotation")
def rotary(q: Tensor, pos: Tensor, omega: Tensor) -> Tensor:
    """Multiplication by e^{iθ} in complex numbers."""
    turned = torch.view_as_complex(q.unflatten(1, (-1, 2))) * torch.exp(1j * pos[:, None] * omega)
    return torch.view_as_real(turned).flatten(1)


@oracle("ffn.relu")
def ffn_relu(x: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    return F.linear(F.relu(F.linear(x, W_1, b_1)), W_2, b_2)


@oracle("ffn.backward")
def ffn(X: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    return F.linear(torch.tanh(F.linear(X, W_1.T, b_1)), W_2.T, b_2)


@oracle("ffn.swiglu")
def swiglu(X: Tensor, W: Tensor, V: Tensor, U: Tensor, beta: Tensor) -> Tensor:
    gate = F.linear(X, W.T)
    return F.linear(F.silu(beta * gate) / beta * F.linear(X, V.T), U.T)


@oracle("residual.gradient")
def residual(x: Tensor, W_1: Tensor, W_2: Tensor) -> Tensor:
    return x + F.linear(torch.tanh(F.linear(x, W_1)), W_2)


def layer_norm(x: Tensor, epsilon: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], gamma, beta, float(epsilon))


@oracle("layernorm.forward", "layernorm.backward")
def layernorm(x: Tensor, epsilon: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    return layer_norm(x, epsilon, gamma, beta)


@oracle("layernorm.sigma_plus_eps")
def sigma_plus_eps(x: Tensor, epsilon: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    return (x - x.mean()) / (x.std(correction=0) + epsilon) * gamma + beta


@oracle("layernorm.differentials")
def normalised(x: Tensor, epsilon: Tensor) -> Tensor:
    return layer_norm(x, epsilon)


@oracle("layernorm.axes")
def batchnorm(X: Tensor, epsilon: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    return F.batch_norm(X, None, None, gamma, beta, training=True, eps=float(epsilon))


@oracle("block.pre_ln")
def pre_ln(
    X: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor, epsilon: Tensor,
    g_1: Tensor, c_1: Tensor, g_2: Tensor, c_2: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor,
) -> Tensor:  # fmt: skip
    T = X + transformer_heads(layer_norm(X, epsilon, g_1, c_1), W_Q, W_K, W_V, W_O)
    return T + ffn(layer_norm(T, epsilon, g_2, c_2), W_1, b_1, W_2, b_2)


@oracle("block.post_ln")
def post_ln(
    X: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor, epsilon: Tensor,
    g_1: Tensor, c_1: Tensor, g_2: Tensor, c_2: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor,
) -> Tensor:  # fmt: skip
    T = layer_norm(X + transformer_heads(X, W_Q, W_K, W_V, W_O), epsilon, g_1, c_1)
    return layer_norm(T + ffn(T, W_1, b_1, W_2, b_2), epsilon, g_2, c_2)


@oracle("output.tied")
def tied(E: Tensor, w: Tensor, W: Tensor) -> Tensor:
    return F.linear(torch.tanh(F.linear(F.embedding(w, E), W.T)), E)


@oracle("output.projection")
def projected(h: Tensor, U: Tensor, b: Tensor) -> Tensor:
    return F.linear(h, U.T, b)


@oracle("tiny_model.gradients", "tiny_model.coincidence")
def tiny(
    w: Tensor, y: Tensor, M: Tensor, E: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, U: Tensor
) -> Tensor:
    X = F.embedding(w, E)
    mixed = F.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V, attn_mask=M == 1)
    return F.cross_entropy((X + mixed @ W_O)[-1] @ U, y)

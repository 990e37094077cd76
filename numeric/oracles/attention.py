"""Attention: torch's scaled_dot_product_attention and nn.MultiheadAttention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gradproof.numeric.oracles import oracle


@oracle("attention.qkv")
def projections(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, G_Q: Tensor, G_K: Tensor, G_V: Tensor) -> Tensor:
    pairs = ((W_Q, G_Q), (W_K, G_K), (W_V, G_V))
    return torch.stack([torch.sum(g * F.linear(X, w.T)) for w, g in pairs]).sum()


@oracle("attention.scores")
def scores(Q: Tensor, K: Tensor) -> Tensor:
    return torch.einsum("il,jl->ij", Q, K)


@oracle("attention.row_softmax")
def weights(Q: Tensor, K: Tensor) -> Tensor:
    return F.softmax(torch.einsum("il,jl->ij", Q, K) / Q.shape[1] ** 0.5, dim=1)


@oracle("attention.output")
def mixed(A: Tensor, V: Tensor) -> Tensor:
    return torch.einsum("ij,jk->ik", A, V)


@oracle("attention.full")
def attention(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(Q, K, V)


@oracle("attention.block_backward")
def block(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    return X + F.linear(attention(F.linear(X, W_Q.T), F.linear(X, W_K.T), F.linear(X, W_V.T)), W_O.T)


@oracle("attention.masked_backward")
def masked_weights(S: Tensor, M: Tensor) -> Tensor:
    return F.softmax(S.masked_fill(M != 1, float("-inf")), dim=-1)


@oracle("attention.cross")
def cross_attention(X: Tensor, Y: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    return attention(F.linear(Y, W_Q.T), F.linear(X, W_K.T), F.linear(X, W_V.T))


@oracle("mha.head")
def head(Q: Tensor, K: Tensor, V: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    return attention(F.linear(Q, W_Q.T), F.linear(K, W_K.T), F.linear(V, W_V.T))


@oracle("mha.output")
def multihead(X: Tensor, Y: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    """Heads one after the other, concatenated; nn.MultiheadAttention where its sizes allow (h·d_k = h·d_v = d)."""
    h, d, d_k = W_Q.shape
    joined = W_O.flatten(0, 1)
    if h * d_k == d and W_V.shape == W_Q.shape:
        flat = torch.cat([w.transpose(0, 1).flatten(1).T for w in (W_Q, W_K, W_V)])
        zeros = torch.zeros(3 * d, dtype=X.dtype, device=X.device)
        found, _ = F.multi_head_attention_forward(
            X[:, None], Y[:, None], Y[:, None], d, h, flat, zeros, None, None, False, 0.0, joined.T, zeros[:d],
            need_weights=False,
        )  # fmt: skip
        return found[:, 0]
    heads = [head(X, Y, Y, *projection) for projection in zip(W_Q, W_K, W_V, strict=True)]
    return torch.cat(heads, dim=1) @ joined


def transformer_heads(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    """Self-attention with several heads, by nn.MultiheadAttention where its sizes allow."""
    return multihead(X, X, W_Q, W_K, W_V, W_O)

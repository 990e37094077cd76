"""Numbers for the entries about the Transformer's components, computed with the generated code and with torch."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.attention import BLOCK_SHAPES, CAUSAL, CROSS, PROJECTION_SHAPES, PROJECTIONS, WEIGHTS
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at_least, holds, same
from gradproof.symbolic.catalogue.normalisation import LAYERNORM, LAYERNORM_SHAPES, SIGMA_PLUS_EPS
from gradproof.symbolic.derive import derive
from gradproof.symbolic.language.reader import build


def sinusoid() -> list[Evidence]:
    """d = 4, position 1: both sines and cosines."""
    system = build("s[t,i] = sin(pos[t]/10000**(2*i/(2*p))) * ones(p)[i]", {"pos": "n", "x": "2*p"})
    sine = compile_numpy(system)
    cosine = compile_numpy(build("c[t,i] = cos(pos[t]/10000**(2*i/(2*p))) * ones(p)[i]", {"pos": "n", "x": "2*p"}))
    given = {"pos": np.array([1.0]), "x": np.zeros(4)}
    s, c = sine(**given)["s"][0], cosine(**given)["c"][0]
    value = [float(v) for pair in zip(s, c, strict=True) for v in pair]
    expected = [f(1 / 10000 ** (i / 2)) for i in (0, 1) for f in (math.sin, math.cos)]
    try:
        sine(pos=np.array([1.0]), x=np.zeros(5))
        refused = False
    except ValueError:
        refused = True
    return [
        same("PE(1) for d = 4, as printed", value, [0.84147, 0.54030, 0.0099998, 0.99995], 5e-6),
        same("PE(1) for d = 4, against math.sin and math.cos", value, expected, 1e-15),
        holds("d = 5 is refused", refused),
    ]


def sigma_plus_eps() -> list[Evidence]:
    """How far σ + ε and √(v + ε) are apart, and the derivative at a constant row."""
    given = {"epsilon": 0.1, "gamma": np.ones(4), "beta": np.zeros(4)}
    x = np.array([1.0, 2.0, 3.0, 4.0])
    one, other = (compile_numpy(build(text, LAYERNORM_SHAPES)) for text in (LAYERNORM, SIGMA_PLUS_EPS))

    def run(function: Any, x: np.ndarray, **changed: Any) -> np.ndarray:
        return np.asarray(function(x=x, **{**given, **changed})["y"])

    rows = [
        apart(
            f"(1,2,3,4), ε = {eps:g}: √(v+ε) against σ+ε, first entry",
            float(run(one, x, epsilon=eps)[0]),
            float(run(other, x, epsilon=eps)[0]),
            least,
        )
        for eps, least in ((0.1, 0.05), (1e-5, 5e-6))
    ]
    # at v = 0 the difference quotients tend to (u − mean u)/ε: σ has a kink there, but what it changes is of order t²
    u, direction = np.array([1.0, 0.0, -2.0, 0.5]), np.array([0.3, -1.0, 0.2, 0.8])
    t = 1e-9
    slope = float(u @ (run(other, 5 + t * direction) - run(other, np.full(4, 5.0)))) / t
    predicted = float((u - u.mean()) @ direction / given["epsilon"])
    return [
        *rows,
        same(
            "constant row, ε = 0.1: difference quotient along a direction, against (u − mean u)/ε",
            slope,
            predicted,
            1e-5,
        ),
    ]


DEPTHS = (2, 6, 18)


def pre_vs_post() -> list[Evidence]:
    """The norm of the gradient of W_2 in the first and the last block, by depth, at initialisation; torch, 4 seeds."""
    table = {order: np.array([gradient_norms(order, depth) for depth in DEPTHS]) for order in ("pre", "post")}
    found = []
    for order, norms in table.items():
        for k, block in enumerate(("first", "last")):
            shown = [round(float(v), 3) for v in norms[:, k]]
            found.append(
                holds(f"{order}-LN, {block} block: gradient norms for depths {DEPTHS}", bool(norms.min() > 0), shown)
            )
    pre, post = (table[order][:, 1] for order in ("pre", "post"))
    slopes = {order: float(np.polyfit(np.log(DEPTHS), np.log(norms[:, 1]), 1)[0]) for order, norms in table.items()}
    return [
        *found,
        same("Post-LN, last block: the norm grows with the depth to the power", slopes["post"], 0.0, 0.15),
        same("Pre-LN, last block: the power", slopes["pre"], -0.5, 0.15),
        at_least("depth 18, last block: Post-LN over Pre-LN", float(post[-1] / pre[-1]), 2.0),
    ]


@lru_cache
def gradient_norms(order: str, depth: int, width: int = 16, length: int = 8, seeds: int = 4) -> tuple[float, float]:
    """‖∂L/∂W_2‖ in the first and the last block of a stack for a random linear loss: the mean over seeds."""
    first, last = np.mean([_one_stack(order, depth, width, length, seed) for seed in range(seeds)], axis=0)
    return float(first), float(last)


def _one_stack(order: str, depth: int, width: int, length: int, seed: int) -> tuple[float, float]:
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        pre = order == "pre"
        blocks = [
            nn.TransformerEncoderLayer(width, 2, 4 * width, dropout=0.0, batch_first=True, norm_first=pre)
            for _ in range(depth)
        ]
        for block in blocks:
            for name, value in block.named_parameters():
                if value.dim() > 1:
                    nn.init.xavier_uniform_(value)
                elif name.endswith("bias"):
                    nn.init.zeros_(value)
        cotangent = torch.randn(4, length, width)
        x = torch.randn(4, length, width)
        for block in blocks:
            x = block(x)
        (cotangent * (nn.LayerNorm(width)(x) if pre else x)).sum().backward()
    first, last = blocks[0].linear2.weight.grad, blocks[-1].linear2.weight.grad
    assert first is not None and last is not None
    return first.norm().item(), last.norm().item()


def architectures() -> list[Evidence]:
    """Who sees whom: the zero pattern of ∂output_i/∂input_j of derived attention layers."""
    masked = WEIGHTS.replace("A = softmax(S)", CAUSAL.rstrip("; "))
    shapes = {name: BLOCK_SHAPES[name] for name in ("X", "W_Q", "W_K", "W_V")}
    full, lower = np.ones((4, 4), int), np.tril(np.ones((4, 4), int))
    rows = [
        same("encoder-only", _sees(PROJECTIONS + WEIGHTS + "O = A @ V", shapes, "X", {"n": 4}), full.tolist()),
        same("decoder-only", _sees(PROJECTIONS + masked + "O = A @ V", shapes, "X", {"n": 4}), lower.tolist()),
    ]
    cross = {**PROJECTION_SHAPES, "X": "m,d", "Y": "T,d"}
    source = _sees(CROSS, cross, "X", {"m": 5, "T": 3})
    target = _sees(CROSS, cross, "Y", {"m": 5, "T": 3})
    return [
        *rows,
        same("encoder–decoder: a target position sees all source positions", source, np.ones((3, 5), int).tolist()),
        same("encoder–decoder: cross-attention adds no other target position", target, np.eye(3, dtype=int).tolist()),
    ]


def _sees(text: str, shapes: dict[str, str], variable: str, sizes: dict[str, int]) -> list[list[int]]:
    """1 where output row i depends on input row j, by the derived gradient of each output row."""
    rng = np.random.default_rng(0)
    lengths = {"d": 4, "d_k": 3, "d_v": 4, **sizes}
    given = {name: rng.normal(size=[lengths[axis] for axis in shape.split(",")]) for name, shape in shapes.items()}
    gradient = compile_numpy(derive(text, shapes, [variable], "G"))
    rows = lengths[shapes["Y" if "Y" in shapes else "X"].split(",")[0]]
    found = []
    for i in range(rows):
        cotangent = np.zeros((rows, lengths["d_v"]))
        cotangent[i] = rng.normal(size=lengths["d_v"])
        _, gradients = gradient(**given, G=cotangent)
        found.append([int(row.any()) for row in gradients[variable]])
    return found

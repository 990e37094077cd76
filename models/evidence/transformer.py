"""Numbers for the entries about the Transformer's components."""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

from gradproof.models.nets.transformer import TransformerConfig, Wiring
from gradproof.models.nets.wiring import backward, forward
from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.attention import (
    BLOCK_SHAPES,
    CAUSAL_WEIGHTS,
    CROSS,
    PROJECTION_SHAPES,
    PROJECTIONS,
    WEIGHTS,
)
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.entry import get
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at, at_least, at_point, holds, same
from gradproof.symbolic.catalogue.normalisation import (
    BATCHNORM_SHAPES,
    LAYERNORM,
    LAYERNORM_SHAPES,
    SIGMA_PLUS_EPS,
    normalised,
)
from gradproof.symbolic.catalogue.position import LOOKUP, LOOKUP_SHAPES
from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import jacobian
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse
from gradproof.symbolic.phrases import phrase


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
            phrase("(1,2,3,4), ε = {}: √(v+ε) against σ+ε, first entry", f"{eps:g}"),
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
    """The norm of the gradient of W_2 in the first and the last block, by depth, at initialisation; 4 seeds."""
    table = {order: np.array([gradient_norms(order, depth) for depth in DEPTHS]) for order in ("pre", "post")}
    found = []
    for order, norms in table.items():
        for k, block in enumerate(("first", "last")):
            shown = [round(float(v), 3) for v in norms[:, k]]
            found.append(
                holds(
                    phrase("{}-LN, {} block: gradient norms for depths {}", order, block, DEPTHS),
                    bool(norms.min() > 0),
                    shown,
                )
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
    config = TransformerConfig("encoder", 2, width=width, heads=2, inner=4 * width, layers=depth, order=order)
    wiring = Wiring(config.lengths(), config=config, dropout=False)
    result = wiring.stack("encoder", "x")
    first, last = np.mean([_one_stack(wiring, result, (4, length, width), seed) for seed in range(seeds)], axis=0)
    return float(first), float(last)


def _one_stack(wiring: Wiring, result: str, shape: tuple[int, int, int], seed: int) -> tuple[float, float]:
    """Xavier's uniform weights, Gaussian inputs and cotangent."""
    rng = np.random.default_rng(seed)
    values: dict[str, np.ndarray] = {
        "x": rng.normal(size=shape),
        "encoder.M": np.ones((shape[0], *shape[1:2] * 2), int),
    }
    for name, sizes in wiring.shapes.items():
        inputs = sizes[0] * sizes[1] if name.endswith("W_O") else sizes[0]
        limit = np.sqrt(6 / (inputs + np.prod(sizes) / inputs))
        gain = float(name.endswith(".g"))
        values[name] = np.full(sizes, gain) if len(sizes) == 1 or ".b_" in name else rng.uniform(-limit, limit, sizes)
    tape = forward(wiring.steps, values)
    found = backward(wiring.steps, tape, {result: rng.normal(size=shape)})
    first, last = (found[f"encoder.{layer}.ffn.W_2"] for layer in (0, wiring.config.layers - 1))
    return float(np.linalg.norm(first)), float(np.linalg.norm(last))


def architectures() -> list[Evidence]:
    """Who sees whom: the zero pattern of ∂output_i/∂input_j of derived attention layers."""
    shapes = {name: BLOCK_SHAPES[name] for name in ("X", "W_Q", "W_K", "W_V")}
    full, lower = np.ones((4, 4), int), np.tril(np.ones((4, 4), int))
    rows = [
        same("encoder-only", _sees(PROJECTIONS + WEIGHTS + "O = A @ V", shapes, "X", {"n": 4}), full.tolist()),
        same("decoder-only", _sees(PROJECTIONS + CAUSAL_WEIGHTS + "O = A @ V", shapes, "X", {"n": 4}), lower.tolist()),
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


def lookup() -> list[Evidence]:
    """Tokens (1, 1, 2) with cotangents (1,2), (3,4), (5,6): repeated tokens add up, an unused row gets 0."""
    given = {"E": [[0, 0]] * 3, "w": [1, 1, 2], "G": [[1, 2], [3, 4], [5, 6]]}
    found = at(f"{LOOKUP}; L = sum(G*X)", {**LOOKUP_SHAPES, "G": "n,d"}, given, ["E"])
    return [same("Ē for the tokens (1, 1, 2)", found["E_bar"], [[0.0, 0.0], [4.0, 6.0], [5.0, 6.0]])]


def unique_positions() -> list[Evidence]:
    """2 − 2 cos m, the squared distance in the first pair, for m = 1 … 10000."""
    mpmath.mp.dps = 30
    least = min(2 - 2 * mpmath.cos(m) for m in range(1, 10001))
    return [at_least("least squared distance of positions up to 10000 apart, first pair alone", least, 1e-9)]


def normalised_rows() -> list[Evidence]:
    """LayerNorm of (1,2,3,4), and the gradient at a constant row, both with ε = 1e−5."""
    given = {"epsilon": 1e-5, "gamma": [1, 1, 1, 1], "beta": [0, 0, 0, 0]}
    value = at(LAYERNORM, LAYERNORM_SHAPES, {**given, "x": [1, 2, 3, 4]})["value"]
    found = at(f"{LAYERNORM}; L = y[0]", LAYERNORM_SHAPES, {**given, "x": [5, 5, 5, 5]}, ["x"])
    return [
        same("LayerNorm of (1,2,3,4)", value, [-1.34163542, -0.44721181, 0.44721181, 1.34163542], 5e-9),
        same("x̄ at (5,5,5,5) for the cotangent e₁", found["x_bar"], [237.17, -79.06, -79.06, -79.06], 5e-3),
    ]


def two_routes() -> list[Evidence]:
    """Σ u ⊙ dx̂ by differentials is Σ x̄ ⊙ dx by the backward route."""
    rng = random.Random(0)
    x, dx, u = ([rng.randint(-9, 9) / 4 for _ in range(5)] for _ in range(3))
    forward = at_point(derive_entry(get("layernorm.differentials")).system, {"x": x, "epsilon": 1e-5, "dx": dx})
    ones, zeros = [1] * 5, [0] * 5
    given = {"x": x, "epsilon": 1e-5, "gamma": ones, "beta": zeros, "g": u}
    backward = at_point(derive_entry(get("layernorm.backward")).system, given)
    left = sum(a * b for a, b in zip(u, forward["xhat_dot"], strict=True))
    right = sum(a * b for a, b in zip(backward["x_bar"], dx, strict=True))
    return [same("Σ u ⊙ dx̂ against Σ x̄ ⊙ dx", left, right, 1e-12)]


def normalised_axes() -> list[Evidence]:
    """The zero pattern of the Jacobians: LayerNorm mixes no rows, BatchNorm no columns."""
    found = []
    for name, text, axis in (("LayerNorm", normalised(1), 0), ("BatchNorm", normalised(0), 1)):
        program = parse(text)
        derivation = jacobian(build(program, BATCHNORM_SHAPES), "X", program)
        given = {"X": [[1, 2, 4], [3, -1, 2]], "epsilon": 1e-5, "gamma": [1, 2, 3], "beta": [0, 0, 0]}
        j = at_point(derivation.system, given)["J_X"]
        places = [(i, r, p, s) for i in range(2) for r in range(3) for p in range(2) for s in range(3)]
        outside = max(abs(j[i][r][p][s]) for i, r, p, s in places if (i, r)[axis] != (p, s)[axis])
        inside = min(abs(j[i][r][p][s]) for i, r, p, s in places if (i, r)[axis] == (p, s)[axis])
        what = "row" if axis == 0 else "column"
        found.append(same(f"{name}: largest derivative across {what}s", outside, 0.0))
        found.append(at_least(f"{name}: least derivative within a {what}", inside, 1e-9))
    return found


def identity_path() -> list[Evidence]:
    """F(x) = −x gives 0; with ‖J_F‖ ≤ ½ in each of 10 layers the gradient keeps at least 2⁻¹⁰ of its norm."""
    zero = at(
        "y = x + A @ x; sum(g*y)",
        {"x": "d", "A": "d,d", "g": "d"},
        {"x": [1, 2], "A": [[-1, 0], [0, -1]], "g": [3, 4]},
        ["x"],
    )
    mpmath.mp.dps = 30
    rng = random.Random(0)
    least = mpmath.inf
    for _ in range(30):
        gradient = mpmath.matrix([rng.gauss(0, 1) for _ in range(3)])
        start = mpmath.norm(gradient)
        for _ in range(10):
            f = mpmath.matrix(3, 3)
            for i in range(3):
                for k in range(3):
                    f[i, k] = rng.gauss(0, 1)
            f = f / (2 * max(mpmath.svd_r(f, compute_uv=False)))
            gradient = gradient + f.T * gradient
        least = min(least, mpmath.norm(gradient) / start)
    return [
        same("F(x) = −x: the gradient for the cotangent (3, 4)", zero["x_bar"], [0.0, 0.0]),
        at_least("‖J_F‖ = ½ in 10 layers: least ratio of gradient norms in 30 trials", least, mpmath.mpf(2) ** -10),
    ]


def tied() -> list[Evidence]:
    """With U = Eᵀ the gradient of E is that of the input path plus that of the output path."""
    text, shapes = f"{LOOKUP}; H = tanh(X @ W); l = H @ {{}}; L = sum(G*l)", {**LOOKUP_SHAPES, "W": "d,d", "G": "n,N"}
    rng = random.Random(0)

    def draw(rows: int, columns: int) -> list[list[float]]:
        return [[rng.randint(-8, 8) / 8 for _ in range(columns)] for _ in range(rows)]

    rows = draw(4, 2)
    given = {"E": rows, "w": [1, 3, 1], "W": draw(2, 2), "G": draw(3, 4)}
    whole = at(text.format("E.T"), shapes, given, ["E"])["E_bar"]
    transposed = [[row[k] for row in rows] for k in range(2)]
    apart = at(text.format("U"), {**shapes, "U": "d,N"}, {**given, "U": transposed}, ["E", "U"])
    total = [[apart["E_bar"][i][k] + apart["U_bar"][k][i] for k in range(2)] for i in range(4)]
    return [
        same("Ē of the tied model against Ē + Ūᵀ of the untied one", whole, total, 1e-12),
        holds("a row that no token reads has a gradient too", any(whole[0])),
    ]

"""Numbers for the entries about the Transformer's components."""

from __future__ import annotations

import random

import mpmath

from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.entry import get
from gradproof.symbolic.catalogue.evidence import Evidence, at, at_least, at_point, holds, same
from gradproof.symbolic.catalogue.normalisation import BATCHNORM, BATCHNORM_SHAPES, LAYERNORM, LAYERNORM_SHAPES
from gradproof.symbolic.catalogue.position import LOOKUP, LOOKUP_SHAPES
from gradproof.symbolic.deriving.products import jacobian
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse


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
    for name, text, axis in (("LayerNorm", BATCHNORM.replace("axis=0", "axis=1"), 0), ("BatchNorm", BATCHNORM, 1)):
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

"""Numbers for the entries about attention: shapes read off the equations, and small examples."""

from __future__ import annotations

from gradproof.symbolic.catalogue.attention import ATTENTION_SHAPES, OUTPUT, WEIGHTS
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at, holds, same
from gradproof.symbolic.catalogue.seq2seq import ADDITIVE, ADDITIVE_SHAPES, DOT, SCALED, SCORE_SHAPES
from gradproof.symbolic.counting import parameters, size_text
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.printing import text


def score_variants() -> list[Evidence]:
    """One s and H, three scores, three sets of weights; and how many parameters each score has."""
    given = {"s": [1.0, 2.0], "H": [[1.0, 0.0], [0.0, 1.0]]}
    learned = {"W_1": [[1.0, 0.0]], "W_2": [[0.0, 1.0]], "v": [1.0]}
    dot = at(f"{DOT}; softmax(e)", SCORE_SHAPES, given)["value"]
    scaled = at(f"{SCALED}; softmax(e)", SCORE_SHAPES, given)["value"]
    additive = at(f"{ADDITIVE}; softmax(e)", ADDITIVE_SHAPES, {**given, **learned})["value"]
    count = parameters(build(ADDITIVE, ADDITIVE_SHAPES), ["W_1", "W_2", "v"])
    return [
        apart("weights for s = (1,2), H = I: dot against scaled", dot, scaled, 0.05),
        apart("weights for s = (1,2), H = I: dot against additive", dot, additive, 0.05),
        holds(
            "the additive score prefers position 1, the dot score position 2",
            additive[0] > additive[1] and dot[0] < dot[1],
        ),
        same("parameters of the additive score", size_text(count), "2·d·d_a + d_a"),
        same("parameters of the dot scores", 0, 0),
    ]


def outer_product() -> list[Evidence]:
    """q = (1, 2), k = (3, 4): q kᵀ is 11, qᵀk of two rows is a matrix."""
    given, shapes = {"q": [1, 2], "k": [3, 4]}, {"q": "d", "k": "d"}
    return [
        same("q kᵀ of the rows (1,2) and (3,4)", at("q @ k", shapes, given)["value"], 11.0),
        same("qᵀk of the same rows", at("outer(q, k)", shapes, given)["value"], [[3.0, 4.0], [6.0, 8.0]]),
    ]


def shapes() -> list[Evidence]:
    """The document's table, read off the equations."""
    system = build(f"{WEIGHTS}{OUTPUT}", ATTENTION_SHAPES)
    transposed = build("K.T", {"K": "n,d_k"})
    found = {name: text.shape_text(system.arrays[name], system) for name in ("Q", "S", "A", "V", "O")}
    found["Kᵀ"] = text.shape_text(transposed.arrays[transposed.outputs[0]], transposed)
    table = {"Q": "n×d_k", "Kᵀ": "d_k×n", "S": "n×n", "A": "n×n", "V": "n×d_v", "O": "n×d_v"}
    return [
        same(f"shape of {name}", found[name].replace("(", "").replace(")", "").replace(", ", "×"), table[name])
        for name in table
    ]


def bilinear() -> list[Evidence]:
    """The two-vector example: a reads b with 1, b reads a with 0; without projections both are 0."""
    given = {"X": [[1, 0], [0, 1]], "W_Q": [[1], [0]], "W_K": [[0], [1]]}
    scores = at("Q = X @ W_Q; K = X @ W_K; Q @ K.T", {"X": "n,d", "W_Q": "d,d_k", "W_K": "d,d_k"}, given)["value"]
    plain = at("X @ X.T", {"X": "n,d"}, {"X": given["X"]})["value"]
    return [
        same("a reads b", scores[0][1], 1.0),
        same("b reads a", scores[1][0], 0.0),
        same("the dot product of the inputs themselves", plain[0][1], 0.0),
        same(
            "d_k = 1, d = 2: the determinant of W_Q W_Kᵀ (rank ≤ 1)",
            scores[0][0] * scores[1][1] - scores[0][1] * scores[1][0],
            0.0,
        ),
    ]

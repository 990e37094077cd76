"""Numbers for the entries about views and analogies: plain Python, fractions and mpmath."""

from __future__ import annotations

import itertools
import math
import random

from gradproof.symbolic.catalogue.evidence import Evidence, apart, at, at_least, at_most, holds, same
from gradproof.symbolic.counting import parameters, with_sizes
from gradproof.symbolic.equations.evaluate import Undefined
from gradproof.symbolic.language.reader import build

Vector = list[float]


def _dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def cosine() -> list[Evidence]:
    """A pair of vectors, the gradient along the vector itself, and the zero vector."""
    text, shapes = "x @ y / (norm(x)*norm(y))", {"x": "d", "y": "d"}
    found = at(text, shapes, {"x": [3, 4], "y": [4, 3]}, ["x"])
    try:
        at(text, shapes, {"x": [0, 0], "y": [4, 3]})
        message = ""
    except Undefined as error:
        message = str(error)
    return [
        same("cos((3, 4), (4, 3))", found["value"], 24 / 25),
        same("the gradient has no part along x", _dot(found["x_bar"], [3.0, 4.0]), 0.0),
        holds("a zero vector is refused", bool(message), message or "no error"),
    ]


def sinkhorn(c: list[Vector], rows: Vector, columns: Vector, epsilon: float = 1.0) -> list[Vector]:
    """Entropic transport with both marginals fixed.

    >>> plan = sinkhorn([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.5, 0.5])
    >>> [round(sum(row), 9) for row in plan]
    [0.5, 0.5]
    """
    kernel = [[math.exp(-x / epsilon) for x in row] for row in c]
    v = [1.0] * len(columns)
    for _ in range(500):
        u = [r / _dot(k, v) for r, k in zip(rows, kernel, strict=True)]
        v = [s / _dot(list(k), u) for s, k in zip(columns, zip(*kernel, strict=True), strict=True)]
    return [[a * x * b for x, b in zip(k, v, strict=True)] for a, k in zip(u, kernel, strict=True)]


def transport() -> list[Evidence]:
    """Costs [[0, 1], [0, 2]]: softmax by rows is the least of 1000 random weights; Sinkhorn's plan is another one."""
    c = [[0.0, 1.0], [0.0, 2.0]]

    def softmax(costs: Vector) -> Vector:
        weights = [math.exp(-x) for x in costs]
        return [w / math.fsum(weights) for w in weights]

    def objective(alpha: list[Vector]) -> float:
        return math.fsum(
            a * (x + math.log(a)) for row, costs in zip(alpha, c, strict=True) for a, x in zip(row, costs, strict=True)
        )

    best = [softmax(row) for row in c]
    rng = random.Random(0)
    others = []
    for _ in range(1000):
        a, b = rng.uniform(0.001, 0.999), rng.uniform(0.001, 0.999)
        others.append(objective([[a, 1 - a], [b, 1 - b]]))
    plan = [[2 * x for x in row] for row in sinkhorn(c, [0.5, 0.5], [0.5, 0.5])]
    columns = [best[0][j] + best[1][j] for j in range(2)]
    return [
        at_least("least objective of 1000 random weights less that of softmax", min(others) - objective(best), 0.0),
        same(
            "the objective at softmax is −ε Σ log Z",
            objective(best),
            -math.fsum(math.log(math.fsum(math.exp(-x) for x in r)) for r in c),
        ),
        apart("column sums of softmax, where a transport plan needs 1 and 1", columns, [1.0, 1.0], 0.3),
        apart("the plan with both marginals fixed, rows scaled to 1, against softmax", plan, best, 0.1),
    ]


def _signs(n: int) -> itertools.product[tuple[int, ...]]:
    return itertools.product((-1, 1), repeat=n)


def rademacher() -> list[Evidence]:
    """Linear functions with ‖w‖ ≤ 2 on eight points in the plane: all 256 sign vectors."""
    rng = random.Random(0)
    n, radius = 8, 2.0
    points = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(n)]

    def length(signs: tuple[int, ...]) -> float:
        return math.hypot(*(math.fsum(s * p[k] for s, p in zip(signs, points, strict=True)) for k in range(2)))

    exact = math.fsum(radius * length(s) / n for s in _signs(n)) / 2**n
    squares = math.fsum(length(s) ** 2 for s in _signs(n)) / 2**n
    total = math.fsum(_dot(p, p) for p in points)
    # the supremum over w is reached at w along Σ σ_i x_i; a grid of directions comes close to it
    grid = [[radius * math.cos(a / 500), radius * math.sin(a / 500)] for a in range(3142)]
    signs = (1, -1, 1, 1, -1, 1, -1, -1)
    searched = max(math.fsum(s * _dot(w, p) for s, p in zip(signs, points, strict=True)) / n for w in grid)
    return [
        same("E ‖Σ σ_i x_i‖² over all signs, against Σ ‖x_i‖²", squares, total),
        at_most("the complexity, enumerated, against B √(Σ ‖x_i‖²)/n", exact, radius * math.sqrt(total) / n),
        same("the supremum for one sign vector, by search over directions", searched, radius * length(signs) / n, 1e-5),
    ]


def architecture() -> list[Evidence]:
    """ReLU networks with Σ |a_r| ‖w_r‖ ≤ 1 on six points in the plane, at several widths.

    The supremum over a width is that of a single unit, since a network is a convex combination of signed units.
    """
    rng = random.Random(0)
    points = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(6)]

    def unit(angle: float) -> Vector:
        return [max(0.0, _dot([math.cos(angle), math.sin(angle)], p)) for p in points]

    units = [unit(a * math.pi / 360) for a in range(720)]

    def best(signs: tuple[int, ...]) -> float:
        return max(abs(_dot([float(s) for s in signs], u)) for u in units) / 6

    suprema = {signs: best(signs) for signs in _signs(6)}
    complexity = math.fsum(suprema.values()) / len(suprema)
    worst, split = -1.0, math.inf
    reached = []
    for signs, sup in suprema.items():
        unit_ = max(units, key=lambda u: abs(_dot([float(s) for s in signs], u)))
        network = [math.fsum(x / 32 for _ in range(32)) for x in unit_]
        reached.append(abs(_dot([float(s) for s in signs], network)) / 6)
        split = min(split, reached[-1] / sup)
    for width in (2, 8, 32):
        for _ in range(20):
            weights = [rng.gauss(0, 1) for _ in range(width)]
            norm = math.fsum(map(abs, weights))
            chosen = [rng.choice(units) for _ in weights]
            network = [math.fsum(w / norm * u[i] for w, u in zip(weights, chosen, strict=True)) for i in range(6)]
            worst = max(worst, *(_dot([float(s) for s in signs], network) / 6 - sup for signs, sup in suprema.items()))
    counted = parameters(build("a @ relu(W @ x)", {"a": "m", "W": "m,2", "x": "2"}), ["a", "W"])
    sizes = [int(with_sizes(counted, {"m": width})) for width in (1, 32)]
    return [
        at_most("networks of width 2, 8, 32 over the supremum of width 1", worst, 0.0, 1e-12),
        at_least(
            "share of that supremum which width 32 reaches: its best unit split into equal parts", split, 1 - 1e-12
        ),
        same(
            "parameters at width 1 and 32, with the same complexity",
            [*sizes, math.fsum(reached) / 64],
            [3, 96, complexity],
        ),
    ]


def quantum() -> list[Evidence]:
    """A query and two keys of unit length."""
    overlaps = at("K @ q", {"K": "n,d", "q": "d"}, {"K": [[0.6, 0.8], [-0.6, 0.8]], "q": [1, 0]})["value"]
    squared = [x * x / math.fsum(y * y for y in overlaps) for x in overlaps]
    weights = at("softmax(s)", {"s": "n"}, {"s": overlaps})["value"]
    mixture = [0.6 * weights[0] - 0.6 * weights[1], 0.8]
    return [
        same("squared overlaps (.6, −.6), normalised", squared, [0.5, 0.5]),
        apart("softmax of the same overlaps", weights, squared, 0.25),
        at_least(
            "distance of the returned mixture from both keys: nothing collapses",
            min(math.dist(mixture, k) for k in ([0.6, 0.8], [-0.6, 0.8])),
            0.2,
        ),
    ]


def influence() -> list[Evidence]:
    """Weights (.99, .01), values (0, 1) and (100, 0), output u·z with u = (1, 0)."""
    given = {"m": [1, 1], "alpha": [0.99, 0.01], "V": [[0, 1], [100, 0]], "u": [1, 0]}
    text = "z = sum(m[:, None]*alpha[:, None]*V, axis=0); z @ u"
    shapes = {"m": "n", "alpha": "n", "V": "n,d", "u": "d"}
    output = at(text, shapes, given, ["m"])
    without = [at(text, shapes, {**given, "m": m})["value"] for m in ([0, 1], [1, 0])]
    return [
        same("the output", output["value"], 1.0),
        same("without the word of weight .99", without[0], 1.0),
        same("without the word of weight .01", without[1], 0.0),
        same("∂L/∂m", output["m_bar"], [0.0, 1.0]),
    ]

"""Numbers for the entries about losses, distributions and language models: plain Python and mpmath."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction

from gradproof.symbolic.catalogue.evidence import Evidence, apart, at, at_least, at_most, holds, same
from gradproof.symbolic.catalogue.losses import SMOOTHED_BATCH, SMOOTHED_BATCH_SHAPES
from gradproof.symbolic.phrases import phrase

Row = list[float]
Table = list[Row]


def cross_entropy() -> list[Evidence]:
    """log_softmax at (.1, .9) with cotangent (1, 1): the entries of the gradient are ±0.3799."""
    found = at("sum(G * log_softmax(l))", {"l": "n", "G": "n"}, {"l": [0.1, 0.9], "G": [1, 1]}, ["l"])
    return [same("log_softmax at (.1, .9), cotangent (1, 1)", found["l_bar"], [0.3799, -0.3799], 5e-5)]


def label_smoothing() -> list[Evidence]:
    """Three rows, the last ignored."""
    given = {"l": [[2, 1, 0], [0, 1, 2], [1, 1, 1]], "y": [0, 2, 0], "keep": [1, 1, 0], "epsilon": 0.1}
    found = at(SMOOTHED_BATCH, SMOOTHED_BATCH_SHAPES, given, ["l"])
    plain = at(SMOOTHED_BATCH, SMOOTHED_BATCH_SHAPES, {**given, "epsilon": 0.0})
    return [
        same("mean loss of the two rows that count", found["value"], 0.5076059644, 5e-11),
        same("gradient of the ignored row", found["l_bar"][2], [0.0, 0.0, 0.0], 0.0),
        apart("the loss without smoothing", plain["value"], found["value"], 0.05),
    ]


def entropy(p: Sequence[float]) -> float:
    """−Σ p log p in nats, with 0 log 0 = 0.

    >>> round(entropy([0.5, 0.5, 0.0]), 6)
    0.693147
    """
    return -math.fsum(x * math.log(x) for x in p if x > 0)


def information(joint: Table) -> float:
    """The mutual information of the two axes of a joint distribution.

    >>> information([[0.25, 0.25], [0.25, 0.25]]), round(information([[0.5, 0.0], [0.0, 0.5]]), 6)
    (0.0, 0.693147)
    """
    rows, columns = [math.fsum(row) for row in joint], [math.fsum(column) for column in zip(*joint, strict=True)]
    terms = ((p, rows[i] * columns[j]) for i, row in enumerate(joint) for j, p in enumerate(row))
    return math.fsum(p * math.log(p / q) for p, q in terms if p > 0)


def divergences() -> list[Evidence]:
    """The divergence in both directions."""
    shapes, p, q = {"p": "n", "q": "n"}, [0.9, 0.1], [0.5, 0.5]
    one = at("sum(p * log(p/q))", shapes, {"p": p, "q": q})["value"]
    other = at("sum(p * log(p/q))", shapes, {"p": q, "q": p})["value"]
    return [
        same("KL((.9, .1) ‖ (.5, .5))", one, 0.36806, 5e-6),
        same("KL((.5, .5) ‖ (.9, .1))", other, 0.51083, 5e-6),
    ]


def mutual_information() -> list[Evidence]:
    """Two contexts, two words: the bound before training, after training, and I, which stays."""
    joint = [[0.4, 0.1], [0.1, 0.4]]
    true = information(joint)

    def bound(model: Table) -> float:
        cross = -math.fsum(joint[c][w] * math.log(model[c][w]) for c in range(2) for w in range(2))
        return entropy([0.5, 0.5]) - cross

    untrained, trained = bound([[0.3, 0.7], [0.5, 0.5]]), bound([[0.8, 0.2], [0.2, 0.8]])
    rng = random.Random(0)
    gaps = []
    for _ in range(200):
        first, second = rng.random(), rng.random()
        gaps.append(bound([[first, 1 - first], [second, 1 - second]]) - true)
    return [
        apart("H(w) − cross-entropy of an untrained model, against I", untrained, true, 0.1),
        same("the same at the true model: the bound is tight", trained, true),
        at_most("largest H(w) − cross-entropy − I over 200 random models", max(gaps), 0.0, 1e-12),
    ]


def _distribution(rng: random.Random, size: int) -> Row:
    raw = [rng.random() ** 2 + 1e-3 for _ in range(size)]
    return [x / math.fsum(raw) for x in raw]


def _product(a: Table, b: Table) -> Table:
    return [
        [math.fsum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a
    ]


def bottleneck() -> list[Evidence]:
    """The objective on a small case, and both informations along random chains Y → X → T₁ → T₂."""
    rng = random.Random(1)
    rises_x, rises_y = [], []
    for _ in range(300):
        p = _distribution(rng, 4)
        joint_yx = [
            [p[x] * q for x, q in enumerate(row)] for row in zip(*[_distribution(rng, 2) for _ in p], strict=True)
        ]
        first = [_distribution(rng, 3) for _ in range(4)]
        second = [_distribution(rng, 3) for _ in range(3)]
        joint_xt = [[p[x] * k for k in first[x]] for x in range(4)]
        rises_x.append(information(_product(joint_xt, second)) - information(joint_xt))
        one = _product(joint_yx, first)
        rises_y.append(information(_product(one, second)) - information(one))
    # X uniform on four values, Y = whether X ≥ 2: T = X, T = Y and T constant, at β = 2
    full = [[0.25 * (x == t) for t in range(4)] for x in range(4)]
    half = [[0.25 * ((x >= 2) == t) for t in range(2)] for x in range(4)]
    label = [[0.25 * ((x >= 2) == y) for x in range(4)] for y in range(2)]
    relevant = [[0.5, 0.0], [0.0, 0.5]]
    objective = {
        "T = X": information(full) - 2 * information(label),
        "T = Y": information(half) - 2 * information(relevant),
        "T constant": 0.0,
    }
    return [
        at_most("largest rise of I(X;T) from one layer to the next, 300 chains", max(rises_x), 0.0, 1e-12),
        at_most("largest rise of I(T;Y), 300 chains", max(rises_y), 0.0, 1e-12),
        holds("objective at β = 2: the bottleneck is T = Y", min(objective, key=objective.__getitem__) == "T = Y"),
        same("its value, −log 2", objective["T = Y"], -math.log(2)),
        same("the value of T = X, which keeps everything", objective["T = X"], 0.0),
    ]


# ------------------------------------------------------------------------------------------------------ language models

WordModel = Callable[[tuple[int, ...]], Row]  # prefix → distribution of the next word


def random_model(seed: int, words: int) -> WordModel:
    """A model whose next word depends on the whole prefix.

    >>> model = random_model(0, 3); model((0, 1)) != model((1, 1)), round(sum(model((2,))), 12)
    (True, 1.0)
    """

    def model(prefix: tuple[int, ...]) -> Row:
        return _distribution(random.Random(repr((seed, prefix))), words)

    return model


def probability(model: WordModel, sequence: Sequence[int]) -> float:
    """The product of the conditionals."""
    return math.prod(model(tuple(sequence[:t]))[word] for t, word in enumerate(sequence))


def factorisation() -> list[Evidence]:
    """Products of conditionals, summed over all sequences of three words of length 1 to 5."""
    model = random_model(0, 3)
    found = []
    for length in range(1, 6):
        total = math.fsum(probability(model, s) for s in itertools.product(range(3), repeat=length))
        found.append(same(phrase("total probability of the {} sequences of length {}", 3**length, length), total, 1.0))
    return found


def batch_loss() -> list[Evidence]:
    """Two sequences of 1 and 3 words: a mean over sequences is not the mean over words."""
    from gradproof.symbolic.catalogue.language_models import BATCH, BATCH_SHAPES

    o = [[[1, 0], [5, -5], [-5, 5]], [[0, 1], [2, 0], [0, 3]]]
    given = {"o": o, "w": [[0, 0, 0], [0, 0, 0]], "keep": [[1, 0, 0], [1, 1, 1]]}
    found = at(BATCH, BATCH_SHAPES, given, ["o"])
    other = [[[1, 0], [9, 9], [7, 1]], o[1]]
    padded = at(BATCH, BATCH_SHAPES, {**given, "o": other})
    by_word = found["value"] * 2 / 4
    nll = [[math.log(math.fsum(math.exp(x) for x in row)) - row[0] for row in rows] for rows in o]
    by_hand = (nll[0][0] + math.fsum(nll[1])) / 2
    return [
        same("(1/B) Σ_b Σ_t −log P, by hand", found["value"], by_hand),
        apart("the mean over the 4 words instead", by_word, found["value"], 0.5),
        same("other logits in the padding: the loss", padded["value"], found["value"], 0.0),
        same("the gradient in the padding", found["o_bar"][0][1:], [[0.0, 0.0], [0.0, 0.0]], 0.0),
    ]


def accumulation() -> list[Evidence]:
    """Micro-batches of 1 and 3 words: equal weights give another gradient than the large batch."""
    sums, counts = [2.0, 3.0], [1, 3]
    large = sum(sums) / sum(counts)
    plain = sum(s / n for s, n in zip(sums, counts, strict=True)) / 2
    weighted = sum(n * (s / n) for s, n in zip(sums, counts, strict=True)) / sum(counts)
    return [
        same("weighted by the number of words", weighted, large),
        apart("weighted equally", plain, large, 0.2),
        same("the two gradients, equal weights against the large batch", [plain, large], [1.5, 1.25]),
    ]


def markov() -> list[Evidence]:
    """One causal attention layer on scalar embeddings: the last output against the first word of four."""
    from gradproof.symbolic.catalogue.language_models import WINDOW, WINDOW_SHAPES

    def last(first: float, window: int) -> float:
        given = {"x": [first, 0.5, -0.3, 0.8], "a": 1.5, "b": window}
        return float(at(WINDOW, WINDOW_SHAPES, given)["z"][3])

    change = abs(last(2.0, 4) - last(-1.0, 4))
    return [
        at_least("change of the last output when only the first of four words changes", change, 0.1),
        same("the same with attention restricted to the last 3 words", last(2.0, 3), last(-1.0, 3), 0.0),
    ]


def perplexity() -> list[Evidence]:
    """A uniform model, overflow, and a word of probability zero."""
    from gradproof.symbolic.catalogue.language_models import PERPLEXITY

    shapes = {"o": "T,N", "w": "T:index=N"}
    uniform = at(PERPLEXITY, shapes, {"o": [[0, 0, 0, 0]] * 3, "w": [0, 1, 3]})["value"]
    skewed = at(PERPLEXITY, shapes, {"o": [[1, 2, 3, 4]] * 2, "w": [3, 0]})["value"]
    total = math.fsum(math.exp(k) for k in (1, 2, 3, 4))
    by_hand = (math.exp(4) / total * math.exp(1) / total) ** -0.5
    return [
        same("a uniform model over 4 words", uniform, 4.0),
        same("the inverse geometric mean of the probabilities", skewed, by_hand),
    ]


def sequences() -> list[Evidence]:
    """Sequences counted one by one."""
    return [
        same(f"V = {v}, T = {t}", sum(1 for _ in itertools.product(range(v), repeat=t)), v**t, 0.0)
        for v, t in ((2, 10), (3, 6), (7, 4), (1, 5))
    ]


def rank(matrix: Sequence[Sequence[Fraction]]) -> int:
    """The rank of a matrix of fractions, by elimination.

    >>> rank([[Fraction(1), Fraction(2)], [Fraction(2), Fraction(4)]])
    1
    """
    rows = [list(row) for row in matrix]
    found = 0
    for column in range(len(rows[0])):
        pivot = next((row for row in rows[found:] if row[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(found, pivot)
        for row in rows[found + 1 :]:
            factor = row[column] / pivot[column]
            row[:] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
        found += 1
    return found


def tensor_rank() -> list[Evidence]:
    """A random joint distribution of four words out of three: full rank, and exactly its product of conditionals."""
    rng = random.Random(2)
    words, weights = range(3), {s: Fraction(rng.randint(1, 50)) for s in itertools.product(range(3), repeat=4)}
    total = sum(weights.values())
    joint = {s: w / total for s, w in weights.items()}

    def prefix(start: tuple[int, ...]) -> Fraction:
        return sum((p for s, p in joint.items() if s[: len(start)] == start), Fraction(0))

    def product(s: tuple[int, ...]) -> Fraction:
        return math.prod((prefix(s[: t + 1]) / prefix(s[:t]) for t in range(4)), start=Fraction(1))

    pairs = list(itertools.product(words, repeat=2))
    unfolded = [[joint[a + b] for b in pairs] for a in pairs]
    rebuilt = [[product(a + b) for b in pairs] for a in pairs]
    return [
        same("rank of the joint tensor, unfolded to 9 × 9", rank(unfolded), 9, 0.0),
        same("rank of the product of its conditionals", rank(rebuilt), 9, 0.0),
        holds("the product of conditionals is the joint tensor, in fractions", rebuilt == unfolded),
    ]


def intervention() -> list[Evidence]:
    """do(w₂ = 1) and conditioning on w₂ = 1, by enumeration of three words out of three."""
    model = random_model(3, 3)
    joint = {s: probability(model, s) for s in itertools.product(range(3), repeat=3)}
    observed = {s: p for s, p in joint.items() if s[1] == 1}
    total = math.fsum(observed.values())
    # the truncated factorisation: the factor of the second word is left out
    forced = {s: p / model(s[:1])[1] for s, p in observed.items()}
    past = model(())

    def first(table: dict[tuple[int, ...], float], scale: float) -> Row:
        return [math.fsum(p for s, p in table.items() if s[0] == a) / scale for a in range(3)]

    return [
        same("the truncated factorisation sums to 1", math.fsum(forced.values()), 1.0),
        same("P(w₁ | do(w₂ = 1)) is P(w₁)", first(forced, 1.0), past),
        apart("P(w₁ | w₂ = 1)", first(observed, total), past, 0.05),
    ]

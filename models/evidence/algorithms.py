"""Numbers for the entries about algorithms: our implementations against independent ones in plain Python."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.decoding.filters import top_p_filter
from gradproof.models.decoding.metrics import bleu
from gradproof.models.decoding.metrics import perplexity as perplexity_of
from gradproof.models.decoding.search import beam_search, greedy, sample
from gradproof.models.evidence import losses as evidence_losses
from gradproof.models.evidence import optimisation as evidence_optimisation
from gradproof.models.evidence.losses import WordModel, random_model
from gradproof.models.nets.quantise import quantise
from gradproof.models.training import tiny
from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.entry import get
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at_least, at_most, holds, same

Array = NDArray[Any]
END = 3  # the end token of the models with four words


def stepper(model: WordModel) -> Callable[[Any, Any], tuple[Array, Any]]:
    """A model of plain Python as the decoders want it."""

    def step(tokens: Any, state: Any) -> tuple[Array, Any]:
        return np.log([model(tuple(row)) for row in tokens.tolist()]), state

    return step


def _log(model: WordModel, prompt: Sequence[int], words: Sequence[int]) -> float:
    return math.fsum(math.log(model((*prompt, *words[:t]))[word]) for t, word in enumerate(words))


def _greedy(model: WordModel, prompt: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """Append the best word until the end token or the limit."""
    words: tuple[int, ...] = ()
    while len(words) < limit:
        row = model((*prompt, *words))
        best = row.index(max(row))
        if best == END:
            break
        words += (best,)
    return words


def greedy_search() -> list[Evidence]:
    """Forty random models, and a tie."""
    wrong = 0
    for seed in range(40):
        model = random_model(seed, 4)
        (found,) = greedy(stepper(model), None, [[seed % 3]], limit=6, eos=END)
        wrong += found.tokens != _greedy(model, (seed % 3,), 6)
    (tie,) = greedy(stepper(lambda prefix: [0.1, 0.4, 0.4, 0.1]), None, [[0]], limit=2, eos=END)
    return [
        same("40 random models: outputs that differ from a loop", wrong, 0, 0.0),
        same("a tie of words 1 and 2", list(tie.tokens), [1, 1], 0.0),
    ]


def autoregressive() -> list[Evidence]:
    """Sampled texts against the distribution that the conditionals give, the limit, the end token, the seed."""
    model = random_model(1, 4)
    count = 4000
    found = sample(stepper(model), None, [[0]] * count, limit=2, seed=0, eos=END)
    seen = Counter((*h.tokens, END) if h.finished else h.tokens for h in found)
    exact: dict[tuple[int, ...], float] = {(END,): model((0,))[END]}
    for a in range(3):
        for b in range(4):
            exact[a, b] = model((0,))[a] * model((0, a))[b]
    worst = max(abs(seen[words] / count - p) / math.sqrt(p * (1 - p) / count) for words, p in exact.items())
    again = sample(stepper(model), None, [[0]] * 50, limit=2, seed=0, eos=END)
    return [
        same("probability of all texts that end or reach the limit", math.fsum(exact.values()), 1.0),
        at_most("largest deviation of a frequency, in standard errors, 4000 texts", worst, 4.5),
        at_most("longest text at a limit of 2 words", max(len(h.tokens) for h in found), 2),
        holds("no text goes on after the end token", all(END not in h.tokens for h in found)),
        holds("the same seed gives the same texts", [h.tokens for h in again] == [h.tokens for h in found[:50]]),
    ]


def _kept(p: Sequence[float], threshold: float) -> int:
    return int(np.isfinite(top_p_filter(np.log(p), threshold)).sum())


def _exceeds(p: Sequence[float], threshold: float) -> int:
    """The document's rule: words until the sum exceeds the threshold, in exact tenths."""
    total, tenths = 0, sorted((round(x * 100) for x in p), reverse=True)
    for count, weight in enumerate(tenths, 1):
        total += weight
        if total > round(threshold * 100):
            return count
    return len(tenths)


def top_p() -> list[Evidence]:
    """Both rules on small distributions."""
    tie = np.isfinite(top_p_filter(np.log([0.25, 0.25, 0.25, 0.25]), 0.5)).tolist()
    return [
        same("kept of (.5, .41, .09) at .9", _kept([0.5, 0.41, 0.09], 0.9), 2, 0.0),
        same("kept of (.4, .3, .2, .1) at .7", _kept([0.4, 0.3, 0.2, 0.1], 0.7), 2, 0.0),
        apart("the same where the sum must exceed .7, as the document says", _exceeds([0.4, 0.3, 0.2, 0.1], 0.7), 2, 1),
        same("kept of (.4, .6) at p = 0", _kept([0.4, 0.6], 0.0), 1, 0.0),
        same("kept of (.4, .6) at p = 1", _kept([0.4, 0.6], 1.0), 2, 0.0),
        same("four equal words at .5: the lowest two", tie, [True, True, False, False], 0.0),
    ]


def _all_texts(limit: int) -> Iterable[tuple[int, ...]]:
    """Every text that ends within the limit (END last), or reaches it."""
    for length in range(limit):
        yield from ((*words, END) for words in itertools.product(range(END), repeat=length))
    yield from itertools.product(range(END), repeat=limit)


def beam() -> list[Evidence]:
    """A beam of width V^T against brute force over all texts; a narrow one; a wider one that is worse."""
    wrong = missed = 0
    for seed in range(25):
        model = random_model(seed, 4)
        best = max(_log(model, (0,), words) for words in _all_texts(3))
        wrong += abs(_beam_score(model, 3, 4**3) - best) > 1e-12
        missed += _beam_score(model, 3, 1) < best - 1e-12
    one, two = (_beam_score(random_model(8, 4), 4, width) for width in (1, 2))
    return [
        same("beams of width V^T whose score differs from brute force, 25 models", wrong, 0, 0.0),
        at_least("models in which a beam of width 1 misses the best text", missed, 1),
        at_most("log-probability from width 2 less that from width 1, model 8: worse", two - one, -0.2),
    ]


def _beam_score(model: WordModel, limit: int, width: int) -> float:
    ((best,),) = beam_search(stepper(model), None, [[0]], limit=limit, width=width, alpha=0.0, eos=END)
    return best.log_probability


def quantisation() -> list[Evidence]:
    """Random tensors at 1 to 8 bits against the formula element by element, and constant tensors."""
    rng = random.Random(0)
    wrong = 0
    for bits in (1, 2, 4, 8):
        x = [rng.gauss(0, 1) for _ in range(60)]
        low, high = min(x), max(x)
        codes = [round((value - low) / (high - low) * (2**bits - 1)) for value in x]
        wrong += codes != quantise(np.array(x), bits).levels().tolist()
    constants = [quantise(np.full(5, c), 8).dequantise().tolist() == [c] * 5 for c in (0.1, -3.7, 0.0, 1e30)]
    return [
        same("codes that differ from the formula, 1 to 8 bits", wrong, 0, 0.0),
        holds("constant tensors come back exactly", all(constants)),
    ]


def grid() -> list[Evidence]:
    """Values on the grid come back as they were."""
    worst = 0.0
    for bits in (1, 3, 8):
        x = np.linspace(-1.0, 2.0, 2**bits)
        worst = max(worst, float(np.abs(quantise(x, bits).dequantise() - x).max()))
    return [same("largest error on the grid, 1 to 8 bits", worst, 0.0, 5e-16)]


def quantisation_error() -> list[Evidence]:
    """The bound at random tensors, and where it is reached: half-way between two levels."""
    rng = np.random.default_rng(0)
    ratios = []
    for bits in (1, 2, 4, 8):
        x = rng.normal(size=2000)
        bound = (x.max() - x.min()) / (2 * (2**bits - 1))
        ratios.append(float(np.abs(quantise(x, bits).dequantise() - x).max() / bound))
    x = np.array([0.0, 0.5, 3.0])
    tight = float(np.abs(quantise(x, 2).dequantise() - x).max())
    return [
        at_most("largest error over its bound, four random tensors", max(ratios), 1.0, 1e-12),
        same("(0, .5, 3) at 2 bits: the error is the bound", tight, 0.5),
    ]


def _bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """BLEU by its definition, one reference each, n up to 4."""
    log = 0.0
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    for n in range(1, 5):
        hit = total = 0
        for h, ref in zip(hypotheses, references, strict=True):
            pool = [tuple(ref[i : i + n]) for i in range(len(ref) - n + 1)]
            for gram in (tuple(h[i : i + n]) for i in range(len(h) - n + 1)):
                total += 1
                if gram in pool:
                    pool.remove(gram)
                    hit += 1
        if not hit:
            return 0.0
        log += math.log(hit / total) / 4
    return math.exp(log) * (1.0 if c > r else math.exp(1 - r / c))


def bleu_scores() -> list[Evidence]:
    """“yes” against “no”, an exact copy, and random corpora against the definition and against sacrebleu."""
    rng = random.Random(0)
    words = ["a", "b", "c", "d", "e"]

    def pair() -> tuple[list[str], list[str]]:
        reference = [rng.choice(words) for _ in range(rng.randint(6, 14))]
        return [w if rng.random() < 0.8 else rng.choice(words) for w in reference[: rng.randint(5, 14)]], reference

    pairs = [[pair() for _ in range(5)] for _ in range(20)]
    corpora = [([h for h, _ in five], [r for _, r in five]) for five in pairs]
    ours = [bleu(h, [[ref] for ref in refs]).score for h, refs in corpora]
    rows = [
        same("“yes” against “no”", bleu([["yes"]], [[["no"]]]).score, 0.0, 0.0),
        same("a copy of ten words", bleu([words * 2], [[words * 2]]).score, 1.0),
        same("20 random corpora, by the definition", ours, [_bleu(h, refs) for h, refs in corpora]),
    ]
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        return rows
    judge = BLEU(smooth_method="none", tokenize="none", force=True)
    theirs = [
        judge.corpus_score([" ".join(h) for h in hs], [[" ".join(r) for r in refs]]).score / 100 for hs, refs in corpora
    ]
    return [*rows, same("the same by sacrebleu (its scale is 100)", ours, theirs, 1e-10)]


def perplexity() -> list[Evidence]:
    """The entry's own numbers, overflow, a word of probability zero, and the metric of the models."""
    return [
        *evidence_losses.perplexity(),
        same("the metric: a uniform model over 4 words", perplexity_of([math.log(4)] * 3), 4.0),
        holds("mean 800 overflows float64 and is infinite", math.isinf(perplexity_of([800.0]))),
        holds("a word of probability zero makes it infinite", math.isinf(perplexity_of([math.inf, 0.0]))),
    ]


def adam() -> list[Evidence]:
    """The entry's own numbers; the optimiser of the models, and torch's where it is installed."""
    from gradproof.models.training.optimisers import Optimiser

    gradients = np.random.default_rng(0).normal(size=(50, 6))
    theta = np.linspace(-1.0, 1.0, 6)
    optimiser = Optimiser("adam", 6)
    for g in gradients:
        optimiser.step(theta, g, 0.01)
    by_hand, m, v = np.linspace(-1.0, 1.0, 6), np.zeros(6), np.zeros(6)
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        by_hand -= 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    rows = [
        *evidence_optimisation.adam(),
        same("50 steps of the generated optimiser, by a loop", theta.tolist(), by_hand.tolist()),
    ]
    try:
        import torch
    except ImportError:
        return rows
    parameter = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64, requires_grad=True)
    judge = torch.optim.Adam([parameter], lr=0.01)
    for g in gradients:
        parameter.grad = torch.tensor(g)
        judge.step()
    return [*rows, same("the same by torch.optim.Adam", theta.tolist(), parameter.tolist(), 1e-12)]


# ------------------------------------------------------------------------------------------------------- the tiny model


def _printed(rows: Iterable[tiny.PrintedNumber]) -> list[Evidence]:
    """The computed number, rounded to the document's decimals, must be the documented one."""
    return [same(row.label, row.computed, row.documented, 0.5000001 * 10**-row.decimals) for row in rows]


def tiny_gradients() -> list[Evidence]:
    return _printed(tiny.evidence())


def tiny_coincidence() -> list[Evidence]:
    start, other = tiny.coincidence()
    return [same(start.label, start.computed, 0.0), apart(other.label, other.computed, 0.0, 0.05)]


def loss_and_weight() -> list[Evidence]:
    found = tiny.loss_and_weight()
    loss, weight = [found[1].computed - found[0].computed, found[3].computed - found[2].computed]
    return [*_printed(found), holds("loss and weight both fall", loss < 0 and weight < 0)]


def curvature() -> list[Evidence]:
    """The Hessian of the tiny model by differences of the generated gradients: symmetric, with negative eigenvalues."""
    hessian = tiny_hessian()
    values = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    rows = [
        at_most(
            "largest asymmetry of the Hessian of the 24 parameters", float(np.abs(hessian - hessian.T).max()), 1e-7
        ),
        at_most("its smallest eigenvalue: the loss is not convex in the parameters", float(values[0]), -0.1),
        at_least("its largest eigenvalue", float(values[-1]), 1.0),
    ]
    entry = compile_numpy(derive_entry(get("hessian.loss")))
    rng = np.random.default_rng(0)
    least = min(float(np.linalg.eigvalsh(entry(l=rng.normal(size=5), y=np.array(0))[1]["l"]).min()) for _ in range(100))
    return [*rows, at_least("smallest eigenvalue of diag(p) − ppᵀ, 100 random p", least, -1e-15)]


def tiny_hessian(step: float = 1e-5) -> Array:
    """(24,24): central differences of the gradients that are generated from the derivation."""
    start = tiny.start()
    columns = []
    for name in tiny.NAMES:
        for place in np.ndindex(start[name].shape):
            sides = []
            for sign in (step, -step):
                moved = {key: value.copy() for key, value in start.items()}
                moved[name][place] += sign
                gradients = tiny.value_and_gradients(moved)[1]
                sides.append(np.concatenate([np.asarray(gradients[key]).reshape(-1) for key in tiny.NAMES]))
            columns.append((sides[0] - sides[1]) / (2 * step))
    return np.array(columns)

"""Numbers for the entries about sequence-to-sequence models, decoding and clipping, by the code of the models."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.decoding.search import beam_search, greedy
from gradproof.models.errors import TrainingError
from gradproof.models.training.optimisers import clip
from gradproof.numeric.compile import compile_numpy
from gradproof.numeric.random_inputs import random_inputs, random_sizes
from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.evidence import Evidence, at_most, holds, same
from gradproof.symbolic.catalogue.recurrent import CLIP
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.phrases import phrase

Array = NDArray[Any]
TORCH_DELTA = 1e-6  # torch divides by the norm plus this


def clipping() -> list[Evidence]:
    """The equation, the optimiser's clipping and torch's agree; huge entries are no trouble; NaN and inf are errors."""
    rng = np.random.default_rng(0)
    gradients = {"A": rng.normal(size=(4, 3)), "b": rng.normal(size=5)}
    flat = np.concatenate([g.reshape(-1) for g in gradients.values()])
    clipped, norm = clip(gradients, 0.5)
    joined = np.concatenate([g.reshape(-1) for g in clipped.values()])
    formula = compile_numpy(build(CLIP, {"g": "n", "tau": ""}))(g=flat, tau=0.5)["y"]
    huge, _ = clip({"W": np.full(100, 1e20, np.float32)}, 1.0)
    found = [
        at_most(
            "the formula against the optimiser's clipping: largest difference",
            float(np.abs(joined - formula).max()),
            1e-15,
        ),
        same("norm after clipping to ½", float(np.linalg.norm(joined)), 0.5, 1e-14),
        same(
            "the cosine with the gradient: the direction is kept",
            float(joined @ flat / np.linalg.norm(joined) / norm),
            1.0,
            1e-14,
        ),
        same("100 float32 entries of 1e20, clipped to 1", float(huge["W"][0]), 0.1, 1e-7),
        *(holds(phrase("an entry that is {} is an error", bad), _refused(bad)) for bad in (math.inf, math.nan)),
    ]
    try:
        import torch
    except ImportError:
        return found
    tensors = [torch.zeros(g.shape, dtype=torch.float64, requires_grad=True) for g in gradients.values()]
    for tensor, g in zip(tensors, gradients.values(), strict=True):
        tensor.grad = torch.as_tensor(g.copy())
    torch.nn.utils.clip_grad_norm_(tensors, 0.5)
    theirs = np.concatenate([t.grad.numpy().reshape(-1) for t in tensors if t.grad is not None])
    ours, _ = clip(gradients, 0.5, TORCH_DELTA)
    mine = np.concatenate([g.reshape(-1) for g in ours.values()])
    return [
        *found,
        at_most(
            "torch's clip_grad_norm_, with its 1e−6: largest difference", float(np.abs(mine - theirs).max()), 1e-15
        ),
        same(
            "torch's result over the formula's",
            float((theirs / joined).mean()),
            float(norm / (norm + TORCH_DELTA)),
            1e-12,
        ),
    ]


def _refused(bad: float) -> bool:
    try:
        clip({"W": np.array([1.0, bad])}, 1.0)
    except TrainingError:
        return True
    return False


# P(next | word before): greedy takes word 0 first (0.5) and is then left with thirds; word 1 (0.4) leads to 0.9
TABLE = np.log(np.array([[0.34, 0.33, 0.33], [0.05, 0.9, 0.05], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.4, 0.1]]))
# word 0 leads to thirds and word 2 to 0.9 (after it), but a beam of 2 is filled by words 0 and 1
START, LENGTH, WORDS = 3, 3, 3


def _step(tokens: Any, state: Any) -> tuple[Array, Any]:
    return TABLE[tokens[:, -1]], state


def argmax() -> list[Evidence]:
    """Greedy, beams of several widths and brute force on a Markov chain with three words."""
    best = _best(TABLE)
    (first,) = greedy(_step, None, [[START]], limit=LENGTH, eos=None)
    full = beam_search(_step, None, [[START]], limit=LENGTH, width=WORDS**LENGTH, eos=None)[0][0]
    found = [
        same("a beam of width V^T finds the best of all sequences", full.log_probability, best, 1e-12),
        holds("greedy does not", first.log_probability < best - 0.1, first.log_probability),
    ]
    table = worse_than_greedy()

    def step(tokens: Any, state: Any) -> tuple[Array, Any]:
        return table[tokens.shape[1] - 1][tokens[:, -1]], state

    (greedy_one,) = greedy(step, None, [[0]], limit=3, eos=None)
    beam = beam_search(step, None, [[0]], limit=3, width=2, eos=None)[0][0]
    lost = beam.log_probability < greedy_one.log_probability
    shown = f"{math.exp(beam.log_probability):.4g} < {math.exp(greedy_one.log_probability):.4g}"
    return [*found, holds("a beam of width 2 that scores worse than greedy", lost, shown if lost else "not found")]


def _best(table: Array) -> float:
    """The best log-probability of any sequence, by dynamic programming from the end."""
    value = np.zeros(WORDS)
    for _ in range(LENGTH - 1):
        value = (table[:WORDS] + value[None, :]).max(axis=1)
    return float((table[START] + value).max())


def worse_than_greedy() -> Array:
    """Transition tables of three steps: greedy's prefix (word 0, then word 0) leaves a beam of 2 after two steps.

    Step 1: 0 with 0.5, 1 with 0.4. Step 2: after 0 all five words share 0.2 each; after 1 two words have 0.45 each, so
    both places of the beam go to them (0.18 against 0.1). Step 3: after 0–0 the next word is almost certain.
    """
    words = 5
    tables = np.full((3, words, words), 1 / words)
    tables[0, 0] = [0.5, 0.4, 0.1 / 3, 0.1 / 3, 0.1 / 3]
    tables[1, 0] = [0.204, 0.199, 0.199, 0.199, 0.199]
    tables[1, 1] = [0.02, 0.04, 0.04, 0.45, 0.45]
    tables[2, 0] = [0.96, 0.01, 0.01, 0.01, 0.01]
    return np.log(tables)


def total_probability() -> list[Evidence]:
    """The encoder–decoder of `seq2seq.loss`: exp(−L) summed over all V^T target sentences of one source is 1."""
    entry = get("seq2seq.loss")
    system = build(entry.expression, entry.shapes)
    loss = compile_numpy(system)
    found = []
    for words, length in ((2, 3), (3, 4)):
        fixed = {"V": words, "T": length, "B": 1}
        sizes = {size: fixed.get(str(size), value) for size, value in random_sizes(system).items()}
        given = random_inputs(system, sizes)
        total = 0.0
        for sentence in product(range(words), repeat=length):
            targets = np.array([sentence])
            shifted = np.concatenate([np.zeros((1, 1), int), targets[:, :-1]], axis=1)
            total += float(np.exp(-loss(**{**given, "y": targets, "w": shifted})["L"]))
        found.append(same(phrase("Σ P(y | x) over all {} sentences", f"{words}^{length}"), total, 1.0, 1e-12))
    return found

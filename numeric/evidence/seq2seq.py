"""Numbers for the entries about sequence-to-sequence models, computed with the generated code."""

from __future__ import annotations

from itertools import product

import numpy as np

from gradproof.numeric.compile import compile_numpy
from gradproof.numeric.random_inputs import random_inputs, random_sizes
from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.evidence import Evidence, same
from gradproof.symbolic.language.reader import build


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
        found.append(same(f"Σ P(y | x) over all {words}^{length} sentences", total, 1.0, 1e-12))
    return found

"""The catalogue of documented formulas: `get("attention.block_backward")`, `entries()`, `add(Entry(...))`.

>>> get("softmax.jacobian").verdict
'proved'
"""

from gradproof.symbolic.catalogue import (
    analogies,
    attention,
    dynamics,
    inference,
    language_models,
    losses,
    multihead,
    normalisation,
    optimisation,
    position,
    recurrent,
    seq2seq,
    transformer,
)
from gradproof.symbolic.catalogue.entry import (
    Claim,
    Entry,
    Identity,
    Moment,
    add,
    complete,
    entries,
    get,
    known,
    remove,
)

complete()

__all__ = [
    "Claim",
    "Entry",
    "Identity",
    "Moment",
    "add",
    "analogies",
    "attention",
    "dynamics",
    "entries",
    "get",
    "inference",
    "known",
    "language_models",
    "losses",
    "multihead",
    "normalisation",
    "optimisation",
    "position",
    "recurrent",
    "remove",
    "seq2seq",
    "transformer",
]

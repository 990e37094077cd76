"""The catalogue of documented formulas: `get("attention.block_backward")`, `entries()`, `add(Entry(...))`.

>>> get("softmax.jacobian").verdict
'proved'
"""

from gradproof.symbolic.catalogue import attention, language_models, losses, optimisation, recurrent, transformer
from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, Moment, add, entries, get, known, remove

__all__ = [
    "Claim",
    "Entry",
    "Identity",
    "Moment",
    "add",
    "attention",
    "entries",
    "get",
    "known",
    "language_models",
    "losses",
    "optimisation",
    "recurrent",
    "remove",
    "transformer",
]

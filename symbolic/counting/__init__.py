"""Counting parameters, operations, memory traffic and what a backward pass keeps, from equations and their ranges.

>>> from gradproof.symbolic.language.reader import build
>>> shapes = {"Q": "n,d_k", "K": "n,d_k", "V": "n,d_v"}
>>> found = cost(build("softmax(Q @ K.T / sqrt(d_k)) @ V", shapes))
>>> print(found.text)
2·n²·d_k + 2·n²·d_v + 4·n²
>>> print(found.order)
O(n²·d_k + n²·d_v)
>>> found.at({"n": 128, "d_k": 64, "d_v": 64})
4259840

One multiply–add is two operations; what else counts is said in `operations.py`.
"""

from __future__ import annotations

from gradproof.symbolic.counting.cost import Cost, EquationCost, backward_reads, cost, parameters, shapes, summed
from gradproof.symbolic.counting.memory import BYTES, entries
from gradproof.symbolic.counting.operations import Operations
from gradproof.symbolic.counting.sizes import leading, order, size_text, size_value, with_sizes

__all__ = [
    "BYTES",
    "Cost",
    "EquationCost",
    "Operations",
    "backward_reads",
    "cost",
    "entries",
    "leading",
    "order",
    "parameters",
    "shapes",
    "size_text",
    "size_value",
    "summed",
    "with_sizes",
]

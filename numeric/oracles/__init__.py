"""Independently written forwards, with torch's own modules where they exist, that generated code is checked against.

    @oracle("attention.full")
    def attention(Q, K, V): return F.scaled_dot_product_attention(Q, K, V)

An oracle takes the arrays of its entry by name and returns the entry's output; it knows nothing of index equations.
The modules that hold them are listed here and imported when the first one is asked for, since they import torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

MODULES = ("recurrent", "attention", "transformer", "losses", "analogies")
Oracle = Callable[..., Any]
_ORACLES: dict[str, Oracle] = {}


def oracle(*identifiers: str) -> Callable[[Oracle], Oracle]:
    """Register the forward of one or more entries."""

    def register(function: Oracle) -> Oracle:
        for identifier in identifiers:
            if identifier in _ORACLES:
                raise ValueError(f"{identifier} has an oracle already: {_ORACLES[identifier].__name__}")
            _ORACLES[identifier] = function
        return function

    return register


def oracles() -> dict[str, Oracle]:
    """Every oracle by the identifier of its entry."""
    for name in MODULES:
        importlib.import_module(f"gradproof.numeric.oracles.{name}")
    return _ORACLES


def find(identifier: str) -> Oracle | None:
    """The oracle of an entry, if there is one."""
    return oracles().get(identifier)

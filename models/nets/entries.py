"""The catalogue's entries as systems that blocks are made of."""

from __future__ import annotations

from functools import lru_cache

from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.derivation import documented
from gradproof.symbolic.equations.system import System


@lru_cache
def entry(identifier: str) -> System:
    """The equations that an entry of the catalogue states, the very ones that are printed.

    >>> print(*(equation.target for equation in entry("ffn.backward").equations))
    B[o0, o1] C[o0, o1] Y[o0, o1]
    """
    return documented(get(identifier))[1]

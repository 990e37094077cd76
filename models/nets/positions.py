"""Positions: sinusoids that are added, and rotation angles (RoPE), both with the frequencies ω_i = base^(−2i/d)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.errors import TrainingError
from gradproof.numeric.compile import Compiled, compile_numpy
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.language.reader import build

Array = NDArray[Any]

# frequencies of position.sinusoidal, with the base and the numbers of the frequencies as inputs; C cosine, S sine
ANGLES = "angle[t,i] = pos[t]*base**(-number[i]/p); C = cos(angle); S = sin(angle)"


def angle_system() -> System:
    """The equations of cosine and sine, C and S."""
    return replace(build(ANGLES, {"pos": "T", "number": "p", "base": ""}), outputs=("C", "S"), _cache={})


@cache
def _angles() -> Compiled:
    return compile_numpy(angle_system(), ["C", "S"], "angles")


def angles(count: int, width: int, start: int = 0, base: float = 10000.0) -> tuple[Array, Array]:
    """Cosine and sine of position · ω_i, each (count, width/2), for positions start, start + 1, …"""
    if width % 2:
        raise TrainingError(f"positions come in pairs of sine and cosine: the width must be even, got {width}")
    found = _angles()(pos=np.arange(start, start + count, dtype=float), number=np.arange(width // 2.0), base=base)
    return found["C"], found["S"]


def sinusoids(count: int, width: int, start: int = 0) -> Array:
    """PE(pos, 2i) = sin(pos·ω_i), PE(pos, 2i+1) = cos(pos·ω_i), shape (count, width).

    >>> sinusoids(1, 4, start=1).round(5).tolist()
    [[0.84147, 0.5403, 0.01, 0.99995]]
    """
    cosine, sine = angles(count, width, start)
    return np.stack([sine, cosine], axis=2).reshape(count, width)


def rotations(count: int, width: int, start: int = 0) -> tuple[Array, Array]:
    """C (count, p) and Z (count, 2, p) as the rotation of queries and keys reads them; Z has − for c = 0."""
    cosine, sine = angles(count, width, start)
    return cosine, np.stack([-sine, sine], axis=1)

"""Numbers for the entries about the key–value cache: plain Python."""

from __future__ import annotations

import math
import random

from gradproof.symbolic.catalogue.evidence import Evidence, apart, same
from gradproof.symbolic.phrases import phrase

Vector = list[float]


def _dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def rotated(x: Vector, position: int) -> Vector:
    """RoPE for one pair of coordinates of frequency 1."""
    c, s = math.cos(position), math.sin(position)
    return [c * x[0] - s * x[1], s * x[0] + c * x[1]]


def attended(query: Vector, keys: list[Vector], values: list[Vector]) -> Vector:
    """softmax(q·k/√2) over the keys, applied to the values."""
    weights = [math.exp(_dot(query, key) / math.sqrt(2)) for key in keys]
    total = math.fsum(weights)
    return [math.fsum(w * v[r] for w, v in zip(weights, values, strict=True)) / total for r in range(2)]


def cache() -> list[Evidence]:
    """Six positions one by one against all at once, with RoPE; and with the newest position counted from 0."""
    rng = random.Random(0)
    q, k, v = ([[rng.gauss(0, 1) for _ in range(2)] for _ in range(6)] for _ in range(3))
    keys = [rotated(key, t) for t, key in enumerate(k)]
    whole = [attended(rotated(q[t], t), keys[: t + 1], v[: t + 1]) for t in range(6)]
    cached, stored = [], []
    for t in range(6):
        stored.append(rotated(k[t], t))
        cached.append(attended(rotated(q[t], t), stored, v[: t + 1]))
    forgotten = attended(rotated(q[5], 0), [*keys[:5], rotated(k[5], 0)], v)
    return [
        same("six positions with a growing cache, RoPE, against all at once", cached, whole, 1e-14),
        apart("the last position when the newest word is numbered 0", forgotten, whole[5], 0.05),
    ]


def counted(length: int, cached: bool, width: int = 2) -> int:
    """Multiplications and additions of scores and mixtures while `length` words are generated, counted one by one."""
    operations = 0
    for t in range(length):
        for position in [t] if cached else range(t + 1):
            del position
            for _key in range(t + 1):
                operations += 2 * width + 2 * width
    return operations


def cache_cost() -> list[Evidence]:
    """Counted runs against the closed forms, and the growth when the length doubles."""
    found = []
    for length in (4, 16):
        whole, cached = counted(length, False), counted(length, True)
        found.append(
            same(phrase("T = {}, no cache", length), whole, 8 * length * (length + 1) * (2 * length + 1) // 6, 0.0)
        )
        found.append(same(phrase("T = {}, with a cache", length), cached, 4 * length * (length + 1), 0.0))
    growth = [counted(128, flag) / counted(64, flag) for flag in (False, True)]
    found.append(same("growth from T = 64 to 128: about 2³ and 2²", growth, [8, 4], 0.15))
    return found

"""Every rule of the normal form on random instances: it fires, and the value stays."""

import random

import pytest
from sympy import Expr

from gradproof.symbolic.equations.evaluate import HighPrecision, Point
from gradproof.symbolic.equations.expr import Access, Index, Size
from gradproof.symbolic.equations.system import Array, System
from gradproof.symbolic.folding.checks import close
from gradproof.symbolic.folding.rows import ROWS, Row

LETTER, OTHER, N = Index("o0"), Index("o1"), Size("n")
NAMES = "abcdxyz"
SYSTEM = System({name: Array(name, (N,)) for name in NAMES}, (), ())
OUTER = [(LETTER, 0 * N, N), (OTHER, 0 * N, N)]
RULES = [row for rows in ROWS.values() for row in rows]


def entries(rng: random.Random) -> list[Expr]:
    """Entries of three different arrays."""
    return [Access(name, LETTER) for name in rng.sample(NAMES, 3)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("row", RULES, ids=lambda row: row.name)
def test_a_rule_fires_and_keeps_the_value(row: Row, seed: int) -> None:
    before = row.instance(*entries(random.Random(seed)))
    after = row(before, OUTER)
    assert after != before
    for first in range(2):
        for second in range(2):
            point = Point(SYSTEM, {N: 2}, HighPrecision(seed), seed)
            at = {LETTER: first, OTHER: second}
            assert close(point.value(before, at), point.value(after, at))


@pytest.mark.parametrize("row", RULES, ids=lambda row: row.name)
def test_a_rule_leaves_other_expressions_alone(row: Row) -> None:
    a, b, c = entries(random.Random(0))
    for other in (a, a + b, a * b, a**2, (a + b) * c, a + b * c):
        assert row(other, OUTER) == other

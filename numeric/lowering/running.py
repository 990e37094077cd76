"""Running sums: Σ_j 1[j ≤ i] x_j is a cumulative sum along j, Σ_j 1[i ≤ j] x_j one from the other end."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, S

from gradproof.numeric.lowering.lower import Lowering, Part
from gradproof.numeric.lowering.terms import Terms
from gradproof.symbolic.equations.expr import Compare, Index, letters, names

Factors = list[tuple[Expr, Part]]


def running_sums(low: Lowering, terms: Terms, factors: Factors, wanted: Sequence[Index]) -> Factors:
    """The factors, with those under a running sum replaced by it; its letter and its condition are done with.

    What is summed must not read the letter up to which it is summed, and no other condition may read its own letter.
    """
    while (found := _next(terms, factors)) is not None:
        condition, summed, upto = found
        inside = [part for _, part in factors if summed in part.letters]
        part = low.mul(inside, wanted)
        axis, graph = part.letters.index(summed), low.graph
        down = condition.sides[0] == upto  # i ≤ j: from the end
        node = graph.flip(part.node, axis) if down else part.node
        node = graph.cumsum(node, axis)
        node = graph.flip(node, axis) if down else node
        sums = Part(node, tuple(upto if letter == summed else letter for letter in part.letters))
        factors = [(S.One, sums), *((f, p) for f, p in factors if summed not in p.letters)]
        terms.conditions = [other for other in terms.conditions if other != condition]
        terms.axes = [axis for axis in terms.axes if axis[0] != summed]
    return factors


def _next(terms: Terms, factors: Factors) -> tuple[Compare, Index, Index] | None:
    """A condition j ≤ i or i ≤ j, the letter that is summed, and the one up to which it is."""
    for condition in terms.conditions:
        if not isinstance(condition, Compare) or condition.op != "<=" or names(condition):
            continue
        for summed, upto in (condition.sides, condition.sides[::-1]):
            if not (isinstance(summed, Index) and isinstance(upto, Index) and summed in terms.summed):
                continue
            alone = not any(summed in letters(other) for other in terms.conditions if other != condition)
            whole = terms.ranges.get(summed) == terms.ranges.get(upto)
            own = [part for _, part in factors if summed in part.letters]
            if alone and whole and own and not any(upto in part.letters for part in own):
                return condition, summed, upto
    return None

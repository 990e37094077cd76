"""Sums of products that are a matrix times its own transpose, Bᵀ B: BLAS computes half of it and mirrors the rest.

Σ_i X_ij t_il X_im t_ip        the same arrays twice, under other letters: B_ijl = X_ij t_il
Σ_i X_ij c_i X_im, c ≥ 0       B_ij = √c_i X_ij
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Integer, S, sqrt

from gradproof.numeric.lowering.lower import Lowering, Part
from gradproof.numeric.lowering.nodes import Node
from gradproof.symbolic.equations.expr import Index

POSITIVE = frozenset({"exp", "sigmoid", "cosh", "softplus", "absolute"})


def halves(low: Lowering, parts: Sequence[Part], over: frozenset[Index], wanted: Sequence[Index]) -> list[Part] | None:
    """The two equal factors of a sum of products, and what is left over; None where there is no such pair."""
    pairs, rest = _pairs(parts, over)
    if not pairs:
        return None
    place = {letter: k for k, letter in enumerate(wanted)}
    left, right = [], []
    renamed: dict[Index, Index] = {}
    for pair in pairs:
        first, second = sorted(pair, key=lambda part: [place.get(x, 99) for x in part.letters if x not in over])
        left.append(first)
        right.append(second)
        for mine, other in zip(first.letters, second.letters, strict=True):
            if renamed.setdefault(mine, other) != other:
                return None
    common = {letter for letter in renamed if letter in over}
    weights = [part for part in rest if set(part.letters) <= common]
    others = [part for part in rest if part not in weights]
    if others or (weights and not all(nonnegative(part.node) for part in weights)) or (not weights and len(pairs) < 2):
        return None
    if weights:
        weight = low.mul(weights, [])
        number = weight.node.op == "scalar"
        node = (
            low.graph.scalar(sqrt(weight.node.data[0]))
            if number
            else low.graph.pow(weight.node, low.graph.scalar(S.Half))
        )
        root = Part(node, weight.letters)
        left.append(root)
        right.append(root)
    order = [*(x for x in left[0].letters if x in over), *(x for x in wanted if x in renamed and x not in over)]
    made = low.mul(left, order)
    return [made, Part(made.node, tuple(renamed.get(x, x) for x in made.letters))]


def weighted(low: Lowering, parts: Sequence[Part], over: frozenset[Index]) -> list[Part] | None:
    """Σ_i X_ij X_im c_il as (X c) times X: the product of X with itself would be larger."""
    pairs, rest = _pairs(parts, over)
    common = {x for x in pairs[0][0].letters if x in over} if len(pairs) == 1 else set()
    if not rest or not common or any(common.isdisjoint(part.letters) for part in rest):
        return None
    if any(x in over and x not in common for part in rest for x in part.letters):
        return None
    first, second = pairs[0]
    return [low.mul([low.mul(rest, []), first], []), second]


def _pairs(parts: Sequence[Part], over: frozenset[Index]) -> tuple[list[tuple[Part, Part]], list[Part]]:
    """Operands that occur twice with the same summed letters and no other letter in common; and all others."""
    left, pairs, rest = list(parts), [], []
    while left:
        part = left.pop(0)
        own = {x for x in part.letters if x not in over}
        twin = next((p for p in left if p.node is part.node and own and _apart(part, p, over)), None)
        if twin is None:
            rest.append(part)
        else:
            left.remove(twin)
            pairs.append((part, twin))
    return pairs, rest


def _apart(a: Part, b: Part, over: frozenset[Index]) -> bool:
    both = list(zip(a.letters, b.letters, strict=True))
    same = all((x == y) == (x in over) for x, y in both)
    return same and not {x for x, _ in both if x not in over} & {y for _, y in both}


def nonnegative(node: Node) -> bool:
    """Whether no entry of an array is negative."""
    if node.op == "scalar":
        return bool(node.data[0].is_nonnegative)
    if node.op == "call":
        return node.data[0] in POSITIVE
    if node.op == "pow":
        exponent = node.args[1]
        even = exponent.op == "scalar" and isinstance(exponent.data[0], Integer) and exponent.data[0] % 2 == 0
        return even or nonnegative(node.args[0])
    return node.op in ("mul", "add", "view", "sum", "mean", "compare", "eye", "float") and all(
        nonnegative(arg) for arg in node.args
    )

"""What is known of arrays, by declaration or by definition, and how a sum or an entry uses it.

A fact is one entry of a mapping; o0, o1 … are the indices of the first array, o8, o9 … those of the second.

    (P, 1)          → 1                    Σ_j P[o0, j] = 1: the sum over axis 1
    (x, 1, 2)       → 0                    Σ_jk x[o0, j, k] = 0: the sum over axes 1 and 2 together
    (A, 1, B, 0)    → δ(o0, o9)            Σ_k A[o0, k] B[k, o9] = δ(o0, o9): the sum of products over these axes
    (S,)            → S[o1, o0]            S[o0, o1] = S[o1, o0]: the indices are put in order
    (D,)            → D[o0, o0] δ(o0, o1)  off the diagonal D is 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from sympy import Expr, Integer, Mul, Pow

from gradproof.symbolic.equations.expr import Access, Axis, Compare, Implicit, delta, letters, sum_
from gradproof.symbolic.equations.system import System, out_letters

Key = tuple[str | int, ...]
OUTS = out_letters(16)
FIRST, SECOND = OUTS[:8], OUTS[8:]
SYMMETRIC = frozenset({"symmetric", "psd", "diagonal"})


class Facts(dict[Key, Expr]):
    """The facts of a system; `shapes` tells whether a sum runs over a whole axis, `used` notes which facts helped."""

    def __init__(self, shapes: Mapping[str, Sequence[Axis]] | None = None) -> None:
        super().__init__()
        self.shapes = dict(shapes or {})
        self.below: dict[str, Expr] = {}  # arrays of integers, and the size under which they lie
        self.used: set[Key] = set()

    def summed(self, factor: Expr, axis: Axis) -> Expr | None:
        """What is known of Σ factor over one axis."""
        if not isinstance(factor, Access) or (position := self._position(factor, axis)) is None:
            return None
        return self._use((factor.name, position), factor)

    def together(self, factor: Expr, axes: Sequence[Axis]) -> tuple[list[Axis], Expr] | None:
        """Among `axes`, those over which together the sum of the factor is known, and that sum."""
        if not isinstance(factor, Access):
            return None
        for key in self:
            if key[0] == factor.name and len(key) > 2 and all(isinstance(part, int) for part in key[1:]):
                over = [axis for axis in axes if self._position(factor, axis) in key[1:]]
                if len(over) == len(key) - 1:
                    known = self._use(key, factor)
                    return None if known is None else (over, known)
        return None

    def contracted(self, first: Expr, second: Expr, axis: Axis) -> Expr | None:
        """What is known of Σ first · second over one axis; indices in front of a matrix must agree."""
        for a, b in ((first, second), (second, first)):
            if not (isinstance(a, Access) and isinstance(b, Access)) or a.indices[:-2] != b.indices[:-2]:
                continue
            k, m = self._position(a, axis), self._position(b, axis)
            if k is None or m is None:
                continue
            key = (a.name, k - len(a.indices[:-2]), b.name, m - len(b.indices[:-2]))
            if (found := self._use(key, Access("", *a.indices[-2:]), Access("", *b.indices[-2:]))) is not None:
                return found
        return None

    def entry(self, access: Access) -> Expr:
        """An entry in the form in which it is written."""
        known = self.get((access.name,))
        if known is None:
            return access
        other = known.xreplace(dict(zip(FIRST, access.indices, strict=False)))
        if self.is_symmetric(access.name):
            kept = min(access, other, key=lambda entry: [index.sort_key() for index in entry.indices])
        else:
            kept = other
        if kept != access:
            self.used.add((access.name,))
        return kept

    def condition(self, expr: Compare) -> Expr:
        """0 ≤ y and y < N hold where y is declared to hold integers below N."""
        left, right = expr.sides
        if expr.op == "<=" and left == 0 and isinstance(right, Access) and right.name in self.below:
            return Integer(1)
        if expr.op == "<" and isinstance(left, Access) and self.below.get(left.name) == right:
            return Integer(1)
        return expr

    def is_symmetric(self, name: str) -> bool:
        return self.get((name,)) == _flipped(name, self.shapes)

    def least(self, factors: Sequence[Expr], axes: Sequence[Axis]) -> Expr:
        """Σ of a product; among the orders of the summed indices of symmetric matrices the one that sorts first."""
        whole = sum_(Mul(*factors), axes)
        summed = {axis[0] for axis in axes}
        free = [
            access
            for factor in factors
            for access in [factor.base if isinstance(factor, Pow) else factor]
            if isinstance(access, Access) and self.is_symmetric(access.name) and set(access.indices[-2:]) <= summed
        ]
        if not free:
            return whole
        product_ = Mul(*factors)
        variants = (
            sum_(product_.xreplace({a: swapped(a) for a, turn in zip(free, turns, strict=True) if turn}), axes)
            for turns in islice(product((False, True), repeat=len(free)), 1, 64)
        )
        return min([whole, *variants], key=lambda variant: variant.sort_key())

    def _position(self, access: Access, axis: Axis) -> int | None:
        """Where an access reads the letter of an axis, if it does so once, directly, and over the whole axis."""
        letter = axis[0]
        positions = [k for k, index in enumerate(access.indices) if letter in letters(index)]
        if len(positions) != 1 or access.indices[positions[0]] != letter or access.name not in self.shapes:
            return None
        _, lo, hi = self.shapes[access.name][positions[0]]
        return positions[0] if (axis[1], axis[2]) == (lo, hi) else None

    def _use(self, key: Key, first: Access, second: Access | None = None) -> Expr | None:
        known = self.get(key)
        if known is None:
            return None
        self.used.add(key)
        places = dict(zip(FIRST, first.indices, strict=False))
        if second is not None:
            places |= dict(zip(SECOND, second.indices, strict=False))
        return known.xreplace(places)


def swapped(access: Access) -> Access:
    """The access with its last two indices exchanged."""
    *batch, i, j = access.indices
    return Access(access.args[0], *batch, j, i)


def _flipped(name: str, shapes: Mapping[str, Sequence[Axis]]) -> Access:
    return swapped(Access(name, *FIRST[: len(shapes[name])])) if len(shapes.get(name, ())) > 1 else Access("")


def declared(system: System) -> Facts:
    """The facts that follow from declared properties, and those of inverses.

    >>> from gradproof.symbolic.language.reader import build
    >>> known = declared(build("inv(S) @ p", {"S": "n,n:symmetric", "p": "n:simplex"}))
    >>> for key, value in known.items(): print(key, value)
    ('S',) S[o1, o0]
    ('p', 0) 1
    ('S_inv',) S_inv[o1, o0]
    ('S', 1, 'S_inv', 0) [o0 == o9]
    ('S', 1, 'S_inv', 1) [o0 == o8]
    ('S', 0, 'S_inv', 0) [o1 == o9]
    ('S', 0, 'S_inv', 1) [o1 == o8]
    """
    found = Facts(shapes={a.name: a.axes(FIRST[: a.rank]) for a in system.arrays.values()})
    found.below = {a.name: a.below for a in system.arrays.values() if a.below is not None}
    for array in system.arrays.values():
        name, first = array.name, FIRST[: array.rank]
        if "simplex" in array.properties and array.rank:
            found[name, array.rank - 1] = Integer(1)
        if "diagonal" in array.properties:
            found[name,] = Access(name, *first[:-1], first[-2]) * delta(*first[-2:])
        elif array.properties & SYMMETRIC:
            found[name,] = swapped(Access(name, *first))
        if "orthogonal" in array.properties:
            found[name, 0, name, 0] = delta(FIRST[1], SECOND[1])
            found[name, 1, name, 1] = delta(FIRST[0], SECOND[0])
    for equation in system.equations:
        if isinstance(equation.body, Implicit) and equation.body.kind == "inv":
            _inverse(found, system, equation.body.matrix, equation.name)
    return found


def _inverse(found: Facts, system: System, matrix: str, name: str) -> None:
    """A A⁻¹ = I = A⁻¹ A; the inverse of a diagonal or orthogonal matrix is written out."""
    array = system.arrays[matrix]
    first = FIRST[: array.rank]
    *batch, i, j = first
    if "orthogonal" in array.properties:
        found[name,] = Access(matrix, *batch, j, i)
        return
    if "diagonal" in array.properties:
        found[name,] = delta(i, j) / Access(matrix, *batch, i, i)
        return
    symmetric = found.is_symmetric(matrix)
    if symmetric and (name,) not in found:
        found[name,] = swapped(Access(name, *first))
    for k, m in product((1, 0), (0, 1)):
        if symmetric or k != m:
            found[matrix, k, name, m] = delta(FIRST[1 - k], SECOND[1 - m])

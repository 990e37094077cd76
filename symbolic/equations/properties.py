"""Declared properties of an input: what they mean for its entries, and for the derivative by it.

    simplex      the last axis sums to 1, all entries positive
    symmetric    S[i, j] = S[j, i]
    psd          symmetric and positive definite
    diagonal     0 off the diagonal
    orthogonal   Σ_k Q[k, i] Q[k, j] = δ(i, j)

How they simplify a formula is in `facts.py`. The derivative by such a variable is that of the formula with all entries
free: it is derived and checked so, and only what is printed in the end makes use of the property.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sympy import Integer, Rational, S

from gradproof.symbolic.equations.implicit import MATRIX, eliminate
from gradproof.symbolic.errors import GradproofError

if TYPE_CHECKING:
    from gradproof.symbolic.equations.evaluate import Point
    from gradproof.symbolic.equations.system import Array

PROPERTIES = {
    "matrix": MATRIX,
    "all": MATRIX | {"simplex"},
}
Index = tuple[int, ...]


def declared_value(point: Point, array: Array, index: Index) -> Any:
    """A random entry of an array that has the declared properties, in the field of the point."""
    wanted = array.properties & PROPERTIES["all"]
    if not wanted:
        return point.free_entry(array.name, index)
    rule = VALUES.get(wanted - {"symmetric"} if wanted & {"psd", "diagonal"} else wanted)
    if rule is None:
        raise GradproofError(
            f"{array.name} is declared {' and '.join(sorted(wanted))}, which is not supported together"
        )
    return rule(point, array, index)


def _simplex(point: Point, array: Array, index: Index) -> Any:
    """Positive numbers over their sum."""
    size = point.shape(array.name)[-1]
    row = [point.field.power(point.free_entry(array.name, (*index[:-1], k)), Integer(2)) for k in range(size)]
    return point.field.multiply(row[index[-1]], point.field.power(point.field.add(row), S.NegativeOne))


def _symmetric(point: Point, array: Array, index: Index) -> Any:
    return point.free_entry(array.name, tuple(sorted(index)))


def _psd(point: Point, array: Array, index: Index) -> Any:
    """B Bᵀ + I/4 with B random."""
    field, (i, j), size = point.field, index, point.shape(array.name)[0]
    b = [[point.free_entry(array.name, (row, k)) for k in range(size)] for row in (i, j)]
    terms = [field.multiply(x, y) for x, y in zip(*b, strict=True)]
    return field.add([*terms, field.number(Rational(int(i == j), 4))])


def _diagonal(point: Point, array: Array, index: Index) -> Any:
    return point.free_entry(array.name, index) if index[0] == index[1] else point.field.number(Integer(0))


def _positive_diagonal(point: Point, array: Array, index: Index) -> Any:
    return point.field.power(_diagonal(point, array, index), Integer(2))


def _orthogonal(point: Point, array: Array, index: Index) -> Any:
    """Cayley's transform Q = (I − K)(I + K)⁻¹ = 2 (I + K)⁻¹ − I of a random K = −Kᵀ."""
    field, key = point.field, (f"I + K of {array.name}", ())
    if key not in point.eliminated:
        size = range(point.shape(array.name)[0])
        one, minus = field.number(Integer(1)), field.number(Integer(-1))
        rows = [
            [
                one
                if i == j
                else field.multiply(minus if i > j else one, point.free_entry(array.name, (min(i, j), max(i, j))))
                for j in size
            ]
            for i in size
        ]
        point.eliminated[key] = eliminate(rows, field)
    inverse, _ = point.eliminated[key]
    if inverse is None:
        from gradproof.symbolic.equations.evaluate import Undefined

        raise Undefined(f"no random {array.name}")
    twice = field.multiply(field.number(Integer(2)), inverse[index[0]][index[1]])
    return field.add([twice, field.number(Integer(-int(index[0] == index[1])))])


def _reflection(point: Point, array: Array, index: Index) -> Any:
    """I − 2 v vᵀ/vᵀv with a random v: orthogonal and symmetric."""
    field, (i, j), size = point.field, index, point.shape(array.name)[0]
    v = [point.free_entry(array.name, (k,)) for k in range(size)]
    norm = field.power(field.add([field.multiply(x, x) for x in v]), S.NegativeOne)
    shift = field.multiply(field.number(Integer(-2)), field.multiply(norm, field.multiply(v[i], v[j])))
    return field.add([field.number(Integer(int(i == j))), shift])


VALUES: dict[frozenset[str], Callable[[Point, Array, Index], Any]] = {
    frozenset({"simplex"}): _simplex,
    frozenset({"symmetric"}): _symmetric,
    frozenset({"psd"}): _psd,
    frozenset({"diagonal"}): _diagonal,
    frozenset({"diagonal", "psd"}): _positive_diagonal,
    frozenset({"orthogonal"}): _orthogonal,
    frozenset({"orthogonal", "symmetric"}): _reflection,
}

"""Declared properties of an input: what they mean for its entries and for sums over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradproof.symbolic.evaluate import Point
    from gradproof.symbolic.system import Array

MATRIX = frozenset({"symmetric", "psd", "diagonal", "orthogonal"})


def declared_value(point: Point, array: Array, index: tuple[int, ...]) -> Any:
    """A random entry that respects what was declared of the array.

    simplex: the last axis sums to 1. symmetric, psd: A_ij = A_ji. diagonal: 0 off the diagonal.
    """
    if "simplex" in array.properties:
        return _simplex(point, array, index)
    if array.properties & {"symmetric", "psd"}:
        index = tuple(sorted(index))
    if "diagonal" in array.properties and index[0] != index[1]:
        return point.field.number(_ZERO)
    return point.free_entry(array.name, index)


def _simplex(point: Point, array: Array, index: tuple[int, ...]) -> Any:
    """Positive numbers over their sum."""
    size = point.shape(array.name)[-1]
    row = [point.field.power(point.free_entry(array.name, (*index[:-1], k)), _TWO) for k in range(size)]
    return point.field.multiply(row[index[-1]], point.field.power(point.field.add(row), _MINUS_ONE))


from sympy import Integer  # noqa: E402

_ZERO, _TWO, _MINUS_ONE = Integer(0), Integer(2), Integer(-1)

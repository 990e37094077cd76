"""The arguments of a compiled function: names, shapes, types and ranges are checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from gradproof.numeric.lowering.nodes import identifier
from gradproof.numeric.lowering.program import Reading
from gradproof.numeric.passes.sizes import readings
from gradproof.symbolic.equations.system import Array
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.printing.convention import at_least


class ArgumentError(GradproofError):
    """An argument that is missing, unknown, or does not fit the others."""


@dataclass(frozen=True)
class Arguments:
    arrays: tuple[Array, ...]
    readings: Mapping[Symbol, Reading]
    given: tuple[Symbol, ...]  # sizes that no array shows
    unused: tuple[Array, ...] = field(default=(), kw_only=True)  # declared arrays that nothing reads: they may be given
    needs: tuple[Expr, ...] = field(default=(), kw_only=True)  # what must not be negative, in terms of sizes

    @classmethod
    def of(cls, arrays: Iterable[Array], sizes: Iterable[Symbol]) -> Arguments:
        """The arguments of a function that reads arrays and needs to know some sizes."""
        arrays = tuple(arrays)
        read = readings(arrays)
        return cls(arrays, read, tuple(size for size in sizes if size not in read))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (*(array.name for array in self.arrays), *(size.name for size in self.given))

    @property
    def declared(self) -> tuple[Array, ...]:
        """All arrays that may be given."""
        return (*self.arrays, *self.unused)

    def check(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """The arguments as arrays of one type of number, under the names that the function has for them.

        Raises ArgumentError.
        """
        values = {name: value for name, value in values.items() if name not in {array.name for array in self.unused}}
        self._check_names(values)
        arrays = {array.name: self.convert(array, values[array.name]) for array in self.arrays}
        dtype = self.dtype(values[a.name] for a in self.arrays if a.below is None)
        sizes = {size: whole_size(size, values[size.name]) for size in self.given}
        self._check_shapes(arrays, sizes)
        for need in self.needs:
            if need.free_symbols <= sizes.keys() and int(need.xreplace(sizes)) < 0:
                given = ", ".join(f"{size} = {sizes[size]}" for size in sorted(need.free_symbols, key=str))
                raise ArgumentError(f"{given} is too small: {at_least(need)} is needed")
        for array in self.arrays:
            if array.below is not None:
                _check_lookup(array, arrays[array.name], sizes)
                arrays[array.name] = self.lookup(arrays[array.name])
            else:
                arrays[array.name] = self.number(arrays[array.name], dtype)
        return {
            identifier(n): v for n, v in {**arrays, **{s.name: v for s, v in sizes.items()}}.items() if n in self.names
        }, dtype

    def convert(self, array: Array, value: Any) -> Any:
        return as_array(array, value)

    def dtype(self, values: Iterable[Any]) -> Any:
        return common_dtype(values)

    def lookup(self, value: Any) -> Any:
        return value

    def number(self, value: Any, dtype: Any) -> Any:
        return value.astype(dtype, copy=False) if value.ndim else dtype.type(value)

    def finish(self, value: Any, dtype: Any, inputs: Iterable[Any] = ()) -> Any:
        """A result as an array of its own, of the type of the arguments."""
        if np.ndim(value) == 0:
            return dtype.type(value)
        own = isinstance(value, np.ndarray) and value.base is None and value.dtype == dtype and value.flags.writeable
        return value if own and all(value is not other for other in inputs) else np.array(value, dtype)

    def _check_names(self, values: Mapping[str, Any]) -> None:
        unknown = [name for name in values if name not in self.names]
        missing = [name for name in self.names if name not in values]
        if unknown:
            raise ArgumentError(f"unknown argument {unknown[0]}: the arguments are {', '.join(self.names)}")
        if missing:
            kind = "size" if missing[0] in {size.name for size in self.given} else "argument"
            raise ArgumentError(f"the {kind} {missing[0]} is missing: the arguments are {', '.join(self.names)}")

    def _check_shapes(self, arrays: Mapping[str, np.ndarray], sizes: dict[Symbol, int]) -> None:
        """Every axis has the length that its size says; sizes are filled in as they are read."""
        for array in self.arrays:
            if arrays[array.name].ndim != array.rank:
                axes = f"({', '.join(map(str, array.shape))})"
                got = arrays[array.name].shape
                raise ArgumentError(f"{array.name} must have {array.rank} axes {axes}, got an array of shape {got}")
        for reading in self.readings.values():
            length = arrays[reading.array].shape[reading.axis] - int(reading.rest.xreplace(sizes))
            slope = int(reading.slope.xreplace(sizes))
            if slope == 0 or length % slope or length // slope < 0:
                shape = self._array(reading.array).shape[reading.axis]
                raise ArgumentError(
                    f"axis {reading.axis} of {reading.array} is {shape} = {arrays[reading.array].shape[reading.axis]}: "
                    f"no size {reading.size} ≥ 0 fits"
                )
            sizes[reading.size] = length // slope
        for array in self.arrays:
            for axis, (size, length) in enumerate(zip(array.shape, arrays[array.name].shape, strict=True)):
                if not size.free_symbols <= sizes.keys():
                    continue
                expected = int(size.xreplace(sizes))
                if expected != length:
                    raise ArgumentError(
                        f"axis {axis} of {array.name} has length {length}, but {size} is {expected}{self._source(size)}"
                    )

    def _array(self, name: str) -> Array:
        return next(array for array in self.arrays if array.name == name)

    def _source(self, size: Expr) -> str:
        """Where a size was read."""
        if size not in self.readings:
            return ""
        return f" (axis {self.readings[size].axis} of {self.readings[size].array})"


def as_array(array: Array, value: Any) -> np.ndarray:
    try:
        made = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{array.name} is no array of numbers: {error}") from None
    if made.dtype.kind not in "biuf":
        raise ArgumentError(f"{array.name} must hold real numbers, got {made.dtype}")
    if array.below is not None and made.dtype.kind not in "iu":
        raise ArgumentError(f"{array.name} is used as an index and must hold whole numbers, got {made.dtype}")
    return made


def common_dtype(values: Iterable[Any]) -> np.dtype:
    """float32 if every array is; Python numbers and lists do not count.

    >>> common_dtype([np.zeros(3, np.float32), 1.5])
    dtype('float32')
    """
    given = [value.dtype for value in values if isinstance(value, np.ndarray)]
    narrow = bool(given) and all(dtype == np.float32 for dtype in given)
    return np.dtype(np.float32 if narrow else np.float64)


def whole_size(size: Symbol, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ArgumentError(f"the size {size} must be a whole number of at least 0, got {value!r}")
    return int(value)


def _check_lookup(array: Array, values: Any, sizes: Mapping[Symbol, int]) -> None:
    bound = array.below
    if bound is None or not bound.free_symbols <= sizes.keys():
        return
    limit = int(bound.xreplace(dict(sizes)))
    wrong = values[(values < 0) | (values >= limit)]
    if len(wrong):
        raise ArgumentError(
            f"{array.name} holds {int(wrong[0])}, which is not an index from 0 to {bound} - 1 = {limit - 1}"
        )

"""Linear quantisation to 2ⁿ levels between minimum and maximum, with the error it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradproof.models.errors import QuantisationError

Array = NDArray[Any]


@dataclass(frozen=True)
class Quantised:
    """Codes with their ranges. `codes` is uint8 (uint16 above 8 bits); up to 4 bits two codes share a byte.

    `low` and `high` have shape (1,…,1), or one entry for each index of the axis that has ranges of its own.
    """

    codes: Array
    low: Array
    high: Array
    bits: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.low.nbytes + self.high.nbytes

    def levels(self) -> Array:
        """The codes 0 … 2ⁿ − 1, one an element, in the tensor's shape."""
        if self.bits > 4:
            return self.codes
        pairs = np.stack([self.codes & 15, self.codes >> 4], axis=-1).reshape(-1)
        return pairs[: int(np.prod(self.shape))].reshape(self.shape)

    def dequantise(self) -> Array:
        """x = q/(2ⁿ − 1)·(max − min) + min in the original's dtype; both ends of the range come out exactly."""
        top = 2**self.bits - 1
        levels = self.levels()
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        values = levels / top * (high - low) + low
        return np.where(levels == top, high, values).astype(self.dtype)


def quantise(x: ArrayLike, bits: int = 8, axis: int | None = None) -> Quantised:
    """Round to the nearest of 2ⁿ evenly spaced levels between the minimum and the maximum.

    One range for the whole tensor, or with `axis` one for each index of that axis (axis=0: each row of a matrix has its
    own). The error is at most (max − min)/(2(2ⁿ − 1)), up to rounding in the dtype. Where max = min the
    formula would divide by zero; we define every code as 0 there, and the constant comes back exactly.

    >>> quantise([0.0, 0.3, 1.0], bits=1).dequantise().tolist(), quantise([7.0, 7.0]).dequantise().tolist()
    ([0.0, 0.0, 1.0], [7.0, 7.0])
    """
    values = np.asarray(x)
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64)
    _check(values, bits, axis)
    others = tuple(k for k in range(values.ndim) if axis is None or k != axis % values.ndim)
    low = values.min(axis=others, keepdims=True)
    high = values.max(axis=others, keepdims=True)
    top = 2**bits - 1
    with np.errstate(over="ignore"):
        width = high.astype(np.float64) - low
    if not np.isfinite(width).all():
        raise QuantisationError("the range from minimum to maximum overflows float64; scale the tensor first")
    # Divide before multiplying: (x − low)·top could overflow where the quotient cannot.
    share = (values.astype(np.float64) - low) / np.where(width > 0, width, 1.0)
    levels = np.rint(share * top).astype(np.uint8 if bits <= 8 else np.uint16)
    codes = _pack(levels) if bits <= 4 else levels
    return Quantised(codes, low, high, bits, values.shape, values.dtype)


def _check(values: Array, bits: int, axis: int | None) -> None:
    if not isinstance(bits, (int, np.integer)) or not 1 <= bits <= 16:
        raise QuantisationError(f"the number of bits is a whole number between 1 and 16; got {bits}")
    if values.size == 0:
        raise QuantisationError(f"a tensor without entries (shape {values.shape}) has no minimum and maximum")
    if axis is not None and not -values.ndim <= axis < values.ndim:
        raise QuantisationError(f"a tensor of shape {values.shape} has no axis {axis}")
    if not np.isfinite(values).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise QuantisationError(f"the entry at {place} is {values[place]}; only finite numbers have a range")


def _pack(levels: Array) -> Array:
    """Two codes of at most 4 bits a byte, the first in the low half."""
    flat = levels.reshape(-1)
    flat = np.concatenate([flat, np.zeros(flat.size % 2, np.uint8)])
    return flat[::2] | (flat[1::2] << 4)


@dataclass(frozen=True)
class QuantisationReport:
    """What quantising one tensor cost. `bound`: the guarantee (max − min)/(2(2ⁿ − 1)), the largest of the ranges."""

    name: str
    bits: int
    largest_error: float
    bound: float
    rms_error: float
    relative_error: float
    bytes_before: int
    bytes_after: int


def report(name: str, original: ArrayLike, quantised: Quantised) -> QuantisationReport:
    """Compare a tensor with what comes back.

    >>> x = np.array([0.0, 0.4, 1.0])
    >>> r = report("x", x, quantise(x, bits=1))
    >>> r.largest_error, r.bound
    (0.4, 0.5)
    """
    before = np.asarray(original, dtype=np.float64)
    error = np.abs(quantised.dequantise().astype(np.float64) - before)
    width = quantised.high.astype(np.float64) - quantised.low
    largest = float(np.abs(before).max())
    return QuantisationReport(
        name=name,
        bits=quantised.bits,
        largest_error=float(error.max()),
        bound=float(width.max()) / (2 * (2**quantised.bits - 1)),
        rms_error=float(np.sqrt(np.mean(error**2))),
        relative_error=float(error.max()) / largest if largest else 0.0,
        bytes_before=int(np.asarray(original).nbytes),
        bytes_after=quantised.nbytes,
    )


def quantise_parameters(
    parameters: Mapping[str, Array], bits: int = 8, axis: int | None = None
) -> tuple[dict[str, Array], list[QuantisationReport]]:
    """Parameters as they come back from int8 or int4 storage, and a report for each.

    Matrices and larger tensors are quantised; vectors (biases, gains) are few, sensitive, and stay as they are.

    >>> weights, rows = quantise_parameters({"W": np.eye(2), "b": np.ones(2)}, bits=4)
    >>> [(row.name, row.largest_error) for row in rows], weights["b"] is not None
    ([('W', 0.0)], True)
    """
    result, rows = {}, []
    for name, value in parameters.items():
        if value.ndim < 2:
            result[name] = value
            continue
        try:
            quantised = quantise(value, bits, axis)
        except QuantisationError as error:
            raise QuantisationError(f"{name}: {error}") from None
        result[name] = quantised.dequantise()
        rows.append(report(name, value, quantised))
    return result, rows

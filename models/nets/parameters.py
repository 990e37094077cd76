"""The parameters of a model: one vector, and a named view of each array into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.errors import TrainingError

Array = NDArray[Any]
Shapes = Mapping[str, tuple[int, ...]]


class Parameters(Mapping[str, Array]):
    """Named arrays that share one vector, so that an optimiser's step is a few operations whatever their number.

    >>> p = Parameters({"W": (2, 2), "b": (2,)})
    >>> p.vector[:] = range(6)
    >>> p["W"].tolist(), p["b"].tolist()
    ([[0.0, 1.0], [2.0, 3.0]], [4.0, 5.0])
    """

    def __init__(self, shapes: Shapes, dtype: Any = np.float64, vector: Array | None = None) -> None:
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in self.shapes.values()]
        self.vector = np.zeros(sum(sizes), dtype) if vector is None else vector
        ends = np.cumsum(sizes, dtype=np.int64)
        self._views = {
            name: self.vector[end - size : end].reshape(shape)
            for (name, shape), size, end in zip(self.shapes.items(), sizes, ends, strict=True)
        }

    def __getitem__(self, name: str) -> Array:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def like(self) -> Parameters:
        """Zeros under the same names, for gradients."""
        return Parameters(self.shapes, self.vector.dtype)

    def load(self, arrays: Mapping[str, Array]) -> None:
        """Copy values in; every name must be there, in its shape."""
        for name, view in self._views.items():
            if name not in arrays or arrays[name].shape != view.shape:
                found = arrays[name].shape if name in arrays else "nothing"
                raise TrainingError(f"the parameter {name} has shape {view.shape}; got {found}")
            view[...] = arrays[name]


def initialise(parameters: Parameters, seed: int, scale: Callable[[str, tuple[int, ...]], float]) -> None:
    """Gains become 1, everything else is normal with the deviation that `scale` gives (0: stays 0).

    Each array has random numbers of its own, from the seed and its name: adding a layer changes no other array.
    """
    import zlib

    for name, view in parameters.items():
        if name.split(".")[-1] == "g":
            view[...] = 1
        elif deviation := scale(name, view.shape):
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            view[...] = deviation * rng.standard_normal(view.shape)

"""The array libraries for which code is made: a row and a file of `emitters` each."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradproof.numeric.emitters.expressions import Emitter

BACKENDS = {
    "numpy": "numpy_emitter.NumpyEmitter",
    "torch": "torch_emitter.TorchEmitter",
    "jax": "jax_emitter.JaxEmitter",
}
VARIANTS = {"in-place numpy": "numpy_emitter.InPlaceNumpyEmitter"}  # which are no choice of the command


def emitter(backend: str) -> type[Emitter]:
    """The emitter of a back end; its library need not be installed.

    >>> emitter("torch").__name__
    'TorchEmitter'
    """
    module, name = {**BACKENDS, **VARIANTS}[backend].split(".")
    found: Any = importlib.import_module(f"gradproof.numeric.emitters.{module}")
    return getattr(found, name)

"""gradproof derives the mathematics of deep learning from forward formulas, proves or checks it, and runs it.

Everything is loaded when it is first used: deriving needs neither NumPy nor torch.

>>> from gradproof import derive
>>> print(derive("sum((X @ W - Y)**2)", shapes={"X": "n,d", "W": "d,k", "Y": "n,k"}, wrt="W").gradients["W"])
2 Xᵀ(XW − Y)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradproof.numeric import compile_jax, compile_numpy, compile_torch, crosscheck
    from gradproof.symbolic import catalogue, check, derive
    from gradproof.symbolic.moments import expectation, variance

    __version__: str

_HOME = {
    "catalogue": "symbolic",
    "check": "symbolic",
    "derive": "symbolic",
    "expectation": "symbolic.moments",
    "variance": "symbolic.moments",
    "compile_jax": "numeric",
    "compile_numpy": "numeric",
    "compile_torch": "numeric",
    "crosscheck": "numeric",
}

__all__ = [
    "__version__",
    "catalogue",
    "check",
    "compile_jax",
    "compile_numpy",
    "compile_torch",
    "crosscheck",
    "derive",
    "expectation",
    "variance",
]


def __getattr__(name: str) -> Any:
    """The public names, imported when they are asked for; `__version__` is read from the installed metadata."""
    if name == "__version__":
        from importlib.metadata import version

        return version("gradproof")
    if name in _HOME:
        return getattr(importlib.import_module(f"gradproof.{_HOME[name]}"), name)
    raise AttributeError(f"module 'gradproof' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

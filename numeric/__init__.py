"""How it runs: lowering, passes, emitters (NumPy, torch, JAX), compiled functions, cross-checks.

>>> from gradproof.numeric import compile_numpy
>>> from gradproof.symbolic import derive
>>> f = compile_numpy(derive("sum(x**2)", shapes={"x": "n"}, wrt="x"))
>>> value, gradients = f(x=[1.0, 2.0])
>>> print(value, gradients["x"])
5.0 [2. 4.]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradproof.numeric.compile import Compiled, compile_jax, compile_numpy, compile_torch
    from gradproof.numeric.crosschecks import Report, crosscheck

_HOME = {"Report": "crosschecks", "crosscheck": "crosschecks"}

__all__ = ["Compiled", "Report", "compile_jax", "compile_numpy", "compile_torch", "crosscheck"]


def __getattr__(name: str) -> Any:
    """The public names, imported when they are asked for: the names of the back ends need no NumPy."""
    if name in __all__:
        return getattr(importlib.import_module(f"gradproof.numeric.{_HOME.get(name, 'compile')}"), name)
    raise AttributeError(f"module 'gradproof.numeric' has no attribute {name!r}")

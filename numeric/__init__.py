"""How it runs: lowering, the NumPy and torch printers, compiled functions, cross-checks."""

from gradproof.numeric.compile import Compiled, compile_numpy, compile_torch
from gradproof.numeric.crosscheck import Report, crosscheck

__all__ = ["Compiled", "Report", "compile_numpy", "compile_torch", "crosscheck"]

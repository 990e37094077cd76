"""How it runs: lowering, passes, emitters (NumPy, torch), compiled functions, cross-checks.

>>> from gradproof.symbolic import derive
>>> f = compile_numpy(derive("sum(x**2)", shapes={"x": "n"}, wrt="x"))
>>> value, gradients = f(x=[1.0, 2.0])
>>> print(value, gradients["x"])
5.0 [2. 4.]
"""

from gradproof.numeric.compile import Compiled, compile_numpy, compile_torch
from gradproof.numeric.crosscheck import Report, crosscheck

__all__ = ["Compiled", "Report", "compile_numpy", "compile_torch", "crosscheck"]

"""Identities between elementwise functions, as data: what a normal form writes in place of a function."""

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import Expr, Integer, S

from gradproof.symbolic.equations.expr import compare
from gradproof.symbolic.equations.functions import absolute, maximum, relu, sigmoid, sign, softplus

# Everything that is rational in exp(x) is written in it, so that tanh x = 2σ(2x) − 1 and σ(−x) = 1 − σ(x) need no rule.
IN_TERMS_OF: dict[type, Callable[..., Expr]] = {
    sigmoid: lambda x: 1 / (1 + sympy.exp(-x)),
    sympy.tanh: lambda x: 1 - 2 / (sympy.exp(2 * x) + 1),
    softplus: lambda x: sympy.log(1 + sympy.exp(x)),
    sympy.sinh: lambda x: (sympy.exp(x) - sympy.exp(-x)) / 2,
    sympy.cosh: lambda x: (sympy.exp(x) + sympy.exp(-x)) / 2,
    sympy.tan: lambda x: sympy.sin(x) / sympy.cos(x),
    # with [0 < x] = 1 − [x < 0] − [x = 0]
    relu: lambda x: x * compare("<", 0, x),
    sign: lambda x: compare("<", 0, x) - compare("<", x, 0),
    absolute: lambda x: x * (compare("<", 0, x) - compare("<", x, 0)),
    sympy.Abs: lambda x: x * (compare("<", 0, x) - compare("<", x, 0)),
    maximum: lambda a, b: a + (b - a) * compare("<", a, b),
}

# f(x)^2 where it is written in another function: sin² = 1 − cos²
SQUARES: dict[type, Callable[[Expr], Expr]] = {sympy.sin: lambda x: S.One - sympy.cos(x) ** Integer(2)}

# f(a + b), for as many terms as `MAX_ANGLES` allows
ADDITION: dict[type, Callable[[Expr, Expr], Expr]] = {
    sympy.sin: lambda a, b: sympy.sin(a) * sympy.cos(b) + sympy.cos(a) * sympy.sin(b),
    sympy.cos: lambda a, b: sympy.cos(a) * sympy.cos(b) - sympy.sin(a) * sympy.sin(b),
}
MAX_ANGLES = 4

"""The elementwise functions: one line each, with its derivative, its spellings and its high-precision value.

SymPy's own functions bring their derivative along. The others state it here, with torch's value at a kink:
relu′(0) = 0, |·|′(0) = 0, and both arguments of `maximum` receive one half where they are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import sympy
from sympy import Expr, Function, Rational, S

from gradproof.symbolic.equations.expr import Compare, compare, negate
from gradproof.symbolic.errors import GradproofError


def _own(
    name: str, derivative: Callable[..., Expr], value: Callable[[Expr], Expr | None] | None = None
) -> type[Function]:
    """A real function of one argument with its derivative; `value` may decide simple arguments at once."""

    def fdiff(self: Function, argindex: int = 1) -> Expr:
        return derivative(*self.args)

    def evaluate(cls: type[Function], argument: Expr) -> Expr | None:
        return value(argument) if value else None

    return type(name, (Function,), {"is_real": True, "fdiff": fdiff, "eval": classmethod(evaluate)})


def _no_third_derivative() -> Expr:
    raise GradproofError("σ has no name for its third derivative; put a definite function in its place, such as tanh")


sigmoid: type[Function] = _own("sigmoid", lambda x: sigmoid(x) * (1 - sigmoid(x)), lambda x: S.Half if x == 0 else None)
softplus = _own("softplus", lambda x: sigmoid(x))
relu = _own("relu", lambda x: compare(">", x, 0), lambda x: sympy.Max(x, 0) if x.is_Number else None)
absolute = _own("absolute", lambda x: sign(x), lambda x: abs(x) if x.is_Number else None)
sign: type[Function] = _own("sign", lambda x: S.Zero, lambda x: sympy.sign(x) if x.is_Number else None)


sigma = _own("sigma", lambda x: dsigma(x))  # any activation: only that it has a derivative is known
dsigma: type[Function] = _own("dsigma", lambda x: ddsigma(x))
ddsigma: type[Function] = _own("ddsigma", lambda x: _no_third_derivative())


class maximum(Function):
    """The larger of two values."""

    is_real = True

    def fdiff(self, argindex: int = 1) -> Expr:
        mine, other = self.args if argindex == 1 else reversed(self.args)
        return compare(">", mine, other) + Rational(1, 2) * compare("==", mine, other)


class where(Function):
    """`where(condition, a, b)`: a where the condition is 1, else b; the branch not taken is never used."""

    is_real = True

    @classmethod
    def eval(cls, condition: Expr, a: Expr, b: Expr) -> Expr | None:
        if a == b or condition == 1:
            return a
        return b if condition == 0 else None

    def fdiff(self, argindex: int = 1) -> Expr:
        condition = self.args[0]
        return (S.Zero, condition, negate(condition))[argindex - 1]


# A condition is piecewise constant: its derivative is 0.
Compare._eval_derivative = lambda self, symbol: S.Zero


@dataclass(frozen=True)
class Elementwise:
    """How one function is written and computed; `{}` stands for the argument."""

    function: Callable[[Expr], Expr]
    numpy: str
    torch: str
    latex: str
    value: Callable[[mpmath.mpf], mpmath.mpf]


def _unary(
    function: Callable[[Expr], Expr], name: str, latex: str = "", numpy: str = "", value: object = None
) -> Elementwise:
    return Elementwise(
        function,
        numpy or f"np.{name}({{}})",
        f"torch.{name}({{}})",
        latex or rf"\{name}",
        value or getattr(mpmath, name),  # type: ignore[arg-type]
    )


ELEMENTWISE: dict[str, Elementwise] = {
    "exp": _unary(sympy.exp, "exp"),
    "log": _unary(sympy.log, "log"),
    "sin": _unary(sympy.sin, "sin"),
    "cos": _unary(sympy.cos, "cos"),
    "tan": _unary(sympy.tan, "tan"),
    "sinh": _unary(sympy.sinh, "sinh"),
    "cosh": _unary(sympy.cosh, "cosh"),
    "tanh": _unary(sympy.tanh, "tanh"),
    "atan": _unary(sympy.atan, "arctan", r"\arctan", value=mpmath.atan),
    "erf": _unary(sympy.erf, "erf", r"\operatorname{erf}", numpy="erf({})"),
    "sigmoid": _unary(
        sigmoid, "sigmoid", r"\operatorname{sigmoid}", numpy="expit({})", value=lambda x: 1 / (1 + mpmath.exp(-x))
    ),
    "softplus": Elementwise(
        softplus,
        "np.logaddexp(0, {})",
        "F.softplus({}, threshold=1e9)",
        r"\operatorname{softplus}",
        lambda x: mpmath.log1p(mpmath.exp(x)),
    ),
    "relu": _unary(relu, "relu", r"\operatorname{ReLU}", numpy="np.maximum({}, 0)", value=lambda x: max(x, 0)),
    "absolute": _unary(absolute, "abs", numpy="np.abs({})", value=abs),
    "sign": _unary(sign, "sign", r"\operatorname{sign}"),
    # tanh stands in for the unspecified activation where numbers are needed
    "sigma": Elementwise(sigma, "np.tanh({})", "torch.tanh({})", r"\sigma", mpmath.tanh),
    "dsigma": Elementwise(
        dsigma, "(1 - np.tanh({}) ** 2)", "(1 - torch.tanh({}) ** 2)", r"\sigma'", lambda x: 1 - mpmath.tanh(x) ** 2
    ),
    "ddsigma": Elementwise(
        ddsigma,
        "(-2 * np.tanh({0}) * (1 - np.tanh({0}) ** 2))",
        "(-2 * torch.tanh({0}) * (1 - torch.tanh({0}) ** 2))",
        r"\sigma''",
        lambda x: -2 * mpmath.tanh(x) * (1 - mpmath.tanh(x) ** 2),
    ),
}


def spelled(function: Function) -> str:
    """The name of an elementwise function in the table.

    >>> spelled(sympy.tanh(sympy.Symbol("x")))
    'tanh'
    """
    return "absolute" if isinstance(function, sympy.Abs) else type(function).__name__


# What a user may call with one argument, written in terms of the table above.
UNARY: dict[str, Callable[[Expr], Expr]] = {
    **{name: entry.function for name, entry in ELEMENTWISE.items()},
    "abs": absolute,
    "arctan": sympy.atan,
    "sqrt": sympy.sqrt,
    "log1p": lambda x: sympy.log(1 + x),
    "expm1": lambda x: sympy.exp(x) - 1,
    "square": lambda x: x**2,
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2,
    "step": lambda x: compare(">", x, 0),
    "mish": lambda x: x * sympy.tanh(softplus(x)),
}


def gelu_tanh(x: Expr) -> Expr:
    """GELU's tanh form, which is not the exact one: x/2 (1 + tanh(√(2/π)(x + 0.044715 x³)))."""
    return x * (1 + sympy.tanh(sympy.sqrt(2 / sympy.pi) * (x + Rational(44715, 1000000) * x**3))) / 2

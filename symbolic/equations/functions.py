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


def _no_more_derivatives(name: str, instead: str = "") -> Expr:
    raise GradproofError(f"the derivative of {name} has no name" + (f"; put {instead} in its place" if instead else ""))


sigmoid: type[Function] = _own("sigmoid", lambda x: sigmoid(x) * (1 - sigmoid(x)), lambda x: S.Half if x == 0 else None)
softplus = _own("softplus", lambda x: sigmoid(x))
relu = _own("relu", lambda x: compare(">", x, 0), lambda x: sympy.Max(x, 0) if x.is_Number else None)
absolute = _own("absolute", lambda x: sign(x), lambda x: abs(x) if x.is_Number else None)
sign: type[Function] = _own("sign", lambda x: S.Zero, lambda x: sympy.sign(x) if x.is_Number else None)


lgamma = _own("lgamma", lambda x: digamma(x))  # log |Γ(x)|, as in torch
digamma: type[Function] = _own("digamma", lambda x: trigamma(x))
trigamma: type[Function] = _own("trigamma", lambda x: tetragamma(x))
tetragamma: type[Function] = _own("tetragamma", lambda x: _no_more_derivatives("tetragamma"))

sigma = _own("sigma", lambda x: dsigma(x))  # any activation: only that it has a derivative is known
dsigma: type[Function] = _own("dsigma", lambda x: ddsigma(x))
ddsigma: type[Function] = _own(
    "ddsigma", lambda x: _no_more_derivatives("σ″", "; put a definite function in its place, such as tanh")
)


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
    jax: str = ""  # where it is not NumPy's spelling with `jnp`
    python: str = ""  # of a number, where it is not a function of `math` with this name
    scipy: str = ""  # what NumPy's spelling takes from scipy.special, as in an import
    text: str = ""  # in printed text, where it is not the name


def _unary(
    function: Callable[[Expr], Expr],
    name: str,
    latex: str = "",
    numpy: str = "",
    value: object = None,
    torch: str = "",
    **spellings: str,
) -> Elementwise:
    return Elementwise(
        function,
        numpy or f"np.{name}({{}})",
        torch or f"torch.{name}({{}})",
        latex or rf"\{name}",
        value or getattr(mpmath, name),  # type: ignore[arg-type]
        **spellings,
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
    "atan": _unary(sympy.atan, "arctan", value=mpmath.atan, text="arctan"),
    "erf": _unary(
        sympy.erf,
        "erf",
        r"\operatorname{erf}",
        numpy="erf({})",
        jax="jax.scipy.special.erf({})",
        python="math.erf({})",
        scipy="erf",
    ),
    "lgamma": _unary(
        lgamma,
        "lgamma",
        r"\operatorname{lgamma}",
        numpy="lgamma({})",
        value=lambda x: mpmath.log(abs(mpmath.gamma(x))),
        jax="jax.scipy.special.gammaln({})",
        python="math.lgamma({})",
        scipy="gammaln as lgamma",
    ),
    "digamma": _unary(
        digamma,
        "digamma",
        r"\operatorname{digamma}",
        numpy="digamma({})",
        jax="jax.scipy.special.digamma({})",
        python="float(digamma({}))",
        scipy="digamma",
    ),
    "trigamma": _unary(
        trigamma,
        "trigamma",
        r"\operatorname{trigamma}",
        numpy="hurwitz_zeta(2, {})",
        torch="torch.special.zeta(2, {})",  # torch.polygamma(1, x) has nine digits
        value=lambda x: mpmath.polygamma(1, x),
        python="float(hurwitz_zeta(2, {}))",
        jax="jax.scipy.special.polygamma(1, {})",
        scipy="zeta as hurwitz_zeta",
    ),
    "tetragamma": _unary(
        tetragamma,
        "tetragamma",
        r"\operatorname{tetragamma}",
        numpy="(-2 * hurwitz_zeta(3, {}))",
        torch="torch.polygamma(2, {})",
        value=lambda x: mpmath.polygamma(2, x),
        python="float(-2 * hurwitz_zeta(3, {}))",
        jax="jax.scipy.special.polygamma(2, {})",
        scipy="zeta as hurwitz_zeta",
    ),
    "sigmoid": _unary(
        sigmoid,
        "sigmoid",
        r"\operatorname{sigmoid}",
        numpy="sigmoid({})",
        value=lambda x: 1 / (1 + mpmath.exp(-x)),
        jax="jax.nn.sigmoid({})",
        python="(0.5 + 0.5 * math.tanh(0.5 * ({})))",
    ),
    "softplus": Elementwise(
        softplus,
        "np.logaddexp(0, {})",
        "torch.nn.functional.softplus({}, threshold=40)",  # beyond 40 it is x to the last digit
        r"\operatorname{softplus}",
        lambda x: mpmath.log1p(mpmath.exp(x)),
        python="(max({0}, 0) + math.log1p(math.exp(-abs({0}))))",
    ),
    "relu": _unary(
        relu,
        "relu",
        r"\operatorname{ReLU}",
        numpy="np.maximum({}, 0)",
        value=lambda x: max(x, 0),
        python="max({}, 0)",
        text="ReLU",
    ),
    "absolute": _unary(absolute, "abs", value=abs, python="abs({})"),
    "sign": _unary(sign, "sign", r"\operatorname{sign}", python="(({0} > 0) - ({0} < 0))"),
    # tanh stands in for the unspecified activation where numbers are needed
    "sigma": _unary(sigma, "tanh", r"\sigma", python="math.tanh({})", text="σ"),
    "dsigma": Elementwise(
        dsigma,
        "(1 - np.tanh({}) ** 2)",
        "(1 - torch.tanh({}) ** 2)",
        r"\sigma'",
        lambda x: 1 - mpmath.tanh(x) ** 2,
        python="(1 - math.tanh({}) ** 2)",
        text="σ′",
    ),
    "ddsigma": Elementwise(
        ddsigma,
        "(-2 * np.tanh({0}) * (1 - np.tanh({0}) ** 2))",
        "(-2 * torch.tanh({0}) * (1 - torch.tanh({0}) ** 2))",
        r"\sigma''",
        lambda x: -2 * mpmath.tanh(x) * (1 - mpmath.tanh(x) ** 2),
        python="(-2 * math.tanh({0}) * (1 - math.tanh({0}) ** 2))",
        text="σ″",
    ),
}


def spellings(library: str) -> dict[str, str]:
    """The rows that have a spelling of their own there.

    >>> spellings("text")["atan"]
    'arctan'
    """
    return {name: form for name, entry in ELEMENTWISE.items() if (form := getattr(entry, library))}


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

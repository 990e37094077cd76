"""Spell numbers and expressions in sizes as plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy
from sympy import Expr, Integer, Max, Min, Mul, Pow, Rational, Symbol

from gradproof.symbolic.equations.expr import Compare
from gradproof.symbolic.equations.functions import spellings

COMPARE, ADD, MUL, UNARY, POWER, POSTFIX, ATOM = range(7)  # how tightly a printed form binds


# functions of numbers that Python's math module lacks
PYTHON = {**spellings("python"), "maximum": "max({}, {})", "where": "({1} if {0} else {2})"}


class NumberEmitter:
    """A Python float does not widen a float32 array, which NumPy's own float64 would do: hence `math`.

    >>> n = Symbol("n")
    >>> NumberEmitter().number((n - 1) / (2 * sympy.sqrt(n)))
    '(n - 1) / (2 * math.sqrt(n))'
    """

    table: Mapping[str, str] = {"inf": "math.inf"}

    def __init__(self) -> None:
        self.symbols: set[Symbol] = set()  # the sizes and letters that were spelled
        self.forms: set[str] = set()  # what was called: imports and helpers follow from it

    def use(self, form: str) -> str:
        """A spelling, remembered: what it calls must be there."""
        self.forms.add(form)
        return form

    def number(self, value: Expr) -> str:
        return self.numbered(value)[0]

    def bracketed(self, value: Expr, level: int) -> str:
        text, own = self.numbered(value)
        return f"({text})" if own < level else text

    def numbered(self, value: Expr) -> tuple[str, int]:
        """A number or an expression in sizes, as plain Python (a Python float does not widen a float32 array)."""
        if isinstance(value, Symbol):
            self.symbols.add(value)
        if isinstance(value, (Integer, Symbol)):
            return str(value), ATOM if not str(value).startswith("-") else UNARY
        if value in CONSTANTS:
            return self.use(
                CONSTANTS[value].replace("{inf}", self.table["inf"])
            ), ATOM if value is not -sympy.oo else UNARY
        if isinstance(value, sympy.Add):
            terms = sorted(value.args, key=lambda t: (t.could_extract_minus_sign(), t.is_number, str(t)))
            signs = [term.could_extract_minus_sign() for term in terms]
            texts = [self.bracketed(-t if s else t, MUL) for t, s in zip(terms, signs, strict=True)]
            text = ("-" if signs[0] else "") + texts[0]
            return text + "".join(f" {'-' if s else '+'} {t}" for t, s in zip(texts[1:], signs[1:], strict=True)), ADD
        if isinstance(value, (Mul, Rational)) or (isinstance(value, Pow) and value.exp.is_number and value.exp < 0):
            negative = value.could_extract_minus_sign()
            top, bottom = self.fraction(-value if negative else value)
            text = self.divided(" * ".join(top) or "1", bottom)
            return (f"-{text}" if negative else text), MUL if len(top) + len(bottom) > 1 or bottom else ATOM
        if isinstance(value, Pow):
            if value.exp == Rational(1, 2):
                return self.use("math.sqrt({})").format(self.number(value.base)), POSTFIX
            return f"{self.bracketed(value.base, POSTFIX)} ** {self.bracketed(value.exp, POSTFIX)}", POWER
        if isinstance(value, (Max, Min)):
            name = "max" if isinstance(value, Max) else "min"
            return f"{name}({', '.join(map(self.number, sorted(value.args, key=str)))})", POSTFIX
        if isinstance(value, sympy.Float):
            return repr(float(value)), ATOM
        if isinstance(value, Compare):
            left, right = (self.bracketed(side, ADD) for side in value.sides)
            return f"({left} {value.op} {right})", ATOM
        template = PYTHON.get(type(value).__name__)
        if template is not None:
            return self.use(template).format(*map(self.number, value.args)), ATOM
        form = self.use(f"math.{type(value).__name__}({{}})")
        return form.format(", ".join(map(self.number, value.args))), POSTFIX

    def size_terms(self, value: Expr) -> list[tuple[bool, str]]:
        terms = sorted(sympy.Add.make_args(value), key=lambda t: (t.is_number, str(t)))
        signs = [term.could_extract_minus_sign() for term in terms]
        return [(s, self.bracketed(-t if s else t, MUL)) for s, t in zip(signs, terms, strict=True) if t != 0]

    def divided(self, text: str, bottom: Sequence[str]) -> str:
        if not bottom:
            return text
        return f"{text} / {bottom[0]}" if len(bottom) == 1 else f"{text} / ({' * '.join(bottom)})"

    def fraction(self, value: Expr) -> tuple[list[str], list[str]]:
        """The factors above and below the line of a positive scalar."""
        top: list[str] = []
        bottom: list[str] = []
        for factor in Mul.make_args(value):
            if isinstance(factor, Rational):
                if (decimal := short_decimal(factor)) is not None:
                    top.append(decimal)
                    continue
                top += [str(factor.p)] if factor.p != 1 else []
                bottom += [str(factor.q)] if factor.q != 1 else []
            elif isinstance(factor, Pow) and factor.exp.is_number and factor.exp < 0:
                bottom.append(self.bracketed(factor.base ** (-factor.exp), UNARY))
            else:
                top.append(self.bracketed(factor, UNARY))
        return top, bottom


def short_decimal(value: Rational) -> str | None:
    """A fraction that was most likely written as a decimal number: 0.044715, but not 3/2 or 1/3.

    >>> short_decimal(Rational(44715, 1000000)), short_decimal(Rational(1, 2))
    ('0.044715', None)
    """
    rest = value.q
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if value.q < 10 or rest != 1 or value.q & (value.q - 1) == 0:
        return None
    text = repr(float(value))
    return text if Rational(text) == value else None


CONSTANTS = {sympy.pi: "math.pi", sympy.E: "math.e", sympy.oo: "{inf}", -sympy.oo: "-{inf}"}

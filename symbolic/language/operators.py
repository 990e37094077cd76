"""What the operators of the expression language mean, and which powers are refused."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import sympy
from sympy import Expr, Rational

MAX_SUMS = 16  # inside each other, in one statement
MAX_BITS = 4096  # of a number that is computed while reading

BINARY = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
    ast.BitAnd: lambda a, b: a * b,
    ast.BitOr: lambda a, b: a + b - a * b,
}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
CONSTANTS = {"pi": sympy.pi, "inf": sympy.oo}
AMBIGUOUS = {"e": "write exp(1) for Euler's number, or declare a scalar as e:"}  # names that are never guessed


def undeclared(name: str, known: Iterable[str]) -> str:
    """What to say of a name that nothing declares.

    >>> undeclared("y", ["x", "n"])
    'y is not declared; known are x, n'
    >>> undeclared("e", ["x"])
    "e is not declared; write exp(1) for Euler's number, or declare a scalar as e:"
    """
    return f"{name} is not declared; {AMBIGUOUS.get(name) or 'known are ' + (', '.join(known) or 'nothing')}"


def power_fault(base: Expr, exponent: Expr) -> str | None:
    """What is wrong with a power of numbers, if anything.

    >>> power_fault(Rational(0), Rational(-1))
    '0 to a power that is not positive'
    """
    if base == 0 and exponent.is_number and not exponent.is_positive:
        return "0 to a power that is not positive"
    if isinstance(base, Rational) and isinstance(exponent, Rational):
        bits = max(abs(base.p), base.q).bit_length() * (abs(exponent.p) // exponent.q + 1)
        if bits > MAX_BITS:
            return "this number is too large to compute"
        if base < 0 and exponent.q != 1:
            return "a root of a negative number is not real"
    elif isinstance(exponent, Rational) and abs(exponent) > 1000:
        return "an exponent beyond 1000"
    return None

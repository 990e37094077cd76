"""Numbers and sizes: when two sizes are the same, and how a number was written."""

from __future__ import annotations

from sympy import Expr, Rational


def same(a: Expr, b: Expr) -> bool:
    """Whether two sizes are equal whatever the values of their symbols.

    >>> from sympy.abc import n
    >>> same(2 * (n + 1), 2 * n + 2)
    True
    """
    return a == b or (a - b).expand() == 0


def decimal(value: Rational) -> str:
    """A number that was written with decimals; '' for a true fraction.

    >>> decimal(Rational("0.044715")), decimal(Rational("1e-5")), decimal(Rational(3, 8))
    ('0.044715', '1e-5', '')
    """
    two, five, rest = 0, 0, int(value.q)
    while rest % 2 == 0:
        rest, two = rest // 2, two + 1
    while rest % 5 == 0:
        rest, five = rest // 5, five + 1
    if rest != 1 or value.q <= 100:
        return ""
    places = max(two, five)
    digits = str(int(value * 10**places))
    if len(digits) + 3 < places or (len(digits) == 1 and places > 3):
        mantissa = digits[0] + ("." + digits[1:].rstrip("0") if digits[1:].rstrip("0") else "")
        return f"{mantissa}e{len(digits) - 1 - places}"
    padded = digits.rjust(places + 1, "0")
    return f"{padded[:-places]}.{padded[-places:]}"

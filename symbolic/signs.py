"""Terms that differ in the sign of a bracket only, (m − x) and (x − m), are collected."""

from __future__ import annotations

from functools import lru_cache

from sympy import Add, Expr, Integer, Mul, Pow, Rational, S

from gradproof.symbolic.expr import Reduce, rebuild


@lru_cache(maxsize=20_000)
def oriented(expr: Expr) -> tuple[int, Expr]:
    """A sign and the expression with each of its brackets in the one of its two signs that SymPy prefers.

    >>> from gradproof.symbolic.expr import Access
    >>> a, b, c = map(Access, "abc")
    >>> oriented(c * (a - b)) == (-1 * oriented(c * (b - a))[0], oriented(c * (b - a))[1])
    True
    """
    if isinstance(expr, Add):
        return (-1, -expr) if expr.could_extract_minus_sign() else (1, expr)
    if isinstance(expr, Mul):
        parts = [oriented(factor) for factor in expr.args]
        sign = 1
        for part, _ in parts:
            sign *= part
        return sign, Mul(*(rest for _, rest in parts))
    if isinstance(expr, Pow) and isinstance(expr.exp, Integer):
        sign, base = oriented(expr.base)
        return sign ** abs(int(expr.exp)), Pow(base, expr.exp)
    if isinstance(expr, Reduce) and expr.op == "sum":
        sign, body = oriented(expr.body)
        return sign, rebuild(expr, [expr.args[0], body, *expr.args[2:]])
    return 1, expr


def collected(expr: Add) -> Expr:
    """A sum with the terms added up that are multiples of each other; each keeps the form that it has first.

    >>> from gradproof.symbolic.expr import Access
    >>> a, b, c = map(Access, "abc")
    >>> collected(c * (a - b) - c * (b - a))
    2*(a - b)*c
    """
    table: dict[Expr, tuple[Rational, Expr]] = {}
    for term in expr.args:
        number, rest = term.as_coeff_Mul()
        sign, key = oriented(rest)
        if key in table:
            total, first = table[key]
            table[key] = total + number * sign * oriented(first)[0], first
        else:
            table[key] = number, rest
    if len(table) == len(expr.args):
        return expr
    return Add(*(number * rest for number, rest in table.values() if number != S.Zero))

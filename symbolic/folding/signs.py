"""Terms that cancel: those that differ in the sign of a bracket only, (m − x) and (x − m), and those in brackets."""

from __future__ import annotations

from functools import lru_cache

from sympy import Add, Expr, Integer, Mul, Pow, Rational, S, expand_mul

from gradproof.symbolic.equations.expr import Access, Reduce, rebuild


@lru_cache(maxsize=100_000)
def size(expr: Expr) -> int:
    """The number of nodes of an expression; an access counts as one."""
    return 1 if isinstance(expr, Access) or not expr.args else 1 + sum(size(arg) for arg in expr.args)


@lru_cache(maxsize=20_000)
def multiplied_out(expr: Expr) -> Expr:
    """A sum without its brackets, where it is shorter so: y (1 − p) − p (1 − y) is y − p.

    >>> p, y = Access("p"), Access("y")
    >>> multiplied_out(y * (1 - p) - p * (1 - y)), multiplied_out(y * (1 - p) + 1)
    (-p + y, (1 - p)*y + 1)
    """
    if not isinstance(expr, Add):
        return expr
    brackets = [term for term in expr.args if any(isinstance(factor, Add) for factor in Mul.make_args(term))]
    if len(brackets) < 2 or len(expr.args) > 6 or size(expr) > 60:
        return expr
    spread = Add(*(expand_mul(term, deep=False) if term in brackets else term for term in expr.args))
    return spread if size(spread) < size(expr) else expr


@lru_cache(maxsize=20_000)
def oriented(expr: Expr) -> tuple[int, Expr]:
    """A sign and the expression with each of its brackets in the one of its two signs that SymPy prefers.

    >>> from gradproof.symbolic.equations.expr import Access
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

    >>> from gradproof.symbolic.equations.expr import Access
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


@lru_cache(maxsize=20_000)
def cancelled(expr: Expr) -> Expr:
    """A sum over one denominator, where it is shorter so: 1/(a + b) − a/(a + b)² is b/(a + b)².

    >>> from gradproof.symbolic.equations.expr import Access
    >>> a, b = map(Access, "ab")
    >>> cancelled(1 / (a + b) - a / (a + b) ** 2), cancelled(1 - a / b)
    (b/(a + b)**2, -a/b + 1)
    """
    if not isinstance(expr, Add) or len(expr.args) > 4:
        return expr
    below: dict[Expr, Expr] = {}
    for factor in (factor for term in expr.args for factor in Mul.make_args(term)):
        base, power = factor.as_base_exp()
        if isinstance(base, Add) and isinstance(power, Integer) and -3 <= power < 0 and size(base) < 30:
            below[base] = min(power, below.get(base, power))
    for base, power in below.items():
        above = Add(*(expand_mul(term * base**-power, deep=False) for term in expr.args))
        if size(above * base**power) < size(expr):
            return above * base**power
    return expr

"""Between which numbers the values of an index expression lie, by interval arithmetic.

What is not known of a value is not guessed: it lies between −∞ and ∞.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from sympy import Add, Expr, Function, Max, Min, Mul, Pow, S, Symbol, exp, log, oo, pi

from gradproof.symbolic.equations.expr import Access, Compare, Reduce
from gradproof.symbolic.equations.functions import maximum, spelled, where


@dataclass(frozen=True)
class Range:
    """All values lie between `low` and `high`, both included where they are finite."""

    low: Expr = -oo
    high: Expr = oo

    @property
    def nonnegative(self) -> bool:
        return bool(self.low >= 0)

    @property
    def apart(self) -> bool:
        """Whether no value is as near to 0 as one likes."""
        return bool(self.low > 0) or bool(self.high < 0)

    def joined(self, other: Range) -> Range:
        return Range(Min(self.low, other.low), Max(self.high, other.high))


ALL, NONNEGATIVE, UNIT = Range(), Range(S.Zero, oo), Range(S.Zero, S.One)
SIGNED = Range(-S.One, S.One)

# f: its values, whatever its argument is
IMAGES: dict[str, Range] = {
    "sigmoid": UNIT,
    "tanh": SIGNED,
    "erf": SIGNED,
    "sin": SIGNED,
    "cos": SIGNED,
    "sign": SIGNED,
    "atan": Range(-pi / 2, pi / 2),
    "cosh": Range(S.One, oo),
    "softplus": NONNEGATIVE,
}
# f that rises: [a, b] → [f(a), f(b)]
RISING: dict[str, Callable[[Expr], Expr]] = {
    "exp": exp,
    "log": lambda x: log(x) if x > 0 else -oo,
    "relu": lambda x: Max(x, 0),
}


def ranged(expr: Expr, entry: Callable[[Access], Range]) -> Range:
    """The range of an expression, given that of each access.

    >>> ranged(1 / (1 + Access("x") ** 2), lambda access: ALL)
    Range(low=0, high=1)
    """

    def of(node: Expr) -> Range:
        if isinstance(node, Access):
            return entry(node)
        if node.is_number and node.is_extended_real:
            return Range(node, node)
        if isinstance(node, Symbol):
            one = node.is_integer and node.is_positive
            return Range(S.One, oo) if one else NONNEGATIVE if node.is_nonnegative else ALL
        if isinstance(node, Add):
            parts = [of(arg) for arg in node.args]
            return Range(Add(*(part.low for part in parts)), Add(*(part.high for part in parts)))
        if isinstance(node, Mul):
            found = Range(S.One, S.One)
            for arg in node.args:
                found = _times(found, of(arg))
            return found
        if isinstance(node, Pow):
            return _power(of(node.base), node.exp)
        if isinstance(node, Compare):
            return UNIT
        if isinstance(node, where):
            return of(node.args[1]).joined(of(node.args[2]))
        if isinstance(node, maximum):
            one, other = map(of, node.args)
            return Range(Max(one.low, other.low), Max(one.high, other.high))
        if isinstance(node, Reduce):
            return _reduced(node, of(node.body))
        return _function(node, of) if isinstance(node, Function) else ALL

    return of(expr)


def _times(a: Range, b: Range) -> Range:
    corners = [S.Zero if 0 in (x, y) else x * y for x, y in product((a.low, a.high), (b.low, b.high))]
    return Range(Min(*corners), Max(*corners))


def _power(base: Range, exponent: Expr) -> Range:
    """x^q; an even power has no sign, a root needs x ≥ 0, a negative power x ≠ 0."""
    if not exponent.is_Rational:
        return NONNEGATIVE if base.nonnegative else ALL
    if exponent.q == 1 and exponent.p % 2 == 0:
        size = _times(base, Range(-S.One, -S.One)) if base.high <= 0 else base
        low = size.low if size.low >= 0 else S.Zero
        base = Range(low, Max(abs(base.low), abs(base.high)))
    elif exponent.q != 1 and not base.nonnegative:
        return NONNEGATIVE
    if exponent > 0:
        return Range(base.low**exponent, base.high**exponent)
    if not base.apart:
        return NONNEGATIVE if base.nonnegative else ALL
    ends = [S.Zero if abs(end) == oo else end**exponent for end in (base.low, base.high)]
    return Range(Min(*ends), Max(*ends))


def _reduced(node: Reduce, body: Range) -> Range:
    """A sum of one or more nonnegative terms is at least one of them; a largest value is one of the values."""
    some = all((hi - lo).is_positive for _, lo, hi in node.axes)
    if node.op == "max":
        return body
    if node.op == "prod":
        return body if body.nonnegative and body.high <= 1 else NONNEGATIVE if body.nonnegative else ALL
    if body.nonnegative:
        return Range(body.low if some else S.Zero, oo if body.high > 0 else S.Zero)
    return Range(-oo, body.high if some else S.Zero) if body.high <= 0 else ALL


def _function(node: Function, of: Callable[[Expr], Range]) -> Range:
    name = spelled(node)
    if name in RISING:
        inner = of(node.args[0])
        return Range(RISING[name](inner.low), RISING[name](inner.high))
    if name == "absolute":
        return _power(_power(of(node.args[0]), S(2)), S.Half)
    return IMAGES.get(name, ALL)

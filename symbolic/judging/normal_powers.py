"""Powers, exponentials and logarithms of normal forms.

    exp(2a + b) = exp(a)² exp(b)      log(c·e^a·x) = log c + a + log x      (4y²x)^(1/2) = 2 |y| x^(1/2)
    exp(n·log x) = xⁿ                 exp(a)ⁿ = exp(n·a)                (x²/y)ⁿ = (xⁿ)²/yⁿ for a whole number n

A factor leaves a root or a logarithm only if it is positive, or if what is left would have no value otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sympy import Expr, Integer, Pow, Rational, S, exp, factorint, log

from gradproof.symbolic.equations.expr import Compare
from gradproof.symbolic.equations.functions import sign
from gradproof.symbolic.judging.polynomials import (
    ONE,
    NoNormalForm,
    Poly,
    added,
    atom,
    common,
    constant,
    content,
    expr_of,
    fraction,
    frozen,
    leading,
    number_root,
    product_expr,
    rational,
    scaled,
)

if TYPE_CHECKING:
    from gradproof.symbolic.judging.normal_form import Normal, Scope

MAX_POWER = 12  # to which a bracket is multiplied out


class Powers:
    """The rules for powers, for one `Normal`."""

    def __init__(self, normal: Normal) -> None:
        self.normal = normal

    def exponential(self, poly: Poly, scope: Scope) -> Poly:
        """exp(c·m + …) = exp(m)^c …; of a logarithm the power of its argument."""
        parts = []
        for mono, number in poly.items():
            logs = [base for base, power in mono if isinstance(base, log) and power == 1]
            if mono == ONE:
                parts.append(atom(S.Exp1, number))
            elif len(logs) != 1:
                parts.append(atom(exp(product_expr(mono)), number))
            elif len(mono) == 1:
                parts.append(self.power(self.normal.of(logs[0].args[0], scope), number, scope))
            else:
                rest = product_expr({base: power for base, power in mono if base != logs[0]})
                parts.append(self.pow(Pow(logs[0].args[0], rational(number) * rest), scope))
        return self.normal.product(parts, scope)

    def logarithm(self, poly: Poly, scope: Scope) -> Poly:
        """log(c·a^e·…) = log c + e·log a + … for positive factors."""
        if not poly:
            raise NoNormalForm("the logarithm of 0")
        outside = common(poly, False, self.normal.positives)
        number = content(poly)
        divided = {frozen({base: -power for base, power in outside.items()}): 1 / number}
        inside = self.normal.product([poly, divided], scope)
        if len(inside) == 1:
            ((mono, factor),) = inside.items()
            base, power = next(iter(mono)) if len(mono) == 1 else (None, Fraction(0))
            if factor == 1 and power % 2 == 1 and power != 1:  # x³ has a logarithm only where x has one
                outside[base], inside = power, constant(1)
        parts = [scaled(self._log_of(base, scope), power) for base, power in outside.items()]
        parts.append(_log_number(number))
        if inside != constant(1):
            parts.append(atom(log(expr_of(inside))))
        return added(parts)

    def _log_of(self, base: Expr, scope: Scope) -> Poly:
        if isinstance(base, exp):
            return self.normal.of(base.args[0], scope)
        if isinstance(base, Pow) and self.normal.positive(base.base):
            return self.normal.of(base.exp * log(base.base), scope)
        return constant(1) if base is S.Exp1 else atom(log(base))

    def pow(self, expr: Pow, scope: Scope) -> Poly:
        """b^e; for an e that is no number, b^(c·m + …) = (b^m)^c …"""
        base, exponent = expr.base, expr.exp
        inside = self.normal.of(base, scope)
        if isinstance(exponent, Rational):
            return self.power(inside, fraction(exponent), scope)
        if len(inside) == 1 and ONE not in inside and all(isinstance(b, exp) for mono in inside for b, _ in mono):
            logs = self.logarithm(inside, scope)
            return self.exponential(self.normal.product([logs, self.normal.of(exponent, scope)], scope), scope)
        times = dict(self.normal.of(exponent, scope))
        if len(inside) == 1 and self.normal.conditions.whole(times):
            ((factors, number),) = inside.items()
            bases = {rational(number): Fraction(1), **dict(factors)}
        else:
            bases = {expr_of(inside): Fraction(1)}
        parts = [self.power(inside, times.pop(ONE, Fraction(0)), scope)]
        for mono, number in times.items():
            parts += [atom(Pow(b, product_expr(mono)), number * power) for b, power in bases.items() if b != 1]
        return self.normal.product(parts, scope)

    def power(self, poly: Poly, exponent: Fraction, scope: Scope) -> Poly:
        """A normal form to a rational power."""
        if exponent == 0:
            return constant(1)
        whole = exponent.denominator == 1
        if len(poly) > 1 and whole and exponent > 0:
            if exponent > MAX_POWER:
                raise NoNormalForm("the power is too high")
            return self.normal.product([poly] * int(exponent), scope)
        return self.normal.by_cases(poly, lambda case, scope: self._unconditional(case, exponent, scope), scope)

    def _unconditional(self, poly: Poly, exponent: Fraction, scope: Scope) -> Poly:
        whole = exponent.denominator == 1
        if not poly and exponent < 0:
            raise NoNormalForm("a division by zero")
        if not poly:
            return {}
        if len(poly) == 1:
            ((mono, number),) = poly.items()
            return self._of_product(dict(mono), number, exponent, scope)
        shared = common(poly, whole, self.normal.positives)
        outside = {base: p for base, p in shared.items() if not isinstance(base, Compare)}
        number = content(poly)
        if whole and poly[leading(poly)] < 0:
            number = -number
        inverse = {frozen({base: -power for base, power in outside.items()}): 1 / number}
        inside = self.normal.product([poly, inverse], scope)
        if len(inside) == 1:
            bracket = self.power(inside, exponent, scope)
        else:
            bracket = self.normal.settled({expr_of(inside): exponent}, Fraction(1), scope)
        return self.normal.product([bracket, self._of_product(outside, number, exponent, scope)], scope)

    def _of_product(self, factors: dict[Expr, Fraction], number: Fraction, exponent: Fraction, scope: Scope) -> Poly:
        """(c·a^e·…)^q."""
        normal = self.normal
        if exponent.denominator == 1:
            if exponent < 0 and any(isinstance(base, Compare) for base in factors):
                raise NoNormalForm("a division by a condition")
            return normal.settled({base: p * exponent for base, p in factors.items()}, number ** int(exponent), scope)
        inside: dict[Expr, Fraction] = {}
        outside: dict[Expr, Fraction] = {}
        parts: list[Poly] = []
        for base, power in factors.items():
            if isinstance(base, Compare):
                if exponent < 0:
                    raise NoNormalForm("a division by a condition")
                outside[base] = Fraction(1)
            elif self.normal.positive(base) or power.denominator > 1:  # what has a root already is positive
                outside[base] = power * exponent
            elif power % 2 == 0 and (power * exponent).denominator == 1:
                parts.append(self._absolute(base, int(power * exponent), scope))
            else:
                inside[base] = power
        if number < 0 and not inside:
            raise NoNormalForm("a root of a negative number")
        parts += [number_root(abs(number), exponent), normal.settled(outside, Fraction(1), scope)]
        alone = next(iter(inside.items())) if len(inside) == 1 and number > 0 else (None, Fraction(0))
        if alone[1] % 2 == 1:  # the root of x³ has a value only where x is not negative
            parts.append(normal.settled({alone[0]: alone[1] * exponent}, Fraction(1), scope))
        elif inside:
            parts.append(atom(expr_of({frozen(inside): Fraction(1 if number > 0 else -1)}), exponent))
        return normal.product(parts, scope)

    def _absolute(self, base: Expr, power: int, scope: Scope) -> Poly:
        """|x|^k."""
        plain = self.normal.settled({base: Fraction(power)}, Fraction(1), scope)
        return plain if power % 2 == 0 else self.normal.product([plain, self.normal.of(sign(base), scope)], scope)


def _log_number(number: Fraction) -> Poly:
    """log 12 = 2 log 2 + log 3.

    >>> _log_number(Fraction(1, 8))
    {frozenset({(log(2), Fraction(1, 1))}): Fraction(-3, 1)}
    """
    parts = []
    for value, direction in ((number.numerator, 1), (number.denominator, -1)):
        parts += [scaled(atom(log(Integer(p))), direction * count) for p, count in factorint(value).items()]
    return added(parts)

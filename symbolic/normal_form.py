"""The normal form of index expressions, in which equal ones (of a large class) are the same: this is what proves a claim.

Products are multiplied out over sums, sums are pushed into their terms and flattened to sums of products, what a sum
does not reach leaves it, functions keep normal forms as arguments. Powers of brackets stay whole, and what divides out
is divided out: with B = l + r and l the largest product of B,

    l · B^q  =  B^(q+1) − r · B^q        for q < 0

so that Σ_j exp(s_j)/Z = 1 and mean(c²)/(v + ε) = 1 − ε/(v + ε) come out by themselves. Two expressions are equal if the
normal form of their difference is 0; the converse holds for what is rational in entries, sums and exponentials of
independent arguments. The work is bounded: beyond that, `NoNormalForm` is raised.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from time import monotonic

from sympy import Add, Expr, Function, Integer, Mul, NumberSymbol, Pow, Rational, S, Symbol, exp, factorint, log

from gradproof.symbolic.expr import Access, Axis, Compare, Index, Reduce, letters, open_, reduce_
from gradproof.symbolic.fold import Facts, plain
from gradproof.symbolic.functions import sign, where
from gradproof.symbolic.identities import IN_TERMS_OF, SQUARES
from gradproof.symbolic.normal_conditions import Conditions
from gradproof.symbolic.normal_sums import Sums
from gradproof.symbolic.polynomials import (
    ONE,
    Mono,
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
    merged,
    number_root,
    positive,
    product_expr,
    scaled,
)
from gradproof.symbolic.system import System

Scope = dict[Index, tuple[Expr, Expr]]
MAX_POWER = 12


def vanishes(system: System, difference: Expr, axes: tuple[Axis, ...], keep: Collection[str] = (), **options: object) -> bool:
    """Whether the normal form of an expression is 0; arrays in `keep` are not replaced by their definitions.

    Raises NoNormalForm where the expression is too large.
    """
    normal = Normal(system, keep, **options)  # type: ignore[arg-type]
    scope = {letter: (lo, hi) for letter, lo, hi in axes}
    return not normal.cleared(normal.of(difference, scope), scope)


class Normal:
    """Computes normal forms of expressions over one system."""

    def __init__(
        self,
        system: System,
        keep: Collection[str] = (),
        facts: Facts | None = None,
        generic: bool = False,
        budget: int = 2500,
        seconds: float = 1.0,
    ) -> None:
        self.system, self.keep, self.facts, self.generic = system, frozenset(keep), facts or {}, generic
        self.budget, self.deadline = budget, monotonic() + seconds
        self.memo: dict[object, Poly] = {}
        self.conditions = Conditions(self)
        self.sums = Sums(self)

    def spend(self, amount: int = 1) -> None:
        self.budget -= amount
        if self.budget < 0 or monotonic() > self.deadline:
            raise NoNormalForm("the normal form is too large")

    # --- from expressions

    def of(self, expr: Expr, scope: Scope) -> Poly:
        """The normal form of an expression whose free letters run over the ranges in `scope`."""
        key = (expr, *((letter, *scope[letter]) for letter in sorted(letters(expr), key=str)))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._of(expr, scope)
        return found

    def _of(self, expr: Expr, scope: Scope) -> Poly:
        self.spend()
        if isinstance(expr, Rational):
            return constant(fraction(expr))
        if isinstance(expr, Access):
            return self.access(expr, scope)
        if isinstance(expr, Add):
            return added(self.of(arg, scope) for arg in expr.args)
        if isinstance(expr, Mul):
            return self.product((self.of(arg, scope) for arg in expr.args), scope)
        if isinstance(expr, Pow):
            return self.pow(expr, scope)
        if isinstance(expr, Reduce):
            return self.reduction(expr, scope)
        if isinstance(expr, Compare):
            return self.conditions.of(expr.op, *expr.sides, scope)
        if isinstance(expr, Function):
            return self.function(expr, scope)
        if isinstance(expr, (Symbol, NumberSymbol)):
            return atom(expr)
        raise NoNormalForm(f"{type(expr).__name__} has no normal form")

    def access(self, expr: Access, scope: Scope) -> Poly:
        if expr.name in self.system.defined and expr.name not in self.keep:
            definition = plain(self.system, expr.name)
            if definition is not None and not self.sums.implicit(definition):
                mapping = dict(zip(definition.place, expr.indices, strict=True))
                return self.of(definition.body.xreplace(mapping), scope)
        indices = [index if isinstance(index, Symbol) else expr_of(self.of(index, scope)) for index in expr.indices]
        return self.sums.entry(Access(expr.args[0], *indices), scope)

    def reduction(self, expr: Reduce, scope: Scope) -> Poly:
        body, axes = open_(expr, scope)
        inner = scope | {letter: (lo, hi) for letter, lo, hi in axes}
        poly = self.of(body, inner)
        if expr.op == "sum":
            return self.sums.total(poly, axes, scope)
        if not poly:
            return {}
        return atom(reduce_(expr.op, expr_of(poly), axes))

    def function(self, expr: Function, scope: Scope) -> Poly:
        kind = type(expr)
        if kind is exp:
            return self.exponential(self.of(expr.args[0], scope), scope)
        if kind is log:
            return self.logarithm(self.of(expr.args[0], scope), scope)
        if kind is where:
            condition, a, b = expr.args
            weight = self.of(condition, scope)
            if any(not isinstance(base, Compare) for mono in weight for base, _ in mono):
                raise NoNormalForm("a condition that is a number")
            rest = added([constant(1), scaled(weight, -1)])
            chosen = [self.product([weight, self.of(a, scope)], scope), self.product([rest, self.of(b, scope)], scope)]
            return added(chosen)
        if kind in IN_TERMS_OF:
            return self.of(IN_TERMS_OF[kind](*expr.args), scope)
        value = kind(*(expr_of(self.of(arg, scope)) for arg in expr.args))
        number, rest = value.as_coeff_Mul()  # SymPy knows that sin(−x) = −sin(x)
        if isinstance(rest, kind):
            return scaled(atom(rest), fraction(number))
        return self.of(value, scope)

    def exponential(self, poly: Poly, scope: Scope) -> Poly:
        """exp(c·m + …) = exp(m)^c …; of a logarithm the power of its argument."""
        parts = []
        for mono, number in poly.items():
            alone = next(iter(mono)) if len(mono) == 1 else (None, 0)
            if mono == ONE:
                parts.append(atom(S.Exp1, number))
            elif isinstance(alone[0], log) and alone[1] == 1:
                parts.append(self.power(self.of(alone[0].args[0], scope), number, scope))
            else:
                value = exp(product_expr(mono))
                parts.append(atom(value, number) if isinstance(value, exp) else self.pow_of(value, number, scope))
        return self.product(parts, scope)

    def pow_of(self, value: Expr, number: Fraction, scope: Scope) -> Poly:
        return self.power(self.of(value, scope), number, scope)

    def logarithm(self, poly: Poly, scope: Scope) -> Poly:
        """log(c·a^e·…) = log c + e·log a + … for positive factors."""
        if not poly:
            raise NoNormalForm("the logarithm of 0")
        outside = common(poly, False)
        number = content(poly)
        inside = self.product([scaled(poly, 1 / number), {frozen({b: -p for b, p in outside.items()}): Fraction(1)}], scope)
        if len(inside) == 1:
            ((mono, sign),) = inside.items()
            if sign == 1 and len(mono) == 1:
                ((base, power),) = mono
                if power % 2 and power.denominator == 1 and power != 1:  # x³ has a logarithm where x has one
                    outside[base], inside = power, constant(1)
        parts = [scaled(self._log_of(base, scope), power) for base, power in outside.items()]
        parts.append(self._log_number(number))
        if inside != constant(1):
            value = expr_of(inside)
            parts.append(atom(log(value)))
        return added(parts)

    def _log_of(self, base: Expr, scope: Scope) -> Poly:
        if isinstance(base, exp):
            return self.of(base.args[0], scope)
        return constant(1) if base is S.Exp1 else atom(log(base))

    def _log_number(self, number: Fraction) -> Poly:
        parts = []
        for value, sign in ((number.numerator, 1), (number.denominator, -1)):
            parts += [scaled(atom(log(Integer(prime))), sign * count) for prime, count in factorint(value).items()]
        return added(parts)

    # --- products and powers

    def product(self, polys: object, scope: Scope) -> Poly:
        result = constant(1)
        for poly in polys:  # type: ignore[attr-defined]
            if len(result) * len(poly) > self.budget:
                raise NoNormalForm("the product is too large")
            result = added(
                self.settled(merged(a, b), number * factor, scope)
                for a, number in result.items()
                for b, factor in poly.items()
            )
        return result

    def settled(self, factors: dict[Expr, Fraction], number: Fraction, scope: Scope) -> Poly:
        """The normal form of a product of atoms."""
        self.spend()
        for base, power in factors.items():
            kind = type(base)
            if kind is Integer:
                if not 0 < power < 1:
                    root = number_root(Fraction(int(base)), power)
                    return self._again(factors, base, scaled(root, number), scope)
            elif kind is Compare:
                found = self.conditions.applied(factors, base, number, scope)
                if found is not None:
                    return found
            elif kind in (Add, Mul) or (kind is Pow and base.exp.is_number):
                if power >= 1:
                    whole = self.of(base, scope)
                    powers = {**factors, base: power - 1} if power != 1 else {b: p for b, p in factors.items() if b != base}
                    return self.product([whole, self.settled(powers, number, scope)], scope)
                if power < 0 and (found := self.divided(factors, base, number, scope)) is not None:
                    return found
            elif kind in SQUARES and power >= 2:
                rest = {**factors, base: power - 2} if power != 2 else {b: p for b, p in factors.items() if b != base}
                square = self.of(SQUARES[kind](base.args[0]), scope)
                return self.product([square, self.settled(rest, number, scope)], scope)
        return {frozen(factors): number} if number else {}

    def _again(self, factors: dict[Expr, Fraction], base: Expr, value: Poly, scope: Scope) -> Poly:
        rest = {other: power for other, power in factors.items() if other != base}
        return self.product([value, self.settled(rest, Fraction(1), scope)], scope)

    def divided(self, factors: dict[Expr, Fraction], base: Expr, number: Fraction, scope: Scope) -> Poly | None:
        """l · B^q as B^(q+1) − r · B^q, if the largest product l of B is among the factors."""
        whole = self.of(base, scope)
        top = leading(whole)
        if top == ONE or not all(contains(factors.get(b, Fraction(0)), power) for b, power in top):
            return None
        rest = merged(factors.items(), ((b, -power) for b, power in top))
        return self.quotient(rest, base, whole, top, number, scope)

    def quotient(
        self, rest: dict[Expr, Fraction], base: Expr, whole: Poly, top: Mono, number: Fraction, scope: Scope
    ) -> Poly:
        """`rest` · l with the l taken out already."""
        number /= whole[top]
        others = {mono: -value for mono, value in whole.items() if mono != top}
        up = self.settled(merged(rest.items(), ((base, Fraction(1)),)), number, scope)
        down = self.product([others, self.settled(rest, number, scope)], scope) if others else {}
        return added([up, down])

    def power(self, poly: Poly, exponent: Fraction, scope: Scope) -> Poly:
        """A normal form to a rational power."""
        if exponent == 0:
            return constant(1)
        if not poly:
            if exponent < 0:
                raise NoNormalForm("a division by zero")
            return {}
        whole = exponent.denominator == 1
        if len(poly) == 1:
            ((mono, number),) = poly.items()
            return self._power_of_product(dict(mono), number, exponent, scope)
        if whole and exponent > 0:
            if exponent > MAX_POWER:
                raise NoNormalForm("the power is too high")
            return self.product([poly] * int(exponent), scope)
        outside = {base: p for base, p in common(poly, whole).items() if not isinstance(base, Compare)}
        number = content(poly)
        if whole and poly[leading(poly)] < 0:
            number = -number
        inverse = {frozen({base: -power for base, power in outside.items()}): 1 / number}
        inside = self.product([poly, inverse], scope)
        if len(inside) == 1:  # what was left is a single product
            parts = [self.power(inside, exponent, scope)]
        else:
            parts = [self.settled({expr_of(inside): exponent}, Fraction(1), scope)]
        parts.append(self._power_of_product(outside, Fraction(number), exponent, scope))
        return self.product(parts, scope)

    def _power_of_product(
        self, factors: dict[Expr, Fraction], number: Fraction, exponent: Fraction, scope: Scope
    ) -> Poly:
        """(c·a^e·…)^q: a factor leaves the bracket if q is whole or the factor is positive; x² as |x|²."""
        if exponent.denominator == 1:
            if exponent < 0 and any(isinstance(base, Compare) for base in factors):
                raise NoNormalForm("a division by a condition")
            return self.settled({base: p * exponent for base, p in factors.items()}, number ** int(exponent), scope)
        inside: dict[Expr, Fraction] = {}
        parts: list[Poly] = []
        outside: dict[Expr, Fraction] = {}
        for base, power in factors.items():
            if positive(base) or power.denominator % 2 == 0 or isinstance(base, Compare):
                outside[base] = power * exponent if not isinstance(base, Compare) else Fraction(1)
            elif power % 2 == 0 and (power * exponent).denominator == 1:
                parts.append(self._absolute(base, int(power * exponent), scope))
            else:
                inside[base] = power
        sign = Fraction(1) if number > 0 or not inside else Fraction(-1)
        parts.append(number_root(number * sign, exponent) if number * sign > 0 else self._no_root())
        parts.append(self.settled(outside, Fraction(1), scope))
        if len(inside) == 1 and sign == 1:
            ((base, power),) = inside.items()
            if power % 2 == 1:
                inside = {}
                parts.append(self.settled({base: power * exponent}, Fraction(1), scope))
        if inside:
            parts.append(atom(expr_of({frozen(inside): sign}), exponent))
        return self.product(parts, scope)

    def _no_root(self) -> Poly:
        raise NoNormalForm("a root of a negative number")

    def _absolute(self, base: Expr, power: int, scope: Scope) -> Poly:
        """|x|^k."""
        plain_power = self.settled({base: Fraction(power)}, Fraction(1), scope)
        if power % 2 == 0:
            return plain_power
        return self.product([plain_power, self.of(sign(base), scope)], scope)

    def pow(self, expr: Pow, scope: Scope) -> Poly:
        base, exponent = expr.base, expr.exp
        if isinstance(exponent, Rational):
            return self.power(self.of(base, scope), fraction(exponent), scope)
        parts = []
        inside = self.of(base, scope)
        shown = expr_of(inside)
        for mono, number in self.of(exponent, scope).items():
            if mono == ONE:
                parts.append(self.power(inside, number, scope))
            else:
                parts.append(atom(Pow(shown, product_expr(mono)), number))
        return self.product(parts, scope)

    # --- the end

    def cleared(self, poly: Poly, scope: Scope) -> Poly:
        """The sum times its denominators, which are not 0 where it has a value: 0 if and only if the sum is."""
        for _ in range(8):
            powers = merged_denominators(poly)
            if not poly or not powers:
                return poly
            base, power = max(powers.items(), key=lambda item: str(item[0]))
            poly = self.product([poly, {frozen({base: power}): Fraction(1)}], scope)
        return poly


def contains(have: Fraction, need: Fraction) -> bool:
    return have >= need if need > 0 else have <= need


def merged_denominators(poly: Mapping[Mono, Fraction]) -> dict[Expr, Fraction]:
    """The brackets that a sum divides by, with the power that clears them."""
    found: dict[Expr, Fraction] = {}
    for mono in poly:
        for base, power in mono:
            if power < 0 and isinstance(base, (Add, Mul, Pow)):
                found[base] = max(found.get(base, Fraction(0)), Fraction(-(power.numerator // power.denominator)))
    return found

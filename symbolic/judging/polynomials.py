"""Sums of products as plain dictionaries: what a normal form is made of.

A product is a set of (atom, exponent) pairs, a sum a dictionary from products to rational numbers. Atoms are index
expressions that are not taken apart: accesses, sizes, letters, functions, sums over letters, primes under a root.

    3·x² y⁻¹ − 2      {{(x, 2), (y, −1)}: 3, {}: −2}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from sympy import Add, Expr, Integer, Mul, NumberSymbol, Pow, Rational, Symbol, exp, factorint

from gradproof.symbolic.equations.expr import Access, Reduce, Size
from gradproof.symbolic.errors import GradproofError

Mono = frozenset[tuple[Expr, Fraction]]
Poly = dict[Mono, Fraction]
ONE: Mono = frozenset()


class NoNormalForm(GradproofError):
    """The expression is too large for a normal form, or holds what has none."""


def constant(value: Fraction | int) -> Poly:
    return {ONE: Fraction(value)} if value else {}


def atom(expr: Expr, exponent: Fraction | int = 1) -> Poly:
    return {frozenset(((expr, Fraction(exponent)),)): Fraction(1)}


def added(polys: Iterable[Poly]) -> Poly:
    """The sum of several sums.

    >>> added([constant(2), constant(-2)])
    {}
    """
    total: Poly = {}
    for poly in polys:
        for mono, number in poly.items():
            value = total.get(mono, 0) + number
            if value:
                total[mono] = value
            else:
                total.pop(mono, None)
    return total


def scaled(poly: Poly, number: Fraction | int) -> Poly:
    return {mono: value * number for mono, value in poly.items()} if number else {}


def merged(*monos: Iterable[tuple[Expr, Fraction]]) -> dict[Expr, Fraction]:
    """The product of products, as atom → exponent."""
    found: dict[Expr, Fraction] = {}
    for mono in monos:
        for base, power in mono:
            value = found.get(base, Fraction(0)) + power
            if value:
                found[base] = value
            else:
                found.pop(base, None)
    return found


def frozen(factors: Mapping[Expr, Fraction]) -> Mono:
    return frozenset(factors.items())


def rational(value: Fraction | int) -> Rational:
    value = Fraction(value)
    return Rational(value.numerator, value.denominator)


def fraction(value: Rational) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def product_expr(factors: Mapping[Expr, Fraction] | Mono) -> Expr:
    """A product as an index expression."""
    items = factors.items() if isinstance(factors, Mapping) else factors
    return Mul(*(Pow(base, rational(power)) for base, power in items))


def expr_of(poly: Poly) -> Expr:
    """A sum as an index expression.

    >>> expr_of(added([atom(Size("n")), constant(2)]))
    n + 2
    """
    return Add(*(rational(number) * product_expr(mono) for mono, number in poly.items()))


def number_root(value: Fraction, power: Fraction) -> Poly:
    """A positive number to a rational power: 12^(1/2) is 2·3^(1/2)."""
    found: dict[Expr, Fraction] = {}
    outside = Fraction(1)
    for base, sign in ((value.numerator, 1), (value.denominator, -1)):
        for prime, count in factorint(base).items():
            whole, rest = divmod(sign * count * power, 1)
            outside *= Fraction(prime) ** int(whole)
            if rest:
                found[Integer(prime)] = found.get(Integer(prime), Fraction(0)) + rest
    for prime, power_here in list(found.items()):
        whole, rest = divmod(power_here, 1)
        outside *= Fraction(int(prime)) ** int(whole)
        found[prime] = rest
    return {frozenset((base, rest) for base, rest in found.items() if rest): outside}


@lru_cache(maxsize=50_000)
def degree(expr: Expr) -> int:
    """How many entries of arrays an atom multiplies."""
    if isinstance(expr, Access):
        return 1
    if isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp > 0:
        return degree(expr.base) * int(expr.exp)
    if isinstance(expr, Reduce):
        return degree(expr.body)
    if isinstance(expr, Mul):
        return sum(degree(arg) for arg in expr.args)
    return 0 if not expr.args or isinstance(expr, Symbol) else 1


@lru_cache(maxsize=50_000)
def mono_key(mono: Mono) -> tuple[object, ...]:
    """A fixed order of products: by degree, then by what they look like."""
    parts = sorted((str(base), power) for base, power in mono)
    return sum((degree(base) * power for base, power in mono), Fraction(0)), parts


def leading(poly: Poly) -> Mono:
    """The largest product of a sum."""
    return max(poly, key=mono_key)


def contains(factors: Mapping[Expr, Fraction], mono: Mono) -> bool:
    """Whether a product has another one as a factor, exponent by exponent on the same side of 0."""
    return all(0 < power <= factors.get(base, 0) or 0 > power >= factors.get(base, 0) for base, power in mono)


def head(poly: Poly) -> Mono:
    """The largest product, if it can be replaced by the others: ONE if it is a factor of one of them."""
    top = leading(poly)
    return ONE if any(mono != top and contains(dict(mono), top) for mono in poly) else top


def positive(expr: Expr, known: Collection[str] = ()) -> bool:
    """Whether an atom is known to be positive wherever it is defined; `known` are arrays whose entries are."""
    if isinstance(expr, (exp, Size, NumberSymbol)):
        return True
    if isinstance(expr, Access):
        return expr.name in known
    if isinstance(expr, Reduce) and expr.op in ("sum", "prod", "max"):
        return positive(expr.body, known)
    if isinstance(expr, Add):
        terms = [(positive(arg, known), nonnegative_square(arg, known)) for arg in expr.args]
        return any(sure for sure, _ in terms) and all(sure or square for sure, square in terms)
    if isinstance(expr, Mul):
        return all(positive(arg, known) for arg in expr.args)
    if isinstance(expr, Pow):
        return positive(expr.base, known)
    return isinstance(expr, Rational) and bool(expr > 0)


def nonnegative_square(expr: Expr, known: Collection[str] = ()) -> bool:
    """Whether an expression is a product of squares and positive factors, or a sum of such."""
    if isinstance(expr, Reduce):
        return expr.op == "sum" and nonnegative_square(expr.body, known)
    if isinstance(expr, Mul):
        return all(nonnegative_square(arg, known) for arg in expr.args)
    if isinstance(expr, Pow) and isinstance(expr.exp, Integer) and expr.exp % 2 == 0:
        return True
    return positive(expr, known)


def common(poly: Poly, allowed: bool, known: Collection[str] = ()) -> dict[Expr, Fraction]:
    """The least exponents of the atoms that a sum can do without; only of positive atoms unless `allowed`."""
    bases = {base for mono in poly for base, _ in mono}
    least: dict[Expr, Fraction] = {}
    for base in bases:
        power = min(dict(mono).get(base, Fraction(0)) for mono in poly)
        inverted = power < 0 and nonnegative_square(base, known)  # it is not 0 where the sum has a value
        if power and (allowed or inverted or positive(base, known)):
            least[base] = power
    return least


def content(poly: Poly) -> Fraction:
    """The positive number by which a sum's numbers become whole and share no factor.

    >>> content(added([atom(Size("n"), 1), constant(Fraction(1, 2))]))
    Fraction(1, 2)
    """
    numerator = gcd(*(abs(number.numerator) for number in poly.values()))
    return Fraction(numerator, lcm(*(number.denominator for number in poly.values())))

"""Functions of one entry y with a density that is positive on its support, everything else held fixed.

What has no expectation for fixed values of everything else has none at all (Tonelli). Near a, and under a normal law of
variance s² far out:

    |y − a|^v            integrable for v > −1, with any power of log |y − a| beside it; not for v ≤ −1
    exp(c y^k)           integrable for k < 2, for k = 2 and c < 1/(2 s²), for even k and c < 0; otherwise not
    log b, b^(p/2q)      undefined where b < 0: no probability may lie there
    b^−k                 undefined where b = 0: no probability may lie there
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sympy import Add, Dummy, Expr, Max, Min, Mul, Poly, PolynomialError, Pow, Rational, S, cosh, exp, log, oo, sinh

from gradproof.symbolic.equations.expr import Access, Compare, Reduce, accesses
from gradproof.symbolic.equations.functions import absolute, relu, sign, spelled
from gradproof.symbolic.equations.laws import Law
from gradproof.symbolic.equations.ranges import Range, ranged
from gradproof.symbolic.moments.growth import Bounds

KEEPS_ZERO = frozenset({"absolute", "tanh", "erf", "atan", "sinh", "sin"})  # |f(t)| ~ |t| near 0
SPOTS = tuple(Rational(p, 1009) for p in (1, 17, 101, 307, 503, 701, 907, 991, 1008))  # between 0 and 1


class Divergent(Exception):
    """A function of random entries has no expectation; `why` says the reason, with places for the given expressions."""

    def __init__(self, what: Expr, why: str, **given: Expr) -> None:
        super().__init__(what, why)
        self.what, self.why, self.given = what, why, given


NEGATIVE = "it is not defined where {base} < 0, which has a probability"
ZERO = "it is not defined where {base} = 0, which has a probability"
POLE = "{y} has a density at {place}, and this grows like {near} there"
TAIL = "it grows faster than the density of {y} falls"


@dataclass
class OneDensity:
    """The factors of a product as functions of one entry."""

    bounds: Bounds
    y: Access
    factors: Sequence[Expr]
    t: Dummy = field(default_factory=lambda: Dummy("t", real=True))

    @property
    def law(self) -> Law:
        return self.bounds.laws[self.y.name]

    @cached_property
    def support(self) -> tuple[Expr, Expr] | None:
        """The values of y that no condition among the factors excludes; None where a condition is not of that kind."""
        low, high = self.law.support
        for factor in self.factors:
            if not isinstance(factor, Compare) or self.y not in factor.atoms(Access) or factor.op == "!=":
                continue
            left, right = factor.sides
            if factor.op == "==" or (left == self.y) == (right == self.y):
                return None
            bound = right if left == self.y else left
            if not (bound.is_number and low.is_number and high.is_number):
                return None
            low, high = (low, Min(high, bound)) if left == self.y else (Max(low, bound), high)
        return low, high

    def inside(self, place: Expr) -> bool | None:
        """Whether a place lies in the support; None where that is not known."""
        if self.support is None:
            return None
        low, high = self.support
        if (low, high) == (-oo, oo) or place in (low, high) or (place == self.law.mean and self.law.symmetric):
            return True
        return bool(low <= place <= high) if low.is_number and high.is_number and place.is_number else None

    @cached_property
    def spots(self) -> list[Expr]:
        """Places inside the support."""
        if self.support is None or not all(end.is_number for end in self.support):
            return []
        low, high = self.support
        if (low, high) == (-oo, oo):
            return [s * p / (1 - p) for p in SPOTS for s in (1, -1)]
        if high == oo:
            return [low + p / (1 - p) for p in SPOTS]
        return [high - p / (1 - p) if low == -oo else low + (high - low) * p for p in SPOTS]

    def range(self, expr: Expr) -> Range:
        low, high = self.support or (-oo, oo)
        own = Range(low if low.is_number else -oo, high if high.is_number else oo)
        return ranged(expr, lambda access: own if access == self.y else self.bounds.entry(access))

    def values(self, expr: Expr) -> list[Expr]:
        """The values of an expression of y alone at some places."""
        at = [expr.xreplace({self.y: spot}) for spot in self.spots if not expr.has(Reduce)]
        return [value for value in at if value.is_number and value.is_extended_real]

    # --- polynomials in y

    def poly(self, expr: Expr) -> Poly | None:
        """The expression as a polynomial in y; everything else is a coefficient."""
        if any(self.y.name in {a.name for a in node.atoms(Access)} for node in expr.atoms(Reduce)):
            return None
        try:
            return Poly(expr.xreplace({self.y: self.t}), self.t)
        except PolynomialError:
            return None

    def roots(self, expr: Expr) -> tuple[list[Expr], bool]:
        """Where an expression is 0, and whether that is everywhere where it comes near to 0."""
        if self.range(expr).apart:
            return [], True
        if isinstance(expr, Mul) or (isinstance(expr, Pow) and expr.exp.is_Rational and expr.exp > 0):
            parts = [
                self.roots(arg) for arg in (expr.args if isinstance(expr, Mul) else (expr.base,)) if self.reads(arg)
            ]
            return [place for places, _ in parts for place in places], all(whole for _, whole in parts)
        if spelled(expr) in KEEPS_ZERO:
            places, whole = self.roots(expr.args[0])
            return places, whole and spelled(expr) != "sin"
        poly = self.poly(expr)
        if poly is None or poly.degree() < 1:
            return [], False
        if poly.degree() == 1:
            slope, rest = poly.all_coeffs()
            return [(-rest / slope).expand()], bool(slope.is_number) or not self.bounds.random(slope)
        if all(c.is_Rational for c in poly.all_coeffs()):
            return list(dict.fromkeys(poly.real_roots())), True
        return [], False

    def reads(self, expr: Expr) -> bool:
        return self.y in expr.atoms(Access)

    def order(self, expr: Expr, place: Expr) -> Expr | None:
        """v where |expr| ~ |y − place|^v, logarithms aside; None where that is not known."""
        if not self.reads(expr):
            return S.Zero
        if isinstance(expr, Mul):
            orders = [self.order(arg, place) for arg in expr.args]
            return None if None in orders else Add(*orders)
        if isinstance(expr, Pow) and expr.exp.is_Rational:
            inner = self.order(expr.base, place)
            return None if inner is None or isinstance(expr.base, log) else inner * expr.exp
        if isinstance(expr, log) and self.order(expr.args[0], place) not in (None, S.Zero):
            return S.Zero
        if spelled(expr) in KEEPS_ZERO and (inner := self.order(expr.args[0], place)):
            return inner if inner > 0 else None
        poly = self.poly(expr)
        if poly is not None:
            found = 0
            while (value := poly.as_expr().xreplace({self.t: place}).expand()) == 0:
                poly, found = poly.diff(self.t), found + 1
            return None if value.is_number and abs(value.evalf()) < 1e-9 else S(found)
        value = expr.xreplace({self.y: place})
        known = value.is_number and value.is_extended_real and value.is_finite
        return S.Zero if known and abs(value.evalf()) > 1e-9 else None

    # --- what is wrong

    def domain(self, base: Expr, power: Expr, factor: Expr) -> None:
        """Raises Divergent where a base is negative, or 0 in a denominator, with a positive probability."""
        if not self.reads(base):
            return
        if (power == 0 or power.q != 1) and self.negative(base):
            raise Divergent(factor, NEGATIVE, base=base)
        flat = any(self.reads(node) for node in base.atoms(relu, sign, Compare))
        if power < 0 and flat and self.values(base).count(S.Zero) > 1:
            raise Divergent(factor, ZERO, base=base)

    def negative(self, base: Expr) -> bool:
        """Whether a base is negative with a positive probability."""
        number, rest = base.as_coeff_Mul()
        if isinstance(rest, Pow) and rest.exp.is_Integer and rest.exp % 2 and number > 0:
            return self.negative(rest.base)
        poly = self.poly(base)
        both = poly is not None and poly.degree() == 1 and self.support == (-oo, oo)
        return both or any(value < 0 for value in self.values(base))

    def poles(self, critical: Sequence[Expr]) -> None:
        """Raises Divergent at a pole that is not integrable."""
        below = [f for f in critical if self.reads(f) and isinstance(f, Pow) and f.exp.is_Rational and f.exp < 0]
        for place in dict.fromkeys(place for factor in below for place in self.roots(factor.base)[0]):
            orders = [self.order(factor, place) for factor in self.factors if not isinstance(factor, Compare)]
            if None in orders or not self.inside(place) or Add(*orders) > -1:
                continue
            what = Mul(*(factor for factor in self.factors if self.reads(factor)))
            raise Divergent(what, POLE, y=self.y, place=place, near=absolute(self.y - place) ** Add(*orders))

    def tails(self) -> None:
        """Raises Divergent where an exponential grows faster than the density of a normal entry falls."""
        for factor in self.factors:
            if self.reads(factor) and isinstance(factor, (exp, sinh, cosh)) and self.tail(factor) == "heavy":
                others = [f for f in self.factors if f != factor and self.reads(f)]
                if all(self.poly(f.as_base_exp()[0]) is not None for f in others) and self.support == (-oo, oo):
                    raise Divergent(factor, TAIL, y=self.y)

    def tail(self, factor: Expr) -> str:
        """Whether exp(c y^k + …) times the density is `light` or `heavy` far out; empty where that is not known."""
        poly = self.poly(factor.args[0])
        if poly is None or self.law.family != "normal":
            return ""
        lead, k = poly.LC(), poly.degree()
        if not isinstance(factor, exp):
            lead = abs(lead) if lead.is_number else S.NaN if k % 2 == 0 else lead
        if k % 2:
            return "light" if k == 1 else "heavy"
        if k == 2:
            lead = lead - 1 / (2 * self.law.variance)
        sure = lead.is_number and lead.is_extended_real
        return "" if not sure or lead == 0 else "light" if lead < 0 else "heavy"

    def tame(self, critical: Sequence[Expr]) -> bool:
        """Whether the given factors, of y alone, are integrable together, whatever powers of y go with them."""
        places: dict[Expr, Expr] = {}
        for factor in critical:
            base, power = factor.as_base_exp()
            if isinstance(factor, exp):
                if self.tail(factor) == "light" and accesses(factor) == (self.y,):
                    continue
                return False
            if isinstance(base, log) and power.is_Integer and power > 0:
                base, power = base.args[0], S.Zero
            roots, whole = self.roots(base)
            rooted = power.is_Rational and power.q == 1 and power != 0
            if not power.is_Rational or not (rooted or self.range(base).nonnegative):
                return False
            if power <= 0 and (not whole or self.bounds.growth(base) is None):
                return False
            for place in roots if power < 0 else ():
                order = self.order(base, place)
                if order is None:
                    return False
                places[place] = places.get(place, S.Zero) + order * power
        return all(order > -1 or self.inside(place) is False for place, order in places.items())

"""How fast a function of random entries may grow: |f| ≤ C · Π (1 + |q|)^p · exp(C′ Σ |q|).

Only what is finite for every value that the entries may take has a growth; a pole, a logarithm of what may be 0, or a
root of what may be negative has none. Rows: f(g) for g with a growth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from sympy import Add, Expr, Function, Integer, Max, Min, Mul, Number, Pow, S, exp, log, oo

from gradproof.symbolic.equations.expr import Access, Compare, Reduce, compare, delta, names
from gradproof.symbolic.equations.functions import maximum, spelled, where
from gradproof.symbolic.equations.laws import Law
from gradproof.symbolic.equations.ranges import ALL, NONNEGATIVE, UNIT, Range, ranged
from gradproof.symbolic.equations.system import Array

BOUNDED = frozenset({"tanh", "sigmoid", "erf", "sin", "cos", "atan", "sign"})  # |f(g)| ≤ 2
LINEAR = frozenset({"relu", "absolute", "softplus"})  # |f(g)| ≤ 1 + |g|
EXPONENTIAL = frozenset({"exp", "sinh", "cosh"})  # |f(g)| ≤ exp |g|


@dataclass(frozen=True)
class Growth:
    """Powers of single entries (by name: of all entries of an array), of all together, and what stands in exp."""

    powers: Mapping[Access | str, Expr] = field(default_factory=dict)
    total: Expr = S.Zero
    exponential: frozenset[str] = frozenset()

    def scaled(self, by: Expr) -> Growth:
        return Growth({key: power * by for key, power in self.powers.items()}, self.total * by, self.exponential)

    def times(self, other: Growth) -> Growth:
        keys = {**self.powers, **other.powers}
        powers = {key: self.powers.get(key, S.Zero) + other.powers.get(key, S.Zero) for key in keys}
        return Growth(powers, self.total + other.total, self.exponential | other.exponential)

    def plus(self, other: Growth) -> Growth:
        keys = {**self.powers, **other.powers}
        powers = {key: Max(self.powers.get(key, S.Zero), other.powers.get(key, S.Zero)) for key in keys}
        return Growth(powers, Max(self.total, other.total), self.exponential | other.exponential)

    @property
    def logarithm(self) -> Growth:
        """That of log(1 + |f|): less than any power, and no more than the sum of what stands in exp."""
        powers = {key: Min(power, S.One) for key, power in self.powers.items()}
        powers |= dict.fromkeys(self.exponential, S.One)
        return Growth(powers, Min(self.total, S.One) if not self.exponential else S.One)

    def degree(self, name: str) -> Expr:
        """The highest power of one entry of an array: that of all accesses together that may be the same entry."""
        own = {key: power for key, power in self.powers.items() if isinstance(key, Access) and key.name == name}
        groups = (group for size in range(len(own) + 1) for group in combinations(own, size))
        together = (g for g in groups if all(equal(a, b) != 0 for a, b in combinations(g, 2)))
        return self.powers.get(name, S.Zero) + max((Add(*map(own.__getitem__, g)) for g in together), default=S.Zero)


def equal(a: Access, b: Access) -> Expr:
    """1 where two accesses read one entry; decided where their indices differ by a number."""
    factors = []
    for left, right in zip(a.indices, b.indices, strict=True):
        difference = (left - right).expand()
        factors.append(compare("==", difference, 0) if isinstance(difference, Integer) else delta(left, right))
    return Mul(*factors)


CONSTANT = Growth()


@dataclass(frozen=True)
class Bounds:
    """What the laws of the random arrays say of the values of expressions."""

    laws: Mapping[str, Law]
    arrays: Mapping[str, Array]

    def random(self, expr: Expr) -> bool:
        return not names(expr).isdisjoint(self.laws)

    def range(self, expr: Expr) -> Range:
        return ranged(expr, self.entry)

    def entry(self, access: Access) -> Range:
        law = self.laws.get(access.name)
        if law is not None:
            low, high = law.support
            return Range(low if low.is_number else -oo, high if high.is_number else oo)
        array = self.arrays.get(access.name)
        if array is not None and "simplex" in array.properties:
            return UNIT
        return NONNEGATIVE if array is not None and array.below is not None else ALL

    def growth(self, expr: Expr, summed: bool = False) -> Growth | None:
        """The growth of an expression, None where none is known; inside a sum, entries go by their array's name."""
        if not self.random(expr):
            return CONSTANT
        if isinstance(expr, Access):
            law = self.laws.get(expr.name)
            return CONSTANT if law is None or law.bounded else Growth({expr.name if summed else expr: S.One}, S.One)
        if isinstance(expr, Compare):
            return CONSTANT if all(self.growth(side) is not None for side in expr.sides) else None
        if isinstance(expr, Reduce):
            inner = self.growth(expr.body, True)
            return inner if expr.op in ("sum", "max") or inner == CONSTANT else None
        if isinstance(expr, (Add, Mul, where, maximum)):
            parts = [self.growth(arg, summed) for arg in expr.args]
            total = CONSTANT
            for part in parts:
                if part is None:
                    return None
                total = total.times(part) if isinstance(expr, Mul) else total.plus(part)
            return total
        if isinstance(expr, Pow):
            return self.power(expr.base, expr.exp, summed)
        return self.function(expr, summed) if isinstance(expr, Function) and len(expr.args) == 1 else None

    def power(self, base: Expr, exponent: Expr, summed: bool) -> Growth | None:
        """b^q: scaled for q > 0 (b ≥ 0 for a root); bounded for q < 0 where b is not near 0; a^g as exp(g log a)."""
        inner = self.growth(base, summed)
        if not isinstance(exponent, Number):
            fixed = not self.random(base) and self.range(base).low > 0
            return self.function(exp(exponent), summed) if fixed else None
        if inner is None or (exponent.q != 1 and not self.range(base).nonnegative):
            return None
        if exponent > 0:
            return inner.scaled(exponent)
        if self.range(base).apart:
            return CONSTANT
        terms = Add.make_args(base.body if isinstance(base, Reduce) and base.op == "sum" else base)
        if all(self.range(term).nonnegative for term in terms):  # 1/(exp g + …) ≤ exp(−g)
            found = (self.function(exp(exponent * term.args[0]), True) for term in terms if isinstance(term, exp))
            return next((inner for inner in found if inner is not None), None)
        return None

    def function(self, expr: Function, summed: bool) -> Growth | None:
        (argument,), name = expr.args, spelled(expr)
        inner = self.growth(argument, summed)
        if inner is None:
            return None
        if name in BOUNDED:
            return CONSTANT
        if name in LINEAR:
            return inner
        if isinstance(expr, log):
            return inner.logarithm if self.range(argument).low > 0 else None
        if name not in EXPONENTIAL:
            return None
        if (name == "exp" and self.range(argument).high < oo) or inner == CONSTANT:
            return CONSTANT
        if inner.exponential or inner.total > 1:
            return None
        reached = {key if isinstance(key, str) else key.name for key, power in inner.powers.items() if power > 0}
        return replace(CONSTANT, exponential=frozenset(reached))

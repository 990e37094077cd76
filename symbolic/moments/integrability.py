"""Whether a product of functions of random entries has an expectation: it has, it has none, or more must be assumed.

A product whose growth is known (`growth.py`) has one if the moments that it needs are finite. Of its other factors,
those of entries with finitely many values are tried at each value; for entries with a density see `one_density.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sympy import Add, Expr, I, Mul, Pow, S, exp, log, nan, oo, zoo

from gradproof.symbolic.equations.expr import (
    Access,
    Compare,
    Index,
    Reduce,
    accesses,
    letters,
    map_accesses,
    names,
    open_,
    substitute,
)
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.laws import ORDER, CentralMoment, Law
from gradproof.symbolic.moments.growth import CONSTANT, Bounds, equal
from gradproof.symbolic.moments.one_density import NEGATIVE, Divergent, OneDensity

VALUE = "it is not defined where {entry} = {value}, which has a probability"
SUM = "{base} has a density that is positive at 0"


@dataclass(frozen=True)
class Doubt:
    """E|what|^power is not known to be finite; `name` is the array whose law would have to say so of an entry."""

    what: Expr
    power: Expr = S.One
    name: str = ""

    def settled(self, value: Expr) -> bool:
        """Whether a value names a moment of that order or a higher one, and so takes it for finite."""
        later = {CentralMoment(self.name, k) for k in range(3, ORDER + 1) if k >= self.power}
        return not later.isdisjoint(value.free_symbols)


def doubts(factors: Sequence[Expr], bounds: Bounds) -> list[Doubt]:
    """What must be assumed for E|Π factors| to be finite; raises Divergent where it is infinite or undefined."""
    grown = [factor for factor in factors if isinstance(factor, exp)]
    merged = [*(f for f in factors if f not in grown), exp(Add(*(f.args[0] for f in grown)))]  # eᵃ eᵇ = eᵃ⁺ᵇ
    factors = settled([factor for factor in merged if bounds.random(factor)], bounds)
    factors = [factor for factor in factors if factor not in shares(factors, bounds)]
    critical = [factor for factor in factors if bounds.growth(factor) is None]
    if not critical:
        return missing_moments(factors, bounds)
    regular = [factor for factor in factors if factor not in critical]
    for name, law in bounds.laws.items():
        if law.finite and any(name in names(factor) for factor in critical):
            return by_values(law, factors, critical, bounds)
    read = dict.fromkeys(access for factor in critical for access in accesses(factor))
    entries = [
        OneDensity(bounds, y, factors) for y in read if y.name in bounds.laws and bounds.laws[y.name].of.atomless
    ]
    for factor in critical:
        for base, root in needing(factor):
            for entry in entries:
                entry.domain(base, root, factor)
            of_a_sum(base, root, factor, factors, bounds)
    for entry in entries:
        entry.poles(critical)
        entry.tails()
    if alone(critical, bounds) and all(entry.tame([f for f in critical if entry.reads(f)]) for entry in entries):
        return missing_moments(regular, bounds)
    return [Doubt(Mul(*critical)), *missing_moments(regular, bounds)]


def missing_moments(factors: Sequence[Expr], bounds: Bounds) -> list[Doubt]:
    """The moments that a product of known growth needs, where the law does not say that they are finite."""
    total = CONSTANT
    for factor in factors:
        total = total.times(bounds.growth(factor) or CONSTANT)
    found = []
    for name, law in bounds.laws.items():
        own = [factor for factor in factors if name in names(factor)]
        if name in total.exponential and law.highest < oo:
            found.append(Doubt(Mul(*own)))
        elif (degree := total.degree(name)) > law.highest:
            found.append(Doubt(next(a for factor in own for a in accesses(factor) if a.name == name), degree, name))
    return found


def settled(factors: Sequence[Expr], bounds: Bounds) -> list[Expr]:
    """The factors with entries of no variance replaced by their mean."""
    fixed = {name: law for name, law in bounds.laws.items() if not law.finite and law.variance == 0}
    if not fixed:
        return list(factors)

    def mean(access: Access) -> Expr:
        law = fixed[access.name]
        return law.at(law.mean, access.indices)

    found = [map_accesses(factor, mean, fixed, ()) for factor in factors]
    if any(undefined(factor) for factor in found):
        raise Divergent(Mul(*factors), "it is not defined at the only value of its entries")
    return [factor for factor in found if bounds.random(factor)]


def shares(factors: Sequence[Expr], bounds: Bounds) -> set[Expr]:
    """The two sides of each quotient g_i^k / (Σ_j g_j)^k with g ≥ 0, as in a softmax: they lie between 0 and 1."""
    for factor in factors:
        total, power = factor.as_base_exp()
        if not (isinstance(total, Reduce) and total.op == "sum" and power.is_Integer and power < 0):
            continue
        body, axes = open_(total, letters(Mul(*factors)))
        for other in factors if bounds.range(body).nonnegative else ():
            options = [places(letter, lo, hi, body, other, bounds) for letter, lo, hi in axes]
            found = (dict(zip((axis[0] for axis in axes), choice, strict=True)) for choice in product(*options))
            if any(substitute(body, mapping) ** -power == other for mapping in found):
                return {factor, other}
    return set()


def places(letter: Index, lo: Expr, hi: Expr, body: Expr, other: Expr, bounds: Bounds) -> set[Expr]:
    """What stands in another expression where a letter stands, if the letter runs over the whole axis that it reads."""
    found: set[Expr] = set()
    for access in accesses(body):
        array = bounds.arrays.get(access.name)
        for axis, index in enumerate(access.indices if array else ()):
            if index == letter and array is not None and (lo, hi) == (0, array.shape[axis]):
                found |= {twin.indices[axis] for twin in accesses(other) if twin.name == access.name}
    return found


def undefined(expr: Expr) -> bool:
    return expr.has(zoo, nan, oo, -oo, I)


def by_values(law: Law, factors: Sequence[Expr], critical: Sequence[Expr], bounds: Bounds) -> list[Doubt]:
    """Every value of an entry in turn; of several entries of an array, that all of them have the same value."""
    read = {a for factor in critical for a in accesses(factor) if a.name == law.name}
    single = len(read) == 1 and not any(law.name in names(node) for f in critical for node in f.atoms(Reduce))
    found: dict[Doubt, None] = {}
    for value, chance in (law.values or {S.Zero: S.One}).items():  # 0 is a value of every categorical entry

        def put(factor: Expr, value: Expr = value) -> Expr:
            found = map_accesses(factor, lambda a: value if a in read or not single else a, [law.name], ())
            return found.xreplace({node: S.Zero for node in found.atoms(Reduce) if node.body == 0})

        conditions = [put(factor) for factor in factors if isinstance(factor, Compare)]
        if chance == 0 or S.Zero in conditions:  # what a condition excludes need not be defined
            continue
        rest = [put(factor) for factor in factors if not isinstance(factor, Compare)]
        if any(undefined(factor) for factor in rest):
            raise Divergent(Mul(*critical), VALUE, entry=min(read, key=str), value=value)
        if single:
            found.update(dict.fromkeys(doubts([*conditions, *rest], bounds)))
    return list(found) if single and law.values else [Doubt(Mul(*critical))]


def needing(expr: Expr) -> Iterator[tuple[Expr, Expr]]:
    """What must not be negative, or not 0: the argument of a logarithm (with S.Zero), the base of a power (with it)."""
    if isinstance(expr, (Access, where)) or not expr.args:
        return
    if isinstance(expr, log):
        yield expr.args[0], S.Zero
    if isinstance(expr, Pow) and expr.exp.is_Rational and (expr.exp < 0 or expr.exp.q != 1):
        yield expr.base, expr.exp
    for arg in expr.args:
        yield from needing(arg)


def of_a_sum(base: Expr, power: Expr, factor: Expr, factors: Sequence[Expr], bounds: Bounds) -> None:
    """Σ c_i x_i of normal entries is normal: it is negative with a probability, and its density at 0 is positive."""
    for name, law in bounds.laws.items():
        if law.family != "normal" or not linear(base, name) or not base.has(Reduce):
            continue
        if power == 0 or power.q != 1:
            raise Divergent(factor, NEGATIVE, base=base)
        others = [other for other in factors if other != factor and name in names(other)]
        if power <= -1 and factor.as_base_exp()[0] == base and not others:
            raise Divergent(factor, SUM, base=base)


def linear(expr: Expr, name: str) -> bool:
    """Whether an expression is Σ c_i x_i + c in the entries of an array, with some c_i.

    >>> linear(2 * Access("x") + Access("y"), "x"), linear(Access("x") ** 2, "x")
    (True, False)
    """
    if isinstance(expr, Access):
        return expr.name == name and not any(name in names(index) for index in expr.indices)
    if isinstance(expr, Reduce):
        return expr.op == "sum" and linear(expr.body, name)
    own = [arg for arg in expr.args if name in names(arg)]
    if isinstance(expr, Add):
        return bool(own) and all(linear(arg, name) for arg in own)
    return isinstance(expr, Mul) and len(own) == 1 and linear(own[0], name)


def alone(critical: Sequence[Expr], bounds: Bounds) -> bool:
    """Whether each factor reads one random entry, and entries of one array are different ones."""
    read: list[Access] = []
    for factor in critical:
        own = {access for access in accesses(factor) if access.name in bounds.laws}
        if len(own) != 1 or any(bounds.random(node) for node in factor.atoms(Reduce)):
            return False
        read += own
    if any(not bounds.laws[access.name].of.atomless for access in read):
        return False
    return all(a.name != b.name or equal(a, b) == 0 for a, b in combinations(dict.fromkeys(read), 2))

"""Sums of products, taken apart as the generated code does it: two factors at a time, in the cheapest order.

Σ_j δ(i, t_j) g_j           a scatter: one addition for each j;   δ(s, e) for a summed s: s is e
Σ_j 1[j ≤ i] x_j            a running sum: one addition for each j, not one for each pair
0 ≤ i − p r < p             i in digits: i = p r + k; of all pairs i, r only those with 0 ≤ k < p are left
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from sympy import Add, Expr, Mul, S

from gradproof.symbolic.counting.operations import Operations, Ranges, canonical, volume
from gradproof.symbolic.equations.expr import Access, Axis, Compare, Index, Reduce, accesses, letters, open_, sum_

EXHAUSTIVE = 5  # so many factors are contracted in the best of all pairwise orders, more in the best next pair


@dataclass(frozen=True)
class Product:
    """Factors, the letters that their product is summed over, and those that are left."""

    factors: tuple[Expr, ...]
    summed: frozenset[Index]
    out: frozenset[Index]
    ranges: Ranges
    scattered: bool = False  # several terms may fall on one entry: they are added

    @property
    def axes(self) -> list[Axis]:
        return [(letter, *self.ranges[letter]) for letter in sorted(self.summed, key=str)]


def settled(product: Product) -> Product:
    """The product without conditions that only say where its terms go."""
    while True:
        for rule in (flattened, solved, in_digits):
            found = rule(product)
            if found is not None:
                product = found
                break
        else:
            return product


def flattened(product: Product) -> Product | None:
    """Σ_s x_s (Σ_j δ(s, e_j) y_j)  →  Σ_sj x_s δ(s, e_j) y_j: a sum that only places its terms is no sum by itself."""
    for position, factor in enumerate(product.factors):
        if isinstance(factor, Reduce) and factor.op == "sum" and letters(factor):
            body, axes = open_(factor, set(product.ranges))
            inner = Mul.make_args(body)
            if any(places(part) and letters(part) & letters(factor) for part in inner):
                rest = product.factors[:position] + product.factors[position + 1 :]
                summed = product.summed | {axis[0] for axis in axes}
                ranges = {**product.ranges, **{letter: (lo, hi) for letter, lo, hi in axes}}
                return Product((*rest, *inner), summed, product.out, ranges, product.scattered)
    return None


def places(factor: Expr) -> bool:
    return isinstance(factor, Compare) and factor.op == "=="


def solved(product: Product) -> Product | None:
    """δ(s, e): a summed letter s is e; an entry s of the result is written at e."""
    for position, factor in enumerate(product.factors):
        if not places(factor):
            continue
        for letter, value in (factor.args[1:], reversed(factor.args[1:])):
            known = product.summed | product.out
            if not isinstance(letter, Index) or letter not in known or letter in letters(value):
                continue
            rest = product.factors[:position] + product.factors[position + 1 :]
            factors = tuple(piece for part in rest for piece in Mul.make_args(part.xreplace({letter: value})))
            if letter in product.summed:
                return Product(factors, product.summed - {letter}, product.out, product.ranges, product.scattered)
            moved = letters(value) & product.summed
            scattered = product.scattered or not in_one_place(value, product.ranges)
            out = product.out - {letter} | moved
            return Product(factors, product.summed - moved, out, product.ranges, scattered)
    return None


def in_one_place(index: Expr, ranges: Ranges) -> bool:
    """Whether different values of the letters of an index lie at different places: k + p r with 0 ≤ k < p."""
    if index.atoms(Access):
        return False
    terms = Add.make_args(index.expand())
    used = [letters(term) for term in terms if letters(term)]
    if len(used) < 2:
        return len(used) == 1
    sizes = {term: Mul(*(ranges[letter][1] - ranges[letter][0] for letter in letters(term))) for term in terms}
    return any(
        (term / letter - sizes[other]).expand() == 0
        for term, other in ((a, b) for a in terms for b in terms if a != b)
        for letter in letters(term)
    )


def in_digits(product: Product) -> Product | None:
    """0 ≤ a − e < w  →  a = e + k with k below w: only such pairs are computed."""
    conditions = [factor for factor in product.factors if isinstance(factor, Compare) and factor.op in ("<", "<=")]
    for low, high in ((a, b) for a in conditions for b in conditions if (a.op, b.op) == ("<=", "<")):
        (zero, inner), (same, width) = low.sides, high.sides
        if zero != 0 or inner != same or letters(width) or inner.atoms(Access):
            continue
        for letter in sorted(letters(inner), key=lambda letter: (letter not in product.summed, str(letter))):
            e = (letter - inner).expand()
            if letter in letters(e) or letter not in product.summed | product.out:
                continue
            k = Index(f"{letter.name}'")
            rest = [factor for factor in product.factors if factor not in (low, high)]
            factors = tuple(tidied(factor.xreplace({letter: e + k})) for factor in rest)
            ranges = {**product.ranges, k: (S.Zero, width)}
            if letter in product.summed:
                return Product(factors, product.summed - {letter} | {k}, product.out, ranges, product.scattered)
            moved = letters(e) & product.summed
            scattered = product.scattered or not in_one_place(e + k, ranges)
            return Product(factors, product.summed - moved, product.out - {letter} | {k} | moved, ranges, scattered)
    return None


def tidied(factor: Expr) -> Expr:
    """The factor with its index expressions multiplied out: (i p + k) − i p is k."""
    return factor.xreplace({a: Access(a.name, *(index.expand() for index in a.indices)) for a in accesses(factor)})


def running(mask: Expr, letter: Index) -> Index | None:
    """The letter i of a condition j ≤ i or j ≥ i on the given letter j, if it is one (the two may be shifted)."""
    if not isinstance(mask, Compare) or mask.op not in ("<", "<=") or mask.atoms(Access):
        return None
    difference = (mask.sides[1] - mask.sides[0]).expand()
    others = letters(difference) - {letter}
    if len(others) != 1 or letter not in letters(difference):
        return None
    (other,) = others
    slopes = difference.coeff(letter), difference.coeff(other)
    return other if slopes in ((1, -1), (-1, 1)) else None


Item = tuple[Expr, str]  # a factor, or the product of several, and its name in the order of the contraction


@dataclass(frozen=True)
class Contraction:
    """What it costs to contract a product, and the parts that are computed on the way."""

    operations: Operations = field(default_factory=Operations)
    parts: tuple[object, ...] = ()

    def __add__(self, other: Contraction) -> Contraction:
        return Contraction(self.operations + other.operations, (*self.parts, *other.parts))


@dataclass(frozen=True)
class Contracting:
    """Chooses the cheapest order of products of two factors, each summed as soon as a letter is done."""

    product: Product
    known: Callable[[object], bool]  # whether a part was computed before
    typical: Callable[[Expr], float]

    @property
    def cheapest(self) -> Contraction:
        items = [(factor, short(factor)) for factor in self.product.factors]
        unread = self.product.summed - frozenset().union(*(letters(item) for item, _ in items))
        found = Contraction()
        if unread:  # summed over a letter that nothing reads: the terms are added all the same
            (first, name), ranges = items[0], self.product.ranges
            others = frozenset().union(self.product.out, *(letters(item) for item, _ in items[1:]))
            found = Contraction(Operations(additions=volume(letters(first) | unread, ranges)))
            items[0] = self.summed(first, letters(first) - others), name
        if self.product.scattered:
            ends = letters(Mul(*self.product.factors)) & self.product.out
            found += Contraction(Operations(additions=volume(ends, self.product.ranges)))
        return found + self.best(items)

    def summed(self, expr: Expr, over: frozenset[Index]) -> Expr:
        return sum_(expr, [(letter, *self.product.ranges[letter]) for letter in sorted(over, key=str)])

    def part(self, expr: Expr, operations: Operations) -> Contraction:
        """A value that is computed now, unless it was before."""
        key = canonical(expr, self.product.ranges)
        return Contraction(Operations(order=operations.order) if self.known(key) else operations, (key,))

    def best(self, items: Sequence[Item]) -> Contraction:
        """The cheapest way to contract the items."""
        total, items, ranges = Contraction(), list(items), self.product.ranges
        for position, (item, name) in enumerate(items):
            rest = [other for k, (other, _) in enumerate(items) if k != position]
            others = frozenset().union(self.product.out, *map(letters, rest))
            if over := letters(item) - others:  # a letter that only this factor has: its sum comes first
                items[position] = self.summed(item, over), name
                total += self.part(items[position][0], Operations(additions=volume(letters(item), ranges)))
        if len(items) == 1:
            return total
        choices = []
        for a, b in combinations(range(len(items)), 2):
            rest = [item for k, item in enumerate(items) if k not in (a, b)]
            (one, first), (two, second) = items[a], items[b]
            gone = (letters(one) | letters(two)) - frozenset().union(self.product.out, *(letters(i) for i, _ in rest))
            name = f"({first} {second})"
            value = self.summed(one * two, gone)
            choices.append((self.part(value, self.step(one, two, gone, name)), [(value, name), *rest]))
        if len(items) > EXHAUSTIVE:
            choices = [min(choices, key=lambda choice: self.typical(choice[0].operations.total))]
        found = [step + self.best(left) for step, left in choices]
        return total + min(found, key=lambda choice: self.typical(choice.operations.total))

    def step(self, one: Expr, two: Expr, gone: frozenset[Index], name: str) -> Operations:
        """Two factors multiplied, and summed over the letters that are gone; a running sum has no products."""
        for mask, item in ((one, two), (two, one)):
            other = running(mask, next(iter(gone))) if len(gone) == 1 else None
            if other is not None and other not in letters(item):
                return Operations(additions=volume(letters(item), self.product.ranges), order=(name,))
        size = volume(letters(one) | letters(two), self.product.ranges)
        return Operations(size, size if gone else S.Zero, S.Zero, (name,))


def short(factor: Expr) -> str:
    """A factor's name in the order of a contraction."""
    found = list(dict.fromkeys(access.name for access in accesses(factor)))
    return found[0] if len(found) == 1 else f"[{' '.join(found)}]" if found else "w"

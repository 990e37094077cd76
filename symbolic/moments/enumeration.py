"""Expectations by brute force: every outcome of small discrete distributions that have the declared moments.

This knows nothing of moment algebra, so each of its steps is checked by it: both sides are averaged over all outcomes
of the array that the step integrates, with everything else held fixed. Sizes are 1 to 4; entries take two values where
two suffice, with skewness 3/2 or 8/3 where nothing is declared of it, and as many as its moments need for a normal or
uniform entry. Arithmetic is exact, over the rationals, or to 40 digits where a root is no rational number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice, product
from math import isqrt, prod
from typing import Any

import mpmath
from sympy import Expr, Integer, Rational, Symbol, sqrt

from gradproof.symbolic.equations.evaluate import HighPrecision, Letters, NotAlgebraic, Point, Undefined, Value
from gradproof.symbolic.equations.expr import Access, Axis, Reduce, Size
from gradproof.symbolic.equations.expr import letters as letters_of
from gradproof.symbolic.equations.implicit import eliminate
from gradproof.symbolic.equations.laws import ORDER, CentralMoment, Law
from gradproof.symbolic.equations.system import Array, System
from gradproof.symbolic.folding.checks import StepError, close, said
from gradproof.symbolic.phrases import phrase

STEP, WHOLE = 100, 300  # outcomes that are averaged to check one step, and a whole result
CHANCE = (Fraction(1, 5), Fraction(1, 10))  # of the larger value of an entry of which mean and variance are known
SQUARES = tuple(Fraction(a, b) ** 2 for a, b in ((2, 1), (3, 2), (3, 1), (5, 2), (4, 3), (5, 3)))
STANDARD = {"normal": (Integer(0), Integer(1)), "uniform": (-sqrt(3), sqrt(3))}
WORK = 20_000  # nodes that one evaluation may visit; all outcomes together 20 times as many
Outcome = tuple[Value, Value]  # a value and its probability


class Exact:
    """Arithmetic with fractions."""

    name = "exactly"
    tiny = 0  # a pivot that counts as 0

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def number(self, value: Rational) -> Fraction:
        return Fraction(int(value.p), int(value.q))

    def constant(self, value: Expr) -> Fraction:
        raise NotAlgebraic(str(value))

    def random(self, rng: random.Random) -> Fraction:
        return Fraction(rng.randrange(2, 9), rng.choice((3, 5, 7))) * rng.choice((1, -1))

    def add(self, terms: list[Fraction]) -> Fraction:
        return sum(terms, Fraction(0))

    def multiply(self, a: Fraction, b: Fraction) -> Fraction:
        return a * b

    def power(self, base: Fraction, exponent: Any) -> Fraction:
        exponent = Fraction(int(exponent.p), int(exponent.q)) if isinstance(exponent, Rational) else exponent
        if exponent.denominator == 2:
            base, exponent = _root(base), exponent * 2
        if exponent.denominator != 1:
            raise NotAlgebraic("a root")
        if base == 0 and exponent < 0:
            raise Undefined("a division by zero")
        return base ** int(exponent)

    def function(self, name: str, arguments: list[Fraction]) -> Fraction:
        if name not in ("relu", "absolute", "sign", "maximum"):
            raise NotAlgebraic(name)
        x, zero = arguments[0], Fraction(0)
        sign = Fraction((x > 0) - (x < 0))
        return {"relu": max(x, zero), "absolute": abs(x), "sign": sign, "maximum": max(arguments)}[name]

    def eliminated(self, rows: Sequence[Sequence[Fraction]]) -> tuple[list[list[Fraction]] | None, Fraction]:
        """Inverse (None where there is none) and determinant."""
        return eliminate(rows, self)

    def compare(self, op: str, left: Fraction, right: Fraction) -> bool:
        return {"<": left < right, "<=": left <= right, "==": left == right, "!=": left != right}[op]


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise Undefined("a root of a negative number")
    found = Fraction(isqrt(value.numerator), isqrt(value.denominator))
    if found**2 != value:
        raise NotAlgebraic("a root")
    return found


def gauss(moments: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The n values and probabilities that have given moments of order 0 … 2n − 1 (Gauss's quadrature).

    >>> [(mpmath.nstr(x, 5), mpmath.nstr(p, 5)) for x, p in gauss([1, 0, 1, 0, 3, 0])]
    [('-1.7321', '0.16667'), ('0.0', '0.66667'), ('1.7321', '0.16667')]
    """
    n = len(moments) // 2
    with mpmath.workdps(60):
        hankel = mpmath.matrix([[moments[i + j] for j in range(n)] for i in range(n)])
        right = mpmath.matrix([-mpmath.mpf(moments[n + i]) for i in range(n)])
        coefficients = list(mpmath.lu_solve(hankel, right))
        found = mpmath.polyroots([1, *reversed(coefficients)], maxsteps=200, extraprec=200)
        nodes = sorted(mpmath.re(x) if abs(x) > mpmath.mpf(10) ** -50 else mpmath.mpf(0) for x in found)
        powers = mpmath.matrix([[x**i for x in nodes] for i in range(n)])
        chances = mpmath.lu_solve(powers, mpmath.matrix([mpmath.mpf(m) for m in moments[:n]]))
    return list(zip(nodes, chances, strict=True))


class Ask(Exception):
    """An entry whose value is to be enumerated next."""

    def __init__(self, name: str, index: tuple[int, ...]) -> None:
        super().__init__(name, index)
        self.name, self.index = name, index


@dataclass(frozen=True)
class World:
    """What a check needs to know: the arrays, their laws, and what was used of each law."""

    system: System
    laws: Mapping[str, Law]
    needed: Mapping[str, Any]
    unknown: Mapping[Symbol, tuple[str, Expr]] = field(default_factory=dict)

    @property
    def chances(self) -> frozenset[str]:
        """Names of parameters that are probabilities."""
        used = [p for law in self.laws.values() if law.family == "bernoulli" for p in law.parameters]
        return frozenset(name for p in used for name in (*map(str, p.free_symbols), *(a.name for a in p.atoms(Access))))

    @property
    def parameters(self) -> frozenset[str]:
        """Names of arrays that are parameters of laws."""
        used = [p for law in self.laws.values() for p in (*law.parameters, law.kurt) if p is not None]
        return frozenset(a.name for p in used for a in p.atoms(Access))


class Trial(Point):
    """A point at which the entries of some random arrays are asked for, one outcome after the other."""

    def __init__(
        self, world: World, sizes: Mapping[Symbol, int], arithmetic: Any, seed: int, open_arrays: Iterable[str]
    ) -> None:
        super().__init__(world.system, sizes, arithmetic(seed), seed)
        self.world, self.open = world, frozenset(open_arrays)
        self.outcome: dict[tuple[str, tuple[int, ...]], Value] = {}
        self.symbols: dict[Symbol, Value] = {}
        self.asked: dict[tuple[str, tuple[int, ...]], None] | None = None
        self.known: dict[tuple[str, tuple[int, ...]], list[Outcome]] = {}

    def entry(self, name: str, index: tuple[int, ...]) -> Value:
        if name not in self.open:
            return super().entry(name, index)
        if self.asked is not None:  # only note what is read
            self._check_range(name, index)
            self.asked[name, index] = None
            return super().entry(name, index)
        if (name, index) not in self.outcome:
            self._check_range(name, index)
            raise Ask(name, index)
        return self.outcome[name, index]

    def free_entry(self, name: str, index: object) -> Value:
        rng = random.Random(repr((self.seed, name, index)))
        if name in self.world.chances:
            return self.field.number(Rational(rng.randrange(1, 5), 5))
        if name in self.world.parameters:
            square = rng.choice(SQUARES)
            return self.field.number(Rational(square.numerator, square.denominator))
        return super().free_entry(name, index)

    def value(self, expr: Expr, letters: Letters) -> Value:
        self.sums.clear()  # what a sum was for one outcome it is not for the next
        if isinstance(expr, Symbol) and expr not in self.sizes and expr not in letters:
            if expr not in self.symbols:
                self.symbols[expr] = self.symbol(expr)
            return self.symbols[expr]
        return super().value(expr, letters)

    def symbol(self, symbol: Symbol) -> Value:
        """A parameter is random; an unknown moment is that of the values that are enumerated."""
        if symbol in self.world.unknown:
            name, function = self.world.unknown[symbol]
            return self.mean(name, lambda x: self.at(function, name, x))
        for name, law in self.world.laws.items():
            for k in range(3, ORDER + 1):
                if symbol == CentralMoment(name, k):
                    return self.central(name, k, self.value(law.mean, {}))
        rng = random.Random(repr((self.seed, symbol.name)))
        value = Fraction(rng.randrange(1, 5), 5) if symbol.name in self.world.chances else rng.choice(SQUARES)
        return self.field.number(Rational(value.numerator, value.denominator))

    def central(self, name: str, k: int, mean: Value) -> Value:
        return self.mean(name, lambda x: self.field.power(x - mean, Integer(k)))

    def mean(self, name: str, function: Callable[[Value], Value]) -> Value:
        place = (0,) * self.system.arrays[name].rank
        return self.field.add([self.field.multiply(p, function(x)) for x, p in self.outcomes(name, place)])

    def at(self, function: Expr, name: str, x: Value) -> Value:
        """A function of one entry, written with the array's name alone, at one of its values."""
        lone = System({name: Array(name)}, (), ())
        return Point(lone, {}, self.field, self.seed, {name: {(): x}}).value(function, {})

    def outcomes(self, name: str, index: tuple[int, ...]) -> list[Outcome]:
        """The values of one entry and their probabilities."""
        if (name, index) not in self.known:
            law = self.world.laws[name]
            place = tuple(map(Integer, index))
            one = self.field.number(Integer(1))
            if law.family == "categorical":
                own = law.parameters[0].name
                self.known[name, index] = [(v, self.entry(own, (v,))) for v in range(self.integer(law.below, {}))]
            elif law.family == "bernoulli":
                p = self.value(law.at(law.parameters[0], place), {})
                self.known[name, index] = [(0 * one, one - p), (one, p)]
            else:
                mean, variance = (self.value(law.at(moment, place), {}) for moment in (law.mean, law.variance))
                root = self.field.power(variance, Rational(1, 2))
                self.known[name, index] = [(mean + root * z, chance) for z, chance in self.standard(law)]
        return self.known[name, index]

    def standard(self, law: Law) -> list[Outcome]:
        """Values of mean 0 and variance 1 with the moments that are declared, as far as they are used."""
        needed = self.world.needed.get(law.name)
        degree, functions = (needed.degree, needed.functions) if needed else (2, False)
        if law.family in STANDARD and (functions or degree > 3):
            standard = Law(law.name, law.family, STANDARD[law.family])
            orders = range(2 * (degree // 2 + 1))
            self._inexact()
            if functions:  # exact on each half of the line
                sides = gauss([self.value(standard.absolute(k), {}) for k in orders])
                return [(sign * z, chance / 2) for z, chance in sides for sign in (-1, 1)]
            return gauss([self.value(standard.central(k), {}) if k % 2 == 0 else 0 for k in orders])
        if law.kurt is not None and degree > 3:
            self._inexact()
            kurt = self.value(law.kurt, {})
            if law.symmetric or kurt < 2:
                edge, chance = mpmath.sqrt(kurt), 1 / kurt / 2
                return [(-edge, chance), (0 * edge, 1 - 2 * chance), (edge, chance)]
            return gauss([1, 0, 1, mpmath.mpf(1) / 2, kurt, 0])
        if law.symmetric and not law.finite and (functions or degree > 3):
            chances = {Fraction(2): Fraction(1, 10), Fraction(1, 2): Fraction(2, 5)}
            return self._numbers([(sign * z, chance) for z, chance in chances.items() for sign in (-1, 1)])
        if law.symmetric:
            return self._numbers([(-1, Fraction(1, 2)), (1, Fraction(1, 2))])
        chance = CHANCE[list(self.world.laws).index(law.name) % 2]
        high = _root((1 - chance) / chance)
        return self._numbers([(high, chance), (-1 / high, 1 - chance)])

    def _inexact(self) -> None:
        if isinstance(self.field, Exact):
            raise NotAlgebraic("nodes of a quadrature")

    def _numbers(self, pairs: Iterable[tuple[Any, Any]]) -> list[Outcome]:
        return [tuple(self.field.number(Rational(x)) for x in pair) for pair in pairs]  # type: ignore[misc]

    def average(self, expr: Expr, letters: Letters) -> Value:
        """The expression averaged over all outcomes of the open arrays."""
        try:
            return self.value(expr, letters)
        except Ask as ask:
            key, terms = (ask.name, ask.index), []
        for value, chance in self.outcomes(*key):
            self.outcome[key] = value
            terms.append(self.field.multiply(chance, self.average(expr, letters)))
            del self.outcome[key]
        return self.field.add(terms)

    def count(self, exprs: Sequence[Expr], letters: Letters) -> int:
        """How many outcomes there are of what the expressions read."""
        self.asked = {}
        for expr in exprs:
            self.value(expr, letters)
        asked, self.asked = self.asked, None
        return prod(len(self.outcomes(*key)) for key in asked)


def size_choices(world: World, exprs: Sequence[Expr]) -> Iterator[dict[Symbol, int]]:
    """Small sizes: none of them 1 and all different where that is possible."""
    found = dict.fromkeys(world.system.sizes)
    found.update(dict.fromkeys(sorted((s for e in exprs for s in e.atoms(Size)), key=str)))
    symbols = list(found)
    shapes = [size for array in world.system.arrays.values() for size in array.shape]

    def rank(values: tuple[int, ...]) -> tuple[int, int, int, tuple[int, ...]]:
        return values.count(1), len(values) - len(set(values)), sum(values), values[::-1]

    for values in sorted(islice(product((1, 2, 3, 4), repeat=len(symbols)), 5000), key=rank):
        sizes = dict(zip(symbols, values, strict=True))
        if all(int(shape.xreplace(sizes)) >= 1 for shape in shapes):
            yield sizes


def work(expr: Expr, sizes: Mapping[Symbol, int]) -> int:
    """About how many nodes are visited to evaluate an expression once."""
    inner = 1 + sum(work(arg, sizes) for arg in expr.args if isinstance(arg, Expr))
    if isinstance(expr, Reduce):
        for _, lo, hi in expr.axes:
            known = {**sizes, **dict.fromkeys(letters_of(hi - lo), 2)}
            count = (hi - lo).xreplace({symbol: Integer(value) for symbol, value in known.items()})
            inner *= max(int(count), 1) if count.is_Integer else 4
    return inner


def places(trial: Trial, outer: Sequence[Axis]) -> list[Letters]:
    """Some values of the free letters: the first, the last and one between."""
    ranges = [range(trial.integer(lo, {}), trial.integer(hi, {})) for _, lo, hi in outer]
    chosen = list(islice(product(*ranges), 1000))
    rng = random.Random(trial.seed)
    picked = dict.fromkeys([chosen[0], chosen[-1], rng.choice(chosen)])
    return [dict(zip((axis[0] for axis in outer), values, strict=True)) for values in picked]


def same_average(
    world: World,
    before: Sequence[Expr],
    after: Expr,
    outer: Sequence[Axis],
    over: Iterable[str],
    combine: Callable[..., Value] = lambda value: value,
    limit: int = STEP,
) -> str | None:
    """How it was established that `after` has the average of `before` over all outcomes of the arrays in `over`.

    `combine` joins the averages of several expressions. None if there are too many outcomes at any sizes; raises
    StepError where the two sides differ.
    """
    over = list(over)
    for arithmetic in (Exact, HighPrecision):
        for attempt, sizes in enumerate(islice(size_choices(world, [*before, after]), 150)):
            effort = sum(work(expr, sizes) for expr in (*before, after))
            if effort > WORK:
                continue
            trial = Trial(world, sizes, arithmetic, attempt, over)
            try:
                count = compared(trial, before, after, outer, combine, min(limit, 20 * WORK // effort))
            except (NotAlgebraic, Undefined):
                continue
            if count:
                how = "exactly, in fractions" if arithmetic is Exact else "to 40 digits"
                where = phrase("averaged over all {} outcomes", count) if count > 1 else "at random points"
                return phrase("equal {}, {} ({})", how, where, said(sizes))
    return None


def compared(
    trial: Trial, before: Sequence[Expr], after: Expr, outer: Sequence[Axis], combine: Callable[..., Value], limit: int
) -> int:
    """The number of outcomes over which two averages were found equal, 0 if there are too many."""
    spots = places(trial, outer)
    counts = [trial.count([*before, after], letters) for letters in spots]
    if max(counts) > limit:
        return 0
    for letters in spots:
        a, b = combine(*(trial.average(expr, letters) for expr in before)), trial.average(after, letters)
        if a != b and not (isinstance(a, mpmath.mpf) and close(a, b)):
            shown = ", ".join(map(str, before))
            where = said(trial.sizes)
            raise StepError(f"averaged over all outcomes, {shown} gives {a} and {after} gives {b} ({where})")
    return max(counts)

"""Values of index expressions at random points, exactly or in high precision, in plain Python.

Two kinds of number. `Modular` works in the field of integers modulo a large prime, where rational identities hold or
fail exactly; every transcendental function is an opaque random function there. `HighPrecision` uses mpmath. A step of
a derivation is checked in the first where it is algebraic, in the second otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import mpmath
from sympy import Add, E, Expr, Function, Integer, Mul, Pow, Rational, Symbol, nan, oo, pi, zoo

from gradproof.symbolic.equations.expr import Access, Compare, Implicit, Index, Reduce
from gradproof.symbolic.equations.functions import ELEMENTWISE, maximum, spelled, where
from gradproof.symbolic.equations.implicit import eliminate
from gradproof.symbolic.equations.summation import Plan, sum_value
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.errors import GradproofError

PRIME = 2**61 - 1
Letters = dict[Index, int]
Key = tuple[str, tuple[int, ...]]  # an array and the place of an entry
Value = Any  # an int modulo PRIME or an mpf
Matrix = list[list[Value]]


class Undefined(GradproofError):
    """The expression has no value at this point (a division by zero, say)."""


class Singular(Undefined):
    """A matrix without an inverse."""


class Beyond(Undefined):
    """A number too large to compute with: whether there is a value is not known."""


class NotAlgebraic(GradproofError):
    """The expression has no meaning modulo a prime (a square root, say)."""


class Circular(GradproofError):
    """An entry needs itself: a recurrence without a first step."""


class _Deep(Exception):
    """An entry that must be known before those that wait for it are asked for again."""

    def __init__(self, key: Key) -> None:
        self.key = key


class Modular:
    """Arithmetic modulo a prime; functions are opaque: equal arguments give equal, otherwise random values."""

    name = f"exactly, modulo {PRIME}, with functions opaque"

    def __init__(self, seed: int, positive: bool = False) -> None:
        self.seed = seed

    tiny = 0  # a pivot relative to the entries of its matrix that counts as 0

    def number(self, value: Rational) -> int:
        return value.p * pow(value.q, -1, PRIME) % PRIME

    def constant(self, value: Expr) -> int:
        return self._opaque(str(value))

    def random(self, rng: random.Random) -> int:
        return rng.randrange(1, PRIME)

    def add(self, terms: list[int]) -> int:
        return sum(terms) % PRIME

    def multiply(self, a: int, b: int) -> int:
        return a * b % PRIME

    def power(self, base: int, exponent: Value) -> int:
        if not isinstance(exponent, Rational) or exponent.q != 1:
            raise NotAlgebraic("a root")
        if exponent < 0 and base % PRIME == 0:
            raise Undefined("a division by zero")
        return pow(base, int(exponent), PRIME)

    def function(self, name: str, arguments: list[int]) -> int:
        return self._opaque(name, *arguments)

    def eliminated(self, rows: Matrix) -> tuple[Matrix | None, Value]:
        """Inverse (None where there is none) and determinant."""
        return eliminate(rows, self)

    def compare(self, op: str, left: int, right: int) -> bool:
        if op in ("<", "<="):
            raise NotAlgebraic("an order: residues have none")
        return _relation(op, left, right)

    def _opaque(self, *key: object) -> int:
        return random.Random(repr((self.seed, *key))).randrange(1, PRIME)


class HighPrecision:
    """Real numbers to 40 digits; with `positive`, random ones are positive."""

    name = "to 40 digits"
    digits = 40

    def __init__(self, seed: int, positive: bool = False) -> None:
        self.signs = (1,) if positive else (1, -1)
        mpmath.mp.dps = self.digits
        self.noise = mpmath.mpf(10) ** (10 - self.digits)  # relative to terms that cancel: their sum is 0

    tiny = mpmath.mpf(10) ** -25

    def number(self, value: Rational) -> mpmath.mpf:
        return mpmath.mpf(value.p) / value.q if value.q != 1 else mpmath.mpf(value.p)

    def constant(self, value: Expr) -> mpmath.mpf:
        return {pi: mpmath.pi, E: mpmath.e, oo: mpmath.inf, -oo: -mpmath.inf}.get(value, value)

    def random(self, rng: random.Random) -> mpmath.mpf:
        return mpmath.mpf(rng.randrange(200, 1500)) / 1000 * rng.choice(self.signs)

    def add(self, terms: list[mpmath.mpf]) -> mpmath.mpf:
        value = mpmath.fsum(terms)
        if value and abs(value) < 1 and abs(value) < self.noise * max(map(abs, terms)):
            return mpmath.mpf(0)  # Σ (x − mean x) is at the kink of |·|, not beside it
        return value

    def multiply(self, a: mpmath.mpf, b: mpmath.mpf) -> mpmath.mpf:
        return a * b

    def power(self, base: mpmath.mpf, exponent: Value) -> mpmath.mpf:
        if not isinstance(exponent, Rational):
            within(exponent)
        exponent = self.number(exponent) if isinstance(exponent, Rational) else exponent
        if base == 0 and exponent < 0:
            raise Undefined("a division by zero")
        value = base**exponent
        if isinstance(value, mpmath.mpc):
            raise Undefined("a root of a negative number")
        return value

    def function(self, name: str, arguments: list[mpmath.mpf]) -> mpmath.mpf:
        if name == "maximum":
            return max(arguments)
        if name not in ("log", "absolute", "relu", "sign"):
            within(*arguments)
        try:
            value = ELEMENTWISE[name].value(*arguments)
        except (ValueError, ZeroDivisionError) as error:
            raise Undefined(str(error)) from None
        if isinstance(value, mpmath.mpc):
            raise Undefined(f"{name} outside its domain")
        if mpmath.isinf(value) and not any(map(mpmath.isinf, arguments)):
            raise Undefined(f"{name} of {mpmath.nstr(arguments[0], 5)} is infinite")
        return value

    def eliminated(self, rows: Matrix) -> tuple[Matrix | None, Value]:
        """Inverse (None where there is none) and determinant."""
        return eliminate(rows, self)

    def compare(self, op: str, left: mpmath.mpf, right: mpmath.mpf) -> bool:
        apart = abs(left - right) if left != right else 0
        if apart and apart < self.noise * max(abs(left), abs(right)):
            right = left
        return _relation(op, left, right)


MAX_MAGNITUDE = 4000  # the binary exponent of an argument


def within(*arguments: mpmath.mpf) -> None:
    """Refuse arguments for which a function would be computed with millions of digits, as in sin(exp(exp(30)))."""
    for value in arguments:
        if mpmath.isfinite(value) and mpmath.mag(value) > MAX_MAGNITUDE:
            raise Beyond("a number too large to compute with")


class Scaled(HighPrecision):
    """Every array has a sign and a size of its own: for log(x − 5) + √(3 − y)."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, positive=True)

    def scale(self, rng: random.Random) -> mpmath.mpf:
        return mpmath.mpf(rng.choice((1, 30, 900, 30_000)) * rng.choice((1, -1))) / 30


def _relation(op: str, left: Value, right: Value) -> bool:
    return {"<": left < right, "<=": left <= right, "==": left == right, "!=": left != right}[op]


MAX_WORK = 80_000  # thirty times what a Transformer block takes
WORK_EACH = 2_000  # and so much more for every equation: a long chain of small layers is checked as a short one is
MAX_WAITING = 12  # entries that wait for one another on Python's stack; a longer chain is followed from its far end


class Point:
    """All arrays of a system at one point: sizes are given, inputs random (or given), the rest follows.

    Entries are computed when they are asked for and remembered, so a recurrence is simply followed backwards.
    """

    def __init__(
        self,
        system: System,
        sizes: Mapping[Symbol, int],
        field: Modular | HighPrecision,
        seed: int = 0,
        given: Mapping[str, Mapping[tuple[int, ...], Value]] | None = None,
    ) -> None:
        self.system, self.sizes, self.field, self.seed = system, dict(sizes), field, seed
        self.given = dict(given or {})
        self.entries: dict[Key, Value] = {}
        self.work = 0  # how many values of expressions were computed
        self.budget = MAX_WORK + WORK_EACH * len(system.equations)
        self.sums: dict[tuple[int, ...], Value] = {}
        self.plans: dict[int, Plan] = {}  # by the identity of the sum, which is cheaper than comparing expressions
        self.numbers: dict[Expr, int] = {}  # of the sums: equal ones have the same
        self.pending: set[Key] = set()
        self.eliminated: dict[Key, tuple[list[list[Value]] | None, Value]] = {}

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(int(size.xreplace(self.sizes)) for size in self.system.arrays[name].shape)

    def indices(self, name: str) -> list[tuple[int, ...]]:
        origin = self.system.arrays[name].starts or (0,) * self.system.arrays[name].rank
        return list(product(*(range(o, o + size) for o, size in zip(origin, self.shape(name), strict=True))))

    def array(self, name: str) -> dict[tuple[int, ...], Value]:
        return {index: self.entry(name, index) for index in self.indices(name)}

    def entry(self, name: str, index: tuple[int, ...]) -> Value:
        key = (name, index)
        if key not in self.entries:
            if name in self.given or name not in self.system.defined:
                self.entries[key] = self.found(name, index)
            elif not self.pending:
                self._compute_from_the_end(key)
            elif key in self.pending:
                raise Circular(f"{name}{list(index)} needs itself: the recurrence has no first step")
            elif len(self.pending) >= MAX_WAITING:
                raise _Deep(key)
            else:
                self._compute(key)
        return self.entries[key]

    def _compute_from_the_end(self, key: Key) -> None:
        """An entry at the near end of a chain that may be longer than Python's stack."""
        waiting = [key]
        while waiting:
            try:
                self._compute(waiting[-1])
                waiting.pop()
            except _Deep as deep:
                if deep.key in waiting:
                    name, index = deep.key
                    raise Circular(f"{name}{list(index)} needs itself: the recurrence has no first step") from None
                waiting.append(deep.key)

    def _compute(self, key: Key) -> None:
        self.pending.add(key)
        try:
            self.entries[key] = self.found(*key)
        finally:
            self.pending.discard(key)

    def found(self, name: str, index: tuple[int, ...]) -> Value:
        """An entry that is not known yet: given, defined, or random."""
        if name in self.given:
            if index not in self.given[name]:
                self._check_range(name, index)
            return self.given[name][index]
        if name in self.system.defined:
            return self.by_definition(name, index)
        self._check_range(name, index)
        return self._random(self.system.arrays[name], index)

    def _check_range(self, name: str, index: tuple[int, ...]) -> None:
        array = self.system.arrays[name]
        for k, (place, size) in enumerate(zip(index, self.shape(name), strict=True)):
            if not int(array.first(k)) <= place < int(array.first(k)) + size:
                raise GradproofError(f"{name}{list(index)} lies outside the shape {self.shape(name)} of {name}")

    def by_definition(self, name: str, index: tuple[int, ...], bodies: Sequence[Expr] | None = None) -> Value:
        """An entry as the equations of its array give it, or as they would with other right sides."""
        for k, equation in enumerate(self.system.defined[name]):
            letters = self._match(equation, index)
            if letters is not None:
                return self.value(bodies[k] if bodies else equation.body, letters)
        raise GradproofError(f"{name}{list(index)} is not defined by any equation")

    def _match(self, equation: Equation, index: tuple[int, ...]) -> Letters | None:
        letters: Letters = {}
        for place, value in zip(equation.place, index, strict=True):
            if isinstance(place, Index):
                letters[place] = value
            elif self.integer(place, {}) != value:
                return None
        for letter, lo, hi in equation.axes:
            if not self.integer(lo, letters) <= letters[letter] < self.integer(hi, letters):
                return None
        return letters

    def _random(self, array: Array, index: tuple[int, ...]) -> Value:
        if array.below is not None:
            return random.Random(repr((self.seed, array.name, index))).randrange(self.integer(array.below, {}))
        from gradproof.symbolic.equations.properties import declared_value

        return declared_value(self, array, index)

    def free_entry(self, name: str, index: object) -> Value:
        """A random number that depends on the seed, the name and the index only."""
        number = self.field.random(random.Random(repr((self.seed, name, index))))
        if isinstance(self.field, Scaled):
            number = number * self.field.scale(random.Random(repr((self.seed, name))))
        return number

    def integer(self, expr: Expr, letters: Letters) -> int:
        """The value of an index expression: sizes, letters, sums, whole multiples and lookups."""
        if isinstance(expr, Integer):
            return int(expr)
        if isinstance(expr, Index):
            return letters[expr]
        if isinstance(expr, Symbol):
            return self.sizes[expr]
        if isinstance(expr, Add):
            return sum(self.integer(arg, letters) for arg in expr.args)
        if isinstance(expr, Mul):
            value = 1
            for arg in expr.args:
                value *= self.integer(arg, letters)
            return value
        if isinstance(expr, Pow) and isinstance(expr.exp, Integer) and expr.exp > 0:
            return self.integer(expr.base, letters) ** int(expr.exp)
        if isinstance(expr, Access):
            return int(self.entry(expr.name, tuple(self.integer(i, letters) for i in expr.indices)))
        raise GradproofError(f"{expr} cannot be used as an index")

    def value(self, expr: Expr, letters: Letters) -> Value:
        """The value of an index expression under given letters."""
        self.work += 1
        if self.work > self.budget:
            raise GradproofError("the arrays are too large to be checked; give their sizes by name, as in X:n,d")
        return _rule(type(expr))(self, expr, letters)

    def condition(self, expr: Expr, letters: Letters) -> bool:
        if isinstance(expr, Compare):
            left, right = expr.sides
            if self.is_index(left) and self.is_index(right):
                return _relation(expr.op, self.integer(left, letters), self.integer(right, letters))
            return self.field.compare(expr.op, self.value(left, letters), self.value(right, letters))
        if isinstance(expr, Mul):
            return all(self.condition(arg, letters) for arg in expr.args)
        return self.value(expr, letters) != 0

    def is_index(self, expr: Expr) -> bool:
        """Whether an expression is a whole number by construction."""
        if isinstance(expr, Access):
            array = self.system.arrays[expr.name]
            return array.below is not None
        if isinstance(expr, (Integer, Symbol)):
            return True
        if isinstance(expr, Pow):
            return bool(expr.exp.is_Integer and expr.exp > 0) and self.is_index(expr.base)
        return isinstance(expr, (Add, Mul)) and all(self.is_index(arg) for arg in expr.args)


def _access(point: Point, expr: Access, letters: Letters) -> Value:
    value = point.entry(expr.name, tuple(point.integer(index, letters) for index in expr.indices))
    return point.field.number(Integer(value)) if point.system.arrays[expr.name].below is not None else value


def _product(point: Point, expr: Mul, letters: Letters) -> Value:
    """A condition that fails makes the product 0 before anything else is looked at."""
    for factor in expr.args:
        if isinstance(factor, Compare) and not point.condition(factor, letters):
            return point.field.number(Integer(0))
    value = point.field.number(Integer(1))
    for factor in expr.args:
        if not isinstance(factor, Compare):
            value = point.field.multiply(value, point.value(factor, letters))
    return value


def _power(point: Point, expr: Pow, letters: Letters) -> Value:
    exponent = expr.exp if isinstance(expr.exp, Rational) else point.value(expr.exp, letters)
    return point.field.power(point.value(expr.base, letters), exponent)


def _function(point: Point, expr: Function, letters: Letters) -> Value:
    if isinstance(expr, where):
        condition, a, b = expr.args
        return point.value(a if point.condition(condition, letters) else b, letters)
    name = "maximum" if isinstance(expr, maximum) else spelled(expr)
    return point.field.function(name, [point.value(arg, letters) for arg in expr.args])


def _reduction(point: Point, expr: Reduce, letters: Letters) -> Value:
    if expr.op == "sum":
        return sum_value(point, expr, letters)
    terms: list[Value] = []
    inner = dict(letters)

    def run(axes: tuple) -> None:
        if not axes:
            terms.append(point.value(expr.body, inner))
            return
        letter, lo, hi = axes[0]
        for value in range(point.integer(lo, inner), point.integer(hi, inner)):
            inner[letter] = value
            run(axes[1:])

    run(expr.axes)
    if expr.op == "max":
        if not terms:
            raise Undefined("the maximum of nothing")
        return max(terms)
    value = point.field.number(Integer(1))
    for term in terms:
        value = point.field.multiply(value, term)
    return value


def _implicit(point: Point, expr: Implicit, letters: Letters) -> Value:
    indices = tuple(point.integer(index, letters) for index in expr.indices)
    batch = indices[:-2] if expr.kind == "inv" else indices
    key = expr.matrix, batch
    if key not in point.eliminated:
        places = range(point.integer(expr.size, letters))
        rows = [[point.entry(expr.matrix, (*batch, r, c)) for c in places] for r in places]
        point.eliminated[key] = point.field.eliminated(rows)
    inverse, determinant = point.eliminated[key]
    if expr.kind == "det":
        return determinant
    if inverse is None:
        raise Singular(f"{expr.matrix} is singular")
    if expr.kind == "inv":
        return inverse[indices[-2]][indices[-1]]
    return point.field.function("log", [point.field.function("absolute", [determinant])])


_Rule = Callable[[Point, Any, Letters], Value]
_RULES: tuple[tuple[Any, _Rule], ...] = (
    (Access, _access),
    (Implicit, _implicit),
    (Rational, lambda point, expr, letters: point.field.number(expr)),
    (Index, lambda point, expr, letters: point.field.number(Integer(letters[expr]))),
    (Symbol, lambda point, expr, letters: point.field.number(Integer(point.sizes[expr]))),
    (Add, lambda point, expr, letters: point.field.add([point.value(arg, letters) for arg in expr.args])),
    (Mul, _product),
    (Pow, _power),
    (Reduce, _reduction),
    (Compare, lambda point, expr, letters: point.field.number(Integer(int(point.condition(expr, letters))))),
    (Function, _function),
    ((type(pi), type(E), type(oo), type(-oo), type(nan), type(zoo)), lambda p, expr, letters: p.field.constant(expr)),
)


_FOUND: dict[type, _Rule] = {}


def _rule(kind: type) -> _Rule:
    """The rule for the expressions of one class."""
    if kind not in _FOUND:
        rule = next((rule for kinds, rule in _RULES if issubclass(kind, kinds)), None)
        if rule is None:
            raise GradproofError(f"no rule to evaluate {kind.__name__}")
        _FOUND[kind] = rule
    return _FOUND[kind]

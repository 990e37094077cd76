"""Derivatives checked against the forward equations alone, by central differences to 40 digits.

Along a random direction dX, an adjoint X̄ must predict the change that is measured:

    Σ X̄ · dX = Σ Ȳ · dY        over the arrays Y whose equations read X, with dY measured in these equations alone
    Σ X̄ · dX = d⟨G, output⟩    with everything that depends on X

The first, for one array after the other, costs what the equations cost once. A tangent is checked in the equation of
its own array: what it reads moves along the tangents that it reads. A check that fails raises `StepError`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import mpmath
from sympy import Add, Expr

from gradproof.symbolic.equations.evaluate import Key, Letters, Point, Singular, Undefined, Value
from gradproof.symbolic.equations.expr import Compare, names
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import LAST, TRIES, Difference, NoPoint, StepError, numbers, said, small_sizes
from gradproof.symbolic.phrases import phrase

STEP = mpmath.mpf(10) ** -14
DIGITS = mpmath.mpf(10) ** -14  # to which the two sides agree, relative to their terms
NOISE = mpmath.mpf(10) ** -22  # what 40 digits over the step may leave where numbers of size 1 cancel
AGREES = "agrees with differences of the forward to 14 digits ({})"
Direction = Callable[[Key], Value]
Prediction = Callable[[Point, tuple[int, ...]], Value]  # the change of an entry


class Moved(Point):
    """A point at which the entries of some arrays are shifted, each along its direction, and some arrays follow."""

    def __init__(
        self, base: Point, step: mpmath.mpf, directions: Mapping[str, Direction], following: Collection[str]
    ) -> None:
        super().__init__(base.system, base.sizes, base.field, base.seed, base.given)
        self.base, self.step, self.directions = base, step, directions
        self.following = following

    def entry(self, name: str, index: tuple[int, ...]) -> Value:
        if name in self.directions or name in self.following:
            return super().entry(name, index)
        return self.base.entry(name, index)

    def found(self, name: str, index: tuple[int, ...]) -> Value:
        value = super().found(name, index) if name in self.following else self.base.entry(name, index)
        return value + self.step * self.directions[name]((name, index)) if name in self.directions else value

    def condition(self, expr: Expr, letters: Letters) -> bool:
        """As at the base: a derivative takes conditions as constants, also x = m with m = max(x) when m alone moves."""
        return self.base.condition(expr, letters) if isinstance(expr, Compare) else super().condition(expr, letters)


class Rate(NamedTuple):
    """A change per step, and by how much it may be off: the differences ahead and behind disagree by so much."""

    value: Value
    slack: Value


class Sides:
    """A point and its two neighbours along a direction."""

    def __init__(self, base: Point, directions: Mapping[str, Direction], following: Collection[str] = ()) -> None:
        self.base = base
        self.ahead, self.behind = (Moved(base, step, directions, following) for step in (STEP, -STEP))

    def rate(self, value: Callable[[Point], Value]) -> Rate:
        """The central difference; what stays at −∞, as a masked score does, does not change."""
        ahead, behind, here = value(self.ahead), value(self.behind), value(self.base)
        if ahead == behind and mpmath.isinf(here):
            return Rate(mpmath.mpf(0), mpmath.mpf(0))
        slack = abs(ahead - 2 * here + behind) / STEP + NOISE * max(1, abs(here))
        return Rate((ahead - behind) / (2 * STEP), slack)


def _random_direction(base: Point, seed: int) -> Direction:
    """A random change of each entry, in proportion to its size: exp(−1000) moves little, exp(1000) much."""

    def direction(key: Key) -> mpmath.mpf:
        size = abs(base.entry(*key))
        unit = mpmath.mpf(random.Random(repr((seed, "direction", *key))).randrange(200, 1000)) / 1000
        return unit * size if size and mpmath.isfinite(size) else unit

    return direction


class Change(NamedTuple):
    """A measured change, and the adjoint entry that weighs it; none for the output itself."""

    weight: Key | None
    rate: Rate


class AdjointCheck:
    """Checks adjoints against the forward equations, all at the same random points."""

    def __init__(self, system: System, output: str, cotangent: str | None, seed: int = 0) -> None:
        self.system, self.output, self.cotangent, self.seed = system, output, cotangent, seed
        self.points: dict[int, Point] = {}
        self.parts: dict[str, dict[str, list[Expr]]] = {}

    def changing(self, reader: str, name: str) -> list[Expr]:
        """Of the right sides that define an array, the terms that read another one."""
        if reader not in self.parts:
            found: dict[str, list[list[Expr]]] = {}
            equations = self.system.defined[reader]
            for k, term in ((k, term) for k, e in enumerate(equations) for term in Add.make_args(e.body)):
                for read in names(term):
                    found.setdefault(read, [[] for _ in equations])[k].append(term)
            self.parts[reader] = {read: [Add(*terms) for terms in parts] for read, parts in found.items()}
        return self.parts[reader][name]

    def point(self, attempt: int) -> Point:
        if attempt not in self.points:
            sizes = small_sizes(self.system, self.seed + attempt)
            self.points[attempt] = Point(self.system, sizes, numbers(self.seed, attempt), self.seed + attempt)
        return self.points[attempt]

    def holds(self, name: str) -> str:
        """How the adjoint of one array was checked, with everything that depends on the array.

        Raises StepError where the two sides differ.
        """
        following = self.system.readers_of([name])

        def changes(base: Point, direction: Direction) -> Iterator[Change]:
            yield Change(None, Sides(base, {name: direction}, following).rate(self.contracted))

        return self._agrees(name, changes)

    def one_step(self, name: str, readers: Iterable[str]) -> str:
        """How the adjoint of one array was checked, given those of the arrays whose equations read it.

        Raises StepError where the two sides differ.
        """
        reading = dict.fromkeys(readers)

        def changes(base: Point, direction: Direction) -> Iterator[Change]:
            sides = Sides(base, {name: direction})
            for key in ((reader, index) for reader in reading for index in base.indices(reader)):
                weight = (self.system.adjoint_of(key[0]), key[1])
                try:
                    yield Change(weight, sides.rate(partial(_by_definition, key, self.changing(key[0], name))))
                except Undefined:
                    if base.entry(*weight) != 0:  # else an entry without a value that nothing reads
                        raise
            if name == self.output:
                yield Change(None, sides.rate(self.contracted))

        return self._agrees(name, changes)

    def contracted(self, point: Point) -> Value:
        """⟨cotangent, output⟩."""
        if self.cotangent is None:
            return point.entry(self.output, ())
        indices = point.indices(self.output)
        return sum(point.entry(self.cotangent, index) * point.entry(self.output, index) for index in indices)

    def _agrees(self, name: str, changes: Callable[[Point, Direction], Iterator[Change]]) -> str:
        """Compare what an adjoint predicts with the changes that were measured."""
        bar, singular = self.system.adjoint_of(name), None
        nowhere, missing = "", 0
        for attempt in range(LAST):
            base = self.point(attempt)
            direction = _random_direction(base, self.seed + attempt)
            try:
                self.contracted(base)
                found = list(changes(base, direction))
            except Singular as error:
                nowhere = f"{error} wherever it was looked at: it has no inverse"
                if attempt < TRIES:
                    continue
                break
            except Undefined as error:
                nowhere = f"no random point could be evaluated: {error}"
                continue
            try:
                predicted = [base.entry(bar, i) * direction((name, i)) for i in base.indices(name)]
                weights = [base.entry(*change.weight) if change.weight else 1 for change in found if any(change.rate)]
            except Singular as error:  # det has a value at a singular matrix; its derivative d A⁻ᵀ is for the others
                if singular is not None and attempt >= TRIES // 4:
                    break
                singular = error
                continue
            except Undefined as error:
                missing += 1  # a row of a softmax that is masked as a whole: the forward is 0 by convention
                if missing > TRIES // 4:
                    message = f"the derivative by {name} has no value where the expression has one: {error}"
                    raise NoPoint(f"{message}; of a branch that is not taken, perhaps: sqrt(where(c, D, 1))") from None
                continue
            rates = [change.rate for change in found if any(change.rate)]
            if not _balanced(predicted, weights, rates):
                measured = sum(weight * rate.value for weight, rate in zip(weights, rates, strict=True))
                both = f"predicts {sum(predicted)}, differences of the forward give {measured}"
                raise StepError(f"the adjoint of {name} {both}", Difference(name, (), measured, sum(predicted)))
            return phrase(AGREES, said(base.sizes))
        if singular is not None:
            message = f"{singular} wherever it was looked at: the derivative of its determinant needs an inverse"
            raise GradproofError(message)
        raise NoPoint(nowhere)


def _balanced(predicted: Sequence[Value], weights: Sequence[Value], rates: Sequence[Rate]) -> bool:
    """Whether Σ predicted = Σ weight · rate, relative to the terms."""
    measured = [weight * rate.value for weight, rate in zip(weights, rates, strict=True)]
    slack = sum(abs(weight) * rate.slack for weight, rate in zip(weights, rates, strict=True))
    allowed = DIGITS * sum(map(abs, (*predicted, *measured))) + slack
    return bool(abs(sum(predicted) - sum(measured)) <= allowed)


def _by_definition(key: Key, bodies: Sequence[Expr] | None, point: Point) -> Value:
    return point.by_definition(*key, bodies)


def _entry(name: str, point: Point, index: tuple[int, ...]) -> Value:
    return point.entry(name, index)


def _change(base: Point, prediction: Prediction, key: Key) -> Value:
    return prediction(base, key[1])


def tangents_hold(
    system: System,
    directions: Mapping[str, str],
    predicted: Mapping[str, Prediction],
    seed: int = 0,
) -> str:
    """Check the predicted changes of arrays when the variables move along the arrays that `directions` names.

    What has a prediction moves along it, what has none follows. Returns how it was checked; raises StepError where a
    prediction differs from central differences to 40 digits.
    """
    nowhere = ""
    following = system.readers_of(directions) - predicted.keys() - directions.keys()
    for attempt in range(LAST):
        sizes = small_sizes(system, seed + attempt)
        base = Point(system, sizes, numbers(seed, attempt), seed + attempt)
        changes: dict[str, Prediction] = {variable: partial(_entry, name) for variable, name in directions.items()}
        changes.update(predicted)
        along = {name: partial(_change, base, change) for name, change in changes.items()}
        sides = Sides(base, along, following)
        try:
            for name, prediction in predicted.items():
                for index in base.indices(name):
                    measured = sides.rate(partial(_by_definition, (name, index), None))
                    expected = prediction(base, index)
                    if not _balanced([expected], [mpmath.mpf(1)], [measured]):
                        message = f"the tangent of {name} at {index} differs from differences of the forward"
                        raise StepError(message, Difference(name, index, measured.value, expected))
        except Undefined as error:
            nowhere = str(error)
            continue
        return phrase(AGREES, said(sizes))
    raise NoPoint(f"no random point could be evaluated: {nowhere}")

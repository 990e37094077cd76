"""Rows of numbers for what no derivation can show, and how a formula is evaluated at given numbers.

An entry names a function ("module:function") that returns a list of `Evidence`; ours lie in `models/evidence`, where
everything can be imported. `at` evaluates an expression of the
catalogue, and its derivatives, at a point to 40 digits, so that a printed number is checked against the very equations.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
from sympy import Integer, Symbol

from gradproof.symbolic.catalogue.entry import Entry
from gradproof.symbolic.deriving.derivation import derive_system
from gradproof.symbolic.deriving.example import nested
from gradproof.symbolic.equations.evaluate import HighPrecision, Point
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse
from gradproof.symbolic.phrases import joined, phrase

Nested = Any  # a number or nested lists of numbers


@dataclass(frozen=True)
class Evidence:
    """One row: what was computed, what it had to be, within which tolerance, and whether it was."""

    label: str
    value: Any
    expected: Any
    tolerance: float
    passed: bool

    def __str__(self) -> str:
        sign = "ok" if self.passed else "FAILED"
        return f"{self.label}: {shown(self.value)} against {shown(self.expected)} {sign}"


def shown(value: Any) -> str:
    """A value as a reader wants it: short numbers, lists item by item.

    >>> shown([0.25, 1 / 3]), shown(True), shown(2)
    ('[0.25, 0.3333333]', 'yes', '2')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return phrase("[{}]", joined(", ", map(shown, value)))
    if isinstance(value, str):  # a phrase stays one
        return value
    return f"{float(value):.7g}" if isinstance(value, (float, mpmath.mpf)) else str(value)


def distance(a: Nested, b: Nested) -> float:
    """The largest absolute difference of two nested lists of numbers; infinite where their shapes differ.

    >>> distance([1.0, 2.0], [1.0, 2.5]), distance([1.0], 1.0)
    (0.5, inf)
    """
    if isinstance(a, (list, tuple)) != isinstance(b, (list, tuple)):
        return float("inf")
    if isinstance(a, (list, tuple)):
        return (
            max((distance(x, y) for x, y in zip(a, b, strict=True)), default=0.0) if len(a) == len(b) else float("inf")
        )
    return 0.0 if a == b else abs(float(a) - float(b))


def same(label: str, value: Nested, expected: Nested, tolerance: float = 1e-12) -> Evidence:
    """The value must be the expected one.

    >>> same("a third", 0.3333, 1 / 3, 1e-4).passed
    True
    """
    return Evidence(label, value, expected, tolerance, distance(value, expected) <= tolerance)


def apart(label: str, value: Nested, other: Nested, least: float) -> Evidence:
    """The value must differ from another one, which somebody takes for it, by at least so much.

    >>> str(apart("half against a third", 0.5, 1 / 3, 0.1))
    'half against a third: 0.5 against differs from 0.3333333 by 0.1 or more ok'
    """
    text = phrase("differs from {} by {} or more", shown(other), shown(least))
    return Evidence(label, value, text, 0.0, distance(value, other) >= least)


def at_most(label: str, value: float | Fraction, bound: float | Fraction, tolerance: float = 0.0) -> Evidence:
    """The value must not exceed a bound."""
    return Evidence(label, value, f"≤ {shown(bound)}", tolerance, float(value) <= float(bound) + tolerance)


def at_least(label: str, value: float, bound: float) -> Evidence:
    """The value must reach a bound."""
    return Evidence(label, value, f"≥ {shown(bound)}", 0.0, float(value) >= float(bound))


def holds(label: str, fact: bool, value: Any = "") -> Evidence:
    """Something must be so; `value` shows it."""
    return Evidence(label, bool(fact) if value == "" else value, "as stated" if value != "" else True, 0.0, bool(fact))


def at(
    expression: str,
    shapes: Mapping[str, str],
    given: Mapping[str, Nested],
    wrt: Sequence[str] = (),
    cotangent: str | None = None,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Nested]:
    """The value ("value"), every named array, and the adjoints ("x_bar" …) of an expression at given numbers.

    >>> at("sum(x**2)", {"x": "n"}, {"x": [1, 2]}, ["x"])["x_bar"]
    [2.0, 4.0]
    """
    program = parse(expression)
    system = build(program, shapes)
    (output,) = system.outputs
    if wrt:
        system = derive_system(system, wrt, cotangent, (), program).system
    found = at_point(system, given, sizes)
    return {**found, "value": found[output]}


def at_point(system: System, given: Mapping[str, Nested], sizes: Mapping[str, int] | None = None) -> dict[str, Nested]:
    """All arrays of a system at given inputs, as nested lists of numbers; see `point`."""
    found = point(system, given, sizes)
    needed = [*given, *(e.name for e in system.equations)]
    return {name: nested(found, name) for name in dict.fromkeys(needed)}


def matrix_at(system: System, name: str, given: Mapping[str, Nested]) -> Any:
    """One array of two axes at given inputs, to 40 digits, as a matrix of mpmath; see `point`.

    >>> from gradproof.symbolic.language.reader import build
    >>> matrix_at(build("A = outer(x, x)", {"x": "n"}), "A", {"x": [1, 2]})[1, 0]
    mpf('2.0')
    """
    found = point(system, given)
    rows, columns = found.shape(name)
    return mpmath.matrix([[found.entry(name, (j, k)) for k in range(columns)] for j in range(rows)])


def point(system: System, given: Mapping[str, Nested], sizes: Mapping[str, int] | None = None) -> Point:
    """Given inputs as a point at which any array of a system can be evaluated.

    Raises GradproofError where a size cannot be read off the inputs.
    """
    known: dict[Symbol, int] = {symbol: sizes[str(symbol)] for symbol in system.sizes if sizes and str(symbol) in sizes}
    for name, value in given.items():
        for k, size in enumerate(system.arrays[name].shape):
            length = _length(value, k)
            (symbol, *more) = size.free_symbols or (None,)
            if symbol is not None and not more and symbol not in known:
                known[symbol] = int(Integer(length) - size.subs(symbol, 0))
    if missing := [str(s) for s in system.sizes if s not in known]:
        raise GradproofError(f"the sizes {', '.join(missing)} are not given by the arrays")
    entries = {
        name: {i: _number(_entry(value, i), system.arrays[name].below is not None) for i in _indices(value)}
        for name, value in given.items()
    }
    return Point(system, known, HighPrecision(0), 0, entries)


def _length(value: Nested, depth: int) -> int:
    for _ in range(depth):
        value = value[0]
    return len(value)


def _indices(value: Nested) -> list[tuple[int, ...]]:
    if not isinstance(value, (list, tuple)):
        return [()]
    return [(k, *rest) for k, item in enumerate(value) for rest in _indices(item)]


def _entry(value: Nested, index: tuple[int, ...]) -> Any:
    for k in index:
        value = value[k]
    return value


def _number(value: Any, whole: bool) -> Any:
    """A decimal such as 0.1 means exactly that."""
    return int(value) if whole else mpmath.mpf(repr(value)) if isinstance(value, float) else mpmath.mpf(value)


def rows(entry: Entry) -> list[Evidence]:
    """The evidence of an entry, computed now; none where it names no function.

    Raises GradproofError where the function cannot be found.
    """
    if not entry.evidence:
        return []
    module, _, name = entry.evidence.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise GradproofError(f"{entry.id}: its evidence {entry.evidence} cannot be loaded ({error})") from None
    found: list[Evidence] = function()
    return found

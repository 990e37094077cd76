"""A normalisation spelled out by hand is one: (x − mean x)/√(mean (x − mean x)² + ε) is layernorm.

In the same way x/√(mean x² + ε) is rmsnorm, and √Σ x² is norm. Both spellings then derive and print alike. The parts
may have names of their own; a name that nothing else reads is gone afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from sympy import Add, Expr, Mul, Pow, Rational, S

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Index,
    Reduce,
    accesses,
    letters,
    map_accesses,
    names,
    open_,
    rebuild,
    reduce_,
    sum_,
)
from gradproof.symbolic.equations.system import Equation
from gradproof.symbolic.language import composites
from gradproof.symbolic.language.builder import Builder
from gradproof.symbolic.language.recognise import match
from gradproof.symbolic.language.values import Value

LEVELS = 3  # how many names are looked through
HALF = Rational(1, 2)
ROOTS = (-HALF, Rational(-1))


@dataclass(frozen=True)
class Spread:
    """√(mean over `axes` of term² + eps), with the letters of the rows."""

    term: Expr
    axes: tuple[Axis, ...]
    eps: Expr


def recognise_normalisations(builder: Builder, named: Set[str] = frozenset()) -> None:
    """Rewrite the equations built so far where they spell out a normalisation; `named` are the user's own names."""
    made = {v.expr.name for v in builder.memo.values() if isinstance(v, Value) and isinstance(v.expr, Access)}
    for equation in list(builder.equations):
        if builder.is_helper(equation.name) or equation.name in made or equation not in builder.equations:
            continue
        if any(p.exp in (HALF, *ROOTS) for p in equation.body.atoms(Pow)):
            finder = Finder(builder, equation, named)
            body = finder.walk(equation.body, equation.axes)
            if body != equation.body:
                position = builder.equations.index(equation)
                defined = any(e.name == equation.name and e is not equation for e in builder.equations)
                if finder.whole and defined:  # otherwise what it is has another name already: s = r
                    del builder.equations[position]
                else:
                    builder.equations[position] = equation.with_body(body)


class Finder:
    """Looks through one equation."""

    def __init__(self, builder: Builder, equation: Equation, named: Set[str]) -> None:
        self.b, self.named = builder, named
        self.equation = equation
        self.whole = False  # whether the equation is nothing but the normalised array
        self.definitions = {
            e.name: e
            for e in builder.equations
            if all(isinstance(i, Index) for i in e.place) and e is not equation
            if not builder.is_helper(e.name) and e.name not in builder.kept
        }

    def walk(self, expr: Expr, axes: Sequence[Axis]) -> Expr:
        if not expr.args or isinstance(expr, Access) or not names(expr):
            return expr
        if isinstance(expr, Reduce):
            body, own = open_(expr, [axis[0] for axis in axes])
            return reduce_(expr.op, self.walk(body, [*axes, *own]), own)
        if isinstance(expr, Mul):
            expr = self.product(expr, axes)
        if isinstance(expr, Pow) and abs(expr.exp) == HALF:
            return self.norm(expr, axes)
        return rebuild(expr, [self.walk(arg, axes) for arg in expr.args]) if not isinstance(expr, Access) else expr

    def product(self, expr: Mul, axes: Sequence[Axis]) -> Expr:
        for below in expr.args:
            if not (isinstance(below, Pow) and below.exp in ROOTS):
                continue
            for spread in self.spreads(below, axes):
                for above in expr.args:
                    found = self.normalised(above, spread, expr == above * below, axes)
                    if found is not None:
                        return found * expr / above / below
        return expr

    def norm(self, expr: Pow, axes: Sequence[Axis]) -> Expr:
        """√Σ x² by name."""
        total = expr.base
        if not (isinstance(total, Reduce) and total.op == "sum"):
            return expr
        body, own = open_(total, [axis[0] for axis in axes])
        if not (isinstance(body, Pow) and body.exp == 2):
            return expr
        spread = Spread(body.base, tuple(own), S.Zero)
        found = self.entry("norm", body.base, spread, {}, expr == self.equation.body, axes)
        return expr if found is None else found ** (2 * expr.exp)

    # --- the denominator

    def unfolded(self, expr: Expr, axes: Sequence[Axis]) -> Iterator[Expr]:
        """The expression, and the same with the names in it replaced by what they stand for, level by level."""
        for _ in range(LEVELS):
            yield expr
            named = [a.name for a in accesses(expr) if a.name in self.definitions]
            if not named:
                return
            scope = [axis[0] for axis in axes]
            expr = map_accesses(expr, lambda a: self.definitions[a.name].at(a.indices), named, scope)

    def spreads(self, below: Pow, axes: Sequence[Axis]) -> Iterator[Spread]:
        for inside in self.unfolded(below.base, axes):
            if below.exp == -1:
                if not (isinstance(inside, Pow) and inside.exp == HALF):
                    continue
                inside = inside.base
            for variance in self.unfolded(inside, axes):
                found = self.mean_square(variance, axes)
                if found is not None:
                    yield found

    def mean_square(self, expr: Expr, axes: Sequence[Axis]) -> Spread | None:
        """(1/N) Σ term² + eps."""
        terms = Add.make_args(expr)
        means = [term for term in terms if term.has(Reduce)]
        eps = Add(*(term for term in terms if term not in means))
        if len(means) != 1 or letters(eps):
            return None
        sums = [f for f in Mul.make_args(means[0]) if isinstance(f, Reduce) and f.op == "sum"]
        if len(sums) != 1:
            return None
        body, own = open_(sums[0], [axis[0] for axis in axes])
        size = Mul(*(hi - lo for _, lo, hi in own))
        if means[0] != sums[0] / size or not (isinstance(body, Pow) and body.exp == 2):
            return None
        return Spread(body.base, tuple(own), eps)

    # --- the numerator

    def normalised(self, above: Expr, spread: Spread, alone: bool, axes: Sequence[Axis]) -> Expr | None:
        """The entry of x̂ that `above` over the spread is."""
        own = [axis[0] for axis in spread.axes]
        scope = [*axes, *spread.axes]
        for term in self.unfolded(spread.term, scope):
            for candidate in self.unfolded(above, axes):
                mapping = match(term, candidate, own)
                if mapping is None:
                    continue
                for centred in self.unfolded(term, scope):
                    x = without_mean(centred, spread.axes)
                    if x is not None:
                        return self.entry("layernorm", x, spread, mapping, alone, axes)
                return self.entry("rmsnorm", term, spread, mapping, alone, axes)
        return None

    def entry(
        self, kind: str, x: Expr, spread: Spread, mapping: dict[Index, Expr], alone: bool, axes: Sequence[Axis]
    ) -> Expr | None:
        own = [axis[0] for axis in spread.axes]
        used = letters(x) | set(own)
        known = [axis for axis in (*axes, *spread.axes) if axis[0] in used]
        if {axis[0] for axis in known} != used or any(lo != 0 for _, lo, _ in known):
            return None  # part of an array only, as in a recurrence
        first = next((a for a in accesses(x) if set(a.indices) == used), None)
        if first is not None:
            known.sort(key=lambda axis: first.indices.index(axis[0]))
        value = Value(x, tuple(axis[0] for axis in known), tuple((hi - lo).expand() for _, lo, hi in known))
        positions = [value.letters.index(letter) for letter in own]
        places = tuple(mapping.get(letter, letter) for letter in value.letters)
        if kind == "norm":
            places = tuple(place for place in places if place not in own)
        self.whole = alone and self.equation.place == places and self.equation.name in self.named
        preferred, self.b.preferred = self.b.preferred, self.equation.name if self.whole else None
        options = () if kind == "norm" else (spread.eps,)
        found = getattr(composites, kind)(self.b, value, *options, positions)
        self.b.preferred = preferred
        return found.at(*places)


def without_mean(expr: Expr, axes: Sequence[Axis]) -> Expr | None:
    """x where an expression is x − (1/N) Σ x."""
    if not isinstance(expr, Add):
        return None
    size = Mul(*(hi - lo for _, lo, hi in axes))
    for term in expr.args:
        if term.has(Reduce) and not letters(term) & {axis[0] for axis in axes}:
            x = expr - term
            if sum_(x, axes) / size == -term:
                return x
    return None

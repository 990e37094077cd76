"""Inverses and determinants of products, multiples, diagonal matrices and sums, written with those of their parts.

A proof that does not succeed with inv(A@B) as it stands is tried again with inv(B) @ inv(A). The rules are `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sympy import Add, Expr, Mul, S, log

from gradproof.symbolic.equations.calculus import whole
from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Implicit,
    Index,
    Reduce,
    delta,
    letters,
    open_,
    reduce_,
    sum_,
)
from gradproof.symbolic.equations.functions import absolute
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters

ROW, COLUMN = out_letters(2)
DEPTH = 6  # of a matrix in a matrix

At = Callable[[Expr, Expr], Expr]


@dataclass(frozen=True)
class Known:
    """What is known of a square matrix: the entries of its inverse, its determinant, and log |det|."""

    inverse: At
    det: Callable[[], Expr]
    logdet: Callable[[], Expr]


@dataclass
class Inverses:
    """Finds what is known of the matrices of a system; arrays that are needed for it are added to `system`."""

    system: System
    fixed: set[str] = field(default_factory=set)  # matrices whose inverse stays what it is
    depth: int = 0
    count: int = 0

    def letters(self, count: int) -> list[Index]:
        """Letters that no other sum has: sums stand in each other here."""
        self.count += count
        return [Index(f"inner{self.count - k}") for k in range(count)]

    def of(self, entry: Expr, size: Expr) -> Known:
        """What is known of the matrix whose entry at ROW, COLUMN is given."""
        found = self.by_rule(entry, size)
        return found if found is not None else self.of_array(self.named(entry, size), size)

    def by_rule(self, entry: Expr, size: Expr) -> Known | None:
        self.depth += 1
        try:
            if self.depth > DEPTH:
                return None
            return next((found for rule in RULES if (found := rule(self, entry, size)) is not None), None)
        finally:
            self.depth -= 1

    def of_array(self, name: str, size: Expr) -> Known:
        """What is known of an array that is a matrix: by its definition if a rule applies, or by its name."""
        body = self.definition(name)
        if body is not None and name not in self.fixed:
            if isinstance(body, Implicit):
                return Known(  # inv(inv(A)) = A
                    lambda i, j: Access(body.matrix, i, j),
                    lambda: 1 / self.held("det", body.matrix, size),
                    lambda: -self.held("logdet", body.matrix, size),
                )
            if (found := self.by_rule(body, size)) is not None:
                return found
        return Known(
            lambda i, j: self.held("inv", name, size).xreplace({ROW: i, COLUMN: j}),
            lambda: self.held("det", name, size),
            lambda: self.held("logdet", name, size),
        )

    def definition(self, name: str) -> Expr | None:
        """The entry of an array at ROW, COLUMN; None where it is given or defined in another way."""
        equations = self.system.defined.get(name, ())
        if len(equations) != 1 or self.system.arrays[name].rank != 2 or self.system.recurrent(name):
            return None
        (equation,) = equations
        if isinstance(equation.body, Implicit) and equation.body.kind != "inv":
            return None
        if not all(isinstance(place, Index) for place in equation.place):
            return None
        return equation.body.xreplace(dict(zip(equation.place, (ROW, COLUMN), strict=True)))

    def held(self, kind: str, matrix: str, size: Expr) -> Expr:
        """The array that holds an inverse or a determinant, at ROW, COLUMN."""
        outs: tuple[Index, ...] = (ROW, COLUMN) if kind == "inv" else ()
        body = Implicit(kind, matrix, size, *outs)
        for equation in self.system.equations:
            if isinstance(equation.body, Implicit) and (equation.body.kind, equation.body.matrix) == (kind, matrix):
                return Access(equation.name, *outs)
        return self.added(kind, body, outs, (size,) * len(outs))

    def named(self, entry: Expr, size: Expr) -> str:
        """The array with the given entry."""
        if isinstance(entry, Access) and entry.indices == (ROW, COLUMN):
            return entry.name
        for equation in self.system.equations:
            if equation.place == (ROW, COLUMN) and equation.body == entry:
                return equation.name
        return self.added("matrix", entry, (ROW, COLUMN), (size, size)).name

    def added(self, name: str, body: Expr, outs: Sequence[Index], shape: Sequence[Expr]) -> Access:
        array = Array(self.system.free_name(name), tuple(shape))
        self.system = self.system.extended([array], [whole(array, body)], self.system.outputs)
        return Access(array.name, *outs)


# --------------------------------------------------------------------------------------------------------------- rules


def _of_entry(self: Inverses, entry: Expr, size: Expr) -> Known | None:
    """inv(Aᵀ) = inv(A)ᵀ, det Aᵀ = det A; the matrix is an array, or one that is turned round."""
    if not isinstance(entry, Access) or set(entry.indices) != {ROW, COLUMN}:
        return None
    known = self.of_array(entry.name, size)
    if entry.indices == (ROW, COLUMN):
        return known
    return Known(lambda i, j: known.inverse(j, i), known.det, known.logdet)


def _diagonal(self: Inverses, entry: Expr, size: Expr) -> Known | None:
    """inv(diag d) = diag(1/d), det = Π d."""
    factors = Mul.make_args(entry)
    same = delta(ROW, COLUMN)
    if same not in factors:
        return None
    value = Mul(*(factor for factor in factors if factor != same)).xreplace({COLUMN: ROW})
    axis = (ROW, S.Zero, size)
    return Known(
        lambda i, j: delta(i, j) / value.xreplace({ROW: i}),
        lambda: reduce_("prod", value, [axis]),
        lambda: sum_(log(absolute(value)), [axis]),
    )


def _multiple(self: Inverses, entry: Expr, size: Expr) -> Known | None:
    """inv(s A) = inv(A)/s, det(s A) = sⁿ det A."""
    factors = Mul.make_args(entry)
    times = Mul(*(factor for factor in factors if not letters(factor) & {ROW, COLUMN}))
    if times == 1:
        return None
    known = self.of(entry / times, size)
    return Known(
        lambda i, j: known.inverse(i, j) / times,
        lambda: times**size * known.det(),
        lambda: size * log(absolute(times)) + known.logdet(),
    )


def _product(self: Inverses, entry: Expr, size: Expr) -> Known | None:
    """inv(A B) = inv(B) inv(A), det(A B) = det A · det B for square A and B."""
    half = next((half for half in _halves(entry) if half[2][2] == size), None)
    if half is None:
        return None
    left, right, (letter, _, _) = half
    a, b = self.of(left.xreplace({letter: COLUMN}), size), self.of(right.xreplace({letter: ROW}), size)
    (inner,) = self.letters(1)
    return Known(
        lambda i, j: sum_(b.inverse(i, inner) * a.inverse(inner, j), [(inner, S.Zero, size)]),
        lambda: a.det() * b.det(),
        lambda: a.logdet() + b.logdet(),
    )


def _rank_one(self: Inverses, entry: Expr, size: Expr) -> Known | None:
    """inv(A + u vᵀ) = A⁻¹ − A⁻¹ u vᵀ A⁻¹ / (1 + vᵀ A⁻¹ u),  det(A + u vᵀ) = (1 + vᵀ A⁻¹ u) det A."""
    terms = Add.make_args(entry)
    single = [term for term in terms if _outer(term) is not None]
    if len(terms) < 2 or len(single) in (0, len(terms)):
        return None
    u, v = _outer(single[0]) or (S.One, S.One)
    known = self.of(entry - single[0], size)
    a, b = self.letters(2)
    along, across = (a, S.Zero, size), (b, S.Zero, size)
    one = 1 + sum_(v.xreplace({COLUMN: b}) * known.inverse(b, a) * u.xreplace({ROW: a}), [along, across])
    return Known(
        lambda i, j: (
            known.inverse(i, j)
            - sum_(known.inverse(i, a) * u.xreplace({ROW: a}), [along])
            * sum_(v.xreplace({COLUMN: b}) * known.inverse(b, j), [across])
            / one
        ),
        lambda: known.det() * one,
        lambda: known.logdet() + log(absolute(one)),
    )


def _low_rank(self: Inverses, entry: Expr, size: Expr) -> Known | None:
    """inv(A + U V) = A⁻¹ − A⁻¹ U S⁻¹ V A⁻¹,  det(A + U V) = det S · det A  with  S = I + V A⁻¹ U."""
    halves = ((term, *half) for term in Add.make_args(entry) for half in _halves(term) if half[2][2] != size)
    term, u, v, axis = next(halves, (entry, S.One, S.One, None))
    if axis is None or term == entry:
        return None
    (letter, _, end), known = axis, self.of(entry - term, size)
    a, b, k, m = self.letters(4)
    over = [(a, S.Zero, size), (b, S.Zero, size)]
    both = [*over, (k, S.Zero, end), (m, S.Zero, end)]

    def left(i: Expr, k: Expr) -> Expr:
        return u.xreplace({ROW: i, letter: k})

    def right(k: Expr, j: Expr) -> Expr:
        return v.xreplace({letter: k, COLUMN: j})

    def taken_off(i: Expr, j: Expr) -> Expr:
        before, after = known.inverse(i, a) * left(a, k), right(m, b) * known.inverse(b, j)
        return sum_(before * inner.inverse(k, m) * after, both)

    small = self.named(delta(ROW, COLUMN) + sum_(right(ROW, b) * known.inverse(b, a) * left(a, COLUMN), over), end)
    self.fixed.add(small)
    inner = self.of_array(small, end)
    return Known(
        lambda i, j: known.inverse(i, j) - taken_off(i, j),
        lambda: known.det() * inner.det(),
        lambda: known.logdet() + inner.logdet(),
    )


RULES: tuple[Callable[[Inverses, Expr, Expr], Known | None], ...] = (
    _of_entry,
    _diagonal,
    _multiple,
    _product,
    _rank_one,
    _low_rank,
)


def _halves(entry: Expr) -> Iterator[tuple[Expr, Expr, Axis]]:
    """The ways to read Σ_k l(ROW, k) r(k, COLUMN): both factors, and the letter that is between them."""
    if not isinstance(entry, Reduce) or entry.op != "sum":
        return
    body, axes = open_(entry, (ROW, COLUMN))
    factors = Mul.make_args(body)
    for axis in axes:
        if axis[1] != 0 or letters(axis[2]):
            continue
        inner = [other for other in axes if other is not axis]
        reached = {ROW}
        for _ in factors:
            near = [f for f in factors if letters(f) & (reached - {axis[0]})]
            reached |= set().union(*(letters(f) for f in near)) - {axis[0]}
        left = [factor for factor in factors if letters(factor) & reached or not letters(factor) & _all(axes, COLUMN)]
        right = [factor for factor in factors if factor not in left]
        if COLUMN in reached or not any(axis[0] in letters(f) for f in left) or not right:
            continue
        own = [other for other in inner if other[0] in reached]
        rest = [other for other in inner if other not in own]
        yield sum_(Mul(*left), own), sum_(Mul(*right), rest), axis


def _all(axes: Sequence[Axis], column: Index) -> set[Index]:
    return {column, *(axis[0] for axis in axes)}


def _outer(term: Expr) -> tuple[Expr, Expr] | None:
    """u and v of a term u(ROW) v(COLUMN); None for any other."""
    factors = Mul.make_args(term)
    right = [factor for factor in factors if COLUMN in letters(factor)]
    left = [factor for factor in factors if factor not in right]
    if any(ROW in letters(f) or isinstance(f, Compare) for f in right) or not right:
        return None
    return (Mul(*left), Mul(*right)) if any(ROW in letters(factor) for factor in left) else None


# ---------------------------------------------------------------------------------------------------------- a system


def explicit(system: System) -> tuple[System, list[tuple[Equation, Expr]], System]:
    """The system with its inverses and determinants written out; which ones, and the system with them as they were.

    >>> from gradproof.symbolic.language.reader import build
    >>> (found,) = [new for old, new in explicit(build("inv(A @ B)", {"A": "n,n", "B": "n,n"}))[1]]
    >>> found
    sum[b1=0:n](inv[o0, b1]*inv1[b1, o1])
    """
    finder = Inverses(system)
    written: list[tuple[Equation, Expr]] = []
    for equation in system.equations:
        body = equation.body
        if not isinstance(body, Implicit) or system.arrays[body.matrix].rank != 2:
            continue
        entry = finder.definition(body.matrix)
        if entry is None or body.matrix in finder.fixed:
            continue
        known = finder.of_array(body.matrix, body.size)
        value = (
            known.inverse(*equation.place)
            if body.kind == "inv"
            else {"det": known.det, "logdet": known.logdet}[body.kind]()
        )
        if not (isinstance(value, Access) and value.name == equation.name):
            written.append((equation, value))
    new = {id(equation): value for equation, value in written}
    bodies = [e.with_body(new[id(e)]) if id(e) in new else e for e in finder.system.equations]
    return finder.system.with_equations(bodies), written, finder.system

"""Read an expression as numbers, vectors and matrices.

`read(e, axes)` gives the node for an expression whose free letters are exactly `axes`: none (a number), one (a column)
or two (a matrix, row letter first). Other letters are fixed and stay as indices. What cannot be read raises `NoForm`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import Add, Expr, Function, Mul, Pow, S

from gradproof.symbolic.equations.expr import Access, Compare, Implicit, Index, Reduce, accesses, letters
from gradproof.symbolic.equations.functions import spelled
from gradproof.symbolic.equations.roles import Kind
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.folding.facts import SYMMETRIC
from gradproof.symbolic.printing import contract
from gradproof.symbolic.printing.letters import Letters
from gradproof.symbolic.printing.nodes import (
    Call,
    Delta,
    Identity,
    Name,
    Node,
    Norm,
    Number,
    Ones,
    Over,
    Pattern,
    Power,
    Relation,
    Spread,
    Sum,
    Times,
    Transpose,
    Unit,
    negative,
    signed,
    times,
    transpose,
    transposes,
)
from gradproof.symbolic.printing.pieces import (
    NoForm,
    Side,
    diagonal_of,
    divided,
    filled,
    plain_number,
    repeats,
    shared_factor,
    signed_number,
    with_scalars,
)
from gradproof.symbolic.printing.terms import Terms, base_and_power, is_constant, name_key

Axes = tuple[Index, ...]
Groups = dict[Axes, list[Node]]
Parts = tuple[Expr, ...]
ZERO = Number(S.Zero)
ROW, COLUMN = Index("i"), Index("j")  # how a condition on the places of a matrix is written


@dataclass(frozen=True)
class MatrixReader:
    """Reads the expressions of one system with some letters kept as indices."""

    system: System
    letters: Letters
    ranges: dict[Index, tuple[Expr, Expr]]
    terms: Terms
    fixed: frozenset[Index] = frozenset()
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def fixing(self, more: Iterable[Index]) -> MatrixReader:
        return replace(self, fixed=self.fixed.union(more))

    def free(self, expr: Expr) -> frozenset[Index]:
        return letters(expr) - self.fixed

    def used(self, expr: Expr, axes: Axes) -> Axes:
        """The axes on which an expression depends."""
        free = self.free(expr)
        if not free <= set(axes):
            raise NoForm
        return tuple(axis for axis in axes if axis in free)

    def size(self, letter: Index) -> Expr:
        lo, hi = self.ranges.get(letter, (S.Zero, S.One))
        return hi - lo

    def must_fix(self, expr: Expr) -> frozenset[Index]:
        """Letters that step through a recurrence, bound a sum, are numbers or read other entries than a whole axis."""
        found = {x for sum_ in expr.atoms(Reduce) for _, lo, hi in sum_.axes for x in letters(lo) | letters(hi)}
        for access in accesses(expr):
            for axis, index in enumerate(access.indices):
                if self.partial(access, axis, index) or (access.name, axis) in stepped(self.system):
                    found |= letters(index)
        return frozenset((found | as_numbers(expr)) & set(self.ranges))

    def partial(self, access: Access, axis: int, index: Expr) -> bool:
        """Whether an index is more than a letter, or a letter that leaves out a part of the axis."""
        if not isinstance(index, Index):
            return True
        array = self.system.arrays[access.name]
        whole = array.first(axis), array.first(axis) + array.shape[axis]
        return self.ranges.get(index, whole) != whole

    # --- the three ways to ask

    def whole(self, expr: Expr, axes: Axes) -> Node:
        """An array of the full shape, whatever the expression depends on."""
        if len(axes) > 2:
            raise NoForm
        used = self.used(expr, axes)
        if len(axes) == 2 and len(used) == 1 and not is_pattern(expr):
            return self.outer(self.read(expr, used), axes.index(used[0]), axes)
        node = self.broadcast(expr, axes)
        return node if node.rank or not axes or node == ZERO else filled(node, self.ones(axes))

    def ones(self, axes: Axes) -> Node:
        first, *second = (Ones(self.size(axis)) for axis in axes)
        return times([first, *map(Transpose, second)])

    def broadcast(self, expr: Expr, axes: Axes) -> Node:
        """A number, a full array, or a vector that is repeated along one axis of a matrix."""
        used = self.used(expr, axes)
        if used and is_pattern(expr):
            return self.condition(expr, axes)
        node = self.read(expr, used)
        if len(used) == len(axes) or not used:
            return node
        axis = axes.index(used[0])
        if isinstance(node, Sum) and len(node.terms) == 1:
            return negative(self.spread(negative(node), axis, axes))
        return self.spread(node, axis, axes)

    def spread(self, vector: Node, axis: int, axes: Axes) -> Node:
        return Spread(vector, axis) if repeats(vector, axis) else self.outer(vector, axis, axes)

    def outer(self, vector: Node, axis: int, axes: Axes) -> Node:
        """v 𝟏ᵀ or 𝟏 vᵀ."""
        if isinstance(vector, Over) and not vector.bottom.rank:
            return Over(self.outer(vector.top, axis, axes), vector.bottom)
        other = Ones(self.size(axes[1 - axis]))
        return times([vector, Transpose(other)]) if axis == 0 else times([other, transpose(vector)])

    def oriented(self, expr: Expr, axes: Axes) -> Node:
        """A matrix with as few transposes as possible: (XW − Y)ᵀ rather than WᵀXᵀ − Yᵀ."""
        node = self.read(expr, axes)
        if transposes(node) > 1:
            other = transpose(self.read(expr, axes[::-1]))
            if transposes(other) < transposes(node):
                return other
        return node

    # --- one kind of expression each

    def read(self, expr: Expr, axes: Axes) -> Node:
        """The node of an expression whose free letters are exactly `axes`."""
        key = expr, axes, self.fixed
        if key not in self.memo:
            self.memo[key] = self.node(expr, axes)
        return self.memo[key]

    def node(self, expr: Expr, axes: Axes) -> Node:
        if is_constant(expr) or expr.is_Symbol:
            if isinstance(expr, Index) and expr in axes:
                raise NoForm  # the vector 0, 1, 2 … has no name
            return signed_number(expr)
        if isinstance(expr, Access):
            return self.access(expr, axes)
        if isinstance(expr, Implicit):
            return self.implicit(expr, axes)
        if isinstance(expr, Add):
            return self.sum(expr, axes)
        if isinstance(expr, Mul) or (isinstance(expr, Reduce) and expr.op == "sum"):
            return self.product(expr, axes)
        if isinstance(expr, Reduce):
            return contract.extremum(self, expr, axes)
        if isinstance(expr, Compare):
            return self.condition(expr, axes)
        if isinstance(expr, Pow):
            return self.power(expr, axes)
        if isinstance(expr, Function):
            return Call(spelled(expr), tuple(self.broadcast(arg, axes) for arg in expr.args))
        raise NoForm

    def access(self, expr: Access, axes: Axes) -> Node:
        at = tuple(None if index in axes else index for index in expr.indices)
        if any(index is not None and self.free(index) for index in at):
            raise NoForm
        if any(index in axes and self.partial(expr, axis, index) for axis, index in enumerate(expr.indices)):
            raise NoForm  # a name stands for the whole array
        order = [index for index in expr.indices if index in axes]
        symmetric = len(order) == 2 and bool(self.system.arrays[expr.name].properties & SYMMETRIC)
        role = self.system.arrays[expr.name].role
        inverse = role.kind is Kind.INVERSE and role.marked and not any(index is not None for index in at)
        name = Name(expr.name, at, symmetric, inverse)
        if order == [*axes, *axes] and axes:
            return Call("diag", (name,))
        if len(order) > len(axes):
            raise NoForm
        return name if tuple(order) == axes or symmetric else Transpose(name)

    def implicit(self, expr: Implicit, axes: Axes) -> Node:
        """det(A), or inv(A) as a whole."""
        batch, own = (expr.indices[:-2], expr.indices[-2:]) if expr.kind == "inv" else (expr.indices, ())
        if own != axes or any(self.free(index) for index in batch):
            raise NoForm
        return Call(expr.kind, (Name(expr.matrix, (*batch, None, None)),))

    def condition(self, expr: Compare, axes: Axes) -> Node:
        left, right = expr.sides
        if expr.op == "==" and len(axes) == 2:
            if {left, right} == set(axes):
                return Identity(self.size(axes[0]))
            for letter, lookup in ((left, right), (right, left)):
                if isinstance(lookup, Access) and letter in axes and letter not in letters(lookup):
                    rows = self.read(lookup, self.used(lookup, axes))
                    hot = Call("onehot", (rows, Number(self.size(letter))))
                    return hot if letter == axes[1] else Transpose(hot)
        if len(axes) == 1 and expr.op == "==" and axes[0] in (left, right):
            other = right if left == axes[0] else left
            if not self.free(other):
                return Unit((other,), (self.size(axes[0]),))
        if axes and not accesses(expr):
            if not self.fixed.isdisjoint({ROW, COLUMN} & letters(expr)):
                raise NoForm  # a fixed letter would be taken for the place
            renamed = dict(zip(axes, (ROW, COLUMN), strict=False))
            shape = tuple(self.size(axis) for axis in axes)
            return Pattern(expr.op, left.xreplace(renamed), right.xreplace(renamed), shape)
        if isinstance(left, Index) and isinstance(right, Index) and expr.op == "==":
            return Delta(*sorted((left, right), key=str))
        if not accesses(expr):
            return Relation(expr.op, Number(left), Number(right))
        return Relation(expr.op, self.broadcast(left, axes), self.broadcast(right, axes))

    def power(self, expr: Expr, axes: Axes) -> Node:
        base, exponent = base_and_power(expr)
        if exponent.is_Rational and exponent < 0:
            return self.product(expr, axes)
        node = self.broadcast(base, axes)
        if isinstance(node, Power) and isinstance(node.base, Norm) and exponent == S.Half:
            return node.base  # √‖x‖²
        return Power(node, self.broadcast(exponent, axes))

    # --- sums

    def sum(self, expr: Add, axes: Axes) -> Node:
        number, _ = self.terms.primitive(expr)
        if number not in (1, -1):
            return self.product(expr, axes)
        keyed = [(key, self.term(term, axes)) for key, term in self.terms.keyed(expr)]
        keyed.sort(key=lambda pair: (pair[0], transposes(pair[1][1])))  # A + Aᵀ rather than Aᵀ + A
        return shared_factor([term for _, term in keyed])

    def term(self, expr: Expr, axes: Axes) -> tuple[int, Node]:
        node = self.broadcast(expr, axes)
        sign, node = (-1, negative(node)) if isinstance(node, Sum) and len(node.terms) == 1 else (1, node)
        if len(axes) == 2 and not node.rank and not plain_number(node):
            node = filled(node, self.ones(axes))
        return sign, node

    # --- products

    def product(self, expr: Expr, axes: Axes) -> Node:
        sign, top, bottom, factors, divisors = self.terms.split(expr)
        core: Node | None = None
        if axes:
            core, factors, divisors = self.selected(factors, divisors, axes)
        if isinstance(core, Times) and ZERO in core.factors:
            return ZERO
        groups: Groups = {}
        for factor in factors:
            used = self.used(factor, axes)
            used = axes if used and is_pattern(factor) else used
            node, divisors = contract.average(self, factor, used, divisors)
            groups.setdefault(used, []).append(node or self.factor(factor, used))
        inverse: Groups = {}
        for divisor in divisors:
            used = self.used(divisor, axes)
            inverse.setdefault(used, []).append(self.factor(divisor, used))
        scalars = sorted(groups.pop((), []), key=name_key)
        above = [*([Number(top)] if top != 1 else []), *scalars]
        below = [*([Number(bottom)] if bottom != 1 else []), *inverse.pop((), [])]
        return signed(sign, with_scalars(above, below, core or self.combined(groups, inverse, axes)))

    def selected(self, factors: Parts, divisors: Parts, axes: Axes) -> tuple[Node | None, Parts, Parts]:
        """What a δ among the factors makes of those that depend on `axes`, and the other factors and divisors."""
        if len(axes) == 2:
            factors, divisors = self.distributed(factors, divisors, axes)
        deltas = [f for f in factors if isinstance(f, Compare) and f.op == "=="]
        vectors = [f for f in factors if self.used(f, axes)]
        inverse = [f for f in divisors if self.used(f, axes)]
        others = tuple(f for f in factors if f not in vectors), tuple(f for f in divisors if f not in inverse)
        for found in deltas:
            rest = Mul(*(f for f in vectors if f != found)) / Mul(*inverse)
            if len(axes) == 2 and _is_delta(found, axes):
                return self.diagonal(rest, axes), *others
            for letter, place in (found.sides, found.sides[::-1]):
                if letter in axes and not self.free(place):
                    return self.unit(rest.xreplace({letter: place}), letter, place, axes), *others
        return None, factors, divisors

    def distributed(self, factors: Parts, divisors: Parts, axes: Axes) -> tuple[Parts, Parts]:
        """p_i (δ_ij − p_j) as p_i δ_ij − p_i p_j = diag(p) − p pᵀ."""
        scalars, vectors, matrices = ([f for f in factors if len(self.used(f, axes)) == rank] for rank in range(3))
        below, inverse, others = ([f for f in divisors if len(self.used(f, axes)) == rank] for rank in range(3))
        inner = [f for f in matrices if isinstance(f, Add) and any(_has_delta(term, axes) for term in f.args)]
        if len(inner) != 1 or matrices != inner or others or not (vectors or inverse):
            return factors, divisors
        vector = Mul(*vectors) / Mul(*inverse)
        return (*scalars, Add(*(term * vector for term in inner[0].args))), tuple(below)

    def factor(self, expr: Expr, used: Axes) -> Node:
        if isinstance(expr, Reduce) and expr.op == "sum":
            return contract.contracted(self, expr, used)
        return self.oriented(expr, used) if len(used) == 2 else self.read(expr, used)

    def combined(self, groups: Groups, inverse: Groups, axes: Axes) -> Node | None:
        """diag(u) M diag(v) from factors that depend on the row, on both letters and on the column."""
        if not axes:
            return None
        if len(axes) == 1:
            return divided(groups.get(axes, []), inverse.get(axes, []))
        row, column = (self.side(groups, inverse, axes, axis) for axis in (0, 1))
        if axes not in groups and axes not in inverse:
            return times([row.vector(), transpose(column.vector())])
        matrix = divided(
            [*groups.get(axes, []), *row.repeated(row.top), *column.repeated(column.top)],
            [*inverse.get(axes, []), *row.repeated(row.bottom), *column.repeated(column.bottom)],
        )
        return times([*row.diagonals(), matrix, *column.diagonals()])

    def side(self, groups: Groups, inverse: Groups, axes: Axes, axis: int) -> Side:
        key = (axes[axis],)
        return Side(axis, tuple(groups.get(key, ())), tuple(inverse.get(key, ())))

    def diagonal(self, rest: Expr, axes: Axes) -> Node:
        """δ(row, column) v = diag(v)."""
        row, column = axes
        rest = rest.xreplace({column: row})
        node = self.read(rest, self.used(rest, (row,)))
        return diagonal_of(node) if node.rank else times([node, Identity(self.size(row))])

    def unit(self, rest: Expr, letter: Index, place: Expr, axes: Axes) -> Node:
        """δ(letter, place) f(letter) = f(place) e_place."""
        unit = Unit((place,), (self.size(letter),))
        left = tuple(axis for axis in axes if axis != letter)
        node = self.read(rest, self.used(rest, left))
        if not left:
            return times([node, unit])
        if not node.rank:
            raise NoForm
        return times([unit, transpose(node)]) if axes[0] == letter else times([node, Transpose(unit)])


def as_numbers(expr: Expr) -> set[Index]:
    """Letters that stand for their own value, as i in i² x_i.

    >>> i = Index("i")
    >>> as_numbers(i**2 * Access("x", i)), as_numbers(Access("x", i))
    ({i}, set())
    """
    if isinstance(expr, Index):
        return {expr}
    if isinstance(expr, (Access, Compare)):
        return set()
    if isinstance(expr, Reduce):
        return as_numbers(expr.body) - {letter for letter, _, _ in expr.axes}
    return set().union(*map(as_numbers, expr.args))


def is_pattern(expr: Expr) -> bool:
    """Whether an expression is a condition on places only."""
    return isinstance(expr, Compare) and not accesses(expr)


def _is_delta(factor: Expr, axes: Axes) -> bool:
    return isinstance(factor, Compare) and factor.op == "==" and set(factor.sides) == set(axes)


def _has_delta(term: Expr, axes: Axes) -> bool:
    return any(_is_delta(factor, axes) for factor in Mul.make_args(term))


def stepped(system: System) -> frozenset[tuple[str, int]]:
    """The axes, as (array, position), along which a recurrence or a shifted reading steps."""
    found = system._cache.get("stepped")
    if found is None:
        found = system._cache["stepped"] = _stepped(system)
    return found  # type: ignore[return-value]


def _stepped(system: System) -> frozenset[tuple[str, int]]:
    """Where an index is shifted, and from there on along every letter of a left side that is read at such an axis."""
    waiting: list[tuple[str, int]] = []
    alike: dict[tuple[str, int], list[list[tuple[str, int]]]] = {}
    for equation in system.equations:
        read: dict[Expr, list[tuple[str, int]]] = {index: [] for index in equation.place}
        for access in (equation.target, *accesses(equation.body)):
            for axis, index in enumerate(access.indices):
                if isinstance(index, Add) and letters(index) and not index.has(Access):
                    waiting.append((access.name, axis))
                elif index in read:
                    read[index].append((access.name, axis))
        for group in read.values():
            for place in group:
                alike.setdefault(place, []).append(group)
    found: set[tuple[str, int]] = set()
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += [other for group in alike.get(place, ()) for other in group]
    return frozenset(found)

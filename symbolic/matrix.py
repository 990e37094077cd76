"""Recognise linear algebra: an equation between entries as one between whole arrays.

    sum[b1](X[o0,b1] W[b1,o1]) − Y[o0,o1]          X W − Y
    P[o0] δ(o0,o1) − P[o0] P[o1]                   diag(P) − P Pᵀ
    sum[b1](x[b1]²)                                ‖x‖²

`read(e, axes)` gives the node for an expression whose free letters are exactly `axes`: none (a number), one (a column)
or two (a matrix, row letter first). Other letters are *fixed*: the time step of a recurrence, the batch, the head. They
stay as indices, `h_t = tanh(W h_{t−1} + z_t)`. What cannot be read raises `NoForm`; the index form is then printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from sympy import Add, Expr, Function, Integer, Mul, Pow, S

from gradproof.symbolic import contract
from gradproof.symbolic.expr import Access, Axis, Compare, Index, Reduce, accesses, letters
from gradproof.symbolic.facts import SYMMETRIC
from gradproof.symbolic.functions import spelled
from gradproof.symbolic.letters import Letters
from gradproof.symbolic.nodes import (
    ONE,
    Big,
    Call,
    Identity,
    MatrixPower,
    Name,
    Node,
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
    walk,
)
from gradproof.symbolic.system import Array, Equation, System
from gradproof.symbolic.terms import Terms, base_and_power, hadamard, is_constant, quotient

Axes = tuple[Index, ...]
Groups = dict[Axes, list[Node]]
Parts = tuple[Expr, ...]
ROW, COLUMN = Index("i"), Index("j")  # how a condition on the places of a matrix is written


class NoForm(Exception):
    """An expression has no matrix form."""


@dataclass(frozen=True)
class Form:
    """An equation in matrix form; both sides keep the same fixed letters."""

    left: Name
    right: Node


def to_matrix(expr: Expr, outs: tuple[Index, ...], system: System, axes: Sequence[Axis] = ()) -> Node | None:
    """The matrix form of an expression whose letters are `outs` (row, column), or None.

    >>> n = Index("i"), Index("j")
    >>> to_matrix(Access("A", n[1], n[0]), n, System({"A": Array("A", (2, 2))}, (), ()))
    Transpose(base=Name(name='A', at=(None, None)))
    """
    reader = MatrixReader(system, Letters(system), {letter: (lo, hi) for letter, lo, hi in axes}, Terms(system))
    try:
        return reader.whole(expr, outs)
    except NoForm:
        return None


def matrix_form(equation: Equation, system: System, letters_: Letters) -> Form | None:
    """The matrix form of an equation in readable letters; as few letters as possible are kept as indices."""
    outs = tuple(index for index in equation.place if isinstance(index, Index))
    ranges = {letter: (lo, hi) for letter, lo, hi in equation.axes}
    reader = MatrixReader(system, letters_, ranges, Terms(system))
    needed = reader.must_fix(equation.target) | reader.must_fix(equation.body) | looked_up(equation.body, outs)
    loose = [letter for letter in outs if letter not in needed]
    for count in range(max(0, len(loose) - 2), len(loose) + 1):
        forms = [_form(equation, reader.fixing(needed.union(chosen)), outs) for chosen in combinations(loose, count)]
        found = [form for form in forms if form is not None]
        if found:
            return min(found, key=lambda form: effort(form.right))
    return None


def _form(equation: Equation, reader: MatrixReader, outs: Axes) -> Form | None:
    free = tuple(letter for letter in outs if letter not in reader.fixed)
    try:
        right = reader.whole(equation.body, free)
    except NoForm:
        return None
    if outs and not free and not any(isinstance(node, Times) and _chain(node) for node in walk(right)):
        return None  # nothing but single entries: the index form says it as well
    at = tuple(None if index in free else index for index in equation.place)
    return Form(Name(equation.name, at), right)


def effort(node: Node) -> int:
    """How hard a matrix form is to read: its nodes; sums that stay, and slices like A_{·j}, count more."""
    found = 0
    for inner in walk(node):
        sliced = isinstance(inner, Name) and any(a is None and b is not None for a, b in pairwise(inner.at))
        found += 10 if isinstance(inner, Big) else 6 if sliced else 1
    return found


def _chain(node: Times) -> bool:
    return any(factor.rank for factor in node.factors)


@dataclass(frozen=True)
class MatrixReader:
    """Reads the expressions of one system with some letters kept as indices."""

    system: System
    letters: Letters
    ranges: dict[Index, tuple[Expr, Expr]]
    terms: Terms
    fixed: frozenset[Index] = frozenset()

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
        """Letters that step through a recurrence or stand in an index that is more than a letter."""
        found: set[Index] = set()
        for access in accesses(expr):
            for axis, index in enumerate(access.indices):
                if not isinstance(index, Index) or (access.name, axis) in stepped(self.system):
                    found |= letters(index)
        return frozenset(found & set(self.ranges))

    # --- the three ways to ask

    def whole(self, expr: Expr, axes: Axes) -> Node:
        """An array of the full shape, whatever the expression depends on."""
        if len(axes) > 2:
            raise NoForm
        node = self.broadcast(expr, axes)
        if isinstance(node, Spread):
            return self.outer(node.base, node.axis, axes)
        if node.rank or not axes or node == Number(S.Zero):
            return node
        first, *second = (Ones(self.size(axis)) for axis in axes)
        ones = times([first, *map(Transpose, second)])
        if isinstance(node, Over) and node.top == ONE:
            return Over(ones, node.bottom)
        return times([node, ones])

    def broadcast(self, expr: Expr, axes: Axes) -> Node:
        """A number, a full array, or a vector that is repeated along one axis of a matrix."""
        used = self.used(expr, axes)
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
        if is_constant(expr) or expr.is_Symbol:
            return signed_number(expr)
        if isinstance(expr, Access):
            return self.access(expr, axes)
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
        order = [index for index in expr.indices if index in axes]
        symmetric = len(order) == 2 and bool(self.system.arrays[expr.name].properties & SYMMETRIC)
        name = Name(expr.name, at, symmetric)
        if order == [*axes, *axes] and axes:
            return Call("diag", (name,))
        if len(order) > len(axes):
            raise NoForm
        return name if tuple(order) == axes or symmetric else Transpose(name)

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
            renamed = dict(zip(axes, (ROW, COLUMN), strict=False))
            shape = tuple(self.size(axis) for axis in axes)
            return Pattern(expr.op, left.xreplace(renamed), right.xreplace(renamed), shape)
        if not accesses(expr):
            return Relation(expr.op, Number(left), Number(right))
        return Relation(expr.op, self.broadcast(left, axes), self.broadcast(right, axes))

    def power(self, expr: Expr, axes: Axes) -> Node:
        base, exponent = base_and_power(expr)
        if exponent.is_Rational and exponent < 0:
            return self.product(expr, axes)
        return Power(self.broadcast(base, axes), self.broadcast(exponent, axes))

    # --- sums

    def sum(self, expr: Add, axes: Axes) -> Node:
        number, rest = self.terms.primitive(expr)
        if number not in (1, -1):
            return self.product(expr, axes)
        keyed = [(key, self.term(term, axes)) for key, term in self.terms.keyed(expr)]
        keyed.sort(key=lambda pair: (pair[0], transposes(pair[1][1])))  # A + Aᵀ rather than Aᵀ + A
        return shared_factor([term for _, term in keyed])

    def term(self, expr: Expr, axes: Axes) -> tuple[int, Node]:
        node = self.broadcast(expr, axes)
        sign, node = (-1, negative(node)) if isinstance(node, Sum) and len(node.terms) == 1 else (1, node)
        if len(axes) == 2 and not node.rank and not plain_number(node):
            node = times([node, Ones(self.size(axes[0])), Transpose(Ones(self.size(axes[1])))])
        return sign, node

    # --- products

    def product(self, expr: Expr, axes: Axes) -> Node:
        sign, top, bottom, factors, divisors = self.terms.split(expr)
        if len(axes) == 2:
            factors, divisors = self.distributed(factors, divisors, axes)
        if len(axes) == 2 and (found := self.diagonal(factors, divisors, axes)) is not None:
            numbers = [Number(top)] if top != 1 else []
            return signed(sign, quotient(numbers, [Number(bottom)] if bottom != 1 else [], found))
        if axes and (unit := self.unit(factors, divisors, axes)) is not None:
            return signed(sign, times([Number(top / bottom), unit]) if top != bottom else unit)
        scalars: list[Node] = [Number(top)] if top != 1 else []
        below: list[Node] = [Number(bottom)] if bottom != 1 else []
        divisors_left = list(divisors)
        groups: dict[Axes, list[Node]] = {}
        for factor in factors:
            used = self.used(factor, axes)
            node, divisors_left = contract.average(self, factor, used, divisors_left)
            groups.setdefault(used, []).append(node if node is not None else self.factor(factor, used))
        inverse: dict[Axes, list[Node]] = {}
        for divisor in divisors_left:
            used = self.used(divisor, axes)
            inverse.setdefault(used, []).append(self.factor(divisor, used))
        scalars += sorted(groups.pop((), []), key=lambda node: (isinstance(node, Sum), str(node)))
        below += inverse.pop((), [])
        core = self.combined(groups, inverse, axes)
        return signed(sign, with_scalars(scalars, below, core))

    def distributed(self, factors: Parts, divisors: Parts, axes: Axes) -> tuple[Parts, Parts]:
        """p_i (δ_ij − p_j) as p_i δ_ij − p_i p_j = diag(p) − p pᵀ."""
        inner = [f for f in factors if isinstance(f, Add) and any(_has_delta(term, axes) for term in f.args)]
        by_rank = [[f for f in parts if len(self.used(f, axes)) == k] for k in (0, 1, 2) for parts in (factors, divisors)]
        scalars, below, vectors, inverse, matrices, others = by_rank
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

    def diagonal(self, factors: Sequence[Expr], divisors: Sequence[Expr], axes: Axes) -> Node | None:
        """δ(row, column) v = diag(v)."""
        row, column = axes
        deltas = [f for f in factors if isinstance(f, Compare) and f.op == "==" and set(f.sides) == {row, column}]
        if not deltas:
            return None
        rest = Mul(*(f for f in factors if f is not deltas[0])) / Mul(*divisors)
        rest = rest.xreplace({column: row})
        node = self.read(rest, self.used(rest, (row,)))
        return diagonal_of(node) if node.rank else times([node, Identity(self.size(row))])

    def unit(self, factors: Sequence[Expr], divisors: Sequence[Expr], axes: Axes) -> Node | None:
        """δ(letter, place) f(letter) = f(place) e_place."""
        for position, factor in enumerate(factors):
            if not (isinstance(factor, Compare) and factor.op == "=="):
                continue
            for letter, place in (factor.sides, factor.sides[::-1]):
                if letter in axes and not self.free(place):
                    others = [*factors[:position], *factors[position + 1 :]]
                    rest = (Mul(*others) / Mul(*divisors)).xreplace({letter: place})
                    return self._with_unit(Unit((place,), (self.size(letter),)), letter, rest, axes)
        return None

    def _with_unit(self, unit: Unit, letter: Index, rest: Expr, axes: Axes) -> Node:
        left = tuple(axis for axis in axes if axis != letter)
        node = self.read(rest, self.used(rest, left))
        if not left:
            return times([node, unit])
        if not node.rank:
            raise NoForm
        return times([unit, transpose(node)]) if axes[0] == letter else times([node, Transpose(unit)])


# ------------------------------------------------------------------------------------------------------------ helpers


def stepped(system: System) -> frozenset[tuple[str, int]]:
    """The axes, as (array, position), along which a recurrence or a shifted reading steps."""
    found = system._cache.get("stepped")
    if found is None:
        found = system._cache["stepped"] = _stepped(system)
    return found  # type: ignore[return-value]


def _stepped(system: System) -> frozenset[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    readings = [(e, access) for e in system.equations for access in (e.target, *accesses(e.body))]
    for _, access in readings:
        for axis, index in enumerate(access.indices):
            if isinstance(index, Add) and letters(index) and not index.has(Access):
                found.add((access.name, axis))
    while True:
        size = len(found)
        for equation in system.equations:
            read = [access for e, access in readings if e is equation]
            along = {index for access in read for axis, index in enumerate(access.indices) if (access.name, axis) in found}
            along &= set(equation.place)
            found |= {(a.name, k) for a in read for k, index in enumerate(a.indices) if index in along}
        if len(found) == size:
            return frozenset(found)


def _has_delta(term: Expr, axes: Axes) -> bool:
    return any(isinstance(f, Compare) and f.op == "==" and set(f.sides) == set(axes) for f in Mul.make_args(term))


def looked_up(expr: Expr, outs: Axes) -> frozenset[Index]:
    """Letters that are compared with a lookup inside a sum: Ē_v = Σ_{t: w_t = v} X̄_t."""
    found: set[Index] = set()
    for condition in expr.atoms(Compare):
        for letter, other in (condition.sides, condition.sides[::-1]):
            if letter in outs and accesses(other) and not letters(other) <= set(outs):
                found.add(letter)
    return frozenset(found)


def signed_number(expr: Expr) -> Node:
    if isinstance(expr, Mul) and expr.args[0].is_Number and expr.args[0] < 0 or expr.is_Number and expr < 0:
        return negative(Number(-expr))
    return Number(expr)


def plain_number(node: Node) -> bool:
    """Whether a number may stand beside a matrix for all of its entries: 1 − A, A − mean(A)."""
    return isinstance(node, (Number, Sum)) or (isinstance(node, Call) and node.function in ("mean", "sum", "max"))


def repeats(node: Node, axis: int) -> bool:
    """Whether a vector is made of row sums (column sums for axis 1), so that a reader sees how it is repeated."""
    return _sides(node) == {("row", "col")[axis]}


def _sides(node: Node) -> set[str]:
    if isinstance(node, Call) and node.function.startswith(("row", "col")):
        return {node.function[:3]}
    if isinstance(node, (Name, Times)) and node.rank:
        if isinstance(node, Times) and sum(factor.rank > 0 for factor in node.factors) == 1:
            return set().union(*map(_sides, node.factors))
        return {"named"}
    return set().union(*map(_sides, node.children)) if node.children else set()


def divided(top: list[Node], bottom: list[Node]) -> Node:
    """u ⊙ v ⊘ w."""
    return Over(hadamard(top), hadamard(bottom)) if bottom else hadamard(top)


def diagonal_of(vector: Node) -> Node:
    return Call("diag", (vector,))


def inverse_diagonal(vector: Node) -> Node:
    """diag(r)⁻² for a division by the vector r²."""
    whole = isinstance(vector, Power) and isinstance(vector.exponent, Number) and vector.exponent.value.is_Integer
    if whole and vector.exponent.value > 0:
        return MatrixPower(diagonal_of(vector.base), -int(vector.exponent.value))
    return MatrixPower(diagonal_of(vector), -1)


@dataclass(frozen=True)
class Side:
    """The factors and divisors of a matrix that depend on its row (axis 0) or on its column (axis 1) only.

    Row sums stay as they are and are repeated, `P ⊙ rowsum(T)`; other vectors become diagonal matrices.
    """

    axis: int
    top: tuple[Node, ...]
    bottom: tuple[Node, ...]

    def vector(self) -> Node:
        return divided(list(self.top), list(self.bottom))

    def repeated(self, nodes: Iterable[Node]) -> list[Node]:
        return [Spread(node, self.axis) for node in nodes if repeats(node, self.axis)]

    def diagonals(self) -> list[Node]:
        above = [node for node in self.top if not repeats(node, self.axis)]
        below = [node for node in self.bottom if not repeats(node, self.axis)]
        found = [diagonal_of(hadamard(above))] if above else []
        return found + ([inverse_diagonal(hadamard(below))] if below else [])


def with_scalars(scalars: list[Node], below: list[Node], core: Node | None) -> Node:
    """Numbers in front; a mean, a sum or a dot product behind a plain vector: x̂ mean(u ⊙ x̂), p (pᵀu)."""
    if core is not None and isinstance(core, Name):
        late = [node for node in scalars if isinstance(node, Times) or getattr(node, "function", "") in ("mean", "sum")]
        if late:
            scalars = [node for node in scalars if node not in late]
            core = Times((core, *late))
    return quotient(scalars, below, core)


def shared_factor(terms: list[tuple[int, Node]]) -> Node:
    """Ax + Aᵀx = (A + Aᵀ)x, for a first or last matrix factor that all terms share."""
    chains = [list(node.factors) if isinstance(node, Times) else [node] for _, node in terms]
    if len(terms) > 1 and all(len(chain) > 1 and chain[0].rank and chain[-1].rank for chain in chains):
        for place, rest in ((-1, slice(None, -1)), (0, slice(1, None))):
            if all(chain[place] == chains[0][place] for chain in chains):
                inner = shared_factor([(sign, times(chain[rest])) for (sign, _), chain in zip(terms, chains, strict=True)])
                return times([inner, chains[0][-1]] if place else [chains[0][0], inner])
    return Sum(tuple(terms)) if len(terms) > 1 else signed(*terms[0])

"""Sums over letters as linear algebra: letters are eliminated one by one.

The factors of a summed product form a graph: a factor of two letters is an edge, one of one letter a vector at that
letter. Eliminating letter k turns two edges into a product, M[a,k] v[k] N[k,b] → M diag(v) N, one edge into a matrix
times a vector or a row sum, and no edge into a dot product. A letter with three edges has no matrix form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sympy import Add, Expr, Integer, Mul

from gradproof.symbolic.equations.calculus import solve_deltas
from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Index,
    Reduce,
    Size,
    accesses,
    delta,
    letters,
    reduce_,
)
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.printing.nodes import (
    ONE,
    Big,
    Call,
    Name,
    Node,
    Norm,
    Number,
    Over,
    Power,
    Sum,
    Times,
    times,
    transpose,
    transposes,
)
from gradproof.symbolic.printing.pieces import NoForm, diagonal_of, with_scalars
from gradproof.symbolic.printing.terms import hadamard, name_key

if TYPE_CHECKING:
    from gradproof.symbolic.printing.reading import MatrixReader

Axes = tuple[Index, ...]
Parts = tuple[Expr, ...]
TWO = Number(Integer(2))


def opened(reader: MatrixReader, expr: Reduce) -> tuple[Expr, list[Axis]]:
    """Body and axes under letters that nothing else uses; the same ones when the same sum is read again."""
    if expr in reader.memo:
        return reader.memo[expr]
    new = [Index(f"m{len(reader.ranges) + k}") for k in range(len(expr.axes))]
    renamed = {letter: own for (letter, _, _), own in zip(expr.axes, new, strict=True)}
    axes = [(renamed[letter], lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in expr.axes]
    reader.ranges.update({letter: (lo, hi) for letter, lo, hi in axes})
    reader.memo[expr] = expr.body.xreplace(renamed), axes
    return reader.memo[expr]


def contracted(reader: MatrixReader, expr: Reduce, axes: Axes) -> Node:
    """The node of a sum whose free letters are `axes`."""
    body, bound = opened(reader, expr)
    factors, left, solved = solve_deltas(Mul.make_args(body), bound, [(a, *reader.ranges[a]) for a in reader.ranges])
    if solved:
        body = reduce_("sum", Mul(*factors), left)
        return reader.broadcast(body, axes)
    if not axes and len(bound) == 1 and (found := _trace(reader, body, bound[0][0])) is not None:
        return found
    return _sum(reader, body, bound, axes)


def _sum(reader: MatrixReader, body: Expr, bound: list[Axis], axes: Axes) -> Node:
    factors = Mul.make_args(body)
    keep = _to_keep(reader, body, factors, bound)
    if keep:
        return _kept(reader, factors, bound, keep, axes)
    wide = [f for f in factors if len(reader.free(f)) > 2]
    if wide:
        if isinstance(wide[0], Add):
            rest = Mul(*(f for f in factors if f is not wide[0]))
            parts = [_split_sum(reader, Mul(rest, term), bound, axes) for term in reader.terms.ordered(wide[0])]
            return Sum(tuple(parts))
        raise NoForm
    return Graph(reader, factors, [letter for letter, _, _ in bound], axes).result()


def _trace(reader: MatrixReader, body: Expr, letter: Index) -> Node | None:
    """Σ_k of a linear expression of diagonal entries, Σ_k (1 − A_kk) = tr(I − A); None for anything else."""
    if letter in reader.must_fix(body):
        return None
    other = Index(letter.name + "r")
    reader.ranges[other] = reader.ranges[letter]
    terms = []
    for term in Add.make_args(body):
        places = [(a, k) for a in accesses(term) for k, index in enumerate(a.indices) if index == letter]
        if not places and letter not in letters(term):
            terms.append(term * delta(letter, other))
            continue
        vectors = [access for access, _ in places if len(reader.free(access)) < 2 and access.indices.count(letter) < 2]
        if len(places) != 2 or vectors or not _linear(term, letter):
            return None
        access, place = places[1]
        moved = Access(access.name, *(other if k == place else index for k, index in enumerate(access.indices)))
        turned = term.xreplace({access: moved})
        terms.append(turned)
    if not any(accesses(term) for term in terms):
        return None
    return trace(reader.oriented(Add(*terms), (letter, other)))


def _linear(term: Expr, letter: Index) -> bool:
    """Whether the entries with a letter stand in a plain product, possibly under a sum."""
    inside = [f for f in Mul.make_args(term) if letter in letters(f)]
    if len(inside) == 1 and isinstance(inside[0], Reduce) and inside[0].op == "sum":
        return _linear(inside[0].body, letter)
    return all(isinstance(factor, Access) for factor in inside)


def _split_sum(reader: MatrixReader, body: Expr, bound: list[Axis], axes: Axes) -> tuple[int, Node]:
    """One term of a sum that is taken apart; a letter that it does not read gives its size."""
    number, rest = reader.terms.primitive(reduce_("sum", body, bound))
    return (1 if number.p > 0 else -1), reader.broadcast(abs(number) * rest, axes)


def _to_keep(reader: MatrixReader, body: Expr, factors: Sequence[Expr], bound: list[Axis]) -> list[Axis]:
    """The axes of a sum that stay as indices: steps of a recurrence, places of a lookup, batches."""
    must = reader.must_fix(body)
    lookups = [access for access in accesses(body) if reader.system.arrays[access.name].below is not None]
    must = must.union(*map(letters, lookups))
    must |= {letter for axis in bound if letters(axis[1]) | letters(axis[2]) for letter in (axis[0], *letters(axis[2]))}
    must |= {letter for f in factors if isinstance(f, Compare) and not accesses(f) for letter in letters(f)}
    kept = [axis for axis in bound if axis[0] in must]
    wide = [f for f in factors if len(reader.free(f)) > 2 and not isinstance(f, Add)]
    if not kept and wide:
        deepest = max((a for a in accesses(wide[0])), key=lambda access: len(access.indices), default=None)
        order = list(deepest.indices) if deepest is not None else []
        inside = sorted((axis for axis in bound if axis[0] in order), key=lambda axis: order.index(axis[0]))
        kept = inside[:1]
    return kept


def _kept(reader: MatrixReader, factors: Sequence[Expr], bound: list[Axis], keep: list[Axis], axes: Axes) -> Node:
    """Σ over kept letters of the matrix form of the rest."""
    used = {letter.name for letter in reader.fixed}
    if any(not accesses(condition) for f in factors for condition in f.atoms(Compare)):
        used |= {"i", "j"}  # these say where a condition holds
    renamed: dict[Index, Index] = {}
    for letter, lo, hi in keep:
        renamed[letter] = reader.letters.pick(hi - lo, used)
        used.add(renamed[letter].name)
    own = tuple((renamed[letter], lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in keep)
    if any(reader.free(bound_) & set(axes) for _, lo, hi in own for bound_ in (lo, hi)):
        raise NoForm  # a range that depends on the row is no matrix product
    reader.ranges.update({letter: (lo, hi) for letter, lo, hi in own})
    inner = reader.fixing(renamed.values())
    pieces = [factor.xreplace(renamed) for factor in factors]
    conditions = tuple((f.op, *f.sides) for f in pieces if isinstance(f, Compare) and not inner.free(f))
    body = Mul(*(f for f in pieces if not (isinstance(f, Compare) and not inner.free(f))))
    rest = [(letter, lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in bound if letter not in renamed]
    node = inner.whole(reduce_("sum", body, rest), axes)
    return Big("sum", own, full_ranges(reader.system, body, own), conditions, node)


def full_ranges(system: System, body: Expr, axes: Sequence[Axis]) -> tuple[bool, ...]:
    """Of each letter, whether it runs over the whole of every axis that it reads."""
    found = []
    for letter, lo, hi in axes:
        ranges = {
            (array.first(k), array.first(k) + array.shape[k])
            for access in accesses(body)
            for array in [system.arrays[access.name]]
            for k, index in enumerate(access.indices)
            if index == letter
        }
        found.append(all(range_ == (lo, hi) for range_ in ranges) if ranges else lo == 0 and isinstance(hi, Size))
    return tuple(found)


def average(reader: MatrixReader, expr: Expr, axes: Axes, divisors: Parts) -> tuple[Node | None, Parts]:
    """(1/d) Σ over an axis of size d as a mean, where the sum is no matrix product; the divisors that are left."""
    if not (isinstance(expr, Reduce) and expr.op == "sum") or len(axes) > 1:
        return None, divisors
    sizes = [hi - lo for _, lo, hi in expr.axes]
    powers = Mul(*divisors).as_powers_dict()
    if len(sizes) > 2 - len(axes) or any(powers.get(size, 0) < sizes.count(size) for size in sizes):
        return None, divisors
    body, bound = opened(reader, expr)
    own = tuple(letter for letter, _, _ in bound)
    factors = Mul.make_args(body)
    everything = {*own, *axes}
    if reader.must_fix(body) & everything or any(reader.free(f) != everything for f in factors):
        return None, divisors
    left = Mul(*divisors) / Mul(*sizes)
    return _reduced("mean", reader, body, own, axes), Mul.make_args(left) if left != 1 else ()


def _reduced(op: str, reader: MatrixReader, body: Expr, own: Axes, axes: Axes) -> Node:
    """rowmean(M), colmean(M) or mean(M): whichever needs fewer transposes."""
    if not axes:
        return Call(op, (min((reader.read(body, turn) for turn in {own, own[::-1]}), key=transposes),))
    across, along = reader.read(body, (*axes, *own)), reader.read(body, (*own, *axes))
    if transposes(along) < transposes(across):
        return Call(f"col{op}", (along,))
    return Call(f"row{op}", (across,))


def extremum(reader: MatrixReader, expr: Reduce, axes: Axes) -> Node:
    """max and ∏ over one axis, or over both of a matrix."""
    body, bound = opened(reader, expr)
    own = tuple(letter for letter, _, _ in bound)
    everything = {*own, *axes}
    if len(everything) > 2 or reader.free(body) != everything or reader.must_fix(body) & everything:
        raise NoForm
    if any(condition.op == "==" and not accesses(condition) for condition in body.atoms(Compare)):
        raise NoForm  # the product of all others reads better by indices
    return _reduced(expr.op, reader, body, own, axes)


Edge = Callable[[Index, Index], Node]


class Graph:
    """Factors of a summed product by their letters; see the module's text."""

    def __init__(self, reader: MatrixReader, factors: Sequence[Expr], bound: list[Index], axes: Axes) -> None:
        self.reader, self.bound, self.axes = reader, bound, axes
        self.scalars: list[Node] = []
        self.vectors: dict[Index, list[Node]] = {}
        self.edges: dict[frozenset[Index], list[Edge]] = {}
        for factor in factors:
            free = tuple(sorted(reader.free(factor), key=str))
            if not free:
                self.scalars.append(reader.read(factor, ()))
            elif len(free) == 1:
                self.vectors.setdefault(free[0], []).append(reader.factor(factor, free))
            else:
                self.edges.setdefault(frozenset(free), []).append(self.edge(factor))

    def edge(self, factor: Expr) -> Edge:
        def build(a: Index, b: Index) -> Node:
            return self.reader.factor(factor, (a, b))

        return build

    def matrix(self, a: Index, b: Index) -> Node:
        """All edges between two letters as one matrix."""
        return fewest_transposes(self.edges[frozenset((a, b))], a, b)

    def neighbours(self, letter: Index) -> list[Index]:
        return [other for pair in self.edges if letter in pair for other in pair if other != letter]

    def result(self) -> Node:
        while self.bound:
            if not self.axes and len(self.bound) == 2 and self.closed():
                break
            letter = min(self.bound, key=self.cost)
            self.bound.remove(letter)
            self.eliminate(letter)
        return self.assembled()

    def cost(self, letter: Index) -> tuple[int, int, str]:
        around = self.neighbours(letter)
        turned = transposes(self.matrix(around[0], letter)) if len(around) == 1 else 0
        return len(around), turned, letter.name

    def eliminate(self, letter: Index) -> None:
        around = self.neighbours(letter)
        vectors = self.vectors.pop(letter, [])
        vector = hadamard(vectors) if vectors else None
        if not around:
            self.scalars.append(total(vectors) if vectors else Number(self.reader.size(letter)))
        elif len(around) == 1:
            (other,) = around
            node = self.row_sum(other, letter) if vector is None else times([self.matrix(other, letter), vector])
            del self.edges[frozenset((other, letter))]
            self.vectors.setdefault(other, []).append(node)
        elif len(around) == 2:
            a, b = around
            left = self.edges.pop(frozenset((a, letter)))
            right = self.edges.pop(frozenset((letter, b)))
            middle = [diagonal_of(vector)] if vector is not None else []
            self.edges.setdefault(frozenset((a, b)), []).append(_chain(left, right, middle, a, letter, b))
        else:
            raise NoForm

    def row_sum(self, other: Index, letter: Index) -> Node:
        across, along = self.matrix(other, letter), self.matrix(letter, other)
        columns = transposes(along) < transposes(across)
        return Call("colsum", (along,)) if columns else Call("rowsum", (across,))

    def closed(self) -> bool:
        """A double sum without vectors: tr(AB), ‖A‖², sum(A ⊙ B)."""
        pair = frozenset(self.bound)
        if set(self.edges) != {pair} or any(letter in self.vectors for letter in pair):
            return False
        a, b = self.bound
        edges = self.edges.pop(pair)
        whole = [edge(a, b) for edge in edges]
        other = [edge(b, a) for edge in edges]
        choices = [_double(whole), _double(other)]
        if len(edges) == 2 and whole[0] != whole[1]:
            choices += [trace(times([x, y])) for x, y in ((whole[0], other[1]), (other[0], whole[1]))]
        self.scalars.append(min(choices, key=transposes))
        self.bound.clear()
        return True

    def assembled(self) -> Node:
        groups: dict[Axes, list[Node]] = {(letter,): nodes for letter, nodes in self.vectors.items()}
        for pair, edges in self.edges.items():
            if pair != set(self.axes):
                raise NoForm
            groups[self.axes] = [edge(*self.axes) for edge in edges]
        core = self.reader.combined(groups, {}, self.axes)
        return with_scalars(self.scalars, [], core)


def _chain(left: list[Edge], right: list[Edge], middle: list[Node], a: Index, k: Index, b: Index) -> Edge:
    def build(x: Index, y: Index) -> Node:
        first, second = (left, right) if x == a else (right, left)
        return times([fewest_transposes(first, x, k), *middle, fewest_transposes(second, k, y)])

    return build


def fewest_transposes(edges: list[Edge], a: Index, b: Index) -> Node:
    """The product of edges entry by entry, transposed as a whole where that is easier to read."""
    found = hadamard([edge(a, b) for edge in edges])
    if len(edges) > 1 and transposes(found) > 3:
        other = transpose(hadamard([edge(b, a) for edge in edges]))
        return min(found, other, key=transposes)
    return found


def trace(node: Node) -> Node:
    """tr(ABC), turned round so that the first name in the alphabet leads."""
    if isinstance(node, Times) and all(factor.rank == 2 for factor in node.factors):
        turns = [node.factors[k:] + node.factors[:k] for k in range(len(node.factors))]
        node = times(min(turns, key=lambda turn: [name_key(factor) for factor in turn]))
    return Call("tr", (node,))


def total(vectors: list[Node]) -> Node:
    """Σ over one letter of a product of vectors: xᵀy, ‖x‖², sum(x)."""
    if len(vectors) == 1:
        return _double(vectors)
    if len(vectors) == 2:
        x, y = vectors
        if x == y:
            return Power(Norm(x), TWO)
        divides = any(isinstance(node, Over) and node.top == ONE for node in vectors)
        if divides or not any(isinstance(node, (Name, Times)) for node in vectors):
            return Call("sum", (hadamard(vectors),))
        choices = [times([transpose(x), y]), times([transpose(y), x])]
        return min(choices, key=lambda node: (transposes(node), str(node)))
    return Call("sum", (hadamard(vectors),))


def _double(factors: list[Node]) -> Node:
    """The sum over all entries of a product."""
    if len(factors) == 1 and isinstance(factors[0], Power) and factors[0].exponent == TWO:
        return Power(Norm(factors[0].base), TWO)
    if len(factors) == 2 and factors[0] == factors[1]:
        return Power(Norm(factors[0]), TWO)
    return Call("sum", (hadamard(factors),))

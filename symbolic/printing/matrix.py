"""Recognise linear algebra: an equation between entries as one between whole arrays.

    sum[b1](X[o0,b1] W[b1,o1]) − Y[o0,o1]          X W − Y
    P[o0] δ(o0,o1) − P[o0] P[o1]                   diag(P) − P Pᵀ
    sum[b1](x[b1]²)                                ‖x‖²

An array of rank 3 or more is a matrix for each value of some *fixed* letters: the time step of a recurrence, the batch,
the head. They stay as indices, `h_t = tanh(W h_{t−1} + z_t)`. Which letters are fixed is tried out: as few as possible,
and of several choices the one that is easiest to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from sympy import Expr

from gradproof.symbolic.equations.expr import Axis, Compare, Index, accesses, letters
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.printing.letters import Letters
from gradproof.symbolic.printing.nodes import Big, Call, Name, Node, Times, Unit, walk
from gradproof.symbolic.printing.pieces import NoForm
from gradproof.symbolic.printing.reading import Axes, MatrixReader
from gradproof.symbolic.printing.terms import Terms


@dataclass(frozen=True)
class Form:
    """An equation in matrix form; both sides keep the same fixed letters."""

    left: Name
    right: Node


def to_matrix(expr: Expr, outs: tuple[Index, ...], system: System, axes: Sequence[Axis] = ()) -> Node | None:
    """The matrix form of an expression whose letters are `outs` (row, column), or None.

    >>> from gradproof.symbolic.equations.expr import Access, Size
    >>> from gradproof.symbolic.equations.system import Array
    >>> i, j, n = Index("i"), Index("j"), Size("n")
    >>> to_matrix(Access("A", j, i), (i, j), System({"A": Array("A", (n, n))}, (), ()))
    Transpose(base=Name(name='A', at=(None, None)))
    """
    reader = MatrixReader(system, Letters(system), {letter: (lo, hi) for letter, lo, hi in axes}, Terms(system))
    try:
        return _whole(reader, expr, outs)
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
            return min(found, key=lambda form: effort(form.left) + effort(form.right))
    return None


def _form(equation: Equation, reader: MatrixReader, outs: Axes) -> Form | None:
    free = tuple(letter for letter in outs if letter not in reader.fixed)
    try:
        right = _whole(reader, equation.body, free)
    except NoForm:
        return None
    if any(isinstance(node, Big) and any(map(_total, walk(node.body))) for node in walk(right)):
        return None  # a sum over three letters reads better by indices
    if outs and not free and not any(isinstance(node, Times) and _chain(node) for node in walk(right)):
        return None  # nothing but single entries: the index form says it as well
    at = tuple(None if index in free else index for index in equation.place)
    return Form(Name(equation.name, at), right)


def _whole(reader: MatrixReader, expr: Expr, free: Axes) -> Node:
    """Read an expression under letters of our own, so that a letter of a sum may be called i once more."""
    own = {letter: Index(f"a{k}") for k, letter in enumerate(free)}
    reader.ranges.update({own[letter]: reader.ranges[letter] for letter in free if letter in reader.ranges})
    return reader.whole(expr.xreplace(own), tuple(own.values()))


def effort(node: Node) -> int:
    """How hard a matrix form is to read: its nodes; sums that stay, unit vectors and slices like A_{·j} count more."""
    found = 0
    for inner in walk(node):
        sliced = isinstance(inner, Name) and any(a is None and b is not None for a, b in pairwise(inner.at))
        found += 10 if isinstance(inner, Big) else 6 if sliced or isinstance(inner, Unit) else 1
    return found


def _total(node: Node) -> bool:
    return isinstance(node, Call) and node.function in ("sum", "rowsum", "colsum")


def _chain(node: Times) -> bool:
    return any(factor.rank for factor in node.factors)


def looked_up(expr: Expr, outs: Axes) -> frozenset[Index]:
    """Letters that are compared inside a sum, with a lookup or a letter: Ē_v = Σ_{t: w_t = v} X̄_t, Σ_{k: k ≤ i}."""
    found: set[Index] = set()
    for condition in expr.atoms(Compare):
        if condition.op != "==" and not accesses(condition) and not letters(condition) <= set(outs):
            found |= letters(condition) & set(outs)
        for letter, other in (condition.sides, condition.sides[::-1]):
            if letter in outs and accesses(other) and not letters(other) <= set(outs):
                found.add(letter)
    return frozenset(found)

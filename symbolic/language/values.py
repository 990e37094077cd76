"""Array values with NumPy's meaning, as index expressions.

A `Value` is a scalar expression together with its axes: which letter runs along each, and how far. Operations on
arrays are operations on the expression once the letters have been lined up, so broadcasting is renaming.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sympy import Expr, Integer, Mul, S

from gradproof.symbolic.equations.expr import Index, compare, count, delta, reduce_, sum_
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.errors import GradproofError


class ShapeMismatch(GradproofError):
    """Shapes that do not fit; the builder adds the place in the user's text."""


@dataclass(frozen=True)
class Value:
    """An array: entry (l1, …, lm) is `expr`, where letter lk runs from 0 to sizes[k] − 1."""

    expr: Expr
    letters: tuple[Index, ...] = ()
    sizes: tuple[Expr, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.letters)

    @property
    def shape(self) -> str:
        return f"({', '.join(map(str, self.sizes))}{',' if self.rank == 1 else ''})"

    @property
    def axes(self) -> list[tuple[Index, Expr, Expr]]:
        return [(letter, S.Zero, size) for letter, size in zip(self.letters, self.sizes, strict=True)]

    def at(self, *indices: Expr) -> Expr:
        """The entry at the given indices."""
        return self.expr.xreplace(dict(zip(self.letters, indices, strict=True)))

    def renamed(self, letters: Sequence[Index]) -> Value:
        return Value(self.at(*letters), tuple(letters), self.sizes)

    def permuted(self, order: Sequence[int]) -> Value:
        return Value(self.expr, tuple(self.letters[k] for k in order), tuple(self.sizes[k] for k in order))

    @property
    def T(self) -> Value:
        return self.permuted(range(self.rank)[::-1])


def broadcast(
    values: Sequence[Value], new: Callable[[], Index]
) -> tuple[list[Expr], tuple[Index, ...], tuple[Expr, ...]]:
    """Line up the axes of several values from the right, as NumPy does: their expressions over common axes.

    Raises ShapeMismatch naming the shapes.
    """
    rank = max(value.rank for value in values)
    letters, sizes = [], []
    for k in range(rank, 0, -1):
        here = [value.sizes[-k] for value in values if value.rank >= k]
        long = [size for size in here if size != 1]
        if any(not same(size, long[0]) for size in long):
            shapes = " and ".join(value.shape for value in values)
            raise ShapeMismatch(
                f"shapes {shapes} do not fit: {long[0]} against {next(s for s in long if not same(s, long[0]))}"
            )
        letters.append(new())
        sizes.append(long[0] if long else S.One)
    exprs = []
    for value in values:
        own = range(rank - value.rank, rank)
        exprs.append(value.at(*(letters[k] if value.sizes[k - rank] != 1 or sizes[k] == 1 else S.Zero for k in own)))
    return exprs, tuple(letters), tuple(sizes)


def elementwise(function: Callable[..., Expr], values: Sequence[Value], new: Callable[[], Index]) -> Value:
    exprs, letters, sizes = broadcast(values, new)
    return Value(function(*exprs), letters, sizes)


def matmul(a: Value, b: Value, new: Callable[[], Index]) -> Value:
    """NumPy's `@`: vectors, matrices, and batches of matrices with broadcast leading axes."""
    if not a.rank or not b.rank:
        raise ShapeMismatch("@ needs arrays with at least one axis; use * with a scalar")
    inner_a, inner_b = a.sizes[-1], b.sizes[-2] if b.rank > 1 else b.sizes[-1]
    if not same(inner_a, inner_b):
        raise ShapeMismatch(f"shapes {a.shape} and {b.shape} do not fit under @: {inner_a} against {inner_b}")
    row, inner, column = new(), new(), new()
    head = Value(a.expr, a.letters[:-2], a.sizes[:-2]) if a.rank > 1 else Value(a.expr)
    tail = Value(b.expr, b.letters[:-2], b.sizes[:-2]) if b.rank > 1 else Value(b.expr)
    (left, right), letters, sizes = broadcast([head, tail], new)
    left = left.xreplace(dict(zip(a.letters[-2:], (row, inner)[-a.rank :], strict=True)))
    right = right.xreplace(dict(zip(b.letters[-2:], (inner, column)[: b.rank], strict=True)))
    rows = [(row, a.sizes[-2])] if a.rank > 1 else []
    columns = [(column, b.sizes[-1])] if b.rank > 1 else []
    body = sum_(left * right, [(inner, S.Zero, inner_a)])
    own = [*rows, *columns]
    return Value(body, (*letters, *(x for x, _ in own)), (*sizes, *(size for _, size in own)))


def positions(axis: int | Sequence[int] | None, rank: int) -> list[int]:
    """The axes that an `axis=` argument names, counted from 0.

    >>> positions(-1, 3), positions(None, 2)
    ([2], [0, 1])
    """
    wanted = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    for k in wanted:
        if not -rank <= k < rank:
            raise ShapeMismatch(f"axis {k} does not exist: the array has {rank} {'axis' if rank == 1 else 'axes'}")
    found = [k % rank for k in wanted]
    if len(set(found)) < len(found):
        raise ShapeMismatch("an axis is named twice")
    return found


def reduced(op: str, value: Value, axis: int | Sequence[int] | None, keepdims: bool, new: Callable[[], Index]) -> Value:
    """Sum, maximum, minimum, product or mean over the named axes."""
    gone = positions(axis, value.rank)
    axes = [value.axes[k] for k in gone]
    if op == "min":
        body = -reduce_("max", -value.expr, axes)
    else:
        body = reduce_("sum" if op == "mean" else op, value.expr, axes)
    if op == "mean":
        body = body / count(axes)
    left = [k for k in range(value.rank) if k not in gone or keepdims]
    letters = tuple(new() if k in gone else value.letters[k] for k in left)
    return Value(body, letters, tuple(S.One if k in gone else value.sizes[k] for k in left))


def diagonal(value: Value, new: Callable[[], Index]) -> Value:
    """`diag`: the diagonal of a matrix, or the matrix with a given diagonal."""
    if value.rank == 1:
        i, j = new(), new()
        return Value(value.at(i) * delta(i, j), (i, j), value.sizes * 2)
    square(value, "diag")
    i = new()
    return Value(value.at(i, i), (i,), value.sizes[:1])


def trace(value: Value, new: Callable[[], Index]) -> Value:
    square(value, "trace")
    i = new()
    return Value(sum_(value.at(i, i), [(i, S.Zero, value.sizes[0])]))


def square(value: Value, name: str) -> None:
    if value.rank != 2 or not same(*value.sizes):
        raise ShapeMismatch(f"{name} needs a square matrix, not shape {value.shape}")


def outer(a: Value, b: Value, new: Callable[[], Index]) -> Value:
    if a.rank != 1 or b.rank != 1:
        raise ShapeMismatch(f"outer needs two vectors, not shapes {a.shape} and {b.shape}")
    i, j = new(), new()
    return Value(a.at(i) * b.at(j), (i, j), (*a.sizes, *b.sizes))


def kron(a: Value, b: Value, new: Callable[[], Index]) -> Value:
    """Kronecker's product of two matrices: K[i·p + k, j·q + l] = A[i, j] B[k, l] for B of shape (p, q)."""
    if a.rank != 2 or b.rank != 2:
        raise ShapeMismatch(f"kron needs two matrices, not shapes {a.shape} and {b.shape}")
    row, column, i, j, k, m = (new() for _ in range(6))
    (p, q) = b.sizes
    body = a.at(i, j) * b.at(k, m) * delta(row, i * p + k) * delta(column, j * q + m)
    axes = [(i, S.Zero, a.sizes[0]), (j, S.Zero, a.sizes[1]), (k, S.Zero, p), (m, S.Zero, q)]
    return Value(sum_(body, axes), (row, column), (a.sizes[0] * p, a.sizes[1] * q))


def einsum(spec: str, operands: Sequence[Value], new: Callable[[], Index]) -> Value:
    """NumPy's einsum with an explicit or implicit output.

    Raises ShapeMismatch where the text and the operands disagree.
    """
    spec = spec.replace(" ", "")
    inputs, arrow, output = spec.partition("->")
    terms = inputs.split(",")
    if not all(c.isalpha() or c in ",->" for c in spec):
        raise ShapeMismatch(f"einsum reads letters, commas and ->, not {spec!r}")
    if len(terms) != len(operands):
        raise ShapeMismatch(f"einsum {spec!r} names {len(terms)} operands, {len(operands)} are given")
    if not arrow:
        joined = "".join(terms)
        output = "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    sizes: dict[str, Expr] = {}
    letters: dict[str, Index] = {}
    product: Expr = S.One
    for term, operand in zip(terms, operands, strict=True):
        if len(term) != operand.rank:
            raise ShapeMismatch(f"einsum reads {term!r} for an operand of shape {operand.shape}")
        for c, size in zip(term, operand.sizes, strict=True):
            letters.setdefault(c, new())
            if not same(sizes.setdefault(c, size), size):
                raise ShapeMismatch(f"einsum: the letter {c} stands for {sizes[c]} and for {size}")
        product *= operand.at(*(letters[c] for c in term))
    if len(set(output)) < len(output) or any(c not in letters for c in output):
        raise ShapeMismatch(f"einsum cannot give {output!r} from {inputs!r}")
    summed = [(letters[c], S.Zero, sizes[c]) for c in letters if c not in output]
    return Value(sum_(product, summed), tuple(letters[c] for c in output), tuple(sizes[c] for c in output))


def padded(value: Value, widths: Sequence[tuple[Expr, Expr]], new: Callable[[], Index]) -> Value:
    """Zeros around an array: `widths` gives how many before and after, axis by axis."""
    letters = tuple(new() for _ in value.letters)
    inside, conditions = [], []
    for letter, size, (before, after) in zip(letters, value.sizes, widths, strict=True):
        inside.append(letter - before)
        if (before, after) != (0, 0):
            conditions += [compare("<=", before, letter), compare("<", letter - before, size)]
    sizes = tuple(size + before + after for size, (before, after) in zip(value.sizes, widths, strict=True))
    return Value(where(Mul(*conditions), value.at(*inside), S.Zero), letters, sizes)


def constant(number: Expr | int, sizes: Sequence[Expr] = (), new: Callable[[], Index] | None = None) -> Value:
    """An array filled with one number."""
    letters = tuple(new() for _ in sizes) if new else ()
    return Value(Integer(number) if isinstance(number, int) else number, letters, tuple(sizes))


def inserted(value: Value, position: int, new: Callable[[], Index]) -> Value:
    """The value with an axis of size 1 at a position."""
    letters = (*value.letters[:position], new(), *value.letters[position:])
    return Value(value.expr, letters, (*value.sizes[:position], S.One, *value.sizes[position:]))

"""inv, det, logdet and solve of matrices, with batch axes in front; what they mean is in `implicit.py`."""

from __future__ import annotations

from sympy import Expr

from gradproof.symbolic.equations.expr import Access, Implicit, Index, delta
from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.equations.roles import Kind, Role, suggested
from gradproof.symbolic.language.builder import Builder
from gradproof.symbolic.language.values import ShapeMismatch, Value, matmul

NAMES = {"inv": suggested(Kind.INVERSE, "{}"), "det": "d", "logdet": "l"}
KINDS = {"inv": Kind.INVERSE, "det": Kind.DETERMINANT, "logdet": Kind.DETERMINANT}


def inverse(b: Builder, a: Value) -> Value:
    """inv(A): B with A B = I."""
    return _of_matrix(b, "inv", a)


def determinant(b: Builder, a: Value) -> Value:
    """det(A)."""
    return _of_matrix(b, "det", a)


def log_determinant(b: Builder, a: Value) -> Value:
    """logdet(A) = log |det A|, NumPy's slogdet without the sign."""
    return _of_matrix(b, "logdet", a)


def solve(b: Builder, a: Value, right: Value) -> Value:
    """solve(A, Y) = inv(A) @ Y; as in NumPy, Y is one vector, or (a batch of) matrices."""
    _check_square(a, "solve")
    if right.rank and not same(a.sizes[-1], right.sizes[-2] if right.rank > 1 else right.sizes[0]):
        raise ShapeMismatch(
            f"the shapes {a.shape} and {right.shape} do not fit: {a.sizes[-1]} rows are needed on the right"
        )
    return matmul(inverse(b, a), right, b.new)


def matrix_power(b: Builder, a: Value, exponent: int) -> Value:
    """A @ A @ … @ A; of the inverse for a negative exponent, the identity for 0."""
    _check_square(a, "matrix_power")
    if not isinstance(exponent, int) or abs(exponent) > 12:
        raise ShapeMismatch("the exponent of matrix_power is a whole number from -12 to 12")
    if exponent == 0:
        return Value(delta(*a.letters[-2:]), a.letters, a.sizes)
    base = inverse(b, a) if exponent < 0 else a
    found = base
    for _ in range(abs(exponent) - 1):
        found = matmul(found, base, b.new)
    return found


def _check_square(a: Value, name: str) -> None:
    if a.rank < 2 or not same(a.sizes[-1], a.sizes[-2]):
        raise ShapeMismatch(f"{name} needs a square matrix (or a batch of them), not shape {a.shape}")


def _of_matrix(b: Builder, kind: str, a: Value) -> Value:
    """The value at the matrix `a`; the array that holds it is defined where it is first needed."""
    _check_square(a, kind)
    preferred, b.preferred = b.preferred, None
    access, transposed = _entry(b, a)
    size = a.sizes[-1]
    _define(b, "inv", access.name, size)  # for its own sake, or for the derivative of a determinant
    name = _define(b, kind, access.name, size)
    if kind != "det":
        determinant = Implicit("det", access.name, size, *access.indices[:-2])
        b.demands.add(Value(determinant, a.letters[:-2], a.sizes[:-2]), "!=")
    b.preferred = preferred
    batch, (i, j) = access.indices[:-2], a.letters[-2:]
    own: tuple[Index, ...] = ((j, i) if transposed else (i, j)) if kind == "inv" else ()
    kept = slice(None) if kind == "inv" else slice(None, -2)
    return Value(Access(name, *batch, *own), a.letters[kept], a.sizes[kept])


def _entry(b: Builder, a: Value) -> tuple[Access, bool]:
    """The matrix as an entry of a named array, and whether it is that array's transpose.

    Its first indices must be distinct letters: of A[0] alone the inverse is asked for, not of all A[t].
    """
    entry, (i, j) = a.expr, a.letters[-2:]
    if isinstance(entry, Access):
        batch, last = entry.indices[:-2], entry.indices[-2:]
        free = all(isinstance(index, Index) for index in batch) and len({*batch, i, j}) == len(entry.indices)
        if free and last in ((i, j), (j, i)):
            return entry, last == (j, i)
    matrix = b.define(b.name_for("M"), a)
    return matrix.renamed(a.letters).expr, False


def _define(b: Builder, kind: str, matrix: str, size: Expr) -> str:
    key = kind, matrix
    if key not in b.memo:
        array = b.arrays[matrix]
        new = tuple(b.new() for _ in array.shape[: None if kind == "inv" else -2])
        value = Value(Implicit(kind, matrix, size, *new), new, array.shape[: len(new)])
        name = b.name_for(NAMES[kind].format(matrix))
        b.memo[key] = b.define(name, value, Role(KINDS[kind], matrix, array.role))
    return b.memo[key].expr.name

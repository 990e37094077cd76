"""Inverse and determinant: arrays that are defined by an equation they satisfy, not by a formula.

The body of such an array's equation is a node `Implicit(kind, matrix, size, *indices)` that reads the whole matrix A:

    inv      B[…, i, j]   where   Σ_k A[…, i, k] B[…, k, j] − δ(i, j) = 0
    det      d[…]         where   d = Σ_k A[…, r, k] C[…, r, k] for every row r; the cofactors C[…, r, ·] do not read it
    logdet   l[…]         log|d|

Its derivative comes from that equation (`held`). How the node is computed, on the last two axes of A:

    inv      np.linalg.inv(A)              torch.linalg.inv(A)
    det      np.linalg.det(A)              torch.linalg.det(A)
    logdet   np.linalg.slogdet(A)[1]       torch.linalg.slogdet(A)[1]
    Σ_k B[i, k] Y[k, j], B an inverse that only few such products read:   np.linalg.solve(A, Y);  Σ_k Y[i, k] B[k, j]
    likewise with Aᵀ. `solve(A, Y)` is inv(A) @ Y here.

The derivative of det is d A⁻ᵀ, for invertible A. Every equation of a `det` or `logdet` has one of the `inv` of the same
matrix beside it, for its derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer, S

from gradproof.symbolic.equations.expr import Access, Axis, Implicit, Index, delta, fresh, letters, sum_
from gradproof.symbolic.equations.roles import Kind
from gradproof.symbolic.equations.system import Equation, System, out_letters
from gradproof.symbolic.errors import GradproofError

MATRIX = frozenset({"symmetric", "psd", "diagonal", "orthogonal"})  # properties that an inverse shares
UNKNOWN = "?"  # the array that an equation defines, while that equation is differentiated with it held fixed


def held(node: Implicit, scope: frozenset[Index]) -> tuple[Expr, Expr, Axis]:
    """What is differentiated by the matrix, with the unknown `?` = inv(A) held fixed; a weight; the letter summed over.

    The change of the value is  Σ_r weight · d(expression), where d changes A only.

    inv     R = A B − I stays 0:  A dB + dA B = 0, and A⁻¹ is B itself:
            dB[i,j] = −Σ_r B[i,r] d(Σ_k A[r,k] B[k,j] − δ(r,j))
    det     is linear in each row, with the cofactors C[r,k] = d B[k,r] as slopes:
            dd = Σ_r d · d(Σ_k A[r,k] B[k,r])
    logdet  dl = dd / d

    >>> from gradproof.symbolic.equations.expr import Size
    >>> held(Implicit("logdet", "A", Size("n")), frozenset())
    (sum[b1=0:n](?[b1, f0]*A[f0, b1]), 1, (f0, 0, n))
    """
    row, k = fresh(scope | letters(node), 2)
    batch = node.indices[:-2] if node.kind == "inv" else node.indices
    if node.kind == "inv":
        i, j = node.indices[-2:]
        weight = -Access(UNKNOWN, *batch, i, row)
    else:
        j = row
        weight = node if node.kind == "det" else S.One
    product = sum_(Access(node.matrix, *batch, row, k) * Access(UNKNOWN, *batch, k, j), [(k, 0, node.size)])
    residual = product - delta(row, j) if node.kind == "inv" else product
    return residual, weight, (row, S.Zero, node.size)


def named(system: System, expr: Expr, matrix: str = "") -> Expr:
    """An expression with its inverses and determinants as entries of the arrays that hold them.

    `?` is the inverse of `matrix`.

    Raises GradproofError where no equation of the system defines one.
    """
    nodes = {node: _holder(system, node.kind, node.matrix) for node in expr.atoms(Implicit)}
    unknown = [access for access in expr.atoms(Access) if access.name == UNKNOWN]
    if unknown:
        inverse = _holder(system, "inv", matrix)
        nodes.update({access: inverse for access in unknown})
    return expr.xreplace({node: Access(name, *node.indices) for node, name in nodes.items()})


def _holder(system: System, kind: str, matrix: str) -> str:
    for equation in system.equations:
        body = equation.body
        if isinstance(body, Implicit) and (body.kind, body.matrix) == (kind, matrix):
            return equation.name
    raise GradproofError(f"{kind}({matrix}) is needed and no equation of the system defines it")


def inverses(system: System) -> dict[str, str]:
    """The name of the inverse of each matrix that has one in the system."""
    bodies = {equation.name: equation.body for equation in system.equations}
    return {b.matrix: name for name, b in bodies.items() if isinstance(b, Implicit) and b.kind == "inv"}


def eliminate(rows: Sequence[Sequence[Any]], field: Any) -> tuple[list[list[Any]] | None, Any]:
    """Inverse (None where there is none) and determinant by Gauss's elimination, in the arithmetic of `field`.

    >>> from gradproof.symbolic.equations.evaluate import PRIME, Modular
    >>> inverse, determinant = eliminate([[0, 2], [1, 3]], Modular(0))
    >>> (inverse[1][1], inverse[0][1], determinant - PRIME)
    (0, 1, -2)
    """
    size = len(rows)
    zero, one, minus = (field.number(Integer(number)) for number in (0, 1, -1))
    left = [list(row) for row in rows]
    right = [[one if r == c else zero for c in range(size)] for r in range(size)]
    determinant, least = one, field.tiny * max(abs(value) for row in rows for value in row)
    for c in range(size):
        pivot = max(range(c, size), key=lambda r: abs(left[r][c]))
        if abs(left[pivot][c]) <= least:
            return None, zero
        if pivot != c:
            left[c], left[pivot] = left[pivot], left[c]
            right[c], right[pivot] = right[pivot], right[c]
            determinant = field.multiply(minus, determinant)
        determinant = field.multiply(determinant, left[c][c])
        scale = field.power(left[c][c], S.NegativeOne)
        left[c] = [field.multiply(scale, value) for value in left[c]]
        right[c] = [field.multiply(scale, value) for value in right[c]]
        for r in range(size):
            if r != c and left[r][c] != 0:
                factor = field.multiply(minus, left[r][c])
                left[r] = [field.add([a, field.multiply(factor, b)]) for a, b in zip(left[r], left[c], strict=True)]
                right[r] = [field.add([a, field.multiply(factor, b)]) for a, b in zip(right[r], right[c], strict=True)]
    return right, determinant


def complete(system: System) -> System:
    """The system with the inverse beside every determinant; a result that does not read it may have lost it.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("det(A)", {"A": "n,n"})
    >>> [e.name for e in complete(system.needed()).equations]
    ['d', 'A_inv']
    """
    known = inverses(system)
    arrays, equations = [], []
    for body in [e.body for e in system.equations if isinstance(e.body, Implicit)]:
        if body.matrix in known:
            continue
        array = system.derived(Kind.INVERSE, body.matrix, taken=known.values())
        known[body.matrix] = array.name
        outs = out_letters(array.rank)
        arrays.append(replace(array, properties=system.arrays[body.matrix].properties & MATRIX))
        equations.append(Equation(array.name, outs, array.axes(outs), Implicit("inv", body.matrix, body.size, *outs)))
    return system.extended(arrays, equations, system.outputs) if equations else system

"""Pieces of which matrix forms are put together: diagonal matrices, broadcasts, numbers in front, common factors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sympy import Expr, Mul

from gradproof.symbolic.printing.nodes import (
    ALONG,
    Call,
    MatrixPower,
    Name,
    Node,
    Number,
    Over,
    Power,
    Spread,
    Sum,
    Times,
    negative,
    signed,
    times,
)
from gradproof.symbolic.printing.terms import hadamard, quotient


class NoForm(Exception):
    """An expression has no matrix form."""


def signed_number(expr: Expr) -> Node:
    """A number or symbol, with its minus sign outside."""
    number = expr.args[0] if isinstance(expr, Mul) else expr
    if number.is_Number and number < 0:
        return negative(Number(-expr))
    return Number(expr)


def plain_number(node: Node) -> bool:
    """Whether a number may stand beside a matrix for all of its entries: 1 − A, A − mean(A)."""
    return isinstance(node, (Number, Sum)) or (isinstance(node, Call) and node.function in ("mean", "sum", "max"))


def filled(number: Node, ones: Node) -> Node:
    """An array of one number: 2 𝟏, 𝟏/n."""
    if isinstance(number, Over):
        return Over(filled(number.top, ones), number.bottom)
    return times([number, ones])


def repeats(node: Node, axis: int) -> bool:
    """Whether a vector is made of row sums (column sums for axis 1), so that a reader sees how it is repeated."""
    return _sides(node) == {("row", "col")[axis]}


def _sides(node: Node) -> set[str]:
    if isinstance(node, Call) and node.function in ALONG:
        return {ALONG[node.function]}
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
    if isinstance(vector, Power) and isinstance(vector.exponent, Number) and vector.exponent.value.is_Integer:
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
    if isinstance(core, Name) and core.rank == 1:
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
                pairs = zip(terms, chains, strict=True)
                inner = shared_factor([(sign, times(chain[rest])) for (sign, _), chain in pairs])
                return times([inner, chains[0][-1]] if place else [chains[0][0], inner])
    return Sum(tuple(terms)) if len(terms) > 1 else signed(*terms[0])

"""The tree that both printers walk: one entry of an array, or linear algebra on whole arrays.

Both forms of an equation, by indices and by matrices, are trees of these nodes; `layout.py` writes them. A vector is a
column; a `Spread` vector is repeated along the other axis of a matrix, as NumPy's broadcasting does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sympy import Expr, Integer

from gradproof.symbolic.equations.expr import Axis

# Functions of each row or each column
ALONG = {f"{axis}{op}": axis for axis in ("row", "col") for op in ("sum", "mean", "max", "prod")}
# Functions of a whole array, and the rank of their value; every other function works entry by entry.
WHOLE = {
    **dict.fromkeys(("sum", "mean", "max", "prod", "tr", "det", "logdet"), 0),
    **dict.fromkeys(ALONG, 1),
    "onehot": 2,
}


@dataclass(frozen=True)
class Node:
    """Part of a printed formula."""

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes among the fields."""
        fields = (value if isinstance(value, tuple) else (value,) for value in vars(self).values())
        return tuple(part for parts in fields for part in parts if isinstance(part, Node))

    @property
    def rank(self) -> int:
        """0 for a number, 1 for a vector, 2 for a matrix (a row Xᵀ of a vector x included)."""
        return max((child.rank for child in self.children), default=0)


@dataclass(frozen=True)
class Number(Node):
    """A number without arrays in it: 2, √d, π, a size, an index letter."""

    value: Expr


@dataclass(frozen=True)
class Name(Node):
    """An array, or part of it: `at` holds a fixed index, or None for a free axis."""

    name: str
    at: tuple[Expr | None, ...] = ()
    symmetric: bool = field(default=False, repr=False)  # its transpose is itself
    inverse: bool = field(default=False, repr=False)  # it is printed as the inverse of a matrix

    @property
    def rank(self) -> int:
        return self.at.count(None)


@dataclass(frozen=True)
class Sum(Node):
    """A sum of signed terms."""

    terms: tuple[tuple[int, Node], ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(node for _, node in self.terms)


@dataclass(frozen=True)
class Several(Node):
    """A node with several equal children."""

    factors: tuple[Node, ...]


@dataclass(frozen=True)
class Times(Several):
    """A product written side by side: scalars first or last, matrices multiplied in order."""

    @property
    def rank(self) -> int:
        chain = [factor for factor in self.factors if factor.rank]
        if not chain:
            return 0
        row, column = is_row(chain[0]), chain[-1].rank == 1
        return 0 if row and column else 1 if column else 2


@dataclass(frozen=True)
class Hadamard(Several):
    """A product entry by entry."""


@dataclass(frozen=True)
class Over(Node):
    """A quotient entry by entry; by a number where `bottom` is one."""

    top: Node
    bottom: Node


@dataclass(frozen=True)
class Power(Node):
    """A power entry by entry."""

    base: Node
    exponent: Node


@dataclass(frozen=True)
class MatrixPower(Node):
    """A matrix multiplied with itself; the inverse of a diagonal matrix for −1."""

    base: Node
    exponent: int


@dataclass(frozen=True)
class Transpose(Node):
    """The transpose; of a vector, a row."""

    base: Node

    @property
    def rank(self) -> int:
        return 2


@dataclass(frozen=True)
class Call(Node):
    """A function: of a whole array where its name is in `WHOLE` or `diag`, else entry by entry.

    A softmax is taken `over` an index or an axis, where that is not the last one.
    """

    function: str
    args: tuple[Node, ...]
    over: Expr | int | None = None

    @property
    def rank(self) -> int:
        if self.function == "diag":
            return 1 if self.args[0].rank == 2 else 2
        return WHOLE.get(self.function, max((arg.rank for arg in self.args), default=0))


@dataclass(frozen=True)
class Norm(Node):
    """The Euclidean norm of a vector, the Frobenius norm of a matrix."""

    base: Node

    @property
    def rank(self) -> int:
        return 0


@dataclass(frozen=True)
class Ones(Node):
    """The vector of ones."""

    size: Expr = field(default=Integer(1))

    @property
    def rank(self) -> int:
        return 1


@dataclass(frozen=True)
class Identity(Node):
    """The identity matrix."""

    size: Expr = field(default=Integer(1))

    @property
    def rank(self) -> int:
        return 2


@dataclass(frozen=True)
class Unit(Node):
    """The vector eₖ or the matrix Eₖₗ with a single 1."""

    place: tuple[Expr, ...]
    shape: tuple[Expr, ...]

    @property
    def rank(self) -> int:
        return len(self.place)


@dataclass(frozen=True)
class Spread(Node):
    """A vector that holds for every column (`axis` 0, it runs along the rows) or for every row (`axis` 1)."""

    base: Node
    axis: int

    @property
    def rank(self) -> int:
        return 2


@dataclass(frozen=True)
class Relation(Node):
    """1 where a relation holds, entry by entry, and 0 elsewhere."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Pattern(Node):
    """1 where a relation of row i and column j holds; `shape` has one size for a vector, two for a matrix."""

    op: str
    left: Expr
    right: Expr
    shape: tuple[Expr, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Delta(Node):
    """Kronecker's δ of two letters."""

    left: Expr
    right: Expr


@dataclass(frozen=True)
class Big(Node):
    """Σ, max or ∏ over letters; `full` says of each letter whether it runs over the whole axis that it reads."""

    op: str
    axes: tuple[Axis, ...]
    full: tuple[bool, ...]
    conditions: tuple[tuple[str, Expr, Expr], ...]
    body: Node


ONE = Number(Integer(1))


def is_row(node: Node) -> bool:
    """Whether a node is the transpose of a vector."""
    return isinstance(node, Transpose) and node.base.rank == 1


def negative(node: Node) -> Node:
    """−node, without a second sign: −(a − b) is b − a."""
    if isinstance(node, Sum) and len(node.terms) == 1:
        sign, inner = node.terms[0]
        return inner if sign < 0 else Sum(((-sign, inner),))
    if isinstance(node, Sum) and any(sign < 0 for sign, _ in node.terms):
        turned = [(-sign, term) for sign, term in node.terms]
        return Sum(tuple(sorted(turned, key=lambda term: term[0] < 0)))
    return Sum(((-1, node),))


def signed(sign: int, node: Node) -> Node:
    return node if sign > 0 else negative(node)


def times(factors: Iterable[Node]) -> Node:
    """A product with nested products opened, ones left out, signs in front and equal neighbours as a power.

    >>> A = Name("A", (None, None))
    >>> times([A, A, Transpose(A)])
    Times(factors=(MatrixPower(base=Name(name='A', at=(None, None)), exponent=2), ...
    """
    factors = list(factors)
    # a dot product stays together beside anything but numbers: (xᵀy) A
    ranked = len(factors) > 1 and sum(any(node.rank for node in walk(factor)) for factor in factors) > 1
    flat: list[Node] = []
    front: list[Node] = []  # leading numbers of nested products
    sign = 1
    for factor in factors:
        if isinstance(factor, Sum) and len(factor.terms) == 1 and factor.terms[0][0] < 0:
            sign, factor = -sign, factor.terms[0][1]
        parts = list(factor.factors) if isinstance(factor, Times) and (factor.rank or not ranked) else [factor]
        while len(parts) > 1 and not parts[0].rank and any(node.rank for node in flat):
            front.append(parts.pop(0))
        for inner in parts:
            joined = _joined(flat[-1], inner) if flat else None
            if joined is not None:
                flat[-1] = joined
            elif inner != ONE:
                flat.append(inner)
    flat = front + flat
    others = [node for node in flat if not isinstance(node, Identity)]
    if any(node.rank for node in others):
        flat = others
    if not flat:
        return signed(sign, ONE)
    return signed(sign, flat[0] if len(flat) == 1 else Times(tuple(flat)))


def _joined(left: Node, right: Node) -> Node | None:
    """A A = A²; Aᵀ Aᵀ = (A²)ᵀ; e_k e_lᵀ = E_kl."""
    if isinstance(left, Unit) and is_row(right) and isinstance(right.children[0], Unit):
        inner = right.children[0]
        return Unit(left.place + inner.place, left.shape + inner.shape)
    if isinstance(left, Transpose) and isinstance(right, Transpose) and left.base.rank == right.base.rank == 2:
        joined = _joined(right.base, left.base)
        return None if joined is None else Transpose(joined)
    (base, count), (other, more) = (
        (node.base, node.exponent) if isinstance(node, MatrixPower) else (node, 1) for node in (left, right)
    )
    if base == other and base.rank == 2 and not isinstance(base, Transpose) and min(count, more) > 0:
        return MatrixPower(base, count + more)
    return None


def transpose(node: Node) -> Node:
    """The transpose of a matrix, pushed to the factors of a product.

    >>> transpose(Times((Name("A", (None, None)), Name("x", (None,)))))
    Times(factors=(Transpose(base=Name(name='x', at=(None,))), Transpose(base=Name(name='A', at=(None, None)))))
    """
    if isinstance(node, Transpose):
        return node.base
    diagonal = isinstance(node, Call) and node.function == "diag" and node.rank == 2
    if not node.rank or isinstance(node, Identity) or diagonal:
        return node
    if isinstance(node, Name) and node.symmetric:
        return node
    if isinstance(node, MatrixPower) and transpose(node.base) == node.base:
        return node
    if isinstance(node, Unit) and node.rank == 2:
        return Unit(node.place[::-1], node.shape[::-1])
    if isinstance(node, Spread):
        return Spread(node.base, 1 - node.axis)
    if isinstance(node, Sum) and len(node.terms) == 1:
        return negative(transpose(node.terms[0][1]))
    if isinstance(node, Times):
        scalars = [factor for factor in node.factors if not factor.rank]
        chain = [transpose(factor) for factor in reversed(node.factors) if factor.rank]
        return times([*scalars, *chain])
    return Transpose(node)


def transposes(node: Node) -> int:
    """How hard the transposes in a formula are to read: those of names 2, of vectors and inverses 1, of brackets 3."""
    own = 0
    if isinstance(node, Transpose):
        inverse = isinstance(node.base, Name) and node.base.inverse
        own = 1 if node.base.rank == 1 or inverse else 2 if isinstance(node.base, Name) else 3
    return own + sum(transposes(child) for child in node.children)


def walk(node: Node) -> Iterable[Node]:
    """The node and everything in it."""
    yield node
    for child in node.children:
        yield from walk(child)

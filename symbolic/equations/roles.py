"""What an array is: the adjoint of X, the inverse of A, a helper … Rules and printers read this, never a name.

    role of the array                          printed     suggested name
    adjoint of X                               X̄           X_bar
    tangent of X (along V)                     Ẋ           X_dot
    gradient by X, differentiated once more    ∇_X         X_grad
    inverse of A                               A⁻¹         A_inv

All others print under their own name, and so does an array that was called something else: u, not a bar over x̂.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum


class Kind(Enum):
    """The kinds of arrays."""

    PLAIN = "plain"  # an input or an intermediate: the equations of its system say which
    HELPER = "helper"  # an intermediate that a printed result avoids
    ADJOINT = "adjoint"
    TANGENT = "tangent"
    GRADIENT = "gradient"  # an adjoint that is differentiated again, or laid out otherwise
    COTANGENT = "cotangent"  # given for an output
    JACOBIAN = "jacobian"  # of an output by a variable
    PROPAGATION = "propagation"  # of a state of a recurrence by a variable
    HESSIAN = "hessian"
    INVERSE = "inverse"
    DETERMINANT = "determinant"  # or its logarithm


SUGGESTED = {
    Kind.ADJOINT: "{}_bar",
    Kind.TANGENT: "{}_dot",
    Kind.GRADIENT: "{}_grad",
    Kind.INVERSE: "{}_inv",
    Kind.JACOBIAN: "J_{}",
    Kind.PROPAGATION: "J_{}",
}


@dataclass(frozen=True)
class Role:
    """`kind` of array, `of` which other array, what that one is (`source`), and `along` or by which array.

    `named` says that the array was given a name of its own, under which it prints; `turned`, that the axes of the
    variable come first in a Jacobian, or in reverse in a gradient. A plain array or a helper `of`
    another name is a copy under a name of its own, and prints as that one.

    >>> x = Role(Kind.ADJOINT, "x")
    >>> Role(Kind.TANGENT, "x_bar", x, along="v").renamed({"x": "y"}).source.of
    'y'
    """

    kind: Kind = Kind.PLAIN
    of: str = ""
    source: Role | None = None
    along: str = ""
    named: bool = False
    turned: bool = False

    @property
    def marked(self) -> bool:
        """Whether an array is printed as its source with a mark: X̄, Ẋ, ∇_X, A⁻¹."""
        return self.kind in (Kind.ADJOINT, Kind.TANGENT, Kind.GRADIENT, Kind.INVERSE) and not self.named

    @property
    def differential(self) -> bool:
        """Whether an array is an adjoint or a tangent."""
        return self.kind in (Kind.ADJOINT, Kind.TANGENT)

    def called(self) -> Role:
        """The role of an array that was given a name."""
        return self if self.kind in (Kind.PLAIN, Kind.HELPER) else replace(self, named=True)

    @property
    def copied(self) -> bool:
        """Whether an array is printed as another one."""
        return self.kind in (Kind.PLAIN, Kind.HELPER) and bool(self.of)

    def renamed(self, new: Mapping[str, str]) -> Role:
        """The role after arrays were renamed."""
        source = self.source and self.source.renamed(new)
        return replace(self, of=new.get(self.of, self.of), source=source, along=new.get(self.along, self.along))


def copied(name: str, role: Role, new: Mapping[str, str]) -> Role:
    """The role of a copy of an array under a new name, as it prints under its old one.

    >>> copied("A_inv", Role(Kind.INVERSE, "A", PLAIN), {"A": "A1", "A_inv": "A_inv1"}).source.of
    'A'
    """
    if role.kind in (Kind.PLAIN, Kind.HELPER):
        return replace(role, of=role.of or name)
    source = copied(role.of, role.source or PLAIN, new) if role.of in new else role.source
    return replace(role.renamed(new), source=source)


PLAIN = Role()
HELPER = Role(Kind.HELPER)


def suggested(kind: Kind, of: str) -> str:
    """A name for an array of a role; where it is taken, the array has another one (`System.free_name`).

    >>> suggested(Kind.ADJOINT, "W")
    'W_bar'
    """
    return SUGGESTED[kind].format(of)

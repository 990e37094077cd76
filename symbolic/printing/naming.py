"""Names as a mathematician writes them: `W_Q` is W with index Q, `xhat` is x with a hat, the adjoint of W has a bar.

A name is read as letters, number, marks and indices: `W1` → (W, [1]); `alpha_t` → (α, [t]). What an array is says its
role, not its name: `A_inv` is A with an index.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sympy import Expr

from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.equations.roles import PLAIN, Kind, Role

# mark: (combining character for text, LaTeX accent)
MARKS = {
    "bar": ("\u0304", r"\bar"),
    "dot": ("\u0307", r"\dot"),
    "hat": ("\u0302", r"\hat"),
    "tilde": ("\u0303", r"\tilde"),
}
WRITTEN = ("hat", "tilde")  # marks that a name may end with; those of roles are none of a name's
ROLES = {Kind.ADJOINT: "bar", Kind.TANGENT: "dot"}
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eps": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "iota": "ι", "kappa": "κ", "lam": "λ", "lambda_": "λ", "lamda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ",
    "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
LATEX_GREEK = {
    **dict.fromkeys(("eps", "epsilon"), r"\varepsilon"),
    **dict.fromkeys(("lam", "lambda_", "lamda"), r"\lambda"),
}


class Spelling(NamedTuple):
    """Letters, marks from the inside out, indices, and of how many inverses."""

    core: str
    marks: tuple[str, ...] = ()
    indices: tuple[str | Spelling, ...] = ()
    inverses: int = 0


def parsed(name: str) -> Spelling:
    """The parts of a name as it was typed.

    >>> parsed("W_Q"), parsed("W1").indices, parsed("xhat").marks, parsed("x_bar").marks
    (Spelling(core='W', marks=(), indices=('Q',), inverses=0), ('1',), ('hat',), ())
    """
    first, *rest = name.split("_") if not name.startswith("_") and name not in GREEK else [name]
    core, marks, indices = first, [], []
    if mark := re.fullmatch(r"(.+?)(hat|tilde|bar)(\d*)", first):
        letters = mark.group(1)
        if len(letters) == 1 or letters in GREEK:
            core, marks = letters + mark.group(3), [mark.group(2)]
    if number := re.fullmatch(r"([A-Za-z]+)(\d+)", core):
        core, indices = number.group(1), [number.group(2)]
    for part in rest:
        if part in WRITTEN:
            marks.append(part)
        elif part:
            indices.append(part)
    return Spelling(core, tuple(marks), tuple(indices))


def spelling(name: str, role: Role = PLAIN) -> Spelling:
    """The parts of the name of an array: the marks of its role above the name of the array that it belongs to.

    >>> spelling("W_Q_bar", Role(Kind.ADJOINT, "W_Q"))
    Spelling(core='W', marks=('bar',), indices=('Q',), inverses=0)
    """
    if not role.marked:
        return parsed(role.of if role.copied else name)
    inner = spelling(role.of, role.source or PLAIN)
    if role.kind is Kind.GRADIENT:
        return Spelling("∇", (), (inner,))
    if role.kind is Kind.INVERSE:
        return inner._replace(inverses=inner.inverses + 1)
    return inner._replace(marks=(*inner.marks, ROLES[role.kind]))


def trimmed(at: Sequence[Expr | None]) -> list[Expr | None]:
    """The indices that are shown: free axes at the end are left out, in front only where a letter tells them apart."""
    shown = list(at)
    while shown and shown[-1] is None:
        shown.pop()
    fixed = [index for index in shown if index is not None]
    if len(at) > 2 and all(isinstance(index, Index) for index in fixed):
        return list(fixed)
    return shown

"""Names as a mathematician writes them: `W_Q_bar` is W with index Q under a bar, `xhat` is x with a hat.

A name is read as letters, number, marks and indices: `W1_bar` → (W, bar, [1]); `alpha_t` → (α, [t]).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sympy import Expr

from gradproof.symbolic.equations.expr import Index

# mark: (combining character for text, LaTeX accent)
MARKS = {
    "bar": ("\u0304", r"\bar"),
    "dot": ("\u0307", r"\dot"),
    "hat": ("\u0302", r"\hat"),
    "tilde": ("\u0303", r"\tilde"),
}
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


class Parsed(NamedTuple):
    """Letters, marks from the inside out, indices, and whether an inverse is named."""

    core: str
    marks: tuple[str, ...]
    indices: tuple[str, ...]
    inverse: bool


def parsed(name: str) -> Parsed:
    """The parts of a name.

    >>> parsed("W_Q_bar")
    Parsed(core='W', marks=('bar',), indices=('Q',), inverse=False)
    >>> parsed("xhat_bar").marks, parsed("W1").indices, parsed("x_grad").core
    (('hat', 'bar'), ('1',), '∇')
    """
    if grad := re.fullmatch(r"(.+)_grad((?:_(?:bar|dot))*)", name):
        return Parsed("∇", tuple(grad[2].split("_")[1:]), (grad[1],), False)
    first, *rest = name.split("_") if not name.startswith("_") and name not in GREEK else [name]
    core, marks, indices, inverse = first, [], [], False
    if mark := re.fullmatch(r"(.+?)(hat|tilde|bar)(\d*)", first):
        letters = mark.group(1)
        if len(letters) == 1 or letters in GREEK:
            core, marks = letters + mark.group(3), [mark.group(2)]
    if number := re.fullmatch(r"([A-Za-z]+)(\d+)", core):
        core, indices = number.group(1), [number.group(2)]
    for part in rest:
        if part in MARKS:
            marks.append(part)
        elif part == "inv":
            inverse = True
        elif part:
            indices.append(part)
    return Parsed(core, tuple(marks), tuple(indices), inverse)


def trimmed(at: Sequence[Expr | None]) -> list[Expr | None]:
    """The indices that are shown: free axes at the end are left out, in front only where a letter tells them apart."""
    shown = list(at)
    while shown and shown[-1] is None:
        shown.pop()
    fixed = [index for index in shown if index is not None]
    if len(at) > 2 and all(isinstance(index, Index) for index in fixed):
        return list(fixed)
    return shown

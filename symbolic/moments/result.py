"""What a derivation of moments consists of: its steps, its result, and how both are printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sympy import Expr, Pow, sympify

from gradproof.symbolic.equations.expr import Access, Axis, Index, letters, names
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.printing import latex, text

SIGNS = {"expectation": "E", "variance": "Var", "covariance": "Cov"}
LATEX_SIGNS = {"expectation": r"\mathbb{E}", "variance": r"\operatorname{Var}", "covariance": r"\operatorname{Cov}"}
WIDTH = 50  # of an expression that is printed inside E[…]; a longer one is called by its name


@dataclass(frozen=True)
class Writer:
    """Prints index expressions with one choice of letters for the free ones."""

    system: System
    outs: tuple[Index, ...]
    names: Mapping[Any, str]
    random: frozenset[str]

    def text(self, expr: Expr, form: str = "index") -> str:
        shown = text.expression_text(expr, self.outs, self.system, form, dict(self.names))
        return shown if self.random.isdisjoint(names(expr)) else f"E[{shown}]"

    def latex(self, expr: Expr, form: str = "index") -> str:
        shown = latex.expression_latex(expr, self.outs, self.system, form, dict(self.names))
        return shown if self.random.isdisjoint(names(expr)) else rf"\mathbb{{E}}\left[{shown}\right]"

    def bare_latex(self, expr: Expr) -> str:
        return latex.expression_latex(expr, self.outs, self.system, "index", dict(self.names))

    def bare(self, expr: Expr, form: str = "index") -> str:
        return text.expression_text(expr, self.outs, self.system, form, dict(self.names))


@dataclass(frozen=True)
class MomentStep:
    """One step: the rule, why it holds, what was and what is written, and how the step was checked.

    `left` is what is being found (`E[L²]`); an expression that still holds random arrays stands for its expectation.
    """

    rule: str
    reason: str
    left: str
    before: Expr
    after: Expr
    checked: str
    writer: Writer = field(repr=False, compare=False)
    averaged: bool = True  # whether an average is being found, or an expression by itself

    def line(self, side: Expr) -> str:
        """`E[L²] = E[Σ_ij …]`; an expression by itself, when that is on the left, is not averaged."""
        return f"{self.left} = {self.writer.text(side) if self.averaged else self.writer.bare(side)}"

    @property
    def latex(self) -> str:
        """What is written after the step, without `left`."""
        return self.writer.latex(self.after) if self.averaged else self.writer.bare_latex(self.after)

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}\n    {self.line(self.after)}\n    checked: {self.checked}"

    def as_dict(self) -> dict[str, str]:
        """The step for JSON."""
        before, after = self.line(self.before), self.line(self.after)
        return {"rule": self.rule, "reason": self.reason, "before": before, "after": after, "checked": self.checked}


@dataclass(frozen=True)
class MomentResult:
    """What was found: `value` holds for every value of the letters `outs`, which run over `axes`."""

    kind: str
    bodies: tuple[Expr, ...]  # the expression, or the two expressions of a covariance, in terms of the inputs
    value: Expr
    outs: tuple[Index, ...]
    axes: tuple[Axis, ...]
    system: System = field(repr=False)
    steps: tuple[MomentStep, ...] = field(repr=False)
    assumptions: tuple[str, ...]
    checked: str
    names: tuple[str, ...]
    writer: Writer = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        return self.writer.text(self.value)

    @property
    def latex(self) -> str:
        return self.writer.latex(self.value)

    @property
    def label(self) -> str:
        """What the value is of: `Var(qᵀk)`, `E[m_t]`."""
        inside = ", ".join(self.writer.bare(body, form) for body, form in zip(self.bodies, self.forms, strict=True))
        inside = inside if len(inside) <= WIDTH else ", ".join(self.names)
        return f"E[{inside}]" if self.kind == "expectation" else f"{SIGNS[self.kind]}({inside})"

    @property
    def forms(self) -> list[str]:
        """How each expression is printed: in matrix form if it is a scalar and no exponent has a letter in it."""
        powers = [any(letters(power.exp) for power in body.atoms(Pow)) for body in self.bodies]
        return ["index" if self.outs or power else "matrix" for power in powers]

    def at(self, **values: object) -> Expr:
        """The value with numbers for sizes, symbols and scalars.

        >>> from gradproof.symbolic.moments import variance
        >>> variance("q @ k", {"q": "d:iid=0,s", "k": "d:iid=0,1"}).at(d=64, s=2)
        128
        """
        known = {Access(name): sympify(value) for name, value in values.items()}
        known |= {s: sympify(values[s.name]) for s in self.value.free_symbols if s.name in values}
        return self.value.xreplace(known)

    def __str__(self) -> str:
        return f"{self.label} = {self.text}"

    def _repr_latex_(self) -> str:
        chosen = dict(self.writer.names)
        parts = zip(self.bodies, self.forms, strict=True)
        inside = ", ".join(latex.expression_latex(body, self.outs, self.system, form, chosen) for body, form in parts)
        left, right = (r"\left[", r"\right]") if self.kind == "expectation" else (r"\left(", r"\right)")
        return f"${LATEX_SIGNS[self.kind]}{left}{inside}{right} = {self.latex}$"

r"""Formulas as LaTeX that KaTeX takes too: `\bar{W} = 2 X^{\top} \left(X W - Y\right)`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Expr

from gradproof.symbolic.equations.functions import spellings
from gradproof.symbolic.equations.roles import PLAIN, Role
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.printing.forms import Sides, as_equation, sides, with_target
from gradproof.symbolic.printing.layout import Printer
from gradproof.symbolic.printing.letters import Letters, chosen
from gradproof.symbolic.printing.naming import GREEK, LATEX_GREEK, MARKS, ROLES, Spelling, spelling
from gradproof.symbolic.printing.nodes import Node, Number, Sum, Times
from gradproof.symbolic.printing.numerals import ATOM, HADAMARD, POWER, PRODUCT, Piece
from gradproof.symbolic.printing.text import TextPrinter

RELATIONS = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}
BIG = {"sum": r"\sum", "prod": r"\prod", "max": r"\max"}
FUNCTIONS = {**spellings("latex"), "max": r"\max", "maximum": r"\max"}
WIDE = {"bar": r"\overline", "hat": r"\widehat", "tilde": r"\widetilde", "dot": r"\dot"}
LINE = 76  # characters of the formula, as text, after which a line breaks at the next + or −


class LatexPrinter(Printer):
    """Spells formulas in LaTeX."""

    minus, odot, oslash, both = "-", r" \odot ", r" \oslash ", r" \wedge "
    ones, identity, unit_vector, unit_matrix, delta = r"\mathbf{1}", "I", "e", "E", r"\delta"
    transpose_sign, transpose_inverse, infinity, pi, euler = r"\top", r"-\top", r"\infty", r"\pi", r"\exp(1)"
    frobenius, dagger, free_axis, axis = "F", r"\odot ", r"\cdot", r"\mathrm{axis}="

    def spelled(self, name: str, role: Role = PLAIN) -> tuple[str, bool]:
        given = self.given(name, role)
        if given is None:
            return self.written(spelling(name, role))
        text, marks = given
        for mark in marks:
            text = rf"{MARKS[mark][1]}{{{text}}}"
        return text, not re.search(r"[_^]", text)

    def written(self, parts: Spelling) -> tuple[str, bool]:
        core, marks, indices, inverses = parts
        text = letter(core)
        for mark in marks:
            text = rf"{(MARKS[mark][1] if len(GREEK.get(core, core)) == 1 else WIDE[mark])}{{{text}}}"
        if indices:
            below = (letter(part) if isinstance(part, str) else self.written(part)[0] for part in indices)
            text = self.lowered(text, ",".join(below))
        for count in range(inverses):
            text = self.raised(self.bracket(text) if count else text, "-1")
        return text, not indices and not inverses

    def given(self, name: str, role: Role) -> tuple[str, tuple[str, ...]] | None:
        """The LaTeX declared for an array, and the marks that the roles of those derived from it add."""
        array = self.system.arrays.get(name)
        if array is not None and array.latex:
            return array.latex, ()
        if role.copied:
            return self.given(role.of, PLAIN)
        if not role.marked or role.kind not in ROLES:
            return None
        inner = self.given(role.of, role.source or PLAIN)
        return inner and (inner[0], (*inner[1], ROLES[role.kind]))

    def bold(self, sign: str) -> str:
        return rf"\boldsymbol{{{sign}}}" if sign.startswith("\\") else rf"\mathbf{{{sign}}}"

    def raised(self, base: str, exponent: str) -> str:
        return f"{base}^{{{exponent}}}"

    def lowered(self, base: str, index: str) -> str:
        return f"{base}_{{{index}}}"

    def root(self, inside: str, simple: bool) -> str:
        return rf"\sqrt{{{inside}}}"

    def fraction(self, top: Piece, bottom: Piece) -> Piece:
        return rf"\frac{{{top[0]}}}{{{bottom[0]}}}", POWER

    def fraction_of(self, top: Node, bottom: Node) -> Piece:
        """A half of a matrix expression in brackets is written with 1/2 in front."""
        inner = top.factors if isinstance(top, Times) else (top,)
        if top.rank and any(isinstance(factor, Sum) for factor in inner):
            one = self.fraction(("1", ATOM), self.piece(bottom))[0]
            return f"{one} {self.tight(top, PRODUCT)}", PRODUCT
        return super().fraction_of(top, bottom)

    def bracket(self, inside: str, square: bool = False) -> str:
        left, right = "[]" if square else "()"
        if re.search(r"\\(frac|sum|prod|left|max|overline|wide)", inside) or square:
            return rf"\left{left}{inside}\right{right}"
        return f"{left}{inside}{right}"

    def function(self, name: str) -> str:
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        base = name.removesuffix("_prime")
        return (rf"\{base}" if base in GREEK else rf"\operatorname{{{base}}}") + "'" * (base != name)

    def beside(self, parts: Sequence[str], nodes: Sequence[Node]) -> str:
        text = parts[0]
        for part, left, right in zip(parts[1:], nodes, nodes[1:], strict=False):
            both = isinstance(left, Number) and isinstance(right, Number) and part[0].isdigit()
            text += r" \cdot " if both else r" \, " if r"\mathrm" in text[-30:] or part.startswith(r"\mathrm") else " "
            text += part
        return text

    def big(self, op: str, below: str, above: str) -> str:
        return f"{BIG[op]}_{{{below}}}" + (f"^{{{above}}}" if above else "")

    def relation(self, op: str, left: str, right: str) -> str:
        return f"{left} {RELATIONS[op]} {right}"

    def iverson(self, condition: str) -> str:
        return rf"\mathbf{{1}}_{{{condition}}}"

    def norm(self, inside: str) -> str:
        return rf"\lVert {inside} \rVert"

    def bars(self, inside: str) -> str:
        return rf"\lvert {inside} \rvert"

    def squeezed(self, text: str) -> str:
        return re.sub(r"(?<=\S) ([-+]) (?=\S)", r"\1", text)


def printed(name: str, system: System) -> str:
    """The name of an array of a system in LaTeX."""
    return LatexPrinter(system).name(name)


def letter(name: str) -> str:
    r"""One letter or word of a name.

    >>> letter("W"), letter("alpha"), letter("out"), letter("12")
    ('W', '\\alpha', '\\mathrm{out}', '12')
    """
    if name in GREEK:
        return LATEX_GREEK.get(name, rf"\{name}")
    if name == "∇":
        return r"\nabla"
    return name if len(name) == 1 or name.isdigit() else rf"\mathrm{{{name}}}"


def equation_latex(
    equation: Equation, system: System, form: str = "matrix", letters: Letters | Mapping[Any, str] | None = None
) -> str:
    r"""An equation as LaTeX.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("X @ W - Y", {"X": "n,d", "W": "d,k", "Y": "n,k"})
    >>> print(equation_latex(system.equations[0], system))
    F = X W - Y
    """
    return _line(sides(equation, system, form, chosen(system, letters)), system, " = ", wrap=False)


def system_latex(
    equations: Sequence[Equation],
    system: System,
    form: str = "matrix",
    letters: Letters | Mapping[Any, str] | None = None,
) -> str:
    r"""Equations as one `aligned` block, one below the other; long ones break at + and −.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("R = X @ W - Y; sum(R**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"})
    >>> print(system_latex(system.equations, system))
    \begin{aligned}
    R &= X W - Y \\
    L &= \lVert R \rVert_{F}^{2}
    \end{aligned}
    """
    letters = chosen(system, letters)
    lines = [_line(sides(equation, system, form, letters), system, " &= ", wrap=True) for equation in equations]
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def expression_latex(
    expr: Expr,
    outs: Sequence[Expr],
    system: System,
    form: str = "matrix",
    letters: Letters | Mapping[Any, str] | None = None,
) -> str:
    """An expression whose letters are `outs` (their ranges are those of the axes that they read)."""
    equation = as_equation(expr, outs, system)
    extended = with_target(system, equation)
    return LatexPrinter(system).write(sides(equation, extended, form, chosen(system, letters)).right)


def markdown_safe(latex: str) -> str:
    r"""The same formula in signs that Markdown leaves alone inside $…$: it eats `_` beside brackets, `\\` and `\,`.

    >>> markdown_safe(r"\bar{S}_{ij} \, x \\")
    '\\bar{S} _ {ij} \\thinspace x \\cr'
    """
    return re.sub(r" *_ *", " _ ", latex.replace(r"\\", r"\cr").replace(r"\,", r"\thinspace"))


def _line(found: Sides, system: System, equals: str, wrap: bool) -> str:
    printer = LatexPrinter(system)
    right = _wrapped(found.right, printer, system) if wrap else printer.write(found.right)
    text = f"{printer.write(found.left)}{equals}{right}"
    for index, lo, hi in found.ranges:
        text += rf", \quad {index} = {printer.expr(lo)[0]}, \ldots, {printer.expr(hi - 1)[0]}"
    return text


def _wrapped(node: Node, printer: LatexPrinter, system: System) -> str:
    if not isinstance(node, Sum):
        return printer.write(node)
    measure = TextPrinter(system)
    text, width = "", 0
    for place, (sign, term) in enumerate(node.terms):
        mark = printer.minus if sign < 0 else "+" if place else ""
        size = len(measure.tight(term, HADAMARD)) + 3
        if place and width + size > LINE:
            text, width = text + " \\\\\n&\\quad", 8
        text += f" {mark} {printer.tight(term, HADAMARD)}" if place else mark + printer.tight(term, HADAMARD)
        width += size
    return text

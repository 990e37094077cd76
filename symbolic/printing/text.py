"""Formulas as Unicode text: `W̄ = 2 Xᵀ(XW − Y)`, `S̄_ij = A_ij (Ā_ij − Σ_k A_ik Ā_ik)`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sympy import Expr

from gradproof.symbolic.equations.functions import spellings
from gradproof.symbolic.equations.roles import PLAIN, Role
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.printing.forms import as_equation, sides, with_target
from gradproof.symbolic.printing.layout import Printer
from gradproof.symbolic.printing.letters import Letters, chosen
from gradproof.symbolic.printing.naming import GREEK, MARKS, Spelling, spelling, trimmed
from gradproof.symbolic.printing.nodes import Big, Call, Name, Node, Pattern, Relation
from gradproof.symbolic.printing.numerals import POWER, PRODUCT, Piece

SUPERSCRIPTS = str.maketrans("0123456789−+()⊙", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾⊙")
BOLD = str.maketrans("IeEδπ", "𝐈𝐞𝐄𝛅𝛑")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
FUNCTIONS = {**spellings("text"), "maximum": "max"}
RELATIONS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "=", "!=": "≠"}
BIG = {"sum": "Σ", "prod": "∏", "max": "max"}
# One letter with its marks and its raised or lowered signs, and no further letter, so that no neighbour runs into it.
MARKED = f"(?:[^\\W\\d_]|𝟏)[{''.join(mark for mark, _ in MARKS.values())}\u0305]*"
LETTER = re.compile(MARKED + r"[₀-₉]*[⁰¹²³⁴-⁹⁻ᵀ⊙]*(?![^\W\d_]|[₀-₉])")


class TextPrinter(Printer):
    """Spells formulas in Unicode."""

    ones, identity, unit_vector, unit_matrix, delta = "𝟏", "I", "e", "E", "δ"
    transpose_sign, transpose_inverse, infinity, frobenius, dagger = "ᵀ", "⁻ᵀ", "∞", "F", "⊙"
    pi, euler = "π", "exp(1)"  # e is a name like any other
    axis = "axis="

    def spelled(self, name: str, role: Role = PLAIN) -> tuple[str, bool]:
        return plain_name(name, role)

    def name(self, name: str, at: Sequence[Expr | None] = ()) -> str:
        text, simple = self.spelled(name, self.role(name))
        shown = trimmed(at)
        if not shown:
            return text
        inner = self.indices(shown)
        base = text if simple else f"({text})"
        return f"{base}_{inner}" if len(inner) == 1 or inner.isalnum() else f"{base}_{{{inner}}}"

    def bold(self, sign: str) -> str:
        return sign.translate(BOLD)

    def raised(self, base: str, exponent: str) -> str:
        if re.fullmatch("[0-9−+⊙]+|ᵀ|⁻ᵀ", exponent):
            return base + exponent.translate(SUPERSCRIPTS)
        return f"{base}^{exponent}" if re.fullmatch(r"\w", exponent) else f"{base}^({exponent})"

    def lowered(self, base: str, index: str) -> str:
        if index.isdigit():
            return base + index.translate(SUBSCRIPTS)
        return f"{base}_{index}" if index.isalnum() else f"{base}_{{{index}}}"

    def root(self, inside: str, simple: bool) -> str:
        return f"√{inside}" if simple else f"√({inside})"

    def fraction(self, top: Piece, bottom: Piece) -> Piece:
        above = top[0] if top[1] >= PRODUCT else f"({top[0]})"
        below = bottom[0] if bottom[1] >= POWER else f"({bottom[0]})"
        return f"{above}/{below}", PRODUCT

    def bracket(self, inside: str, square: bool = False) -> str:
        return f"[{inside}]" if square else f"({inside})"

    def function(self, name: str) -> str:
        return FUNCTIONS.get(name, name)

    def beside(self, parts: Sequence[str], nodes: Sequence[Node]) -> str:
        text = parts[0]
        for place, part in enumerate(parts[1:]):
            big = isinstance(nodes[place], Big)
            digits = bool(re.search("[0-9]$", text) and re.match("[0-9]", part)) and not big
            text += part if touching(parts[place], part, nodes[place]) else ("·" if digits else " ") + part
        return text

    def big(self, op: str, below: str, above: str) -> str:
        text = f"{BIG[op]}_{below}" if below.isalnum() else f"{BIG[op]}_{{{below}}}"
        return text + (f"^{above}" if above.isalnum() else f"^{{{above}}}" if above else "")

    def relation(self, op: str, left: str, right: str) -> str:
        return f"{left} {RELATIONS[op]} {right}"

    def iverson(self, condition: str) -> str:
        return f"1[{condition}]"

    def norm(self, inside: str) -> str:
        return f"‖{inside}‖"

    def squeezed(self, text: str) -> str:
        return re.sub(r"(?<=\S) ([−+]) (?=\S)", r"\1", text)


def touching(before: str, after: str, left: Node) -> bool:
    """Whether two factors may stand without a space: `XW`, `Xᵀ(XW − Y)`, `a_j(δ_jk − a_k)`; not `diag(p) A`."""
    if after.startswith("["):
        return before.endswith(")")
    if not left.rank:
        return isinstance(left, Name) and bool(left.at) and after.startswith("(")
    if isinstance(left, (Big, Call)) or not (LETTER.match(after) or after.startswith("(")):
        return False
    return before.endswith(("ᵀ", ")")) or LETTER.fullmatch(before) is not None


@lru_cache(maxsize=10_000)
def plain_name(name: str, role: Role = PLAIN) -> tuple[str, bool]:
    """A name in Unicode, and whether an index can follow it directly. A mark above a mark is a word: x̂̄ is no letter.

    >>> plain_name("W_Q")[0], plain_name("xhat")[0], plain_name("alpha")[0], plain_name("W1")[0]
    ('W_Q', 'x̂', 'α', 'W₁')
    >>> from gradproof.symbolic.equations.roles import Kind
    >>> plain_name("xhat_bar", Role(Kind.ADJOINT, "xhat"))
    ('bar(x̂)', True)
    """
    return _spelled(spelling(name, role))


def _spelled(parts: Spelling) -> tuple[str, bool]:
    core, marks, indices, inverses = parts
    text = GREEK.get(core, core)
    single = len(text) == 1
    for mark in marks[:1]:
        sign = MARKS[mark][0] if single or mark != "bar" else "\u0305"
        text = text + sign if single else "".join(letter + sign for letter in text)
    text = unicodedata.normalize("NFC", text)
    below = ",".join(GREEK.get(part, part) if isinstance(part, str) else _spelled(part)[0] for part in indices)
    if below:
        text += below.translate(SUBSCRIPTS) if below.isdigit() else f"_{below}" if below.isalnum() else f"_{{{below}}}"
    for count in range(inverses):
        text = f"({text})⁻¹" if count else f"{text}⁻¹"
    for mark in marks[1:]:
        text = f"{mark}({text})"
    return text, len(marks) > 1 or (not indices and not inverses)


def printed(name: str, system: System) -> str:
    """The name of an array, a size or a symbol of a system.

    >>> from gradproof.symbolic.equations.roles import Kind
    >>> x = Array("x")
    >>> printed("x_bar", System({"x_bar": x.like("x_bar", Role(Kind.ADJOINT, "x"))}, (), ()))
    'x̄'
    """
    array = system.arrays.get(name)
    return plain_name(name, array.role if array is not None else PLAIN)[0]


def alike(names: Iterable[str], system: System | None = None) -> tuple[str, str, str] | None:
    """Two of the names that print as one, and what they print as.

    >>> alike(["x", "xhat", "x_hat"]), alike(["x", "x1"])
    (('xhat', 'x_hat', 'x̂'), None)
    """
    found: dict[str, str] = {}
    for name in names:
        shown = plain_name(name)[0] if system is None else printed(name, system)
        if found.setdefault(shown, name) != name:
            return found[shown], name, shown
    return None


def shape_text(array: Array, system: System) -> str:
    """The shape of an array: `d×k`, `n`, `scalar`.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> shape_text(Array("W", (Size("d"), Size("k"))), System({}, (), ()))
    'd×k'
    """
    printer = TextPrinter(system)
    pieces = [printer.expr(size) for size in array.shape]
    return "×".join(text if level >= POWER else f"({text})" for text, level in pieces) or "scalar"


def equation_text(
    equation: Equation, system: System, form: str = "matrix", letters: Letters | Mapping[Any, str] | None = None
) -> str:
    """An equation as Unicode text.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("X @ W - Y", {"X": "n,d", "W": "d,k", "Y": "n,k"})
    >>> print(equation_text(system.equations[0], system))
    F = XW − Y
    >>> print(equation_text(system.equations[0], system, "index"))
    F_il = Σ_j X_ij W_jl − Y_il
    """
    found = sides(equation, system, form, chosen(system, letters))
    printer = TextPrinter(system)
    text = f"{printer.write(found.left)} = {printer.write(found.right)}"
    for letter, lo, hi in found.ranges:
        text += f",  {letter} = {printer.expr(lo)[0]} … {printer.expr(hi - 1)[0]}"
    return text


def condition_text(expr: Expr, outs: Sequence[Expr], system: System) -> str:
    """A condition as it is said, `x_i > 0`, not as the number 1[x_i > 0]."""
    equation = as_equation(expr, outs, system)
    extended = with_target(system, equation)
    printer, node = TextPrinter(system), sides(equation, extended).right
    return printer.condition(node) if isinstance(node, Relation | Pattern) else printer.write(node)


def expression_text(
    expr: Expr,
    outs: Sequence[Expr],
    system: System,
    form: str = "matrix",
    letters: Letters | Mapping[Any, str] | None = None,
) -> str:
    """An expression whose letters are `outs` (their ranges are those of the axes that they read)."""
    equation = as_equation(expr, outs, system)
    extended = with_target(system, equation)
    return TextPrinter(system).write(sides(equation, extended, form, chosen(system, letters)).right)

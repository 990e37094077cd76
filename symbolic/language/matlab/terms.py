"""Parts of an expression in MATLAB's spelling: tokens, kinds and sizes of values, and what the operators mean."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeVar

from sympy import Expr, Integer

from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.errors import ExpressionError, ShapeError
from gradproof.symbolic.language.syntax import MAX_DEPTH

TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.(?![*/^'\\])\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol>\.\*|\./|\.\^|\.\\|\.'|[-+*/\\^'(),;=:])|(?P<line>[\n\r]+)|(?P<space>\s+)"
)
COMPARISON = "comparisons are not part of this spelling; there are relu, abs, sign and max(x, 0)"
HINTS = {
    "[": "matrices are declared beside the expression, not written in brackets",
    "{": "cells are not part of an expression",
    "%": "comments are not part of an expression",
    '"': "texts are not part of an expression",
    "@": "a matrix product is written * here",
    **dict.fromkeys("<>~&|", COMPARISON),
}


class Token(NamedTuple):
    """A piece of the text: its kind (number, name, symbol, line), its spelling and its place."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The tokens of a text; a character without meaning raises an ExpressionError.

    >>> [token.text for token in tokens("2.*x'")]
    ['2', '.*', 'x', "'"]
    """
    found, place = [], 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            character = text[place]
            hint = HINTS.get(character, "it has no meaning here")
            raise ExpressionError(f"{character} is not part of an expression: {hint}", text, place, place + 1)
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup or "", match.group(), place, match.end()))
        place = match.end()
    return found


@dataclass(eq=False)
class Dim:
    """A size: known, or to be found from the places where the value stands."""

    value: Expr | Dim | None = None

    def end(self) -> Dim:
        return self.value.end() if isinstance(self.value, Dim) else self

    def __str__(self) -> str:
        value = self.end().value
        return "?" if value is None else str(value)


ONE = Dim(Integer(1))


@dataclass
class Term:
    """A translated part: its tree, its kind (scalar, column, row, matrix), its sizes (none, one, or two)."""

    node: ast.expr
    kind: str
    sizes: tuple[Dim, ...] = ()
    depth: int = 1

    @property
    def shape(self) -> str:
        """The shape as MATLAB has it."""
        both = {"column": (*self.sizes, 1), "row": (1, *self.sizes), "scalar": (1, 1)}.get(self.kind, self.sizes)
        return "×".join(map(str, both))

    @property
    def start(self) -> int:
        return self.node.col_offset

    @property
    def end(self) -> int:
        return self.node.end_col_offset or 0


AnyNode = TypeVar("AnyNode", bound=ast.expr)


def placed(node: AnyNode, start: int, end: int) -> AnyNode:
    """The node with its place in the text."""
    node.lineno = node.end_lineno = 1
    node.col_offset, node.end_col_offset = start, end
    return node


class Meaning:
    """What the operators mean: from translated parts to translated parts, with their kinds and sizes."""

    text: str
    sizes: Mapping[str, Expr]  # the names of sizes
    open: list[tuple[ast.Call, tuple[Dim, ...]]]  # ones(…), eye(…) whose sizes are found later

    def fail(self, message: str, where: Token | Term, kind: type[ExpressionError] = ExpressionError) -> NoReturn:
        raise kind(message, self.text, where.start, where.end)

    def bounded(self, term: Term) -> Term:
        if term.depth > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} operations in a chain; name an intermediate: S = …", term)
        return term

    def negative(self, term: Term, sign: Token) -> Term:
        node = placed(ast.UnaryOp(ast.USub(), term.node), sign.start, term.end)
        return self.bounded(Term(node, term.kind, term.sizes, term.depth + 1))

    def joined(self, operator: ast.operator, left: Term, right: Term, kind: str, sizes: tuple[Dim, ...]) -> Term:
        start, end = left.start, right.end
        node = placed(ast.BinOp(left.node, operator, right.node), start, end)
        return self.bounded(Term(node, kind, sizes, max(left.depth, right.depth) + 1))

    def called(
        self, function: str, arguments: Sequence[Term], kind: str, sizes: tuple[Dim, ...], start: int, end: int
    ) -> Term:
        name = placed(ast.Name(function, ast.Load()), start, start + len(function))
        node = placed(ast.Call(name, [a.node for a in arguments], []), start, end)
        return self.bounded(Term(node, kind, sizes, max((a.depth for a in arguments), default=0) + 1))

    def filled(self, function: str, kind: str, sizes: tuple[Dim, ...], token: Token, end: int) -> Term:
        """ones(…), zeros(…), eye(…) whose sizes are written in when they are known."""
        term = self.called(function, (), kind, sizes, token.start, end)
        assert isinstance(term.node, ast.Call)
        self.open.append((term.node, sizes[:1] if function == "eye" and sizes[0] is sizes[-1] else sizes))
        return term

    def equal(self, a: Dim, b: Dim, where: Token | Term, message: str) -> None:
        """The two sizes are one; an unknown one takes the value of the other."""
        a, b = a.end(), b.end()
        if a is b:
            return
        if a.value is None:
            a.value = b
        elif b.value is None:
            b.value = a
        elif not (isinstance(a.value, Expr) and isinstance(b.value, Expr) and same(a.value, b.value)):
            self.fail(f"{message}: {a} against {b}", where, ShapeError)

    def square(self, term: Term, where: Token, message: str) -> None:
        """The matrix is square."""
        rows, columns = term.sizes
        self.equal(rows, columns, where, message)

    def elementwise(self, operator: ast.operator, left: Term, right: Term, token: Token) -> Term:
        """Entry by entry; a scalar goes with everything, a column or row with a matrix as in MATLAB."""
        if left.kind == "scalar" or right.kind == "scalar":
            other = right if left.kind == "scalar" else left
            return self.joined(operator, left, right, other.kind, other.sizes)
        message = f"{left.shape} and {right.shape} do not fit under {token.text}"
        if left.kind == right.kind:
            for a, b in zip(left.sizes, right.sizes, strict=True):
                self.equal(a, b, token, message)
            return self.joined(operator, left, right, left.kind, left.sizes)
        if {left.kind, right.kind} == {"column", "row"}:
            self.fail(f"{message}: transpose one of them", token, ShapeError)
        matrix, vector = (left, right) if left.kind == "matrix" else (right, left)
        self.equal(matrix.sizes[vector.kind == "row"], vector.sizes[0], token, message)
        sizes = matrix.sizes
        left, right = (self.widened(side) if side.kind == "column" else side for side in (left, right))
        return self.joined(operator, left, right, "matrix", sizes)

    def widened(self, term: Term) -> Term:
        """A vector as a matrix of one column or one row: x[:, None], x[None, :]."""
        start, end = term.start, term.end
        new = placed(ast.Constant(None), start, end)
        items: list[ast.expr] = [placed(ast.Slice(), start, end), new]
        slice_ = ast.Tuple(items if term.kind == "column" else items[::-1], ast.Load())
        node = placed(ast.Subscript(term.node, placed(slice_, start, end), ast.Load()), start, end)
        return Term(node, "matrix", (), term.depth + 1)

    def matrix_product(self, left: Term, right: Term, token: Token) -> Term:
        if left.kind == "scalar" or right.kind == "scalar":
            return self.elementwise(ast.Mult(), left, right, token)
        kinds = left.kind, right.kind
        if kinds == ("column", "row"):
            start, end = left.start, right.end
            return self.called("outer", [left, right], "matrix", (*left.sizes, *right.sizes), start, end)
        message = f"{left.shape} and {right.shape} do not fit under *"
        inner_left = ONE if left.kind == "column" else left.sizes[-1]
        inner_right = ONE if right.kind == "row" else right.sizes[0]
        self.equal(inner_left, inner_right, token, f"{message}; entry by entry is .*, an inner product x'*y")
        rows = left.sizes[:-1] if left.kind != "column" else left.sizes
        columns = right.sizes[1:] if right.kind != "row" else right.sizes
        if left.kind == "column" or right.kind == "row":
            left = self.widened(left) if left.kind == "column" else left
            right = self.widened(right) if right.kind == "row" else right
            rows, columns = rows or (ONE,), columns or (ONE,)
        kind = {(0, 0): "scalar", (1, 0): "column", (0, 1): "row", (1, 1): "matrix"}[len(rows), len(columns)]
        return self.joined(ast.MatMult(), left, right, kind, (*rows, *columns))

    def right_division(self, left: Term, right: Term, token: Token) -> Term:
        if right.kind == "scalar":
            return self.elementwise(ast.Div(), left, right, token)
        if right.kind != "matrix" or left.kind == "scalar":
            message = f"{left.shape} / {right.shape}: entry by entry is ./, a scalar over a matrix is s*inv(A)"
            self.fail(message, token, ShapeError)
        inverse = self.called("inv", [right], "matrix", right.sizes, right.start, right.end)
        self.square(right, token, f"{right.shape} is not square")
        return self.matrix_product(left, inverse, token)

    def left_division(self, left: Term, right: Term, token: Token) -> Term:
        if left.kind == "scalar":
            return self.elementwise(ast.Div(), right, left, token)
        if left.kind != "matrix" or right.kind not in ("column", "matrix"):
            message = f"{left.shape} \\ {right.shape}: left stands a square matrix, right a column or a matrix"
            self.fail(message, token, ShapeError)
        self.square(left, token, f"{left.shape} is not square")
        self.equal(left.sizes[1], right.sizes[0], token, f"{left.shape} and {right.shape} do not fit under \\")
        start, end = left.start, right.end
        return self.called("solve", [left, right], right.kind, right.sizes, start, end)

    def matrix_power(self, base: Term, exponent: Term, token: Token) -> Term:
        if base.kind == "scalar" and exponent.kind == "scalar":
            return self.joined(ast.Pow(), base, exponent, "scalar", ())
        number = exponent.node.operand if isinstance(exponent.node, ast.UnaryOp) else exponent.node
        if base.kind != "matrix" or not (isinstance(number, ast.Constant) and isinstance(number.value, int)):
            message = f"{base.shape} ^ {exponent.shape}: entry by entry is .^, a matrix power has a whole exponent"
            self.fail(message, token, ShapeError)
        self.square(base, token, f"{base.shape} is not square")
        start, end = base.start, exponent.end
        return self.called("matrix_power", [base, exponent], "matrix", base.sizes, start, end)

    def transposed(self, term: Term, token: Token) -> Term:
        """x' of a column is a row, which is the same vector here."""
        if term.kind != "matrix":
            kind = {"column": "row", "row": "column"}.get(term.kind, term.kind)
            return Term(term.node, kind, term.sizes, term.depth)
        if isinstance(term.node, ast.Attribute):
            return Term(term.node.value, "matrix", term.sizes[::-1], term.depth)
        node = placed(ast.Attribute(term.node, "T", ast.Load()), term.start, token.end)
        return self.bounded(Term(node, "matrix", term.sizes[::-1], term.depth + 1))

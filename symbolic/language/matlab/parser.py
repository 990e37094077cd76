"""The second spelling: MATLAB's, as matrixcalculus.org reads it. It is translated to the tree of `syntax.py`.

    x'*A*x      norm2(A*x - y)^2      sum(log(exp(-y.*(X*w)) + vector(1)))      tr(A*X'*B*X*C)      A\\b

Every value is a scalar, a column, a row or a matrix: a declared `x:n` is a column, and x' is a row. `*` multiplies
matrices unless one side is a scalar, `.*` entries. `sum`, `norm1` and `norm2` go over all entries. The sizes of
`vector(1)`, `matrix(1)` and `eye` follow from the places where they stand. Indices start at 1: A(1,2), A(:,1), x(end).
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
from collections.abc import Callable, Mapping, Sequence

from sympy import Expr

from gradproof.symbolic.errors import ExpressionError, ShapeError, UnknownNameError
from gradproof.symbolic.language.builder import Builder
from gradproof.symbolic.language.matlab.functions import FUNCTIONS
from gradproof.symbolic.language.matlab.terms import Dim, Meaning, Term, Token, placed, tokens
from gradproof.symbolic.language.operators import undeclared
from gradproof.symbolic.language.scanner import MAX_DIGITS, MAX_LENGTH, MAX_NESTING, REDUCTIONS
from gradproof.symbolic.language.syntax import Declaration, Program, Statement, parse_shapes

CONSTANTS = {"pi": "pi", "inf": "inf", "Inf": "inf"}
KINDS = {0: "scalar", 1: "column", 2: "matrix"}  # of a declared array, by its number of axes


def parse_matlab(text: str, declarations: Mapping[str, object] | Sequence[Declaration]) -> Program:
    """Read MATLAB's spelling; the result is the same kind of program that `syntax.parse` gives.

    Raises ExpressionError (or a subclass) that points at the place in the text.

    >>> program = parse_matlab("x'*A*x + norm2(A*x - y)^2", {"A": "n,n", "x": "n", "y": "n"})
    >>> ast.unparse(program.statements[0].value)
    'x @ A @ x + norm(A @ x - y) ** 2'
    >>> program = parse_matlab("sum(log(exp(-y.*(X*w)) + vector(1)))", {"X": "m,n", "y": "m", "w": "n"})
    >>> ast.unparse(program.statements[0].value)
    'sum(log(exp(-y * (X @ w)) + ones(m)))'
    """
    if not isinstance(text, str):
        raise ExpressionError(f"an expression is a text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    given = parse_shapes(declarations).values() if isinstance(declarations, Mapping) else declarations
    return Translator(text, list(given)).program()


class Translator(Meaning):
    """A recursive-descent parser that gives each part its kind and sizes as it goes."""

    def __init__(self, text: str, declarations: Sequence[Declaration]) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.place = 0
        self.nesting = 0
        self.terms: dict[str, tuple[str, tuple[Dim, ...]]] = {}
        self.open: list[tuple[ast.Call, tuple[Dim, ...]]] = []  # ones(…), eye(…) whose sizes are found later
        builder = Builder(text)
        for declaration in declarations:
            sizes = tuple(Dim(builder.size(node, declaration.text)) for node in declaration.sizes)
            self.terms[declaration.name] = KINDS.get(len(sizes), f"an array with {len(sizes)} axes"), sizes
        self.builder, self.sizes = builder, builder.sizes

    # --- statements

    def program(self) -> Program:
        statements: list[Statement] = []
        while self.peek().text != "":
            if self.peek().kind == "line" or self.peek().text == ";":
                self.take()
                continue
            if statements and statements[-1].name is None:
                self.fail("only the last statement goes without a name; write S = …; to use it later", self.peek())
            statements.append(self.statement())
        if not statements:
            raise ExpressionError("the expression is empty", self.text, 0 if self.text else None)
        for call, dims in self.open:
            for dim in dims:
                value = dim.end().value
                if not isinstance(value, Expr):
                    message = (
                        "the size of this does not follow from where it stands; write eye(n), ones(n,1), ones(n,m)"
                    )
                    self.fail(message, Term(call, ""), ShapeError)
                size = ast.parse(str(value), mode="eval").body
                call.args.append(placed(size, call.col_offset, call.end_col_offset or 0))
        return Program(self.text, tuple(statements))

    def statement(self) -> Statement:
        first, name = self.peek(), None
        if first.kind == "name" and self.peek(1).text == "=":
            name = self.take().text
            if keyword.iskeyword(name) or name.startswith("_") or name in REDUCTIONS:
                self.fail(f"{name} cannot be the name of a value", first)
            if name in self.terms or name in self.sizes:
                self.fail(f"{name} is defined already; choose another name", first)
            self.take()
        term = self.sum()
        after = self.peek()
        if after.text not in ("", ";") and after.kind != "line":
            self.fail(f"an operator is missing before {after.text}; a product is written with *", after)
        if name is not None:
            self.terms[name] = term.kind, term.sizes
        return Statement(name, None, term.node, first.start, term.end)

    def peek(self, ahead: int = 0) -> Token:
        end = Token("end", "", len(self.text), len(self.text))
        return self.tokens[self.place + ahead] if self.place + ahead < len(self.tokens) else end

    def take(self, wanted: str = "") -> Token:
        token = self.peek()
        if wanted and token.text != wanted:
            self.fail(f"{wanted} is missing here", token)
        self.place += 1
        return token

    # --- operators, from loose to tight

    def sum(self) -> Term:
        left = self.product()
        while self.peek().text in ("+", "-"):
            operator = self.take()
            left = self.elementwise(ast.Add() if operator.text == "+" else ast.Sub(), left, self.product(), operator)
        return left

    def product(self) -> Term:
        left = self.signed()
        while self.peek().text in PRODUCTS:
            operator = self.take()
            left = PRODUCTS[operator.text](self, left, self.signed(), operator)
        return left

    def signed(self) -> Term:
        return self.after_signs(self.power)

    def after_signs(self, operand: Callable[[], Term]) -> Term:
        if self.peek().text not in ("+", "-"):
            return operand()
        sign = self.take()
        self.deeper(sign)
        inner = self.after_signs(operand)
        self.nesting -= 1
        return inner if sign.text == "+" else self.negative(inner, sign)

    def power(self) -> Term:
        base = self.operand()
        while (operator := self.peek()).text in ("^", ".^", "'", ".'"):
            self.take()
            if operator.text in ("'", ".'"):
                base = self.transposed(base, operator)
                continue
            exponent = self.after_signs(self.operand)
            if operator.text == ".^":
                base = self.elementwise(ast.Pow(), base, exponent, operator)
            else:
                base = self.matrix_power(base, exponent, operator)
        return base

    def operand(self) -> Term:
        token = self.take()
        if token.text == "(":
            self.deeper(token)
            inner = self.sum()
            self.nesting -= 1
            close = self.take(")")
            inner.node.col_offset, inner.node.end_col_offset = token.start, close.end
            return inner
        if token.kind == "number":
            return self.number(token)
        if token.kind == "name":
            return self.name(token)
        self.fail("something is missing here" if token.text else "the expression ends too early", token)

    def number(self, token: Token) -> Term:
        whole = token.text.isdigit()
        if whole and len(token.text) > MAX_DIGITS:
            self.fail(f"an integer of {len(token.text)} digits; at most {MAX_DIGITS} are read", token)
        if math.isinf(float(token.text)):
            self.fail("this number is too large for a double", token)
        value = int(token.text) if whole else float(token.text)
        return Term(placed(ast.Constant(value), token.start, token.end), "scalar")

    def deeper(self, token: Token) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} brackets or signs in each other; name an intermediate: S = …", token)

    # --- names and calls

    def name(self, token: Token) -> Term:
        name = token.text
        node = placed(ast.Name(name, ast.Load()), token.start, token.end)
        if name in self.terms:
            kind, sizes = self.terms[name]
            if kind.startswith("an array"):
                self.fail(f"{name} is {kind}; this spelling knows scalars, vectors and matrices", token, ShapeError)
            term = Term(node, kind, sizes)
            return self.entry(term) if self.peek().text == "(" else term
        if name in self.sizes:
            return Term(node, "scalar")
        if self.peek().text == "(" and name in FUNCTIONS:
            return self.call(token)
        if name == "eye" and self.peek().text != "(":
            n = Dim()
            return self.filled("eye", "matrix", (n, n), token, token.end)
        if name in CONSTANTS:
            node.id = CONSTANTS[name]
            return Term(node, "scalar")
        if self.peek().text == "(":
            close = difflib.get_close_matches(name, FUNCTIONS, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(FUNCTIONS))}"
            self.fail(f"there is no function {name}{hint}", token, UnknownNameError)
        self.fail(undeclared(name, [*self.terms, *self.sizes]), token, UnknownNameError)

    def call(self, token: Token) -> Term:
        self.deeper(self.take("("))
        arguments = [] if self.peek().text == ")" else [self.sum()]
        while self.peek().text == ",":
            self.take()
            arguments.append(self.sum())
        self.nesting -= 1
        close = self.take(")")
        return self.bounded(FUNCTIONS[token.text](self, token, arguments, close.end))

    def entry(self, term: Term) -> Term:
        """A(1,2), A(:,1), x(end): indices start at 1."""
        opening = self.take("(")
        if not term.sizes:
            self.fail("a scalar has no indices; a product is written with *", opening, ShapeError)
        parts: list[ast.expr] = []
        kept: list[int] = []
        for axis in range(len(term.sizes)):
            if axis:
                self.take(",")
            token = self.take()
            if token.text == ":":
                parts.append(placed(ast.Slice(), token.start, token.end))
                kept.append(axis)
            elif token.text == "end":
                number = placed(ast.Constant(1), token.start, token.end)
                parts.append(placed(ast.UnaryOp(ast.USub(), number), token.start, token.end))
            elif token.text.isdigit() and int(token.text) >= 1:
                parts.append(placed(ast.Constant(int(token.text) - 1), token.start, token.end))
            else:
                self.fail("an index here is a number from 1 on, end, or a colon", token)
        close = self.take(")")
        slice_ = parts[0] if len(parts) == 1 else placed(ast.Tuple(parts, ast.Load()), parts[0].col_offset, close.start)
        node = placed(ast.Subscript(term.node, slice_, ast.Load()), term.start, close.end)
        kinds = {(): "scalar", (0,): "column", (1,): "row", (0, 1): "matrix"}
        kind = term.kind if term.kind in ("column", "row") and kept else kinds[tuple(kept)]
        return Term(node, kind, tuple(term.sizes[axis] for axis in kept), 2)


PRODUCTS: dict[str, Callable[[Translator, Term, Term, Token], Term]] = {
    "*": Translator.matrix_product,
    "/": Translator.right_division,
    "\\": Translator.left_division,
    ".*": lambda t, left, right, token: t.elementwise(ast.Mult(), left, right, token),
    "./": lambda t, left, right, token: t.elementwise(ast.Div(), left, right, token),
    ".\\": lambda t, left, right, token: t.elementwise(ast.Div(), right, left, token),
}

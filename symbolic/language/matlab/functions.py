"""The functions of MATLAB's spelling: each takes the translated arguments and gives a translated call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from sympy import Expr, Integer

from gradproof.symbolic.equations.expr import Size
from gradproof.symbolic.equations.functions import UNARY
from gradproof.symbolic.errors import ShapeError
from gradproof.symbolic.language.matlab.terms import Dim, Meaning, Term, Token, placed

Function = Callable[[Meaning, Token, Sequence[Term], int], Term]


def _counted(m: Meaning, token: Token, given: Sequence[Term], *allowed: int) -> None:
    if len(given) not in allowed:
        shown = " or ".join(map(str, allowed))
        m.fail(f"{token.text} takes {shown} argument{'s' * (allowed != (1,))}, {len(given)} are given", token)


def _elementwise(name: str) -> Function:
    def build(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
        _counted(m, token, given, 1)
        return m.called(name, given, given[0].kind, given[0].sizes, token.start, end)

    return build


def _of_all(name: str) -> Function:
    """sum(A), and sum(A, 1), sum(A, 2) over the rows or the columns."""

    def build(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
        _counted(m, token, given, 1, 2)
        term = given[0]
        if len(given) == 1:
            return m.called(name, given, "scalar", (), token.start, end)
        axis = given[1].node.value if isinstance(given[1].node, ast.Constant) else None
        if term.kind != "matrix" or axis not in (1, 2):
            m.fail(f"{token.text}(A, 1) and {token.text}(A, 2) go over the rows and the columns of a matrix", given[1])
        kind, size = ("row", term.sizes[1]) if axis == 1 else ("column", term.sizes[0])
        found = m.called(name, [term], kind, (size,), token.start, end)
        assert isinstance(found.node, ast.Call)
        found.node.keywords.append(ast.keyword("axis", placed(ast.Constant(axis - 1), given[1].start, given[1].end)))
        return found

    return build


def _extreme(name: str, of_two: str) -> Function:
    """max(x) over all entries of a vector, max(x, y) entry by entry."""

    def build(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
        _counted(m, token, given, 1, 2)
        if len(given) == 1:
            if given[0].kind == "matrix":
                m.fail(f"{name} of a matrix goes over the columns in MATLAB; write it of a vector", token, ShapeError)
            return m.called(name, given, "scalar", (), token.start, end)
        both = m.elementwise(ast.Add(), given[0], given[1], token)  # for its kind and sizes
        assert isinstance(both.node, ast.BinOp)
        arguments = [Term(side, "", (), both.depth) for side in (both.node.left, both.node.right)]
        return m.called(of_two, arguments, both.kind, both.sizes, token.start, end)

    return build


def _norm1(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
    _counted(m, token, given, 1)
    inner = m.called("abs", given, given[0].kind, given[0].sizes, token.start, end)
    return m.called("sum", [inner], "scalar", (), token.start, end)


def _norm2(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
    _counted(m, token, given, 1)
    if token.text == "norm" and given[0].kind == "matrix":
        m.fail("norm of a matrix is its largest singular value in MATLAB; norm2 is √ΣA²", token)
    return m.called("abs" if given[0].kind == "scalar" else "norm", given, "scalar", (), token.start, end)


def _square(kind: str, name: str) -> Function:
    """tr, det, logdet, inv."""

    def build(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
        _counted(m, token, given, 1)
        term = given[0]
        if term.kind != "matrix":
            m.fail(f"{token.text} takes a square matrix, not {term.shape}", token, ShapeError)
        m.square(term, token, f"{token.text} takes a square matrix, not {term.shape}")
        return m.called(name, given, kind, term.sizes if kind == "matrix" else (), token.start, end)

    return build


def _diag(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
    _counted(m, token, given, 1)
    term = given[0]
    if term.kind == "scalar":
        m.fail("diag takes a vector or a square matrix", token, ShapeError)
    if term.kind == "matrix":
        m.square(term, token, f"diag takes a square matrix, not {term.shape}")
    kind, sizes = ("column", term.sizes[:1]) if term.kind == "matrix" else ("matrix", term.sizes * 2)
    return m.called("diag", given, kind, sizes, token.start, end)


def _transpose(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
    _counted(m, token, given, 1)
    return m.transposed(given[0], Token("symbol", "'", token.start, end))


def _dot(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
    _counted(m, token, given, 2)
    x, y = given
    if not {x.kind, y.kind} <= {"column", "row"}:
        m.fail("dot takes two vectors", token, ShapeError)
    m.equal(x.sizes[0], y.sizes[0], token, f"{x.shape} and {y.shape} do not fit under dot")
    return m.called("dot", given, "scalar", (), token.start, end)


def _of_vector(name: str, keeps: bool) -> Function:
    def build(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
        _counted(m, token, given, 1)
        if given[0].kind not in ("column", "row"):
            m.fail(f"{name} takes a vector here, not {given[0].shape}", token, ShapeError)
        kind, sizes = (given[0].kind, given[0].sizes) if keeps else ("scalar", ())
        return m.called(name, given, kind, sizes, token.start, end)

    return build


def _constant(kind: str) -> Function:
    """vector(1), matrix(0): filled with a number; the sizes follow from where it stands."""

    def build(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
        _counted(m, token, given, 1)
        number = given[0]
        if number.kind != "scalar":
            m.fail(f"{token.text} takes a number, as in {token.text}(1)", number, ShapeError)
        sizes = (Dim(),) if kind == "column" else (Dim(), Dim())
        value = number.node.value if isinstance(number.node, ast.Constant) else None
        ones = m.filled("zeros" if value == 0 else "ones", kind, sizes, token, end)
        return ones if value in (0, 1) else m.joined(ast.Mult(), number, ones, kind, sizes)

    return build


def _sized(name: str) -> Function:
    """ones(n), ones(n, m), ones(n, 1), ones(1, n), and eye and zeros likewise."""

    def build(m: Meaning, token: Token, given: Sequence[Term], end: int) -> Term:
        _counted(m, token, given, *((1, 2) if name != "eye" else (0, 1, 2)))
        if not given:
            n = Dim()
            return m.filled(name, "matrix", (n, n), token, end)
        sizes = [Dim(_size(m, term)) for term in given]
        rows, columns = sizes if len(sizes) == 2 else sizes * 2
        if name != "eye" and len(given) == 2:
            if columns.value == 1:
                return m.filled(name, "column", (rows,), token, end)
            if rows.value == 1:
                return m.filled(name, "row", (columns,), token, end)
        return m.filled(name, "matrix", (rows, columns), token, end)

    return build


def _size(m: Meaning, term: Term) -> Expr:
    """A size as an expression: names of sizes, whole numbers, and sums and products of them."""

    def read(node: ast.expr) -> Expr:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return Integer(node.value)
        if isinstance(node, ast.Name) and term.kind == "scalar" and node.id in m.sizes:
            return Size(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            left, right = read(node.left), read(node.right)
            if isinstance(node.op, ast.Mult):
                return left * right
            return left + right if isinstance(node.op, ast.Add) else left - right
        m.fail("a size is a whole number or the name of a size", term, ShapeError)

    return read(term.node)


FUNCTIONS: dict[str, Function] = {
    **{name: _elementwise(name) for name in UNARY},
    **{name: _of_all(name) for name in ("sum", "mean", "prod")},
    "max": _extreme("max", "maximum"),
    "min": _extreme("min", "minimum"),
    "norm1": _norm1,
    "norm2": _norm2,
    "norm": _norm2,
    "tr": _square("scalar", "trace"),
    "trace": _square("scalar", "trace"),
    "det": _square("scalar", "det"),
    "logdet": _square("scalar", "logdet"),
    "inv": _square("matrix", "inv"),
    "diag": _diag,
    "transpose": _transpose,
    "dot": _dot,
    "softmax": _of_vector("softmax", True),
    "log_softmax": _of_vector("log_softmax", True),
    "logsumexp": _of_vector("logsumexp", False),
    "vector": _constant("column"),
    "matrix": _constant("matrix"),
    "eye": _sized("eye"),
    "ones": _sized("ones"),
    "zeros": _sized("zeros"),
}

"""The expression language as a tree: text in, a checked Python `ast` out, and nothing is ever evaluated.

    R[i,j] = sum[k](X[i,k]*W[k,j]) - Y[i,j]; sum[i,j](R[i,j]**2)

A program is a list of statements. A statement's value is a Python `ast` expression made of these nodes only:

    Name, Constant               X, 2, 0.5, True; None as a new axis or as axis=None; a text as an argument
    BinOp                        + - * / ** @ on values, & | on conditions (`and`, `or` are read as & and |)
    UnaryOp                      + - on values, ~ on conditions (`not` is read as ~)
    Compare                      one comparison
    Attribute                    .T and .mT
    Subscript                    A[0, i], x[1:n], x[:, None]; its slice may be a Tuple, with Slices in it
    Call                         f(a, b, key=c); a Tuple or List may stand as an argument
    Call of a Subscript          sum[i, t=0:n](body): read it with `reduction`

Every node carries its place in the user's text: `place(node)`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradproof.symbolic.errors import ExpressionError, ShapeError
from gradproof.symbolic.language.chains import balanced
from gradproof.symbolic.language.scanner import REDUCTIONS, Piece, Token, scan
from gradproof.symbolic.language.whitelist import Checker, items, place

MAX_DEPTH = 150  # of a tree: what walks it may recurse
PROPERTIES = (
    *("symmetric", "psd", "diagonal", "orthogonal", "simplex", "iid=MEAN,VARIANCE", "index=SIZE"),
    # distributions of random entries, see distributions.py; `even` and `kurt` go with `iid` and `independent`
    *("independent=MEAN,VARIANCE", "normal=MEAN,VARIANCE", "uniform=LOW,HIGH", "bernoulli=P", "rademacher"),
    *("categorical=P", "even", "kurt=K"),
)
SQUARE = frozenset({"symmetric", "psd", "diagonal", "orthogonal"})


@dataclass(frozen=True)
class Statement:
    """`name[indices] = value`; a name of None for a last expression without one, indices of None for `name = value`.

    `place` holds the left side's indices where one is no bare letter: `h[0,k] = …; h[t+1,k] = …` is a recurrence.
    """

    name: str | None
    indices: tuple[str, ...] | None
    value: ast.expr
    start: int
    end: int
    place: tuple[ast.expr, ...] | None = None


@dataclass(frozen=True)
class Program:
    """The statements of a text, in order; the last one is the result."""

    text: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class IndexRange:
    """An index of a reduction; without bounds it runs over the whole axis that it reads."""

    name: str
    lower: ast.expr | None
    upper: ast.expr | None
    node: ast.expr


@dataclass(frozen=True)
class Reduction:
    """`name[ranges](body)`, where name is one of sum, prod, max, min, mean."""

    name: str
    ranges: tuple[IndexRange, ...]
    body: ast.expr


def parse(text: str) -> Program:
    """Read statements separated by `;` or line ends; anything else raises an ExpressionError with its place.

    >>> program = parse("R[i,j] = X[i,j] - Y[i,j]; sum[i,j](R[i,j]**2)")
    >>> [(s.name, s.indices, ast.unparse(s.value)) for s in program.statements]
    [('R', ('i', 'j'), 'X[i, j] - Y[i, j]'), (None, None, 'sum[i, j](R[i, j] ** 2)')]
    """
    code, pieces = scan(text)
    statements: list[Statement] = []
    for k, piece in enumerate(pieces):
        name, indices, left = _left(text, code, piece)
        start = piece.left[0].start if piece.left else piece.start
        if name is None and k + 1 < len(pieces):
            message = "only the last statement goes without a name; write S = …; to use this value later"
            raise ExpressionError(message, text, start, piece.end)
        same = [earlier for earlier in statements if name is not None and name == earlier.name]
        if same and (indices is None or any(earlier.indices is None for earlier in same)):
            raise ExpressionError(f"{name} is defined twice", text, start, start + 1)
        statements.append(Statement(name, indices, _tree(text, code, piece), start, piece.end, left))
    return Program(text, tuple(statements))


def reduction(node: ast.AST) -> Reduction | None:
    """The parts of `sum[i, t=0:n](body)`; None for any other node.

    >>> found = reduction(parse("sum[i, t=0:n](x[i, t])").statements[0].value)
    >>> [(r.name, r.upper and ast.unparse(r.upper)) for r in found.ranges]
    [('i', None), ('t', 'n')]
    """
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
        return None
    assert isinstance(node.func.value, ast.Name)
    ranges = []
    for item in items(node.func.slice):
        # t=lower:upper was rewritten to t:lower:upper, a slice
        name, lower, upper = (item.lower, item.upper, item.step) if isinstance(item, ast.Slice) else (item, None, None)
        assert isinstance(name, ast.Name)
        ranges.append(IndexRange(name.id, lower, upper, item))
    return Reduction(node.func.value.id, tuple(ranges), node.args[0])


def _left(text: str, code: str, piece: Piece) -> tuple[str | None, tuple[str, ...] | None, tuple[ast.expr, ...] | None]:
    """The name, and the indices if any, left of a statement's `=`; the indices as trees where one is no bare letter."""
    if piece.left is None:
        return None, None, None
    name, rest = piece.left[0], piece.left[1:]
    good = _is_plain_name(name) and (not rest or (len(rest) > 2 and rest[0].text == "[" and rest[-1].text == "]"))
    if not good:
        message = "left of = stands a name, alone or with its indices: R[i,j] = …"
        raise ExpressionError(message, text, name.start, piece.left[-1].end)
    if name.text in REDUCTIONS:
        raise ExpressionError(f"{name.text} is a function and cannot be defined", text, name.start, name.end)
    if not rest:
        return name.text, None, None
    whole = _tree(text, code, Piece(None, name.start, rest[-1].end))
    trees = tuple(items(whole.slice)) if isinstance(whole, ast.Subscript) else ()
    indices = tuple(tree.id for tree in trees if isinstance(tree, ast.Name))
    for k, tree in enumerate(trees):
        if isinstance(tree, ast.Name) and any(isinstance(t, ast.Name) and t.id == tree.id for t in trees[:k]):
            raise ExpressionError(f"the index {tree.id} stands twice left of =", text, *place(tree))
    return name.text, indices, trees if len(indices) < len(trees) else None


def _is_plain_name(token: Token) -> bool:
    return token.kind == "name" and token.text not in ("True", "False", "None")


def _tree(text: str, code: str, piece: Piece) -> ast.expr:
    """Python's tree of one statement's value, with places in the user's text, checked."""
    source = code[piece.start : piece.end]
    try:
        root = ast.parse(f"({source})", mode="eval").body
    except SyntaxError as error:
        start = min(max(piece.start + (error.offset or 1) - 2, piece.start), piece.end)
        raise ExpressionError(f"this does not read as an expression: {error.msg}", text, start) from None
    except (MemoryError, RecursionError, ValueError):
        message = "the expression is nested too deeply; name an intermediate: S = …; …"
        raise ExpressionError(message, text, piece.start, piece.end) from None
    _locate(root, source, piece.start)
    root = balanced(root)
    _check_depth(root, text)
    return Checker(text).visit(root)


def _locate(root: ast.AST, source: str, start: int) -> None:
    """Python counts bytes from the line's start; turn that into characters of the user's text."""
    characters = [k for k, character in enumerate(source) for _ in character.encode()] + [len(source)]
    for node in ast.walk(root):
        if isinstance(node, ast.expr | ast.keyword):
            end = node.end_col_offset
            node.col_offset = start + characters[min(max(node.col_offset - 1, 0), len(characters) - 1)]
            if end is not None:
                node.end_col_offset = start + characters[min(max(end - 1, 0), len(characters) - 1)]


def _check_depth(root: ast.expr, text: str) -> None:
    level: list[ast.AST] = [root]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    message = f"more than {MAX_DEPTH} operations in a chain; name an intermediate: S = …; …"
    raise ExpressionError(message, text, *place(root))


# Declarations


@dataclass(frozen=True)
class Declaration:
    """`name:sizes:property:…`; no sizes for a scalar. `options` holds the values of iid (two) and index (one)."""

    name: str
    sizes: tuple[ast.expr, ...]
    properties: tuple[str, ...]
    options: dict[str, tuple[ast.expr, ...]]
    text: str


def parse_declaration(text: str) -> Declaration:
    """Read `X:n,d`, a bare `lam`, `v:n+m-1`, `S:n,n:symmetric`, `q:d:iid=0,1`, `w:T:index=V`.

    >>> d = parse_declaration("w:T,n+m-1:index=V")
    >>> d.name, [ast.unparse(size) for size in d.sizes], d.properties, ast.unparse(d.options["index"][0])
    ('w', ['T', 'n + m - 1'], ('index',), 'V')
    """
    if not isinstance(text, str):
        raise ExpressionError(f"a declaration is a text such as X:n,d, not {type(text).__name__}")
    fields = _split(text, ":", 0, len(text))
    name = _declared_name(text, *fields[0])
    sizes = tuple(_size(text, *part) for part in _split(text, ",", *fields[1])) if _filled(text, fields[1:2]) else ()
    properties: list[str] = []
    options: dict[str, tuple[ast.expr, ...]] = {}
    for start, end in fields[2:]:
        property_, values = _property(text, start, end)
        if property_ in properties:
            raise ExpressionError(f"{property_} is declared twice", text, start, end)
        _check_axes(text, property_, sizes, start, end)
        properties.append(property_)
        if values:
            options[property_] = values
    return Declaration(name, sizes, tuple(properties), options, text)


def parse_shapes(shapes: Mapping[str, Any]) -> dict[str, Declaration]:
    """Read the shapes of the Python interface: "n,d", "" or None for a scalar, "n,n:symmetric", ("n", 3).

    >>> parse_shapes({"X": ("n", 3), "lam": "", "S": "n,n:psd"})["S"].properties
    ('psd',)
    """
    if not isinstance(shapes, Mapping):
        raise ExpressionError('shapes are given by name: {"X": "n,d", "lam": ""}')
    found: dict[str, Declaration] = {}
    for name, value in shapes.items():
        parts = value if isinstance(value, tuple | list) else ["" if value is None else value]
        if not isinstance(name, str) or any(isinstance(p, bool) or not isinstance(p, str | int) for p in parts):
            raise ExpressionError(f'the shape of {name} is a text such as "n,d" or a tuple of sizes, not {value!r}')
        declaration = parse_declaration(f"{name}:{','.join(str(part) for part in parts)}")
        if declaration.name in found:
            raise ExpressionError(f"{declaration.name} is declared twice")
        found[declaration.name] = declaration
    return found


def _split(text: str, separator: str, start: int, end: int) -> list[tuple[int, int]]:
    """The places of the parts between separators; commas inside round brackets do not separate."""
    parts, depth, first = [], 0, start
    for k in range(start, end):
        depth += (text[k] == "(") - (text[k] == ")")
        if text[k] == separator and (depth == 0 or separator == ":"):
            parts.append((first, k))
            first = k + 1
    return [*parts, (first, end)]


def _filled(text: str, fields: Sequence[tuple[int, int]]) -> bool:
    return any(text[start:end].strip() for start, end in fields)


def _part(text: str, start: int, end: int, what: str) -> ast.expr:
    """An expression inside a declaration; places are those in the whole declaration."""
    if not text[start:end].strip():
        raise ExpressionError(f"{what} is missing", text, start)
    try:
        statements = parse(text[start:end]).statements
    except ExpressionError as error:
        first = start + (error.position or 0)
        raise ExpressionError(error.message, text, first, error.end and start + error.end) from None
    if len(statements) != 1 or statements[0].name is not None:
        raise ExpressionError(f"{what} is one expression", text, start, end)
    for node in ast.walk(statements[0].value):
        if isinstance(node, ast.expr | ast.keyword):
            node.col_offset += start
            node.end_col_offset = (node.end_col_offset or 0) + start
    return statements[0].value


def _declared_name(text: str, start: int, end: int) -> str:
    node = _part(text, start, end, "the name")
    if not isinstance(node, ast.Name):
        raise ExpressionError("a declaration starts with a name, as in X:n,d", text, start, end)
    return node.id


def _size(text: str, start: int, end: int) -> ast.expr:
    node = _part(text, start, end, "a size")
    names = _size_names(node, text)
    if not names and (number := eval_integer(node)) < 1:
        raise ShapeError(f"a size is at least 1, not {number}", text, start, end)
    return node


def _size_names(node: ast.expr, text: str) -> set[str]:
    """The names in a sum of products of names and integers; anything else is an error."""
    match node:
        case ast.Name():
            return {node.id}
        case ast.Constant(value=int()):
            return set()
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _size_names(node.operand, text)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            return _size_names(node.left, text) | _size_names(node.right, text)
    message = "a size is a name, an integer, or made of such by +, - and *, as n+m-1, 2*d or m*n"
    raise ExpressionError(message, text, *place(node))


def eval_integer(node: ast.expr, sizes: Mapping[str, int] | None = None) -> int:
    """The value of a size expression.

    >>> eval_integer(parse("2*n - 1").statements[0].value, {"n": 3})
    5
    """
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name() if sizes and node.id in sizes:
            return sizes[node.id]
        case ast.UnaryOp(op=op, operand=operand):
            value = eval_integer(operand, sizes)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(op=op, left=left, right=right):
            a, b = eval_integer(left, sizes), eval_integer(right, sizes)
            return a + b if isinstance(op, ast.Add) else a - b if isinstance(op, ast.Sub) else a * b
    raise ExpressionError(f"{ast.unparse(node)} has no integer value")


def _property(text: str, start: int, end: int) -> tuple[str, tuple[ast.expr, ...]]:
    """A property's name, and the values after its `=`."""
    equals = text.find("=", start, end)
    name = text[start : end if equals < 0 else equals].strip()
    wanted = next((known for known in PROPERTIES if known.split("=")[0] == name), None)
    if wanted is None:
        close = difflib.get_close_matches(name, [known.split("=")[0] for known in PROPERTIES], 1)
        guess = f"did you mean {close[0]}? " if close else ""
        shown = name[:40] or "an empty property"
        raise ExpressionError(f"{shown} is not known: {guess}there are {', '.join(PROPERTIES)}", text, start, end)
    parts = [] if equals < 0 else _split(text, ",", equals + 1, end)
    count = wanted.count("=") and wanted.count(",") + 1
    if len(parts) != count:
        raise ExpressionError(f"this property is written {wanted}", text, start, end)
    if name == "index":
        return name, tuple(_size(text, *part) for part in parts)
    return name, tuple(_part(text, *part, "a value") for part in parts)


def _check_axes(text: str, property_: str, sizes: tuple[ast.expr, ...], start: int, end: int) -> None:
    square = len(sizes) == 2 and ast.dump(sizes[0]) == ast.dump(sizes[1])
    if property_ in SQUARE and not square:
        raise ShapeError(f"{property_} needs two axes of one size, as in S:n,n:{property_}", text, start, end)
    if property_ == "simplex" and not sizes:
        raise ShapeError("simplex needs an axis, as in p:n:simplex", text, start, end)

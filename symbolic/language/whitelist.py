"""Which nodes of Python's syntax tree belong to the expression language; any other is named with its place."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NoReturn

from gradproof.symbolic.errors import ExpressionError
from gradproof.symbolic.language.scanner import REDUCTIONS

MODULES = ("np", "numpy", "torch", "jnp", "jax", "math", "scipy", "F", "nn")
METHODS = ("sum", "mean", "max", "min", "prod", "dot", "trace", "cumsum", "transpose")  # written behind an array, too
NUMBERS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)
CONDITIONS = (ast.Compare, ast.Name, ast.Subscript, ast.Call, ast.Attribute)


def place(node: ast.AST) -> tuple[int, int]:
    """Where a node stands in the user's text: first character, and one past the last.

    >>> place(ast.parse("1 + x", mode="eval").body.right)
    (4, 5)
    """
    start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
    return start, start + 1 if end is None else end


def items(slice_: ast.expr) -> Sequence[ast.expr]:
    """What stands between index brackets, item by item.

    >>> [ast.unparse(item) for item in items(ast.parse("A[0, i, 1:]", mode="eval").body.slice)]
    ['0', 'i', '1:']
    """
    return slice_.elts if isinstance(slice_, ast.Tuple) else [slice_]


class Checker(ast.NodeTransformer):
    """Lets the nodes of the language pass and names any other; `and`, `or`, `not` become & | ~."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, message: str, node: ast.AST) -> NoReturn:
        raise ExpressionError(message, self.text, *place(node))

    def generic_visit(self, node: ast.AST) -> NoReturn:
        self.fail(f"{type(node).__name__} is not part of an expression", node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in REDUCTIONS:
            self.fail(f"{node.id} is a function; write {node.id}(x)", node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) not in (int, float):  # the places where others may stand do not come here
            self.fail(f"{ast.unparse(node)} is not a value; it may stand as an argument only", node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, NUMBERS):
            return node
        sign = {ast.BitAnd: "&", ast.BitOr: "|"}.get(type(node.op))
        if sign is None:
            self.fail("this operator is not part of an expression", node)
        for side in (node.left, node.right):
            self.check_condition(side, sign)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not | ast.Invert):
            node.op = ast.Invert()
            self.check_condition(node.operand, "~")
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        word, op = ("and", ast.BitAnd()) if isinstance(node.op, ast.And) else ("or", ast.BitOr())
        values = [self.visit(value) for value in node.values]
        for value in values:
            self.check_condition(value, word)
        joined = values[0]
        for value in values[1:]:
            pair = ast.BinOp(joined, op, value)
            joined = ast.copy_location(pair, joined)
            joined.end_lineno, joined.end_col_offset = value.end_lineno, value.end_col_offset
        return joined

    def check_condition(self, node: ast.expr, sign: str) -> None:
        logical = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
        truth = isinstance(node, ast.Constant) and isinstance(node.value, bool)
        if not (logical or negated or truth or isinstance(node, CONDITIONS)):
            self.fail(f"{sign} joins conditions; put brackets around each, as in (a > 0) & (b > 0)", node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1:
            self.fail("write a chained comparison as (a < b) & (b < c)", node)
        node.left, node.comparators = self.visit(node.left), [self.visit(node.comparators[0])]
        for side in (node.left, node.comparators[0]):
            if isinstance(side, ast.Compare) or (isinstance(side, ast.BinOp) and not isinstance(side.op, NUMBERS)):
                self.fail("put brackets around each comparison, as in (a > 0) & (b > 0)", node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr not in ("T", "mT"):
            self.fail(_attribute_hint(node), node)
        node.value = self.visit(node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)
        parts = [self.visit_item(item) for item in items(node.slice)]
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = parts
        else:
            node.slice = parts[0]
        return node

    def visit_item(self, node: ast.expr) -> ast.expr:
        """One item between index brackets: a slice, a new axis or a value."""
        if isinstance(node, ast.Slice):
            node.lower, node.upper, node.step = (
                part and self.visit(part) for part in (node.lower, node.upper, node.step)
            )
            return node
        return node if isinstance(node, ast.Constant) and node.value is None else self.visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Subscript):
            return self.visit_reduction(node, node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and not _is_module(node.func.value):
            method = node.func  # x.sum(axis=0)
            node.func = ast.copy_location(ast.Name(method.attr, ast.Load()), method)
            node.args = [method.value, *node.args]
        if isinstance(node.func, ast.Attribute):
            self.fail(_attribute_hint(node.func), node.func)
        if not isinstance(node.func, ast.Name):
            self.fail("an operator is missing before these brackets; a product is written with *", node)
        seen: set[str] = set()
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in seen:
                self.fail("a keyword argument is written once, as key=value", keyword)
            seen.add(keyword.arg)
            keyword.value = self.visit_argument(keyword.value)
        node.args = [self.visit_argument(argument) for argument in node.args]
        return node

    def visit_argument(self, node: ast.expr) -> ast.expr:
        """An argument may also be a text, True, False, None, or a list of values."""
        if isinstance(node, ast.Constant) and type(node.value) in (str, bool, type(None)):
            return node
        if isinstance(node, ast.Tuple | ast.List):
            node.elts = [self.visit(element) for element in node.elts]
            return node
        return self.visit(node)

    def visit_reduction(self, node: ast.Call, head: ast.Subscript) -> ast.expr:
        if not (isinstance(head.value, ast.Name) and head.value.id in REDUCTIONS):
            names = ", ".join(sorted(REDUCTIONS))
            self.fail(f"a product is written with *; of the functions only {names} take indices in brackets", head)
        if len(node.args) != 1 or node.keywords:
            self.fail(f"{head.value.id}[…](…) takes one expression", node)
        head.slice = self.visit_ranges(head.slice)
        node.args = [self.visit(node.args[0])]
        return node

    def visit_ranges(self, ranges: ast.expr) -> ast.expr:
        seen: set[str] = set()
        for item in items(ranges):
            index = item.lower if isinstance(item, ast.Slice) else item
            bounds = [bound for bound in (item.upper, item.step) if bound] if isinstance(item, ast.Slice) else []
            if not isinstance(index, ast.Name) or index.id in seen | REDUCTIONS:
                self.fail("each index is a name of its own, as in sum[i,j](…)", item)
            seen.add(index.id)
            for bound in bounds:
                self.visit(bound)
        return ranges

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> NoReturn:
        self.fail("a list of values may stand as an argument only; a statement has one value", node)

    visit_List = visit_Tuple


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in MODULES


def _attribute_hint(node: ast.Attribute) -> str:
    if isinstance(node.value, ast.Name) and node.value.id in MODULES:
        return f"write {node.attr} without {node.value.id}."
    if node.attr in ("shape", "size"):
        return f".{node.attr} is not part of an expression; use the name of the size, as in sqrt(d)"
    return f".{node.attr} is not part of an expression: .T transposes, and functions are written {node.attr}(x)"

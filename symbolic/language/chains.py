"""A long chain of + and − is no depth: a + b − c + d … is read as the sum of its two halves, and so on."""

from __future__ import annotations

import ast
from collections.abc import Sequence

SHORT = 16  # terms; a shorter chain stays as it is


def balanced(root: ast.expr) -> ast.expr:
    """The tree with every long chain of + and − turned into a tree that is no deeper than it must be.

    >>> ast.unparse(balanced(ast.parse(" - ".join(map(str, range(17))), mode="eval").body))
    '0 - 1 - (2 + 3) - (4 + 5 + (6 + 7)) - (8 + 9 + (10 + 11) + (12 + 13 + (14 + (15 + 16))))'
    """
    holder = ast.Expression(root)
    waiting: list[ast.AST] = [holder]
    while waiting:
        node = waiting.pop()
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                value[:] = [_balanced(part) if isinstance(part, ast.BinOp) else part for part in value]
            elif isinstance(value, ast.BinOp):
                setattr(node, name, _balanced(value))
        waiting.extend(ast.iter_child_nodes(node))
    return holder.body


def _balanced(node: ast.BinOp) -> ast.expr:
    terms: list[tuple[bool, ast.expr]] = []  # whether it is subtracted, and the term
    first: ast.expr = node
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add | ast.Sub):
        terms.append((isinstance(first.op, ast.Sub), first.right))
        first = first.left
    terms.append((False, first))
    return _sum(terms[::-1]) if len(terms) > SHORT else node


def _sum(terms: Sequence[tuple[bool, ast.expr]]) -> ast.expr:
    """Terms, the first of which has the sign +, as a tree."""
    if len(terms) == 1:
        return terms[0][1]
    half = len(terms) // 2
    minus = terms[half][0]
    left, right = _sum(terms[:half]), _sum([(sign != minus, term) for sign, term in terms[half:]])
    return ast.BinOp(
        left,
        ast.Sub() if minus else ast.Add(),
        right,
        lineno=left.lineno,
        col_offset=left.col_offset,
        end_lineno=right.end_lineno,
        end_col_offset=right.end_col_offset,
    )

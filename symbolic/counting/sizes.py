"""Counts as polynomials in the sizes: with numbers put in, their leading order, and as text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from sympy import Add, Expr, Integer, Mul, S, Symbol

from gradproof.symbolic.equations.expr import Size
from gradproof.symbolic.errors import ExpressionError
from gradproof.symbolic.language.syntax import parse
from gradproof.symbolic.printing import text as printing

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def with_sizes(count: Expr, values: Mapping[str, int | str | Expr]) -> Expr:
    """The count with values for sizes; a text such as `d_model/h` may name other sizes."""
    known: dict[Symbol, Expr] = {}
    for name, value in values.items():
        known[Size(name)] = size_value(value) if isinstance(value, str) else S(value)
    for _ in known:  # a value may name a size that has a value itself
        count = count.subs(known, simultaneous=True)
    return count.expand()


_ARITHMETIC: dict[type[ast.AST], Callable[[Expr, Expr], Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


def size_value(text: str) -> Expr:
    """A size that is written in terms of others.

    >>> size_value("4*d_model/h")
    4*d_model/h
    """

    def read(node: ast.AST) -> Expr:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return Integer(value)
            case ast.Name():
                return Size(node.id)
            case ast.UnaryOp(op=ast.USub()):
                return -read(node.operand)
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](read(node.left), read(node.right))
        raise ExpressionError("a size is a number, a name, or arithmetic of these", text, 0, len(text))

    statements = parse(text).statements
    if len(statements) != 1 or statements[0].name is not None:
        raise ExpressionError("a size is one expression", text, 0, len(text))
    return read(statements[0].value)


def order(count: Expr) -> str:
    """The leading order of a count, without its coefficients; O(1) of a number.

    >>> order(2080 * Size("n") ** 2 + 4 * Size("n"))
    'O(n²)'
    """
    return f"O({size_text(leading(count))})"


def leading(count: Expr) -> Expr:
    """The terms, without their numbers, that no other term outgrows when all sizes grow.

    >>> n, d = Size("n"), Size("d")
    >>> leading(2 * n**2 * d + 4 * n**2 + 8 * n * d**2)
    d**2*n + d*n**2
    """
    terms = {term.as_coeff_Mul()[1] for term in Add.make_args(count.expand())}

    def outgrown(term: Expr, other: Expr) -> bool:
        powers = [factor.as_base_exp()[1] for factor in Mul.make_args(other / term)]
        return term != other and all(power.is_number and power > 0 for power in powers)

    return Add(*(term for term in terms if not any(outgrown(term, other) for other in terms)))


def size_text(count: Expr) -> str:
    """A polynomial in sizes, highest terms first.

    >>> n, d = Size("n"), Size("d_k")
    >>> size_text(4 * n + 2 * n**2 * d - n**2 / 2)
    '2·n²·d_k − n²/2 + 4·n'
    """
    terms = sorted(Add.make_args(count.expand()), key=_height)
    pieces = [_term_text(term) for term in terms]
    shown = pieces[0][1] if pieces[0][0] > 0 else f"−{pieces[0][1]}"
    return shown + "".join(f" {'+' if sign > 0 else '−'} {piece}" for sign, piece in pieces[1:])


def _height(term: Expr) -> tuple[Expr, Sequence[Expr], str]:
    powers = sorted((factor.as_base_exp()[1] for factor in Mul.make_args(term) if not factor.is_number), reverse=True)
    return -sum(powers, S.Zero), [-power for power in powers], str(term)


def _term_text(term: Expr) -> tuple[int, str]:
    number, rest = term.as_coeff_Mul()
    above = [str(abs(number.p))] if abs(number.p) != 1 else []
    below = [str(number.q)] if number.q != 1 else []
    factors = [factor.as_base_exp() for factor in Mul.make_args(rest) if factor != 1]
    for base, power in sorted(factors, key=lambda pair: (-abs(pair[1]), len(str(pair[0])), str(pair[0]))):
        name = printing.plain_name(str(base))[0] if isinstance(base, Symbol) else f"({base})"
        shown = name + (str(abs(power)).translate(SUPERSCRIPTS) if abs(power) != 1 else "")
        (above if power > 0 else below).append(shown)
    top = "·".join(above) or "1"
    bottom = "·".join(below)
    return (1 if number >= 0 else -1), f"{top}/({bottom})" if len(below) > 1 else f"{top}/{bottom}" if below else top

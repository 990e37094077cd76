"""Equations with parts replaced: what the functions from system to system are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sympy import Expr

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Index,
    Reduce,
    map_accesses,
    open_,
    out_letters,
    rebuild,
    reduce_,
)
from gradproof.symbolic.equations.system import Equation

Ranges = Callable[[Sequence[Axis], Expr], Sequence[Axis]]


def rewrite(expr: Expr, visit: Callable[[Expr], Expr | None], ranges: Ranges = lambda axes, body: axes) -> Expr:
    """The expression with other nodes where `visit` gives one; reductions are opened, and closed again over `ranges`.

    >>> i = Index("i")
    >>> rewrite(Access("x", i) + 1, lambda node: Access("y", i) if node == Access("x", i) else None)
    y[i] + 1
    """
    new = visit(expr)
    if new is not None:
        return new
    if isinstance(expr, Reduce):
        body, axes = open_(expr, [])
        return reduce_(expr.op, rewrite(body, visit, ranges), ranges(axes, body))
    if isinstance(expr, Access) or not expr.args:
        return expr
    return rebuild(expr, [rewrite(arg, visit, ranges) for arg in expr.args])


def rewritten(equation: Equation, put: Callable[[Expr], Expr]) -> Equation:
    """The equation with another right side, and with what that came from."""
    origin = equation.origin and replace(
        equation.origin, argument=put(equation.origin.argument), over=put(equation.origin.over)
    )
    return replace(equation, body=put(equation.body), origin=origin)


def with_reads(equation: Equation, arrays: Iterable[str], read: Callable[[Access], Expr]) -> Equation:
    """The equation with every access to some arrays replaced."""
    scope = [letter for letter, _, _ in equation.axes]
    return rewritten(equation, lambda expr: map_accesses(expr, read, arrays, scope))


def lettered(equation: Equation) -> Equation:
    """The equation with the canonical letter at each place."""
    letters = out_letters(len(equation.place))
    new: dict[Expr, Expr] = {
        old: letter for old, letter in zip(equation.place, letters, strict=True) if isinstance(old, Index)
    }
    ranges = {letter: (letter, low, high) for letter, low, high in equation.axes}
    axes: list[Axis] = []
    for old in equation.place:
        if isinstance(old, Index):
            _, low, high = ranges[old]
            axes.append((new[old], low.xreplace(new), high.xreplace(new)))
    placed = rewritten(equation, lambda expr: rewrite(expr.xreplace(new), lambda node: None))
    return replace(placed, place=tuple(new.get(item, item) for item in equation.place), axes=tuple(axes))

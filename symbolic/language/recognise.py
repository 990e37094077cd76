"""Softmax spelled out by hand is softmax: exp(z_i)/Σ_j exp(z_j), and log Σ_j exp(z_j) is logsumexp.

Both spellings then derive, print and run alike. A sum of exponentials is taken up where the expression divides by it or
takes its logarithm; everything else stays as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sympy import Expr, Pow, S, exp, log

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Index,
    Reduce,
    accesses,
    letters,
    names,
    open_,
    rebuild,
    reduce_,
)
from gradproof.symbolic.language import composites
from gradproof.symbolic.language.builder import Builder
from gradproof.symbolic.language.values import Value


@dataclass(frozen=True)
class Found:
    """A sum of exponentials: the letters of its entries, the exponential, and what it becomes."""

    letters: tuple[Index, ...]
    term: Expr
    weights: Value
    total: Value


def recognise(builder: Builder) -> None:
    """Rewrite the equations built so far where they spell out a softmax or a log-sum-exp."""
    for position, equation in enumerate(list(builder.equations)):
        if not equation.body.has(exp) or builder.is_helper(equation.name):
            continue
        axes = list(equation.axes)
        found = [_define(builder, total, scope) for total, scope in _totals(equation.body, axes)]
        if found:
            body = _replaced(equation.body, axes, found)
            if not _left_over(body, {one.total.expr.name for one in found if isinstance(one.total.expr, Access)}):
                builder.equations[position] = equation.with_body(body)
    for position, equation in enumerate(builder.equations):
        if not names(equation.body).isdisjoint(builder.softmaxes):
            builder.equations[position] = equation.with_body(_logarithms(builder, equation.body))


def _left_over(expr: Expr, totals: set[str]) -> bool:
    """Whether a total stands anywhere but under a logarithm: then this was no softmax."""
    if isinstance(expr, log) and isinstance(expr.args[0], Access):
        return False
    return (isinstance(expr, Access) and expr.name in totals) or any(_left_over(arg, totals) for arg in expr.args)


def _logarithms(builder: Builder, expr: Expr) -> Expr:
    """log P_ij is z_ij − log Σ_k exp(z_ik), which does not underflow."""
    if isinstance(expr, log) and isinstance(expr.args[0], Access) and expr.args[0].name in builder.softmaxes:
        access = expr.args[0]
        x, total, axis = builder.softmaxes[access.name]
        row = [S.Zero if k == axis else index for k, index in enumerate(access.indices)]
        return x.at(*access.indices) - log(total.at(*row))
    return rebuild(expr, [_logarithms(builder, arg) for arg in expr.args]) if expr.args and names(expr) else expr


def _totals(expr: Expr, axes: Sequence[Axis]) -> Iterator[tuple[Reduce, Sequence[Axis]]]:
    """The sums of exponentials under a division or a logarithm, with the axes in scope."""
    divides = (isinstance(expr, Pow) and expr.exp.is_negative) or isinstance(expr, log)
    inner = expr.args[0] if divides else None
    if isinstance(inner, Reduce) and inner.op == "sum" and len(inner.axes) == 1 and isinstance(inner.body, exp):
        if inner.axes[0][1] == 0:
            yield inner, axes
        return
    if isinstance(expr, Reduce):
        body, own = open_(expr, [axis[0] for axis in axes])
        yield from _totals(body, [*axes, *own])
    else:
        for arg in expr.args:
            yield from _totals(arg, axes)


def _define(builder: Builder, total: Reduce, axes: Sequence[Axis]) -> Found:
    """Name the softmax that belongs to a sum of exponentials."""
    rows = [axis for axis in axes if axis[0] in letters(total)]
    body, (column,) = open_(total, [axis[0] for axis in axes])
    used = (*(axis[0] for axis in rows), column[0])
    value = Value(body.args[0], used, tuple(hi for _, _, hi in (*rows, column)))
    weights = composites.softmax(builder, value)
    _, _, z = composites.softmax_parts(builder, value, len(rows))
    return Found(used, body, weights, z)


def _replaced(expr: Expr, axes: Sequence[Axis], found: Sequence[Found]) -> Expr:
    """The expression with exponentials as weight times total, so that the totals cancel."""
    if isinstance(expr, exp):
        for one in found:
            mapping = match(one.term, expr, one.letters)
            if mapping is not None:
                indices = [mapping[letter] for letter in one.letters]
                return one.weights.at(*indices) * one.total.at(*indices[:-1], S.Zero)
    if isinstance(expr, Reduce):
        body, own = open_(expr, [axis[0] for axis in axes])
        if isinstance(body, exp) and expr.op == "sum" and len(own) == 1:
            for one in found:
                mapping = match(one.term, body, one.letters)
                if mapping is not None and mapping[one.letters[-1]] == own[0][0]:
                    return one.total.at(*(mapping[letter] for letter in one.letters[:-1]), S.Zero)
        return reduce_(expr.op, _replaced(body, [*axes, *own], found), own)
    return rebuild(expr, [_replaced(arg, axes, found) for arg in expr.args]) if expr.args and names(expr) else expr


def match(pattern: Expr, expr: Expr, wanted: Sequence[Index]) -> dict[Index, Expr] | None:
    """The values of the wanted letters under which the pattern is the expression, if there are any."""
    places = [access for access in accesses(pattern) if letters(access) & set(wanted)]
    candidates = accesses(expr)

    def extend(k: int, mapping: dict[Index, Expr]) -> dict[Index, Expr] | None:
        if k == len(places):
            done = len(mapping) == len(wanted) and pattern.xreplace(mapping) == expr
            return mapping if done else None
        for candidate in candidates:
            bound = _bind(places[k], candidate, wanted, mapping)
            result = None if bound is None else extend(k + 1, bound)
            if result is not None:
                return result
        return None

    return extend(0, {})


def _bind(
    pattern: Access, access: Access, wanted: Sequence[Index], mapping: dict[Index, Expr]
) -> dict[Index, Expr] | None:
    if pattern.name != access.name:
        return None
    mapping = dict(mapping)
    for own, other in zip(pattern.indices, access.indices, strict=True):
        if own in wanted:
            if mapping.setdefault(own, other) != other:
                return None
        elif own != other and not letters(own) & set(wanted):
            return None
    return mapping

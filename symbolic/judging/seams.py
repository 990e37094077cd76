"""Sums and products that run over parts of one range: the longer one is split where the shorter one begins or ends.

    Σ_{k<n+1} f(k) = Σ_{k<n} f(k) + f(n)          Σ_{k<n} f(k+1) = Σ_{k<n} f(k) − f(0) + f(n)
    Σ_{k<n+m} f(k) = Σ_{k<n} f(k) + Σ_{k<m} f(n+k)        the same for Π, with · and / for + and −

That is done only where what is left over is a few terms, or a sum over a range that is known to be no shorter than 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sympy import Add, Expr, Integer, Mul, S

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Index,
    Reduce,
    accesses,
    letters,
    names,
    nonnegative,
    open_,
    rebuild,
    reduce_,
)
from gradproof.symbolic.judging.polynomials import Poly, expr_of, merged, product_expr, rational

if TYPE_CHECKING:
    from gradproof.symbolic.judging.normal_form import Normal, Scope

ROUNDS = 8  # sums that are split
TERMS = 4  # that are written out


def split(normal: Normal, poly: Poly, scope: Scope) -> Poly:
    """A normal form with its sums split at the ends of others."""
    for _ in range(ROUNDS):
        whole = expr_of(poly)
        found = next(_splits(normal, _outermost(whole), scope), None) if poly else None
        if found is None:
            break
        normal.splits.append((*found, scope))
        poly = normal.of(replaced(whole, *found), scope)
    return poly


def _outermost(expr: Expr) -> list[Reduce]:
    """The sums and products of an expression that stand in no other one."""
    if isinstance(expr, Reduce):
        return [expr] if expr.op in ("sum", "prod") else []
    if isinstance(expr, (Access, Compare)):
        return []
    return list(dict.fromkeys(node for arg in expr.args for node in _outermost(arg)))


def replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    """An expression with a sum or product that stands in no other one replaced."""
    if expr == old:
        return new
    if isinstance(expr, (Access, Compare, Reduce)) or not expr.args:
        return expr
    return rebuild(expr, [replaced(arg, old, new) for arg in expr.args])


def _splits(normal: Normal, nodes: list[Reduce], scope: Scope) -> Iterator[tuple[Reduce, Expr]]:
    """Pairs of a sum and what it is, written with another sum among `nodes`."""
    for first in nodes:
        for second in nodes:
            if first != second and first.op == second.op and names(first) == names(second):
                for own in _by_letter(first, scope):
                    for other in _by_letter(second, scope):
                        new = _written(normal, first.op, own, other, second, scope)
                        if new is not None:
                            yield first, new


Terms = tuple[Expr, Index, Expr]  # the sum over all other letters, a letter that starts at 0, and its end


def _by_letter(node: Reduce, scope: Scope) -> Iterator[Terms]:
    """A sum as one over each of its letters in turn."""
    body, axes = open_(node, scope)
    for axis in axes:
        letter, lo, hi = axis
        others = [other for other in axes if other is not axis]
        tied = letters(hi) & {other[0] for other in others} or any(letter in letters(o[2]) for o in others)
        if lo == 0 and not tied:
            shared = Index("seam")
            yield reduce_(node.op, body, others).xreplace({letter: shared}), shared, hi


def _written(normal: Normal, op: str, own: Terms, other: Terms, known: Reduce, scope: Scope) -> Expr | None:
    """Σ_{k<n} g(k) as λ (Σ_{k<m} h(k) − Σ_{0≤k<c} h(k) + Σ_{m≤k<n+c} h(k)), where g(k) = λ h(k + c)."""
    body, letter, end = own
    source, _, reach = other
    inner = scope | {letter: (S.Zero, end)}
    for shift in _shifts(own, other):
        factor = _quotient(normal, op, body, source.xreplace({letter: letter + shift}), letter, inner)
        if factor is None:
            continue
        before = _interval(op, source, (letter, shift, S.Zero), scope)
        after = _interval(op, source, (letter, reach, (shift + end).expand()), scope)
        if before is None or after is None or (before.has(Reduce) and after.has(Reduce)):
            continue
        return factor * (known + before + after) if op == "sum" else known * before * after
    return None


def _shifts(own: Terms, other: Terms) -> list[Expr]:
    """By how much the letter of one sum may be ahead of the other's."""
    letter = own[1]
    found: dict[Expr, None] = {S.Zero: None, (other[2] - own[2]).expand(): None}
    for a in accesses(own[0]):
        for b in accesses(other[0]):
            if a.name == b.name:
                pairs = zip(a.indices, b.indices, strict=True)
                ahead = [(i - j).expand() for i, j in pairs if letter in letters(i) & letters(j)]
                found.update(dict.fromkeys(shift for shift in ahead if not letters(shift) and not shift.has(Access)))
    return list(found)


def _quotient(normal: Normal, op: str, body: Expr, source: Expr, letter: Index, scope: Scope) -> Expr | None:
    """The λ without the letter for which body = λ · source; None where there is none."""
    mine, theirs = normal.of(body, scope), normal.of(source, scope)
    if mine == theirs:
        return S.One
    if op != "sum" or len(mine) != 1 or len(theirs) != 1:
        return None
    ((a, number),), ((b, other),) = mine.items(), theirs.items()
    ratio = merged(a, ((base, -power) for base, power in b))
    return None if any(letter in letters(base) for base in ratio) else rational(number / other) * product_expr(ratio)


def _interval(op: str, body: Expr, axis: Axis, scope: Scope) -> Expr | None:
    """Σ of a body from one end to another, term by term where these are few, minus the sum where they are turned round.

    None where it is not known that the first end comes first.
    """
    letter, lo, hi = axis
    length = (hi - lo).expand()
    if isinstance(length, Integer):
        if abs(length) > TERMS:
            return None
        start, sign = (lo, 1) if length >= 0 else (hi, -1)
        terms = [body.xreplace({letter: start + k}) for k in range(abs(int(length)))]
        return Add(*(sign * term for term in terms)) if op == "sum" else Mul(*(term**sign for term in terms))
    ranges = [(other, *ends) for other, ends in scope.items()]
    if not nonnegative(length, ranges):
        return None
    return reduce_(op, body.xreplace({letter: letter + lo}), [(letter, S.Zero, length)])

"""An expression as a sum of products of random entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sympy import Add, Expr, Integer, Mul, Pow

from gradproof.symbolic.equations.expr import Axis, Index, Reduce, names, negate, open_, sum_
from gradproof.symbolic.equations.functions import where

MAX_POWER = 8  # a power of a sum that is multiplied out


@dataclass(frozen=True)
class Term:
    """A product under a sum over `axes`."""

    axes: tuple[Axis, ...]
    factors: tuple[Expr, ...]

    @property
    def expr(self) -> Expr:
        return sum_(Mul(*self.factors), self.axes)


def terms(expr: Expr, wanted: Callable[[Expr], bool], scope: frozenset[Index]) -> list[Term]:
    """An expression as a sum of products; only what holds something `wanted` is multiplied out.

    Sums that are multiplied get letters of their own: (Σ_i x_i)² is Σ_ij x_i x_j.

    >>> from gradproof.symbolic.equations.expr import Access, Size
    >>> i, n = Index("i"), Size("n")
    >>> x = Access("x", i)
    >>> [term.expr for term in terms(sum_(x, [(i, 0, n)]) ** 2 + 1, lambda e: "x" in names(e), frozenset())]
    [1, sum[b2=0:n, b1=0:n](x[b1]*x[b2])]
    """
    if not wanted(expr):
        return [Term((), (expr,))]
    if isinstance(expr, Add):
        return [term for arg in expr.args for term in terms(arg, wanted, scope)]
    if isinstance(expr, Mul):
        return _multiplied(expr.args, wanted, scope)
    if isinstance(expr, Pow) and isinstance(expr.exp, Integer) and 0 < expr.exp <= MAX_POWER:
        inner = terms(expr.base, wanted, scope)
        if len(inner) > 1 or inner[0].axes or len(inner[0].factors) > 1:
            return _multiplied([expr.base] * int(expr.exp), wanted, scope)
    if isinstance(expr, where):  # a branch that is not taken counts nothing
        condition, one, other = expr.args
        return terms(condition * one, wanted, scope) + terms(negate(condition) * other, wanted, scope)
    if isinstance(expr, Reduce) and expr.op == "sum":
        body, axes = open_(expr, scope)
        inner_scope = scope.union(axis[0] for axis in axes)
        return [Term((*axes, *term.axes), term.factors) for term in terms(body, wanted, inner_scope)]
    return [Term((), (expr,))]


def _multiplied(factors: Sequence[Expr], wanted: Callable[[Expr], bool], scope: frozenset[Index]) -> list[Term]:
    found = [Term((), ())]
    for factor in factors:
        grown = []
        for left in found:
            taken = scope.union(axis[0] for axis in left.axes)
            for right in terms(factor, wanted, taken):
                grown.append(Term((*left.axes, *right.axes), (*left.factors, *right.factors)))
        found = grown
    return found


def readers(arrays: Iterable[str]) -> Callable[[Expr], bool]:
    """Whether an expression reads one of the arrays."""
    wanted = frozenset(arrays)
    return lambda expr: not wanted.isdisjoint(names(expr))


def expanded(expr: Expr, arrays: Iterable[str], scope: frozenset[Index]) -> Expr:
    """The expression as a sum of products of entries of the given arrays."""
    return Add(*(term.expr for term in terms(expr, readers(arrays), scope)))

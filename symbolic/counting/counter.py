"""Counting the operations of a system: what stands in several places is computed once."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Add, Expr, Integer, Mul, S, Symbol

from gradproof.symbolic.counting.contraction import Contracting, Product, places, settled
from gradproof.symbolic.counting.operations import Operations, Ranges, canonical, factorised, own, reciprocal, volume
from gradproof.symbolic.equations.expr import Access, Compare, Implicit, Index, Reduce, letters, names, open_
from gradproof.symbolic.equations.system import Equation

TYPICAL = 64  # the value of a size for which the orders of a contraction are compared, unless sizes are given


class Counter:
    """Counts the operations of one equation after the other."""

    def __init__(self, at: Mapping[Symbol, Expr | int] | None = None) -> None:
        self.at = dict(at or {})
        self.done: set[object] = set()
        self.result = Operations()

    def equation(self, equation: Equation) -> Operations:
        """The operations of an equation, without those of parts that were counted before."""
        self.result = Operations()
        self.visit(equation.body, {letter: (lo, hi) for letter, lo, hi in equation.axes})
        return self.result

    def visit(self, expr: Expr, ranges: Ranges) -> None:
        """Count a part and everything in it."""
        if isinstance(expr, Access) or not names(expr):
            return
        key = canonical(expr, ranges)
        if key not in self.done:
            self.count(expr, ranges)
            self.done.add(key)

    def count(self, expr: Expr, ranges: Ranges) -> None:
        """Count a part that was not computed before."""
        if isinstance(expr, Reduce):
            self.reduction(expr, ranges)
            return
        if isinstance(expr, Implicit):
            batch = expr.indices[:-2] if expr.kind == "inv" else expr.indices
            self.note(factorised(expr), frozenset().union(*map(letters, batch)), ranges)
            return
        if isinstance(expr, Mul) and any(places(factor) for factor in expr.args):
            self.product(expr, frozenset(), ranges)
            return
        if isinstance(expr, Add):  # a term that only some entries have is added to those
            parts = [placed(arg, ranges) for arg in expr.args]
            whole = sum(1 for part in parts if part is None)
            self.note(Operations(additions=Integer(max(whole - 1, 0))), letters(expr), ranges)
            for part in [part for part in parts if part is not None][0 if whole else 1 :]:
                self.note(Operations(additions=S.One), part.out, part.ranges)
        else:
            self.note(own(expr), letters(expr), ranges)
        for arg in expr.args:
            self.visit(reciprocal(arg) if isinstance(expr, Mul) else arg, ranges)

    def note(self, own: Operations, used: frozenset[Index], ranges: Ranges) -> None:
        count = volume(used, ranges)
        self.result += Operations(*(kind * count for kind in (own.multiplications, own.additions, own.functions)))

    def reduction(self, expr: Reduce, ranges: Ranges) -> None:
        """A sum of products is contracted pair by pair; other reductions combine one term after the other."""
        body, axes = open_(expr, set(ranges))
        summed = frozenset(axis[0] for axis in axes)
        inner = {**ranges, **{letter: (lo, hi) for letter, lo, hi in axes}}
        moving = frozenset().union(*(letters(lo) | letters(hi) for _, lo, hi in axes))
        if expr.op == "sum" and isinstance(body, Mul) and not moving:
            self.product(body, summed, inner)
            return
        terms = letters(body) | summed
        if expr.op == "sum" and len(axes) == 1 and moving and not moving & letters(body):
            ((letter, lo, hi),) = axes
            if not (letters(lo) and letters(hi)):  # Σ_{j ≤ i} x_j is a running sum
                terms, inner = letters(body) | summed, {**inner, letter: self.widest(lo, hi, ranges)}
        kind = {"sum": Operations(additions=S.One), "prod": Operations(S.One), "max": Operations(functions=S.One)}
        self.note(kind[expr.op], terms, inner)
        self.visit(body, inner)

    def widest(self, lo: Expr, hi: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
        """The first and the last value that a range takes as its bounds move (they rise with their letters)."""
        first = lo.xreplace({letter: ranges[letter][0] for letter in letters(lo)})
        return first, hi.xreplace({letter: ranges[letter][1] - 1 for letter in letters(hi)})

    def product(self, body: Expr, summed: frozenset[Index], ranges: Ranges) -> None:
        """Σ of a product over some letters."""
        factors = [factor for factor in body.args if names(factor) or isinstance(factor, Compare)]
        number = Mul(*(factor for factor in body.args if factor not in factors))
        if letters(number) & summed:
            factors.append(number)
        elif number not in (1, -1):
            self.note(Operations(S.One), letters(body) - summed, ranges)
        product = settled(Product(tuple(factors), summed, letters(body) - summed, ranges))
        if not product.factors:
            return
        found = Contracting(product, self.done.__contains__, self.typical).cheapest
        counted, order = found.operations, found.operations.order[-1:] if len(product.factors) > 2 else ()
        self.result += Operations(counted.multiplications, counted.additions, counted.functions, order)
        self.done.update(found.parts)
        for factor in product.factors:
            self.visit(reciprocal(factor) if len(product.factors) > 1 else factor, product.ranges)

    def typical(self, count: Expr) -> float:
        """The number of operations at the given or at typical sizes, to compare orders."""
        known = {symbol: self.at.get(symbol, TYPICAL) for symbol in count.free_symbols}
        return float(count.xreplace({symbol: Integer(value) for symbol, value in known.items()}))


def placed(expr: Expr, ranges: Ranges) -> Product | None:
    """A term that conditions δ(i, e) leave at some entries only."""
    factors = Mul.make_args(expr)
    if not any(places(factor) for factor in factors):
        return None
    found = settled(Product(factors, frozenset(), letters(expr), ranges))
    return found if found.out != letters(expr) else None

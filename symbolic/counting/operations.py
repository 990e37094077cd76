"""Operations and memory of one equation, counted from the equation and the ranges of its letters.

Every part of a right side is computed once for each value of the letters that it depends on: √d and d/2 are free, a
column sum inside a matrix expression is computed once a column. An addition, multiplication or division is one
operation, a function (exp, √, a power other than a square, a comparison of values) one too; index arithmetic and signs
are free. A sum of n terms is n additions, from 0, so a product of matrices costs 2 operations a term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sympy import Add, Expr, Function, Integer, Mul, Pow, Rational, S, Symbol, summation

from gradproof.symbolic.equations.expr import Access, Axis, Compare, Implicit, Index, Reduce, accesses, letters, names
from gradproof.symbolic.equations.system import Equation
from gradproof.symbolic.errors import RuleError

Ranges = Mapping[Index, tuple[Expr, Expr]]
EXHAUSTIVE = 5  # so many factors are contracted in the best of all pairwise orders, more in the best next pair
TYPICAL = 64  # the value of a size for which the orders of a contraction are compared, unless sizes are given


@dataclass(frozen=True)
class Operations:
    """Numbers of operations, by kind; `order` says in which pairwise order factors were contracted."""

    multiplications: Expr = S.Zero
    additions: Expr = S.Zero
    functions: Expr = S.Zero
    order: tuple[str, ...] = ()

    @property
    def total(self) -> Expr:
        return (self.multiplications + self.additions + self.functions).expand()

    def __add__(self, other: Operations) -> Operations:
        return Operations(
            (self.multiplications + other.multiplications).expand(),
            (self.additions + other.additions).expand(),
            (self.functions + other.functions).expand(),
            (*self.order, *other.order),
        )


def volume(wanted: frozenset[Index], ranges: Ranges) -> Expr:
    """How many values the letters take together; a range may depend on another letter.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> i, j, n = Index("i"), Index("j"), Size("n")
    >>> volume(frozenset([i, j]), {i: (0, n), j: (0, i + 1)})
    n**2/2 + n/2
    """
    left = set(wanted)
    while more := {other for letter in left for bound in ranges[letter] for other in letters(S(bound))} - left:
        left |= more
    total: Expr = S.One
    while left:
        needed = {other for letter in left for bound in ranges[letter] for other in letters(S(bound))}
        letter = min(left - needed, key=str)
        lo, hi = ranges[letter]
        if letter not in total.free_symbols:
            total = total * (hi - lo)
        else:
            total = summation(total.expand(), (letter, lo, hi - 1))
        left.remove(letter)
    return total.expand()


class Counter:
    """Counts the operations of one equation; a part that stands twice in it is computed once."""

    def __init__(self, equation: Equation, at: Mapping[Symbol, Expr | int] | None = None) -> None:
        self.at = dict(at or {})
        self.done: set[tuple[Expr, tuple[object, ...]]] = set()
        self.ranges = {letter: (lo, hi) for letter, lo, hi in equation.axes}
        self.result = Operations()
        self.visit(equation.body, self.ranges)

    def visit(self, expr: Expr, ranges: Ranges) -> None:
        """Count a part and everything in it."""
        if isinstance(expr, Access) or not names(expr):
            return
        key = (expr, tuple(sorted(((str(x), ranges[x]) for x in letters(expr)), key=str)))
        if key in self.done:
            return
        self.done.add(key)
        if isinstance(expr, Reduce):
            self.reduction(expr, ranges)
            return
        if isinstance(expr, Implicit):
            batch = expr.indices[:-2] if expr.kind == "inv" else expr.indices
            self.note(factorised(expr), frozenset().union(*map(letters, batch)), ranges)
            return
        self.note(self.own(expr), letters(expr), ranges)
        for arg in expr.args:
            self.visit(reciprocal(arg) if isinstance(expr, Mul) else arg, ranges)

    def note(self, own: Operations, used: frozenset[Index], ranges: Ranges) -> None:
        count = volume(used, ranges)
        self.result += Operations(*(kind * count for kind in (own.multiplications, own.additions, own.functions)))

    def own(self, expr: Expr) -> Operations:
        """What one evaluation of a node costs, once its arguments are known."""
        if isinstance(expr, Add):
            return Operations(additions=Integer(len(expr.args) - 1))
        if isinstance(expr, Mul):
            return Operations(products(expr.args))
        if isinstance(expr, Pow):
            return power(expr.exp)
        if isinstance(expr, (Function, Compare)):
            return Operations(functions=S.One)
        raise RuleError(f"there is no rule that counts the operations of {type(expr).__name__}")

    def reduction(self, expr: Reduce, ranges: Ranges) -> None:
        """A sum of products is contracted pair by pair; other reductions combine one term after the other."""
        inner = {**ranges, **{letter: (lo, hi) for letter, lo, hi in expr.axes}}
        apart = not any(
            letters(lo) | letters(hi) for _, lo, hi in expr.axes
        )  # else no letter can be summed before another
        if expr.op == "sum" and isinstance(expr.body, Mul) and apart:
            named = [factor for factor in expr.body.args if names(factor)]
            number = Mul(*(factor for factor in expr.body.args if not names(factor)))
            if number not in (1, -1):
                varying = letters(number) & {axis[0] for axis in expr.axes}
                if varying:
                    named.append(number)
                else:
                    self.note(Operations(S.One), letters(expr), ranges)
            self.contraction(named, letters(expr), expr.axes, inner)
            for factor in named:
                self.visit(reciprocal(factor) if len(named) > 1 else factor, inner)
            return
        terms = letters(expr.body) | {axis[0] for axis in expr.axes}
        kind = {"sum": Operations(additions=S.One), "prod": Operations(S.One), "max": Operations(functions=S.One)}
        self.note(kind[expr.op], terms, inner)
        self.visit(expr.body, inner)

    # --- contractions

    def contraction(self, factors: Sequence[Expr], out: frozenset[Index], axes: Sequence[Axis], ranges: Ranges) -> None:
        """Σ of a product: the cheapest order of products of two factors, each summed as soon as a letter is done."""
        items = [(letters(factor), short(factor)) for factor in factors]
        unread = {axis[0] for axis in axes} - frozenset().union(*(used for used, _ in items))
        if unread:  # summed over a letter that nothing reads: the terms are added all the same
            items[0] = (items[0][0] | unread, items[0][1])
        found = self.best(items, out, ranges)
        order = (found.order[-1],) if len(items) > 2 and found.order else ()
        self.result += Operations(found.multiplications, found.additions, found.functions, order)

    def best(self, items: list[tuple[frozenset[Index], str]], out: frozenset[Index], ranges: Ranges) -> Operations:
        """The cheapest way to contract the factors, given by their letters and names."""
        total, items = Operations(), list(items)
        for position, (used, name) in enumerate(items):
            others = frozenset().union(out, *(other for k, (other, _) in enumerate(items) if k != position))
            if used - others:  # a letter that only this factor has: its sum comes first
                total += Operations(additions=volume(used, ranges))
                items[position] = (used & others, name)
        if len(items) == 1:
            return total
        choices = []
        for a, b in combinations(range(len(items)), 2):
            rest = [item for k, item in enumerate(items) if k not in (a, b)]
            used = items[a][0] | items[b][0]
            kept = used & frozenset().union(out, *(other for other, _ in rest))
            size = volume(used, ranges)
            name = f"({items[a][1]} {items[b][1]})"
            step = Operations(size, size if used - kept else S.Zero, S.Zero, (name,))
            choices.append((step, [(kept, name), *rest]))
        if len(items) > EXHAUSTIVE:
            choices = [min(choices, key=lambda choice: self.typical(choice[0].total))]
        totals = [step + self.best(left, out, ranges) for step, left in choices]
        return total + min(totals, key=lambda found: self.typical(found.total))

    def typical(self, count: Expr) -> float:
        """The number of operations at the given or at typical sizes, to compare orders."""
        known = {symbol: self.at.get(symbol, TYPICAL) for symbol in count.free_symbols}
        return float(count.xreplace({symbol: Integer(value) for symbol, value in known.items()}))


def factorised(value: Implicit) -> Operations:
    """The operations of a whole matrix's value: elimination for the determinant, Gauss–Jordan for the inverse.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> factorised(Implicit("inv", "A", Size("n"))).total, factorised(Implicit("det", "A", Integer(2))).total
    (2*n**3 - 2*n**2 + n, 4)
    """
    n = value.size
    if value.kind == "inv":
        return Operations((n**3).expand(), (n**3 - 2 * n**2 + n).expand())
    additions = (n * (n - 1) * (2 * n - 1) / 6).expand()
    pivots = (n * (n - 1) / 2).expand()  # divisions by a pivot
    if value.kind == "logdet":
        return Operations(additions + pivots, additions + n - 1, n)
    return Operations(additions + pivots + n - 1, additions)


def products(factors: Sequence[Expr]) -> Expr:
    """Multiplications and divisions of a product: numbers and sizes are one factor, a sign none."""
    named = [factor for factor in factors if names(factor)]
    number = Mul(*(factor for factor in factors if not names(factor)))
    below = all(isinstance(factor, Pow) and factor.exp.is_negative for factor in named)
    return Integer(len(named) - 1 + (number not in (1, -1) or below))


def reciprocal(factor: Expr) -> Expr:
    """What a factor of a product divides by, or the factor itself: the division is counted with the product."""
    if isinstance(factor, Pow) and isinstance(factor.exp, Rational) and factor.exp < 0:
        return factor.base if factor.exp == -1 else factor.base**-factor.exp
    return factor


def power(exponent: Expr) -> Operations:
    """x² is a multiplication, any other positive power a function; a negative one is a division more."""
    division = Integer(bool(exponent.is_negative))
    size = abs(exponent) if exponent.is_number else exponent
    square = Integer(size == 2)
    return Operations(division + square, S.Zero, Integer(size not in (1, 2)))


def short(factor: Expr) -> str:
    """A factor's name in the order of a contraction."""
    found = list(dict.fromkeys(access.name for access in accesses(factor)))
    return found[0] if len(found) == 1 else f"[{' '.join(found)}]" if found else "w"

"""Operations of the equations of a system, counted from their right sides and the ranges of their letters.

Every part of a right side is computed once for each value of the letters that it depends on: √d and d/2 are free, a
column sum inside a matrix expression is computed once a column; and once in all where it stands in several places, as
the generated code shares it. An addition, multiplication or division is one operation, a function (exp, √, a power
other than a square, a comparison of values) one too; index arithmetic, lookups and signs are free. A sum of n terms is
n additions, from 0, so a product of matrices costs 2 operations a term; how sums of products are taken apart is said in
`contraction.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sympy import Expr, Function, Integer, Mul, Pow, Rational, S, summation

from gradproof.symbolic.equations.expr import Compare, Implicit, Index, accesses, letters, names
from gradproof.symbolic.errors import RuleError

Ranges = Mapping[Index, tuple[Expr, Expr]]


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


def canonical(expr: Expr, ranges: Ranges) -> tuple[Expr, tuple[object, ...]]:
    """The same for parts that differ in the names of their free letters only, and are so computed once.

    >>> from gradproof.symbolic.equations.expr import Access
    >>> i, j = map(Index, "ij")
    >>> canonical(Access("x", i), {i: (0, 3)}) == canonical(Access("x", j), {j: (0, 3)})
    True
    """
    order = dict.fromkeys(letter for access in accesses(expr) for index in access.indices for letter in _inside(index))
    used = [letter for letter in order if letter in letters(expr)]
    used += sorted(letters(expr) - set(used), key=str)
    new = {letter: Index(f"_{k}") for k, letter in enumerate(used)}
    return expr.xreplace(new), tuple(S(bound).xreplace(new) for letter in used for bound in ranges[letter])


def _inside(index: Expr) -> list[Index]:
    return sorted(letters(index), key=str)


def own(expr: Expr) -> Operations:
    """What one evaluation of a node costs, once its arguments are known."""
    if isinstance(expr, Mul):
        return Operations(products(expr.args))
    if isinstance(expr, Pow):
        return power(expr.exp)
    if isinstance(expr, (Function, Compare)):
        return Operations(functions=S.One)
    raise RuleError(f"there is no rule that counts the operations of {type(expr).__name__}")


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

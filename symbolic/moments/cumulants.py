"""Joint cumulants of powers of one random entry."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from sympy import Expr, Mul, S, Symbol, binomial

from gradproof.symbolic.equations.laws import ORDER


def partitions(items: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """Every way to part a list into blocks.

    >>> partitions((0, 1))
    [[(0, 1)], [(0,), (1,)]]
    """
    if not items:
        return [[]]
    first, found = items[0], []
    for rest in partitions(items[1:]):
        found += [[(first, *block), *rest[:k], *rest[k + 1 :]] for k, block in enumerate(rest)]
        found.append([(first,), *rest])
    return found


def cumulant(count: int, moment: Callable[[tuple[int, ...]], Expr]) -> Expr:
    """The joint cumulant of variables 0 … count − 1 from their joint moments: Σ_π (−1)^{|π|−1} (|π|−1)! Π_B E[Π_B].

    That of one variable is its mean, that of two their covariance; it is 0 if some are independent of the others.
    """
    total = S.Zero
    for parting in partitions(tuple(range(count))):
        sign = 1
        for k in range(1, len(parting)):
            sign *= -k
        total += sign * Mul(*(moment(block) for block in parting))
    return total.expand()


M, C = Symbol("_m"), [Symbol(f"_c{k}") for k in range(ORDER + 1)]


@lru_cache(maxsize=1000)
def power_cumulant(powers: tuple[int, ...]) -> Expr:
    """The joint cumulant of x^p for the given powers of one variable, in its mean _m and central moments _c2, …

    >>> power_cumulant((1, 1)), power_cumulant((1, 2))
    (_c2, 2*_c2*_m + _c3)
    """

    def moment(block: tuple[int, ...]) -> Expr:
        k = sum(powers[position] for position in block)
        return sum((binomial(k, j) * M ** (k - j) * (C[j] if j else 1) for j in range(k + 1) if j != 1), S.Zero)

    return cumulant(len(powers), moment)

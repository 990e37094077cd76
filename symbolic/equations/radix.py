"""Indices in digits: i·p + k = j·p + l with digits k, l below p says that i = j and k = l (kron, vec, strides)."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Expr, Integer, Mul

from gradproof.symbolic.equations.expr import Access, Axis, Compare, Reduce, delta, letters, nonnegative


def split_digits(factor: Expr, known: Sequence[Axis]) -> list[Expr]:
    """A δ as several, where its two sides can be compared digit by digit; otherwise the factor itself.

    >>> from gradproof.symbolic.equations.expr import Index, Size
    >>> i, j, k, l, p = *map(Index, "ijkl"), Size("p")
    >>> split_digits(delta(i * p + k, j * p + l), [(k, Integer(0), p), (l, Integer(0), p)])
    [[i == j], [k == l]]
    """
    if not isinstance(factor, Compare) or factor.op != "==" or factor.has(Access, Reduce):
        return [factor]
    left, right = factor.sides
    terms = Add.make_args((left - right).expand())
    if len(terms) < 3:
        return [factor]
    for base in _bases(terms):
        high = [term for term in terms if _divides(base, term)]
        rest = Add(*(term for term in terms if not _divides(base, term)))
        # |rest| < base and base · quotient + rest = 0 leave only 0 for both
        if rest != 0 and high and nonnegative(base - 1 - rest, known) and nonnegative(base - 1 + rest, known):
            quotient = Add(*((term / base).expand() for term in high))
            return [piece for part in (quotient, rest) for piece in split_digits(_vanishes(part), known)]
    return [factor]


def _bases(terms: Sequence[Expr]) -> list[Expr]:
    """What letters are multiplied with, other than ±1."""
    found: dict[Expr, None] = {}
    for term in terms:
        own = [factor for factor in Mul.make_args(term) if not letters(factor)]
        scale = Mul(*own)
        scale = -scale if scale.could_extract_minus_sign() else scale
        if letters(term) and scale != 1 and nonnegative(scale):
            found[scale] = None
    return list(found)


def _divides(base: Expr, term: Expr) -> bool:
    quotient = term / base
    number = quotient.as_coeff_Mul()[0]
    return isinstance(number, Integer) and all(
        factor.as_base_exp()[1].is_positive is True for factor in Mul.make_args(quotient / number) if factor != 1
    )


def _vanishes(difference: Expr) -> Expr:
    """δ(positive terms, negative terms)."""
    terms = Add.make_args(difference)
    minus = [term for term in terms if term.could_extract_minus_sign()]
    return delta(Add(*(term for term in terms if term not in minus)), -Add(*minus))

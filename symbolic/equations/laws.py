"""Laws of random values: what is known of the entries of an array declared as `q:d:iid=0,1` or `z:n:normal=0,s**2`.

A family is one line of data: how it is written, its mean, variance and higher central moments, and for the rules about
relu its absolute moments about 0. A *law* is a family with the parameters of one array. Unknown moments are symbols:
`mu3_q` is E[(q − E q)³].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Expr, Integer, Mul, Rational, S, Symbol, binomial, factorial2, gamma, oo, pi, sqrt

from gradproof.symbolic.equations.expr import Index, out_letters
from gradproof.symbolic.errors import RuleError

ORDER = 8  # the highest moment of one entry that is used


class CentralMoment(Symbol):
    """E[(q − E q)^k] of an entry of the array q where its law does not give it; no parameter, even one so called.

    >>> CentralMoment("q", 3), CentralMoment("q", 3) == Symbol("mu3_q", real=True)
    (mu3_q, False)
    """

    of: tuple[str, int]  # the array and the order

    def __new__(cls, array: str, order: int) -> CentralMoment:
        found = Symbol.__new__(cls, f"mu{order}_{array}", real=True)
        found.of = array, order
        return found

    def __getnewargs_ex__(self) -> tuple[tuple[str, int], dict[str, bool]]:
        return self.of, {}


@dataclass(frozen=True)
class Family:
    """Mean, variance and central moments as functions of the parameters.

    `central(k, …)` is None where the moments beyond the variance are not known; `absolute(k, …)` is E|x|^k of a law
    that is symmetric about 0; `even`: symmetric about its mean; `atomless`: no single value has a probability, and
    there is a bounded density that is positive on the whole support; `highest`: moments are finite up to that order.
    """

    written: str
    mean: Callable[..., Expr]
    variance: Callable[..., Expr]
    central: Callable[..., Expr] | None = None
    absolute: Callable[..., Expr] | None = None
    even: bool = False
    atomless: bool = False
    support: Callable[..., tuple[Expr, Expr]] = lambda *parameters: (-oo, oo)
    highest: Expr = oo


def normal_central(k: int, mean: Expr, variance: Expr) -> Expr:
    return factorial2(k - 1) * variance ** (k // 2) if k % 2 == 0 else S.Zero


def normal_absolute(k: int, mean: Expr, variance: Expr) -> Expr:
    return sqrt(2) ** k * gamma(Rational(k + 1, 2)) / sqrt(pi) * root(variance)[0] ** k


def uniform_central(k: int, low: Expr, high: Expr) -> Expr:
    return ((high - low) / 2) ** k / (k + 1) if k % 2 == 0 else S.Zero


def bernoulli_central(k: int, p: Expr) -> Expr:
    return p * (1 - p) * ((1 - p) ** (k - 1) - (-p) ** (k - 1))


FAMILIES: dict[str, Family] = {
    "iid": Family("iid=MEAN,VARIANCE", lambda m, v: m, lambda m, v: v, highest=Integer(2)),
    "independent": Family("independent=MEAN,VARIANCE", lambda m, v: m, lambda m, v: v, highest=Integer(2)),
    "normal": Family(
        "normal=MEAN,VARIANCE", lambda m, v: m, lambda m, v: v, normal_central, normal_absolute, True, True
    ),
    "uniform": Family(
        "uniform=LOW,HIGH",
        lambda a, b: (a + b) / 2,
        lambda a, b: (b - a) ** 2 / 12,
        uniform_central,
        lambda k, a, b: ((b - a) / 2) ** k / (k + 1),
        True,
        True,
        lambda a, b: (a, b),
    ),
    "bernoulli": Family(
        "bernoulli=P", lambda p: p, lambda p: p * (1 - p), bernoulli_central, support=lambda p: (S.Zero, S.One)
    ),
    "rademacher": Family(
        "rademacher",
        lambda: S.Zero,
        lambda: S.One,
        lambda k: Integer(1 - k % 2),
        lambda k: S.One,
        True,
        support=lambda: (S.NegativeOne, S.One),
    ),
    "categorical": Family("categorical=P", lambda p: S.NaN, lambda p: S.NaN, support=lambda p: (S.Zero, oo)),
}


@dataclass(frozen=True)
class Law:
    """The distribution of the entries of one array; parameters that differ by entry are written in letters o0, o1, …

    `even` and `kurt` (the fourth central moment over the squared variance) are declared beside `iid` or `independent`.
    """

    name: str
    family: str
    parameters: tuple[Expr, ...] = ()
    even: bool = False
    kurt: Expr | None = None
    below: Expr | None = None  # the number of values of a categorical law

    @property
    def of(self) -> Family:
        return FAMILIES[self.family]

    @property
    def symmetric(self) -> bool:
        """Whether the entries are distributed symmetrically about their mean."""
        return self.even or self.of.even

    @property
    def centred(self) -> bool:
        """Whether x and −x have one distribution."""
        return self.symmetric and self.mean == 0

    @property
    def finite(self) -> bool:
        """Whether there are finitely many known values."""
        return self.family in ("bernoulli", "rademacher", "categorical")

    @property
    def bounded(self) -> bool:
        """Whether all values lie between two numbers."""
        return self.finite or self.family == "uniform"

    @property
    def support(self) -> tuple[Expr, Expr]:
        """Between which values the entries lie."""
        return self.of.support(*self.parameters)

    @property
    def highest(self) -> Expr:
        """Up to which order the moments are known to be finite."""
        return self.of.highest if self.kurt is None else Integer(4)

    @property
    def values(self) -> dict[Expr, Expr] | None:
        """Every value with its probability, where they are finitely many numbers; a law without variance has one."""
        if self.family == "bernoulli":
            return {S.Zero: 1 - self.parameters[0], S.One: self.parameters[0]}
        if self.family == "rademacher":
            return {S.NegativeOne: S.Half, S.One: S.Half}
        return {self.mean: S.One} if self.variance == 0 else None

    @property
    def mean(self) -> Expr:
        return self.of.mean(*self.parameters)

    @property
    def variance(self) -> Expr:
        return self.of.variance(*self.parameters)

    def central(self, k: int) -> Expr:
        """E[(x − E x)^k] of one entry, in letters o0, … where entries differ."""
        if k < 3:
            return (S.One, S.Zero, self.variance)[k]
        if k > ORDER:
            raise RuleError(f"moments of {self.name} beyond order {ORDER} are not used, order {k} is needed")
        if self.of.central is not None:
            return self.of.central(k, *self.parameters)
        if self.symmetric and k % 2:
            return S.Zero
        if k == 4 and self.kurt is not None:
            return self.kurt * self.variance**2
        if self.family == "independent":
            raise RuleError(
                f"the central moment of order {k} of {self.name} is needed, and it may differ from entry to entry: "
                f"declare iid=, normal= or kurt="
            )
        return CentralMoment(self.name, k)

    def raw(self, k: int) -> Expr:
        """E[x^k]; the square is written as mean² + variance.

        >>> Law("q", "iid", (Symbol("m"), Symbol("v"))).raw(2)
        m**2 + v
        """
        terms = (binomial(k, j) * self.mean ** (k - j) * self.central(j) for j in range(k + 1) if j != 1)
        return sum(terms, S.Zero)

    def absolute(self, k: int) -> Expr | None:
        """E|x|^k of a law symmetric about 0; None where it does not follow from what is declared."""
        if k % 2 == 0:
            return self.central(k) if k else S.One
        return self.of.absolute(k, *self.parameters) if self.of.absolute else None

    def at(self, expr: Expr, indices: tuple[Expr, ...]) -> Expr:
        """A moment at one entry."""
        return expr.xreplace(dict(zip(out_letters(len(indices)), indices, strict=True)))

    @property
    def varies(self) -> bool:
        """Whether entries differ in distribution."""
        return self.family == "independent" and any(parameter.atoms(Index) for parameter in self.parameters)


def root(variance: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """√variance, and what is taken as nonnegative for it: the root of sigma² is sigma, not |sigma|.

    >>> root(Symbol("sigma", real=True) ** 2 / 3)
    (sqrt(3)*sigma/3, (sigma,))
    """
    squares, rest, taken = S.One, S.One, []
    for factor in Mul.make_args(variance):
        base, power = factor.as_base_exp()
        if power.is_Integer and power % 2 == 0 and not base.is_number:
            squares *= base ** (power / 2)
            taken += [base] if power % 4 and not base.is_nonnegative else []
        else:
            rest *= factor
    return squares * sqrt(rest), tuple(taken)

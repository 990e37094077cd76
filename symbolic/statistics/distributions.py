"""What a declaration such as `q:d:iid=0,1` or `z:n:normal=0,s**2` says of the entries of a random array.

A family is one line of data: how it is written, its mean, variance and higher central moments, and for the rules about
relu its absolute moments about 0. A *law* is a family with the parameters of one array. Unknown moments are symbols:
`mu3_q` is E[(q − E q)³].
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sympy import Expr, Integer, Mul, Rational, S, Symbol, binomial, factorial2, gamma, pi, posify, sqrt

from gradproof.symbolic.equations.expr import Access, Index
from gradproof.symbolic.equations.system import Array, out_letters
from gradproof.symbolic.errors import ExpressionError, RuleError, ShapeError

if TYPE_CHECKING:
    from gradproof.symbolic.language.builder import Builder
    from gradproof.symbolic.language.syntax import Declaration

ORDER = 8  # the highest moment of one entry that is used


@dataclass(frozen=True)
class Family:
    """Mean, variance and central moments as functions of the parameters.

    `central(k, …)` is None where the moments beyond the variance are not known; `absolute(k, …)` is E|x|^k of a law
    that is symmetric about 0; `even`: symmetric about its mean; `atomless`: no single value has a probability.
    """

    written: str
    mean: Callable[..., Expr]
    variance: Callable[..., Expr]
    central: Callable[..., Expr] | None = None
    absolute: Callable[..., Expr] | None = None
    even: bool = False
    atomless: bool = False


def normal_central(k: int, mean: Expr, variance: Expr) -> Expr:
    return factorial2(k - 1) * variance ** (k // 2) if k % 2 == 0 else S.Zero


def normal_absolute(k: int, mean: Expr, variance: Expr) -> Expr:
    return sqrt(2) ** k * gamma(Rational(k + 1, 2)) / sqrt(pi) * root(variance) ** k


def uniform_central(k: int, low: Expr, high: Expr) -> Expr:
    return ((high - low) / 2) ** k / (k + 1) if k % 2 == 0 else S.Zero


def bernoulli_central(k: int, p: Expr) -> Expr:
    return p * (1 - p) * ((1 - p) ** (k - 1) - (-p) ** (k - 1))


FAMILIES: dict[str, Family] = {
    "iid": Family("iid=MEAN,VARIANCE", lambda m, v: m, lambda m, v: v),
    "independent": Family("independent=MEAN,VARIANCE", lambda m, v: m, lambda m, v: v),
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
    ),
    "bernoulli": Family("bernoulli=P", lambda p: p, lambda p: p * (1 - p), bernoulli_central),
    "rademacher": Family(
        "rademacher",
        lambda: S.Zero,
        lambda: S.One,
        lambda k: Integer(1 - k % 2),
        lambda k: S.One,
        True,
    ),
    "categorical": Family("categorical=P", lambda p: S.NaN, lambda p: S.NaN),
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
        return Symbol(f"mu{k}_{self.name}", real=True)

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


def root(variance: Expr) -> Expr:
    """√variance, with symbols taken as nonnegative: the root of sigma² is sigma.

    >>> root(Symbol("sigma", real=True) ** 2)
    sigma
    """
    entries = {access: Symbol(f"a{k}", real=True) for k, access in enumerate(sorted(variance.atoms(Access), key=str))}
    positive, back = posify(variance.xreplace(entries))
    return sqrt(positive).xreplace(back).xreplace({symbol: access for access, symbol in entries.items()})


# ------------------------------------------------------------------------------------------------- joint cumulants


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


# --------------------------------------------------------------------------------------------------- declarations

LAWS = frozenset(FAMILIES)
OPTIONS = frozenset({*LAWS, "even", "kurt"})
SHARED = frozenset({"symmetric", "psd", "diagonal", "orthogonal", "simplex"})


def declared_law(builder: Builder, declaration: Declaration, number: Callable[[Builder, ast.expr], Expr]) -> Law | None:
    """The law of a declaration, None without one. All arrays and sizes are declared already.

    Raises ExpressionError where the properties contradict each other.
    """
    given = [name for name in declaration.properties if name in OPTIONS]
    families = [name for name in given if name in LAWS]
    text = declaration.text

    def fail(message: str, kind: type[ExpressionError] = ExpressionError) -> None:
        raise kind(message, text, 0, len(declaration.name))

    if not given:
        return None
    if len(families) != 1:
        what = " and ".join(families) or "no distribution"
        fail(f"{declaration.name} has {what}: write one of {', '.join(FAMILIES[name].written for name in FAMILIES)}")
    (family,) = families
    if len(given) > 1 and family not in ("iid", "independent"):
        fail(f"even and kurt= go with iid= or independent=; the moments of {family} are known")
    if clash := SHARED.intersection(declaration.properties):
        fail(
            f"the entries of a random array are independent: {declaration.name} cannot be {' and '.join(sorted(clash))}"
        )
    array = builder.arrays[declaration.name]
    if family == "categorical":
        chances = _probabilities(builder, declaration)
        return Law(array.name, family, (chances,), below=builder.arrays[chances.name].shape[0])
    given_values = declaration.options.get(family, ())
    parameters = tuple(_parameter(builder, node, array, family, text, number) for node in given_values)
    kurt = declaration.options.get("kurt")
    law = Law(array.name, family, parameters, "even" in given, number(builder, kurt[0]) if kurt else None)
    if any(parameter.is_finite is False for parameter in parameters):
        fail(f"the parameters of {declaration.name} are finite numbers")
    if family == "bernoulli" and (parameters[0].is_negative or (1 - parameters[0]).is_negative):
        fail(f"the probability that {declaration.name} is 1 lies between 0 and 1")
    if family == "uniform" and (parameters[1] - parameters[0]).is_negative:
        fail(f"{declaration.name} is uniform between two numbers: the lower one stands first")
    if law.variance.is_negative:
        fail(f"the variance of {declaration.name} is negative")
    if law.kurt is not None and law.kurt.is_number and law.kurt < 1:
        fail("kurt is the fourth central moment over the squared variance: it is at least 1")
    return law


def _parameter(
    builder: Builder,
    node: ast.expr,
    array: Array,
    family: str,
    text: str,
    number: Callable[[Builder, ast.expr], Expr],
) -> Expr:
    """A parameter: a number, symbols, or with `independent` an array that has one for every entry."""
    given = builder.arrays.get(node.id) if isinstance(node, ast.Name) else None
    if given is None or not given.rank:
        return number(builder, node)
    if family != "independent" or given.shape != array.shape:
        message = f"{given.name} has a value for every entry: write independent= and give it the shape of {array.name}"
        raise ShapeError(message, text, node.col_offset, node.end_col_offset)
    return Access(given.name, *out_letters(array.rank))


def _probabilities(builder: Builder, declaration: Declaration) -> Access:
    """The array of probabilities, as its entry at letter o0."""
    (node,) = declaration.options["categorical"]
    given = builder.arrays.get(node.id) if isinstance(node, ast.Name) else None
    if given is None or given.rank != 1 or "simplex" not in given.properties:
        message = "categorical= takes an array of probabilities that sum to 1, declared as p:V:simplex"
        raise ExpressionError(message, declaration.text, node.col_offset, node.end_col_offset)
    return Access(given.name, *out_letters(1))


def described(law: Law, scalar: bool) -> tuple[str, str]:
    """The assumption in words, English and Chinese, with places for the name, the parameters p0, p1 and kurt."""
    kinds = {
        "normal": ("normal with mean {p0} and variance {p1}", "服从正态分布，均值 {p0}，方差 {p1}"),
        "uniform": ("uniform between {p0} and {p1}", "在 {p0} 与 {p1} 之间均匀分布"),
        "bernoulli": ("1 with probability {p0}, else 0", "以概率 {p0} 取 1，否则取 0"),
        "rademacher": ("+1 or −1 with probability 1/2 each", "各以概率 1/2 取 ±1"),
        "categorical": ("v with probability {p0}", "以概率 {p0} 取值 v"),
    }
    en, zh = kinds.get(law.family, ("of mean {p0} and variance {p1}", "均值 {p0}，方差 {p1}"))
    if law.even:
        en, zh = en + ", symmetric about it", zh + "，关于均值对称"
    if law.kurt is not None:
        en, zh = en + ", of kurtosis {kurt}", zh + "，峰度 {kurt}"
    if scalar:
        return f"{{name}} is random, {en}", f"{{name}} 为随机量，{zh}"
    alike = ("independent", "相互独立") if law.family == "independent" else ("i.i.d.", "独立同分布")
    return f"the entries of {{name}} are {alike[0]}, {en}", f"{{name}} 的各元素{alike[1]}，{zh}"

"""The rules by which a sum, a product or a power is written as in a textbook: one row each, its formula beside it.

A row is tried on what a normal form is made of, after its parts. `instance` gives an expression of three others to
which it applies; a test tries every row on random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sympy import Add, Expr, Integer, Mul, Number, Pow, Rational, S, cosh, exp, sinh, tanh

from gradproof.symbolic.equations.expr import Access, Axis, Compare, Index, accesses, delta
from gradproof.symbolic.equations.functions import sigmoid
from gradproof.symbolic.equations.numbers import decimal
from gradproof.symbolic.folding.signs import cancelled, collected, multiplied_out


@dataclass(frozen=True)
class Row:
    """A rule for expressions of one class; `letters` says that it wants to know the letters in scope."""

    name: str
    of: type[Expr]
    rule: Callable[..., Expr]
    instance: Callable[[Expr, Expr, Expr], Expr]
    letters: bool = False

    def __call__(self, expr: Expr, outer: Sequence[Axis]) -> Expr:
        """The expression rewritten, or as it was where the rule does not apply."""
        if not isinstance(expr, self.of):
            return expr
        return self.rule(expr, outer) if self.letters else self.rule(expr)


def rows_for(expr: Expr) -> tuple[Row, ...]:
    """The rules for an expression, in the order in which they are tried.

    >>> [row.name for row in rows_for(sigmoid(S.One) ** -1)]
    ['sigmoid']
    """
    return next((rows for kind, rows in ROWS.items() if isinstance(expr, kind)), ())


def common_factor(expr: Add) -> Expr:
    """Pull out the powers that all terms share (numbers stay: SymPy would multiply them back in).

    A shifted access stays beside the condition that keeps its index inside the array.
    """
    guarded = expr.has(Compare)
    tables = []
    for term in expr.args:
        powers: dict[Expr, Rational] = {}
        for factor in Mul.make_args(term):
            base, power = _power(factor)
            if not isinstance(factor, Number) and isinstance(power, Rational) and not (guarded and _shifted(base)):
                powers[base] = powers.get(base, Integer(0)) + power
        tables.append(powers)
    shared: dict[Expr, Rational] = {}
    for base in tables[0]:
        powers_here = [table.get(base, Integer(0)) for table in tables]
        if all(p > 0 for p in powers_here) or all(p < 0 for p in powers_here):
            shared[base] = min(powers_here, key=abs)
    if not shared:
        return _shared_denominator(expr, tables)
    pulled = Mul(*(exp(p * base.args[0]) if isinstance(base, exp) else base**p for base, p in shared.items()))
    return Mul(pulled, Add(*(term / pulled for term in expr.args)))


def _power(factor: Expr) -> tuple[Expr, Expr]:
    """Base and exponent; exp(2x) is the square of exp(x)."""
    if not isinstance(factor, exp):
        return factor.as_base_exp()
    number, rest = factor.args[0].as_coeff_Mul()
    return exp(rest), number


def _shared_denominator(expr: Add, tables: Sequence[Mapping[Expr, Rational]]) -> Expr:
    """Group the terms over one denominator: y + a/s − b/s is y + (a − b)/s."""
    counts: dict[Expr, int] = {}
    for table in tables:
        for base, power in table.items():
            counts[base] = counts.get(base, 0) + int(bool(power < 0) and isinstance(base, Access))
    below = max(counts, key=lambda base: counts[base], default=None)
    if below is None or not 2 <= counts[below] < len(expr.args):
        return expr
    inside = [bool(table.get(below, Integer(0)) < 0) for table in tables]
    grouped = Add(*(term for term, taken in zip(expr.args, inside, strict=True) if taken))
    rest = Add(*(term for term, taken in zip(expr.args, inside, strict=True) if not taken))
    return rest + (common_factor(grouped) if isinstance(grouped, Add) else grouped)


def _shifted(expr: Expr) -> bool:
    """Whether an expression reads an array at a place that is no bare letter or number."""
    return any(not isinstance(index, (Index, Integer)) for access in accesses(expr) for index in access.indices)


def deltas_first(expr: Expr, outer: Sequence[Axis]) -> Expr:
    """Under δ_jk everything is written with j: a_k (δ_jk − a_j) becomes a_j (δ_jk − a_k)."""
    order = {axis[0]: position for position, axis in enumerate(outer)}

    def written(term: Expr) -> Expr:
        for factor in Mul.make_args(term):
            if has_delta(factor):
                first, second = sorted(factor.sides, key=order.__getitem__)
                term = Mul(factor, (term / factor).xreplace({second: first}))
        return term

    def has_delta(term: Expr) -> bool:
        return any(isinstance(f, Compare) and f.op == "==" and set(f.sides) <= set(order) for f in Mul.make_args(term))

    brackets = [f for f in Mul.make_args(expr) if isinstance(f, Add) and any(map(has_delta, f.args))]
    if len(brackets) != 1:
        return written(expr)
    rest = expr / brackets[0]
    spread = Add(*(written(rest * term) for term in brackets[0].args))
    return common_factor(spread) if isinstance(spread, Add) else spread


def content_of(factors: Sequence[Expr]) -> tuple[Expr, list[Expr]]:
    """The rational number that all terms of a bracket share, and the brackets without it: 2a − 2b is 2 (a − b)."""
    content, rest = S.One, []
    for factor in factors:
        if isinstance(factor, Add) and not any(map(decimal, factor.as_coefficients_dict().values())):
            number, factor = factor.primitive()
            content *= number
        rest.append(factor)
    return content, rest


def content_in_front(expr: Mul) -> Expr:
    content, factors = content_of(expr.args)
    return Mul(content, *factors)


def _sigmoid(expr: Pow) -> Expr:
    if expr.exp == -1 and isinstance(expr.base, Add) and len(expr.base.args) == 2:
        one, other = expr.base.args
        return sigmoid(-other.args[0]) if one == 1 and isinstance(other, exp) else expr
    return expr


def _opposite(expr: Mul) -> Expr:
    for factor in expr.args:
        if isinstance(factor, sigmoid) and exp(-factor.args[0]) in expr.args:
            return expr / factor * exp(factor.args[0]) * sigmoid(-factor.args[0])
    return expr


def _tanh(expr: Mul) -> Expr:
    for factor in expr.args:
        base, power = factor.as_base_exp()
        if isinstance(base, cosh) and power.is_negative and sinh(*base.args) in expr.args:
            return expr * base / sinh(*base.args) * tanh(*base.args)
    return expr


FIRST, SECOND = Index("o0"), Index("o1")
SUMS = (
    # c (a − b) − c (b − a) → 2 c (a − b)
    Row("collect", Add, collected, lambda a, b, c: c * (a - b) - c * (b - a)),
    # a (1 − b) − b (1 − a) → a − b
    Row("multiply out", Add, multiplied_out, lambda a, b, c: a * (1 - b) - b * (1 - a)),
    # 1/(a + b) − a/(a + b)² → b/(a + b)²
    Row("cancel", Add, cancelled, lambda a, b, c: 1 / (a + b) - a / (a + b) ** 2),
    # a c + b c → (a + b) c;   a + b/c + 3/c → a + (b + 3)/c
    Row("common factor", Add, common_factor, lambda a, b, c: a * c + b * c),
)
PRODUCTS = (
    # c (2 a − 2 b) → 2 c (a − b)
    Row("content in front", Mul, content_in_front, lambda a, b, c: Mul(c, 2 * a - 2 * b, evaluate=False)),
    # a_j (δ_ij − a_i) → a_i (δ_ij − a_j)
    Row(
        "deltas first",
        Mul,
        deltas_first,
        lambda a, b, c: a.func(a.args[0], SECOND) * (delta(FIRST, SECOND) - a.func(a.args[0], FIRST)),
        letters=True,
    ),
    # exp(−x) σ(x) → σ(−x)
    Row("opposite", Mul, _opposite, lambda a, b, c: exp(-a) * sigmoid(a)),
    # sinh(x)/cosh(x) → tanh(x)
    Row("tanh", Mul, _tanh, lambda a, b, c: b * sinh(a) / cosh(a)),
)
POWERS = (
    # 1/(1 + exp(−x)) → σ(x)
    Row("sigmoid", Pow, _sigmoid, lambda a, b, c: 1 / (1 + exp(-a))),
)
ROWS: dict[type[Expr], tuple[Row, ...]] = {Add: SUMS, Mul: PRODUCTS, Pow: POWERS}

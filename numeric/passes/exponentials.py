"""Index expressions with exponentials in a form that stays inside the range of floating-point numbers.

What stands below a fraction line, under a root or in a logarithm is written as exp(m) r, where exp(m) is its largest
term, so that r neither overflows nor becomes 0; the exponents of all factors are then added before one exp is taken.

    e^f + e^g          m = max(f, g)      r = 1 + exp(−|f − g|)
    e^f − e^g                             r = −sign(f − g) expm1(−|f − g|)
    Σ_k c_k e^{f_k}    m = max_k f_k      r = Σ_k c_k exp(f_k − m)
    Σ_j c_j e^{g_j}    m = max_j g_j      r = Σ_j c_j exp(g_j − m)
    u v,  u^p          m_u + m_v,  p m_u

Where such a quotient has a name, it is called by it: e^f/(e^f + e^g) is sigmoid(f − g), (e^f − e^g)/(e^f + e^g) is
tanh((f − g)/2). A logarithm of positive terms is a logaddexp of their logarithms.

Where g may be −∞ everywhere (a fully masked row), m is replaced by 0 and the sum by at least 1, so that the weights
come out as 0 and the logarithm as −∞, without a NaN on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from sympy import Add, Expr, Function, Mul, Pow, Rational, S, cosh, exp, log, sinh, tanh

from gradproof.symbolic.equations.expr import (
    Access,
    Compare,
    Index,
    Reduce,
    compare,
    letters,
    names,
    open_,
    rebuild,
    reduce_,
    sum_,
)
from gradproof.symbolic.equations.functions import absolute, maximum, relu, sigmoid, sign, softplus, where

GROWING = (exp, sinh, cosh)


class log1p(Function):
    """log(1 + x)."""

    is_real = True


class expm1(Function):
    """exp(x) − 1."""

    is_real = True


class logaddexp(Function):
    """log(exp(x) + exp(y))."""

    is_real = True


@dataclass(frozen=True)
class Safe:
    """Makes expressions safe; `infinite` are the arrays that may hold −∞, `scope` the letters of the surroundings.

    >>> x, y = Access("x"), Access("y")
    >>> safe = Safe(frozenset(), frozenset())
    >>> safe.form(log(1 + exp(x))), safe.form(exp(x) / (exp(x) + exp(y))), safe.form(log(cosh(x)))
    (softplus(x), sigmoid(x - y), logaddexp(x, -x) - log(2))
    """

    infinite: frozenset[str]
    scope: frozenset[Index]

    def inside(self, axes: Iterable[tuple[Index, Expr, Expr]]) -> Safe:
        return Safe(self.infinite, self.scope.union(axis[0] for axis in axes))

    def form(self, expr: Expr) -> Expr:
        """An expression in its safe form."""
        if isinstance(expr, Access) or not expr.args:
            return expr
        if isinstance(expr, Reduce):
            body, axes = open_(expr, self.scope | letters(expr))
            return reduce_(expr.op, self.inside(axes).form(body), axes)
        if expr.has(*GROWING, sigmoid):  # first, since a quotient is rewritten together with what stands around it
            found = self.logarithm(expr.args[0]) if isinstance(expr, log) else self.quotient(expr)
            if found is not None:
                return found
        expr = rebuild(expr, [self.form(arg) for arg in expr.args])
        if isinstance(expr, log):
            return named_logarithm(expr.args[0])
        return named_difference(expr) if isinstance(expr, Add) else expr

    def exp(self, exponent: Expr) -> Expr:
        return exp(self.form(exponent))

    # ------------------------------------------------------------------------------------------------ scaled values

    def scaled(self, expr: Expr) -> tuple[Expr, Expr]:
        """m and r with expr = exp(m) r; r is in its safe form, m is not yet."""
        if not expr.has(*GROWING):
            return S.Zero, self.form(expr)
        if isinstance(expr, exp):
            return expr.args[0], S.One
        if isinstance(expr, (sinh, cosh)):
            return self.combined(terms(expr))
        if isinstance(expr, where):
            (f, a), (g, b) = map(self.scaled, expr.args[1:])
            f, g = (S.NegativeInfinity if rest == 0 else exponent for exponent, rest in ((f, a), (g, b)))
            return where(expr.args[0], f, g), where(self.form(expr.args[0]), a, b)
        if isinstance(expr, Mul):
            exponents, rests = zip(*map(self.scaled, expr.args), strict=True)
            exponent = Add(*exponents)
            return where(conditions(expr), exponent, S.NegativeInfinity) if exponent != 0 else exponent, Mul(*rests)
        if isinstance(expr, Pow) and isinstance(expr.exp, Rational):
            exponent, rest = self.scaled(expr.base)
            return expr.exp * exponent, rest**expr.exp
        if isinstance(expr, Add):
            return self.combined([self.scaled(term) for term in expr.args])
        total = self.total(expr)
        return (total.offset, total.rest) if total is not None else (S.Zero, self.form(expr))

    def combined(self, parts: Iterable[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
        """Σ_k r_k exp(f_k), scaled by its largest exponent."""
        rests = collected(parts)
        largest = reduce(larger, rests, S.NegativeInfinity) if rests else S.Zero
        if len(rests) == 2 and largest not in rests:
            (f, a), (g, b) = rests.items()
            below = self.form(-magnitude(f - g))
            if a == b:
                return largest, a * (1 + exp(below))
            if a == -b:
                return largest, -a * sign(self.form(f - g)) * expm1(below)
        offset = finite(largest) if largest.has(S.NegativeInfinity) and len(rests) > 1 else largest
        found = Add(*(rest * self.exp(exponent - offset) for exponent, rest in rests.items()))
        return largest, named_difference(found) if isinstance(found, Add) else found

    def total(self, expr: Expr) -> Total | None:
        """A sum Σ_j r_j exp(g_j) over letters, scaled by the largest g_j."""
        if not isinstance(expr, Reduce) or expr.op != "sum" or maximum_subtracted(expr):
            return None
        body, axes = open_(expr, self.scope | letters(expr))
        chosen = isinstance(body, where) and body.args[2] == 0
        mask, content = (body.args[0], body.args[1]) if chosen else (conditions(body), body / conditions(body))
        inner = self.inside(axes)
        exponent, rest = inner.scaled(content)
        if exponent == 0:
            return None
        masked = where(mask, exponent, S.NegativeInfinity)
        largest = reduce_("max", masked, axes) if letters(masked) & {axis[0] for axis in axes} else masked
        endless = masked.has(S.NegativeInfinity) or may_be_infinite(exponent, self.infinite)
        offset = finite(largest) if endless else largest
        term = rest * inner.exp(exponent - offset)
        found = sum_(where(mask, term, S.Zero) if chosen else mask * term, axes)
        return Total(largest, offset, found, maximum(found, S.One) if endless and rest == 1 else found)

    # ---------------------------------------------------------------------------------------------------- quotients

    def quotient(self, expr: Expr) -> Expr | None:
        """A product with exponentials below the line or under a root; None where there is nothing to be done."""
        if not isinstance(expr, (Mul, Pow)):
            return None
        exponent, rest, powers = S.Zero, [], {}
        for factor in Mul.make_args(expr):
            base, power = (factor, S.One) if isinstance(factor, exp) else factor.as_base_exp()
            if isinstance(factor, exp):
                exponent += factor.args[0]
            elif not isinstance(power, Rational) or not grows(base):
                rest.append(factor)
            elif holds_quotient(base) and not grows(named := self.form(base)):
                rest.append(named**power)  # 1 − e^f/(e^f + e^g) is a sigmoid
            else:
                powers[base] = power
        chosen = next((f for f in rest if isinstance(f, where) and f.has(*GROWING)), None)
        plain = exponent == 0 and all(power.is_Integer and power > 0 for power in powers.values())
        alone = exponent == 0 and chosen is None and len(powers) == 1 and isinstance(next(iter(powers)), Reduce)
        if alone or plain or not powers:
            return self.with_sigmoid(exponent, rest) if exponent != 0 else None
        if chosen is not None:  # the branch that is not taken must not meet the exponentials of the other
            others = expr / chosen
            return where(self.form(chosen.args[0]), *(self.form(branch * others) for branch in chosen.args[1:]))
        done = Mul(*map(self.form, rest))
        return done * (self.named_quotient(exponent, dict(powers)) or self.scaled_quotient(exponent, powers))

    def scaled_quotient(self, exponent: Expr, powers: dict[Expr, Expr]) -> Expr:
        found = S.One
        for base, power in powers.items():
            total = self.total(base) if power < 0 else None
            offset, rest = (total.offset, total.divisor) if total is not None else self.scaled(base)
            exponent, found = exponent + power * offset, found * rest**power
        return self.exp(exponent) * found

    def named_quotient(self, exponent: Expr, powers: dict[Expr, Expr]) -> Expr | None:
        """A quotient of sums of two exponentials by the names sigmoid and tanh, if it is one."""
        pairs = {base: two for base in powers if (two := pair(base)) is not None}
        if len(pairs) < len(powers) or not all(power.is_Integer for power in powers.values()):
            return None
        found = S.One
        for above, (c, f, d, g) in pairs.items():
            for below, (a, h, b, k) in pairs.items():
                if c * d < 0 < a * b and (f, g) == (h, k) and c / a == -d / b and powers[above] * powers[below] < 0:
                    count = min(abs(powers[above]), abs(powers[below])) * (1 if powers[above] > 0 else -1)
                    found *= (c / a * tanh(self.form((f - g + log(a / b)) / 2))) ** count
                    powers[above], powers[below] = powers[above] - count, powers[below] + count
        for base, (a, f, b, g) in pairs.items():
            degree = -powers[base]
            if degree < 0 or (degree > 0 and not a * b > 0) or degree > 8:
                return None
            choices = [(exponent - k * f - (degree - k) * g).expand() for k in range(int(degree) + 1)]
            k = min(range(len(choices)), key=lambda k: len(Add.make_args(choices[k])) - (choices[k] == 0))
            exponent = choices[k]
            ratio = (f - g + log(a / b)).expand()
            shares = sigmoid(self.form(ratio)), sigmoid(self.form(-ratio))
            found *= (shares[0] / a) ** k * (shares[1] / b) ** (degree - k)
        return found if exponent == 0 else None

    def with_sigmoid(self, exponent: Expr, rest: list[Expr]) -> Expr | None:
        """exp(f) sigmoid(−f) is sigmoid(f): the quotient exp(f)/(1 + exp f), whose division is a sigmoid already."""
        for factor in rest:
            base, count = factor.as_base_exp()
            if not isinstance(base, sigmoid) or not count.is_Integer or count < 1:
                continue
            argument = -base.args[0]
            for term in Add.make_args(exponent):
                multiple = term / argument
                if multiple.is_Integer and multiple >= 1:
                    turned = min(multiple, count)
                    left = Mul(*(f for f in rest if f is not factor)) * base ** (count - turned)
                    return self.form(left * exp(exponent - turned * argument)) * sigmoid(self.form(argument)) ** turned
        return None

    # --------------------------------------------------------------------------------------------------- logarithms

    def logarithm(self, argument: Expr) -> Expr | None:
        """log of an expression with exponentials; None where there is nothing to be done."""
        two = pair(argument)
        if two is not None and two[0] * two[2] < 0:  # a e^f − b e^g: the first is larger where there is a logarithm
            (a, f), (b, g) = sorted([two[:2], two[2:]], key=lambda term: -term[0])
            return log(a) + self.form(f) + log(-expm1(self.form(g - f) + log(-b / a)))
        found, rest = [], []
        for factor in Mul.make_args(argument):
            base, power = (factor, S.One) if isinstance(factor, exp) else factor.as_base_exp()
            value = self.log_of_positive(base) if isinstance(power, Rational) else None
            if value is not None:
                found.append(power * value)
            elif isinstance(power, Rational) and grows(base):
                exponent, inside = self.scaled(base)
                found.append(power * self.form(exponent))
                rest.append(inside**power)
            else:
                rest.append(self.form(factor))
        return Add(*found, named_logarithm(Mul(*rest))) if found else None

    def log_of_positive(self, expr: Expr) -> Expr | None:
        """log of an expression with exponentials and positive terms; None if it is none."""
        if not expr.has(*GROWING):
            return None
        if isinstance(expr, exp):
            return self.form(expr.args[0])
        if isinstance(expr, Pow):
            inside = self.log_of_positive(expr.base) if isinstance(expr.exp, Rational) else None
            return None if inside is None else expr.exp * inside
        if isinstance(expr, cosh):
            return logaddexp(self.form(expr.args[0]), self.form(-expr.args[0])) - log(2)
        if isinstance(expr, Reduce):
            total = self.total(expr)
            positive_total = total is not None and positive(total.divisor)
            return self.form(total.largest) + log(total.divisor) if total is not None and positive_total else None
        if not isinstance(expr, (Add, Mul)):
            return None
        others = expr.func(*(arg for arg in expr.args if not arg.has(*GROWING)))
        logs = [self.log_of_positive(arg) for arg in expr.args if arg.has(*GROWING)]
        if others != expr.func():
            others = self.form(others)
            logs.append(named_logarithm(others) if positive(others) else None)
        found = [value for value in logs if value is not None]
        if len(found) < len(logs) or (isinstance(expr, Add) and not grows(expr)):
            return None
        return Add(*found) if isinstance(expr, Mul) else log_of_sum(found)


@dataclass(frozen=True)
class Total:
    """Σ_j r_j exp(g_j) = exp(offset) rest; the offset is 0 where the largest g_j is −∞, the divisor is then 1."""

    largest: Expr
    offset: Expr
    rest: Expr
    divisor: Expr


# ------------------------------------------------------------------------------------------------------ parts of sums


def terms(expr: Expr) -> list[tuple[Expr, Expr]]:
    """(exponent, factor) of the two terms of cosh and sinh."""
    argument, half = expr.args[0], S.Half
    return [(argument, half), (-argument, half if isinstance(expr, cosh) else -half)]


def conditions(expr: Expr) -> Expr:
    """The conditions among the factors of a product."""
    return Mul(*(factor for factor in Mul.make_args(expr) if isinstance(factor, Compare)))


def finite(expr: Expr) -> Expr:
    """The expression, 0 where it is −∞."""
    return where(compare("<", S.NegativeInfinity, expr), expr, S.Zero)


def pair(expr: Expr) -> tuple[Expr, Expr, Expr, Expr] | None:
    """a, f, b, g of a sum a e^f + b e^g of two terms with numbers a, b."""
    if isinstance(expr, (sinh, cosh)):
        (f, a), (g, b) = terms(expr)
        return a, f, b, g
    if not isinstance(expr, Add) or len(expr.args) != 2:
        return None
    found = []
    for term in expr.args:
        factor, content = term.as_coeff_Mul()
        if not isinstance(content, exp) and content != 1:
            return None
        found.append((factor, content.args[0] if isinstance(content, exp) else S.Zero))
    (a, f), (b, g) = sorted(found, key=lambda term: term[1].sort_key())
    return a, f, b, g


def collected(parts: Iterable[tuple[Expr, Expr]]) -> dict[Expr, Expr]:
    """The factors of each exponent, added."""
    rests: dict[Expr, Expr] = {}
    for exponent, rest in parts:
        rests[exponent] = rests.get(exponent, S.Zero) + rest
    return {exponent: rest for exponent, rest in rests.items() if rest != 0}


def magnitude(expr: Expr) -> Expr:
    """|f|, numbers taken out."""
    number, rest = expr.as_coeff_Mul()
    return abs(number) * absolute(-rest if rest.could_extract_minus_sign() else rest)


def larger(f: Expr, g: Expr) -> Expr:
    """The larger of two exponents: |f| for f and −f, g where f − g is minus a square."""
    if f is -S.Infinity or not_negative((g - f).expand()):
        return g
    if not_negative((f - g).expand()):
        return f
    if (f + g).expand() == 0:
        return magnitude(f)
    if 0 in (f, g):
        return relu(f + g)
    return maximum(f, g)


def grows(expr: Expr) -> bool:
    """Whether an expression is a sum with an exponential that may be large or small: e^f + e^g, but not 1 + e^{−x²}."""
    if isinstance(expr, (sinh, cosh)):
        return True
    if not expr.has(*GROWING):
        return False
    if isinstance(expr, Reduce):
        return expr.op == "sum" and not maximum_subtracted(expr) and grows_somewhere(expr.body)
    return isinstance(expr, Add) and any(map(grows_somewhere, expr.args)) and not bounded(expr)


def grows_somewhere(expr: Expr) -> bool:
    if isinstance(expr, exp) or grows(expr):
        return True
    if isinstance(expr, where):
        return any(map(grows_somewhere, expr.args[1:]))
    if isinstance(expr, Pow):
        return isinstance(expr.exp, Rational) and grows_somewhere(expr.base)
    return isinstance(expr, Mul) and any(map(grows_somewhere, expr.args))


def holds_quotient(expr: Expr) -> bool:
    """Whether a term of a sum has exponentials below the line."""
    factors = [factor for term in Add.make_args(expr) for factor in Mul.make_args(term) if isinstance(factor, Pow)]
    return any(isinstance(f.exp, Rational) and f.exp < 0 and grows(f.base) for f in factors)


def bounded(expr: Add) -> bool:
    """Whether no term of a sum is larger than its number: 1 + e^{−x²}."""
    powers = [factor for term in expr.args for factor in Mul.make_args(term) if factor.has(*GROWING)]
    small = all(isinstance(power, exp) and not_negative(-power.args[0]) for power in powers)
    return small and any(term.is_positive for term in expr.args if not names(term))


def maximum_subtracted(expr: Reduce) -> bool:
    return any(part.op == "max" for power in expr.body.atoms(exp) for part in power.atoms(Reduce))


def not_negative(expr: Expr) -> bool:
    """Whether an expression is at least 0 as it stands: a number, a square, a sum or a product of such."""
    if expr.is_nonnegative is True or (isinstance(expr, Pow) and expr.exp.is_even is True):
        return True
    if isinstance(expr, Reduce):
        return expr.op == "sum" and not_negative(expr.body)
    if isinstance(expr, (absolute, relu)):
        return True
    return isinstance(expr, (Add, Mul)) and all(map(not_negative, expr.args))


def positive(expr: Expr) -> bool:
    """Whether an expression is larger than 0 as it stands."""
    if expr.is_positive is True or isinstance(expr, (exp, cosh, softplus, sigmoid)):
        return True
    if isinstance(expr, maximum):
        return any(map(positive, expr.args))
    if isinstance(expr, Reduce):
        return expr.op == "sum" and positive(expr.body)
    if isinstance(expr, Add):
        return all(map(not_negative_or_positive, expr.args)) and any(map(positive, expr.args))
    return isinstance(expr, (Mul, Pow)) and all(map(positive, expr.args[: 1 if isinstance(expr, Pow) else None]))


def not_negative_or_positive(expr: Expr) -> bool:
    return not_negative(expr) or positive(expr)


def may_be_infinite(expr: Expr, infinite: Iterable[str]) -> bool:
    """Whether an expression may be −∞ where one of these arrays is."""
    if isinstance(expr, Access):
        return expr.name in infinite
    if isinstance(expr, (Add, Mul, where, maximum)):
        return any(may_be_infinite(arg, infinite) for arg in expr.args if not isinstance(arg, Compare))
    return isinstance(expr, log) or expr is S.NegativeInfinity


# ---------------------------------------------------------------------------------------------- functions by their name


def log_of_sum(logs: Sequence[Expr]) -> Expr:
    """log(e^f + e^g + …); a number that all have in common stands outside: log(e^x/2 + e^y/2)."""
    numbers = [Add(*(term for term in Add.make_args(value) if not names(term))) for value in logs]
    shared = numbers[0] if len(set(numbers)) == 1 else S.Zero
    return shared + reduce(_log_of_two, (value - shared for value in logs))


def _log_of_two(f: Expr, g: Expr) -> Expr:
    number, other = (f, g) if not names(f) else (g, f)
    return logaddexp(f, g) if names(number) else number + softplus(other - number)


def named_logarithm(argument: Expr) -> Expr:
    """log(1 + f) as log1p(f), log sigmoid(f) as −softplus(−f)."""
    if isinstance(argument, sigmoid):
        return -softplus(-argument.args[0])
    if isinstance(argument, Add) and len(argument.args) == 2 and argument.args[0] == 1 and names(argument):
        return log1p(argument.args[1])
    return log(argument)


def named_difference(expr: Add) -> Expr:
    """exp(f) − 1 and 1 − exp(f), 1 − sigmoid(f)."""
    for number in (S.One, S.NegativeOne):
        for term in expr.args if number in expr.args else ():
            value = -number * term
            if isinstance(value, exp):
                return expr - term - number - number * expm1(value.args[0])
            if isinstance(value, sigmoid) and number == 1:
                return expr - term - number + sigmoid(-value.args[0])
    return expr

"""What both printed forms share: numbers pulled out of sums, signs, and a fixed, readable order of terms and factors.

SymPy multiplies numbers into sums, 2(a + b) = 2a + 2b, and orders terms by its own keys. Here a product becomes
`Term`: sign, number, factors and divisors; a sum becomes a list of signed terms, positive ones first.
"""

from __future__ import annotations

from functools import cached_property
from math import gcd
from typing import NamedTuple

from sympy import Add, Expr, Function, Integer, Mul, Number, Pow, Rational, S
from sympy.core.numbers import Infinity, NegativeInfinity, NumberSymbol

from gradproof.symbolic.equations.expr import Access, Compare, Reduce, accesses, names, rebuild
from gradproof.symbolic.equations.numbers import decimal
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.printing.nodes import (
    ONE,
    Big,
    Delta,
    Hadamard,
    Name,
    Node,
    Over,
    Pattern,
    Power,
    Relation,
    Sum,
    times,
)
from gradproof.symbolic.printing.nodes import Number as NumberNode

Key = tuple[bool, int, int, int]  # negative, kind, accesses, place of declaration


class Term(NamedTuple):
    """sign · top / bottom of numbers and constants, times the product of `factors` over that of `divisors`."""

    sign: int
    top: Expr
    bottom: Expr
    factors: tuple[Expr, ...]
    divisors: tuple[Expr, ...]


def is_constant(expr: Expr) -> bool:
    """Whether an expression holds numbers only: 2, √3, π, ∞."""
    if isinstance(expr, (Number, NumberSymbol, Infinity, NegativeInfinity)):
        return True
    return bool(expr.args) and not isinstance(expr, (Access, Reduce, Compare)) and all(map(is_constant, expr.args))


def base_and_power(expr: Expr) -> tuple[Expr, Expr]:
    return (expr.base, expr.exp) if isinstance(expr, Pow) else (expr, S.One)


class Terms:
    """Splits and orders the expressions of one system; results are remembered."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._primitive: dict[Expr, tuple[Rational, Expr]] = {}

    # --- numbers

    def primitive(self, expr: Expr) -> tuple[Rational, Expr]:
        """A rational number and the rest of which it is the common content: 2a − 2b is 2 · (a − b).

        >>> a, b = Access("a"), Access("b")
        >>> Terms(System({}, (), ())).primitive(2 * a * (6 * a - 4 * b))
        (4, (3*a - 2*b)*a)
        """
        found = self._primitive.get(expr)
        if found is None:
            found = self._primitive[expr] = self._content(expr)
        return found

    def _content(self, expr: Expr) -> tuple[Rational, Expr]:
        if isinstance(expr, Rational):
            return (expr, S.One) if expr else (S.One, expr)
        if isinstance(expr, Mul):
            parts = [self.primitive(factor) for factor in expr.args]
            number = Rational(1)
            for part, _ in parts:
                number *= part
            rests = [rest for _, rest in parts]
            for place, rest in enumerate(rests if number < 0 else ()):
                turned = _turned(rest)
                if turned is not None:  # −X (y − f(z)) is X (f(z) − y)
                    rests[place] = turned
                    return -number, Mul(*rests)
            return number, Mul(*rests)
        if isinstance(expr, Reduce) and expr.op == "sum":
            number, rest = self.primitive(expr.body)
            return number, expr if number == 1 else rebuild(expr, [expr.args[0], rest, *expr.args[2:]])
        if isinstance(expr, Add):
            return self._content_of_sum(expr)
        return S.One, expr

    def _content_of_sum(self, expr: Add) -> tuple[Rational, Expr]:
        parts = [self.primitive(term) for term in expr.args]
        numbers = [number for number, _ in parts]
        if any(decimal(abs(number)) for number in numbers):
            return S.One, expr  # 1 + 0.134145 x² stays as it was written
        divisor = numbers[0].q if all(number.q == numbers[0].q for number in numbers) else 0
        number = Rational(gcd(*(abs(n.p) for n in numbers)), divisor) if divisor else S.One
        if all(n.p < 0 for n in numbers) or self._main_negative(parts):
            number = -number
        return number, Add(*(n / number * rest for n, rest in parts))

    def _main_negative(self, parts: list[tuple[Rational, Expr]]) -> bool:
        """Whether a difference of plain names reads better the other way round: −(x − m) for m − x."""
        plain = [(n, rest) for n, rest in parts if isinstance(rest, Access) and rest.indices]
        if len(plain) < len(parts) or len(parts) != 2:
            return False
        (first, a), (second, b) = plain
        earlier = self.position(b.name) - self.position(a.name)
        return bool(earlier) and (first if earlier > 0 else second).p < 0

    def split(self, expr: Expr) -> Term:
        """A product in its parts.

        >>> a, b = Access("a"), Access("b")
        >>> Terms(System({}, (), ())).split(-3 * a / b / 2)
        Term(sign=-1, top=3, bottom=2, factors=(a,), divisors=(b,))
        """
        number, rest = self.primitive(expr)
        top, bottom = (abs(number), S.One) if decimal(abs(number)) else (Integer(abs(number.p)), Integer(number.q))
        factors, divisors = [], []
        for factor in Mul.make_args(rest):
            base, power = base_and_power(factor)
            down = isinstance(power, Rational) and power < 0
            if factor == 1:
                continue
            if is_constant(factor):
                if down:
                    bottom *= base**-power
                else:
                    top *= factor
            elif down:
                divisors.append(base**-power)
            else:
                factors.append(factor)
        top, bottom = _over_root(top, bottom)
        for factor in list(factors):  # x^p / x
            base, power = base_and_power(factor)
            if base in divisors and not power.is_number:
                divisors.remove(base)
                factors[factors.index(factor)] = base ** (power - 1)
        return Term(1 if number.p > 0 else -1, top, bottom, tuple(factors), tuple(divisors))

    # --- order

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.system.arrays)}

    def position(self, name: str) -> int:
        """Where an array was declared or defined; adjoints and tangents come first."""
        array = self.system.arrays.get(name)
        differential = array is not None and array.role.differential and array.role.marked
        return -1 if differential else self._positions.get(name, 10_000)

    def ordered(self, expr: Add) -> list[Expr]:
        """The terms of a sum: positive ones first; plain names before products, unless they were declared later."""
        return [term for _, term in self.keyed(expr)]

    def keyed(self, expr: Add) -> list[tuple[Key, Expr]]:
        """The ordered terms, each with the key that decides its place."""
        terms = list(expr.args)
        where = {term: self._where(term) for term in terms}

        def key(term: Expr) -> Key:
            number, rest = self.primitive(term)
            others = [where[other] for other in terms if other is not term]
            late = bool(others) and where[term] > min(others)
            kind = self._kind(rest, late) if names(rest) else 0 if number.is_Integer else 4
            return number.p < 0, kind, len(accesses(rest)), where[term]

        return sorted(((key(term), term) for term in terms), key=lambda pair: (pair[0], str(pair[1])))

    def _where(self, term: Expr) -> int:
        """Where the first array of a term was declared; −1 for one of adjoints only."""
        return min((place for name in names(term) if (place := self.position(name)) >= 0), default=-1)

    def _kind(self, rest: Expr, late: bool) -> int:
        """1: a name, 2: anything computed, 3: … + b, 4: … + ε; numbers have 0."""
        if isinstance(rest, Access):
            given = rest.name not in self.system.defined
            return 4 if given and not rest.indices else 3 if given and late else 1
        return 2


def _turned(expr: Expr) -> Expr | None:
    """−expr where data minus model, y − f(z) or Y − XW, is a factor of it, possibly under a sum."""
    if isinstance(expr, Reduce) and expr.op == "sum":
        inner = _turned(expr.body)
        return None if inner is None else rebuild(expr, [expr.args[0], inner, *expr.args[2:]])
    for factor in Mul.make_args(expr):
        if isinstance(factor, Add) and len(factor.args) == 2:
            data = [term for term in factor.args if isinstance(term, Access) and term.indices]
            model = [term for term in factor.args if isinstance(-term, (Reduce, Function))]
            if len(data) == len(model) == 1:
                return Mul(*(-other if other is factor else other for other in Mul.make_args(expr)))
    return None


def _over_root(top: Expr, bottom: Expr) -> tuple[Expr, Expr]:
    """√2/2 is written 1/√2, as it was meant."""
    for factor in Mul.make_args(top):
        base, power = base_and_power(factor)
        if power == S.Half and isinstance(base, Integer) and bottom != 1:
            whole, rest = bottom.as_coeff_Mul()
            if whole % base == 0:
                return top / factor, whole / base * rest * factor
    return top, bottom


def name_key(node: Node) -> tuple[int, str, int, str]:
    """The order of factors that commute: δ, scalars, names by their letters, what is computed, sums in brackets."""
    text = str(node)
    name = node.base if isinstance(node, Power) else node
    if isinstance(name, Name):
        return 0 if name.rank or name.at else -1, name.name.casefold(), len(text), text
    kinds = {NumberNode: -4, Relation: -3, Pattern: -3, Delta: -2, Sum: 2, Big: 3}
    return kinds.get(type(node), 1), "", len(text), text


def quotient(top: list[Node], bottom: list[Node], core: Node | None) -> Node:
    """Scalars over scalars, times a vector, matrix or sum: `S̄K/√d`, `(2/n) Xᵀ(XW − Y)`, `(1/s)[u − mean(u)]`."""
    if core is None:
        numerator = times(top)
        return Over(numerator, times(bottom)) if bottom else numerator
    if bottom and isinstance(core, Over) and core.bottom.rank:
        return quotient(top, [], Over(core.top, times([*bottom, core.bottom])))
    if not bottom:
        return times([*top, core])
    bracketed = [core] if isinstance(core, Sum) else [f for f in getattr(core, "factors", ()) if isinstance(f, Sum)]
    numeric = all(isinstance(node, NumberNode) and is_constant(node.value) for node in bottom)
    spread = isinstance(core, Hadamard) or any(isinstance(node, Big) for node in getattr(core, "factors", [core]))
    plain = not top and not spread and (not bracketed or numeric)
    if plain:
        return Over(core, times(bottom))
    return times([Over(times(top), times(bottom)), core])


def hadamard(factors: list[Node]) -> Node:
    """A product entry by entry, nested ones opened, in a fixed order."""
    flat = [inner for factor in factors for inner in (factor.factors if isinstance(factor, Hadamard) else (factor,))]
    below = [factor.bottom for factor in flat if isinstance(factor, Over) and factor.top == ONE and factor.bottom.rank]
    if below and len(flat) > len(below):  # x ⊙ (1 ⊘ y) is x ⊘ y
        above = [factor for factor in flat if not (isinstance(factor, Over) and factor.bottom in below)]
        return Over(hadamard(above), hadamard(below))
    flat = sorted((factor for factor in flat if factor != ONE), key=name_key)
    return ONE if not flat else flat[0] if len(flat) == 1 else Hadamard(tuple(flat))

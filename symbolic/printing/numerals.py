"""How numbers, sizes and index expressions are written: `√(2/π)`, `t−1`, `i ≥ 1`; and the spellings that they need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from sympy import Add, Expr, Integer, Mul, Pow, Rational, S, Symbol
from sympy.core.numbers import Infinity, NegativeInfinity

from gradproof.symbolic.equations.expr import Access, Index
from gradproof.symbolic.equations.numbers import decimal
from gradproof.symbolic.equations.roles import PLAIN, Role
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.printing.naming import trimmed

SUM, HADAMARD, PRODUCT, POWER, ATOM = range(5)  # how tightly things bind, from loose to tight
Piece = tuple[str, int]  # text, and how tightly its loosest part binds


class NumeralPrinter(ABC):
    """Writes SymPy expressions without reductions; subclasses spell the single signs."""

    minus, infinity, pi, euler, free_axis = "−", "", "", "", "·"

    def __init__(self, system: System) -> None:
        self.system = system

    # --- what subclasses spell

    @abstractmethod
    def spelled(self, name: str, role: Role = PLAIN) -> tuple[str, bool]:
        """The name of an array of that role, and whether an index can follow it directly."""

    @abstractmethod
    def lowered(self, base: str, index: str) -> str: ...

    @abstractmethod
    def raised(self, base: str, exponent: str) -> str: ...

    @abstractmethod
    def root(self, inside: str, simple: bool) -> str: ...

    @abstractmethod
    def fraction(self, top: Piece, bottom: Piece) -> Piece: ...

    @abstractmethod
    def bracket(self, inside: str, square: bool = False) -> str: ...

    @abstractmethod
    def function(self, name: str) -> str: ...

    @abstractmethod
    def relation(self, op: str, left: str, right: str) -> str: ...

    @abstractmethod
    def side_by_side(self, parts: Sequence[str]) -> str: ...

    @abstractmethod
    def squeezed(self, text: str) -> str:
        """The text without spaces around + and −, for an index."""

    @abstractmethod
    def bold(self, sign: str) -> str: ...

    # --- names

    def sign(self, sign: str, name: str) -> str:
        """A sign of mathematics, in bold where an array or a size has its name: the identity beside an array I."""
        return self.bold(sign) if name in self.system.taken else sign

    def role(self, name: str) -> Role:
        array = self.system.arrays.get(name)
        return array.role if array is not None else PLAIN

    def name(self, name: str, at: Sequence[Expr | None] = ()) -> str:
        """An array, or part of it."""
        text, simple = self.spelled(name, self.role(name))
        shown = trimmed(at)
        return self.lowered(text if simple else f"({text})", self.indices(shown)) if shown else text

    def symbol(self, symbol: Symbol) -> str:
        return self.spelled(symbol.name)[0]

    # --- numbers and indices

    def indices(self, indices: Sequence[Expr | None]) -> str:
        texts = [self.free_axis if index is None else self.squeezed(self.expr(index)[0]) for index in indices]
        alike = {text.isdigit() for text in texts} in ({True}, {False}) and all(len(text) == 1 for text in texts)
        return ("" if alike else ",").join(texts)

    def expr(self, expr: Expr) -> Piece:
        """A number, a size, a letter or an index expression."""
        if isinstance(expr, (Infinity, NegativeInfinity)):
            return ("" if expr > 0 else self.minus) + self.infinity, ATOM
        if expr is S.Pi:
            return self.sign(self.pi, "pi"), ATOM
        if expr is S.Exp1:
            return self.euler, ATOM
        if isinstance(expr, Integer):
            return str(abs(expr)) if expr >= 0 else f"{self.minus}{-expr}", ATOM if expr >= 0 else SUM
        if isinstance(expr, Rational):
            return self.rational(expr)
        if isinstance(expr, Index):
            return expr.name, ATOM
        if isinstance(expr, Symbol):
            return self.symbol(expr), ATOM
        if isinstance(expr, Access):
            return self.name(expr.name, expr.indices), ATOM
        if isinstance(expr, Add):
            return self.affine(expr), SUM
        if isinstance(expr, Mul):
            return self.monomial(expr)
        if isinstance(expr, Pow):
            return self.numeric_power(expr)
        inside = ", ".join(self.expr(arg)[0] for arg in expr.args)
        return self.function(type(expr).__name__.lower()) + self.bracket(inside), ATOM

    def rational(self, expr: Rational) -> Piece:
        sign = self.minus if expr < 0 else ""
        digits = decimal(abs(expr))
        if not digits:
            text, level = self.fraction((str(abs(expr.p)), ATOM), (str(expr.q), ATOM))
            return sign + text, SUM if sign else level
        mantissa, _, power = digits.partition("e")
        if not power:
            return sign + mantissa, SUM if sign else ATOM
        scale = self.raised("10", power.replace("-", self.minus))
        return sign + (scale if mantissa == "1" else f"{mantissa}·{scale}"), SUM if sign else PRODUCT

    def affine(self, expr: Add) -> str:
        def key(term: Expr) -> tuple[bool, bool, str]:
            return _is_negative(term), term.is_Number, str(term)

        text = ""
        for place, term in enumerate(sorted(expr.args, key=key)):
            inner = self.expr(-term if _is_negative(term) else term)[0]
            if place:
                text += f" {self.minus if _is_negative(term) else '+'} {inner}"
            else:
                text = (self.minus if _is_negative(term) else "") + inner
        return text

    def monomial(self, expr: Mul) -> Piece:
        if _is_negative(expr):
            return self.minus + self.expr(-expr)[0], SUM
        top, bottom = [], []
        for factor in expr.args:
            if isinstance(factor, Rational):
                top += [Integer(factor.p)] if factor.p != 1 else []
                bottom += [Integer(factor.q)] if factor.q != 1 else []
            elif isinstance(factor, Pow) and factor.exp.is_negative:
                bottom.append(1 / factor)
            else:
                top.append(factor)
        if bottom:
            return self.fraction(self.factors(top), self.factors(bottom))
        return self.factors(top)

    def factors(self, factors: Sequence[Expr]) -> Piece:
        roots = [f.base for f in factors if isinstance(f, Pow) and f.exp == S.Half and f.is_number]
        if len(roots) > 1:  # √2 √π = √(2π)
            inside = self.side_by_side([self.expr(base)[0] for base in roots])
            others = [factor for factor in factors if not (isinstance(factor, Pow) and factor.base in roots)]
            root = self.root(inside, False)
            return (self.side_by_side([root, self.factors(others)[0]]), PRODUCT) if others else (root, POWER)
        if not factors:
            return "1", ATOM
        if len(factors) == 1:
            return self.expr(factors[0])
        ordered = sorted(factors, key=lambda f: (not f.is_number, str(f)))
        pieces = [self.expr(factor) for factor in ordered]
        return self.side_by_side([t if level >= PRODUCT else self.bracket(t) for t, level in pieces]), PRODUCT

    def numeric_power(self, expr: Pow) -> Piece:
        if expr.exp == S.Half:
            text, level = self.expr(expr.base)
            return self.root(text, level == ATOM), POWER
        if expr.exp.is_negative:
            return self.fraction(("1", ATOM), self.expr(1 / expr))
        base, level = self.expr(expr.base)
        base = base if level == ATOM else self.bracket(base)
        return self.raised(base, self.squeezed(self.expr(expr.exp)[0])), POWER

    def related(self, op: str, left: Expr, right: Expr) -> str:
        op, left, right = solved(op, left, right)
        return self.relation(op, self.expr(left)[0], self.expr(right)[0])


def _is_negative(term: Expr) -> bool:
    number = term.as_coeff_Mul()[0]
    return bool(number.is_negative)


REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def bounded(op: str, left: Expr, right: Expr, summed: Collection[Index] = ()) -> tuple[str, Expr, Expr]:
    """An inequality between letters with all of them on its left, one that is not summed with a plus: k − 2i ≥ 0.

    >>> bounded("<=", Integer(0), Index("k") - 2 * Index("i"), [Index("i")])
    ('>=', -2*i + k, 0)
    """
    if op in ("==", "!=") or isinstance(left, Index) or left.has(Access) or right.has(Access):
        return op, left, right
    difference = (right - left if op in ("<", "<=") else left - right).expand()
    terms = [term for term in Add.make_args(difference) if term.atoms(Index)]
    above, rest = Add(*terms), difference - Add(*terms)  # above + rest ≥ 0
    strict = len(op) == 1
    if terms and above.coeff(min(above.atoms(Index), key=lambda x: (x in summed, str(x)))) < 0:
        return "<" if strict else "<=", -above, rest
    return ">" if strict else ">=", above, -rest


def solved(op: str, left: Expr, right: Expr, letter: Index | None = None) -> tuple[str, Expr, Expr]:
    """A relation with a letter alone on its left: i ≥ 1 for 0 ≤ i − 1.

    >>> solved("<=", Integer(0), Index("i") - 1)
    ('>=', i, 1)
    """
    if left.has(Access) or right.has(Access):
        swap = op in ("==", "!=") and isinstance(left, Index) and not isinstance(right, Index) and letter != left
        return (op, right, left) if swap else (op, left, right)
    difference = (right - left).expand()
    candidates = [letter] if letter is not None else sorted(difference.atoms(Index), key=str)
    for own in candidates:
        slope = difference.coeff(own)
        if slope in (1, -1):
            rest = (-slope * (difference - slope * own)).expand()
            return REVERSED[op] if slope == 1 else op, own, rest
    return op, left, right

"""The normal form of index expressions, in which equal ones (of a large class) are the same: it proves a claim.

Products are multiplied out over sums, sums are pushed into their terms and flattened to sums of products, what a sum
does not reach leaves it, functions keep normal forms as arguments. Powers of brackets stay whole, and what divides out
is divided out: with B = l + r and l the largest product of B,

    l · B^q  =  B^(q+1) − r · B^q        for q < 0

so that Σ_j exp(s_j)/Z = 1 and mean(c²)/(v + ε) = 1 − ε/(v + ε) come out by themselves. Two expressions are equal if the
normal form of their difference is 0; the converse holds for what is rational in entries, sums and exponentials of
independent arguments. The work is bounded: beyond that, `NoNormalForm` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from sympy import Add, Expr, Function, Integer, Mul, NumberSymbol, Pow, Rational, Symbol, exp, log

from gradproof.symbolic.equations.definitions import plain
from gradproof.symbolic.equations.expr import Access, Axis, Compare, Implicit, Index, Reduce, letters, open_, reduce_
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.folding.facts import Facts, declared
from gradproof.symbolic.judging.identities import ADDITION, IN_TERMS_OF, MAX_ANGLES, SQUARES
from gradproof.symbolic.judging.normal_conditions import Conditions
from gradproof.symbolic.judging.normal_powers import Powers
from gradproof.symbolic.judging.normal_products import Products
from gradproof.symbolic.judging.normal_sums import Sums
from gradproof.symbolic.judging.pieces import entry
from gradproof.symbolic.judging.polynomials import (
    ONE,
    Mono,
    NoNormalForm,
    Poly,
    added,
    atom,
    constant,
    contains,
    expr_of,
    fraction,
    frozen,
    head,
    merged,
    number_root,
    positive,
    scaled,
)

Scope = dict[Index, tuple[Expr, Expr]]
MAX_CASES = 4  # conditions inside one function


def vanishes(
    system: System, difference: Expr, axes: Sequence[Axis], keep: Collection[str] = (), **options: object
) -> bool:
    """Whether the normal form of an expression is 0; arrays in `keep` are not replaced by their definitions.

    Raises NoNormalForm where the expression is too large.
    """
    normal = Normal(system, keep, **options)  # type: ignore[arg-type]
    scope = {letter: (lo, hi) for letter, lo, hi in axes}
    return not normal.cleared(normal.of(difference, scope), scope)


class Normal:
    """Computes normal forms of expressions over one system.

    `generic` leaves out single points, such as kinks. `patient` waits with a delta until it can be solved without a
    condition, and splits a sum where a condition on its letter begins to hold.
    """

    def __init__(
        self,
        system: System,
        keep: Collection[str] = (),
        facts: Facts | None = None,
        generic: bool = False,
        patient: bool = False,
        budget: int = 2500,
    ) -> None:
        self.system, self.keep, self.generic, self.patient = system, frozenset(keep), generic, patient
        self.facts = declared(system) if facts is None else facts
        self.budget = budget  # of work: the same on every machine
        self.memo: dict[object, Poly] = {}
        self.splits: list[tuple[Expr, Expr, Scope]] = []  # sums that were split, what became of them, and where
        self.conditions = Conditions(self)
        self.sums = Sums(self)
        self.powers = Powers(self)
        self.products = Products(self)
        self.positives = frozenset(a.name for a in system.arrays.values() if "simplex" in a.properties)

    def spend(self, amount: int = 1) -> None:
        self.budget -= amount
        if self.budget < 0:
            raise NoNormalForm("the normal form is too large")

    def positive(self, expr: Expr) -> bool:
        """Whether an atom is positive wherever it is defined."""
        return positive(expr, self.positives)

    # --- from expressions

    def of(self, expr: Expr, scope: Scope) -> Poly:
        """The normal form of an expression whose free letters run over the ranges in `scope`."""
        key = (expr, *((letter, *scope[letter]) for letter in sorted(letters(expr), key=str)))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._of(expr, scope)
        return found

    def _of(self, expr: Expr, scope: Scope) -> Poly:
        self.spend()
        if isinstance(expr, Rational):
            return constant(fraction(expr))
        if isinstance(expr, Access):
            return self.access(expr, scope)
        if isinstance(expr, Add):
            return added(self.of(arg, scope) for arg in expr.args)
        if isinstance(expr, Mul):
            return self.product((self.of(arg, scope) for arg in expr.args), scope)
        if isinstance(expr, Pow):
            return self.powers.pow(expr, scope)
        if isinstance(expr, Reduce):
            return self.reduction(expr, scope)
        if isinstance(expr, Compare):
            return self.conditions.of(expr.op, *expr.sides, scope)
        if isinstance(expr, Function):
            return self.function(expr, scope)
        if isinstance(expr, (Symbol, NumberSymbol)):
            return atom(expr)
        raise NoNormalForm(f"{type(expr).__name__} has no normal form")

    def definition(self, expr: Access, scope: Scope) -> Expr | None:
        """The right side of the equation of an array, at the indices of an access; None where it is not put in."""
        if expr.name in self.keep or expr.name not in self.system.defined:
            return None
        found = plain(self.system, expr.name)
        if found is None:
            return entry(self.system, expr, [(letter, *ends) for letter, ends in scope.items()])
        if isinstance(found.body, Implicit):
            return None
        return found.at(expr.indices)

    def access(self, expr: Access, scope: Scope) -> Poly:
        body = self.definition(expr, scope)
        if body is not None:
            return self.of(body, scope)
        indices = [index if isinstance(index, Symbol) else expr_of(self.of(index, scope)) for index in expr.indices]
        return self.sums.entry(Access(expr.args[0], *indices), scope)

    def reduction(self, expr: Reduce, scope: Scope) -> Poly:
        body, axes = open_(expr, scope)
        inner = scope | {letter: (lo, hi) for letter, lo, hi in axes}
        poly = self.of(body, inner)
        if expr.op == "sum":
            return self.sums.total(poly, axes, scope)
        if expr.op == "prod":
            return self.products.total(poly, axes, scope)
        if not poly:
            return {}
        return atom(reduce_(expr.op, expr_of(poly), axes))

    def function(self, expr: Function, scope: Scope) -> Poly:
        kind = type(expr)
        if kind is not where and isinstance(chosen := self.unfolded(expr.args[0], scope), where):
            # f(a if c else b) = f(a) if c else f(b): exp(−∞) is 0
            condition, a, b = chosen.args
            return self.of(where(condition, kind(a, *expr.args[1:]), kind(b, *expr.args[1:])), scope)
        if kind is where:
            condition, a, b = expr.args
            weight = self.of(condition, scope)
            if any(not isinstance(base, Compare) for mono in weight for base, _ in mono):
                raise NoNormalForm("a condition that is a number")
            rest = added([constant(1), scaled(weight, -1)])
            return added(self.product([w, self.of(x, scope)], scope) for w, x in ((weight, a), (rest, b)))
        if kind in IN_TERMS_OF:
            return self.of(IN_TERMS_OF[kind](*expr.args), scope)
        if len(expr.args) != 1:
            raise NoNormalForm(f"{kind.__name__} has no normal form")
        rule = {exp: self.powers.exponential, log: self.powers.logarithm}.get(kind)
        if rule is None:
            known = self.of_sum if kind in ADDITION else self.opaque
            rule = lambda poly, scope: known(kind, poly, scope)  # noqa: E731
        return self.by_cases(self.of(expr.args[0], scope), rule, scope)

    def of_sum(self, kind: type, poly: Poly, scope: Scope) -> Poly:
        """sin(2a + b) by sin and cos of a and b."""
        parts: list[Poly] = []
        for mono, number in poly.items():
            parts += [{mono: Fraction(1 if number > 0 else -1, number.denominator)}] * min(abs(number.numerator), 9)
        if not 1 < len(parts) <= MAX_ANGLES:
            return self.opaque(kind, poly, scope)
        return self.of(ADDITION[kind](expr_of(parts[0]), expr_of(added(parts[1:]))), scope)

    def opaque(self, kind: Callable[[Expr], Expr], poly: Poly, scope: Scope) -> Poly:
        """A function of which only signs are known."""
        value = kind(expr_of(poly))
        number, rest = value.as_coeff_Mul()  # SymPy knows that sin(−x) = −sin(x)
        if type(rest) is kind:
            return scaled(atom(rest), fraction(number))
        return self.of(value, scope)

    def by_cases(self, poly: Poly, rule: Callable[[Poly, Scope], Poly], scope: Scope, depth: int = 0) -> Poly:
        """f(p) = c f(p where c is 1) + (1 − c) f(p where c is 0), for every condition c in p."""
        found = sorted({base for mono in poly for base, _ in mono if isinstance(base, Compare)}, key=str)
        if not found or depth == MAX_CASES:
            return rule(poly, scope)
        condition = frozenset(((found[0], Fraction(1)),))
        held = added({mono - condition: number} for mono, number in poly.items())
        failed = {mono: number for mono, number in poly.items() if not condition <= mono}
        yes = self.by_cases(self.product([held], scope), rule, scope, depth + 1)
        no = self.by_cases(failed, rule, scope, depth + 1)
        weight: Poly = {condition: Fraction(1)}
        return added([self.product([weight, yes], scope), no, scaled(self.product([weight, no], scope), -1)])

    def unfolded(self, expr: Expr, scope: Scope) -> Expr:
        """An access as what it is defined as, where that is put in."""
        while isinstance(expr, Access) and (body := self.definition(expr, scope)) is not None:
            expr = body
        return expr

    # --- products and powers

    def product(self, polys: Iterable[Poly], scope: Scope) -> Poly:
        result = constant(1)
        for poly in polys:
            if len(result) * len(poly) > self.budget:
                raise NoNormalForm("the product is too large")
            result = added(
                self.settled(merged(a, b), number * factor, scope)
                for a, number in result.items()
                for b, factor in poly.items()
            )
        return result

    def settled(self, factors: dict[Expr, Fraction], number: Fraction, scope: Scope) -> Poly:
        """The normal form of a product of atoms."""
        self.spend()
        for base, power in factors.items():
            kind = type(base)
            if kind is Integer:
                if not 0 < power < 1:
                    root = number_root(Fraction(int(base)), power)
                    return self._again(factors, base, scaled(root, number), scope)
            elif kind is Compare:
                found = self.conditions.applied(factors, base, number, scope)
                if found is not None:
                    return found
            elif kind in (Add, Mul) or (kind is Pow and base.exp.is_number):
                if power >= 1:
                    whole = self.of(base, scope)
                    rest = merged(factors.items(), ((base, Fraction(-1)),))
                    return self.product([whole, self.settled(rest, number, scope)], scope)
                if power < 0 and (found := self.divided(factors, base, number, scope)) is not None:
                    return found
            elif kind in SQUARES and power >= 2:
                rest = merged(factors.items(), ((base, Fraction(-2)),))
                square = self.of(SQUARES[kind](base.args[0]), scope)
                return self.product([square, self.settled(rest, number, scope)], scope)
        return {frozen(factors): number} if number else {}

    def _again(self, factors: dict[Expr, Fraction], base: Expr, value: Poly, scope: Scope) -> Poly:
        rest = {other: power for other, power in factors.items() if other != base}
        return self.product([value, self.settled(rest, Fraction(1), scope)], scope)

    def divided(self, factors: dict[Expr, Fraction], base: Expr, number: Fraction, scope: Scope) -> Poly | None:
        """l · B^q as B^(q+1) − r · B^q, if the largest product l of B is among the factors."""
        whole = self.of(base, scope)
        top = head(whole)
        if top == ONE:
            return None
        if not contains(factors, top):
            return self.apart(factors, base, whole, top, number, scope)
        rest = merged(factors.items(), ((b, -power) for b, power in top))
        return self.quotient(rest, base, whole, top, number, scope)

    def apart(
        self, factors: dict[Expr, Fraction], base: Expr, whole: Poly, top: Mono, number: Fraction, scope: Scope
    ) -> Poly | None:
        """Partial fractions: for B = l + r, B^q / l is (B^(q+1)/l − B^q)/r, if l is one atom and r one product."""
        ((atom_, power), *more) = top
        if more or len(whole) != 2 or factors.get(atom_, Fraction(0)) >= 0 or power < 0:
            return None
        ((rest, value),) = ((mono, value) for mono, value in whole.items() if mono != top)
        number /= value
        over = merged(factors.items(), ((b, -p) for b, p in rest))
        up = self.settled(merged(over.items(), ((base, Fraction(1)),)), number, scope)
        down = self.settled(merged(over.items(), top), -number * whole[top], scope)
        return added([up, down])

    def quotient(
        self, rest: dict[Expr, Fraction], base: Expr, whole: Poly, top: Mono, number: Fraction, scope: Scope
    ) -> Poly:
        """`rest` · l with the l taken out already."""
        number /= whole[top]
        others = {mono: -value for mono, value in whole.items() if mono != top}
        up = self.settled(merged(rest.items(), ((base, Fraction(1)),)), number, scope)
        down = self.product([others, self.settled(rest, number, scope)], scope) if others else {}
        return added([up, down])

    # --- the end

    def cleared(self, poly: Poly, scope: Scope) -> Poly:
        """The sum times its denominators, which are not 0 where it has a value: 0 if and only if the sum is."""
        for _ in range(8):
            powers = merged_denominators(poly)
            if not poly or not powers:
                return poly
            base, power = max(powers.items(), key=lambda item: str(item[0]))
            poly = self.product([poly, {frozen({base: power}): Fraction(1)}], scope)
        return poly


def merged_denominators(poly: Mapping[Mono, Fraction]) -> dict[Expr, Fraction]:
    """The brackets that a sum divides by, with the power that clears them."""
    found: dict[Expr, Fraction] = {}
    for mono in poly:
        for base, power in mono:
            if power < 0 and isinstance(base, (Add, Mul, Pow)):
                found[base] = max(found.get(base, Fraction(0)), Fraction(-(power.numerator // power.denominator)))
    return found

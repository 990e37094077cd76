"""Expectations by moment algebra: one random array after the other is integrated out.

Random arrays are independent, and so are the entries of each. Of a sum of products this leaves E[q_I q_J …] for entries
of one array at indices I, J, …, which may be equal. By the moment–cumulant formula

    E[q_I q_J …] = Σ over partitions of the factors  Π over blocks  κ(block) · δ(all indices of the block are equal)

since a joint cumulant is 0 if some of its entries are independent of the others. For two factors this is the familiar
E[q_I q_J] = μ² + δ(I, J) σ². What is no power of an entry has its rule in `function_moment`, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from sympy import Add, Expr, Integer, Mul, Pow, S, Symbol

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Index,
    Reduce,
    accesses,
    compare,
    delta,
    fresh,
    letters,
    map_accesses,
    names,
    negate,
    open_,
    sum_,
)
from gradproof.symbolic.equations.functions import absolute, relu, where
from gradproof.symbolic.folding.facts import Facts
from gradproof.symbolic.folding.fold import normalise
from gradproof.symbolic.statistics.closed import decided
from gradproof.symbolic.statistics.distributions import C, Law, M, cumulant, partitions, power_cumulant

MAX_FACTORS = 6  # entries of one array in one product: there are 203 partitions of six
MAX_POWER = 8


class Unsupported(Exception):
    """This array cannot be integrated out now, because of a factor and for a reason."""

    def __init__(self, factor: Expr, why: str) -> None:
        super().__init__(factor, why)
        self.factor, self.why = factor, why


@dataclass(frozen=True)
class Term:
    """A product under a sum over `axes`."""

    axes: tuple[Axis, ...]
    factors: tuple[Expr, ...]

    @property
    def expr(self) -> Expr:
        return sum_(Mul(*self.factors), self.axes)


def terms(expr: Expr, wanted: Callable[[Expr], bool], scope: frozenset[Index]) -> list[Term]:
    """An expression as a sum of products; only what holds something `wanted` is multiplied out.

    Sums that are multiplied get letters of their own: (Σ_i x_i)² is Σ_ij x_i x_j.

    >>> i, n = Index("i"), Symbol("n")
    >>> x = Access("x", i)
    >>> [term.expr for term in terms(sum_(x, [(i, 0, n)]) ** 2 + 1, lambda e: "x" in names(e), frozenset())]
    [1, sum[b2=0:n, b1=0:n](x[b1]*x[b2])]
    """
    if not wanted(expr):
        return [Term((), (expr,))]
    if isinstance(expr, Add):
        return [term for arg in expr.args for term in terms(arg, wanted, scope)]
    if isinstance(expr, Mul):
        return _multiplied(expr.args, wanted, scope)
    if isinstance(expr, Pow) and isinstance(expr.exp, Integer) and 0 < expr.exp <= MAX_POWER:
        inner = terms(expr.base, wanted, scope)
        if len(inner) > 1 or inner[0].axes or len(inner[0].factors) > 1:
            return _multiplied([expr.base] * int(expr.exp), wanted, scope)
    if isinstance(expr, where):  # a branch that is not taken counts nothing
        condition, one, other = expr.args
        return terms(condition * one, wanted, scope) + terms(negate(condition) * other, wanted, scope)
    if isinstance(expr, Reduce) and expr.op == "sum":
        body, axes = open_(expr, scope)
        inner_scope = scope.union(axis[0] for axis in axes)
        return [Term((*axes, *term.axes), term.factors) for term in terms(body, wanted, inner_scope)]
    return [Term((), (expr,))]


def _multiplied(factors: Sequence[Expr], wanted: Callable[[Expr], bool], scope: frozenset[Index]) -> list[Term]:
    found = [Term((), ())]
    for factor in factors:
        grown = []
        for left in found:
            taken = scope.union(axis[0] for axis in left.axes)
            for right in terms(factor, wanted, taken):
                grown.append(Term((*left.axes, *right.axes), (*left.factors, *right.factors)))
        found = grown
    return found


def readers(arrays: Iterable[str]) -> Callable[[Expr], bool]:
    """Whether an expression reads one of the arrays."""
    wanted = frozenset(arrays)
    return lambda expr: not wanted.isdisjoint(names(expr))


def expanded(expr: Expr, arrays: Iterable[str], scope: frozenset[Index]) -> Expr:
    """The expression as a sum of products of entries of the given arrays."""
    return Add(*(term.expr for term in terms(expr, readers(arrays), scope)))


@dataclass
class Needed:
    """What was asked of one law: the highest power of an entry, and whether a function of an entry occurred."""

    degree: int = 0
    functions: bool = False


@dataclass
class Integral:
    """Integrates arrays out of expressions whose free letters run over `outer`."""

    laws: Mapping[str, Law]
    outer: Sequence[Axis]
    facts: Facts = field(default_factory=Facts)
    needed: dict[str, Needed] = field(default_factory=dict)
    unknown: dict[Symbol, tuple[str, Expr]] = field(default_factory=dict)  # E f(x) that no rule gives
    lengths: list[Expr] = field(default_factory=list)  # of ranges: assumed not to be negative

    @property
    def scope(self) -> frozenset[Index]:
        return frozenset(axis[0] for axis in self.outer)

    def tidy(self, expr: Expr) -> Expr:
        """Deltas solved, sums of constants done; term by term, so that equal terms meet."""
        for _ in range(4):
            before = expr
            found = (normalise(term, self.outer, self.facts) for term in Add.make_args(expr))
            expr = Add(*(decided(term, self.lengths) for term in found))
            if expr == before:
                break
        return expr

    def over(self, name: str, expr: Expr) -> Expr:
        """The expectation over the entries of one array.

        Raises Unsupported where it occurs in a way that no rule covers.
        """
        law = self.laws[name]
        found = []
        for term in terms(expr, readers([name]), self.scope):
            term = split_coincidences(term, law, self.scope) if law.family == "categorical" else term
            rest = [factor for factor in term.factors if name not in names(factor)]
            groups: dict[Access, Expr] = {}
            for factor in term.factors:
                if name in names(factor):
                    entry = single_entry(factor, name)
                    groups[entry] = groups.get(entry, S.One) * factor
            if len(groups) > MAX_FACTORS:
                factors = Mul(*(factor for factor in term.factors if name in names(factor)))
                raise Unsupported(factors, f"it has more than {MAX_FACTORS} entries of {name}")
            scope = self.scope | letters(Mul(*term.factors)) | {axis[0] for axis in term.axes}
            for value in self.joint(law, list(groups.items()), scope):
                found.append(sum_(Mul(*rest, value), term.axes))
        return Add(*found)

    def joint(self, law: Law, groups: Sequence[tuple[Access, Expr]], scope: frozenset[Index]) -> list[Expr]:
        """E of a product of functions of entries of one array: a list of terms, with a delta for equal indices."""
        found = []
        for parting in partitions(tuple(range(len(groups)))):
            same = [equal(groups[block[0]][0], groups[other][0]) for block in parting for other in block[1:]]
            if S.Zero in same:
                continue
            cumulants = [self.block(law, [groups[position] for position in block], scope) for block in parting]
            for choice in product(*cumulants):
                value = Mul(*same, *choice)
                if value != 0:
                    found.append(value)
        return found

    def block(self, law: Law, groups: Sequence[tuple[Access, Expr]], scope: frozenset[Index]) -> list[Expr]:
        """The joint cumulant of functions of one and the same entry, as a list of terms."""
        needed = self.needed.setdefault(law.name, Needed())
        entry = groups[0][0]
        powers = tuple(power_of(function, own) for own, function in groups)
        if all(powers) and law.family != "categorical":
            total = sum(power for power in powers if power)
            needed.degree = max(needed.degree, total)
            formula = power_cumulant(powers)
            values = {C[k]: law.at(law.central(k), entry.indices) for k in range(2, total + 1) if formula.has(C[k])}
            values[M] = law.at(law.mean, entry.indices)
            return [term.xreplace(values) for term in Add.make_args(formula)]

        def moment(block: tuple[int, ...]) -> Expr:
            functions = (replaced(groups[k][1], groups[k][0], entry, scope) for k in block)
            return self.moment(law, Mul(*functions), entry, scope)

        return list(Add.make_args(cumulant(len(groups), moment)))

    def moment(self, law: Law, function: Expr, entry: Access, scope: frozenset[Index]) -> Expr:
        """E of a function of one entry."""
        needed = self.needed.setdefault(law.name, Needed())
        power = power_of(function, entry)
        if power and law.family != "categorical":
            needed.degree = max(needed.degree, power)
            return law.at(law.raw(power), entry.indices)
        if law.finite:
            return by_values(law, function, entry, scope)
        if names(function) != {law.name} or not letters(function) <= letters(entry):
            raise Unsupported(function, f"it reads more than one entry of {law.name}")
        needed.functions, needed.degree = True, max(needed.degree, order_of(function))
        value = function_moment(law, function, entry)
        if value is None and law.varies:
            raise Unsupported(function, f"the entries of {law.name} differ in distribution")
        if value is None:
            symbol = Symbol(f"E[{function}]".replace(str(entry), law.name), real=True)
            self.unknown[symbol] = (law.name, function.xreplace({entry: Access(law.name)}))
            return symbol
        return law.at(value, entry.indices)


def split_coincidences(term: Term, law: Law, scope: frozenset[Index]) -> Term:
    """δ(y_i, y_j) as Σ_v δ(y_i, v) δ(y_j, v), which reads one entry a factor."""
    axes, factors = list(term.axes), []
    for factor in term.factors:
        sides = factor.sides if isinstance(factor, Compare) and factor.op == "==" else ()
        if len(sides) == 2 and all(isinstance(side, Access) and side.name == law.name for side in sides):
            (v,) = fresh(scope | letters(Mul(*term.factors)) | {axis[0] for axis in axes}, 1)
            axes.append((v, S.Zero, law.below))
            factors += [delta(side, v) for side in sides]
        else:
            factors.append(factor)
    return Term(tuple(axes), tuple(factors))


def equal(a: Access, b: Access) -> Expr:
    """1 where two accesses read one entry; decided where their indices differ by a number."""
    factors = []
    for left, right in zip(a.indices, b.indices, strict=True):
        difference = (left - right).expand()
        factors.append(compare("==", difference, 0) if isinstance(difference, Integer) else delta(left, right))
    return Mul(*factors)


def single_entry(factor: Expr, name: str) -> Access:
    """The one entry of an array that a factor reads."""
    found = [access for access in accesses(factor) if access.name == name]
    if len(found) == 1 and letters(found[0]) <= letters(factor):
        return found[0]
    raise Unsupported(factor, f"it reads several entries of {name} at once")


def power_of(function: Expr, entry: Access) -> int:
    """k if the function is the k-th power of the entry, 0 if it is something else."""
    base, power = function.as_base_exp()
    return int(power) if base == entry and isinstance(power, Integer) and 0 < power <= MAX_POWER else 0


def order_of(function: Expr) -> int:
    """How fast a function of an entry may grow: the powers of all its factors."""
    powers = (factor.as_base_exp()[1] for factor in Mul.make_args(function) if not isinstance(factor, Compare))
    return sum(int(power) for power in powers if isinstance(power, Integer))


def replaced(function: Expr, entry: Access, value: Expr, scope: frozenset[Index]) -> Expr:
    """The function with something else in place of an entry."""
    return map_accesses(function, lambda access: value if access == entry else access, [entry.name], scope)


def by_values(law: Law, function: Expr, entry: Access, scope: frozenset[Index]) -> Expr:
    """E f(x) = Σ_v P(x = v) f(v)."""
    if law.family == "categorical":
        (v,) = fresh(scope | letters(function), 1)
        chance = law.at(law.parameters[0], (v,))
        return sum_(chance * replaced(function, entry, v, scope | {v}), [(v, S.Zero, law.below)])
    if law.family == "rademacher":
        chances = {S.NegativeOne: S.Half, S.One: S.Half}
    else:
        (p,) = law.parameters
        chances = {S.Zero: 1 - p, S.One: p}
    return Add(*(chance * replaced(function, entry, value, scope) for value, chance in chances.items()))


# ------------------------------------------------------------------------------------- functions of a single entry

# x^k f(x) for a law that is symmetric about 0, where order is the sum of all powers:
#   relu(x)^m x^k, 1[x > 0] x^k      |x|^order on the positive half, 0 on the other:  E = E|x|^order / 2
#   |x|^m x^k                        |x|^order for even k, and cancels for odd k:     E = E|x|^order or 0
HALF = {"positive": (S.Half, S.Half), "negative": (S.Half, -S.Half), "both": (S.One, S.Zero)}  # for even and odd k


def function_moment(law: Law, function: Expr, entry: Access) -> Expr | None:
    """E of a function of one entry in the moments of its law; None where no rule gives it."""
    half, odd, order = "both", False, 0
    for factor in Mul.make_args(function):
        base, power = factor.as_base_exp()
        if not (isinstance(power, Integer) and power > 0):
            return None
        side = side_of(base, entry)
        if side is None:
            return None
        if {side, half} == {"positive", "negative"}:
            return S.Zero
        half = half if side == "both" else side
        order += 0 if isinstance(base, Compare) else int(power)
        odd ^= base == entry and power % 2 == 1
    if not law.centred or (order == 0 and not law.of.atomless):
        return None
    value = law.absolute(order)
    return None if value is None else HALF[half][odd] * value


def side_of(base: Expr, entry: Access) -> str | None:
    """On which side of 0 a factor is |x| or 1, and not 0; `both` for x itself and |x|."""
    if base == entry or base == absolute(entry):
        return "both"
    if base in (relu(entry), compare(">", entry, 0), compare(">=", entry, 0)):
        return "positive"
    return "negative" if base in (relu(-entry), compare("<", entry, 0), compare("<=", entry, 0)) else None


def halved(expr: Expr, name: str, scope: frozenset[Index], tidy: Callable[[Expr], Expr]) -> Expr:
    """relu(A)^m h → A^m h / 2 where −A and (−1)^m h are what A and h become when the sign of one array changes.

    That array must be distributed as its negative: averaging over both signs, relu(A)^m + (−1)^m relu(−A)^m = A^m.
    """

    def flip(expr: Expr) -> Expr:
        return tidy(map_accesses(expr, lambda access: -access, [name], scope | letters(expr)))

    def inside(node: Expr) -> bool:
        return isinstance(node, relu) and name in names(node)

    found = []
    for term in terms(expr, lambda e: any(inside(node) for node in e.atoms(relu)), scope):
        factors = list(term.factors)
        for position, factor in enumerate(factors):
            base, power = factor.as_base_exp()
            if not inside(base) or not isinstance(power, Integer) or power < 1:
                continue
            (argument,) = base.args
            rest = Mul(*factors[:position], *factors[position + 1 :])
            if flip(argument) == tidy(-argument) and flip(rest) == tidy((-1) ** power * rest):
                factors[position] = argument**power / 2
        found.append(Term(term.axes, tuple(factors)).expr)
    return Add(*found)

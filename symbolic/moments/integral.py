"""Expectations by moment algebra: one random array after the other is integrated out.

Random arrays are independent, and so are the entries of each. Of a sum of products this leaves E[q_I q_J …] for entries
of one array at indices I, J, …, which may be equal. By the moment–cumulant formula

    E[q_I q_J …] = Σ over partitions of the factors  Π over blocks  κ(block) · δ(all indices of the block are equal)

since a joint cumulant is 0 if some of its entries are independent of the others. For two factors this is the familiar
E[q_I q_J] = μ² + δ(I, J) σ². What is no power of an entry has its rule in `function_moment`, or is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from sympy import Add, Expr, Mul, S, Symbol

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Index,
    accesses,
    delta,
    fresh,
    letters,
    names,
    sum_,
)
from gradproof.symbolic.equations.laws import Law
from gradproof.symbolic.folding.facts import Facts
from gradproof.symbolic.folding.fold import normalise
from gradproof.symbolic.moments.closed import decided
from gradproof.symbolic.moments.cumulants import C, M, cumulant, partitions, power_cumulant
from gradproof.symbolic.moments.expansion import Term, readers, terms
from gradproof.symbolic.moments.growth import equal
from gradproof.symbolic.moments.one_entry import by_values, function_moment, order_of, power_of, replaced

MAX_FACTORS = 6  # entries of one array in one product: there are 203 partitions of six


class Unsupported(Exception):
    """This array cannot be integrated out now, because of a factor and for a reason."""

    def __init__(self, factor: Expr, why: str) -> None:
        super().__init__(factor, why)
        self.factor, self.why = factor, why


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
        needed.functions, needed.degree = True, max(needed.degree, order_of(function))
        value = function_moment(law, function, entry)
        if value is None and (names(function) != {law.name} or not letters(function) <= letters(entry)):
            others = ", ".join(sorted(names(function) - {law.name})) or "what differs from entry to entry"
            raise Unsupported(function, f"{law.name} stands with {others} in a function that no rule covers")
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


def single_entry(factor: Expr, name: str) -> Access:
    """The one entry of an array that a factor reads."""
    found = [access for access in accesses(factor) if access.name == name]
    if len(found) == 1 and letters(found[0]) <= letters(factor):
        return found[0]
    raise Unsupported(factor, f"it reads several entries of {name} at once")

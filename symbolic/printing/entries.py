"""The index form of an expression: entries, sums over letters, deltas and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Add, Expr, Function, Mul, Pow

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Implicit,
    Index,
    Reduce,
    accesses,
    letters,
    names,
    negate,
)
from gradproof.symbolic.equations.functions import spelled, where
from gradproof.symbolic.equations.implicit import inverses
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.printing.contract import full_ranges
from gradproof.symbolic.printing.letters import Letters
from gradproof.symbolic.printing.nodes import (
    Big,
    Call,
    Delta,
    Name,
    Node,
    Number,
    Power,
    Relation,
    Sum,
    negative,
    signed,
    times,
)
from gradproof.symbolic.printing.pieces import signed_number
from gradproof.symbolic.printing.terms import Terms, base_and_power, is_constant, name_key, quotient


def to_entries(expr: Expr, outs: Sequence[Index], system: System, letters_: Letters) -> Node:
    """The node of an expression whose free letters are readable ones already, those of the left side `outs`."""
    scope = frozenset(letter.name for letter in outs)
    return EntryReader(system, letters_, Terms(system), tuple(outs), scope).read(expr)


def implicit(expr: Implicit, system: System) -> Node:
    """An entry of an inverse; the determinant of a matrix."""
    if expr.kind == "inv":
        return Name(inverses(system)[expr.matrix], expr.indices)
    return Call(expr.kind, (Name(expr.matrix, (*expr.indices, None, None)),))


@dataclass(frozen=True)
class EntryReader:
    """Reads expressions entry by entry; `outs` are the letters of the left side, `scope` holds all letters in use."""

    system: System
    letters: Letters
    terms: Terms
    outs: tuple[Index, ...]
    scope: frozenset[str]
    bound: tuple[Index, ...] = ()  # of the sum whose body is read

    def read(self, expr: Expr) -> Node:
        if is_constant(expr) or expr.is_Symbol:
            return signed_number(expr)
        if isinstance(expr, Access):
            return Name(expr.name, expr.indices)
        if isinstance(expr, Implicit):
            return implicit(expr, self.system)
        if isinstance(expr, Add):
            return self.sum(expr)
        if isinstance(expr, Compare):
            return self.condition(expr)
        if isinstance(expr, Reduce) and expr.op != "sum":
            return self.reduction(expr)
        if isinstance(expr, Pow):
            base, exponent = base_and_power(expr)
            if not (exponent.is_Rational and exponent < 0):
                return Power(self.read(base), self.read(exponent))
        if isinstance(expr, Function):
            return Call(spelled(expr), tuple(self.read(arg) for arg in expr.args))
        return self.product(expr)

    def condition(self, expr: Compare) -> Node:
        left, right = expr.sides
        if expr.op == "==" and isinstance(left, Index) and isinstance(right, Index):
            first, second = sorted((left, right), key=str)
            return Delta(first, second)
        if not accesses(expr):
            return Relation(expr.op, Number(left), Number(right))
        return Relation(expr.op, self.read(left), self.read(right))

    def sum(self, expr: Add) -> Node:
        number, _ = self.terms.primitive(expr)
        if number not in (1, -1):
            return self.product(expr)
        terms = []
        for term in self.terms.ordered(expr):
            node = self.read(term)
            minus = isinstance(node, Sum) and len(node.terms) == 1
            terms.append((-1, negative(node)) if minus else (1, node))
        return Sum(tuple(terms))

    def product(self, expr: Expr) -> Node:
        sign, top, bottom, factors, divisors = self.terms.split(expr)
        nodes = self.chained(sorted((self.factor(f) for f in factors), key=name_key))
        above = [Number(top)] if top != 1 else []
        below = [*([Number(bottom)] if bottom != 1 else []), *sorted(map(self.factor, divisors), key=name_key)]
        long = [node for node in nodes if isinstance(node, (Sum, Big))]
        if long and below:
            short = [node for node in nodes if node not in long]
            simple = [node for node in short if isinstance(node, (Name, Number)) and not getattr(node, "at", ())]
            rest = [node for node in short if node not in simple]
            return signed(sign, quotient([*above, *simple], below, times([*rest, *long])))
        return signed(sign, quotient([*above, *nodes], below, None))

    def chained(self, nodes: list[Node]) -> list[Node]:
        """Entries in the order of a matrix product that leads away from the left side: S_ik K_kj for ij."""
        entries = [node for node in nodes if isinstance(node, Name) and node.at]
        if len(entries) < 2:
            return nodes
        known = [str(letter) for letter in self.outs]
        starts = [letter for letter in known if any(letter in map(str, node.at) for node in entries)]
        chains = [_chain(entries, [start, *known]) for start in starts] or [_chain(entries, [])]
        _, ordered = max(chains, key=lambda chain: chain[0])
        place = nodes.index(entries[0])
        others = [node for node in nodes if node not in entries]
        return [*others[:place], *ordered, *others[place:]]

    def factor(self, expr: Expr) -> Node:
        return self.reduction(expr) if isinstance(expr, Reduce) else self.read(expr)

    def reduction(self, expr: Reduce) -> Node:
        used = self.scope | {letter.name for letter in letters(expr)}
        renamed: dict[Index, Index] = {}
        for letter, lo, hi in expr.axes:
            renamed[letter] = self.letters.pick(hi - lo, used)
            used |= {renamed[letter].name}
        axes: tuple[Axis, ...] = tuple(
            (renamed[letter], lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in expr.axes
        )
        body = expr.body.xreplace(renamed)
        own = tuple(renamed.values())
        outs = (*self.bound, *self.outs)
        inner = EntryReader(self.system, self.letters, self.terms, outs, frozenset(used), own)
        factors = Mul.make_args(body)
        conditions = [f for f in factors if isinstance(f, Compare) and not letters(f).isdisjoint(own)]
        conditions = [f for f in conditions if not f.atoms(Reduce)] if expr.op == "sum" else []
        if conditions and len(conditions) == len(factors) and accesses(conditions[-1]):
            conditions = conditions[:-1]  # a count: Σ_j 1[x_j = m]
        rest = Mul(*(f for f in factors if f not in conditions))
        while expr.op == "prod" and (others := all_but(rest, own)) is not None:
            conditions, rest = [*conditions, others[0]], others[1]
        below = tuple((f.op, *f.sides) for f in conditions)
        return Big(expr.op, axes, full_ranges(self.system, body, axes), below, inner.read(rest))


def all_but(expr: Expr, own: Sequence[Index]) -> tuple[Compare, Expr] | None:
    """i ≠ j and f for where(δ_ij, 1, f), a factor of a product over j that leaves out i."""
    if not isinstance(expr, where) or expr.args[1] != 1 or not isinstance(expr.args[0], Compare):
        return None
    condition, _, rest = expr.args
    found = negate(condition)
    return (found, rest) if condition.op == "==" and letters(condition) & set(own) and not names(condition) else None


def _chain(entries: list[Name], known: list[str]) -> tuple[int, list[Name]]:
    """Entries one after the other, each sharing a letter with those before; and how many are entered from the left."""
    ordered: list[Name] = []
    left, forward = list(entries), 0
    while left:
        letter, found = next(((letter, n) for letter in known for n in left if letter in map(str, n.at)), ("", left[0]))
        left.remove(found)
        ordered.append(found)
        forward += str(found.at[0]) == letter
        known = [*(str(index) for index in found.at if str(index) not in known), *known]
    return forward, ordered

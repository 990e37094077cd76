"""Bring derived equations into the form that a textbook prints.

Three moves, each a function from system to system (`textbook.py` puts them in order, `rows.py` has the rules):

* `rewrite`   helper values are written in the kept names. P = E/Z gives E → P·Z, x̂ = c/s gives c → s·x̂.
* `inline`    a derived array that is read once, or that belongs to a helper, is put where it is read.
* `normalise` what does not depend on a summed letter leaves the sum; Σ1 becomes the size; facts that follow from the
              definitions (Σ_j P_ij = 1, Σ_r x̂_r = 0) are used; common factors are pulled out. Nothing is multiplied
              out unless that makes the result smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Abs, Add, Expr, Mul, Number, Pow

from gradproof.symbolic.equations.calculus import solve_deltas
from gradproof.symbolic.equations.definitions import Substitution, plain, spelled_out
from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Implicit,
    Index,
    Reduce,
    count,
    count_accesses,
    decided,
    letters,
    map_accesses,
    names,
    open_,
    rebuild,
    reduce_,
    sum_,
)
from gradproof.symbolic.equations.functions import absolute
from gradproof.symbolic.equations.roles import Kind
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.folding.facts import FIRST, Facts, Key, declared
from gradproof.symbolic.folding.rows import common_factor, content_of, rows_for
from gradproof.symbolic.folding.signs import size

NOTHING = Facts()


# ---------------------------------------------------------------------------------------------------------- rewriting


def rewrites(system: System, derived: Iterable[str] = ()) -> dict[str, tuple[tuple[Index, ...], Expr]]:
    """How each helper array is written in the names that are kept, as (letters, expression).

    A kept equation that is a monomial in a helper with the same letters is solved for the helper.
    """
    found: dict[str, tuple[tuple[Index, ...], Expr]] = {}
    helpers = {*system.hidden, *derived}
    for equation in system.equations:
        if equation.name in helpers or len(system.defined[equation.name]) > 1:
            continue
        for factor in Mul.make_args(equation.body):
            base, power = factor.as_base_exp()
            if (
                isinstance(base, Access)
                and base.name in system.hidden
                and base.name not in found
                and power in (1, -1)
                and all(isinstance(index, Index) for index in base.indices)
                and set(base.indices) == set(equation.place)
            ):
                solved = (equation.target / Mul(*(f for f in Mul.make_args(equation.body) if f != factor))) ** power
                found[base.name] = (base.indices, solved)
    return found


def rewrite(system: System, derived: Iterable[str]) -> System:
    """Write the derived equations in kept names."""
    derived = set(derived)
    rules = rewrites(system, derived)

    def replace(access: Access) -> Expr:
        indices, solved = rules[access.name]
        return solved.xreplace(dict(zip(indices, access.indices, strict=True)))

    equations = [
        e.with_body(map_accesses(e.body, replace, rules, (axis[0] for axis in e.axes))) if e.name in derived else e
        for e in system.equations
    ]
    return system.with_equations(equations)


# ----------------------------------------------------------------------------------------------------------- inlining


LONG = 3  # contractions inside one another; in a longer chain every adjoint keeps its name


def inline(system: System, derived: Sequence[str], keep: Iterable[str] = (), always: Iterable[str] = ()) -> System:
    """Put derived arrays where they are read, unless they are outputs, kept, or long and read more than once.

    A chain of contractions through many layers stays a chain: the adjoint of each layer in terms of the next one's.
    """
    always = set(always)
    whole = {e.body.matrix for e in system.equations if isinstance(e.body, Implicit)}  # read by name
    fixed = {*keep, *system.outputs, *whole, *(name for name in system.recurrences if name not in always)}
    stay = _layers(system, [name for name in derived if name not in fixed and name not in always])
    work = Substitution(system)
    # helpers of tangents first: what they read is then counted as often as it will stand there
    for name in sorted(
        derived, key=lambda name: not (name in always and system.arrays[name].role.kind is Kind.TANGENT)
    ):
        definition = work.plain(name)
        if definition is None or name in fixed:
            continue
        short = name in always or trivial(definition.body) or single(definition)
        if short or (name not in stay and work.uses(name) <= 1):
            work.put_in(definition)
    return work.result()


def _contracts(system: System, name: str, derived: set[str]) -> bool:
    """Whether an array is a sum over entries of another derived array."""
    sums = (part for equation in system.defined[name] for part in equation.body.atoms(Reduce))
    return any(not derived.isdisjoint(names(part)) for part in sums)


def _layers(system: System, derived: Iterable[str]) -> set[str]:
    """The arrays on a chain of more than `LONG` contractions, each of which is read by the next one only."""
    derived = set(derived)
    order = [name for group in system.groups for name in group if name in derived]
    reader = {}  # where an array that is read once is read
    for name in order:
        readers = system.readers.get(name, [])
        if len(readers) == 1 and count_accesses(readers[0].body, name) == 1:
            reader[name] = readers[0].name
    own = {name: _contracts(system, name, derived) for name in order}
    behind: dict[str, int] = {}
    for name in order:
        behind[name] = behind.get(name, 0) + own[name]
        if name in reader:
            behind[reader[name]] = max(behind.get(reader[name], 0), behind[name])
    ahead: dict[str, int] = {}
    for name in reversed(order):
        after = reader.get(name)
        ahead[name] = ahead.get(after, 0) + own.get(after, 0) if after else 0
    return {name for name in order if own[name] and name in reader and behind[name] + ahead[name] > LONG}


def of_helpers(system: System) -> set[str]:
    """The adjoints and tangents of helpers."""
    return {
        n
        for n, a in system.arrays.items()
        if a.role.differential and a.role.source and a.role.source.kind is Kind.HELPER
    }


def trivial(body: Expr) -> bool:
    """Whether an expression is at most a multiple of one entry, so that naming it would only make the reader jump."""
    factors = [factor for factor in Mul.make_args(body) if not isinstance(factor, Number)]
    return len(factors) <= 1 and all(isinstance(factor, (Access, Compare)) for factor in factors)


def single(definition: Equation) -> bool:
    """Whether an array has one entry only, a e_y: sums over it have a single term."""
    deltas = [f for f in Mul.make_args(definition.body) if isinstance(f, Compare) and f.op == "=="]
    return len(definition.place) == 1 and any(definition.place[0] in condition.sides for condition in deltas)


# -------------------------------------------------------------------------------------------------------- normalising


def facts(system: System, derived: Iterable[str] = ()) -> Facts:
    """What is known of the arrays: declared properties, inverses, and sums that are constants by definition.

    Σ_j P_ij = 1 for a softmax and Σ_r x̂_r = 0 for a layer norm are found by summing the definition.
    """
    found, derived = declared(system), set(derived)
    definitions = [e for e in system.equations if e.name not in derived and plain(system, e.name) is not None]

    def cancels(definition: Equation) -> bool:
        return definition.name not in derived and (definition.name in system.hidden or _is_total(definition.body))

    for equation in definitions:
        if equation.name in system.hidden or isinstance(equation.body, Reduce) or not equation.axes:
            continue
        body = spelled_out(system, equation, cancels).body  # so that totals can cancel
        if size(body) > 60 or not body.has(Reduce):
            continue
        for positions in _possible_totals(equation):
            over = [equation.axes[position] for position in positions]
            total = normalise(sum_(body, over), [axis for axis in equation.axes if axis not in over])
            if not names(total):
                key: Key = (equation.name, *positions)
                found[key] = total.xreplace(dict(zip(equation.place, FIRST, strict=False)))
    return found


def _possible_totals(equation: Equation) -> list[tuple[int, ...]]:
    """Axes over which an array may have a constant total: each alone, and all that a part lacks (Z_i in E_ij/Z_i)."""
    found: list[tuple[int, ...]] = [(position,) for position in range(len(equation.axes))]
    for part in (*Add.make_args(equation.body), *Mul.make_args(equation.body)):
        missing = tuple(k for k, axis in enumerate(equation.axes) if axis[0] not in letters(part))
        if len(missing) > 1 and missing not in found and names(part):
            found.append(missing)
    return found


def _is_total(body: Expr) -> bool:
    """A sum, or a multiple of one, such as a mean."""
    factors = [factor for factor in Mul.make_args(body) if names(factor)]
    return len(factors) == 1 and isinstance(factors[0], Reduce)


def normalise(expr: Expr, outer: Sequence[Axis], facts: Facts | None = None) -> Expr:
    """The normal form of an expression whose free letters run over `outer`.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> i, n = Index("i"), Size("n")
    >>> normalise(sum_(3 * Access("c") * Access("x", i) + Access("c"), [(i, 0, n)]), [])
    c*sum[b1=0:n](3*x[b1] + 1)
    """
    facts = facts if isinstance(facts, Facts) else NOTHING
    if isinstance(expr, Access):
        return facts.entry(expr)
    if not expr.args:
        return expr
    if isinstance(expr, Reduce):
        body, axes = open_(expr, [axis[0] for axis in outer])
        body = normalise(body, [*outer, *axes], facts)
        return _sum(body, axes, outer, facts) if expr.op == "sum" else reduce_(expr.op, body, axes)
    result = rebuild(expr, [normalise(arg, outer, facts) for arg in expr.args])
    if isinstance(expr, Pow) and result.has(Abs):
        result = result.replace(Abs, absolute)  # √x² with our own function, whose derivative is torch's
    if isinstance(result, Compare):
        result = decided(result, outer)
        return facts.condition(result) if isinstance(result, Compare) else result
    for row in rows_for(result):
        result = row(result, outer)
    return result


def _sum(body: Expr, axes: Sequence[Axis], outer: Sequence[Axis], facts: Facts) -> Expr:
    """Σ over `axes` of a body that is already in normal form."""
    body, axes = _flat(body, axes, outer)
    factors, axes, solved = solve_deltas(Mul.make_args(body), axes, outer)
    if solved:
        product = normalise(Mul(*factors), [*outer, *axes], facts)
        factors = list(Mul.make_args(product))
    summed = {letter for letter, _, _ in axes}
    outside = [factor for factor in factors if summed.isdisjoint(letters(factor))]
    inside = [factor for factor in factors if not summed.isdisjoint(letters(factor))]
    if not axes:
        return Mul(*outside)
    content, inside = content_of(inside)
    parts = [_part(group, group_axes, outer, facts) for group, group_axes in _connected(inside, axes)]
    return Mul(content, *outside, *parts)


def _flat(body: Expr, axes: Sequence[Axis], outer: Sequence[Axis]) -> tuple[Expr, list[Axis]]:
    """Sums among the factors of a sum join it: Σ_i x_i Σ_j A_ij y_j is one sum, whatever the order it was written in.

    A sum that another factor holds too (Σ_i q_i exp(q_i) with q_i = Σ_j A_ij) stays whole.
    """
    factors, axes = list(Mul.make_args(body)), list(axes)
    scope = {axis[0] for axis in (*outer, *axes)} | letters(body)
    summed = {axis[0] for axis in axes}
    for position, factor in enumerate(factors):
        joins = isinstance(factor, Reduce) and factor.op == "sum" and not summed.isdisjoint(letters(factor))
        if joins and not any(other.has(factor) for other in factors if other is not factor):
            factors[position], inner = open_(factor, scope)
            axes += inner
            scope |= {axis[0] for axis in inner}
    return Mul(*factors), axes


def _connected(factors: Sequence[Expr], axes: Sequence[Axis]) -> list[tuple[list[Expr], list[Axis]]]:
    """Factors and axes in groups that share no summed letter: Σ_ij a_i b_j = (Σ_i a_i)(Σ_j b_j)."""
    groups: list[tuple[set[Index], list[Expr], list[Axis]]] = []
    summed = {letter for letter, _, _ in axes}
    items: list[tuple[set[Index], list[Expr], list[Axis]]] = [
        ({axis[0], *((letters(axis[1]) | letters(axis[2])) & summed)}, [], [axis]) for axis in axes
    ]
    items += [(set(letters(factor) & summed), [factor], []) for factor in factors]
    for own, own_factors, own_axes in items:
        touching = [group for group in groups if group[0] & own]
        for group in touching:
            own, own_factors, own_axes = own | group[0], group[1] + own_factors, group[2] + own_axes
            groups.remove(group)
        groups.append((own, own_factors, own_axes))
    return [(group_factors, group_axes) for _, group_factors, group_axes in groups]


def _part(factors: list[Expr], axes: list[Axis], outer: Sequence[Axis], facts: Facts) -> Expr:
    """The sum of one connected group."""
    if not factors and len(axes) == 1:
        return count(axes, outer)
    for axis in axes:
        known = _known_sum(_readers(factors, axis), axis, facts)
        if known is not None:
            rest = [factor for factor in factors if axis[0] not in letters(factor)]
            remaining = [other for other in axes if other is not axis]
            return _sum(Mul(known, *rest), remaining, outer, facts)
    for factor in factors:
        found = facts.together(factor, _alone(factor, factors, axes))
        if found is not None:
            rest = [other for other in factors if other is not factor]
            return _sum(Mul(found[1], *rest), [axis for axis in axes if axis not in found[0]], outer, facts)
    whole = facts.least(factors, axes)
    for factor in factors:
        if isinstance(factor, Add) and len(factor.args) <= 8 and _worth_splitting(factor, factors, axes, facts):
            rest = Mul(*(other for other in factors if other is not factor))
            split = Add(*(_sum(rest * term, axes, outer, facts) for term in factor.args))
            if isinstance(split, Add):
                split = common_factor(split)
            if size(split) < size(whole):
                return split
    return whole


def _readers(factors: Iterable[Expr], axis: Axis) -> list[Expr]:
    """The factors that read the letter of an axis."""
    return [base for factor in factors for base in _copies(factor) if axis[0] in letters(base)]


def _copies(factor: Expr) -> list[Expr]:
    """A square as two factors."""
    return [factor.base] * 2 if isinstance(factor, Pow) and factor.exp == 2 else [factor]


def _known_sum(readers: Sequence[Expr], axis: Axis, facts: Facts) -> Expr | None:
    """What a fact says of the sum over one axis of the factors that read its letter."""
    if len(readers) == 1:
        return facts.summed(readers[0], axis)
    return facts.contracted(readers[0], readers[1], axis) if len(readers) == 2 else None


def _worth_splitting(factor: Add, factors: Sequence[Expr], axes: Sequence[Axis], facts: Facts) -> bool:
    """Whether a term alone is summed by a rule: a delta, an unread letter, a known sum, sums that part."""
    rest = [other for other in factors if other is not factor]
    for term in factor.args:
        own = Mul.make_args(term)
        if any(isinstance(f, Compare) and f.op == "==" for f in own):
            return True
        inside = [f for f in (*rest, *own) if any(axis[0] in letters(f) for axis in axes)]
        if not inside or len(_connected(inside, axes)) > 1:
            return True
        if any(_known_sum(_readers(inside, axis), axis, facts) is not None for axis in axes):
            return True
        if any(facts.together(f, _alone(f, inside, axes)) is not None for f in inside):
            return True
    return False


def _alone(factor: Expr, factors: Sequence[Expr], axes: Sequence[Axis]) -> list[Axis]:
    """The axes whose letters no other factor reads."""
    others = {letter for other in factors if other is not factor for letter in letters(other)}
    return [axis for axis in axes if axis[0] not in others]


def normalised(system: System, derived: Iterable[str], known: Facts) -> System:
    wanted = set(derived)
    return system.with_equations(
        e.with_body(normalise(e.body, e.axes, known)) if e.name in wanted else e for e in system.equations
    )

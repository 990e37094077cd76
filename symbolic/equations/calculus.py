"""The one differentiation rule.

If an equation reads P at P[e(o, b)], then

    P̄[p] += Σ over o, b of  Ȳ[o] · ∂f/∂(that access) · Π δ(p, e(o, b))

∂f/∂(access) is SymPy's scalar derivative after every access has been replaced by a symbol of its own. The deltas are
removed by solving the affine index maps; a map that cannot be solved (`E[w[t], k]`) keeps its delta: a scatter-add.
Everything else in this file is bookkeeping around that rule: adjoint (reverse mode) and tangent (forward mode).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Add, Expr, Integer, Mul, Pow, Rational, S, Symbol

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Implicit,
    Index,
    Reduce,
    compare,
    delta,
    fresh,
    letters,
    names,
    nonnegative,
    open_,
    reduce_,
    sum_,
)
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.implicit import held, named
from gradproof.symbolic.equations.radix import split_digits
from gradproof.symbolic.equations.roles import Kind, suggested
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters
from gradproof.symbolic.errors import GradproofError


@dataclass(frozen=True)
class Partial:
    """One access that an expression reads, the derivative with respect to it, and the letters summed around it."""

    access: Access
    slope: Expr
    axes: tuple[Axis, ...]


def partials(expr: Expr, active: frozenset[str], scope: frozenset[Index]) -> list[Partial]:
    """The derivative of an expression with respect to every access to an active array.

    >>> x, i = Access("x", Index("i")), Index("i")
    >>> [(p.access, p.slope) for p in partials(x**2, frozenset(["x"]), frozenset())]
    [(x[i], 2*x[i])]
    """
    nodes = _outermost(expr)
    symbols = {node: Symbol(f"_d{k}", real=True) for k, node in enumerate(nodes)}
    back = {symbol: node for node, symbol in symbols.items()}
    terms: dict[Symbol, list[Expr]] = {}
    for term in Add.make_args(expr.xreplace(symbols)):
        for symbol in term.free_symbols & back.keys():
            terms.setdefault(symbol, []).append(term)
    scope = scope | letters(expr)
    found: list[Partial] = []
    for node, symbol in symbols.items():
        touched = node.name in active if isinstance(node, Access) else not active.isdisjoint(names(node))
        slope = Add(*(term.diff(symbol) for term in terms.get(symbol, ()))).xreplace(back) if touched else S.Zero
        if slope == 0:
            continue
        if isinstance(node, Access):
            found.append(Partial(node, slope, ()))
            continue
        if isinstance(node, Implicit):
            residual, weight, row = held(node, scope)
            for inner in partials(residual, active, scope | {row[0]}):
                found.append(Partial(inner.access, slope * weight * inner.slope, (row, *inner.axes)))
            continue
        body, axes = open_(node, scope)
        inner_scope = scope.union(letter for letter, _, _ in axes)
        weight = slope * _share(node, body, axes, inner_scope)
        for inner in partials(body, active, inner_scope):
            found.append(Partial(inner.access, weight * inner.slope, (*axes, *inner.axes)))
    return found


def _outermost(expr: Expr) -> list[Expr]:
    """The accesses, reductions and implicit values of an expression that lie in no other one."""
    found: dict[Expr, None] = {}
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, (Access, Implicit, Reduce)):
            found[node] = None
        else:
            stack.extend(reversed(node.args))
    return list(found)


def _share(node: Reduce, body: Expr, axes: Sequence[Axis], scope: frozenset[Index]) -> Expr:
    """The derivative of a reduction with respect to one of its terms.

    sum: 1. max: 1 for the largest term, shared among equals (torch's amax). prod: the product of all other terms.
    """
    if node.op == "sum":
        return S.One
    if node.op == "max":
        largest = compare("==", body, node)
        return largest / sum_(largest, axes)
    others = fresh(scope, len(axes))
    renamed = {letter: other for (letter, _, _), other in zip(axes, others, strict=True)}
    itself = Mul(*(delta(letter, other) for letter, other in renamed.items()))
    ranges = [(renamed[letter], lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in axes]
    return reduce_("prod", where(itself, S.One, body.xreplace(renamed)), ranges)


def reuse(system: System, equation: Equation, slope: Expr) -> Expr:
    """Write a derivative with the value already computed: tanh(z) becomes h, √(v+ε) becomes s.

    For a power Y = base^q every power of the base is one of Y; for an inverse or determinant see `implicit.py`.
    """
    body, target = equation.body, equation.target
    if isinstance(body, Implicit):
        return named(system, slope, body.matrix)
    if isinstance(body, (Access, Integer)) or not names(body):
        return slope
    slope = slope.xreplace({body: target})
    if isinstance(body, Pow) and isinstance(body.exp, Rational):
        powers = {
            power: target ** (power.exp / body.exp)
            for power in slope.atoms(Pow)
            if power.base == body.base and (power.exp / body.exp).is_Integer
        }
        slope = slope.xreplace(powers)
    return slope


def solve_deltas(
    factors: Sequence[Expr],
    axes: Sequence[Axis],
    outer: Sequence[Axis],
    prefer: Iterable[Index] = (),
    guarded: bool = True,
) -> tuple[list[Expr], list[Axis], bool]:
    """Remove δ(left, right) factors of a sum over `axes` by solving for a summed letter.

    Returns the remaining factors (with conditions that keep the solution inside its range), the remaining axes, and
    whether anything was solved. `prefer` names the letters to solve for where there is a choice. Unless `guarded`, what
    would need such a condition is left.
    """
    factors, axes, prefer, solved = list(factors), list(axes), frozenset(prefer), False
    while True:
        if len(axes) > 1:
            known = [*outer, *axes]
            factors = [piece for factor in factors for piece in split_digits(factor, known)]
        choices = [
            (len(options), position, options)
            for position, factor in enumerate(factors)
            if isinstance(factor, Compare) and factor.op == "==" and (options := _solvable(factor, axes))
        ]
        best = []
        for _, position, options in sorted(choices, key=lambda choice: choice[:2]):
            found = [(letter, value, *_guarded(letter, value, axes, outer)) for letter, value in reversed(options)]
            letter, value, guards, left = min(found, key=lambda f: (len(f[2]), f[0] not in prefer))
            if guarded or not guards:
                best = [(position, letter, value, guards, left)]
                break
        if not best:
            return factors, axes, solved
        ((position, letter, solution, guards, axes),) = best
        rest = factors[:position] + factors[position + 1 :]
        mapping = {letter: solution}
        factors = [piece for factor in rest for piece in Mul.make_args(factor.xreplace(mapping))] + guards
        axes = [(other, lo.xreplace(mapping), hi.xreplace(mapping)) for other, lo, hi in axes]
        solved = True


def _guarded(
    letter: Index, solution: Expr, axes: Sequence[Axis], outer: Sequence[Axis]
) -> tuple[list[Expr], list[Axis]]:
    """The conditions that keep a solution inside the letter's range, where that is not known; the other axes."""
    _, lo, hi = next(axis for axis in axes if axis[0] == letter)
    rest = [axis for axis in axes if axis[0] != letter]
    known = [*outer, *rest]
    guards = [] if nonnegative(solution - lo, known) else [compare("<=", lo, solution)]
    guards += [] if nonnegative(hi - 1 - solution, known) else [compare("<", solution, hi)]
    return guards, rest


def _solvable(factor: Compare, axes: Sequence[Axis]) -> list[tuple[Index, Expr]]:
    """The summed letters for which `left == right` can be solved in integers, with their solutions."""
    left, right = factor.sides
    difference = (left - right).expand()
    inside_lookup = set().union(*(letters(access) for access in difference.atoms(Access)))
    found = []
    for letter, _, _ in axes:
        if letter in letters(difference) and letter not in inside_lookup and not difference.has(Reduce):
            slope = difference.coeff(letter)
            rest = difference - slope * letter
            if slope in (1, -1) and letter not in letters(rest):
                found.append((letter, (-slope * rest).expand()))
    return found


def adjoint(system: System, wrt: Sequence[str], cotangent: str | None = None) -> System:
    """The system with the equations of every adjoint that the inputs in `wrt` need.

    The output must be a scalar, or `cotangent` names an array of its shape that is contracted with it. The adjoint of
    an array has its shape (denominator layout); of X it is called X_bar where that name is free. A cotangent that has
    the name of the output's adjoint is that adjoint.
    """
    (output,) = system.outputs
    active = _active(system, wrt, output)
    given = cotangent is not None and output in active and cotangent == suggested(Kind.ADJOINT, output)
    made: dict[str, Array] = {}
    for name in _reverse_order(system, active) + [name for name in wrt if name not in active]:
        own = cotangent if given and name == output else ""
        others = {cotangent or "", *(array.name for array in made.values())} - {own}
        array = system.derived(Kind.ADJOINT, name, taken=others)
        made[name] = replace(array, name=own) if own else array
    bars = {name: array.name for name, array in made.items()}
    contributions: dict[str, list[Expr]] = {name: [] for name in active}
    if output in contributions:
        contributions[output].append(_seed(system.arrays[output], cotangent))
    for equation in system.equations:
        if equation.name in active:
            for name, term in _contributions(system, equation, active, bars[equation.name]):
                contributions[name].append(term)
    if given and len(contributions[output]) > 1:
        raise GradproofError(f"{output} is read again: call its cotangent G, since {cotangent} is its whole adjoint")
    arrays = list(made.values())
    if cotangent is not None and not given and cotangent not in system.arrays:
        arrays.insert(0, system.derived(Kind.COTANGENT, output, cotangent))
    equations = [whole(a, Add(*contributions.get(n, ()))) for n, a in made.items() if not (given and n == output)]
    return system.extended(arrays, equations, [bars[name] for name in wrt])


def whole(array: Array, body: Expr) -> Equation:
    """The equation of a whole array, in canonical letters."""
    outs = out_letters(array.rank)
    return Equation(array.name, outs, array.axes(outs), body)


def _seed(array: Array, cotangent: str | None) -> Expr:
    if cotangent is not None:
        return Access(cotangent, *out_letters(array.rank))
    if array.rank:
        raise GradproofError(f"{array.name} is not a scalar: its adjoint needs a cotangent")
    return S.One


def _active(system: System, wrt: Iterable[str], output: str) -> frozenset[str]:
    """The arrays between the variables and the output."""
    return system.readers_of(wrt) & system.reached([output])


def _reverse_order(system: System, active: frozenset[str]) -> list[str]:
    order = [name for group in system.groups for name in group if name in active]
    return order[::-1] + [name for name in system.arrays if name in active and name not in system.defined]


def _contributions(system: System, equation: Equation, active: frozenset[str], bar: str) -> list[tuple[str, Expr]]:
    """What one equation, of the adjoint `bar`, adds to the adjoint of each array that it reads."""
    scope = frozenset(out_letters(4)) | letters(equation.body)
    new = fresh(scope, len(equation.axes))
    renamed = {letter: free for (letter, _, _), free in zip(equation.axes, new, strict=True)}
    rows = [(renamed[letter], lo, hi) for letter, lo, hi in equation.axes]
    cotangent = Access(bar, *equation.place)
    found = []
    for partial in partials(equation.body, active, scope | frozenset(new)):
        array = system.arrays[partial.access.name]
        outs = out_letters(array.rank)
        target = array.axes(outs)
        slope = reuse(system, equation, partial.slope)
        term = (cotangent * slope).xreplace(renamed)
        deltas = [delta(out, index.xreplace(renamed)) for out, index in zip(outs, partial.access.indices, strict=True)]
        axes = [*rows, *((letter, lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in partial.axes)]
        factors, axes, _ = solve_deltas([*Mul.make_args(term), *deltas], axes, target, prefer=new)
        found.append((array.name, sum_(Mul(*factors), axes)))
    return found


def tangent(system: System, wrt: Mapping[str, str] | Sequence[str]) -> System:
    """The system with the equations of every tangent: the change of an array along given changes of `wrt`.

    A mapping names the arrays that hold these changes; any other tangent of X is called X_dot, if that name is free.
    """
    (output,) = system.outputs
    directions: Mapping[str, str] = wrt if isinstance(wrt, Mapping) else dict.fromkeys(wrt, "")
    active = _active(system, directions, output)
    made: dict[str, Array] = {}

    def make(name: str) -> None:
        others = {*directions.values(), *(array.name for array in made.values())}
        made[name] = system.derived(Kind.TANGENT, name, directions.get(name, ""), directions.get(name, ""), others)

    for name, along in directions.items():
        make(name)
        other = next(n for n, array in made.items() if array.name == made[name].name)
        if made[other].shape != made[name].shape:
            raise GradproofError(f"{along} cannot be the change of {other} and of {name}: their shapes differ")
    for equation in system.equations:
        if equation.name in active and equation.name not in made:
            make(equation.name)
    equations = []
    for equation in system.equations:
        if equation.name not in active:
            continue
        scope = letters(equation.body).union(letter for letter, _, _ in equation.axes)
        terms = [
            sum_(slope * Access(made[p.access.name].name, *p.access.indices), p.axes)
            for p in partials(equation.body, active, scope)
            for slope in _slopes(reuse(system, equation, p.slope))
        ]
        equations.append(Equation(made[equation.name].name, equation.place, equation.axes, Add(*terms)))
    if output not in made:  # it does not depend on them
        make(output)
        equations.append(whole(made[output], S.Zero))
    arrays = {array.name: array for array in made.values()}  # several may change along one
    return system.extended(arrays.values(), equations, [made[output].name])


def _slopes(slope: Expr) -> tuple[Expr, ...]:
    """The terms of a slope if they have conditions: each guards its own reading of x_dot[i - 1]."""
    return Add.make_args(slope) if slope.has(Compare) else (slope,)

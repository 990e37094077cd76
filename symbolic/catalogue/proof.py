"""How an identity is established: the normal form of the difference is 0, or both sides agree at random points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Add, Expr, cos, exp, oo, sin, sympify

from gradproof.symbolic import moments
from gradproof.symbolic.catalogue.entry import Identity, Moment
from gradproof.symbolic.catalogue.logarithms import split
from gradproof.symbolic.equations.expr import Access, accesses, rebuild
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.system import Equation, System, out_letters
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import StepError, same_values
from gradproof.symbolic.folding.fold import facts, put_in
from gradproof.symbolic.judging.normal_form import vanishes
from gradproof.symbolic.judging.polynomials import NoNormalForm
from gradproof.symbolic.language.reader import build

VALUE = "VALUE"
MORE = 24  # further random points for what is not proved


@dataclass(frozen=True)
class Proof:
    """The verdict on an identity ("proved", "agrees" or "refuted"), how it was reached, and at how many sizes."""

    verdict: str
    how: str


def prove(identity: Identity) -> Proof:
    """The verdict on two expressions over the same arrays.

    >>> shapes = {"A": "n,d", "B": "d,n"}
    >>> prove(Identity("tr(A @ B)", "tr(B @ A)", shapes)).verdict
    'proved'
    >>> prove(Identity("A @ B", "(A @ B).T", shapes)).verdict
    'refuted'
    >>> prove(Identity("where(y < N - 1, 1, 0)", "1", {"y": ":index=N", "x": "N"})).verdict
    'refuted'
    """
    left, right = (_called(build(text, identity.shapes), VALUE) for text in (identity.left, identity.right))
    shapes = [system.arrays[VALUE].shape for system in (left, right)]
    if shapes[0] != shapes[1]:
        raise GradproofError(
            f"the two sides have the shapes {shapes[0]} and {shapes[1]}: {identity.left} = {identity.right}"
        )
    try:
        agreed = same_values(left, right, [VALUE])
    except StepError as error:
        return Proof("refuted", str(error))
    if _zero(left, right):
        return Proof("proved", f"the difference has normal form 0 for all sizes; {agreed}")
    for seed in range(1, MORE + 1):  # one point may agree by chance where there are lookups or conditions
        try:
            same_values(left, right, [VALUE], seed)
        except StepError as error:
            if "differ at" in str(error):
                return Proof("refuted", str(error))
    return Proof("agrees", f"{agreed}, and at {MORE} more")


def _called(system: System, name: str) -> System:
    (output,) = system.outputs
    return system.renamed({output: name})


def _zero(left: System, right: System) -> bool:
    """Whether the normal form of the difference of the two values is 0."""
    other = right.renamed({name: f"{name}_right" for name in right.defined})
    equations = [e.with_body(prepared(e.body)) for e in unmasked((*left.equations, *other.equations))]
    equations = split(equations, {**left.arrays, **other.arrays})
    both = System({**left.arrays, **other.arrays}, tuple(equations), (VALUE,), left.hidden | other.hidden)
    array = both.arrays[VALUE]
    outs = out_letters(array.rank)
    try:
        return vanishes(
            both, Access(VALUE, *outs) - Access(f"{VALUE}_right", *outs), array.axes(outs), facts=facts(both)
        )
    except NoNormalForm:
        return False


def unmasked(equations: Sequence[Equation]) -> list[Equation]:
    """The equations with masked scores put where they are read."""
    masks = [e for e in equations if isinstance(e.body, where) and e.body.args[2] == -oo]
    found = [e for e in equations if e not in masks or e.name == VALUE]
    for mask in masks:
        found = [put_in(e, mask) for e in found]
    return found


def prepared(expr: Expr) -> Expr:
    """Sines and cosines of sums by the angle-addition formulas; exp of a masked score is 0 where it is forbidden.

    >>> x, y = Access("x"), Access("y")
    >>> prepared(sin(x + y))
    sin(x)*cos(y) + sin(y)*cos(x)
    """
    if isinstance(expr, Access) or not expr.args:
        return expr
    expr = rebuild(expr, [prepared(arg) for arg in expr.args])
    if isinstance(expr, (sin, cos)):
        return angle(type(expr), expr.args[0].expand())
    if isinstance(expr, exp) and isinstance(expr.args[0], where):
        condition, allowed, forbidden = expr.args[0].args
        return where(condition, exp(allowed), 0) if forbidden == -oo else expr
    return expr


def angle(function: type[sin] | type[cos], argument: Expr) -> Expr:
    """sin(a + b) = sin a cos b + cos a sin b, cos(a + b) = cos a cos b − sin a sin b."""
    if not isinstance(argument, Add):
        return function(argument)
    a, b = argument.as_two_terms()
    sines = angle(sin, a), angle(sin, b)
    cosines = angle(cos, a), angle(cos, b)
    if function is sin:
        return sines[0] * cosines[1] + cosines[0] * sines[1]
    return cosines[0] * cosines[1] - sines[0] * sines[1]


def agrees(found: str, expected: str) -> bool:
    """Whether a verdict is the one that an entry states; an exact check at random points counts as right."""
    return found == expected or (expected == "proved" and found == "agrees")


def derived_moment(moment: Moment) -> tuple[Expr, bool]:
    """The expectation or variance that is derived, and whether it is the stated one."""
    found = getattr(moments, moment.kind)(moment.expression, moment.shapes).value
    if any(access.indices for access in accesses(found)):  # the value reads arrays: it is written in the language
        stated = build(moment.value, moment.shapes)
        return found, vanishes(stated, found - Access(*stated.outputs), ())
    symbols = {str(symbol): symbol for symbol in (*found.free_symbols, *accesses(found))}
    return found, (found - sympify(moment.value, locals=symbols)).expand() == 0

"""How an identity is established: the normal form of the difference is 0, or both sides agree at random points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mpmath
from sympy import sympify

from gradproof.symbolic import moments
from gradproof.symbolic.catalogue.entry import Identity, Moment
from gradproof.symbolic.equations.expr import Access, accesses
from gradproof.symbolic.equations.roles import copied
from gradproof.symbolic.equations.system import System, out_letters
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import StepError, same_values
from gradproof.symbolic.folding.fold import facts
from gradproof.symbolic.judging.counterexample import smallest
from gradproof.symbolic.judging.normal_form import vanishes
from gradproof.symbolic.judging.proving import Steps, proof, summary
from gradproof.symbolic.judging.sampling import Pair, compared
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.moments import MomentResult
from gradproof.symbolic.phrases import joined, phrase

VALUE = "VALUE"  # the name of both sides, where no array has it
MORE = 24  # further random points for what is not proved


@dataclass(frozen=True)
class Proof:
    """The verdict on an identity ("proved", "agrees" or "refuted"), how it was reached, and the steps of a proof."""

    verdict: str
    how: str
    steps: Steps = ()


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
    left, right = sides(identity)
    value = left.outputs
    try:
        agreed = same_values(left, right, value)
    except StepError as error:
        return Proof("refuted", _apart(error, left, right))
    if (steps := proof_steps(left, right)) is not None:
        return Proof("proved", joined("; ", [summary(steps), agreed]), steps)
    for seed in range(1, MORE + 1):  # one point may agree by chance where there are lookups or conditions
        try:
            same_values(left, right, value, seed)
        except StepError as error:
            if error.difference is not None:
                return Proof("refuted", _apart(error, left, right))
    return Proof("agrees", phrase("{}, and at {} more", agreed, MORE))


def _apart(error: StepError, left: System, right: System) -> str:
    """Where the two sides differ: the smallest counterexample, or the entry where they were found to differ.

    A failure that found no difference is raised again.
    """
    found = error.difference
    if found is None:
        raise error
    both, other = _both(left, right)
    pair = Pair(both, left.outputs[0], other)
    point = compared(pair).differs
    example = smallest(pair, point, "the left side") if point is not None else None
    if example is not None:
        return replace(example, who="the right side").said
    values = (f"{float(v):.10g}" if isinstance(v, mpmath.mpf) else str(v) for v in (found.left, found.right))
    if found.index:
        return phrase("the two sides differ at {}: {} against {}", list(found.index), *values)
    return phrase("the two sides differ: {} against {}", *values)


def sides(identity: Identity) -> tuple[System, System]:
    """Both sides as systems whose outputs have the same name.

    Raises GradproofError where their shapes differ.
    """
    left, right = (build(text, identity.shapes) for text in (identity.left, identity.right))
    value = left.free_name(VALUE, right.taken)
    left, right = (system.renamed({system.outputs[0]: value}) for system in (left, right))
    shapes = [system.arrays[value].shape for system in (left, right)]
    if shapes[0] != shapes[1]:
        raise GradproofError(
            f"the two sides have the shapes {shapes[0]} and {shapes[1]}: {identity.left} = {identity.right}"
        )
    return left, right


def proof_steps(left: System, right: System) -> Steps | None:
    """The steps that show the two values to be equal; None where that fails."""
    both, other = _both(left, right)
    array = both.arrays[left.outputs[0]]
    outs = out_letters(array.rank)
    return proof(both, Access(array.name, *outs), Access(other, *outs), array.axes(outs), facts(both))


def _both(left: System, right: System) -> tuple[System, str]:
    """Both sides in one system, and how the right one is called there; what it defines prints as before."""
    new: dict[str, str] = {}
    for name in right.defined:
        new[name] = left.free_name(name, (*right.arrays, *new.values()))
    roles = {new[name]: copied(name, right.arrays[name].role, new) for name in new}
    other = right.renamed(new).with_roles(roles)
    both = System({**left.arrays, **other.arrays}, (*left.equations, *other.equations), left.outputs)
    return both, other.outputs[0]


def agrees(found: str, expected: str) -> bool:
    """Whether a verdict is the one that an entry states; an exact check at random points counts as right."""
    return found == expected or (expected == "proved" and found == "agrees")


def derived_moment(moment: Moment, lang: str = "en") -> tuple[MomentResult, bool]:
    """The expectation or variance that is derived, with its steps, and whether it is the stated one."""
    result: MomentResult = getattr(moments, moment.kind)(moment.expression, moment.shapes, lang)
    found = result.value
    if any(access.indices for access in accesses(found)):  # the value reads arrays: it is written in the language
        stated = build(moment.value, moment.shapes)
        return result, vanishes(stated, found - Access(*stated.outputs), ())
    symbols = {str(symbol): symbol for symbol in (*found.free_symbols, *accesses(found))}
    return result, (found - sympify(moment.value, locals=symbols)).expand() == 0

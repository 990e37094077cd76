"""Every derived equation of the catalogue, corrupted in turn, is rejected by the check against the forward alone."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from sympy import Add, Expr, Mul, preorder_traversal

from gradproof.numeric.compile import with_forward
from gradproof.symbolic.catalogue import Entry, entries
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.equations.calculus import adjoint
from gradproof.symbolic.equations.expr import (
    Access,
    Compare,
    Reduce,
    accesses,
    compare,
    delta,
    letters,
    names,
    open_,
    sum_,
)
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.folding.checks import StepError
from gradproof.symbolic.folding.differences import AdjointCheck, tangents_hold

SEEDS = range(80)  # a branch that is not taken, a token that does not repeat: another point shows it
LARGE = {"block.pre_ln", "block.post_ln", "seq2seq.loss"}  # in the fast run every equation of these is corrupted once
GRADIENTS = [entry for entry in entries() if entry.expression]


def mutants(equation: Equation, system: System) -> Iterator[tuple[str, Expr]]:
    """Corrupted right sides: what was done, and the new body."""
    body = equation.body
    if not names(body):
        return
    yield "the sign is flipped", -body
    sums = [node for node in dict.fromkeys(preorder_traversal(body)) if isinstance(node, Add) and names(node)]
    for node in sums:
        for term in node.args:
            if names(term) or not letters(term):
                yield f"the term {term} is dropped", body.xreplace({node: node - term})
                yield f"the sign of {term} is flipped", body.xreplace({node: node - 2 * term})
    if isinstance(body, Add):
        yield "= for +=", body.args[-1]
    for access in accesses(body):
        shape = system.arrays[access.name].shape
        for a in range(len(shape)):
            for b in range(a):
                if shape[a] == shape[b] and access.indices[a] != access.indices[b]:
                    swapped = list(access.indices)
                    swapped[a], swapped[b] = swapped[b], swapped[a]
                    yield f"{access} is transposed", body.xreplace({access: Access(access.name, *swapped)})
    for node in [node for node in body.atoms(Reduce) if node.op == "sum"]:
        if (last := last_write(node)) is not None:
            yield "a scatter writes instead of adding", body.xreplace({node: last})


def last_write(node: Reduce) -> Expr | None:
    """A scatter-add as a scatter: of all positions that hold one row's number only the last counts."""
    body, axes = open_(node, letters(node))
    for factor in Mul.make_args(body):
        if isinstance(factor, Compare) and factor.op == "==" and factor.atoms(Access):
            lookup = next(iter(factor.atoms(Access)))
            letter = next(iter(letters(lookup) & {axis[0] for axis in axes}), None)
            if letter is None:
                return None
            _, _, hi = next(axis for axis in axes if axis[0] == letter)
            other = letter.func(f"{letter.name}_later")
            same = delta(lookup, lookup.xreplace({letter: other}))
            return sum_(body * compare("==", sum_(same, [(other, letter + 1, hi)]), 0), axes)
    return None


def derived(found: Derivation) -> list[Equation]:
    """The derived equations that the results need."""
    wanted = [gradient.equation.name for gradient in found.gradients.values()]
    return [e for e in found.system.needed(wanted).equations if e.name not in found.forward.defined]


def holds(entry: Entry, found: Derivation, system: System, seed: int, changed: str) -> None:
    """Check the results that the changed equation takes part in; raises StepError where one does not hold."""
    for name, gradient in found.gradients.items():
        target = gradient.equation.name
        if changed not in {e.name for e in system.needed([target]).equations}:
            continue
        if entry.mode == "adjoint":
            AdjointCheck(system, found.output, found.cotangent, seed).holds(name)
        elif entry.mode == "tangent":
            directions = {variable: f"d{variable}" for variable in entry.wrt}
            tangents_hold(system, directions, {found.output: lambda point, i, t=target: point.entry(t, i)}, seed)
        else:
            row, column = (name.split(",") * 2)[:2] if entry.mode == "hessian" else (found.output, name)
            source = system.gradient_of(row) if entry.mode == "hessian" else row
            wide = system.extended([Array("along", system.arrays[column].shape)], (), system.outputs)
            tangents_hold(wide, {column: "along"}, {source: partial(contracted, target)}, seed)


def contracted(target, point, index):
    return sum(point.entry(target, (*index, *j)) * point.entry("along", j) for j in point.indices("along"))


def rejected(entry: Entry, found: Derivation, whole: System, equation: Equation, body: Expr) -> bool:
    system = whole.with_equations(replace(e, body=body) if e is equation else e for e in whole.equations)
    for seed in SEEDS:
        try:
            holds(entry, found, system, seed, equation.name)
        except StepError:
            return True
    return False


def corrupted(entry: Entry, every: bool) -> list[str]:
    """The corruptions that were not noticed."""
    found = derive_entry(entry)
    whole = with_forward(found)
    survived = []
    for equation in derived(found):
        for k, (what, body) in enumerate(mutants(equation, whole)):
            if (every or k == 0) and body != equation.body and not rejected(entry, found, whole, equation, body):
                survived.append(f"{equation.name}: {what}")
    return survived


@pytest.mark.parametrize("entry", GRADIENTS, ids=lambda entry: entry.id)
def test_corruptions_are_rejected(entry: Entry) -> None:
    assert corrupted(entry, every=entry.id not in LARGE) == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in GRADIENTS if entry.id in LARGE], ids=lambda entry: entry.id)
def test_all_corruptions_of_the_large_ones(entry: Entry) -> None:
    assert corrupted(entry, every=True) == []


@pytest.mark.parametrize("entry", GRADIENTS, ids=lambda entry: entry.id)
def test_what_is_right_is_accepted(entry: Entry) -> None:
    found = derive_entry(entry)
    for equation in derived(found)[:1]:
        holds(entry, found, with_forward(found), 1, equation.name)


@pytest.mark.parametrize("entry", [e for e in GRADIENTS if e.mode == "adjoint"], ids=lambda entry: entry.id)
def test_corruptions_are_rejected_in_one_step(entry: Entry) -> None:
    """Before anything is folded: the adjoint of every array, given the adjoints of what reads it."""
    found = derive_entry(entry)
    raw = adjoint(found.forward, found.wrt, found.cotangent)
    survived = []
    for equation in [e for e in raw.equations if e.name not in found.forward.defined]:
        source = raw.arrays[equation.name].role.of
        readers = [e.name for e in found.forward.needed().readers.get(source, ())]
        for what, body in list(mutants(equation, raw))[: 2 if entry.id in LARGE else None]:
            wrong = raw.with_equations(e.with_body(body) if e is equation else e for e in raw.equations)
            if body != equation.body and not refused(wrong, found, source, readers):
                survived.append(f"{equation.name}: {what}")
    assert survived == []


def refused(system: System, found: Derivation, source: str, readers: list[str]) -> bool:
    for seed in SEEDS:
        try:
            AdjointCheck(system, found.output, found.cotangent, seed).one_step(source, readers)
        except StepError:
            return True
    return False

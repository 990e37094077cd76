"""From a catalogue entry to its derivation."""

from __future__ import annotations

from dataclasses import replace

from gradproof.symbolic.catalogue.entry import Entry
from gradproof.symbolic.deriving.derivation import Derivation, Gradient, derive_system
from gradproof.symbolic.deriving.products import hessian, jacobian, jvp, propagation
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import Program, parse


def documented(entry: Entry) -> tuple[Program, System]:
    """The program of an entry and its system, under the names of the document.

    Raises GradproofError for an entry that states no expression.
    """
    if not entry.expression:
        raise GradproofError(
            f"{entry.id} states no function to differentiate; `gradproof audit {entry.id}` shows what it rests on"
        )
    program = parse(entry.expression)
    return program, build(program, entry.shapes, entry.shown).renamed(entry.names)


def derive_entry(entry: Entry, lang: str = "en", layout: str = "numerator") -> Derivation:
    """Derive what an entry states, in the form in which it is shown; `layout` is that of Jacobians.

    Raises GradproofError for an entry that states no expression.

    >>> from gradproof.symbolic.catalogue import get
    >>> print(derive_entry(get("softmax.cross_entropy")).lines()[-1])
    l̄_j = p_j − 1[j = y]
    """
    program, system = documented(entry)
    if entry.mode == "jacobian":
        found = jacobian(system, entry.wrt, program, layout, lang)
    elif entry.mode == "tangent":
        found = jvp(
            system,
            {name: f"d{name}" for name in entry.wrt},
            program,
            lang,
            entry.shown,
            entry.absorbed,
        )
        found = replace(found, listed=tuple(map(found.system.tangent_of, entry.shown)))
    elif entry.mode == "hessian":
        found = hessian(system, entry.wrt, program, lang)
    elif entry.mode == "propagation":
        found = propagation(system, entry.wrt[0], program, lang)
    else:
        found = derive_system(system, entry.wrt, entry.cotangent, entry.shown, program, lang)
        found = replace(found, listed=tuple(map(found.system.adjoint_of, entry.shown)))
    return _renamed(replace(found, letters=dict(entry.letters), form=entry.form), entry)


def _renamed(found: Derivation, entry: Entry) -> Derivation:
    """The derivation with arrays under the names that the document gives them."""
    new = {old: name for old, name in entry.names.items() if old in found.system.arrays}
    if not new:
        return found
    system = found.system.renamed(new)
    gradients = {
        name: Gradient(name, system.defined[new.get(g.equation.name, g.equation.name)][-1], system)
        for name, g in found.gradients.items()
    }
    listed = tuple(new.get(name, name) for name in found.listed)
    return replace(found, system=system, gradients=gradients, listed=listed)

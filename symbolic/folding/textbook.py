"""The one road from derived equations to the form that a textbook prints.

    kept names   helper values are written in the kept names: P = E/Z gives E → P·Z
    simplify     what does not depend on a summed letter leaves the sum, facts are used, common factors are pulled out
    substitute   what is read once, and what belongs to a helper, is put where it is read
    kept names   z_i − log Σ exp(z) is log p_i where the softmax p has a name
    substitute   an adjoint that has turned out to be 0 needs no name

A recorder sees every move with the system before and after it, and the facts that it used: so a derivation is logged
and checked. Without one the road is the same, for models and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gradproof.symbolic.equations.system import System
from gradproof.symbolic.folding.facts import Facts
from gradproof.symbolic.folding.fold import facts, inline, normalised, of_helpers, rewrite
from gradproof.symbolic.folding.logarithms import with_logarithms
from gradproof.symbolic.folding.symmetry import inferred

Recorder = Callable[[str, System, System, Facts], None]


def textbook(
    system: System,
    derived: Sequence[str],
    recorder: Recorder | None = None,
    *,
    keep: Iterable[str] = (),
    absorb: Iterable[str] = (),
    beside: Iterable[str] = (),
) -> System:
    """The equations that the outputs need, the `derived` ones among them in textbook form.

    `keep` names derived arrays that stay visible, `absorb` those that never do; the arrays `beside` the outputs are
    kept with what they need.

    >>> from gradproof.symbolic.equations.calculus import adjoint
    >>> from gradproof.symbolic.language.reader import build
    >>> raw = adjoint(build("z = a * x; sum(tanh(z))", {"x": "n", "a": ""}), ["x"])
    >>> textbook(raw, ["L_bar", "z_bar", "x_bar"]).defined["x_bar"][0].body
    (1 - tanh(z[o0])**2)*a
    """
    system = inferred(system)
    known = facts(system, derived)
    helpers = of_helpers(system) | set(absorb)
    moves: tuple[tuple[str, Callable[[System], System]], ...] = (
        ("kept names", lambda s: rewrite(s, derived)),
        ("simplify", lambda s: normalised(s, derived, known)),
        ("substitute", lambda s: inline(s, derived, keep, helpers)),
        ("simplify", lambda s: normalised(s, derived, known)),
        ("kept names", lambda s: with_logarithms(s, derived)),
        ("simplify", lambda s: normalised(s, derived, known)),
        ("substitute", lambda s: inline(s, zeros(s, derived), keep)),
        ("simplify", lambda s: normalised(s, derived, known)),
    )
    for rule, move in moves:
        known.used.clear()
        before, system = system, move(system)
        if recorder is not None:
            recorder(rule, before, system, known)
    outputs = tuple(dict.fromkeys(system.outputs))
    return replace(system.needed([*beside, *outputs]), outputs=outputs, _cache={})


def zeros(system: System, derived: Iterable[str]) -> list[str]:
    """The derived arrays that are 0 for all their indices."""
    return [name for name in derived if name in system.defined and all(e.body == 0 for e in system.defined[name])]

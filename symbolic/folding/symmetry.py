"""Which defined arrays are symmetric, diagonal or orthogonal because of what they are defined from.

XᵀX + λI is symmetric, and so is the inverse of a symmetric matrix. The property is noted in the array, where the
folding (`facts.py`) and the printers find it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradproof.symbolic.equations.definitions import plain
from gradproof.symbolic.equations.expr import Implicit, accesses, letters
from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.equations.properties import PROPERTIES
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.folding.facts import declared
from gradproof.symbolic.folding.fold import normalise


def inferred(system: System) -> System:
    """The system with the properties of its defined matrices noted.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("M = X.T @ X + lam*eye(d); logdet(M)", {"X": "n,d", "lam": ""})
    >>> [name for name, array in system.arrays.items() if "symmetric" in array.properties]
    ['M', 'M_inv']
    """
    for name in [name for group in system.groups if len(group) == 1 for name in group]:
        equation, array = plain(system, name), system.arrays[name]
        if equation is None or array.rank < 2 or not same(*array.shape[-2:]):
            continue
        found: frozenset[str] = frozenset()
        if isinstance(equation.body, Implicit):
            found = system.arrays[equation.body.matrix].properties & PROPERTIES["matrix"]
        elif _symmetric(system, equation):
            found = frozenset({"symmetric"})
        if found:
            arrays = {**system.arrays, name: replace(array, properties=array.properties | found)}
            system = replace(system, arrays=arrays, _cache={})
    return system


def _symmetric(system: System, equation: Equation) -> bool:
    """Whether the body stays the same when the last two letters change places."""
    i, j = equation.place[-2:]
    kinds = {(a.name, i in letters(a), j in letters(a)) for a in accesses(equation.body)}
    if kinds != {(name, right, left) for name, left, right in kinds}:
        return False
    flipped = equation.body.xreplace({i: j, j: i})
    known = declared(system)
    return normalise(equation.body, equation.axes, known) == normalise(flipped, equation.axes, known)


def withheld(system: System, variables: Iterable[str]) -> System:
    """The system without what was declared of some inputs, and without what follows from it.

    A formula that is differentiated again by a variable must not have been simplified with what is declared of it: xᵀSx
    and xᵀSᵀx are equal for symmetric S and have different derivatives by S. So a gradient is simplified in full only
    when it is not differentiated further.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = withheld(build("logdet(S)", {"S": "n,n:symmetric"}), ["S"])
    >>> [array.properties for array in system.arrays.values()]
    [frozenset(), frozenset(), frozenset()]
    """
    variables = set(variables)
    arrays = {
        name: replace(array, properties=array.properties - PROPERTIES["all"])
        if name in variables or name in system.defined
        else array
        for name, array in system.arrays.items()
    }
    return inferred(replace(system, arrays=arrays, _cache={}))


def restored(system: System, source: System) -> System:
    """The system with the properties that the arrays have in `source`."""
    arrays = {
        name: replace(array, properties=source.arrays[name].properties) if name in source.arrays else array
        for name, array in system.arrays.items()
    }
    return replace(system, arrays=arrays, _cache={})

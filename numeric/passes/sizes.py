"""Sizes are read off the axes of the arrays that show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sympy import Expr, Pow, S, Symbol

from gradproof.numeric.lowering.nodes import Node, identifier
from gradproof.numeric.lowering.program import Measure, Reading
from gradproof.symbolic.equations.expr import Reduce, Size, letters, names, nonnegative
from gradproof.symbolic.equations.system import Array, System
from gradproof.symbolic.folding.checks import fixed_places


def readings(arrays: Iterable[Array]) -> dict[Symbol, Reading]:
    """How each size is read off the arrays; sizes that stand alone on an axis come first.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> n, m = Size("n"), Size("m")
    >>> found = readings([Array("v", (n + m - 1,)), Array("A", (n,))])
    >>> found[n].array, found[m].array, found[m].rest
    ('A', 'v', n - 1)
    """
    axes = [(array.name, axis, size) for array in arrays for axis, size in enumerate(array.shape)]
    found: dict[Symbol, Reading] = {}
    for name, axis, size in axes:
        if isinstance(size, Symbol):
            found.setdefault(size, Reading(size, name, axis, S.One, S.Zero))
    while True:
        for name, axis, size in axes:
            unknown = size.free_symbols - found.keys()
            if len(unknown) == 1:
                (symbol,) = unknown
                slope = size.expand().coeff(symbol)
                rest = (size - slope * symbol).expand()
                if slope != 0 and (slope.free_symbols | rest.free_symbols) <= found.keys():
                    found[symbol] = Reading(symbol, name, axis, slope, rest)
                    break
        else:
            return found


def mentioned(system: System, spelled: Collection[Symbol], read: Mapping[Symbol, Reading]) -> list[Symbol]:
    """The sizes of a system that its code spells, and those that are needed to read them off the arrays."""
    known = dict.fromkeys(system.sizes)
    for equation in system.equations:  # a size may stand in a range only
        for expr in (equation.body, *(bound for _, *bounds in equation.axes for bound in bounds)):
            known.update(dict.fromkeys(sorted(expr.atoms(Size), key=str)))
    used: list[Symbol] = [size for size in known if size in spelled]
    for size in used:  # the list grows while it is read
        if size in read:
            needed = read[size].rest.free_symbols | read[size].slope.free_symbols
            used += [other for other in sorted(needed, key=str) if other not in used]
    return used


def needs(system: System) -> tuple[Expr, ...]:
    """What must not be negative: fixed places lie inside their axes, no range ends before its start, no n is divided by
    that is 0.

    A range that may be empty at sizes of at least 1 (2 … n − 1) is empty where its length would be negative; one that
    may only be so for an axis without entries (1 … n − 1 with n = 0) is not taken care of.

    >>> from gradproof.symbolic.language.reader import build
    >>> needs(build("sum(x[1:]) + A[2, 0] + mean(y)", {"x": "n", "y": "p", "A": "m,4"}))
    (m - 3, n - 1, p - 1)
    """
    inside = {piece - 1 for piece in fixed_places(system)}
    nodes = {node for equation in system.equations for node in equation.body.atoms(Reduce)}
    axes = [axis for part in (*nodes, *system.equations) for axis in part.axes]
    found = {(hi - lo).expand() for _, lo, hi in axes} | {s for array in system.arrays.values() for s in array.shape}
    divisors = [f for e in system.equations for f in e.body.atoms(Pow) if f.exp.is_negative and not names(f)]
    found |= {size - 1 for divisor in divisors for size in divisor.free_symbols if isinstance(size, Size)}
    found = {size for size in found if not letters(size) and nonnegative(size)} | {size.expand() for size in inside}
    falling = {size for size in found if any(c < 0 for c in size.as_coefficients_dict().values())}
    return tuple(sorted((size for size in falling if size.free_symbols), key=str))


def measures(arrays: Iterable[Array], read: Mapping[Symbol, Reading], used: Sequence[Symbol]) -> list[Measure]:
    """The statements that read sizes: those that stand alone on an axis, then those in terms of other sizes."""
    nodes = {array.name: Node("array", (), (identifier(array.name),), array.shape) for array in arrays}
    wanted = [reading for reading in read.values() if reading.size in used]
    plain: dict[str, list[Reading]] = {name: [] for name in nodes}
    for reading in wanted:
        if reading.slope == 1 and reading.rest == 0:
            plain[reading.array].append(reading)
    found = [Measure(nodes[name], tuple(mine)) for name, mine in plain.items() if mine]
    return found + [Measure(nodes[r.array], (r,)) for r in wanted if r.slope != 1 or r.rest != 0]

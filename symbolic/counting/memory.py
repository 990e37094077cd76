"""Entries of arrays: how many there are, and how many of them an equation reads."""

from __future__ import annotations

from sympy import Add, Expr, Mul, S

from gradproof.symbolic.counting.operations import Ranges, volume
from gradproof.symbolic.equations.expr import Access, Implicit, Index, Reduce, letters
from gradproof.symbolic.equations.system import Equation, System

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}  # of one entry


def read_entries(equation: Equation, system: System) -> dict[str, Expr]:
    """How many entries of each array an equation reads, each counted once."""
    found: dict[str, set[Expr]] = {}
    collect(equation.body, {letter: (lo, hi) for letter, lo, hi in equation.axes}, system, found)
    totals = {}
    for name, counts in found.items():
        whole = entries(system, name)
        totals[name] = whole if whole in counts else Add(*counts)
    return totals


def collect(expr: Expr, ranges: Ranges, system: System, found: dict[str, set[Expr]]) -> None:
    if isinstance(expr, Access):
        found.setdefault(expr.name, set()).add(covered(expr, ranges, system))
    if isinstance(expr, Implicit):
        found.setdefault(expr.matrix, set()).add(entries(system, expr.matrix))
    if isinstance(expr, Reduce):
        ranges = {**ranges, **{letter: (lo, hi) for letter, lo, hi in expr.axes}}
    for arg in expr.args:
        collect(arg, ranges, system, found)


def covered(access: Access, ranges: Ranges, system: System) -> Expr:
    """How many entries of an array one access reaches, at most all of them."""
    array, count = system.arrays[access.name], S.One
    if any(index.atoms(Access) for index in access.indices):  # a lookup reads one entry for each value of its letters
        return volume(letters(access), ranges)
    for size, index in zip(array.shape, access.indices, strict=True):
        used = letters(index)
        if isinstance(index, Index) and not any(letters(S(bound)) for bound in ranges[index]):
            count *= ranges[index][1] - ranges[index][0]
        elif used or index.free_symbols - set(system.sizes):
            count *= size
    return count.expand()


def entries(system: System, name: str) -> Expr:
    """The number of entries of an array.

    >>> from gradproof.symbolic.language.reader import build
    >>> entries(build("X @ W", {"X": "n,d", "W": "d,3"}), "W")
    3*d
    """
    return Mul(*system.arrays[name].shape).expand()

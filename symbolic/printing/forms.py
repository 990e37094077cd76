"""From an equation to the trees of its two sides, in the matrix form where there is one, else by indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sympy import Expr, S

from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Implicit,
    Index,
    accesses,
    delta,
    fresh,
    map_accesses,
    names,
    sum_,
)
from gradproof.symbolic.equations.origins import Softmax
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.printing.entries import to_entries
from gradproof.symbolic.printing.letters import Letters
from gradproof.symbolic.printing.matrix import matrix_form
from gradproof.symbolic.printing.nodes import Call, Name, Node

FORMS = ("matrix", "index")


class Sides(NamedTuple):
    """An equation ready to be written: two trees, and the range of each letter that is not the whole axis."""

    left: Node
    right: Node
    ranges: tuple[Axis, ...]


def sides(equation: Equation, system: System, form: str = "matrix", letters: Letters | None = None) -> Sides:
    """Both sides of an equation as trees."""
    letters = letters or Letters(system)
    array = system.arrays.get(equation.name)
    equation = readable(equation, letters, array.letters if array is not None else ())
    if form != "matrix" and isinstance(equation.body, Implicit) and equation.body.kind == "inv":
        return _inverse(equation, equation.body, system, letters)
    if form == "matrix":
        equation, system = squeezed(equation, system)
    found = matrix_form(equation.with_body(equation.written), system, letters) if form == "matrix" else None
    left = found.left if found else Name(equation.name, equation.place)
    if equation.origin is not None:
        right = _softmax(equation, equation.origin, left, system, letters, found.right if found else None)
    else:
        right = found.right if found else to_entries(equation.body, _outs(equation), system, letters)
    return Sides(left, right, _partial(equation, system))


def _inverse(equation: Equation, node: Implicit, system: System, letters: Letters) -> Sides:
    """An inverse by its entries: Σ_k A_ik (A⁻¹)_kj = δ_ij."""
    *batch, i, j = node.indices
    (k,) = fresh(_outs(equation), 1)
    product = Access(node.matrix, *batch, i, k) * Access(equation.name, *batch, k, j)
    left, right = (
        to_entries(side, _outs(equation), system, letters)
        for side in (sum_(product, [(k, S.Zero, node.size)]), delta(i, j))
    )
    return Sides(left, right, ())


def squeezed(equation: Equation, system: System) -> tuple[Equation, System]:
    """Without the axes of size 1 that `keepdims=True` left in computed arrays: s_i0 is the vector s."""
    kept, thin = _thin(system)
    if kept.keys().isdisjoint({equation.name, *names(equation.body), *names(equation.written)}):
        return equation, thin

    def entry(access: Access) -> Access:
        return Access(access.name, *(access.indices[k] for k in kept[access.name]))

    def body(expr: Expr) -> Expr:
        expr = map_accesses(expr, entry, kept, _outs(equation))
        return expr.xreplace({letter: S.Zero for letter in gone})

    own = kept.get(equation.name, range(len(equation.place)))
    gone = {index for k, index in enumerate(equation.place) if k not in own and isinstance(index, Index)}
    origin = equation.origin and replace(equation.origin, argument=body(equation.origin.argument))
    place = tuple(equation.place[k] for k in own)
    axes = tuple(axis for axis in equation.axes if axis[0] not in gone)
    return Equation(equation.name, place, axes, body(equation.body), origin), thin


def _thin(system: System) -> tuple[dict[str, list[int]], System]:
    """The system without axes of size 1 in computed arrays, and which axes the arrays that had some keep."""
    if "thin" not in system._cache:
        kept = {
            name: [k for k, size in enumerate(array.shape) if size != 1]
            for name, array in system.arrays.items()
            if name in system.defined and S.One in array.shape
        }
        arrays = {
            name: replace(array, shape=tuple(array.shape[k] for k in kept[name])) if name in kept else array
            for name, array in system.arrays.items()
        }
        thin = replace(system, arrays=arrays, _cache={}) if kept else system
        system._cache["thin"] = kept, thin
    return system._cache["thin"]  # type: ignore[return-value]


def _outs(equation: Equation) -> list[Index]:
    return [letter for letter, _, _ in equation.axes]


def readable(equation: Equation, letters: Letters, written: Sequence[str] = ()) -> Equation:
    """The equation with readable letters in place of the canonical ones: those that the user wrote, where there are."""
    own = {index: name for index, name in zip(equation.place, written, strict=False) if isinstance(index, Index)}
    renamed = letters.outs(((letter, hi - lo) for letter, lo, hi in equation.axes), own)
    return Equation(
        equation.name,
        tuple(index.xreplace(renamed) for index in equation.place),
        tuple((renamed[letter], lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in equation.axes),
        equation.body.xreplace(renamed),
        equation.origin and equation.origin.xreplace(renamed),
    )


def _softmax(
    equation: Equation, origin: Softmax, left: Name, system: System, letters: Letters, argument: Node | None
) -> Node:
    """softmax(S) over the last axis of a whole array, softmax_{axis=0}(S) over another; by entries, softmax_j(S_ij)."""
    over: Expr | int | None = origin.over
    if argument is None:
        argument = to_entries(origin.argument, _outs(equation), system, letters)
    elif origin.over not in left.at:  # the axis is a whole one
        axis = equation.place.index(origin.over)
        over = None if axis == len(equation.place) - 1 else axis
    return Call("softmax", (argument,), over)


def _partial(equation: Equation, system: System) -> tuple[Axis, ...]:
    """The letters of the left side that do not run over the whole axis."""
    array = system.arrays[equation.name]
    found = []
    for letter, lo, hi in equation.axes:
        axis = equation.place.index(letter)
        if (lo, hi) != (array.first(axis), array.first(axis) + array.shape[axis]):
            found.append((letter, lo, hi))
    return tuple(found)


def as_equation(expr: Expr, outs: Sequence[Expr], system: System) -> Equation:
    """An expression as the right side of an equation: one of the system, if it has this one, or one without a name."""
    if "bodies" not in system._cache:
        system._cache["bodies"] = {(e.body, e.place): e for e in reversed(system.equations)}
    known: dict[tuple[Expr, tuple[Expr, ...]], Equation] = system._cache["bodies"]  # type: ignore[assignment]
    if (expr, tuple(outs)) in known:
        return known[expr, tuple(outs)]
    ranges: dict[Expr, tuple[Expr, Expr]] = {}
    for access in accesses(expr):
        array = system.arrays[access.name]
        for axis, index in enumerate(access.indices):
            ranges.setdefault(index, (array.first(axis), array.first(axis) + array.shape[axis]))
    axes = tuple((letter, *ranges.get(letter, (S.Zero, S.One))) for letter in outs if isinstance(letter, Index))
    return Equation("", tuple(outs), axes, expr)


def with_target(system: System, equation: Equation) -> System:
    """The system with an array for an equation without a name."""
    if equation.name:
        return system
    ends = {letter: hi for letter, _, hi in equation.axes}
    shape = tuple(ends.get(index, S.One) for index in equation.place)
    return System({**system.arrays, "": Array("", shape)}, system.equations, ())

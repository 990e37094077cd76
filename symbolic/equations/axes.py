"""Axes of a system: of a batch, of heads, of time; their order and their sizes.

A formula is stated once, for one position or one sample; a network runs it along further axes.

    y_k = Σ_l x_l W_lk      with_axis(…, "B", {"x": 0})      y_bk = Σ_l x_bl W_lk
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sympy import Expr, Integer, S, sympify

from gradproof.symbolic.equations.expr import Access, Axis, Index, Size, accesses, letters
from gradproof.symbolic.equations.rewriting import lettered, rewrite, rewritten, with_reads
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.errors import GradproofError


def with_axis(system: System, size: str, at: Mapping[str, int], place: int = 0) -> System:
    """The system with a further axis of some inputs, and of all that reads them: at `at`, else at `place`.

    >>> from gradproof.symbolic.language.reader import build
    >>> batched = with_axis(build("y = W @ x", {"W": "n,m", "x": "m"}), "B", {"x": 0})
    >>> batched.equations[0].target, batched.equations[0].body
    (y[o0, o1], sum[b1=0:m](W[o1, b1]*x[o0, b1]))
    """
    reached = system.readers_of(name for name in at if name in system.inputs)
    letter, length = Index("axis"), Size(size)

    def grown(name: str, items: tuple[Expr, ...], item: Expr) -> tuple[Expr, ...]:
        k = at.get(name, place)
        return (*items[:k], item, *items[k:])

    def read(access: Access) -> Expr:
        return Access(access.name, *grown(access.name, access.indices, letter))

    arrays = {
        name: replace(a, shape=grown(name, a.shape, length), letters=()) if name in reached else a
        for name, a in system.arrays.items()
    }
    equations = []
    for e in system.equations:
        if e.name in reached:
            changed = with_reads(e, reached, read)
            axes = (*e.axes, (letter, S.Zero, length))
            e = lettered(replace(changed, place=grown(e.name, e.place, letter), axes=axes))
        equations.append(e)
    return replace(system, arrays=arrays, equations=tuple(equations), _cache={})


def without_axis(system: System, size: str) -> System:
    """The system for one place of an axis, which no equation may sum over: the opposite of `with_axis`.

    Raises GradproofError where entries of different places meet.
    """
    gone = Size(size)

    def left(array: Array, items: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(item for length, item in zip(array.shape, items, strict=True) if length != gone)

    def read(access: Access) -> Expr:
        return Access(access.name, *left(system.arrays[access.name], access.indices))

    equations = []
    for e in system.equations:
        kept = tuple(axis for axis in e.axes if axis[2] != gone)
        e = with_reads(e, system.arrays, read)
        if letters(e.body) - {letter for letter, _, _ in kept} or gone in e.body.free_symbols:
            raise GradproofError(f"{e.name} needs more than one place of the axis {size}")
        equations.append(lettered(replace(e, place=left(system.arrays[e.name], e.place), axes=kept)))
    arrays = {name: replace(a, shape=left(a, a.shape), letters=()) for name, a in system.arrays.items()}
    return replace(system, arrays=arrays, equations=tuple(equations), _cache={})


def laid_out(system: System, order: Mapping[str, Sequence[int]]) -> System:
    """The system with the axes of some arrays in another order, as `transpose` of NumPy counts them."""

    def moved(name: str, items: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(items[k] for k in order[name])

    arrays = {n: replace(a, shape=moved(n, a.shape), letters=()) if n in order else a for n, a in system.arrays.items()}
    equations = []
    for e in system.equations:
        e = with_reads(e, order, lambda a: Access(a.name, *moved(a.name, a.indices)))
        equations.append(lettered(replace(e, place=moved(e.name, e.place))) if e.name in order else e)
    return replace(system, arrays=arrays, equations=tuple(equations), _cache={})


def with_sizes(system: System, new: Mapping[str, str]) -> System:
    """The system with sizes called by other names; two may get the same one."""
    sizes: dict[Expr, Expr] = {Size(old): Size(name) for old, name in new.items()}

    def put(expr: Expr) -> Expr:
        return sympify(expr).xreplace(sizes)

    arrays = {
        name: replace(a, shape=tuple(map(put, a.shape)), below=a.below if a.below is None else put(a.below))
        for name, a in system.arrays.items()
    }
    equations = tuple(
        replace(rewritten(e, put), axes=tuple((letter, put(low), put(high)) for letter, low, high in e.axes))
        for e in system.equations
    )
    return replace(system, arrays=arrays, equations=equations, _cache={})


def with_own_size(system: System, size: str, at: Mapping[str, int]) -> System:
    """The system in which one axis of some arrays has a size of its own, where the document uses one size twice."""
    arrays = dict(system.arrays)
    for name, k in at.items():
        shape = list(arrays[name].shape)
        shape[k] = Size(size)
        arrays[name] = replace(arrays[name], shape=tuple(shape))

    def ranges(axes: Iterable[Axis], body: Expr, own: Iterable[Expr] = ()) -> list[Axis]:
        wide = {a.indices[at[a.name]] for a in accesses(body) if a.name in at} | set(own)
        return [(letter, low, Size(size) if letter in wide else high) for letter, low, high in axes]

    equations = []
    for e in system.equations:
        own = [e.place[at[e.name]]] if e.name in at else []
        equations.append(
            replace(
                rewritten(e, lambda expr: rewrite(expr, lambda node: None, ranges)),
                axes=tuple(ranges(e.axes, e.body, own)),
            )
        )
    return replace(system, arrays=arrays, equations=tuple(equations), _cache={})


def split_axis(system: System, size: str, outer: int, inner: str) -> System:
    """The system in which each axis of that size is two: of `outer` times `inner` places, (c, p) for c·inner + p.

    >>> from gradproof.symbolic.language.reader import build
    >>> pairs = split_axis(build("x @ y", {"x": "d", "y": "d"}), "d", 2, "p")
    >>> pairs.equations[0].body
    sum[b2=0:2, b1=0:p](x[b2, b1]*y[b2, b1])
    """
    old, sizes = Size(size), (Integer(outer), Size(inner))

    def halves(letter: Expr) -> tuple[Index, Index]:
        if not isinstance(letter, Index):
            raise GradproofError(f"an axis of size {size} is read at {letter}: it cannot be split")
        return Index(f"{letter}_outer"), Index(f"{letter}_inner")

    def items(array: Array, values: Iterable[Expr]) -> tuple[Expr, ...]:
        pairs = zip(array.shape, values, strict=True)
        return tuple(item for length, value in pairs for item in (halves(value) if length == old else (value,)))

    def ranges(axes: Iterable[Axis]) -> list[Axis]:
        found: list[Axis] = []
        for axis in axes:
            pair = zip(halves(axis[0]), sizes, strict=True) if axis[2] == old else ()
            found += [(letter, S.Zero, length) for letter, length in pair] or [axis]
        return found

    def visit(node: Expr) -> Expr | None:
        if isinstance(node, Access):
            inner = [rewrite(index, visit) for index in node.indices]
            return Access(node.name, *items(system.arrays[node.name], inner))
        return outer * sizes[1] if node == old else None

    arrays = {
        name: replace(
            a, shape=tuple(s for length in a.shape for s in (sizes if length == old else (length,))), letters=()
        )
        for name, a in system.arrays.items()
    }
    equations = tuple(
        lettered(
            replace(
                rewritten(e, lambda expr: rewrite(expr, visit, lambda axes, _: ranges(axes))),
                place=items(system.arrays[e.name], e.place),
                axes=tuple(ranges(e.axes)),
            )
        )
        for e in system.equations
    )
    return replace(system, arrays=arrays, equations=equations, _cache={})


# ---------------------------------------------------------------------------------------------------------------- time


def over_time(system: System, size: str, states: Mapping[str, str], at: Mapping[str, int]) -> System:
    """One step, from the states before it to those after it, as a recurrence over all steps.

    `states` maps each state before the step, an input, to the one after it; `at` says where the inputs that change from
    step to step have the axis of time. A state h becomes h[0] = h_0, h[t+1] = step(h[t]).

    >>> from gradproof.symbolic.language.reader import build
    >>> step = build("h = tanh(W @ h_0 + x)", {"W": "d,d", "h_0": "d", "x": "d"})
    >>> for e in over_time(step, "T", {"h_0": "h"}, {"x": 0}).equations: print(e.target, "=", e.body)
    h[0, o1] = h_0[o1]
    h[o0, o1] = tanh(x[o0 - 1, o1] + sum[b1=0:d](W[o1, b1]*h[o0 - 1, b1]))
    """
    starts = {before: system.arrays[before] for before in states}
    moving = with_axis(system, size, {**dict.fromkeys(states, 0), **at})
    after = {new: old for old, new in states.items()}
    one = S.One

    def read(access: Access) -> Expr:
        first, *rest = access.indices
        return Access(states.get(access.name, access.name), first + (one if access.name in after else 0), *rest)

    equations: list[Equation] = []
    for e in moving.equations:
        e = with_reads(e, {*states, *after}, read)
        if e.name in after:
            (letter, low, high), *others = e.axes
            start = Access(after[e.name], *e.place[1:])
            equations.append(Equation(e.name, (S.Zero, *e.place[1:]), tuple(others), start))
            earlier = rewritten(e, lambda body, letter=letter: body.xreplace({letter: letter - 1}))  # type: ignore[misc]
            e = replace(earlier, axes=((letter, low + 1, high + 1), *others))
        equations.append(e)
    arrays = {**moving.arrays, **starts}
    for name in after:
        arrays[name] = replace(arrays[name], shape=(arrays[name].shape[0] + 1, *arrays[name].shape[1:]))
    return replace(moving, arrays=arrays, equations=tuple(equations), _cache={})


def from_the_end(system: System, inputs: Mapping[str, int]) -> System:
    """The system with inputs that are read from the end of an axis to its start."""

    def read(access: Access) -> Expr:
        k = inputs[access.name]
        last = system.arrays[access.name].shape[k] - 1
        return Access(access.name, *access.indices[:k], last - access.indices[k], *access.indices[k + 1 :])

    return system.with_equations(with_reads(e, inputs, read) for e in system.equations)

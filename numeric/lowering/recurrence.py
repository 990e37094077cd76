"""Recurrences as loops over one axis.

Arrays that need each other run along one axis each. `Order` finds these axes, a direction and a shift of every array
such that each step needs earlier steps only. The range of steps is cut where an equation or a condition begins or ends;
a piece that is one step long stands alone, a longer one is a loop. What a step does not need from earlier ones is
computed for all steps at once, before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from itertools import pairwise, product

from sympy import Add, Expr, Integer, S, sympify

from gradproof.numeric.lowering.lower import Lowering, Part, Ranges, truth
from gradproof.numeric.lowering.nodes import Cut, Node, Place, identifier
from gradproof.numeric.lowering.program import Assign, Loop, Statement, assign, unset
from gradproof.symbolic.equations.expr import Access, Compare, Index, accesses, letters, names, nonnegative
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.errors import GradproofError

LOOP_NAMES = ("t", "step", "tau", "pos", "turn", "t_")


class RecurrenceError(GradproofError):
    """Arrays that need each other in a way that one loop cannot compute."""


@dataclass(frozen=True)
class Line:
    """An equation of the group, its step (a letter or a number) and what it reads of the group: (array, offset)."""

    equation: Equation
    step: Expr
    lo: Expr
    hi: Expr
    reads: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Order:
    """How a group of arrays is computed: along which axes, in which direction; entry t belongs to step t + shift."""

    axes: Mapping[str, int]
    shifts: Mapping[str, Expr]
    lines: tuple[Line, ...]
    down: bool


def lower_recurrence(low: Lowering, system: System, group: Sequence[str]) -> list[Statement]:
    order = find_order(system, group)
    letter = loop_letter(system)
    kept = stored(system, group, order)
    found: list[Statement] = [
        unset(low.graph, identifier(name), system.arrays[name].shape) for name in group if name in kept
    ]
    for name in group:
        low.values[name] = low.graph.array(identifier(name), system.arrays[name].shape)
    for lo, hi in pieces(order):
        steps = _step(low, system, order, letter, kept, lo, hi)
        found += steps if _single(lo, hi) else [Loop(letter, lo, hi, order.down, tuple(steps))]
    return found


def loop_letter(system: System) -> Index:
    taken = {*system.arrays, *map(str, system.sizes)}
    return Index(next(name for name in LOOP_NAMES if name not in taken))


def stored(system: System, group: Sequence[str], order: Order) -> set[str]:
    """The arrays of a group that must be kept as a whole: others live for one step only."""
    inside = set(group)
    outside = {name for e in system.equations if e.name not in inside for name in names(e.body)} | set(system.outputs)
    shift = order.shifts
    earlier = {
        name
        for line in order.lines
        for name, offset in line.reads
        if (offset + shift[name] - shift[line.equation.name]).expand() != 0
    }
    return {name for name in group if name in outside or name in earlier}


# ---------------------------------------------------------------------------------------------------- axes and order


def find_order(system: System, group: Sequence[str]) -> Order:
    """Raises RecurrenceError where no single loop computes the group."""
    equations = [equation for name in group for equation in system.defined[name]]
    for choice in product(*(range(system.arrays[name].rank) for name in group)):
        axes = dict(zip(group, choice, strict=True))
        lines = [_line(system, equation, axes) for equation in equations]
        if any(line is None for line in lines):
            continue
        known = tuple(line for line in lines if line is not None)
        for down, shifts in _candidates(group, known):
            if _feasible(group, known, shifts, down):
                return Order(axes, shifts, known, down)
    raise RecurrenceError(
        f"{', '.join(group)} need each other in a way that a loop over one axis cannot compute: "
        + "; ".join(f"{e.target} = {e.body}" for e in equations)
    )


def _line(system: System, equation: Equation, axes: Mapping[str, int]) -> Line | None:
    """An equation as a step along the chosen axes, or None if it reads the group in another way."""
    step = equation.place[axes[equation.name]]
    reads = []
    for access in accesses(equation.body):
        if access.name in axes:
            offset = (access.indices[axes[access.name]] - step).expand()
            if not isinstance(offset, Integer):
                return None
            reads.append((access.name, int(offset)))
    bounds = {letter: (sympify(lo), sympify(hi)) for letter, lo, hi in equation.axes}
    lo, hi = bounds.get(step, (step, step + 1))
    return Line(equation, step, lo, hi, tuple(reads))


def _candidates(group: Sequence[str], lines: Sequence[Line]) -> list[tuple[bool, dict[str, Expr]]]:
    """Directions and shifts to try: first steps aligned, last steps aligned, no shift."""
    longest: dict[str, Line] = {}
    for line in lines:
        name = line.equation.name
        if name not in longest or isinstance(line.step, Index):
            longest[name] = line
    first = longest[group[0]]
    by_start = {name: (first.lo - longest[name].lo).expand() for name in group}
    by_end = {name: (first.hi - longest[name].hi).expand() for name in group}
    none = dict.fromkeys(group, S.Zero)
    return [(down, shifts) for shifts in (by_start, by_end, none) for down in (False, True)]


def _feasible(group: Sequence[str], lines: Sequence[Line], shifts: Mapping[str, Expr], down: bool) -> bool:
    needs: dict[str, set[str]] = {name: set() for name in group}
    for line in lines:
        for name, offset in line.reads:
            distance = (offset + shifts[name] - shifts[line.equation.name]).expand()
            if distance == 0:
                needs[line.equation.name].add(name)
            elif not isinstance(distance, Integer) or (distance > 0) != down:
                return False
    return topological(needs) is not None


def topological(needs: Mapping[str, set[str]]) -> list[str] | None:
    """Names so that each comes after what it needs, or None if there is a circle.

    >>> topological({"h": {"z"}, "z": set()}), topological({"a": {"a"}})
    (['z', 'h'], None)
    """
    done: list[str] = []
    waiting = dict(needs)
    while waiting:
        ready = [name for name, own in waiting.items() if own <= set(done)]
        if not ready:
            return None
        done += ready
        waiting = {name: own for name, own in waiting.items() if name not in ready}
    return done


def _single(lo: Expr, hi: Expr) -> bool:
    return (hi - lo).expand() == 1


def pieces(order: Order) -> list[tuple[Expr, Expr]]:
    """The range of steps, cut where an equation or a condition begins or ends, in the order of computation."""
    cuts: dict[Expr, None] = {}
    starts, ends = [], []
    for line in order.lines:
        shift = order.shifts[line.equation.name]
        lo, hi = (line.lo + shift).expand(), (line.hi + shift).expand()
        starts.append(lo)
        ends.append(hi)
        cuts.update({lo: None, hi: None})
        for place in _changes(line):
            cuts[(place + shift).expand()] = None
    ordered = sorted(cuts, key=cmp_to_key(_before))
    first, last = min(starts, key=cmp_to_key(_before)), max(ends, key=cmp_to_key(_before))
    inside = [cut for cut in ordered if _before(first, cut) <= 0 and _before(cut, last) <= 0]
    found = list(pairwise(inside))
    return found[::-1] if order.down else found


def _before(a: Expr, b: Expr) -> int:
    if a == b:
        return 0
    if nonnegative(b - a):
        return -1
    if nonnegative(a - b):
        return 1
    raise RecurrenceError(f"it is not known which of {a} and {b} comes first")


def _changes(line: Line) -> Iterable[Expr]:
    """The values of the step at which a condition in the body changes."""
    for condition in line.equation.body.atoms(Compare):
        if names(condition) or letters(condition) != {line.step}:
            continue
        left, right = condition.sides
        difference = (right - left).expand()
        slope = difference.coeff(line.step)
        if slope not in (1, -1):
            continue
        equal = (line.step - slope * difference).expand()  # where both sides are equal
        if condition.op in ("==", "!="):
            yield from (equal, equal + 1)
        elif (condition.op == "<") == (slope == 1):
            yield equal + 1
        else:
            yield equal


# ---------------------------------------------------------------------------------------------------------- one step


@dataclass(eq=False)
class Step:
    """What the lowering has to know inside a loop: the step, the arrays that change, and those that live in it only."""

    letter: Index
    lo: Expr
    hi: Expr
    now: Expr  # the step: the letter, or a number where a step stands alone
    order: Order
    changing: frozenset[str]
    locals: dict[str, Node] = field(default_factory=dict)

    def local(self, access: Access) -> tuple[Node, Sequence[Expr], Sequence[Expr]] | None:
        """An array of this step only, without the axis of the steps."""
        if access.name not in self.locals:
            return None
        axis = self.order.axes[access.name]
        rest = [index for k, index in enumerate(access.indices) if k != axis]
        return self.locals[access.name], rest, [S.Zero] * len(rest)

    def hoist(self, low: Lowering, expr: Expr, ranges: Ranges, wanted: Sequence[Index]) -> Part | None:
        """Compute for all steps at once what needs nothing that changes, and read off the entry of this step."""
        if self.letter not in letters(expr):
            return None
        if isinstance(expr, Add) and not self.changing.isdisjoint(names(expr)):
            free = [term for term in expr.args if self.changing.isdisjoint(names(term))]
            if len(free) > 1 and len(free) < len(expr.args):
                rest = Add(*(term for term in expr.args if term not in free))
                parts = [low.lower(part, ranges, wanted) for part in (Add(*free), rest)]
                return low.add(parts, wanted)
            return None
        if not self.changing.isdisjoint(names(expr)) or not names(expr) or isinstance(expr, Access):
            return None
        low.loop = None
        try:
            part = low.lower(expr, {self.letter: (self.lo, self.hi), **ranges}, (self.letter, *wanted))
        finally:
            low.loop = self
        if self.letter not in part.letters:
            return part
        places: list[Place] = [
            (self.now - self.lo).expand() if letter == self.letter else Cut(S.Zero, size)
            for letter, size in zip(part.letters, part.node.shape, strict=True)
        ]
        return Part(low.graph.index(part.node, places), tuple(x for x in part.letters if x != self.letter))


def _step(
    low: Lowering, system: System, order: Order, letter: Index, kept: set[str], lo: Expr, hi: Expr
) -> list[Statement]:
    """The statements of the steps from `lo` to `hi`."""
    now = lo if _single(lo, hi) else letter
    context = Step(letter, lo, hi, now, order, frozenset(order.axes))
    active = {}
    for line in order.lines:
        shift = order.shifts[line.equation.name]
        if nonnegative(lo - line.lo - shift) and nonnegative(line.hi + shift - hi):
            active[line.equation.name] = line
    needs = {
        name: {
            read
            for read, offset in line.reads
            if read in active and (offset + order.shifts[read] - order.shifts[name]).expand() == 0
        }
        for name, line in active.items()
    }
    found: list[Statement] = []
    for name in topological(needs) or []:
        low.loop = context
        try:
            found.append(_statement(low, system, context, active[name], name in kept))
        finally:
            low.loop = None
    return found


def _statement(low: Lowering, system: System, context: Step, line: Line, keep: bool) -> Assign:
    """One equation at one step."""
    equation, array = line.equation, system.arrays[line.equation.name]
    axis = context.order.axes[equation.name]
    here = (context.now - context.order.shifts[equation.name]).expand()
    body = decided(equation.body.xreplace({line.step: here}), context) if line.step.free_symbols else equation.body
    ranges = {letter: (lo, hi) for letter, lo, hi in equation.axes if letter != line.step}
    order = [place for place in equation.place if isinstance(place, Index) and place in ranges]
    part = low.lower(body, ranges, order)
    shape = [size for k, size in enumerate(array.shape) if k != axis]
    node = low.graph.broadcast(low.graph.number(low.align(part, order)), shape)
    if not keep:
        context.locals[equation.name] = node
        return assign(low.graph, identifier(equation.name), node, (), shape, equation)
    places: list[Place] = []
    for k, place in enumerate(equation.place):
        first = array.first(k)
        if k == axis:
            places.append((here - first).expand())
        elif isinstance(place, Index):
            lo, hi = ranges[place]
            places.append(Cut((lo - first).expand(), (hi - lo).expand()))
        else:
            places.append((place - first).expand())
    return assign(low.graph, identifier(equation.name), node, places, array.shape, equation)


def decided(body: Expr, context: Step) -> Expr:
    """The body with every condition on the step replaced by what it is throughout this piece."""
    known = [(context.letter, context.lo, context.hi)]
    found: dict[Expr, Expr] = {}
    for condition in body.atoms(Compare):
        if names(condition) or not letters(condition) <= {context.letter}:
            continue
        value = truth(condition, known)
        if value is not None:
            found[condition] = Integer(value)
    return body.xreplace(found)

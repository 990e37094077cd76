"""The equations of a system as statements, in an order in which they can be run."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr, sympify

from gradproof.numeric.lowering.lower import Lowering, Ranges
from gradproof.numeric.lowering.nodes import Cut, Node, Place, identifier
from gradproof.numeric.lowering.program import Assign, Statement, assign, unset
from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.equations.system import Equation, System


def lower_system(low: Lowering, system: System) -> list[Statement]:
    """The equations of a system as statements, in an order in which they can be run."""
    from gradproof.numeric.lowering.product import may_be_undefined
    from gradproof.numeric.lowering.recurrence import lower_recurrence

    found: list[Statement] = []
    for group in system.groups:
        for name in group:
            if any(may_be_undefined(low, equation.body) for equation in system.defined[name]):
                low.undefined.add(name)
        if any(system.recurrent(name) for name in group):
            found += lower_recurrence(low, system, group)
            continue
        (name,) = group
        equations = system.defined[name]
        array = system.arrays[name]
        if len(equations) == 1 and equations[0].axes == array.axes(_letters(equations[0])):
            node = whole_node(low, equations[0], array.shape)
            found.append(assign(low.graph, identifier(name), node, (), array.shape, equations[0]))
            low.values[name] = node
            low.graph.fixed.add(node)
            continue
        found.append(unset(low.graph, identifier(name), array.shape))
        found += [piece(low, system, equation) for equation in equations]
        low.values[name] = low.graph.array(identifier(name), array.shape)
    return found


def _letters(equation: Equation) -> list[Index]:
    letters = [place for place in equation.place if isinstance(place, Index)]
    return letters if len(letters) == len(equation.place) else []


def whole_node(low: Lowering, equation: Equation, shape: Iterable[Expr]) -> Node:
    """The right side of an equation, with the axes and the shape of its left side."""
    ranges: Ranges = {letter: (sympify(lo), sympify(hi)) for letter, lo, hi in equation.axes}
    order = [place for place in equation.place if isinstance(place, Index) and place in ranges]
    part = low.lower(equation.body, ranges, order)
    return low.graph.broadcast(low.graph.number(low.align(part, order)), tuple(shape))


def piece(low: Lowering, system: System, equation: Equation) -> Assign:
    """An equation that gives some of the entries of an array."""
    array = system.arrays[equation.name]
    ranges = {letter: (sympify(lo), sympify(hi)) for letter, lo, hi in equation.axes}
    places: list[Place] = []
    for axis, place in enumerate(equation.place):
        first = array.first(axis)
        if isinstance(place, Index) and place in ranges:
            lo, hi = ranges[place]
            places.append(Cut((lo - first).expand(), (hi - lo).expand()))
        else:
            places.append((place - first).expand())
    shape = [place.count for place in places if isinstance(place, Cut)]
    node = whole_node(low, equation, shape)
    return assign(low.graph, identifier(equation.name), node, places, array.shape, equation)

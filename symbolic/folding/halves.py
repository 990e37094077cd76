"""A derived system as two: the forward pass, and the backward pass, whose inputs are what it keeps of the forward pass.

What need not be kept: F where C = relu(F) is, since [F > 0] is [C > 0]; and an outer product F̄_tjk = v_k ē_tj, which
is put where it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Mul

from gradproof.symbolic.equations.definitions import Substitution, plain
from gradproof.symbolic.equations.expr import Access, Compare, compare, letters, names
from gradproof.symbolic.equations.functions import relu
from gradproof.symbolic.equations.system import Equation, System


def forward_system(system: System, outputs: Sequence[str]) -> System:
    """The forward equations that these outputs need."""
    system = system.needed(outputs)
    read = {name for e in system.equations for name in names(e.body)}
    arrays = {name: array for name, array in system.arrays.items() if name in read or name in system.defined}
    return System(arrays, system.equations, tuple(outputs))


def backward_system(whole: System, forward: System, outputs: Sequence[str]) -> System:
    """The equations of the backward pass: what it reads of the forward pass, its inputs, is what must be kept."""
    return without_outer_products(behind(with_signs_of_results(whole, forward), forward, outputs))


def behind(whole: System, forward: System, outputs: Sequence[str]) -> System:
    """The derived equations alone; forward values that they read become inputs."""
    wanted: dict[str, None] = {}
    stack = list(reversed(outputs))
    while stack:
        name = stack.pop()
        if name not in wanted:
            wanted[name] = None
            if name not in forward.defined:
                stack += [read for e in whole.defined.get(name, ()) for read in sorted(names(e.body))]
    order = [name for group in whole.groups for name in group if name in wanted and name not in forward.defined]
    equations = [e for name in order for e in whole.defined[name]]
    arrays = {name: array for name, array in whole.arrays.items() if name in wanted}
    return System(arrays, tuple(equations), tuple(outputs))


def with_signs_of_results(whole: System, forward: System) -> System:
    """[F > 0] is written as [C > 0] where C = relu(F): the backward pass reads C anyway, and F need not be kept."""
    results = {}
    for name in forward.defined:
        definition = plain(forward, name)
        if definition is not None and isinstance(definition.body, relu):
            (source,) = definition.body.args
            if isinstance(source, Access) and source.indices == definition.place:
                results[source.name] = name

    def written(equation: Equation) -> Equation:
        found = {}
        for condition in equation.body.atoms(Compare):
            low, entry = condition.sides
            if condition.op == "<" and low == 0 and isinstance(entry, Access) and entry.name in results:
                found[condition] = compare("<", 0, Access(results[entry.name], *entry.indices))
        return equation.with_body(equation.body.xreplace(found))

    return whole.with_equations(e if e.name in forward.defined else written(e) for e in whole.equations)


def without_outer_products(system: System) -> System:
    """Arrays that are products of smaller ones, F̄_tjk = v_k ē_tj, are put where they are read.

    A sum over them is then a product with the small arrays, and the large one is never made.
    """
    work = Substitution(system)
    for name in [name for group in system.groups for name in group if name not in system.outputs]:
        definition = None if system.recurrent(name) else work.plain(name)
        factors = [factor for factor in Mul.make_args(definition.body) if letters(factor)] if definition else []
        if definition and len(factors) > 1 and all(letters(factor) < set(definition.place) for factor in factors):
            work.put_in(definition)
    return work.result()

"""Jacobians, Hessians and products with them: the same rule, applied to unit cotangents, to tangents, or again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sympy import Expr, Mul

from gradproof.symbolic.deriving.derivation import (
    Derivation,
    Gradient,
    Log,
    Step,
    check_alike,
    chosen_variables,
    derive_system,
)
from gradproof.symbolic.equations.calculus import tangent, whole
from gradproof.symbolic.equations.definitions import plain, put_in
from gradproof.symbolic.equations.expr import Access, delta, map_accesses, names, sum_
from gradproof.symbolic.equations.implicit import complete
from gradproof.symbolic.equations.roles import Kind, Role, suggested
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import same_values
from gradproof.symbolic.folding.fold import facts, normalise, size
from gradproof.symbolic.folding.rules import reason
from gradproof.symbolic.folding.symmetry import restored, withheld
from gradproof.symbolic.folding.textbook import textbook
from gradproof.symbolic.language.syntax import Program
from gradproof.symbolic.printing import text

SHORT = 8  # parts of an expression that is put in where it is read


def jacobian(
    system: System, wrt: str | Sequence[str] | None, program: Program, layout: str = "numerator", lang: str = "en"
) -> Derivation:
    """∂(output)/∂(variable), entry by entry: J[output indices, variable indices] (numerator layout).

    In denominator layout the variable's indices come first. The adjoint is derived with a unit cotangent.
    """
    (output,) = system.outputs
    given = None if not system.arrays[output].rank else system.free_name("G")
    found = derive_system(system, wrt, given, (), program, lang)
    if given is None:
        return found
    log = Log(lang)
    log.steps = list(found.steps)
    gradients, folded = {}, found.system
    for name in found.wrt:
        source = folded.arrays[found.output].role
        role = Role(Kind.JACOBIAN, found.output, source, name, turned=layout == "denominator")
        array, equation = _unit(found, name, folded.free_name(suggested(role.kind, name)), role, layout, log)
        folded = folded.extended([array], [equation], [*folded.outputs, array.name])
        gradients[name] = Gradient(name, equation, folded)
    gradients = {name: replace(g, system=folded) for name, g in gradients.items()}
    return replace(found, system=folded, gradients=gradients, cotangent=None, steps=tuple(log.steps))


def _unit(found: Derivation, variable: str, name: str, role: Role, layout: str, log: Log) -> tuple[Array, Equation]:
    """The Jacobian with respect to one variable, checked against the adjoint with an arbitrary cotangent."""
    row_array, column_array = found.forward.arrays[found.output], found.forward.arrays[variable]
    adjoint_equation = found.gradients[variable].equation
    body = closed(found.system, adjoint_equation, forward_names(found))
    outs = out_letters(row_array.rank + column_array.rank)
    swap = layout == "denominator"
    rows = outs[column_array.rank :] if swap else outs[: row_array.rank]
    columns = outs[: column_array.rank] if swap else outs[row_array.rank :]
    body = body.xreplace(dict(zip(adjoint_equation.place, columns, strict=True)))

    def unit(access: Access) -> Expr:
        return Mul(*(delta(row, index) for row, index in zip(rows, access.indices, strict=True)))

    assert found.cotangent is not None
    body = map_accesses(body, unit, [found.cotangent], outs)
    shapes = (column_array.shape, row_array.shape) if swap else (row_array.shape, column_array.shape)
    array = Array(name, (*shapes[0], *shapes[1]), role=role)
    equation = whole(array, normalise(body, array.axes(outs), facts(found.system)))
    new = found.system.extended([array], [equation], [*found.system.outputs, name])
    # contracted with an arbitrary cotangent it must give the adjoint back
    inside = Mul(Access(found.cotangent, *rows), Access(name, *outs))
    contracted = sum_(inside, row_array.axes(rows)).xreplace(dict(zip(columns, adjoint_equation.place, strict=True)))
    again = new.with_equations(e.with_body(contracted) if e.name == adjoint_equation.name else e for e in new.equations)
    checked = same_values(found.system, again, [adjoint_equation.name])
    log.add("unit cotangent", [adjoint_equation], [equation], checked, new)
    return array, equation


def turned(found: Derivation) -> Derivation:
    """The gradients in numerator layout: ∂L/∂W has the axes of W in reverse."""
    system, gradients = found.system, {}
    for name, gradient in found.gradients.items():
        array, equation = system.arrays[gradient.equation.name], gradient.equation
        outs = out_letters(array.rank)
        body = equation.at(outs[::-1])
        label = rf"\partial {found.output}/\partial {name}"
        role = Role(Kind.GRADIENT, name, system.arrays[name].role, named=True, turned=True)
        new = Array(system.free_name(f"D_{name}"), array.shape[::-1], array.starts[::-1], latex=label, role=role)
        system = system.extended([new], [whole(new, body)], [*system.outputs, new.name])
        gradients[name] = Gradient(name, system.equations[-1], system)
    gradients = {name: replace(gradient, system=system) for name, gradient in gradients.items()}
    return replace(found, system=system, gradients=gradients, listed=())


def forward_names(found: Derivation) -> list[str]:
    """The forward names that a result may use: all but short first derivatives, which are put in."""
    gradients = {n for n, array in found.forward.arrays.items() if array.role.kind is Kind.GRADIENT}
    short = {e.name for e in found.forward.equations if e.name in gradients and size(e.body) <= SHORT}
    return [e.name for e in found.forward.equations if e.name not in short]


def closed(system: System, equation: Equation, forward: Sequence[str]) -> Expr:
    """The body of a derived equation with every other derived array put in."""
    for name in reversed([name for group in system.groups for name in group]):
        if name in forward or name not in names(equation.body):
            continue
        definition = plain(system, name)
        if definition is None or system.recurrent(name):
            raise GradproofError("a recurrence has no closed Jacobian; ask for the adjoint, or for one step's Jacobian")
        equation = put_in(equation, definition)
    return equation.body


def hessian(system: System, wrt: str | Sequence[str] | None, program: Program, lang: str = "en") -> Derivation:
    """The second derivatives of a scalar: a block ∂²L/∂a∂b for every pair of variables, `gradients["a", "b"]`.

    A block has the axes of the first variable, then those of the second.
    """
    (output,) = system.outputs
    if system.arrays[output].rank:
        raise GradproofError("a Hessian is taken of a scalar; contract the expression with a cotangent first")
    first = derive_system(withheld(system, chosen_variables(system, wrt)), wrt, None, (), program, lang)
    log = Log(lang)
    log.steps = list(first.steps)
    gradients: dict[str, Gradient] = {}
    folded = complete(restored(gradient_system(first), system))
    for k, row in enumerate(first.wrt):
        inner = complete(folded.needed([folded.gradient_of(row)]))
        second = derive_system(
            inner, list(first.wrt[k:]), inner.free_name("G") if system.arrays[row].rank else None, (), program, lang
        )
        log.steps += once_more(second, row, lang)
        for column in first.wrt[k:]:
            pair = column if row == column else f"{row},{column}"
            name = folded.free_name(f"H_{pair.replace(',', '_')}")
            role = Role(Kind.HESSIAN, row, system.arrays[row].role, column)
            array, equation = _block(second, column, name, role, log)
            folded = folded.extended([array], [equation], [*folded.outputs, array.name])
            gradients[pair] = Gradient(pair, equation, folded)
    gradients = {name: replace(g, system=folded) for name, g in gradients.items()}
    return replace(first, forward=system, system=folded, gradients=gradients, steps=tuple(log.steps))


def gradient_system(first: Derivation) -> System:
    """The system of a first derivation with its adjoints as gradients, ready to be differentiated again."""
    system = first.system
    roles = {n: a.role for n, a in system.arrays.items() if a.role.kind is Kind.ADJOINT}
    names_new: dict[str, str] = {}
    for name, role in roles.items():
        names_new[name] = system.free_name(suggested(Kind.GRADIENT, role.of), names_new.values())
    new = {names_new[name]: replace(role, kind=Kind.GRADIENT) for name, role in roles.items()}
    return system.renamed(names_new).with_roles(new)


def once_more(second: Derivation, name: str, lang: str) -> list[Step]:
    """The steps of a second derivation, which starts from the gradient by `name` that the first one found."""
    start, *rest = second.steps
    why = reason("once more", lang, name=text.printed(name, second.system))
    return [replace(start, rule="once more", reason=why), *rest]


def _block(second: Derivation, column: str, name: str, role: Role, log: Log) -> tuple[Array, Equation]:
    if second.cotangent is not None:
        return _unit(second, column, name, role, "numerator", log)
    source = second.gradients[column].equation
    array = Array(name, second.forward.arrays[column].shape, role=role)
    body = closed(second.system, source, forward_names(second))
    return array, whole(array, normalise(body, source.axes, facts(second.system)))


def jvp(
    system: System,
    directions: Mapping[str, str],
    program: Program,
    lang: str = "en",
    keep: Sequence[str] = (),
    absorb: Sequence[str] = (),
) -> Derivation:
    """The change of the output along given changes of variables: `directions` names them, variable by variable.

    `keep` names intermediates whose tangents stay visible, `absorb` those whose tangents never do.
    """
    chosen_variables(system, list(directions))
    (output,) = system.outputs
    log = Log(lang)
    log.forward(system)
    raw = tangent(system, directions)
    check_alike(system, raw)
    derived = [e.name for e in raw.equations if e.name not in system.defined]
    log.tangents(raw, system, derived, output, directions)
    (dot,) = raw.outputs
    kept, absorbed = ([found for name in group if (found := raw.of(Kind.TANGENT, name))] for group in (keep, absorb))
    folded = textbook(raw, derived, log.move, keep=kept, absorb=absorbed, beside=[output])
    gradients = {output: Gradient(output, folded.defined[dot][0], folded)}
    return Derivation(
        *(program.text, program, system, folded, output, tuple(directions), None, gradients, tuple(log.steps)),
        directions=dict(directions),
    )


def hvp(system: System, wrt: str, vector: str, program: Program, lang: str = "en") -> Derivation:
    """The Hessian of a scalar times a vector: the gradient's change along `vector`."""
    first = derive_system(withheld(system, chosen_variables(system, wrt)), wrt, None, (), program, lang)
    (name,) = first.wrt
    whole_system = gradient_system(first)
    inner = complete(restored(whole_system, system).needed([whole_system.gradient_of(name)]))
    second = jvp(inner, {name: vector}, program, lang)
    product = second.system.free_name("Hv")
    new = second.system.renamed({second.gradients[second.output].equation.name: product})
    result = Gradient(suggested(Kind.GRADIENT, name), new.defined[product][0], new)
    steps = (*first.steps, *once_more(second, name, lang))
    return replace(
        second, forward=system, system=new, gradients={result.name: result}, output=first.output, steps=steps
    )


def propagation(system: System, variable: str, program: Program, lang: str = "en") -> Derivation:
    """The Jacobian of every state of a recurrence with respect to an input, itself as a recurrence.

    Every tangent gets a further axis, one unit direction of the variable along each.
    """
    chosen_variables(system, [variable])
    (output,) = system.outputs
    log = Log(lang)
    log.forward(system)
    raw = tangent(system, [variable])
    size = system.arrays[variable].shape
    seed, (dot,) = raw.tangent_of(variable), raw.outputs
    roles = {n: a.role for n, a in raw.arrays.items() if n not in system.arrays and n != seed}
    names_new: dict[str, str] = {}
    for name, role in roles.items():
        names_new[name] = raw.free_name(suggested(Kind.PROPAGATION, role.of), names_new.values())
    arrays = [
        Array(
            names_new[name], (*raw.arrays[name].shape, *size), role=replace(role, kind=Kind.PROPAGATION, along=variable)
        )
        for name, role in roles.items()
    ]
    equations = [_widened(raw, e, names_new, seed, size) for e in raw.equations if e.name in names_new]
    new = system.extended(arrays, equations, [names_new[dot]])
    derived = list(dict.fromkeys(names_new[name] for name in roles if name in raw.defined))
    log.propagations(raw, new, names_new, variable)
    keep = derived if new.recurrent(names_new[dot]) else ()
    folded = textbook(new, derived, log.move, keep=keep, beside=[output])
    listed = tuple(name for name in derived if name in folded.defined)
    gradient = Gradient(variable, folded.defined[names_new[dot]][-1], folded)
    return Derivation(
        program.text, program, system, folded, output, (variable,), None, {variable: gradient}, tuple(log.steps), listed
    )


def _widened(raw: System, equation: Equation, new: Mapping[str, str], seed: str, size: Sequence[Expr]) -> Equation:
    """A tangent equation with the direction's axes behind its own; the seed becomes a unit."""
    rank = raw.arrays[equation.name].rank
    extra = out_letters(rank + len(size))[rank:]
    place = {letter: letter for letter, _, _ in equation.axes}

    def replaced(access: Access) -> Expr:
        if access.name == seed:
            return Mul(*(delta(index, letter) for index, letter in zip(access.indices, extra, strict=True)))
        return Access(new[access.name], *access.indices, *extra)

    body = map_accesses(equation.body, replaced, [*new, seed], [*place, *extra])
    axes = (*equation.axes, *((letter, 0 * extent, extent) for letter, extent in zip(extra, size, strict=True)))
    return Equation(new[equation.name], (*equation.place, *extra), axes, body)

"""A claim and what it is about, as one system: forward equations, derivative, and the claimed formula.

The claim is read over the same names as the expression, those of its intermediates, of `let` and of the cotangent.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sympy import Expr

from gradproof.symbolic.deriving.derivation import Derivation, derive_system
from gradproof.symbolic.deriving.products import hessian, jacobian
from gradproof.symbolic.equations.calculus import whole
from gradproof.symbolic.equations.expr import Access, Axis, Implicit, map_accesses, names
from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.equations.roles import copied
from gradproof.symbolic.equations.system import Array, Equation, System, out_letters
from gradproof.symbolic.errors import ExpressionError
from gradproof.symbolic.judging.sampling import Pair
from gradproof.symbolic.language.demands import Demand
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import Declaration, Program, Statement, parse, parse_declaration, parse_shapes
from gradproof.symbolic.phrases import phrase

EXPECTED = "the right value"


@dataclass(frozen=True)
class Question:
    """What is claimed of which derivative. `right` and `claim` name arrays of `system`; their shapes may differ.

    `swap` is the order of axes that turns one layout into the other; `layout` is the one that the claim is read in.
    """

    system: System
    right: str
    claim: str
    what: str
    variables: Sequence[str]
    layout: str
    swap: tuple[int, ...]
    derivation: Derivation
    needs: tuple[Demand, ...] = ()  # what the claim's text needs to have a value
    given: tuple[Demand, ...] = ()  # what the expression's text needs

    @property
    def pair(self) -> Pair:
        return Pair(self.system, self.right, self.claim)

    def shape(self, name: str) -> tuple[Expr, ...]:
        return self.system.arrays[name].shape

    def fits(self) -> bool:
        right, claim = self.shape(self.right), self.shape(self.claim)
        return len(right) == len(claim) and all(map(same, right, claim))

    def instead(self, body: Expr) -> Question:
        """The same question about another claim, given by its entry at the letters o0, o1, …"""
        array = replace(self.system.arrays[self.right], name=f"{self.claim}'")
        system = self.system.extended([array], [whole(array, body)], self.system.outputs)
        return replace(self, system=system, claim=array.name)


def pose(
    expression: str | Program,
    shapes: Mapping[str, object] | Sequence[Declaration],
    wrt: str | Sequence[str],
    claim: str,
    cotangent: str | None,
    let: Mapping[str, str] | None,
    layout: str | None,
    order: int,
) -> Question:
    """Build everything that a claim is about.

    Raises ExpressionError for input that cannot be used.
    """
    declarations = list(parse_shapes(shapes).values()) if isinstance(shapes, Mapping) else list(shapes)
    program = parse(expression) if isinstance(expression, str) else expression
    program, later = with_lets(program, let or {}, declarations)
    needed: list[Demand] = []
    forward = build(program, declarations, demands=needed)
    variables = _variables(wrt, order)
    (output,) = forward.outputs
    jacobian_wanted = order == 1 and bool(forward.arrays[output].rank) and cotangent is None
    layout = layout or ("numerator" if jacobian_wanted else "denominator")
    if layout not in ("numerator", "denominator"):
        raise ExpressionError(f"the layout is numerator or denominator, not {layout!r}")
    if order == 2:
        derivation = hessian(forward, variables, program)
        right = derivation.gradients[",".join(variables)].equation.name
    elif jacobian_wanted:
        derivation = jacobian(forward, variables, program, layout)
        right = derivation.gradients[variables[0]].equation.name
    else:
        derivation = derive_system(forward, variables, cotangent, (), program)
        right = derivation.gradients[variables[0]].equation.name
    cotangents = _cotangent(derivation, cotangent)
    shape = derivation.system.arrays[right].shape
    needs: list[Demand] = []
    claimed = _claimed(_claim_program(program, later, parse(claim)), [*declarations, *cotangents], shape, needs)
    system, new = joined(derivation, claimed)
    (output,) = claimed.outputs
    name = new.get(output, output)
    needs = [replace(need, body=_renamed(need.body, new, need.axes)) for need in needs]
    what = {True: "Jacobian", False: "gradient"}[jacobian_wanted] if order == 1 else "Hessian"
    rank, first = system.arrays[right].rank, forward.arrays[variables[0]].rank
    swap = tuple(range(rank))[::-1]
    if jacobian_wanted:
        lead = first if layout == "denominator" else rank - first
        swap = (*range(rank - lead, rank), *range(rank - lead)) if rank else ()
    about = phrase("{} by {}", what, ", ".join(variables))
    texts = (tuple(_readable(needs, system)), tuple(_readable(needed, system)))
    found = Question(system, right, name, about, variables, layout, swap, derivation, *texts)
    return _in_numerator_layout(found) if layout == "numerator" and what == "gradient" and rank > 1 else found


def _variables(wrt: str | Sequence[str], order: int) -> list[str]:
    given = [wrt] if isinstance(wrt, str) else list(wrt)
    variables = list(dict.fromkeys(name.strip() for part in given for name in part.split(",") if name.strip()))
    if order not in (1, 2):
        raise ExpressionError("the order of a derivative is 1 or 2")
    if not 1 <= len(variables) <= order:
        raise ExpressionError("a claim is about the derivative by one variable (or by two for order 2)")
    return variables


def _in_numerator_layout(question: Question) -> Question:
    """The gradient with its axes reversed."""
    array = question.system.arrays[question.right]
    turned = Array(EXPECTED, array.shape[::-1])
    body = Access(array.name, *out_letters(array.rank)[::-1])
    system = question.system.extended([turned], [whole(turned, body)], question.system.outputs)
    return replace(question, system=system, right=EXPECTED)


def _cotangent(derivation: Derivation, cotangent: str | None) -> list[Declaration]:
    if cotangent is None:
        return []
    shape = derivation.forward.arrays[derivation.output].shape
    return [parse_declaration(f"{cotangent}:{','.join(map(str, shape))}")]


# ------------------------------------------------------------------------------------------------------------- programs


def with_lets(
    program: Program, let: Mapping[str, str], declarations: Sequence[Declaration]
) -> tuple[Program, list[Statement]]:
    """The expression with the definitions of `let` before it, and those that need its intermediates."""
    own = {statement.name for statement in program.statements if statement.name}
    before: list[Statement] = []
    later: list[Statement] = []
    for name, text in let.items():
        statements = parse(f"{name} = {text}").statements
        read = {node.id for s in statements for node in ast.walk(s.value) if isinstance(node, ast.Name)}
        behind = bool(read & (own | {s.name for s in later}))
        (later if behind else before).extend(statements)
        if not behind:
            build(Program(f"{name} = {text}", tuple(before)), declarations)  # so that an error shows this text
    return Program(program.text, (*before, *program.statements)), later


def _claimed(
    program: Program, declarations: Sequence[Declaration], shape: Sequence[Expr], needs: list[Demand]
) -> System:
    """The system of a claim; letters that read no whole axis, as in F[i] = where(i > 0, c[i-1], 0), run over it."""
    try:
        found = build(program, declarations, demands=needs)
    except ExpressionError:
        return build(program, declarations, wanted=shape, demands=needs)
    if found.arrays[found.outputs[0]].shape != tuple(shape):
        with suppress(ExpressionError):
            other: list[Demand] = []
            found = build(program, declarations, wanted=shape, demands=other)
            needs[:] = other
    return found


def _readable(demands: Sequence[Demand], system: System) -> Iterator[Demand]:
    """The demands whose arrays are still there: what was recognised as a softmax has lost some of its own."""
    for demand in demands:
        read = {demand.body.matrix} if isinstance(demand.body, Implicit) else names(demand.body)
        if read <= set(system.arrays):
            yield demand


def _claim_program(program: Program, later: Sequence[Statement], claim: Program) -> Program:
    """The claim with the named statements of the expression before it."""
    earlier = [statement for statement in (*program.statements, *later) if statement.name]
    known = {statement.name: statement for statement in earlier}
    own = []
    for statement in claim.statements:
        before = known.get(statement.name) if statement.name else None
        if before is None or statement is claim.statements[-1]:
            own.append(statement)
        elif ast.dump(before.value) != ast.dump(statement.value):
            message = f"{statement.name} is defined by the expression already; choose another name"
            raise ExpressionError(message, claim.text, statement.start, statement.start + len(str(statement.name)))
    return Program(claim.text, (*earlier, *own))


# -------------------------------------------------------------------------------------------------------------- joining


def joined(derivation: Derivation, claimed: System) -> tuple[System, dict[str, str]]:
    """One system with the derivation's equations and those of the claim, and the names that the claim's arrays have.

    An array of the claim that is defined as one of the expression is that one.
    """
    forward = derivation.forward
    derived = derivation.system
    arrays = {**forward.arrays, **derived.arrays}
    equations = [*forward.equations, *(e for e in derived.equations if e.name not in forward.defined)]
    known: dict[object, str] = {(e.place, e.axes, e.body): e.name for e in forward.equations}
    new: dict[str, str] = {}
    for group in claimed.groups:
        alone = len(group) == 1 and len(claimed.defined[group[0]]) == 1
        for name in group:
            new[name] = f"{name} (claimed)"
        for name in group:
            for equation in claimed.defined[name]:
                body = _renamed(equation.body, new, equation.axes)
                same_as = known.get((equation.place, equation.axes, body)) if alone else None
                if same_as is not None:
                    new[name] = same_as
                    continue
                known[equation.place, equation.axes, body] = new[name]
                equations.append(Equation(new[name], equation.place, equation.axes, body))
                array = claimed.arrays[name]
                arrays[new[name]] = replace(array, name=new[name], role=copied(name, array.role, new))
    for name in claimed.inputs:
        arrays.setdefault(name, claimed.arrays[name])
    return System(arrays, tuple(equations), (derivation.output,)), new


def _renamed(body: Expr, new: Mapping[str, str], axes: Sequence[Axis]) -> Expr:
    if isinstance(body, Implicit):
        return Implicit(body.kind, new.get(body.matrix, body.matrix), body.size, *body.indices)
    wanted = [name for name in new if name in names(body)]
    return map_accesses(body, lambda a: Access(new[a.name], *a.indices), wanted, [axis[0] for axis in axes])

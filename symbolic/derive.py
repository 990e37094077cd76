"""Derive: from an expression to its gradient in textbook form, with every step logged and checked.

>>> d = derive("sum((X @ W - Y)**2)", shapes={"X": "n,d", "W": "d,k", "Y": "n,k"}, wrt=["W"])
>>> print(d.gradients["W"])
2 Xᵀ(XW − Y)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sympy import Expr, Mul

from gradproof.symbolic import latex, text
from gradproof.symbolic.calculus import adjoint, bar
from gradproof.symbolic.checks import adjoint_holds, same_values
from gradproof.symbolic.errors import ExpressionError, GradproofError, UnknownNameError
from gradproof.symbolic.expr import Access, delta, map_accesses, names
from gradproof.symbolic.fold import (
    Facts,
    facts,
    inline,
    normalise,
    normalised,
    plain,
    put_in,
    rewrite,
)
from gradproof.symbolic.language import build
from gradproof.symbolic.rules import reason
from gradproof.symbolic.syntax import Declaration, Program, parse
from gradproof.symbolic.system import Array, Equation, System, out_letters


@dataclass(frozen=True)
class Step:
    """One step: the rule, why it holds, the equations before and after, and how the step was checked."""

    rule: str
    reason: str
    before: tuple[Equation, ...]
    after: tuple[Equation, ...]
    checked: str
    system: System = field(repr=False, compare=False)

    def shown(self, equations: Iterable[Equation], form: str = "index") -> list[str]:
        return [text.equation_text(equation, self.system, form) for equation in equations]

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.reason}", *(f"    {line}" for line in self.shown(self.after))]
        return "\n".join([*lines, f"    checked: {self.checked}"])


@dataclass(frozen=True)
class Gradient:
    """The derivative with respect to one variable; prints in matrix form, shows as LaTeX in a notebook."""

    name: str
    equation: Equation
    system: System = field(repr=False)

    @property
    def shape(self) -> tuple[Expr, ...]:
        return self.system.arrays[self.equation.name].shape

    @property
    def index(self) -> str:
        """The index form."""
        return text.expression_text(self.equation.body, self.equation.place, self.system, "index")

    @property
    def latex(self) -> str:
        return latex.expression_latex(self.equation.body, self.equation.place, self.system, "matrix")

    def __str__(self) -> str:
        return text.expression_text(self.equation.body, self.equation.place, self.system, "matrix")

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"


@dataclass(frozen=True)
class Derivation:
    """What `derive` found: `system` holds forward and derived equations, `gradients` the results by variable."""

    text: str
    program: Program
    forward: System = field(repr=False)
    system: System = field(repr=False)
    output: str
    wrt: tuple[str, ...]
    cotangent: str | None
    gradients: Mapping[str, Gradient]
    steps: tuple[Step, ...] = field(repr=False)

    @cached_property
    def definitions(self) -> tuple[Equation, ...]:
        """The equations behind the names that the gradients use, in reading order, helpers put in."""
        used = self.system.needed([gradient.equation.name for gradient in self.gradients.values()])
        results = {gradient.equation.name for gradient in self.gradients.values()}
        return tuple(e for e in shown_equations(used, self.forward.defined) if e.name not in results)

    @property
    def value(self) -> str:
        """The expression's value in matrix form."""
        (equation, *_) = self.forward.defined[self.output]
        return text.equation_text(equation, self.forward, "matrix")

    @property
    def results(self) -> tuple[Equation, ...]:
        return tuple(gradient.equation for gradient in self.gradients.values())

    def __str__(self) -> str:
        lines = [text.equation_text(e, self.system, "matrix") for e in self.definitions]
        return "\n".join([*lines, *(text.equation_text(e, self.system, "matrix") for e in self.results)])

    def _repr_latex_(self) -> str:
        return f"$${latex.system_latex([*self.definitions, *self.results], self.system, 'matrix')}$$"


def shown_equations(system: System, forward: Iterable[str]) -> list[Equation]:
    """The equations that a reader sees, as far as the outputs need them.

    Helpers are put into the forward equations that use them; what prints as a function (softmax) needs no helper.
    A helper that a derived equation still reads is shown like any other name.
    """
    forward, wanted, found = set(forward), list(system.outputs), {}
    while wanted:
        name = wanted.pop()
        for equation in system.defined.get(name, ()) if name not in found else ():
            if name in forward and equation.shown is None:
                equation = without_helpers(system, equation)
            found.setdefault(name, []).append(equation)
            sources = equation.shown[1] if equation.shown else (equation.body,)
            wanted += [read for source in sources for read in names(source)]
    return [equation for group in system.groups for name in group for equation in found.get(name, ())]


def without_helpers(system: System, equation: Equation) -> Equation:
    """A forward equation with its helpers put in."""
    for name in reversed([e.name for e in system.equations if e.name in system.hidden]):
        definition = plain(system, name)
        if definition is not None and name in names(equation.body):
            equation = put_in(equation, definition)
    return equation.with_body(normalise(equation.body, equation.axes))


def derive(
    expression: str | Program,
    shapes: Mapping[str, object] | Sequence[Declaration],
    wrt: str | Sequence[str] | None = None,
    cotangent: str | None = None,
    keep: Iterable[str] = (),
    lang: str = "en",
) -> Derivation:
    """The gradient of an expression with respect to the variables in `wrt` (all that are no integers, by default).

    Each gradient has the shape of its variable (denominator layout). A non-scalar expression needs `cotangent`, the
    name of an array of its shape; the result is then the adjoint Σ cotangent · ∂(expression). `keep` names adjoints
    (`Z_bar`) that stay visible where they would be substituted.

    Raises ExpressionError for input that cannot be used, StepError where a step does not hold.
    """
    program = parse(expression) if isinstance(expression, str) else expression
    system = build(program, shapes)
    return derive_system(system, wrt, cotangent, keep, program, lang)


def derive_system(
    system: System,
    wrt: str | Sequence[str] | None,
    cotangent: str | None,
    keep: Iterable[str],
    program: Program,
    lang: str = "en",
) -> Derivation:
    """`derive` for a system that is built already."""
    variables = _variables(system, wrt, program.text)
    (output,) = system.outputs
    cotangent = _cotangent(system, output, cotangent, program.text)
    log = Log(lang)
    log.forward(system)
    raw = adjoint(system, variables, cotangent)
    derived = [e.name for e in raw.equations if e.name not in system.defined]
    log.adjoints(raw, system, derived, output, cotangent)
    folded = log.fold(raw, derived, keep, [bar(name) for name in variables])
    gradients = {name: Gradient(name, folded.defined[bar(name)][0], folded) for name in variables}
    return Derivation(program.text, program, system, folded, output, variables, cotangent, gradients, tuple(log.steps))


def _variables(system: System, wrt: str | Sequence[str] | None, source: str) -> tuple[str, ...]:
    possible = [name for name in system.inputs if system.arrays[name].below is None]
    if wrt is None:
        return tuple(possible)
    wanted = [wrt] if isinstance(wrt, str) else list(wrt)
    wanted = list(dict.fromkeys(name.strip() for item in wanted for name in item.split(",") if name.strip()))
    if not wanted:
        raise UnknownNameError("no variable is named to differentiate by")
    for name in wanted:
        if name in system.inputs and name not in possible:
            raise UnknownNameError(f"{name} holds integers: nothing can be differentiated by it")
        if name not in possible:
            known = ", ".join(possible) or "none"
            raise UnknownNameError(f"there is no variable {name} to differentiate by; there are {known}")
    return tuple(wanted)


def _cotangent(system: System, output: str, cotangent: str | None, source: str) -> str | None:
    array = system.arrays[output]
    if not array.rank:
        if cotangent is not None:
            raise ExpressionError("the expression is a scalar: it needs no cotangent")
        return None
    if cotangent is None:
        shape = ", ".join(map(str, array.shape))
        raise ExpressionError(
            f"the expression is no scalar, its shape is ({shape}): name a cotangent of this shape for the adjoint"
            " (--cotangent G), or ask for the Jacobian (--jacobian)"
        )
    if cotangent in system.arrays and cotangent not in system.inputs:
        raise ExpressionError(f"the cotangent's name {cotangent} is taken; choose another")
    if cotangent in system.arrays and system.arrays[cotangent].shape != array.shape:
        raise ExpressionError(f"the cotangent {cotangent} must have the shape of the expression")
    return cotangent


class Log:
    """The steps of one derivation; each is checked before it is written down."""

    def __init__(self, lang: str = "en") -> None:
        self.steps: list[Step] = []
        self.lang = lang

    def add(self, rule: str, before: Sequence[Equation], after: Sequence[Equation], checked: str, system: System, **words: str) -> None:
        self.steps.append(Step(rule, reason(rule, self.lang, **words), tuple(before), tuple(after), checked, system))

    def forward(self, system: System) -> None:
        self.add("forward", (), system.needed().equations, "by definition", system)

    def adjoints(self, raw: System, forward: System, derived: Sequence[str], output: str, cotangent: str | None) -> None:
        """One step for the adjoint of every array, each checked against the forward equations alone."""
        for name in derived:
            source = name.removesuffix("_bar")
            equation = raw.defined[name][0]
            readers = [e for e in forward.equations if source in names(e.body) and bar(e.name) in names(equation.body)]
            rule = "chain rule" if readers else "cotangent" if source == output else "no dependence"
            checked = adjoint_holds(raw, output, cotangent, source)
            shown = ", ".join(dict.fromkeys(text.name_text(e.name) for e in readers))
            self.add(rule, readers, [equation], checked, raw, name=text.name_text(source), readers=shown)

    def fold(self, system: System, derived: Sequence[str], keep: Iterable[str], results: Sequence[str]) -> System:
        """Bring the derived equations into textbook form, a step for every move that changes something."""
        known = facts(system)
        helpers = {bar(name) for name in system.hidden}
        moves = (
            ("kept names", lambda s: rewrite(s, derived), {}),
            ("simplify with facts" if known else "simplify", lambda s: normalised(s, derived, known), known),
            ("substitute", lambda s: inline(s, derived, keep, helpers), {}),
            ("simplify with facts" if known else "simplify", lambda s: normalised(s, derived, known), known),
        )
        for rule, move, used in moves:
            system = self.move(rule, system, move(system), results, used)
        return system.needed([*results, *system.outputs])

    def move(self, rule: str, old: System, new: System, results: Sequence[str], used: Facts) -> System:
        before = {(e.name, e.place): e for e in old.equations}
        after = {(e.name, e.place): e for e in new.equations}
        changed = [key for key, equation in after.items() if before.get(key) != equation]
        if changed or len(before) != len(after):
            compared = [*dict.fromkeys([*(name for name, _ in changed), *results])]
            checked = same_values(old, new, compared)
            shown = ", ".join(fact_text(new, fact, value) for fact, value in used.items())
            words = {"facts": shown} if rule == "simplify with facts" else {}
            gone = [e for key, e in before.items() if key not in after]
            self.add(rule, [*(before[key] for key in changed), *gone], [after[key] for key in changed], checked, new, **words)
        return new


def fact_text(system: System, fact: tuple[str, int], value: Expr) -> str:
    """Σ_j P_ij = 1."""
    from gradproof.symbolic.expr import sum_

    name, position = fact
    array = system.arrays[name]
    outs = out_letters(array.rank)
    total = sum_(Access(name, *outs), [array.axes(outs)[position]])
    left = [letter for k, letter in enumerate(outs) if k != position]
    side = [text.expression_text(part, left, system, "index") for part in (total, value)]
    return " = ".join(side)


def jacobian(derivation: Derivation, name: str) -> Equation:
    """∂output/∂name as one equation J[output indices, variable indices], from the adjoint with a unit cotangent."""
    system, output = derivation.system, derivation.output
    rank, size = system.arrays[output].rank, system.arrays[name].rank
    outs = out_letters(rank + size)
    rows, columns = outs[:rank], outs[rank:]
    equation = derivation.gradients[name].equation
    for adjoint_name in [e.name for e in reversed(system.equations) if e.name not in derivation.forward.defined]:
        definition = plain(system, adjoint_name)
        if definition is not None and adjoint_name in names(equation.body):
            equation = put_in(equation, definition)
    body = equation.body.xreplace(dict(zip(equation.place, columns, strict=True)))

    def unit(access: Access) -> Expr:
        return Mul(*(delta(row, index) for row, index in zip(rows, access.indices, strict=True)))

    if derivation.cotangent is not None:
        body = map_accesses(body, unit, [derivation.cotangent], outs)
    shape = (*system.arrays[output].shape, *system.arrays[name].shape)
    array = Array(f"J_{name}", shape)
    axes = array.axes(outs)
    if derivation.system.recurrent(bar(name)) if bar(name) in derivation.system.defined else False:
        raise GradproofError("the Jacobian of a recurrence has no closed form; derive its step's Jacobian")
    return Equation(array.name, outs, axes, normalise(body, axes, facts(system)))

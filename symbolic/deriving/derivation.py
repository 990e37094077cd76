"""From a system to its gradients in textbook form, with every step logged and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from sympy import Expr

from gradproof.symbolic.equations.calculus import adjoint
from gradproof.symbolic.equations.definitions import spelled_out
from gradproof.symbolic.equations.evaluate import Point, Value
from gradproof.symbolic.equations.expr import Access, Compare, Implicit, names, sum_
from gradproof.symbolic.equations.roles import Kind
from gradproof.symbolic.equations.system import Equation, System, out_letters
from gradproof.symbolic.errors import ExpressionError, UnknownNameError
from gradproof.symbolic.folding.checks import same_values
from gradproof.symbolic.folding.differences import AdjointCheck, tangents_hold
from gradproof.symbolic.folding.facts import Facts, Key
from gradproof.symbolic.folding.fold import normalise
from gradproof.symbolic.folding.logarithms import named, softmaxes
from gradproof.symbolic.folding.rules import reason
from gradproof.symbolic.folding.textbook import textbook
from gradproof.symbolic.language.syntax import Program
from gradproof.symbolic.printing import latex, text
from gradproof.symbolic.printing.convention import convention, ranges


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
    listed: tuple[str, ...] = ()  # derived arrays that are printed among the results, in this order
    letters: Mapping[str, str] = field(default_factory=dict)
    form: str = "matrix"
    directions: Mapping[str, str] = field(default_factory=dict)  # along which a variable changes

    @cached_property
    def definitions(self) -> tuple[Equation, ...]:
        """The equations behind the names that the results use, in reading order, helpers put in."""
        results = [equation.name for equation in self.results]
        used = self.system.needed(results)
        shown = shown_equations(used, self.forward.defined)
        return tuple(e for e in shown if e.name not in results and not names_itself(e, used))

    @property
    def results(self) -> tuple[Equation, ...]:
        """What was asked for, in the order in which it is printed."""
        wanted = self.listed or tuple(gradient.equation.name for gradient in self.gradients.values())
        return tuple(equation for name in wanted for equation in self.system.defined[name])

    @property
    def is_jacobian(self) -> bool:
        """Whether Jacobians were asked for."""
        return any(self.system.arrays[g.equation.name].role.kind is Kind.JACOBIAN for g in self.gradients.values())

    def line(self, equation: Equation, form: str | None = None) -> str:
        return text.equation_text(equation, self.system, form or self.form, self.letters)

    def lines(self, form: str | None = None) -> list[str]:
        """Definitions and results, one line each."""
        return [self.line(equation, form) for equation in (*self.definitions, *self.results)]

    def latex(self, form: str | None = None) -> str:
        """Definitions and results as one `aligned` block."""
        return latex.system_latex([*self.definitions, *self.results], self.system, form or self.form, self.letters)

    def conventions(self, lang: str = "en") -> list[str]:
        """How the derivative by each variable with declared properties is meant, and for which sizes it is printed."""
        shown = [*self.value_equations, *self.definitions, *self.results]
        found = [*(convention(self.forward.arrays[name], lang) for name in self.wrt), ranges(shown, lang)]
        return [words for words in found if words]

    @property
    def value_equations(self) -> tuple[Equation, ...]:
        """The equations of the expression's value, helpers put in."""
        found = self.forward.defined[self.output]
        own = {statement.name for statement in self.program.statements}
        kept = [[p for p in softmaxes(self.forward) if p.name in own | names(e.body)] for e in found]
        read = [e.with_body(named(e.body, p, [axis[0] for axis in e.axes])) for e, p in zip(found, kept, strict=True)]
        return tuple(without_helpers(self.forward, e) for e in read)

    @property
    def value_definitions(self) -> tuple[Equation, ...]:
        """The equations behind the names that only the value uses: d = det(A) of log(d)."""
        known = {self.output, *(equation.name for equation in (*self.definitions, *self.results))}
        read = set().union(*(names(equation.body) for equation in self.value_equations))
        found: list[Equation] = []
        for equation in reversed(shown_equations(self.forward, self.forward.defined)):
            if equation.name in read - known and not names_itself(equation, self.forward):
                found.insert(0, equation)
                read |= names(equation.written)
        return tuple(found)

    @property
    def value(self) -> str:
        """The expression's value in matrix form."""
        return text.equation_text(self.value_equations[0], self.forward, "matrix")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def shown_equations(system: System, forward: Iterable[str]) -> list[Equation]:
    """The equations that a reader sees, as far as the outputs need them.

    Helpers are put into the forward equations that use them; what prints as a function (softmax) needs no helper.
    A helper that a derived equation still reads is shown like any other name.
    """
    forward, wanted = set(forward), list(system.outputs)
    found: dict[str, list[Equation]] = {}
    while wanted:
        name = wanted.pop()
        for equation in system.defined.get(name, ()) if name not in found else ():
            if name in forward:
                equation = without_helpers(system, equation)
            found.setdefault(name, []).append(equation)
            wanted += names(equation.written)
    return [equation for group in system.groups for name in group for equation in found.get(name, ())]


def names_itself(equation: Equation, system: System) -> bool:
    """Whether an equation only says what its print says: an inverse prints as A⁻¹, the input h0 as the state h_0."""
    body = equation.body
    if isinstance(body, Access):
        first = equation.place[:1] == (0,) and equation.place[1:] == body.indices
        return first and text.printed(body.name, system) == text.printed(f"{equation.name}_0", system)
    role = system.arrays[equation.name].role
    return role.kind is Kind.INVERSE and role.marked


def without_helpers(system: System, equation: Equation) -> Equation:
    """A forward equation with its helpers put in, unless it is one of a function that prints by its name."""
    if equation.origin is not None or isinstance(equation.body, Implicit):
        return equation
    equation = spelled_out(system, equation, lambda definition: definition.name in system.hidden)
    return equation.with_body(normalise(equation.body, equation.axes))


def derive_system(
    system: System,
    wrt: str | Sequence[str] | None,
    cotangent: str | None,
    keep: Iterable[str],
    program: Program,
    lang: str = "en",
) -> Derivation:
    """The gradients of a system's output with respect to the inputs in `wrt`; see `symbolic/derive.py`."""
    variables = chosen_variables(system, wrt)
    (output,) = system.outputs
    cotangent = _cotangent(system, output, cotangent)
    log = Log(lang)
    log.forward(system)
    raw = adjoint(system, variables, cotangent)
    check_alike(system, raw)
    derived = [e.name for e in raw.equations if e.name not in system.defined]
    log.adjoints(raw, system, derived, output, cotangent)
    bars = {name: raw.adjoint_of(name) for name in variables}
    kept = [bar for name in keep if (bar := raw.of(Kind.ADJOINT, name))]
    folded = textbook(raw, derived, log.move, keep=kept, beside=[output])
    gradients = {name: Gradient(name, folded.defined[bar][0], folded) for name, bar in bars.items()}
    return Derivation(program.text, program, system, folded, output, variables, cotangent, gradients, tuple(log.steps))


def chosen_variables(system: System, wrt: str | Sequence[str] | None) -> tuple[str, ...]:
    """The inputs that `wrt` names; all that can be differentiated by, if it names none."""
    possible = [name for name in system.inputs if system.arrays[name].below is None]
    if wrt is None:
        if system.inputs and not possible:
            verb = "holds" if len(system.inputs) == 1 else "hold"
            raise UnknownNameError(f"there is nothing to differentiate by: {', '.join(system.inputs)} {verb} integers")
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


def check_alike(forward: System, derived: System) -> None:
    """No derived array is printed as a given one: x̄ of x as the array xbar."""
    if twins := text.alike([*forward.arrays, *(n for n in derived.arrays if n not in forward.arrays)], derived):
        given, other, shown = twins
        of = derived.arrays[other].role.of
        raise ExpressionError(f"{given} would be printed as {shown}, as the derivative of {of} is; call it otherwise")


def _cotangent(system: System, output: str, cotangent: str | None) -> str | None:
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
    if cotangent in system.arrays or cotangent in map(str, system.sizes):
        raise ExpressionError(f"the cotangent's name {cotangent} is taken; choose another")
    if not cotangent.isidentifier():
        raise ExpressionError(f"a cotangent is called by a name, not {cotangent!r}")
    return cotangent


class Log:
    """The steps of one derivation; each is checked before it is written down."""

    def __init__(self, lang: str = "en") -> None:
        self.steps: list[Step] = []
        self.lang = lang

    def add(
        self,
        rule: str,
        before: Sequence[Equation],
        after: Sequence[Equation],
        checked: str,
        system: System,
        **words: str,
    ) -> None:
        self.steps.append(Step(rule, reason(rule, self.lang, **words), tuple(before), tuple(after), checked, system))

    def forward(self, system: System) -> None:
        self.add("forward", (), system.needed().equations, "by definition", system)

    def adjoints(
        self, raw: System, forward: System, derived: Sequence[str], output: str, cotangent: str | None
    ) -> None:
        """One step for the adjoint of every array, each checked against the forward equations alone."""
        check, between = AdjointCheck(raw, output, cotangent), forward.reached([output])
        for name in derived:
            source, read = raw.arrays[name].role.of, names(raw.defined[name][0].body)
            readers = [e for e in forward.readers.get(source, ()) if e.name in between]
            checked = check.one_step(source, [e.name for e in readers])
            readers = [e for e in readers if raw.of(Kind.ADJOINT, e.name) in read]
            rule = "chain rule" if readers else "cotangent" if source == output else "no dependence"
            shown = ", ".join(dict.fromkeys(text.printed(e.name, raw) for e in readers))
            self.add(rule, readers, raw.defined[name], checked, raw, name=text.printed(source, raw), readers=shown)

    def tangents(
        self, raw: System, forward: System, derived: Sequence[str], output: str, directions: Mapping[str, str]
    ) -> None:
        """One step for the tangent of every array; all are checked together along the given directions."""
        sources = {raw.arrays[name].role.of: name for name in derived}
        predicted = {source: partial(_entry, name) for source, name in sources.items()}
        checked = tangents_hold(raw, directions, predicted)
        for source, name in sources.items():
            words = text.printed(source, raw)
            self.add("tangent", forward.defined[source], raw.defined[name], checked, raw, name=words)

    def propagations(self, raw: System, new: System, names_new: Mapping[str, str], variable: str) -> None:
        """The tangents with one unit direction along each further axis."""
        seed = raw.tangent_of(variable)
        both = new.extended([raw.arrays[seed]], (), new.outputs)
        predicted = {raw.arrays[old].role.of: partial(_along, name, seed) for old, name in names_new.items()}
        checked = tangents_hold(both, {variable: seed}, predicted)
        equations = [e for name in names_new.values() for e in new.defined.get(name, ())]
        self.add("tangent", (), equations, checked, new, name=text.printed(variable, new))

    def move(self, rule: str, old: System, new: System, known: Facts) -> None:
        """Write down a move to textbook form if it changed something; `known.used` are the facts that it used."""
        before = {(e.name, e.place): e for e in old.equations}
        after = {(e.name, e.place): e for e in new.equations}
        changed = [key for key, equation in after.items() if before.get(key) != equation]
        if changed or len(before) != len(after):
            compared = [*dict.fromkeys([*(name for name, _ in changed), *new.outputs])]
            checked = same_values(old, new, compared)
            words = {}
            if known.used:
                rule = "simplify with facts"
                words = {
                    "facts": ", ".join(fact_text(new, key, value) for key, value in known.items() if key in known.used)
                }
            gone = [e for key, e in before.items() if key not in after]
            both = replace(new, arrays={**old.arrays, **new.arrays}, _cache={})  # the old names are printed too
            self.add(
                rule,
                [*(before[key] for key in changed), *gone],
                [after[key] for key in changed],
                checked,
                both,
                **words,
            )


def _entry(name: str, point: Point, index: tuple[int, ...]) -> Value:
    return point.entry(name, index)


def _along(name: str, seed: str, point: Point, index: tuple[int, ...]) -> Value:
    """The entry of a Jacobian contracted with the direction."""
    return sum(point.entry(name, (*index, *j)) * point.entry(seed, j) for j in point.indices(seed))


def fact_text(system: System, fact: Key, value: Expr) -> str:
    """Σ_j P_ij = 1, A A⁻¹ = I, S = Sᵀ."""
    shown = [text.printed(part, system) for part in fact if isinstance(part, str)]
    places = [part for part in fact if isinstance(part, int)]
    if len(shown) == 2:
        first, second = places
        return f"{shown[0]}{'' if first else 'ᵀ'} {shown[1]}{'ᵀ' if second else ''} = I"
    if not places and value.has(Compare):
        return f"{shown[0]} = I ⊙ {shown[0]}"
    if not places:
        other = sorted(names(value) - {fact[0]})
        return f"{shown[0]} = {text.printed(other[0] if other else str(fact[0]), system)}ᵀ"
    name = str(fact[0])
    array = system.arrays[name]
    outs = out_letters(array.rank)
    total = sum_(Access(name, *outs), [array.axes(outs)[position] for position in places])
    left = [letter for k, letter in enumerate(outs) if k not in places]
    side = [text.expression_text(part, left, system, "index") for part in (total, value)]
    return " = ".join(side)

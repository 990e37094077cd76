"""How two expressions are shown to be equal for all sizes: by their normal form, if need be after further steps.

    recurrences   linear ones are put in their closed form, which induction shows (`recurrences.py`)
    seams         sums over parts of one range are split where one of them ends (`seams.py`)
    inverses      those of products, sums and multiples are written with those of the parts (`inverses.py`)
    digits        an index below 2·p is 2·i or 2·i + 1 with i below p: both cases are shown

Each is tried only where the ones before it do not suffice. Each step carries its own check at random points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, takewhile

from sympy import Expr, S

from gradproof.symbolic.equations.expr import Access, Axis, Implicit, Index, letters, names
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import StepError, same_values
from gradproof.symbolic.folding.facts import Facts
from gradproof.symbolic.folding.rules import reason
from gradproof.symbolic.judging.inverses import explicit
from gradproof.symbolic.judging.normal_form import Normal, Scope
from gradproof.symbolic.judging.polynomials import NoNormalForm, Poly, expr_of
from gradproof.symbolic.judging.recurrences import Linear, closed
from gradproof.symbolic.judging.seams import replaced, split
from gradproof.symbolic.phrases import joined
from gradproof.symbolic.printing import latex, text
from gradproof.symbolic.printing.letters import Letters

BASES = (2, 3, 4)  # in which the last digit of an index is told apart
MAX_CASES = 16
LONGEST = 300  # signs of an equation that is shown

Case = tuple[dict[Index, Expr], Scope]


@dataclass(frozen=True)
class ProofStep:
    """One step of a proof: the rule, the two sides that it shows to be equal (if it is about two), how it was checked.

    `axes` are the ranges of the letters that are free in both sides.
    """

    rule: str
    words: Mapping[str, str] = field(default_factory=dict)
    sides: tuple[Expr, ...] = ()
    axes: tuple[Axis, ...] = ()
    system: System = field(default=System({}, (), ()), repr=False, compare=False)
    checked: str = ""

    def reason(self, lang: str = "en") -> str:
        return reason(self.rule, lang, **self.words)

    @property
    def text(self) -> str:
        """The equation as Unicode text, "" where there is none."""
        shown = [text.expression_text(side, *self._printed) for side in self.sides]
        return " = ".join(shown) if sum(map(len, shown)) <= LONGEST else ""

    @property
    def latex(self) -> str:
        """The equation as LaTeX, "" where there is none."""
        return " = ".join(latex.expression_latex(side, *self._printed) for side in self.sides) if self.text else ""

    @property
    def _printed(self) -> tuple[tuple[Index, ...], System, str, dict[str, str]]:
        """How both sides are printed: with the same letters."""
        chosen = Letters(self.system).outs((letter, hi - lo) for letter, lo, hi in self.axes)
        names = {letter.name: new.name for letter, new in chosen.items()}
        return tuple(letter for letter, _, _ in self.axes), self.system, "index", names

    def __str__(self) -> str:
        lines = [self.reason(), f"    {self.text}", f"    checked: {self.checked}"]
        return "\n".join(line for line, there in zip(lines, (True, self.text, self.checked), strict=True) if there)


Steps = tuple[ProofStep, ...]


def summary(steps: Steps) -> str:
    """Why a proof holds, in one line: each reason once, cases left out."""
    return joined("; ", dict.fromkeys(step.reason() for step in steps if step.rule != "case"))


def proof(system: System, left: Expr, right: Expr, axes: Sequence[Axis], facts: Facts | None = None) -> Steps | None:
    """The steps that show two expressions with letters in the ranges `axes` to be equal; None where none do.

    >>> from gradproof.symbolic.language.reader import build
    >>> system = build("sum[t=0:n](x[t+1] - x[t])", {"x": "n+1"})
    >>> n, (value,) = system.sizes[0], system.outputs
    >>> for step in proof(system, Access(value), Access("x", n) - Access("x", 0), ()): print(step.reason())
    a sum or product is split where the range of another one ends
    both sides have the same normal form, for all sizes
    """
    scope = {letter: (lo, hi) for letter, lo, hi in axes}
    try:
        normal = Normal(system, facts=facts)
        if not normal.cleared(normal.of(left - right, scope), scope):
            return (_last(normal, left, right, scope),)
    except (NoNormalForm, RecursionError):
        pass
    return further_proof(system, left, right, scope, facts)


def further_proof(system: System, left: Expr, right: Expr, scope: Scope, facts: Facts | None = None) -> Steps | None:
    """The steps that show two expressions to be equal where the normal form alone does not; None where none do."""
    found = _with_steps(system, left, right, scope, facts)
    if found is None and any(isinstance(equation.body, Implicit) for equation in system.equations):
        written, changed, before = explicit(system)
        if changed and (more := _with_steps(written, left, right, scope, None)) is not None:
            return (*(_written_out(before, equation, body) for equation, body in changed), *more)
    return found


def _written_out(system: System, equation: Equation, body: Expr) -> ProofStep:
    """That an inverse or a determinant is what it is written as."""
    scope = {letter: (lo, hi) for letter, lo, hi in equation.axes}
    return _equal(system, scope, "inverse written out", equation.target, body)


def _with_steps(system: System, left: Expr, right: Expr, scope: Scope, facts: Facts | None = None) -> Steps | None:
    """The steps by closed forms, splits of sums and digits."""
    try:
        simpler, forms = closed(system)
        for first, cases in _digits(scope):
            tried = (_case(simpler, left.xreplace(v), right.xreplace(v), inner, facts) for v, inner in cases)
            shown = [steps for steps in takewhile(lambda steps: steps is not None, tried) if steps is not None]
            if len(shown) == len(cases):
                needed = {e.name for e in simpler.needed([*names(left), *names(right)]).equations}
                used = [form for form in forms if form[0].steps.array.name in needed]
                steps = [step for form in used for step in _induction(system, *form)]
                if len(cases) == 1:
                    return (*steps, *shown[0])
                told = zip(cases, shown, strict=True)
                return (*steps, *first, *(step for case, part in told for step in _told(simpler, case, part)))
    except StepError as error:
        if error.difference is not None:
            raise
    except (GradproofError, RecursionError):
        pass  # too large, or a step has no value at any point at which it could be checked
    return None


def _case(system: System, left: Expr, right: Expr, scope: Scope, facts: Facts | None) -> list[ProofStep] | None:
    """The splits of sums after which the normal forms agree, and these; None where they do not agree."""
    normal = Normal(system, facts=facts, patient=True)
    poly = split(normal, normal.of(left - right, scope), scope)
    if normal.cleared(poly, scope):
        return None
    found = [
        _equal(system, own, "split sum", old, new)
        for old, new, inner in normal.splits
        if (own := _free(inner, old, new)) is not None
    ]
    return [*found, _last(normal, left, right, scope)]


def _told(system: System, case: Case, steps: list[ProofStep]) -> list[ProofStep]:
    """The steps of one case; the last one says which case it is."""
    values, scope = case
    letter_of = Letters(system).outs((letter, hi - lo) for letter, (lo, hi) in scope.items())
    said = ", ".join(f"{letter_of[x]} → {value.xreplace(letter_of)}" for x, value in values.items())
    return [*steps[:-1], replace(steps[-1], rule="case", words={"case": said.replace("*", "")})]


def _last(normal: Normal, left: Expr, right: Expr, scope: Scope) -> ProofStep:
    """That the normal forms agree: the form that both sides have, or that they agree once denominators are cleared."""

    def form(side: Expr) -> Poly:
        poly = normal.of(side, scope)
        for old, new, _ in normal.splits:
            poly = normal.of(replaced(expr_of(poly), old, new), scope)
        return poly

    both = form(left)
    if both != form(right):
        return ProofStep("cleared")
    return ProofStep("normal form", {}, (expr_of(both),), _axes(scope), normal.system)


def _free(scope: Scope, *sides: Expr) -> Scope | None:
    """The ranges of the letters that are free in some expressions; None where one of them depends on another."""
    free = frozenset().union(*map(letters, sides))
    own = {letter: ends for letter, ends in scope.items() if letter in free}
    return None if any(letters(end) for ends in own.values() for end in ends) else own


def _axes(scope: Scope) -> tuple[Axis, ...]:
    return tuple((letter, lo, hi) for letter, (lo, hi) in scope.items())


def _equal(system: System, scope: Scope, rule: str, left: Expr, right: Expr, **words: str) -> ProofStep:
    """The step that two expressions are equal, checked at random points."""
    axes = _axes(scope)
    array = Array(system.free_name("side"), tuple(hi - lo for _, lo, hi in axes), tuple(int(lo) for _, lo, _ in axes))
    sides = (Equation(array.name, tuple(scope), axes, side) for side in (left, right))
    first, second = (system.extended([array], [side], [array.name]) for side in sides)
    return ProofStep(rule, words, (left, right), axes, system, same_values(first, second, [array.name]))


def _induction(system: System, found: Linear, body: Expr) -> list[ProofStep]:
    """The closed form of a recurrence, its first entry, and the step from one entry to the next."""
    steps = found.steps
    t, name = steps.time, text.printed(steps.array.name, system)
    everywhere = {letter: (lo, hi) for letter, lo, hi in steps.array.axes(steps.outs)}
    form = Access(steps.array.name, *steps.outs), steps.turned(body)
    return [
        _equal(system, everywhere, "closed form", *form, name=name),
        _equal(system, steps.scope(False), "first entry", body.xreplace({t: S.Zero}), steps.start, name=name),
        _equal(system, steps.scope(True), "next entry", found.next(body.xreplace({t: t - 1})), body, name=name),
    ]


def _digits(scope: Scope) -> Iterator[tuple[list[ProofStep], list[Case]]]:
    """The ways to tell cases apart: none, then one for each last digit of every index that has a last digit."""
    yield [], [({}, scope)]
    found: dict[Index, tuple[int, Expr]] = {}
    for letter, (lo, hi) in scope.items():
        number, rest = hi.as_coeff_Mul()
        if lo == 0 and number in BASES and rest.free_symbols:
            found[letter] = int(number), rest
    cases: list[Case] = []
    for digits in product(*(range(base) for base, _ in found.values())):
        values = {x: base * x + digit for (x, (base, _)), digit in zip(found.items(), digits, strict=True)}
        cases.append((values, {**scope, **{letter: (S.Zero, rest) for letter, (_, rest) in found.items()}}))
    if found and len(cases) <= MAX_CASES:
        forms = ", ".join(f"{base}i + r (r < {base})" for base in sorted({base for base, _ in found.values()}))
        yield [ProofStep("last digit", {"forms": forms, "count": str(len(cases))})], cases

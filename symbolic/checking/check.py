"""Check mine: is the formula that a user wrote for a derivative right, how is that known, what is right instead?

    proved      the difference from the derived formula has the normal form 0
    agrees      both are equal at random points: exactly modulo a prime, or to 40 digits
    refuted     they differ; with the smallest counterexample that was found, and what would make the claim right
    undecided   no point could be evaluated

>>> check("sum(x**2)", shapes={"x": "n"}, wrt="x", claim="2*x").verdict
'proved'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sympy import Expr

from gradproof.symbolic.checking.claims import EXPECTED, Question, pose
from gradproof.symbolic.equations.evaluate import PRIME
from gradproof.symbolic.equations.expr import Access, sum_
from gradproof.symbolic.equations.numbers import same
from gradproof.symbolic.equations.system import out_letters
from gradproof.symbolic.folding.checks import NoPoint, said, small_sizes
from gradproof.symbolic.folding.facts import declared
from gradproof.symbolic.folding.fold import facts
from gradproof.symbolic.judging.counterexample import Counterexample, smallest
from gradproof.symbolic.judging.domains import Domain
from gradproof.symbolic.judging.hints import factor, under_assumption
from gradproof.symbolic.judging.normal_form import vanishes
from gradproof.symbolic.judging.polynomials import NoNormalForm
from gradproof.symbolic.judging.proving import further_proof, summary
from gradproof.symbolic.judging.reaching import Reach, compared_everywhere
from gradproof.symbolic.judging.sampling import (
    Comparison,
    Draw,
    compared,
    drawn,
    equal_modulo_prime,
    sides,
)
from gradproof.symbolic.language.syntax import Declaration, Program
from gradproof.symbolic.phrases import joined, phrase
from gradproof.symbolic.printing import text

EXIT = {"proved": 0, "agrees": 0, "refuted": 1, "undecided": 3}
FEW = ("small", "positive", "wide")  # the points at which a variant of a claim is tried


@dataclass(frozen=True)
class Verdict:
    """`verdict` is proved, agrees, refuted or undecided; `how` says how that is known, `correct` what is right.

    `form` gives shape and layout of the right formula. A right claim holds under `conditions`, where it does not hold
    wherever the derivative has a value.
    """

    verdict: str
    how: str
    counterexample: Counterexample | None = None
    correct: str = ""
    note: str = ""
    form: str = ""
    conditions: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        return self.verdict in ("proved", "agrees")

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = self.counterexample and self.counterexample.as_dict()
        words = {"correct": self.correct, "form": self.form, "note": self.note, "conditions": list(self.conditions)}
        return {"verdict": self.verdict, "how": self.how, "counterexample": found, **words}

    def __str__(self) -> str:
        where = f" where {' and '.join(self.conditions)}" if self.conditions else ""
        lines = [f"{self.verdict}{where}: {self.how}"]
        if self.counterexample is not None:
            lines.append(str(self.counterexample))
        if self.note:
            lines.append(f"note: {self.note}")
        if self.correct:
            lines.append(f"right is: {self.correct}{f'  ({self.form})' if self.form else ''}")
        return "\n".join(lines)


def check(
    expression: str | Program,
    shapes: Mapping[str, object] | Sequence[Declaration],
    wrt: str | Sequence[str],
    claim: str,
    cotangent: str | None = None,
    let: Mapping[str, str] | None = None,
    layout: str | None = None,
    order: int = 1,
) -> Verdict:
    """Judge a claimed derivative of an expression.

    The claim may use the names of the expression, those of its intermediates and of `let`, and the cotangent. Of a
    non-scalar expression without a cotangent it is about the Jacobian J[output, variable]; `order` 2 means the Hessian.
    `layout` is "denominator" (a gradient has the shape of its variable; the default for gradients) or "numerator" (the
    default for Jacobians).

    >>> print(check("sum(softmax(s) * g)", {"s": "n", "g": "n"}, "s", "softmax(s) * g").counterexample)
    for n = 1; s = [0], g = [1]: the gradient by s at [0] is 0, your formula gives 1

    Raises ExpressionError for input that cannot be used.
    """
    try:
        question = pose(expression, shapes, wrt, claim, cotangent, let, layout, order)
    except NoPoint as error:
        return Verdict("undecided", f"the derivative could not be checked: {error}")
    verdict = judged(question) if question.fits() else misfit(question)
    shape = question.shape(question.right)
    form = f"shape {shape_text(shape)}, {question.layout} layout" if len(shape) > 1 else ""
    return replace(verdict, correct=correct_text(question), form=form)


def correct_text(question: Question) -> str:
    """The right formula, with the definitions that it needs."""
    derivation, system = question.derivation, question.derivation.system
    if question.right == EXPECTED:  # numerator layout: the gradient transposed
        source = derivation.results[0]
        outs = out_letters(len(source.place))
        body = source.at(outs[::-1])
        found = f"{text.printed(source.name, system)}ᵀ = {text.expression_text(body, outs, system)}"
    else:
        lines = [derivation.line(e) for e in derivation.results if e.name == question.right]
        found = "; ".join(lines)
    used = [derivation.line(equation) for equation in derivation.definitions]
    return phrase("{} with {}", found, ", ".join(used)) if used else found


def judged(question: Question) -> Verdict:
    """The verdict on a claim of the right shape."""
    pair = question.pair
    found, reach = compared_everywhere(pair)
    if found.differs is not None:
        return refuted(question, found.differs)
    if not found.compared:
        return Verdict("undecided", f"no random point could be evaluated: {found.reason or 'no sizes fit'}")
    domain = Domain(pair, question.needs, question.given, question.derivation.cotangent)
    sizes, values = domain.sizes(), domain.conditions()
    verdict, apart = agreed(question, reach, found, sizes)
    special = special_points(question, told=bool(values))
    if apart and special is None:
        special = "no kink is met", "at a kink your formula may give another value; gradproof takes torch's there"
    at, note = special or ("", "")
    if values and not note:
        note = f"your formula, as it is typed, has a value only where {' and '.join(values)}"
    return replace(verdict, note=note, conditions=tuple(filter(None, (*sizes, *values, at))))


def agreed(question: Question, reach: Reach, found: Comparison, sizes: Sequence[str]) -> tuple[Verdict, bool]:
    """The verdict on a claim that is right at all points that were compared, and whether it leaves kinks out."""
    pair = question.pair
    if (shown := proof(question, sizes)) is not None:
        return Verdict("proved", shown[0]), shown[1]
    left = unreached(reach, found)
    exact = equal_modulo_prime(pair)
    if exact is not None:
        points, digits = exact
        how: list[str] = [
            phrase("equal at {} random points modulo {}, with functions as unknowns", points, PRIME),
            phrase("a formula that is wrong at their sizes would pass with a chance below {}", f"10^−{digits}"),
            phrase("to 40 digits at {} more, on both sides of every threshold", found.compared),
        ]
    else:
        where = "small and large numbers, several sizes, both sides of every threshold"
        how = [phrase("equal to 40 digits at {} points, {}", found.compared, where), "not proved"]
    return Verdict("agrees", joined("; ", [*how, left])), False


def unreached(reach: Reach, found: Comparison) -> str:
    """What the points did not show: the branches that none of them took, and the sizes that are too large."""
    large = [said(sizes) for sizes in found.skipped]
    named = [*dict.fromkeys(reach.missing), *(phrase("sizes such as {}", sizes) for sizes in large[:1])]
    return phrase("not reached: {}", joined(", ", named)) if named else ""


def under(how: str, sizes: Sequence[str]) -> str:
    """The same under conditions on sizes."""
    return phrase("{} with {}", how, joined(" and ", sizes)) if sizes else how


def proof(question: Question, sizes: Sequence[str]) -> tuple[str, bool] | None:
    """How the two sides are proved equal under conditions on sizes, and whether apart from kinks; None if they are not.

    First with the intermediates of the forward as they are, then with everything put in, then apart from kinks, at last
    by further steps.
    """
    system, rank = question.system, len(question.shape(question.right))
    outs = out_letters(rank)
    axes = system.arrays[question.right].axes(outs)
    difference = Access(question.right, *outs) - Access(question.claim, *outs)
    forward = question.derivation.forward
    kept = frozenset(forward.defined) - forward.hidden
    by_definition = declared(system)
    by_definition.update(facts(forward))
    ways: tuple[tuple[frozenset[str], dict[str, Any], bool], ...] = (
        (kept, {"facts": by_definition}, False),
        (frozenset(), {}, False),
        (frozenset(), {"generic": True}, True),
    )
    for keep, options, apart in ways:
        try:
            if vanishes(system, difference, axes, keep, **options):
                same = phrase("the difference from the derived {} has the normal form 0, for all sizes", question.what)
                how = under(same, sizes)
                return phrase("{}, apart from kinks", how) if apart else how, apart
        except (NoNormalForm, RecursionError):
            continue
    right, claim = Access(question.right, *outs), Access(question.claim, *outs)
    steps = further_proof(system, right, claim, {letter: (lo, hi) for letter, lo, hi in axes})
    return None if steps is None else (under(summary(steps), sizes), False)


def special_points(question: Question, told: bool) -> tuple[str, str] | None:
    """What happens at 0 and 1, where kinks and divisions by zero lie: a condition and a note; None if nothing does.

    Where it is `told` already where the claim has a value, there is no condition that it has none.
    """
    pair = question.pair
    sizes = small_sizes(pair.system)
    for value in (Fraction(0), Fraction(1)):
        draw = drawn(pair, sizes, 0)
        for name in pair.inputs:
            if pair.system.arrays[name].below is None and name != question.derivation.cotangent:
                draw = draw.with_entries(name, dict.fromkeys(draw.free[name], value))
        found = sides(pair, draw)
        if not found.gaps():
            continue
        inputs = ", ".join(f"{name} = {value}" for name in pair.inputs if name != question.derivation.cotangent)
        if any(found.claim[place] is None for place in found.gaps()):
            return (
                "" if told else f"not {inputs}",
                f"your formula has no value at {inputs}, where the {question.what} has one",
            )
        kink = f"at the kink {inputs} your formula gives another value; gradproof takes torch's there"
        return f"not at the kink {inputs}", kink
    return None


# -------------------------------------------------------------------------------------------------------------- refuted


def refuted(question: Question, differs: Draw) -> Verdict:
    """The verdict on a claim that is wrong at a point."""
    example = smallest(question.pair, differs, phrase("the {}", question.what))
    how = phrase("{} is not the {}: their values differ at the point that is shown", "your formula", question.what)
    return Verdict("refuted", how, example, note=hint(question))


def hint(question: Question) -> str:
    """What would make a wrong claim right, if something simple does."""
    for note, other in variants(question):
        if agrees(other):
            return note
    times = factor(question.pair)
    if times is not None:
        return f"your formula is {times} times the right one"
    assumption = under_assumption(question.pair, question.variables[0])
    return f"your formula is right if {assumption}" if assumption is not None else ""


def agrees(question: Question) -> bool:
    found = compared(question.pair, kinds=FEW)
    return found.differs is None and found.compared > 0


def misfit(question: Question) -> Verdict:
    """The verdict on a claim of another shape."""
    right, claim = (shape_text(question.shape(name)) for name in (question.right, question.claim))
    wanted = phrase("the {} has the shape {} in {} layout", question.what, right, question.layout)
    how = joined("; ", [wanted, phrase("{} has the shape {}", "your formula", claim)])
    example = None
    for note, other in variants(question):
        found = compared(other.pair, kinds=FEW)
        if found.differs is None and found.compared:
            return Verdict("refuted", how, note=note)
        if found.differs is not None and example is None:
            example = smallest(other.pair, found.differs, phrase("the {}", question.what))
    return Verdict("refuted", how, example)


def shape_text(shape: Sequence[Expr]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})" if shape else "() of a scalar"


def variants(question: Question) -> Iterator[tuple[str, Question]]:
    """The claim read in other ways, each with the note to give if that is right."""
    right, claim = question.shape(question.right), question.shape(question.claim)
    outs = out_letters(max(len(right), len(claim)))
    for maker in (_other_layout, _transposed, _squeezed, _broadcast, _summed):
        made = maker(question, right, claim, outs)
        if made is not None:
            yield made[0], question.instead(made[1])


Shape = tuple[Expr, ...]


def _equal(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def _other_layout(question: Question, right: Shape, claim: Shape, outs: Sequence[Expr]) -> tuple[str, Expr] | None:
    swap = question.swap
    if len(right) < 2 or len(claim) != len(right) or not _equal([right[k] for k in swap], claim):
        return None
    other = "numerator" if question.layout == "denominator" else "denominator"
    note = f"this is your formula in the other layout: it is right in {other} layout"
    return note, Access(question.claim, *(outs[k] for k in swap))


def _transposed(question: Question, right: Shape, claim: Shape, outs: Sequence[Expr]) -> tuple[str, Expr] | None:
    swap = (*range(len(right) - 2), len(right) - 1, len(right) - 2)
    if len(right) < 3 or not _equal([right[k] for k in swap], claim):
        return None
    return "its last two axes are exchanged", Access(question.claim, *(outs[k] for k in swap))


def _broadcast(question: Question, right: Shape, claim: Shape, outs: Sequence[Expr]) -> tuple[str, Expr] | None:
    """The claim repeated along axes that it lacks, or that have size 1."""
    missing = len(right) - len(claim)
    if missing < 0 or _equal(right, claim):
        return None
    pairs = list(zip(range(missing, len(right)), claim, strict=True))
    if not all(same(right[k], size) or size == 1 for k, size in pairs):
        return None
    indices = [outs[k] if same(right[k], size) else 0 for k, size in pairs]
    note = f"its values are right once they are repeated over the shape {shape_text(right)}"
    return note, Access(question.claim, *indices)


def _summed(question: Question, right: Shape, claim: Shape, outs: Sequence[Expr]) -> tuple[str, Expr] | None:
    """The claim summed over axes that the variable was repeated along."""
    extra = len(claim) - len(right)
    if extra < 0 or _equal(right, claim):
        return None
    pairs = list(zip(range(extra, len(claim)), right, strict=True))
    if not all(same(claim[k], size) or size == 1 for k, size in pairs):
        return None
    gone = [*range(extra), *(k for k, size in pairs if not same(claim[k], size))]
    array = question.system.arrays[question.claim]
    letters = out_letters(len(right) + len(claim))
    inner = letters[len(right) :]
    mapping = {inner[k]: letters[k - extra] for k in range(extra, len(claim)) if k not in gone}
    entry = Access(array.name, *(mapping.get(letter, letter) for letter in inner))
    axes = [(inner[k], 0, claim[k]) for k in gone]
    note = f"it is right after a sum over the axes {', '.join(map(str, gone))}, along which the variable is repeated"
    return note, sum_(entry, axes)


def _squeezed(question: Question, right: Shape, claim: Shape, outs: Sequence[Expr]) -> tuple[str, Expr] | None:
    """The claim without its axes of size 1."""
    kept = [k for k, size in enumerate(claim) if size != 1]
    if len(kept) == len(claim) or not _equal([claim[k] for k in kept], right):
        return None
    indices = [outs[kept.index(k)] if k in kept else 0 for k in range(len(claim))]
    return "its values are right, but it has an axis of size 1 too many", Access(question.claim, *indices)

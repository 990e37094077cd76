"""What a book holds: one page an entry, everything on it computed now. How it is set is in `book_latex`, `book_web`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradproof.cli.output.words import Described, counted, phrased, rule, word
from gradproof.symbolic.catalogue import Claim, Entry, Identity, Moment
from gradproof.symbolic.catalogue.chapters import chapter, place
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.evidence import Evidence, rows, shown
from gradproof.symbolic.catalogue.proof import agrees, derived_moment, prove
from gradproof.symbolic.catalogue.verdict import judged as found_of
from gradproof.symbolic.deriving.derivation import Derivation, shown_equations
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.moments import MomentResult
from gradproof.symbolic.phrases import joined as sentences
from gradproof.symbolic.phrases import phrase, put
from gradproof.symbolic.printing import latex, text

if TYPE_CHECKING:
    from gradproof.models.experiments import Experiment


@dataclass(frozen=True)
class ShownStep:
    """Rule, reason and check in the language of the book; the equations as LaTeX, a block each."""

    rule: str
    reason: str
    equations: tuple[str, ...]
    checked: str


@dataclass(frozen=True)
class ShownIdentity:
    """`left` and `right` as LaTeX, one block an equation; `verdict` is what the proof reached, in its steps."""

    stated: Identity
    left: tuple[str, ...]
    right: tuple[str, ...]
    verdict: str
    how: str
    steps: tuple[ShownStep, ...]


@dataclass(frozen=True)
class ShownClaim:
    stated: Claim
    verdict: str
    how: str

    @property
    def passed(self) -> bool:
        return agrees(self.verdict, self.stated.expected)


@dataclass(frozen=True)
class ShownMoment:
    """`result` is what was derived, `passed` whether it is what the entry states."""

    stated: Moment
    result: MomentResult
    passed: bool
    steps: tuple[ShownStep, ...]


@dataclass(frozen=True)
class Page(Described):
    """One entry with everything that can be shown of it."""

    result: tuple[str, ...] = ()
    steps: tuple[ShownStep, ...] = ()
    identities: tuple[ShownIdentity, ...] = ()
    claims: tuple[ShownClaim, ...] = ()
    moments: tuple[ShownMoment, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    experiment: Experiment | None = None

    @property
    def variables(self) -> str:
        """What was differentiated by, as it is printed."""
        return ", ".join(text.plain_name(name)[0] for name in self.entry.wrt)

    @property
    def numbers(self) -> list[tuple[str, str, str]]:
        """The rows of evidence: what it is, what was computed, what was expected."""
        found = []
        for row in self.evidence:
            label, value, expected = (phrased(t, self.lang) for t in (row.label, shown(row.value), shown(row.expected)))
            found.append((label, value, expected if row.passed else f"{expected} {word('failed', self.lang)}"))
        return found

    @property
    def measured(self) -> list[list[str]]:
        """The table of the experiment, with its head."""
        if self.experiment is None:
            return []
        head = [phrased(name, self.lang) for name in self.experiment.columns]
        return [head, *([f"{value:.4g}" for value in row] for row in self.experiment.rows)]

    @property
    def conclusion(self) -> str:
        return phrased(self.experiment.conclusion, self.lang) if self.experiment else ""

    @property
    def passed(self) -> bool:
        identities = all(agrees(i.verdict, i.stated.expected) for i in self.identities)
        numbers = (*self.evidence, *(self.experiment.checks if self.experiment else ()))
        formulas = all(claim.passed for claim in self.claims) and all(moment.passed for moment in self.moments)
        return identities and formulas and all(row.passed for row in numbers)

    @property
    def facts(self) -> list[tuple[str, str]]:
        entry = self.entry
        found = [("source", entry.source), ("kind", self.kind), ("verdict", self.verdict)]
        return found + (
            [("assumptions", phrased(sentences("; ", entry.assumptions), self.lang))] if entry.assumptions else []
        )

    @property
    def rests_on(self) -> str:
        """What the verdict rests on, in a few words."""
        came_out = [claim.stated.expected if claim.passed else claim.verdict for claim in self.claims]
        verdicts = [identity.verdict for identity in self.identities]
        parts = [
            (len(self.steps), "checked step"),
            (verdicts.count("proved"), "identity proved"),
            (verdicts.count("agrees"), "identity at random points"),
            (verdicts.count("refuted"), "identity refuted"),
            (came_out.count("proved"), "formula confirmed"),
            (came_out.count("refuted"), "formula refuted"),
            (len(self.moments), "moment derived"),
            (len(self.evidence), "number"),
        ]
        found = word("comma", self.lang).join(counted(count, key, self.lang) for count, key in parts if count)
        return found if self.passed else f"{found}{word('semicolon', self.lang)}{word('failed', self.lang)}"


def equations_latex(found: Derivation) -> tuple[str, ...]:
    """Definitions and results, a block each, so that a page may break between them."""
    equations = (*found.definitions, *found.results)
    return tuple(latex.system_latex([e], found.system, found.form, found.letters) for e in equations)


def joined(blocks: Sequence[str]) -> list[str]:
    r"""The same blocks as one (none for none), where a page need not break.

    >>> joined(["\\begin{aligned}\na &= 1\n\\end{aligned}", "\\begin{aligned}\nb &= 2\n\\end{aligned}"])
    ['\\begin{aligned}\na &= 1 \\\\\nb &= 2\n\\end{aligned}']
    """
    start, end = "\\begin{aligned}\n", "\n\\end{aligned}"
    inside = " \\\\\n".join(block.removeprefix(start).removesuffix(end) for block in blocks)
    return [f"{start}{inside}{end}"] if blocks else []


def side_latex(text: str, identity: Identity) -> tuple[str, ...]:
    """The equations of one side of an identity."""
    system = build(text, identity.shapes)
    if not system.equations:
        return ()
    return tuple(latex.system_latex([e], system, "matrix") for e in shown_equations(system, system.defined))


def _identity(identity: Identity, lang: str) -> ShownIdentity:
    proof = prove(identity)
    left, right = (side_latex(text, identity) for text in (identity.left, identity.right))
    shown = (s for s in proof.steps if len(proof.steps) > 1 or s.latex)
    steps = tuple(
        ShownStep(rule(s.rule, lang), s.reason(lang), (s.latex,) if s.latex else (), phrased(s.checked, lang))
        for s in shown
    )
    return ShownIdentity(identity, left, right, proof.verdict, proof.how, steps)


def _claim(claim: Claim) -> ShownClaim:
    verdict, how = judged(claim)
    return ShownClaim(claim, verdict, how)


def judged(claim: Claim) -> tuple[str, str]:
    """The verdict on a claim of an entry, and how that is known; of a wrong one, a counterexample and what is right."""
    found = found_of(claim)
    if found.verdict != "refuted":
        return found.verdict, found.how
    known = put(found.counterexample.said if found.counterexample else found.how, "your formula", "the claim")
    return found.verdict, sentences("; ", [known, phrase("right is: {}", found.correct)])


def _moment(moment: Moment, lang: str) -> ShownMoment:
    result, right = derived_moment(moment, lang)
    steps = (
        ShownStep(
            rule(s.rule, lang),
            f"{s.reason}{word('stop', lang)}{s.left} =",
            (s.latex,),
            phrased(s.checked, lang),
        )
        for s in result.steps
    )
    return ShownMoment(moment, result, right, tuple(steps))


def page(entry: Entry, lang: str = "en", steps: bool = True, evidence: bool = True) -> Page:
    """Derive, prove and compute what an entry states.

    >>> from gradproof.symbolic.catalogue import get
    >>> page(get("softmax.shift")).rests_on
    '1 identity proved'
    """
    result: tuple[str, ...] = ()
    shown: tuple[ShownStep, ...] = ()
    if entry.expression and entry.wrt:
        found = derive_entry(entry, lang)
        result = equations_latex(found)
        shown = tuple(
            ShownStep(
                rule(s.rule, lang),
                s.reason,
                tuple(latex.system_latex([e], s.system, "index") for e in s.after),
                phrased(s.checked, lang),
            )
            for s in found.steps
        )
    return Page(
        entry,
        lang,
        result,
        shown if steps else (),
        tuple(_identity(identity, lang) for identity in entry.identities),
        tuple(map(_claim, entry.claims)),
        tuple(_moment(moment, lang) for moment in entry.moments),
        tuple(rows(entry)) if evidence else (),
        experiment(entry.experiment) if evidence and entry.experiment else None,
    )


def experiment(name: str) -> Experiment:
    from gradproof.models.experiments import run

    return run(name)


def pages(
    entries: Sequence[Entry],
    lang: str,
    steps: bool,
    evidence: bool,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Page]:
    """The pages of several entries; an error names its entry."""
    found = []
    for entry in entries:
        progress(entry.id)
        try:
            found.append(page(entry, lang, steps, evidence))
        except GradproofError as error:
            raise GradproofError(f"{entry.id}: {error}") from None
    return found


def chapters(found: Iterable[Page]) -> list[tuple[str, list[Page]]]:
    """Pages in the order of the book."""
    book: dict[str, list[Page]] = {}
    for p in sorted(found, key=lambda p: place(p.entry.id)):
        book.setdefault(chapter(p.entry.id, p.lang), []).append(p)
    return list(book.items())


def sources(found: Sequence[Page]) -> str:
    """What the letters of the sources stand for, if entries of the built-in catalogue are in the book."""
    letters = any(re.match(r"N\b|S\b|C[0-9]", p.entry.source) for p in found)
    return word("sources", found[0].lang) if letters else ""


def sentence(identity: ShownIdentity, lang: str) -> str:
    return _sentence(identity.stated.says, identity.verdict, identity.how, lang)


def claim_sentence(claim: ShownClaim, lang: str) -> str:
    return _sentence(claim.stated.says, claim.verdict, claim.how, lang)


def _sentence(says: str, verdict: str, how: str, lang: str) -> str:
    """What is said, the verdict on it, and why."""
    start = f"{phrased(says, lang)}{word('colon', lang)}" if says else ""
    return _rounded(f"{start}{phrased(verdict, lang)}{word('semicolon', lang)}{phrased(how, lang)}")


def claim_lines(claim: Claim) -> tuple[str, str, str]:
    """The expression, what is claimed to be what, and the claim."""
    given = f" ({claim.cotangent} · …)" if claim.cotangent else ""
    return claim.expression, f"d/d{claim.wrt}{given} =", claim.claim


def moment_sentence(moment: ShownMoment, lang: str) -> str:
    says = f"{phrased(moment.stated.says, lang)}{word('colon', lang)}" if moment.stated.says else ""
    assumed = f"{word('semicolon', lang)}".join(moment.result.assumptions)
    return f"{says}{moment.result}{word('semicolon', lang)}{assumed}"


def _rounded(text: str) -> str:
    """Long decimals to ten digits."""
    return re.sub(r"\d+\.\d{12,}", lambda match: f"{float(match[0]):.10g}", text)

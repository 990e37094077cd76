"""What a book holds: one page an entry, everything on it computed now. How it is set is in `book_latex`, `book_web`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gradproof.cli.words import counted, phrased, rule, said, word
from gradproof.symbolic.catalogue import Claim, Entry, Identity, Moment
from gradproof.symbolic.catalogue.chapters import chapter, place
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.evidence import Evidence, rows
from gradproof.symbolic.catalogue.proof import derived_moment, prove
from gradproof.symbolic.check import check
from gradproof.symbolic.derive import Derivation, shown_equations
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.printing import latex


@dataclass(frozen=True)
class ShownStep:
    rule: str
    reason: str
    equations: tuple[str, ...]
    checked: str


@dataclass(frozen=True)
class ShownIdentity:
    """`left` and `right` as LaTeX, one block an equation; `verdict` is what the proof reached."""

    stated: Identity
    left: tuple[str, ...]
    right: tuple[str, ...]
    verdict: str
    how: str


@dataclass(frozen=True)
class ShownClaim:
    stated: Claim
    verdict: str
    how: str

    @property
    def passed(self) -> bool:
        return fits(self.stated.expected, self.verdict)


@dataclass(frozen=True)
class ShownMoment:
    """`value` is what was derived, `passed` whether it is what the entry states."""

    stated: Moment
    value: str
    passed: bool


@dataclass(frozen=True)
class Page:
    """One entry with everything that can be shown of it."""

    entry: Entry
    lang: str
    result: tuple[str, ...] = ()
    steps: tuple[ShownStep, ...] = ()
    identities: tuple[ShownIdentity, ...] = ()
    claims: tuple[ShownClaim, ...] = ()
    moments: tuple[ShownMoment, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def title(self) -> str:
        return self.entry.title_zh if self.lang == "zh" else self.entry.title

    @property
    def note(self) -> str:
        return self.entry.note_zh if self.lang == "zh" else self.entry.note

    @property
    def verdict(self) -> str:
        return said(self.entry.verdict, self.lang)

    @property
    def passed(self) -> bool:
        identities = all(fits(i.stated.expected, i.verdict) for i in self.identities)
        return identities and all(
            [*(c.passed for c in self.claims), *(m.passed for m in self.moments), *(e.passed for e in self.evidence)]
        )

    @property
    def facts(self) -> list[tuple[str, str]]:
        entry = self.entry
        found = [("source", entry.source), ("kind", said(entry.kind, self.lang)), ("verdict", self.verdict)]
        return found + ([("assumptions", "; ".join(entry.assumptions))] if entry.assumptions else [])

    @property
    def rests_on(self) -> str:
        """What the verdict rests on, in a few words."""
        expected = [claim.stated.expected for claim in self.claims]
        verdicts = [identity.verdict for identity in self.identities]
        parts = [
            (len(self.steps), "checked step"),
            (verdicts.count("proved"), "identity proved"),
            (verdicts.count("agrees"), "identity at random points"),
            (verdicts.count("refuted"), "identity refuted"),
            (len(expected) - expected.count("refuted"), "formula confirmed"),
            (expected.count("refuted"), "formula refuted"),
            (len(self.moments), "moment derived"),
            (len(self.evidence), "number"),
        ]
        text = ", ".join(counted(count, key, self.lang) for count, key in parts if count)
        return text if self.passed else f"{text}; {word('failed', self.lang)}"


def fits(expected: str, verdict: str) -> bool:
    """Whether a verdict is the expected one; agreement at random points counts as confirmation."""
    return verdict == expected or (expected == "proved" and verdict == "agrees")


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


def _identity(identity: Identity) -> ShownIdentity:
    proof = prove(identity)
    left, right = (side_latex(text, identity) for text in (identity.left, identity.right))
    return ShownIdentity(identity, left, right, proof.verdict, proof.how)


def _claim(claim: Claim) -> ShownClaim:
    found = check(
        claim.expression, claim.shapes, claim.wrt, claim.claim, cotangent=claim.cotangent, layout=claim.layout
    )
    how = str(found.counterexample) if found.verdict == "refuted" else str(found.how)
    return ShownClaim(claim, found.verdict, how)


def _moment(moment: Moment) -> ShownMoment:
    value, right = derived_moment(moment)
    return ShownMoment(moment, str(value), right)


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
        tuple(map(_identity, entry.identities)),
        tuple(map(_claim, entry.claims)),
        tuple(map(_moment, entry.moments)),
        tuple(rows(entry)) if evidence else (),
    )


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


def sentence(identity: ShownIdentity) -> str:
    says = f"{identity.stated.says}: " if identity.stated.says else ""
    return _rounded(f"{says}{identity.verdict}; {identity.how}")


def claim_sentence(claim: ShownClaim) -> str:
    return _rounded(f"{claim.stated.says}: {claim.verdict}; {claim.how}")


def moment_sentence(moment: ShownMoment) -> str:
    says = f"{moment.stated.says}: " if moment.stated.says else ""
    return f"{says}{moment.stated.kind} = {moment.value}"


def _rounded(text: str) -> str:
    """Long decimals to ten digits."""
    return re.sub(r"\d+\.\d{12,}", lambda match: f"{float(match[0]):.10g}", text)

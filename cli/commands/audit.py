"""`gradproof audit`: what the documents say, what is right, and the evidence for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from gradproof.cli.output.console import emit, emit_json
from gradproof.cli.output.latex_text import escaped, tex
from gradproof.cli.output.words import Described, phrased, said, word
from gradproof.symbolic.catalogue import Entry, entries, get
from gradproof.symbolic.catalogue.verdict import NOT_COMPARED, verdict_of
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.phrases import joined, phrase

FORMATS = ("text", "markdown", "latex", "json")


@dataclass(frozen=True)
class Line:
    """One statement about an entry: what kind it is, what it says, what came out, whether that was expected."""

    kind: str
    says: str
    outcome: str
    passed: bool


@dataclass(frozen=True)
class Finding(Described):
    """Everything that the audit found of one entry."""

    lines: tuple[Line, ...]

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        entry = self.entry
        return {
            "id": entry.id,
            "title": self.title,
            "kind": entry.kind,
            "source": entry.source,
            "verdict": verdict_of(entry),
            "statement": self.statement,
            "right": self.right,
            "assumptions": self.assumptions,
            "note": self.note,
            "passed": self.passed,
            "evidence": [vars(line) for line in self.lines],
        }


@click.command("audit")
@click.argument("identifiers", metavar="[ID …]", nargs=-1)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="Format of the report.")
@click.option("--topic", metavar="TOPIC", help="Only the entries of one topic.")
@click.option(
    "--corrected", is_flag=True, help="Only what the documents have wrong: corrected, counterexample, analogy."
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.pass_context
def audit_command(
    ctx: click.Context,
    identifiers: tuple[str, ...],
    format_: str,
    topic: str | None,
    corrected: bool,
    output: str | None,
) -> int:
    """Report on all documented claims, or on those named: statement, verdict, evidence.

    Exit 1 if the evidence contradicts a verdict.
    """
    wrong = ("corrected", "counterexample", "analogy")
    if identifiers and topic:
        raise click.UsageError("name the entries, or a --topic")
    named = [get(identifier) for identifier in dict.fromkeys(identifiers)] or entries(topic)
    chosen = [entry for entry in named if not corrected or entry.verdict in wrong]
    if not chosen:
        raise click.UsageError(f"there is no such entry{f' in the topic {topic}' if topic else ''}")
    found = [audited(entry, ctx.obj["lang"]) for entry in chosen]
    if format_ == "json":
        counts = {
            verdict: sum(verdict_of(f.entry) == verdict for f in found)
            for verdict in dict.fromkeys(verdict_of(f.entry) for f in found)
        }
        emit_json({"verdicts": counts, "entries": [finding.as_dict() for finding in found]}, output)
    else:
        emit({"text": as_text, "markdown": as_markdown, "latex": as_latex}[format_](found), output)
    return 0 if all(finding.passed for finding in found) else 1


def audited(entry: Entry, lang: str = "en") -> Finding:
    """An entry with the outcome of its derivation, identities, claims, moments and evidence, computed now."""
    found = (line for kind, part in PARTS.items() for line in _safe(kind, part, entry))
    lines = tuple(replace(line, says=phrased(line.says, lang), outcome=phrased(line.outcome, lang)) for line in found)
    return Finding(entry, lang, lines)


def _safe(kind: str, part: Callable[[Entry], list[Line]], entry: Entry) -> list[Line]:
    try:
        return part(entry)
    except Exception as error:  # one entry's failure is a line of the report
        name = "" if isinstance(error, GradproofError) else f"{type(error).__name__}: "
        return [Line(kind, "could not be computed", f"{name}{error}", False)]


def _derived(entry: Entry) -> list[Line]:
    if not entry.expression:
        return []
    from gradproof.symbolic.catalogue.derivation import derive_entry

    found = derive_entry(entry)
    steps = phrase("derived in {} steps, each checked", len(found.steps))
    return [Line("derivation", found.line(equation), steps, True) for equation in found.results]


def _identities(entry: Entry) -> list[Line]:
    from gradproof.symbolic.catalogue.proof import agrees, prove

    found = []
    for identity in entry.identities:
        proof = prove(identity)
        says = joined("; ", [f"{identity.left}  =  {identity.right}", identity.says])
        found.append(
            Line("identity", says, phrase("{}: {}", proof.verdict, proof.how), agrees(proof.verdict, identity.expected))
        )
    return found


def _claims(entry: Entry) -> list[Line]:
    from gradproof.cli.book.pages import judged
    from gradproof.symbolic.catalogue.proof import agrees

    found = []
    for claim in entry.claims:
        verdict, how = judged(claim)
        of = phrase("the derivative of {} by {} is {}", claim.expression, claim.wrt, claim.claim)
        says = joined("; ", [of, claim.says])
        found.append(Line("claim", says, phrase("{}: {}", verdict, how), agrees(verdict, claim.expected)))
    return found


def _moments(entry: Entry) -> list[Line]:
    from gradproof.symbolic.catalogue.proof import derived_moment

    found = []
    for moment in entry.moments:
        result, right = derived_moment(moment)
        says = joined("; ", [phrase("{} of {}", moment.kind, moment.expression), moment.says])
        found.append(Line("moment", says, phrase("derived: {}", result), right))
    return found


def _evidence(entry: Entry) -> list[Line]:
    from gradproof.symbolic.catalogue.evidence import rows, shown

    return [
        Line("number", row.label, phrase("{}; expected {}", shown(row.value), shown(row.expected)), row.passed)
        for row in rows(entry)
    ]


PARTS: dict[str, Callable[[Entry], list[Line]]] = {
    "derivation": _derived,
    "identity": _identities,
    "claim": _claims,
    "moment": _moments,
    "number": _evidence,
}


# -------------------------------------------------------------------------------------------------------------- formats


def sign(passed: bool, lang: str) -> str:
    return word("ok" if passed else "failed", lang)


def summary(found: Sequence[Finding]) -> str:
    lang = found[0].lang
    verdicts = [verdict_of(finding.entry) for finding in found]
    counts = ", ".join(f"{verdicts.count(verdict)} {said(verdict, lang)}" for verdict in dict.fromkeys(verdicts))
    failed = [finding.entry.id for finding in found if not finding.passed]
    loose = [f.entry.id for f, verdict in zip(found, verdicts, strict=True) if verdict == NOT_COMPARED]
    told = {"not confirmed": failed, "not compared": loose}
    parts = [f"{word(key, lang)}{word('colon', lang)}{', '.join(ids)}" for key, ids in told.items() if ids]
    end = word("semicolon", lang).join(parts) or word("all confirmed", lang)
    return f"{len(found)} {word('entries', lang)}{word('colon', lang)}{counts}; {end}"


def as_text(found: Sequence[Finding]) -> str:
    lines = []
    for finding in found:
        entry, lang = finding.entry, finding.lang
        lines += [f"{entry.id}  [{finding.verdict}]  {finding.title}  ({entry.source})"]
        lines += [f"  {word('document', lang).lower()}{word('colon', lang)}{finding.statement}"]
        lines += [f"  {word('right', lang).lower()}{word('colon', lang)}{finding.right}"] if entry.right else []
        lines += [
            f"  {word('assumption', lang).lower()}{word('colon', lang)}{assumption}"
            for assumption in finding.assumptions
        ]
        lines += [f"  {word('note', lang).lower()}{word('colon', lang)}{finding.note}"] if finding.note else []
        lines += [
            f"  {word(line.kind, lang)}{word('colon', lang)}{line.says}  →  {line.outcome}  {sign(line.passed, lang)}"
            for line in finding.lines
        ]
        lines.append("")
    return "\n".join([*lines, summary(found)])


def as_markdown(found: Sequence[Finding]) -> str:
    """Markdown with KaTeX blocks for the statements."""
    parts = [f"# {word('audit of', found[0].lang)}", summary(found)]
    for finding in found:
        entry, lang = finding.entry, finding.lang
        parts += [
            f"## {entry.id}: {finding.title}",
            f"*{entry.source}* · **{finding.verdict}**",
            f"{word('document', lang)}{word('colon', lang)}",
            f"$$\n{finding.statement}\n$$",
        ]
        parts += [f"{word('right', lang)}{word('colon', lang)}", f"$$\n{finding.right}\n$$"] if entry.right else []
        parts += (
            [f"{word('assumptions', lang)}{word('colon', lang)}{'; '.join(finding.assumptions)}"]
            if entry.assumptions
            else []
        )
        parts += [finding.note] if finding.note else []
        if finding.lines:
            rows = [
                f"| {word(line.kind, lang)} | {_cell(line.says)} | {_cell(line.outcome)} | {sign(line.passed, lang)} |"
                for line in finding.lines
            ]
            head = f"| | {word('says', lang)} | {word('outcome', lang)} | |"
            parts.append("\n".join([head, "|---|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("`", "'").replace("\n", " ") + "`"


LATEX_HEAD = r"""\documentclass{article}
\usepackage[margin=2.5cm]{geometry}
\usepackage{amsmath,amssymb,fontspec,unicode-math,fvextra}
\setmonofont{DejaVu Sans Mono}[Scale=0.8]
% XeLaTeX: the evidence is text with Greek letters
"""
CHINESE_HEAD = r"\usepackage{xeCJK}" + "\n"


def as_latex(found: Sequence[Finding]) -> str:
    """A document for XeLaTeX; evidence is set verbatim, with long lines broken."""
    lang = found[0].lang
    head = LATEX_HEAD + (CHINESE_HEAD if lang == "zh" else "")
    parts = [rf"{head}\begin{{document}}", rf"\section*{{{word('audit of', lang)}}}", tex(summary(found))]
    for finding in found:
        entry = finding.entry
        parts.append(rf"\subsection*{{{escaped(entry.id)}: {tex(finding.title)}}}")
        parts.append(rf"{tex(entry.source)} --- \textbf{{{tex(finding.verdict)}}}")
        parts.append(f"{word('document', lang)}{word('colon', lang)}\n\\[\n{finding.statement}\n\\]")
        parts += [f"{word('right', lang)}{word('colon', lang)}\n\\[\n{finding.right}\n\\]"] if entry.right else []
        parts += [f"{word('assumptions', lang)}{word('colon', lang)}{tex('; '.join(finding.assumptions))}"] * bool(
            entry.assumptions
        )
        parts += [tex(finding.note)] if finding.note else []
        rows = [
            f"{word(line.kind, lang)}{word('colon', lang)}{line.says} -> {line.outcome} {sign(line.passed, lang)}"
            for line in finding.lines
        ]
        if rows:
            listing = "\n".join(rows)
            parts.append(f"\\begin{{Verbatim}}[breaklines,breakanywhere]\n{listing}\n\\end{{Verbatim}}")
    return "\n\n".join([*parts, r"\end{document}"])

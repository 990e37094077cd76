"""What `gradproof derive` shows of the identities and moments that an entry states: how each is proved."""

from __future__ import annotations

from typing import Any

from gradproof.cli.output.words import Described, phrased, rule, word
from gradproof.symbolic.catalogue import Entry, Identity, Moment
from gradproof.symbolic.catalogue.proof import agrees, derived_moment, prove
from gradproof.symbolic.phrases import phrase

Row = dict[str, Any]


def proofs(entry: Entry, lang: str) -> Row:
    """The identities and moments of an entry with their steps, for JSON."""
    described = Described(entry, lang)
    return {
        "id": entry.id,
        "title": described.title,
        "verdict": described.verdict,
        "identities": [_identity(identity, lang) for identity in entry.identities],
        "moments": [_moment(moment, lang) for moment in entry.moments],
    }


def _identity(identity: Identity, lang: str) -> Row:
    proof = prove(identity)
    steps = [
        {
            "rule": rule(step.rule, lang),
            "reason": step.reason(lang),
            "equation": step.text,
            "latex": step.latex,
            "checked": phrased(step.checked, lang),
        }
        for step in proof.steps
    ]
    stated = {"says": phrased(identity.says, lang), "statement": f"{identity.left}  =  {identity.right}"}
    verdict = {"confirmed": agrees(proof.verdict, identity.expected), "verdict": phrased(proof.verdict, lang)}
    return {**stated, **verdict, "how": phrased(proof.how, lang), "steps": steps}


def _moment(moment: Moment, lang: str) -> Row:
    result, right = derived_moment(moment, lang)
    steps = [
        {
            "rule": rule(step.rule, lang),
            "reason": step.reason,
            "equation": step.line(step.after),
            "latex": step.writer.latex(step.after),
            "checked": phrased(step.checked, lang),
        }
        for step in result.steps
    ]
    how = phrased(result.checked, lang)
    says = phrased(moment.says or phrase("{} of {}", moment.kind, moment.expression), lang)
    return {"says": says, "statement": str(result), "confirmed": right, "how": how, "steps": steps}


def as_text(found: Row, lang: str, steps: bool) -> str:
    """The same to read."""
    verdict = f"{word('verdict', lang).lower()}{word('colon', lang)}{found['verdict']}"
    return "\n".join([f"{found['id']}: {found['title']}", verdict, *stated_lines(found, lang, steps)])


def stated_lines(found: Row, lang: str, steps: bool) -> list[str]:
    """Each statement, its verdict and its steps."""
    colon = word("colon", lang)
    lines: list[str] = []
    for kind in ("identities", "moments"):
        lines += ["", word(kind, lang).lower()] if found[kind] else []
        for number, row in enumerate(found[kind], 1):
            verdict = f"{row['verdict']}{colon}" if "verdict" in row else ""
            lines += [f"{number:>3}. {row['says']}", f"       {row['statement']}", f"     {verdict}{row['how']}"]
            lines += [] if row["confirmed"] else [f"     {word('not confirmed', lang)}"]
            for step in row["steps"] if steps else ():
                lines.append(f"     {step['rule']}{colon}{step['reason']}")
                lines += [f"       {step['equation']}"] if step["equation"] else []
                lines += [f"       {phrased(phrase('checked: {}', step['checked']), lang)}"] if step["checked"] else []
    return lines

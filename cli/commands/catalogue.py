"""`gradproof list` and `gradproof show`."""

from __future__ import annotations

import click

from gradproof.cli.output.console import emit_json, padded, table_console
from gradproof.cli.output.words import Described, phrased, word
from gradproof.symbolic.catalogue import entries, get
from gradproof.symbolic.catalogue.verdict import verdict_of
from gradproof.symbolic.phrases import phrase


@click.command("list")
@click.option("--topic", metavar="TOPIC", help="Only the entries of one topic, such as attention.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def list_command(ctx: click.Context, topic: str | None, as_json: bool) -> None:
    """List the documented formulas with kind and verdict."""
    found = list(entries(topic))
    if topic and not found:
        topics = sorted({entry.topic for entry in entries()})
        raise click.UsageError(f"there is no topic {topic}; there are {', '.join(topics)}")
    lang = ctx.obj["lang"]
    if as_json:
        emit_json(
            [
                {
                    "id": e.id,
                    "title": Described(e, lang).title,
                    "kind": e.kind,
                    "verdict": verdict_of(e),
                    "source": e.source,
                }
                for e in found
            ]
        )
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("identifier", "title", "kind", "verdict", "source"):
        table.add_column(word(column, lang).lower(), overflow="fold", no_wrap=column == "identifier")
    for entry in found:
        shown = Described(entry, lang)
        table.add_row(entry.id, shown.title, shown.kind, shown.verdict, entry.source)
    table_console().print(table)
    click.echo(phrased(phrase("{} entries; `gradproof show ID` and `gradproof derive ID` tell more", len(found)), lang))


@click.command("show")
@click.argument("identifier", metavar="ID")
@click.pass_context
def show_command(ctx: click.Context, identifier: str) -> None:
    """Show one documented formula: statement, equations, assumptions, source, verdict and note."""
    entry, lang = get(identifier), ctx.obj["lang"]
    described = Described(entry, lang)
    rows = [
        ("identifier", entry.id),
        ("title", described.title),
        ("kind", described.kind),
        ("source", entry.source),
        ("verdict", described.verdict),
        ("document" if entry.right else "statement", described.statement),
    ]
    rows += [("right", described.right)] if entry.right else []
    rows += [("equations", part.strip()) for part in entry.expression.split(";") if part.strip()]
    rows += [("shapes", "  ".join(f"{name}:{shape}" for name, shape in entry.shapes.items()))] if entry.shapes else []
    rows += [("variables", ", ".join(entry.wrt))] if entry.wrt else []
    rows += [("cotangent", entry.cotangent)] if entry.cotangent else []
    rows += [("identity", f"{i.left}  =  {i.right}{_told(i.says, i.expected, lang)}") for i in entry.identities]
    claims = [
        (phrased(phrase("the derivative of {} by {} is {}", c.expression, c.wrt, c.claim), lang), c)
        for c in entry.claims
    ]
    rows += [("claim", f"{what}{_told(c.says, c.expected, lang)}") for what, c in claims]
    moments = [(phrased(phrase("{} of {}", m.kind, m.expression), lang), m) for m in entry.moments]
    rows += [("moment", f"{what}  =  {m.value}{_told(m.says, '', lang)}") for what, m in moments]
    rows += [("evidence", f"gradproof audit {entry.id}")] if entry.evidence else []
    rows += [("experiment", f"gradproof experiment {entry.experiment}")] if entry.experiment else []
    rows += [("assumption", assumption) for assumption in described.assumptions]
    rows += [("note", described.note)] if described.note else []
    last = ""
    for label, text in rows:
        click.echo(f"{padded('' if label == last else word(label, lang).lower(), 14)}{text}")
        last = label


def _told(says: str, expected: str, lang: str) -> str:
    """What an entry says of a statement, and the verdict that it expects on it."""
    parts = [phrased(part, lang) for part in (expected, says) if part]
    return f"   {word('colon', lang).join(parts)}".rstrip()

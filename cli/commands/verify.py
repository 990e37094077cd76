"""`gradproof verify`: the checks of entries and models, with a table of what was compared and how far apart it was."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gradproof.cli.output.console import emit_json
from gradproof.cli.output.words import phrased, word
from gradproof.symbolic.catalogue import Entry, entries, get
from gradproof.symbolic.phrases import joined, phrase

if TYPE_CHECKING:
    from gradproof.numeric.verify import Result

MODELS = ("seq2seq", "transformer", "gpt", "bert")


@click.command("verify")
@click.argument("identifiers", metavar="[ID | MODEL …]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every entry of the catalogue.")
@click.option("--topic", metavar="TOPIC", help="Only the entries of one topic, such as attention.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where torch computes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def verify_command(
    ctx: click.Context, identifiers: tuple[str, ...], everything: bool, topic: str | None, device: str, as_json: bool
) -> int:
    """Verify documented formulas: derivatives against torch, differences and mpmath; identities, claims and evidence.

    MODEL is seq2seq, transformer, gpt or bert: the generated code against torch's own modules with the same weights,
    in logits, loss, every gradient and ten optimiser steps.

    \b
    gradproof verify attention.block_backward
    gradproof verify seq2seq transformer gpt bert
    gradproof verify --all --json
    """
    models = [name for name in dict.fromkeys(identifiers) if name in MODELS]
    rest = [name for name in identifiers if name not in MODELS]
    chosen = [] if models and not (rest or everything or topic) else _chosen(rest, everything, topic)
    from gradproof.numeric.verify import chosen_device

    lang = ctx.obj["lang"]
    used, described = chosen_device(device)
    if device == "auto" and used == "cpu":
        said = "no CUDA device is used: torch runs on the CPU" if "without" not in described else described
        click.echo(phrased(said, lang), err=True)
    results = run(chosen, used, models)
    counts = {status: sum(result.status == status for result in results) for status in ("passed", "failed", "skipped")}
    if as_json:
        emit_json({"device": described, **counts, "results": [result.as_dict() for result in results]})
    else:
        print_table(results, lang)
        told = joined(
            ", ", (phrase("{count} {things}", count=count, things=status) for status, count in counts.items())
        )
        click.echo(f"{phrased(told, lang)}{word('semicolon', lang)}{described}")
    return 1 if counts["failed"] else 0


def _chosen(identifiers: Sequence[str], everything: bool, topic: str | None) -> list[Entry]:
    if sum((bool(identifiers), everything, topic is not None)) != 1:
        raise click.UsageError("name the entries or models to verify, or a --topic, or say --all")
    if identifiers:
        return [get(identifier) for identifier in dict.fromkeys(identifiers)]
    found = list(entries(topic))
    if not found:
        raise click.UsageError(
            f"there is no topic {topic}; there are {', '.join(sorted({e.topic for e in entries()}))}"
        )
    return found


def run(chosen: Sequence[Entry], device: str, models: Sequence[str] = ()) -> list[Result]:
    """Verify the entries, then the models, with a progress bar on standard error where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from gradproof.numeric.verify import verify

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("verify", total=len(chosen) + len(models))
        done = -1

        def before(what: Entry | str) -> None:
            nonlocal done
            done += 1
            progress.update(task, completed=done, description=what if isinstance(what, str) else what.id)

        found = verify(chosen, device, before)
        for kind in models:
            from gradproof.models.torch.equivalence import results

            before(kind)
            found += results(kind, device)
        return found


def print_table(results: Sequence[Result], lang: str = "en") -> None:
    from rich.table import Table

    from gradproof.cli.output.console import table_console

    table = Table(box=None, pad_edge=False)
    for column in ("entry", "status", "compared", "error", "allowed", "time"):
        table.add_column(phrased(column, lang), overflow="fold", no_wrap=column != "compared")
    for result in results:
        error = "" if result.max_rel_error is None else f"{result.max_rel_error:.1e}"
        allowed = "" if result.tolerance is None else f"{result.tolerance:.0e}"
        colour = {"passed": "green", "failed": "red", "skipped": "yellow"}[result.status]
        status = f"[{colour}]{phrased(result.status, lang)}[/{colour}]"
        table.add_row(result.id, status, phrased(result.compared, lang), error, allowed, f"{result.seconds:.1f} s")
    table_console().print(table)
    for result in results:
        for problem in result.problems:
            click.echo(f"{result.id}: {problem}")

"""`gradproof experiment`: what only an experiment can speak to."""

from __future__ import annotations

from pathlib import Path

import click

from gradproof.cli.output.console import right, width_of
from gradproof.cli.output.words import phrased, word
from gradproof.symbolic.phrases import phrase


@click.command("experiment")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("-o", "--output", metavar="FILE", help="Draw the figure into this file (PNG, PDF, SVG).")
@click.pass_context
def experiment_command(ctx: click.Context, name: str | None, output: str | None) -> int:
    """Run an experiment (without a name: list them): the numbers, the checks, and the conclusion that they allow.

    \b
    gradproof experiment double_descent -o descent.png
    """
    from gradproof.models.experiments import EXPERIMENTS, run

    if name is None:
        click.echo("\n".join(EXPERIMENTS))
        return 0
    if output and not Path(output).parent.is_dir():
        raise click.UsageError(f"the folder {Path(output).parent} does not exist")
    from gradproof.symbolic.catalogue.evidence import shown

    lang, found = ctx.obj["lang"], run(name)
    columns = [phrased(column, lang) for column in found.columns]
    cells = [columns, *([f"{value:.4g}" for value in row] for row in found.rows)]
    widths = [max(width_of(row[k]) for row in cells) for k in range(len(columns))]
    table = ["  ".join(right(cell, width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    click.echo("\n".join([phrased(found.title, lang), "", *table, ""]))
    for check in found.checks:
        told = phrased(phrase("{}; expected {}", shown(check.value), shown(check.expected)), lang)
        sign = word("ok" if check.passed else "failed", lang)
        click.echo(f"  {phrased(check.label, lang)}{word('colon', lang)}{told}  {sign}")
    click.echo(f"\n{phrased(found.conclusion, lang)}")
    if output:
        click.echo(f"written: {found.figure(output)}", err=True)
    return 0 if all(check.passed for check in found.checks) else 1

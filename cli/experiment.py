"""`gradproof experiment`: what only an experiment can speak to."""

from __future__ import annotations

import click


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
    found = run(name)
    click.echo(f"{found.title}\n\n{found.table()}\n")
    for check in found.checks:
        click.echo(f"  {check}")
    click.echo(f"\n{found.conclusion}")
    if output:
        click.echo(f"written: {found.figure(output)}", err=True)
    return 0 if all(check.passed for check in found.checks) else 1

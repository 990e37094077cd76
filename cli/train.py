"""`gradproof train MODEL`."""

from __future__ import annotations

import click


@click.group("train")
def train_command() -> None:
    """Train a model with generated code: no autograd, no backward formula written by hand."""


@train_command.command("tiny")
@click.option("--steps", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--optimiser", type=click.Choice(["sgd", "momentum", "adam", "adamw"]), default="sgd", show_default=True)
@click.option("--rate", type=float, default=0.1, show_default=True, help="The learning rate.")
@click.option("--out", metavar="RUN", default=None, help="Folder for loss.csv, loss.png and parameters.json.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def tiny_command(steps: int, optimiser: str, rate: float, out: str | None, quiet: bool) -> int:
    """The model with 24 parameters: compare it with the printed numbers, then train it.

    Exit code 1 if a number of chapter 15.4 is not reproduced to its last digit.
    """
    from gradproof.models.tiny import PRINTED_DIGITS, agrees, evidence, loss_and_weight, train_tiny

    rows = [*evidence(), *loss_and_weight()]
    wrong = [row for row in rows if not agrees(row)]
    for row in wrong:
        click.echo(f"{row.label}: computed {row.computed:.8f}, printed {row.documented}", err=True)
    right = f"{len(rows) - len(wrong)} of {len(rows)}"
    click.echo(f"{right} printed numbers reproduced to their last digit ({PRINTED_DIGITS})")
    run = train_tiny(steps, optimiser, rate, out, progress=not quiet)
    first, last = run.history[0], run.history[-1]
    click.echo(f"{optimiser}, rate {rate}, {steps} steps: loss {first['loss']:.6f} → {last['loss']:.6f}")
    click.echo(f"larger attention weight: {first['largest_weight']:.4f} → {last['largest_weight']:.4f}")
    for file in run.files:
        click.echo(f"written: {file}", err=True)
    return 1 if wrong else 0

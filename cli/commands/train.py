"""`gradproof train MODEL`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gradproof.models.trained.sources import DataSettings
    from gradproof.models.training.trainer import Settings


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
    from gradproof.models.training.tiny import PRINTED_DIGITS, agrees, evidence, loss_and_weight, train_tiny

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


def shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every model that learns from data."""
    options = [
        click.option("--data", required=True, metavar="DATA", help="cmudict, dates, numbers, or a file."),
        click.option("--out", required=True, metavar="RUN", help="Folder for checkpoint and curves."),
        click.option("--resume", is_flag=True, help="Go on from the checkpoint in RUN."),
        click.option("--steps", type=click.IntRange(min=1), default=1000, show_default=True),
        click.option("--batch", type=click.IntRange(min=1), default=64, show_default=True),
        click.option("--optimiser", type=click.Choice(["sgd", "momentum", "adam", "adamw"]), default="adamw"),
        click.option("--rate", type=float, default=2e-3, show_default=True, help="The learning rate."),
        click.option("--schedule", type=click.Choice(["cosine", "warmup", "constant"]), default="cosine"),
        click.option("--warmup", type=click.IntRange(min=0), default=100, show_default=True),
        click.option("--clip", type=float, default=1.0, show_default=True, help="Largest gradient norm; 0: none."),
        click.option("--decay", type=float, default=0.01, show_default=True, help="Weight decay of adamw."),
        click.option("--prior", "l2", type=float, default=0.0, show_default=True, help="λ: adds λ/2·‖θ‖² (MAP)."),
        click.option("--accumulate", type=click.IntRange(min=1), default=1, help="Micro-batches a step."),
        click.option(
            "--every", type=click.IntRange(min=1), default=200, show_default=True, help="Steps between validations."
        ),
        click.option(
            "--shards",
            type=click.IntRange(min=1),
            default=2,
            show_default=True,
            help="Threads a batch is split over (numpy).",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
        click.option("--width", type=click.IntRange(min=1), default=128, show_default=True),
        click.option("--layers", type=click.IntRange(min=1), default=2, show_default=True),
        click.option("--dropout", type=float, default=0.1, show_default=True),
        click.option("--smoothing", type=float, default=0.0, show_default=True, help="Label smoothing."),
        click.option("--count", type=click.IntRange(min=4), default=5000, help="Pairs of a task made by code."),
        click.option(
            "--backend",
            type=click.Choice(["numpy", "torch"]),
            default="numpy",
            show_default=True,
            help="What the generated code is printed for; torch also runs data-parallel under torchrun.",
        ),
        click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Of torch."),
        click.option("--quiet", is_flag=True, help="No progress bar."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def pairs_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--tokens", type=click.Choice(["char", "word", "space"]), default="char", help="Source symbols."),
        click.option("--target-tokens", type=click.Choice(["char", "word", "space"]), default=None),
        click.option("--split", type=click.Choice(["word", "stem"]), default="word", help="How cmudict is split."),
    ):
        command = option(command)
    return command


def text_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--tokens", type=click.Choice(["char", "word", "space"]), default="char"),
        click.option("--bpe", type=click.IntRange(min=0), default=0, help="Byte-pair symbols; 0: none."),
        click.option("--length", type=click.IntRange(min=1), default=64, show_default=True, help="Tokens of a window."),
    ):
        command = option(command)
    return command


def transformer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--heads", type=click.IntRange(min=1), default=4, show_default=True),
        click.option("--inner", type=click.IntRange(min=1), default=None, help="Width of the feed-forward network."),
        click.option("--norm", type=click.Choice(["layernorm", "rmsnorm"]), default="layernorm"),
        click.option("--order", type=click.Choice(["pre", "post"]), default="pre", help="Norm before or after."),
        click.option("--activation", type=click.Choice(["relu", "gelu", "gelu_tanh", "swiglu"]), default="relu"),
        click.option("--positions", type=click.Choice(["sinusoidal", "rope", "none"]), default="sinusoidal"),
        click.option("--tied/--free", default=True, help="Whether the output uses the embedding."),
    ):
        command = option(command)
    return command


@train_command.command("seq2seq")
@shared
@pairs_options
@click.option("--cell", type=click.Choice(["rnn", "gru", "lstm"]), default="gru", show_default=True)
@click.option("--score", type=click.Choice(["none", "dot", "scaled", "additive"]), default="dot", show_default=True)
@click.option("--embedded", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--bidirectional/--one-way", default=True)
@click.option("--feeding", is_flag=True, help="Feed each readout into the next step.")
def seq2seq_command(**options: Any) -> int:
    """A recurrent encoder–decoder with attention, on pairs."""
    return train("seq2seq", options, ("cell", "score", "embedded", "bidirectional", "feeding"))


@train_command.command("transformer")
@shared
@pairs_options
@transformer_options
def transformer_command(**options: Any) -> int:
    """An encoder–decoder Transformer, on pairs."""
    return train("transformer", options, TRANSFORMER)


@train_command.command("gpt")
@shared
@text_options
@transformer_options
def gpt_command(**options: Any) -> int:
    """A decoder-only Transformer: the next token of a text."""
    return train("gpt", options, TRANSFORMER)


@train_command.command("bert")
@shared
@text_options
@transformer_options
def bert_command(**options: Any) -> int:
    """An encoder-only Transformer: masked tokens of a text."""
    return train("bert", options, TRANSFORMER)


TRANSFORMER = ("heads", "inner", "norm", "order", "activation", "positions", "tied")


def train(kind: str, options: dict[str, Any], own: tuple[str, ...]) -> int:
    """Build, train, save; Ctrl-C saves and says how to go on."""
    from gradproof.models.trained.sources import DataSettings
    from gradproof.models.training.trainer import Settings

    options["inner"] = options.get("inner") or 4 * options["width"]
    options["target_tokens"] = options.get("target_tokens") or ""
    if options["backend"] == "torch":
        options["shards"] = 1
    config = {name: options[name] for name in (*own, "width", "layers", "dropout", "smoothing")}
    settings = Settings(**{name: options[name] for name in Settings.__dataclass_fields__})
    data = DataSettings(**{name: options[name] for name in DataSettings.__dataclass_fields__ if name in options})
    with processes(options["backend"], options["device"]) as (rank, device):
        return trained(kind, data, config, settings, options, rank, device)


@contextmanager
def processes(backend: str, wanted: str) -> Iterator[tuple[int, str]]:
    """The number of this process and its device; NumPy has one process, without a device."""
    if backend == "numpy":
        if wanted == "cuda":
            raise click.UsageError("NumPy runs on the CPU; --device cuda needs --backend torch")
        yield 0, ""
        return
    from importlib.util import find_spec

    if not find_spec("torch"):
        raise click.UsageError('--backend torch needs torch: pip install "gradproof[verify]"')
    from gradproof.models.torch.backend import group
    from gradproof.numeric.verify import chosen_device

    device, described = chosen_device(wanted)
    with group(device) as (rank, own):
        if rank == 0:
            click.echo(f"torch on {described}", err=True)
        yield rank, own


def trained(
    kind: str,
    data: DataSettings,
    config: dict[str, Any],
    settings: Settings,
    options: dict[str, Any],
    rank: int,
    device: str,
) -> int:
    """The run itself; of several processes the first one validates, writes and speaks."""
    from gradproof.models.trained.start import new_run

    out = Path(options["out"])
    run, trainer = new_run(kind, data, config, settings, out)
    if options["resume"]:
        trainer.resume()
    elif (out / "checkpoint.safetensors").exists():
        raise click.UsageError(f"{out} holds a run already: add --resume to go on with it, or choose another folder")
    if device:
        from gradproof.models.torch.backend import TorchModel

        trainer.model = TorchModel(run.model, device)
    if rank > 0:
        trainer.out = trainer.validate = None
        trainer.run()
        return 0
    click.echo(f"{kind}: {run.model.parameters.vector.size:,} parameters, data {data.data}", err=True)
    trainer.run(progress=not options["quiet"])
    if trainer.state.step < settings.steps:
        click.echo(f"interrupted at step {trainer.state.step}, saved; the same command with --resume goes on", err=True)
        return 130
    last = trainer.state.history[-1] if trainer.state.history else {}
    click.echo("  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in last.items()))
    click.echo(f"written: {out}", err=True)
    return 0

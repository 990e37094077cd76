"""The command's frame: which command lives in which module, and how errors reach the user.

Commands are imported when they are called, so that `gradproof --help` answers at once.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from typing import Any

import click

OURS = 70  # the exit code of a fault of gradproof's own: none that a verdict has
FAULT = "This is a fault of gradproof, not of your input. Please report it with the command that you ran"

# name → (module, one line of help)
COMMANDS = {
    "list": ("commands.catalogue", "List the documented formulas."),
    "show": ("commands.catalogue", "Show one documented formula: statement, assumptions, source, verdict."),
    "derive": ("commands.derive", "Derive a documented formula or your own expression."),
    "check": ("commands.check", "Check a formula that you wrote."),
    "audit": ("commands.audit", "Report on all documented claims: verdicts and evidence."),
    "verify": ("commands.verify", "Compare derived formulas with torch autograd and other independent sources."),
    "variance": ("commands.moments", "The variance of an expression of random arrays."),
    "expectation": ("commands.moments", "The expectation of an expression of random arrays."),
    "count": ("commands.count", "Count parameters and operations."),
    "export": ("commands.export", "Write formulas as LaTeX, PDF, Markdown, HTML or a notebook."),
    "experiment": ("commands.experiment", "Run an experiment: a table, a figure, a conclusion."),
    "code": ("commands.code", "Write the code of a formula or a model to a file that stands alone."),
    "train": ("commands.train", "Train a model with generated code."),
    "decode": ("commands.decode", "Translate or continue a text with a trained run."),
    "evaluate": ("commands.decode", "Perplexity, error rates and BLEU of a trained run."),
    "bench": ("bench.command", "Measure derivations, side by side with peers."),
    "demo": ("commands.demo", "A tour: derive, check, export, train."),
}


class Lazy(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gradproof.cli.{COMMANDS[cmd_name][0]}")
        return getattr(module, f"{cmd_name}_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command {args[0]}{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--catalogue", "notes", metavar="FILE.py", help="Add the entries of your own notes (runs that file).")
@click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    default="en",
    help="Language of what is said: titles, reasons, evidence, reports.",
)
@click.option("--traceback", is_flag=True, expose_value=False, help="Show where a fault of gradproof's own happens.")
@click.version_option(package_name="gradproof")
@click.pass_context
def group(ctx: click.Context, notes: str | None, lang: str) -> None:
    """Derive the mathematics of deep learning: steps, LaTeX, code and checks.

    A formula is an identifier of the catalogue (`gradproof list`) or your own expression, followed by its arrays:

        gradproof derive "sum((X @ W - Y)**2)" X:n,d W:d,k Y:n,k --wrt W
    """
    ctx.obj = {"lang": lang, "notes": notes}
    if notes:
        from gradproof.cli.commands.notes import load

        load(notes)


def main() -> None:
    """Run the command: exit 0 done, 1 a check failed, 2 used wrongly, 3 could not decide, 70 a fault of ours."""
    sys.exit(run(sys.argv[1:]))


def _protected(argument: str) -> str:
    """An expression that starts with a minus sign is no option: a space in front tells them apart."""
    is_option = re.fullmatch(r"-[a-zA-Z]|--[a-z][a-z-]*(=.*)?", argument, re.DOTALL)
    return f" {argument}" if argument.startswith("-") and not is_option else argument


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors of the input are one message on stderr.

    `--traceback` may stand anywhere in it.
    """
    shown = "--traceback" in arguments
    arguments = [argument for argument in arguments if argument != "--traceback"]
    try:
        result: Any = group.main(
            args=[_protected(argument) for argument in arguments], prog_name="gradproof", standalone_mode=False
        )
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (RecursionError, MemoryError):
        click.echo("gradproof: the expression is too large; name intermediates: S = …; …", err=True)
        return 2
    except OSError as error:
        click.echo(f"gradproof: {error.filename or ''} {error.strerror or error}".replace("  ", " "), err=True)
        return 2
    except Exception as error:
        from gradproof.symbolic.errors import Defect, GradproofError

        if isinstance(error, GradproofError) and not isinstance(error, Defect):
            click.echo(f"gradproof: {error}", err=True)
            return 2
        if shown:
            traceback.print_exc()
        hint = "" if shown else "; --traceback shows where it happens"
        click.echo(f"gradproof: {type(error).__name__}: {error}\n{FAULT}{hint}", err=True)
        return OURS

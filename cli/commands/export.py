"""`gradproof export`: formulas as a document: LaTeX, PDF, Markdown, HTML, a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from gradproof.cli.output.console import write
from gradproof.symbolic.catalogue import Entry, entries, get
from gradproof.symbolic.catalogue.verdict import REFUTED, verdict_of

FORMATS = ("latex", "markdown", "html", "ipynb", "pdf")
SUFFIXES = {".tex": "latex", ".md": "markdown", ".html": "html", ".htm": "html", ".ipynb": "ipynb", ".pdf": "pdf"}


@click.command("export")
@click.argument("identifiers", metavar="[ID …]", nargs=-1)
@click.option(
    "--all", "everything", is_flag=True, help="The whole catalogue as a book, with contents, index and audit."
)
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Default: by the ending of the file's name.")
@click.option("--steps/--no-steps", default=True, help="Every step of a derivation and how it was checked.")
@click.option("--evidence/--no-evidence", default=True, help="Compute and show the numbers behind a verdict.")
@click.option("-o", "--output", metavar="PATH", required=True, help="The file to write.")
@click.pass_context
def export_command(
    ctx: click.Context,
    identifiers: tuple[str, ...],
    everything: bool,
    format_: str | None,
    steps: bool,
    evidence: bool,
    output: str,
) -> int:
    """Write formulas as a document; exit 1 if one of your own notes is refuted.

    \b
    gradproof export softmax.jacobian attention.block_backward -o notes.pdf
    gradproof export --all --format html -o book.html
    gradproof --lang zh export --all --no-steps -o book.pdf
    """
    if everything == bool(identifiers):
        raise click.UsageError("name the formulas, or all of them with --all")
    kind = format_ or SUFFIXES.get(Path(output).suffix.lower())
    if kind is None:
        raise click.UsageError(f"the ending of {output} tells no format; choose one: --format {'|'.join(FORMATS)}")
    if not Path(output).parent.is_dir():
        raise click.UsageError(f"the folder {Path(output).parent} does not exist")
    chosen = list(entries()) if everything else [get(identifier) for identifier in dict.fromkeys(identifiers)]
    lang, notes = ctx.obj["lang"], ctx.obj.get("notes")
    write(Path(output), document(chosen, kind, lang, steps, evidence, notes))
    click.echo(f"written: {output}", err=True)
    refuted = [entry.id for entry in chosen if verdict_of(entry) == REFUTED]
    if refuted:
        click.echo(f"refuted: {', '.join(refuted)}", err=True)
    return 1 if refuted else 0


def document(
    chosen: Sequence[Entry],
    kind: str,
    lang: str = "en",
    steps: bool = True,
    evidence: bool = True,
    notes: str | None = None,
) -> str | bytes:
    """The document in the format `kind`."""
    if kind == "ipynb":
        from gradproof.cli.book.notebook import notebook

        return notebook(chosen, lang, notes, evidence)
    from gradproof.cli.book import latex as book_latex
    from gradproof.cli.book import pages as book
    from gradproof.cli.book import web as book_web

    if kind == "pdf":
        book_latex.engine(lang)  # without a TeX it is said before the work, not after
    with progress(len(chosen)) as advance:
        found = book.pages(chosen, lang, steps, evidence, advance)
    if kind == "markdown":
        return book_web.markdown(found)
    if kind == "html":
        return book_web.html(found)
    source = book_latex.book(found)
    return book_latex.pdf(source, lang) if kind == "pdf" else source


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr while the pages are computed; nothing where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True, disable=total < 2 or not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)

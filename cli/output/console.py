"""Where results go: to standard output, or to a file that appears whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import click


def emit(text: str, path: str | None) -> None:
    """Print a result, or write it to a file by way of a temporary one."""
    if path is None:
        click.echo(text)
        return
    write(Path(path), text if text.endswith("\n") else text + "\n")
    click.echo(f"written: {path}", err=True)


def write(path: Path, content: str | bytes) -> None:
    """Write a file so that it is never half there."""
    if not path.parent.is_dir():
        raise click.UsageError(f"the folder {path.parent} does not exist")
    if path.is_dir():
        raise click.UsageError(f"{path} is a folder; name the file to write")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def padded(text: str, width: int) -> str:
    """The text and spaces, as wide as `width` columns of a terminal: marks take no column, Chinese signs two.

    >>> padded("x̂̄", 4) + "|", padded("判定", 6) + "|"
    ('x̂̄   |', '判定  |')
    """
    return text + " " * (width - width_of(text))


def right(text: str, width: int) -> str:
    """The text at the right end of so many columns."""
    return " " * (width - width_of(text)) + text


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def table_console() -> Any:
    """A console for tables: as wide as the terminal, or one line a row where the output is piped or a file."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=1000)


def emit_json(document: Any, path: str | None = None) -> None:
    emit(json.dumps(document, ensure_ascii=False, indent=2), path)


def typed_lines(text: str) -> list[str]:
    """A program, a line a statement; long ones are wrapped.

    >>> typed_lines("A = softmax(S); A @ V")
    ['A = softmax(S);', 'A @ V']
    """
    pieces = [f"{piece.strip()};" for piece in text.split(";")]
    pieces[-1] = pieces[-1].rstrip(";")
    return [line for piece in pieces for line in textwrap.wrap(piece, 86, subsequent_indent="    ")]

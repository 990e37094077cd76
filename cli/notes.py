"""`--catalogue FILE.py`: the entries of a user's own notes."""

from __future__ import annotations

import runpy
import traceback
from pathlib import Path

import click

from gradproof.symbolic.catalogue import entries
from gradproof.symbolic.errors import GradproofError


def load(path: str) -> list[str]:
    """Run a file that adds entries; returns their identifiers.

    Raises GradproofError that names the line where the file fails, and the entry that is wrong.
    """
    if not Path(path).is_file():
        raise click.UsageError(f"there is no file {path}")
    before = {entry.id for entry in entries()}
    try:
        runpy.run_path(path, run_name="gradproof_notes")
    except GradproofError as error:
        raise GradproofError(f"{path}, line {_line(error, path)}: {error}") from None
    except SyntaxError as error:
        raise GradproofError(f"{path}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        raise GradproofError(f"{path}, line {_line(error, path)}: {type(error).__name__}: {error}") from None
    added = [entry.id for entry in entries() if entry.id not in before]
    if not added:
        raise GradproofError(f"{path} adds no entry; see `add(Entry(…))` in gradproof.symbolic.catalogue")
    return added


def _line(error: BaseException, path: str) -> int | str:
    """The last line of that file that was running."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines and lines[-1] is not None else "?"

"""`--catalogue FILE.py`: the entries of a user's own notes."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from gradproof.symbolic.catalogue import entries
from gradproof.symbolic.errors import GradproofError


class Notes(ModuleType):
    """The module that a file of notes is."""


def load(path: str) -> list[str]:
    """Run a file that adds entries; returns their identifiers.

    Raises GradproofError that names the line where the file fails, and the entry that is wrong.
    """
    if not Path(path).is_file():
        raise click.UsageError(f"there is no file {path}")
    before = {entry.id for entry in entries()}
    try:
        found = runpy.run_path(path, run_name="gradproof_notes")
    except GradproofError as error:
        raise GradproofError(f"{path}, line {_line(error, path)}: {error}") from None
    except SyntaxError as error:
        raise GradproofError(f"{path}, line {error.lineno}: {error.msg}") from None
    except SystemExit:
        raise GradproofError(f"{path} ends the program (sys.exit) instead of adding entries") from None
    except Exception as error:
        raise GradproofError(f"{path}, line {_line(error, path)}: {type(error).__name__}: {error}") from None
    added = [entry.id for entry in entries() if entry.id not in before]
    if not added:
        raise GradproofError(f"{path} adds no entry; see `add(Entry(…))` in gradproof.symbolic.catalogue")
    _importable(path, found)
    return added


def _importable(path: str, found: dict[str, Any]) -> None:
    """Let `evidence="my_notes:function"` find the functions of the file my_notes.py, wherever it lies.

    A file that is named like another module, such as json.py, does not take its place.
    """
    name = Path(path).stem
    if not name.isidentifier():
        return
    known = sys.modules.get(name)
    spec = importlib.util.find_spec(name) if known is None else None
    if isinstance(known, Notes) or (known is None and (spec is None or spec.origin == str(Path(path).resolve()))):
        sys.modules[name] = Notes(name)
        vars(sys.modules[name]).update(found)


def _line(error: BaseException, path: str) -> int | str:
    """The last line of that file that was running."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines and lines[-1] is not None else "?"

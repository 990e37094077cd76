"""What several commands read from the command line: a formula by identifier or as text, and its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from gradproof.symbolic.catalogue import Entry, get, known
from gradproof.symbolic.language.syntax import Declaration, Program, parse, parse_declaration


@dataclass(frozen=True)
class Formula:
    """A catalogue entry, or a program with its declarations."""

    entry: Entry | None
    program: Program | None
    declarations: tuple[Declaration, ...]


def formula(text: str, declarations: Sequence[str], syntax: str = "numpy") -> Formula:
    """Read ID or EXPR NAME:SIZES …; an identifier takes no declarations."""
    text = text.strip()
    if known(text):
        if declarations:
            raise click.UsageError(f"{text} is documented with its arrays; it takes no NAME:SIZES")
        return Formula(get(text), None, ())
    if not declarations and _looks_like_identifier(text):
        get(text)  # raises with the nearest identifiers
    declared = tuple(parse_declaration(declaration) for declaration in declarations)
    if syntax == "matlab":
        from gradproof.symbolic.language.matlab.parser import parse_matlab

        return Formula(None, parse_matlab(text, declared), declared)
    return Formula(None, parse(text), declared)


def numpy_text(text: str, declarations: Sequence[Declaration], syntax: str) -> str:
    """A formula in NumPy's spelling, which is read wherever a formula is given as text."""
    if syntax == "numpy":
        return text
    import ast

    from gradproof.symbolic.language.matlab.parser import parse_matlab

    return ast.unparse(parse_matlab(text, declarations).statements[-1].value)


def _looks_like_identifier(text: str) -> bool:
    parts = text.split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts) and parts[-1] != "T"


def variables(wrt: Sequence[str]) -> list[str] | None:
    """The names of `--wrt A,B --wrt C`; None if none is given."""
    names = [name.strip() for item in wrt for name in item.split(",") if name.strip()]
    return names or None


syntax_option = click.option(
    "--syntax", type=click.Choice(["numpy", "matlab"]), default="numpy", help="How the expression is spelled."
)
dtype_option = click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "float16", "bfloat16"]),
    default="float64",
    help="Type of the entries whose bytes are counted.",
)
wrt_option = click.option("--wrt", multiple=True, metavar="A,B", help="Variables to differentiate by; may be repeated.")
output_option = click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")

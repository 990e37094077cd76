"""What stands around the lines of a generated function: imports, helpers, the header, sizes, the returned value."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sympy import Symbol

from gradproof.numeric.arguments import Arguments
from gradproof.numeric.lowering.nodes import identifier
from gradproof.numeric.lowering.statements import Target
from gradproof.numeric.printers.number_printer import POSTFIX

if TYPE_CHECKING:
    from gradproof.numeric.printers.numpy_printer import NumpyPrinter

LINE = 100


def read_sizes(printer: NumpyPrinter, arguments: Arguments, used: Sequence[Symbol]) -> list[tuple[Target, str]]:
    """The lines that read sizes off the arrays."""
    found: list[tuple[Target, str]] = []
    for array in arguments.arrays:
        name = identifier(array.name)
        mine = {r.axis: r.size for r in arguments.readings.values() if r.array == array.name and r.size in used}
        plain = {axis: size for axis, size in mine.items() if array.shape[axis] == size}
        if array.rank == 1 and plain:
            found.append((Target(plain[0].name), f"len({name})"))
        elif len(plain) == 1:
            ((axis, size),) = plain.items()
            found.append((Target(size.name), f"{name}.shape[{axis}]"))
        elif plain:
            names = [plain[axis].name if axis in plain else "_" for axis in range(array.rank)]
            found.append((Target(", ".join(names)), f"{name}.shape"))
    for reading in arguments.readings.values():
        if reading.size in used and (reading.slope != 1 or reading.rest != 0):
            text = f"{identifier(reading.array)}.shape[{reading.axis}]"
            text += "".join(f" {'-' if sign else '+'} {part}" for sign, part in printer.size_terms(-reading.rest))
            if reading.slope != 1:
                text = text if reading.rest == 0 else f"({text})"
                text += f" // {printer.bracketed(reading.slope, POSTFIX)}"
            found.append((Target(reading.size.name), text))
    return found


def namespace(printer: NumpyPrinter) -> dict[str, Any]:
    """What the lines of a function may call."""
    found: dict[str, Any] = {}
    exec("\n".join([*printer.imports.values(), *printer.helpers.values()]), found)
    return found


def header(name: str, arguments: Sequence[str]) -> str:
    """The `def` line, broken where it is too long."""
    line = f"def {name}({', '.join(arguments)}):"
    if len(line) <= LINE:
        return line
    rows = textwrap.wrap(", ".join(arguments) + ",", LINE - 4)
    return "\n".join([f"def {name}(", *(f"    {row}" for row in rows), "):"])


def documented(what: str, shapes: Sequence[str]) -> str:
    """A docstring: what is computed, and the shapes of the arguments."""
    lines = ['"""' + what, "", *textwrap.wrap(",  ".join(shapes), LINE - 4), '"""']
    first = textwrap.wrap(lines[0], LINE - 4)
    return "\n".join(f"    {line}".rstrip() for line in (*first, *lines[1:]))


def returned(line: str) -> list[str]:
    """The `return` line, with one entry of the dictionary a line where it is too long."""
    before, brace, inside = line.partition("{")
    if len(line) <= LINE or not brace:
        return [line]
    entries = inside.rstrip("}").split(", ")
    return [f"{before}{{", *(f"        {entry}," for entry in entries), "    }"]


def complete(printer: NumpyPrinter, head: str, docstring: str, body: str) -> str:
    """A file that stands alone."""
    *lines, last = body.rstrip("\n").split("\n")
    function = "\n".join([head, docstring, *lines, *returned(last)]) + "\n"
    if printer.decorated():
        function = f"{printer.decorator}\n{function}"
    helpers = chosen(printer.helpers, body)
    whole = "\n\n".join([*helpers, function])
    imports = chosen(printer.imports, whole)
    return "\n".join(imports) + ("\n\n\n" if imports else "") + whole


def chosen(table: Mapping[str, str], text: str) -> list[str]:
    """The entries whose mark occurs in a text as a word."""
    return [entry for mark, entry in table.items() if re.search(rf"(?<![\w.]){re.escape(mark)}", text)]


def guarded(printer: NumpyPrinter, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it runs here, with the decorator that its source shows."""
    return printer.decorate(function) if printer.decorated() else function

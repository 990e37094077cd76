"""What stands around the lines of a generated function: imports, helpers, the header, the returned value."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradproof.numeric.emitters.expressions import Emitter
from gradproof.numeric.lowering.nodes import identifier

LINE = 100


def namespace(emitter: Emitter) -> dict[str, Any]:
    """What the lines of a function may call."""
    found: dict[str, Any] = {}
    exec("\n".join([*emitter.imports.values(), *emitter.helpers.values()]), found)
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


@dataclass(frozen=True)
class Result:
    """What a function returns: a dictionary of outputs, or a value and a dictionary of gradients by their variables."""

    names: tuple[str, ...]
    variables: tuple[str, ...] | None

    @property
    def entries(self) -> list[str]:
        """What stands in the dictionary."""
        keys, values = (self.names, self.names) if self.variables is None else (self.variables, self.names[1:])
        return [f'"{key}": {identifier(value)}' for key, value in zip(keys, values, strict=True)]

    @property
    def before(self) -> str:
        return "" if self.variables is None else f"{identifier(self.names[0])}, "

    def __str__(self) -> str:
        return f"{self.before}{{{', '.join(self.entries)}}}"

    def lines(self) -> list[str]:
        """The `return` line, with one entry of the dictionary a line where it is too long."""
        line = f"    return {self}"
        if len(line) <= LINE:
            return [line]
        return [f"    return {self.before}{{", *(f"        {entry}," for entry in self.entries), "    }"]


@dataclass(frozen=True)
class Source:
    """A file that stands alone: a function, and what it needs."""

    imports: tuple[str, ...]
    helpers: tuple[str, ...]
    function: str

    def __str__(self) -> str:
        imports = "\n".join(self.imports)
        return imports + ("\n\n\n" if imports else "") + "\n\n".join([*self.helpers, self.function])


def complete(emitter: Emitter, head: str, decorator: str, docstring: str, body: Sequence[str]) -> Source:
    """The imports and helpers of a function follow from what the emitter has spelled."""
    function = "\n".join([*([decorator] if decorator else []), head, docstring, *body]) + "\n"
    helpers = called(emitter.helpers, emitter.forms)
    imports = called(emitter.imports, [*emitter.forms, *helpers, decorator])
    return Source(tuple(imports), tuple(helpers), function)


def called(table: Mapping[str, str], forms: Iterable[str]) -> list[str]:
    """The entries whose mark stands in a form as a word."""
    text = "\n".join(forms)
    return [entry for mark, entry in table.items() if re.search(rf"(?<![\w.]){re.escape(mark)}", text)]

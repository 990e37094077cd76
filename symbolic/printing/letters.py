"""Readable index letters: i, j, k … for the canonical ones, the same letter for the same size wherever possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from sympy import Expr

from gradproof.symbolic.equations.expr import Index, Size
from gradproof.symbolic.equations.system import System

POOL = "ijklmpqrsuvwabcght"  # d would read as a differential, e as Euler's number, n and o as a size and a zero
OWN = "TBHVLPKMC"  # a size of one of these names has its small letter: t runs to T
NONE_WRITTEN: Mapping[Index, str] = MappingProxyType({})


class Letters:
    """Which letters the axes of each size get; `given` maps a size's name, or a letter such as o0, to letters.

    Letters that the user wrote come first: those of an array for its axes, and for other axes of the same size.

    >>> n, m = Size("n"), Size("m")
    >>> from gradproof.symbolic.equations.system import Array
    >>> letters = Letters(System({"S": Array("S", (n, m))}, (), ()))
    >>> letters.pick(n, []), letters.pick(m, []), letters.pick(m, ["j"])
    (i, j, k)
    >>> Letters(System({"S": Array("S", (n, m))}, (), ()), {"n": "ab"}).pick(n, ["a"])
    b
    """

    def __init__(self, system: System, given: Mapping[Any, str] | None = None) -> None:
        self.given = {str(key): str(value) for key, value in (given or {}).items()}
        self.taken = system.taken
        self.written: dict[str, list[str]] = {}  # by the user, for the axes of each size
        for size, letter in system.written:
            self.written.setdefault(size_key(size), []).append(letter)
        self.first = {key: letters[0] for key, letters in self.written.items() if key not in self.given}
        for size in system.lengths:
            self._family(size)

    def _family(self, size: Expr) -> str:
        """The first letter of a size."""
        key = size_key(size)
        if key not in self.first:
            used = set(self.first.values()) | set("".join(self.given.values()))
            own = [self.given[key]] if key in self.given else [key.lower()] if key in OWN else []
            free = [letters[0] for letters in (*own, *POOL) if letters[0] not in used and letters[0] not in self.taken]
            self.first[key] = own[0][0] if key in self.given else next(iter(free), "")
        return self.first[key]

    def pick(self, size: Expr, used: Iterable[str]) -> Index:
        """A letter for an axis of the given size that is not among the `used` ones."""
        used = set(used)
        first = self._family(size)
        others = set(self.first.values())
        given = self.given.get(size_key(size), "")
        own = [*given, first, *self.written.get(size_key(size), ())]
        choices = [*own, *(c for c in POOL if c not in others), *POOL, *(f"i{k}" for k in range(1, 100))]
        free = (c for c in choices if c and c not in used and (c in own or c not in self.taken))
        return Index(next(free))

    def outs(
        self, letters: Iterable[tuple[Index, Expr]], written: Mapping[Index, str] = NONE_WRITTEN
    ) -> dict[Index, Index]:
        """Letters for the left side of an equation: those given, those `written` for its array, or others."""
        found: dict[Index, Index] = {}
        for letter, size in letters:
            used = [other.name for other in found.values()]
            own = self.given.get(letter.name, "")
            if not own and size_key(size) not in self.given and written.get(letter, "") not in used:
                own = written.get(letter, "")
            found[letter] = Index(own) if own else self.pick(size, used)
        return found


def size_key(size: Expr) -> str:
    """Sizes n and n+1 share their letters.

    >>> size_key(Size("T") + 1)
    'T'
    """
    named = sorted(symbol.name for symbol in size.free_symbols if isinstance(symbol, Size))
    return named[0] if named else str(size)


def chosen(system: System, letters: Letters | Mapping[Any, str] | None) -> Letters:
    """The letters to print with: those given, or those of the system with some of them fixed by a mapping."""
    return letters if isinstance(letters, Letters) else Letters(system, letters)

"""The errors of gradproof: every one says what was wrong, and points at the place in the input where it knows it."""

from __future__ import annotations

WIDTH = 70  # characters of the input line that an error shows


class GradproofError(ValueError):
    """Anything that gradproof refuses: the base of all its errors."""


class Defect(GradproofError):
    """A fault of gradproof, never of the input."""


class ExpressionError(GradproofError):
    """An input that cannot be used, with the place in it: characters `position` to `end` of `text`.

    >>> print(ExpressionError("a factor is missing after *", "sum(x *)", 6))
    a factor is missing after *
      sum(x *)
            ^
    """

    def __init__(self, message: str, text: str = "", position: int | None = None, end: int | None = None) -> None:
        super().__init__(message, text, position, end)  # all four, so that the error can be pickled
        self.message = message
        self.text = text
        self.position = position
        self.end = end

    def __str__(self) -> str:
        if self.position is None or not self.text:
            return self.message
        return f"{self.message}\n{pointed(self.text, self.position, self.end)}"


class UnknownNameError(ExpressionError):
    """A name that is neither declared nor defined, or a function that does not exist."""


class ShapeError(ExpressionError):
    """Shapes that do not fit together, or an index outside its range."""


class RuleError(ExpressionError):
    """An operation for which there is no rule."""


class NoExpectation(RuleError):
    """A random value that has no expectation: E|x| is infinite, or x is undefined with a positive probability."""


def pointed(text: str, position: int, end: int | None = None) -> str:
    """The line of `text` around `position`, cut to a window where it is long, over a line of carets.

    >>> print(pointed("a + b * c", 4))
      a + b * c
          ^
    """
    position = min(max(position, 0), len(text))
    line_start = max(text.rfind(mark, 0, position) for mark in "\n\r") + 1
    line_end = min((place for mark in "\n\r" if (place := text.find(mark, position)) >= 0), default=len(text))
    start, stop = line_start, line_end
    if stop - start > WIDTH:
        start = min(max(position - WIDTH // 2, line_start), line_end - WIDTH)
        stop = start + WIDTH
    before = "…" if start > line_start else ""
    after = "…" if stop < line_end else ""
    length = max(min(end if end is not None else position + 1, stop) - position, 1)
    return f"  {before}{_shown(text[start:stop])}{after}\n  {' ' * (len(before) + position - start)}{'^' * length}"


def _shown(text: str) -> str:
    """One printed column a character: what a terminal would not print as one is replaced."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)

"""Sentences that remember what they were made of, so that another language can say them again from the same parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Phrase(str):
    """An English sentence with the `template` and the values it was made of; anywhere else it is that text.

    A value that is a string may be a phrase in its turn.
    """

    template: str
    values: tuple[object, ...]
    named: Mapping[str, object]

    def __new__(
        cls, template: str, values: tuple[object, ...] = (), named: Mapping[str, object] | None = None
    ) -> Phrase:
        made = super().__new__(cls, template.format(*values, **(named or {})))
        made.template, made.values, made.named = template, values, named or {}
        return made

    def __getnewargs__(self) -> tuple[str, tuple[object, ...], Mapping[str, object]]:  # type: ignore[override]
        return self.template, self.values, self.named


class Joined(Phrase):
    """Texts one after the other; `template` is what stands between them, `values` are the texts."""

    def __new__(
        cls, template: str, values: tuple[object, ...] = (), named: Mapping[str, object] | None = None
    ) -> Joined:
        made = str.__new__(cls, template.join(map(str, values)))
        made.template, made.values, made.named = template, values, {}
        return made


def phrase(template: str, *values: object, **named: object) -> Phrase:
    """The template with its places filled.

    >>> said = phrase("the derivative of {} by {} is {}", "x²", "x", "2x")
    >>> said, said.values
    ('the derivative of x² by x is 2x', ('x²', 'x', '2x'))
    """
    return Phrase(template, values, named)


def joined(separator: str, parts: Iterable[str]) -> str:
    """The parts that are not empty, one after the other; one alone stays what it is.

    >>> joined("; ", ["proved", "", phrase("{} more", 2)])
    'proved; 2 more'
    """
    found = tuple(part for part in parts if part)
    return found[0] if len(found) == 1 else Joined(separator, found)


def put(text: str, old: object, new: object) -> str:
    """The same sentence with another value in the place of one; a plain string stays as it is.

    >>> put(phrase("{} is wrong", "your formula"), "your formula", "the claim")
    'the claim is wrong'
    """
    if not isinstance(text, Phrase):
        return text
    values = (
        new if value == old else put(value, old, new) if isinstance(value, str) else value for value in text.values
    )
    return type(text)(text.template, tuple(values), text.named)

"""Small tasks made by code, for demonstrations and tests: nothing to download, and a model learns them in a minute."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np

from gradproof.models.data.pairs import Pair
from gradproof.models.errors import DataError

# fmt: off
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]
_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
# Not taken from the calendar module: its names follow the user's locale.
_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
# fmt: on


def number_words(number: int) -> str:
    """A whole number below a million in English words.

    >>> number_words(12005), number_words(700), number_words(19)
    ('twelve thousand and five', 'seven hundred', 'nineteen')
    """
    if not 0 <= number < 1_000_000:
        raise DataError(f"number words are made for 0 to 999999; got {number}")
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (" " + _ONES[number % 10] if number % 10 else "")
    unit, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    head, rest = divmod(number, unit)
    words = f"{number_words(head)} {name}"
    if not rest:
        return words
    return f"{words} and {number_words(rest)}" if rest < 100 else f"{words} {number_words(rest)}"


def _ordinal(day: int) -> str:
    ending = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


# Forms such as 3/4/1998, which one half of the readers takes for March and the other for April, are left out.
_FORMS: tuple[Callable[[datetime.date], str], ...] = (
    lambda d: f"{d.day} {_MONTHS[d.month - 1]} {d.year}",
    lambda d: f"{_MONTHS[d.month - 1]} {d.day}, {d.year}",
    lambda d: f"{_DAYS[d.weekday()][:3]} {d.day} {_MONTHS[d.month - 1][:3]} {d.year}",
    lambda d: f"the {_ordinal(d.day)} of {_MONTHS[d.month - 1]}, {d.year}",
    lambda d: f"{d.day}. {d.month}. {d.year}",
    lambda d: f"{d.year}/{d.month}/{d.day}",
)


def date_forms(date: datetime.date) -> list[str]:
    """All the ways in which the task writes a date.

    >>> date_forms(datetime.date(1998, 3, 3))[:4]
    ['3 march 1998', 'march 3, 1998', 'tue 3 mar 1998', 'the 3rd of march, 1998']
    """
    return [form(date) for form in _FORMS]


def _dates(count: int, rng: np.random.Generator) -> list[Pair]:
    first = datetime.date(1900, 1, 1).toordinal()
    days = datetime.date(2099, 12, 31).toordinal() - first + 1
    _room(count, days, "dates")
    chosen = rng.choice(days, size=count, replace=False)
    dates = [datetime.date.fromordinal(first + int(day)) for day in chosen]
    forms = rng.integers(len(_FORMS), size=count)
    return [Pair(_FORMS[form](date), (date.isoformat(),)) for date, form in zip(dates, forms, strict=True)]


def _numbers(count: int, rng: np.random.Generator) -> list[Pair]:
    _room(count, 1_000_000, "numbers")
    chosen = rng.choice(1_000_000, size=count, replace=False)
    return [Pair(number_words(int(number)), (str(number),)) for number in chosen]


def _room(count: int, available: int, name: str) -> None:
    if not 1 <= count <= available:
        raise DataError(f"the task {name!r} has {available} different pairs; {count} were asked for")


TASKS: dict[str, Callable[[int, np.random.Generator], list[Pair]]] = {"dates": _dates, "numbers": _numbers}


def task_pairs(name: str, count: int, seed: int = 0) -> list[Pair]:
    """`count` different pairs of the task `dates` (dates in several forms → ISO) or `numbers` (words → digits).

    No date and no number occurs twice, so a split never shows the model a test answer in training.

    >>> [(pair.source, pair.target) for pair in task_pairs("numbers", 2)] == [
    ...     (pair.source, pair.target) for pair in task_pairs("numbers", 2)]
    True
    """
    if name not in TASKS:
        raise DataError(f"unknown task {name!r}; known: {', '.join(TASKS)}")
    return TASKS[name](count, np.random.default_rng(seed))

"""Chinese for what the catalogue and the checks say in English: tables with one row a text, the English beside it.

A row may have places `{}` for what is computed: numbers, formulas, names. Formulas are the same in both languages, and
a text that no row knows, such as a sentence of a user's own notes, stays as it is written.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from gradproof.cli.chinese.checks import CHECKS
from gradproof.cli.chinese.experiments import EXPERIMENTS
from gradproof.cli.chinese.facts import FACTS
from gradproof.cli.chinese.numbers import NUMBERS
from gradproof.cli.chinese.reports import REPORTS
from gradproof.cli.chinese.statements import STATEMENTS
from gradproof.symbolic.folding.rules import REASONS


def _rules() -> dict[str, str]:
    """Why each rule of a derivation or proof may be used, with its named places in the order of the English."""
    found = {}
    for words in REASONS.values():
        names = re.findall(r"\{(\w+)\}", words["en"])
        chinese = re.sub(r"\{(\w+)\}", lambda place: f"{{{names.index(place[1])}}}", words["zh"])  # noqa: B023
        found[re.sub(r"\{\w+\}", "{}", words["en"])] = chinese
    return found


TEXTS = {**CHECKS, **EXPERIMENTS, **FACTS, **NUMBERS, **REPORTS, **STATEMENTS, **_rules()}


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """The rows with places, those with most words of their own first."""
    rows = sorted((key for key in TEXTS if "{}" in key), key=lambda key: -len(key.replace("{}", "")))
    return [(re.compile("(.+?)".join(map(re.escape, key.split("{}"))), re.DOTALL), TEXTS[key]) for key in rows]


def chinese(text: str) -> str:
    """The text in Chinese.

    >>> chinese("the mean is 0"), chinese("first row; second row"), chinese("W̄ = XᵀG")
    ('均值为 0', '第一行；第二行', 'W̄ = XᵀG')
    """
    parts, found = text.split("; "), []
    while parts:  # the longest beginning that a row says, then the rest
        size = next((k for k in range(len(parts), 0, -1) if _known("; ".join(parts[:k])) is not None), 0)
        found.append(str(_known("; ".join(parts[:size]))) if size else parts[0])
        parts = parts[max(size, 1) :]
    joints = ["；" if _is_chinese(a) or _is_chinese(b) else "; " for a, b in pairwise(found)]  # programs keep theirs
    return "".join(part + joint for part, joint in zip(found, [*joints, ""], strict=True))


def chinese_latex(formula: str) -> str:
    r"""A formula in LaTeX, with the words in its `\text{…}` in Chinese.

    >>> print(chinese_latex(r"\sigma_{\max} > 1 \Rightarrow \text{the product explodes}"))
    \sigma_{\max} > 1 \Rightarrow \text{连乘爆炸}
    """
    return re.sub(r"\\text\{([^{}]*)\}", lambda words: rf"\text{{{_between_spaces(words[1])}}}", formula)


def _is_chinese(text: str) -> bool:
    return any("一" <= sign <= "鿿" for sign in text)


def _between_spaces(text: str) -> str:
    inner = text.strip()
    return text.replace(inner, chinese(inner)) if inner else text


@cache
def _known(text: str) -> str | None:
    """The text in Chinese where a row says it, or a list of which every item has a row."""
    if text in TEXTS:
        return TEXTS[text]
    if not _balanced(text):  # a piece of a matrix or a program, cut at a comma
        return None
    for separator, sign in (("; ", "；"), (", ", "，")):
        items = [_known(item) for item in text.split(separator)] if separator in text else [None]
        if None not in items:
            return sign.join(map(str, items))
    for pattern, row in _patterns():
        if (match := pattern.fullmatch(text)) and all(map(_balanced, match.groups())):
            return row.format(*map(chinese, match.groups()))
    return None


def _balanced(text: str) -> bool:
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]"))

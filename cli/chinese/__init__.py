"""Chinese for what the catalogue and the checks say in English: tables with one row a text, the English beside it.

A row may have places `{}` for what is computed: numbers, formulas, names; it is found by the template of a `Phrase`.
Formulas are the same in both languages, and a text that no row knows, such as a sentence of a user's own notes, stays
as it is written.
"""

from __future__ import annotations

import re

from gradproof.cli.chinese.checks import CHECKS
from gradproof.cli.chinese.experiments import EXPERIMENTS
from gradproof.cli.chinese.facts import FACTS
from gradproof.cli.chinese.numbers import NUMBERS
from gradproof.cli.chinese.reports import REPORTS
from gradproof.cli.chinese.statements import STATEMENTS
from gradproof.symbolic.folding.rules import REASONS
from gradproof.symbolic.phrases import Joined, Phrase

RULES = {words["en"]: words["zh"] for words in REASONS.values()}
TEXTS = {**CHECKS, **EXPERIMENTS, **FACTS, **NUMBERS, **REPORTS, **STATEMENTS, **RULES}
JOINTS = {"; ": "；", ", ": "，", " and ": " 且 "}


def chinese(text: str) -> str:
    """The text in Chinese.

    >>> from gradproof.symbolic.phrases import joined, phrase
    >>> chinese("the output"), chinese(phrase("gradient of {}", "W")), chinese("W̄ = XᵀG")
    ('输出', 'W 的梯度', 'W̄ = XᵀG')
    >>> chinese(joined("; ", ["a = 1; b = 2", "the output"]))  # programs keep their semicolons
    'a = 1; b = 2；输出'
    """
    if isinstance(text, Joined):
        parts = [_told(part) for part in text.values]
        between = JOINTS[text.template] if any(map(_is_chinese, parts)) else text.template
        return between.join(parts)
    if isinstance(text, Phrase):
        named = {name: _told(value) for name, value in text.named.items()}
        return TEXTS[text.template].format(*map(_told, text.values), **named)
    return TEXTS.get(text, text)


def _told(value: object) -> str:
    return chinese(value) if isinstance(value, str) else str(value)


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

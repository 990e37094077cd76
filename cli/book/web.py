"""A book as Markdown (KaTeX-safe) and as HTML (MathML; one file, no network)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from gradproof.cli.book import figures as book_figures
from gradproof.cli.book.pages import (
    Page,
    ShownClaim,
    ShownIdentity,
    ShownStep,
    chapters,
    claim_lines,
    claim_sentence,
    joined,
    moment_sentence,
    sentence,
    sources,
)
from gradproof.cli.output.console import typed_lines
from gradproof.cli.output.words import phrased, word
from gradproof.symbolic.errors import GradproofError

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 Georgia, "Noto Serif CJK SC", serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3, h4, nav, table, .facts { font-family: system-ui, sans-serif; }
h2 { border-bottom: 1px solid; margin-top: 3rem; }
h4 { margin: 1.2rem 0 .3rem; }
pre { overflow-x: auto; background: rgba(127, 127, 127, .12); padding: .5rem .8rem; font-size: 13px; }
.formula { overflow-x: auto; padding: .2rem 0 .2rem 1.5rem; text-align: left; }
.formula math { width: auto; margin: 0; }
.formula mtd { padding: .25em 0; }
.formula mtd:first-child { text-align: right; }
.formula mtd:last-child { text-align: left; }
table { border-collapse: collapse; font-size: 14px; width: 100%; }
td, th { border-bottom: 1px solid rgba(127, 127, 127, .4); padding: .25rem .6rem .25rem 0; text-align: left; }
td, th { vertical-align: top; }
.checked, .how { font-size: 13px; opacity: .75; }
.failed { color: #c00; font-weight: bold; }
nav ul { columns: 2; font-size: 14px; }
"""


# ------------------------------------------------------------------------------------------------------------- Markdown


def markdown(found: Sequence[Page]) -> str:
    """A whole document in Markdown."""
    lang, several = found[0].lang, len(found) > 1
    parts = [f"# {word('book', lang)}"] if several else []
    if several:
        parts += [f"## {word('contents', lang)}", "\n".join(_contents(found)), *filter(None, [sources(found)])]
    for name, inside in chapters(found):
        parts += [f"## {name}"] if several else []
        parts += [part for page in inside for part in _markdown_page(page, "###" if several else "#")]
    if several:
        parts += [f"## {word('audit', lang)}", word("audit says", lang), _table(_audit(found, lang))]
        parts += [f"## {word('index', lang)}", "\n".join(_index(found))]
    return "\n\n".join(parts) + "\n"


def _contents(found: Sequence[Page]) -> Iterable[str]:
    for name, inside in chapters(found):
        yield f"- {name}"
        yield from (f"  - [{md(page.title)}](#{anchor(page)})" for page in inside)


def _index(found: Sequence[Page]) -> Iterable[str]:
    ordered = sorted(found, key=lambda page: page.entry.id)
    return (f"- [`{page.entry.id}`](#{anchor(page)}) {md(page.title)}" for page in ordered)


def anchor(page: Page) -> str:
    return page.entry.id.replace(".", "-")


def md(text: str) -> str:
    r"""Text whose signs Markdown would take for markup.

    >>> print(md("W_h * 2 | a"))
    W\_h \* 2 \| a
    """
    return re.sub(r"([\\`*_\[\]|<>$#])", r"\\\1", text)


def _display(block: str) -> str:
    return f"$$\n{block.strip()}\n$$"


def _fence(*texts: str) -> str:
    return "\n".join(["```", *(line for text in texts for line in typed_lines(text)), "```"])


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def _markdown_page(page: Page, level: str) -> Iterable[str]:
    lang, entry = page.lang, page.entry
    yield f'<a id="{anchor(page)}"></a>\n\n{level} {md(page.title)}'
    yield f"`{entry.id}`"
    yield from [f"{word('document', lang)}{word('colon', lang)}"] if entry.right else []
    yield _display(page.statement)
    yield from [f"{word('right', lang)}{word('colon', lang)}", _display(page.right)] if entry.right else []
    yield "\n".join(f"- {word(key, lang)}: {md(value)}" for key, value in page.facts)
    if page.note:
        yield md(page.note)
    if page.result:
        yield f"**{word('result', lang)}** ({word('with respect to', lang)} {md(page.variables)})"
        yield from map(_display, joined(page.result))
    yield from _markdown_steps(page.steps, lang)
    if page.identities:
        yield f"**{word('identities', lang)}**"
        for identity in page.identities:
            yield md(sentence(identity, lang))
            yield _fence(identity.stated.left, "=", identity.stated.right)
            yield from _markdown_steps(identity.steps, lang)
    if page.claims:
        yield f"**{word('claims', lang)}**"
        for claim in page.claims:
            yield md(claim_sentence(claim, lang))
            yield _fence(*claim_lines(claim.stated))
    if page.moments:
        yield f"**{word('moments', lang)}**"
        for moment in page.moments:
            yield md(moment_sentence(moment, lang))
            yield _fence(moment.stated.expression)
            yield from _markdown_steps(moment.steps, lang)
    if page.experiment is not None:
        yield f"**{word('experiment', lang)}** {md(phrased(page.experiment.title, lang))}"
        yield _table([[md(cell) for cell in row] for row in page.measured])
        yield md(page.conclusion)
    if page.evidence:
        yield f"**{word('evidence', lang)}**"
        yield _table(
            [
                ["", word("computed", lang), word("expected", lang)],
                *([md(cell) for cell in row] for row in page.numbers),
            ]
        )


def _markdown_steps(steps: Sequence[ShownStep], lang: str) -> Iterable[str]:
    if steps:
        yield f"**{word('steps', lang)}**"
    for number, step in enumerate(steps, 1):
        yield f"{number}\\. **{md(step.rule)}**: {md(step.reason)}"
        yield from map(_display, joined(step.equations))
        if step.checked:
            yield f"{word('checked', lang)}{word('colon', lang)}{md(step.checked)}"


def _audit(found: Sequence[Page], lang: str) -> list[list[str]]:
    head = [word("formula", lang), word("verdict", lang), word("rests on", lang)]
    return [head, *([f"[{md(page.title)}](#{anchor(page)})", page.verdict, page.rests_on] for page in found)]


# ----------------------------------------------------------------------------------------------------------------- HTML


def mathml(latex: str) -> str:
    r"""A formula as MathML; the lines of an `aligned` block are the rows of a table, aligned at &.

    >>> mathml("\\begin{aligned}\na &= 1 \\\\\nb &= 2\n\\end{aligned}").count("<mtr>")
    2

    Raises GradproofError where the converter does not take the formula.
    """
    start, end = "\\begin{aligned}", "\\end{aligned}"
    if not latex.strip().startswith(start):
        return f'<div class="formula">{_converted(latex)}</div>'
    lines = latex.strip().removeprefix(start).removesuffix(end).split("\\\\\n")
    cells = (([""] if "&" not in line else []) + line.split("&", 1) for line in lines)
    rows = "".join(f"<mtr><mtd>{_inside(left)}</mtd><mtd>{_inside(right)}</mtd></mtr>" for left, right in cells)
    table = f'<mtable columnalign="right left" columnspacing="0" displaystyle="true">{rows}</mtable>'
    return f'<div class="formula"><math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{table}</math></div>'


# what the converter does not know; sizes of brackets are left to the browser
SPELLED = {
    r"\\arg\\max": r"\\operatorname{argmax}",
    r"\\arg\\min": r"\\operatorname{argmin}",
    r"\\[Bb]ig[lr]?(?![a-z]) *": "",
}


def _converted(latex: str) -> str:
    from latex2mathml.converter import convert

    known = latex
    for pattern, spelled in SPELLED.items():
        known = re.sub(pattern, spelled, known)
    try:
        found: str = convert(known, display="block")
    except Exception as error:
        raise GradproofError(f"this formula cannot be written as MathML ({error}): {latex}") from None
    return found


def _inside(latex: str) -> str:
    """A part of a formula, without the element around it."""
    return re.sub(r"^<math[^>]*>|</math>$", "", _converted(latex.strip())) if latex.strip() else "<mrow></mrow>"


def html(found: Sequence[Page]) -> str:
    """A whole document in one HTML file."""
    lang, several = found[0].lang, len(found) > 1
    title = word("book", lang) if several else found[0].title
    parts = [f"<h1>{escape(title)}</h1>"]
    if several:
        items = "".join(
            f"<li>{escape(name)}<ul>{''.join(_link(page) for page in inside)}</ul></li>"
            for name, inside in chapters(found)
        )
        parts += [f"<nav><h2>{word('contents', lang)}</h2><ul>{items}</ul></nav><p>{sources(found)}</p>"]
    for name, inside in chapters(found):
        parts += [f"<h2>{escape(name)}</h2>"] if several else []
        parts += [_html_page(page) for page in inside]
    if several:
        parts += [f"<h2>{word('audit', lang)}</h2><p>{word('audit says', lang)}</p>", _html_audit(found, lang)]
        links = "".join(_link(page, page.entry.id) for page in sorted(found, key=lambda page: page.entry.id))
        parts += [f"<nav><h2>{word('index', lang)}</h2><ul>{links}</ul></nav>"]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "\n".join(parts)
    head += f"<style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="{lang}"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _link(page: Page, text: str = "") -> str:
    return f'<li><a href="#{anchor(page)}">{escape(text or page.title)}</a></li>'


def _pre(*texts: str) -> str:
    return "<pre>" + escape("\n".join(line for text in texts for line in typed_lines(text))) + "</pre>"


def _html_page(page: Page) -> str:
    lang, entry = page.lang, page.entry
    parts = [
        f'<h3 id="{anchor(page)}">{escape(page.title)}</h3><code>{escape(entry.id)}</code>',
        *([f"<p>{word('document', lang)}{word('colon', lang)}</p>"] if entry.right else []),
        mathml(page.statement),
        *([f"<p>{word('right', lang)}{word('colon', lang)}</p>", mathml(page.right)] if entry.right else []),
    ]
    facts = "".join(f"<tr><td>{word(key, lang)}</td><td>{escape(value)}</td></tr>" for key, value in page.facts)
    parts += [f'<table class="facts">{facts}</table>']
    parts += [f"<p>{escape(page.note)}</p>"] if page.note else []
    if page.result:
        parts += [f"<h4>{word('result', lang)} ({word('with respect to', lang)} {escape(page.variables)})</h4>"]
        parts += map(mathml, joined(page.result))
    parts += _html_steps(page.steps, lang)
    parts += _html_identities(page.identities, lang) + _html_claims(page.claims, lang)
    parts += [f"<h4>{word('moments', lang)}</h4>"] if page.moments else []
    for moment in page.moments:
        parts += [f'<p class="how">{escape(moment_sentence(moment, lang))}</p>', _pre(moment.stated.expression)]
        parts += _html_steps(moment.steps, lang)
    if page.evidence:
        head = f"<tr><th></th><th>{word('computed', lang)}</th><th>{word('expected', lang)}</th></tr>"
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in page.numbers)
        parts += [f"<h4>{word('evidence', lang)}</h4><table>{head}{rows}</table>"]
    if page.experiment is not None:
        title = escape(phrased(page.experiment.title, lang))
        names, *body = page.measured
        parts += [f"<h4>{word('experiment', lang)}</h4><p>{title}</p>"]
        parts += [book_figures.svg(page.experiment, lambda name: phrased(name, lang))]
        parts += [f"<table>{_row('th', names)}{''.join(_row('td', row) for row in body)}</table>"]
        parts += [f"<p>{escape(page.conclusion)}</p>"]
    return "\n".join(parts)


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _html_steps(steps: Sequence[ShownStep], lang: str) -> list[str]:
    parts = [f"<h4>{word('steps', lang)}</h4><ol>"] if steps else []
    for step in steps:
        parts += [f"<li><b>{escape(step.rule)}</b>: {escape(step.reason)}", *map(mathml, joined(step.equations))]
        told = f"{word('checked', lang)}{word('colon', lang)}{escape(step.checked)}" if step.checked else ""
        parts += [f'<div class="checked">{told}</div></li>']
    return parts + (["</ol>"] if steps else [])


def _html_identities(found: Sequence[ShownIdentity], lang: str) -> list[str]:
    parts = [f"<h4>{word('identities', lang)}</h4>"] if found else []
    for identity in found:
        parts += [f'<p class="how">{escape(sentence(identity, lang))}</p>']
        parts += [_pre(identity.stated.left, "=", identity.stated.right), *_html_steps(identity.steps, lang)]
    return parts


def _html_claims(found: Sequence[ShownClaim], lang: str) -> list[str]:
    parts = [f"<h4>{word('claims', lang)}</h4>"] if found else []
    for claim in found:
        parts += [f'<p class="how">{escape(claim_sentence(claim, lang))}</p>', _pre(*claim_lines(claim.stated))]
    return parts


def _html_audit(found: Sequence[Page], lang: str) -> str:
    head = "".join(f"<th>{word(key, lang)}</th>" for key in ("formula", "verdict", "rests on"))
    rows = "".join(
        f'<tr><td><a href="#{anchor(page)}">{escape(page.title)}</a></td><td>{escape(page.verdict)}</td>'
        f'<td class="{"" if page.passed else "failed"}">{escape(page.rests_on)}</td></tr>'
        for page in found
    )
    return f"<table><tr>{head}</tr>{rows}</table>"

r"""A book as LaTeX for plain pdflatex, or for XeLaTeX in Chinese; and as PDF where a TeX is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from gradproof.cli.book import figures as book_figures
from gradproof.cli.book.pages import (
    Page,
    ShownClaim,
    ShownIdentity,
    ShownStep,
    chapters,
    claim_lines,
    claim_sentence,
    moment_sentence,
    sentence,
    sources,
)
from gradproof.cli.output.console import typed_lines
from gradproof.cli.output.latex_text import escaped, tex
from gradproof.cli.output.words import phrased, word
from gradproof.symbolic.errors import GradproofError

PREAMBLE = r"""\documentclass[10pt,a4paper,fleqn]{article}
%(fonts)s
\usepackage{amsmath,amssymb,graphicx,longtable,array,pict2e}
\usepackage[margin=22mm]{geometry}
%(links)s
\setlength{\parindent}{0pt}\setlength{\parskip}{3pt}\setlength{\mathindent}{6mm}
\setlength{\emergencystretch}{3em}\setlength{\extrarowheight}{2pt}
\AtBeginDocument{\abovedisplayskip=2pt plus 1pt\belowdisplayskip=2pt plus 1pt
  \abovedisplayshortskip=1pt\belowdisplayshortskip=2pt}
\newsavebox{\formula}
%% a formula that is wider than the line is scaled down to it
\newcommand{\fit}[1]{\sbox{\formula}{$\displaystyle #1$}%%
  \ifdim\wd\formula>\dimexpr\linewidth-8mm\relax\resizebox{\dimexpr\linewidth-8mm\relax}{!}{\usebox{\formula}}\else\usebox{\formula}\fi}
\title{%(title)s}\date{}\author{}
\begin{document}
\maketitle
"""
LATIN = r"\usepackage[utf8]{inputenc}\IfFileExists{lmodern.sty}{\usepackage[T1]{fontenc}\usepackage{lmodern}}{}"
LINKS = r"\usepackage[hidelinks]{hyperref}"
# XeTeX's links need a font that not every TeX brings; without it the references are plain text
CHINESE_LINKS = r"""\suppressfontnotfounderror=1 \font\linkfont=pzdr at 1sp \suppressfontnotfounderror=0
\ifx\linkfont\nullfont\newcommand{\hyperref}[2][]{#2}\else\usepackage[hidelinks]{hyperref}\fi"""
CHINESE = r"""\usepackage{fontspec}\usepackage{xeCJK}
\IfFontExistsTF{Noto Serif CJK SC}{\setCJKmainfont{Noto Serif CJK SC}}{%
\IfFontExistsTF{Songti SC}{\setCJKmainfont{Songti SC}}{%
\IfFontExistsTF{SimSun}{\setCJKmainfont{SimSun}}{\IfFontExistsTF{FandolSong-Regular.otf}{\setCJKmainfont{FandolSong-Regular.otf}}{}}}}"""


def code(*texts: str) -> str:
    """Expressions as typed, broken into lines."""
    lines = "\n".join(line for text in texts for line in typed_lines(text))
    return f"\\begin{{verbatim}}\n{lines}\n\\end{{verbatim}}"


def displays(blocks: Iterable[str]) -> list[str]:
    """Each block a display of its own, so that a page can break between them."""
    return [f"\\[\\fit{{{single(block)}}}\\]" for block in blocks]


def single(block: str) -> str:
    """An aligned block without blank lines, as an argument needs it."""
    return re.sub(r"\n+", "\n", block.strip())


def label(page: Page) -> str:
    return page.entry.id.replace("_", "-")


def book(found: Sequence[Page], title: str = "") -> str:
    """A whole document."""
    lang = found[0].lang
    fonts, links = (CHINESE, CHINESE_LINKS) if lang == "zh" else (LATIN, LINKS)
    parts = [PREAMBLE % {"fonts": fonts, "links": links, "title": tex(title or word("book", lang))}]
    several = len(found) > 1
    if several:
        parts += [rf"\renewcommand{{\contentsname}}{{{word('contents', lang)}}}", r"\tableofcontents"]
        parts += ["", rf"\bigskip {tex(sources(found))}", r"\clearpage"]
    for name, inside in chapters(found):
        parts += [rf"\section{{{tex(name)}}}"] if several else []
        parts += [section(page) for page in inside]
    if several:
        parts += [audit(found, lang), index(found, lang)]
    return "\n".join([*parts, r"\end{document}", ""])


def section(page: Page) -> str:
    """One entry."""
    lang, entry = page.lang, page.entry
    parts = [rf"\subsection{{{tex(page.title)}}}\label{{{label(page)}}}", rf"\texttt{{{escaped(entry.id)}}}"]
    parts += [
        *(["", rf"\noindent {word('document', lang)}{word('colon', lang)}"] if entry.right else []),
        rf"\[\fit{{{page.statement}}}\]",
    ]
    parts += [f"{word('right', lang)}{word('colon', lang)}", rf"\[\fit{{{page.right}}}\]"] if entry.right else []
    parts += [r"\begin{tabular}{@{}l>{\raggedright\arraybackslash}p{0.8\linewidth}@{}}"]
    parts += [rf"{word(key, lang)} & {tex(value)} \\" for key, value in page.facts]
    parts += [r"\end{tabular}", ""]
    if page.note:
        parts += [tex(page.note), ""]
    if page.result:
        parts += [
            heading("result", lang),
            rf"({word('with respect to', lang)} {tex(page.variables)})",
            *displays(page.result),
        ]
    parts += [
        part
        for part in (
            steps(page.steps, lang),
            identities(page.identities, lang),
            claims(page.claims, lang),
            moments(page),
            evidence(page),
            experiment(page),
        )
        if part
    ]
    return "\n".join(parts) + "\n"


def heading(key: str, lang: str) -> str:
    return rf"\paragraph{{{word(key, lang)}}}"


def steps(found: Sequence[ShownStep], lang: str) -> str:
    if not found:
        return ""
    lines = [heading("steps", lang), r"\begin{enumerate}"]
    for step in found:
        lines += [rf"\item \textbf{{{tex(step.rule)}}}: {tex(step.reason)}", *displays(step.equations)]
        if step.checked:
            lines += [rf"{{\small {word('checked', lang)}{word('colon', lang)}{tex(step.checked)}}}"]
    return "\n".join([*lines, r"\end{enumerate}"])


def identities(found: Sequence[ShownIdentity], lang: str) -> str:
    if not found:
        return ""
    lines = [heading("identities", lang)]
    for identity in found:
        lines += ["", tex(sentence(identity, lang))]
        if len(identity.left) == len(identity.right) == 1 and identity.left != identity.right:
            lines += displays((*identity.left, *identity.right))
        lines += [code(identity.stated.left, "=", identity.stated.right), steps(identity.steps, lang)]
    return "\n".join(lines)


def claims(found: Sequence[ShownClaim], lang: str) -> str:
    if not found:
        return ""
    lines = [heading("claims", lang)]
    for claim in found:
        lines += ["", tex(claim_sentence(claim, lang)), code(*claim_lines(claim.stated))]
    return "\n".join(lines)


def moments(page: Page) -> str:
    if not page.moments:
        return ""
    lines = [heading("moments", page.lang)]
    for moment in page.moments:
        shapes = "  ".join(f"{name}:{shape}" for name, shape in moment.stated.shapes.items())
        lines += ["", tex(moment_sentence(moment, page.lang)), code(f"{moment.stated.expression}   {shapes}")]
        lines += [steps(moment.steps, page.lang)]
    return "\n".join(lines)


def evidence(page: Page) -> str:
    if not page.evidence:
        return ""
    lines = [
        heading("evidence", page.lang),
        "",
        r"\begin{longtable}{@{}>{\raggedright\arraybackslash}p{0.46\linewidth}",
    ]
    lines += [r">{\raggedright\arraybackslash}p{0.24\linewidth}>{\raggedright\arraybackslash}p{0.24\linewidth}@{}}"]
    lines += [rf" & {word('computed', page.lang)} & {word('expected', page.lang)} \\ \hline \endhead"]
    for label, value, expected in page.numbers:
        lines += [rf"{tex(label)} & {tex(_short(value))} & {tex(_short(expected))} \\"]
    return "\n".join([*lines, r"\end{longtable}"])


def experiment(page: Page) -> str:
    """The table, the figure and the conclusion."""
    if page.experiment is None:
        return ""
    head, *rows = [[tex(cell) for cell in row] for row in page.measured]
    lines = ["", r"\noindent\begin{minipage}{\linewidth}"]  # no page ends between the heading and the figure
    lines += [heading("experiment", page.lang), tex(phrased(page.experiment.title, page.lang)), ""]
    lines += [*book_figures.latex(page.experiment, lambda name: tex(phrased(name, page.lang))), r"\end{minipage}"]
    lines += [
        rf"\begin{{center}}\small\tabcolsep=4pt\begin{{tabular}}{{{'r' * len(head)}}}",
        " & ".join(head) + r" \\ \hline",
    ]
    lines += [" & ".join(row) + r" \\" for row in rows]
    return "\n".join([*lines, r"\end{tabular}\end{center}", "", tex(page.conclusion)])


def _short(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else text[:limit] + " …"


def audit(found: Sequence[Page], lang: str) -> str:
    """Every statement with its verdict and what that rests on."""
    lines = [rf"\section{{{word('audit', lang)}}}", word("audit says", lang), ""]
    lines += [
        r"\begin{longtable}{@{}>{\raggedright\arraybackslash}p{0.36\linewidth}>{\raggedright\arraybackslash}p{0.18\linewidth}"
    ]
    lines += [
        r">{\raggedright\arraybackslash}p{0.4\linewidth}@{}}",
        rf"{word('formula', lang)} & {word('verdict', lang)} & {word('rests on', lang)} \\ \hline \endhead",
    ]
    for page in found:
        lines += [rf"\hyperref[{label(page)}]{{{tex(page.title)}}} & {tex(page.verdict)} & {tex(page.rests_on)} \\"]
    return "\n".join([*lines, r"\end{longtable}"])


def index(found: Sequence[Page], lang: str) -> str:
    """Identifiers in alphabetical order with their pages."""
    lines = [rf"\section{{{word('index', lang)}}}", r"\begin{longtable}{@{}lp{0.5\linewidth}r@{}}"]
    for page in sorted(found, key=lambda page: page.entry.id):
        lines += [rf"\texttt{{{escaped(page.entry.id)}}} & {tex(page.title)} & \pageref{{{label(page)}}} \\"]
    return "\n".join([*lines, r"\end{longtable}"])


def engine(lang: str) -> str:
    """The TeX to use.

    Raises GradproofError where none is installed.
    """
    wanted = ("xelatex", "tectonic") if lang == "zh" else ("pdflatex", "xelatex", "tectonic")
    found = next((name for name in wanted if shutil.which(name)), None)
    if found is None:
        raise GradproofError(
            f"no TeX is installed ({' or '.join(wanted)} is needed): install one, or export with --format latex or html"
        )
    return found


def pdf(source: str, lang: str) -> bytes:
    """The document set by an installed TeX.

    Raises GradproofError where there is none, or where it stops, with what it said.
    """
    name = engine(lang)
    options = [] if name == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "book.tex")
        path.write_text(source, encoding="utf-8")
        for _ in range(1 if name == "tectonic" else 3):  # contents and page numbers settle
            done = subprocess.run(
                [name, *options, path.name],
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
            )
            if done.returncode:
                said = [line for line in done.stdout.splitlines() if line.startswith(("!", "l."))]
                raise GradproofError(
                    f"{name} stopped: {' '.join(said[:3]) or done.stderr.strip()[-300:] or 'see its log'}"
                )
        return path.with_suffix(".pdf").read_bytes()

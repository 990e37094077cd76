r"""A book as LaTeX for plain pdflatex, or for XeLaTeX in Chinese; and as PDF where a TeX is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from gradproof.cli import book_figures
from gradproof.cli.book import (
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
from gradproof.cli.words import phrased, word
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.printing.naming import GREEK, LATEX_GREEK

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
MATHS = {
    "−": "-",
    "×": r"\times",
    "·": r"\cdot",
    "÷": r"\div",
    "±": r"\pm",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "≈": r"\approx",
    "→": r"\to",
    "⇒": r"\Rightarrow",
    "⇔": r"\Leftrightarrow",
    "∞": r"\infty",
    "√": r"\surd",
    "∂": r"\partial",
    "∇": r"\nabla",
    "Σ": r"\Sigma",
    "∏": r"\prod",
    "Π": r"\Pi",
    "⊙": r"\odot",
    "⊗": r"\otimes",
    "⊘": r"\oslash",
    "‖": r"\Vert",
    "∈": r"\in",
    "∝": r"\propto",
    "∀": r"\forall",
    "∘": r"\circ",
    "⊤": r"\top",
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "ℓ": r"\ell",
    "†": r"\dagger",
    "½": r"\tfrac12",
    "¼": r"\tfrac14",
    "𝟏": r"\mathbf{1}",
    "⌈": r"\lceil",
    "⌉": r"\rceil",
    "⪰": r"\succeq",
    "′": "'",
    "∫": r"\int",
    "∑": r"\sum",
    "↦": r"\mapsto",
    "≪": r"\ll",
    "←": r"\leftarrow",
}
TEXT = {
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "é": r"\'e",
    "ä": r"\"a",
    "ö": r"\"o",
    "ü": r"\"u",
}
MARKS = {"\u0304": r"\bar", "\u0305": r"\bar", "\u0302": r"\hat", "\u0307": r"\dot", "\u0303": r"\tilde"}
GREEK_LETTERS = {sign: LATEX_GREEK.get(name, rf"\{name}") for name, sign in GREEK.items() if len(sign) == 1}

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


# W_h, v_{t−2}, (x̂₁)_ij, output_i, W_i^O, σ_max^(t−k): a name or a bracket, an index, a power; log_softmax is a word
SIGN = "[^\\W\\d_⁰¹²³⁴-⁹ᵀ]"
HIGH = r"\([^()]*\)|−?[0-9]+|[A-Za-z]"
INDEXED = re.compile(
    rf"(?<!{SIGN})(?<![._])(?P<base>{SIGN}[a-zA-Z]?[\u0300-\u0307]?|\({SIGN}[\u0300-\u0307]?[₀-₉]*\)"
    rf"|[a-z]+(?=_[a-z]\b)|[0-9]+(?=\^)|{'|'.join(GREEK)})"
    r"(?:_(?P<low>\{[^}]*\}|[A-Za-z0-9α-ω]+)" + rf"(?:\^(?P<high>{HIGH}))?|\^(?P<alone>{HIGH})|(?P<digits>[₀-₉]+))"
)


def tex(text: str) -> str:
    r"""A sentence for LaTeX: special signs escaped, Greek and mathematical signs and indexed names as mathematics.

    >>> print(tex("x̄ ≤ 2·W_h & 50 %, v_{t−2}, log_softmax"))
    $\bar{x}$ $\le$ 2$\cdot$$W_{h}$ \& 50 \%, $v_{t-2}$, log\_softmax
    >>> print(tex("2a_j, W_i^O, σ_max^(t−k)"))
    2$a_{j}$, $W_{i}^{O}$, $\sigma_{\mathrm{max}}^{t-k}$
    """
    found, end = "", 0
    for match in INDEXED.finditer(text):
        base, low = GREEK.get(match["base"], match["base"]), (match["low"] or match["digits"] or "").strip("{}")
        high = (match["high"] or match["alone"] or "").strip("()")
        if len(low) > 6:
            continue
        word = rf"\mathrm{{{base}}}" if re.fullmatch("[a-z]{2,}", base) else _inside(base)
        low = unicodedata.normalize("NFKC", low)
        index = rf"\mathrm{{{low}}}" if low in ("max", "min", "model") else _inside(low)
        scripts = (f"_{{{index}}}" if low else "") + (f"^{{{_inside(high)}}}" if high else "")
        found += escaped(text[end : match.start()]) + f"${word}{scripts}$"
        end = match.end()
    return found + escaped(text[end:])


def _inside(text: str) -> str:
    r"""The same within mathematics.

    >>> print(_inside("·v"))
    \cdot v
    """
    found = re.sub(r"\$([^$]*)\$", r"\1", re.sub(r"(\\[A-Za-z]+)\$", r"\1 $", escaped(text)))
    return found.replace(r"\_", "").strip()


def escaped(text: str) -> str:
    r"""Any text for LaTeX, sign by sign.

    >>> print(escaped("rnn.step_jacobian σ"))
    rnn.step\_jacobian $\sigma$
    """
    found: list[str] = []
    for char in "".join(map(_apart, text)):
        if char in MARKS and found:
            found[-1] = f"${MARKS[char]}{{{found[-1].strip('$')}}}$"
        else:
            found.append(_char(char))
    return "".join(found)


def _apart(char: str) -> str:
    """A letter with a bar or hat as letter and mark."""
    parts = unicodedata.normalize("NFD", char)
    return parts if parts[-1] in MARKS else char


def _char(char: str) -> str:
    if char in SPECIAL:
        return SPECIAL[char]
    if char in TEXT:
        return TEXT[char]
    if char in MATHS:
        return f"${MATHS[char]}$"
    if char in GREEK_LETTERS:
        return f"${GREEK_LETTERS[char]}$"
    plain = unicodedata.normalize("NFKC", char)
    if plain != char and ("SUPERSCRIPT" in unicodedata.name(char, "") or "MODIFIER" in unicodedata.name(char, "")):
        return f"$^{{{plain if plain != 'T' else chr(92) + 'top'}}}$".replace("−", "-")
    if plain != char and "SUBSCRIPT" in unicodedata.name(char, ""):
        return f"$_{{{plain}}}$".replace("−", "-")
    if ord(char) < 128 or "CJK" in unicodedata.name(char, "") or unicodedata.east_asian_width(char) in "WF":
        return char
    if "MATHEMATICAL" in unicodedata.name(char, "") and len(plain) == 1 and ord(plain) < 128:
        return f"$\\mathbf{{{plain}}}$"
    return f"[U+{ord(char):04X}]"


def code(*texts: str) -> str:
    """Expressions as typed, broken into lines."""
    lines = "\n".join(line for text in texts for line in typed_lines(text))
    return f"\\begin{{verbatim}}\n{lines}\n\\end{{verbatim}}"


def typed_lines(text: str) -> list[str]:
    """A program, a line a statement; long ones are wrapped.

    >>> typed_lines("A = softmax(S); A @ V")
    ['A = softmax(S);', 'A @ V']
    """
    pieces = [f"{piece.strip()};" for piece in text.split(";")]
    pieces[-1] = pieces[-1].rstrip(";")
    return [line for piece in pieces for line in textwrap.wrap(piece, 86, subsequent_indent="    ")]


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

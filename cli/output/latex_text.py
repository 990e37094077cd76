"""Sentences of reports as LaTeX: special signs escaped, Greek letters, signs and indexed names as mathematics."""

from __future__ import annotations

import re
import unicodedata

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

"""The token pass: checks a text before Python's parser sees it, and rewrites the one spelling that Python lacks.

Everything hostile stops here, in one linear pass: length, nesting, long chains, strange characters, huge numbers.
Most slips stop here too, since a token knows better than a parser what its neighbour should have been.
The rewriting (`sum[t=0:n](…)` to `sum[t:0:n](…)`) exchanges single characters, so every place stays where it was.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from gradproof.symbolic.errors import ExpressionError

MAX_LENGTH = 20_000  # characters
MAX_NESTING = 64  # brackets in brackets, and signs in a row
MAX_CHAIN = 1_500  # operators on the way from a statement down to one operand: keeps Python's parser off its own limits
MAX_DIGITS = 20  # of an integer
REDUCTIONS = frozenset({"sum", "prod", "max", "min", "mean"})  # what takes indices in brackets: sum[i,j](…)

PREFIX = frozenset({"+", "-", "~", "not"})
BINARY = frozenset({"**", "*", "/", "+", "-", "@", "==", "!=", "<", "<=", ">", ">=", "&", "|", "and", "or"})
CLOSING = {"(": ")", "[": "]"}
NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
SYMBOL = re.compile(r":=|->|//|<<|>>|\.\.\.|\*\*|==|!=|<=|>=|[-+*/@()\[\],:=<>&|~.;]")

# What people type and the language lacks, with what to type instead.
HINTS = {
    "^": "use ** for powers",
    "{": "use round or square brackets",
    "}": "use round or square brackets",
    "\\": "TeX is not read here; write for example sum[i](x[i]**2)",
    "$": "write the expression without dollar signs",
    "#": "comments are not part of an expression",
    "%": "a remainder is not part of an expression",
    "!": "write != for a comparison, and a factorial as prod[k=1:n+1](k)",
    "//": "division is /",
    ":=": "a definition is written S = …; and the expression after it",
    "->": "a definition is written S = …; and the expression after it",
    "<<": "write * 2**k",
    ">>": "write / 2**k",
    "...": "write the axes out, as in A[:, 0]",
    "−": "use the plain minus sign -",
    "–": "use the plain minus sign -",
    "×": "use * for elementwise products and @ for matrix products",
    "·": "use * for elementwise products and @ for matrix products",
    "⋅": "use * for elementwise products and @ for matrix products",
    "⊙": "use * for elementwise products",
    "∘": "use * for elementwise products",
    "⊗": "use kron(A, B) or outer(a, b)",
    "÷": "use /",
    "≤": "use <=",
    "≥": "use >=",
    "≠": "use !=",
    "√": "use sqrt(x)",
    "∑": "use sum[i](x[i])",
    "∏": "use prod[i](x[i])",
    "∞": "use inf",
    "‖": "use norm(x)",
    "⊤": "a transpose is written .T",
    "²": "use ** for powers",
    "³": "use ** for powers",
    "’": "a transpose is written .T, and a name has no prime",
    "′": "a transpose is written .T, and a name has no prime",
    "'": "a transpose is written .T, and a name has no prime",
}
WORDS = {
    "lambda": "a lambda is not part of an expression; a scalar of that name may be called lam",
    "if": "an if is not part of an expression; use where(condition, a, b)",
    "else": "an else is not part of an expression; use where(condition, a, b)",
    "for": "a for is not part of an expression; a sum over i is written sum[i](x[i])",
}
OPERATOR_WORDS = ("and", "or", "not")
VALUE_WORDS = ("True", "False", "None")


class Token(NamedTuple):
    """A piece of the text: its kind (name, number, text, symbol, line), its spelling and its place."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def ends_operand(self) -> bool:
        return self.kind in ("name", "number", "text") or self.text in (")", "]")

    @property
    def starts_operand(self) -> bool:
        return self.kind in ("name", "number", "text") or self.text in ("(", "[") or self.text in PREFIX


@dataclass(frozen=True)
class Piece:
    """One statement: the tokens left of its `=` (None without one), and where its value starts and ends."""

    left: tuple[Token, ...] | None
    start: int
    end: int


def scan(text: str) -> tuple[str, list[Piece]]:
    """The text as Python's parser may read it, character for character in the same places, and its statements.

    >>> code, pieces = scan("s = sum[t=0:n](x[t]); s**2")
    >>> [code[piece.start : piece.end] for piece in pieces]
    ['sum[t:0:n](x[t])', 's**2']
    """
    if not isinstance(text, str):
        raise ExpressionError(f"an expression is a text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    code = [" " if character.isspace() else character for character in text]
    pieces = []
    for tokens in _statements(text, _tokens(text)):
        _check_neighbours(text, tokens)
        equals = _Brackets(text, code).check(tokens)
        left = None if equals is None else tuple(tokens[:equals])
        first = 0 if equals is None else equals + 1
        pieces.append(Piece(left, tokens[first].start, tokens[-1].end))
    if not pieces:
        raise ExpressionError("the expression is empty", text, 0 if text else None)
    return "".join(code), pieces


def _fail(message: str, text: str, token: Token) -> NoReturn:
    raise ExpressionError(message, text, token.start, token.end)


# Characters to tokens


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        character = text[place]
        if character in "\n\r":
            tokens.append(Token("line", character, place, place + 1))
        elif not character.isspace():
            tokens.append(_token(text, place, tokens[-1] if tokens else None))
        place = tokens[-1].end if tokens and tokens[-1].end > place else place + 1
    return tokens


def _token(text: str, place: int, previous: Token | None) -> Token:
    if text[place].isidentifier():
        return _name(text, place)
    if number := NUMBER.match(text, place):
        return _number(text, Token("number", number.group(), place, number.end()))
    if text[place] in "'\"":
        return _quoted(text, place, previous)
    symbol = SYMBOL.match(text, place)
    spelled = symbol.group() if symbol else text[place]
    token = Token("symbol", spelled, place, place + len(spelled))
    if spelled in HINTS:
        _fail(f"{spelled} is not part of an expression: {HINTS[spelled]}", text, token)
    if not symbol:
        _fail(f"the character {_described(spelled)} has no meaning in an expression", text, token)
    return token


def _name(text: str, place: int) -> Token:
    end = place + 1
    while end < len(text) and ("a" + text[end]).isidentifier():
        end += 1
    # Python takes the compatible normal form of a name as the name: 𝐱 is x. A superscript would vanish in it.
    name = unicodedata.normalize("NFKC", text[place:end])
    token = Token("name", name, place, end)
    for k in range(place, end):
        if unicodedata.decomposition(text[k]).startswith(("<super>", "<sub>")):
            hint = "a transpose is written .T, a power x**2, an index x[i]"
            _fail(f"{text[k]} is not part of a name: {hint}", text, Token("symbol", text[k], k, k + 1))
    if name in OPERATOR_WORDS and name == text[place:end]:
        return token._replace(kind="symbol")
    if keyword.iskeyword(name) and (name not in VALUE_WORDS or name != text[place:end]):
        message = f"{name} is a word of Python that is not part of an expression and cannot be a name"
        _fail(WORDS.get(name, message), text, token)
    if name.startswith("_"):
        _fail(f"{name}: a name does not start with _", text, token)
    return token


def _number(text: str, token: Token) -> Token:
    spelled = token.text
    if spelled.isdigit():
        if len(spelled) > MAX_DIGITS:
            _fail(f"an integer of {len(spelled)} digits; at most {MAX_DIGITS} are read", text, token)
        if len(spelled) > 1 and spelled.startswith("0"):
            _fail(f"{spelled}: an integer does not start with 0", text, token)
    elif math.isinf(float(spelled)):
        _fail("this number is too large for a double", text, token)
    elif float(spelled) == 0 and re.search("[1-9]", re.split("[eE]", spelled)[0]):
        _fail("this number is too small for a double and would become 0", text, token)
    return token


def _quoted(text: str, place: int, previous: Token | None) -> Token:
    quote = text[place]
    touches = previous is not None and previous.end == place and previous.ends_operand
    mark = Token("symbol", quote, place, place + 1)
    if touches and quote == "'":
        _fail(f"' is not part of an expression: {HINTS[quote]}", text, mark)
    end = text.find(quote, place + 1)
    inside = text[place + 1 : end]
    if end < 0 or "\n" in inside or "\r" in inside:
        _fail(f"the quotation mark {quote} has no partner", text, mark)
    token = Token("text", text[place : end + 1], place, end + 1)
    if touches or not inside.isprintable() or "\\" in inside:
        _fail('a quoted text is plain and stands alone, as in einsum("ij,jk->ik", A, B)', text, token)
    return token


def _described(character: str) -> str:
    name = unicodedata.name(character, "")
    code = f"U+{ord(character):04X}"
    shown = character if character.isprintable() else ""
    return " ".join(part for part in (shown, f"({code}{', ' + name.lower() if name else ''})") if part)


# Tokens to statements


def _statements(text: str, tokens: list[Token]) -> list[list[Token]]:
    """Split at `;` and at line ends outside brackets; every bracket has its partner afterwards."""
    parts: list[list[Token]] = [[]]
    opened: list[Token] = []
    for token in tokens:
        if token.text in CLOSING:
            opened.append(token)
            if len(opened) > MAX_NESTING:
                _fail(f"more than {MAX_NESTING} brackets in each other; name an intermediate: S = …; …", text, token)
        elif token.text in (")", "]"):
            if not opened:
                _fail(f"{token.text} closes a bracket that was never opened", text, token)
            if CLOSING[opened[-1].text] != token.text:
                _fail(f"{opened[-1].text} is closed by {token.text}", text, token)
            opened.pop()
        elif token.text == ";" and opened:
            break
        if token.kind == "line" or token.text == ";":
            if not opened:
                parts.append([])
            continue
        parts[-1].append(token)
    if opened:
        _fail(f"the bracket {opened[-1].text} is never closed", text, opened[-1])
    return [part for part in parts if part]


def _check_neighbours(text: str, tokens: list[Token]) -> None:
    """Whether each token may follow the one before it."""
    signs = 0
    for before, token in zip([None, *tokens], [*tokens, None], strict=True):
        if token and token.text in PREFIX and not (before and before.ends_operand):
            signs += 1
            if signs > MAX_NESTING:
                _fail(f"more than {MAX_NESTING} signs in a row", text, token)
        else:
            signs = 0
        _check_pair(text, before, token)


def _check_pair(text: str, before: Token | None, token: Token | None) -> None:
    if before and token and before.ends_operand:
        _check_after_operand(text, before, token)
        return
    needs_operand = before and (before.text in BINARY or before.text in PREFIX or before.text in ("=", "."))
    range_start = before and token and (before.text, token.text) == ("=", ":")  # sum[t=:n]
    if before and needs_operand and not range_start and not (token and token.starts_operand):
        raise ExpressionError(f"something is missing after {before.text}", text, before.end)
    if before and before.text == "." and token and token.kind != "name":
        _fail("a dot is followed by T, for the transpose", text, token)
    open_range = before and token and (before.text, token.text) == (":", ",")  # x[1:, 0]
    if token and (token.text in BINARY - PREFIX or token.text in (".", ",", "=")) and not open_range:
        _fail(f"something is missing before {token.text}", text, token)
    if before and token and (before.text, token.text) == ("[", "]"):
        _fail("something is missing between the brackets", text, token)


def _check_after_operand(text: str, before: Token, token: Token) -> None:
    if before.kind == "number" and token.text in OPERATOR_WORDS and before.end == token.start:
        _fail(f"a space is missing before {token.text}", text, token)
    new_operand = token.kind in ("name", "number", "text") or token.text in ("~", "not")
    uncallable = before.kind in ("number", "text") and token.text in CLOSING
    if new_operand or uncallable or (before.text == ")" and token.text == "("):
        left, right = text[before.start : before.end][-20:], text[token.start : token.end][:20]
        if before.kind == "number" and token.kind == "name" and before.end == token.start:
            _fail(f"write {before.text}*{token.text} for a product; a name does not start with a digit", text, token)
        _fail(f"an operator is missing between {left} and {right}; a product is written with *", text, token)


class _Brackets:
    """What stands where in one statement: the `=` of its definition, of keywords and of ranges, colons, chains."""

    def __init__(self, text: str, code: list[str]) -> None:
        self.text, self.code = text, code
        self.levels: list[str] = []  # "call", "group", "subscript" or "reduction", from the outside in
        self.chains = [0]  # operators on each level since its last comma
        self.colons: list[int] = []  # for each open reduction, in its present item; -1 before the item's `=`

    def check(self, tokens: list[Token]) -> int | None:
        """Check all tokens; the number of the token `=` that makes the statement a definition."""
        equals = None
        for k, token in enumerate(tokens):
            if token.text == "=" and not self.levels:
                if equals is not None:
                    _fail("a second = in one statement; a comparison is written ==", self.text, token)
                equals = k
            else:
                self.step(tokens, k, token)
        return equals

    def step(self, tokens: list[Token], k: int, token: Token) -> None:
        if token.text in CLOSING:
            self.open(tokens, k)
        elif token.text in (")", "]"):
            self.close(tokens, k)
        elif token.text in BINARY or token.text == ".":
            self.chains[-1] += 1
            if sum(self.chains) > MAX_CHAIN:
                _fail("too many operators in one expression; name an intermediate: S = …; …", self.text, token)
        elif token.text == ",":
            self.chains[-1] = 0
            if self.levels and self.levels[-1] == "reduction":
                self.end_range(token)
        elif token.text == "=":
            self.equals(tokens, k)
        elif token.text == ":":
            self.colon(token)
        self.reduction_item(tokens, k)

    def open(self, tokens: list[Token], k: int) -> None:
        before = tokens[k - 1] if k else None
        follows = before is not None and before.ends_operand
        if tokens[k].text == "(":
            level = "call" if follows else "group"
            if not follows and tokens[k + 1].text == ")":
                _fail("something is missing between the brackets", self.text, tokens[k + 1])
        else:
            level = "subscript" if follows else "list"
            if before and before.kind == "name" and before.text in REDUCTIONS:
                level = "reduction"
                self.colons.append(-1)
        self.levels.append(level)
        self.chains.append(0)

    def close(self, tokens: list[Token], k: int) -> None:
        self.chains.pop()
        if self.levels.pop() != "reduction":
            return
        self.end_range(tokens[k])
        self.colons.pop()
        if k + 1 == len(tokens) or tokens[k + 1].text != "(":
            _fail("the brackets with the indices are followed by (…), as in sum[i](x[i])", self.text, tokens[k])

    def reduction_item(self, tokens: list[Token], k: int) -> None:
        """The token after `[` or `,` in the brackets of a reduction is an index, alone or with its range."""
        if not (self.levels and self.levels[-1] == "reduction" and tokens[k].text in ("[", ",")):
            return
        index, after = tokens[k + 1], tokens[k + 2].text if k + 2 < len(tokens) else ""
        if index.kind != "name" or after not in ("=", ",", "]"):
            _fail("an index is a name, alone or with a range: sum[i, t=0:n](…)", self.text, index)

    def equals(self, tokens: list[Token], k: int) -> None:
        starts = k >= 2 and tokens[k - 1].kind == "name" and tokens[k - 2].text in ("(", "[", ",")
        if starts and self.levels[-1] == "reduction":
            self.colons[-1] = 0
            self.code[tokens[k].start] = ":"
        elif not starts or self.levels[-1] != "call":
            _fail("= has no meaning here; a comparison is written ==", self.text, tokens[k])

    def colon(self, token: Token) -> None:
        level = self.levels[-1] if self.levels else ""
        if level == "reduction":
            self.colons[-1] += 1
            if self.colons[-1] > 1:
                _fail("a range has a start and an end only: t=0:n", self.text, token)
        elif level != "subscript":
            _fail("a colon stands in index brackets only; shapes are declared beside the expression", self.text, token)

    def end_range(self, token: Token) -> None:
        if self.colons[-1] == 0:
            _fail("a range is written with a colon, as in t=0:n", self.text, token)
        self.colons[-1] = -1

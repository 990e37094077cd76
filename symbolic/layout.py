"""One walk over the tree of a formula, with brackets only where they are needed; the spellings are in text and latex.

How tightly things bind, from loose to tight: sums, products (⊙, /, side by side), powers, single signs. A big Σ reaches
to the end of its product, so it stands last or in brackets.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Expr, Integer, Mul, Pow, Rational, S, Symbol
from sympy.core.numbers import Infinity, NegativeInfinity

from gradproof.symbolic.expr import Access, Index
from gradproof.symbolic.nodes import (
    ONE,
    Big,
    Call,
    Delta,
    Hadamard,
    Identity,
    MatrixPower,
    Name,
    Node,
    Norm,
    Number,
    Ones,
    Over,
    Pattern,
    Power,
    Relation,
    Spread,
    Sum,
    Times,
    Transpose,
    Unit,
)
from gradproof.symbolic.system import System
from gradproof.symbolic.terms import decimal, name_key

SUM, HADAMARD, PRODUCT, POWER, ATOM = range(5)
Piece = tuple[str, int]  # text, and how tightly its loosest part binds


class Printer:
    """Writes a tree; subclasses spell the single signs."""

    minus = "−"
    odot, oslash = " ⊙ ", " ⊘ "

    def __init__(self, system: System) -> None:
        self.system = system

    # --- what subclasses spell

    def name(self, name: str, at: tuple[Expr | None, ...] = ()) -> str:
        raise NotImplementedError

    def symbol(self, symbol: Symbol) -> str:
        raise NotImplementedError

    def raised(self, base: str, exponent: str) -> str:
        raise NotImplementedError

    def lowered(self, base: str, index: str) -> str:
        raise NotImplementedError

    def root(self, inside: str, simple: bool) -> str:
        raise NotImplementedError

    def fraction(self, top: Piece, bottom: Piece) -> Piece:
        raise NotImplementedError

    def bracket(self, inside: str, square: bool = False) -> str:
        raise NotImplementedError

    def function(self, name: str) -> str:
        raise NotImplementedError

    def beside(self, parts: Sequence[str], nodes: Sequence[Node]) -> str:
        raise NotImplementedError

    def big(self, op: str, below: str, above: str) -> str:
        raise NotImplementedError

    def relation(self, op: str, left: str, right: str) -> str:
        raise NotImplementedError

    def iverson(self, condition: str) -> str:
        raise NotImplementedError

    def norm(self, inside: str) -> str:
        raise NotImplementedError

    ones = identity = unit_vector = unit_matrix = delta = transpose_sign = transpose_inverse = infinity = pi = ""
    frobenius = dagger = ""

    # --- the walk

    def write(self, node: Node) -> str:
        return self.piece(node)[0]

    def piece(self, node: Node) -> Piece:
        return getattr(self, f"on_{type(node).__name__.lower()}")(node)

    def tight(self, node: Node, level: int, square: bool = False) -> str:
        """The node, in brackets if it binds more loosely than `level`."""
        text, own = self.piece(node)
        return text if own >= level else self.bracket(text, square)

    def on_number(self, node: Number) -> Piece:
        return self.expr(node.value)

    def on_name(self, node: Name) -> Piece:
        return self.name(node.name, node.at), POWER if is_inverse(node) else ATOM

    def on_ones(self, node: Ones) -> Piece:
        return self.ones, ATOM

    def on_identity(self, node: Identity) -> Piece:
        return self.identity, ATOM

    def on_unit(self, node: Unit) -> Piece:
        letter = self.unit_matrix if node.rank == 2 else self.unit_vector
        return self.lowered(letter, self.indices(node.place)), ATOM

    def on_delta(self, node: Delta) -> Piece:
        return self.lowered(self.delta, self.indices((node.left, node.right))), ATOM

    def on_spread(self, node: Spread) -> Piece:
        return self.piece(node.base)

    def on_sum(self, node: Sum) -> Piece:
        text = ""
        for place, (sign, term) in enumerate(node.terms):
            inner = self.tight(term, HADAMARD)
            mark = self.minus if sign < 0 else "+"
            text += f" {mark} {inner}" if place else f"{self.minus}{inner}" if sign < 0 else inner
        return text, SUM

    def on_times(self, node: Times) -> Piece:
        parts: list[str] = []
        last = len(node.factors) - 1
        for place, factor in enumerate(node.factors):
            after_bracket = place == 1 == last and isinstance(node.factors[0], Over) and not node.factors[0].rank
            parts.append(self.part(node, factor, place == last, after_bracket))
        return self.beside(parts, node.factors), HADAMARD if isinstance(node.factors[-1], Hadamard | Over) else PRODUCT

    def part(self, node: Times, factor: Node, last: bool, square: bool) -> str:
        """One factor of a product written side by side."""
        if isinstance(factor, Big) and last and len(node.factors) > 1:
            return self.piece(factor)[0]
        if isinstance(factor, Times):  # a dot product that stands behind a vector
            return self.bracket(self.piece(factor)[0])
        text, level = self.piece(factor)
        spread = isinstance(factor, Hadamard) or (isinstance(factor, Over) and factor.bottom.rank)
        if spread and last and not any(other.rank for other in node.factors[:-1]):
            return text  # 2 x ⊙ y
        return text if level >= POWER else self.bracket(text, square)

    def on_hadamard(self, node: Hadamard) -> Piece:
        if not node.rank:
            return self.on_times(Times(node.factors))
        parts = []
        for factor in node.factors:
            text, level = self.piece(factor)
            chain = isinstance(factor, Times) or (isinstance(factor, Over) and factor.rank > 0)
            parts.append(self.bracket(text) if level < PRODUCT or chain or isinstance(factor, Big) else text)
        return self.odot.join(parts), HADAMARD

    def on_over(self, node: Over) -> Piece:
        top, bottom = node.top, node.bottom
        if is_root(top) and is_root(bottom):
            inside = self.fraction(*(self.expr(side.value.base) for side in (top, bottom)))
            return self.root(inside[0], False), POWER
        if not bottom.rank:
            return self.fraction_of(top, bottom)
        above = self.piece(top)
        left = above[0] if above[1] >= POWER or isinstance(top, Hadamard) else self.bracket(above[0])
        return f"{left}{self.oslash}{self.tight(bottom, POWER)}", HADAMARD

    def fraction_of(self, top: Node, bottom: Node) -> Piece:
        return self.fraction(self.piece(top), self.piece(bottom))

    def on_power(self, node: Power) -> Piece:
        base, exponent = node.base, node.exponent
        if exponent == Number(S.Half):
            text, level = self.piece(base)
            return self.root(text, level == ATOM), POWER
        if isinstance(base, Norm):
            return self.raised(self.piece(base)[0], self.exponent(exponent)), POWER
        mark = self.dagger if base.rank == 2 and not isinstance(base, Spread) else ""
        return self.raised(self.tight(base, ATOM), mark + self.exponent(exponent)), POWER

    def exponent(self, node: Node) -> str:
        return self.squeezed(self.write(node))

    def on_matrixpower(self, node: MatrixPower) -> Piece:
        exponent = str(node.exponent).replace("-", self.minus)
        if is_inverse(node.base):
            return self.raised(self.name(node.base.name[:-4]), self.minus + exponent), POWER
        return self.raised(self.tight(node.base, ATOM), exponent), POWER

    def on_transpose(self, node: Transpose) -> Piece:
        if is_inverse(node.base):
            return self.raised(self.name(node.base.name[:-4]), self.transpose_inverse), POWER
        return self.raised(self.tight(node.base, ATOM), self.transpose_sign), POWER

    def on_call(self, node: Call) -> Piece:
        if node.function == "absolute":
            return self.bars(self.write(node.args[0])), ATOM
        if node.function == "where" and isinstance(node.args[0], Relation | Pattern):
            args = ", ".join([self.condition(node.args[0]), *map(self.write, node.args[1:])])
        else:
            args = ", ".join(map(self.write, node.args[:1] if node.function == "onehot" else node.args))
        return self.function(node.function) + self.bracket(args), ATOM

    def bars(self, inside: str) -> str:
        return f"|{inside}|"

    def on_norm(self, node: Norm) -> Piece:
        text = self.norm(self.write(node.base))
        return (self.lowered(text, self.frobenius) if node.base.rank == 2 else text), ATOM

    def on_relation(self, node: Relation | Pattern) -> Piece:
        return self.iverson(self.condition(node)), ATOM

    on_pattern = on_relation

    def condition(self, node: Relation | Pattern) -> str:
        op, left, right = node.op, node.left, node.right
        if isinstance(node, Pattern):
            return self.related(op, node.left, node.right)
        if isinstance(left, Number) and isinstance(right, Number):
            return self.related(op, left.value, right.value)
        letter = [isinstance(side, Number) and isinstance(side.value, Index) for side in (left, right)]
        after = not isinstance(right, Number) and name_key(right) < name_key(left)
        if letter[1] or (not letter[0] and (isinstance(left, Number) or after)):
            op, left, right = REVERSED[op], right, left
        return self.relation(op, self.write(left), self.write(right))

    def related(self, op: str, left: Expr, right: Expr) -> str:
        op, left, right = solved(op, left, right)
        return self.relation(op, self.expr(left)[0], self.expr(right)[0])

    def on_big(self, node: Big) -> Piece:
        body, level = self.piece(node.body)
        body = body if level >= HADAMARD else self.bracket(body)
        signs = self.signs(node)
        return self.beside([*signs, body], [*([node] * len(signs)), node.body]), PRODUCT

    def signs(self, node: Big) -> list[str]:
        """One Σ for letters that run over whole axes, one each where ranges are shown."""
        letters = [letter for letter, _, _ in node.axes]
        conditions = self.conditions(node)
        if all(node.full):
            if len(letters) == 1 and len(conditions) == 1 and conditions[0].startswith(letters[0].name):
                return [self.big(node.op, conditions[0], "")]
            return [self.big(node.op, self.indices(letters) + (": " if conditions else "") + ", ".join(conditions), "")]
        signs = []
        for place, (letter, lo, hi) in enumerate(node.axes):
            low, high = (self.squeezed(self.expr(bound)[0]) for bound in (lo, hi - 1))
            more = conditions if place == len(node.axes) - 1 else []
            signs.append(self.big(node.op, ", ".join([f"{letter}={low}", *more]), high))
        return signs

    def conditions(self, node: Big) -> list[str]:
        """The conditions under a Σ; two bounds of one letter are written as one: j−m < i ≤ j."""
        letters = {letter for letter, _, _ in node.axes}
        found = []
        for op, left, right in node.conditions:
            inside = sorted((x for x in letters if (left - right).has(x)), key=str)
            found.append(solved(op, left, right, inside[0] if inside else None))
        lower = next((c for c in found if c[0] in (">", ">=") and c[1] in letters), None)
        upper = next((c for c in found if c[0] in ("<", "<=") and lower and c[1] == lower[1]), None)
        texts = []
        if lower and upper:
            found = [c for c in found if c not in (lower, upper)]
            left = self.relation(REVERSED[lower[0]], self.squeezed(self.expr(lower[2])[0]), lower[1].name)
            texts.append(self.relation(upper[0], left, self.squeezed(self.expr(upper[2])[0])))
        return texts + [self.relation(op, *(self.squeezed(self.expr(x)[0]) for x in (a, b))) for op, a, b in found]

    def squeezed(self, text: str) -> str:
        return text

    # --- numbers and indices

    def indices(self, indices: Sequence[Expr | None]) -> str:
        texts = [self.free_axis if index is None else self.squeezed(self.expr(index)[0]) for index in indices]
        alike = {text.isdigit() for text in texts} in ({True}, {False}) and all(len(text) == 1 for text in texts)
        return ("" if alike else ",").join(texts)

    free_axis = "·"

    def expr(self, expr: Expr) -> Piece:
        """A number, a size, a letter or an index expression."""
        if isinstance(expr, (Infinity, NegativeInfinity)):
            return ("" if expr > 0 else self.minus) + self.infinity, ATOM
        if expr is S.Pi:
            return self.pi, ATOM
        if expr is S.Exp1:
            return "e", ATOM
        if isinstance(expr, Integer):
            return str(abs(expr)) if expr >= 0 else f"{self.minus}{-expr}", ATOM if expr >= 0 else SUM
        if isinstance(expr, Rational):
            return self.rational(expr)
        if isinstance(expr, Index):
            return expr.name, ATOM
        if isinstance(expr, Symbol):
            return self.symbol(expr), ATOM
        if isinstance(expr, Access):
            return self.name(expr.name, expr.indices), ATOM
        if isinstance(expr, Add):
            return self.affine(expr), SUM
        if isinstance(expr, Mul):
            return self.monomial(expr)
        if isinstance(expr, Pow):
            return self.numeric_power(expr)
        inside = ", ".join(self.expr(arg)[0] for arg in expr.args)
        return self.function(type(expr).__name__.lower()) + self.bracket(inside), ATOM

    def rational(self, expr: Rational) -> Piece:
        sign = self.minus if expr < 0 else ""
        decimal = decimal(abs(expr))
        if decimal:
            mantissa, _, power = decimal.partition("e")
            if not power:
                return sign + mantissa, ATOM if not sign else SUM
            scale = self.raised("10", power.replace("-", self.minus))
            return sign + (scale if mantissa == "1" else f"{mantissa}·{scale}"), PRODUCT if not sign else SUM
        text, level = self.fraction((str(abs(expr.p)), ATOM), (str(expr.q), ATOM))
        return sign + text, SUM if sign else level

    def affine(self, expr: Add) -> str:
        def key(term: Expr) -> tuple[bool, bool, str]:
            return _is_negative(term), term.is_Number, str(term)

        text = ""
        for place, term in enumerate(sorted(expr.args, key=key)):
            inner = self.expr(-term if _is_negative(term) else term)[0]
            if place:
                text += f" {self.minus if _is_negative(term) else '+'} {inner}"
            else:
                text = (self.minus if _is_negative(term) else "") + inner
        return text

    def monomial(self, expr: Mul) -> Piece:
        if _is_negative(expr):
            return self.minus + self.expr(-expr)[0], SUM
        top, bottom = [], []
        for factor in expr.args:
            if isinstance(factor, Rational):
                top += [Integer(factor.p)] if factor.p != 1 else []
                bottom += [Integer(factor.q)] if factor.q != 1 else []
            elif isinstance(factor, Pow) and factor.exp.is_negative:
                bottom.append(1 / factor)
            else:
                top.append(factor)
        if bottom:
            return self.fraction(self.factors(top), self.factors(bottom))
        return self.factors(top)

    def factors(self, factors: Sequence[Expr]) -> Piece:
        roots = [f.base for f in factors if isinstance(f, Pow) and f.exp == S.Half and f.is_number]
        if len(roots) > 1:  # √2 √π = √(2π)
            inside = self.beside([self.expr(base)[0] for base in roots], [Number(base) for base in roots])
            others = [factor for factor in factors if not (isinstance(factor, Pow) and factor.base in roots)]
            root = self.root(inside, False)
            return (self.beside([root, self.factors(others)[0]], [ONE, ONE]), PRODUCT) if others else (root, POWER)
        if not factors:
            return "1", ATOM
        if len(factors) == 1:
            return self.expr(factors[0])
        ordered = sorted(factors, key=lambda f: (not f.is_number, str(f)))
        nodes = [Number(f) for f in ordered]
        return self.beside([self.tight(node, PRODUCT) for node in nodes], nodes), PRODUCT

    def numeric_power(self, expr: Pow) -> Piece:
        if expr.exp == S.Half:
            text, level = self.expr(expr.base)
            return self.root(text, level == ATOM), POWER
        if expr.exp.is_negative:
            return self.fraction(("1", ATOM), self.expr(1 / expr))
        base, level = self.expr(expr.base)
        base = base if level == ATOM else self.bracket(base)
        return self.raised(base, self.squeezed(self.expr(expr.exp)[0])), POWER


def is_inverse(node: Node) -> bool:
    """Whether a node is an array that is called the inverse of another."""
    return isinstance(node, Name) and node.name.endswith("_inv") and not any(node.at)


def is_root(node: Node) -> bool:
    return isinstance(node, Number) and isinstance(node.value, Pow) and node.value.exp == S.Half


def _is_negative(term: Expr) -> bool:
    number = term.as_coeff_Mul()[0]
    return bool(number.is_negative)


REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def solved(op: str, left: Expr, right: Expr, letter: Index | None = None) -> tuple[str, Expr, Expr]:
    """A relation with a letter alone on its left: i ≥ 1 for 0 ≤ i − 1.

    >>> solved("<=", Integer(0), Index("i") - 1)
    ('>=', i, 1)
    """
    if left.has(Access) or right.has(Access):
        swap = op in ("==", "!=") and isinstance(left, Index) and not isinstance(right, Index) and letter != left
        return (op, right, left) if swap else (op, left, right)
    difference = (right - left).expand()
    candidates = [letter] if letter is not None else sorted(difference.atoms(Index), key=str)
    for own in candidates:
        slope = difference.coeff(own)
        if slope in (1, -1):
            rest = (-slope * (difference - slope * own)).expand()
            return REVERSED[op] if slope == 1 else op, own, rest
    return op, left, right

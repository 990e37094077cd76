"""One walk over the tree of a formula, with brackets only where they are needed; the spellings are in text and latex.

How tightly things bind, from loose to tight: sums, products (⊙, /, side by side), powers, single signs. A big Σ reaches
to the end of its product, so it stands last or in brackets.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from sympy import Expr, Pow, S

from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.equations.roles import PLAIN, Kind
from gradproof.symbolic.printing.nodes import (
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
from gradproof.symbolic.printing.numerals import (
    ATOM,
    HADAMARD,
    POWER,
    PRODUCT,
    REVERSED,
    SUM,
    NumeralPrinter,
    Piece,
    bounded,
    solved,
)
from gradproof.symbolic.printing.terms import name_key


class Printer(NumeralPrinter):
    """Writes a tree; subclasses spell the single signs."""

    odot, oslash, both = " ⊙ ", " ⊘ ", " ∧ "
    ones = identity = unit_vector = unit_matrix = delta = transpose_sign = transpose_inverse = ""
    frobenius = dagger = axis = ""

    # --- what subclasses spell

    @abstractmethod
    def beside(self, parts: Sequence[str], nodes: Sequence[Node]) -> str: ...

    @abstractmethod
    def big(self, op: str, below: str, above: str) -> str: ...

    @abstractmethod
    def iverson(self, condition: str) -> str: ...

    @abstractmethod
    def norm(self, inside: str) -> str: ...

    def side_by_side(self, parts: Sequence[str]) -> str:
        return self.beside(parts, [Number(S.One)] * len(parts))

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
        return self.name(node.name, node.at), POWER if self.inverted(node) else ATOM

    def on_ones(self, node: Ones) -> Piece:
        return self.ones, ATOM

    def on_identity(self, node: Identity) -> Piece:
        return self.sign(self.identity, "I"), ATOM

    def on_unit(self, node: Unit) -> Piece:
        letter = self.sign(self.unit_matrix, "E") if node.rank == 2 else self.sign(self.unit_vector, "e")
        return self.lowered(letter, self.indices(node.place)), ATOM

    def on_delta(self, node: Delta) -> Piece:
        return self.lowered(self.sign(self.delta, "delta"), self.indices((node.left, node.right))), ATOM

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
        roots = [root_of(side) for side in (top, bottom)]
        if None not in roots:
            inside = self.fraction(*(self.expr(root) for root in roots))
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
        if matrix := self.inverted(node.base):
            return self.raised(matrix, self.minus + exponent), POWER
        return self.raised(self.tight(node.base, ATOM), exponent), POWER

    def on_transpose(self, node: Transpose) -> Piece:
        if matrix := self.inverted(node.base):
            return self.raised(matrix, self.transpose_inverse), POWER
        return self.raised(self.tight(node.base, ATOM), self.transpose_sign), POWER

    def on_call(self, node: Call) -> Piece:
        if node.function == "absolute":
            return self.bars(self.write(node.args[0])), ATOM
        tests = getattr(node.args[0], "factors", node.args[:1]) if node.function == "where" else ()
        if tests and all(isinstance(test, Relation | Pattern) for test in tests):
            args = ", ".join([self.both.join(map(self.condition, tests)), *map(self.write, node.args[1:])])
        else:
            args = ", ".join(map(self.write, node.args[:1] if node.function == "onehot" else node.args))
        name = self.function(node.function)
        if node.over is not None:
            axis = f"{self.axis}{node.over}" if isinstance(node.over, int) else self.expr(node.over)[0]
            name = self.lowered(name, axis)
        return name + self.bracket(args), ATOM

    def inverted(self, node: Node) -> str:
        """A where a node is A⁻¹; '' for other nodes."""
        if not (isinstance(node, Name) and node.inverse):
            return ""
        role = self.role(node.name)
        source = role.source or PLAIN
        text = self.spelled(role.of, source)[0]
        return self.bracket(text) if source.kind is Kind.INVERSE else text

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

    def on_big(self, node: Big) -> Piece:
        body, level = self.piece(node.body)
        body = body if level >= HADAMARD else self.bracket(body)
        signs = self.signs(node)
        return self.beside([*signs, body], [*([node] * len(signs)), node.body]), PRODUCT

    def signs(self, node: Big) -> list[str]:
        """One Σ for letters that run over whole axes, one each where ranges are shown."""
        letters = [letter for letter, _, _ in node.axes]
        first, conditions = self.conditions(node)
        if all(node.full):
            if len(conditions) == 1 and letters == [first]:
                return [self.big(node.op, conditions[0], "")]
            return [self.big(node.op, self.indices(letters) + (": " if conditions else "") + ", ".join(conditions), "")]
        signs = []
        for place, (letter, lo, hi) in enumerate(node.axes):
            low, high = (self.squeezed(self.expr(bound)[0]) for bound in (lo, hi - 1))
            more = conditions if place == len(node.axes) - 1 else []
            signs.append(self.big(node.op, ", ".join([f"{letter}={low}", *more]), high))
        return signs

    def conditions(self, node: Big) -> tuple[Expr | None, list[str]]:
        """The conditions under a Σ, and what the first one is of; two bounds of one thing are one: 0 ≤ i−2 k < m."""
        letters = {letter for letter, _, _ in node.axes}
        found = []
        for op, left, right in node.conditions:
            inside = sorted((x for x in letters if (left - right).has(x)), key=str)
            found.append(bounded(*solved(op, left, right, inside[0] if inside else None), letters))
        texts = []
        for lower in [c for c in found if c[0] in (">", ">=")]:
            upper = next((c for c in found if c[0] in ("<", "<=") and c[1] == lower[1]), None)
            if upper:
                found = [c for c in found if c not in (lower, upper)]
                low, middle, high = (self.squeezed(self.expr(x)[0]) for x in (lower[2], lower[1], upper[2]))
                texts.append(self.relation(upper[0], self.relation(REVERSED[lower[0]], low, middle), high))
        first = None if texts or not found else found[0][1]
        return first, texts + [
            self.relation(op, *(self.squeezed(self.expr(x)[0]) for x in (a, b))) for op, a, b in found
        ]


def root_of(node: Node) -> Expr | None:
    """x where a node is the number √x."""
    root = isinstance(node, Number) and isinstance(node.value, Pow) and node.value.exp == S.Half
    return node.value.base if root and isinstance(node, Number) else None

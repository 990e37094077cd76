"""Spell array operations as the array libraries of Python agree to spell them; where they differ, `table` says how.

A library's own emitter gives the tables and replaces the few methods that are more than another word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sympy import Expr, Mul, Rational, Symbol

from gradproof.numeric.emitters.arguments import Arguments
from gradproof.numeric.emitters.numbers import ADD, ATOM, COMPARE, MUL, POSTFIX, POWER, UNARY
from gradproof.numeric.emitters.statements import StatementEmitter
from gradproof.numeric.lowering.nodes import REDUCTIONS, Node, extent, factors, is_inverse
from gradproof.symbolic.equations.system import Array


class Emitter(StatementEmitter):
    """Spells nodes. `table` and `functions` hold the forms of operations, `helpers` and `imports` what these call."""

    in_place = False  # whether its programs may write into arrays
    table: Mapping[str, str]
    functions: Mapping[str, str]
    helpers: Mapping[str, str] = {}
    imports: Mapping[str, str]
    axis_word, keep_word = "axis", "keepdims"

    @classmethod
    def ufuncs(cls) -> frozenset[str]:
        """The functions that can write into an array."""
        return frozenset()

    @classmethod
    def arguments(cls, arrays: Iterable[Array], sizes: Iterable[Symbol], device: str) -> Arguments:
        """How a function takes its arguments; the library is imported here first."""
        return Arguments.of(arrays, sizes)

    def decorator(self, risky: bool, sizes: Sequence[str]) -> str:
        """The line above the function. `risky`: both branches of a `where` are computed; `sizes` are arguments."""
        return ""

    def decorate(self, function: Callable[..., Any], risky: bool, sizes: Sequence[str]) -> Callable[..., Any]:
        """The function as that line makes it."""
        return function

    # ---------------------------------------------------------------------------------------------------- expressions

    def expression(self, node: Node, level: int = COMPARE) -> str:
        """The spelling of a node, in brackets if it binds less tightly than `level`."""
        if node not in self.spelled:
            self.spelled[node] = self._node(node)
        text, own = self.spelled[node]
        return f"({text})" if own < level else text

    def _node(self, node: Node) -> tuple[str, int]:
        method: Callable[[Node], tuple[str, int]] | None = getattr(self, f"spell_{node.op}", None)
        if method is not None:
            return method(node)
        return self.form(node.op, *map(self.expression, node.args)), POSTFIX

    def spell_array(self, node: Node) -> tuple[str, int]:
        return node.data[0], ATOM

    def spell_scalar(self, node: Node) -> tuple[str, int]:
        return self.numbered(node.data[0])

    def spell_arange(self, node: Node) -> tuple[str, int]:
        lo, hi = map(self.number, node.data)
        return self.form("arange0" if lo == "0" else "arange", lo, hi), POSTFIX

    def spell_eye(self, node: Node) -> tuple[str, int]:
        return self.form("eye", self.number(node.shape[0])), POSTFIX

    def spell_float(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        if arg.op == "eye":
            return self.form("eye_float", self.number(arg.shape[0]), dtype=self.typed()), POSTFIX
        return self.cast(arg), POSTFIX

    def cast(self, node: Node) -> str:
        """Booleans or whole numbers as floats."""
        if not node.rank:
            return self.form("float_number", self.expression(node), dtype=self.dtype or "float")
        return self.form("float", self.expression(node, POSTFIX), dtype=self.dtype or "float")

    def spell_call(self, node: Node) -> tuple[str, int]:
        text, form = self.called(node.data[0], node.args), self.functions[node.data[0]]
        return (text[1:-1], ADD) if form[0] == "(" and form[-1] == ")" else (text, POSTFIX)  # a formula in brackets

    def called(self, function: str, args: Sequence[Node]) -> str:
        return self.use(self.functions[function]).format(*map(self.expression, args))

    def spell_compare(self, node: Node) -> tuple[str, int]:
        (left, right), sign = node.args, node.data[0]
        if extent(left) < extent(right) or left.op == "scalar":  # the number stands on the right
            left, right, sign = right, left, MIRRORED[sign]
        return f"{self.expression(left, ADD)} {sign} {self.expression(right, ADD)}", COMPARE

    def spell_where(self, node: Node) -> tuple[str, int]:
        return self.chosen(*node.args), POSTFIX

    def chosen(self, condition: Node, a: Node, b: Node) -> str:
        return self.form("where", *map(self.expression, (condition, a, b)))

    # -------------------------------------------------------------------------------------------------- sums, products

    def spell_add(self, node: Node) -> tuple[str, int]:
        return self.sum_of(node.args), ADD

    def sum_of(self, args: Sequence[Node]) -> str:
        terms = [self.term(arg) for arg in sorted(args, key=lambda arg: (-extent(arg), arg.op == "scalar"))]
        terms = [t for t in terms if not t[0]] + [t for t in terms if t[0]]
        if terms[0][0]:  # all are subtracted
            first = max(args, key=lambda arg: (extent(arg), arg.op != "scalar"))
            terms = [(False, self.expression(first, MUL)), *(self.term(arg) for arg in args if arg is not first)]
        text = terms[0][1]
        return text + "".join(f" {'-' if negative else '+'} {part}" for negative, part in terms[1:])

    def term(self, node: Node, level: int = MUL) -> tuple[bool, str]:
        """Whether a term of a sum is subtracted, and its absolute value."""
        if node.op == "mul":
            return self.quotient(node.args)
        if node.op == "scalar" and node.data[0].could_extract_minus_sign():
            return True, self.bracketed(-node.data[0], MUL)
        return False, self.expression(node, level)

    def spell_mul(self, node: Node) -> tuple[str, int]:
        negative, text = self.quotient(node.args, alone=True)
        if not negative:
            return text, MUL
        number, arrays = split(node.args)
        if any(arg.op == "matmul" for arg in arrays):
            return f"-({text})", UNARY
        alone = len(arrays) == 1 and not is_inverse(arrays[0]) and number == -1
        return f"-{text}", UNARY if alone else MUL  # -a * b is (-a) * b

    def quotient(self, args: Sequence[Node], alone: bool = False) -> tuple[bool, str]:
        """A product as scalar numerator / scalar denominator * arrays / arrays; the sign apart.

        `alone` says that a sign would stand before it, which NumPy refuses for booleans.
        """
        value, arrays = split(args)
        negative = value.could_extract_minus_sign()
        top, bottom = self.fraction(-value if negative else value)
        below = [arg for arg in arrays if is_inverse(arg)]
        above = sorted(
            (arg for arg in arrays if arg not in below),
            key=lambda arg: (extent(arg), arg.kind == "b", arg.op == "add"),
        )
        if alone and negative and not top and above and above[0].kind == "b":
            rest = [self.expression(arg, UNARY) for arg in above[1:]]
            text = " * ".join([self.cast(above[0]), *rest])
            return negative, self.divided(text, [*bottom, *(self.inverse(arg) for arg in below)])
        if bottom and not top and above and not below:  # x / 2
            return negative, self.divided(self.times([], above), bottom)
        if bottom and top and above:  # 2 / n * x
            top, bottom = [self.divided(" * ".join(top), bottom)], []
        text = self.times(top, above) if top or above else "1"
        return negative, self.divided(text, [*bottom, *(self.inverse(arg) for arg in below)])

    def times(self, numbers: Sequence[str], arrays: Sequence[Node]) -> str:
        first = [self.expression(arg, UNARY if numbers or k else MUL) for k, arg in enumerate(arrays)]
        return " * ".join([*numbers, *first])

    def inverse(self, node: Node) -> str:
        return self.power(node.args[0], -node.args[1].data[0], UNARY)

    def spell_pow(self, node: Node) -> tuple[str, int]:
        if is_inverse(node):
            return f"1 / {self.inverse(node)}", MUL
        if node.args[1].op == "scalar":
            exponent = node.args[1].data[0]
            return self.power(node.args[0], exponent, ADD), POSTFIX if exponent == Rational(1, 2) else POWER
        return f"{self.expression(node.args[0], POSTFIX)} ** {self.expression(node.args[1], POSTFIX)}", POWER

    def power(self, base: Node, exponent: Expr, level: int) -> str:
        if exponent == 1:
            return self.expression(base, level)
        if exponent == Rational(1, 2):
            return self.form("sqrt", self.expression(base))
        return f"{self.expression(base, POSTFIX)} ** {self.bracketed(exponent, POSTFIX)}"

    def spell_matmul(self, node: Node) -> tuple[str, int]:
        left, right = node.args
        chain = left.op == "matmul"
        return f"{self.expression(left, MUL if chain else UNARY)} @ {self.expression(right, UNARY)}", MUL

    def spell_tensordot(self, node: Node) -> tuple[str, int]:
        axes = self.axes_of(node.data)
        return self.form("tensordot", *map(self.expression, node.args), axes=str(axes)), POSTFIX

    def axes_of(self, axes: Sequence[Sequence[int]]) -> tuple[int | list[int], ...]:
        return tuple(axis[0] if len(axis) == 1 else list(axis) for axis in axes)

    def spell_einsum(self, node: Node) -> tuple[str, int]:
        arguments = ", ".join(map(self.expression, node.args))
        return self.form("einsum", subscripts=node.data[0], arguments=arguments), POSTFIX

    # ----------------------------------------------------------------------------------------------------- reductions

    def reduction(self, node: Node, keep: bool = False) -> tuple[str, int]:
        (arg,) = node.args
        axes: Any = node.data[0] if len(node.data) == 1 else tuple(node.data)
        if node.op == "sum" and arg.op == "diagonal" and arg.rank == 1:
            return self.form("trace", self.expression(arg.args[0])), POSTFIX
        options = [] if len(node.data) == arg.rank and not keep else [f"{self.axis_word}={axes}"]
        options += [f"{self.keep_word}=True"] if keep else []
        return self.form(node.op, self.expression(arg, POSTFIX), options=", ".join(options)), POSTFIX

    def spell_cumsum(self, node: Node) -> tuple[str, int]:
        return self.form("cumsum", self.expression(node.args[0], POSTFIX), axis=str(node.data[0])), POSTFIX

    spell_sum = spell_max = spell_prod = spell_mean = reduction

    # ---------------------------------------------------------------------------------------------------------- views

    def spell_view(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        axes = [axis for axis in node.data if axis is not None]
        new = tuple(k for k, axis in enumerate(node.data) if axis is None)
        if arg.op in REDUCTIONS and new == arg.data and axes == sorted(axes):
            return self.reduction(arg, keep=True)
        text = self.permuted(self.expression(arg, POSTFIX), axes)
        if not new:
            return text, POSTFIX
        if arg.rank > 1 and new == (arg.rank,):
            return f"{text}[..., None]", POSTFIX
        marks = ["None" if axis is None else ":" for axis in node.data]
        return f"{text}[{', '.join(marks[: new[-1] + 1])}]", POSTFIX

    def permuted(self, text: str, axes: Sequence[int]) -> str:
        if list(axes) == sorted(axes):
            return text
        if len(axes) == 2:
            return f"{text}.T"
        moved = [k for k, axis in enumerate(axes) if k != axis]
        if len(moved) == 2:
            return f"{text}.swapaxes({moved[0]}, {moved[1]})"
        return self.form("transpose", text, axes=", ".join(map(str, axes)))

    def spell_index(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        return self.expression(arg, POSTFIX) + self.subscript(node.data, arg.shape), POSTFIX

    def spell_flip(self, node: Node) -> tuple[str, int]:
        return self.flipped(self.expression(node.args[0], POSTFIX), node.data[0]), POSTFIX

    def flipped(self, text: str, axis: int) -> str:
        return f"{text}[{':, ' * axis}::-1]"

    def spell_diagonal(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        one, two = self.axis_word + "1", self.axis_word + "2"
        axes = "" if node.data == (0, 1) else f"{one}={node.data[0]}, {two}={node.data[1]}"
        return f"{self.expression(arg, POSTFIX)}.diagonal({axes})", POSTFIX

    def spell_windows(self, node: Node) -> tuple[str, int]:
        (arg,), (axis, width) = node.args, node.data
        return self.windowed(arg, axis, self.number(width)), POSTFIX

    def windowed(self, arg: Node, axis: int, width: str) -> str:
        options = f", axis={axis}" if arg.rank > 1 else ""
        return self.form("windows", self.expression(arg), width=width, axis=options)

    def spell_take(self, node: Node) -> tuple[str, int]:
        array, *indices = node.args
        marks = [":"] * (max(node.data) + 1)
        for axis, index in zip(node.data, indices, strict=True):
            marks[axis] = self.expression(index)
        return f"{self.expression(array, POSTFIX)}[{', '.join(marks)}]", POSTFIX

    def spell_empty(self, node: Node) -> tuple[str, int]:
        return self.allocate(node.op, node.shape), POSTFIX

    spell_zeros = spell_ones = spell_empty

    def spell_full(self, node: Node) -> tuple[str, int]:
        """An array of its own that holds one value along some axes."""
        (value,) = node.args
        text = self.expression(value, self.repeated_level)
        if value.op != "scalar":
            return self.form("full", text, shape=self.shape(node.shape)), POSTFIX
        if node.shape in self.like and value.data[0] == 0:
            return self.form("zeros_like", like=self.like[node.shape]), POSTFIX
        if node.shape in self.like:
            return self.form("full_like", text, like=self.like[node.shape]), POSTFIX
        dtype = self.typed() or ", float"
        return self.form("full_number", text, shape=self.shape(node.shape), dtype=dtype), POSTFIX

    def spell_copy(self, node: Node) -> tuple[str, int]:
        return self.form("copy", self.expression(node.args[0], POSTFIX)), POSTFIX

    def spell_squeeze(self, node: Node) -> tuple[str, int]:
        last = node.data[0] == node.args[0].rank - 1
        return f"{self.expression(node.args[0], POSTFIX)}[{'..., 0' if last else '..., 0, :'}]", POSTFIX

    def spell_clip(self, node: Node) -> tuple[str, int]:
        return self.form("clip", self.expression(node.args[0]), self.number(node.data[0])), POSTFIX

    def spell_reshape(self, node: Node) -> tuple[str, int]:
        grouped = next((k for k, size in enumerate(node.shape) if isinstance(size, Mul)), None)
        sizes = ["-1" if k == grouped else self.number(size) for k, size in enumerate(node.shape)]
        return f"{self.expression(node.args[0], POSTFIX)}.reshape({', '.join(sizes)})", POSTFIX

    def spell_broadcast(self, node: Node) -> tuple[str, int]:
        return self.form("broadcast", self.expression(node.args[0]), shape=self.shape(node.shape)), POSTFIX

    def spell_place(self, node: Node) -> tuple[str, int]:
        pads = []
        for place, size in zip(node.data, node.shape, strict=True):
            pads.append((self.number(place.start), self.number((size - place.stop).expand())))
        return self.padded(self.expression(node.args[0]), pads), POSTFIX

    def padded(self, text: str, pads: Sequence[tuple[str, str]]) -> str:
        texts = [f"({before}, {behind})" for before, behind in pads]
        return self.form("pad", text, pads=texts[0] if len(texts) == 1 else f"({', '.join(texts)})")


def split(args: Sequence[Node]) -> tuple[Expr, list[Node]]:
    """The number in a product, and its other factors."""
    every = [part for arg in args for part in factors(arg)]
    return Mul(*(arg.data[0] for arg in every if arg.op == "scalar")), [arg for arg in every if arg.op != "scalar"]


MIRRORED = {"<": ">", "<=": ">=", "==": "==", "!=": "!="}

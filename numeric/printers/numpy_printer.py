"""Print array operations as NumPy code.

What differs from another library stands in `TABLE` and the `FUNCTIONS`; `torch_printer.py` replaces those. A node that
has a name is printed by its name. A few operations need statements (a scatter-add, a block put into zeros, a loop):
their printed form is the right side of an assignment followed by further lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sympy import Expr, Mul, Rational

from gradproof.numeric.lowering.nodes import Node
from gradproof.numeric.printers.number_printer import ADD, ATOM, COMPARE, MUL, POSTFIX, POWER, UNARY
from gradproof.numeric.printers.statement_printer import REDUCTIONS, StatementPrinter
from gradproof.symbolic.equations.functions import ELEMENTWISE

TABLE = {
    "arange": "np.arange({0}, {1})",
    "arange0": "np.arange({1})",
    "eye": "np.eye({0}, dtype=bool)",
    "eye_float": "np.eye({0}{dtype})",
    "float": "{0}.astype({dtype})",
    "where": "np.where({0}, {1}, {2})",
    "sqrt": "np.sqrt({0})",
    "dot": "np.vdot({0}, {1})",
    "diag": "np.diag({0})",
    "trace": "np.trace({0})",
    "clip": "np.clip({0}, 0, {1})",
    "tensordot": "np.tensordot({0}, {1}, axes={axes})",
    "einsum": "np.einsum({subscripts!r}, {arguments})",
    "windows": "sliding_window_view({0}, {width}{axis})",
    "sum": "{0}.sum({options})",
    "mean": "{0}.mean({options})",
    "max": "{0}.max({options})",
    "prod": "{0}.prod({options})",
    "broadcast": "np.broadcast_to({0}, {shape})",
    "full": "np.full({shape}, {0})",
    "full_number": "np.full({shape}, {0}{dtype})",
    "full_like": "np.full_like({like}, {0})",
    "zeros": "np.zeros({shape}{dtype})",
    "zeros_like": "np.zeros_like({like})",
    "empty": "np.empty({shape}{dtype})",
    "empty_like": "np.empty_like({like})",
    "scatter": "np.add.at({target}, {places}, {values})",
    "transpose": "{0}.transpose({axes})",
    "copy": "{0}.copy()",
    "inv": "np.linalg.inv({0})",
    "solve": "np.linalg.solve({0}, {1})",
    "det": "np.linalg.det({0})",
    "logdet": "np.linalg.slogdet({0})[1]",
    "inf": "np.inf",
}

FUNCTIONS = {
    **{name: entry.numpy for name, entry in ELEMENTWISE.items()},
    "sigmoid": "sigmoid({})",
    "maximum": "np.maximum({}, {})",
    "log1p": "np.log1p({})",
    "expm1": "np.expm1({})",
    "logaddexp": "np.logaddexp({}, {})",
}

HELPERS = {
    "sigmoid(": '''def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)
''',
    "erf(": '''try:
    from scipy.special import erf
except ImportError:

    def erf(x):
        """The error function, entry by entry."""
        values = [math.erf(value) for value in np.ravel(x)]
        return np.array(values, x.dtype).reshape(np.shape(x))
''',
}
IMPORTS = {
    "math.": "import math",
    "np.": "import numpy as np",
    "sliding_window_view(": "from numpy.lib.stride_tricks import sliding_window_view",
}


class NumpyPrinter(StatementPrinter):
    """Prints nodes, given the names of some of them.

    >>> from sympy import Symbol
    >>> from gradproof.numeric.lowering.nodes import Graph
    >>> g, n = Graph(), Symbol("n")
    >>> x = g.array("x", (n,))
    >>> NumpyPrinter({}).doprint(g.reduce("sum", g.pow(x, g.scalar(2)), [0]))
    '(x ** 2).sum()'
    """

    table: Mapping[str, str] = TABLE
    functions: Mapping[str, str] = FUNCTIONS
    helpers: Mapping[str, str] = HELPERS
    imports: Mapping[str, str] = IMPORTS
    axis_word, keep_word = "axis", "keepdims"
    decorator: str = '@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # np.where computes both branches'

    def decorated(self) -> bool:
        return self.risky

    def decorate(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import numpy as np

        return np.errstate(divide="ignore", over="ignore", invalid="ignore")(function)

    # ---------------------------------------------------------------------------------------------------- expressions

    def expression(self, node: Node, level: int = COMPARE) -> str:
        """The printed form of a node, in brackets if it binds less tightly than `level`."""
        if node in self.names:
            return self.names[node]
        text, own = self._node(node)
        return f"({text})" if own < level else text

    def unnamed(self, node: Node) -> str:
        return self._node(node)[0]

    def _node(self, node: Node) -> tuple[str, int]:
        method = getattr(self, f"print_{node.op}", None)
        if method is not None:
            return method(node)
        return self.form(node.op, *map(self.expression, node.args)), POSTFIX

    def print_array(self, node: Node) -> tuple[str, int]:
        return node.data[0], ATOM

    def print_scalar(self, node: Node) -> tuple[str, int]:
        return self.numbered(node.data[0])

    def print_arange(self, node: Node) -> tuple[str, int]:
        lo, hi = map(self.number, node.data)
        return self.form("arange0" if lo == "0" else "arange", lo, hi), POSTFIX

    def print_eye(self, node: Node) -> tuple[str, int]:
        return self.form("eye", self.number(node.shape[0])), POSTFIX

    def print_float(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        if arg.op == "eye" and arg not in self.names:
            return self.form("eye_float", self.number(arg.shape[0]), dtype=self.typed()), POSTFIX
        return self.cast(arg), POSTFIX

    def cast(self, node: Node) -> str:
        """Booleans or whole numbers as floats."""
        if not node.rank:
            return f"float({self.expression(node)})"
        return self.form("float", self.expression(node, POSTFIX), dtype=self.dtype or "float")

    def print_call(self, node: Node) -> tuple[str, int]:
        text = self.called(node.data[0], node.args)
        if text[0] == "(" and text[-1] == ")":  # a formula in brackets
            return text[1:-1], ADD
        return text, POSTFIX

    def called(self, function: str, args: Sequence[Node]) -> str:
        return self.functions[function].format(*map(self.expression, args))

    def print_compare(self, node: Node) -> tuple[str, int]:
        (left, right), sign = node.args, node.data[0]
        if extent(left) < extent(right) or left.op == "scalar":  # the number stands on the right
            left, right, sign = right, left, MIRRORED[sign]
        return f"{self.expression(left, ADD)} {sign} {self.expression(right, ADD)}", COMPARE

    def print_where(self, node: Node) -> tuple[str, int]:
        self.risky = self.risky or node.data[0]
        return self.chosen(*node.args), POSTFIX

    def chosen(self, condition: Node, a: Node, b: Node) -> str:
        return self.form("where", *map(self.expression, (condition, a, b)))

    # -------------------------------------------------------------------------------------------------- sums, products

    def print_add(self, node: Node) -> tuple[str, int]:
        return self.sum_of(node.args), ADD

    def sum_of(self, args: Sequence[Node]) -> str:
        terms = [self.term(arg) for arg in sorted(args, key=lambda arg: (-extent(arg), arg.op == "scalar"))]
        terms = [t for t in terms if not t[0]] + [t for t in terms if t[0]]
        if terms[0][0]:  # all are subtracted
            first = max(args, key=lambda arg: (extent(arg), arg.op != "scalar"))
            terms = [(False, self.expression(first, MUL)), *(self.term(arg) for arg in args if arg is not first)]
        text = terms[0][1]
        return text + "".join(f" {'-' if negative else '+'} {part}" for negative, part in terms[1:])

    def term(self, node: Node) -> tuple[bool, str]:
        """Whether a term of a sum is subtracted, and its absolute value."""
        if node not in self.names:
            if node.op == "mul":
                return self.quotient(node.args)
            if node.op == "scalar" and node.data[0].could_extract_minus_sign():
                return True, self.bracketed(-node.data[0], MUL)
        return False, self.expression(node, MUL)

    def print_mul(self, node: Node) -> tuple[str, int]:
        negative, text = self.quotient(node.args, alone=True)
        if not negative:
            return text, MUL
        if "@" in text:
            return f"-({text})", UNARY
        return f"-{text}", UNARY if " " not in text else MUL  # -a * b is (-a) * b

    def quotient(self, args: Sequence[Node], alone: bool = False) -> tuple[bool, str]:
        """A product as scalar numerator / scalar denominator * arrays / arrays; the sign apart.

        `alone` says that a sign would stand before it, which NumPy refuses for booleans.
        """
        args = [part for arg in args for part in self.factors(arg)]
        value = Mul(*(arg.data[0] for arg in args if arg.op == "scalar" and arg not in self.names))
        negative = value.could_extract_minus_sign()
        top, bottom = self.fraction(-value if negative else value)
        above = [arg for arg in args if arg.op != "scalar" or arg in self.names]
        below = [arg for arg in above if self.is_inverse(arg)]
        above = sorted(
            (arg for arg in above if arg not in below),
            key=lambda arg: (extent(arg), arg.kind == "b", arg.op == "add" and arg not in self.names),
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

    def factors(self, node: Node) -> list[Node]:
        if node.op != "mul" or node in self.names:
            return [node]
        return [part for arg in node.args for part in self.factors(arg)]

    def times(self, numbers: Sequence[str], arrays: Sequence[Node]) -> str:
        first = [self.expression(arg, UNARY if numbers or k else MUL) for k, arg in enumerate(arrays)]
        return " * ".join([*numbers, *first])

    def is_inverse(self, node: Node) -> bool:
        return (
            node not in self.names
            and node.op == "pow"
            and node.args[1].op == "scalar"
            and node.args[1].data[0].is_number
            and node.args[1].data[0].is_negative
        )

    def inverse(self, node: Node) -> str:
        return self.power(node.args[0], -node.args[1].data[0], UNARY)

    def print_pow(self, node: Node) -> tuple[str, int]:
        if self.is_inverse(node):
            return f"1 / {self.inverse(node)}", MUL
        if node.args[1].op == "scalar":
            text = self.power(node.args[0], node.args[1].data[0], ADD)
            return text, POSTFIX if text.endswith(")") and " ** " not in text else POWER
        return f"{self.expression(node.args[0], POSTFIX)} ** {self.expression(node.args[1], POSTFIX)}", POWER

    def power(self, base: Node, exponent: Expr, level: int) -> str:
        if exponent == 1:
            return self.expression(base, level)
        if exponent == Rational(1, 2):
            return self.form("sqrt", self.expression(base))
        return f"{self.expression(base, POSTFIX)} ** {self.bracketed(exponent, POSTFIX)}"

    def print_matmul(self, node: Node) -> tuple[str, int]:
        left, right = node.args
        chain = left.op == "matmul" and left not in self.names
        return f"{self.expression(left, MUL if chain else UNARY)} @ {self.expression(right, UNARY)}", MUL

    def print_tensordot(self, node: Node) -> tuple[str, int]:
        axes = self.axes_of(node.data)
        return self.form("tensordot", *map(self.expression, node.args), axes=str(axes)), POSTFIX

    def axes_of(self, axes: Sequence[Sequence[int]]) -> tuple[int | list[int], ...]:
        return tuple(axis[0] if len(axis) == 1 else list(axis) for axis in axes)

    def print_einsum(self, node: Node) -> tuple[str, int]:
        arguments = ", ".join(map(self.expression, node.args))
        return self.form("einsum", subscripts=node.data[0], arguments=arguments), POSTFIX

    # ----------------------------------------------------------------------------------------------------- reductions

    def reduction(self, node: Node, keep: bool = False) -> tuple[str, int]:
        (arg,) = node.args
        axes: Any = node.data[0] if len(node.data) == 1 else tuple(node.data)
        if node.op == "sum" and arg.op == "diagonal" and arg.rank == 1 and arg not in self.names:
            return self.form("trace", self.expression(arg.args[0])), POSTFIX
        options = [] if len(node.data) == arg.rank and not keep else [f"{self.axis_word}={axes}"]
        options += [f"{self.keep_word}=True"] if keep else []
        return self.form(node.op, self.expression(arg, POSTFIX), options=", ".join(options)), POSTFIX

    print_sum = print_max = print_prod = print_mean = reduction

    # ---------------------------------------------------------------------------------------------------------- views

    def print_view(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        axes = [axis for axis in node.data if axis is not None]
        new = tuple(k for k, axis in enumerate(node.data) if axis is None)
        if arg.op in REDUCTIONS and arg not in self.names and new == arg.data and axes == sorted(axes):
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

    def print_index(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        return self.expression(arg, POSTFIX) + self.subscript(node.data, arg.shape), POSTFIX

    def print_flip(self, node: Node) -> tuple[str, int]:
        return self.flipped(self.expression(node.args[0], POSTFIX), node.data[0]), POSTFIX

    def flipped(self, text: str, axis: int) -> str:
        return f"{text}[{':, ' * axis}::-1]"

    def print_diagonal(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        one, two = self.axis_word + "1", self.axis_word + "2"
        axes = "" if node.data == (0, 1) else f"{one}={node.data[0]}, {two}={node.data[1]}"
        return f"{self.expression(arg, POSTFIX)}.diagonal({axes})", POSTFIX

    def print_windows(self, node: Node) -> tuple[str, int]:
        (arg,), (axis, width) = node.args, node.data
        return self.windowed(arg, axis, self.number(width)), POSTFIX

    def windowed(self, arg: Node, axis: int, width: str) -> str:
        options = f", axis={axis}" if arg.rank > 1 else ""
        return self.form("windows", self.expression(arg), width=width, axis=options)

    def print_take(self, node: Node) -> tuple[str, int]:
        array, *indices = node.args
        marks = [":"] * (max(node.data) + 1)
        for axis, index in zip(node.data, indices, strict=True):
            marks[axis] = self.expression(index)
        return f"{self.expression(array, POSTFIX)}[{', '.join(marks)}]", POSTFIX

    def print_squeeze(self, node: Node) -> tuple[str, int]:
        last = node.data[0] == node.args[0].rank - 1
        return f"{self.expression(node.args[0], POSTFIX)}[{'..., 0' if last else '..., 0, :'}]", POSTFIX

    def print_clip(self, node: Node) -> tuple[str, int]:
        return self.form("clip", self.expression(node.args[0]), self.number(node.data[0])), POSTFIX

    def print_reshape(self, node: Node) -> tuple[str, int]:
        grouped = next((k for k, size in enumerate(node.shape) if isinstance(size, Mul)), None)
        sizes = ["-1" if k == grouped else self.number(size) for k, size in enumerate(node.shape)]
        return f"{self.expression(node.args[0], POSTFIX)}.reshape({', '.join(sizes)})", POSTFIX

    def print_broadcast(self, node: Node) -> tuple[str, int]:
        return self.form("broadcast", self.expression(node.args[0]), shape=self.shape(node.shape)), POSTFIX

    def print_place(self, node: Node) -> tuple[str, int]:
        pads = []
        for place, size in zip(node.data, node.shape, strict=True):
            pads.append(f"({self.number(place.start)}, {self.number((size - place.stop).expand())})")
        return self.padded(self.expression(node.args[0]), pads), POSTFIX

    def padded(self, text: str, pads: Sequence[str]) -> str:
        return f"np.pad({text}, {pads[0] if len(pads) == 1 else '(' + ', '.join(pads) + ')'})"


def extent(node: Node) -> int:
    """The number of axes along which a node is longer than 1."""
    return sum(size != 1 for size in node.shape)


MIRRORED = {"<": ">", "<=": ">=", "==": "==", "!=": "!="}

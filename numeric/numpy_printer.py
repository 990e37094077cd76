"""Print array operations as NumPy code.

What differs from another library stands in `TABLE` and the `FUNCTIONS`; `torch_printer.py` replaces those. A node that
has a name is printed by its name. A few operations need statements (a scatter-add, a block put into zeros, a loop):
their printed form is the right side of an assignment followed by further lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy
from sympy import Expr, Integer, Max, Min, Mul, Pow, Rational, Symbol

from gradproof.numeric.nodes import Cut, Node, Place, identifier
from gradproof.numeric.statements import Fill, Lines, Loop, Store, Target
from gradproof.symbolic.functions import ELEMENTWISE

if TYPE_CHECKING:
    from gradproof.numeric.arguments import Arguments

COMPARE, ADD, MUL, UNARY, POWER, POSTFIX, ATOM = range(7)  # how tightly a printed form binds
INDENT = "    "

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
    "erf(": '''def erf(x):
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


class NumpyPrinter:
    """Prints nodes, given the names of some of them.

    >>> from gradproof.numeric.nodes import Graph
    >>> g, n = Graph(), Symbol("n")
    >>> x = g.array("x", (n,))
    >>> NumpyPrinter({}).doprint(g.reduce("sum", g.pow(x, g.scalar(2)), [0]))
    '(x ** 2).sum()'
    """

    table: Mapping[str, str] = TABLE
    functions: Mapping[str, str] = FUNCTIONS
    helpers: Mapping[str, str] = HELPERS
    imports: Mapping[str, str] = IMPORTS
    decorator: str = '@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # np.where computes both branches'

    def __init__(self, names: dict[Node, str], like: Mapping[tuple[Expr, ...], str] | None = None, dtype: str = "") -> None:
        self.names = names
        self.like = dict(like or {})  # an input of each shape, for zeros_like
        self.risky = False  # whether a line computes something undefined that `where` throws away
        self.dtype = dtype  # where results take their type of number from, such as X.dtype

    # ----------------------------------------------------------------------------------- what sympy.lambdify asks for

    def doprint(self, item: Any) -> str:
        if isinstance(item, Target):
            return f"{item.comment}{item.name}"
        if isinstance(item, Symbol):
            return str(item.name)
        if isinstance(item, Lines):
            return self.lines(item)
        return self.expression(item) if isinstance(item, Node) else str(item)

    def lines(self, item: Lines) -> str:
        """The right side of an assignment and the lines that follow it."""
        text, rest = self.assigned(item.target, item.first)
        for statement in item.rest:
            rest += self.statement(statement)
        return f"\n{INDENT}".join([text, *rest])

    def statement(self, item: Store | Loop | Fill) -> list[str]:
        if isinstance(item, Loop):
            order = f"range({self.bounds(item.start, item.stop)})"
            head = f"for {item.letter} in {f'reversed({order})' if item.down else order}:"
            return [head, *(INDENT + line for part in item.body for line in self.statement(part))]
        if isinstance(item, Fill):
            return [f"{item.name} = {self.allocate('empty', item.shape)}"]
        target = f"{item.name}{self.subscript(item.places, item.shape)}" if item.places else item.name
        text, rest = self.assigned(target, item.node)
        return [f"{target} = {text}", *rest]

    def bounds(self, start: Expr, stop: Expr) -> str:
        return self.number(stop) if start == 0 else f"{self.number(start)}, {self.number(stop)}"

    def assigned(self, target: str, node: Node | Fill) -> tuple[str, list[str]]:
        """What stands behind `target =`, and the lines that complete it."""
        if isinstance(node, Fill):
            return self.allocate("empty", node.shape), []
        if node in self.names and self.names[node] != target:
            return self.names[node], []
        if node.op == "broadcast":
            return self.full(node), []
        terms = node.args if node.op == "add" else (node,)
        later = [term for term in terms if term.op in STATEMENTS and (term is node or term not in self.names)]
        if node.op == "place" and len(terms) == 1 and self.paddable(node):
            later = []
        if not later:
            return self._node(node)[0], []
        first = [term for term in terms if term not in later]
        if not first:
            text = self.allocate("zeros", node.shape)
        elif len(first) == 1:
            text = self.expression(first[0])
            text = self.form("copy", text) if first[0] in self.names or first[0].op in VIEWS else text
        else:
            text = self.sum_of(first)
        lines = [self.put(target, term, "=" if term is node else "+=") for term in later]
        return text, lines

    def overlap(self, target: str, term: Node) -> str:
        """Add blocks, one column after another."""
        columns, steps = term.data
        values = self.expression(term.args[0], POSTFIX)
        counts = term.args[0].shape
        marks = []
        for step in steps:
            if step is None:
                marks.append(":")
                continue
            axis, count, width = step
            start = columns[axis]
            stop = (start + width * (count - 1) + 1).expand()
            marks.append(f"{start}:{self.number(stop)}" + (f":{self.number(width)}" if width != 1 else ""))
        while marks[-1] == ":":
            marks.pop()
        lines = [f"{INDENT * k}for {column} in range({self.number(counts[k])}):" for k, column in enumerate(columns)]
        inside = ", ".join(map(str, columns))
        lines.append(f"{INDENT * len(columns)}{target}[{', '.join(marks)}] += {values}[{inside}]")
        return f"\n{INDENT}".join(lines)

    def put(self, target: str, term: Node, sign: str) -> str:
        if term.op == "place":
            return f"{target}{self.subscript(term.data, term.shape)} {sign} {self.expression(term.args[0])}"
        if term.op == "overlap":
            return self.overlap(target, term)
        values, *places = map(self.expression, term.args)
        inside = places[0] if len(places) == 1 else f"({', '.join(places)})"
        return self.table["scatter"].format(target=target, places=inside, values=values)

    # -------------------------------------------------------------------------------------------- the whole function

    def read_sizes(self, arguments: Arguments, used: Sequence[Symbol]) -> list[tuple[Target, str]]:
        """The lines that read sizes off the arrays."""
        found: list[tuple[Target, str]] = []
        for array in arguments.arrays:
            name = identifier(array.name)
            mine = {r.axis: r.size for r in arguments.readings.values() if r.array == array.name and r.size in used}
            plain = {axis: size for axis, size in mine.items() if array.shape[axis] == size}
            if array.rank == 1 and plain:
                found.append((Target(plain[0].name), f"len({name})"))
            elif len(plain) == 1:
                ((axis, size),) = plain.items()
                found.append((Target(size.name), f"{name}.shape[{axis}]"))
            elif plain:
                names = [plain[axis].name if axis in plain else "_" for axis in range(array.rank)]
                found.append((Target(", ".join(names)), f"{name}.shape"))
        for reading in arguments.readings.values():
            if reading.size in used and (reading.slope != 1 or reading.rest != 0):
                text = f"{identifier(reading.array)}.shape[{reading.axis}]"
                text += "".join(f" {'-' if sign else '+'} {part}" for sign, part in self.size_terms(-reading.rest))
                found.append((Target(reading.size.name), text if reading.slope == 1 else f"({text}) // {reading.slope}"))
        return found

    def size_terms(self, value: Expr) -> list[tuple[bool, str]]:
        terms = sorted(sympy.Add.make_args(value), key=lambda t: (t.is_number, str(t)))
        signs = [term.could_extract_minus_sign() for term in terms]
        return [(s, self.bracketed(-t if s else t, MUL)) for s, t in zip(signs, terms, strict=True) if t != 0]

    def namespace(self) -> dict[str, Any]:
        """What the lines of a function may call."""
        found: dict[str, Any] = {}
        exec("\n".join([*self.imports.values(), *self.helpers.values()]), found)
        return found

    def complete(self, head: str, docstring: str, body: str) -> str:
        """A file that stands alone: imports, helpers, the function."""
        helpers = [text for mark, text in self.helpers.items() if re.search(rf"(?<![\w.]){re.escape(mark)}", body)]
        decorator = f"{self.decorator}\n" if self.risky and self.decorator else ""
        whole = "\n\n".join([*helpers, f'{decorator}{head}    """{docstring}"""\n{body}'])
        imports = [line for mark, line in self.imports.items() if re.search(rf"(?<![\w.]){re.escape(mark)}", whole)]
        imports += [] if "import numpy as np" in imports or "np." not in decorator else ["import numpy as np"]
        return "\n".join(imports) + ("\n\n\n" if imports else "") + whole

    def guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as it runs here: quiet about what `where` throws away."""
        import numpy as np

        if not self.risky:
            return function
        return np.errstate(divide="ignore", over="ignore", invalid="ignore")(function)

    # ---------------------------------------------------------------------------------------------------- expressions

    def expression(self, node: Node, level: int = COMPARE) -> str:
        """The printed form of a node, in brackets if it binds less tightly than `level`."""
        if node in self.names:
            return self.names[node]
        text, own = self._node(node)
        return f"({text})" if own < level else text

    def _node(self, node: Node) -> tuple[str, int]:
        method = getattr(self, f"print_{node.op}", None)
        if method is not None:
            return method(node)
        if node.op in self.table:
            return self.form(node.op, *map(self.expression, node.args)), POSTFIX
        raise NotImplementedError(node.op)

    def form(self, key: str, *args: str, **options: str) -> str:
        return self.table[key].format(*args, **options)

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
        return self.form("float", self.expression(arg, POSTFIX), dtype=self.dtype or "float"), POSTFIX

    def print_call(self, node: Node) -> tuple[str, int]:
        return self.functions[node.data[0]].format(*map(self.expression, node.args)), POSTFIX

    def print_compare(self, node: Node) -> tuple[str, int]:
        (left, right), sign = node.args, node.data[0]
        if extent(left) < extent(right) or left.op == "scalar":  # the number stands on the right
            left, right, sign = right, left, MIRRORED[sign]
        return f"{self.expression(left, ADD)} {sign} {self.expression(right, ADD)}", COMPARE

    def print_where(self, node: Node) -> tuple[str, int]:
        self.risky = self.risky or node.data[0]
        return self.form("where", *map(self.expression, node.args)), POSTFIX

    # -------------------------------------------------------------------------------------------------- sums, products

    def print_add(self, node: Node) -> tuple[str, int]:
        return self.sum_of(node.args), ADD

    def sum_of(self, args: Sequence[Node]) -> str:
        terms = [self.term(arg) for arg in sorted(args, key=lambda arg: (-extent(arg), arg.op == "scalar"))]
        terms = [t for t in terms if not t[0]] + [t for t in terms if t[0]]
        text = ("-" if terms[0][0] else "") + terms[0][1]
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
        negative, text = self.quotient(node.args)
        if not negative:
            return text, MUL
        simple = len([arg for arg in node.args if arg.op != "scalar"]) == 1 and " " not in text
        return (f"-{text}", UNARY) if simple else (f"-({text})" if "@" in text else f"-{text}", UNARY)

    def quotient(self, args: Sequence[Node]) -> tuple[bool, str]:
        """A product as scalar numerator / scalar denominator * arrays / arrays; the sign apart."""
        args = [part for arg in args for part in self.factors(arg)]
        value = Mul(*(arg.data[0] for arg in args if arg.op == "scalar" and arg not in self.names))
        negative = value.could_extract_minus_sign()
        top, bottom = self.fraction(-value if negative else value)
        above = [arg for arg in args if arg.op != "scalar" or arg in self.names]
        below = [arg for arg in above if self.is_inverse(arg)]
        above = [arg for arg in above if arg not in below]
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
        arrays = sorted(arrays, key=lambda arg: (extent(arg), arg.op == "add" and arg not in self.names))
        first = [self.expression(arg, UNARY if numbers or k else MUL) for k, arg in enumerate(arrays)]
        return " * ".join([*numbers, *first])

    def divided(self, text: str, bottom: Sequence[str]) -> str:
        if not bottom:
            return text
        return f"{text} / {bottom[0]}" if len(bottom) == 1 else f"{text} / ({' * '.join(bottom)})"

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
        axes = tuple(axis[0] if len(axis) == 1 else list(axis) for axis in node.data)
        return self.form("tensordot", *map(self.expression, node.args), axes=str(axes)), POSTFIX

    def print_einsum(self, node: Node) -> tuple[str, int]:
        arguments = ", ".join(map(self.expression, node.args))
        return self.form("einsum", subscripts=node.data[0], arguments=arguments), POSTFIX

    # ----------------------------------------------------------------------------------------------------- reductions

    def reduction(self, node: Node, keep: bool = False) -> tuple[str, int]:
        (arg,) = node.args
        axes: Any = node.data[0] if len(node.data) == 1 else tuple(node.data)
        if node.op == "sum" and arg.op == "diagonal" and arg.rank == 1 and arg not in self.names:
            return self.form("trace", self.expression(arg.args[0])), POSTFIX
        options = [] if len(node.data) == arg.rank and not keep else [f"axis={axes}"]
        options += ["keepdims=True"] if keep else []
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

    def subscript(self, places: Sequence[Place], shape: Sequence[Expr]) -> str:
        marks = [self.mark(place, size) for place, size in zip(places, shape, strict=True)]
        while len(marks) > 1 and marks[-1] == ":":
            marks.pop()
        return f"[{', '.join(marks)}]"

    def mark(self, place: Place, size: Expr) -> str:
        if not isinstance(place, Cut):
            return self.number((place - size).expand() if (place - size).expand() == -1 else place)
        start = "" if place.start == 0 else self.number(place.start)
        behind = (place.stop - size).expand()
        stop = "" if behind == 0 else self.number(behind if behind.is_Integer and behind < 0 else place.stop)
        return f"{start}:{stop}" + (f":{self.number(sympy.sympify(place.step))}" if place.step != 1 else "")

    def print_flip(self, node: Node) -> tuple[str, int]:
        text = self.expression(node.args[0], POSTFIX)
        return f"{text}[{':, ' * node.data[0]}::-1]", POSTFIX

    def print_diagonal(self, node: Node) -> tuple[str, int]:
        (arg,) = node.args
        axes = "" if node.data == (0, 1) else f"axis1={node.data[0]}, axis2={node.data[1]}"
        return f"{self.expression(arg, POSTFIX)}.diagonal({axes})", POSTFIX

    def print_windows(self, node: Node) -> tuple[str, int]:
        (arg,), (axis, width) = node.args, node.data
        options = f", axis={axis}" if arg.rank > 1 else ""
        return self.form("windows", self.expression(arg), width=self.number(width), axis=options), POSTFIX

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

    def full(self, node: Node) -> str:
        """An array of its own that holds one value along some axes."""
        text = self.expression(node.args[0])
        if node.args[0].op != "scalar":
            return self.form("full", text, shape=self.shape(node.shape))
        if node.shape in self.like:
            return self.form("full_like", text, like=self.like[node.shape])
        return self.form("full_number", text, shape=self.shape(node.shape), dtype=self.typed() or ", float")

    def paddable(self, node: Node) -> bool:
        return all(isinstance(place, Cut) and place.step == 1 for place in node.data)

    def print_place(self, node: Node) -> tuple[str, int]:
        pads = []
        for place, size in zip(node.data, node.shape, strict=True):
            pads.append(f"({self.number(place.start)}, {self.number((size - place.stop).expand())})")
        return self.padded(self.expression(node.args[0]), pads), POSTFIX

    def padded(self, text: str, pads: Sequence[str]) -> str:
        return f"np.pad({text}, {pads[0] if len(pads) == 1 else '(' + ', '.join(pads) + ')'})"

    # -------------------------------------------------------------------------------------------------- new arrays

    def typed(self) -> str:
        return f", dtype={self.dtype}" if self.dtype else ""

    def allocate(self, kind: str, shape: Sequence[Expr]) -> str:
        if tuple(shape) in self.like:
            return self.form(f"{kind}_like", like=self.like[tuple(shape)])
        return self.form(kind, shape=self.shape(shape), dtype=self.typed())

    def shape(self, sizes: Sequence[Expr]) -> str:
        if len(sizes) == 1:
            return self.number(sizes[0])
        return f"({', '.join(map(self.number, sizes))})"

    # ----------------------------------------------------------------------------------------------- numbers and sizes

    def number(self, value: Expr) -> str:
        return self.numbered(value)[0]

    def bracketed(self, value: Expr, level: int) -> str:
        text, own = self.numbered(value)
        return f"({text})" if own < level else text

    def numbered(self, value: Expr) -> tuple[str, int]:
        """A number or an expression in sizes, as plain Python (a Python float does not widen a float32 array)."""
        if isinstance(value, (Integer, Symbol)):
            return str(value), ATOM if not str(value).startswith("-") else UNARY
        if value in CONSTANTS:
            return CONSTANTS[value].format(inf=self.table["inf"]), ATOM if value is not -sympy.oo else UNARY
        if isinstance(value, sympy.Add):
            terms = sorted(value.args, key=lambda t: (t.could_extract_minus_sign(), t.is_number, str(t)))
            signs = [term.could_extract_minus_sign() for term in terms]
            texts = [self.bracketed(-t if s else t, MUL) for t, s in zip(terms, signs, strict=True)]
            text = ("-" if signs[0] else "") + texts[0]
            return text + "".join(f" {'-' if s else '+'} {t}" for t, s in zip(texts[1:], signs[1:], strict=True)), ADD
        if isinstance(value, (Mul, Rational)) or (isinstance(value, Pow) and value.exp.is_number and value.exp < 0):
            negative = value.could_extract_minus_sign()
            top, bottom = self.fraction(-value if negative else value)
            text = self.divided(" * ".join(top) or "1", bottom)
            return (f"-{text}" if negative else text), MUL if len(top) + len(bottom) > 1 or bottom else ATOM
        if isinstance(value, Pow):
            if value.exp == Rational(1, 2):
                return f"math.sqrt({self.number(value.base)})", POSTFIX
            return f"{self.bracketed(value.base, POSTFIX)} ** {self.bracketed(value.exp, POSTFIX)}", POWER
        if isinstance(value, (Max, Min)):
            name = "max" if isinstance(value, Max) else "min"
            return f"{name}({', '.join(map(self.number, sorted(value.args, key=str)))})", POSTFIX
        if isinstance(value, sympy.Float):
            return repr(float(value)), ATOM
        name = {"atan": "atan", "absolute": "abs"}.get(type(value).__name__, type(value).__name__)
        prefix = "" if name == "abs" else "math."
        return f"{prefix}{name}({', '.join(map(self.number, value.args))})", POSTFIX

    def fraction(self, value: Expr) -> tuple[list[str], list[str]]:
        """The factors above and below the line of a positive scalar."""
        top: list[str] = []
        bottom: list[str] = []
        for factor in Mul.make_args(value):
            if isinstance(factor, Rational):
                if (decimal := short_decimal(factor)) is not None:
                    top.append(decimal)
                    continue
                top += [str(factor.p)] if factor.p != 1 else []
                bottom += [str(factor.q)] if factor.q != 1 else []
            elif isinstance(factor, Pow) and factor.exp.is_number and factor.exp < 0:
                bottom.append(self.bracketed(factor.base ** (-factor.exp), UNARY))
            else:
                top.append(self.bracketed(factor, UNARY))
        return top, bottom


def short_decimal(value: Rational) -> str | None:
    """A fraction that was most likely written as a decimal number: 0.044715, but not 3/2 or 1/3.

    >>> short_decimal(Rational(44715, 1000000)), short_decimal(Rational(1, 2))
    ('0.044715', None)
    """
    rest = value.q
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if value.q < 10 or rest != 1 or value.q & (value.q - 1) == 0:
        return None
    text = repr(float(value))
    return text if Rational(text) == value else None


def extent(node: Node) -> int:
    """The number of axes along which a node is longer than 1."""
    return sum(size != 1 for size in node.shape)


MIRRORED = {"<": ">", "<=": ">=", "==": "==", "!=": "!="}
CONSTANTS = {sympy.pi: "math.pi", sympy.E: "math.e", sympy.oo: "{inf}", -sympy.oo: "-{inf}"}
REDUCTIONS = frozenset({"sum", "max", "prod", "mean"})
STATEMENTS = frozenset({"place", "scatter", "overlap"})
VIEWS = frozenset({"array", "view", "index", "flip", "diagonal", "windows", "reshape", "squeeze"})

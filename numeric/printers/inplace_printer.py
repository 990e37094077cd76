"""NumPy code that works in place: for training, where new memory and every pass over an array cost.

    Y = X0 + C @ W + b            →   Y = C @ W;  Y += X0;  Y += b
    E = exp(S − m)                →   E = S − m;  np.exp(E, out=E)
    Σ over j of A[i,j] B[i,j]     →   np.einsum("...i,...i->...", A, B)
    S where the mask allows, else −∞   →   S += np.where(mask, 0, -np.inf)
    P[b,v] − δ(v, y[b])           →   P.copy();  one entry of each row −= 1
    h[t+1] = x[t] + h[t] @ W, in a loop   →   np.matmul(h[t], W, out=h[t + 1]);  h[t + 1] += x[t]

The first operand that is a new array becomes the result. An array that is read for the last time gives its memory to
the result (`np.subtract(S, m, out=S)`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy
from sympy import S

from gradproof.numeric.lowering.nodes import Node, is_scalar
from gradproof.numeric.lowering.statements import Fill, Lines, Loop, Store, Target
from gradproof.numeric.printers.number_printer import POSTFIX
from gradproof.numeric.printers.numpy_printer import HELPERS, TABLE, NumpyPrinter, extent
from gradproof.numeric.printers.statement_printer import STATEMENTS, VIEWS

if TYPE_CHECKING:
    from gradproof.numeric.lowering.schedule import Schedule

FRESH = frozenset({"matmul", "tensordot", "einsum", "add", "mul", "call", "where", "float"})  # a new array each time
PASSED = frozenset({"view", "reshape", "squeeze"})  # a view of a new array is as good

ADD_ROWS = '''def add_rows(target, places, values):
    """target[places[i]] += values[i] for all i in turn: by a product with 0s and 1s, or sorted, for a long target."""
    n, places = len(target), places.reshape(-1)
    values = values.reshape(len(places), target.size // max(n, 1))
    if n <= 96:
        chosen = np.zeros((n, len(places)), values.dtype)
        chosen[places, np.arange(len(places))] = 1
        target += (chosen @ values).reshape(target.shape)
    else:
        places = np.where(places < 0, places + n, places)
        order = np.argsort(places, kind="stable")
        found, starts = np.unique(places[order], return_index=True)
        target[found] += np.add.reduceat(values[order], starts, axis=0).reshape(-1, *target.shape[1:])
'''

SIGMOID = '''def sigmoid(x):
    """1 / (1 + exp(-x)); where exp(-x) is too large for a number, it is 0."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))
'''


class InPlacePrinter(NumpyPrinter):
    """Prints the statements of `NumpyPrinter` with as few new arrays as possible.

    >>> from sympy import Symbol
    >>> from gradproof.numeric.lowering.nodes import Graph
    >>> g, n = Graph(), Symbol("n")
    >>> x, w = g.array("x", (n, n)), g.array("w", (n, n))
    >>> InPlacePrinter({}).assigned("y", g.call("exp", [g.add([x, g.matmul(x, w)])]))
    ('x @ w', ['y += x', 'np.exp(y, out=y)'])
    """

    table: Mapping[str, str] = {**TABLE, "scatter": "add_rows({target}, {places}, {values})"}
    helpers: Mapping[str, str] = {**HELPERS, "add_rows(": ADD_ROWS, "sigmoid(": SIGMOID}

    def __init__(self, *args: Any, overwrite: Iterable[str] = ()) -> None:
        super().__init__(*args)
        self.overwrite = frozenset(overwrite)  # arguments whose memory may be given to results
        self.dying: dict[str, frozenset[str]] = {}  # what each assignment reads for the last time
        self.giving: frozenset[str] = frozenset()  # the same, of the assignment that is being printed

    def prepare(self, schedule: Schedule) -> None:
        self.dying = last_reads(schedule, self.overwrite)

    # ----------------------------------------------------------------------------------------------------- statements

    def assigned(self, target: str, node: Node | Fill) -> tuple[str, list[str]]:
        text, lines = super().assigned(target, node)
        if isinstance(node, Fill) or "[" in target or node.kind != "f" or not node.rank:
            return text, lines
        if self.names.get(node, target) != target or (lines and node.op != "add"):
            return text, lines
        self.giving = self.dying.get(target, frozenset())
        text, lines = self.steps(target, node)
        if self.giving & set(re.findall(r"\w+", " ".join(lines))):  # read once more after it was overwritten
            self.giving = frozenset()
            text, lines = self.steps(target, node)
        self.giving = frozenset()
        return text, lines

    def statement(self, item: Store | Loop | Fill) -> list[str]:
        """A step of a loop is computed where it belongs, without a new array that is copied there."""
        if isinstance(item, Store) and item.places and item.node.kind == "f":
            target = f"{item.name}{self.subscript(item.places, item.shape)}"
            if (lines := self.written(target, item.node)) is not None:
                return [*item.comment, *lines]
        return super().statement(item)

    def written(self, target: str, node: Node) -> list[str] | None:
        """Statements that write a new array into the memory of the target."""
        if node in self.names or not node.rank:
            return None
        if node.op == "matmul" and all(arg.rank == 2 for arg in node.args):
            return [f"np.matmul({', '.join(map(self.expression, node.args))}, out={target})"]
        if node.op == "call":
            ufunc = self.ufunc(node)
            return ufunc and [f"{ufunc[0]}({ufunc[1].format(*map(self.expression, node.args))}, out={target})"]
        if node.op == "mul":
            args = [part for arg in node.args for part in self.factors(arg)]
            if any(arg.op == "scalar" or self.is_inverse(arg) for arg in args):
                return None
            first, *rest = sorted(args, key=lambda arg: -extent(arg))
            return [f"np.multiply({self.expression(first)}, {self.quotient(rest)[1]}, out={target})"]
        if node.op == "add":
            above = [arg for arg in node.args if not self.term(arg)[0] and arg.shape == node.shape]
            for host in sorted(above, key=lambda arg: arg.op != "matmul"):
                if (lines := self.written(target, host)) is not None:
                    return lines + [self.changed(target, arg) for arg in node.args if arg is not host]
        return None

    def changed(self, target: str, term: Node) -> str:
        """The statement that adds a term."""
        minus, what = self.term(term)
        return f"{target} {'-' if minus else '+'}= {what}"

    def ufunc(self, node: Node) -> tuple[str, str] | None:
        """A function that takes `out=`, and the form of its arguments."""
        found = re.fullmatch(r"(np\.\w+)\((.*)\)", self.functions[node.data[0]])
        if not found or sorted(re.findall(r"\{\}|\w+", found[2])) not in (["{}"], ["0", "{}"], ["{}", "{}"]):
            return None
        return found[1], found[2]

    def scattered(self, target: str, places: Sequence[str], values: Node) -> str:
        if len(places) == 1:
            return super().scattered(target, places, values)
        inside = f"({', '.join(places)})"
        return f"np.add.at({target}, {inside}, {self.expression(values)})"

    def steps(self, target: str, node: Node) -> tuple[str, list[str]]:
        """The first value of the target, and the statements that make it the value of the node."""
        method = {
            "add": self.added,
            "mul": self.multiplied,
            "call": self.applied,
            "where": self.masked,
            "view": self.laid_out,
        }.get(node.op)
        made = method(target, node) if method is not None else None
        return made or (self.unnamed(node), [])

    def host(self, node: Node, args: Sequence[Node]) -> Node | None:
        """The operand that becomes the result: a new array of the same shape."""
        found = [arg for arg in args if arg.shape == node.shape and self.fresh(arg)]
        return max(found, key=lambda a: (a.op in (*PASSED, "matmul"), self.given(a, a.args) is not None), default=None)

    def fresh(self, node: Node) -> bool:
        if node in self.names or node.kind != "f":
            return False
        return node.op in FRESH or (node.op in PASSED and self.fresh(node.args[0]))

    def given(self, node: Node, args: Sequence[Node]) -> Node | None:
        """An operand that is read for the last time and gives its memory."""
        return next((a for a in args if self.named(a) in self.giving and a.shape == node.shape), None)

    def named(self, node: Node) -> str | None:
        return self.names.get(node, node.data[0] if node.op == "array" else None)

    def added(self, target: str, node: Node) -> tuple[str, list[str]] | None:
        hot = [arg for arg in node.args if self.one_hot(arg) is not None]
        later = [arg for arg in node.args if arg.op in STATEMENTS and arg not in self.names]
        terms = [arg for arg in node.args if arg not in hot and arg not in later]
        above = [arg for arg in terms if not self.term(arg)[0]]
        host, given = self.host(node, above), self.given(node, above)
        if host is not None:
            text, lines = self.steps(target, host)
            rest = [arg for arg in terms if arg is not host]
        elif given is not None and len(terms) > 1:
            second = next(arg for arg in terms if arg is not given)
            minus, what = self.term(second)
            own = str(self.named(given))
            text, lines = f"np.{'subtract' if minus else 'add'}({own}, {what}, out={own})", []
            rest = [arg for arg in terms if arg not in (given, second)]
        elif hot and len(terms) == 1 and above and above[0].shape == node.shape:
            text, lines, rest = self.form("copy", self.expression(above[0], POSTFIX)), [], []
        elif later and not terms and not hot:
            text, lines, rest = self.allocate("zeros", node.shape), [], []
        else:
            return None
        lines += [self.changed(target, arg) for arg in rest]
        lines += [self.put(target, arg, "+=") for arg in later]
        return text, [*lines, *(str(self.one_hot(arg)).format(target=target) for arg in hot)]

    def one_hot(self, node: Node) -> str | None:
        """δ(v, y[b]) times what does not depend on v, as a statement that changes one entry of each row."""
        if node in self.names or node.rank < 2:
            return None
        factors = self.factors(node)
        found = [place for place in map(self.looked_up, factors) if place is not None]
        rest = [factor for factor in factors if self.looked_up(factor) is None]
        if len(found) != 1 or found[0].shape != (*node.shape[:-1], S.One):
            return None
        if any(factor.rank and (factor.op != "view" or factor.data != found[0].data) for factor in rest):
            return None
        order = found[0].data[:-1]
        negative, value = self.quotient([factor.args[0] if factor.rank else factor for factor in rest])
        if list(order) != sorted(order) and any(factor.rank for factor in rest):
            value = self.permuted(f"({value})" if " " in value else value, order)
        places = [f"np.arange({self.number(size)}){'[:' + ', None' * k + ']'}" for k, size in steps_of(node.shape)]
        places.append(self.permuted(self.expression(found[0].args[0], POSTFIX), order))
        return f"{{target}}[{', '.join(places).replace('[:]', '')}] {'-' if negative else '+'}= {value}"

    def looked_up(self, node: Node) -> Node | None:
        """y[b, None] of a comparison y[b] == v."""
        if node.op == "float" and node not in self.names:
            (node,) = node.args
        if node.op != "compare" or node in self.names or node.data[0] != "==" or node.rank < 2:
            return None
        row, *others = sorted(node.args, key=lambda arg: arg.op != "arange")
        plain = row.op == "arange" and row.data[0] == 0 and row not in self.names
        (place,) = others or (row,)
        known = place.op == "view" and place.rank == node.rank and place.args[0].op == "array"
        known = known and place.data[-1] is None and None not in place.data[:-1]
        return place if plain and known and place.kind == "i" else None

    def multiplied(self, target: str, node: Node) -> tuple[str, list[str]] | None:
        args = [part for arg in node.args for part in self.factors(arg)]
        host, given = self.host(node, args), self.given(node, args)
        if host is not None:
            text, lines = self.steps(target, host)
            return text, lines + self.times_in_place(target, node, [arg for arg in args if arg is not host])
        if given is not None and len(args) == 2:
            own = str(self.named(given))
            (other,) = (arg for arg in args if arg is not given)
            return f"np.multiply({own}, {self.quotient([other])[1]}, out={own})", []
        return None

    def times_in_place(self, target: str, node: Node, args: Sequence[Node]) -> list[str]:
        """Statements that multiply the target: by each full array, then by the product of everything smaller."""
        large = [arg for arg in args if extent(arg) == extent(node)]
        lines = []
        for arg in large:
            if self.is_inverse(arg):
                lines.append(f"{target} /= {self.inverse(arg)}")
            else:
                lines.append(f"{target} *= {self.expression(arg)}")
        if small := [arg for arg in args if arg not in large]:
            negative, text = self.quotient(small)
            text = (f"-({text})" if " " in text else f"-{text}") if negative else text
            lines.append(f"{target} *= {text}")
        return lines

    def applied(self, target: str, node: Node) -> tuple[str, list[str]] | None:
        """A ufunc of a new array, with `out=`."""
        if (ufunc := self.ufunc(node)) is None:
            return None
        name, form = ufunc
        host, given = self.host(node, node.args), self.given(node, node.args)
        chosen = host or given
        if chosen is None or node.args.count(chosen) > 1:
            return None
        own = target if host is not None else str(self.named(chosen))
        inside = form.format(*(own if arg is chosen else self.expression(arg) for arg in node.args))
        if host is None:
            return f"{name}({inside}, out={own})", []
        text, lines = self.steps(target, host)
        return text, [*lines, f"{name}({inside}, out={target})"]

    def laid_out(self, target: str, node: Node) -> tuple[str, list[str]] | None:
        """A transposed batch of matrix products is written where it belongs, so that the result can be reshaped."""
        (arg,) = node.args
        if arg.op != "matmul" or arg in self.names or arg.rank < 3 or None in node.data:
            return None
        back = self.permuted(target, [node.data.index(axis) for axis in range(arg.rank)])
        left, right = map(self.expression, arg.args)
        return self.allocate("empty", node.shape), [f"np.matmul({left}, {right}, out={back})"]

    def masked(self, target: str, node: Node) -> tuple[str, list[str]] | None:
        """−∞ where a smaller mask forbids: added once it is made."""
        condition, value, other = node.args
        risky = bool(node.data[0])
        if risky or not is_scalar_value(other, -sympy.oo) or extent(condition) >= extent(node) or not self.dtype:
            return None
        mask = f"np.where({self.expression(condition)}, 0, -np.inf).astype({self.dtype})"
        if (host := self.host(node, [value])) is not None:
            text, lines = self.steps(target, host)
            return text, [*lines, f"{target} += {mask}"]
        if (given := self.given(node, [value])) is not None:
            return f"np.add({self.named(given)}, {mask}, out={self.named(given)})", []
        return f"{self.expression(value)} + {mask}" if value.shape == node.shape else self.unnamed(node), []

    # ----------------------------------------------------------------------------------------------------- reductions

    def reduction(self, node: Node, keep: bool = False) -> tuple[str, int]:
        """Sums over the last axis, or over all axes before it, as products."""
        (arg,) = node.args
        last = node.op in ("sum", "mean") and tuple(node.data) == (arg.rank - 1,)
        lead = node.op == "sum" and tuple(node.data) == tuple(range(arg.rank - 1)) and not keep
        if arg.rank < 2 or arg.kind != "f" or not (last or lead):
            return super().reduction(node, keep)
        pair = self.pair(arg)
        count = self.number(arg.shape[-1])
        if lead:
            if pair is None:
                return super().reduction(node, keep)
            axes = "ijklmnop"[: arg.rank]
            return f'np.einsum("{axes},{axes}->{axes[-1]}", {", ".join(pair)})', POSTFIX
        if pair is not None:
            text = f'np.einsum("...i,...i->...", {", ".join(pair)})'
            text = f"({text} / {count})" if node.op == "mean" else text
        elif arg in self.names or arg.op == "array":
            weights = f"np.ones({count}{self.typed()})"
            if node.op == "mean":
                weights = f"np.full({count}, 1 / {count}{self.typed()})"
            text = f"({self.expression(arg, POSTFIX)} @ {weights})"
        else:
            return super().reduction(node, keep)
        return (f"{text}[..., None]" if keep else text), POSTFIX

    print_sum = print_mean = reduction

    def pair(self, node: Node) -> list[str] | None:
        """The two factors of a product of arrays of one shape, neither of them computed here."""
        if node in self.names:
            return None
        factors = list(node.args) if node.op == "mul" else []
        if node.op == "pow" and is_scalar(node.args[1], 2):
            factors = [node.args[0]] * 2
        known = all(f.shape == node.shape and f.kind == "f" for f in factors)
        named = all(f in self.names or f.op in VIEWS for f in factors)
        return [self.expression(f) for f in factors] if len(factors) == 2 and known and named else None


def steps_of(shape: Sequence[sympy.Expr]) -> list[tuple[int, sympy.Expr]]:
    """The sizes before the last, each with the number of axes between it and the last."""
    return [(len(shape) - 2 - k, size) for k, size in enumerate(shape[:-1])]


def is_scalar_value(node: Node, value: sympy.Expr) -> bool:
    return node.op == "scalar" and node.data[0] == value


def last_reads(schedule: Schedule, overwrite: frozenset[str]) -> dict[str, frozenset[str]]:
    """For each assignment, the new arrays that no later line reads, that no view shows, and that are not returned."""
    new = {name for node, name in schedule.names.items() if _new(node, schedule)} | overwrite
    readers: dict[str, list[int]] = defaultdict(list)
    shared: set[str] = set(schedule.returned)
    for position, (target, value) in enumerate(schedule.entries):
        for first, node in _parts(value):
            names = schedule._read(node)
            own = schedule.names.get(node, node.data[0] if node.op == "array" else None)
            if own is not None and own != str(target):  # a second name for the same array
                shared |= {own, str(target)}
            if viewed := _viewed(node, schedule):
                shared |= {viewed, str(target)}
            if not first:
                shared |= names
            for name in names:
                readers[name].append(position)
    found: dict[str, set[str]] = defaultdict(set)
    for name, places in readers.items():
        target = schedule.entries[max(places)][0]
        if name in new - shared and isinstance(target, Target):
            found[target.name].add(name)
    return {target: frozenset(names) for target, names in found.items()}


def _parts(value: object) -> list[tuple[bool, Node]]:
    """The nodes of an entry: of its first statement (True), and of those that follow."""
    from gradproof.numeric.lowering.schedule import _nodes_of

    if isinstance(value, Lines):
        first = value.first
        return [(node is first, node) for node in _nodes_of(value)]
    return [(False, value)] if isinstance(value, Node) else []


def _viewed(node: Node, schedule: Schedule) -> str | None:
    """The named array that a node shows in another way."""
    while node.op in VIEWS and node.args:
        (node, *_) = node.args
        if node in schedule.names or node.op == "array":
            return schedule.names.get(node) or str(node.data[0])
    return None


def _new(node: Node, schedule: Schedule) -> bool:
    """Whether a named node is a new array of floats."""
    while node.op in PASSED and node.args[0] not in schedule.names:
        (node,) = node.args
    return node.op in FRESH and node.kind == "f"

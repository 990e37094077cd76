"""An independent forward: a user's expression from its syntax tree straight to torch, for cross-checks only.

Nothing here knows of index equations. NumPy's spelling goes to the torch function of the same meaning, node by node.
Index notation is taken at its word: the body is evaluated for every value of its indices (`torch.vmap` runs over them
all at once), and `sum`, `max` … then reduce what came out. Derivatives, and the values at kinks, are torch's own.

    evaluate(parse("sum[i,j](A[i,j]*x[i])"), {"A": A, "x": x}, {})      differentiable in A and x

The range of an index is the axis that it reads alone (`x[i]`). An index that is only read inside sums (`x[t+k]`) gets
the range that keeps every reading inside its axis. Readings inside a `where` may leave their axis: what they give there
is used by the branch not taken, or else it is NaN.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor

from gradproof.numeric.reference.functions import CONSTANTS, FUNCTIONS
from gradproof.numeric.reference.indexing import Bounds, Index, bounds, find_ranges, subscript, walk
from gradproof.numeric.reference.recurrence import run_recurrence
from gradproof.symbolic.errors import ExpressionError, RuleError, ShapeError, UnknownNameError
from gradproof.symbolic.language.syntax import IndexRange, Program, Reduction, Statement, items, place, reduction

BINARY: dict[type[ast.operator], tuple[str, Callable[[Tensor, Tensor], Tensor]]] = {
    ast.Add: ("+", torch.add),
    ast.Sub: ("-", torch.sub),
    ast.Mult: ("*", torch.mul),
    ast.Div: ("/", torch.div),
    ast.Pow: ("**", torch.pow),
    ast.MatMult: ("@", torch.matmul),
    ast.BitAnd: ("&", torch.logical_and),
    ast.BitOr: ("|", torch.logical_or),
}
COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Tensor, Tensor], Tensor]]] = {
    ast.Lt: ("<", torch.lt),
    ast.LtE: ("<=", torch.le),
    ast.Gt: (">", torch.gt),
    ast.GtE: (">=", torch.ge),
    ast.Eq: ("==", torch.eq),
    ast.NotEq: ("!=", torch.ne),
}
REDUCE: dict[str, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    "sum": lambda x, axes: torch.sum(x, dim=axes),
    "mean": lambda x, axes: torch.mean(x, dim=axes),
    "max": lambda x, axes: torch.amax(x, dim=axes),
    "min": lambda x, axes: torch.amin(x, dim=axes),
    "prod": lambda x, axes: torch.prod(x.flatten(0, len(axes) - 1), dim=0),
}
NAMED = ("axis", "keepdims", "approximate", "subscripts", "shape", "width", "exponent", "ord")
FIXED = (*NAMED, "n", "m", "k")  # parameters that are no arrays


def evaluate(program: Program, tensors: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> Tensor:
    """The value of a program's last statement; differentiable with respect to the tensors.

    >>> from gradproof.symbolic.language.syntax import parse
    >>> x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    >>> evaluate(parse("sum[t=1:n](x[t] - x[t-1]) + n"), {"x": x}, {"n": 3})
    tensor(5., dtype=torch.float64)
    """
    evaluator = Evaluator(program.text, tensors, sizes or {})
    return evaluator.run(program.statements)


def function_names() -> frozenset[str]:
    """The names of all functions that an expression may call.

    >>> {"mish", "softmax", "lgamma"} <= function_names()
    True
    """
    return frozenset(FUNCTIONS)


class Evaluator:
    """Evaluates the statements of one program; `names` grows with each."""

    def __init__(self, text: str, tensors: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        self.text = text
        self.sizes = dict(sizes)
        given = [value for value in tensors.values() if isinstance(value, Tensor)]
        self.device = given[0].device if given else torch.device("cpu")
        self.dtype = torch.float64
        if floats := [value.dtype for value in given if value.is_floating_point()]:
            self.dtype = functools.reduce(torch.promote_types, floats)
        self.inputs = {name: self.tensor(value) for name, value in tensors.items()}
        self.names = dict(self.inputs)
        self.pending: frozenset[str] = frozenset()  # arrays of a recurrence whose shape is not known yet
        self.scope: dict[str, Index] = {}
        self.probing = False  # only shapes are asked for: every index is 0 and never leaves its axis
        self.guarded = False  # inside a branch of `where`
        self.guard: Tensor = torch.ones((), dtype=torch.bool, device=self.device)  # where that branch is taken

    def fail(self, message: str, node: ast.AST, kind: type[ExpressionError] = ExpressionError) -> NoReturn:
        raise kind(message, self.text, *place(node))

    def tensor(self, value: Any) -> Tensor:
        found = torch.as_tensor(value, device=self.device)
        return found if isinstance(value, Tensor) or found.ndim else found.to(self.dtype)

    def integers(self, value: int | list[int]) -> Tensor:
        return torch.tensor(value, dtype=torch.long, device=self.device)

    def torch(self, node: ast.AST, what: str, function: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
        """Call a function of torch; what it refuses becomes an error that names the shapes."""
        try:
            return function(*args, **options)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            shapes = " and ".join(str(tuple(arg.shape)) for arg in args if isinstance(arg, Tensor))
            reason = next(iter(str(error).strip().splitlines()), "")
            self.fail(f"{what} does not fit {shapes or 'its arguments'}: {reason}", node, ShapeError)

    # Statements and indices

    def run(self, statements: Sequence[Statement]) -> Tensor:
        """Evaluate all statements; the value of the last."""
        for statement in statements:
            if statement.name in self.inputs:
                self.fail(f"{statement.name} is an input already; choose another name", statement.value)
        count = Counter(statement.name for statement in statements if statement.indices is not None or statement.place)
        pieced = frozenset(s.name for s in statements if s.name and (s.place or count[s.name] > 1))
        last = max((k for k, statement in enumerate(statements) if statement.name in pieced), default=-1)
        if pieced:
            run_recurrence(self, statements[: last + 1], pieced)
            result = self.names[statements[last].name or ""]
        for statement in statements[last + 1 :]:
            result = self.statement(statement)
        return result

    def statement(self, statement: Statement) -> Tensor:
        name, indices, value = statement.name, statement.indices, statement.value
        free = self.free_indices(value) if indices is None else []
        if free and name is not None:
            message = f"{free[0].id} is not defined; an array with indices is defined as {name}[{free[0].id}] = …"
            self.fail(message, free[0], UnknownNameError)
        axes = [IndexRange(index, None, None, value) for index in indices or ()]
        axes += [IndexRange(node.id, None, None, node) for node in free]
        ranges = find_ranges(self, axes, value)
        for axis in axes:
            if ranges[axis.name][0] > 0:
                self.fail(f"the axis of {axis.name} starts at {ranges[axis.name][0]}, not at 0", axis.node, ShapeError)
            ranges[axis.name] = 0, ranges[axis.name][1]
        result = self.over([axis.name for axis in axes], ranges, value)
        if name is not None:
            self.names[name] = result
        return result

    def free_indices(self, value: ast.expr) -> list[ast.Name]:
        """Names that are nothing else and stand between index brackets, in order of appearance."""
        inside = {
            id(visit.node)
            for outer in walk(value)
            if isinstance(outer.node, ast.Subscript)
            for item in items(outer.node.slice)
            for visit in walk(item)
        }
        seen: dict[str, ast.Name] = {}
        used: set[str] = set()
        for visit in walk(value):
            node = visit.node
            if isinstance(node, ast.Name) and node.id not in visit.hidden and not self.is_defined(node.id):
                seen.setdefault(node.id, node)
                used |= {node.id} if id(node) in inside else set()
        return [node for name, node in seen.items() if name in used]

    def is_defined(self, name: str) -> bool:
        return any(name in known for known in (self.scope, self.names, self.pending, self.sizes, CONSTANTS))

    def ranges(self) -> dict[str, Bounds]:
        return {name: index.bounds for name, index in self.scope.items()}

    @contextmanager
    def having(self, **state: Any) -> Iterator[None]:
        """Attributes set for a while."""
        before = {name: getattr(self, name) for name in state}
        self.__dict__.update(state)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def over(self, names: Sequence[str], ranges: Mapping[str, Bounds], body: ast.expr) -> Tensor:
        """The body for all values of the indices: one leading axis an index."""
        if not names:
            return self.number(body)
        name, (low, high) = names[0], ranges[names[0]]

        def at(value: Tensor) -> Tensor:
            with self.having(scope={**self.scope, name: Index((low, high), value)}):
                return self.over(names[1:], ranges, body)

        if high < low:  # nothing to run over: run once to learn the shape
            with self.having(probing=True):
                return torch.vmap(at)(self.integers([0]))[:0]
        return torch.vmap(at)(torch.arange(low, high + 1, device=self.device))

    def for_each(self, given: Mapping[str, Tensor], ranges: Mapping[str, Bounds], body: ast.expr) -> Tensor:
        """The body for a list of index values: one leading axis for the list; none without indices."""

        def at(*values: Tensor) -> Tensor:
            here = {name: Index(ranges[name], value) for name, value in zip(given, values, strict=True)}
            with self.having(scope={**self.scope, **here}):
                return self.number(body)

        return torch.vmap(at)(*given.values()) if given else at()

    def reduce(self, node: ast.Call, found: Reduction) -> Tensor:
        ranges = find_ranges(self, found.ranges, found.body)
        names = [r.name for r in found.ranges]
        values = self.over(names, ranges, found.body)
        return self.torch(node, found.name, REDUCE[found.name], values, tuple(range(len(names))))

    def shape(self, node: ast.expr, indices: Iterable[str]) -> tuple[int, ...]:
        """The shape of a value, whatever the indices."""
        zero = Index((0, 0), self.integers(0))
        with self.having(scope={**self.scope, **dict.fromkeys(indices, zero)}, probing=True):
            return tuple(self.value(node).shape)

    # Values

    def number(self, node: ast.expr) -> Tensor:
        """A value to compute with: integers and truth values become floating point."""
        value = self.value(node)
        return value if value.is_floating_point() else value.to(self.dtype)

    def truth(self, node: ast.expr) -> Tensor:
        value = self.value(node)
        return value if value.dtype == torch.bool else value != 0

    def integer(self, node: ast.expr) -> int:
        """An integer of sizes and constants."""
        found = bounds(self, node, {})
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        if found is None or not names <= self.sizes.keys() - self.scope.keys():
            self.fail(f"an integer stands here, made of numbers and sizes; not {ast.unparse(node)}", node)
        return found[0]

    def value(self, node: ast.expr) -> Tensor:
        match node:
            case ast.Constant(value=int() | float()):
                kind = torch.bool if isinstance(node.value, bool) else self.dtype
                return torch.tensor(node.value, dtype=kind, device=self.device)
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                inner = self.value(node.value)
                if node.attr == "mT" and inner.ndim < 2:
                    self.fail(f".mT needs at least two axes, not shape {tuple(inner.shape)}", node, ShapeError)
                if node.attr == "mT":
                    return inner.mT
                return inner.permute(tuple(reversed(range(inner.ndim))))
            case ast.Subscript():
                return subscript(self, node)
            case ast.UnaryOp():
                if isinstance(node.op, ast.Invert):
                    return torch.logical_not(self.truth(node.operand))
                return -self.number(node.operand) if isinstance(node.op, ast.USub) else self.number(node.operand)
            case ast.BinOp():
                read = self.truth if isinstance(node.op, ast.BitAnd | ast.BitOr) else self.number
                sign, function = BINARY[type(node.op)]
                return self.torch(node, sign, function, read(node.left), read(node.right))
            case ast.Compare():
                sign, function = COMPARE[type(node.ops[0])]
                return self.torch(node, sign, function, self.number(node.left), self.number(node.comparators[0]))
            case ast.Call():
                found = reduction(node)
                return self.reduce(node, found) if found else self.call(node)
        self.fail(f"{ast.unparse(node)} is not a value to compute with", node, RuleError)

    def name(self, node: ast.Name) -> Tensor:
        if node.id in self.scope:
            return self.scope[node.id].value
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.pending:
            self.fail(f"{node.id} is read before its shape is known; read it entry by entry, as {node.id}[t,k]", node)
        constant = self.sizes.get(node.id, CONSTANTS.get(node.id))
        if constant is None:
            self.unknown(node, "name", [*self.names, *self.sizes, *CONSTANTS])
        return torch.tensor(constant, dtype=self.dtype, device=self.device)

    def unknown(self, node: ast.Name, kind: str, known: Iterable[str]) -> NoReturn:
        close = difflib.get_close_matches(node.id, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        self.fail(f"there is no {kind} {node.id}{hint}", node, UnknownNameError)

    # Functions

    def call(self, node: ast.Call) -> Tensor:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name not in FUNCTIONS:
            self.unknown(node.func, "function", FUNCTIONS)
        parameters = inspect.signature(FUNCTIONS[name])
        try:
            keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            bound = parameters.bind(*node.args, **keywords)
        except TypeError as error:
            spelled = ", ".join(str(p.replace(annotation=p.empty)) for p in parameters.parameters.values())
            self.fail(f"{name} is called as {name}({spelled}): {error}", node, RuleError)
        fixed = {}
        if name == "where":
            args = self.where_arguments(bound.arguments)
        else:
            options = {key for key in bound.arguments if key in FIXED and key not in ("subscripts", "shape")}
            fixed = {key: self.fixed(key, bound.arguments[key]) for key in options}
            rest = [(key, given) for key, given in bound.arguments.items() if key not in options]
            args = [value for key, given in rest for value in self.argument(key, given)]
        return self.torch(node, name, FUNCTIONS[name], *args, **fixed).to(dtype=self.dtype, device=self.device)

    def argument(self, key: str, given: Any) -> list[Any]:
        """The value of an argument, by its parameter's name; several for `*shape` and `*operands`."""
        if key == "shape":
            lists = [item.elts if isinstance(item, ast.Tuple | ast.List) else [item] for item in given]
            return [self.integer(size) for sizes in lists for size in sizes]
        if isinstance(given, tuple):
            return [self.number(item) for item in given]
        return [self.fixed(key, given) if key in FIXED else self.number(given)]

    def fixed(self, key: str, node: ast.expr) -> Any:
        """A plain argument: an axis or several, a flag, a text."""
        if key == "ord":
            return CONSTANTS[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)
        wanted: type = {"keepdims": bool, "approximate": str, "subscripts": str}.get(key, int)
        if isinstance(node, ast.Constant) and (type(node.value) is wanted or (node.value is None and wanted is int)):
            return node.value
        if wanted is not int:
            self.fail(f"{key} is {'True or False' if wanted is bool else 'a text'}", node)
        if isinstance(node, ast.Tuple | ast.List) and key in ("axis", "width"):
            return tuple(self.fixed(key, element) for element in node.elts)
        return self.integer(node)

    def where_arguments(self, given: Mapping[str, ast.expr]) -> list[Tensor]:
        """The condition and both branches, each with its guard."""
        condition = self.truth(given["condition"])
        branches = []
        for key, taken in (("x", condition), ("y", torch.logical_not(condition))):
            guard = self.guard & taken if taken.ndim == 0 else self.guard
            with self.having(guarded=True, guard=guard):
                branches.append(self.number(given[key]))
        return [condition, *branches]

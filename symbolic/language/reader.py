"""The expression language: text and declarations in, a system of index equations out.

    build("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"})

Text is parsed, never evaluated (`syntax.py`); this file walks the tree. NumPy's spelling and index notation meet in
`Value`: an index letter in scope is simply a free letter of the expression.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import sympy
from sympy import Expr, Integer, Rational, S

from gradproof.symbolic.equations.expr import Access, compare, count, height, is_condition, letters, negate, reduce_
from gradproof.symbolic.equations.functions import absolute
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import Defect, ExpressionError, ShapeError, UnknownNameError
from gradproof.symbolic.folding.symmetry import inferred
from gradproof.symbolic.language.builder import Builder, Letter
from gradproof.symbolic.language.calls import CALLS, Call
from gradproof.symbolic.language.demands import Demand
from gradproof.symbolic.language.indexing import Indexing
from gradproof.symbolic.language.normalisations import recognise_normalisations
from gradproof.symbolic.language.operators import (
    AMBIGUOUS,
    BINARY,
    COMPARISONS,
    CONSTANTS,
    MAX_SUMS,
    power_fault,
    undeclared,
)
from gradproof.symbolic.language.recognise import recognise
from gradproof.symbolic.language.recurrence import Recurrence
from gradproof.symbolic.language.syntax import (
    Declaration,
    Program,
    Reduction,
    Statement,
    parse,
    parse_declaration,
    parse_shapes,
)
from gradproof.symbolic.language.syntax import reduction as reduction_of
from gradproof.symbolic.language.values import ShapeMismatch, Value, elementwise, matmul
from gradproof.symbolic.printing.text import alike


def build(
    text: str | Program,
    shapes: Mapping[str, object] | Sequence[Declaration],
    keep: Iterable[str] = (),
    wanted: Sequence[Expr] | None = None,
    demands: list[Demand] | None = None,
) -> System:
    """The system of an expression whose names have the given shapes; its output is the expression's value.

    `keep` names intermediates that stay where a normalisation would be recognised by what they hold. `wanted` is the
    shape of the last statement's array: its index letters take their ranges from it. What the text needs to have a
    value is added to `demands`.

    Raises ExpressionError (or a subclass) that points at the place in the text.

    >>> system = build("R[i,j] = sum[k](X[i,k]*W[k,j]); sum[i,j](R[i,j]**2)", {"X": "n,d", "W": "d,m"})
    >>> for equation in system.equations: print(equation.target, "=", equation.body)
    R[o0, o1] = sum[b1=0:d](W[b1, o1]*X[o0, b1])
    L = sum[b2=0:n, b1=0:m](R[b2, b1]**2)
    """
    if not isinstance(text, (str, Program)):
        raise ExpressionError(f"an expression is a text, not {type(text).__name__}")
    given: object = shapes
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
        raise ExpressionError('shapes are given by name: {"X": "n,d", "lam": ""}')
    program = parse(text) if isinstance(text, str) else text
    declarations = list(parse_shapes(shapes).values()) if isinstance(shapes, Mapping) else list(shapes)
    builder = Builder(program.text, kept=frozenset(keep))
    for declaration in declarations:
        if declaration.name in builder.arrays:
            raise ExpressionError(f"{declaration.name} is declared twice", declaration.text, 0)
        builder.declare(declaration)
    for declaration in declarations:
        builder.declare_law(declaration)
    for name in builder.arrays:
        if name in builder.sizes:
            raise ExpressionError(f"{name} is declared as an array and used as a size")
    builder.taken |= {statement.name for statement in program.statements if statement.name}
    builder.taken |= {node.id for s in program.statements for node in ast.walk(s.value) if isinstance(node, ast.Name)}
    if twins := alike([*builder.arrays, *builder.sizes, *(s.name for s in program.statements if s.name)]):
        raise ExpressionError("{} and {} would both be printed as {}; call one of them otherwise".format(*twins))
    reader = Reader(builder, program)
    for statement in program.statements:
        output = reader.statement(statement, wanted if statement is program.statements[-1] else None)
    reader.complete()
    recognise(builder)
    recognise_normalisations(builder, reader.named)
    system = inferred(builder.system(reader.unaliased(output)))
    if lost := set(system.inputs) - {declaration.name for declaration in declarations}:
        raise Defect(f"{min(lost)} has lost its definition")
    for recurrence in reader.recurrences.values():
        recurrence.check_first_step(system)
    if demands is not None:
        demands += builder.demands.settled(builder.ranges)
    return system


def declare(*declarations: str) -> list[Declaration]:
    """Declarations as the command line has them: `declare("X:n,d", "lam")`."""
    return [parse_declaration(text) for text in declarations]


def number_value(builder: Builder, node: ast.expr) -> Expr:
    """A number, possibly with sizes and symbols, as in `iid=0,sigma**2/d`; a name that nothing declares is a symbol."""
    functions = {id(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    meant = {**builder.arrays, **CONSTANTS, **AMBIGUOUS}
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and id(name) not in functions and name.id not in meant:
            builder.sizes.setdefault(name.id, sympy.Symbol(name.id, real=True))
    value = Reader(builder, Program(builder.text, ())).visit(node)
    if value.rank:
        builder.fail(f"a number is needed here, not an array of shape {value.shape}", node, ShapeError)
    return value.expr


class Reader(Indexing):
    """Walks one program's syntax trees."""

    def __init__(self, builder: Builder, program: Program) -> None:
        self.b = builder
        # arrays that are defined piece by piece (recurrences): they may be read before they are complete
        pieces = Counter(statement.name for statement in program.statements)
        self.recurrences = {
            s.name: Recurrence(builder, s.name)
            for s in program.statements
            if s.name and (s.place or pieces[s.name] > 1)
        }
        self.free: dict[str, Letter] | None = None
        self.named = {s.name for s in program.statements if s.name}

    # --- statements

    def statement(self, statement: Statement, wanted: Sequence[Expr] | None = None) -> str:
        """Add one statement's equations; returns the name of the array that holds its value, of the shape `wanted`."""
        b, name = self.b, statement.name
        if name is not None and (name in b.sizes or name in b.arrays) and name not in self.recurrences:
            what = "an array" if name in b.arrays else "a size"
            raise ExpressionError(f"{name} is {what} already; choose another name", b.text, statement.start)
        places = statement.place or ()
        named = [*(statement.indices or ()), *(n.id for p in places for n in ast.walk(p) if isinstance(n, ast.Name))]
        frame: dict[str, Letter] = {}
        for letter in dict.fromkeys(named):
            if letter not in b.sizes or name not in self.recurrences:  # h[T,k] = … gives the last piece of a recurrence
                self.check_letter(letter, statement.value)
                b.add_letter(letter, frame)
        if wanted is not None and len(frame) == len(wanted):
            for entry, size in zip(frame.values(), wanted, strict=True):
                entry.lower, entry.upper = S.Zero, size
        b.frames.append(frame)
        if self.recurrences:  # a step, or what is between two: z[t] reads h[t] of T + 1 entries at its first T
            b.given |= {letter.index for letter in frame.values()}
        b.preferred = name if name not in self.recurrences else None
        self.free = frame if name is None else None
        value = self.visit(statement.value)
        place = tuple(self.index_value(part) for part in places) or tuple(
            frame[letter].index if letter in frame else b.sizes[letter] for letter in statement.indices or ()
        )
        whole = name not in self.recurrences
        axes = [b.settle(letter, key, statement.value, whole) for key, letter in frame.items()]
        left = [*map(self.written, places)] or [key if key in frame else "" for key in statement.indices or ()]
        b.frames.pop()
        if height(value.expr) > MAX_SUMS:
            message = f"more than {MAX_SUMS} sums inside each other; name an intermediate: S = …; …"
            b.fail(message, statement.value)
        loose = letters(value.expr) - set(value.letters) - {axis[0] for axis in axes}
        if loose:
            shown = ", ".join(str(letter).split("~")[0] for letter in loose)
            b.fail(f"the letters {shown} are not bound", statement.value)
        if name in self.recurrences:
            if value.rank:
                hint = f"; give its axes letters, as in {name}[0,i] = …; {name}[t+1,i] = …"
                message = f"an entry of {name} is a number, not an array of shape {value.shape}{hint}"
                b.fail(message, statement.value, ShapeError)
            return self.recurrences[name].add(place, axes, value.expr, statement, left)
        self.check_complete()
        if any(lo != 0 for _, lo, _ in axes):
            b.fail("an array's index starts at 0; shift the index", statement.value)
        value = Value(
            value.expr, (*(i for i, _, _ in axes), *value.letters), (*(hi for _, _, hi in axes), *value.sizes)
        )
        found = self.finish(name, value)
        b.note_letters(found, list(frame))
        return found

    def check_complete(self) -> None:
        """Check the indices of the statements so far, unless a recurrence is still under construction."""
        if all(part.complete for part in self.recurrences.values()):
            self.b.check_readings()

    def complete(self) -> None:
        """The end of the text: every recurrence has all its pieces now, and every index can be checked."""
        for part in self.recurrences.values():
            part.finish()
        self.b.check_readings()

    def unaliased(self, output: str) -> str:
        """The array that an output without a name of its own merely repeats, if it does."""
        b = self.b
        equation = b.equations[[e.name for e in b.equations].index(output)] if output not in self.inputs() else None
        if equation is None or output in self.named or not isinstance(equation.body, Access):
            return output
        source = equation.body
        shapes = [b.arrays[name].shape for name in (source.name, output)]
        if source.indices != equation.place or shapes[0] != shapes[1] or source.name in self.inputs():
            return output
        b.equations.remove(equation)
        del b.arrays[output]
        return source.name

    def finish(self, name: str | None, value: Value) -> str:
        b = self.b
        b.preferred = None
        plain = (
            value.expr.name
            if isinstance(value.expr, sympy.Basic) and getattr(value.expr, "indices", None) == value.letters
            else None
        )
        whole = plain is not None and b.arrays[plain].shape == value.sizes
        if plain and whole and (plain == name or (name is None and plain not in self.inputs())):
            return plain
        target = name or b.name_for("L" if not value.rank else "F")
        b.define(target, value)
        return target

    def inputs(self) -> set[str]:
        return set(self.b.arrays) - {equation.name for equation in self.b.equations}

    def check_letter(self, name: str, node: ast.expr) -> None:
        if name in self.b.arrays:  # a size of that name is hidden by the letter, as in any inner scope
            self.b.fail(f"{name} is an array; choose another letter for the index", node)

    # --- nodes

    def visit(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Tuple | ast.List) or (
            isinstance(node, ast.Constant) and not isinstance(node.value, int | float)
        ):
            self.b.fail(f"{ast.unparse(node)} is not an array or a number", node)
        try:
            value = getattr(self, f"visit_{type(node).__name__}")(node)
        except ShapeMismatch as error:
            self.b.fail(str(error), node, ShapeError)
        if value.expr.has(sympy.Abs):
            value = Value(value.expr.replace(sympy.Abs, absolute), value.letters, value.sizes)
        if value.expr.has(sympy.zoo, sympy.nan, sympy.I):
            self.b.fail(f"{ast.unparse(node)} is not a real number", node)
        return value

    def visit_Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, int):
            return Value(Integer(node.value))
        return Value(Rational(repr(node.value)))

    def visit_Name(self, node: ast.Name) -> Value:
        b, name = self.b, node.id
        letter = b.letter(name)
        if letter is not None:
            return Value(letter.index)
        if name in self.recurrences and not self.recurrences[name].complete:
            self.recurrences[name].finish()  # read as a whole: it has all its pieces
        if name in b.arrays:
            return b.array_value(name)
        if name in b.sizes:
            return Value(b.sizes[name])
        if name in CONSTANTS:
            return Value(CONSTANTS[name])
        b.fail(undeclared(name, [*b.arrays, *b.sizes]), node, UnknownNameError)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Value:
        with self.b.unnamed():
            value = self.visit(node.operand)
        if isinstance(node.op, ast.Invert):
            self.check_condition(value, node.operand)
            return Value(negate(value.expr), value.letters, value.sizes)
        sign = -1 if isinstance(node.op, ast.USub) else 1
        return Value(sign * value.expr, value.letters, value.sizes)

    def visit_BinOp(self, node: ast.BinOp) -> Value:
        with self.b.unnamed():
            left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            self.check_condition(left, node.left)
            self.check_condition(right, node.right)
        elif any(abs(side.expr) == sympy.oo for side in (left, right)):
            self.b.fail("inf may stand alone, as in where(M == 1, S, -inf); nothing can be computed with it", node)
        if isinstance(node.op, ast.MatMult):
            return matmul(left, right, self.b.new)
        if isinstance(node.op, ast.Div) and right.expr == 0:
            self.b.fail("division by zero", node)
        if isinstance(node.op, ast.Div):
            self.b.demands.add(right, "!=")
        if isinstance(node.op, ast.Pow):
            fault = power_fault(left.expr, right.expr)
            if fault is not None:
                self.b.fail(fault, node)
            self.b.demands.of_power(left, right.expr)
        return elementwise(BINARY[type(node.op)], [left, right], self.b.new)

    def check_condition(self, value: Value, node: ast.expr) -> None:
        if not is_condition(value.expr):
            self.b.fail(f"{ast.unparse(node)} is a number, not a condition; write {ast.unparse(node)} != 0", node)

    def visit_Compare(self, node: ast.Compare) -> Value:
        left, right = self.visit(node.left), self.visit(node.comparators[0])
        op = COMPARISONS[type(node.ops[0])]
        return elementwise(lambda a, b: compare(op, a, b), [left, right], self.b.new)

    def visit_Attribute(self, node: ast.Attribute) -> Value:
        with self.b.unnamed():
            value = self.visit(node.value)
        if node.attr == "mT":
            if value.rank < 2:
                self.b.fail(f".mT needs at least two axes, not shape {value.shape}", node, ShapeError)
            order = [*range(value.rank - 2), value.rank - 1, value.rank - 2]
            return value.permuted(order)
        return value.T

    def visit_Call(self, node: ast.Call) -> Value:
        found = reduction_of(node)
        if found is not None:
            return self.reduction(found, node)
        assert isinstance(node.func, ast.Name)
        rule = CALLS.get(node.func.id)
        if rule is None:
            import difflib

            close = difflib.get_close_matches(node.func.id, CALLS, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(CALLS))}"
            self.b.fail(f"there is no function {node.func.id}{hint}", node.func, UnknownNameError)
        return self.call(rule, node)

    def call(self, rule: Call, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Name)
        name, taken = node.func.id, rule.arrays
        preferred, self.b.preferred = self.b.preferred, None
        given = list(node.args)
        if rule.text_first:
            options: dict[str, object] = {"spec": self.static(given.pop(0), name) if given else ""}
        else:
            options = {}
        if taken is None and len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
            given = given[0].elts  # ones((n, m))
        arrays = len(given) if taken is None else taken
        if len(given) < arrays or (taken is None and not given and not rule.options):
            self.b.fail(
                f"{name} takes {arrays or 'at least one'} argument{'s' * (arrays != 1)}, {len(given)} are given", node
            )
        self.b.guards += name == "where"
        marks, values = [], []
        for argument in given[:arrays]:
            marks.append(len(self.b.demands.found))
            values.append(self.visit_side(argument, name))
        self.b.guards -= name == "where"
        if name == "where":
            self.b.demands.guard(values[0], marks[1], marks[2], self.b.new)
        elif name == "pow":
            self.b.demands.of_power(values[0], values[1].expr)
        elif values:
            self.b.demands.of_call(name, values[0])
        if name == "delta":
            self.b.equal_letters += [(a.expr, b.expr) for a, b in permutations(values)]
        extra = given[arrays:]
        if len(extra) > len(rule.options):
            self.b.fail(f"{name} takes at most {arrays + len(rule.options)} arguments", node)
        options |= {option: self.static(argument, name) for option, argument in zip(rule.options, extra, strict=False)}
        for keyword in node.keywords:
            if keyword.arg not in rule.options or keyword.arg in options:
                allowed = f"; it takes {', '.join(rule.options)}" if rule.options else ""
                self.b.fail(f"{name} does not take {keyword.arg}= here{allowed}", keyword.value)
            options[keyword.arg] = self.static(keyword.value, name)
        self.b.preferred = preferred
        try:
            return rule.build(self.b, *values, **options)
        except ShapeMismatch as error:
            self.b.fail(f"{name}: {error}", node, ShapeError)
        except (TypeError, AttributeError):
            self.b.fail(f"{name} cannot be used with these arguments", node)

    def visit_side(self, node: ast.expr, function: str) -> Value:
        """An argument; a name without a meaning in delta(i, j) is a free index."""
        if function == "delta" and isinstance(node, ast.Name) and self.free is not None and self.is_new_letter(node.id):
            self.b.add_letter(node.id, self.free)
        return self.visit(node)

    def static(self, node: ast.expr, name: str) -> object:
        """An argument that is no array: an axis, a flag, a text, a size, a tuple of them, or a number like eps."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self.static(item, name) for item in node.elts)
        if isinstance(node, ast.Constant) and not isinstance(node.value, float):
            return node.value
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.operand, ast.Constant)
            and isinstance(node.operand.value, int)
        ):
            return -node.operand.value if isinstance(node.op, ast.USub) else node.operand.value
        value = self.visit(node)
        if value.rank:
            self.b.fail(
                f"this argument of {name} must be a number, not an array of shape {value.shape}", node, ShapeError
            )
        return value.expr

    # --- index notation

    def reduction(self, found: Reduction, node: ast.Call) -> Value:
        b = self.b
        preferred, b.preferred = b.preferred, None
        frame: dict[str, Letter] = {}
        b.frames.append(frame)
        for item in found.ranges:
            self.check_letter(item.name, item.node)
            if item.name in frame:
                b.fail(f"the index {item.name} stands twice", item.node)
            lower = S.Zero if item.lower is None else self.index_value(item.lower)
            upper = None if item.upper is None else self.index_value(item.upper)
            letter = b.add_letter(item.name, frame)
            if upper is not None:
                letter.lower, letter.upper = lower, upper
                b.given.add(letter.index)
                b.ranges[letter.index] = letter.axis
        value = self.visit(found.body)
        axes = [b.settle(frame[item.name], item.name, item.node) for item in found.ranges]
        b.frames.pop()
        b.preferred = preferred
        if found.name == "min":
            body = -reduce_("max", -value.expr, axes)
        elif found.name == "mean":
            body = reduce_("sum", value.expr, axes) / count(axes)
        else:
            body = reduce_(found.name, value.expr, axes)
        return Value(body, value.letters, value.sizes)

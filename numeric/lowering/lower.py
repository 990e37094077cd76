"""Lower index expressions to array operations.

The free letters of an expression are the axes of its array. `Lowering.lower` walks an expression and returns a `Part`:
a node and the letters of its axes. Elementwise operations align their operands on the union of their letters; a sum of
a product becomes matrix products (`contract.py`); accesses become views, windows and lookups (`access.py`); conditions
on letters narrow ranges where they can, and mask otherwise (`product.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, Function, Max, Min, Mul, Pow, S

from gradproof.numeric.lowering.nodes import Graph, Node, common_scale, identifier
from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Implicit,
    Index,
    Reduce,
    compare,
    letters,
    names,
    nonnegative,
    open_,
)
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError

Ranges = Mapping[Index, tuple[Expr, Expr]]  # the first value of a letter and one past its last


@dataclass(frozen=True)
class Part:
    """An array and the letters of its axes."""

    node: Node
    letters: tuple[Index, ...] = ()


class Lowering:
    """Lowers the expressions of one system into one graph.

    >>> from gradproof.symbolic.equations.expr import Size, sum_
    >>> from gradproof.symbolic.equations.system import Array
    >>> i, r, n, d = Index("i"), Index("r"), Size("n"), Size("d")
    >>> low = Lowering(System({"X": Array("X", (n, d)), "w": Array("w", (d,))}, (), ()))
    >>> low.lower(sum_(Access("X", i, r) * Access("w", r), [(r, 0, d)]), {i: (S.Zero, n)})
    Part(node=matmul(array(X), array(w)), letters=(i,))
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.graph = Graph()
        self.values: dict[str, Node] = {}  # the nodes of defined arrays
        self.undefined: set[str] = set()  # arrays whose entries may be infinite or undefined
        self.loop: Any = None  # the recurrence whose body is being lowered, see recurrence.py
        self._memo: dict[Hashable, Part] = {}
        self._shared: dict[Hashable, tuple[Node, tuple[Any, ...]]] = {}

    def value(self, name: str) -> Node:
        """The node of a whole array."""
        if name not in self.values:
            array = self.system.arrays[name]
            self.values[name] = self.graph.array(identifier(name), array.shape, "f" if array.below is None else "i")
        return self.values[name]

    def lower(self, expr: Expr, ranges: Ranges, wanted: Sequence[Index] = ()) -> Part:
        """The array of an expression; `wanted` is the order of axes that the reader would like best."""
        own = sorted(letters(expr) & ranges.keys(), key=str)
        key = (expr, tuple((letter, ranges[letter]) for letter in own), self.loop)
        if key not in self._memo:
            self._memo[key] = self._lower(expr, ranges, wanted)
        return self._memo[key]

    def _lower(self, expr: Expr, ranges: Ranges, wanted: Sequence[Index]) -> Part:
        if self.loop is not None and (hoisted := self.loop.hoist(self, expr, ranges, wanted)) is not None:
            return hoisted
        if not expr.atoms(Access, Reduce, Compare, Implicit, where) and not letters(expr) & ranges.keys():
            return Part(self.graph.scalar(expr))
        for kind, rule in RULES:
            if isinstance(expr, kind):
                return rule(self, expr, ranges, wanted)
        raise GradproofError(f"no rule to lower {type(expr).__name__}: {expr}")

    # -------------------------------------------------------------------------------------------------- elementwise

    def align(self, part: Part, order: Sequence[Index]) -> Node:
        """The node with its axes in the given order, and new axes for letters that it lacks."""
        if not set(part.letters) <= set(order):
            raise GradproofError(f"an array with the axes {part.letters} has no place for all of them in {order}")
        return self.graph.view(part.node, [part.letters.index(x) if x in part.letters else None for x in order])

    def elementwise(
        self, key: Hashable, make: Callable[[list[Node]], Node], parts: Sequence[Part], wanted: Sequence[Index]
    ) -> Part:
        """Apply an elementwise operation; the same operation on the same arrays is made once, in any order of axes."""
        order = order_of([part.letters for part in parts], wanted)
        full_key, canonical = self._key(key, parts, order)
        if full_key not in self._shared:
            node = make([self.align(part, order) for part in parts])
            self._shared[full_key] = (node, tuple(canonical.index(x) for x in order))
        node, places = self._shared[full_key]
        return Part(node, tuple(canonical[place] for place in places))

    def _key(self, key: Hashable, parts: Sequence[Part], order: Sequence[Index]) -> tuple[Hashable, list[Index]]:
        """What identifies an elementwise operation, and its letters in an order that does not depend on their names."""
        if key in ("add", "mul"):
            parts = sorted(parts, key=lambda part: id(part.node))
        marks = {x: tuple(p.letters.index(x) if x in p.letters else -1 for p in parts) for x in order}
        canonical = sorted(order, key=marks.__getitem__)
        return (key, tuple(id(part.node) for part in parts), tuple(marks[x] for x in canonical)), canonical

    def add(self, parts: Sequence[Part], wanted: Sequence[Index]) -> Part:
        return self._grouped(parts, wanted, self._add)

    def _add(self, parts: Sequence[Part], wanted: Sequence[Index]) -> Part:
        scale = common_scale([part.node for part in parts])
        if scale != 1:
            inner = self._add([self._scaled(1 / scale, part) for part in parts], wanted)
            return self._scaled(scale, inner)
        turned = [self._scaled(S.NegativeOne, part) for part in parts]
        if (
            len(parts) > 1
            and self._key("add", turned, order_of([p.letters for p in turned], wanted))[0] in self._shared
        ):
            return self._scaled(S.NegativeOne, self._combine("add", self.graph.add, turned, wanted))
        return self._combine("add", self.graph.add, parts, wanted)

    def _scaled(self, scale: Expr, part: Part) -> Part:
        return Part(self.graph.mul([self.graph.scalar(scale), part.node]), part.letters)

    def mul(self, parts: Sequence[Part], wanted: Sequence[Index]) -> Part:
        numbers = [part for part in parts if part.node.op == "scalar"]
        arrays = [part for part in parts if part.node.op != "scalar"]
        scale = Mul(*(part.node.data[0] for part in numbers))
        means = [k for k, part in enumerate(arrays) if part.node.op == "sum"]
        for k in means:  # a number that makes a mean of a sum stays with it
            made = self.graph.mul([self.graph.scalar(scale), arrays[k].node])
            mean = made.args[-1] if made.op == "mul" else made
            if mean.op == "mean":
                arrays[k], scale = Part(mean, arrays[k].letters), made.args[0].data[0] if made.op == "mul" else S.One
        if not arrays:
            return Part(self.graph.scalar(scale))
        part = self._grouped(arrays, wanted, lambda p, w: self._combine("mul", self.graph.mul, p, w))
        return Part(self.graph.mul([self.graph.scalar(scale), part.node]), part.letters)

    def _grouped(
        self, parts: Sequence[Part], wanted: Sequence[Index], combine: Callable[[Sequence[Part], Sequence[Index]], Part]
    ) -> Part:
        """Combine operands with the same letters first, small ones before large ones."""
        groups: dict[frozenset[Index], list[Part]] = {}
        for part in parts:
            groups.setdefault(frozenset(part.letters), []).append(part)
        every = frozenset().union(*groups)
        operands: list[Part] = []
        for own, members in sorted(groups.items(), key=lambda item: len(item[0])):
            operands += [combine(members, wanted)] if own != every and len(members) > 1 else members
        return combine(operands, wanted) if len(operands) != 1 else operands[0]

    def _combine(
        self, op: str, make: Callable[[list[Node]], Node], parts: Sequence[Part], wanted: Sequence[Index]
    ) -> Part:
        if len(parts) == 1:
            return parts[0]
        return self.elementwise(op, make, parts, wanted)

    # ---------------------------------------------------------------------------------------------------- reductions

    def over(self, ranges: Ranges, axes: Iterable[Axis]) -> Ranges:
        """Ranges with those of summed letters; a bound that depends on another letter is widened."""
        known = dict(ranges)
        for letter, lo, hi in axes:
            known[letter] = (extreme(lo, known, -1), extreme(hi, known, 1))
        return known


def order_of(groups: Sequence[Sequence[Index]], wanted: Sequence[Index]) -> tuple[Index, ...]:
    """The union of letters: in the wanted order, other letters as the largest group has them, behind."""
    found = dict.fromkeys(letter for group in sorted(groups, key=len, reverse=True) for letter in group)
    if all(letter in wanted for letter in found):
        return tuple(letter for letter in wanted if letter in found)
    return tuple(found)


def extreme(bound: Expr, ranges: Ranges, sign: int) -> Expr:
    """The smallest (sign −1) or largest (sign 1) value of an affine bound."""
    for letter in sorted(letters(bound) & ranges.keys(), key=str):
        lo, hi = ranges[letter]
        slope = bound.coeff(letter)
        rising = nonnegative(slope) == (sign > 0)
        bound = bound.xreplace({letter: hi - 1 if rising else lo}).expand()
    return bound


def length(lo: Expr, hi: Expr) -> Expr:
    """How many values lie between two bounds; none where the upper is the smaller one.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> length(S.One, Size("n")), length(S(2), Size("n"))
    (n - 1, Max(0, n - 2))
    """
    size = (hi - lo).expand()
    return size if surely(size) else Max(S.Zero, size)


def surely(expr: Expr) -> bool:
    """Whether an expression in sizes is at least 0; it may hold a smaller or larger of two.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> n, m = Size("n"), Size("m")
    >>> surely(n - Min(n, m)), surely(m - Max(n, m))
    (True, False)
    """
    chosen = sorted(expr.atoms(Min, Max), key=str)
    if not chosen:
        return nonnegative(expr)
    options = [expr.xreplace({chosen[0]: arg}).expand() for arg in chosen[0].args]
    one_is_enough = isinstance(chosen[0], Min) == bool(expr.expand().coeff(chosen[0]) < 0)
    return any(map(surely, options)) if one_is_enough else all(map(surely, options))


def bounds(low: Lowering, index: Expr, size: Expr, ranges: Ranges) -> list[Expr]:
    """The conditions under which an index lies inside an axis, those that surely hold left out.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> from gradproof.symbolic.equations.system import Array
    >>> i, n, m = Index("i"), Size("n"), Size("m")
    >>> low = Lowering(System({"w": Array("w", (n,), below=m)}, (), ()))
    >>> bounds(low, Access("w", i) + 1, m, {i: (S.Zero, n)})
    [[w[i] + 1 < m]]
    """
    entries = sorted((a for a in index.atoms(Access) if low.system.arrays[a.name].below is not None), key=str)
    known = {Index(f"w{k}"): (S.Zero, low.system.arrays[entry.name].below) for k, entry in enumerate(entries)}
    axes = [(letter, lo, hi) for letter, (lo, hi) in {**ranges, **known}.items()]
    number = index.xreplace(dict(zip(entries, known, strict=True)))
    found = [] if nonnegative(number, axes) else [compare("<=", S.Zero, index)]
    return found if nonnegative(size - 1 - number, axes) else [*found, compare("<", index, size)]


def range_conditions(axes: Iterable[Axis], ranges: Ranges) -> list[Expr]:
    """Conditions that say what widened ranges have lost."""
    found = []
    for letter, lo, hi in axes:
        if letters(lo) & ranges.keys():
            found.append(compare("<=", lo, letter))
        if letters(hi) & ranges.keys():
            found.append(compare("<", letter, hi))
    return [condition for condition in found if condition != 1]


def truth(condition: Compare, known: Sequence[tuple[Index, Expr, Expr]]) -> bool | None:
    """Whether a condition on letters holds everywhere (True), nowhere (False), or it cannot be said."""
    if names(condition):
        return None
    left, right = condition.sides
    above, below = nonnegative(right - left - 1, known), nonnegative(left - right - 1, known)
    if condition.op == "<":
        return True if above else False if nonnegative(left - right, known) else None
    if condition.op == "<=":
        return True if nonnegative(right - left, known) else False if below else None
    if (right - left).expand() == 0:
        return condition.op == "=="
    return (condition.op == "!=") if above or below else None


def lower_index(low: Lowering, expr: Index, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    if expr not in ranges:
        return Part(low.graph.scalar(expr))
    return Part(low.graph.arange(*ranges[expr]), (expr,))


def lower_add(low: Lowering, expr: Add, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    return low.add([low.lower(term, ranges, wanted) for term in expr.args], wanted)


def lower_pow(low: Lowering, expr: Pow, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    parts = [low.lower(expr.base, ranges, wanted), low.lower(expr.exp, ranges, wanted)]
    return low.elementwise("pow", lambda nodes: low.graph.pow(*nodes), parts, wanted)


def lower_where(low: Lowering, expr: where, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    from gradproof.numeric.lowering.product import may_be_undefined

    condition, *branches = expr.args
    chosen = lower_condition(low, condition, ranges, wanted)
    if chosen.node.op == "scalar":
        return low.lower(branches[0] if chosen.node.data[0] != 0 else branches[1], ranges, wanted)
    parts = [chosen, *(low.lower(x, ranges, wanted) for x in branches)]
    risky = any(may_be_undefined(low, branch) for branch in expr.args[1:])
    return low.elementwise(("where", risky), lambda nodes: low.graph.where(nodes, risky), parts, wanted)


def lower_condition(low: Lowering, expr: Expr, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    """A condition, or several that must all hold, as booleans."""
    known = [(letter, lo, hi) for letter, (lo, hi) in ranges.items()]
    pieces = [f for f in Mul.make_args(expr) if not (isinstance(f, Compare) and truth(f, known) is True)]
    if not pieces:
        return Part(low.graph.scalar(1))
    return low.mul([low.lower(piece, ranges, wanted) for piece in pieces], wanted)


def lower_function(low: Lowering, expr: Function, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    name = type(expr).__name__
    parts = [low.lower(arg, ranges, wanted) for arg in expr.args]
    return low.elementwise(name, lambda nodes: low.graph.call(name, nodes), parts, wanted)


def lower_compare(low: Lowering, expr: Compare, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    left, right = expr.sides
    between_letters = expr.op == "==" and isinstance(left, Index) and isinstance(right, Index)
    if between_letters and left in ranges and ranges[left] == ranges.get(right):
        lo, hi = ranges[left]
        size = (hi - lo).expand()
        return Part(low.graph.make("eye", (), (), (size, size), "b"), (left, right))
    parts = [low.lower(side, ranges, wanted) for side in (left, right)]
    if all(part.node.op == "scalar" for part in parts):
        decided = compare(expr.op, *(part.node.data[0] for part in parts))
        if not isinstance(decided, Compare):
            return Part(low.graph.scalar(decided))
    return low.elementwise(("compare", expr.op), lambda nodes: low.graph.compare(expr.op, *nodes), parts, wanted)


def lower_reduce(low: Lowering, expr: Reduce, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    from gradproof.numeric.lowering.product import lower_sum

    body, axes = open_(expr, ranges)
    if expr.op == "sum":
        return lower_sum(low, body, axes, ranges, wanted)
    inner = low.over(ranges, axes)
    conditions = range_conditions(axes, inner)
    if conditions:
        body = where(Mul(*conditions), body, {"max": S.NegativeInfinity, "prod": S.One}[expr.op])
    summed = [letter for letter, _, _ in axes]
    part = low.lower(body, inner, [*wanted, *summed])
    present = [letter for letter in summed if letter in part.letters]
    result = reduced(low, expr.op, part, present)
    missing = [letter for letter in summed if letter not in part.letters]
    if expr.op == "prod" and missing:
        times = Mul(*(length(lo, hi) for letter, (lo, hi) in inner.items() if letter in missing))
        powers = [result, Part(low.graph.scalar(times))]
        return low.elementwise("pow", lambda nodes: low.graph.pow(*nodes), powers, wanted)
    return result


def reduced(low: Lowering, op: str, part: Part, over: Sequence[Index]) -> Part:
    """A reduction of an array over some of its letters."""
    if not over:
        return part
    axes = sorted(part.letters.index(letter) for letter in over)
    node = low.graph.reduce(op, part.node, axes)
    return Part(node, tuple(letter for letter in part.letters if letter not in over))


def lower_implicit(low: Lowering, expr: Implicit, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    """An inverse or a determinant of a whole matrix."""
    node = low.value(expr.matrix)
    batch = node.shape[:-2]
    shape = node.shape if expr.kind == "inv" else batch
    if any(not isinstance(index, Index) for index in expr.indices):
        raise GradproofError(f"{expr} must be the whole right side of an equation")
    return Part(low.graph.make(expr.kind, [node], (), shape), tuple(expr.indices))


def lower_product(low: Lowering, expr: Mul, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    from gradproof.numeric.lowering.product import lower_terms

    return lower_terms(low, Mul.make_args(expr), [], ranges, wanted)


def _lower_access(low: Lowering, expr: Access, ranges: Ranges, wanted: Sequence[Index]) -> Part:
    from gradproof.numeric.lowering.access import lower_access

    return lower_access(low, expr, ranges, wanted)


Rule = Callable[[Lowering, Any, Ranges, Sequence[Index]], Part]
RULES: tuple[tuple[type, Rule], ...] = (
    (Access, _lower_access),
    (Implicit, lower_implicit),
    (Reduce, lower_reduce),
    (Compare, lower_compare),
    (Index, lower_index),
    (Add, lower_add),
    (Mul, lower_product),
    (Pow, lower_pow),
    (where, lower_where),
    (Function, lower_function),
)

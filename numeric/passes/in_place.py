"""Programs that work in place: for training, where new memory and every pass over an array cost.

    Y = X0 + C @ W + b            →   Y = C @ W;  Y += X0;  Y += b
    E = exp(S − m)                →   E = S − m;  exp of E, written into E
    S where the mask allows, else −∞   →   S += (0 where the mask allows, else −∞)
    P[b,v] − δ(v, y[b])           →   a copy of P;  one entry of each row −= 1
    h[t+1] = x[t] + h[t] @ W, in a loop   →   h[t] @ W, written into h[t+1];  h[t+1] += x[t]

The first operand that is a new array becomes the result. An array that is read for the last time gives its memory to
the result (E = exp(S), written into S).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import sympy

from gradproof.numeric.lowering.nodes import (
    STATEMENTS,
    Node,
    broadcast_shape,
    extent,
    factors,
    is_inverse,
    is_scalar,
    negative,
)
from gradproof.numeric.lowering.program import Assign, Loop, Program, Statement, Update, Write, arrays_in, nodes_of
from gradproof.numeric.passes.liveness import PASSED, fresh, last_reads
from gradproof.numeric.passes.one_hot import one_hot, times
from gradproof.numeric.passes.spread import put, spread
from gradproof.numeric.passes.sums import sums_as_products


@dataclass(frozen=True)
class Steps:
    """The first value of a target, the array whose memory receives it, and the statements that complete it."""

    value: Node
    out: Node | None = None
    rest: tuple[Statement, ...] = ()

    def then(self, *statements: Statement) -> Steps:
        return replace(self, rest=(*self.rest, *statements))


@dataclass(frozen=True)
class InPlace:
    """`ufuncs` are the functions that can write into an array; `overwrite` are arguments whose memory may be used."""

    ufuncs: Collection[str]
    typed: bool  # whether an argument says which type of number the arrays hold
    overwrite: Collection[str] = ()
    giving: frozenset[str] = field(default=frozenset())  # what the statement at hand reads for the last time

    def program(self, program: Program) -> Program:
        dying = last_reads(program, self.overwrite)
        found: list[Statement] = []
        for k, statement in enumerate(program.statements):
            found += replace(self, giving=dying.get(k, frozenset())).statement(statement, program.owned)
        return replace(program, statements=tuple(sums_as_products(found)))

    def statement(self, item: Statement, owned: Collection[str]) -> list[Statement]:
        if isinstance(item, Loop):
            inside = replace(self, giving=frozenset())
            body = (made for part in item.body for made in inside.statement(part, owned))
            return [replace(item, body=tuple(body))]
        if not isinstance(item, Assign):
            return [item]
        plain = spread(item, owned)
        if item.value.kind != "f" or not item.value.rank:
            return plain
        if not item.whole:
            return self.stored(item) or plain
        if item.value.op in ("array", "empty") or (len(plain) > 1 and item.value.op != "add"):
            return plain
        steps = self.steps(item.target, item.value)
        given = steps.out.data[0] if steps.out is not None else None
        if given is not None and any(given in arrays_in(*nodes_of(s)) for s in steps.rest):
            steps = replace(self, giving=frozenset()).steps(item.target, item.value)  # it is read once more
        first = replace(item, value=steps.value, out=steps.out)
        return [*spread(first, owned), *steps.rest]

    # ------------------------------------------------------------------------------------------- parts of larger arrays

    def stored(self, item: Assign) -> list[Statement] | None:
        """A part of an array is computed where it belongs, without a new array that is copied there."""
        found = self.written(item.target, item.value)
        return [replace(found[0], comment=item.comment), *found[1]] if found else None

    def written(self, target: Node, node: Node) -> tuple[Write, list[Update]] | None:
        """The statements that write a new array into the memory of the target."""
        if node.op == "array" or not node.rank:
            return None
        if (node.op == "matmul" and all(arg.rank == 2 for arg in node.args)) or self.ufunc(node):
            return Write(target, node), []
        if node.op == "mul":
            args = factors(node)
            if any(arg.op == "scalar" or is_inverse(arg) for arg in args):
                return None
            first, *rest = sorted(args, key=lambda arg: -extent(arg))
            return Write(target, pair("mul", first, times(rest))), []
        if node.op == "add":
            above = [arg for arg in node.args if not negative(arg) and arg.shape == node.shape]
            for host in sorted(above, key=lambda arg: arg.op != "matmul"):
                if (found := self.written(target, host)) is not None:
                    return found[0], [*found[1], *(Update(target, "+", arg) for arg in node.args if arg is not host)]
        return None

    def ufunc(self, node: Node) -> bool:
        return node.op == "call" and node.data[0] in self.ufuncs

    # ----------------------------------------------------------------------------------------------------- whole arrays

    def steps(self, target: Node, node: Node) -> Steps:
        """The first value of the target, and the statements that make it the value of the node."""
        rules: dict[str, Callable[[Node, Node], Steps | None]] = {
            "add": self.added,
            "mul": self.multiplied,
            "call": self.applied,
            "where": self.masked,
            "view": self.laid_out,
        }
        made = rules[node.op](target, node) if node.op in rules else None
        return made or Steps(node)

    def host(self, node: Node, args: Sequence[Node]) -> Node | None:
        """The operand that becomes the result: a new array of the same shape."""
        found = [arg for arg in args if arg.shape == node.shape and fresh(arg)]
        return max(found, key=lambda a: (a.op in (*PASSED, "matmul"), self.given(a, a.args) is not None), default=None)

    def given(self, node: Node, args: Sequence[Node]) -> Node | None:
        """An operand that is read for the last time and gives its memory."""
        return next((a for a in args if a.op == "array" and a.data[0] in self.giving and a.shape == node.shape), None)

    def added(self, target: Node, node: Node) -> Steps | None:
        changes = {arg: change for arg in node.args if (change := one_hot(target, arg)) is not None}
        later = [arg for arg in node.args if arg.op in STATEMENTS]
        terms = [arg for arg in node.args if arg not in changes and arg not in later]
        above = [arg for arg in terms if not negative(arg)]
        host, given = self.host(node, above), self.given(node, above)
        if host is not None:
            steps = self.steps(target, host)
            rest = [arg for arg in terms if arg is not host]
        elif given is not None and len(terms) > 1:
            second = next(arg for arg in terms if arg is not given)
            steps = Steps(pair("add", given, second), given)
            rest = [arg for arg in terms if arg not in (given, second)]
        elif changes and len(terms) == 1 and above and above[0].shape == node.shape:
            steps, rest = Steps(Node("copy", (above[0],), (), node.shape)), []
        elif later and not terms and not changes:
            steps, rest = Steps(Node("zeros", shape=node.shape)), []
        else:
            return None
        steps = steps.then(*(Update(target, "+", arg) for arg in rest))
        return steps.then(*(s for arg in later for s in put(target, arg)), *changes.values())

    def multiplied(self, target: Node, node: Node) -> Steps | None:
        args = factors(node)
        host, given = self.host(node, args), self.given(node, args)
        if host is not None:
            rest = [arg for arg in args if arg is not host]
            return self.steps(target, host).then(*times_in_place(target, node, rest))
        if given is not None and len(args) == 2:
            (other,) = (arg for arg in args if arg is not given)
            return Steps(pair("mul", given, other), given)
        return None

    def applied(self, target: Node, node: Node) -> Steps | None:
        """A function of a new array, written into that array."""
        if not self.ufunc(node):
            return None
        host, given = self.host(node, node.args), self.given(node, node.args)
        chosen = host or given
        if chosen is None or node.args.count(chosen) > 1:
            return None
        if host is None:
            return Steps(node, given)
        args = tuple(target if arg is host else arg for arg in node.args)
        return self.steps(target, host).then(Write(target, replace(node, args=args)))

    def laid_out(self, target: Node, node: Node) -> Steps | None:
        """A transposed batch of matrix products is written where it belongs, so that the result can be reshaped."""
        (arg,) = node.args
        if arg.op != "matmul" or arg.rank < 3 or None in node.data:
            return None
        back = tuple(node.data.index(axis) for axis in range(arg.rank))
        turned = Node("view", (target,), back, arg.shape)
        return Steps(Node("empty", shape=node.shape), None, (Write(turned, arg),))

    def masked(self, target: Node, node: Node) -> Steps | None:
        """−∞ where a smaller mask forbids: added once it is made."""
        condition, value, other = node.args
        risky = bool(node.data[0])
        if risky or not is_scalar(other, -sympy.oo) or extent(condition) >= extent(node) or not self.typed:
            return None
        zero = Node("scalar", (), (sympy.S.Zero,), (), "i")
        mask = Node("where", (condition, zero, other), (False,), condition.shape)
        mask = Node("float", (mask,), (), condition.shape)
        if (host := self.host(node, [value])) is not None:
            return self.steps(target, host).then(Update(target, "+", mask))
        if (given := self.given(node, [value])) is not None:
            return Steps(pair("add", given, mask), given)
        return Steps(pair("add", value, mask)) if value.shape == node.shape else None


def pair(op: str, a: Node, b: Node) -> Node:
    return Node(op, (a, b), (), broadcast_shape([a, b]))


def times_in_place(target: Node, node: Node, args: Sequence[Node]) -> Iterable[Update]:
    """Statements that multiply the target: by each full array, then by the product of everything smaller."""
    large = [arg for arg in args if extent(arg) == extent(node)]
    yield from (Update(target, "/" if is_inverse(arg) else "*", arg) for arg in large)
    if small := [arg for arg in args if arg not in large]:
        yield Update(target, "*", times(small))

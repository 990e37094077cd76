"""From a system of equations to the code of a function: the passes in their order, then the spelling.

stable forms → lowering → solutions instead of inverses → schedule → deletions → in place, or spread out → emitter
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import sympy
from sympy import Symbol

from gradproof.numeric.emitters.arguments import Arguments
from gradproof.numeric.emitters.expressions import Emitter
from gradproof.numeric.emitters.source import Result, Source, complete, documented, header, namespace
from gradproof.numeric.lowering.lower import Lowering
from gradproof.numeric.lowering.nodes import Node, identifier, parts
from gradproof.numeric.lowering.program import Assign, Program, nodes_of, walk
from gradproof.numeric.lowering.statements import lower_system
from gradproof.numeric.passes.deleting import with_deletions
from gradproof.numeric.passes.in_place import InPlace
from gradproof.numeric.passes.schedule import Schedule
from gradproof.numeric.passes.sizes import measures, mentioned, needs, readings
from gradproof.numeric.passes.solving import with_solutions
from gradproof.numeric.passes.spread import spread, spread_out
from gradproof.numeric.passes.sums import faster, sums_as_products
from gradproof.symbolic.equations.expr import Access
from gradproof.symbolic.equations.system import Array, Equation, System
from gradproof.symbolic.errors import GradproofError


class Builder:
    """Everything between a system and its compiled function: the passes in their order, and the spelling."""

    def __init__(
        self,
        system: System,
        emitter: type[Emitter],
        arrays: Sequence[Array],
        unused: Sequence[Array],
        result: Result,
        comment: Callable[[Equation], str],
        overwrite: Sequence[str],
        typed: System,
    ) -> None:
        self.system, self.result, self.comment = system, result, comment
        self.arrays, self.unused = list(arrays), tuple(unused)
        self.needs = tuple(dict.fromkeys([*needs(system), *needs(typed)]))
        floats = [a for a in arrays if a.below is None and a.rank]
        like = {array.shape: identifier(array.name) for array in reversed(floats)}
        dtype = f"{identifier(floats[0].name)}.dtype" if floats else ""
        self.quick = InPlace(emitter.ufuncs(), bool(dtype), overwrite) if emitter.in_place else None
        self.emitter, self.measuring = emitter(like, dtype), emitter(like, dtype)
        self.program = self.rewritten()
        lines = self.emitter.assignments(self.program.statements)
        read = readings(self.arrays)
        self.used = mentioned(system, self.emitter.symbols, read)
        self.lines = [*self.emitter.assignments(measures(self.arrays, read, self.used)), *lines]
        self.sizes = [str(size) for size in self.used if size not in read]
        self.risky = any(
            node.op == "where" and node.data[0] for s in walk(self.program.statements) for node in parts(*nodes_of(s))
        )

    def rewritten(self) -> Program:
        low = Lowering(self.system)
        returned = [identifier(name) for name in self.result.names]
        statements = with_solutions(low.graph, lower_system(low, self.system), returned)
        taken = [*map(identifier, self.system.arrays), *(size.name for size in self.system.sizes)]
        program = Schedule(low.graph, statements, self, returned, taken, self.comment).program
        program = with_deletions(program)
        return self.quick.program(program) if self.quick else spread_out(program)

    def line(self, statement: Assign, owned: Collection[str]) -> int:
        """The length of the longest line of a statement, as the passes will leave it."""
        found = self.quick.statement(statement, owned) if self.quick else spread(statement, owned)
        found = sums_as_products(found) if self.quick else found
        return max(len(line) for s in found for line in self.measuring.lines(s))

    def part(self, node: Node) -> int:
        return len(self.measuring.expression(faster(node) if self.quick else node))

    def function(self, name: str, device: str) -> tuple[Callable[..., Any], Arguments]:
        """The function, and how it takes its arguments.

        The last step is `sympy.lambdify` with the emitter as its printer and the program as the schedule of its lines.
        Raises GradproofError where the library is missing.
        """
        try:
            arguments = self.emitter.arguments(self.arrays, self.used, device)
            names = namespace(self.emitter)
        except ModuleNotFoundError as error:
            raise GradproofError(f"{error.name} is not installed: its code can be printed, but not run") from None
        arguments = replace(arguments, unused=self.unused, needs=self.needs)
        function = sympy.lambdify(
            [Symbol(name) for name in self.parameters],
            sympy.Tuple(*(Access(name) for name in self.result.names)),
            modules=[names],
            printer=self.emitter,
            cse=lambda outputs: (self.lines, self.result),
        )
        function.__name__, function.__doc__ = self.named(name), self.docstring().strip().strip('"')
        return self.emitter.decorate(function, self.risky, self.sizes), arguments

    @property
    def parameters(self) -> list[str]:
        return [*(identifier(array.name) for array in self.arrays), *map(identifier, self.sizes)]

    def named(self, name: str) -> str:
        return name or ("forward" if self.result.variables is None else "value_and_gradients")

    def source(self, name: str) -> Source:
        """A file that stands alone."""
        body = [f"    {target} = {value}" for target, value in self.lines] + self.result.lines()
        head = header(self.named(name), self.parameters)
        decorator = self.emitter.decorator(self.risky, self.sizes)
        return complete(self.emitter, head, decorator, self.docstring(), body)

    def docstring(self) -> str:
        """What the function computes, and the shapes of its arguments."""
        value, *_ = self.result.names
        what = ", ".join(self.result.names)
        if self.result.variables is not None:
            what = f"{value} and its gradients with respect to {', '.join(self.result.variables)}"
        shapes = [f"{a.name} ({', '.join(map(self.measuring.number, a.shape))})" for a in self.arrays]
        return documented(f"{what}.", shapes)

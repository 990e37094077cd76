"""Compile a system of index equations to a function on arrays, whose source can be read and stands alone.

One call of `sympy.lambdify` makes the function: `printer=` is our printer, and `cse=` is a callable that lowers the
equations and returns the lines.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import sympy
from sympy import Expr, Symbol

from gradproof.numeric.arguments import Arguments
from gradproof.numeric.lower import Lowering
from gradproof.numeric.nodes import Node
from gradproof.numeric.numpy_printer import NumpyPrinter
from gradproof.numeric.schedule import Entry, Schedule, identifier
from gradproof.numeric.stable import stabilise
from gradproof.numeric.statements import lower_system
from gradproof.symbolic.expr import Access
from gradproof.symbolic.system import Equation, System


class Derivation(Protocol):
    """What is used of a derivation: a system whose outputs are the gradients of one of its arrays."""

    system: System
    output: str
    wrt: tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """A function on arrays; call it with the arrays by name."""

    name: str
    source: str
    function: Callable[..., Any]
    arguments: Arguments
    gradients: tuple[str, ...] | None  # the variables, if the function returns (value, gradients)

    def __call__(self, **arrays: Any) -> Any:
        values, dtype = self.arguments.check(arrays)
        result = self.function(**values)
        if self.gradients is None:
            return {name: self.arguments.finish(value, dtype) for name, value in result.items()}
        value, gradients = result
        finished = {name: self.arguments.finish(gradient, dtype) for name, gradient in gradients.items()}
        return self.arguments.finish(value, dtype), finished

    def __repr__(self) -> str:
        return f"<compiled {self.name}({', '.join(self.arguments.names)})>"


def compile_numpy(
    derived: System | Derivation,
    outputs: Sequence[str] | None = None,
    name: str = "",
    comment: Callable[[Equation], str] | None = None,
) -> Compiled:
    """The function that computes a system's outputs, or a derivation's value and gradients.

    >>> from gradproof.symbolic.expr import Index, Size, sum_
    >>> from gradproof.symbolic.system import Array
    >>> from gradproof.symbolic.calculus import whole
    >>> i, n = Index("i"), Size("n")
    >>> total = whole(Array("L"), sum_(Access("x", i) ** 2, [(i, 0, n)]))
    >>> f = compile_numpy(System({"x": Array("x", (n,)), "L": Array("L")}, (total,), ("L",)))
    >>> f(x=[1.0, 2.0, 2.0])
    {'L': 9.0}
    """
    return compile_with(NumpyPrinter, Arguments, derived, outputs, name, comment)


def compile_with(
    printer_type: type[NumpyPrinter],
    arguments_type: type[Arguments],
    derived: System | Derivation,
    outputs: Sequence[str] | None,
    name: str,
    comment: Callable[[Equation], str] | None,
) -> Compiled:
    """Lower, print and compile, for one array library."""
    if isinstance(derived, System):
        system, value, wrt = derived, None, None
        wanted = tuple(outputs or system.outputs)
    else:
        system, value, wrt = derived.system, derived.output, tuple(derived.wrt)
        wanted = (value, *system.outputs)
    name = name or ("forward" if value is None else "value_and_gradients")
    system = stabilise(system.needed(wanted))
    low = Lowering(renamed(system))
    made = Build(low, printer_type, comment or (lambda equation: ""))
    arguments = arguments_type.of(system, made.used_sizes)
    result = Result(wanted if value is None else tuple(wanted[1:]), value, wrt)
    function, source = made.function(name, arguments, result)
    return Compiled(name, source, function, arguments, wrt)

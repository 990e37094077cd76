"""Programs as JAX code, under `jax.jit`: arrays do not change, so that an update makes a new array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any

import numpy as np
from sympy import Symbol

from gradproof.numeric.emitters.arguments import ArgumentError, Arguments
from gradproof.numeric.emitters.expressions import Emitter
from gradproof.numeric.emitters.numbers import UNARY
from gradproof.numeric.emitters.numpy_emitter import FUNCTIONS, SCIPY, TABLE
from gradproof.numeric.emitters.statements import INDENT
from gradproof.numeric.lowering.nodes import Cut, Node, free_symbols, parts
from gradproof.numeric.lowering.program import Assign, Loop, ScatterAdd, Statement, Update, nodes_of, walk
from gradproof.symbolic.equations.functions import spellings
from gradproof.symbolic.equations.system import Array

JAX_TABLE = {
    **{key: form.replace("np.", "jnp.") for key, form in TABLE.items()},
    "float_number": "jnp.asarray({0}, {dtype})",
    "copy": "{0}",
    "inf": "jnp.inf",
}

JAX_FUNCTIONS = {
    **{name: form.replace("np.", "jnp.") for name, form in FUNCTIONS.items()},
    **spellings("jax"),
}

WINDOWS = '''def sliding_window_view(x, width, axis=0):
    """All windows of a width along an axis; the place inside the window becomes the last axis."""
    starts = jnp.arange(x.shape[axis] - width + 1)
    return jnp.moveaxis(jnp.take(x, starts[:, None] + jnp.arange(width), axis=axis), axis + 1, -1)
'''


class JaxEmitter(Emitter):
    """Spells programs as JAX code.

    >>> from gradproof.numeric.lowering.nodes import Graph
    >>> g, n = Graph(), Symbol("n")
    >>> x, w = g.array("x", (n,)), g.array("w", (n,), "i")
    >>> JaxEmitter().lines(ScatterAdd(g.array("y", (n,)), (w,), x))
    ['y = y.at[w].add(x)']
    """

    table: Mapping[str, str] = JAX_TABLE
    functions: Mapping[str, str] = JAX_FUNCTIONS
    helpers: Mapping[str, str] = {"sliding_window_view(": WINDOWS}
    imports: Mapping[str, str] = {
        "math.": "import math",
        "partial(": "from functools import partial",
        "jax.": "import jax",
        "jnp.": "import jax.numpy as jnp",
        **SCIPY,
    }

    @classmethod
    def arguments(cls, arrays: Iterable[Array], sizes: Iterable[Symbol], device: str) -> Arguments:
        plain = Arguments.of(arrays, sizes)
        return JaxArguments(**{field.name: getattr(plain, field.name) for field in fields(plain)})

    def decorator(self, risky: bool, sizes: Sequence[str]) -> str:
        if not sizes:
            return "@jax.jit"
        return f"@partial(jax.jit, static_argnames=({', '.join(map(repr, sizes))},))".replace("'", '"')

    def decorate(self, function: Callable[..., Any], risky: bool, sizes: Sequence[str]) -> Callable[..., Any]:
        """Compiled, and with 64 bits where the arguments have them."""
        import jax

        compiled = jax.jit(function, static_argnames=tuple(sizes))

        @wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            with jax.enable_x64(True):
                return compiled(*args, **named)

        return run

    # ----------------------------------------------------------------------------------------------------- statements

    def lines(self, item: Statement) -> list[str]:
        """A recurrence is a loop of `jax.lax`; it is unrolled where a slice depends on the step."""
        if not isinstance(item, Loop) or not only_chooses(item):
            return super().lines(item)
        letter, state = item.letter, sorted({s.name for s in walk(item.body) if isinstance(s, Assign) and not s.whole})
        names = f"({', '.join(state)}{',' * (len(state) == 1)})"
        turned = [f"{letter} = {self.number(item.start + item.stop - 1)} - {letter}"] * item.down
        body = [f"{names} = _state", *turned, *(line for part in item.body for line in self.lines(part))]
        loop = self.use("jax.lax.fori_loop({}, {}, _turn, {})").format(
            *map(self.number, (item.start, item.stop)), names
        )
        inside = (f"{INDENT}{line}" for line in (*body, f"return {names}"))
        return [f"def _turn({letter}, _state):", *inside, f"{names} = {loop}"]

    def assigned(self, item: Assign) -> tuple[str, str]:
        if item.whole:
            return super().assigned(item)
        return self.changed(item.target, "set", self.expression(item.value))

    def updated(self, item: Update) -> str:
        if not item.target.args:
            return super().updated(item)
        minus, what = self.term(item.value, UNARY)
        return " = ".join(self.changed(item.target, "add", f"-{what}" if minus else what))

    def scattered(self, item: ScatterAdd) -> str:
        target, *places = map(self.expression, (item.target, *item.places))
        inside = places[0] if len(places) == 1 else f"({', '.join(places)})"
        values = f"{target}.at[{inside}].add({self.expression(item.values)})"
        return " = ".join(self.changed(item.target, "set", values))

    def changed(self, target: Node, how: str, value: str) -> tuple[str, str]:
        """Both sides of the assignment that changes a part of an array, or the array as a whole."""
        if not target.args:
            return self.expression(target), value
        (whole,) = target.args
        place = f"{self.expression(whole)}.at{self.subscript(target.data, whole.shape)}"
        return self.changed(whole, "set", f"{place}.{how}({value})")


def only_chooses(loop: Loop) -> bool:
    """Whether the letter of a loop does nothing but choose entries: h[t - 1], and no slice and no number."""
    nodes = [node for s in walk(loop.body) for node in (*nodes_of(s), *([s.target] if isinstance(s, Assign) else []))]
    cuts = (item for node in parts(*nodes) for item in node.data if node.op != "index" or isinstance(item, Cut))
    return not any(loop.letter in free_symbols(item) for item in cuts) and all(isinstance(s, Assign) for s in loop.body)


class JaxArguments(Arguments):
    """Arrays of JAX, or of NumPy."""

    def convert(self, array: Array, value: Any) -> Any:
        try:
            return super().convert(array, value)
        except TypeError as error:  # an array that jit traces has no numbers yet
            raise ArgumentError(f"{array.name} holds no numbers: call .function inside of jax.jit") from error

    def dtype(self, values: Iterable[Any]) -> Any:
        return super().dtype(np.asarray(value) if hasattr(value, "dtype") else value for value in values)

    def finish(self, value: Any, dtype: Any, inputs: Iterable[Any] = ()) -> Any:
        import jax

        with jax.enable_x64(True):
            return jax.numpy.asarray(value, dtype)

"""Array operations and statements as NumPy code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from gradproof.numeric.emitters.expressions import Emitter
from gradproof.numeric.emitters.numbers import COMPARE
from gradproof.numeric.lowering.nodes import Node
from gradproof.numeric.lowering.program import ScatterAdd
from gradproof.symbolic.equations.functions import ELEMENTWISE, Elementwise, spellings

TABLE = {
    "arange": "np.arange({0}, {1})",
    "arange0": "np.arange({1})",
    "eye": "np.eye({0}, dtype=bool)",
    "eye_float": "np.eye({0}{dtype})",
    "float": "{0}.astype({dtype})",
    "float_number": "float({0})",
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
    "cumsum": "{0}.cumsum({axis})",
    "broadcast": "np.broadcast_to({0}, {shape})",
    "full": "np.full({shape}, {0})",
    "full_number": "np.full({shape}, {0}{dtype})",
    "full_like": "np.full_like({like}, {0})",
    "zeros": "np.zeros({shape}{dtype})",
    "zeros_like": "np.zeros_like({like})",
    "empty": "np.empty({shape}{dtype})",
    "empty_like": "np.empty_like({like})",
    "ones": "np.ones({shape}{dtype})",
    "ones_like": "np.ones_like({like})",
    "pad": "np.pad({0}, {pads})",
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
    **spellings("numpy"),
    "maximum": "np.maximum({}, {})",
    "log1p": "np.log1p({})",
    "expm1": "np.expm1({})",
    "logaddexp": "np.logaddexp({}, {})",
}

FALLBACK = '''try:
    from scipy.special import {entry.scipy}
except ImportError:

    def {mark}x):
        """{python}, entry by entry."""
        values = [{value} for value in np.ravel(x)]
        return np.array(values, x.dtype).reshape(np.shape(x))
'''


def mark(entry: Elementwise) -> str:
    """What calls a function of SciPy's: the name under which it is imported."""
    return f"{entry.scipy.split()[-1]}("


IN_SCIPY = [entry for entry in ELEMENTWISE.values() if entry.scipy]
IN_MATH = [entry for entry in IN_SCIPY if entry.python.startswith("math.")]  # these run without SciPy, too
HELPERS = {
    "sigmoid(": '''def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)
''',
    **{
        mark(entry): FALLBACK.format(
            entry=entry, mark=mark(entry), python=entry.python.format("x"), value=entry.python.format("value")
        )
        for entry in IN_MATH
    },
}
SCIPY = {mark(entry): f"from scipy.special import {entry.scipy}" for entry in IN_SCIPY if entry not in IN_MATH}
IMPORTS = {
    "math.": "import math",
    "np.": "import numpy as np",
    **SCIPY,
    "sliding_window_view(": "from numpy.lib.stride_tricks import sliding_window_view",
}

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


class NumpyEmitter(Emitter):
    """Spells programs as NumPy code.

    >>> from sympy import Symbol
    >>> from gradproof.numeric.lowering.nodes import Graph
    >>> g, n = Graph(), Symbol("n")
    >>> x = g.array("x", (n,))
    >>> NumpyEmitter().doprint(g.reduce("sum", g.pow(x, g.scalar(2)), [0]))
    '(x ** 2).sum()'
    """

    table: Mapping[str, str] = TABLE
    functions: Mapping[str, str] = FUNCTIONS
    helpers: Mapping[str, str] = HELPERS
    imports: Mapping[str, str] = IMPORTS

    def decorator(self, risky: bool, sizes: Sequence[str]) -> str:
        errors = 'divide="ignore", over="ignore", invalid="ignore"'
        return f"@np.errstate({errors})  # np.where computes both branches" if risky else ""

    def decorate(self, function: Callable[..., Any], risky: bool, sizes: Sequence[str]) -> Callable[..., Any]:
        return np.errstate(divide="ignore", over="ignore", invalid="ignore")(function) if risky else function


class InPlaceNumpyEmitter(NumpyEmitter):
    """The same for programs that work in place.

    >>> from gradproof.numeric.lowering.nodes import Graph
    >>> from gradproof.numeric.lowering.program import Write
    >>> from sympy import Symbol
    >>> g, n = Graph(), Symbol("n")
    >>> x, y = g.array("x", (n,)), g.array("y", (n,))
    >>> InPlaceNumpyEmitter().lines(Write(y, g.call("exp", [g.add([x, y])])))
    ['np.exp(x + y, out=y)']
    """

    in_place = True
    table: Mapping[str, str] = {
        **TABLE,
        "scatter": "add_rows({target}, {places}, {values})",
        "matmul_into": "np.matmul({0}, {1}, out={out})",
        "add_into": "np.add({0}, {1}, out={out})",
        "subtract_into": "np.subtract({0}, {1}, out={out})",
        "mul_into": "np.multiply({0}, {1}, out={out})",
    }
    helpers: Mapping[str, str] = {**HELPERS, "add_rows(": ADD_ROWS, "sigmoid(": SIGMOID}

    @classmethod
    @cache
    def ufuncs(cls) -> frozenset[str]:
        """The functions whose form is one call of a ufunc."""
        found = set()
        for name, form in FUNCTIONS.items():
            function, _, inside = form.removesuffix(")").partition("(")
            if isinstance(getattr(np, function.removeprefix("np."), None), np.ufunc) and "(" not in inside:
                found.add(name)
        return frozenset(found)

    def scattered(self, item: ScatterAdd) -> str:
        if len(item.places) == 1:
            return super().scattered(item)
        target, *places, values = map(self.expression, (item.target, *item.places, item.values))
        return self.use(TABLE["scatter"]).format(target=target, places=f"({', '.join(places)})", values=values)

    def written(self, node: Node, out: str) -> str:
        if node.op == "call":
            return f"{self.called(node.data[0], node.args).removesuffix(')')}, out={out})"
        first, second = map(self.expression, node.args)
        if node.op != "add":
            return self.form(f"{node.op}_into", first, second, out=out)
        minus, what = self.term(node.args[1], COMPARE)
        return self.form("subtract_into" if minus else "add_into", first, what, out=out)

"""The value of a printed formula's tree at a point, by NumPy's linear algebra: what the tests compare with the entries.

Columns have shape (n, 1). Shapes are strict: only a number or a `Spread` vector stretches to a matrix.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import mpmath
import numpy as np
from sympy import Expr

from gradproof.symbolic.equations.evaluate import HighPrecision, Point, Undefined
from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.printing import nodes
from gradproof.symbolic.printing.forms import readable, sides
from gradproof.symbolic.printing.letters import Letters

ZERO = float("0.0")  # of any shape
RELATIONS = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}


class Values:
    """Evaluates trees over the arrays of one point under given letters."""

    def __init__(self, point: Point, letters: dict[Index, int]) -> None:
        self.point, self.letters = point, letters

    def real(self, expr: Expr, letters: dict[Index, int] | None = None) -> float:
        return float(self.point.value(expr, self.letters if letters is None else letters))

    def integer(self, expr: Expr) -> int:
        return self.point.integer(expr, self.letters)

    def of(self, node: nodes.Node) -> Any:
        value = getattr(self, type(node).__name__.lower())(node)
        if value is ZERO:
            return value
        assert node.rank == (0 if np.ndim(value) == 0 else 1 if value.shape[1] == 1 and node.rank == 1 else 2), node
        return value

    def number(self, node: nodes.Number) -> float:
        return self.real(node.value)

    def name(self, node: nodes.Name) -> Any:
        shape = self.point.shape(node.name)
        array = self.point.system.arrays[node.name]
        origin = array.starts or (0,) * array.rank
        axes = [
            range(first, first + size) if index is None else [self.integer(index)]
            for index, size, first in zip(node.at, shape, origin, strict=True)
        ]
        values = [float(self.point.entry(node.name, place)) for place in product(*axes)]
        sizes = [size for index, size in zip(node.at, shape, strict=True) if index is None]
        found = np.array(values).reshape(sizes)
        return found[:, None] if node.rank == 1 else found if node.rank else float(found)

    def sum(self, node: nodes.Sum) -> Any:
        self.check_fit(node.children, [self.of(child) for child in node.children])
        return sum(sign * self.of(child) for sign, child in node.terms)

    def check_fit(self, children: Any, values: list[Any]) -> None:
        """Numbers and spread vectors may stretch; everything else has the full shape."""
        full = np.broadcast_shapes(*(np.shape(value) for value in values))
        for child, value in zip(children, values, strict=True):
            if child.rank and value is not ZERO and not self.stretches(child):
                assert np.shape(value) == full, f"{child} of shape {np.shape(value)} among {full}"

    def stretches(self, node: nodes.Node) -> bool:
        if isinstance(node, nodes.Spread):
            return True
        inside = [child for child in node.children if child.rank]
        elementwise = isinstance(node, nodes.Hadamard | nodes.Over | nodes.Power | nodes.Call | nodes.Sum)
        return elementwise and bool(inside) and all(self.stretches(child) for child in inside)

    def times(self, node: nodes.Times) -> Any:
        scalar, chain = 1.0, None
        if any(isinstance(f, nodes.Relation) and not f.rank and not self.of(f) for f in node.factors):
            return ZERO  # what a failed condition guards is never looked at
        for factor in node.factors:
            value = self.of(factor)
            if not np.ndim(value):
                scalar = scalar * value
            else:
                chain = value if chain is None else chain @ value
        if chain is None:
            return scalar
        return scalar * (chain if node.rank else float(chain.item()))

    def hadamard(self, node: nodes.Hadamard) -> Any:
        values = [self.of(child) for child in node.children]
        self.check_fit(node.children, values)
        found = values[0]
        for value in values[1:]:
            found = found * value
        return found

    def over(self, node: nodes.Over) -> Any:
        top, bottom = self.of(node.top), self.of(node.bottom)
        self.check_fit(node.children, [top, bottom])
        return top / bottom

    def power(self, node: nodes.Power) -> Any:
        return self.of(node.base) ** self.of(node.exponent)

    def matrixpower(self, node: nodes.MatrixPower) -> Any:
        return np.linalg.matrix_power(self.of(node.base), node.exponent)

    def transpose(self, node: nodes.Transpose) -> Any:
        return self.of(node.base).T

    def spread(self, node: nodes.Spread) -> Any:
        value = self.of(node.base)
        return value if node.axis == 0 else value.T

    def norm(self, node: nodes.Norm) -> Any:
        return float(np.sqrt((self.of(node.base) ** 2).sum()))

    def ones(self, node: nodes.Ones) -> Any:
        return np.ones((self.integer(node.size), 1))

    def identity(self, node: nodes.Identity) -> Any:
        return np.eye(self.integer(node.size))

    def unit(self, node: nodes.Unit) -> Any:
        found = np.zeros([self.integer(size) for size in node.shape])
        found[tuple(self.integer(place) for place in node.place)] = 1
        return found[:, None] if node.rank == 1 else found

    def relation(self, node: nodes.Relation) -> Any:
        found = RELATIONS[node.op](self.of(node.left), self.of(node.right))
        return found.astype(float) if np.ndim(found) else float(found)

    def pattern(self, node: nodes.Pattern) -> Any:
        sizes = [self.integer(size) for size in node.shape]
        found = np.zeros(sizes)
        for place in product(*map(range, sizes)):
            letters = {**self.letters, **dict(zip((Index("i"), Index("j")), place, strict=False))}
            left, right = self.real(node.left, letters), self.real(node.right, letters)
            found[place] = float(RELATIONS[node.op](left, right))
        return found[:, None] if node.rank == 1 else found

    def delta(self, node: nodes.Delta) -> float:
        return float(self.integer(node.left) == self.integer(node.right))

    def call(self, node: nodes.Call) -> Any:
        name, args = node.function, [self.of(arg) for arg in node.args]
        if name == "diag":
            return np.diag(args[0])[:, None] if node.rank == 1 else np.diag(args[0][:, 0])
        if name == "onehot":
            return np.eye(int(args[1]))[args[0][:, 0].astype(int)]
        if name == "tr":
            return float(np.trace(args[0]))
        if name == "where":
            self.check_fit(node.args, args)
            return np.where(args[0] != 0, args[1], args[2])
        if name == "maximum":
            return np.maximum(*args)
        whole = {"sum": np.sum, "mean": np.mean, "max": np.max, "prod": np.prod}
        if name in whole:
            return float(whole[name](args[0]))
        if name[:3] in ("row", "col"):
            return whole[name[3:]](args[0], axis=1 if name.startswith("row") else 0).reshape(-1, 1)
        entry = np.vectorize(lambda x: float(self.point.field.function(name, [mpmath.mpf(x)])))
        found = entry(args[0])
        return found if np.ndim(found) else float(found)

    def big(self, node: nodes.Big) -> Any:
        terms = []
        self.run(node, list(node.axes), terms)
        return {"sum": sum, "max": max, "prod": np.prod}[node.op](terms) if terms else ZERO

    def run(self, node: nodes.Big, axes: list, terms: list[Any]) -> None:
        if not axes:
            holds = all(RELATIONS[op](self.real(left), self.real(right)) for op, left, right in node.conditions)
            if holds:
                terms.append(self.of(node.body))
            return
        letter, lo, hi = axes[0]
        before = dict(self.letters)
        for value in range(self.integer(lo), self.integer(hi)):
            self.letters[letter] = value
            self.run(node, axes[1:], terms)
        self.letters = before


def assert_equal(equation: Equation, system: System, form: str) -> None:
    """Every entry of the printed tree equals the equation's, at a random point where all entries are defined."""
    for seed in range(60):
        sizes = {size: 2 + (k + seed) % 3 for k, size in enumerate(system.sizes)}  # different sizes differ
        if any(int(size.xreplace(sizes)) < 1 for array in system.arrays.values() for size in array.shape):
            continue
        try:
            return compare_at(Point(system, sizes, HighPrecision(seed), seed), equation, form)
        except Undefined:
            continue
    raise AssertionError("no point at which all entries are defined")


def compare_at(point: Point, equation: Equation, form: str) -> None:
    letters = Letters(point.system)
    found = sides(equation, point.system, form, letters)
    equation = readable(equation, letters, point.system.arrays[equation.name].letters)
    assert isinstance(found.left, nodes.Name)
    starts = {letter: point.integer(lo, {}) for letter, lo, _ in equation.axes}
    ranges = [range(starts[letter], point.integer(hi, {})) for letter, _, hi in equation.axes]
    kept = {letter for index in found.left.at if index is not None for letter in index.atoms(Index)}
    for place in product(*ranges):
        letters_here = dict(zip(starts, place, strict=True))
        expected = float(point.value(equation.body, letters_here))
        value = Values(point, {letter: at for letter, at in letters_here.items() if letter in kept}).of(found.right)
        if np.ndim(value):
            free = [x for x, index in zip(equation.place, found.left.at, strict=True) if index is None]
            shape = [len(r) for r, letter in zip(ranges, starts, strict=True) if letter in free]
            assert list(value.shape) == (shape if len(free) == 2 else [*shape, 1])
            value = value[tuple(letters_here[x] - starts[x] for x in free) + ((0,) if len(free) == 1 else ())]
        close = value == expected or abs(value - expected) <= 1e-10 * max(1, abs(expected))
        assert close, f"at {letters_here}: {value}, not {expected}"

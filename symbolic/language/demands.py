"""What a text needs in order to have a value, as it was typed.

SymPy reads exp(log(x)), sqrt(x)**2 and x**2/x as x. The text has no value where its logarithm, its root or its quotient
has none, so what these need is noted while the text is read:

    log(x)   x > 0      sqrt(x), x**0.5   x ≥ 0      1/x, x**-2   x ≠ 0      x**p   x > 0      inv(A)   det A ≠ 0

In where(c, a, b) what `a` needs is needed only where c holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sympy import Expr, Integer, Rational, S

from gradproof.symbolic.equations.expr import Axis, Implicit, Index, is_condition, letters, negate
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.language.values import ShapeMismatch, Value, elementwise

OF_ARGUMENT = {"log": (">", 0), "log1p": (">", -1), "sqrt": (">=", 0)}


@dataclass(frozen=True)
class Demand:
    """`body op 0` for all values of the letters in `axes`, the outer ones first; `op` is >, >= or !=."""

    body: Expr
    op: str
    axes: tuple[Axis, ...] = ()

    def implies(self, other: Demand) -> bool:
        """Whether another demand is met wherever this one is, as far as that shows at once."""
        return self.body == other.body and (self.op == ">" or self.op == other.op)


class Demands:
    """The demands of the text that is being read."""

    def __init__(self) -> None:
        self.found: list[tuple[Value, str]] = []

    def add(self, value: Value, op: str) -> None:
        if not value.expr.is_number:
            self.found.append((value, op))

    def of_call(self, name: str, argument: Value) -> None:
        """What a function needs of its argument."""
        if name in OF_ARGUMENT:
            op, least = OF_ARGUMENT[name]
            self.add(Value(argument.expr - least, argument.letters, argument.sizes), op)

    def of_power(self, base: Value, exponent: Expr) -> None:
        """What base**exponent needs of the base; a power whose exponent is a size or an index has a value."""
        if (isinstance(exponent, Integer) and exponent > 0) or (exponent.is_integer and not exponent.is_number):
            return
        whole = isinstance(exponent, Integer)
        self.add(base, "!=" if whole else ">=" if isinstance(exponent, Rational) and exponent > 0 else ">")

    def guard(self, condition: Value, first: int, second: int, new: object) -> None:
        """What was noted from `first` on is needed only under a condition, from `second` on only without it."""
        if not is_condition(condition.expr):
            return
        otherwise = Value(negate(condition.expr), condition.letters, condition.sizes)
        for k in range(first, len(self.found)):
            value, op = self.found[k]
            if isinstance(value.expr, Implicit):
                continue
            held = condition if k < second else otherwise
            try:
                guarded = elementwise(lambda c, x: where(c, x, S.One), [held, value], new)  # type: ignore[arg-type]
            except ShapeMismatch:
                continue  # needed everywhere, then
            self.found[k] = guarded, op

    def settled(self, ranges: Mapping[Index, Axis]) -> Iterator[Demand]:
        """The demands with the ranges of their letters, as far as these are known."""
        for value, op in self.found:
            known = {**ranges, **{axis[0]: axis for axis in value.axes}}
            axes: dict[Index, Axis] = {}
            if all(_add(letter, known, axes) for letter in sorted(letters(value.expr), key=str)):
                yield Demand(value.expr, op, tuple(axes.values()))


def _add(letter: Index, known: Mapping[Index, Axis], axes: dict[Index, Axis]) -> bool:
    """Add a letter's range, after those of the letters that it depends on; False where one is not known."""
    if letter in axes:
        return True
    if letter not in known:
        return False
    _, lo, hi = known[letter]
    if not all(_add(other, known, axes) for other in sorted(letters(lo) | letters(hi), key=str)):
        return False
    axes[letter] = known[letter]
    return True

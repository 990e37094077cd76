"""Arrays that are defined piece by piece: which piece an entry lies in, and the entry as a case distinction.

    c[k] = a[k] for k < d;   c[k] = s[k − d] for d ≤ k         c[k] is a[k] where k < d, else s[k − d]

An entry of a recurrence is put in where its place is a number; elsewhere it stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Expr, Integer, Mul, S

from gradproof.symbolic.equations.expr import Access, Axis, Index, compare, letters, nonnegative
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.system import Equation, System


def entry(system: System, access: Access, axes: Iterable[Axis]) -> Expr | None:
    """What an entry is defined as, its free letters in the ranges `axes`; None where it is not put in.

    >>> from gradproof.symbolic.language.reader import build
    >>> joined = build("c[k] = a[k]; c[d+k] = s[k]; F = c", {"a": "d", "s": "d"})
    >>> k, size = Index("k"), joined.arrays["a"].shape[0]
    >>> entry(joined, Access("c", k + size), [(k, Integer(0), size)])
    s[k]
    >>> entry(joined, Access("c", k), [(k, Integer(0), 2 * size)])
    where([0 <= -k + d - 1], a[k], s[k - d])
    """
    axes = list(axes)
    cases: list[tuple[Expr, Expr]] = []
    for equation in system.defined[access.name]:
        body, conditions = _case(system, equation, access)
        held = [_holds(condition, axes) for condition in conditions]
        if False in held:
            continue
        left = [c for c, known in zip(conditions, held, strict=True) if known is None]
        cases.append((Mul(*(compare("<=", S.Zero, c) for c in left)), body))
        if not left:
            break
    if not cases:
        return None
    if system.recurrent(access.name):
        fixed = {k for piece in system.defined[access.name] for k, p in enumerate(piece.place) if not letters(p)}
        if cases[0][0] != 1 or not all(isinstance(access.indices[k], Integer) for k in fixed):
            return None
    found = cases[-1][1]  # together the pieces cover the array, so that the last one needs no condition
    for condition, body in reversed(cases[:-1]):
        found = where(condition, body, found)
    return found


def _case(system: System, equation: Equation, access: Access) -> tuple[Expr, list[Expr]]:
    """The body of a piece at the indices of an access, and what must be at least 0 for it to hold there."""
    ranges = {letter: (lo, hi) for letter, lo, hi in equation.axes}
    mapping = {p: i for p, i in zip(equation.place, access.indices, strict=True) if isinstance(p, Index)}
    whole = system.arrays[access.name].axes(equation.place)
    conditions: list[Expr] = []
    for place, index, (_, first, end) in zip(equation.place, access.indices, whole, strict=True):
        lo, hi = (bound.xreplace(mapping) for bound in ranges.get(place, (place, place + 1)))
        conditions += [] if lo == first else [index - lo]
        conditions += [] if (hi - end).expand() == 0 else [hi - 1 - index]
    return equation.body.xreplace(mapping), [condition.expand() for condition in conditions]


def _holds(condition: Expr, axes: Sequence[Axis]) -> bool | None:
    if nonnegative(condition, axes):
        return True
    return False if nonnegative(-1 - condition, axes) else None

"""Linear recurrences in closed form, each shown by induction: the first entry, and the step from one to the next.

    h[0] = c;  h[t] = a(t)·h[t−1] + f(t)  with  a(t) = u(t−1)/u(t)      h[t] = (u(0)·c + Σ_{s=1…t} u(s)·f(s)) / u(t)

u(t) is r^(−t) for a factor r that stays the same, exp(m[t]) for exp(m[t−1] − m[t]). An array whose entries need the
next one, as those of adjoints do, is counted from its last entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from sympy import Expr, Mul, S

from gradproof.symbolic.equations.calculus import whole
from gradproof.symbolic.equations.expr import Access, Index, accesses, letters, names, sum_
from gradproof.symbolic.equations.system import Array, System, out_letters
from gradproof.symbolic.judging.normal_form import Normal, Scope
from gradproof.symbolic.judging.polynomials import Mono, NoNormalForm, expr_of, product_expr, rational
from gradproof.symbolic.judging.seams import split


@dataclass(frozen=True)
class Steps:
    """A recurrence along one axis, in the letters of `outs`: its first entry, and entry t in terms of `before`.

    `last` is the index of the first entry where it is the last one of the array, which is then counted backwards.
    """

    array: Array
    outs: tuple[Index, ...]
    axis: int
    start: Expr
    body: Expr
    before: Access
    last: Expr | None = None

    @property
    def time(self) -> Index:
        return self.outs[self.axis]

    def turned(self, expr: Expr) -> Expr:
        """An expression in the counted letter, written in the index; and the other way round."""
        return expr if self.last is None else expr.xreplace({self.time: self.last - self.time})

    def scope(self, step: bool) -> Scope:
        """The ranges of the letters of the first entry, or of those of a step."""
        lows = {self.time: S.One} if step else {}
        axes = self.array.axes(self.outs)
        return {o: (lows.get(o, lo), hi) for o, lo, hi in axes if step or o != self.time}


@dataclass(frozen=True)
class Linear:
    """Steps of the form body = slope · number · before + rest."""

    steps: Steps
    slope: Mono
    number: Fraction
    rest: Expr

    def next(self, before: Expr) -> Expr:
        """The entry at t, written with the one at t − 1."""
        return rational(self.number) * product_expr(self.slope) * before + self.rest


def closed(system: System) -> tuple[System, list[tuple[Linear, Expr]]]:
    """The system with closed forms for its linear recurrences, and these: what was shown by induction.

    >>> from gradproof.symbolic.language.reader import build
    >>> average = build("v[0] = 0; v[s+1] = b*v[s] + q[s]; F = v", {"b": "", "q": "t"})
    >>> closed(average)[1][0][1]
    b**o0*sum[b1=0:o0](b**(-b1 - 1)*q[b1])
    """
    shown: list[tuple[Linear, Expr]] = []
    for name in [group[0] for group in system.groups if len(group) == 1]:
        if not system.recurrent(name):
            continue
        try:
            found = linear(system, name)
            body = None if found is None else solution(found)
            if found is None or body is None or not holds(system, found, body):
                continue
        except NoNormalForm:
            continue
        shown.append((found, body))
        others = [e for e in system.equations if e.name != name]
        place = min(k for k, e in enumerate(system.equations) if e.name == name)
        form = whole(found.steps.array, found.steps.turned(body))
        system = system.with_equations([*others[:place], form, *others[place:]])
    return system, shown


def _forward(system: System, name: str) -> Steps | None:
    """A recurrence of two pieces: the entry at 0, and the step."""
    pieces = sorted(system.defined[name], key=lambda piece: sum(bool(letters(p)) for p in piece.place))
    if len(pieces) != 2:
        return None
    first, step = pieces
    fixed = [k for k, p in enumerate(first.place) if not letters(p)]
    if len(fixed) != 1 or first.place[fixed[0]] != 0 or not all(letters(p) for p in step.place):
        return None
    (axis,), array = fixed, system.arrays[name]
    outs = out_letters(array.rank)
    body = step.at(outs)
    start = first.body.xreplace({p: out for p, out in zip(first.place, outs, strict=True) if letters(p)})
    before = Access(name, *(out - 1 if k == axis else out for k, out in enumerate(outs)))
    return Steps(array, outs, axis, start, body, before)


def _backward(system: System, name: str) -> Steps | None:
    """A recurrence of one piece, in which an entry needs the next one, and the last entry none."""
    array, outs = system.arrays[name], out_letters(system.arrays[name].rank)
    (piece, *more) = system.defined[name]
    read = {access for access in accesses(piece.body) if access.name == name}
    if more or piece.place != outs or piece.axes != array.axes(outs) or len(read) != 1:
        return None
    ahead = [(i - out).expand() for i, out in zip(next(iter(read)).indices, outs, strict=True)]
    axis = next((k for k, distance in enumerate(ahead) if distance == 1), None)
    if axis is None or any(distance != 0 for k, distance in enumerate(ahead) if k != axis) or array.first(axis) != 0:
        return None
    last = array.shape[axis] - 1
    turn = {outs[axis]: last - outs[axis]}
    body, before = piece.body.xreplace(turn), next(iter(read)).xreplace(turn)
    return Steps(array, outs, axis, body.xreplace({outs[axis]: S.Zero}), body, before, last)


def linear(system: System, name: str) -> Linear | None:
    """The parts of a linear recurrence; None for any other."""
    steps = _forward(system, name) or _backward(system, name)
    if steps is None:
        return None
    normal = Normal(system, keep=system.defined)
    start = expr_of(normal.of(steps.start, steps.scope(False)))
    poly = normal.of(steps.body, steps.scope(True))
    factor = frozenset(((steps.before, Fraction(1)),))
    slopes = {mono - factor: number for mono, number in poly.items() if factor <= mono}
    rest = expr_of({mono: number for mono, number in poly.items() if not factor <= mono})
    if len(slopes) != 1 or name in names(rest) or name in names(start):
        return None
    ((slope, number),) = slopes.items()
    if any(name in names(base) for base, _ in slope):
        return None
    return Linear(replace(steps, start=start), slope, number, rest)


def weight(found: Linear) -> Expr | None:
    """The u(t) for which the slope is u(t−1)/u(t)."""
    t = found.steps.time
    same: list[Expr] = [rational(found.number)]
    left = dict(found.slope)
    result: list[Expr] = []
    for base, power in found.slope:
        if t not in letters(base):
            same.append(base ** rational(left.pop(base)))
        elif base in left and left.get(later := base.xreplace({t: t + 1})) == -power:
            result.append(later ** rational(power))
            del left[base], left[later]
    return None if left else Mul(*result) * Mul(*same) ** -t


def solution(found: Linear) -> Expr | None:
    """The closed form: (u(0)·start + Σ_{s<t} u(s+1)·rest(s+1)) / u(t)."""
    u, t = weight(found), found.steps.time
    if u is None:
        return None
    s = Index("s")
    later = {t: s + 1}
    total = sum_(u.xreplace(later) * found.rest.xreplace(later), [(s, S.Zero, t)])
    return (u.xreplace({t: S.Zero}) * found.steps.start + total) / u


def holds(system: System, found: Linear, body: Expr) -> bool:
    """Whether both parts of the induction have the normal form 0."""
    steps, t, normal = found.steps, found.steps.time, Normal(system, keep=system.defined)
    first = body.xreplace({t: S.Zero}) - steps.start
    step = body - found.next(body.xreplace({t: t - 1}))
    scope = steps.scope(True)
    return not normal.of(first, steps.scope(False)) and not split(normal, normal.of(step, scope), scope)

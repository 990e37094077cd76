"""Index expressions: ordinary SymPy scalar expressions over accesses, reductions and conditions.

    Access("X", i, r)                 X[i, r]; a scalar is an access without indices
    reduce_("sum", f, [(i, 0, n)])    the sum of f over i = 0 … n-1; also "max" and "prod"
    compare("<", i, n)                1 where the relation holds, 0 elsewhere; `delta(i, j)` is compare("==", i, j)

Letters never clash. A bound letter is named after the height of its reduction (`b1` innermost), so two sums that
differ in letters only are the same object and SymPy's cache knows them again. To look inside a reduction, *open* it:
its letters are replaced by free ones that nothing else in scope uses; `reduce_` closes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby, permutations, product
from math import factorial, prod

from sympy import Add, Expr, Function, Integer, Mul, Number, Pow, S, Symbol, Tuple, sympify
from sympy.core.symbol import Str

Axis = tuple["Index", Expr, Expr]  # letter, first value, one past the last


class Named(Symbol):
    """A symbol whose name says all of it, to pickle and to copy too."""

    def __getnewargs_ex__(self) -> tuple[tuple[str, ...], dict[str, bool]]:
        return (self.name,), {}


class Index(Named):
    """An index letter."""

    def __new__(cls, name: str) -> Index:
        return Symbol.__new__(cls, name, integer=True)


class Size(Named):
    """A size: a positive integer known only by its name.

    >>> import copy
    >>> copy.deepcopy(Size("n") + 1)
    n + 1
    """

    def __new__(cls, name: str) -> Size:
        return Symbol.__new__(cls, name, integer=True, positive=True)


class Access(Expr):
    """One entry of a named array.

    >>> Access("X", Index("i"), 0)
    X[i, 0]
    """

    is_commutative = True
    is_real = True

    def __new__(cls, name: str | Str, *indices: Expr | int) -> Access:
        return Expr.__new__(cls, name if isinstance(name, Str) else Str(name), *map(sympify, indices))

    @property
    def name(self) -> str:
        return self.args[0].name

    @property
    def indices(self) -> tuple[Expr, ...]:
        return self.args[1:]

    def _sympystr(self, printer: object) -> str:
        return f"{self.name}[{', '.join(map(str, self.indices))}]" if self.indices else self.name


class Reduce(Expr):
    """A reduction (sum, max or prod) over one or more letters; build it with `reduce_`."""

    is_commutative = True
    is_real = True

    @property
    def op(self) -> str:
        return self.args[0].name

    @property
    def body(self) -> Expr:
        return self.args[1]

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(tuple(axis) for axis in self.args[2:])

    @property
    def free_symbols(self) -> set[Symbol]:
        ranges = set().union(*(lo.free_symbols | hi.free_symbols for _, lo, hi in self.axes))
        return (self.body.free_symbols | ranges) - {letter for letter, _, _ in self.axes}

    def _sympystr(self, printer: object) -> str:
        ranges = ", ".join(f"{letter}={lo}:{hi}" for letter, lo, hi in self.axes)
        return f"{self.op}[{ranges}]({self.body})"


class Compare(Expr):
    """A condition worth 1 or 0 (Iverson's bracket); build it with `compare`."""

    is_commutative = True
    is_real = True

    @property
    def func(self) -> Callable[..., Expr]:
        """What SymPy rebuilds a condition with, so that `xreplace` decides it where it can."""
        return lambda op, left, right: compare(op.name, left, right)

    @property
    def op(self) -> str:
        return self.args[0].name

    @property
    def sides(self) -> tuple[Expr, Expr]:
        return self.args[1], self.args[2]

    def _eval_power(self, exponent: Expr) -> Expr | None:
        return self if exponent.is_positive else None  # 0 and 1 are their own powers

    def _sympystr(self, printer: object) -> str:
        return f"[{self.args[1]} {self.op} {self.args[2]}]"


class Implicit(Expr):
    """A value of a whole matrix A of shape (…, n, n): an entry of its inverse, its determinant …; see `implicit.py`.

    It stands alone, as the body of the equation of an array of its own. `indices` are those of that array.

    >>> Implicit("inv", "A", Size("n"), Index("i"), Index("j"))
    inv(A)[i, j]
    """

    is_commutative = True
    is_real = True

    def __new__(cls, kind: str | Str, matrix: str | Str, size: Expr | int, *indices: Expr | int) -> Implicit:
        kind, matrix = (word if isinstance(word, Str) else Str(word) for word in (kind, matrix))
        return Expr.__new__(cls, kind, matrix, sympify(size), *map(sympify, indices))

    @property
    def kind(self) -> str:
        return self.args[0].name

    @property
    def matrix(self) -> str:
        return self.args[1].name

    @property
    def size(self) -> Expr:
        return self.args[2]

    @property
    def indices(self) -> tuple[Expr, ...]:
        return self.args[3:]

    def _sympystr(self, printer: object) -> str:
        place = f"[{', '.join(map(str, self.indices))}]" if self.indices else ""
        return f"{self.kind}({self.matrix}){place}"


_HOLDS: dict[str, Callable[[Expr], bool | None]] = {
    "<": lambda difference: difference.is_negative,
    "<=": lambda difference: difference.is_nonpositive,
    "==": lambda difference: difference.is_zero,
    "!=": lambda difference: difference.is_nonzero,
}
NEGATED = {"<": ("<=", True), "<=": ("<", True), "==": ("!=", False), "!=": ("==", False)}


def compare(op: str, left: Expr | int, right: Expr | int) -> Expr:
    """The condition `left op right`, worth 1 or 0; decided at once where both sides are numbers or equal.

    >>> compare(">", 3, 2), compare("==", Index("i"), Index("i"))
    (1, 1)
    """
    left, right = sympify(left), sympify(right)
    if op in (">", ">="):
        op, left, right = {">": "<", ">=": "<="}[op], right, left
    if left == right:
        return S.One if op in ("<=", "==") else S.Zero
    if isinstance(left, Number) and isinstance(right, Number):
        return S.One if _HOLDS[op](left - right) else S.Zero
    for side, number in ((left, right), (right, left)):
        if isinstance(side, Compare) and isinstance(number, Number):  # a condition is 0 or 1
            at_zero, at_one = (compare(op, *((v, number) if side is left else (number, v))) for v in (S.Zero, S.One))
            return at_zero if at_zero == at_one else side if at_one == 1 else negate(side)
    if op in ("==", "!=") and right.sort_key() < left.sort_key():
        left, right = right, left
    return Expr.__new__(Compare, Str(op), left, right)


def delta(left: Expr | int, right: Expr | int) -> Expr:
    """Kronecker's delta."""
    return compare("==", left, right)


def negate(condition: Expr) -> Expr:
    """1 − condition, as a single condition where there is one."""
    if isinstance(condition, Compare):
        op, swap = NEGATED[condition.op]
        left, right = condition.sides
        return compare(op, right, left) if swap else compare(op, left, right)
    return 1 - condition


def is_condition(expr: Expr) -> bool:
    """Whether an expression is 1 or 0 by construction: comparisons, joined by & (a product), | and ~ (sums of such)."""
    if isinstance(expr, Compare) or expr in (S.Zero, S.One):
        return True
    if isinstance(expr, Mul):
        return all(is_condition(factor) for factor in expr.args if factor != -1)
    return isinstance(expr, Add) and all(is_condition(term) or is_condition(-term) for term in expr.args)


@lru_cache(maxsize=100_000)
def height(expr: Expr) -> int:
    """The highest bound letter in `expr`: a reduction around it takes the next one, so that nothing is captured."""
    inner = max((height(arg) for arg in expr.args), default=0)
    own = (int(letter.name[1:]) for letter, _, _ in expr.axes) if isinstance(expr, Reduce) else ()
    return max(inner, *own, 0)


@lru_cache(maxsize=100_000)
def letters(expr: Expr) -> frozenset[Index]:
    """The free index letters of an expression."""
    if isinstance(expr, Index):
        return frozenset((expr,))
    if isinstance(expr, Reduce):
        inner = letters(expr.body).union(*(letters(lo) | letters(hi) for _, lo, hi in expr.axes))
        return inner - {letter for letter, _, _ in expr.axes}  # a range may name another letter of the same sum
    return frozenset().union(*(letters(arg) for arg in expr.args)) if expr.args else frozenset()


@lru_cache(maxsize=100_000)
def names(expr: Expr) -> frozenset[str]:
    """The names of all arrays that an expression reads."""
    inner = frozenset().union(*(names(arg) for arg in expr.args)) if expr.args else frozenset()
    if isinstance(expr, (Access, Implicit)):
        return inner | {expr.name if isinstance(expr, Access) else expr.matrix}
    return inner


def bound(level: int) -> Index:
    return Index(f"b{level}")


def out_letters(rank: int) -> tuple[Index, ...]:
    """The canonical letters of an equation's left side."""
    return tuple(Index(f"o{k}") for k in range(rank))


def fresh(scope: Iterable[Index], count: int) -> list[Index]:
    """Letters that do not occur in `scope`, always the same ones for the same scope."""
    taken = {letter.name for letter in scope}
    found: list[Index] = []
    number = 0
    while len(found) < count:
        if f"f{number}" not in taken:
            found.append(Index(f"f{number}"))
        number += 1
    return found


def reduce_(op: str, body: Expr | int, axes: Sequence[tuple[Index, Expr | int, Expr | int]]) -> Expr:
    """Reduce `body` over `axes`; nested reductions of one kind become one.

    >>> i, n = Index("i"), Size("n")
    >>> reduce_("sum", Access("x", i), [(i, 0, n)])
    sum[b1=0:n](x[b1])
    """
    body = sympify(body)
    over: list[Axis] = [(letter, sympify(lo), sympify(hi)) for letter, lo, hi in axes]
    if not over:
        return body
    if isinstance(body, Reduce) and body.op == op:
        scope = letters(body) | {letter for letter, _, _ in over}
        body, inner = open_(body, scope)
        over += inner
    if len(over) > 1:
        over = _ordered(body, over)
    level = height(body)
    renamed = {letter: bound(level + len(over) - k) for k, (letter, _, _) in enumerate(over)}
    ranges = (Tuple(renamed[letter], lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in over)
    return Expr.__new__(Reduce, Str(op), body.xreplace(renamed), *ranges)


def _ordered(body: Expr, axes: list[Axis]) -> list[Axis]:
    """Axes in the order in which the body first reads them, so that the order of summation does not matter.

    An axis whose range depends on another stays behind it.
    """
    position: dict[Index, tuple[object, ...]] = {}
    bound_letters = {letter for letter, _, _ in axes}
    blank = {letter: Index("_") for letter in bound_letters}
    for access in accesses(body):
        for place, index in enumerate(access.indices):
            for letter in letters(index) & bound_letters:
                key = (access.name, place, str(access.xreplace(blank)))
                position[letter] = min(position.get(letter, key), key)

    def key_of(axis: Axis) -> tuple[object, ...]:
        return axis[0] not in position, position.get(axis[0], ()), str(axis[2])

    ordered = sorted(axes, key=key_of)
    tied = [list(group) for _, group in groupby(ordered, key_of)]
    orders = prod(factorial(len(group)) for group in tied)
    if orders > 1:
        ordered = _least(body, tied) if orders <= 120 else _refined(body, tied)
    placed: list[Axis] = []
    while ordered:
        waiting = {letter for letter, _, _ in ordered}
        ready = next((axis for axis in ordered if not (letters(axis[1]) | letters(axis[2])) & waiting), ordered[0])
        ordered.remove(ready)
        placed.append(ready)
    return placed


def _refined(body: Expr, tied: list[list[Axis]]) -> list[Axis]:
    """Many axes that look alike, told apart by what is read beside them: the second factor of A A A … A, the third …

    Where all look alike even so, as around the trace of a power, one is the first and the others follow from it.
    """
    read = [(access.name, access.indices) for access in accesses(body)]
    groups = tied
    while len(groups) < sum(map(len, tied)):
        colour = {axis[0]: Index(f"_{k:03}") for k, group in enumerate(groups) for axis in group}
        seen: dict[Index, list[tuple[object, ...]]] = {letter: [] for letter in colour}
        for name, indices in read:
            shown = tuple(str(index.xreplace(colour)) for index in indices)
            for place, index in enumerate(indices):
                for letter in letters(index) & seen.keys():
                    seen[letter].append((name, place, shown))
        beside = {letter: sorted(entries) for letter, entries in seen.items()}
        finer = []
        for group in groups:
            by = {axis[0]: axis for axis in group}
            ordered = groupby(sorted(by, key=beside.__getitem__), beside.__getitem__)
            finer += [[by[letter] for letter in same] for _, same in ordered]
        if len(finer) == len(groups):
            first = next(k for k, group in enumerate(finer) if len(group) > 1)
            finer[first : first + 1] = [finer[first][:1], finer[first][1:]]
        groups = finer
    return [axis for group in groups for axis in group]


def _least(body: Expr, tied: list[list[Axis]]) -> list[Axis]:
    """Among the orders that only exchange axes which look alike, the one under which the body reads first."""
    names = [Index(f"_{k}") for k in range(sum(map(len, tied)))]

    def text(axes: list[Axis]) -> str:
        return str(body.xreplace({axis[0]: name for axis, name in zip(axes, names, strict=True)}).sort_key())

    read = [(access.name, access.indices) for access in accesses(body)]

    def places(axes: list[Axis]) -> list[tuple[str, tuple[str, ...]]]:
        """What is read under which letters: cheaper to compare than the whole body."""
        at = {axis[0]: f"_{k}" for k, axis in enumerate(axes)}
        back = {axis[0]: name for axis, name in zip(axes, names, strict=True)}
        return sorted((name, tuple(at.get(i) or str(i.xreplace(back)) for i in indices)) for name, indices in read)

    orders = [[axis for group in choice for axis in group] for choice in product(*(permutations(g) for g in tied))]
    keys = [places(order) for order in orders]
    least = min(keys)
    first = [order for order, key in zip(orders, keys, strict=True) if key == least]
    return min(first, key=text) if len(first) > 1 else first[0]


def sum_(body: Expr | int, axes: Sequence[tuple[Index, Expr | int, Expr | int]]) -> Expr:
    return reduce_("sum", body, axes)


def count(axes: Sequence[Axis], outer: Iterable[Axis] = ()) -> Expr:
    """How many values letters take: the length of a range, or a sum of ones where a range may be empty or end early.

    >>> i, n = Index("i"), Size("n")
    >>> count([(i, S.One, n)]), count([(i, Integer(2), n)])
    (n - 1, sum[b1=2:n](1))
    """
    known = [*outer, *axes]
    lengths = [(hi - lo, [(letter, lo, hi)]) for letter, lo, hi in axes]
    return Mul(*(length if nonnegative(length, known) else sum_(S.One, axis) for length, axis in lengths))


def open_(expr: Reduce, scope: Iterable[Index]) -> tuple[Expr, list[Axis]]:
    """Body and axes of a reduction with free letters that do not occur in `scope`."""
    new = fresh({*scope, *letters(expr)}, len(expr.axes))
    renamed = {letter: free for (letter, _, _), free in zip(expr.axes, new, strict=True)}
    axes = [(renamed[letter], lo.xreplace(renamed), hi.xreplace(renamed)) for letter, lo, hi in expr.axes]
    return expr.body.xreplace(renamed), axes


@lru_cache(maxsize=20_000)
def accesses(expr: Expr) -> tuple[Access, ...]:
    """Every access in an expression once, in reading order (lookups inside an index included)."""
    found: dict[Access, None] = {}
    for arg in expr.args:
        found.update(dict.fromkeys(accesses(arg)))
    if isinstance(expr, Access):
        found[expr] = None
    return tuple(found)


def count_accesses(expr: Expr, name: str) -> int:
    """How often an array is read at different places of an expression (a place inside a sum counts once)."""
    if name not in names(expr):
        return 0
    own = 1 if isinstance(expr, Access) and expr.name == name else 0
    repeat = abs(int(expr.exp)) if isinstance(expr, Pow) and isinstance(expr.exp, Integer) and own else 1
    return repeat * (own + sum(count_accesses(arg, name) for arg in expr.args))


def substitute(expr: Expr, mapping: dict[Index, Expr]) -> Expr:
    """Replace free letters by index expressions. Bound letters have names of their own, so nothing is captured."""
    return expr.xreplace(mapping) if mapping else expr


def map_accesses(expr: Expr, replace: Callable[[Access], Expr], only: Iterable[str], scope: Iterable[Index]) -> Expr:
    """Replace every access to an array named in `only`; reductions on the way are opened and closed again."""
    wanted, scope = frozenset(only), frozenset(scope) | letters(expr)

    def walk(node: Expr, scope: frozenset[Index]) -> Expr:
        if wanted.isdisjoint(names(node)):
            return node
        if isinstance(node, Access):
            node = Access(node.args[0], *(walk(index, scope) for index in node.indices))
            return replace(node) if node.name in wanted else node
        if isinstance(node, Reduce):
            body, axes = open_(node, scope)
            return reduce_(node.op, walk(body, scope.union(letter for letter, _, _ in axes)), axes)
        return rebuild(node, [walk(arg, scope) for arg in node.args])

    return walk(expr, scope)


def rebuild(node: Expr, args: Sequence[Expr]) -> Expr:
    """The node with other arguments, evaluated as SymPy would."""
    if isinstance(node, (Add, Compare, Mul, Pow, Function)):
        return node.func(*args)
    if isinstance(node, Reduce):
        return Expr.__new__(Reduce, *args)
    return node.func(*args) if args else node


def decided(condition: Compare, axes: Iterable[Axis]) -> Expr:
    """A condition on letters as 1 or 0 where their ranges decide it.

    >>> i, n = Index("i"), Size("n")
    >>> decided(compare("<", i, n + 1), [(i, 0, n)]), decided(compare("<", i, 1), [(i, 0, n)])
    (1, [i < 1])
    """
    left, right = condition.sides
    if condition.op not in ("<", "<=") or names(condition):
        return condition
    least = 1 if condition.op == "<" else 0
    if nonnegative(right - left - least, axes):
        return S.One
    return S.Zero if nonnegative(left - right - 1 + least, axes) else condition


def nonnegative(expr: Expr, axes: Iterable[Axis] = ()) -> bool:
    """Whether an expression is at least 0 for all sizes ≥ 1 and all letters inside their ranges.

    It is affine in the letters; their factors may be sizes. False where this cannot be shown.

    >>> i, k, n, p = Index("i"), Index("k"), Size("n"), Size("p")
    >>> nonnegative(n - 1 - i, [(i, 0, n)]), nonnegative(i - 1, [(i, 0, n)])
    (True, False)
    >>> nonnegative(n * p - 1 - (i * p + k), [(i, 0, n), (k, 0, p)])
    True
    """
    ranges = {letter: (sympify(lo), sympify(hi)) for letter, lo, hi in axes}
    expr = sympify(expr).expand()
    for _ in range(12):
        inside = sorted(letters(expr).intersection(ranges), key=str)
        if not inside:
            break
        # a letter that no other one's range mentions, so that it does not come back
        mentioned = frozenset().union(*(letters(bound) for other in inside for bound in ranges[other]))
        letter = next((letter for letter in inside if letter not in mentioned), inside[0])
        slope = expr.coeff(letter)
        rest = (expr - slope * letter).expand()
        if letter in letters(rest) or letters(slope):
            return False
        lo, hi = ranges[letter]
        rising = slope > 0 if isinstance(slope, Integer) else nonnegative(slope)
        if not rising and not isinstance(slope, Integer) and not nonnegative(-slope):
            return False
        expr = (rest + slope * (lo if rising else hi - 1)).expand()
    if letters(expr) or expr.atoms(Access):
        return False
    shifted = expr.xreplace({size: size + 1 for size in expr.atoms(Size)}).expand()
    return all(isinstance(coeff, Number) and coeff >= 0 for coeff in shifted.as_coefficients_dict().values())

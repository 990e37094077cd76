"""What an evaluation of a system costs: operations, memory traffic, and what the backward pass keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sympy import Add, Expr, Mul, S, summation

from gradproof.symbolic.counting.counter import Counter
from gradproof.symbolic.counting.memory import entries, read_entries
from gradproof.symbolic.counting.operations import Operations
from gradproof.symbolic.counting.sizes import order, size_text, size_value, with_sizes
from gradproof.symbolic.equations.calculus import adjoint
from gradproof.symbolic.equations.expr import Size, names
from gradproof.symbolic.equations.implicit import complete
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import ExpressionError
from gradproof.symbolic.folding.halves import backward_system
from gradproof.symbolic.folding.textbook import textbook
from gradproof.symbolic.printing import text as printing


@dataclass(frozen=True)
class EquationCost:
    """The cost of one equation: its operations, the array entries that it reads and writes, and what backward keeps."""

    name: str
    operations: Operations
    reads: Mapping[str, Expr]
    writes: Expr
    keeps: Expr  # entries of this array that the backward pass reads

    @property
    def flops(self) -> Expr:
        return self.operations.total


@dataclass(frozen=True)
class Cost:
    """Costs by equation and in total, as polynomials in the sizes."""

    rows: tuple[EquationCost, ...]
    inputs_kept: Mapping[str, Expr]  # entries of inputs that the backward pass reads
    itemsize: int
    system: System = field(repr=False)

    @property
    def operations(self) -> Operations:
        """Multiplications, additions and functions of all equations together."""
        return sum((row.operations for row in self.rows), Operations())

    @property
    def flops(self) -> Expr:
        return Add(*(row.flops for row in self.rows)).expand()

    @property
    def bytes(self) -> Expr:
        """Bytes read and written, if every equation reads its arrays and writes its result once."""
        moved = Add(*(Add(row.writes, *row.reads.values()) for row in self.rows))
        return (self.itemsize * moved).expand()

    @property
    def keeps(self) -> Expr:
        """Bytes of inputs and forward values that the adjoint equations read."""
        kept = Add(*self.inputs_kept.values(), *(row.keeps for row in self.rows))
        return (self.itemsize * kept).expand()

    @property
    def kept(self) -> dict[str, Expr]:
        """The arrays that the adjoint equations read, with their numbers of entries."""
        return {**self.inputs_kept, **{row.name: row.keeps for row in self.rows if row.keeps != 0}}

    @property
    def text(self) -> str:
        """The operations, as a reader would write them."""
        return size_text(self.flops)

    @property
    def order(self) -> str:
        """The leading order of the operations: terms that no other one outgrows."""
        return order(self.flops)

    def at(self, values: Mapping[str, int | str | Expr], of: str = "flops") -> Expr:
        """A total with numbers (or other sizes, as in d_k = d_model/h) for sizes."""
        return with_sizes(getattr(self, of), values)

    def __str__(self) -> str:
        rows = [(row.name, size_text(row.flops)) for row in self.rows] + [("total", self.text)]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name.ljust(width)}  {count}" for name, count in rows)


def cost(
    system: System,
    outputs: Iterable[str] | None = None,
    wrt: Iterable[str] | None = None,
    itemsize: int = 8,
    at: Mapping[str, int] | None = None,
) -> Cost:
    """What one forward evaluation of the outputs costs, and what its backward pass by `wrt` (all inputs) keeps.

    `at` gives sizes at which the orders of a contraction of three or more arrays are compared; without it they count as
    equal.

    >>> from gradproof.symbolic.language.reader import build
    >>> print(cost(build("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"})))
    L      2·d·k·n + 3·k·n
    total  2·d·k·n + 3·k·n
    """
    system = system.needed(outputs)
    kept = backward_reads(system, wrt)
    known = {Size(name): value for name, value in (at or {}).items()}
    rows: dict[str, EquationCost] = {}
    counter = Counter(known)
    for equation in system.equations:
        own = counter.equation(equation)
        writes = Mul(*(hi - lo for _, lo, hi in equation.axes)).expand()
        reads = read_entries(equation, system)
        before = rows.get(equation.name)
        if before is not None:  # an array that is defined piece by piece
            own, writes = before.operations + own, (before.writes + writes).expand()
            reads = {name: (before.reads.get(name, 0) + reads.get(name, 0)) for name in {**before.reads, **reads}}
        keeps = entries(system, equation.name) if equation.name in kept else S.Zero
        rows[equation.name] = EquationCost(equation.name, own, reads, writes, keeps)
    inputs = {name: entries(system, name) for name in system.inputs if name in kept}
    return Cost(tuple(rows.values()), inputs, itemsize, system)


def backward_reads(system: System, wrt: Iterable[str] | None = None) -> frozenset[str]:
    """The forward arrays that the backward pass of a compiled block keeps.

    >>> from gradproof.symbolic.language.reader import build
    >>> sorted(backward_reads(build("H = tanh(X @ W); H @ V", {"X": "n,d", "W": "d,k", "V": "k,m"})))
    ['H', 'V', 'W', 'X']
    """
    found: set[str] = set()
    for output in system.outputs:
        one = system.needed([output])
        read = {name for equation in one.equations for name in names(equation.body)}
        possible = [name for name in one.inputs if one.arrays[name].below is None and name in read]
        wanted = possible if wrt is None else [name for name in wrt if name in possible]
        if not wanted:
            continue
        cotangent = None if not one.arrays[output].rank else "_cotangent"
        whole = complete(one)
        raw = adjoint(whole, wanted, cotangent)
        derived = [equation.name for equation in raw.equations if equation.name not in whole.defined]
        folded = textbook(raw, derived)
        found |= set(backward_system(folded, one, folded.outputs).inputs) & one.arrays.keys()
    return frozenset(found)


def parameters(system: System, wanted: Iterable[str], at: Mapping[str, int | str | Expr] | None = None) -> Expr:
    """The number of entries of the named inputs together.

    >>> from gradproof.symbolic.language.reader import build
    >>> shapes = {"X": "n,d", "W": "h,d,k", "O": "h,k,d"}
    >>> system = build("Z[h_,i,c] = sum[a](X[i,a]*W[h_,a,c]); sum[h_,c](Z[h_,i,c]*O[h_,c,j])", shapes)
    >>> parameters(system, ["W", "O"]), parameters(system, ["W", "O"], at={"k": "d/h"})
    (2*d*h*k, 2*d**2)
    """
    missing = [name for name in wanted if name not in system.inputs]
    if missing:
        raise ExpressionError(f"{missing[0]} is no input; there are {', '.join(system.inputs)}")
    return with_sizes(Add(*(entries(system, name) for name in wanted)), at or {})


def shapes(system: System) -> dict[str, str]:
    """The shape of every array that a reader sees, inputs first."""
    order = [*system.inputs, *(e.name for e in system.equations if e.name not in system.hidden)]
    return {name: printing.shape_text(system.arrays[name], system) for name in order}


def summed(count: Expr, size: str, first: int | Expr, last: int | str | Expr) -> Expr:
    """A cost per step summed over all steps: size = first … last.

    >>> t, d = Size("t"), Size("d")
    >>> summed(4 * t * d, "t", 1, "T")
    2*T**2*d + 2*T*d
    """
    end = size_value(last) if isinstance(last, str) else last
    return summation(count, (Size(size), first, end)).expand()

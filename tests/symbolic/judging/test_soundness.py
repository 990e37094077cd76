"""No wrong claim is accepted: derivatives of every expression of the tables, mutated, against a sampler of its own.

A mutant that `check` accepts is looked at again at points that nothing of `check` draws: inputs ± log-uniform from
10⁻³ to 10³, sizes from 0 to 40. At no more than one point in a thousand may it differ.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import mpmath
import pytest
from expressions import FIRST, SECOND
from sympy import Add, Expr, Integer, Mul, Pow, Rational, preorder_traversal, sin, tanh

from gradproof.symbolic.checking.check import judged
from gradproof.symbolic.checking.claims import Question, joined
from gradproof.symbolic.deriving.derivation import derive_system
from gradproof.symbolic.equations.calculus import adjoint
from gradproof.symbolic.equations.evaluate import HighPrecision, Point, Undefined
from gradproof.symbolic.equations.expr import Access, Compare, Index, Reduce, compare, letters, rebuild
from gradproof.symbolic.equations.functions import where
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.judging.reaching import compared_everywhere
from gradproof.symbolic.judging.sampling import Pair
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse

CLAIMS = 10_000
POINTS, WORK = 1000, 1_500_000  # of the independent sampler, for each mutant that is accepted
LARGEST = 40
XY = {"x": "n", "y": "n"}
# Much of what decides lies far off, or hangs on a size.
DECIDING = [
    ("sum(triu(A, -16)*B)", {"A": "n,n", "B": "n,n"}, "A"),
    ("sum[i,j](where(i - j < 9, A[i,j]*x[j]**2, 0))", {"A": "n,n", "x": "n"}, "x"),
    ("sum[i](where(i < 30, x[i]**2, x[i]))", {"x": "n"}, "x"),
    ("where(n < 20, 1, 2)*sum(x**2)", {"x": "n"}, "x"),
    ("sum(relu(log(abs(x)) - 3)*y)", XY, "x,y"),
    ("sum(relu(x - 50*n))", {"x": "n"}, "x"),
    ("sum(where(x > 0.14, x**2, 2*x))", {"x": "n"}, "x"),
    ("sum(where(x*y > 40, x*y, x))", XY, "x,y"),
    ("sum(where(x > 70, where(y > 80, 1, 2)*x, x))", XY, "x"),
    ("sum(clip(x, -5, 5)*y**2)", XY, "x,y"),
    ("sum(maximum(x, y)*relu(y - 2))", XY, "x,y"),
    ("sum(relu(A @ x - 100)**2)", {"A": "m,n", "x": "n"}, "A,x"),
    ("sum(abs(x**3 - 27))", {"x": "n"}, "x"),
    ("sum(minimum(exp(x), 1000))", {"x": "n"}, "x"),
]
TABLES = (*FIRST, *SECOND, *DECIDING)
ROWS = [(text, shapes, variable) for text, shapes, wrt in TABLES for variable in wrt.split(",")]


@dataclass(frozen=True)
class Derived:
    """A derivative in the form of a textbook, as it is derived at first, and how a question about it is put."""

    question: Question
    result: str
    system: System
    raw: System

    def about(self, claimed: System) -> Question:
        """Whether another system gives the same result."""
        system, new = joined(self.question.derivation, claimed)
        (output,) = claimed.outputs
        return replace(self.question, system=system, claim=new.get(output, output))


def derived(text: str, shapes: dict[str, str], variable: str) -> Derived:
    program = parse(text)
    forward = build(program, shapes)
    found = derive_system(forward, [variable], None, (), program)
    result = found.gradients[variable].equation.name
    raw = adjoint(forward, [variable])
    system = replace(found.system.needed([result]), outputs=(result,), _cache={})
    question = Question(found.system, result, result, "gradient", [variable], "denominator", (), found)
    return Derived(question, result, system, raw.needed(raw.outputs))


# ------------------------------------------------------------------------------------------------------------- mutants


def mutants(equation: Equation, system: System) -> Iterator[tuple[str, Expr]]:
    """Right sides that are a little different: what was done, and the new one."""
    body = equation.body
    for node in dict.fromkeys(preorder_traversal(body)):
        for what, new in _changes(node, system):
            yield what, _replaced(body, node, new)


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    if expr == old:
        return new
    return rebuild(expr, [_replaced(arg, old, new) for arg in expr.args]) if expr.has(old) and expr.args else expr


def _changes(node: Expr, system: System) -> Iterator[tuple[str, Expr]]:
    if isinstance(node, Add):
        for term in node.args:
            yield "drop", node - term
            yield "sign", node - 2 * term
    elif isinstance(node, Compare):
        left, right = node.sides
        yield "branch", 1 - node
        for step in (Integer(1), Rational(1, 50), Rational(-1, 3)):
            if step.q == 1 or not _whole(left - right, system):
                yield "threshold", compare(node.op, left + step, right)
    elif isinstance(node, where):
        yield "branch", where(node.args[0], node.args[2], node.args[1])
    elif isinstance(node, Mul):
        yield "sign", -node
        yield "constant", Rational(101, 100) * node
        for factor in node.args:
            if not isinstance(factor, Compare):
                yield "drop", node / factor
    elif isinstance(node, Pow) and node.exp.is_number:
        yield "constant", Pow(node.base, node.exp + 1)
    elif isinstance(node, tanh):
        yield "function", sin(*node.args)
    elif isinstance(node, Reduce):
        letter, _, hi = node.axes[0]
        if not any(letter in letters(part) for axis in node.axes[1:] for part in axis[1:]):
            shorter = node.body * compare("<", letter, hi - 1)
            yield "range", Expr.__new__(Reduce, node.args[0], shorter, *node.args[2:])
    elif isinstance(node, Access):
        shape = system.arrays[node.name].shape
        for a, b in product(range(len(shape)), repeat=2):
            if a < b and shape[a] == shape[b] and node.indices[a] != node.indices[b]:
                indices = list(node.indices)
                indices[a], indices[b] = indices[b], indices[a]
                yield "axes", Access(node.name, *indices)
        for a, index in enumerate(node.indices):
            if isinstance(index, Index):
                indices = list(node.indices)
                indices[a] = index - 1
                yield "shift", where(compare("<=", 1, index), Access(node.name, *indices), 0)


def _whole(expr: Expr, system: System) -> bool:
    return Point(system, {}, HighPrecision(0)).is_index(expr)


def drawn(found: Derived, rng: random.Random, count: int) -> Iterator[tuple[str, Question]]:
    """Random mutants of the derived equations, each as a question."""
    known = found.question.derivation.forward.defined
    own = [equation for equation in found.system.equations if equation.name not in known]
    every = [(e, what, body) for e in own for what, body in mutants(e, found.system) if body != e.body]
    rng.shuffle(every)
    for equation, what, body in every[:count]:
        equations = [e.with_body(body) if e is equation else e for e in found.system.equations]
        changed = found.system.with_equations(equations)
        yield f"{what}: {equation.name} = {body}", found.about(replace(changed, outputs=(found.result,), _cache={}))


# ------------------------------------------------------------------------------------------------------- the sampler


def share_apart(pair: Pair, rng: random.Random, smallest: int) -> tuple[int, int]:
    """At how many of how many random points a random entry of the two sides differs."""
    apart = count = work = 0
    for _ in range(4 * POINTS):
        if count == POINTS or work > WORK:
            break
        sizes = {symbol: rng.randint(smallest, LARGEST) for symbol in pair.system.sizes}
        arrays = [pair.system.arrays[name] for name in pair.inputs]
        shapes = [tuple(int(s.xreplace(sizes)) for s in a.shape) for a in (pair.system.arrays[pair.right], *arrays)]
        if any(size < 0 for shape in shapes for size in shape) or 0 in shapes[0]:
            continue
        place = tuple(rng.randrange(size) for size in shapes[0])
        try:
            point = Point(pair.system, sizes, Wide(rng), rng.randrange(10**9))
            right = point.entry(pair.right, place)
        except (Undefined, GradproofError, OverflowError, ValueError, ZeroDivisionError):
            continue
        try:
            claim = point.entry(pair.claim, place)
        except (Undefined, OverflowError, ZeroDivisionError):
            claim = mpmath.nan
        except (GradproofError, ValueError):
            continue
        finally:
            work += point.work
        count += 1
        close = abs(right - claim) <= mpmath.mpf(10) ** -9 * max(1, abs(right), abs(claim))
        apart += not close
    return apart, count


class Wide(HighPrecision):
    """Random numbers of either sign, evenly distributed in the logarithm from 1/1000 to 1000."""

    digits = 60

    def __init__(self, rng: random.Random) -> None:
        super().__init__(0)
        self.positive = rng.random() < 0.3

    def random(self, rng: random.Random) -> mpmath.mpf:
        return mpmath.mpf(10 ** rng.uniform(-3, 3)) * (1 if self.positive else rng.choice((1, -1)))


# ---------------------------------------------------------------------------------------------------------- the tests


def tried(row: tuple[str, dict[str, str], str], seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """How many mutants were refuted and how many accepted, and those that should not have been."""
    rng = random.Random(repr((seed, row)))
    found, wrong, rates = derived(*row), [], Counter[str]()
    for what, question in drawn(found, rng, count):
        try:
            compared, _ = compared_everywhere(question.pair)
        except (GradproofError, ValueError):  # an index that leaves its array, a number that is infinite
            rates["no claim"] += 1
            continue
        if compared.differs is not None:
            rates["refuted"] += 1
            continue
        verdict = judged(question)
        rates[verdict.verdict] += 1
        if verdict.right:
            apart, points = share_apart(question.pair, rng, 3 if verdict.conditions else 0)
            if apart > max(1, 2 * points / 1000):
                wrong.append(f"{row[0]} by {row[2]}: {what} is {verdict.verdict}, differs at {apart} of {points}")
    return rates, wrong


def true_claim(row: tuple[str, dict[str, str], str]) -> str:
    """The verdict on the derivative as it is derived at first, before anything is simplified."""
    found = derived(*row)
    return judged(found.about(found.raw)).verdict


SAMPLE = ROWS[::12]


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: f"{row[0]} by {row[2]}")
def test_mutants_of_some_expressions(row: tuple[str, dict[str, str], str]) -> None:
    rates, wrong = tried(row, 0, 4)
    assert not wrong
    assert sum(rates.values())


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} by {row[2]}")
def test_mutants(row: tuple[str, dict[str, str], str], fresh_seed: int, record_property) -> None:
    rates, wrong = tried(row, fresh_seed, -(-CLAIMS // len(ROWS)))
    record_property("rates", dict(rates))
    print(dict(rates))
    assert not wrong


@pytest.mark.slow
def test_true_claims_are_proved() -> None:
    verdicts = Counter(true_claim(row) for row in ROWS)
    assert not verdicts["refuted"], verdicts
    assert verdicts["proved"] >= 0.97 * len(ROWS), verdicts

"""The core: letters never clash, the one rule, deltas, the folding facts. One row, one fact."""

import pytest

from gradproof.symbolic.equations.calculus import adjoint, partials
from gradproof.symbolic.equations.evaluate import Circular, HighPrecision, Modular, NotAlgebraic, Point
from gradproof.symbolic.equations.expr import (
    Access,
    Index,
    Reduce,
    Size,
    compare,
    delta,
    letters,
    nonnegative,
    open_,
    sum_,
)
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.folding.checks import StepError, same_values
from gradproof.symbolic.folding.differences import AdjointCheck
from gradproof.symbolic.folding.fold import facts, normalise
from gradproof.symbolic.language.reader import build

i, j, k = Index("i"), Index("j"), Index("k")
n, m, d = Size("n"), Size("m"), Size("d")


def A(*indices):
    return Access("A", *indices)


def x(*indices):
    return Access("x", *indices)


SAME = [
    # two ways to write one sum are one object
    (sum_(x(i), [(i, 0, n)]), sum_(x(j), [(j, 0, n)])),
    (sum_(sum_(A(i, j), [(j, 0, m)]), [(i, 0, n)]), sum_(sum_(A(j, i), [(i, 0, m)]), [(j, 0, n)])),
    (
        sum_(A(i, j) * A(j, k), [(i, 0, n), (j, 0, n), (k, 0, n)]),
        sum_(A(k, i) * A(i, j), [(j, 0, n), (k, 0, n), (i, 0, n)]),
    ),
    (sum_(x(i) * sum_(A(i, j), [(j, 0, m)]), [(i, 0, n)]), sum_(x(k) * sum_(A(k, i), [(i, 0, m)]), [(k, 0, n)])),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_sums_that_differ_in_letters_only_are_the_same(left, right):
    assert left == right


def test_a_free_letter_is_never_captured():
    inner = sum_(A(i, j), [(j, 0, m)])
    assert letters(inner.xreplace({i: j})) == {j}
    body, ((letter, _, _),) = open_(inner.xreplace({i: Index("f0")}), [])
    assert letter != Index("f0") and letters(body) == {letter, Index("f0")}


def test_a_reduction_takes_no_letter_that_is_bound_inside_it():
    largest = Reduce  # the class; the sum below holds a comparison with a reduction
    inner = sum_(compare("==", x(i), sum_(A(i, j), [(j, 0, m)])), [(i, 0, n)])
    replaced = inner.xreplace({sum_(A(Index("b2"), j), [(j, 0, m)]): Access("y")})
    outer = sum_(replaced * x(k), [(k, 0, n)])
    assert isinstance(outer, largest)
    assert Index("b2") not in letters(outer)


SLOPES = [
    # expression, what it reads and the derivative with respect to that reading
    (A(i, j) * A(j, i), {A(i, j): A(j, i), A(j, i): A(i, j)}),
    (A(i, i) ** 2, {A(i, i): 2 * A(i, i)}),
    (x(i) * x(i + 1), {x(i): x(i + 1), x(i + 1): x(i)}),
    (compare(">", x(i), 0) * x(i), {x(i): compare(">", x(i), 0)}),
    (delta(i, j) * x(i), {x(i): delta(i, j)}),
]


@pytest.mark.parametrize(("expression", "slopes"), SLOPES)
def test_every_reading_has_a_derivative_of_its_own(expression, slopes):
    found = partials(expression, frozenset(["A", "x"]), frozenset([i, j]))
    assert {partial.access: partial.slope for partial in found} == slopes


VALUES = [
    # expression, shapes, sizes, inputs, variable, gradient by hand (kinks and zeros included)
    ("prod(x)", {"x": "n"}, {"n": 3}, {"x": [0, 2, 3]}, "x", [6, 0, 0]),
    ("prod(x)", {"x": "n"}, {"n": 3}, {"x": [0, 0, 3]}, "x", [0, 0, 0]),
    ("max(x)", {"x": "n"}, {"n": 3}, {"x": [1, 2, 2]}, "x", [0, 0.5, 0.5]),
    ("sum(relu(x))", {"x": "n"}, {"n": 3}, {"x": [-1, 0, 2]}, "x", [0, 0, 1]),
    ("sum(abs(x))", {"x": "n"}, {"n": 3}, {"x": [-1, 0, 2]}, "x", [-1, 0, 1]),
    ("sum(maximum(x, 1))", {"x": "n"}, {"n": 3}, {"x": [0, 1, 2]}, "x", [0, 0.5, 1]),
    ("sum(where(x > 0, x**2, -x))", {"x": "n"}, {"n": 3}, {"x": [-1, 0, 2]}, "x", [-1, -1, 4]),
    (
        "sum[t](g[t]*E[w[t]])",
        {"E": "3", "w": "T:index=3", "g": "T"},
        {"T": 3},
        {"w": [0, 0, 1], "g": [1, 3, 5]},
        "E",
        [4, 5, 0],
    ),
    ("sum[t=0:n-1](v[t]*v[t+1])", {"v": "n"}, {"n": 3}, {"v": [2, 3, 5]}, "v", [3, 7, 3]),
]


@pytest.mark.parametrize(("text", "shapes", "sizes", "given", "variable", "expected"), VALUES)
def test_gradients_by_hand(text, shapes, sizes, given, variable, expected):
    system = adjoint(build(text, shapes), [variable])
    inputs = {name: {(position,): value for position, value in enumerate(row)} for name, row in given.items()}
    point = Point(system, {Size(name): value for name, value in sizes.items()}, HighPrecision(0), 0, inputs)
    assert [float(point.entry(f"{variable}_bar", (place,))) for place in range(len(expected))] == expected


BOUNDS = [
    # expression, ranges, whether it is at least 0 for all sizes
    (n - 1 - i, [(i, 0, n)], True),
    (i - 1, [(i, 0, n)], False),
    (n + m - 2 - i - j, [(i, 0, n), (j, 0, m)], True),
    (n - m, [], False),
    (2 * n - 1, [], True),
]


@pytest.mark.parametrize(("expression", "ranges", "holds"), BOUNDS)
def test_bounds_of_index_expressions(expression, ranges, holds):
    assert nonnegative(expression, ranges) is holds


FOLDED = [
    # a sum, the letters around it, its normal form
    (sum_(3 * x(i), [(i, 0, n)]), [], 3 * sum_(x(i), [(i, 0, n)])),
    (sum_(Access("c"), [(i, 0, n)]), [], n * Access("c")),
    (sum_(delta(i, j) * A(i, k), [(i, 0, n)]), [(j, 0, n), (k, 0, m)], A(j, k)),
    (
        sum_(x(i) * Access("y", j), [(i, 0, n), (j, 0, m)]),
        [],
        sum_(x(i), [(i, 0, n)]) * sum_(Access("y", j), [(j, 0, m)]),
    ),
]


@pytest.mark.parametrize(("expression", "outer", "expected"), FOLDED)
def test_normal_form(expression, outer, expected):
    assert normalise(expression, outer) == expected


FACTS = [
    # expression, shapes, array and axis, the sum over that axis
    ("A = softmax(S); sum(A * G)", {"S": "n,m", "G": "n,m"}, ("A", 1), 1),
    ("A = softmax(S, axis=0); sum(A * G)", {"S": "n,m", "G": "n,m"}, ("A", 0), 1),
    ("xhat = layernorm(x); sum(xhat * g)", {"x": "d", "g": "d"}, ("xhat", 0), 0),
    ("c = x - mean(x); sum(c**3)", {"x": "d"}, ("c", 0), 0),
    ("sum(p * x)", {"p": "n:simplex", "x": "n"}, ("p", 0), 1),
]


@pytest.mark.parametrize(("text", "shapes", "key", "total"), FACTS)
def test_facts_follow_from_the_definitions(text, shapes, key, total):
    assert facts(build(text, shapes))[key] == total


def test_a_wrong_step_is_caught():
    system = adjoint(build("sum(tanh(x)**2)", {"x": "n"}), ["x"])
    wrong = system.with_equations(e.with_body(-e.body) if e.name == "x_bar" else e for e in system.equations)
    with pytest.raises(StepError):
        same_values(system, wrong, ["x_bar"])
    with pytest.raises(StepError):
        AdjointCheck(wrong, "L", None).holds("x")


def test_residues_are_never_ordered_and_have_no_roots():
    with pytest.raises(NotAlgebraic):
        Modular(0).compare("<", 1, 2)
    point = Point(build("sum(where(x > 0, x, 0))", {"x": "n"}), {n: 2}, Modular(0))
    with pytest.raises(NotAlgebraic):
        point.entry("L", ())


def test_an_entry_that_needs_itself_is_named():
    with pytest.raises(GradproofError, match="no first step"):
        build("h[0] = a; h[t+1] = h[t+1] * x[t]; sum(h)", {"a": "", "x": "T"})
    assert issubclass(Circular, GradproofError)

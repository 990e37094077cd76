"""Compiled functions: their arguments, and that no input makes them overflow or return a NaN without need."""

import warnings

import numpy as np
import pytest

from gradproof.numeric import compile_numpy, compile_torch
from gradproof.numeric.emitters.arguments import ArgumentError
from gradproof.symbolic.derive import derive
from gradproof.symbolic.equations.calculus import whole
from gradproof.symbolic.equations.expr import Access, Index, Size, sum_
from gradproof.symbolic.equations.system import Array, System

INF = float("inf")
LEAST_SQUARES = ("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"})


def good():
    rng = np.random.default_rng(0)
    return {"X": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 2)), "Y": rng.normal(size=(4, 2))}


# what is changed in the arguments of least squares, and what the error must say
WRONG = [
    ({"W": np.zeros((5, 2))}, "axis 0 of W has length 5, but d is 3 (axis 1 of X)"),
    ({"Y": np.zeros((4, 2, 1))}, "Y must have 2 axes (n, k), got an array of shape (4, 2, 1)"),
    ({"Z": np.zeros(3)}, "unknown argument Z: the arguments are X, W, Y"),
    ({"X": None}, "X must hold real numbers"),
    ({"X": [[1.0, 2.0], [3.0]]}, "X is no array of numbers"),
    ({"X": np.zeros((4, 3), complex)}, "X must hold real numbers, got complex128"),
    ({"X": np.zeros((0, 3))}, "axis 0 of Y has length 4, but n is 0 (axis 0 of X)"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[row[1][:40] for row in WRONG])
def test_wrong_arguments(change, message):
    function = compile_numpy(derive(*LEAST_SQUARES))
    with pytest.raises(ArgumentError) as error:
        function(**{**good(), **change})
    assert message in str(error.value)


def test_missing_argument():
    arguments = good()
    del arguments["W"]
    with pytest.raises(ArgumentError, match="the argument W is missing"):
        compile_numpy(derive(*LEAST_SQUARES))(**arguments)


@pytest.mark.parametrize("compiled", [compile_numpy, lambda d: compile_torch(d, device="cpu")], ids=["numpy", "torch"])
@pytest.mark.parametrize(
    ("w", "message"),
    [([0, 5], "w holds 5, which is not an index from 0 to V - 1 = 4"), ([-1], "w holds -1"), ([0.5], "whole numbers")],
)
def test_lookups_are_checked(compiled, w, message):
    if compiled is not compile_numpy:
        pytest.importorskip("torch")
    function = compiled(derive("sum(E[w])", {"E": "V,d", "w": "T:index=V"}))
    with pytest.raises(ArgumentError, match=message):
        function(E=np.zeros((5, 2)), w=np.array(w))


def test_lists_and_numbers_are_accepted():
    value, gradients = compile_numpy(derive("lam * sum(x**2)", {"x": "n", "lam": ""}))(x=[1, 2], lam=3)
    assert value == 15 and gradients["x"].tolist() == [6.0, 12.0] and gradients["lam"] == 5


def test_affine_sizes_are_read():
    function = compile_numpy(derive("sum[i,j](A[i,j] * v[i+j])", {"A": "n,m", "v": "n+m-1"}))
    with pytest.raises(ArgumentError, match=r"axis 0 of v has length 5, but m \+ n - 1 is 4"):
        function(A=np.zeros((2, 3)), v=np.zeros(5))
    value, _ = function(A=np.ones((2, 3)), v=np.arange(4.0))
    assert value == 0 + 1 + 2 + 1 + 2 + 3


def test_a_size_that_no_array_shows_is_an_argument():
    i, n = Index("i"), Size("n")
    total = whole(Array("y"), sum_(i * Access("a"), [(i, 0, n)]))
    function = compile_numpy(System({"a": Array("a"), "y": Array("y")}, (total,), ("y",)))
    with pytest.raises(ArgumentError, match="the size n is missing"):
        function(a=2.0)
    with pytest.raises(ArgumentError, match="at least 0"):
        function(a=2.0, n=-1)
    assert function(a=2.0, n=4)["y"] == 12


def test_results_are_arrays_of_their_own():
    function = compile_numpy(derive("sum(x * y)", {"x": "n", "y": "n"}))
    x, y = np.ones(3), np.ones(3)
    _, gradients = function(x=x, y=y)
    gradients["x"] += 1
    assert y.tolist() == [1, 1, 1]
    _, gradients = compile_numpy(derive("sum(X)", {"X": "n,m"}))(X=np.ones((2, 2)))
    gradients["X"] -= 1  # not a read-only view of one number


# expression, shapes, inputs, value (None: not compared), gradients
SAFE = [
    ("sum(log(1 + exp(x)))", {"x": "n"}, {"x": [100.0, 1000.0, -1000.0]}, 1100.0, {"x": [1, 1, 0]}),
    ("sum(exp(x) / (1 + exp(x)))", {"x": "n"}, {"x": [-1000.0, 0.0, 1000.0]}, 1.5, {"x": [0, 0.25, 0]}),
    ("sum(1 / (1 + exp(-x)))", {"x": "n"}, {"x": [-1000.0, 0.0, 1000.0]}, 1.5, {"x": [0, 0.25, 0]}),
    ("sum(log(sigmoid(x)))", {"x": "n"}, {"x": [-1000.0, 1000.0]}, -1000.0, {"x": [1, 0]}),
    ("sum(softplus(x) + silu(x))", {"x": "n"}, {"x": [-1000.0, 1000.0]}, 2000.0, {"x": [0, 2]}),
    ("logsumexp(x)", {"x": "n"}, {"x": [-INF, -INF]}, -INF, {"x": [0, 0]}),
    ("logsumexp(x)", {"x": "n"}, {"x": [1000.0, -INF]}, 1000.0, {"x": [1, 0]}),
    ("log(sum(exp(x)))", {"x": "n"}, {"x": [1000.0, 0.0]}, 1000.0, {"x": [1, 0]}),
    ("log(mean(exp(x)))", {"x": "n"}, {"x": [1000.0, 1000.0]}, 1000.0, {"x": [0.5, 0.5]}),
    ("-log(softmax(z)[y])", {"z": "n", "y": ":index=n"}, {"z": [0.0, 1000.0], "y": 0}, 1000.0, {"z": [-1, 1]}),
    ("-sum(T * log(softmax(Z)))", {"T": "m", "Z": "m"}, {"T": [1.0, 0.0], "Z": [0.0, 1000.0]}, 1000.0, {"Z": [-1, 1]}),
    (
        "sum(softmax(X + M) * G)",
        {"X": "n,m", "M": "n,m", "G": "n,m"},
        {"X": [[1.0, 2], [3, 4]], "M": [[0.0, -INF], [-INF, -INF]], "G": [[1.0, 2], [3, 4]]},
        1.0,
        {"X": [[0, 0], [0, 0]], "G": [[1, 0], [0, 0]]},
    ),
    (
        "sum(softmax(where(M == 1, X, -inf)) * G)",
        {"X": "n,m", "M": "n,m:index=2", "G": "n,m"},
        {"X": [[1.0, 1], [3, 4]], "M": [[1, 1], [0, 0]], "G": [[1.0, 2], [3, 4]]},
        1.5,
        {"X": [[-0.25, 0.25], [0, 0]]},
    ),
    ("sum(where(x > 0, log(x), 0))", {"x": "n"}, {"x": [-1.0, 0.0, 1.0]}, 0.0, {"x": [0, 0, 1]}),
    ("sum(where(x > 0, sqrt(x), x))", {"x": "n"}, {"x": [-1.0, 0.0, 4.0]}, 1.0, {"x": [1, 1, 0.25]}),
    ("norm(x)", {"x": "n"}, {"x": [0.0, 0.0]}, 0.0, {"x": [0, 0]}),
    ("sum(norm(X, axis=1))", {"X": "n,m"}, {"X": [[0.0, 0.0], [3.0, 4.0]]}, 5.0, {"X": [[0, 0], [0.6, 0.8]]}),
    ("sum(relu(x) + abs(x))", {"x": "n"}, {"x": [-1.0, 0.0, 2.0]}, 5.0, {"x": [-1, 0, 2]}),
    ("max(x)", {"x": "n"}, {"x": [2.0, 0.0, 2.0]}, 2.0, {"x": [0.5, 0, 0.5]}),
    ("sum(maximum(x, y))", {"x": "n", "y": "n"}, {"x": [1.0, 0.0], "y": [1.0, 2.0]}, 3.0,
     {"x": [0.5, 0], "y": [0.5, 1]}),
    ("prod(x)", {"x": "n"}, {"x": [2.0, 0.0, 3.0]}, 0.0, {"x": [0, 6, 0]}),
    ("prod(x)", {"x": "n"}, {"x": [0.0, 0.0, 3.0]}, 0.0, {"x": [0, 0, 0]}),
]  # fmt: skip


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(("text", "shapes", "inputs", "value", "gradients"), SAFE, ids=[row[0] for row in SAFE])
def test_safe(text, shapes, inputs, value, gradients, library):
    found = derive(text, shapes, list(gradients))
    if library == "torch":
        pytest.importorskip("torch")
    function = compile_numpy(found) if library == "numpy" else compile_torch(found, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine, others = function(**{name: np.array(array) for name, array in inputs.items()})
    assert np.isclose(float(mine), value, rtol=1e-9, atol=1e-9)
    for name, expected in gradients.items():
        assert np.allclose(np.asarray(others[name]), expected, rtol=1e-9, atol=1e-9), others[name]


def test_a_system_returns_its_outputs_by_name():
    found = derive("A = softmax(S); sum(A * G)", {"S": "n,m", "G": "n,m"})
    result = compile_numpy(found.forward, ["A", found.output])(S=np.zeros((2, 4)), G=np.ones((2, 4)))
    assert list(result) == ["A", found.output] and result["A"].tolist() == [[0.25] * 4] * 2


def test_names_that_python_does_not_allow():
    i, n = Index("i"), Size("n")
    arrays = {"lambda": Array("lambda"), "h'": Array("h'", (n,)), "y": Array("y")}
    equation = whole(arrays["y"], Access("lambda") * sum_(Access("h'", i), [(i, 0, n)]))
    function = compile_numpy(System(arrays, (equation,), ("y",)))
    assert function(**{"lambda": 2.0, "h'": [1.0, 2.0]})["y"] == 6
    assert "def forward(lambda_, h_prime):" in function.source


KALMAN = (
    "P[0] = p; m[0] = u; P[t+1] = a**2*(P[t] - P[t]**2/(P[t] + r)) + q;"
    "m[t+1] = a*(m[t] + (y[t] - m[t])*P[t]/(P[t] + r)); sum[t=0:T]((y[t] - m[t])**2/(P[t] + r) + log(P[t] + r))"
)


def test_a_recurrence_goes_as_far_as_it_is_read():
    """P is read before anything tells its length: y tells it, through the recurrence that reads both."""
    torch = pytest.importorskip("torch")
    given = {"p": 1.3, "u": 0.2, "a": 0.8, "r": 0.7, "q": 0.4, "y": [0.3, -1.0, 0.5, 0.8]}
    tensors = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in given.items()}
    p, m, a, r, q, y = (tensors[name] for name in "puarqy")
    total = torch.zeros((), dtype=torch.float64)
    for seen in y:
        total = total + (seen - m) ** 2 / (p + r) + torch.log(p + r)
        m, p = a * (m + (seen - m) * p / (p + r)), a**2 * (p - p**2 / (p + r)) + q
    wanted = torch.autograd.grad(total, list(tensors.values()))
    function = compile_numpy(derive(KALMAN, {**dict.fromkeys("puarq", ""), "y": "T"}))
    value, gradients = function(**given)
    assert np.isclose(value, total.item())
    for name, gradient in zip(tensors, wanted, strict=True):
        assert np.allclose(gradients[name], gradient), name

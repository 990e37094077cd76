"""Generated NumPy code where formulas overflow, divide by zero or have a kink: right values, no warnings."""

import warnings

import numpy as np
import pytest
import torch

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.derive import derive

INF = np.inf
WIDE = np.array([-800.0, -100.0, 0.0, 100.0, 800.0])
KINKS = np.array([-1.0, 0.0, 1.0, 2.0])
C = np.array([2.0, 3.0, 5.0, 7.0])


def run(text, shapes, wrt, cotangent=None, **arrays):
    """Value and gradients, with every warning an error."""
    function = compile_numpy(derive(text, shapes, wrt, cotangent))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(**arrays)


# text, torch's own stable form
WIDE_ROWS = [
    ("sum(log(1 + exp(x)))", lambda x: torch.nn.functional.softplus(x).sum()),
    ("sum(log(exp(x) + 1))", lambda x: torch.nn.functional.softplus(x).sum()),
    ("sum(log1p(exp(x)))", lambda x: torch.nn.functional.softplus(x).sum()),
    ("sum(log(1 + exp(-x)))", lambda x: torch.nn.functional.softplus(-x).sum()),
    ("sum(softplus(x))", lambda x: torch.nn.functional.softplus(x).sum()),
    ("-sum(log(sigmoid(x)))", lambda x: -torch.nn.functional.logsigmoid(x).sum()),
    ("sum(log(1 - sigmoid(x)))", lambda x: torch.nn.functional.logsigmoid(-x).sum()),
    ("sum(1 / (1 + exp(-x)))", lambda x: torch.sigmoid(x).sum()),
    ("sum(exp(x) / (1 + exp(x)))", lambda x: torch.sigmoid(x).sum()),
    ("sum(sigmoid(x))", lambda x: torch.sigmoid(x).sum()),
    ("sum(tanh(x))", lambda x: torch.tanh(x).sum()),
    ("sum(silu(x))", lambda x: torch.nn.functional.silu(x).sum()),
    ("sum(gelu(x))", lambda x: torch.nn.functional.gelu(x).sum()),
    ('sum(gelu(x, approximate="tanh"))', lambda x: torch.nn.functional.gelu(x, approximate="tanh").sum()),
    ("sum(mish(x))", lambda x: torch.nn.functional.mish(x).sum()),
    ("sum(exp(-x**2))", lambda x: torch.exp(-(x**2)).sum()),
    ("sum(erf(x))", lambda x: torch.erf(x).sum()),
    ("sum(where(x > 0, x, exp(x) - 1))", lambda x: torch.nn.functional.elu(x).sum()),
    ("logsumexp(x)", lambda x: torch.logsumexp(x, 0)),
    ("log(sum(exp(x)))", lambda x: torch.logsumexp(x, 0)),
]


@pytest.mark.parametrize(("text", "reference"), WIDE_ROWS, ids=[row[0] for row in WIDE_ROWS])
def test_large_arguments(text, reference) -> None:
    value, gradients = run(text, {"x": "n"}, "x", x=WIDE)
    x = torch.tensor(WIDE, requires_grad=True)
    expected = reference(x)
    (gradient,) = torch.autograd.grad(expected, x)
    assert np.isfinite(value) and abs(value - expected.item()) <= 1e-12 * max(1, abs(expected.item()))
    assert np.allclose(gradients["x"], gradient.numpy(), rtol=1e-10, atol=1e-30)


TARGETS = [  # by the targets, too
    ("-t @ log_softmax(z)", lambda t, z: -(t * torch.log_softmax(z, 0)).sum()),
    ("-sum(t * log(softmax(z)))", lambda t, z: -(t * torch.log_softmax(z, 0)).sum()),
    ("sum(t * (log(t) - log_softmax(z)))", lambda t, z: (t * (t.log() - torch.log_softmax(z, 0))).sum()),
    ("sum(t * (z - logsumexp(z))**2)", lambda t, z: (t * torch.log_softmax(z, 0) ** 2).sum()),
]


@pytest.mark.parametrize(("text", "reference"), TARGETS)
@pytest.mark.parametrize("z", [[-1000.0, -1001, -1002], [1000.0, 0, -1000], [1000.0, 1001, 1002]])
def test_large_logits(text, reference, z) -> None:
    t, z = np.array([0.2, 0.5, 0.3]), np.array(z)
    value, gradients = run(text, {"t": "n", "z": "n"}, "t,z", t=t, z=z)
    tensors = [torch.tensor(array, requires_grad=True) for array in (t, z)]
    expected = reference(*tensors)
    assert np.isclose(value, expected.item(), rtol=1e-12)
    for name, gradient in zip("tz", torch.autograd.grad(expected, tensors), strict=True):
        assert np.allclose(gradients[name], gradient.numpy(), rtol=1e-10, atol=1e-12)


LOSS = [
    (np.full(3, -INF), -INF, np.zeros(3)),
    (np.array([-INF, 0.0, -INF]), 0.0, np.array([0.0, 1.0, 0.0])),
    (np.array([-INF, 1000.0, 1000.0]), 1000 + np.log(2), np.array([0.0, 0.5, 0.5])),
]


@pytest.mark.parametrize("text", ["logsumexp(z)", "log(sum(exp(z)))", "log(sum[i](exp(z[i])))"])
@pytest.mark.parametrize(("z", "value", "gradient"), LOSS)
def test_logsumexp_of_infinities(text, z, value, gradient) -> None:
    mine, gradients = run(text, {"z": "n"}, "z", z=z)
    assert mine == value and np.array_equal(gradients["z"], gradient)


def test_logsumexp_of_a_row_of_infinities() -> None:
    value, gradients = run("sum(logsumexp(Z, axis=1))", {"Z": "n,k"}, "Z", Z=np.array([[-INF, -INF], [0.0, 0.0]]))
    assert value == -INF and np.array_equal(gradients["Z"], [[0, 0], [0.5, 0.5]])


# where never poisons: text, x, value, gradient
WHERE = [
    ("sum(where(x > 0, log(x), 0))", [0.0, -1.0, 2.0], np.log(2), [0, 0, 0.5]),
    ("sum(where(x > 0, sqrt(x), 0))", [0.0, -1.0, 4.0], 2, [0, 0, 0.25]),
    ("sum(where(x > 0, 1/x, 0))", [0.0, -1.0, 2.0], 0.5, [0, 0, -0.25]),
    ("sum(where(x > 0, x**(-1.5), 0))", [0.0, -1.0, 4.0], 0.125, [0, 0, -1.5 / 32]),
    ("sum(where(x > 0, x*log(x), 0))", [0.0, -1.0, 1.0], 0, [0, 0, 1]),
    ("sum(where(x < 10, exp(x), x))", [0.0, 1000.0], 1001, [1, 1]),
    ("sum(where(x > 1, log(x - 1), 0))", [0.0, 1.0, 2.0], 0, [0, 0, 1]),
    ("sum(where(x == 0, 1, sin(x)/x))", [0.0, np.pi], 1, [0, -1 / np.pi]),
]


@pytest.mark.parametrize(("text", "x", "value", "gradient"), WHERE, ids=[row[0] for row in WHERE])
def test_where_never_poisons(text, x, value, gradient) -> None:
    mine, gradients = run(text, {"x": "n"}, "x", x=np.array(x))
    assert abs(mine - value) < 1e-12
    assert np.allclose(gradients["x"], gradient, rtol=1e-12, atol=1e-12)


def test_fully_masked_rows() -> None:
    """A row that nothing may attend to gives zeros, not NaN."""
    mask, z, g = np.array([[1, 0, 1], [0, 0, 0]]), np.arange(6.0).reshape(2, 3), np.array([[0.3, 0.1, -0.5], [1, 2, 3]])
    shapes = {"Z": "n,k", "M": "n,k:index=2"}
    value, gradients = run("softmax(where(M == 1, Z, -inf), axis=1)", shapes, "Z", "G", Z=z, M=mask, G=g)
    assert np.array_equal(value[1], np.zeros(3)) and np.array_equal(gradients["Z"][1], np.zeros(3))
    assert abs(value[0].sum() - 1) < 1e-12 and abs(gradients["Z"][0].sum()) < 1e-12 and gradients["Z"][0, 1] == 0


def test_masked_attention() -> None:
    shapes = {"Q": "n,d", "K": "m,d", "V": "m,e", "G": "n,e", "M": "n,m:index=2"}
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.normal(size=[{"n": 2, "m": 3, "d": 2, "e": 2}[s] for s in shapes[name].split(",")]) for name in "QKVG"
    }
    text = "sum(softmax(where(M == 1, Q @ K.T, -inf), axis=1) @ V * G)"
    value, gradients = run(text, shapes, "Q,K,V", M=np.array([[1, 0, 1], [0, 0, 0]]), **arrays)
    assert np.isfinite(value) and all(np.isfinite(g).all() for g in gradients.values())
    assert np.array_equal(gradients["Q"][1], np.zeros(2)) and np.array_equal(gradients["K"][1], np.zeros(2))


NORMS = ["norm(x)", "sqrt(sum(x**2))", "sqrt(sum[i](x[i]**2))", "sqrt(x @ x)", "norm(2*x)"]


@pytest.mark.parametrize("text", NORMS)
def test_norm_at_zero(text) -> None:
    """The subgradient 0, as in torch."""
    value, gradients = run(text, {"x": "n"}, "x", x=np.zeros(3))
    assert value == 0 and np.array_equal(gradients["x"], np.zeros(3))


def test_norms_of_rows() -> None:
    _, gradients = run("sum(norm(X, axis=1))", {"X": "n,d"}, "X", X=np.array([[0.0, 0.0], [3.0, 4.0]]))
    assert np.allclose(gradients["X"], [[0, 0], [0.6, 0.8]])


CORNERS = [
    ("relu(x)", torch.relu),
    ("abs(x)", torch.abs),
    ("maximum(x, 0)", lambda x: torch.maximum(x, torch.zeros_like(x))),
    ("minimum(x, 0)", lambda x: torch.minimum(x, torch.zeros_like(x))),
    ("clip(x, -1, 1)", lambda x: torch.clamp(x, -1, 1)),
    ("clip(x, 0, inf)", lambda x: torch.clamp(x, 0, torch.inf)),
    ("sign(x)", torch.sign),
    ("relu(x)**2", lambda x: torch.relu(x) ** 2),
    ("abs(x)**3", lambda x: torch.abs(x) ** 3),
    ("where(x > 0, x, 0.1*x)", lambda x: torch.nn.functional.leaky_relu(x, 0.1)),
]


@pytest.mark.parametrize(("text", "reference"), CORNERS, ids=[row[0] for row in CORNERS])
def test_kinks_as_in_torch(text, reference) -> None:
    value, gradients = run(f"sum(c * {text})", {"x": "n", "c": "n"}, "x", x=KINKS, c=C)
    x = torch.tensor(KINKS, requires_grad=True)
    expected = (torch.tensor(C) * reference(x)).sum()
    (gradient,) = torch.autograd.grad(expected, x)
    assert abs(value - expected.item()) < 1e-12 and np.allclose(gradients["x"], gradient.numpy(), rtol=1e-15, atol=0)


EXTREMA = [
    ("max(x)", lambda x: x.amax()),
    ("min(x)", lambda x: x.amin()),
    ("prod(x)", lambda x: x.prod()),
    ("prod(x**2 + x)", lambda x: (x**2 + x).prod()),
]


@pytest.mark.parametrize("x", [[1.0, 3.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [-1.0, -1.0, -1.0]])
@pytest.mark.parametrize(("text", "reference"), EXTREMA, ids=[row[0] for row in EXTREMA])
def test_ties_and_zeros_as_in_torch(text, reference, x) -> None:
    _, gradients = run(text, {"x": "n"}, "x", x=np.array(x))
    tensor = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(reference(tensor), tensor)
    assert np.allclose(gradients["x"], gradient.numpy(), atol=1e-15)

"""Exponentials in quotients, roots and logarithms, at ±800: generated code against 2600 digits of mpmath."""

import warnings

import mpmath
import numpy as np
import pytest
import torch
from mpmath import cosh, exp, fsum, log, sinh, sqrt, tanh

from gradproof.numeric.compile import compile_numpy, compile_torch
from gradproof.symbolic.derive import derive

WIDE = [-800.0, -100.0, -3.0, 0.0, 2.0, 100.0, 800.0]
ABOVE_ZERO = [0.125, 0.5, 3.0, 100.0, 800.0]

# text, the same in mpmath for one entry: the value is the sum over all entries
EACH = [
    ("log(cosh(x))", lambda x: log(cosh(x))),
    ("log(exp(x) + exp(-x))", lambda x: log(exp(x) + exp(-x))),
    ("log((exp(x) + exp(-x))/2)", lambda x: log(cosh(x))),
    ("log(2 + exp(x))", lambda x: log(2 + exp(x))),
    ("log(1 + 2*exp(x))", lambda x: log(1 + 2 * exp(x))),
    ("log(3*exp(x) + 2*exp(-x))", lambda x: log(3 * exp(x) + 2 * exp(-x))),
    ("log(1 + exp(x) + exp(2*x))", lambda x: log(1 + exp(x) + exp(2 * x))),
    ("log(1 + exp(x) + x**2)", lambda x: log(1 + exp(x) + x**2)),
    ("log(1 - exp(-x**2 - 1))", lambda x: log(1 - exp(-(x**2) - 1))),
    ("log(1 + sqrt(1 + exp(x)))", lambda x: log(1 + sqrt(1 + exp(x)))),
    ("log(1 + log(1 + exp(x)))", lambda x: log(1 + log(1 + exp(x)))),
    ("log(1 - sigmoid(x))", lambda x: -log(1 + exp(x))),
    ("log(3/(1 + exp(-x)))", lambda x: log(3 / (1 + exp(-x)))),
    ("sqrt(exp(x))/(1 + sqrt(exp(x)))", lambda x: 1 / (1 + exp(-x / 2))),
    ("sqrt(1 + exp(x))/(1 + sqrt(1 + exp(x)))", lambda x: sqrt(1 + exp(x)) / (1 + sqrt(1 + exp(x)))),
    ("(1 + exp(-x))**(-0.5)", lambda x: 1 / sqrt(1 + exp(-x))),
    ("(exp(x) - exp(-x))/(exp(x) + exp(-x))", tanh),
    ("sinh(x)/cosh(x)", tanh),
    ("(1 - exp(-2*x))/(1 + exp(-2*x))", tanh),
    ("(exp(x) - 1)/(exp(x) + 1)", lambda x: tanh(x / 2)),
    ("(3*exp(x) - 2)/(3*exp(x) + 2)", lambda x: (3 * exp(x) - 2) / (3 * exp(x) + 2)),
    ("1/cosh(x)", lambda x: 1 / cosh(x)),
    ("1/cosh(x)**2", lambda x: 1 / cosh(x) ** 2),
    ("2/(exp(x) + exp(-x))", lambda x: 1 / cosh(x)),
    ("exp(x)/(exp(x) + exp(-x))", lambda x: exp(x) / (exp(x) + exp(-x))),
    ("exp(x)/(1 + exp(x))**2", lambda x: exp(x) / (1 + exp(x)) ** 2),
    ("exp(x)/(2 + exp(x))", lambda x: exp(x) / (2 + exp(x))),
    ("exp(x)/(1 + exp(x) + exp(2*x))", lambda x: exp(x) / (1 + exp(x) + exp(2 * x))),
    ("exp(-x)*(1 + exp(x))/(3 + exp(-x))", lambda x: exp(-x) * (1 + exp(x)) / (3 + exp(-x))),
    ("x*exp(x)/(1 + exp(x))", lambda x: x * exp(x) / (1 + exp(x))),
    ("x/sinh(x + 0.5)", lambda x: x / sinh(x + 0.5)),
    ("x**3/(exp(x + 0.5) - 1)", lambda x: x**3 / (exp(x + 0.5) - 1)),
]
POSITIVE = [
    ("log(sinh(x))", lambda x: log(sinh(x))),
    ("log(exp(x) - exp(-x))", lambda x: log(exp(x) - exp(-x))),
    ("log(3*exp(x) - 2)", lambda x: log(3 * exp(x) - 2)),
    ("log(1 - exp(-x))", lambda x: log(1 - exp(-x))),
    ("cosh(x)/sinh(x)", lambda x: cosh(x) / sinh(x)),
    ("1/(1 - exp(-x))", lambda x: 1 / (1 - exp(-x))),
    ("1/(exp(x) - 1)", lambda x: 1 / (exp(x) - 1)),
]


def total(x, f):
    return fsum(map(f, x))


# text, the same in mpmath for the whole vector
WHOLE = [
    ("log(1 + sum(exp(x)))", lambda x: log(1 + total(x, exp))),
    ("log(sum(exp(x)) + sum(exp(-x)))", lambda x: log(2 * total(x, cosh))),
    ("log(sum(cosh(x)))", lambda x: log(total(x, cosh))),
    ("log(mean(exp(x)))", lambda x: log(total(x, exp) / len(x))),
    ("log(sum(exp(x))**2/sum(exp(2*x)))", lambda x: log(total(x, exp) ** 2 / total(x, lambda t: exp(2 * t)))),
    ("sum(exp(x)*x)/sum(exp(x))", lambda x: total(x, lambda t: t * exp(t)) / total(x, exp)),
    ("sum(exp(x/2))/sqrt(sum(exp(x)))", lambda x: total(x, lambda t: exp(t / 2)) / sqrt(total(x, exp))),
    ("sum(exp(x))**2/sum(exp(2*x))", lambda x: total(x, exp) ** 2 / total(x, lambda t: exp(2 * t))),
    ("exp(x[0])/(exp(x[0]) + exp(x[1]))", lambda x: exp(x[0]) / (exp(x[0]) + exp(x[1]))),
    ("exp(x[6])/(exp(x[0]) + exp(x[1]) + exp(x[6]))", lambda x: exp(x[6]) / total([x[0], x[1], x[6]], exp)),
    ("-log(exp(x[0])/(exp(x[0]) + exp(x[6])))", lambda x: -log(exp(x[0]) / (exp(x[0]) + exp(x[6])))),
    ("-log(exp(x[0])/(exp(x[0]) + sum(exp(x))))", lambda x: -log(exp(x[0]) / (exp(x[0]) + total(x, exp)))),
    ("E = exp(x); sum(E/(1 + E))", lambda x: total(x, lambda t: 1 / (1 + exp(-t)))),
    ("E = exp(x); Z = sum(E); p = E/Z; sum(p*x)", lambda x: total(x, lambda t: t * exp(t)) / total(x, exp)),
    ("c = cosh(x); s = sinh(x); sum(s/c)", lambda x: total(x, tanh)),
    ("m = max(x); E = exp(x - m); log(sum(E)) + m", lambda x: log(total(x, exp))),
    ("sum(where(x < 3, exp(x), 0)*x)/sum(where(x < 3, exp(x), 0))", lambda x: masked_mean([t for t in x if t < 3])),
]


def masked_mean(x):
    return total(x, lambda t: t * exp(t)) / total(x, exp)


ROWS = [
    *[(f"sum({text})", lambda x, f=f: total(x, f), WIDE) for text, f in EACH],
    *[(f"sum({text})", lambda x, f=f: total(x, f), ABOVE_ZERO) for text, f in POSITIVE],
    *[(text, f, WIDE) for text, f in WHOLE],
]


def reference(f, x):
    """Value and central differences; the step is small enough for exponents of any size."""
    with mpmath.workdps(2600):
        step = mpmath.mpf(10) ** -1300
        places = [[mpmath.mpf(t) for t in x] for _ in x]
        gradient = []
        for k, place in enumerate(places):
            ahead, behind = list(place), list(place)
            ahead[k], behind[k] = place[k] + step, place[k] - step
            gradient.append(float((f(ahead) - f(behind)) / (2 * step)))
        return float(f(places[0])), np.array(gradient)


@pytest.mark.parametrize(("text", "f", "x"), ROWS, ids=[row[0] for row in ROWS])
def test_far_from_zero(text, f, x) -> None:
    """Value and gradient, and no warning; the torch code agrees."""
    value, gradient = reference(f, x)
    derived = derive(text, {"x": "n"}, "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine, gradients = compile_numpy(derived)(x=np.array(x))
    assert abs(mine - value) <= 1e-12 * max(1, abs(value))
    assert np.allclose(gradients["x"], gradient, rtol=1e-11, atol=1e-15)
    theirs, tensors = compile_torch(derived, device="cpu")(x=torch.tensor(x, dtype=torch.float64))
    assert abs(float(theirs) - value) <= 1e-12 * max(1, abs(value))
    assert np.allclose(tensors["x"].numpy(), gradient, rtol=1e-11, atol=1e-15)


MASKED = [
    "E = where(M == 1, exp(Z), 0); A = E/sum(E, axis=1, keepdims=True); sum(A*G)",
    "E = (M == 1)*exp(Z); sum(E/sum(E, axis=1, keepdims=True)*G)",
    "sum[i,j](where(M[i,j] == 1, exp(Z[i,j]), 0)*G[i,j]/sum[k](where(M[i,k] == 1, exp(Z[i,k]), 0)))",
]


@pytest.mark.parametrize("text", MASKED)
def test_masked_softmax_by_hand(text) -> None:
    """As softmax(where(M == 1, Z, -inf)), also in a row without any entry and beside a masked 1e9."""
    shapes = {"Z": "n,k", "M": "n,k:index=2", "G": "n,k"}
    arrays = {
        "Z": np.array([[900.0, 1e9, 899.0], [1.0, 2.0, 3.0], [-800.0, -801.0, -900.0]]),
        "M": np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]]),
        "G": np.array([[0.3, 0.1, -0.5], [1.0, 2.0, 3.0], [-0.2, 0.7, 0.4]]),
    }
    named = compile_numpy(derive("sum(softmax(where(M == 1, Z, -inf), axis=1)*G)", shapes, "Z"))(**arrays)
    value, gradients = compile_numpy(derive(text, shapes, "Z"))(**arrays)
    assert abs(value - named[0]) < 1e-12 and np.allclose(gradients["Z"], named[1]["Z"], rtol=1e-12, atol=1e-15)

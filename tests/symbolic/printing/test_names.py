"""No two things print alike: names that are chosen automatically keep clear of the user's, and the user's of each other."""

import numpy as np
import pytest

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.derive import derive
from gradproof.symbolic.errors import ExpressionError
from gradproof.symbolic.printing.text import alike

# What an expression names by itself, and what a user may have called something else.
PARTS = ["softmax(x)", "layernorm(x)", "rmsnorm(x)", "norm(x)*x", "logsumexp(x)*x", "x/sqrt(mean(x**2))"]
NAMES = ["s", "s1", "s_1", "P", "P_1", "P1", "r", "r_1", "mu", "c", "v", "xhat", "x_hat", "E", "Z", "m1"]


@pytest.mark.parametrize("part", PARTS)
def test_automatic_names_keep_clear(part) -> None:
    for first, second in zip(NAMES, NAMES[3:] + NAMES[:3], strict=True):
        if alike([first, second]):
            continue
        text = f"{first} = 2*x; {second} = {first}**2; sum({part} * {first} * {second}) + sum({part})"
        derived = derive(text, {"x": "n"})
        assert alike([*derived.system.arrays, *map(str, derived.system.sizes)]) is None, text


# text, shapes, what the message says
REFUSED = [
    ("s1 = sum(x); s_1 = sum(x**2); s1*s_1", {"x": "n"}, "s1 and s_1 would both be printed as s₁"),
    ("x_hat*sum(xhat**2)", {"xhat": "n", "x_hat": ""}, "would both be printed as x̂"),
    ("lam*sum(x**2) + lambda_*sum(x)", {"x": "n", "lam": "", "lambda_": ""}, "lam and lambda_"),
    ("eps*epsilon*sum(x)", {"x": "n", "eps": "", "epsilon": ""}, "eps and epsilon"),
    ("sum(x)*n1*n_1", {"x": "n1", "y": "n_1"}, "n1 and n_1"),
    ("xbar*sum(x**2)", {"x": "n", "xbar": ""}, "xbar would be printed as x̄, as the derivative of x is"),
    ("sum(x)*e", {"x": "n"}, r"e is not declared; write exp\(1\) for Euler's number, or declare a scalar as e:"),
    ("sum(x**2)", {"x": "n:iid=e,f"}, r"e is not declared; write exp\(1\)"),
]


@pytest.mark.parametrize(("text", "shapes", "message"), REFUSED)
def test_names_that_print_alike(text, shapes, message) -> None:
    with pytest.raises(ExpressionError, match=message):
        derive(text, shapes)


# The same thing under two names, and its value at x = (3, 4)
TWICE = [
    ("s = sqrt(sum(x**2)); sum(x/s)*norm(x)", 7.0, [1.0, 1.0]),
    ("a = norm(x); b = sqrt(sum(x**2)); c = sqrt(x @ x); a + b + c", 15.0, [1.8, 2.4]),
    ("u = rmsnorm(x, eps=0); v = x/sqrt(mean(x**2)); sum(u*v)", 2.0, [0.0, 0.0]),
    ("p = softmax(x - x); q = exp(0*x)/sum(exp(0*x)); sum(p*q*x)", 1.75, [0.25, 0.25]),
]


@pytest.mark.parametrize(("text", "value", "gradient"), TWICE, ids=[row[0] for row in TWICE])
def test_two_names_for_one_thing(text, value, gradient) -> None:
    """Both keep their definition; a name without one would be an input, that is, a constant."""
    derived = derive(text, {"x": "n"})
    assert derived.forward.inputs == ("x",)
    mine, gradients = compile_numpy(derived)(x=np.array([3.0, 4.0]))
    assert abs(mine - value) < 1e-12 and np.allclose(gradients["x"], gradient, atol=1e-12)

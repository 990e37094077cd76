"""Every expression at sizes 0, 1, 2 and 3: generated code gives what torch gives, shapes included."""

import warnings
from itertools import product
from random import Random

import numpy as np
import pytest
import torch
from expressions import FIRST, SECOND

from gradproof.numeric.compile import compile_numpy, compile_torch
from gradproof.numeric.emitters.arguments import ArgumentError
from gradproof.numeric.random_inputs import random_inputs
from gradproof.numeric.reference.evaluator import evaluate
from gradproof.symbolic.derive import derive
from gradproof.symbolic.errors import GradproofError

MORE = [  # ranges that are empty at small sizes
    ("sum(x[2:] + a)", {"x": "n", "a": ""}, "x,a"),
    ("sum((x[2:] + a)**2)", {"x": "n", "a": ""}, "x,a"),
    ("sum(x) * sum[i=0:n-2](1)", {"x": "n"}, "x"),
    ("sum[i,j=0:i-1](x[i] * a)", {"x": "n", "a": ""}, "x,a"),
    ("sum[i,j=i+1:n-1](x[i] * x[j])", {"x": "n"}, "x"),
    ("sum(x[1:-1]**3) + sum(x[:-2] * a)", {"x": "n", "a": ""}, "x,a"),
    ("a * prod(x[2:] * 0 + 2)", {"x": "n", "a": ""}, "x,a"),
    ("sum(X[1:, 2:]**2 + a)", {"X": "n,m", "a": ""}, "X,a"),
    ("sum(E[w] * g)", {"E": "V,d", "w": "b:index=V", "g": "b,d"}, "E,g"),
    ("sum(E[w, v] * g)", {"E": "V,U", "w": "b:index=V", "v": "b:index=U", "g": "b"}, "E,g"),
]
# The norm of no entries is 0; code divides by it before it sums, and has NaN where the sum of nothing is 0.
NOTHING_BY_NOTHING = ("sum(X / norm(X, axis=1, keepdims=True) * G)", "sum(X / sum(X**2, axis=1, keepdims=True) * G)")
TABLE = [*FIRST, *((text, shapes, wrt) for text, shapes, wrt in SECOND), *MORE]


def small(system):
    """All sizes from 0 to 3 for which every array has a shape."""
    for values in product(range(4), repeat=len(system.sizes)):
        sizes = dict(zip(system.sizes, values, strict=True))
        if all(int(size.xreplace(sizes)) >= 0 for name in system.inputs for size in system.arrays[name].shape):
            yield sizes


def compare(text, shapes, wrt, number):
    """Compare at a number of small sizes; a result without a value may be refused by an error instead."""
    variables = wrt.split(",")
    found = derive(text, shapes, variables)
    functions = [compile_numpy(found), compile_torch(found, device="cpu")]
    choices = list(small(found.forward))
    for sizes in Random(text).sample(choices, min(number, len(choices))):
        where = f"{text} at {', '.join(f'{size}={value}' for size, value in sizes.items())}"
        try:
            arrays = random_inputs(found.forward, sizes, len(text), positive="log(" in text)
        except ValueError:  # an index below 0
            continue
        tensors = {name: torch.as_tensor(value).clone() for name, value in arrays.items()}
        for name in variables:
            tensors[name] = tensors[name].double().requires_grad_()
        try:
            expected = evaluate(found.program, tensors, {str(size): value for size, value in sizes.items()})
            wanted = torch.autograd.grad(expected, [tensors[name] for name in variables], allow_unused=True)
        except (GradproofError, RuntimeError):
            expected = None
        for function in functions:
            given = {name: array for name, array in arrays.items() if name in function.arguments.names}
            given |= {str(s): v for s, v in sizes.items() if str(s) in function.arguments.names}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                try:
                    value, gradients = function(**given)
                except (ArgumentError, ValueError, IndexError, np.linalg.LinAlgError, RuntimeError):
                    assert expected is None or 0 in sizes.values() or not expected.isfinite(), where
                    continue
            if expected is None:
                continue
            value = torch.as_tensor(value)
            if value.isnan() and text in NOTHING_BY_NOTHING and 0 in sizes.values():
                continue
            assert torch.allclose(value, expected, rtol=1e-9, atol=1e-9, equal_nan=True), where
            if not expected.isfinite():
                continue
            for name, gradient in zip(variables, wanted, strict=True):
                gradient = torch.zeros_like(tensors[name]) if gradient is None else gradient
                mine = torch.as_tensor(gradients[name])
                assert mine.shape == gradient.shape, where
                assert torch.allclose(mine, gradient, rtol=1e-8, atol=1e-8, equal_nan=True), f"{where}: {name}"


ROWS = pytest.mark.parametrize(("text", "shapes", "wrt"), TABLE, ids=[row[0] for row in TABLE])


@ROWS
def test_small_sizes(text, shapes, wrt):
    compare(text, shapes, wrt, 3)


@pytest.mark.slow
@ROWS
def test_all_small_sizes(text, shapes, wrt):
    compare(text, shapes, wrt, 4**5)

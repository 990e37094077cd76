"""Gradients of everything that people type, against torch autograd of an independently written forward."""

import numpy as np
import pytest
import torch
from expressions import FIRST, SECOND

from gradproof.numeric.compile import compile_numpy
from gradproof.numeric.random_inputs import random_inputs, random_sizes
from gradproof.numeric.reference.evaluator import evaluate
from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import hessian
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse


def tensors_of(arrays, variables):
    found = {name: torch.as_tensor(value) for name, value in arrays.items()}
    for name in variables:
        found[name] = found[name].clone().detach().to(torch.float64).requires_grad_()
    return found


def agrees(mine, theirs, tolerance=1e-10):
    theirs = np.asarray(theirs)
    assert np.shape(mine) == theirs.shape
    return np.max(np.abs(mine - theirs), initial=0.0) <= tolerance * max(1.0, np.max(np.abs(theirs), initial=0.0))


def inputs_of(system, seed):
    sizes = random_sizes(system, seed)
    return sizes, random_inputs(system, sizes, seed)


@pytest.mark.parametrize(("text", "shapes", "wrt"), FIRST, ids=[row[0] for row in FIRST])
def test_first_order(text, shapes, wrt):
    variables = wrt.split(",")
    found = derive(text, shapes, variables)
    sizes, arrays = inputs_of(found.forward, seed=len(text))
    tensors = tensors_of(arrays, variables)
    reference = evaluate(found.program, tensors, {str(size): value for size, value in sizes.items()})
    expected = torch.autograd.grad(reference, [tensors[name] for name in variables], allow_unused=True)
    function = compile_numpy(found)
    needed = set(function.arguments.names)
    value, gradients = function(**{name: array for name, array in arrays.items() if name in needed})
    assert agrees(value, reference.detach().numpy())
    for name, gradient in zip(variables, expected, strict=True):
        assert agrees(
            gradients[name], torch.zeros_like(tensors[name]).numpy() if gradient is None else gradient.numpy()
        ), name


@pytest.mark.parametrize(("text", "shapes", "wrt"), SECOND, ids=[row[0] for row in SECOND])
def test_second_order(text, shapes, wrt):
    variables = wrt.split(",")
    program = parse(text)
    found = hessian(build(program, shapes), variables, program)
    sizes, arrays = inputs_of(found.forward, seed=len(text))
    tensors = tensors_of(arrays, variables)
    named = {str(size): value for size, value in sizes.items()}

    def forward(*values):
        return evaluate(program, {**tensors, **dict(zip(variables, values, strict=True))}, named)

    expected = torch.autograd.functional.hessian(forward, tuple(tensors[name].detach() for name in variables))
    results = [gradient.equation.name for gradient in found.gradients.values()]
    function = compile_numpy(found.system, results)
    needed = set(function.arguments.names)
    values = function(**{name: array for name, array in arrays.items() if name in needed})
    for pair, gradient in found.gradients.items():
        row, column = (pair.split(",") * 2)[:2]
        block = expected[variables.index(row)][variables.index(column)]
        assert agrees(values[gradient.equation.name], block.numpy(), 1e-9), pair


def test_the_tables_are_as_long_as_promised():
    assert len(FIRST) >= 150
    assert len(SECOND) >= 40

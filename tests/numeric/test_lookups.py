"""Every way to index, read and filled, against torch's own indexing: value and gradient, in NumPy and in torch code."""

import pytest
import torch
from lookups import lookup

from gradproof.numeric.compile import compile_numpy, compile_torch
from gradproof.numeric.reference.evaluator import evaluate
from gradproof.symbolic.derive import derive

VARIABLES = ("x", "u", "base")


def compare(seed):
    case = lookup(seed)
    wrt = [name for name in VARIABLES if name in case.shapes]
    given = {n: v.clone().requires_grad_(n in wrt) for n, v in case.arrays.items()}
    expected = case.forward(given)
    wanted = torch.autograd.grad(expected, [given[name] for name in wrt])
    found = derive(case.text, case.shapes, wrt)
    reference = evaluate(found.program, case.arrays, case.sizes)
    assert torch.allclose(reference, expected, rtol=1e-10, atol=1e-10), f"{case.text}: reference, seed {seed}"
    for compiled in (compile_numpy(found), compile_torch(found, device="cpu")):
        names = compiled.arguments.names
        value, gradients = compiled(**{name: array for name, array in case.arrays.items() if name in names})
        assert torch.allclose(torch.as_tensor(value), expected, rtol=1e-10, atol=1e-10), f"{case.text}, seed {seed}"
        for name, gradient in zip(wrt, wanted, strict=True):
            mine = torch.as_tensor(gradients[name])
            assert mine.shape == gradient.shape
            assert torch.allclose(mine, gradient, rtol=1e-10, atol=1e-10), f"{case.text}: {name}, seed {seed}"


KEPT = (1458, 2206)  # seeds that once found a wrong result beyond the first ones


@pytest.mark.parametrize("seed", [*range(150), *KEPT])
def test_lookups(seed):
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_lookups(part, fresh_seed):
    first = fresh_seed * 5000 + 500 * part
    for seed in range(first, first + 500):
        compare(seed)

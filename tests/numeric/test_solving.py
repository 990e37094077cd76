"""Generated code solves linear equations where it may, and inverts where the inverse is needed more often."""

import numpy as np
import pytest
import torch

from gradproof.numeric.compile import compile_numpy, compile_torch
from gradproof.symbolic.derive import derive

SIZES = {"n": 4, "m": 3, "t": 2}
inv, solve, logdet = torch.linalg.inv, torch.linalg.solve, torch.logdet

# text, shapes, variables, how often the code solves and inverts, the same in torch
ROWS = [
    ("b @ solve(A, c)", {"A": "n,n", "b": "n", "c": "n"}, "A,c", (2, 0), lambda A, b, c: b @ solve(A, c)),
    (
        "sum(solve(A, Y)*G)",
        {"A": "n,n", "Y": "n,m", "G": "n,m"},
        "A,Y",
        (2, 0),
        lambda A, Y, G: (solve(A, Y) * G).sum(),
    ),
    (
        "sum((Y @ inv(A))*G)",
        {"A": "n,n", "Y": "m,n", "G": "m,n"},
        "A,Y",
        (2, 0),
        lambda A, Y, G: (Y @ inv(A) * G).sum(),
    ),
    ("sum(inv(A.T) @ Y * Y)", {"A": "n,n", "Y": "n,m"}, "Y", (2, 0), lambda A, Y: (solve(A.T, Y) * Y).sum()),
    (
        "sum(G*solve(A, Y))",
        {"A": "t,n,n", "Y": "t,n,m", "G": "t,n,m"},
        "Y",
        (2, 0),
        lambda A, Y, G: (solve(A, Y) * G).sum(),
    ),
    ("sum(inv(A)**2)", {"A": "n,n"}, "A", (0, 1), lambda A: (inv(A) ** 2).sum()),
    ("b @ solve(A, b) + logdet(A)", {"A": "n,n", "b": "n"}, "A", (0, 1), lambda A, b: b @ solve(A, b) + logdet(A)),
    ("b @ solve(A, solve(A, b))", {"A": "n,n", "b": "n"}, "A", (0, 1), lambda A, b: b @ solve(A, solve(A, b))),
    (
        "b @ inv(A + x[:,None]*x[None,:]) @ c",
        {"A": "n,n", "b": "n", "c": "n", "x": "n"},
        "x",
        (2, 0),
        lambda A, b, c, x: b @ solve(A + torch.outer(x, x), c),
    ),
]


@pytest.mark.parametrize(("text", "shapes", "wrt", "counts", "reference"), ROWS, ids=[row[0] for row in ROWS])
def test_solutions_and_inverses(text, shapes, wrt, counts, reference) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=[SIZES[s] for s in sizes.split(",")]) for name, sizes in shapes.items()}
    arrays["A"] = 4 * np.eye(4) + arrays["A"]  # a positive determinant
    derived = derive(text, shapes, wrt)
    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}
    expected = reference(**tensors)
    gradients = torch.autograd.grad(expected, [tensors[name] for name in wrt.split(",")])
    for compiled, given in (
        (compile_numpy(derived), arrays),
        (compile_torch(derived, device="cpu"), {name: torch.tensor(array) for name, array in arrays.items()}),
    ):
        assert (compiled.source.count("linalg.solve("), compiled.source.count("linalg.inv(")) == counts
        value, mine = compiled(**given)
        assert abs(float(value) - expected.item()) < 1e-12
        for name, gradient in zip(wrt.split(","), gradients, strict=True):
            assert np.allclose(np.asarray(mine[name]), gradient.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n", [6, 9, 12])
def test_ill_conditioned(n) -> None:
    """Hilbert's matrix has the condition 10⁷, 10¹¹, 10¹⁶: the solution's residual stays at the last digits."""
    hilbert = 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)
    compiled = compile_numpy(derive("solve(A, c)", {"A": "n,n", "c": "n"}, "c", "G"))
    ones = np.ones(n)
    x, gradients = compiled(A=hilbert, c=ones, G=ones)
    for solution in (x, gradients["c"]):
        assert (
            np.abs(hilbert @ solution - ones).max() < 1e-15 * np.abs(hilbert).sum(axis=1).max() * np.abs(solution).max()
        )

"""Optimisers, clipping and schedules: torch's own step by step, and the documented facts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gradproof.models.errors import TrainingError
from gradproof.models.training.optimisers import CHUNK, Optimiser, clip, clip_factor, global_norm, schedule

# ours, its settings, the rate, torch's class and its settings
PAIRS: list[tuple[str, dict[str, float], str, dict[str, Any]]] = [
    ("sgd", {}, "SGD", {}),
    ("sgd", {"l2": 0.1}, "SGD", {"weight_decay": 0.1}),
    ("momentum", {"mu": 0.8}, "SGD", {"momentum": 0.8}),
    ("adam", {}, "Adam", {}),
    ("adam", {"beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}, "Adam", {"betas": (0.8, 0.95), "eps": 1e-3}),
    ("adam", {"l2": 0.1}, "Adam", {"weight_decay": 0.1}),
    ("adamw", {"decay": 0.1}, "AdamW", {"weight_decay": 0.1}),
]


@pytest.mark.parametrize(("name", "settings", "other", "options"), PAIRS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_torch_takes_the_same_steps(
    name: str, settings: dict[str, float], other: str, options: dict[str, Any], dtype: Any, tolerance: float
) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    theta = rng.normal(size=2 * CHUNK + 3).astype(dtype)
    theirs = torch.tensor(theta.copy(), requires_grad=True)
    reference = getattr(torch.optim, other)([theirs], lr=0.01, **options)
    ours = Optimiser(name, theta.size, dtype=dtype, **settings)
    for _ in range(10):
        gradient = rng.normal(size=theta.size).astype(dtype)
        theirs.grad = torch.tensor(gradient)
        reference.step()
        ours.step(theta, gradient, 0.01)
        assert np.abs(theta - theirs.detach().numpy()).max() <= tolerance * np.abs(theta).max()
    assert theta.dtype == dtype


def test_adam_divides_outside_the_root() -> None:
    """g = 1e−8, step 1, rate 1e−3, ε = 1e−8: half a step."""
    theta = np.zeros(1)
    Optimiser("adam", 1).step(theta, np.array([1e-8]), 1e-3)
    assert theta[0] == pytest.approx(-5.0e-4, rel=1e-9)


def test_decoupled_decay_is_not_l2() -> None:
    """w = 1, g = 0, decay .1, rate .01: .9990 against .9900."""
    decoupled, penalised = np.ones(1), np.ones(1)
    Optimiser("adamw", 1, decay=0.1).step(decoupled, np.zeros(1), 0.01)
    Optimiser("adam", 1, l2=0.1).step(penalised, np.zeros(1), 0.01)
    assert decoupled[0] == pytest.approx(0.9990, abs=1e-6)
    assert penalised[0] == pytest.approx(0.9900, abs=1e-6)


@pytest.mark.parametrize("tau", [0.5, 1.0, 7.0])
def test_huge_gradients_are_clipped_in_float32(tau: float) -> None:
    clipped, norm = clip({"W": np.full((10, 10), 1e20, np.float32)}, tau)
    assert norm == pytest.approx(1e21, rel=1e-6)
    assert clipped["W"].dtype == np.float32
    assert np.allclose(clipped["W"], 0.1 * tau, rtol=1e-6)


def test_the_norm_of_float64_gradients_does_not_overflow() -> None:
    assert global_norm({"a": np.full(4, 1e200), "b": np.zeros(3)}) == pytest.approx(2e200)


def test_clipping_is_global_keeps_the_direction_and_leaves_short_gradients_alone() -> None:
    rng = np.random.default_rng(0)
    gradients = {"a": rng.normal(size=(3, 4)), "b": rng.normal(size=5)}
    norm = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    clipped, found = clip(gradients, 0.5)
    assert found == pytest.approx(norm)
    assert global_norm(clipped) == pytest.approx(0.5)
    assert all(np.allclose(clipped[name] * norm / 0.5, gradients[name]) for name in gradients)
    assert all(np.array_equal(clip(gradients, 2 * norm)[0][name], gradients[name]) for name in gradients)
    assert clip({"a": np.zeros(3)}, 1.0)[1] == 0.0


def test_torch_clips_the_same_way_with_its_divisor() -> None:
    torch = pytest.importorskip("torch")
    gradient = np.random.default_rng(1).normal(size=20)
    tensor = torch.zeros(20, dtype=torch.float64, requires_grad=True)
    tensor.grad = torch.tensor(gradient)
    torch.nn.utils.clip_grad_norm_([tensor], 0.3)
    assert np.allclose(clip({"g": gradient}, 0.3, delta=1e-6)[0]["g"], tensor.grad.numpy(), rtol=1e-14)
    assert clip_factor(2.0, 0.5) == 0.25  # ours is the formula


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_entry_that_is_no_number_is_an_error_that_names_the_tensor(bad: float) -> None:
    with pytest.raises(TrainingError, match="gradient of W_Q"):
        clip({"E": np.ones(3), "W_Q": np.array([1.0, bad])}, 1.0)


def test_schedules() -> None:
    warm = schedule("warmup", eta=2.0, d=512, w=4000)
    for step in (1, 100, 4000, 4001, 100_000):
        assert warm(step) == pytest.approx(2.0 * 512**-0.5 * min(step**-0.5, step * 4000**-1.5))
    cosine = schedule("cosine", eta=0.1, eta_end=0.01, w=10, steps=110)
    assert [cosine(s) for s in (1, 10, 60, 110, 200)] == pytest.approx([0.01, 0.1, 0.055, 0.01, 0.01])
    assert schedule("cosine", eta=0.1, eta_end=0.0, w=0, steps=10)(5) == pytest.approx(0.05)
    assert schedule("constant", eta=0.3)(7) == 0.3


def test_state_goes_on_where_it_was_saved() -> None:
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(6, 5))
    whole, halves = np.ones(5), np.ones(5)
    one, first = Optimiser("adamw", 5), Optimiser("adamw", 5)
    for g in gradients:
        one.step(whole, g, 0.1)
    for g in gradients[:3]:
        first.step(halves, g, 0.1)
    second = Optimiser("adamw", 5)
    second.restore({name: value.copy() for name, value in first.arrays().items()})
    for g in gradients[3:]:
        second.step(halves, g, 0.1)
    assert np.array_equal(whole, halves)
    with pytest.raises(TrainingError):
        Optimiser("sgd", 5).restore(first.arrays())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Optimiser("magic", 3),
        lambda: Optimiser("sgd", 3, beta_1=0.9),
        lambda: schedule("warmup", eta=1.0),
        lambda: schedule("magic", eta=1.0),
        lambda: clip({"a": np.ones(2)}, 0.0),
    ],
)
def test_wrong_settings(wrong: Any) -> None:
    with pytest.raises(TrainingError):
        wrong()


@pytest.mark.parametrize(
    ("name", "settings", "gradient", "rate"),
    [
        ("adam", {}, 1e25, 1e-3),  # the average of squares
        ("adamw", {"l2": 1e37}, 1e3, 1e-3),
        ("sgd", {}, 1e10, 1e30),
        ("momentum", {}, 1e38, 1e30),
    ],
)
@pytest.mark.parametrize("threads", [0, 2])
def test_a_step_that_overflows_is_an_error(
    name: str, settings: dict[str, float], gradient: float, rate: float, threads: int
) -> None:
    """Silently infinite averages would keep their parameters where they are."""
    optimiser = Optimiser(name, 5, dtype=np.float32, **settings)
    theta, full = np.full(5, 1e3, np.float32), np.full(5, gradient, np.float32)
    with (
        ThreadPoolExecutor(max(threads, 1)) as pool,
        pytest.raises(TrainingError, match=f"of {name} overflows float32"),
    ):
        optimiser.step(theta, full, rate, pool.map if threads else map)

"""`gradproof bench hessian`: closed-form Hessians in NumPy beside torch.func.hessian and jax.jit(jax.hessian).

In each case d is the side of the Hessian that the case is named after: the weights of logistic regression and of the
net, the rows of a factorisation of rank 5 (whose Hessian has 5d rows).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from gradproof.cli.output.console import emit_json

Forward = Callable[[Any, Mapping[str, Any]], Any]  # of a library (torch, jax.numpy) and the arrays


@dataclass(frozen=True)
class Case:
    """A function of one variable, as an expression and as code for the peers, and the ratios to reach."""

    name: str
    expression: str
    shapes: Mapping[str, str]
    wrt: str
    sizes: Callable[[int], dict[str, int]]
    forward: Forward
    torch_goal: float
    jax_goal: float


CASES = (
    Case(
        "logistic regression",
        "sum(log(1 + exp(-y * (X @ w))))",
        {"X": "n,d", "w": "d", "y": "n"},
        "w",
        lambda d: {"n": 2 * d, "d": d},
        lambda lib, a: lib.logaddexp(0 * a["y"], -a["y"] * (a["X"] @ a["w"])).sum(),
        13,
        2.5,
    ),
    Case(
        "matrix factorisation",
        "sum(M * (U @ V.T - Y)**2)",
        {"U": "n,k", "V": "m,k", "Y": "n,m", "M": "n,m"},
        "U",
        lambda d: {"n": d, "m": d, "k": 5},
        lambda lib, a: (a["M"] * (a["U"] @ a["V"].T - a["Y"]) ** 2).sum(),
        200,
        15,
    ),
    Case(
        "two-layer net",
        "sum((tanh(X @ W) @ v - y)**2)",
        {"X": "n,p", "W": "p,k", "v": "k", "y": "n"},
        "W",
        lambda d: {"n": 10 * d, "p": d // 10, "k": 10},
        lambda lib, a: ((lib.tanh(a["X"] @ a["W"]) @ a["v"] - a["y"]) ** 2).sum(),
        9,
        3,
    ),
)


def inputs(case: Case, d: int) -> dict[str, np.ndarray]:
    rng, sizes = np.random.default_rng(d), case.sizes(d)
    return {name: rng.normal(size=[sizes[s] for s in shape.split(",")]) / 3 for name, shape in case.shapes.items()}


def closed_form(case: Case, arrays: Mapping[str, np.ndarray]) -> Callable[[], np.ndarray]:
    """The generated function."""
    from gradproof.numeric.compile import compile_numpy
    from gradproof.symbolic.deriving.products import hessian
    from gradproof.symbolic.language.reader import build
    from gradproof.symbolic.language.syntax import parse

    program = parse(case.expression)
    found = hessian(build(program, case.shapes), case.wrt, program)
    name = f"H_{case.wrt}"
    compiled = compile_numpy(found.system, [name])
    given = {argument: arrays[argument] for argument in compiled.arguments.names}
    compiled(**given)  # checks the arguments once
    return lambda: compiled.function(**given)[name]


def torch_hessian(case: Case, arrays: Mapping[str, np.ndarray]) -> Callable[[], Any]:
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    run = torch.func.hessian(lambda x: case.forward(torch, {**tensors, case.wrt: x}))
    return lambda: run(tensors[case.wrt])


def jax_hessian(case: Case, arrays: Mapping[str, np.ndarray]) -> Callable[[], Any] | None:
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    given = {name: jax.numpy.asarray(array) for name, array in arrays.items()}
    run = jax.jit(jax.hessian(lambda x, rest: case.forward(jax.numpy, {**rest, case.wrt: x})))
    return lambda: run(given[case.wrt], given).block_until_ready()


def measured(case: Case, d: int, rounds: int) -> dict[str, Any]:
    """Median seconds of each, and the median of the ratios, round by round, after all gave the same Hessian."""
    arrays = inputs(case, d)
    runs = {"gradproof": closed_form(case, arrays), "torch": torch_hessian(case, arrays)}
    if (peer := jax_hessian(case, arrays)) is not None:
        runs["jax"] = peer
    values = {name: np.asarray(run()) for name, run in runs.items()}
    scale = np.abs(values["torch"]).max()
    for name, value in values.items():
        if value.shape != values["torch"].shape or np.abs(value - values["torch"]).max() > 1e-10 * scale:
            raise click.ClickException(f"{case.name}, d = {d}: {name} and torch give different Hessians")
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            run()  # each meets its own memory again, not what another has given back to the system
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    row: dict[str, Any] = {"name": case.name, "d": d}
    row |= {f"{name}_seconds": statistics.median(found) for name, found in times.items()}
    for name in times:
        if name != "gradproof":
            row[f"times_{name}"] = statistics.median(
                theirs / mine for theirs, mine in zip(times[name], times["gradproof"], strict=True)
            )
    return row


@click.command("hessian")
@click.option("--rounds", type=click.IntRange(1), default=7, help="Counted runs of each, one after the other.")
@click.option(
    "--size",
    "sizes",
    type=click.IntRange(10),
    multiple=True,
    default=(100, 200),
    help="d; torch needs many GB for the factorisation from 500.",
)
@click.option("--threads", type=click.IntRange(1), default=1, help="Threads of each; waiting pools disturb each other.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def bench_hessian(rounds: int, sizes: Sequence[int], threads: int, as_json: bool) -> int:
    """Hessians in closed form, side by side with torch and, where it is installed, JAX."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    if threads == 1:  # read when JAX is imported
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.environ.setdefault("XLA_FLAGS", flags)
    with threadpool_limits(threads):
        rows = [measured(case, d, rounds) for case in CASES for d in sizes]
    goals = {case.name: (case.torch_goal, case.jax_goal) for case in CASES}
    if as_json:
        emit_json([row | dict(zip(("torch_goal", "jax_goal"), goals[row["name"]], strict=True)) for row in rows])
        return 0
    click.echo(f"{'Hessian':<22}{'d':>5}{'gradproof':>12}{'torch':>12}{'':>8}{'JAX':>12}")
    for row in rows:
        jax = (
            f"{1e3 * row['jax_seconds']:>9.2f} ms{row['times_jax']:>7.1f}×"
            if "times_jax" in row
            else "   not installed"
        )
        click.echo(
            f"{row['name']:<22}{row['d']:>5}{1e3 * row['gradproof_seconds']:>9.2f} ms"
            f"{1e3 * row['torch_seconds']:>9.2f} ms"
            f"{row['times_torch']:>7.1f}×{jax}"
        )
    click.echo("goals: " + ", ".join(f"{name} {a:g}× torch and {b:g}× JAX" for name, (a, b) in goals.items()))
    return 0

"""`gradproof bench`: how long things take, side by side with a peer that computes the same."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from gradproof.cli.bench.decode import bench_decode
from gradproof.cli.bench.hessian import bench_hessian
from gradproof.cli.bench.train import bench_train
from gradproof.cli.output.console import emit_json


@dataclass(frozen=True)
class Case:
    """One derivation, and the seconds that it should not exceed."""

    name: str
    expression: str
    shapes: Mapping[str, str]
    wrt: str
    limit: float
    mode: str = "adjoint"


RNN = "h[0,k] = h_0[k]; h[t+1,k] = tanh(sum[l](W[k,l]*h[t,l]) + x[t,k]); sum(c * h)"
CASES = (
    Case("least squares", "sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"}, "W", 0.10),
    Case("softmax Jacobian", "softmax(z)", {"z": "n"}, "z", 0.05, "jacobian"),
    Case("cross-entropy Hessian", "-z[y] + logsumexp(z)", {"z": "n", "y": ":index=n"}, "z", 0.10, "hessian"),
    Case("LayerNorm", "sum(g * layernorm(x, eps=1e-5))", {"x": "d", "g": "d"}, "x", 0.20),
    Case(
        "attention by Q",
        "sum(softmax(Q @ K.T / sqrt(d), axis=1) @ V * G)",
        {"Q": "n,d", "K": "m,d", "V": "m,e", "G": "n,e"},
        "Q",
        0.15,
    ),
    Case("RNN of length T", RNN, {"h_0": "d", "W": "d,d", "x": "T,d", "c": "T+1,d"}, "W", 0.20),
)


@click.group("bench")
def bench_command() -> None:
    """Measure, side by side with peers."""


bench_command.add_command(bench_train)
bench_command.add_command(bench_decode)


def timed(run: Callable[[], object], rounds: int) -> list[float]:
    """The seconds of several runs, after one that is not counted."""
    run()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return found


def derivation(case: Case) -> object:
    """One derivation with all its steps and checks."""
    from gradproof.symbolic.deriving.derivation import derive_system
    from gradproof.symbolic.deriving.products import hessian, jacobian
    from gradproof.symbolic.language.reader import build
    from gradproof.symbolic.language.syntax import parse

    program = parse(case.expression)
    system = build(program, case.shapes)
    if case.mode == "jacobian":
        return jacobian(system, case.wrt, program)
    if case.mode == "hessian":
        return hessian(system, case.wrt, program)
    return derive_system(system, case.wrt, None, (), program)


def sympy_least_squares() -> object:
    """The peer's derivation of the first case, by SymPy's matrix calculus."""
    from sympy import MatrixSymbol, Trace, symbols

    n, d, k = symbols("n d k", integer=True, positive=True)
    x, w, y = MatrixSymbol("X", n, d), MatrixSymbol("W", d, k), MatrixSymbol("Y", n, k)
    residual = x * w - y
    return Trace(residual.T * residual).diff(w).doit()


@bench_command.command("derive")
@click.option("--rounds", type=click.IntRange(1), default=7, help="Counted runs of each derivation.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def bench_derive(rounds: int, as_json: bool) -> int:
    """Derivations with every step checked, warm, in one process."""
    rows: list[dict[str, Any]] = []
    for case in CASES:
        times = timed(lambda case=case: derivation(case), rounds)  # type: ignore[misc]
        rows.append({"name": case.name, "seconds": statistics.median(times), "limit": case.limit})
    peer = statistics.median(timed(sympy_least_squares, rounds))
    rows[0]["sympy_seconds"] = peer
    if as_json:
        emit_json(rows)
    else:
        click.echo(f"{'derivation':<24}{'median':>10}{'limit':>10}   (all steps checked)")
        for row in rows:
            click.echo(f"{row['name']:<24}{1e3 * row['seconds']:>7.1f} ms{1e3 * row['limit']:>7.0f} ms")
        click.echo(f"SymPy's matrix calculus, least squares without steps or checks: {1e3 * peer:.1f} ms")
    return 0 if all(row["seconds"] <= row["limit"] for row in rows) else 1


bench_command.add_command(bench_hessian)

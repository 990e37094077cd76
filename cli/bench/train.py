"""`gradproof bench train`: a training step of generated NumPy code, side by side with torch and JAX.

Each implementation is a process of its own that keeps its model; rounds alternate between them, so that what else runs
on the machine meets both. The losses of the first steps are compared before anything is timed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from gradproof.cli.output.console import emit_json

WARM = 3  # steps before the clock counts; their losses are compared
AGREE = 2e-3  # relative, float32


@dataclass(frozen=True)
class Model:
    """One model and its batch; the ratio of times that it should reach."""

    name: str
    kind: str
    config: dict[str, Any]
    batch: int
    length: int
    limit: float

    @property
    def tokens(self) -> int:
        return self.batch * self.length


def transformer(name: str, width: int, layers: int, heads: int, batch: int, length: int, size: int) -> Model:
    config = {"width": width, "layers": layers, "heads": heads, "target_size": size}
    return Model(name, "transformer", config, batch, length, 1.10)


def recurrent(name: str, cell: str, score: str, limit: float) -> Model:
    config = {"cell": cell, "score": score, "width": 256, "embedded": 256, "source_size": 64, "target_size": 64}
    return Model(name, "seq2seq", config, 64, 20, limit)


MODELS = (
    transformer("small", 128, 2, 4, 32, 64, 128),
    transformer("medium", 256, 4, 8, 16, 128, 1000),
    transformer("large", 512, 4, 8, 8, 256, 8000),
    recurrent("rnn", "rnn", "dot", 0.60),
    recurrent("gru", "gru", "dot", 1.0),
    recurrent("rnn-additive", "rnn", "additive", 1.0),
)


class Worker:
    """A process that holds one implementation."""

    def __init__(self, command: Sequence[str], threads: int) -> None:
        counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(counts, str(threads))}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def read(self) -> list[str]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise click.ClickException(f"a benchmark process ended: {' '.join(self.process.args)[:200]}")  # type: ignore[arg-type]
        return line.split()

    def ask(self, what: str) -> list[float]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return [float(word) for word in self.read()]


@contextmanager
def workers(model: Model, threads: int, compiled: bool) -> Iterator[dict[str, Worker]]:
    """Ours, torch, torch.compile if wanted, and JAX: all start from the same parameters and data."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        case = {**model.__dict__, "threads": threads, "rate": 1e-4, "file": str(Path(folder) / "start.npz")}

        def start(module: str, compiled: bool) -> Worker:
            command = [
                sys.executable,
                "-m",
                f"gradproof.cli.bench.{module}",
                json.dumps({**case, "compiled": compiled}),
            ]
            worker = Worker(command, threads)
            stack.callback(worker.process.wait)
            stack.callback(worker.process.terminate)
            return worker

        ours = start("numpy_peer", False)
        ours.read()
        found = {"gradproof": ours}
        if find_spec("torch"):
            found["torch"] = start("torch_peer", False)
            if compiled:
                found["torch.compile"] = start("torch_peer", True)
        if find_spec("jax"):
            found["JAX"] = start("jax_peer", False)
        yield found


def measure(model: Model, rounds: int, threads: int, compiled: bool) -> dict[str, Any]:
    """Times in milliseconds, memory in megabytes, and the ratio ours / torch of each round."""
    with workers(model, threads, compiled) as found:
        losses = {name: [worker.ask("step")[0] for _ in range(WARM)] for name, worker in found.items()}
        for name, values in losses.items():
            for mine, theirs in zip(losses["gradproof"], values, strict=True):
                if abs(mine - theirs) > AGREE * abs(theirs):
                    raise click.ClickException(
                        f"{model.name}: the losses differ: {losses['gradproof']}, {name} {values}"
                    )
        times: dict[str, list[float]] = {name: [] for name in found}
        work: dict[str, list[float]] = {name: [] for name in found}
        for number in range(rounds):
            order = list(found) if number % 2 == 0 else list(found)[::-1]
            for name in order:
                _, seconds, used = found[name].ask("step")
                times[name].append(1e3 * seconds)
                work[name].append(1e3 * used)
        memory = {name: worker.ask("memory")[0] for name, worker in found.items()}
    row: dict[str, Any] = {"name": model.name, "limit": model.limit, "losses": losses}
    for name in found:
        middle = statistics.median(times[name])
        row[name] = {"ms": middle, "tokens_per_second": 1e3 * model.tokens / middle, "memory_mb": memory[name]}
        row[name]["cpu_ms"] = statistics.median(work[name])
        if name != "gradproof":
            row[name]["ratio"] = quartiles([a / b for a, b in zip(times["gradproof"], times[name], strict=True)])
    return row


def quartiles(values: Sequence[float]) -> list[float]:
    """The first quartile, the median and the third.

    >>> quartiles([1, 2, 3, 4, 5])
    [2.0, 3.0, 4.0]
    """
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3


@click.command("train")
@click.argument("names", metavar="[MODEL …]", nargs=-1, type=click.Choice([model.name for model in MODELS]))
@click.option("--rounds", type=click.IntRange(1), default=15, help="Rounds; each times every implementation once.")
@click.option("--threads", type=click.IntRange(1), default=os.cpu_count() or 1, help="Threads of each implementation.")
@click.option("--torch-compile", "compiled", is_flag=True, help="Measure torch.compile, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def bench_train(names: tuple[str, ...], rounds: int, threads: int, compiled: bool, as_json: bool) -> int:
    """A training step (forward, backward, Adam), float32, against torch eager (fused attention and Adam) and JAX (jit).

    The ratio is the median over rounds of our time divided by theirs in the same round, with its quartiles. Peers that
    are not installed are left out; the losses of the first steps must agree before anything is timed.
    """
    if not find_spec("torch"):
        click.echo("torch is not installed: our times alone", err=True)
    rows = []
    if not as_json:
        click.echo(f"{threads} threads, {rounds} rounds, float32; time / torch's time: median [quartiles]")
    for model in MODELS:
        if names and model.name not in names:
            continue
        rows.append(measure(model, rounds, threads, compiled))
        if not as_json:
            click.echo(described(rows[-1]))
    if as_json:
        emit_json(rows)
    return 0 if all(row.get("torch", {}).get("ratio", [0, 0, 0])[1] <= row["limit"] for row in rows) else 1


def described(row: dict[str, Any]) -> str:
    """One line for each implementation."""
    lines = []
    for name, found in row.items():
        if isinstance(found, dict) and "ms" in found:
            line = f"{row['name']:<13}{name:<14}{found['ms']:>8.1f} ms{found['tokens_per_second']:>10,.0f} tokens/s"
            line += f"{found['memory_mb']:>7.0f} MB{found['cpu_ms']:>9.1f} ms of all cores"
            if "ratio" in found:
                low, middle, high = found["ratio"]
                line += f"   ratio {middle:.2f} [{low:.2f}, {high:.2f}]"
                line += f" (at most {row['limit']:.2f})" if name == "torch" else ""
            lines.append(line)
    return "\n".join(lines)

"""The training loop: generated gradients, clipping, optimiser, validation, checkpoints, exact resumption.

A batch is split into shards that run in threads (NumPy works without the interpreter's lock); their gradients are added
in a fixed order, so the same seed and settings give the same run, bit for bit, interrupted or not.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from gradproof.models.data.batches import Batches, shards
from gradproof.models.errors import MissingPackageError, TrainingError
from gradproof.models.files import make_folder
from gradproof.models.nets.model import LossAndGradients, Model, Trainable, added
from gradproof.models.nets.parameters import Parameters
from gradproof.models.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from gradproof.models.training.memory import kept_memory
from gradproof.models.training.optimisers import METHODS, Optimiser, clip, schedule
from gradproof.models.training.plots import save_curves, save_history

Metric = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Settings:
    """How to train. `accumulate` micro-batches make one step; `clip` 0 means no clipping; `every` steps are validated.

    `schedule` "cosine" warms up over `warmup` steps and falls to 0 at `steps`; "warmup" is the 2017 paper's, whose rate
    is rate · d^−½ · min(t^−½, t·warmup^−1.5). `l2` makes it a maximum a posteriori estimate: the mean loss plus
    l2/2·‖θ‖², whose gradient is added after clipping; the reported losses are without it.
    """

    steps: int = 1000
    optimiser: str = "adamw"
    rate: float = 1e-3
    schedule: str = "cosine"
    warmup: int = 100
    clip: float = 1.0
    decay: float = 0.01
    l2: float = 0.0
    accumulate: int = 1
    every: int = 200
    shards: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if self.optimiser not in METHODS:
            raise TrainingError(f"there is no optimiser {self.optimiser!r}; there are {', '.join(METHODS)}")
        if min(self.steps, self.accumulate, self.every, self.shards) < 1 or self.warmup < 0:
            raise TrainingError("steps, accumulate, every and shards must be at least 1, warmup at least 0")
        if not (0 < self.rate < np.inf and all(0 <= x < np.inf for x in (self.clip, self.decay, self.l2))):
            raise TrainingError("the rate must be a finite number above 0, clip, decay and l2 finite and not negative")

    def rate_at(self, width: int) -> Callable[[int], float]:
        if self.schedule == "cosine":
            return schedule("cosine", eta=self.rate, eta_end=0.0, w=self.warmup, steps=self.steps)
        if self.schedule == "warmup":
            return schedule("warmup", eta=self.rate, d=width, w=max(self.warmup, 1))
        return schedule(self.schedule, eta=self.rate)


@dataclass
class State:
    """How far a run is: the step, one record for each validation, and the losses since the last one."""

    step: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    since: list[float] = field(default_factory=list)  # −log p summed, and targets, since the last record


class Trainer:
    """One run. `validate` gives what is measured every now and then: `validation_loss`, `perplexity`, a task metric."""

    def __init__(
        self,
        model: Trainable,
        batches: Batches[Any],
        settings: Settings,
        out: Path | None = None,
        validate: Metric | None = None,
        config: dict[str, Any] | None = None,
        vocabularies: dict[str, Any] | None = None,
    ) -> None:
        self.model, self.batches, self.settings, self.out = model, batches, settings, out
        self.validate, self.config, self.vocabularies = validate, config or {}, vocabularies or {}
        decay = {"decay": settings.decay} if settings.optimiser == "adamw" else {}
        size = model.parameters.vector.size
        self.optimiser = Optimiser(settings.optimiser, size, dtype=model.dtype, l2=settings.l2, **decay)
        self.rate = settings.rate_at(int(self.config.get("width", 512)))
        self.state = State(since=[0.0, 0.0])

    # ------------------------------------------------------------------------------------------------------- one step

    def step(self, pool: ThreadPoolExecutor) -> LossAndGradients:
        """One optimiser step; the model is left alone if a loss or gradient is not finite."""
        number = self.state.step + 1
        micro = [next(self.batches) for _ in range(self.settings.accumulate)]
        parts = [part for batch in micro for part in shards(batch, self.settings.shards)]
        tokens = sum(batch.tokens for batch in micro)
        seeds = [(self.settings.seed, number, k) for k in range(len(parts))]
        run = in_groups(pool, self.settings.shards)
        try:
            passes = list(pool.map(lambda part, seed: self.model.differentiated(part, tokens, seed), parts, seeds))
            total = added(self.model.parameters, passes, run)
            del passes
            vector = total.gradients.vector
            if self.settings.clip:
                vector = clip({"": vector}, self.settings.clip)[0][""]
            elif not all(pool.map(lambda part: np.isfinite(part).all(), np.array_split(vector, self.settings.shards))):
                raise TrainingError("a gradient is not finite")
        except TrainingError as error:
            raise TrainingError(f"step {number}: {self.explained(error, locals().get('total'))}") from None
        except MemoryError:
            raise TrainingError(
                f"step {number}: a batch of {tokens} targets does not fit into the memory; "
                "make it smaller (and accumulate more of them), or the sequences shorter"
            ) from None
        self.optimiser.step(self.model.parameters.vector, vector, self.rate(number), run)
        self.state.step = number
        self.state.since = [self.state.since[0] + total.nll, self.state.since[1] + total.tokens]
        return total

    def explained(self, error: TrainingError, total: LossAndGradients | None) -> str:
        """A gradient that is not finite, by name."""
        for name, gradient in (total.gradients if total is not None else {}).items():
            if not np.isfinite(gradient).all():
                return f"the gradient of {name} is not finite"
        return str(error)

    # ------------------------------------------------------------------------------------------------------- the loop

    def run(self, progress: bool = False) -> list[dict[str, float]]:
        """Train to the last step, or until Ctrl-C: the step under way is finished and saved. Returns the history."""
        settings = self.settings
        if self.out is not None:
            make_folder(self.out)  # an error now, not after hours
        with (
            Bar(settings.steps, self.state.step, progress) as bar,
            interruptible() as interrupted,
            self.workers() as pool,
        ):
            while self.state.step < settings.steps and not self.model.agreed(interrupted()):
                start = time.perf_counter()
                result = self.step(pool)
                bar.advance(result, time.perf_counter() - start)
                if self.state.step % settings.every == 0 or self.state.step == settings.steps:
                    self.record(bar)
                    self.save()
            if self.state.step < settings.steps:
                self.save()
        return self.state.history

    @contextmanager
    def workers(self) -> Iterator[ThreadPoolExecutor]:
        """Threads for the shards; with several of them each keeps to one core. Freed memory is used again."""
        self.model.prepare()
        count = self.settings.shards
        limit = 1 if count > 1 else None
        with (
            kept_memory(),
            threadpool_limits(limits=limit),
            ThreadPoolExecutor(count, initializer=spread(count)) as pool,
        ):
            yield pool

    def record(self, bar: Bar) -> None:
        nll, tokens = self.state.since
        row = {"step": self.state.step, "loss": nll / max(tokens, 1), "rate": self.rate(self.state.step)}
        try:
            row |= self.validate() if self.validate else {}
        except TrainingError as error:
            raise TrainingError(f"validation after step {self.state.step}: {error}") from None
        self.state.history.append(row)
        self.state.since = [0.0, 0.0]
        bar.note(row)

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def save(self) -> None:
        """Checkpoint, loss curves as CSV and PNG; the earlier checkpoint stays until the new one is complete."""
        if self.out is None:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        progress = {**asdict(self.state), "batches": self.batches.state(), "settings": asdict(self.settings)}
        save_checkpoint(
            self.out,
            Checkpoint(dict(self.model.parameters), self.optimiser.arrays(), self.config, self.vocabularies, progress),
        )
        if self.state.history:
            save_history(self.state.history, self.out / "loss.csv")
            with suppress(MissingPackageError):  # without matplotlib there is no picture
                save_curves(self.state.history, self.out / "loss.png")

    def resume(self) -> None:
        """Go on from the checkpoint in `out`, exactly: same data, model and settings (`steps` may be larger)."""
        assert self.out is not None
        found = load_checkpoint(self.out, shapes=self.model.parameters.shapes)
        for before, now in ((found.progress["settings"], asdict(self.settings)), (found.config, self.config)):
            for name in sorted(before.keys() & now.keys() - {"steps", "data"}):  # the batches know their data
                if before[name] != now[name]:
                    raise TrainingError(
                        f"the run was made with {name} {before[name]}, not {now[name]}: it cannot go on exactly"
                    )
        self.batches.restore(found.progress["batches"])
        self.model.parameters.load(found.parameters)
        self.optimiser.restore(found.optimiser)
        self.state = State(**{name: found.progress[name] for name in ("step", "history", "since")})


def spread(count: int) -> Callable[[], None] | None:
    """What each of so many threads does first: with as many as there are cores, it takes one for itself.

    Threads that hand the interpreter's lock to each other are otherwise drawn to the same core. With cores to spare, or
    on a system that cannot say so, the system chooses.
    """
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) != count:
        return None
    cores = iter(sorted(os.sched_getaffinity(0)))
    return lambda: os.sched_setaffinity(0, {next(cores)})


def in_groups(pool: ThreadPoolExecutor, count: int) -> Callable[..., Sequence[object]]:
    """The pool's `map` for work that is small: `count` tasks share the items, as a task of its own costs more than one.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     in_groups(pool, 2)(abs, [-1, -2, -3])
    [1, 3, 2]
    """

    def run(work: Callable[[Any], object], items: Iterable[Any]) -> Sequence[object]:
        rows = list(items)
        done = pool.map(lambda start: [work(item) for item in rows[start::count]], range(count))
        return [result for group in done for result in group]

    return run


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is noted instead of raised, so that no step is left half done; a second one ends at once."""
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    earlier = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, earlier)


class Bar:
    """A progress bar with loss, tokens a second and time left."""

    def __init__(self, steps: int, done: int, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        self.progress = Progress(*columns, console=Console(stderr=True), disable=not shown)
        self.steps, self.done = steps, done
        self.speed = 0.0

    def __enter__(self) -> Bar:
        self.progress.start()
        self.task = self.progress.add_task("training", total=self.steps, completed=self.done)
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def advance(self, result: LossAndGradients, seconds: float) -> None:
        self.done += 1
        new = result.tokens / max(seconds, 1e-9)
        self.speed = 0.9 * self.speed + 0.1 * new if self.speed else new
        loss = result.nll / max(result.tokens, 1)
        text = f"step {self.done}/{self.steps}  loss {loss:.4f}  {self.speed:,.0f} tokens/s"
        self.progress.update(self.task, advance=1, description=text)

    def note(self, row: dict[str, float]) -> None:
        shown = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in row.items())
        self.progress.console.print(shown) if not self.progress.disable else None


def gradients_of(model: Model[Any], parts: Sequence[Any]) -> Parameters:
    """The gradient of several parts as one batch, for tests of accumulation."""
    tokens = sum(part.tokens for part in parts)
    return added(model.parameters, [model.differentiated(part, tokens) for part in parts]).gradients

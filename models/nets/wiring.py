"""A model is a list of blocks wired by the names of their arrays; the backward pass runs the list in reverse.

The gradient of a value or parameter that several blocks read is the sum of what they send back: tied weights, residual
paths and the encoder's states need nothing of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.nets.block import Block, Equations

Array = NDArray[Any]


@dataclass(frozen=True)
class Placed:
    """One block at its place: `reads` and `writes` map the block's names to the model's. `where` is for messages."""

    where: str
    block: Block
    reads: Mapping[str, str]
    writes: Mapping[str, str]


@dataclass
class Tape:
    """What one forward pass leaves behind: all values by name, and what each block kept."""

    values: dict[str, Array]
    kept: list[dict[str, Array]] = field(default_factory=list)


@dataclass
class Network:
    """Collects the steps of a model and the shapes of its parameters; `widths` are the lengths behind their names."""

    widths: Mapping[str, int]
    steps: list[Placed] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def add(
        self,
        where: str,
        stated: Equations,
        data: Mapping[str, str],
        writes: Mapping[str, str] | None = None,
        widths: Mapping[str, int] | None = None,
    ) -> str:
        """One block at `where`. What `data` does not name is a parameter of its own, or a mask drawn for dropout.

        Results are called `where.NAME` unless `writes` says otherwise; returns the name of the first.
        """
        reads = {own: data.get(own, f"{where}.{own}") for own in stated.shapes}
        results = {own: (writes or {}).get(own, f"{where}.{own}") for own in (*stated.outputs, *stated.extra)}
        self.steps.append(Placed(where, Block(stated), reads, results))
        lengths = {**self.widths, **(widths or {})}
        for own in stated.variables:
            if own not in data:
                shape = (lengths[size] if size in lengths else int(size) for size in stated.shapes[own])
                self.shapes[f"{where}.{own}"] = tuple(shape)
        return results[stated.outputs[0]]


def run(steps: Iterable[Placed], values: Mapping[str, Array]) -> dict[str, Array]:
    """All values, without keeping anything for a backward pass."""
    found = dict(values)
    for step in steps:
        outputs = step.block.evaluate({own: found[name] for own, name in step.reads.items()})
        found.update((name, outputs[own]) for own, name in step.writes.items())
    return found


def forward(
    steps: Iterable[Placed],
    values: Mapping[str, Array],
    draw: Callable[[Placed, Mapping[str, Array]], Mapping[str, Array]] | None = None,
) -> Tape:
    """Run the blocks in order; `draw` makes what a block reads beside them (dropout masks)."""
    tape = Tape(dict(values))
    for step in steps:
        if draw is not None:
            tape.values.update(draw(step, tape.values))
        outputs, kept = step.block.forward({own: tape.values[name] for own, name in step.reads.items()})
        tape.values.update((name, outputs[own]) for own, name in step.writes.items())
        tape.kept.append(kept)
    return tape


def backward(steps: Sequence[Placed], tape: Tape, cotangents: Mapping[str, Array]) -> dict[str, Array]:
    """The gradients of all values that no block computes (parameters and other inputs), from those of some values."""
    found: dict[str, Array] = dict(cotangents)
    for step, kept in zip(reversed(steps), reversed(tape.kept), strict=True):
        outputs = {own: step.writes[own] for own in step.block.equations.outputs if own in step.writes}
        if not any(name in found for name in outputs.values()):
            continue  # the loss does not depend on this block
        arriving = {
            own: found.pop(name) if name in found else zeros_like(tape.values[name]) for own, name in outputs.items()
        }
        for own, gradient in step.block.backward(arriving, kept).items():
            name = step.reads[own]
            found[name] = found[name] + gradient if name in found else gradient
    return found


def zeros_like(value: Any) -> Any:
    """Zeros of the same shape: an array, or a tensor for a tensor."""
    return np.zeros_like(value) if isinstance(value, np.ndarray | np.generic) else value.new_zeros(value.shape)


def first_bad(steps: Iterable[Placed], tape: Tape) -> str:
    """The first block, in order, with an output that is not finite, for a message."""
    for step in steps:
        for own, name in step.reads.items():
            if not _finite(tape.values[name]):
                return f"{step.where} reads {name} ({own}), which is not finite"
        for own, name in step.writes.items():
            if not _finite(tape.values[name]):
                return f"{step.where} made {name} ({own}), which is not finite"
    return "no block has an output that is not finite"


def _finite(value: Array) -> bool:
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())


def sizes(shapes: Mapping[str, Sequence[str]], arrays: Mapping[str, Array]) -> dict[str, int]:
    """The lengths behind the names of a block's shapes.

    >>> sizes({"X": ("B", "T", "d")}, {"X": np.zeros((2, 3, 4))})
    {'B': 2, 'T': 3, 'd': 4}
    """
    found: dict[str, int] = {}
    for name, shape in shapes.items():
        if name in arrays:
            found.update(zip(shape, arrays[name].shape, strict=True))
    return found

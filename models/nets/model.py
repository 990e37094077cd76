"""What all models share: parameters, a wiring of blocks, the loss with its gradients, and the loss of every token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradproof.models.errors import TrainingError
from gradproof.models.nets.parameters import Parameters
from gradproof.models.nets.wiring import Placed, Tape, backward, first_bad, forward, run, sizes

Array = NDArray[Any]
BatchType = TypeVar("BatchType")


@dataclass
class LossAndGradients:
    """One forward and backward pass: the loss, −log p summed over the targets that count, and the gradients."""

    loss: float
    nll: float
    tokens: int
    gradients: Parameters


@dataclass
class Pass:
    """One forward and backward pass over a part of a batch: as `LossAndGradients`, the gradients as they were found."""

    loss: float
    nll: float
    tokens: int
    found: Mapping[str, Array]


def added(
    parameters: Parameters, parts: Sequence[Pass], run: Callable[..., Iterable[object]] = map
) -> LossAndGradients:
    """The sum of the parts' losses and gradients, in their order; `run` may be the `map` of a pool of threads."""
    gradients = parameters.like()

    def add(name: str) -> None:
        view = gradients[name]
        arrays = [part.found[name] for part in parts if name in part.found]
        if len(arrays) > 1:
            np.add(arrays[0], arrays[1], out=view)
        elif arrays:
            view[...] = arrays[0]
        for array in arrays[2:]:
            view += array

    for _ in run(add, gradients):
        pass
    loss, nll, tokens = (sum(getattr(part, name) for part in parts) for name in ("loss", "nll", "tokens"))
    return LossAndGradients(loss, nll, int(tokens), gradients)


class Trainable(Protocol):
    """What the training loop asks of a model, by NumPy or by torch."""

    @property
    def parameters(self) -> Parameters: ...

    @property
    def dtype(self) -> Any: ...

    def prepare(self) -> None: ...

    def agreed(self, flag: bool) -> bool: ...

    def differentiated(self, batch: Any, tokens: int | None = None, seed: Sequence[int] | None = None) -> Pass: ...


class Model(ABC, Generic[BatchType]):
    """A wiring of generated blocks. Subclasses say which blocks, and which arrays a batch gives."""

    dropout = 0.0
    parameters: Parameters

    @abstractmethod
    def steps(self, dropout: bool) -> list[Placed]:
        """The blocks from tokens to the loss `L` and the tokens' losses `nll`."""

    @abstractmethod
    def values(self, batch: BatchType, weight: float) -> dict[str, Array]:
        """The batch as arrays under the names that the blocks read; every target counts with `weight`."""

    @abstractmethod
    def mask(self, batch: BatchType) -> NDArray[np.bool_]:
        """Which targets count (B,T)."""

    @cached_property
    def training_steps(self) -> list[Placed]:
        return self.steps(self.dropout > 0)

    @cached_property
    def evaluation_steps(self) -> list[Placed]:
        return self.steps(False)

    def prepare(self) -> None:
        """Derive and compile all blocks now, once, before threads ask for them."""
        for step in (*self.training_steps, *self.evaluation_steps):
            _ = step.block.differentiated

    def agreed(self, flag: bool) -> bool:
        """Whether to stop: with several processes (`TorchModel`), whether any of them asks for it."""
        return flag

    @property
    def dtype(self) -> Any:
        return self.parameters.vector.dtype

    def tape(self, batch: BatchType, weight: float, seed: Sequence[int] | None) -> tuple[list[Placed], Tape]:
        """Run the forward pass; with `seed` dropout is on."""
        values = {**self.parameters, **self.values(batch, weight)}
        if seed is None or not self.dropout:
            return self.evaluation_steps, forward(self.evaluation_steps, values)
        return self.training_steps, forward(self.training_steps, values, Dropout(self.dropout, seed, self.dtype).masks)

    def differentiated(self, batch: BatchType, tokens: int | None = None, seed: Sequence[int] | None = None) -> Pass:
        """The mean loss of a batch, and the gradients that the wiring's backward pass finds.

        `tokens` is the number of targets of the whole batch of which this one is a part: gradients of parts then add
        up to those of the whole, however unequal their lengths.

        Raises TrainingError for a loss that is not finite, naming the block and the tensor.
        """
        counted = int(self.mask(batch).sum())
        weight = 1.0 / (tokens or counted)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is found below
            steps, tape = self.tape(batch, weight, seed)
            loss = float(tape.values["L"])
            if not np.isfinite(loss):
                raise TrainingError(f"the loss is {loss}: {first_bad(steps, tape)}")
            found = backward(steps, tape, {"L": self.dtype.type(1)})
        nll = tape.values["nll"].astype(np.float64)
        return Pass(loss, float((nll * self.mask(batch)).sum()), counted, found)

    def loss_and_gradients(
        self, batch: BatchType, tokens: int | None = None, seed: Sequence[int] | None = None
    ) -> LossAndGradients:
        """The mean loss of a batch and the gradient of every parameter; see `differentiated`."""
        return added(self.parameters, [self.differentiated(batch, tokens, seed)])

    def token_losses(self, batch: BatchType) -> Array:
        """−log p of every target (B,T); where the mask is false it means nothing."""
        values = {**self.parameters, **self.values(batch, 1.0)}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is found below
            found = run(self.evaluation_steps, values)
        if not np.isfinite(found["nll"][self.mask(batch)]).all():
            raise TrainingError(f"the loss of a token is not finite: {first_bad(self.evaluation_steps, Tape(found))}")
        return found["nll"]

    def logits(self, batch: BatchType) -> Array:
        """The logits (B,T,N) of a batch."""
        steps = [*self.evaluation_steps[:-1], self.logit_step]
        return run(steps, {**self.parameters, **self.values(batch, 1.0)})["l"]

    @property
    @abstractmethod
    def logit_step(self) -> Placed:
        """The last block without the loss: it writes the logits `l` and their log-probabilities `lp`."""

    def source_weights(self, values: Mapping[str, Array]) -> Array | None:
        """The weights (heads,T,S) with which the last layer attends to the first source of a batch, if it does."""
        return None


class Dropout:
    """Draws the masks of a pass: 0 with probability `rate`, else 1/(1 − rate); reproducible from the seed."""

    def __init__(self, rate: float, seed: Sequence[int], dtype: Any) -> None:
        self.rate, self.dtype = rate, dtype
        self.rng = np.random.default_rng(list(seed))

    def masks(self, step: Placed, values: Mapping[str, Array]) -> dict[str, Array]:
        """The masks that one block reads, by their names in the model."""
        shapes, wanted = step.block.equations.shapes, step.block.equations.masks
        if not wanted:
            return {}
        length = sizes(shapes, {own: values[name] for own, name in step.reads.items() if name in values})
        return {step.reads[name]: self.draw(tuple(length[size] for size in shapes[name])) for name in wanted}

    def draw(self, shape: tuple[int, ...]) -> Array:
        kept = self.rng.random(shape, dtype=np.float32) >= self.rate
        return kept.astype(self.dtype) / self.dtype.type(1 - self.rate)

"""A model as torch code from the same equations: its blocks printed for torch, autograd off; alone or data-parallel.

Under `torchrun` every process takes its rows of each batch, and the gradients are summed over all processes (gloo on
the CPU, nccl on GPUs). `Trainer(TorchModel(model), …)` trains it with `shards=1`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.data.batches import shards
from gradproof.models.errors import TrainingError
from gradproof.models.nets.block import Block, Differentiated, Equations, differentiated
from gradproof.models.nets.model import Dropout, LossAndGradients, Model, Pass, added
from gradproof.models.nets.parameters import Parameters
from gradproof.models.nets.wiring import Placed, Tape, backward, first_bad, forward
from gradproof.numeric.compile import compile_torch


@lru_cache(maxsize=500)
def printed(equations: Equations) -> Differentiated:
    """The code of a block, printed for torch."""
    found = differentiated(equations)
    ahead, behind = (compile_torch(system, system.outputs, device="cpu") for system in found.systems)
    return Differentiated(ahead, behind, found.kept, found.cotangents, found.sizes, found.systems)


class TorchBlock(Block):
    """A block on tensors: they stay on the device where they are."""

    @cached_property
    def differentiated(self) -> Differentiated:
        return printed(self.equations)


def torch_steps(steps: list[Placed]) -> list[Placed]:
    """The same wiring with blocks printed for torch."""
    return [Placed(step.where, TorchBlock(step.block.equations), step.reads, step.writes) for step in steps]


def grouped() -> bool:
    """Whether this process is one of a group."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


class TorchModel:
    """The loss and the gradients of a model, by torch; parameters and results are NumPy arrays, the model's own."""

    def __init__(self, model: Model[Any], device: str = "cpu") -> None:
        self.model, self.device = model, device
        self.bad = ""  # where the last loss stopped being finite

    @property
    def parameters(self) -> Parameters:
        return self.model.parameters

    @property
    def dtype(self) -> Any:
        return self.model.dtype

    @cached_property
    def evaluation_steps(self) -> list[Placed]:
        return torch_steps(self.model.evaluation_steps)

    @cached_property
    def training_steps(self) -> list[Placed]:
        return torch_steps(self.model.training_steps)

    def prepare(self) -> None:
        """Derive and compile all blocks."""
        for step in (*self.training_steps, *self.evaluation_steps):
            _ = step.block.differentiated

    def agreed(self, flag: bool) -> bool:
        """Whether it holds in any process: all of them stop at the same step."""
        if not grouped():
            return flag
        import torch
        import torch.distributed as dist

        count = torch.tensor([float(flag)], device=self.device)
        dist.all_reduce(count)
        return bool(count.item())

    def tensors(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        import torch

        return {name: torch.from_numpy(np.array(array)).to(self.device) for name, array in arrays.items()}

    def alone(self, batch: Any, tokens: int, seed: Sequence[int] | None) -> LossAndGradients:
        """The loss and gradients of a part of a batch of so many targets, in this process; `seed` as in `Model`."""
        values = self.tensors({**self.parameters, **self.model.values(batch, 1.0 / tokens)})
        if seed is None or not self.model.dropout:
            steps, masks = self.evaluation_steps, None
        else:
            dropout = Dropout(self.model.dropout, seed, self.dtype)
            steps, masks = self.training_steps, lambda step, seen: self.tensors(dropout.masks(step, seen))
        tape = forward(steps, values, masks)
        loss: Any = tape.values["L"]
        self.bad = "" if bool(loss.isfinite()) else first_bad(steps, arrays_of(tape))
        found: dict[str, Any] = backward(steps, tape, {"L": loss.new_ones(())})
        arrays = {name: found[name].cpu().numpy() for name in self.parameters if name in found}
        nlls: Any = tape.values["nll"]
        mask = np.array(self.model.mask(batch))
        nll = float((nlls.cpu().numpy().astype(np.float64) * mask).sum())
        return added(self.parameters, [Pass(float(loss), nll, int(mask.sum()), arrays)])

    def loss_and_gradients(
        self, batch: Any, tokens: int | None = None, seed: Sequence[int] | None = None
    ) -> LossAndGradients:
        """The mean loss of a batch and all gradients; of a group of processes, each gets the sum over their parts.

        The last number of `seed` is the part of the batch: process k draws the dropout masks of part k.

        Raises TrainingError for a loss that is not finite, naming the block and the tensor.
        """
        whole = tokens or int(self.model.mask(batch).sum())
        if not grouped():
            result = self.alone(batch, whole, seed)
        else:
            import torch.distributed as dist

            parts, rank = shards(batch, dist.get_world_size()), dist.get_rank()
            none = LossAndGradients(0.0, 0.0, 0, self.parameters.like())
            own = None if seed is None else (*seed[:-1], rank)
            result = self.summed(self.alone(parts[rank], whole, own) if rank < len(parts) else none)
        if not np.isfinite(result.loss):
            raise TrainingError(f"the loss is {result.loss}: {self.bad or 'it is that in another process'}")
        return result

    def differentiated(self, batch: Any, tokens: int | None = None, seed: Sequence[int] | None = None) -> Pass:
        """The same, as the training loop asks for it."""
        result = self.loss_and_gradients(batch, tokens, seed)
        return Pass(result.loss, result.nll, result.tokens, dict(result.gradients))

    def summed(self, result: LossAndGradients) -> LossAndGradients:
        """The sum over all processes, in one exchange of the gradients and one of the three numbers."""
        import torch
        import torch.distributed as dist

        vector = torch.from_numpy(result.gradients.vector).to(self.device)
        numbers = torch.tensor([result.loss, result.nll, result.tokens], dtype=torch.float64, device=self.device)
        dist.all_reduce(vector)
        dist.all_reduce(numbers)
        result.gradients.vector[...] = vector.cpu().numpy()
        loss, nll, tokens = numbers.tolist()
        return LossAndGradients(loss, nll, int(tokens), result.gradients)


def arrays_of(tape: Tape) -> Tape:
    """The same values as NumPy arrays."""
    values: dict[str, Any] = tape.values
    return Tape({name: value.cpu().numpy() for name, value in values.items()})


@contextmanager
def group(device: str) -> Iterator[tuple[int, str]]:
    """The number of this process and its device. Started by `torchrun`, it joins the group of all of them."""
    if "WORLD_SIZE" not in os.environ:
        yield 0, device
        return
    import torch
    import torch.distributed as dist

    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ["LOCAL_WORLD_SIZE"])))
    dist.init_process_group("nccl" if device != "cpu" else "gloo")
    try:
        yield dist.get_rank(), device
    finally:
        dist.destroy_process_group()

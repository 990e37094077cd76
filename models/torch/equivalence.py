"""The same weights in our generated code and in torch: logits, loss, every gradient, ten optimiser steps.

torch is imported when a comparison is made, and only there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.data.batches import PairBatch
from gradproof.models.data.text_batches import TextBatch
from gradproof.models.data.tokens import BOS, EOS, PAD
from gradproof.models.nets.kinds import make_model
from gradproof.models.nets.model import Model
from gradproof.models.training.optimisers import Optimiser, clip
from gradproof.numeric.verify import Result

Array = NDArray[Any]
TOLERANCE = 1e-10  # in float64


@dataclass(frozen=True)
class Comparison:
    """One comparison: the largest difference, relative to the largest entry of torch's array."""

    compared: str
    error: float


class Other:
    """The other side: a torch module, how it computes logits from a batch, and its parameters under our names."""

    def __init__(
        self,
        module: Any,
        logits: Callable[[Any, str], Any],
        view: Callable[[Mapping[str, Any]], dict[str, Array]],
        load: Callable[[Mapping[str, Array], Mapping[str, Any]], None],
    ) -> None:
        self.module, self.logits, self.view, self.load = module, logits, view, load

    def parameters(self) -> dict[str, Any]:
        return dict(self.module.named_parameters(remove_duplicate=False))


def relative(ours: Array, theirs: Array, least: float = 0.0) -> float:
    """The largest difference relative to the largest entry, which counts as at least `least`."""
    return float(np.abs(ours - theirs).max() / max(float(np.abs(theirs).max()), least, 1e-300))


def compare(
    model: Model[Any], other: Other, batch: Any, smoothing: float = 0.0, device: str = "cpu", steps: int = 10
) -> list[Comparison]:
    """Rows for logits, loss, each gradient, and each parameter after `steps` of AdamW, clipped as torch clips."""
    import torch

    other.module.to(device=device, dtype=getattr(torch, str(model.dtype)))
    other.module.train(False)
    other.load(model.parameters, other.parameters())
    mask = torch.from_numpy(np.array(model.mask(batch))).to(device)
    y = torch.from_numpy(np.array(batch.target_out if isinstance(batch, PairBatch) else batch.targets)).to(device)
    adam = torch.optim.AdamW(other.module.parameters(), lr=1e-3, weight_decay=0.1)
    ours = Optimiser("adamw", model.parameters.vector.size, dtype=model.dtype, decay=0.1)
    rows: list[Comparison] = []
    noise: set[str] = set()
    for step in range(steps):
        adam.zero_grad()
        logits = other.logits(batch, device)
        loss = torch.nn.functional.cross_entropy(logits[mask], y[mask], label_smoothing=smoothing)
        loss.backward()
        result = model.loss_and_gradients(batch)
        if step == 0:
            rows.append(
                Comparison("logits", relative(model.logits(batch)[np.array(model.mask(batch))], _array(logits[mask])))
            )
            rows.append(Comparison("loss", relative(np.array(result.loss), _array(loss))))
            theirs = other.view(
                {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in other.parameters().items()}
            )
            largest = max(float(np.abs(g).max()) for g in theirs.values())
            # 0 by symmetry (a key's bias shifts all scores alike): torch's own value is rounding noise
            noise = {n for n, g in theirs.items() if np.abs(g).max() < 100 * np.finfo(model.dtype).eps * largest}
            for name, gradient in theirs.items():
                error = relative(result.gradients[name], gradient, largest if name in noise else 0.0)
                rows.append(Comparison(f"gradient of {name}", error))
        torch.nn.utils.clip_grad_norm_(other.module.parameters(), 0.5)
        adam.step()
        clipped, _ = clip({"all": result.gradients.vector}, 0.5, delta=1e-6)
        ours.step(model.parameters.vector, clipped["all"], 1e-3)
    after = other.view(other.parameters())
    # what Adam makes of rounding noise is noise: those parameters are left out
    stepped = {name: value for name, value in after.items() if name not in noise}
    return [
        *rows,
        *(Comparison(f"{n} after {steps} steps", relative(model.parameters[n], p)) for n, p in stepped.items()),
    ]


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().numpy())


def random_pairs(rng: np.random.Generator, rows: int, source: int, target: int, sizes: tuple[int, int]) -> PairBatch:
    """A batch of random pairs of unequal lengths, padded."""
    lengths = rng.integers(1, source, rows), rng.integers(1, target, rows)
    lengths[0][0], lengths[1][0] = source - 1, target - 1
    source_mask, target_mask = (
        np.arange(n) <= length[:, None] for n, length in zip((source, target), lengths, strict=True)
    )
    tokens = [
        rng.integers(EOS + 1, size, mask.shape) for size, mask in zip(sizes, (source_mask, target_mask), strict=True)
    ]
    target_in = np.where(target_mask, np.concatenate([np.full((rows, 1), BOS), tokens[1][:, :-1]], axis=1), PAD)
    return PairBatch(
        np.where(source_mask, tokens[0], PAD),
        source_mask,
        target_in,
        np.where(target_mask, tokens[1], PAD),
        target_mask,
        np.arange(rows),
    )


def random_text(rng: np.random.Generator, rows: int, length: int, size: int) -> TextBatch:
    """A batch of random windows, one of them cut short."""
    valid = np.ones((rows, length), bool)
    valid[-1, length // 2 :] = False
    tokens, targets = (np.where(valid, rng.integers(EOS + 1, size, valid.shape), PAD) for _ in range(2))
    return TextBatch(tokens, targets, valid, valid)


def transformer_other(model: Any) -> Other:
    """torch's Transformer of the same configuration."""
    import torch

    from gradproof.models.torch.transformer_peer import Names, TorchTransformer

    module = TorchTransformer(model.config)
    names = Names(model, module)

    def logits(batch: Any, device: str) -> Any:
        def tensor(array: Array) -> Any:
            return torch.from_numpy(np.array(array)).to(device)

        if isinstance(batch, PairBatch):
            source = tensor(batch.source), tensor(batch.source_mask)
            return module(tensor(batch.target_in), tensor(batch.target_mask), True, *source)
        return module(tensor(batch.inputs), tensor(batch.valid), model.config.kind == "decoder", None, None)

    return Other(module, logits, names.view, names.load)  # type: ignore[arg-type]


def seq2seq_other(model: Any) -> Other:
    """torch's recurrent encoder–decoder of the same configuration."""
    import torch

    from gradproof.models.torch.seq2seq_peer import SeqNames, TorchSeq2Seq

    module = TorchSeq2Seq(model.config)
    names = SeqNames(model)

    def logits(batch: PairBatch, device: str) -> Any:
        arrays = (batch.source, batch.source_mask, batch.target_in)
        return module(*(torch.from_numpy(np.array(array)).to(device) for array in arrays))

    return Other(module, logits, names.view, names.load)


def printed_rows(model: Model[Any], batch: Any, device: str) -> list[Comparison]:
    """The same equations printed for torch, run on the device, against the NumPy code; gradients by the largest."""
    from gradproof.models.torch.backend import TorchModel

    ours, theirs = model.loss_and_gradients(batch), TorchModel(model, device).loss_and_gradients(batch)
    largest = float(np.abs(ours.gradients.vector).max())
    worst = max(relative(theirs.gradients[name], ours.gradients[name], largest) for name in model.parameters)
    loss = relative(np.array(theirs.loss), np.array(ours.loss))
    return [
        Comparison("loss of the code printed for torch", loss),
        Comparison("gradients of the code printed for torch", worst),
    ]


# what `verify` compares for each kind of model: small configurations that use every part
CASES: dict[str, tuple[dict[str, Any], ...]] = {
    "seq2seq": (
        {"cell": "gru", "score": "dot", "bidirectional": True, "layers": 2},
        {"cell": "lstm", "score": "additive", "feeding": True},
        {"cell": "rnn", "score": "none"},
    ),
    "transformer": (
        {"order": "post", "final_norm": True, "smoothing": 0.1},
        {"positions": "rope", "norm": "rmsnorm", "activation": "swiglu"},
    ),
    "gpt": ({"activation": "gelu"}, {"positions": "rope", "norm": "rmsnorm", "activation": "swiglu", "tied": True}),
    "bert": ({"order": "post", "activation": "gelu", "tied": True},),
}


def verify(
    kind: str, device: str = "cpu", dtype: Any = np.float64, seed: int = 0
) -> Iterator[tuple[dict[str, Any], list[Comparison]]]:
    """Each configuration of a kind (seq2seq, transformer, gpt, bert) with its comparisons.

    `device` is torch's; our side always runs on the CPU. With float64 every row is at most 1e-10.
    """
    for settings in CASES[kind]:
        sizes = {"source_size": 19, "target_size": 23, "width": 16, **settings}
        if kind != "seq2seq":
            sizes |= {"heads": 2, "inner": 24}
        model: Any = make_model(kind, sizes, seed, dtype)
        rng = np.random.default_rng(seed)
        model.parameters.vector[:] += (0.2 * rng.normal(size=model.parameters.vector.size)).astype(dtype)
        pairs = kind in ("seq2seq", "transformer")
        batch: Any = random_pairs(rng, 5, 7, 8, (19, 23)) if pairs else random_text(rng, 5, 8, 23)
        other = seq2seq_other(model) if kind == "seq2seq" else transformer_other(model)
        printed = printed_rows(model, batch, device)
        yield settings, [*compare(model, other, batch, model.config.smoothing, device), *printed]


@dataclass(frozen=True)
class ModelResult(Result):
    """The result of one configuration: all comparisons in float64, and the largest error in float32."""

    rows: tuple[Comparison, ...] = ()
    float32_error: float | None = None


def results(kind: str, device: str = "cpu") -> Iterator[ModelResult]:
    """One result for each configuration of a kind of model; skipped where there is no torch."""
    try:
        import torch  # noqa: F401
    except ImportError:
        yield ModelResult(kind, "skipped", "torch is not installed (pip install 'gradproof[verify]')")
        return
    start = time.perf_counter()
    for (settings, rows), (_, narrow) in zip(
        verify(kind, device, np.float64), verify(kind, device, np.float32), strict=True
    ):
        worst = max(rows, key=lambda row: row.error)
        rough = max(narrow, key=lambda row: row.error)
        wrong = [row for row in rows if not row.error <= TOLERANCE]
        gradients = sum(row.compared.startswith("gradient of") for row in rows)
        now = time.perf_counter()
        yield ModelResult(
            f"{kind} ({', '.join(name if value is True else str(value) for name, value in settings.items())})",
            "failed" if wrong else "passed",
            f"logits, loss, {gradients} gradients, ten AdamW steps: torch on {device}; float32 {rough.error:.1e}",
            worst.error,
            TOLERANCE,
            round(now - start, 3),
            tuple(f"{row.compared}: the relative error is {row.error:.3g}, above {TOLERANCE:g}" for row in wrong),
            tuple(rows),
            rough.error,
        )
        start = now

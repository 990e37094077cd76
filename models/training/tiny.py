"""The model with 24 parameters of chapter 15.4: every printed number, its checks, and its training.

Two tokens (0, 1), target 2, one head of width 1, loss at the last position only. The equations are those of the
catalogue entry `tiny_model.gradients`; the gradients are computed by the code that is generated from their derivation.

>>> loss, gradients = value_and_gradients(start())
>>> round(loss, 6), gradients["U"].round(6).tolist()
(2.541928, [[0.248311, 0.425203, -0.673514], [0.431008, 0.738049, -1.169057]])
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradproof.models.errors import MissingPackageError, TrainingError
from gradproof.models.files import replacing
from gradproof.models.training.optimisers import METHODS, Optimiser
from gradproof.numeric.compile import Compiled, compile_numpy
from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.phrases import phrase

Array = NDArray[Any]
Parameters = dict[str, Array]

NAMES = ("E", "W_Q", "W_K", "W_V", "W_O", "U")
DATA: dict[str, Any] = {"w": np.array([0, 1]), "y": np.array(2), "M": np.array([[1, 0], [1, 1]])}

# what the chapter prints, to its last digit
PRINTED: dict[str, list[list[float]]] = {
    "W_Q": [[0], [0.133562]],
    "W_K": [[0.133562], [-0.133562]],
    "W_V": [[0.921825, 0.425203], [0.339120, 0.156423]],
    "W_O": [[0.921825, 0.425203], [0.339120, 0.156423]],
    "U": [[0.248311, 0.425203, -0.673514], [0.431008, 0.738049, -1.169057]],
    "E": [[1.055387, 0.425203], [1.466503, 0.871611], [0, 0]],
}
PRINTED_FORWARD = {"last row of attention": [0.731059, 0.268941], "p": [0.339660, 0.581626, 0.078714], "L": [2.541928]}


PRINTED_DIGITS = "six decimals of chapter 15.4, three and four of 15.10"


class PrintedNumber(NamedTuple):
    """A number that was computed, and what the document says that it is, to so many decimals."""

    label: str
    computed: float
    documented: float
    decimals: int = 6


def agrees(row: PrintedNumber) -> bool:
    """Whether the computed number, rounded to the document's decimals, is the documented one."""
    return abs(row.computed - row.documented) <= 0.5000001 * 10**-row.decimals


def start() -> Parameters:
    """The parameters at which the chapter prints its gradients: 3·2 + 2 + 2 + 4 + 4 + 6 = 24 numbers."""
    return {
        "E": np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        "W_Q": np.array([[0.0], [1.0]]),
        "W_K": np.array([[1.0], [0.0]]),
        "W_V": np.eye(2),
        "W_O": np.eye(2),
        "U": np.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    }


@lru_cache(maxsize=1)
def compiled() -> tuple[Compiled, Compiled]:
    """The generated code: loss with all gradients, and the forward values A, P, L."""
    derived = derive_entry(get("tiny_model.gradients"))
    return compile_numpy(derived), compile_numpy(derived.forward, ["A", "P", "L"], "forward")


def value_and_gradients(parameters: Parameters) -> tuple[float, Parameters]:
    """The loss and the gradient of each of the six parameter arrays, each of its array's shape."""
    loss, gradients = compiled()[0](**DATA, **parameters)
    return float(loss), dict(gradients)


def forward(parameters: Parameters) -> dict[str, Array]:
    """A (2,2): attention weights; P (3,): the prediction at the last position; L: the loss."""
    return dict(compiled()[1](**DATA, **parameters))


def differences(parameters: Parameters, epsilon: float = 1e-5) -> Parameters:
    """(L(θ + εe_r) − L(θ − εe_r)) / 2ε for each of the 24 parameters: the forward code alone."""
    found = {name: np.zeros_like(value) for name, value in parameters.items()}
    for name, place in _places(parameters):
        losses = []
        for step in (epsilon, -epsilon):
            moved = {key: value.copy() for key, value in parameters.items()}
            moved[name][place] += step
            losses.append(float(forward(moved)["L"]))
        found[name][place] = (losses[0] - losses[1]) / (2 * epsilon)
    return found


def _places(parameters: Parameters) -> Iterator[tuple[str, tuple[int, ...]]]:
    return ((name, place) for name, value in parameters.items() for place in np.ndindex(value.shape))


def gradient_step(parameters: Parameters, rate: float) -> Parameters:
    """The parameters after one step of gradient descent.

    >>> after = forward(gradient_step(start(), 0.1))
    >>> round(float(after["L"]), 3), round(float(after["A"][1].max()), 4)
    (1.761, 0.7137)
    """
    trained, optimiser, vector, _ = _flat(parameters, "sgd")
    optimiser.step(vector, _joined(value_and_gradients(trained)[1]), rate)
    return trained


def _flat(parameters: Parameters, name: str) -> tuple[Parameters, Optimiser, Array, Array]:
    """Copies of the parameters as views into one vector, and the optimiser over that vector."""
    vector = _joined(parameters)
    cuts = np.cumsum([parameters[key].size for key in NAMES])
    views = {
        key: part.reshape(parameters[key].shape) for key, part in zip(NAMES, np.split(vector, cuts[:-1]), strict=True)
    }
    return views, Optimiser(name, vector.size), vector, cuts


def _joined(arrays: Mapping[str, Array]) -> Array:
    return np.concatenate([np.asarray(arrays[name], float).reshape(-1) for name in NAMES])


# ------------------------------------------------------------------------------------------------------------ evidence


def evidence() -> list[PrintedNumber]:
    """Every number that chapter 15.4 prints, and the agreement with central differences.

    >>> all(agrees(row) for row in evidence())
    True
    """
    values, (_, gradients) = forward(start()), value_and_gradients(start())
    shown = {"last row of attention": values["A"][1], "p": values["P"], "L": np.atleast_1d(values["L"])}
    rows = [
        PrintedNumber(phrase("{}[{}]", label, k) if len(printed) > 1 else label, float(shown[label][k]), number)
        for label, printed in PRINTED_FORWARD.items()
        for k, number in enumerate(printed)
    ]
    rows += [
        PrintedNumber(
            phrase("gradient of {}", f"{name}{list(place)}"),
            float(gradients[name][place]),
            float(np.array(PRINTED[name])[place]),
        )
        for name, place in _places(gradients)
    ]
    numeric = differences(start())
    largest = max(float(np.abs(numeric[name] - gradients[name]).max()) for name in NAMES)
    return [*rows, PrintedNumber("largest distance from central differences, ε = 1e-5", largest, 0.0)]


def coincidence() -> list[PrintedNumber]:
    """max |W̄_V − W̄_O| from the documented start, and from one with another W_O: equality is not a rule."""

    def distance(parameters: Parameters) -> float:
        _, gradients = value_and_gradients(parameters)
        return float(np.abs(gradients["W_V"] - gradients["W_O"]).max())

    other = {**start(), "W_O": np.array([[1.0, 0.5], [0.0, 1.0]])}
    return [
        PrintedNumber("max |W̄_V − W̄_O|, both start as the identity", distance(start()), 0.0),
        PrintedNumber("max |W̄_V − W̄_O|, W_O starts as [[1, 0.5], [0, 1]]", distance(other), 0.0),
    ]


def loss_and_weight() -> list[PrintedNumber]:
    """Loss and larger attention weight before and after one step at rate 0.1: both fall."""
    before, after = forward(start()), forward(gradient_step(start(), 0.1))
    return [
        PrintedNumber("loss before the step", float(before["L"]), 2.542, 3),
        PrintedNumber("loss after it", float(after["L"]), 1.761, 3),
        PrintedNumber("larger attention weight before the step", float(before["A"][1].max()), 0.7311, 4),
        PrintedNumber("larger attention weight after it", float(after["A"][1].max()), 0.7137, 4),
    ]


# ------------------------------------------------------------------------------------------------------------ training


@dataclass(frozen=True)
class TinyRun:
    """What a training of the tiny model gave: one record a step (`step`, `loss`, `largest_weight`), and the end."""

    history: list[dict[str, float]]
    parameters: Parameters
    files: tuple[Path, ...]


def train_tiny(
    steps: int = 100, optimiser: str = "sgd", rate: float = 0.1, out: str | Path | None = None, progress: bool = False
) -> TinyRun:
    """Train by the generated gradients; with `out`, write loss.csv, loss.png and parameters.json into that folder.

    >>> history = train_tiny(steps=20).history
    >>> history[20]["loss"] < history[10]["loss"] < history[0]["loss"]
    True
    """
    if steps < 1:
        raise TrainingError(f"the number of steps must be at least 1; got {steps}")
    if not 0 < rate < np.inf:
        raise TrainingError(f"the learning rate must be a finite number above 0; got {rate}")
    if optimiser not in METHODS:
        raise TrainingError(f"there is no optimiser {optimiser!r}; there are {', '.join(METHODS)}")
    parameters, method, vector, _ = _flat(start(), optimiser)
    history = [_record(0, parameters)]
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), disable=not progress)
    with bar, np.errstate(over="ignore", invalid="ignore"):  # a loss that is no number stops the run below
        task = bar.add_task("training", total=steps)
        for step in range(1, steps + 1):
            loss, gradients = value_and_gradients(parameters)
            if not np.isfinite(loss) or not all(np.isfinite(g).all() for g in gradients.values()):
                raise TrainingError(f"step {step}: the loss is {loss}; the rate {rate} is too large")
            method.step(vector, _joined(gradients), rate)
            history.append(_record(step, parameters))
            bar.update(task, advance=1, description=f"step {step}/{steps}  loss {history[-1]['loss']:.6f}")
    files = _written(Path(out), history, parameters) if out is not None else ()
    return TinyRun(history, {name: value.copy() for name, value in parameters.items()}, files)


def _record(step: int, parameters: Parameters) -> dict[str, float]:
    values = forward(parameters)
    return {"step": step, "loss": float(values["L"]), "largest_weight": float(values["A"][1].max())}


def _written(folder: Path, history: list[dict[str, float]], parameters: Parameters) -> tuple[Path, ...]:
    from gradproof.models.training.plots import save_curves, save_history

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    files = [save_history(history, folder / "loss.csv")]
    with suppress(MissingPackageError):  # without matplotlib there is no picture; the numbers are in the table
        files.append(save_curves(history, folder / "loss.png"))
    with replacing(folder / "parameters.json") as temporary:
        text = json.dumps({name: value.tolist() for name, value in parameters.items()}, indent=1)
        Path(temporary).write_text(text + "\n", encoding="utf-8")
    return (*files, folder / "parameters.json")

"""Gradient descent, momentum, Adam, AdamW, clipping and schedules: equations in the expression language, compiled.

A method is one `Method`: equations for the numbers that change from step to step (in float64, so that 1 − β₂ᵗ is exact
in a float32 model too), and equations for a stretch of the parameter vector.

>>> theta = np.array([1.0])
>>> Optimiser("sgd", theta.size).step(theta, np.array([2.0]), rate=0.1)
>>> theta
array([0.8])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Expr

from gradproof.models.errors import TrainingError
from gradproof.numeric.compile import Compiled, compile_numpy
from gradproof.symbolic.catalogue.optimisation import ADAM_SHAPES, ADAM_STEP
from gradproof.symbolic.equations.compose import abbreviated, changed, compose
from gradproof.symbolic.equations.expr import Access
from gradproof.symbolic.equations.system import Array as Named
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.language.reader import build

Array = NDArray[Any]
CHUNK = 1 << 15  # parameters updated at a time: a stretch of every vector stays in the cache


@dataclass(frozen=True)
class Method:
    """`update` gives theta_new and the new state vectors (`state`: m → m_new) of a stretch.

    `numbers` are scalar equations; their values go into `update` along with those of `defaults` and eta, the rate.
    """

    update: Callable[[], System]
    state: tuple[str, ...] = ()
    numbers: Callable[[], System] | None = None
    defaults: Mapping[str, float] = field(default_factory=dict)


STEP = {"theta": "n", "g": "n", "eta": ""}
CORRECTIONS = "r_1 = 1 - beta_1; r_2 = 1 - beta_2; c_1 = 1 - beta_1**t; c_2 = 1 - beta_2**t"
L2 = "g = gradient + l2*theta"  # the prior N(0, 1/l2) of a maximum a posteriori estimate


def descent() -> System:
    return build("theta_new = theta - eta*g", STEP)


def momentum() -> System:
    return build("b_new = mu*b + g; theta_new = theta - eta*b_new", {**STEP, "b": "n", "mu": ""})


@cache
def corrections() -> System:
    """The numbers of a step of Adam that are the same for all parameters."""
    return build(CORRECTIONS, {"beta_1": "", "beta_2": "", "t": ""})


def decayed_corrections() -> System:
    return compose(corrections(), build("keep = 1 - eta*decay", {"eta": "", "decay": ""}))


@cache
def adam() -> System:
    """The step of the entry adam.step, in whose equations the numbers of the step have names."""
    step = build(ADAM_STEP, ADAM_SHAPES)
    step = step.renamed({"m": "m_new", "v": "v_new", step.outputs[0]: "theta_new"})
    return abbreviated(step.renamed({"m_0": "m", "v_0": "v"}), corrections())


def adamw() -> System:
    """Decoupled decay: it shrinks the parameters themselves and never enters the moments."""

    def kept(body: Expr, place: tuple[Expr, ...]) -> Expr:
        old = Access("theta", *place)
        return body - old + Access("keep") * old

    return changed(adam(), "theta_new", kept, [Named("keep")])


ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8}
METHODS = {
    "sgd": Method(descent),
    "momentum": Method(momentum, ("b",), defaults={"mu": 0.9}),
    "adam": Method(adam, ("m", "v"), corrections, ADAM),
    "adamw": Method(adamw, ("m", "v"), decayed_corrections, {**ADAM, "decay": 0.01}),
}

NORM = "r = g/s; sum(r**2)"
CLIP = "minimum(tau/(norm + delta), 1)"

SCHEDULES = {
    "constant": ("eta", ("eta",)),
    # the schedule of the 2017 paper, with a factor
    "warmup": ("eta * d**(-1/2) * minimum(t**(-1/2), t*w**(-3/2))", ("eta", "d", "w")),
    # a linear warm-up, then half a cosine down to eta_end at step `steps`
    "cosine": (
        "u = clip((t - w)/maximum(steps - w, 1), 0, 1); "
        "where(t < w, eta*t/maximum(w, 1), eta_end + (eta - eta_end)*(1 + cos(pi*u))/2)",
        ("eta", "eta_end", "w", "steps"),
    ),
}


class Optimiser:
    """One method with its state, over one vector of parameters.

    `l2` adds l2·θ to the gradient. `settings` override the method's defaults (beta_1, beta_2, epsilon, decay, mu).
    """

    def __init__(self, name: str, size: int, *, dtype: Any = np.float64, l2: float = 0.0, **settings: float) -> None:
        if name not in METHODS:
            raise TrainingError(f"there is no optimiser {name!r}; there are {', '.join(METHODS)}")
        self.name, self.method = name, METHODS[name]
        if unknown := settings.keys() - self.method.defaults.keys():
            known = ", ".join(self.method.defaults) or "none"
            raise TrainingError(f"{name} has no setting {min(unknown)}; its settings: {known}")
        self.settings = {**self.method.defaults, **settings}
        self.l2 = l2
        self.steps = 0
        self.state = {key: np.zeros(size, dtype) for key in self.method.state}

    def step(self, theta: Array, gradient: Array, rate: float, run: Callable[..., Iterable[object]] = map) -> None:
        """Change `theta` (n,) in place by one step along its gradient (n,); `run` may spread stretches over threads."""
        self.steps += 1
        update, numbers = compiled_method(self.name, self.l2 != 0)
        given = {**self.settings, "eta": float(rate), "t": float(self.steps), "l2": self.l2}
        if numbers is not None:
            given |= numbers(**{name: given[name] for name in numbers.arguments.names})
        scalars = {name: theta.dtype.type(given[name]) for name in update.arguments.names if name in given}
        source = "gradient" if self.l2 else "g"

        def change(start: int) -> None:
            part = slice(start, start + CHUNK)
            old = {"theta": theta[part], **{name: values[part] for name, values in self.state.items()}}
            with np.errstate(over="raise"):  # an infinite average of squares would stop its entries for ever, silently
                new = update.function(**{source: gradient[part]}, **old, **scalars)
            for name, values in old.items():
                if new[f"{name}_new"] is not values:  # the code works in place where it can
                    values[...] = new[f"{name}_new"]

        starts = range(0, len(theta), CHUNK)
        try:
            for _ in run(change, starts):
                pass
        except FloatingPointError:
            raise TrainingError(
                f"step {self.steps} of {self.name} overflows {theta.dtype}: the gradient or the rate is too large"
            ) from None

    def arrays(self) -> dict[str, Array]:
        """The state for a checkpoint; `restore` takes it back."""
        return {**self.state, "steps": np.array(self.steps, np.int64)}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Go on from a saved state."""
        wanted = {*self.state, "steps"}
        if wanted != arrays.keys() or any(arrays[name].shape != self.state[name].shape for name in self.state):
            raise TrainingError(f"the saved optimiser state ({', '.join(arrays)}) is not one of {self.name}")
        self.steps = int(arrays["steps"])
        for name, values in self.state.items():
            values[...] = arrays[name]


@cache
def compiled_method(name: str, l2: bool = False) -> tuple[Compiled, Compiled | None]:
    """The code of a method: for a stretch of the vectors, and for the numbers of a step."""
    update, numbers = method_systems(name, l2)
    ahead = None if numbers is None else compile_numpy(numbers, numbers.outputs, f"{name}_numbers")
    return compile_numpy(update, update.outputs, name, overwrite=("theta", *METHODS[name].state)), ahead


def method_systems(name: str, l2: bool = False) -> tuple[System, System | None]:
    """The equations of a method: for a stretch of the vectors, and for the numbers of a step."""
    method = METHODS[name]
    update = method.update()
    if l2:
        update = compose(build(L2, {"gradient": "n", "theta": "n", "l2": ""}), update)
    update = replace(update, outputs=("theta_new", *(f"{key}_new" for key in method.state)), _cache={})
    if method.numbers is None:
        return update, None
    numbers = method.numbers()
    return update, replace(numbers, outputs=tuple(numbers.defined), _cache={})


# ------------------------------------------------------------------------------------------------------------ clipping


@cache
def _clipping() -> tuple[Compiled, Compiled]:
    norm = compile_numpy(build(NORM, {"g": "n", "s": ""}), name="norm_squared")
    return norm, compile_numpy(build(CLIP, {"tau": "", "norm": "", "delta": ""}), name="clip_factor")


def global_norm(gradients: Mapping[str, Array]) -> float:
    """√Σg² over all tensors, accumulated in float64, so that no square of a finite entry overflows.

    >>> round(global_norm({"W": np.full(100, 1e20, np.float32)}) / 1e21, 6)
    1.0
    """
    norm, _ = _clipping()
    scale = float(np.max([np.abs(g).max() for g in gradients.values() if g.size] or [0.0]))
    if not np.isfinite(scale):
        bad = next(name for name, g in gradients.items() if not np.isfinite(g).all())
        kind = "NaN" if np.isnan(gradients[bad]).any() else "infinite"
        raise TrainingError(f"the gradient of {bad} has an entry that is {kind}: it cannot be clipped")
    if scale == 0:
        return 0.0
    flat = (g.reshape(-1)[k : k + CHUNK] for g in gradients.values() for k in range(0, g.size, CHUNK))
    squares = sum(float(next(iter(norm(g=part.astype(np.float64), s=scale).values()))) for part in flat)
    return scale * float(np.sqrt(squares))


def clip_factor(norm: float, tau: float, delta: float = 0.0) -> float:
    """What the gradients are multiplied by: τ/‖g‖ where ‖g‖ > τ, else 1. torch has delta = 1e-6 in the divisor.

    >>> clip_factor(2.0, 0.5), clip_factor(0.25, 0.5)
    (0.25, 1.0)
    """
    if not tau > 0:
        raise TrainingError(f"the norm that gradients are clipped to must be above 0; got {tau}")
    if norm == 0:
        return 1.0
    return float(next(iter(_clipping()[1](tau=tau, norm=norm, delta=delta).values())))


def clip(gradients: Mapping[str, Array], tau: float, delta: float = 0.0) -> tuple[dict[str, Array], float]:
    """The gradients scaled to a global norm of at most `tau`, and the norm that they had.

    >>> clipped, norm = clip({"W": np.full(100, 1e20, np.float32)}, tau=2.0)
    >>> round(float(clipped["W"][0]), 6)
    0.2
    """
    norm = global_norm(gradients)
    factor = clip_factor(norm, tau, delta)
    if factor == 1.0:
        return dict(gradients), norm
    if factor > 1e-30:
        return {name: g * g.dtype.type(factor) for name, g in gradients.items()}, norm
    # float32 cannot hold the factor of huge gradients
    return {name: (g.astype(np.float64) * factor).astype(g.dtype) for name, g in gradients.items()}, norm


# ----------------------------------------------------------------------------------------------------------- schedules


@cache
def _schedule(name: str) -> Compiled:
    text, settings = SCHEDULES[name]
    return compile_numpy(build(text, {key: "" for key in (*settings, "t")}), name=f"{name}_rate")


def schedule(name: str, **settings: float) -> Callable[[int], float]:
    """The learning rate as a function of the step, counted from 1.

    >>> rate = schedule("warmup", eta=1.0, d=16, w=4)
    >>> [round(rate(t), 4) for t in (1, 4, 16)]
    [0.0312, 0.125, 0.0625]
    """
    if name not in SCHEDULES:
        raise TrainingError(f"there is no schedule {name!r}; there are {', '.join(SCHEDULES)}")
    wanted = SCHEDULES[name][1]
    if settings.keys() != set(wanted):
        raise TrainingError(f"the schedule {name} needs {', '.join(wanted)}; got {', '.join(settings) or 'nothing'}")
    given = {key: float(value) for key, value in settings.items()}
    code = _schedule(name)

    def rate(step: int) -> float:
        values = {key: value for key, value in {**given, "t": float(step)}.items() if key in code.arguments.names}
        return float(next(iter(code(**values).values())))

    return rate

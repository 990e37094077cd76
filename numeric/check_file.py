"""Check a backward pass that a user wrote in a Python file against the derived gradient.

This is the one place of gradproof that runs a user's code. The file holds either

* a subclass of torch.autograd.Function, or
* two functions for NumPy: `forward(X, W, …)` and `backward(G, X, W, …)`. `forward` may return (value, cache);
  `backward` then takes the cache in place of the inputs. It returns the gradients in the order of forward's
  parameters, or a dictionary by name; one alone may be returned as it is.

The parameters of `forward` are called like the arrays of the expression. Both sides are compared in float64 under a
random cotangent, at sizes from 0 to 40, the smallest first, at numbers from 1/1000 to 1000, and on both sides of every
threshold of the expression; the derived gradient is computed to 40 digits.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from gradproof.symbolic.checking.check import Verdict
from gradproof.symbolic.deriving.derivation import Derivation, derive_system
from gradproof.symbolic.equations.evaluate import Point
from gradproof.symbolic.errors import ExpressionError, GradproofError
from gradproof.symbolic.folding.checks import at_least_one, small_sizes
from gradproof.symbolic.judging.counterexample import Counterexample, number
from gradproof.symbolic.judging.reaching import Reach
from gradproof.symbolic.judging.sampling import Draw, Pair, Precise, drawn, given
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import Declaration, Program, parse

TOLERANCE = 1e-9  # relative to the largest entry, in float64
TOLERANCES = {4: 1e-4, 2: 1e-2}  # by bytes of a number, for code that works in float32 or float16
COARSE = 1000  # times as much is allowed where the numbers are large or small: code may round differently there
POINTS = 8
LARGE = (7, 13, 26, 40)  # one size after the other takes these values
FAR = ("far", "far positive", "narrow") * 2
CACHES = ("cache", "ctx", "saved", "context", "stash")
VALUES = ("out", "output", "value", "result", "y_pred", "pred")

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """What the file holds: the parameters of its forward, and how value and gradients are computed."""

    parameters: tuple[str, ...]
    run: Callable[[Arrays, Sequence[str], Any], tuple[Any, dict[str, Any]]]
    name: str


def check_file(
    path: str | Path,
    expression: str | Program,
    shapes: Mapping[str, object] | Sequence[Declaration],
    wrt: str | Sequence[str] | None = None,
    seed: int = 0,
) -> Verdict:
    """Run the file at `path` and compare its backward with the derived gradient of the expression.

    Raises GradproofError where the file cannot be run, or does not fit the expression.
    """
    program = parse(expression) if isinstance(expression, str) else expression
    system = build(program, shapes)
    (output,) = system.outputs
    cotangent = _free_name(system.arrays) if system.arrays[output].rank else None
    derivation = derive_system(system, wrt, cotangent, (), program)
    written = read_file(Path(path))
    _check_parameters(written, derivation)
    return compared(written, derivation, seed)


def compared(written: Written, derivation: Derivation, seed: int) -> Verdict:
    """Compare at several points, the smallest first."""
    correct = "; ".join(derivation.lines())
    worst, count, notes = 0.0, 0, dict[str, None]()
    for draw, coarse in _points(derivation, seed):
        try:
            point = Reference(derivation, draw)
        except GradproofError:  # no value there, or too large
            continue
        try:
            found = point.judged(written, coarse)
        except CodeFails as error:
            if 0 not in draw.sizes.values():
                raise
            notes[str(error)] = None
            continue
        if isinstance(found, str):
            notes[found] = None
            continue
        if isinstance(found, Verdict):
            return replace(found, correct=correct)
        worst, count = max(worst, 0 if coarse else found), count + 1
    if not count:
        return Verdict("undecided", "the expression has no value at the random points that were tried", correct=correct)
    how = (
        f"{written.name} equals the derived gradients by {', '.join(derivation.wrt)} at {count} points, small and large"
        f" numbers, several sizes, under random cotangents, in float64 (largest relative error {worst:.0e})"
    )
    return Verdict("agrees", how, correct=correct, note="; ".join(notes))


def _points(derivation: Derivation, seed: int) -> Iterator[tuple[Draw, bool]]:
    """Points of growing sizes, and whether they are compared coarsely.

    The first hold simple numbers, no two of an array alike, so that no kink is met.
    """
    pair = Inputs(derivation.system, derivation.output, derivation.output)
    symbols = derivation.system.sizes
    shapes = at_least_one(derivation.system)
    for k in range(POINTS):
        sizes = dict.fromkeys(symbols, k + 1) if k < 2 else small_sizes(derivation.system, seed + k)
        if any(int(shape.xreplace(sizes)) < 1 for shape in shapes):
            sizes = small_sizes(derivation.system, seed + k)
        draw = drawn(pair, sizes, seed + k, "small" if k % 3 != 2 else "positive")
        yield (_simple(pair, draw, seed + k) if k < 2 else draw), False
    reach = Reach(pair, seed, (derivation.output, *map(derivation.system.adjoint_of, derivation.wrt)))
    small = small_sizes(derivation.system, seed)
    for symbol, value in product(symbols, (*LARGE, 0)):
        if reach.fits(sizes := {**small, symbol: value}, 0):
            yield drawn(pair, sizes, seed + value, "small"), False
    for draw in reach.points():
        yield draw, True
    for k, kind in enumerate(FAR):
        yield drawn(pair, small_sizes(derivation.system, seed + k), seed + k, kind), True


def _simple(pair: Pair, draw: Draw, seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    for name, entries in draw.free.items():
        if pair.system.arrays[name].below is None:
            half = len(entries) // 2 + 1
            numbers = [Fraction(int(v), 2) for v in rng.permutation([*range(-half, 0), *range(1, half + 1)])]
            draw = draw.with_entries(name, dict(zip(entries, numbers, strict=False)))
    return draw


class CodeFails(GradproofError):
    """The user's code raises an error."""


class Inputs(Pair):
    """All inputs of a system, whether or not a side reads them."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.system.inputs


class Reference:
    """The derived value and gradients at one point, to 40 digits, from float64 inputs."""

    def __init__(self, derivation: Derivation, draw: Draw) -> None:
        self.derivation, self.draw = derivation, draw
        system = derivation.system
        entries = given(Inputs(system, derivation.output, derivation.output), draw)
        shape = {name: tuple(int(s.xreplace(dict(draw.sizes))) for s in a.shape) for name, a in system.arrays.items()}
        self.arrays: Arrays = {}
        for name, values in entries.items():
            integer = system.arrays[name].below is not None
            kind = np.int64 if integer else np.float64
            self.arrays[name] = np.array([kind(value) for value in values.values()], dtype=kind).reshape(shape[name])
        exact = {name: self._exact(name, values) for name, values in self.arrays.items()}
        self.point = Point(system, draw.sizes, Precise(draw.digits), given=exact)
        cotangent = derivation.cotangent
        self.upstream = (
            self.arrays.pop(cotangent) if cotangent else np.float64(np.random.default_rng(2).uniform(0.5, 1.5))
        )
        self.value = self._array(derivation.output, 1.0)
        weight = 1.0 if cotangent else float(self.upstream)
        self.gradients = {name: self._array(system.adjoint_of(name), weight) for name in derivation.wrt}

    def _exact(self, name: str, values: NDArray[Any]) -> dict[tuple[int, ...], Any]:
        whole = values.dtype == np.int64
        return {place: int(v) if whole else mpmath.mpf(float(v)) for place, v in np.ndenumerate(values)}

    def _array(self, name: str, weight: float) -> NDArray[np.float64]:
        shape = self.point.shape(name)
        values = [float(weight * self.point.entry(name, place)) for place in self.point.indices(name)]
        return np.array(values, dtype=np.float64).reshape(shape)

    def judged(self, written: Written, coarse: bool = False) -> Verdict | float | str:
        """A refutation, the largest relative error, or why a coarse comparison says nothing."""
        value, gradients, changed = self._run(written)
        if changed:
            return Verdict("refuted", f"{written.name} changes its input {changed} in place")
        if coarse and (name := self._overflown(value, gradients)):
            return f"{name} is not finite for numbers as large or as small as {self._extreme()}"
        if (found := self._differs("the value of forward", value, self.value, coarse)) is not None:
            return found
        worst = 0.0
        again = self._run(written)[1]
        for name, right in self.gradients.items():
            if gradients.get(name) is None:
                return Verdict("refuted", f"{written.name} returns no gradient by {name}")
            if (found := self._differs(f"the gradient by {name}", gradients[name], right, coarse)) is not None:
                return found
            if not np.array_equal(np.asarray(gradients[name]), np.asarray(again[name])):
                how = f"{written.name} gives another gradient by {name} when it runs again at the same point"
                return Verdict("refuted", how)
            worst = max(worst, _error(np.asarray(gradients[name]), right))
        return worst

    def _run(self, written: Written) -> tuple[Any, dict[str, Any], str]:
        """Value, gradients, and the name of an input that was changed, if one was."""
        sizes = {str(symbol): value for symbol, value in self.draw.sizes.items()}
        arrays = {
            name: np.copy(self.arrays[name]) if name in self.arrays else sizes[name] for name in written.parameters
        }
        try:
            with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # of a mean of nothing
                value, gradients = written.run(arrays, self.derivation.wrt, self.upstream)
        except GradproofError:
            raise
        except (Exception, SystemExit) as error:
            where = f" for {', '.join(f'{name} = {size}' for name, size in sizes.items())}" if sizes else ""
            raise CodeFails(f"{written.name} fails{where}: {_place(error)}") from None
        changed = [n for n, array in arrays.items() if n in self.arrays and not np.array_equal(array, self.arrays[n])]
        return value, gradients, changed[0] if changed else ""

    def _overflown(self, value: Any, gradients: Mapping[str, Any]) -> str:
        """What is not finite in the user's code though it is in truth, in a number of its kind."""
        pairs = [("the value of forward", value, self.value)]
        pairs += [(f"your gradient by {name}", gradients.get(name), right) for name, right in self.gradients.items()]
        for what, mine, right in pairs:
            mine = np.asarray(mine) if mine is not None else right
            if mine.dtype.kind == "f" and np.isfinite(right).all() and not np.isfinite(mine).all():
                return what
        return ""

    def _extreme(self) -> str:
        numbers = [abs(v) for a in self.arrays.values() if a.dtype.kind == "f" for v in np.ravel(a) if v]
        return f"{max(numbers, key=lambda v: max(v, 1 / v)):.3g}" if numbers else "these"

    def _differs(self, what: str, mine: Any, right: NDArray[np.float64], coarse: bool = False) -> Verdict | None:
        try:
            mine = np.asarray(mine)
        except Exception:  # what cannot be read as one array
            mine = np.asarray(None)
        if mine.dtype.kind not in "biuf":
            return Verdict("refuted", f"{what} is no array of real numbers in your code")
        tolerance = TOLERANCES.get(mine.dtype.itemsize, TOLERANCE)
        mine = mine.astype(np.float64)
        if mine.shape != right.shape:
            note = "it is transposed" if mine.shape == right.shape[::-1] else ""
            how = f"{what} has the shape {right.shape}; your code returns the shape {mine.shape}"
            return Verdict("refuted", how, note=note)
        scale = max(float(np.max(np.abs(right), initial=0)), 1.0 if coarse else 1e-3)
        tolerance *= COARSE if coarse else 1
        apart = ~(np.abs(mine - right) <= tolerance * scale)
        if not apart.any():
            return None
        place = tuple(int(k) for k in np.argwhere(apart)[0])
        inputs = {
            key: np.round(value, 6).tolist() for key, value in {**self.arrays, "cotangent": self.upstream}.items()
        }
        claimed, correct = float(mine[place]), float(right[place])
        sizes = {str(symbol): value for symbol, value in self.draw.sizes.items()}
        text = [number(mpmath.mpf(v), 9) if np.isfinite(v) else str(v) for v in (claimed, correct)]
        example = Counterexample(sizes, inputs, what, place, claimed, correct, text[0], text[1], "your code")
        entry = f" at {list(place)}" if place else ""
        note = _note(mine, right)
        return Verdict(
            "refuted", f"{what} differs{entry}: your code gives {text[0]}, right is {text[1]}", example, note=note
        )


def _note(mine: NDArray[np.float64], right: NDArray[np.float64]) -> str:
    if mine.ndim == 2 and mine.shape[0] == mine.shape[1] > 1 and _error(mine.T, right) < TOLERANCE:
        return "it is transposed"
    for text, times in (("−1", -1.0), ("2", 2.0), ("1/2", 0.5)):
        if np.max(np.abs(right), initial=0) > 0 and _error(mine / times, right) < TOLERANCE:
            return f"it is {text} times the right one at this point"
    return ""


def _error(mine: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    scale = max(float(np.max(np.abs(right), initial=0)), 1e-3)
    return float(np.max(np.abs(mine - right), initial=0)) / scale


def _place(error: BaseException) -> str:
    """An error of the user's code with its line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and "importlib" not in frame.filename]
    last = (own or list(frames))[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def _free_name(taken: Mapping[str, object]) -> str:
    return next(name for name in ("G", "cotangent", "cotangent_") if name not in taken)


# ------------------------------------------------------------------------------------------------------------- the file


def read_file(path: Path) -> Written:
    """Run the file and find its backward.

    Raises GradproofError where it cannot be run or holds none.
    """
    if not path.is_file():
        raise GradproofError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"_checked_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise GradproofError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise GradproofError(f"{path.name} cannot be run: {_place(error)}") from None
    finally:
        sys.modules.pop(spec.name, None)
    classes = _torch_functions(module)
    if len(classes) > 1:
        names = ", ".join(found.__name__ for found in classes)
        raise GradproofError(f"{path.name} holds several autograd functions ({names}); leave one in the file")
    if classes:
        return _with_torch(classes[0])
    forward, backward = (getattr(module, name, None) for name in ("forward", "backward"))
    if callable(forward) and callable(backward):
        return _with_numpy(forward, backward)
    raise GradproofError(f"{path.name} holds neither a torch.autograd.Function nor the functions forward and backward")


def _torch_functions(module: ModuleType) -> list[Any]:
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    base = torch.autograd.Function
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, base)]
    return [value for value in dict.fromkeys(found) if value.__module__ == module.__name__]


def _required(function: Callable[..., Any]) -> list[str]:
    """The parameters without a default."""
    return [name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty]


def _with_torch(function: Any) -> Written:
    import torch

    parameters = _required(function.forward)
    own_context = function.setup_context is not torch.autograd.Function.setup_context
    names = tuple(parameters if own_context else parameters[1:])

    def run(arrays: Arrays, wrt: Sequence[str], upstream: Any) -> tuple[Any, dict[str, Any]]:
        tensors = {
            n: torch.tensor(v, requires_grad=n in wrt) if isinstance(v, np.ndarray) else v for n, v in arrays.items()
        }
        value = function.apply(*(tensors[name] for name in names))
        if not isinstance(value, torch.Tensor):
            raise GradproofError(f"{function.__name__}.forward must return one tensor, not {type(value).__name__}")
        if not value.requires_grad or value.shape != np.shape(upstream):
            return value.detach().numpy(), {}
        wanted = [tensors[name] for name in wrt]
        gradients = torch.autograd.grad(value, wanted, torch.as_tensor(upstream), allow_unused=True)
        for name, tensor in tensors.items():  # what was changed in place shows
            if isinstance(tensor, torch.Tensor):
                arrays[name] = tensor.detach().numpy()
        found = {name: None if g is None else g.numpy() for name, g in zip(wrt, gradients, strict=True)}
        return value.detach().numpy(), found

    return Written(names, run, f"{function.__name__}.backward")


def _with_numpy(forward: Callable[..., Any], backward: Callable[..., Any]) -> Written:
    names, parameters = tuple(_required(forward)), _required(backward)

    def run(arrays: Arrays, wrt: Sequence[str], upstream: Any) -> tuple[Any, dict[str, Any]]:
        result = forward(**arrays)
        value, cache = (
            (result[0], result[1] if len(result) == 2 else result[1:]) if isinstance(result, tuple) else (result, None)
        )
        known = {**arrays, **dict.fromkeys(VALUES, value), **dict.fromkeys(CACHES, cache)}
        loose = [name for name in parameters if name not in known or (name in CACHES and cache is None)]
        if len(loose) == 2 and cache is not None:
            known[loose.pop()] = cache
        if len(loose) > 1 or (not loose and np.ndim(value)):
            shown = ", ".join(parameters)
            raise GradproofError(
                f"backward({shown}): one parameter is the cotangent, the others inputs of forward, its value or cache"
            )
        known.update(dict.fromkeys(loose, upstream))
        gradients = backward(*(known[name] for name in parameters))
        found = _by_name(gradients, names, wrt)
        if not loose:  # it takes no cotangent: that of a scalar is 1
            found = {name: _weighted(gradient, upstream) for name, gradient in found.items()}
        return value, found

    return Written(names, run, "backward")


def _weighted(gradient: Any, upstream: Any) -> Any:
    """The gradient times a number; what is no array of numbers stays as it is, and is told where it is compared."""
    try:
        return np.asarray(gradient) * upstream
    except (TypeError, ValueError):
        return gradient


def _by_name(gradients: Any, names: Sequence[str], wrt: Sequence[str]) -> dict[str, Any]:
    """The gradients that a backward returned, by the names of the variables."""
    if isinstance(gradients, Mapping):
        spelled = {name: (name, f"d{name}", f"d_{name}", f"grad_{name}", f"{name}_grad", f"{name}_bar") for name in wrt}
        return {
            name: next((gradients[key] for key in keys if key in gradients), None) for name, keys in spelled.items()
        }
    given_ones = list(gradients) if isinstance(gradients, tuple | list) else [gradients]
    ordered = [name for name in names if name in wrt]
    for order in (list(names), ordered):
        if len(order) == len(given_ones):
            return {name: gradient for name, gradient in zip(order, given_ones, strict=True) if name in wrt}
    raise GradproofError(
        f"backward returns {len(given_ones)} gradients; expected are {len(ordered)} ({', '.join(ordered)}),"
        f" or one for each parameter of forward"
    )


def _check_parameters(written: Written, derivation: Derivation) -> None:
    """Every parameter of forward is an array or a size of the expression, and every array is a parameter."""
    system = derivation.forward
    sizes = set(map(str, system.sizes))
    unknown = [name for name in written.parameters if name not in system.inputs and name not in sizes]
    known = ", ".join([*system.inputs, *sorted(sizes)])
    if unknown:
        raise ExpressionError(f"forward has a parameter {unknown[0]}; the expression has {known}")
    missing = [name for name in derivation.wrt if name not in written.parameters]
    if missing:
        raise ExpressionError(f"forward has no parameter {missing[0]}; it has {', '.join(written.parameters)}")

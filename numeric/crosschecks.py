"""Check a derivation against what is independent of it: torch autograd, differences of the forward, and mpmath.

    mpmath        the derived equations, entry by entry to 40 digits, against the generated code       1e-12
    torch         autograd of a forward that was written independently (`reference.py`, or an oracle)  1e-10
    differences   five-point differences of the generated forward                                      1e-7

Errors are relative to the largest entry. A non-scalar output is contracted with a random cotangent: with a plain sum
the gradients of softmax and LayerNorm vanish, and nothing would be tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.numeric.compile import Derivation
from gradproof.numeric.samples import FLOOR, Arrays, Oracle, Sample, exact, relative_error
from gradproof.symbolic.equations.evaluate import HighPrecision, Point, Undefined
from gradproof.symbolic.errors import GradproofError

TOLERANCES = {"mpmath": 1e-12, "torch": 1e-10, "differences": 1e-7}


@dataclass(frozen=True)
class Row:
    """One comparison: which result, against what, how far apart, and what is allowed; `why` if it was left out."""

    name: str
    against: str
    error: float | None
    tolerance: float
    why: str = ""

    @property
    def passed(self) -> bool | None:
        """None where the comparison was left out."""
        return None if self.error is None else bool(self.error <= self.tolerance)

    @property
    def status(self) -> str:
        return {None: "skipped", True: "passed", False: "FAILED"}[self.passed]


@dataclass(frozen=True)
class Report:
    """All comparisons of one derivation."""

    rows: tuple[Row, ...]
    device: str
    sizes: Mapping[str, int]
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return all(row.passed is not False for row in self.rows) and any(row.passed for row in self.rows)

    @property
    def max_error(self) -> float:
        return max((row.error for row in self.rows if row.error is not None), default=0.0)

    def __str__(self) -> str:
        head = ("result", "against", "error", "allowed", "")
        body = [
            (
                row.name,
                row.against,
                f"{row.error:.1e}" if row.error is not None else "–",
                f"{row.tolerance:.0e}",
                row.status,
            )
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        lines = [
            "  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip() for line in (head, *body)
        ]
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        why = dict.fromkeys(f"{row.against}: {row.why}" for row in self.rows if row.why)
        return "\n".join(
            [*lines, f"sizes {sizes or 'none'}; seed {self.seed}; torch on {self.device}", *self.notes, *why]
        )


def crosscheck(
    derivation: Derivation,
    against: Sequence[str] = ("torch", "differences", "mpmath"),
    seed: int = 0,
    device: str = "auto",
    oracle: Oracle | None = None,
) -> Report:
    """Compare the generated code of a derivation with independent computations, at random inputs in float64.

    `oracle` computes the forward in torch; without it the expression itself is evaluated by `reference.evaluate`.

    >>> from gradproof.symbolic.derive import derive
    >>> report = crosscheck(derive("sum(X @ w)**2", {"X": "n,d", "w": "d"}, "w"), against=("differences", "mpmath"))
    >>> report.passed, [row.against for row in report.rows]
    (True, ['differences', 'mpmath'])
    """
    unknown = [name for name in against if name not in TOLERANCES]
    if unknown:
        raise GradproofError(f"nothing is known of {unknown[0]}: compare against {', '.join(TOLERANCES)}")
    found = Sample.draw(derivation, seed)
    notes: list[str] = []
    used = "no device"
    rows: list[Row] = []
    for name in against:
        if name == "torch":
            used, made = _torch_rows(found, device, oracle, notes)
            rows += made
        else:
            rows += COMPARISONS[name](found)
    sizes = {str(size): value for size, value in found.sizes.items()}
    return Report(tuple(rows), used, sizes, seed, tuple(notes))


# ------------------------------------------------------------------------------------------------------------- mpmath


def mpmath_rows(sample: Sample) -> list[Row]:
    """Every derived equation, followed entry by entry in high precision."""
    system = sample.system
    given = {name: exact(system, name, array) for name, array in sample.inputs.items() if name in system.arrays}
    point = Point(system, dict(sample.sizes), HighPrecision(0), given=given)
    rows = []
    for name, mine in sample.gradients.items():
        array = sample.derivation.gradients[name].equation.name
        try:
            values = [float(value) for value in point.array(array).values()]
        except Undefined as error:
            rows.append(Row(name, "mpmath", None, TOLERANCES["mpmath"], f"no value at this point: {error}"))
            continue
        rows.append(Row(name, "mpmath", relative_error(mine, np.reshape(values, mine.shape)), TOLERANCES["mpmath"]))
    return rows


# -------------------------------------------------------------------------------------------------------- differences


def difference_rows(sample: Sample) -> list[Row]:
    """Five-point differences of the forward; an entry beside a kink, where two widths disagree, is left out."""
    rows = []
    limit = TOLERANCES["differences"]
    for name, mine in sample.gradients.items():
        kind = sample.kind(name)
        if kind in ("hessian", "product", "other"):
            rows.append(Row(name, "differences", None, limit, "second derivatives are compared with torch and mpmath"))
            continue
        if kind == "tangent":
            expected, sure = _along(sample)
        else:
            wide, narrow = (differences(sample, sample.variables(name)[0], width) for width in (1e-3, 5e-4))
            expected = sample.contracted(narrow, kind)
            slack = np.abs(sample.contracted(wide, kind) - expected)
            sure = slack <= limit / 2 * max(np.abs(expected).max(initial=0.0), FLOOR)
        mine, expected = np.where(sure, mine, 0.0), np.where(sure, expected, 0.0)
        left_out = int(sure.size - np.count_nonzero(sure))
        why = f"{left_out} entries of {name} lie beside a kink and were left out" if left_out else ""
        if left_out and not sure.any():
            rows.append(Row(name, "differences", None, limit, why))
        else:
            rows.append(Row(name, "differences", relative_error(mine, expected), limit, why))
    return rows


def differences(sample: Sample, name: str, width: float) -> np.ndarray:
    """The Jacobian of the output with respect to an input, the output's axes first."""
    start = np.asarray(sample.inputs[name], np.float64)
    columns = []
    for index in np.ndindex(*start.shape):
        step = np.zeros_like(start)
        step[index] = width
        columns.append(_five_points(_moving(sample, {name: step}), width))
    return np.stack(columns, axis=-1).reshape((*sample.value.shape, *start.shape))


def _moving(sample: Sample, steps: Arrays) -> Callable[[float], np.ndarray]:
    """The forward as a function of how many steps the inputs are moved."""
    return lambda count: sample.forward(
        {**sample.inputs, **{name: sample.inputs[name] + count * step for name, step in steps.items()}}
    )


def _five_points(forward: Callable[[float], np.ndarray], width: float) -> np.ndarray:
    """(8 (f₁ − f₋₁) − (f₂ − f₋₂)) / 12h, exact for polynomials up to degree 4."""
    return (8 * (forward(1) - forward(-1)) - (forward(2) - forward(-2))) / (12 * width)


def _along(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """The change of the output when all variables move along their directions."""
    pairs = list(zip(sample.derivation.wrt, sample.directions, strict=True))
    steps = [{name: width * sample.inputs[along] for name, along in pairs} for width in (1e-3, 5e-4)]
    wide, narrow = (_five_points(_moving(sample, s), width) for s, width in zip(steps, (1e-3, 5e-4), strict=True))
    scale = max(np.abs(narrow).max(initial=0.0), FLOOR)
    return narrow, np.abs(wide - narrow) <= TOLERANCES["differences"] / 2 * scale


# -------------------------------------------------------------------------------------------------------------- torch


def _torch_rows(sample: Sample, device: str, oracle: Oracle | None, notes: list[str]) -> tuple[str, list[Row]]:
    limit = TOLERANCES["torch"]
    try:
        from gradproof.numeric.autograd import torch_results
    except ImportError:
        why = "torch is not installed, so nothing was compared with autograd"
        return "no device", [Row(name, "torch", None, limit, why) for name in sample.gradients]
    used, value, expected = torch_results(sample, device, oracle, notes)
    rows = [Row("value", "torch", relative_error(sample.value, value), limit)]
    for name, mine in sample.gradients.items():
        if name in expected:
            rows.append(Row(name, "torch", relative_error(mine, expected[name]), limit))
        else:
            rows.append(Row(name, "torch", None, limit, f"{name} is no gradient, Jacobian, Hessian or tangent"))
    return used, rows


COMPARISONS: dict[str, Callable[[Sample], list[Row]]] = {"mpmath": mpmath_rows, "differences": difference_rows}

"""The figure of an experiment, drawn from its numbers: for LaTeX (with pict2e, part of every TeX) and as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradproof.models.experiments import Experiment

WIDTH, HEIGHT = 110, 58  # of the frame, in millimetres for LaTeX, in units of SCALE pixels for SVG
SCALE = 5
MARKS = (r"$\bullet$", r"$\circ$", r"$\ast$", r"$\times$")
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


@dataclass(frozen=True)
class Chart:
    """Curves by name and the ticks of both axes; places are fractions of the frame."""

    curves: dict[str, list[tuple[float, float]]]
    across: list[tuple[float, str]]
    upward: list[tuple[float, str]]


def chart(experiment: Experiment) -> Chart:
    """The first column is the horizontal axis; on a logarithmic scale what is 0 but for rounding has no place.

    >>> from gradproof.models.experiments import Experiment
    >>> found = chart(Experiment("t", ("x", "y"), ((1, 10.0), (10, 1.0), (100, 0.0)), "", (), True))
    >>> found.across[-1], found.curves
    ((1.0, '10'), {'y': [(0.0, 1.0), (1.0, 0.0)]})
    """
    scale = math.log10 if experiment.logarithmic else float
    name, *others = experiment.columns
    least = 1e-9 * max(max(row[1:]) for row in experiment.rows)
    across = experiment.column(name)
    pairs = {
        other: [(x, y) for x, y in zip(across, experiment.column(other), strict=True) if scale is float or y > least]
        for other in others
    }
    points = [point for curve in pairs.values() for point in curve]
    x_place, x_ticks = _axis([x for x, _ in points], scale)
    y_place, y_ticks = _axis([y for _, y in points], scale)
    return Chart(
        {other: [(x_place(x), y_place(y)) for x, y in curve] for other, curve in pairs.items()}, x_ticks, y_ticks
    )


Scale = Callable[[float], float]


def _axis(values: Sequence[float], scale: Scale) -> tuple[Scale, list[tuple[float, str]]]:
    """Where a value stands on an axis, and its ticks."""
    low, high = scale(min(values)), scale(max(values))
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return round((scale(value) - low) / span, 4)

    if scale is math.log10:
        parts, every = ((1,) if span > 1.5 else (1, 2, 5)), math.ceil(span / 8)
        powers = range(math.floor(low / every) * every, math.ceil(high) + 1, every)
        ticks: Iterable[float] = (m * 10.0**k for k in powers for m in parts)
    else:
        step = 10 ** math.floor(math.log10(span)) / (2 if span / 10 ** math.floor(math.log10(span)) < 4 else 1)
        ticks = (k * step for k in range(math.floor(low / step), math.ceil(high / step) + 1))
    return place, [(place(t), f"{t:g}") for t in ticks if -1e-9 <= place(t) <= 1 + 1e-9]


def latex(experiment: Experiment, said: Callable[[str], str]) -> list[str]:
    """A picture with a legend below; `said` sets the name of a column."""
    found = chart(experiment)
    lines = [
        r"\begin{center}\footnotesize\setlength{\unitlength}{1mm}",
        rf"\begin{{picture}}({WIDTH + 16},{HEIGHT + 12})(-14,-10)",
    ]
    lines += [rf"\put(0,0){{\framebox({WIDTH},{HEIGHT}){{}}}}"]
    for place, label in found.across:
        x = place * WIDTH
        lines += [rf"\put({x:.2f},0){{\line(0,1){{1.2}}}}\put({x:.2f},-1.5){{\makebox(0,0)[t]{{{label}}}}}"]
    for place, label in found.upward:
        y = place * HEIGHT
        lines += [rf"\put(0,{y:.2f}){{\line(1,0){{1.2}}}}\put(-1.5,{y:.2f}){{\makebox(0,0)[r]{{{label}}}}}"]
    lines += [rf"\put({WIDTH / 2},-6){{\makebox(0,0)[t]{{{said(experiment.columns[0])}}}}}"]
    for (_, curve), mark in zip(found.curves.items(), MARKS, strict=False):
        points = [(x * WIDTH, y * HEIGHT) for x, y in curve]
        lines += [r"\polyline" + "".join(f"({x:.2f},{y:.2f})" for x, y in points)]
        lines += [rf"\put({x:.2f},{y:.2f}){{\makebox(0,0){{{mark}}}}}" for x, y in points]
    legend = r"\quad ".join(f"{mark} {said(name)}" for name, mark in zip(found.curves, MARKS, strict=False))
    return [*lines, r"\end{picture}\\", legend, r"\end{center}"]


class Picture(str):
    """SVG, which a notebook shows."""

    def _repr_svg_(self) -> str:
        return str(self)


def svg(experiment: Experiment, said: Callable[[str], str] = str) -> Picture:
    """The same as an SVG element."""
    found, left, below = chart(experiment), 14 * SCALE, 12 * SCALE
    width, height = WIDTH * SCALE, HEIGHT * SCALE
    rows = len(found.curves)
    parts = [f'<rect x="{left}" y="5" width="{width}" height="{height}" fill="none" stroke="currentColor"/>']
    for place, label in found.across:
        x = left + place * width
        parts += [f'<text x="{x:.1f}" y="{height + 22}" text-anchor="middle">{label}</text>']
        parts += [f'<line x1="{x:.1f}" y1="{height + 5}" x2="{x:.1f}" y2="{height - 1}" stroke="currentColor"/>']
    for place, label in found.upward:
        y = 5 + (1 - place) * height
        parts += [f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>']
        parts += [f'<line x1="{left}" y1="{y:.1f}" x2="{left + 6}" y2="{y:.1f}" stroke="currentColor"/>']
    title = escape(said(experiment.columns[0]))
    parts += [f'<text x="{left + width / 2}" y="{height + 42}" text-anchor="middle">{title}</text>']
    for row, ((name, curve), colour) in enumerate(zip(found.curves.items(), COLOURS, strict=False)):
        points = [(left + x * width, 5 + (1 - y) * height) for x, y in curve]
        shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts += [f'<polyline points="{shown}" fill="none" stroke="{colour}" stroke-width="2"/>']
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = height + below + 18 * row
        parts += [f'<line x1="{left}" y1="{y - 4}" x2="{left + 30}" y2="{y - 4}" stroke="{colour}" stroke-width="2"/>']
        parts += [f'<text x="{left + 38}" y="{y}">{escape(said(name))}</text>']
    size = f"0 0 {left + width + 20} {height + below + 18 * rows}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" width="{left + width + 20}" font-size="13"'
    return Picture(f'{head} fill="currentColor">{"".join(parts)}</svg>')

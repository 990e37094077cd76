"""Experiments for claims that only an experiment can speak to: seeded, short, the conclusion from the numbers.

>>> sorted(EXPERIMENTS)[:3]
['block_depth', 'dimension', 'double_descent']
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradproof.models.errors import DataError
from gradproof.symbolic.catalogue.evidence import Evidence
from gradproof.symbolic.phrases import joined, phrase

# name → module with a function `run() -> Experiment`
EXPERIMENTS = {
    "block_depth": "depth",
    "dimension": "dimension",
    "double_descent": "double_descent",
    "generalisation": "generalisation",
    "ntk_width": "ntk",
    "saturation": "saturation",
}


@dataclass(frozen=True)
class Experiment:
    """A table of numbers, the conclusion that follows from them, and the checks that it rests on.

    The first column is the horizontal axis of the figure, the others are its curves.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    conclusion: str
    checks: tuple[Evidence, ...]
    logarithmic: bool = False

    def table(self) -> str:
        """The numbers as aligned text.

        >>> print(Experiment("t", ("x", "error"), ((1, 0.5), (10, 0.25)), "falls", ()).table())
         x  error
         1    0.5
        10   0.25
        """
        cells = [self.columns, *([f"{value:.4g}" for value in row] for row in self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        return "\n".join(
            "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells
        )

    def column(self, name: str) -> list[float]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def figure(self, path: str | Path) -> Path:
        """Draw every column over the first one; needs matplotlib."""
        from gradproof.models.training.plots import drawing

        with drawing(5.6, 3.6, path) as figure:
            axes = figure.add_subplot()
            for name in self.columns[1:]:
                axes.plot(self.column(self.columns[0]), self.column(name), label=name, marker="o", markersize=3)
            if self.logarithmic:
                axes.set_xscale("log")
                axes.set_yscale("log")
            axes.set_xlabel(self.columns[0])
            axes.set_title(self.title, fontsize=10)
            axes.legend(frameon=False, fontsize=8)
            axes.grid(alpha=0.3)
        return Path(path)


def run(name: str) -> Experiment:
    """Run the experiment of that name.

    Raises DataError with the names there are.
    """
    if name not in EXPERIMENTS:
        raise DataError(f"there is no experiment {name}; there are {', '.join(sorted(EXPERIMENTS))}")
    module = importlib.import_module(f"gradproof.models.experiments.{EXPERIMENTS[name]}")
    found: Experiment = module.run()
    return found


def concluded(checks: Sequence[Evidence], right: str, wrong: str) -> str:
    """The conclusion that the checks allow."""
    failed = [check.label for check in checks if not check.passed]
    return right if not failed else phrase("{} (not seen: {})", wrong, joined("; ", failed))

"""Pictures of a run: loss curves (PNG and CSV) and attention weights with the tokens on both axes.

matplotlib is an optional extra; it is imported here only when a picture is drawn, without its global state (no pyplot),
so that drawing works without a display and never disturbs the caller's own figures.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gradproof.models.errors import DataError, MissingPackageError
from gradproof.models.files import reason, replacing

FilePath = str | os.PathLike[str]
Row = Mapping[str, Any]

# matplotlib's own font has no Chinese, Japanese or Korean characters; the first of these that is installed helps out.
_CJK_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "PingFang SC", "SimHei")


def save_history(rows: Sequence[Row], path: FilePath, x: str = "step") -> Path:
    """The numbers of a run as CSV: one row a record, one column a name (`x` first), empty where a record lacks it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(save_history([{"step": 1, "loss": 0.5}, {"step": 2, "per": 3}], Path(folder, "a.csv")).read_text())
    step,loss,per
    1,0.5,
    2,,3
    <BLANKLINE>
    """
    names = [x, *(name for name in _names(rows) if name != x)]
    try:
        with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise DataError(f"cannot write {path}: {reason(error)}") from None
    return Path(path)


def save_curves(rows: Sequence[Row], path: FilePath, x: str = "step") -> Path:
    """Curves over `x`: losses in one panel, every other number in one of its own; infinite values are gaps."""
    names = [name for name in _names(rows) if name != x and _numeric(rows, name)]
    losses = [name for name in names if "loss" in name]
    panels = ([losses] if losses else []) + [[name] for name in names if name not in losses]
    if not panels:
        raise DataError(f"there is nothing to draw: no record has a number beside {x!r}")
    with drawing(4.8 * len(panels), 3.4, path) as figure:
        for place, panel in enumerate(panels, start=1):
            axes = figure.add_subplot(1, len(panels), place)
            for name in panel:
                _curve(axes, [(row[x], row[name]) for row in rows if x in row and _is_number(row.get(name))], name)
            axes.set_xlabel(x)
            axes.legend(frameon=False)
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
    return Path(path)


def _curve(axes: Any, points: Sequence[tuple[Any, Any]], name: str) -> None:
    values = np.array([point[1] for point in points], dtype=float)
    axes.plot(
        [point[0] for point in points],
        np.where(np.isfinite(values), values, np.nan),
        label=name.replace("_", " "),
        marker="o" if len(points) < 20 else None,
        markersize=3,
        linewidth=1.4,
    )


def save_attention(
    weights: ArrayLike,
    source: Sequence[str],
    target: Sequence[str],
    path: FilePath,
    titles: Sequence[str] | None = None,
) -> Path:
    """Attention weights (T,S), or (heads,T,S) in panels: a row for each target, a column for each source token."""
    maps = np.asarray(weights, dtype=float)
    maps = maps[None] if maps.ndim == 2 else maps
    if maps.ndim != 3 or maps.shape[1:] != (len(target), len(source)) or not maps.size:
        raise DataError(
            f"attention weights must have shape ({len(target)}, {len(source)}), a row for each target token, a column "
            f"for each source token (or a further axis for heads before it); got {np.asarray(weights).shape}"
        )
    if not np.isfinite(maps).all():
        raise DataError("the attention weights are not all finite numbers")
    wide, high = (min(max(0.32 * len(tokens), 1.6), 24.0) for tokens in (source, target))
    columns = min(len(maps), 4)
    lines = -(-len(maps) // columns)
    with drawing(columns * (wide + 0.9) + 0.9, lines * (high + 1.0), path) as figure:
        for place, one in enumerate(maps):
            axes = figure.add_subplot(lines, columns, place + 1)
            image = axes.imshow(one, cmap="Blues", vmin=0.0, vmax=max(1.0, float(maps.max())), aspect="auto")
            _label(axes.xaxis, source)
            for text, token in zip(axes.get_xticklabels(), source, strict=True):
                text.set_rotation(90 if len(token) > 2 else 0)  # neighbours must not overlap
            _label(axes.yaxis, target)
            axes.set_xlabel("source")
            axes.set_ylabel("target")
            if titles is not None:
                axes.set_title(titles[place], fontsize=9, parse_math=False)
        figure.colorbar(image, ax=figure.axes, label="weight", fraction=0.04)
    return Path(path)


def _label(axis: Any, tokens: Sequence[str]) -> None:
    # parse_math=False: a token with dollar signs is text, not a formula. A blank is made visible.
    visible = ["␣" if token == " " else token.replace("\n", "↵") for token in tokens]
    axis.set_ticks(range(len(tokens)), visible, parse_math=False, fontsize=9)


def _names(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _numeric(rows: Iterable[Row], name: str) -> bool:
    return any(_is_number(row.get(name)) for row in rows)


@contextmanager
def drawing(width: float, height: float, path: FilePath) -> Iterator[Any]:
    """An empty figure to draw in; at the end of the block it is written to `path`."""
    try:
        import matplotlib
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError(
            'pictures need matplotlib, which is not installed: pip install "gradproof[plot]"'
        ) from None
    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = ["DejaVu Sans", *[font for font in _CJK_FONTS if font in installed][:1]]
    kind = Path(path).suffix.lstrip(".") or "png"
    with matplotlib.rc_context({"font.family": fonts}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        try:
            with replacing(path) as temporary:
                figure.savefig(temporary, format=kind, dpi=150)
        except OSError as error:
            raise DataError(f"cannot draw {path}: {reason(error)}") from None
        except ValueError as error:  # an unknown file format
            raise DataError(f"cannot draw {path}: {error}") from None

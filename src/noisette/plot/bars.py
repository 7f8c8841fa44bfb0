"""Released numbers with their error bars: one line for each group, one panel for each number."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.plot.save import saved
from noisette.plot.style import GREY, INK, matplotlib_figure

__all__ = ["bars"]

_BLUE = "#0072B2"
_MOST, _ACROSS = 60, 3  # groups, panels beside each other


def bars(
    labels: Sequence[str],
    numbers: Mapping[str, tuple[Any, Any, Any]],
    *,
    note: str = "",
    path: str | Path | None = None,
) -> Any:
    """Draw numbers (value, low, high) of labelled groups and return the matplotlib Figure.

    >>> type(bars(["a", "b"], {"n": ([3, 5], [1, 3], [5, 7])})).__name__
    'Figure'
    """
    if not numbers or not labels:
        raise InputError("There is no number to draw: the answer has no groups or only keys.")
    if len(labels) > _MOST:
        raise InputError(f"At most {_MOST} groups can be told apart in a chart: ask for fewer with HAVING or LIMIT.")
    across = _across(len(numbers))
    down = math.ceil(len(numbers) / across)
    size = (1.8 + 2.9 * across, 0.5 + down * (1.0 + 0.34 * len(labels)))
    figure = matplotlib_figure()(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    for axes, (name, number) in zip(grid.flat, numbers.items(), strict=False):
        _panel(axes, name, *(np.asarray(part, dtype=float) for part in number))
    for axes in grid.flat[len(numbers) :]:
        axes.set_visible(False)
    grid[0][0].set_yticks(range(len(labels)), [_short(label) for label in labels])
    grid[0][0].set_ylim(len(labels) - 0.4, -0.6)
    figure.supxlabel(note, fontsize=10, color="#555555", x=0.01, ha="left")
    return saved(figure, path)


def _across(panels: int) -> int:
    """How many panels stand beside each other: at most three, and rows as even as can be.

    >>> [_across(n) for n in (1, 2, 3, 4, 5, 7)]
    [1, 2, 3, 2, 3, 3]
    """
    return 2 if panels == 4 else min(panels, _ACROSS)


def _short(label: str) -> str:
    return label if len(label) <= 32 else f"{label[:31]}…"


def _panel(axes: Any, name: str, value: Any, low: Any, high: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    rows = np.arange(len(value))
    ends = [np.where(np.isfinite(end), end, value) for end in (low, high)]
    axes.hlines(rows, *ends, color=_BLUE, linewidth=5, alpha=0.3)
    axes.plot(value, rows, "o", color=_BLUE, markersize=6)
    axes.set_title(_short(name), loc="left", fontsize=12, color=INK)
    if np.nanmin(ends[0], initial=0) < 0 < np.nanmax(ends[1], initial=0):
        axes.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
    axes.tick_params(labelsize=10, colors=INK)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)

"""Private numbers with their error bars beside the exact ones, which only a public table can show."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.plot.save import saved
from noisette.plot.style import GREY, INK, matplotlib_figure

__all__ = ["beside"]

_BLUE, _ORANGE = "#0072B2", "#D55E00"


def beside(
    names: Sequence[str],
    private: tuple[Any, Any, Any],
    plain: Sequence[float],
    *,
    note: str = "",
    path: str | Path | None = None,
) -> Any:
    """Draw private numbers (value, low, high) and plain ones by name, and return the matplotlib Figure.

    >>> type(beside(["age", "hours"], ([3.1, 2.0], [2.5, 1.4], [3.7, 2.6]), [2.9, 2.2])).__name__
    'Figure'
    """
    value, low, high = (np.asarray(part, dtype=float) for part in private)
    if not len(names) or {len(part) for part in (value, low, high, plain)} != {len(names)}:
        raise InputError("Give as many private and plain numbers as there are names.")
    figure = matplotlib_figure()(figsize=(7, 1.2 + 0.45 * len(names)), layout="constrained")
    axes, rows = figure.subplots(), np.arange(len(names))
    axes.hlines(rows, low, high, color=_BLUE, linewidth=6, alpha=0.3)
    axes.plot(value, rows, "o", color=_BLUE, markersize=7, label="private, with the noise's error bar")
    axes.plot(plain, rows, "x", color=_ORANGE, markersize=8, markeredgewidth=2, label="not private, all rows at once")
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set_yticks(rows, list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(labelsize=10, colors=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=10)
    figure.supxlabel(note, fontsize=10, color="#555555", x=0.01, ha="left")
    return saved(figure, path)

"""What charts share: their ink, axes as people read them, names of lines that do not overlap."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from noisette.errors import InputError

__all__ = ["GAP", "GREY", "INK", "apart", "matplotlib_figure", "name_lines", "plain_ticks"]

GREY, INK = "#8a8a8a", "#222222"
GAP = 0.062
"""Least distance of two names, as a part of the axes' height."""


def matplotlib_figure() -> Any:
    """Return matplotlib's Figure, or say how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("Charts need matplotlib: pip install 'noisette[plot]'.") from None
    return Figure


def plain_ticks(axes: Any, subs: Sequence[float] = (1.0,)) -> None:
    """Numbers as people write them on logarithmic axes, and a light grid."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=11, colors=INK)
    axes.grid(which="major", color="#e4e4e4", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def name_lines(axes: Any, ends: dict[str, tuple[float, float]], colours: Mapping[str, str]) -> None:
    """Write each line's name where it ends, moved apart where they would overlap."""
    low, high = (math.log(v) for v in axes.get_ylim())
    axes.set_ylim(math.exp(low), math.exp(high))
    order = sorted(ends, key=lambda name: ends[name][1])
    heights = apart([(math.log(ends[name][1]) - low) / (high - low) for name in order])
    for name, height in zip(order, heights, strict=True):
        axes.annotate(
            name, ends[name], xytext=(1.04, height), textcoords="axes fraction", color=colours[name], fontsize=12,
            va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colours[name], "linewidth": 0.7, "relpos": (0, 0.5), "shrinkB": 2},
        )  # fmt: skip


def apart(heights: Sequence[float]) -> list[float]:
    """Move increasing heights so that neighbours are at least a gap apart, each group about its own middle.

    >>> [round(h, 3) for h in apart([0.1, 0.5, 0.5])]
    [0.1, 0.469, 0.531]
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-1]) < _lowest(groups[-2]) + GAP * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_lowest(group) + GAP * i for group in groups for i in range(len(group))]


def _lowest(group: list[float]) -> float:
    return sum(group) / len(group) - GAP * (len(group) - 1) / 2

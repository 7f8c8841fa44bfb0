"""The error of mechanisms against epsilon: one line each on logarithmic axes, named where it ends."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from noisette.accuracy import Comparison
from noisette.errors import InputError
from noisette.plot.save import saved
from noisette.privacy import ZCDP, Approx

__all__ = ["error"]

# Okabe-Ito colours, told apart with every kind of colour vision; one each, whatever else is drawn.
_COLOURS = {
    "Geometric": "#0072B2",
    "Laplace": "#0072B2",
    "Gaussian": "#D55E00",
    "Staircase": "#CC79A7",
    "KNorm l2": "#E69F00",
    "KNorm l∞": "#009E73",
}
_DASHES = {"Staircase": (0, (5, 2)), "KNorm l2": (0, (1, 1.2))}  # told apart without colours, too
_GREY, _INK = "#8a8a8a", "#222222"
_MEANING = {"largest": "largest error of all answers", "half_width": "error of each", "sd": "standard deviation"}
_POINTS, _SPAN = 25, 16.0  # points on a line, from budget / 16 to 16 budgets
_GAP = 0.062  # least distance of two names, as a part of the axes' height


def error(comparison: Comparison, path: str | Path | None = None) -> Any:
    """Draw a comparison's errors against epsilon (rho under zCDP) and return the matplotlib Figure.

    With a path the chart is saved, as SVG, PNG or PDF by its ending. Notebooks show the figure by themselves.

    >>> from noisette.accuracy import compare
    >>> from noisette.privacy import sensitivity
    >>> type(error(compare(sensitivity.counts(20), 1, answers=20))).__name__
    'Figure'
    """
    figure_class = _matplotlib()
    figure = figure_class(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    budget = float(comparison.budget)
    budgets = [budget * _SPAN ** (2 * i / (_POINTS - 1) - 1) for i in range(_POINTS)]
    ends = {}
    for row in comparison.rows:
        errors = [e if e > 0 else math.nan for e in comparison.curve(row.name, budgets)]  # 0 has no logarithm
        style = {"color": _COLOURS[row.name], "linestyle": _DASHES.get(row.name, "-"), "linewidth": 2.2}
        axes.plot(budgets, errors, **style, solid_capstyle="round", zorder=3 if row.name in _DASHES else 2)
        axes.plot([budget], [getattr(row, comparison.by)], "o", color=style["color"], markersize=6, zorder=4)
        ends[row.name] = [(b, e) for b, e in zip(budgets, errors, strict=True) if e > 0][-1]
    axes.set_xlim(budgets[0], budgets[-1])
    _decorate(axes, comparison, budget)
    _name_lines(axes, ends, _COLOURS)
    return saved(figure, path)


def _matplotlib() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("Charts need matplotlib: pip install 'noisette[plot]'.") from None
    return Figure


def _decorate(axes: Any, comparison: Comparison, budget: float) -> None:
    task, zcdp = comparison.task, isinstance(comparison.guarantee, ZCDP)
    symbol = "ρ" if zcdp else "ε"
    delta = (
        f", δ = {float(comparison.guarantee.delta0):g}".replace("e-0", "e-")
        if isinstance(comparison.guarantee, Approx)
        else ""
    )
    level = "" if comparison.by == "sd" else f" ({100 * task.level:g} %)"
    axes.set(xscale="log", yscale="log")
    number = f"{task.answers:,} answers" if task.answers > 1 else "One answer"
    meaning = "error" if task.answers == 1 and comparison.by != "sd" else _MEANING[comparison.by]
    axes.set_title(f"{number}: {meaning}{level}{delta}", loc="left", fontsize=13, color=_INK)
    axes.set_xlabel(f"{symbol}, the privacy budget" + (" (zCDP)" if zcdp else ""), fontsize=12)
    axes.axvline(budget, color=_GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.annotate(f"{symbol} = {budget:g}", (budget, 0.02), xycoords=("data", "axes fraction"), xytext=(5, 2),
                  textcoords="offset points", fontsize=11, color="#555555", backgroundcolor="white")  # fmt: skip
    _plain_ticks(axes)


def _plain_ticks(axes: Any, subs: Sequence[float] = (1.0,)) -> None:
    """Numbers as people write them on logarithmic axes, and a light grid."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=11, colors=_INK)
    axes.grid(which="major", color="#e4e4e4", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _name_lines(axes: Any, ends: dict[str, tuple[float, float]], colours: Mapping[str, str]) -> None:
    """Write each line's name where it ends, moved apart where they would overlap."""
    low, high = (math.log(v) for v in axes.get_ylim())
    axes.set_ylim(math.exp(low), math.exp(high))
    order = sorted(ends, key=lambda name: ends[name][1])
    heights = _apart([(math.log(ends[name][1]) - low) / (high - low) for name in order])
    for name, height in zip(order, heights, strict=True):
        axes.annotate(
            name, ends[name], xytext=(1.04, height), textcoords="axes fraction", color=colours[name], fontsize=12,
            va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colours[name], "linewidth": 0.7, "relpos": (0, 0.5), "shrinkB": 2},
        )  # fmt: skip


def _apart(heights: Sequence[float]) -> list[float]:
    """Move increasing heights so that neighbours are at least a gap apart, each group about its own middle.

    >>> [round(h, 3) for h in _apart([0.1, 0.5, 0.5])]
    [0.1, 0.469, 0.531]
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-1]) < _lowest(groups[-2]) + _GAP * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_lowest(group) + _GAP * i for group in groups for i in range(len(group))]


def _lowest(group: list[float]) -> float:
    return sum(group) / len(group) - _GAP * (len(group) - 1) / 2

"""The error of mechanisms against epsilon: one line each on logarithmic axes, named where it ends."""

import math
from pathlib import Path
from typing import Any

from noisette.accuracy import Comparison
from noisette.plot.save import saved
from noisette.plot.style import GREY, INK, matplotlib_figure, name_lines, plain_ticks
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
_MEANING = {"largest": "largest error of all answers", "half_width": "error of each", "sd": "standard deviation"}
_POINTS, _SPAN = 25, 16.0  # points on a line, from budget / 16 to 16 budgets


def error(comparison: Comparison, path: str | Path | None = None) -> Any:
    """Draw a comparison's errors against epsilon (rho under zCDP) and return the matplotlib Figure.

    With a path the chart is saved, as SVG, PNG or PDF by its ending. Notebooks show the figure by themselves.

    >>> from noisette.accuracy import compare
    >>> from noisette.privacy import sensitivity
    >>> type(error(compare(sensitivity.counts(20), 1, answers=20))).__name__
    'Figure'
    """
    figure = matplotlib_figure()(figsize=(8, 4.8), layout="constrained")
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
    name_lines(axes, ends, _COLOURS)
    return saved(figure, path)


def _decorate(axes: Any, comparison: Comparison, budget: float) -> None:
    task, zcdp = comparison.task, isinstance(comparison.guarantee, ZCDP)
    symbol = "ρ" if zcdp else "ε"
    delta = (
        f", δ = {float(comparison.guarantee.delta):g}".replace("e-0", "e-")
        if isinstance(comparison.guarantee, Approx)
        else ""
    )
    level = "" if comparison.by == "sd" else f" ({100 * task.level:g} %)"
    axes.set(xscale="log", yscale="log")
    number = f"{task.answers:,} answers" if task.answers > 1 else "One answer"
    meaning = "error" if task.answers == 1 and comparison.by != "sd" else _MEANING[comparison.by]
    axes.set_title(f"{number}: {meaning}{level}{delta}", loc="left", fontsize=13, color=INK)
    axes.set_xlabel(f"{symbol}, the privacy budget" + (" (zCDP)" if zcdp else ""), fontsize=12)
    axes.axvline(budget, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.annotate(f"{symbol} = {budget:g}", (budget, 0.02), xycoords=("data", "axes fraction"), xytext=(5, 2),
                  textcoords="offset points", fontsize=11, color="#555555", backgroundcolor="white")  # fmt: skip
    plain_ticks(axes)

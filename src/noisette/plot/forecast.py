"""The error to expect of a question against what is spent on it: one line for each column of its answer."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from noisette.errors import InputError
from noisette.plot.save import saved
from noisette.plot.style import GREY, INK, matplotlib_figure, name_lines, plain_ticks

__all__ = ["forecast"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")


def forecast(
    budgets: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    now: float,
    symbol: str = "ε",
    note: str = "",
    path: str | Path | None = None,
) -> Any:
    """Draw half-widths against budgets on logarithmic axes, with a mark at the budget in question.

    A line ends where the error is 0, and has gaps where it is unknown.

    >>> type(forecast([0.1, 1.0], {"n": [30.0, 3.0]}, now=0.5)).__name__
    'Figure'
    """
    drawn = {name: [w if w > 0 else math.nan for w in widths] for name, widths in lines.items()}
    drawn = {name: widths for name, widths in drawn.items() if not all(map(math.isnan, widths))}
    if not drawn:
        raise InputError("No column of this question has an error that can be drawn: ask for a number.")
    figure = matplotlib_figure()(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(drawn)}
    for name, widths in drawn.items():
        axes.plot(budgets, widths, color=colours[name], linewidth=2.2, solid_capstyle="round")
        _mark(axes, budgets, widths, now, colours[name])
    axes.set(xscale="log", yscale="log", xlim=(budgets[0], budgets[-1]))
    axes.set_title(f"Half the width of the error bar{note}", loc="left", fontsize=13, color=INK)
    axes.set_xlabel(f"{symbol}, what is spent", fontsize=12)
    axes.axvline(now, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.annotate(f"{symbol} = {now:g}", (now, 0.02), xycoords=("data", "axes fraction"), xytext=(5, 2),
                  textcoords="offset points", fontsize=11, color="#555555", backgroundcolor="white")  # fmt: skip
    plain_ticks(axes)
    name_lines(axes, {name: _end(budgets, widths) for name, widths in drawn.items()}, colours)
    return saved(figure, path)


def _mark(axes: Any, budgets: Sequence[float], widths: Sequence[float], now: float, colour: str) -> None:
    """A dot on the line at the budget in question."""
    at = min(range(len(budgets)), key=lambda i: abs(math.log(budgets[i] / now)))
    if math.isclose(budgets[at], now, rel_tol=1e-3):
        axes.plot([now], [widths[at]], "o", color=colour, markersize=6, zorder=4)


def _end(budgets: Sequence[float], widths: Sequence[float]) -> tuple[float, float]:
    """Where a line ends: the last budget at which its error is above 0."""
    return [(b, w) for b, w in zip(budgets, widths, strict=True) if not math.isnan(w)][-1]

"""What many releases cost together: epsilon against their number, one line for each theorem and for two mechanisms."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, positive, whole
from noisette.exact.rational import sqrt_up
from noisette.mechanisms import Laplace
from noisette.plot.save import saved
from noisette.plot.style import GREY, INK, matplotlib_figure, name_lines, plain_ticks
from noisette.privacy import Profile, theorems

__all__ = ["composition"]

# Okabe-Ito colours, told apart with every kind of colour vision, and dashes; mechanisms as in `error`.
_STYLES: dict[str, tuple[str, Any]] = {
    "basic": (GREY, "-"),
    "advanced": ("#E69F00", "-"),
    "zCDP": ("#009E73", "-"),
    "optimal": ("#CC79A7", (0, (5, 2))),
    "Laplace": ("#0072B2", "-"),
    "Gaussian, same sd": ("#D55E00", "-"),
}
_POINTS, _MOST = 25, 10**6


def composition(
    epsilon: Number = "0.1", delta: Number = "1e-6", up_to: int = 1000, path: str | Path | None = None
) -> Any:
    """Draw the epsilon of k releases at delta, each epsilon-DP, against k, and return the matplotlib Figure.

    `basic`, `advanced`, `zCDP` and `optimal` hold whatever the mechanisms are; Laplace noise of that epsilon is known
    better, and Gaussian noise of the same standard deviation has no epsilon of its own to add up. With a path the
    chart is saved, as SVG, PNG or PDF by its ending.

    >>> type(composition("1/10", "1e-6", up_to=4)).__name__
    'Figure'
    """
    figure_class = matplotlib_figure()
    e, d, most = positive(epsilon, "epsilon"), fraction(delta, "delta"), whole(up_to, "up_to", least=2)
    if not 0 < d < 1:
        raise InputError("delta must lie strictly between 0 and 1: a usual one is '1e-6'.")
    if most > _MOST:
        raise InputError(f"up_to must be at most {_MOST:,}: the lines hardly bend any more.")
    counts = sorted({round(most ** (i / (_POINTS - 1))) for i in range(_POINTS)})
    lines = {name: [_drawable(cost(k)) for k in counts] for name, cost in _costs(e, d).items()}
    figure = figure_class(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for name, values in lines.items():
        colour, dashes = _STYLES[name]
        axes.plot(counts, values, color=colour, linestyle=dashes, linewidth=2.2, solid_capstyle="round")
    _decorate(axes, e, d, most)
    name_lines(
        axes,
        {name: (most, values[-1]) for name, values in lines.items() if values[-1] > 0},
        {name: colour for name, (colour, _) in _STYLES.items()},
    )
    return saved(figure, path)


def _drawable(value: float) -> float:
    return value if 0 < value < math.inf else math.nan  # neither has a place on a logarithmic axis


def _costs(e: Fraction, d: Fraction) -> dict[str, Callable[[int], float]]:
    """What k releases cost, by the name of a line."""
    laplace, gaussian = Laplace(1 / e).guarantee(1), Profile.gaussian(sqrt_up(e**2 / 2))
    return {
        "basic": lambda k: theorems.basic(e, 0, k)[0],
        "advanced": lambda k: theorems.advanced(e, k, d)[0],
        "zCDP": lambda k: theorems.concentrated(e, k, d),
        "Laplace": lambda k: (laplace * k).epsilon_at(d),
        "Gaussian, same sd": lambda k: (gaussian * k).epsilon_at(d),
        "optimal": lambda k: theorems.optimal(e, 0, k, d),
    }


def _decorate(axes: Any, e: Fraction, d: Fraction, most: int) -> None:
    small = f"{float(d):g}".replace("e-0", "e-")
    axes.set(xscale="log", yscale="log", xlim=(1, most))
    axes.set_title(
        f"ε of k releases together, each {float(e):g}-DP, at δ = {small}", loc="left", fontsize=13, color=INK
    )
    axes.set_xlabel("k, the number of releases", fontsize=12)
    plain_ticks(axes, (1.0,) if most > 50 else (1.0, 2.0, 5.0))

"""Errors of mechanisms against epsilon, and what many releases cost together."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

from noisette.charts.chart import Chart
from noisette.charts.curves import curves
from noisette.charts.theme import BLUE, GOLD, GREEN, ORANGE, PURPLE, SOFT
from noisette.errors import InputError
from noisette.exact.number import Number, fraction, positive, whole
from noisette.exact.rational import sqrt_up
from noisette.mechanisms import Laplace
from noisette.privacy import ZCDP, Approx, Profile, theorems

__all__ = ["composition", "error"]

_MEANING = {"largest": "largest error of all answers", "half_width": "error of each", "sd": "standard deviation"}
_ERRORS, _SPAN = 25, 16.0  # points on a line, from budget / 16 to 16 budgets
_COSTS = {
    "basic": SOFT, "advanced": GOLD, "zCDP": GREEN, "optimal": PURPLE, "Laplace": BLUE, "Gaussian, same sd": ORANGE,
}  # fmt: skip
_POINTS, _MOST = 25, 10**6


class Compared(Protocol):
    """What is drawn of a comparison (`noisette.accuracy.compare`)."""

    @property
    def rows(self) -> Sequence[Any]:
        """A row for each mechanism, with its `name`."""
        ...

    @property
    def by(self) -> Any:
        """Which error is drawn."""
        ...

    @property
    def task(self) -> Any:
        """How many `answers`, and the `level`."""
        ...

    @property
    def guarantee(self) -> Any:
        """What all of them keep."""
        ...

    @property
    def budget(self) -> Fraction:
        """Its epsilon, or its rho."""
        ...

    def curve(self, name: str, budgets: list[float]) -> list[float]:
        """Return the error of one mechanism at other budgets."""
        ...


def error(comparison: Compared) -> Chart:
    """Draw a comparison's errors against epsilon (rho under zCDP).

    >>> from noisette.accuracy import compare
    >>> from noisette.privacy import sensitivity
    >>> error(compare(sensitivity.counts(20), 1, answers=20))
    Chart('20 answers: largest error of all answers (95 %)')
    """
    budget, task = float(comparison.budget), comparison.task
    budgets = [budget * _SPAN ** (2 * i / (_ERRORS - 1) - 1) for i in range(_ERRORS)]
    lines = {row.name: list(zip(budgets, comparison.curve(row.name, budgets), strict=True)) for row in comparison.rows}
    symbol, promise = ("ρ", "zCDP") if isinstance(comparison.guarantee, ZCDP) else ("ε", "")
    if isinstance(comparison.guarantee, Approx):
        promise = f"δ = {_short(comparison.guarantee.delta)}"
    level = "" if comparison.by == "sd" else f" ({100 * task.level:g} %)"
    number = f"{task.answers:,} answers" if task.answers > 1 else "One answer"
    meaning = "error" if task.answers == 1 and comparison.by != "sd" else _MEANING[comparison.by]
    return curves(
        lines, x=f"{symbol}, the privacy budget", y=meaning, title=f"{number}: {meaning}{level}", note=promise,
        mark=(budget, f"{symbol} = {budget:g}"),
    )  # fmt: skip


def composition(epsilon: Number = "0.1", delta: Number = "1e-6", up_to: int = 1000) -> Chart:
    """Draw the epsilon of k releases at delta, each epsilon-DP, against k.

    `basic`, `advanced`, `zCDP` and `optimal` hold whatever the mechanisms are; Laplace noise of that epsilon is known
    better, and Gaussian noise of the same standard deviation has no epsilon of its own to add up.

    >>> composition("1/10", "1e-6", up_to=4)
    Chart('ε of k releases together')
    """
    e, d, most = positive(epsilon, "epsilon"), fraction(delta, "delta"), whole(up_to, "up_to", least=2)
    if not 0 < d < 1:
        raise InputError("delta must lie strictly between 0 and 1: a usual one is '1e-6'.")
    if most > _MOST:
        raise InputError(f"up_to must be at most {_MOST:,}: the lines hardly bend any more.")
    counts = sorted({round(most ** (i / (_POINTS - 1))) for i in range(_POINTS)})
    lines = {name: [(float(k), float(cost(k))) for k in counts] for name, cost in _costs(e, d).items()}
    return curves(
        lines, x="k, the number of releases", y="ε of all together", title="ε of k releases together", colours=_COSTS,
        note=f"each {float(e):g}-DP, at δ = {_short(d)}",
    )  # fmt: skip


def _short(delta: Fraction) -> str:
    return f"{float(delta):g}".replace("e-0", "e-")


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

"""Which mechanism errs least on a median, at which number of records: nothing is released.

The table is made up from a stated distribution, record i of n at its quantile (i - 1/2)/n, so that errors depend on the
distribution alone. What smooth noise needs to know beforehand, beta, is chosen for that table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import Number, positive, whole
from noisette.mechanisms.geometric import Geometric
from noisette.mechanisms.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.quantile import Quantile
from noisette.mechanisms.smooth import Smooth
from noisette.mechanisms.smooth_bounds import Order
from noisette.privacy import Approx, Neighbours, Pure
from noisette.text import as_html, as_text

__all__ = ["Medians", "compare_medians"]


@dataclass(frozen=True)
class Medians:
    """Errors of a median at one guarantee and level, by number of records and by mechanism."""

    epsilon: Fraction
    delta: Fraction
    level: float
    errors: Mapping[int, Mapping[str, float]]

    def best(self, n: int) -> str:
        """Return the mechanism with the least error for n records; the first of several."""
        return min(self.errors[n], key=lambda name: self.errors[n][name])

    @property
    def curves(self) -> dict[str, list[tuple[float, float]]]:
        """The error of each mechanism against n, as `noisette.report.lines` draws it."""
        names = next(iter(self.errors.values()))
        return {name: [(float(n), row[name]) for n, row in self.errors.items()] for name in names}

    @property
    def _cells(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        title = f"error of a median at {100 * self.level:g} %, epsilon = {self.epsilon}"
        rows = [[f"{n:,}", *(f"{error:,.0f}" for error in row.values())] for n, row in self.errors.items()]
        return title, ["records", *self.curves], rows, [f"smooth, Laplace: delta = {float(self.delta):g}"]

    def __str__(self) -> str:
        return as_text(*self._cells)

    def _repr_html_(self) -> str:
        return as_html(*self._cells)


def compare_medians(
    at: Callable[[float], float],
    *,
    low: int,
    high: int,
    sizes: Sequence[int] = (10, 100, 1000, 10_000),
    epsilon: Number = 1,
    delta: Number = "1e-6",
    level: float = 0.95,
) -> Medians:
    """Return the errors for a distribution, given by its quantiles `at(p)`, 0 < p < 1; records are replaced.

    >>> compare_medians(lambda p: 1000 * p, low=0, high=1000, sizes=[100]).best(100)
    'inverse sensitivity'
    """
    statistic = Order("1/2", low, high, neighbours=Neighbours.REPLACE)
    e, d = positive(epsilon, "epsilon"), positive(delta, "delta")
    if not 0 < level < 1:
        raise InputError("level must lie strictly between 0 and 1: a usual one is 0.95.")
    errors = {}
    for n in sizes:
        table = [round(at((i + 0.5) / n)) for i in range(whole(n, "sizes"))]
        errors[n] = {name: make(table, statistic, e, d, level) for name, make in _KINDS.items()}
    return Medians(e, d, level, errors)


def _inverse(table: list[int], statistic: Order, e: Fraction, d: Fraction, level: float) -> float:
    return InverseSensitivity.calibrated(Pure(e), statistic=statistic).half_width(table, level)


def _quantile(table: list[int], statistic: Order, e: Fraction, d: Fraction, level: float) -> float:
    cells = statistic.furthest + 1
    m = Quantile(e, q=statistic.q, cells=cells, groups=1, neighbours=Neighbours.REPLACE)
    read = statistic.read(table)
    law = m.pmf(np.arange(cells), np.bincount(read[1:-1] - statistic.low, minlength=cells))
    off = np.abs(np.arange(cells) - (statistic.value(read) - statistic.low))
    return float(np.searchsorted(np.cumsum(np.bincount(off, law)), level))


def _smooth(noise: Any) -> Callable[..., float]:
    def error(table: list[int], statistic: Order, e: Fraction, d: Fraction, level: float) -> float:
        promise = Approx(e, d) if noise == "laplace" else Pure(e)
        m = Smooth.calibrated(promise, statistic=statistic, noise=noise, like=table)
        return m.half_width(table, level)

    return error


def _global(table: list[int], statistic: Order, e: Fraction, d: Fraction, level: float) -> float:
    return min(Geometric(statistic.furthest / e).interval(level), float(statistic.furthest))


_KINDS: dict[str, Callable[..., float]] = {
    "inverse sensitivity": _inverse,
    "Quantile": _quantile,
    "smooth, Student": _smooth("student"),
    "smooth, Cauchy": _smooth("cauchy"),
    "smooth, Laplace": _smooth("laplace"),
    "global sensitivity": _global,
}

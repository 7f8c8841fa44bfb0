"""Which mechanism errs least on a median, at which number of records: nothing is released.

The table is made up from a stated distribution, record i of n at its quantile (i - 1/2)/n, so that errors depend on the
distribution alone. What smooth noise needs to know beforehand, beta, is chosen for that table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from noisette.exact.number import Number, level_of, positive, whole
from noisette.mechanisms.additive.gaussian import Gaussian
from noisette.mechanisms.additive.geometric import Geometric
from noisette.mechanisms.quantiles.quantile import Quantile
from noisette.mechanisms.smooth.admissible import Noise
from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth.order import Order
from noisette.mechanisms.smooth.smooth import Smooth
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure
from noisette.privacy.sensitivity import histogram
from noisette.text import as_html, as_text

__all__ = ["Medians", "compare_medians"]


@dataclass(frozen=True)
class Medians:
    """Errors of a median at one guarantee and level, by number of records and by mechanism."""

    epsilon: Fraction
    delta: Fraction
    level: float
    errors: Mapping[int, Mapping[str, float]]
    rho: Fraction | None = None

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
        spent = f"epsilon = {self.epsilon}" if self.rho is None else f"rho = {self.rho}"
        title = f"error of a median at {100 * self.level:g} %, {spent}"
        rows = [[f"{n:,}", *(f"{error:,.0f}" for error in row.values())] for n, row in self.errors.items()]
        notes = [f"smooth, Laplace: delta = {float(self.delta):g}"] if self.rho is None else []
        return title, ["records", *self.curves], rows, notes

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
    rho: Number | None = None,
    level: float = 0.95,
) -> Medians:
    """Return the errors for a distribution, given by its quantiles `at(p)`, 0 < p < 1; records are replaced.

    With a `rho` all of them keep that zCDP guarantee instead of an epsilon.

    >>> compare_medians(lambda p: 1000 * p, low=0, high=1000, sizes=[100]).best(100)
    'inverse sensitivity'
    >>> errors = compare_medians(lambda p: 1000 * p, low=0, high=1000, sizes=[100], rho="1/2").errors[100]
    >>> errors["inverse sensitivity"] < errors["smooth, log-normal"] < errors["smooth, Student"]
    True
    """
    statistic = Order("1/2", low, high, neighbours=Neighbours.REPLACE)
    e, d = positive(epsilon, "epsilon"), positive(delta, "delta")
    r = None if rho is None else positive(rho, "rho")
    level_of(level)
    kinds = _pure_kinds(statistic, e, d) if r is None else _concentrated_kinds(statistic, ZCDP(r))
    errors = {}
    for n in sizes:
        table = [round(at((i + 0.5) / n)) for i in range(whole(n, "sizes"))]
        errors[n] = {name: error(table, level) for name, error in kinds.items()}
    return Medians(e, d, level, errors, r)


Errors = Callable[[list[int], float], float]
"""The error of a mechanism on a table at a level."""


def _pure_kinds(statistic: Order, e: Fraction, d: Fraction) -> dict[str, Errors]:
    noise = Geometric.calibrated(Pure(e), statistic.furthest)
    return {
        "inverse sensitivity": _inverse(statistic, Pure(e)),
        "Quantile": _quantile(statistic, Pure(e)),
        "smooth, Student": _smooth(statistic, Pure(e), "student"),
        "smooth, Cauchy": _smooth(statistic, Pure(e), "cauchy"),
        "smooth, Laplace": _smooth(statistic, Approx(e, d), "laplace"),
        "global sensitivity": lambda table, level: min(noise.interval(level), float(statistic.furthest)),
    }


def _concentrated_kinds(statistic: Order, promise: ZCDP) -> dict[str, Errors]:
    noise = Gaussian.calibrated(promise, statistic.furthest, grid=1)
    return {
        "inverse sensitivity": _inverse(statistic, promise),
        "Quantile": _quantile(statistic, promise),
        "smooth, log-normal": _smooth(statistic, promise, "log-normal"),
        "smooth, Student": _smooth(statistic, promise, "student"),
        "smooth, Cauchy": _smooth(statistic, promise, "cauchy"),
        "global sensitivity": lambda table, level: min(noise.interval(level), float(statistic.furthest)),
    }


def _inverse(statistic: Order, promise: Promise) -> Errors:
    return InverseSensitivity.calibrated(promise, statistic=statistic).half_width


def _quantile(statistic: Order, promise: Promise) -> Errors:
    cells = statistic.furthest + 1
    one = histogram(neighbours=Neighbours.REPLACE)
    m = Quantile.calibrated(promise, one, q=statistic.q, cells=cells, groups=1)

    def error(table: list[int], level: float) -> float:
        read = statistic.read(table)
        law = m.pmf(np.arange(cells), np.bincount(read[1:-1] - statistic.low, minlength=cells))
        off = np.abs(np.arange(cells) - (statistic.value(read) - statistic.low))
        return float(np.searchsorted(np.cumsum(np.bincount(off, law)), level))

    return error


def _smooth(statistic: Order, promise: Promise, noise: Noise) -> Errors:
    def error(table: list[int], level: float) -> float:
        m = Smooth.calibrated(promise, statistic=statistic, noise=noise, like=table)
        return m.half_width(table, level)

    return error

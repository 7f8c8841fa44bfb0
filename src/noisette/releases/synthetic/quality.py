"""How far tables of the rows may be from the data, from released numbers alone.

Errors are shares of the rows: half the l1 distance over the number of rows, that is total variation. For a table that
was measured as y = M(D) + noise, with probability 1 - beta

    |M(rows) - M(D)|_1 <= |M(rows) - y|_1 + sigma (n sqrt(2/pi) + sqrt(2 n ln 1/beta)),

since the l1 norm of n Gaussians is a sqrt(n)-Lipschitz function of them; for Laplace noise it is Cantelli's inequality,
sigma (n + sqrt(n (1 - beta)/beta)). For one that was not, the last pick says that
its score was at most that of the pair picked plus scale (ln m + ln 1/beta), and the score picked is bounded from its
own measurement (each at beta/2). The scores themselves are never released: the exponential mechanism pays for an index.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisette.releases.synthetic.coarsening import Floats, noise_l1
from noisette.releases.synthetic.rake import Fit, LastPick
from noisette.releases.synthetic.tables import Pair, all_pairs, pair_counts

__all__ = ["TableQuality", "qualities"]


@dataclass(frozen=True)
class TableQuality:
    """The error of one table of the rows: `expected`, and `bound` at the level of the answer; None if nothing is known.

    `cells` of the table as it was measured · `fit` how far the rows are from the measured table · `merged` how many
    values of its columns share a bin.
    """

    columns: tuple[str, ...]
    measured: bool
    cells: int
    merged: int
    fit: float | None
    expected: float | None
    bound: float | None

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "columns": list(self.columns)}


@dataclass(frozen=True)
class _Bar:
    """How far noise may go: what its l1 norm exceeds with probability at most beta."""

    beta: float
    gaussian: bool

    def noise(self, sigma: float, cells: int) -> float:
        if self.gaussian:
            return noise_l1(sigma, cells) + sigma * math.sqrt(2 * cells * math.log(1 / self.beta))
        return sigma * (cells + math.sqrt(cells * (1 - self.beta) / self.beta))


def qualities(fit: Fit, names: Sequence[str], level: float) -> list[TableQuality]:
    """The one-way tables, then all pairs."""
    bar, each = _Bar(1 - level, fit.gaussian), fit.total / fit.rows
    merged = [one.merged for one in fit.coarse]
    found = []
    for i, name in enumerate(names):
        rows = np.asarray(np.bincount(fit.codes[i], minlength=len(fit.noisy[i])) * each, float)
        numbers = _measured(rows, fit.noisy[i], fit.sigmas[i], bar, fit.total)
        found.append(TableQuality((name,), True, len(rows), 0, *numbers))
    for pair, shown in _pairs(fit, bar):
        i, j = pair
        cells = fit.coarse[i].bins * fit.coarse[j].bins
        measured, numbers = shown
        found.append(TableQuality((names[i], names[j]), measured, cells, merged[i] + merged[j], *numbers))
    return found


Numbers = tuple[float | None, float | None, float | None]


def _pairs(fit: Fit, bar: _Bar) -> Iterator[tuple[Pair, tuple[bool, Numbers]]]:
    bins = [one.bin_of[codes] for one, codes in zip(fit.coarse, fit.codes, strict=True)]
    known = {one.pair: one for one in fit.measured}
    for i, j in all_pairs(len(bins)):
        counts = pair_counts(bins[i], bins[j], (fit.coarse[i].bins, fit.coarse[j].bins))
        rows = np.asarray(counts * (fit.total / fit.rows), float)
        if (i, j) in known:
            one = known[i, j]
            yield (i, j), (True, _measured(rows, one.y, one.sigma, bar, fit.total))
        else:
            yield (i, j), (False, _passed_over(rows, (i, j), fit, bar))


def _measured(rows: Floats, y: Floats, sigma: float, bar: _Bar, count: float) -> Numbers:
    apart = float(np.abs(rows - y).sum())
    return _shares(apart, noise_l1(sigma, y.size), apart + bar.noise(sigma, y.size), count)


def _passed_over(rows: Floats, pair: Pair, fit: Fit, bar: _Bar) -> Numbers:
    if fit.last is None or pair not in fit.last.models:
        return None, None, None
    model = fit.last.models[pair]
    moved = float(np.abs(rows - model).sum())
    hidden = noise_l1(fit.last.sigma, model.size)
    half = _Bar(bar.beta / 2, bar.gaussian)
    candidates = len(fit.last.models) + 1
    most = hidden + _winner(fit, fit.last, half) + fit.last.rows_per_log * math.log(candidates / half.beta)
    return _shares(None, min(hidden, most) + moved, most + moved, fit.total)


def _winner(fit: Fit, last: LastPick, bar: _Bar) -> float:
    """At most how far the table that was picked last was from its model, beyond what noise of its size hides."""
    y, cells = fit.measured[-1].y, last.picked.size
    return float(np.abs(y - last.picked).sum()) + bar.noise(last.sigma, cells) - noise_l1(last.sigma, cells)


def _shares(fit: float | None, expected: float, bound: float, count: float) -> Numbers:
    """As shares of the rows, at most 1."""
    shares = [None if one is None else min(1.0, max(0.0, one) / (2 * count)) for one in (fit, expected, bound)]
    return shares[0], shares[1], shares[2]

"""One-way tables after noise, and the coarser domain on which pairs are measured.

The noise of a pair grows with its cells, and what a bin hides shrinks with its width, so about (n/sigma)^(1/3) bins of
an ordered attribute err least in l1: sigma K^2 + c n/K is smallest there. Values of a nominal attribute keep a bin of
their own if their mass stands out from the noise of a pair; the others are merged. Inside a bin, values are
independent of everything else, with the shares of the released one-way table. All of this reads released numbers only.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.releases.synthetic.tables import Attribute, Coarse

__all__ = ["coarsened", "nonnegative", "one_ways", "total"]

Floats: TypeAlias = NDArray[np.float64]

_SMOOTH = 8  # Haar coefficients of a block
_BINS = 1.4  # times (n/sigma)^(1/3)
_CLEAR = 3.0  # deviations of the one-way noise by which a bin stands out
_RARE = 10.0  # deviations of a pair's noise below which a nominal value is merged


def total(tables: Sequence[Floats], sigmas: Sequence[float]) -> float:
    """The number of rows that one-way tables agree on: the mean of their totals, weighed by their precision."""
    weights = np.array([1 / (len(table) * sigma**2) for table, sigma in zip(tables, sigmas, strict=True)])
    return max(1.0, float(weights @ [table.sum() for table in tables] / weights.sum()))


def nonnegative(y: Floats, mass: float) -> Floats:
    """The nearest numbers from 0 on that add up to a mass.

    >>> nonnegative(np.array([5.0, -1.0, 2.0]), 6.0).tolist()
    [4.5, 0.0, 1.5]
    """
    falling = np.sort(y, axis=None)[::-1]
    excess = (np.cumsum(falling) - mass) / np.arange(1, falling.size + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(y - excess[last], 0.0))


def one_ways(
    attributes: Sequence[Attribute], tables: Sequence[Floats], sigmas: Sequence[float]
) -> tuple[float, list[Floats]]:
    """The number of rows, and each one-way table as numbers from 0 on that add up to it."""
    rows = total(tables, sigmas)
    smooth = [smoothed(a, y, sigma) for a, y, sigma in zip(attributes, tables, sigmas, strict=True)]
    return rows, [nonnegative(table, rows) for table in smooth]


def smoothed(attribute: Attribute, y: Floats, sigma: float) -> Floats:
    """A noisy one-way table; that of an ordered attribute without what its noise alone explains.

    Blocks of Haar coefficients keep max(0, 1 - m sigma^2/|c|^2) of themselves (James and Stein's estimate, positive
    part); where blocks begin is averaged out.   [Cai 1999; Coifman-Donoho 1995]
    """
    values = len(y) - attribute.nullable
    if not attribute.ordered or values < 4:
        return y
    size = 1 << (values + _SMOOTH - 1).bit_length()
    mirrored = np.concatenate([y[:values], y[:values][::-1]])
    shifted = [
        _denoised(mirrored[(np.arange(size) - shift) % (2 * values)], sigma)[shift : shift + values]
        for shift in range(_SMOOTH)
    ]
    return np.concatenate([np.mean(shifted, axis=0), y[values:]])


def _denoised(level: Floats, sigma: float) -> Floats:
    details = []
    while len(level) > 1:
        even, odd = level[::2], level[1::2]
        details.append(_shrunk_blocks((even - odd) / math.sqrt(2), sigma))
        level = (even + odd) / math.sqrt(2)
    for detail in reversed(details):
        level = np.column_stack([level + detail, level - detail]).ravel() / math.sqrt(2)
    return level


def _shrunk_blocks(c: Floats, sigma: float) -> Floats:
    width = min(len(c), _SMOOTH)
    blocks = c.reshape(-1, width)
    energy = (blocks**2).sum(axis=1)
    kept = np.maximum(0.0, energy - width * sigma**2) / np.where(energy > 0, energy, 1.0)
    return np.asarray((blocks * kept[:, None]).ravel())


def coarsened(attribute: Attribute, p: Floats, sigma: float, pair_sigma: float) -> Coarse:
    """The bins of an attribute, from its released one-way table `p` with noise `sigma`."""
    rows = float(p.sum())
    if attribute.ordered:
        return _runs(attribute, p, max(rows / bins_for(rows, pair_sigma), _CLEAR * sigma))
    return _merged(p, max(_RARE * pair_sigma, _CLEAR * sigma))


def bins_for(rows: float, sigma: float) -> float:
    """How many bins of an ordered attribute err least where a pair's cells have noise sigma."""
    return max(2.0, _BINS * math.cbrt(rows / sigma))


def _runs(attribute: Attribute, p: Floats, least: float) -> Coarse:
    """Runs of values, closed once they hold the least mass; a heavier value, and NULL, is a bin of its own."""
    bin_of, current, held = np.zeros(len(p), np.int64), 0, 0.0
    last = len(p) - attribute.nullable
    for code in range(last):
        if held and p[code] >= least:
            current, held = current + 1, 0.0
        bin_of[code] = current
        held += p[code]
        if held >= least and code + 1 < last:
            current, held = current + 1, 0.0
    if current and held < least / 2 and last > 1:  # too little is left for a bin
        bin_of[:last][bin_of[:last] == current] = current - 1
        current -= 1
    if attribute.nullable:
        current += bool(last) and p[-1] >= least / 2
        bin_of[-1] = current
    return Coarse(bin_of, int(current) + 1)


def _merged(p: Floats, least: float) -> Coarse:
    """Values with the least mass keep a bin each; the others share one, unless only one of them is left."""
    kept = p >= least
    if (~kept).sum() <= 1:
        kept[:] = True
    bin_of = np.where(kept, np.cumsum(kept) - 1, kept.sum())
    return Coarse(bin_of.astype(np.int64), int(bin_of.max()) + 1)


def coarse_mass(p: Floats, coarse: Coarse) -> Floats:
    """The mass of each bin."""
    return np.asarray(np.bincount(coarse.bin_of, weights=p, minlength=coarse.bins), float)


def noise_l1(sigma: float, cells: float) -> float:
    """The mean l1 length of Gaussian noise on some cells."""
    return math.sqrt(2 / math.pi) * sigma * cells

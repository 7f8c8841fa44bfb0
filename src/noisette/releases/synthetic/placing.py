"""Rows from weighted particles, placed by quota: independent draws alone would cost as much error as the noise."""

from collections.abc import Sequence

import numpy as np

from noisette.exact.random import Random
from noisette.releases.synthetic.coarsening import Floats
from noisette.releases.synthetic.particles import Particles, uniforms
from noisette.releases.synthetic.tables import Coarse, Counts

__all__ = ["fine", "placed"]

_BLOCK = 16  # neighbouring rows that share the values of a bin evenly


def placed(
    particles: Particles, rows: int, singles: Sequence[Floats], coarse: Sequence[Coarse], rng: Random
) -> list[Counts]:
    """Codes of that many rows, in random order.

    Particles are sorted by all their bins and taken at even steps of their weight (systematic resampling), so similar
    ones share their rounding. Inside a bin the codes have their shares of the one-way table, dealt evenly to rows that
    stand beside each other; where a rule restricts rows, particles have codes already.
    """
    x, w = particles.x, particles.w
    order = np.lexsort([x[i] for i in sorted(range(len(x)), key=lambda i: -coarse[i].bins)])
    reached = np.cumsum(w[order])
    at = (np.arange(rows) + float(uniforms(1, rng)[0])) * (reached[-1] / rows)
    taken = order[np.minimum(np.searchsorted(reached, at, side="right"), len(w) - 1)]
    if particles.codes:
        found = [codes[taken] for codes in particles.codes]
    else:
        found = [fine(x[i][taken], singles[i], coarse[i], rng) for i in range(len(x))]
    shuffled = np.argsort(rng.words(rows, np.uint64))
    return [codes[shuffled] for codes in found]


def fine(bins: Counts, p: Floats, coarse: Coarse, rng: Random) -> Counts:
    """A code for each row: quotas of the codes in its bin, dealt evenly along the rows."""
    codes = np.zeros(len(bins), np.int64)
    order = np.argsort(bins.astype(np.uint32), kind="stable")
    starts = np.searchsorted(bins[order], np.arange(coarse.bins + 1))
    inside = np.argsort(coarse.bin_of, kind="stable")
    first = np.searchsorted(coarse.bin_of[inside], np.arange(coarse.bins + 1))
    for value in range(coarse.bins):
        here, known = order[starts[value] : starts[value + 1]], inside[first[value] : first[value + 1]]
        codes[here] = known[_dealt(p[known], len(here), rng)] if len(known) > 1 else known[0]
    return codes


def _dealt(p: Floats, count: int, rng: Random) -> Counts:
    """Places in p with their quotas: each block of neighbours gets places spread over all of p, in random order.

    Ranks 0, 1, 2, … are cut into as many strata as a block has rows; each block takes one rank of each stratum.
    """
    blocks = -(-count // _BLOCK)
    within = rng.words(blocks * _BLOCK, np.uint32).reshape(-1, _BLOCK).argsort(axis=1)
    turn = np.argsort(rng.words(blocks, np.uint64))
    rank = (within * blocks + turn[:, None]).ravel()[:count]
    shares = np.cumsum(p) / p.sum() if p.sum() > 0 else np.arange(1, len(p) + 1) / len(p)
    places = np.searchsorted(shares, (rank + float(uniforms(1, rng)[0])) / max(1, blocks * _BLOCK), side="right")
    return np.minimum(places, len(p) - 1)

"""Particles: weighted rows of coarse codes, drawn from a measured forest and raked to measured tables.

Raking multiplies each weight by target/current of its cell, table after table: iterative proportional fitting, whose
limit is the law nearest to the particles' own (in Kullback-Leibler divergence) among those with the measured tables.
[Deming-Stephan 1940, Csiszar 1975]   Particles that are drawn independently would collapse on a few; those of a forest
do not. Everything here reads released numbers only.

Vocabulary: `x` bins, one array an attribute · `w` weights · `y` a measured table · `cells` the cell of each particle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.releases.synthetic.coarsening import Floats, nonnegative
from noisette.releases.synthetic.tables import Coarse, Counts, Pair

__all__ = ["Allowed", "Measured", "Particles", "drawn", "shrunk", "uniforms"]

Allowed: TypeAlias = Callable[[list[Counts]], NDArray[np.bool_]]

_FARTHEST = 8.0  # by which a weight moves in one step: cells with few particles must not explode
_APART = 20  # one of that many particles is drawn independently


@dataclass(frozen=True)
class Measured:
    """A pair of attributes with its measured table and the deviation of its noise."""

    pair: Pair
    y: Floats
    sigma: float


@dataclass
class Particles:
    """Weighted rows of coarse codes; `w` moves as tables are measured; `codes` are there where a rule needs them."""

    x: list[Counts]
    bins: tuple[int, ...]
    w: Floats
    targets: dict[Pair, tuple[Counts, Measured, Floats]] = field(default_factory=dict)
    codes: list[Counts] = field(default_factory=list)

    def table(self, i: int, j: int) -> Floats:
        """The weighted counts of a pair."""
        found = np.bincount(self._cells(i, j), weights=self.w, minlength=self.bins[i] * self.bins[j])
        return np.asarray(found, float).reshape(self.bins[i], self.bins[j])

    def _cells(self, i: int, j: int) -> Counts:
        known = self.targets.get((i, j))
        return self._new_cells(i, j) if known is None else known[0]

    def _new_cells(self, i: int, j: int) -> Counts:
        return self.x[i] * self.bins[j] + self.x[j]

    def aim_at(self, one: Measured, model: Floats) -> None:
        """Rake to a measured table from now on; `model` is what it is drawn towards."""
        self.targets[one.pair] = self._cells(*one.pair), one, model

    def restrict(self, codes: list[Counts], coarse: Sequence[Coarse], allowed: Allowed, rng: Random) -> None:
        """Give particles codes, and those that a rule does not allow no weight.

        If it allows none of them, codes come from all of the domain: that is public, as the rule is.
        """
        kept = allowed(codes)
        if not kept.any():
            codes = [(uniforms(len(self.w), rng) * len(one.bin_of)).astype(np.int64) for one in coarse]
            self.x, kept = [one.bin_of[code] for one, code in zip(coarse, codes, strict=True)], allowed(codes)
        if not kept.any():
            raise InputError("No row of the synthetic table keeps the rule: ask with a weaker one.")
        mass, self.codes, self.w = float(self.w.sum()), codes, np.where(kept, self.w, 0.0)
        self.w *= mass / self.w.sum()
        self.targets = {one.pair: (self._new_cells(*one.pair), one, q) for _, one, q in self.targets.values()}

    def rake(self, sweeps: int, agreed: Callable[[Measured], Floats]) -> None:
        """Go through all targets some times, the newest first; `agreed` makes tables consistent with each other."""
        aims = [
            (cells, shrunk(agreed(one), model, one.sigma).ravel())
            for cells, one, model in reversed(self.targets.values())
        ]
        for _ in range(sweeps):
            for cells, y in aims:
                now = np.bincount(cells, weights=self.w, minlength=len(y))
                ratio = np.divide(y, now, out=np.ones_like(now), where=now > 1e-9)
                self.w *= np.clip(ratio, 1 / _FARTHEST, _FARTHEST)[cells]


def shrunk(y: Floats, model: Floats, sigma: float) -> Floats:
    """A measured table, drawn towards the model as far as noise explains their difference, from 0 on, with its mass.

    tau = mean square difference - sigma^2 is what the model misses in a cell; it is taken to grow with the root of
    the model's cell. Each difference keeps tau b/(tau b + sigma^2) of itself (the linear Bayes estimate).
    """
    tau = max(0.0, float(((y - model) ** 2).mean()) - sigma**2)
    b = np.sqrt(model / model.mean())
    kept = tau * b / (tau * b + sigma**2)
    return nonnegative(model + kept * (y - model), float(model.sum()))


# Drawing


def uniforms(count: int, rng: Random) -> Floats:
    """Numbers from 0 to below 1."""
    return np.asarray((rng.words(count, np.uint64) >> np.uint64(11)) * 2.0**-53, float)


def drawn(count: int, singles: Sequence[Floats], forest: Sequence[tuple[Pair, Floats]], rng: Random) -> list[Counts]:
    """Bins of particles along the edges of a forest, some of them from single tables alone."""
    known: dict[int, Counts] = {}
    apart = uniforms(count, rng) < 1 / _APART
    edges = list(forest)
    for root in range(len(singles)):
        if root in known:
            continue
        known[root] = _stratified(singles[root], count, rng)
        reached = [root]
        while reached:
            parent = reached.pop()
            for (i, j), y in edges:
                child = j if i == parent else i if j == parent else None
                if child is not None and child not in known:
                    known[child] = _children(known[parent], y if i == parent else y.T, singles[child], rng)
                    reached.append(child)
    x = [known[i] for i in range(len(singles))]
    for i, p in enumerate(singles):
        x[i][apart] = _stratified(p, int(apart.sum()), rng)
    return x


def _children(parent: Counts, y: Floats, p: Floats, rng: Random) -> Counts:
    """A bin for each particle, from the row of the table that its parent's bin has."""
    found = np.zeros(len(parent), np.int64)
    for value in np.unique(parent):
        here = np.flatnonzero(parent == value)
        row = y[value] if y[value].sum() > 0 else p
        found[here] = _stratified(row, len(here), rng)
    return found


def _stratified(p: Floats, count: int, rng: Random) -> Counts:
    """Codes in proportions of p, each within one of its share, in random order."""
    places = (np.arange(count) + float(uniforms(1, rng)[0])) / max(1, count)
    codes = np.searchsorted(np.cumsum(p) / p.sum(), places, side="right")
    return np.minimum(codes, len(p) - 1)[np.argsort(rng.words(count, np.uint64))]

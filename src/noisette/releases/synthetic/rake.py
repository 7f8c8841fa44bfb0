"""RAKE: noisy one-way tables, a coarser domain, a forest of pairs, particles drawn from it, and raked round by round.

    1  one-way tables, from which the number of rows, and bins for each attribute, follow
    2  a forest: pairs whose table is farthest from the product of released one-way tables, picked privately, measured
    3  particles drawn from the forest
    4  rounds: the pair on which the particles err most is picked privately and measured, and particles are raked
    5  rows, placed by quota

**Privacy.** Only the noise and `Exponential` read the data, at most as often and with the parameters that the
`Schedule` fixes in advance. Which tables are measured and compared with what follows from released numbers. A score is
|M(D) - q|_1 less a public number, with q whole in steps; one unit moves it by at most what it moves M(D) in l1.
(docs/proofs/synthetic.md)

[select-measure-generate: McKenna-Miklau-Sheldon 2021 (MST), McKenna-Mullins-Sheldon-Miklau 2022 (AIM)]
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Gaussian
from noisette.privacy import Guarantee, Neighbours, Spend
from noisette.releases.linear import Noise, variance_of
from noisette.releases.synthetic.coarsening import Floats, coarse_mass, coarsened, noise_l1, one_ways, total
from noisette.releases.synthetic.margins import Margins
from noisette.releases.synthetic.particles import Allowed, Measured, Particles, drawn, shrunk
from noisette.releases.synthetic.placing import fine, placed
from noisette.releases.synthetic.schedule import STEPS, Schedule, Strategy
from noisette.releases.synthetic.tables import Attribute, Coarse, Counts, Pair, Tables, all_pairs

__all__ = ["MOST_ROWS", "Fit", "LastPick", "Rake", "deviation"]

MOST_ROWS = 500_000
_FEWEST, _MOST = 10_000, 200_000  # particles: twice the rows, within these
_WORK = 2 * 10**9  # particles times tables times sweeps
_REFITS, _SWEEPS, _LAST = 40, 6, 40
_DROWNED = 0.15  # of the rows: one-way tables with more noise are measured again
_COVERED = 0.06  # of the rows: more measurements of a pair bring its noise down to that
_FOREST_PENALTY = 0.5  # of the noise of a pair


@dataclass(frozen=True)
class LastPick:
    """What the last pick says of all pairs that it passed over: `models` are what their tables were compared with.

    With probability at least 1 - beta none of them has a score above the picked one by scale (ln m + ln 1/beta).
    """

    models: dict[Pair, Floats]
    sigma: float
    picked: Floats
    rows_per_log: float


@dataclass(frozen=True)
class Fit:
    """What was released, and rows that fit it: `noisy` one-way tables as measured, `singles` as they are used.

    `total` is how many rows the data have, up to noise; of more than `most` that many are made.
    """

    total: float
    noisy: list[Floats]
    sigmas: list[float]
    singles: list[Floats]
    coarse: list[Coarse]
    measured: list[Measured]
    last: LastPick | None
    gaussian: bool
    codes: list[Counts]

    @property
    def rows(self) -> int:
        """How many rows were made."""
        return len(self.codes[0])


@dataclass(frozen=True)
class Rake:
    """A synthesiser of rows of codes.

    >>> from noisette.releases.synthetic.tables import CodedRows
    >>> made = Rake.calibrated("1,1e-9", [Attribute("a", 2), Attribute("b", 3)])
    >>> found = made(CodedRows.of([[0, 0], [1, 2]] * 5000, (2, 3)))
    >>> len(found.codes), abs(found.rows - 10_000) < 1000
    (2, True)
    """

    attributes: tuple[Attribute, ...]
    schedule: Schedule
    most: int = MOST_ROWS

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        attributes: Sequence[Attribute],
        *,
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        strategy: Strategy = "rake",
        most: int = MOST_ROWS,
    ) -> "Rake":
        """The synthesiser that keeps a promise for a unit of at most `rows` rows."""
        sizes = [one.size for one in attributes]
        made = Schedule.calibrated(spend, sizes, rows=rows, neighbours=neighbours, strategy=strategy)
        return cls(tuple(attributes), made, most)

    def guarantee(self) -> Guarantee:
        """What holds for one unit."""
        return self.schedule.guarantee()

    @property
    def gaussian(self) -> bool:
        """Whether noise is Gaussian, not Laplace."""
        return isinstance(self.schedule.singles[0], Gaussian)

    def __call__(self, tables: Tables, rng: Random = SYSTEM, allowed: Allowed | None = None) -> Fit:
        """Release rows; those that are not `allowed`, by a public rule on their codes, do not appear."""
        noisy, sigmas, left = self._singles(tables, rng)
        rows, singles = one_ways(self.attributes, noisy, sigmas)
        coarse = self._coarse(singles, sigmas)
        masses = [coarse_mass(p, one) for p, one in zip(singles, coarse, strict=True)]
        margins = Margins.of(masses, coarse, sigmas)
        exact = tables.pairs(coarse, all_pairs(len(self.attributes)))
        forest = self._forest(exact, margins, rng)
        particles = self._drawn(margins, forest, rng)
        if allowed is not None:
            codes = [fine(*one, rng) for one in zip(particles.x, singles, coarse, strict=True)]
            particles.restrict(codes, coarse, allowed, rng)
        rounds, last = self._rounds(exact, particles, margins, left, rng)
        codes = placed(particles, min(self.most, max(1, round(rows))), singles, coarse, rng)
        return Fit(rows, noisy, sigmas, singles, coarse, [*forest, *rounds], last, self.gaussian, codes)

    def _coarse(self, singles: Sequence[Floats], sigmas: Sequence[float]) -> list[Coarse]:
        noise = self.schedule.round or self.schedule.forest
        if noise is None:
            return [Coarse(np.zeros(len(p), np.int64), 1) for p in singles]
        sigma = deviation(noise)
        return [coarsened(a, p, s, sigma) for a, p, s in zip(self.attributes, singles, sigmas, strict=True)]

    # Measuring: all that reads the data

    def _singles(self, tables: Tables, rng: Random) -> tuple[list[Floats], list[float], int]:
        """One-way tables, their deviations, and how many measurements are left for rounds.

        Tables that noise would cover take over measurements of the rounds, up to half of them.
        """
        exact = [tables.one_way(i) for i in range(len(self.attributes))]
        noisy = [np.asarray(noise(x, rng), float) for x, noise in zip(exact, self.schedule.singles, strict=True)]
        sigmas = [deviation(noise) for noise in self.schedule.singles]
        left, again = self.schedule.rounds, self.schedule.round
        while again is not None and 2 * left > self.schedule.rounds:
            covered = [noise_l1(sigma, len(x)) for sigma, x in zip(sigmas, exact, strict=True)]
            i = int(np.argmax(covered))
            if covered[i] <= _DROWNED * total(noisy, sigmas):
                break
            old, new = sigmas[i] ** -2, deviation(again) ** -2
            noisy[i] = (old * noisy[i] + new * np.asarray(again(exact[i], rng), float)) / (old + new)
            sigmas[i], left = (old + new) ** -0.5, left - 1
        return noisy, sigmas, left

    def _forest(self, exact: dict[Pair, Counts], margins: Margins, rng: Random) -> list[Measured]:
        """Pairs that join all attributes, each picked among those that join two components."""
        found: list[Measured] = []
        noise, part = self.schedule.forest, list(range(len(margins.masses)))
        while noise is not None and len(found) < self.schedule.forest_edges:
            open_pairs = [(i, j) for i, j in exact if part[i] != part[j]]
            products = {pair: margins.product(*pair) for pair in open_pairs}
            i, j = self._pick(exact, products, _FOREST_PENALTY * deviation(noise), rng)
            part = [part[i] if one == part[j] else one for one in part]
            found.append(_measured((i, j), exact, noise, 1, rng))
            margins.add(found[-1])
        return found

    def _pick(self, exact: dict[Pair, Counts], models: dict[Pair, Floats], sigma: float, rng: Random) -> Pair:
        """The pair whose exact table is far from its model, after what noise of that size would hide."""
        pairs = list(models)
        if len(pairs) == 1 or self.schedule.pick is None:
            return pairs[0]
        scores = [score(exact[pair], models[pair], noise_l1(sigma, models[pair].size)) for pair in pairs]
        return pairs[self.schedule.chooser(len(pairs))(scores, rng)]

    def _rounds(
        self, exact: dict[Pair, Counts], particles: Particles, margins: Margins, left: int, rng: Random
    ) -> tuple[list[Measured], LastPick | None]:
        """Pairs on which the particles err most: some at a time, then particles are raked to all that is measured."""
        found: list[Measured] = []
        noise, last = self.schedule.round, None
        batch, sweeps = self._pace(len(exact), len(particles.w))
        times = self._times(particles)
        while noise is not None and left:
            models = {pair: particles.table(*pair) for pair in exact if pair not in particles.targets}
            for _ in range(min(batch, -(-left // times), len(models))):
                used = min(times, left)
                pair = self._pick(exact, models, deviation(noise) / used**0.5, rng)
                found.append(_measured(pair, exact, noise, used, rng))
                model = models.pop(pair)
                margins.add(found[-1])
                particles.aim_at(found[-1], model)
                last, left = self._last(models, model, found[-1].sigma), left - used
            left *= bool(models)
            particles.rake(sweeps, margins.agreed)
        particles.rake(_LAST, margins.agreed)
        return found, last

    def _last(self, models: dict[Pair, Floats], picked: Floats, sigma: float) -> LastPick | None:
        if self.schedule.pick is None:
            return None
        scale = 2 * self.schedule.score_moves / float(self.schedule.pick)
        return LastPick(dict(models), sigma, picked, scale / STEPS)

    def _pace(self, pairs: int, particles: int) -> tuple[int, int]:
        """How many pairs are measured before particles are raked again, and how often these go through all tables."""
        rounds, edges = max(1, self.schedule.rounds), self.schedule.forest_edges
        refits = min(rounds, max(5, min(_REFITS, _WORK // (particles * max(1, pairs)))))
        sweeps = _WORK / (particles * refits * (edges + rounds / 2))
        return -(-rounds // refits), max(1, min(_SWEEPS, int(sweeps)))

    def _times(self, particles: Particles) -> int:
        """How many measurements each pair gets: more where the noise of one would cover much of the table."""
        if self.schedule.round is None:
            return 1
        bins, rows = np.array(particles.bins), float(particles.w.sum())
        cells = float(np.mean(bins)) ** 2
        wanted = (noise_l1(deviation(self.schedule.round), cells) / (_COVERED * rows)) ** 2
        return int(min(self.schedule.rounds, max(1, round(wanted))))

    # Fitting: released numbers only

    def _drawn(self, margins: Margins, forest: Sequence[Measured], rng: Random) -> Particles:
        """Particles of the forest."""
        edges = [(one.pair, shrunk(margins.agreed(one), margins.product(*one.pair), one.sigma)) for one in forest]
        count, masses = int(min(_MOST, max(_FEWEST, 2 * margins.rows))), margins.masses
        weights = np.full(count, margins.rows / count)
        particles = Particles(drawn(count, masses, edges, rng), tuple(map(len, masses)), weights)
        for one in forest:
            particles.aim_at(one, margins.product(*one.pair))
        particles.rake(_SWEEPS, margins.agreed)
        return particles


def score(exact: Counts, model: Floats, hidden: float) -> int:
    """|exact - model|_1 less what noise hides, in steps; the model and what is hidden are rounded, and public."""
    known = np.rint(model * STEPS).astype(np.int64)
    return int(np.abs(exact * STEPS - known).sum()) - round(hidden * STEPS)


def deviation(noise: Noise) -> float:
    """The standard deviation of noise."""
    return math.sqrt(variance_of(noise))


def _measured(pair: Pair, exact: dict[Pair, Counts], noise: Noise, times: int, rng: Random) -> Measured:
    """The mean of some measurements of a pair."""
    y = np.mean([np.asarray(noise(exact[pair], rng), float) for _ in range(times)], axis=0)
    return Measured(pair, y, deviation(noise) / times**0.5)

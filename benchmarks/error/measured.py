"""What a release errs by, and how often its error bars hold, over fresh runs with the product's own noise.

Vocabulary: a *scaled error* is |W x - W released|_2 / (rows times queries), as in DPBench · `chain` is the best plain
strategy: unbiased, with one tree of blocks whatever the data · `identity` is noise on every cell.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from benchmarks.error.data import Counts, Floats, Histogram, Rectangles, Workload
from noisette.releases.adaptive import AdaptiveTree
from noisette.releases.adaptive_bars import AdaptiveFit
from noisette.releases.chains import best_chain, typical
from noisette.releases.linear import Linear
from noisette.releases.maps.adaptive import AdaptiveMap
from noisette.releases.tree import Tree

LEVEL = 0.95
PLAIN = 5  # runs of a plain strategy for each of ours: its error varies more and costs less


class Released(Protocol):
    """Released counts of cells with error bars, of a line or a map."""

    @property
    def x(self) -> Floats:
        """The count of each cell."""
        ...

    def bars(self, low: Any, high: Any, level: float) -> tuple[Floats, Floats]:
        """The ends of the usual error bars of ranges."""
        ...

    def guaranteed(self, low: Any, high: Any, level: float) -> tuple[Floats, Floats]:
        """The ends of guaranteed error bars."""
        ...


Release: TypeAlias = Callable[[Counts], Released]
Make: TypeAlias = Callable[[float, Any], Release]
"""A release of counts, made for an epsilon and a number of cells, or for those along each axis of a map."""


def adaptive(epsilon: float, cells: int) -> Release:
    """What `Histogram` releases by default."""
    made = AdaptiveTree.calibrated(str(epsilon), cells=cells)
    return lambda x: AdaptiveFit.of(made, made.measure(x))


def adaptive_map(epsilon: float, shape: tuple[int, int]) -> Release:
    """What a map releases by default."""
    made = AdaptiveMap.calibrated(str(epsilon), shape=shape)
    return lambda x: made.read(made.measure(x))


def identity(epsilon: float, cells: int) -> Release:
    """Noise on every cell."""
    return Linear.calibrated(str(epsilon), Tree(cells))


def chain(epsilon: float, cells: int, *, prefixes: bool) -> Release:
    """The best plain strategy for ranges, or for prefixes."""
    best = best_chain(typical(cells, prefixes=prefixes))
    return Linear.calibrated(str(epsilon), Tree(cells, best.sizes, prefixes))


@dataclass(frozen=True)
class Mean:
    """The mean over runs, and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, runs: list[float]) -> "Mean":
        """The mean of the figures of runs."""
        return cls(float(np.mean(runs)), float(np.std(runs, ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else np.nan)


@dataclass(frozen=True)
class Bars:
    """How often error bars hold, over all runs and ranges, and half their mean width over the mean |error|."""

    held: Mean
    width: float


@dataclass(frozen=True)
class Measured:
    """Scaled errors on one histogram or map at one epsilon by workload, and its error bars on the ranges."""

    histogram: Histogram
    epsilon: float
    ours: dict[str, Mean]
    chain: dict[str, Mean]
    identity: dict[str, float]
    usual: Bars
    guaranteed: Bars

    def ratios(self, workload: str) -> dict[str, float]:
        """Errors over that of Identity: ours, the best chain, and every published algorithm."""
        errors = {"ours": self.ours[workload].value}
        errors |= {"best chain": self.chain[workload].value} if self.chain else {}
        errors |= self.histogram.published.get((self.epsilon, workload), {})
        return {name: error / self.identity[workload] for name, error in errors.items()}

    def best(self, workload: str, *, informed: bool = True) -> str:
        """The published algorithm of least error here, known with hindsight; or of those without side information."""
        published, left_out = self.histogram.published[self.epsilon, workload], self.histogram.informed
        return min((name for name in published if informed or name not in left_out), key=lambda name: published[name])

    def to_best(self, workload: str, *, informed: bool = True) -> float:
        """Our error over that of the best published algorithm."""
        published = self.histogram.published[self.epsilon, workload]
        return self.ours[workload].value / published[self.best(workload, informed=informed)]


def measured(histogram: Histogram, epsilon: float, runs: int, make: Make = adaptive) -> Measured:
    """Release the histogram that many times, and the plain strategies more often."""
    cells, flat = len(histogram.x), histogram.x.ndim == 1
    fits, release = [], make(epsilon, cells if flat else histogram.x.shape)
    for _ in range(runs):
        fits.append(release(histogram.x))
    names = {one.name: one for one in histogram.workloads}
    plain = partial(_plain, histogram, runs=PLAIN * runs)
    ranges = histogram.workloads[-1]
    return Measured(
        histogram,
        epsilon,
        ours={name: Mean.of([scaled_error(one, histogram, fit) for fit in fits]) for name, one in names.items()},
        chain={name: plain(one, chain(epsilon, cells, prefixes=one.prefixes)) for name, one in names.items() if flat},
        identity={
            name: histogram.published[epsilon, name]["Identity"]
            if histogram.published
            else plain(one, identity(epsilon, cells)).value
            for name, one in names.items()
        },
        usual=_bars(histogram, ranges, fits, guaranteed=False),
        guaranteed=_bars(histogram, ranges, fits, guaranteed=True),
    )


def scaled_error(workload: Workload | Rectangles, histogram: Histogram, fit: Released) -> float:
    """The root of the sum of squared errors over the number of queries and of rows."""
    errors = workload.of(fit.x) - workload.of(histogram.x)
    return float(np.sqrt((errors**2).sum()) / len(errors) / histogram.x.sum())


def _plain(histogram: Histogram, workload: Workload | Rectangles, release: Release, *, runs: int) -> Mean:
    return Mean.of([scaled_error(workload, histogram, release(histogram.x)) for _ in range(runs)])


def _bars(histogram: Histogram, workload: Workload | Rectangles, fits: list[Released], *, guaranteed: bool) -> Bars:
    truth, held, widths, errors = workload.of(histogram.x), [], [], []
    for fit in fits:
        low, high = (fit.guaranteed if guaranteed else fit.bars)(workload.low, workload.high, LEVEL)
        held.append(float(((low <= truth) & (truth <= high)).mean()))
        widths.append(float((high - low).mean()) / 2)
        errors.append(float(np.abs(workload.of(fit.x) - truth).mean()))
    return Bars(Mean.of(held), float(np.mean(widths) / np.mean(errors)))


def together(ratios: list[float]) -> float:
    """The geometric mean."""
    found: Floats = np.exp(np.mean(np.log(ratios)))
    return float(found)

"""What questions share that release a bin or nothing: how bins are shown, and when there is none.

The bins of both partitions hold the statistic, so it lies where they overlap. A table without records has no statistic
and gives none: as if it took 0 changes to alter it. That keeps the promise: the number of changes that it takes with n
records is at most n, so k records that come or go, from none or to none, are k steps along the curve of `Keep` as
everywhere else.
"""

import math

import pyarrow

from noisette.exact.random import Random
from noisette.mechanisms.stability.stability import Bin, ShiftedBins
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.expected import Expected
from noisette.questions.parts.ruler import Ruler, Steps

__all__ = ["BIN", "NOTHING", "STABLE", "bin_of", "spread_columns", "stable_expected"]

STABLE = "exact to within a bin"
NOTHING = "not stable: few rows could change it"
BIN = "± covers the bin only"
"""What the error bar of a bin covers: there is no noise in it."""


def bin_of(mechanism: ShiftedBins, steps: Steps, rng: Random) -> Bin | None:
    """Where a statistic lies, or None if its bins are not stable."""
    bins = mechanism(steps, rng) if len(steps) else (None, None)
    found = [one for one in bins if one is not None]
    return (max(low for low, _ in found), min(high for _, high in found)) if found else None


def stable_expected(name: str, mechanism: ShiftedBins, moved: Sensitivity, level: float) -> Expected:
    """How many changes it may take to leave a bin that is not released."""
    rows = mechanism.interval(level)
    note = f"it is exact to within a bin if leaving that takes more than {rows:,.0f} rows, and NULL otherwise"
    return Expected(name, "two stability tests", f"rows: {moved.l1}", None, {}, rows, note)


def spread_columns(found: Bin | None, ruler: Ruler) -> dict[str, pyarrow.Array]:
    """The middle of a bin by ratio, and its ends; all that is possible where no bin is stable."""
    ends: list[float | None] = [None, 0.0, math.inf]
    if found is not None:
        low, high = (end * ruler.size for end in found)
        ends = [math.sqrt(low * high), max(0.0, float(low - ruler.slack)), float(high + ruler.slack)]
    names = ("spread", "spread_low", "spread_high")
    return {name: pyarrow.array([end], pyarrow.float64()) for name, end in zip(names, ends, strict=True)}

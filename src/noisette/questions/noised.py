"""What questions share whose answer is a statistic of the records, with noise for this table: law and error bars.

`Smooth` and `InverseSensitivity` promise something for a record that comes or goes, and for k of them what holds for
groups; `records` says how many one unit can change.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.mechanisms.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth import Smooth
from noisette.mechanisms.smooth_statistic import Statistic
from noisette.privacy import Approx, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.expected import Expected
from noisette.questions.records import OfRecords
from noisette.releases import Column

__all__ = ["USUAL", "By", "Noised", "Noisy", "bell", "checked", "of_another", "smooth"]

USUAL = 1_000
"""Rows of the made-up table that is taken for a usual one."""

By: TypeAlias = Literal["smooth", "inverse"]
Noisy: TypeAlias = Smooth | InverseSensitivity


def checked(by: object) -> By:
    """Refuse a mechanism that there is not."""
    if by in get_args(By):
        return by  # type: ignore[return-value]
    raise InputError('by must be "smooth", for noise of smooth sensitivity, or "inverse", for inverse sensitivity.')


def smooth(spend: Promise, reach: Sensitivity, statistic: Statistic, like: Any) -> Smooth:
    """The smooth noise that errs less on a made-up table: with the delta, if there is one, or without."""
    made = [Smooth.calibrated(spend, reach, statistic=statistic)]
    if isinstance(spend, Approx):
        made.append(Smooth.calibrated(spend, reach, statistic=statistic, noise="student"))
    return min(made, key=lambda m: m.half_width(like))


def of_another(mechanism: Noisy, statistic: Statistic) -> Noisy:
    """The same noise for another statistic."""
    if isinstance(mechanism, Smooth):
        return replace(mechanism, statistic=statistic, span=statistic.span)
    return replace(mechanism, statistic=statistic)


def bell(low: int, high: int, rows: int) -> NDArray[np.int64]:
    """A made-up table: so many values about the middle, with a standard deviation of a twentieth of the bounds.

    >>> bell(0, 100, 5).tolist()
    [43, 47, 50, 52, 56]
    """
    chances = (np.arange(rows) + 0.5) / rows
    away = np.log(chances / (1 - chances)) * (high - low) / 20 * (math.sqrt(3) / math.pi)
    return np.clip((low + high) / 2 + away, low, high).astype(np.int64)


@dataclass(frozen=True)
class Noised(OfRecords):
    """A number with noise, called `name`; `worst` is its error on the worst table, if known, and it lies in `ends`."""

    mechanism: Noisy
    name: str
    worst: float | None
    ends: tuple[float, float] | None

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The number and its error bar, which is not drawn: another level is free."""
        values = drawn.column(self.name).combine_chunks()
        if self.worst is None or self.ends is None:
            return [(Column(self.name, values),)]
        value = values.to_numpy(zero_copy_only=False).astype(float)
        low, high = (np.clip(value + move, *self.ends) for move in (-self.worst, self.worst))
        return [(Column(self.name, values, low, high),)]

    @property
    def by(self) -> By:
        """Which mechanism it is."""
        return "smooth" if isinstance(self.mechanism, Smooth) else "inverse"

    def expects(
        self, sensitivity: str, half: float | None, ranks: float | None, *notes: str
    ) -> list[tuple[Expected, ...]]:
        """The noise and what it rests on."""
        m = self.mechanism
        noise = f"{m.noise.title()} noise of smooth sensitivity" if isinstance(m, Smooth) else "inverse sensitivity"
        return [(Expected(self.name, noise, sensitivity, half, {}, ranks, "; ".join([*notes, *self.counted])),)]

    def expects_of_rows(
        self, sizes: Sequence[int], usual: Callable[[int], float], *notes: str
    ) -> list[tuple[Expected, ...]]:
        """The same for a column: on every table, or on a usual one if its size is named; or in ranks."""
        rows = sizes[0] if len(sizes) == 1 else USUAL
        error = usual(rows)
        note = f"{rows:,} values with a standard deviation of a twentieth of the bounds err by {error:.4g}"
        half = error if len(sizes) == 1 else self.worst
        ranks = self.mechanism.interval(self.level) if half is None else None
        return self.expects(f"rows: {self.reach.l1}", half, ranks, *notes, note)

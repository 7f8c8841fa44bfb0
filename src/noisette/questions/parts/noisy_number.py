"""What questions share whose answer is a statistic of the records, with noise for this table: law and error bars.

`Smooth` and `InverseSensitivity` promise something for a record that comes or goes, and for k of them what holds for
groups; `records` says how many one unit can change.

How wide smooth noise is depends on the table, and the noise of the worst table is far wider than that of a usual one.
But a record changes its width by a factor of at most e^beta, so a fifth of the promise pays for the logarithm of the
width with noise, and the error bar is made for the largest width that this leaves likely. Half of the misses are for
the width, half for the noise itself.

Vocabulary: `bar` the noise of the width · `size` that logarithm, in steps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.mechanisms import Geometric
from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth.smooth import Smooth
from noisette.mechanisms.smooth.statistic import Statistic
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE
from noisette.query.expected import Expected
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.parts.records import about_records

__all__ = [
    "USUAL",
    "By",
    "Noisy",
    "NoisyNumber",
    "NoisyStatistic",
    "bar_of",
    "bell",
    "of_another",
    "smooth",
    "without_bar",
]

USUAL = 1_000
"""Rows of the made-up table that is taken for a usual one."""

_BAR = Fraction(1, 5)  # of the promise for the error bar
_PRICE = "a fifth of the cost is for an error bar that fits this table"

By: TypeAlias = Literal["smooth", "inverse"]
Noisy: TypeAlias = Smooth | InverseSensitivity


# Mechanisms


def smooth(spend: Promise, moved: Sensitivity, statistic: Statistic, like: Any) -> Smooth:
    """The smooth noise that errs less on a made-up table: with the delta, if there is one, or without."""
    made = [Smooth.calibrated(spend, moved, statistic=statistic)]
    if isinstance(spend, Approx):
        made.append(Smooth.calibrated(spend, moved, statistic=statistic, noise="student"))
    return min(made, key=lambda m: m.half_width(like))


def without_bar(spend: Promise) -> Promise:
    """What the error bar leaves of a promise, with all of delta."""
    return spend.share(1 - _BAR, delta=1)


def bar_of(spend: Promise, moved: Sensitivity, mechanism: Noisy) -> Geometric | None:
    """The noise of the width of smooth noise."""
    if not isinstance(mechanism, Smooth):
        return None
    return Geometric.calibrated(spend.share(_BAR, delta=0), _size_moved(mechanism, moved))


def _size_moved(mechanism: Smooth, moved: Sensitivity) -> Sensitivity:
    """How far one unit can move the size of the noise."""
    steps = int(moved.l1) * mechanism.size_change
    return Sensitivity(steps, steps**2, steps, 1, neighbours=moved.neighbours)


def of_another(mechanism: Noisy, statistic: Statistic) -> Noisy:
    """The same noise for another statistic."""
    if isinstance(mechanism, Smooth):
        return replace(mechanism, statistic=statistic, span=statistic.span)
    return replace(mechanism, statistic=statistic)


def bell(low: int, high: int, rows: int) -> NDArray[np.int64]:
    """A made-up table: values about the middle, with a standard deviation of a twentieth of the bounds.

    >>> bell(0, 100, 5).tolist()
    [43, 47, 50, 52, 56]
    """
    chances = (np.arange(rows) + 0.5) / rows
    away = np.log(chances / (1 - chances)) * (high - low) / 20 * (math.sqrt(3) / math.pi)
    return np.clip((low + high) / 2 + away, low, high).astype(np.int64)


# Offers


class NoisyStatistic(Protocol):
    """What a question adds: how its records are read, how its number is shown, and the error to expect."""

    def records(self, prepared: Prepared, source: Source, schema: Schema, secret: bytes) -> Any:
        """What the mechanism is called with."""
        ...

    def shown(self, drawn: Any, step: Fraction) -> pyarrow.Array:
        """What the mechanism draws, as the column of the answer."""
        ...

    def expected(self, number: "NoisyNumber", sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error to expect."""
        ...


@dataclass(frozen=True)
class NoisyNumber:
    """A number with noise, called `name`, in `step`s, between `ends`; where there is a `bar`, with the noise's size.

    `worst` is its error on the worst table, if that is known.
    """

    prepared: Prepared
    mechanism: Noisy
    sensitivity: Sensitivity
    level: float
    name: str
    step: Fraction
    worst: float | None
    ends: tuple[float, float] | None
    bar: Geometric | None
    statistic: NoisyStatistic

    def offer(self, neighbours: Neighbours, *, text: str, why: str) -> Offer:
        """The offer; the size of the noise costs its own part. Dates come without error bars."""
        mechanisms: list[tuple[Any, Sensitivity]] = [(self.mechanism, self.sensitivity)]
        if self.bar is not None:
            mechanisms.append((self.bar, _size_moved(self._smooth, self.sensitivity)))
        covers = NOISE if self.ends is not None and (self.bar is not None or self.worst is not None) else ""
        return about_records(self.prepared, self, neighbours, mechanisms, text=text, why=why, covers=covers)

    @property
    def _smooth(self) -> Smooth:
        """The mechanism, where there is a bar."""
        return cast(Smooth, self.mechanism)

    @property
    def by(self) -> By:
        """Which mechanism it is."""
        return "smooth" if isinstance(self.mechanism, Smooth) else "inverse"

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Read the records and draw the number."""
        records = self.statistic.records(self.prepared, source, schema, secret)
        return self.drawn(self.statistic.shown(self.mechanism(records, rng), self.step), records, rng)

    def drawn(self, value: pyarrow.Array, records: Any, rng: Random) -> pyarrow.Table:
        """The number that was drawn, and the size of its noise, with noise."""
        found = {self.name: value}
        if self.bar is not None:
            found["size"] = pyarrow.array([int(self.bar(self._smooth.size(records), rng))])
        return pyarrow.table(found)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The number and its error bar: another level is free."""
        values, half = drawn.column(self.name).combine_chunks(), self._half(drawn)
        if half is None or self.ends is None:
            return [(Column(self.name, values),)]
        value = values.to_numpy(zero_copy_only=False).astype(float)
        return [(Column(self.name, values, value - half, value + half).within(self.ends),)]

    def _half(self, drawn: pyarrow.Table) -> float | None:
        """Half the width of the error bar; each side of the bar's own noise takes half of the misses."""
        if self.bar is None:
            return self.worst
        likely = drawn.column("size")[0].as_py() + int(self.bar.interval(self.level))
        size = min(self._smooth.largest_size, likely)
        return float(self.step) * self._smooth.half_width_of(size, (1 + self.level) / 2)

    # The error to expect

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """What the statistic says of it."""
        return self.statistic.expected(self, sizes)

    def expects(
        self, sensitivity: str, half: float | None, ranks: float | None, *notes: str
    ) -> list[tuple[Expected, ...]]:
        """The noise and what it rests on."""
        m = self.mechanism
        noise = f"{m.noise.title()} noise of smooth sensitivity" if isinstance(m, Smooth) else "inverse sensitivity"
        notes = notes if self.bar is None else (*notes, _PRICE)
        return [(Expected(self.name, noise, sensitivity, half, {}, ranks, "; ".join(notes)),)]

    def expects_of_rows(
        self, sizes: Sequence[int], usual: Callable[[int], float], *notes: str
    ) -> list[tuple[Expected, ...]]:
        """The same for a column: on every table, or on a usual one if its size is named; or in ranks."""
        rows = sizes[0] if len(sizes) == 1 else USUAL
        error = usual(rows)
        note = f"{rows:,} values with a standard deviation of a twentieth of the bounds err by {error:.4g}"
        half = error if len(sizes) == 1 else self.worst
        ranks = self.mechanism.interval(self.level) if half is None else None
        return self.expects(f"rows: {self.sensitivity.l1}", half, ranks, *notes, note)

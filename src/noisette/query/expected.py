"""The error to expect of each output before anything is paid: the formulas of the answer, on made-up measures."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow

from noisette.privacy import Neighbours
from noisette.query.aggregate import measures_of
from noisette.query.answer import Scene, columns, noises
from noisette.query.design import Design
from noisette.query.draw import Noised
from noisette.query.estimate import Estimate
from noisette.query.measure import Measure, sensitivity
from noisette.query.plan import Aggregate, Key, Result
from noisette.query.prepare import Prepared, aggregates_of
from noisette.query.types import ARROW

__all__ = ["SIZES", "Expected", "expected", "rehearse"]

SIZES = (100, 1_000, 10_000, 100_000)
"""Group sizes at which errors are shown that depend on the size."""


@dataclass(frozen=True)
class Expected:
    """What to expect of one column: its noise, what one unit can change, and half the width of the error bar.

    `half_width` holds for every group, or is None where it depends on how many rows a group has: then `by_size` tells
    it for a few sizes, at worst over the values. `ranks` is by how many rows a quantile may be off. `assumes` says what
    clamping and limits take for granted.
    """

    name: str
    mechanism: str
    sensitivity: str
    half_width: float | None
    by_size: Mapping[int, float]
    ranks: float | None
    assumes: str


def expected(
    prepared: Prepared, design: Design, place: int, neighbours: Neighbours, level: float, sizes: tuple[int, ...] = SIZES
) -> tuple[Expected, ...]:
    """What to expect of each column that is not a key."""
    return tuple(
        _Forecast(prepared, design, place, neighbours, level, sizes).column(name, result)
        for name, result in prepared.query.outputs
        if not isinstance(result, Key)
    )


def rehearse(prepared: Prepared, design: Design, place: int, neighbours: Neighbours, level: float) -> None:
    """Compute the answer from made-up measures: what cannot be computed is refused before anything is paid."""
    columns(_Forecast(prepared, design, place, neighbours, level, SIZES).scene(SIZES[0]))


@dataclass(frozen=True)
class _Forecast:
    prepared: Prepared
    design: Design
    place: int
    neighbours: Neighbours
    level: float
    sizes: tuple[int, ...]

    def column(self, name: str, result: Result) -> Expected:
        aggregates = tuple(dict.fromkeys(aggregates_of(result)))
        widths = {} if self._ranked(aggregates) else {n: self._half_width(result, n) for n in self.sizes}
        same = bool(widths) and np.allclose(list(widths.values()), widths[self.sizes[0]], rtol=1e-9, atol=0)
        return Expected(
            name,
            "; ".join(dict.fromkeys(self._mechanisms(aggregates))),
            "; ".join(dict.fromkeys(self._sensitivities(aggregates))),
            widths[self.sizes[0]] if same else None,
            {} if same else widths,
            self._ranks(aggregates),
            self._assumptions(aggregates),
        )

    def _ranked(self, aggregates: tuple[Aggregate, ...]) -> bool:
        return any(aggregate.function == "quantile" for aggregate in aggregates)

    def _measures(self, aggregates: tuple[Aggregate, ...]) -> Iterator[Measure]:
        for aggregate in aggregates:
            yield from measures_of(aggregate, self.prepared.shape, self.prepared.part)

    def _half_width(self, result: Result, rows: int) -> float:
        """Half the width of the error bar in a group of so many rows, at worst over small, middle and large values."""
        value = self.scene(rows).value(result)
        if not isinstance(value, Estimate):
            return 0.0
        low, high = value.interval(noises(self.design, self.place, self.level))
        return float(np.max(high - low) / 2)

    def scene(self, rows: int) -> Scene:
        """Three groups of so many rows: of the smallest values, of values about 0, of the largest."""
        task = self.design.tasks[self.place]
        ends = np.zeros(3), np.zeros(3), np.zeros(3)
        made = {m: self._made_up(m, rows) for m in task.request.measures if m.what != "histogram"}
        keys = [pyarrow.nulls(3, ARROW[kind.type]) for kind in self.prepared.keys]
        return Scene(
            self.prepared,
            Noised(None, 3, made, dict.fromkeys(task.quantiles, ends)),
            noises(self.design, self.place, self.level),
            keys,
        )

    def _made_up(self, measure: Measure, rows: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        if measure.what != "sum":
            return np.full(3, float(rows))
        return np.array([measure.low, 0.0, measure.high]) * float(measure.grid) * rows

    def _mechanisms(self, aggregates: tuple[Aggregate, ...]) -> Iterator[str]:
        task = self.design.tasks[self.place]
        for aggregate in aggregates:
            for measure in measures_of(aggregate, self.prepared.shape, self.prepared.part):
                if aggregate.at is not None:
                    yield self.design.ranked(self.place, measure, aggregate.at).said
                elif measure == task.members:
                    yield _described(self.design.keys[self.place], measure)
                else:
                    yield _described(self.design.noise[self.place, measure], measure)

    def _sensitivities(self, aggregates: tuple[Aggregate, ...]) -> Iterator[str]:
        for measure in self._measures(aggregates):
            reach = sensitivity(measure, self.prepared.part, self.neighbours)
            unit = measure.grid if measure.what == "sum" else 1
            most, total = (f"{float(size * unit):.6g}" for size in (reach.linf, reach.l1))
            yield f"{_NAMES[measure.what]}: {most} in one group, {total} in all"

    def _quantiles(self, aggregates: tuple[Aggregate, ...]) -> Iterator[tuple[Measure, Fraction]]:
        for aggregate in aggregates:
            if aggregate.at is not None:
                yield measures_of(aggregate, self.prepared.shape, self.prepared.part)[0], aggregate.at

    def _ranks(self, aggregates: tuple[Aggregate, ...]) -> float | None:
        asked = self._quantiles(aggregates)
        errors = (self.design.ranked(self.place, m, at).rank_error(self.level, at) for m, at in asked)
        return max(errors, default=None)

    def _assumptions(self, aggregates: tuple[Aggregate, ...]) -> str:
        part, limits = self.prepared.part, self.prepared.request.limits
        clamped = [m for m in self._measures(aggregates) if m.what in ("sum", "histogram")]
        notes = [
            f"values beyond [{float(m.low * m.grid):.6g}, {float(m.high * m.grid):.6g}] are clamped" for m in clamped
        ]
        notes += [self.design.ranked(self.place, m, at).assumed for m, at in self._quantiles(aggregates)]
        if limits is not None:
            groups = f" in at most {part.groups} groups" if self.prepared.keys else ""
            notes.append(f"at most {part.total} rows of one {self.prepared.shape.unit}{groups} are counted")
        return "; ".join(dict.fromkeys(filter(None, notes)))


_NAMES = {
    "rows": "rows",
    "count": "rows with a value",
    "units": "units",
    "distinct": "different values",
    "sum": "sum",
    "histogram": "rows at each value",
}


def _described(mechanism: object, measure: Measure) -> str:
    """A mechanism in words, with its standard deviation in the measure's own units."""
    unit = float(measure.grid) if measure.what == "sum" else 1.0
    variance = mechanism.variance()  # type: ignore[attr-defined]
    return f"{type(mechanism).__name__} noise, standard deviation {math.sqrt(variance) * unit:.4g}"

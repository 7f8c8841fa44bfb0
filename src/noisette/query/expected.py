"""The error to expect of each output before anything is paid: the formulas of the answer, on made-up measures."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow

from noisette.answers.figures import bound, rounded
from noisette.answers.warnings import nothing
from noisette.privacy import ZCDP, Neighbours
from noisette.query.aggregate import kinds_of, measures_of, of_pairs
from noisette.query.answer import Scene, columns, noises
from noisette.query.design import Design
from noisette.query.draw import Noised
from noisette.query.estimate import Estimate, Noises
from noisette.query.measure import Measure, sensitivity
from noisette.query.plan import Aggregate, Key, Result, aggregates_of
from noisette.query.possible import possible
from noisette.query.prepare import Prepared
from noisette.query.sums import middle
from noisette.query.types import ARROW

__all__ = ["SIZES", "Expected", "dry_run", "expected"]

SIZES = (100, 1_000, 10_000, 100_000)
"""Group sizes at which errors are shown that depend on the size."""


@dataclass(frozen=True)
class Expected:
    """What to expect of one column: its noise, what one unit can change, and half the width of the error bar.

    `half_width` holds for every group, or is None where it depends on how many rows a group has: then `by_size` tells
    it for a few sizes, at worst over the values. `ranks` is by how many rows a quantile may be off. `assumes` says what
    else it rests on, and `warning` that the bar says nothing; what is left out stands in `caveats`. Where the question
    chooses a limit, `by_limit` holds what to expect at each of them, and all before it says nothing.
    """

    name: str
    mechanism: str
    sensitivity: str
    half_width: float | None
    by_size: Mapping[int, float]
    ranks: float | None
    assumes: str
    warning: str = ""
    by_limit: Mapping[str, "Expected"] = field(default_factory=dict)


def expected(
    prepared: Prepared,
    design: Design,
    place: int,
    neighbours: Neighbours,
    level: float,
    sizes: tuple[int, ...] = SIZES,
    known: Noises | None = None,
) -> tuple[Expected, ...]:
    """What to expect of each column that is not a key; `known` errors of measures stand for those of their noise."""
    forecast = _Forecast(prepared, design, place, neighbours, level, sizes, known)
    return tuple(
        forecast.column(name, result) for name, result in prepared.query.outputs if not isinstance(result, Key)
    )


def dry_run(prepared: Prepared, design: Design, place: int, neighbours: Neighbours, level: float) -> None:
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
    known: Noises | None = None

    @cached_property
    def noises(self) -> Noises:
        """What is known of each measure's error, of all columns at once."""
        return noises(self.design, self.place, self.level) if self.known is None else self.known

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
            "; ".join(dict.fromkeys(filter(None, self._assumptions(aggregates)))),
            self._warning(result, widths),
        )

    def _ranked(self, aggregates: tuple[Aggregate, ...]) -> bool:
        return any(aggregate.at is not None for aggregate in aggregates)

    def _half_width(self, result: Result, rows: int) -> float:
        """Half the width of the error bar in a group of a given size, at worst over small, middle and large values."""
        value = self.scenes[rows].value(result)
        if not isinstance(value, Estimate):
            return 0.0
        low, high = value.interval(self.noises)
        if any(map(of_pairs, aggregates_of(result))):  # of values that are all alike nothing is known
            return float((high - low)[1] / 2)
        return float(np.max(high - low) / 2)

    @cached_property
    def scenes(self) -> dict[int, Scene]:
        """The groups of each size."""
        return {rows: self.scene(rows) for rows in self.sizes}

    def scene(self, rows: int) -> Scene:
        """Three groups of a given size: of the smallest values, of values about 0, of the largest."""
        task = self.design.tasks[self.place]
        ends = np.zeros(3), np.zeros(3), np.zeros(3)
        made = {m: self._made_up(m, rows) for m in task.request.measures if m.what != "histogram"}
        keys = [pyarrow.nulls(3, ARROW[kind.type]) for kind in self.prepared.keys]
        return Scene(
            replace(self.prepared, groups=None),
            Noised(None, 3, made, dict.fromkeys(task.quantiles, ends)),
            self.noises,
            keys,
            sizes=tuple(_UNKNOWN if domain is None else len(domain) for domain in self.prepared.request.domains),
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
                    yield self.design.ranked(self.place, measure, aggregate.at).description
                elif measure == task.members:
                    yield _described(self.design.keys[self.place], measure)
                else:
                    yield _described(self.design.noise[self.place, measure], measure)

    def _sensitivities(self, aggregates: tuple[Aggregate, ...]) -> Iterator[str]:
        for aggregate in aggregates:
            for i, measure in enumerate(measures_of(aggregate, self.prepared.shape, self.prepared.part)):
                change = sensitivity(measure, self.prepared.part, self.neighbours)
                unit = measure.grid if measure.what == "sum" else 1
                most, total = (rounded(size * unit, up=True) for size in (change.linf, change.l1))
                yield f"{self._named(aggregate, i, measure)}: {most} in one group, {total} in all"

    def _named(self, aggregate: Aggregate, i: int, measure: Measure) -> str:
        """What is measured, in words: means and variances add up differences from the middle of the bounds."""
        if measure.what != "sum" or aggregate.function == "sum" or aggregate.of is None:
            return _NAMES[measure.what]
        middles = [bound(middle(kind)) for kind in kinds_of(aggregate.of, self.prepared.shape.columns)]
        less = bound(-measure.low * measure.grid)
        if of_pairs(aggregate) and i:
            return ("", f"sum of differences from {middles[1]}", "sum of products of differences", "", "")[i] or (
                f"sum of squares of differences, less {less} each"
            )
        return f"sum of differences from {middles[0]}" if i == 0 else f"sum of their squares, less {less} each"

    def _quantiles(self, aggregates: tuple[Aggregate, ...]) -> Iterator[tuple[Measure, Fraction]]:
        for aggregate in aggregates:
            if aggregate.at is not None:
                yield measures_of(aggregate, self.prepared.shape, self.prepared.part)[0], aggregate.at

    def _ranks(self, aggregates: tuple[Aggregate, ...]) -> float | None:
        asked = self._quantiles(aggregates)
        errors = (self.design.ranked(self.place, m, at).rank_error(self.level, at) for m, at in asked)
        return max(errors, default=None)

    def _assumptions(self, aggregates: tuple[Aggregate, ...]) -> Iterator[str]:
        if any(map(of_pairs, aggregates)):
            yield "the error is larger where values are spread over less than their bounds"
        for measure, at in self._quantiles(aggregates):
            yield self.design.ranked(self.place, measure, at).assumed

    def _warning(self, result: Result, widths: Mapping[int, float]) -> str:
        """That a bar says nothing, even of the largest group that is shown, and what would help."""
        low, high = possible(result, self.prepared)
        rows = max(widths, default=0)
        if not widths.get(rows) or not math.isfinite(high - low) or 2 * widths[rows] < (high - low) * (1 - 1e-9):
            return ""
        whole = isinstance(result, Aggregate) and result.function == "distinct"
        squared = isinstance(self.design.guarantee, ZCDP)
        half = self._first_order(result, rows)
        alike = half == self._first_order(result, min(widths)) and len(widths) > 1
        sentence = nothing(half, (low, high), whole=whole, squared=squared)
        sentence = sentence if alike else f"with {rows:,} rows {sentence}"
        keys = isinstance(result, Aggregate) and result.function == "distinct" and high <= _FEW
        return f"{sentence}{_BY_KEY if keys else ''}"

    def _first_order(self, result: Result, rows: int) -> float:
        """Half the width of a bar before it is moved into bounds."""
        return float(np.max(self.scene(rows).value(result).half_width(self.noises)))


_FEW = 1000
_UNKNOWN = 10  # groups, where keys are not declared
_BY_KEY = ", or ask COUNT(*) for each of the values"

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

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
from noisette.exact.keyed import KeyedRandom
from noisette.privacy import ZCDP, Neighbours
from noisette.query.aggregate import kinds_of, measures_of, of_pairs, vouching
from noisette.query.answer import Errors, Scene, columns, errors
from noisette.query.design import Design, Task, among
from noisette.query.draw import Noised, draw
from noisette.query.estimate import Estimate, Noises
from noisette.query.measure import Exact, Measure, sensitivity
from noisette.query.plan import Aggregate, Key, Result, ResultCall, aggregates_of
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
    known: Errors | None = None,
) -> tuple[Expected, ...]:
    """What to expect of each column that is not a key; `known` errors of measures stand for those of their noise."""
    forecast = _Forecast(prepared, design, place, neighbours, level, sizes, known)
    return tuple(
        forecast.column(name, result) for name, result in prepared.query.outputs if not isinstance(result, Key)
    )


def dry_run(prepared: Prepared, design: Design, place: int, neighbours: Neighbours, level: float) -> None:
    """Draw and compute the answer from made-up measures: what cannot be computed is refused before anything is paid."""
    draw(design, place, _empty(prepared, design.tasks[place]), KeyedRandom(_KEY))
    columns(_Forecast(prepared, design, place, neighbours, level, SIZES).scene(SIZES[0]))


_KEY = bytes(32)  # of coins that everybody knows: what they draw is about no data, and thrown away


def _empty(prepared: Prepared, task: Task) -> Exact:
    """One group without rows, as an engine would answer."""
    nulls = {f"key {i}": pyarrow.nulls(1, ARROW[kind.type]) for i, kind in enumerate(prepared.keys)}
    sizes = ((1, m.cells) if m.what == "histogram" else 1 for m in task.request.measures)
    zeros = tuple(np.zeros(size, np.int64) for size in sizes)
    return Exact(pyarrow.table(nulls) if prepared.opens else None, zeros)


@dataclass(frozen=True)
class _Forecast:
    prepared: Prepared
    design: Design
    place: int
    neighbours: Neighbours
    level: float
    sizes: tuple[int, ...]
    known: Errors | None = None

    @cached_property
    def errors(self) -> Errors:
        """What is known of errors, at the level that bars have where rows are selected by noisy numbers."""
        level = among(self.level, self.prepared.among)
        return errors(self.design, self.place, level) if self.known is None else self.known

    @cached_property
    def noises(self) -> Noises:
        """What is known of each measure's error."""
        return self.errors.noises

    def column(self, name: str, result: Result) -> Expected:
        aggregates = tuple(dict.fromkeys(aggregates_of(result)))
        widths = {} if self._ranked(aggregates) else {n: self._half_width(result, n) for n in self.sizes}
        first = widths.get(self.sizes[0], math.inf)
        same = math.isfinite(first) and np.allclose(list(widths.values()), first, rtol=1e-9, atol=0)
        return Expected(
            name,
            "; ".join(dict.fromkeys(self._mechanisms(aggregates))),
            "; ".join(dict.fromkeys(self._sensitivities(aggregates))),
            first if same else None,
            {} if same else widths,
            self._ranks(aggregates),
            "; ".join(dict.fromkeys(filter(None, [*self._assumptions(aggregates), self._selecting(result, widths)]))),
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
            self.errors,
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
        level = among(self.level, self.prepared.among)
        return max((self.design.ranked(self.place, m, at).rank_error(level) for m, at in asked), default=None)

    def _assumptions(self, aggregates: tuple[Aggregate, ...]) -> Iterator[str]:
        if any(map(of_pairs, aggregates)):
            yield "the error is larger where values are spread over less than their bounds"
        for aggregate in aggregates:
            if aggregate.at is not None:
                yield self._rows_needed(aggregate, aggregate.at)

    def _selecting(self, result: Result, widths: Mapping[int, float]) -> str:
        """Below which number a row that was selected by this column may be noise alone."""
        query = self.prepared.query
        by = [*([] if query.limit is None else [one.by for one in query.order]), query.having]
        if self.prepared.among == 1 or not any(one is not None and _uses(one, result) for one in by):
            return ""
        least = min(widths.values(), default=math.inf)
        return f"a row below {rounded(least, up=True, digits=3)} may be noise alone" if math.isfinite(least) else ""

    def _rows_needed(self, aggregate: Aggregate, at: Fraction) -> str:
        """From how many rows on a group has a quantile, with as much noise as not; nothing if it always may."""
        (measure,) = measures_of(aggregate, self.prepared.shape, self.prepared.part)
        n = vouching(aggregate, self.prepared.shape)
        if n is None or (measure, at) not in self.errors.rows:
            return ""
        rows = self.errors.rows[measure, at] + self.errors.sure[n]
        return f"groups of fewer than about {math.ceil(rows):,} rows have no answer"

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


def _uses(outer: Result, inner: Result) -> bool:
    """Whether a result is computed from another one."""
    return outer == inner or (isinstance(outer, ResultCall) and any(_uses(one, inner) for one in outer.arguments))


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

"""From noised measures to the table that is handed out: outputs with error bars, then having, order and limit.

Nothing here sees data: it is all post-processing, free of charge.
"""

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from typing import Any, TypeAlias, assert_never

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.errors import InputError
from noisette.mechanisms import Gaussian
from noisette.query.aggregate import estimate, measures_of, vouching
from noisette.query.design import Design
from noisette.query.draw import Noised
from noisette.query.estimate import Estimate, Noise, Noises, Others
from noisette.query.kind import Kind, Value
from noisette.query.measure import Measure
from noisette.query.plan import Aggregate, Key, Ordering, Query, Result, ResultCall, ResultLiteral, aggregates_of
from noisette.query.possible import possible
from noisette.query.prepare import Prepared, deciding, selected_among
from noisette.query.ranks import Ranks
from noisette.query.types import ARROW

__all__ = ["Errors", "Scene", "column_of", "columns", "errors", "errors_of", "key_columns", "noises", "order_of"]

Evaluated: TypeAlias = Any
"""An `Estimate`, an Arrow array of keys or of truth values, or a constant."""


@dataclass(frozen=True)
class Errors:
    """What is known of errors: of each measure's at the level of the bars, and what vouches for bars.

    `sure` is by how much a measure is too large at most, except with a twentieth of the chance that bars miss · `rows`
    how many rows a quantile's bar rests on, if on any · `most` groups among which rows may be selected by noisy
    numbers if bars of quantiles hold for all of them.
    """

    noises: Noises
    sure: Mapping[Measure, float]
    rows: Mapping[tuple[Measure, Fraction], int]
    most: int


def errors(design: Design, index: int, level: float) -> Errors:
    """What is known of errors in one task."""
    drawn = [(measure, one) for (i, measure, _), one in design.quantiles.items() if i == index]
    rows = {(measure, at): one.rows for measure, one in drawn if isinstance(one, Ranks) for at in one.at}
    return errors_of(lambda each: noises(design, index, each), level, rows, design.tasks[index].among)


def errors_of(
    noises_at: Callable[[float], Noises], level: float, rows: Mapping[tuple[Measure, Fraction], int], most: int
) -> Errors:
    """What is known of errors, from what is known of noises at a level."""
    rarely = 1 - (1 - level) / 10  # that much on both sides, so a twentieth of the bars' misses on one
    sure = {measure: noise.half_width for measure, noise in noises_at(rarely).items() if isinstance(measure, Measure)}
    return Errors(noises_at(level), sure, rows, most)


def noises(design: Design, index: int, level: float) -> Noises:
    """What is known of each measure's noise in one task, in natural units."""
    normal, task = NormalDist().inv_cdf((1 + level) / 2), design.tasks[index]
    mechanisms: dict[Measure, Any] = {m: design.noise[index, m] for m in task.noised}
    if task.members is not None and task.members in task.used:
        mechanisms[task.members] = design.keys[index]
    found = {measure: _noise(mechanism, measure, level, normal) for measure, mechanism in mechanisms.items()}
    return {**found, **{Others(measure): noise for measure, noise in found.items()}}  # at most as far from normal


def _noise(mechanism: Any, measure: Measure, level: float, normal: float) -> Noise:
    deviation, half = math.sqrt(mechanism.variance()), mechanism.interval(level)
    if measure.what != "sum":  # counts are rounded to whole numbers, which adds to noise that is not whole
        rounded = math.hypot(deviation, 1 / math.sqrt(12)) if isinstance(mechanism, Gaussian) else deviation
        return Noise(rounded, float(math.ceil(half - 0.5)), normal, whole=True)
    return Noise(deviation * float(measure.grid), half * float(measure.grid), normal)


# Keys


def key_columns(prepared: Prepared, noised: Noised) -> list[pyarrow.Array]:
    """The keys of each group, one array for each key."""
    if noised.keys is not None:
        return [noised.keys.column(i).combine_chunks() for i in range(noised.keys.num_columns)]
    domains = [domain for domain in prepared.request.domains if domain is not None]
    sizes = [len(domain) for domain in domains]
    found = []
    for i, (kind, domain) in enumerate(zip(prepared.keys, domains, strict=True)):
        inner, outer = math.prod(sizes[i + 1 :]), math.prod(sizes[:i])
        values = _arrow(domain, kind)
        if inner == outer == 1:
            found.append(values)
            continue
        at = np.tile(np.repeat(np.arange(sizes[i]), inner), outer)
        found.append(values.take(pyarrow.array(at)))
    return found


def _arrow(domain: tuple[Value, ...], kind: Kind) -> pyarrow.Array:
    if kind.type == "real":
        return pyarrow.array([None if value is None else float(value) for value in domain], ARROW["real"])  # type: ignore[arg-type]
    if kind.type == "integer" and kind.keys is None and kind.grid == 1 and domain[0] is not None:
        first, null = int(domain[0]), domain[-1] is None  # type: ignore[arg-type]
        steps = np.arange(first, first + len(domain), dtype=np.int64)  # as `Kind.values` lists them
        return pyarrow.array(steps, mask=steps == steps[-1] if null else None)
    return pyarrow.array(domain, ARROW[kind.type])


# Outputs


@dataclass(frozen=True)
class Scene:
    """What outputs are computed from: keys, noised measures and their errors; `hidden` groups are suppressed.

    Where groups are made up, each stands for as many that are alike as `sizes` of the keys say.
    """

    prepared: Prepared
    noised: Noised
    errors: Errors
    keys: list[pyarrow.Array]
    hidden: NDArray[np.bool_] | None = None
    sizes: tuple[int, ...] | None = None

    @staticmethod
    def of(prepared: Prepared, noised: Noised, errors: Errors) -> "Scene":
        """The scene of what was drawn; the numbers of suppressed groups are 0 here, and are never shown."""
        keys, units = key_columns(prepared, noised), deciding(prepared)
        if units is None:
            return Scene(prepared, noised, errors, keys)
        hidden = np.isnan(noised.measures[units])
        measures = {m: np.where(hidden, 0, numbers) for m, numbers in noised.measures.items()}
        quantiles = {
            place: (np.where(hidden, 0, a), np.where(hidden, 0, b), np.where(hidden, 0, c))
            for place, (a, b, c) in noised.quantiles.items()
        }
        return Scene(prepared, replace(noised, measures=measures, quantiles=quantiles), errors, keys, hidden)

    @property
    def noises(self) -> Noises:
        """What is known of each measure's error."""
        return self.errors.noises

    def value(self, result: Result) -> Evaluated:
        """An output in every group; NaN where nothing is known of it."""
        match result:
            case Key(position):
                return self.keys[position]
            case ResultLiteral(value):
                return value if isinstance(value, str | bool) or value is None else Estimate.constant(float(value))
            case Aggregate(at=Fraction()):
                return self._quantile(result)
            case Aggregate():
                return self._estimate(result)
            case ResultCall("total", (of, *keys)):
                return self._total(of, [key.position for key in keys if isinstance(key, Key)])
            case ResultCall("grouping"):
                return Estimate.constant(0.0)
            case ResultCall("divide"):
                found = _call(result, [self.value(argument) for argument in result.arguments])
                return found if found.certain else self._known(found, result)
            case ResultCall():
                return _call(result, [self.value(argument) for argument in result.arguments])
            case _:
                assert_never(result)

    def _estimate(self, aggregate: Aggregate) -> Estimate:
        found = estimate(aggregate, self.prepared.shape, self.prepared.part, self._measured)
        n = vouching(aggregate, self.prepared.shape)
        return found if n is None else self._known(found, aggregate, n, 0)

    def _known(self, found: Estimate, result: Result, n: Measure | None = None, rows: float = 0) -> Estimate:
        """The same, with no number where nothing is known, nor in groups of which it is not sure that n exceeds rows.

        What declarations leave one value for is known anyway.
        """
        span = possible(result, self.prepared)
        if n is not None and span[0] < span[1]:
            found = found.only(self.noised.measures[n] - self.errors.sure[n] > rows)
        return found.where_known(self.noises, span)

    def _measured(self, measure: Measure) -> Estimate:
        return Estimate.measured(measure, self.noised.measures[measure])

    def _total(self, of: Result, keys: list[int]) -> Estimate:
        """A number, added up over the groups that are shown and have the same keys."""
        found = self.value(of)
        assert isinstance(found, Estimate)
        if self.sizes is not None:
            return found.times_alike(math.prod(size for at, size in enumerate(self.sizes) if at not in keys))
        places = np.zeros(self.noised.size, np.int64)
        for at in keys:
            codes = self.keys[at].dictionary_encode(null_encoding="encode").indices.to_numpy()
            places = np.unique(places * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
        return found.total(places, self.shown)

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which groups HAVING keeps, without those that are suppressed and those that public tables rule out."""
        having, possible_ones = self.prepared.query.having, np.ones(self.noised.size, bool)
        if self.prepared.groups is not None:
            possible_ones = np.isin(np.arange(self.noised.size), self.prepared.groups)
        truth = True if having is None else np.broadcast_to(_truth(self.value(having)), possible_ones.shape)
        kept = possible_ones & truth
        return kept if self.hidden is None else kept & ~self.hidden

    def _quantile(self, aggregate: Aggregate) -> Estimate:
        (measure,) = measures_of(aggregate, self.prepared.shape, self.prepared.part)
        n = vouching(aggregate, self.prepared.shape)
        assert aggregate.at is not None
        assert n is not None
        place = measure, aggregate.at
        found = Estimate.between(*self.noised.quantiles[place])
        if selected_among(self.prepared.query, self.noised.size) > self.errors.most:
            return found.only(np.zeros(self.noised.size, bool))
        return self._known(
            found, aggregate, n if place in self.errors.rows else None, self.errors.rows.get(place, 1) - 1
        )


def columns(scene: Scene) -> list[Column]:
    """The columns of the answer, in the groups and the order that were asked for."""
    query = scene.prepared.query
    made = [column_of(name, result, scene) for name, result in query.outputs]
    rows = _rows(query, scene)
    return made if rows is None else [column.take(rows) for column in made]


def column_of(name: str, result: Result, scene: Scene) -> Column:
    """An output with its error bars, in every group."""
    value, hidden = scene.value(result), scene.hidden if any(aggregates_of(result)) else None
    if not isinstance(value, Estimate):
        found = value if isinstance(value, pyarrow.Array) else _constant(value, scene.noised.size)
        return Column(name, found if hidden is None else pyarrow.compute.if_else(pyarrow.array(~hidden), found, None))
    ends = *value.interval(scene.noises), *value.unclipped(scene.noises)
    number, low, high, *drawn = (_in_each(part, scene.noised.size) for part in (value.value, *ends))
    own = {m.measure if isinstance(m, Others) else m for m in value.slopes}
    whole = all(isinstance(m, Measure) and m.what != "sum" for m in own) and len(own) == 1
    plain = whole and bool(np.all(np.abs(number) < 2**53)) and bool(np.all(number == np.rint(number)))
    missing = np.isnan(number) if hidden is None else hidden | np.isnan(number)
    numbers = pyarrow.array(number.astype(np.int64) if plain else number, mask=missing)
    low, high, *drawn = (
        np.where(np.isnan(number), endless, end)
        for end, endless in zip((low, high, *drawn), (-np.inf, np.inf) * 2, strict=True)
    )
    if hidden is not None:
        low, high, *drawn = (np.where(hidden, np.nan, end) for end in (low, high, *drawn))
    made = Column(name, numbers, low, high, drawn=(drawn[0], drawn[1]), adds=_adds(result))
    return made.within(possible(result, scene.prepared))


def _adds(result: Result) -> bool:
    """Whether people add a number up over groups: counts, sums, and what is computed from them without products."""
    match result:
        case Aggregate(function):
            return function in ("rows", "count", "units", "sum", "pairs")
        case ResultCall("total" | "add" | "subtract" | "negate" | "round" | "floor" | "ceil", arguments):
            return any(map(_adds, arguments))
        case ResultCall("multiply", (first, second)):
            return (_adds(first) and not any(aggregates_of(second))) or (
                _adds(second) and not any(aggregates_of(first))
            )
        case ResultCall("divide", (first, second)):
            return _adds(first) and not any(aggregates_of(second))
        case _:
            return False


def _in_each(numbers: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """One number for each group."""
    return np.ascontiguousarray(np.broadcast_to(numbers, (size,)), dtype=float)


def _rows(query: Query, scene: Scene) -> NDArray[np.int64] | None:
    """Which groups are shown, in which order; None for all as they are."""
    ordered = query.order or _as_selected(query)
    groups = scene.prepared.groups
    if query.having is None and not ordered and query.limit is None:
        return groups
    rows = np.arange(scene.noised.size)
    if query.having is not None:
        rows = rows[scene.shown]
    if groups is not None:
        rows = rows[np.isin(rows, groups)]
    for ordering in reversed(ordered):  # stable sorts, the last one decides first
        rows = rows[order_of(scene.value(ordering.by), rows, descending=ordering.descending)]
    if scene.hidden is not None and query.order:
        rows = rows[np.argsort(scene.hidden[rows], kind="stable")]  # suppressed groups come last
    return rows if query.limit is None else rows[: query.limit]


def _as_selected(query: Query) -> tuple[Ordering, ...]:
    """Groups come sorted by their keys; by which first is settled by the order in which these are selected."""
    keys = [result for _, result in query.outputs if isinstance(result, Key)]
    places = [key.position for key in keys]
    return () if places == sorted(places) else tuple(Ordering(key) for key in keys)


def _constant(value: Evaluated, size: int) -> pyarrow.Array:
    """A truth value for each group, or a constant that was selected beside the rest."""
    if isinstance(value, np.ndarray):
        return pyarrow.array(np.broadcast_to(value, (size,)))
    return pyarrow.array([value] * size)


# Arithmetic and comparisons on released values

_COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "equal": (np.equal, "equal"),
    "unequal": (np.not_equal, "not_equal"),
    "less": (np.less, "less"),
    "at_most": (np.less_equal, "less_equal"),
    "more": (np.greater, "greater"),
    "at_least": (np.greater_equal, "greater_equal"),
}
_ROUNDINGS: dict[str, Callable[..., Any]] = {"floor": np.floor, "ceil": np.ceil}
_OUTWARDS = np.floor, np.ceil


def _to(rounding: Callable[..., Any], digits: int, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers up or down to the nearest of that many digits; one that is there already stays.

    >>> _to(np.floor, 1, np.array([1.3, -np.inf])).tolist(), _to(np.ceil, 1, np.array([1.3, 1.31])).tolist()
    ([1.3, -inf], [1.3, 1.4])
    """
    nearest = np.round(numbers, digits)
    made = rounding(numbers * 10.0**digits) / 10.0**digits
    return np.where(np.isclose(nearest, numbers, rtol=1e-12, atol=0), nearest, made)


def _call(result: ResultCall, values: Sequence[Evaluated]) -> Evaluated:
    """An operation on released values."""
    operation = result.operation
    if operation in _COMPARISONS:
        return _compared(operation, *values)
    if operation in ("and", "or", "not"):
        truths = [_truth(value) for value in values]
        combined = {"and": np.logical_and.reduce, "or": np.logical_or.reduce}.get(operation)
        return np.logical_not(truths[0]) if combined is None else combined(np.broadcast_arrays(*truths))
    return _calculated(operation, [_number(value) for value in values])


def _calculated(operation: str, values: Sequence[Estimate]) -> Estimate:
    first, rest = values[0], values[1:]
    match operation:
        case "add":
            return first + rest[0]
        case "subtract":
            return first - rest[0]
        case "multiply":
            return first * rest[0]
        case "divide":
            if rest[0].certain and not rest[0].value.ndim and rest[0].value == 0:
                raise InputError("A result cannot be divided by 0.")
            return first.over(rest[0])
        case "negate":
            return first.scaled(-1)
        case "abs":
            return first.mirrored()
        case "round":
            digits = int(rest[0].value) if rest else 0
            return first.rounded(np.round(first.value, digits), *(partial(_to, each, digits) for each in _OUTWARDS))
        case _:
            return first.rounded(_ROUNDINGS[operation](first.value), *_OUTWARDS)


def _number(value: Evaluated) -> Estimate:
    if isinstance(value, Estimate):
        return value
    if isinstance(value, pyarrow.Array) and (
        pyarrow.types.is_integer(value.type) or pyarrow.types.is_floating(value.type)
    ):
        return Estimate(value.to_numpy(zero_copy_only=False).astype(float), {})
    raise InputError("Results can be calculated with only if they are numbers.")


def _compared(operation: str, a: Evaluated, b: Evaluated) -> NDArray[np.bool_]:
    numeric, named = _COMPARISONS[operation]
    if isinstance(a, Estimate) or isinstance(b, Estimate):
        return np.asarray(numeric(_number(a).value, _number(b).value))
    if not isinstance(a, pyarrow.Array) and not isinstance(b, pyarrow.Array):
        raise InputError("Compare a column of the answer with something: two constants decide nothing.")
    left, right = _typed(a, b), _typed(b, a)
    try:
        return _truth(pyarrow.compute.call_function(named, [left, right]))
    except pyarrow.ArrowException:
        raise InputError("These results cannot be compared: they are of different types.") from None


def _typed(value: Evaluated, other: Evaluated) -> Any:
    """A constant as a scalar of the other side's type; a date may be written as text."""
    if isinstance(value, pyarrow.Array):
        return value
    try:
        if isinstance(value, str) and pyarrow.types.is_date(other.type):
            value = datetime.date.fromisoformat(value)
        return pyarrow.scalar(value, other.type)
    except (ValueError, TypeError, pyarrow.ArrowException):
        raise InputError("These results cannot be compared: they are of different types.") from None


def _truth(value: Evaluated) -> NDArray[np.bool_]:
    """A truth value for each group; NULL is false."""
    if isinstance(value, Estimate):
        return np.asarray(value.value != 0)
    if isinstance(value, pyarrow.Array | pyarrow.ChunkedArray):
        return np.asarray(value.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
    return np.asarray(value, dtype=bool)


def order_of(value: Evaluated, rows: NDArray[np.int64], *, descending: bool) -> NDArray[np.int64]:
    """How some rows are sorted by a value: a stable order, NULL last."""
    if isinstance(value, Estimate):
        numbers = value.value[rows] if value.value.ndim else np.broadcast_to(value.value, rows.shape)
        return np.argsort(-numbers if descending else numbers, kind="stable")
    if value is None or isinstance(value, str | bool):  # the same in every group, as NULL is in totals over a key
        return np.arange(len(rows))
    keys = (value if isinstance(value, pyarrow.Array) else pyarrow.array(value)).take(pyarrow.array(rows))
    return np.asarray(pyarrow.compute.array_sort_indices(keys, order="descending" if descending else "ascending"))

"""From noised measures to the table that is handed out: outputs with error bars, then having, order and limit.

Nothing here sees data: it is all post-processing, free of charge.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, assert_never

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.mechanisms import Gaussian
from noisette.query.aggregate import estimate, measures_of
from noisette.query.arithmetic import Evaluated, call, order, truth
from noisette.query.design import Design
from noisette.query.draw import Noised
from noisette.query.estimate import Estimate, Noise
from noisette.query.kind import Kind, Value
from noisette.query.measure import Measure
from noisette.query.plan import Aggregate, Key, Ordering, Query, Result, ResultCall, ResultLiteral
from noisette.query.possible import possible
from noisette.query.prepare import Prepared
from noisette.query.types import ARROW

__all__ = ["Scene", "columns", "key_columns", "noises"]


def noises(design: Design, index: int, level: float) -> dict[Any, Noise]:
    """What is known of each measure's error, in natural units."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    task = design.tasks[index]
    mechanisms: dict[Measure, Any] = {m: design.noise[index, m] for m in task.noised}
    if task.members is not None and task.members in task.asked:
        mechanisms[task.members] = design.keys[index]
    return {measure: _noise(mechanism, measure, level, normal) for measure, mechanism in mechanisms.items()}


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
    """What outputs are computed from: keys, noised measures and their errors."""

    prepared: Prepared
    noised: Noised
    noises: Mapping[Any, Noise]
    keys: list[pyarrow.Array]

    def value(self, result: Result) -> Evaluated:
        """An output in every group."""
        match result:
            case Key(position):
                return self.keys[position]
            case ResultLiteral(value):
                return value if isinstance(value, str | bool) or value is None else Estimate.constant(float(value))
            case Aggregate(at=Fraction()):
                return self._quantile(result)
            case Aggregate():
                return estimate(result, self.prepared.shape, self.prepared.part, self._measured)
            case ResultCall():
                return call(result, [self.value(argument) for argument in result.arguments])
            case _:
                assert_never(result)

    def _measured(self, measure: Measure) -> Estimate:
        return Estimate.measured(measure, self.noised.measures[measure])

    def _quantile(self, aggregate: Aggregate) -> Estimate:
        (measure,) = measures_of(aggregate, self.prepared.shape, self.prepared.part)
        assert aggregate.at is not None
        value, low, high = self.noised.quantiles[measure, aggregate.at]
        return Estimate.between(value, low, high)


def columns(scene: Scene) -> list[Column]:
    """The columns of the answer, in the groups and the order that were asked for."""
    query = scene.prepared.query
    made = [_column(name, result, scene) for name, result in query.outputs]
    rows = _rows(query, scene)
    return made if rows is None else [column.take(rows) for column in made]


def _column(name: str, result: Result, scene: Scene) -> Column:
    value = scene.value(result)
    if not isinstance(value, Estimate):
        return Column(name, value if isinstance(value, pyarrow.Array) else _constant(value, scene.noised.size))
    ends = *value.interval(scene.noises), *value.unclipped(scene.noises)
    number, low, high, *drawn = (_in_each(part, scene.noised.size) for part in (value.value, *ends))
    whole = all(isinstance(m, Measure) and m.what != "sum" for m in value.slopes) and len(value.slopes) == 1
    plain = whole and bool(np.all(np.abs(number) < 2**53)) and bool(np.all(number == np.rint(number)))
    numbers = pyarrow.array(number.astype(np.int64) if plain else number)
    made = Column(name, numbers, low, high, drawn=(drawn[0], drawn[1]))
    return made.within(possible(result, scene.prepared))


def _in_each(numbers: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """One number for each group."""
    return np.ascontiguousarray(np.broadcast_to(numbers, (size,)), dtype=float)


def _rows(query: Query, scene: Scene) -> NDArray[np.int64] | None:
    """Which groups are shown, in which order; None for all as they are."""
    ordered = query.order or _as_selected(query)
    if query.having is None and not ordered and query.limit is None:
        return None
    rows = np.arange(scene.noised.size)
    if query.having is not None:
        rows = rows[np.broadcast_to(truth(scene.value(query.having)), rows.shape)]
    for ordering in reversed(ordered):  # stable sorts, the last one decides first
        rows = rows[order(scene.value(ordering.by), rows, descending=ordering.descending)]
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

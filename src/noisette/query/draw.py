"""From exact measures to noised ones: the only place where a question's noise is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Keep
from noisette.query.design import Design, Task
from noisette.query.measure import Exact, Measure
from noisette.query.ranks import Ends

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Noised", "draw"]


@dataclass(frozen=True)
class Noised:
    """What may be seen: the keys of the groups (None if all combinations are there), numbers and quantiles of each.

    Measures and quantiles are in natural units, steps times grid.
    """

    keys: "pyarrow.Table | None"
    size: int
    measures: Mapping[Measure, NDArray[np.float64]]
    quantiles: Mapping[tuple[Measure, Fraction], Ends]


def draw(design: Design, index: int, exact: Exact, rng: Random = SYSTEM) -> Noised:
    """Noise the measures of one task. Groups whose keys are not told leave no trace."""
    task = design.tasks[index]
    values = dict(zip(task.request.measures, exact.measures, strict=True))
    keys = exact.keys
    told: dict[Measure, NDArray[np.float64]] = {}
    if task.members is not None:
        mask, told = _told(design, index, values[task.members], rng)
        kept, keys = _in_order(keys, np.flatnonzero(mask))
        values = {measure: numbers[kept] for measure, numbers in values.items()}
        told = {measure: numbers[kept] for measure, numbers in told.items()}
    size = len(next(iter(values.values())))
    noised = {m: _noised(design.noise[index, m], values[m], m, rng) for m in task.noised}
    return Noised(keys, size, noised | told, _quantiles(design, index, values, rng))


def _quantiles(
    design: Design, index: int, values: Mapping[Measure, NDArray[np.int64]], rng: Random
) -> dict[tuple[Measure, Fraction], Ends]:
    """Those of each histogram, in turn: what is drawn has one row for each of them."""
    found: dict[tuple[Measure, Fraction], Ends] = {}
    for (i, measure, at), one in design.quantiles.items():
        if i == index:
            rows = zip(*map(np.atleast_2d, one.draw(values[measure], measure, rng)), strict=True)
            found |= {(measure, q): ends for q, ends in zip(at, rows, strict=True)}
    return found


def _in_order(keys: "pyarrow.Table | None", kept: NDArray[np.intp]) -> tuple[NDArray[np.intp], "pyarrow.Table | None"]:
    """The groups that are told in ascending order of their keys, NULL last: an engine's own order may tell more."""
    import pyarrow.compute

    if keys is None:
        return kept, None
    told = keys.take(pyarrow.array(kept))
    by = [(name, "ascending") for name in told.column_names]
    order = pyarrow.compute.sort_indices(told, sort_keys=by)  # NULL comes last by itself
    return kept[order.to_numpy()], told.take(order)


def _told(
    design: Design, index: int, members: NDArray[np.int64], rng: Random
) -> tuple[NDArray[np.bool_], dict[Measure, NDArray[np.float64]]]:
    """Which unknown keys are told, with the noisy number of their units if that is asked for."""
    rule, task = design.keys[index], design.tasks[index]
    if not len(members):
        return np.zeros(0, bool), _nothing(task)
    if isinstance(rule, Keep):
        return rule(members, rng), {}
    kept, noisy = rule.release(members, rng)
    assert task.members is not None
    return kept, {task.members: noisy.astype(float)}


def _nothing(task: Task) -> dict[Measure, NDArray[np.float64]]:
    return {} if task.members is None or task.members not in task.asked else {task.members: np.zeros(0)}


def _noised(mechanism: Any, values: NDArray[np.int64], measure: Measure, rng: Random) -> NDArray[np.float64]:
    """Noise on steps; what counts is a whole number again afterwards."""
    if not len(values):
        return np.zeros(0)
    noisy = np.asarray(mechanism(values, rng))
    if measure.what != "sum":
        return np.asarray(np.rint(noisy.astype(float)))
    return np.asarray(noisy.astype(float) * float(measure.grid))

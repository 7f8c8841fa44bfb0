"""From exact measures to noised ones: the only place where a question's noise is drawn, and what was drawn as bytes.

Bytes are Arrow tables, one for each task, and hold nothing that can run: they are stored and handed out again.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from noisette.errors import PrivacyError
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Keep
from noisette.query.design import Design, Task
from noisette.query.measure import Exact, Measure
from noisette.query.rank_tree import Ends

__all__ = ["Counts", "Noised", "TaskDraw", "draw", "kept_counts", "packed", "unpacked"]

_SIZE = b"size"


@dataclass(frozen=True)
class Counts:
    """Noisy numbers of groups, by their keys, or in the order of all combinations where `keys` is None."""

    keys: list[tuple[Any, ...]] | None
    numbers: NDArray[np.float64]

    def close_to(self, other: "Counts", least: int) -> NDArray[np.bool_]:
        """Which groups differ by less than `least` from the same group among others; a suppressed one is not known.

        >>> Counts(None, np.array([5.0, 9, np.nan])).close_to(Counts(None, np.array([7.0, 30, 1])), 3).tolist()
        [True, False, False]
        """
        if (self.keys is None) != (other.keys is None) or (
            self.keys is None and len(self.numbers) != len(other.numbers)
        ):
            return np.zeros(len(self.numbers), bool)
        if self.keys is None or other.keys is None:
            return np.asarray(np.abs(self.numbers - other.numbers) < least)
        known = dict(zip(other.keys, other.numbers, strict=True))
        return np.array(
            [abs(n - known.get(key, np.nan)) < least for key, n in zip(self.keys, self.numbers, strict=True)], bool
        )


def _rows(keys: pyarrow.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in keys.columns), strict=True))


@dataclass(frozen=True)
class Noised:
    """What may be seen: the keys of the groups (None if all combinations are there), numbers and quantiles of each.

    Measures and quantiles are in natural units, steps times grid; NaN in groups that a minimum frequency suppresses.
    """

    keys: pyarrow.Table | None
    size: int
    measures: Mapping[Measure, NDArray[np.float64]]
    quantiles: Mapping[tuple[Measure, Fraction], Ends]

    def counts(self, measure: Measure) -> "Counts":
        """The noisy numbers of one measure with the keys of their groups."""
        return Counts(None if self.keys is None else _rows(self.keys), self.measures[measure])

    @property
    def numbered(self) -> NDArray[np.bool_]:
        """Which groups have a number: the others are suppressed."""
        return np.asarray(np.any([~np.isnan(numbers) for numbers in self.measures.values()], axis=0))

    def without(self, hidden: NDArray[np.bool_]) -> "Noised":
        """The same with NaN for all numbers of the groups that are not shown; those of unknown keys are left out."""
        if self.keys is not None:
            return self._of(np.flatnonzero(~hidden))
        return replace(
            self,
            measures={m: np.where(hidden, np.nan, numbers) for m, numbers in self.measures.items()},
            quantiles={
                place: (np.where(hidden, np.nan, a), np.where(hidden, np.nan, b), np.where(hidden, np.nan, c))
                for place, (a, b, c) in self.quantiles.items()
            },
        )

    def _of(self, chosen: NDArray[np.intp]) -> "Noised":
        assert self.keys is not None
        measures = {m: numbers[chosen] for m, numbers in self.measures.items()}
        quantiles = {place: (a[chosen], b[chosen], c[chosen]) for place, (a, b, c) in self.quantiles.items()}
        return Noised(self.keys.take(pyarrow.array(chosen)), len(chosen), measures, quantiles)


def draw(design: Design, index: int, exact: Exact, rng: Random = SYSTEM) -> Noised:
    """Noise the measures of one task. Groups whose keys are not released leave no trace.

    What a minimum frequency suppresses is decided by the noisy number of units, and all of it is drawn before.
    """
    task = design.tasks[index]
    values = dict(zip(task.request.measures, exact.measures, strict=True))
    keys = exact.keys
    released: dict[Measure, NDArray[np.float64]] = {}
    if task.members is not None:
        mask, released = _released(design, index, values[task.members], rng)
        chosen, keys = _in_order(keys, np.flatnonzero(mask))
        values = {measure: numbers[chosen] for measure, numbers in values.items()}
        released = {measure: numbers[chosen] for measure, numbers in released.items()}
    size = len(next(iter(values.values())))
    noised = {m: _noised(design.noise[index, m], values[m], m, rng) for m in task.noised}
    made = Noised(keys, size, noised | released, _quantiles(design, index, values, rng))
    if task.deciding is None:
        return made
    return made.without(made.measures[task.deciding] < design.shown[index])


@dataclass(frozen=True)
class TaskDraw:
    """The draw of one task, for an engine to apply where the cells are (`engines.contract.CellDraw`).

    All that is drawn of a cell depends on this cell alone: its noise, its quantiles, whether its key is released, and
    whether a minimum frequency suppresses it. So any engine may draw some cells here and others there.
    """

    design: Design
    index: int

    def __call__(self, exact: Exact, rng: Random = SYSTEM) -> Noised:
        """Noise some cells of the task."""
        return draw(self.design, self.index, exact, rng)

    def table(self, noised: Noised) -> pyarrow.Table:
        """What was drawn of some cells: the columns are the same for all cells."""
        return _table(noised)

    def read(self, table: pyarrow.Table) -> Noised:
        """What was drawn, from the rows of such tables; released keys come in ascending order, NULL last."""
        made = _read(table.replace_schema_metadata({_SIZE: str(table.num_rows)}), self.design.tasks[self.index])
        if made.keys is None:
            return made
        order, _ = _in_order(made.keys, np.arange(made.size))
        return made._of(order)


def _quantiles(
    design: Design, index: int, values: Mapping[Measure, NDArray[np.int64]], rng: Random
) -> dict[tuple[Measure, Fraction], Ends]:
    """Those of each histogram, in turn: what is drawn has one row for each of them."""
    found: dict[tuple[Measure, Fraction], Ends] = {}
    for (i, measure, at), one in design.quantiles.items():
        if i == index:
            rows = zip(*map(np.atleast_2d, one.draw(values[measure], measure, rng)), strict=True)
            found |= {(measure, q): ends for q, ends in zip(at, rows, strict=True)}
    return _ascending(found)


def _ascending(found: dict[tuple[Measure, Fraction], Ends]) -> dict[tuple[Measure, Fraction], Ends]:
    """Quantiles of the same values in their order; a bar that does not hold its new value is made longer.

    Sorting brings numbers no further from the true ones, which are in order, and a longer bar holds what it held.
    """
    made = dict(found)
    for measure in dict.fromkeys(measure for measure, _ in found):
        places = sorted((place for place in found if place[0] == measure), key=lambda place: place[1])
        values = np.sort(np.array([found[place][0] for place in places]), axis=0)
        for place, value in zip(places, values, strict=True):
            _, low, high = found[place]
            made[place] = value, np.minimum(low, value), np.maximum(high, value)
    return made


def _in_order(keys: pyarrow.Table | None, chosen: NDArray[np.intp]) -> tuple[NDArray[np.intp], pyarrow.Table | None]:
    """The released groups in ascending order of their keys, NULL last: an engine's own order may reveal more."""
    if keys is None:
        return chosen, None
    released = keys.take(pyarrow.array(chosen))
    by = [(name, "ascending") for name in released.column_names]
    order = pyarrow.compute.sort_indices(released, sort_keys=by)  # NULL comes last by itself
    return chosen[order.to_numpy()], released.take(order)


def _released(
    design: Design, index: int, members: NDArray[np.int64], rng: Random
) -> tuple[NDArray[np.bool_], dict[Measure, NDArray[np.float64]]]:
    """Which unknown keys are released, with the noisy number of their units if that is asked for."""
    rule, task = design.keys[index], design.tasks[index]
    assert task.members is not None
    if isinstance(rule, Keep):
        return (rule(members, rng) if len(members) else np.zeros(0, bool)), {}
    chosen, noisy = rule.release(members, rng) if len(members) else (np.zeros(0, bool), np.zeros(0))
    return chosen, {task.members: noisy.astype(float)}


def _noised(mechanism: Any, values: NDArray[np.int64], measure: Measure, rng: Random) -> NDArray[np.float64]:
    """Noise on steps; what counts is a whole number again afterwards."""
    if not len(values):
        return np.zeros(0)
    noisy = np.asarray(mechanism(values, rng))
    if measure.what != "sum":
        return np.asarray(np.rint(noisy.astype(float)))
    return np.asarray(noisy.astype(float) * float(measure.grid))


# Bytes


def packed(drawn: Sequence[Noised]) -> bytes:
    """Keys, measures and quantiles of each task; measures are named by what they are, not by their place."""
    buffer = io.BytesIO()
    for noised in drawn:
        table = _table(noised)
        with pyarrow.ipc.new_stream(buffer, table.schema) as writer:
            writer.write_table(table)
    return buffer.getvalue()


def _table(noised: Noised) -> pyarrow.Table:
    keys = [] if noised.keys is None else noised.keys.columns
    columns = {f"key {i}": column for i, column in enumerate(keys)}
    columns |= {_name(measure): pyarrow.array(values) for measure, values in noised.measures.items()}
    for place, ends in noised.quantiles.items():
        columns |= {f"{_name(*place)} {i}": pyarrow.array(end) for i, end in enumerate(ends)}
    return pyarrow.table(columns).replace_schema_metadata({_SIZE: str(noised.size)})


def _name(*what: object) -> str:
    """A measure, or a quantile of one, in a few letters that are the same in every process."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:32]


def unpacked(stored: bytes, design: Design) -> tuple[Noised, ...]:
    """What was packed for the same question; raise PrivacyError if it is not that."""
    try:
        buffer = io.BytesIO(stored)
        found = tuple(_read(pyarrow.ipc.open_stream(buffer).read_all(), task) for task in design.tasks)
        whole = buffer.read() == b""
    except (pyarrow.ArrowException, ValueError, KeyError, TypeError, OSError):
        whole = False
    if not whole:
        raise PrivacyError("The stored answer to this question was changed: restore a backup of the ledger.")
    return found


def _read(table: pyarrow.Table, task: Task) -> Noised:
    table.validate(full=True)
    size = int((table.schema.metadata or {})[_SIZE])
    if table.num_columns and table.num_rows != size:
        raise ValueError("another size")
    keys = [name for name in table.column_names if name.startswith("key ")]
    released = [task.members] if task.members is not None and _name(task.members) in table.column_names else []
    measures = {m: _numbers(table, _name(m)) for m in (*task.noised, *released)}
    quantiles: dict[Any, Any] = {
        place: tuple(_numbers(table, f"{_name(*place)} {i}") for i in range(3)) for place in task.quantiles
    }
    return Noised(table.select(keys) if keys else None, size, measures, quantiles)


def kept_counts(stored: bytes, at: int, measure: Measure) -> Counts | None:
    """The noisy numbers of a measure in one task of an answer that was packed; None where it has none."""
    try:
        buffer = io.BytesIO(stored)
        table = [pyarrow.ipc.open_stream(buffer).read_all() for _ in range(at + 1)][at]
        numbers = _numbers(table, _name(measure))
    except (pyarrow.ArrowException, ValueError, KeyError, TypeError, OSError):
        return None
    keys = [name for name in table.column_names if name.startswith("key ")]
    return Counts(_rows(table.select(keys)) if keys else None, numbers)


def _numbers(table: pyarrow.Table, name: str) -> Any:
    return np.array(table.column(name).to_numpy(), dtype=float)

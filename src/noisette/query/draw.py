"""From exact measures to noised ones: the only place where a question's noise is drawn, and what was drawn as bytes.

Bytes are Arrow tables, one for each task, and hold nothing that can run: they are stored and handed out again.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from noisette.query.ranks import Ends

__all__ = ["Noised", "draw", "packed", "unpacked"]

_SIZE = b"size"


@dataclass(frozen=True)
class Noised:
    """What may be seen: the keys of the groups (None if all combinations are there), numbers and quantiles of each.

    Measures and quantiles are in natural units, steps times grid.
    """

    keys: pyarrow.Table | None
    size: int
    measures: Mapping[Measure, NDArray[np.float64]]
    quantiles: Mapping[tuple[Measure, Fraction], Ends]


def draw(design: Design, index: int, exact: Exact, rng: Random = SYSTEM) -> Noised:
    """Noise the measures of one task. Groups whose keys are not released leave no trace."""
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
    return Noised(keys, size, noised | released, _quantiles(design, index, values, rng))


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
    if not len(members):
        return np.zeros(0, bool), _nothing(task)
    if isinstance(rule, Keep):
        return rule(members, rng), {}
    chosen, noisy = rule.release(members, rng)
    assert task.members is not None
    return chosen, {task.members: noisy.astype(float)}


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


def _numbers(table: pyarrow.Table, name: str) -> Any:
    return np.array(table.column(name).to_numpy(), dtype=float)

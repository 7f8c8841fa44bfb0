"""A condition that every row of a synthetic table keeps: it is public, and read on made-up rows alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute

from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.query.frame import frame
from noisette.query.kind import Kind
from noisette.query.plan import Relation
from noisette.query.schema import Column, Schema, Table
from noisette.questions.parts.synthetic_columns import SyntheticColumn

__all__ = ["Rule", "values_of"]

_TABLE, _PLACE = "rows", "place_of_row"
_TRIES = 10

Codes: TypeAlias = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Rule:
    """The rows for which a condition is true."""

    schema: Schema
    relation: Relation

    @classmethod
    def of(cls, where: str, columns: Sequence[SyntheticColumn]) -> "Rule":
        """Read a condition about columns of the table."""
        described = [Column(one.name, one.kind) for one in columns]
        table = Table(_TABLE, (*described, Column(_PLACE, Kind("integer"))), public=True)
        schema = {_TABLE: table}
        return cls(schema, frame(schema, _TABLE).where(where).relation)

    def holds(self, rows: pyarrow.Table) -> NDArray[np.bool_]:
        """Which rows keep it."""
        from noisette.engines.duckdb.source import DuckDB

        placed = rows.append_column(_PLACE, pyarrow.array(np.arange(len(rows))))
        source = DuckDB({_TABLE: placed}, self.schema)
        found = source.rows(self.relation, {f"{_TABLE}.{_PLACE}": "place"}, self.schema, b"")
        kept = np.zeros(len(rows), bool)
        kept[found.column("place").to_numpy()] = True
        return kept

    def allows(self, columns: Sequence[SyntheticColumn], rng: Random) -> Callable[[Codes], NDArray[np.bool_]]:
        """The same for codes, whose values lie anywhere inside their bins."""
        return lambda codes: self.holds(values_of(columns, codes, rng))

    def kept(self, columns: Sequence[SyntheticColumn], codes: Codes, rng: Random) -> pyarrow.Table:
        """Values of codes such that all rows keep it: drawn again inside their bins, and at last copied from others."""
        rows = values_of(columns, codes, rng)
        holds = self.holds(rows)
        for _ in range(_TRIES):
            if holds.all():
                return rows
            again = values_of(columns, codes, rng)
            pairs = zip(rows.columns, again.columns, strict=True)
            rows = pyarrow.table([compute.if_else(holds, a, b) for a, b in pairs], names=rows.column_names)
            holds = self.holds(rows)
        if not holds.any():
            raise InputError("No row of the synthetic table keeps the rule: ask with a weaker one.")
        places, well = np.arange(len(rows)), np.flatnonzero(holds)
        places[~holds] = well[np.arange(int((~holds).sum())) % len(well)]
        return rows.take(pyarrow.array(places))


def values_of(columns: Sequence[SyntheticColumn], codes: Codes, rng: Random) -> pyarrow.Table:
    """Rows of codes as values."""
    values = [column.values(one, rng) for column, one in zip(columns, codes, strict=True)]
    return pyarrow.table(values, names=[column.name for column in columns])

"""What the release of a synthetic table is: rows, and how far their tables may be from those of the data."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.ipc

from noisette.errors import InputError, PrivacyError
from noisette.questions.parts.tables import unpack_table
from noisette.releases.synthetic.quality import TableQuality
from noisette.text import aligned

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["Quality", "SyntheticTable", "described", "packed", "unpacked"]

_KEY = b"noisette.synthetic"
_SHOWN = 12


def described(rows: pyarrow.Table, tables: Sequence[TableQuality]) -> pyarrow.Table:
    """Rows that say by themselves how good they are."""
    text = json.dumps([one.to_data() for one in tables])
    return rows.replace_schema_metadata({_KEY: text.encode()})


def packed(drawn: pyarrow.Table) -> bytes:
    """Rows as a compressed Arrow stream: values repeat."""
    buffer = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_stream(buffer, drawn.schema, options=options) as writer:
        writer.write_table(drawn)
    return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(kept: bytes) -> pyarrow.Table:
    """What was drawn, from its bytes."""
    table = unpack_table(kept)
    if _KEY not in (table.schema.metadata or {}):
        raise PrivacyError("The answer that was kept for this question was changed: restore a backup of the ledger.")
    return table


@dataclass(frozen=True, repr=False)
class Quality:
    """The error of each one-way and two-way table, as a share of the rows; all of it follows from released numbers.

    `expected` is the error to expect, `bound` what it stays below with the level's probability, each table by itself;
    pairs are compared in the bins in which they were measured.
    """

    tables: tuple[TableQuality, ...]
    level: float

    def to_arrow(self) -> pyarrow.Table:
        """A row for each table."""
        names = ["measured", "cells", "merged", "fit", "expected", "bound"]
        columns = {name: [getattr(one, name) for one in self.tables] for name in names}
        return pyarrow.table({"table": [", ".join(one.columns) for one in self.tables], **columns})

    def chart(self, *, note: str = "") -> "Chart":
        """The expected error of each table with what it stays below, the largest first."""
        from noisette.charts.answers import bars

        known = [one for one in self.tables if one.bound is not None and one.expected is not None]
        shown = sorted(known, key=lambda one: -(one.bound or 0))[: 2 * _SHOWN]
        expected, high = [one.expected or 0.0 for one in shown], [one.bound or 0.0 for one in shown]
        groups = [" × ".join(one.columns) + ("" if one.measured else " †") for one in shown]
        passed_over = [] if all(one.measured for one in shown) else ["† not measured"]
        title, note = "Error of tables, as a share of the rows", " · ".join([*filter(None, [note]), *passed_over])
        return bars(groups, {"error": (expected, [0.0] * len(shown), high)}, name="table", title=title, note=note)

    def __repr__(self) -> str:
        worst = sorted(self.tables, key=lambda one: (len(one.columns), -(one.bound or 0)))
        pairs = [one for one in worst if len(one.columns) > 1]
        body = [_line(one) for one in [*(one for one in worst if len(one.columns) == 1), *pairs[:_SHOWN]]]
        table = aligned(["table", "measured", "cells", "error", f"below ({self.level:.0%})"], body)
        hidden = len(pairs) - _SHOWN
        return f"{table}\n... and {hidden:,} more pairs with smaller errors" if hidden > 0 else table


def _line(one: TableQuality) -> list[str]:
    shares = ["unknown" if share is None else f"{share:.1%}" for share in (one.expected, one.bound)]
    return [" × ".join(one.columns), "yes" if one.measured else "no", f"{one.cells:,}", *shares]


@dataclass(frozen=True, repr=False)
class SyntheticTable:
    """Made-up rows in the form of the input, and their `quality`."""

    drawn: pyarrow.Table
    level: float

    def to_arrow(self) -> pyarrow.Table:
        """The rows."""
        return self.drawn.replace_schema_metadata(None)

    @property
    def rows(self) -> pyarrow.Table:
        """The rows as an Arrow table."""
        return self.to_arrow()

    @cached_property
    def quality(self) -> Quality:
        """How far tables of the rows may be from those of the data."""
        found: list[dict[str, Any]] = json.loads(self.drawn.schema.metadata[_KEY])
        return Quality(tuple(TableQuality(**{**one, "columns": tuple(one["columns"])}) for one in found), self.level)

    def chart(self, *, note: str = "") -> "Chart":
        """The errors of its tables."""
        return self.quality.chart(note=note)

    def save(self, path: str | Path) -> None:
        """Write the rows to a .parquet, .csv or .arrow file."""
        from pyarrow import csv, feather, parquet

        writers = {".parquet": parquet.write_table, ".csv": csv.write_csv, ".arrow": feather.write_feather}
        writer = writers.get(Path(path).suffix.lower())
        if writer is None:
            raise InputError("Name a file that ends in .parquet, .csv or .arrow.")
        rows = self.to_arrow()
        if Path(path).suffix.lower() == ".csv":
            kinds = [f.type.value_type if pyarrow.types.is_dictionary(f.type) else f.type for f in rows.schema]
            rows = rows.cast(pyarrow.schema(list(zip(rows.column_names, kinds, strict=True))))
        writer(rows, str(path))

    def __repr__(self) -> str:
        return f"{len(self.drawn):,} synthetic rows of {', '.join(self.drawn.column_names)}"

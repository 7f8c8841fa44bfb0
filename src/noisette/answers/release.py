"""A release: numbers with error bars, what they promise to whom, and a record with which the claim can be checked."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from noisette.answers.column import Column
from noisette.answers.digest import digest_of_release
from noisette.answers.figures import failure, left, percent, promise, promised
from noisette.answers.record import as_json, laid_out, stated
from noisette.answers.rendering import as_csv, as_html, as_text, below
from noisette.answers.statement import statement
from noisette.answers.warnings import warnings
from noisette.errors import InputError
from noisette.names import closest
from noisette.privacy import ZCDP, Guarantee, Neighbours, Promise
from noisette.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray

    from noisette.charts import Chart

__all__ = ["Lasting", "Release"]


class Lasting(Protocol):
    """What a release of many numbers is: it goes on answering at no further cost, and draws itself."""

    def to_arrow(self) -> "pyarrow.Table":
        """All of its numbers as an Arrow table."""
        ...

    def chart(self, *, note: str = "") -> "Chart":
        """A picture of it; the note says what was promised."""
        ...


@dataclass(frozen=True, repr=False)
class Release:
    """A table of noised numbers.

    `level` is how likely each true number lies within its error bar · `guarantee` what was promised for it · `unit`
    whose data is protected · `spent` and `left` of the budget after it · `record` what is needed to check the claim ·
    `caveats` what was left out or moved before any noise, in sentences · `released` what goes on answering, such as a
    histogram · `asked` what was to be spent, which is printed where the guarantee implies it.
    """

    columns: tuple[Column, ...]
    level: float
    guarantee: Guarantee
    unit: str
    spent: Promise
    left: Promise
    record: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    released: Lasting | None = None
    asked: Promise | None = None

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"The answer has no column {name}: {closest(name, [c.name for c in self.columns], 'it has')}")

    @property
    def value(self) -> Any:
        """What was released: a histogram, cube or sketch that answers further questions for free, or else the numbers.

        Of an answer that is one number it is that number, of any other table the Arrow table.
        """
        if self.released is not None:
            return self.released
        numbers = [column for column in self.columns if column.measured]
        if len(self) == 1 and len(numbers) == len(self.columns) == 1:
            return numbers[0].values[0].as_py()
        return self.to_arrow()

    # Tables

    def to_arrow(self) -> "pyarrow.Table":
        """An Arrow table; a number x comes with x_low and x_high, moved into what declarations allow.

        A number that is not there is NULL: suppressed by a rule, or without an answer, and then its bar is all that is
        possible. The metadata of its schema hold what `about` says.
        """
        import pyarrow

        arrays: dict[str, Any] = {}
        for column in self.columns:
            arrays[column.name] = column.values
            if column.measured:
                suppressed = bool(column.values.null_count)  # then ends that are NaN are NULL
                arrays[f"{column.name}_low"] = pyarrow.array(column.low, from_pandas=suppressed)
                arrays[f"{column.name}_high"] = pyarrow.array(column.high, from_pandas=suppressed)
        known = {f"noisette.{name}": _as_text(said) for name, said in self.about.items()}
        return pyarrow.table(arrays).replace_schema_metadata(known)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas frame, with what `about` says in its `attrs`; needs pandas."""
        frame = self.to_arrow().to_pandas()
        frame.attrs.update(self.about)
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """A Polars frame; needs Polars."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV, error bars included; return the text and, with a path, write it there.

        Beside wards.csv goes wards.csv-metadata.json, where the W3C's "CSV on the Web" looks for metadata, with what
        `about` says. Numbers stay as they are. A text (a key or a column's name) that begins with = + - @, a tab or a
        line break gets an apostrophe before it, so that a spreadsheet shows it and does not run it as a formula.
        """
        text = as_csv(self.to_arrow())
        if path is not None:
            about = {"@context": "http://www.w3.org/ns/csvw", "url": Path(path).name, "notes": [self.about]}
            beside = Path(path).with_name(f"{Path(path).name}-metadata.json")
            _written(path, lambda: Path(path).write_text(text, encoding="utf-8", newline=""))
            _written(beside, lambda: beside.write_text(laid_out(about), encoding="utf-8"))
        return text

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as a Parquet file, error bars included, with what `about` says in its metadata."""
        from pyarrow.parquet import write_table

        _written(path, lambda: write_table(self.to_arrow(), path))

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        found: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return found

    # For people

    @property
    def statement(self) -> str:
        """What is promised to whom, in a paragraph."""
        level = self.level if self._measured else None
        return statement(self._promised, self.spent, unit=self.unit, level=level, caveats=self.caveats)

    @property
    def about(self) -> dict[str, Any]:
        """What goes along with the numbers wherever they go: the statement, the level of bars, warnings and caveats."""
        said = {"statement": self.statement, "warnings": list(self.warnings), "caveats": list(self.caveats)}
        return {**said, "level": self.level} if self._measured else said

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which numbers have no answer, or a bar that is wider than what it measures, and what would help."""
        return warnings(self.columns, squared=isinstance(self.guarantee, ZCDP))

    def to_json(self) -> str:
        """The machine-readable record: the numbers and everything needed to check the claim (`answers.check`)."""
        return as_json({**self._claim, "spent": stated(self.spent), "rows": self.rows()})

    @property
    def digest(self) -> str:
        """One hash for all that the record says, except its place in a ledger and what was spent by then."""
        return digest_of_release(self._claim, self.to_arrow())

    @property
    def _claim(self) -> dict[str, Any]:
        """The record without the numbers and what was spent."""
        return {
            **self.record,
            "version": __version__,
            "secure": True,  # no generator but the system's can make a release
            "guarantee": stated(self.guarantee),
            "neighbours": str(self.guarantee.neighbours or Neighbours.ADD_REMOVE),
            "unit": self.unit,
            "level": self.level,
            "unclipped": {column.name: _unclipped(column) for column in self.columns if _moved(column)},
            "caveats": self.caveats,
            "warnings": self.warnings,
        }

    def plot(self, path: "str | Path | None" = None) -> "Chart":
        """Draw the numbers with their error bars; with a path the chart is saved, which needs the extra `plot`."""
        from noisette.charts.answers import answer

        first = f"{promise(self._promised)} for each {self.unit} · {percent(self.level)} error bars"
        note = "\n".join([first, *below(self.notes)])
        if self.released is not None:
            drawn = self.released.chart(note=note)
            return drawn if path is None else drawn.save(path)
        there = self._answered
        if not len(there):
            raise InputError("There is nothing to draw, since no number has an answer: spend more, or group coarser.")
        shown = [column.take(there) for column in self.columns]
        keys = {column.name: column.values.to_pylist() for column in shown if not column.measured}
        numbers = {c.name: (c.values.to_pylist(), _ends(c, c.low), _ends(c, c.high)) for c in shown if c.measured}
        chart = answer(keys, numbers, note=note)
        return chart if path is None else chart.save(path)

    @property
    def _answered(self) -> "NDArray[np.int64]":
        """The rows in which any number is there."""
        numbers = [column for column in self.columns if column.measured]
        there = [~np.asarray(column.values.is_null(), dtype=bool) for column in numbers]
        return np.flatnonzero(np.any(there, axis=0)) if there else np.arange(len(self))

    @property
    def _promised(self) -> Guarantee:
        return promised(self.guarantee, self.asked)

    @property
    def _measured(self) -> bool:
        return any(column.measured for column in self.columns)

    def _footer(self) -> str:
        bars = f" · {percent(self.level)} error bars" if self._measured else ""
        return f"{promise(self._promised)}{failure(self.record.get('rules', {}))}{bars} · left: {left(self.left)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands below the numbers: which bars are too wide, what was left out, and what ± covers."""
        return (*self.warnings, *self.caveats)

    def __repr__(self) -> str:
        return "\n".join([*as_text(self.columns), self._footer(), *self.notes])

    def _repr_html_(self) -> str:
        return as_html(self.columns, [self._footer(), *self.notes])


def _as_text(said: Any) -> str:
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def _ends(column: Column, ends: Any) -> list[float | None]:
    """The ends of the bars of numbers that are there."""
    missing = np.asarray(column.values.is_null(), dtype=bool)
    return [None if gone else float(end) for gone, end in zip(missing, ends, strict=True)]


def _written(path: str | Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError:
        raise InputError(
            f"{Path(path).name} cannot be written: name a file in a folder that is there; to ask again is free."
        ) from None


def _moved(column: Column) -> bool:
    """Whether an end of its bars was moved into what declarations allow."""
    return column.drawn is not None and not all(
        np.array_equal(drawn, end, equal_nan=True)
        for drawn, end in zip(column.drawn, (column.low, column.high), strict=True)
        if end is not None
    )


def _unclipped(column: Column) -> dict[str, list[float]]:
    low, high = column.unmoved
    return {"low": low.tolist(), "high": high.tolist()}

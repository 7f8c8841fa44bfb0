"""How the rows meet what is declared of them, in exact numbers: for the eyes of the data's owner, before anybody asks.

It reads private rows and releases nothing: there is no ledger and nothing is charged, so what it says must not be
published. The owner's command alone calls it, and no question gets here. No value is quoted: of what cannot be read it
says how most of it looks, with 9 for each digit and a for each letter.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from noisette.curator.described import Described
from noisette.curator.value_check import Finding, end_of, free, quoted, value_check
from noisette.engines.csv_form import Form
from noisette.engines.duckdb.session import text_of
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.sql.expressions import normalised
from noisette.engines.sql.syntax import column
from noisette.engines.sql.tables import Reading, as_compared, scan_sql
from noisette.errors import InputError
from noisette.progress import doing
from noisette.query.plan import Scan
from noisette.query.schema import Column, Schema, Table

__all__ = ["FOR_THE_OWNER", "Finding", "Period", "TableCheck", "check_rows"]

FOR_THE_OWNER = "For the owner's eyes: exact numbers about private rows; do not publish them."


class Period(NamedTuple):
    """The rows of a year (None: of no date), those beyond the bounds of it, and about how many limits leave out."""

    year: int | None
    rows: int
    beyond_bounds: int
    beyond_limits: int


@dataclass(frozen=True)
class TableCheck:
    """The rows of a table, how many units they belong to, and what does not meet the policy, the worst first.

    `units` is None where each row is one, or where it cannot be said whose a row is. `date` is the column that the
    years of `periods` are of.
    """

    table: str
    rows: int
    units: int | None
    findings: tuple[Finding, ...]
    date: str | None = None
    periods: tuple[Period, ...] = ()


def check_rows(found: Described) -> list[TableCheck]:
    """Count the rows of each table that do not meet the policy; the worst table comes first."""
    forms = {name: table.form for name, table in found.policy.tables.items()}
    with doing("counting rows"), _engine(found) as engine:
        checks = [_Rows(engine, found.schema, table, forms[name]).checked() for name, table in found.schema.items()]
    return sorted(checks, key=_worst, reverse=True)


def _worst(check: TableCheck) -> float:
    return max((one.rows for one in check.findings), default=0) / max(check.rows, 1)


def _engine(found: Described) -> AbstractContextManager[DuckDB]:
    if isinstance(found.engine, DuckDB):
        return nullcontext(found.engine)
    from noisette.engines.postgres.source import Postgres

    if isinstance(found.engine, Postgres):
        return found.engine.holding({name: frozenset(_read(table)) for name, table in found.schema.items()})
    raise InputError(
        "Rows of Spark tables are not checked: leave --rows out, or check a copy of them in Parquet files."
    )


def _read(table: Table) -> Iterator[str]:
    yield from (each.name for each in table.columns)
    yield from () if table.unit_column is None else [table.unit_column]


# Tables


@dataclass(frozen=True)
class _Rows:
    """One table of an engine, and the form of its CSV files."""

    engine: DuckDB
    schema: Schema
    table: Table
    form: Form

    def checked(self) -> TableCheck:
        rows, values = self._values()
        findings = [*values, *self._lines(), *self._repeated_keys()]
        units, periods = None, self._periods() if self.table.unit is None and not self.table.public else ()
        if self.table.unit is not None and all(
            self.engine.unique(self.schema[link.table], link.there) for link in self.table.through
        ):
            units, more = self._units(rows)
            findings, periods = [*findings, *more], self._periods()
        there = sorted((one for one in findings if one.rows), key=lambda one: one.rows, reverse=True)
        date = None if self._date is None else self._date.name
        if not any(year.beyond_bounds or year.beyond_limits for year in periods):
            date, periods = None, ()
        return TableCheck(self.table.name, rows, units, tuple(there), date, periods)

    def _ask(self, select: str) -> list[dict[str, Any]]:
        return self.engine.exact(select, self.schema.values())

    def _values(self) -> tuple[int, list[Finding]]:
        """How many rows there are, and what is wrong with the values of their columns: one query."""
        written = self.engine.written(self.table.name)
        stored = self.engine.stored(self.table.name)
        every = [value_check(i, each, stored[each.name], written) for i, each in enumerate(self.table.columns)]
        values = [value for value in every if value.asked]
        source = nullcontext(self.table.name) if written is None else self.engine.texts(self.table.name)
        with source as name:
            made = ", ".join(["1 AS one", *(value.made for value in values)])
            counted = ", ".join(["count(*) AS rows", *(count for value in values for count in value.counted)])
            [counts] = self._ask(f"SELECT {counted} FROM (SELECT {made} FROM {quoted(name)})")
        return counts["rows"], [one for value in values for one in value.findings(counts)]

    def _lines(self) -> list[Finding]:
        """How the lines of CSV files are written."""
        if (written := self.engine.written(self.table.name)) is None:
            return []
        found, form = written.tally(), self.form
        coded = "" if form.encoding != "utf-8" else ', so "?": try encoding = "latin-1" or "windows-1252"'
        joined = "" if form.line_breaks else ": if fields hold line breaks, say line_breaks = true"
        return [
            Finding(None, f"with bytes that are not {form.encoding.upper()}{coded}", found.not_in_encoding),
            Finding(None, f"with an odd number of quotes{joined}", found.odd_quotes),
            Finding(None, "with fewer fields than the first line has", found.fewer_fields),
            Finding(None, "with more fields than the first line has", found.more_fields),
        ]

    # Whose rows they are

    def _keys(self, names: tuple[str, ...], table: str, *, clean: bool = False) -> list[str]:
        stored, kinds = self.engine.stored(table), self.schema[table]
        trees = [
            normalised(column(n), kinds.column(n).kind, stored[n]) if clean else as_compared(column(n), stored[n])
            for n in names
        ]
        return [text_of(tree) for tree in trees]

    def _grouped(self, names: tuple[str, ...], table: str, *, clean: bool = False) -> str:
        """How many rows of a table have each key."""
        keys = self._keys(names, table, clean=clean)
        made = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
        known = " AND ".join(f"{key} IS NOT NULL" for key in keys)
        return f"SELECT {made}, count(*) AS n FROM {quoted(table)} WHERE {known} GROUP BY ALL"

    def _repeated_keys(self) -> list[Finding]:
        """Rows of which others have the key, too, though a foreign key refers to it."""
        name = self.table.name
        links = {each.through[0] for each in self.schema.values() if each.through and each.through[0].table == name}
        found = []
        for there in sorted({link.there for link in links}):
            asked = "SELECT sum(n)::BIGINT AS rows FROM ({}) WHERE n > 1"
            counts = [self._ask(asked.format(self._grouped(there, name, clean=c)))[0]["rows"] for c in (False, True)]
            found.append(Finding(", ".join(there), "a key that other rows have, too", max(n or 0 for n in counts)))
        return found

    def _orphans(self) -> list[Finding]:
        """Rows that refer to no row of the next table."""
        if not self.table.through:
            return []
        link, name = self.table.through[0], self.table.name
        here = ", ".join(f"{key} AS k{i}" for i, key in enumerate(self._keys(link.here, name)))
        met = " AND ".join(f"child.k{i} = parent.k{i}" for i in range(len(link.on)))
        far = self._grouped(link.there, link.table)
        [found] = self._ask(
            f"SELECT count(*) FILTER (WHERE parent.n IS NULL) AS rows FROM (SELECT {here} FROM {quoted(name)}) child "
            f"LEFT JOIN ({far}) parent ON {met}"
        )
        return [Finding(", ".join(link.here), f"refers to no row of {link.table}", found["rows"])]

    @cached_property
    def _date(self) -> Column | None:
        """The date of which rows are limited per period, or else the first one with bounds."""
        if self.table.per_period is not None:
            return self.table.column(self.table.per_period.of)
        dates = (each for each in self.table.columns if each.kind.type in ("date", "timestamp") and each.kind.bounded)
        return next(dates, None)

    @property
    def _by_unit(self) -> str:
        """How many rows each unit has in each year and period, and how many of them are beyond bounds, or limited.

        Where no limit is per period, all rows of a unit are in one.
        """
        date, unit = self._date, "0" if self.table.unit is None else '"unit"'
        freed = [replace(each, kind=free(each.kind)) for each in self.table.columns]
        schema = {**self.schema, self.table.name: replace(self.table, columns=tuple(freed), per_period=None)}
        stored = {name: self.engine.stored(name) for name in schema}
        names = [] if date is None else [f"t.{date.name}"]
        rows = text_of(scan_sql(Scan(self.table.name, "t"), names, Reading(schema, stored, frozenset(), 0, {}, {})))
        year, beyond, period, limited = "NULL", "false", "0", "true"
        if date is not None:
            (low, high), at = date.kind.ends, quoted(names[0])
            year, beyond = f"year({at})", f"{at} < {end_of(date.kind, low)} OR {at} > {end_of(date.kind, high)}"
            if self.table.per_period is not None:
                period, limited = f"date_trunc('{self.table.per_period.per}', {at})", f"NOT ({beyond})"
        return (
            f"SELECT {unit} AS u, {year} AS y, {period} AS p, count(*) AS n, "
            f"count(*) FILTER (WHERE {beyond}) AS beyond, count(*) FILTER (WHERE {limited}) AS limited "
            f"FROM ({rows}) GROUP BY ALL"
        )

    def _units(self, rows: int) -> tuple[int, list[Finding]]:
        """How many units there are, rows without one, and rows that limits leave out."""
        most, unit = self._most, self.table.unit
        [found] = self._ask(
            f"SELECT count(DISTINCT u) AS units, sum(n)::BIGINT AS rows, "
            f"count(DISTINCT u) FILTER (WHERE m > {most}) AS many, sum(greatest(m - {most}, 0))::BIGINT AS left_out "
            f"FROM (SELECT u, p, sum(n)::BIGINT AS n, sum(limited)::BIGINT AS m FROM ({self._by_unit}) GROUP BY u, p)"
        )
        orphans = self._orphans()
        nobody = rows - (found["rows"] or 0) - sum(one.rows for one in orphans)
        limit = self.table.limits.rows if self.table.per_period is None else self.table.per_period
        words = f"beyond rows = {limit}: {found['many']:,} of {found['units']:,} units have more"
        more = [Finding(None, f"without a unit: {unit} is NULL", nobody), Finding(None, words, found["left_out"] or 0)]
        return found["units"], [*orphans, *more]

    @property
    def _most(self) -> int:
        """The most rows of one unit that count in each question, whatever its groups."""
        return self.table.limits.rows or 2**62 if self.table.per_period is None else self.table.per_period.most

    def _periods(self) -> tuple[Period, ...]:
        """The rows by year, and of those that limits leave out as many as a random choice leaves out on average."""
        if self._date is None:
            return ()
        found = self._ask(
            "SELECT y, sum(n)::BIGINT AS rows, sum(beyond)::BIGINT AS beyond, "
            f"sum(CASE WHEN m > {self._most} THEN limited * (m - {self._most}) / m ELSE 0 END)::DOUBLE AS left_out "
            f"FROM (SELECT *, sum(limited) OVER (PARTITION BY u, p)::BIGINT AS m FROM ({self._by_unit})) "
            "GROUP BY y ORDER BY y"
        )
        return tuple(Period(each["y"], each["rows"], each["beyond"], round(each["left_out"])) for each in found)

"""DuckDB as an engine: files and frames on this machine, and a cache of bounded tables."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow
from sqlglot import exp

from noisette.engines.contract import CLEAN, Source, base_type
from noisette.engines.csv_form import Form
from noisette.engines.duckdb.held import asked_columns, bounded_key, held_columns, serves
from noisette.engines.duckdb.opening import Csv, connected
from noisette.engines.duckdb.retained import RetainedRows, retained_rows
from noisette.engines.duckdb.session import Session
from noisette.engines.files import Opened
from noisette.engines.sql.aggregate import aggregate_retained, aggregate_rows
from noisette.engines.sql.expressions import normalised
from noisette.engines.sql.group_by import bounded_rows, request_rows, valued
from noisette.engines.sql.keys import Key, keys_of, postponed
from noisette.engines.sql.partial import partial_retained, partial_rows
from noisette.engines.sql.relation import relation_sql
from noisette.engines.sql.stored import Stored
from noisette.engines.sql.syntax import column, is_null, selected
from noisette.engines.sql.tables import as_compared
from noisette.engines.tie_break import tie_breakers
from noisette.errors import InputError
from noisette.query.beyond import rows_within, within_bounds
from noisette.query.expression import Name
from noisette.query.measure import Exact, Request
from noisette.query.plan import Relation
from noisette.query.reads import tables_of, tables_read
from noisette.query.schema import Schema, Table
from noisette.query.shape import ROW, UNIT
from noisette.query.stability import shape_of

__all__ = ["DuckDB"]

T = TypeVar("T")


@dataclass(frozen=True)
class BoundedTable:
    """A registered table of retained rows.

    `columns`: the relation's columns and their names here · `firsts`: whether it marks the first row of each unit in
    each group · `size` and `keys`: how many groups its codes number, and their keys if these were unknown.
    """

    name: str
    columns: dict[str, str]
    firsts: bool
    size: int
    keys: pyarrow.Table | None
    bytes: int

    def serves(self, request: Request) -> bool:
        """Whether all that a request measures is there."""
        return serves(request, self.columns, firsts=self.firsts)


class Cache:
    """LRU cache of bounded tables, limited by count and bytes: a question with the same bounds is a plain group-by."""

    def __init__(self, session: Session, *, most_tables: int, most_bytes: int) -> None:
        self._session, self._most_tables, self._most_bytes = session, most_tables, most_bytes
        self._tables: OrderedDict[Hashable, BoundedTable] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tables)

    def find(self, key: Hashable) -> BoundedTable | None:
        """The table for a relation with its keys, domains, limits, secret and tie-breaking columns."""
        if key in self._tables:
            self._tables.move_to_end(key)
        return self._tables.get(key)

    def put(self, key: Hashable, found: RetainedRows, columns: dict[str, str], *, firsts: bool) -> BoundedTable:
        """Register rows in place of the table that the key had; the newest stays, however large."""
        if key in self._tables:
            self._session.drop(self._tables.pop(key).name)
        name = self._session.register(found.rows)
        self._tables[key] = BoundedTable(name, columns, firsts, found.size, found.keys, found.rows.nbytes)
        while len(self._tables) > 1 and self._full():
            self._session.drop(self._tables.popitem(last=False)[1].name)
        return self._tables[key]

    def _full(self) -> bool:
        tables = self._tables.values()
        return len(tables) > self._most_tables or sum(table.bytes for table in tables) > self._most_bytes


class DuckDB(Source):
    """Tables in Parquet, CSV or DuckDB files or in memory, and an engine that can do nothing but read them.

    A table is a path, a glob, a list of paths, a pair (DuckDB file, table), or a frame that speaks Arrow; a DuckDB file
    in place of the mapping gives all its tables. CSV needs the schema, and `forms` says how it is written. What is
    opened must not change while it is open.
    A column that can fail to be read is stored as what no question can use (`opening`).
    Answers are the same for any order of the rows and any number of threads.

    >>> import pyarrow
    >>> source = DuckDB({"visits": pyarrow.table({"age": [40, 70]})})
    >>> source.stored("visits")
    {'age': 'BIGINT'}
    """

    def __init__(
        self,
        tables: Mapping[str, Opened] | str | Path,
        schema: Schema | None = None,
        forms: Mapping[str, Form] | None = None,
        *,
        threads: int | None = None,
        most_tables: int = 4,
        most_bytes: int = 2**31,
    ) -> None:
        self._engine = connected(tables, schema, forms, threads=threads)
        self._session = Session(self._engine.connection)
        self._cache = Cache(self._session, most_tables=most_tables, most_bytes=most_bytes)
        self._stored: dict[str, dict[str, str]] = {}

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return self._engine.tables

    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table and the types they are stored as, from metadata alone."""
        if table not in self.tables:
            raise InputError(f"There is no data for table {table}: there is some for {', '.join(self.tables)}.")
        if table not in self._stored:
            types = self._session.types(table) | self._engine.left_out[table]
            self._stored[table] = {n: "ENUM" if base_type(t) == "ENUM" else t for n, t in types.items()}
        return dict(self._stored[table])

    def repeats(self, table: Table) -> dict[str, int]:
        """For each column of a public table, in how many rows one value (NULL aside) stands at most, after cleaning.

        Joins compare clean values, and cleaning can make two values one: a DECIMAL becomes the nearest DOUBLE.
        """
        stored = self.stored(table.name)
        self._load((table,))
        clean = {c.name: normalised(column(c.name), c.kind, stored[c.name]) for c in table.columns}
        return {name: self._most_equal(table.name, [value]) for name, value in clean.items()}

    def unique(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether no two rows have equal values in the columns, as they are stored and when they are clean."""
        types = self.stored(table.name)
        self._load((table,))
        stored = [as_compared(column(name), types[name]) for name in columns]
        clean = [normalised(column(name), table.column(name).kind, types[name]) for name in columns]
        different = [stored] if clean == stored else [stored, clean]
        return all(self._most_equal(table.name, values) <= 1 for values in different)

    # What the owner of the data may know exactly (`curator.row_check`); no question gets here

    def exact(self, select: str, tables: Iterable[Table] = ()) -> list[dict[str, Any]]:
        """The rows of a SELECT over what these tables store."""
        self._load(tables)
        found = self._session.quietly(lambda: self._session.connection.sql(select).to_arrow_table())
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    def written(self, table: str) -> Csv | None:
        """The CSV files of a table; None where it is stored with its types."""
        return self._engine.files.get(table)

    @contextmanager
    def texts(self, table: str) -> Iterator[str]:
        """The name of a table that holds the texts of its CSV files, for as long as the context lasts."""
        name = self._session.register(self._session.quietly(self._engine.files[table].texts))
        try:
            yield name
        finally:
            self._session.drop(name)

    def _most_equal(self, table: str, values: Sequence[exp.Expr]) -> int:
        """How many rows have the values that most of them have, none of them NULL."""
        names = [f"value{i}" for i in range(len(values))]
        made = [exp.alias_(value, name) for name, value in zip(names, values, strict=True)]
        rows = exp.select(*made).from_(exp.to_identifier(table, quoted=True))
        known = [exp.Not(this=is_null(column(name))) for name in names]
        there = selected(rows, {name: column(name) for name in names}).where(*known)
        counted = selected(there, {"n": exp.Count(this=exp.Star())}).group_by(*map(column, names))
        found = self._session.run(selected(counted, {"most": exp.Max(this=column("n"))})).to_pylist()[0]["most"]
        return int(found or 0)

    def aggregate(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures; `secret` keys the choice of the rows that are retained of each unit."""
        return self._computed(request, schema, secret, aggregate_rows, aggregate_retained)

    def partial(self, request: Request, schema: Schema, secret: bytes) -> pyarrow.Table:
        """The same measures of some of all units, as what can be added to those of other units (`sql.partial`)."""
        return self._computed(request, schema, secret, partial_rows, partial_retained)

    def _computed(
        self,
        request: Request,
        schema: Schema,
        secret: bytes,
        of_rows: Callable[..., T],
        of_retained: Callable[..., T],
    ) -> T:
        request = within_bounds(request, schema)
        stored = self._ready(request.source, schema)
        keys = keys_of(request, schema)
        wanted = list(dict.fromkeys(v for m in request.measures if (v := valued(m)) is not None))
        values = {v: f"v{i}" for i, v in enumerate(wanted)}
        with self._session.lock:
            if request.limits is None:
                keys = postponed(keys, request, schema, stored)
                run = self._session.cached((of_rows, request, tables_of(request.source, schema), secret))
                with self._session.registered() as register:
                    return of_rows(
                        run,
                        register,
                        lambda needed: request_rows(request, keys, needed, schema, stored, secret),
                        keys,
                        request.measures,
                        values,
                    )
            table = self._bounded_table(request, keys, schema, stored, secret)
            scope = shape_of(request.source, schema).columns
            others = ["code", *(["first"] if table.firsts else [])]
            run = self._session.cached((of_retained, table.name, request.measures, tables_of(request.source, schema)))
            return of_retained(
                run,
                lambda needed: bounded_rows(table.name, table.columns, others, needed, scope),
                table.size,
                table.keys,
                request.measures,
                values,
            )

    def rows(self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes) -> pyarrow.Table:
        """Columns of a relation under new names, and `unit`, which numbers the units from 0 in no particular order.

        Equal numbers are the same unit, exactly. Where each row is a unit by itself there is no such column.
        """
        found = self.owned_rows(relation, columns, schema, secret)
        if UNIT not in found.column_names:
            return found
        numbers = found.column(UNIT).combine_chunks().dictionary_encode().indices.cast(pyarrow.int64())
        return found.drop_columns([UNIT]).append_column(UNIT, numbers)

    def owned_rows(
        self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes
    ) -> pyarrow.Table:
        """Columns of a relation under new names, and `unit` as it is stored."""
        relation = rows_within(relation, schema, used=map(Name, columns))
        shape, stored = shape_of(relation, schema), self._ready(relation, schema)
        made: dict[str, exp.Expr] = {
            new: exp.cast(column(name), CLEAN[shape.columns[name].type]) for name, new in columns.items()
        }
        if shape.unit not in (None, ROW):
            made[UNIT] = column(UNIT)
        return self._session.run(selected(relation_sql(relation, schema, stored, set(columns), secret=secret), made))

    def _ready(self, relation: Relation, schema: Schema) -> Stored:
        """How the tables of a relation are stored; those in CSV files are read before the first question about them."""
        tables = tables_read(relation, schema)
        stored = {table.name: self.stored(table.name) for table in tables}
        self._load(tables)
        return stored

    def _load(self, tables: Iterable[Table]) -> None:
        for table in tables:
            self._session.quietly(partial(self._engine.load, table.name))

    def _bounded_table(
        self,
        request: Request,
        keys: tuple[Key, ...],
        schema: Schema,
        stored: Stored,
        secret: bytes,
    ) -> BoundedTable:
        """The table of retained rows, from the cache or made now, with what earlier questions wanted of it."""
        key = bounded_key(request, schema, secret)
        table = self._cache.find(key)
        if table is not None and table.serves(request):
            return table
        before = None if table is None else (table.columns, table.firsts)
        columns, firsts = held_columns(request, schema, before)
        ties = tie_breakers(request, asked_columns(request), schema)
        found = retained_rows(self._session, request, keys, columns, ties, schema, stored, secret, firsts=firsts)
        return self._cache.put(key, found, columns, firsts=firsts)

    def retained(
        self, request: Request, schema: Schema, secret: bytes, columns: dict[str, str], *, firsts: bool
    ) -> RetainedRows:
        """The retained rows, with columns of the relation under other names, for `hold` in another process."""
        stored, keys = self._ready(request.source, schema), keys_of(request, schema)
        ties = tie_breakers(request, asked_columns(request), schema)
        with self._session.lock:
            return retained_rows(self._session, request, keys, columns, ties, schema, stored, secret, firsts=firsts)

    def hold(
        self,
        request: Request,
        schema: Schema,
        secret: bytes,
        found: RetainedRows,
        columns: dict[str, str],
        *,
        firsts: bool,
    ) -> None:
        """Compute the next questions about these rows from what was retained of them elsewhere."""
        self._cache.put(bounded_key(request, schema, secret), found, columns, firsts=firsts)

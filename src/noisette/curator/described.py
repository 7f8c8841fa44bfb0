"""Data that can be asked about: what reads them, the owner's complete policy, tables as analysts see them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow

from noisette.curator.curator import Curator
from noisette.curator.fingerprints import Columns, contents, declared_columns, fingerprints
from noisette.curator.pins import Pins
from noisette.curator.purchases import Purchase
from noisette.engines import open_source
from noisette.engines.contract import Source
from noisette.engines.csv_form import PLAIN, Form
from noisette.engines.files import is_csv, is_database, is_postgres, is_spark
from noisette.engines.listing import Listing
from noisette.errors import InputError
from noisette.exact.number import Number, whole
from noisette.ledger import Book, Ledger, elsewhere, open_ledger
from noisette.names import closest
from noisette.policy.foreign_keys import check_unique, with_units
from noisette.policy.policy import Policy, read_policy
from noisette.policy.rules import TableRules, inside, policy_error
from noisette.policy.tables import check_csv, check_formats, declared_only, described, no_unit, type_of
from noisette.privacy import Promise, Spend, as_promise
from noisette.query.schema import Limits, Schema

__all__ = ["Described", "described_data", "in_spark", "table_name"]

_LIMITS = ("rows", "groups", "rows_per_group")
_INDEX = "__index_level_"  # how pandas names an index that it writes into a file


class Described(NamedTuple):
    """Data that can be asked about: what reads them, the owner's complete policy, tables as analysts see them."""

    engine: Source
    policy: Policy
    schema: Schema
    tables: Any

    @property
    def fingerprints(self) -> dict[str, str]:
        """What a ledger is about, by table."""
        stored = {name: self._stored(name) for name in self.schema}
        return fingerprints(self.tables, self.schema, self.policy.neighbours, stored, self._places)

    @property
    def former_fingerprints(self) -> dict[str, str]:
        """The same by the rule of earlier versions, in which declared types stood for stored ones."""
        former = declared_columns(self.schema)
        return fingerprints(self.tables, self.schema, self.policy.neighbours, former, self._places)

    @property
    def contents(self) -> list[str]:
        """By what the private tables are known again, whichever ledger is named."""
        places = [self.engine.place(name) for name, table in sorted(self.schema.items()) if not table.public]
        return [*contents(self.tables, self.schema), *(place for place in places if place is not None)]

    def ledger(
        self,
        where: str | Path,
        *,
        budget: Promise | None = None,
        keys_delta: Number | None = None,
        start_over: str | None = None,
    ) -> Book:
        """The ledger of these data; it begins only if there is none, nor was one for the same data or place."""
        return open_ledger(
            where,
            budget=budget,
            keys_delta=keys_delta,
            data=self.fingerprints,
            formerly=self.former_fingerprints,
            elsewhere=elsewhere(where, self.contents),
            start_over=start_over,
        )

    @property
    def _forms(self) -> dict[str, Form]:
        return {name: table.form for name, table in self.policy.tables.items() if table.form != PLAIN}

    @property
    def _places(self) -> dict[str, str | None]:
        return {name: self.engine.place(name) for name in self.schema}

    def _stored(self, name: str) -> Columns:
        """The columns that a table stores, whatever the policy declares of them."""
        stored = {c: kept for c, kept in self.engine.stored(name).items() if not c.startswith(_INDEX)}
        if _holds_text(name, self.tables):
            return dict.fromkeys(stored)
        return {c: found for c, kept in stored.items() if (found := type_of(kept)) is not None}

    def curator(
        self,
        ledger: Ledger | None,
        *,
        secret: bytes | None = None,
        purchases: Iterable[Purchase] = (),
        analyst: str | None = None,
    ) -> Curator:
        """A curator of these data that charges a ledger; `purchases` are those that it does not hold."""
        return Curator(
            self.engine,
            self.policy,
            self.schema,
            ledger,
            secret=secret,
            pin=Pins(self.engine, self.tables, self._forms, pinned=self.policy.pinned),
            purchases=purchases,
            analyst=analyst,
        )


def described_data(
    source: Any,
    *,
    budget: Spend | None = None,
    unit: str | None = None,
    limits: tuple[int | None, int | None, int | None] = (None, None, None),
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    repeated_keys: bool = False,
) -> Described:
    """What `open` does before there is a curator; `limits` are rows, groups and rows_per_group.

    `repeated_keys` describes data whose foreign keys refer to several rows as well, for their owner to look at.
    """
    bounded = Limits(*(None if n is None else whole(n, name) for n, name in zip(limits, _LIMITS, strict=True)))
    rules = read_policy(policy, None if budget is None else as_promise(budget, "budget"))
    _check_unit(unit, bounded)
    tables = _named(source)
    check_csv(tables, rules.tables, unit)
    forms = {name: table.form for name, table in rules.tables.items() if table.form != PLAIN}
    engine = open_source(tables, declared_only(rules.tables) or None, forms)
    _known(rules, engine, database=not isinstance(tables, Mapping))
    complete = {name: _rules(name, rules.tables.get(name), unit, bounded, engine) for name in engine.tables}
    stored = {name: _stored(name, table, tables, engine) for name, table in complete.items()}
    schema = {
        name: described(name, table, stored[name], texts=_holds_text(name, tables)) for name, table in complete.items()
    }
    schema = with_units(schema, complete, stored)
    engine.check_units(schema)
    if not repeated_keys:
        check_unique(schema, engine.unique)
    listing = Listing(engine)
    for name, table in schema.items():
        if table.public:
            schema[name] = replace(table, repeats=engine.repeats(table), listing=listing)
        elif rules.rules.frequency is not None:
            schema[name] = replace(table, frequency=rules.rules.frequency)
    Pins(engine, tables, forms, pinned=rules.pinned)()
    return Described(engine, replace(rules, tables=complete), schema, tables)


def _check_unit(unit: str | None, limits: Limits) -> None:
    if unit is not None and (not isinstance(unit, str) or not unit):
        raise InputError("unit must be the name of a column: unit='patient_id'.")
    if unit is None and limits != Limits():
        raise InputError("Name the unit whose rows are limited: unit='patient_id'.")


# Names


def _named(source: Any) -> Any:
    """Tables by name, frames as Arrow; a DuckDB file or the URL of a database stands for all of its tables."""
    if isinstance(source, Mapping):
        if not source or not all(isinstance(name, str) for name in source):
            raise InputError("Give a dictionary of tables by name: {'visits': 'visits.parquet'}.")
        return {
            name: in_spark(part)["data"] if _is_spark_frame(part) else _checked(part, name)
            for name, part in source.items()
        }
    if is_spark(source):
        return in_spark(source)
    if is_postgres(source):
        return {"data": source} if isinstance(source, tuple) else source
    if isinstance(source, str | Path):
        name = table_name(Path(source))
        return Path(source) if is_database(source) else {name: _checked(source, name)}
    return {"data": _checked(source, "data")}


def in_spark(
    source: Any, tables: Mapping[str, Any] | None = None, scratch: str | Path | None = None
) -> Mapping[str, Any]:
    """Tables of a Spark session; what reads them is loaded only for that."""
    from noisette.engines.spark.opening import spark_tables

    return spark_tables(source, tables, scratch)


def _is_spark_frame(source: Any) -> bool:
    return is_spark(source) and hasattr(source, "mapInArrow")


def _checked(source: Any, name: str) -> Any:
    _check_path(source)
    return _arrow(source, name) if hasattr(source, "__arrow_c_stream__") else source


def _check_path(source: Any) -> None:
    for path in source if isinstance(source, list | tuple) else [source]:
        if isinstance(path, str | Path) and Path(path).is_dir():
            raise InputError(
                f"{str(path) or 'An empty path'} is a directory without a project: name its files, such as "
                "visits/*.parquet, or make one with `noisette open`."
            )


def table_name(path: Path) -> str:
    """The name of a file's table.

    >>> table_name(Path("my visits.parquet")), table_name(Path("visits-*.parquet")), table_name(Path("visits/*.csv"))
    ('my_visits', 'visits', 'visits')
    """
    before = re.split(r"[*?\[]", path.stem)[0]
    name = re.sub(r"\W+", "_", before).strip("_")
    parent = re.sub(r"\W+", "_", path.parent.name).strip("_")
    return name or parent or "data"


# Frames


def _arrow(frame: Any, name: str) -> pyarrow.Table:
    """A frame of any library as an Arrow table whose columns have different names."""
    table = _read_frame(frame)
    if table is None:
        raise InputError(f"The frame of table {name} cannot be read: give each of its columns one type.")
    if len({column.lower() for column in table.column_names}) < table.num_columns:
        raise InputError("Give each column a name of its own: upper and lower case do not tell names apart.")
    for i, column in enumerate(table.schema):
        if pyarrow.types.is_float16(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(pyarrow.float32()))
    return table


def _read_frame(frame: Any) -> pyarrow.Table | None:
    """None where it fails: what a library says about that may quote cells."""
    try:
        return pyarrow.table(frame)
    except Exception:
        return None


# Rules of each table


def _rules(name: str, given: TableRules | None, unit: str | None, limits: Limits, engine: Source) -> TableRules:
    """What the policy says, or else what the call says for all tables."""
    rules = given or TableRules()
    if unit is None or rules.public or rules.unit not in (None, unit):
        return rules
    if unit not in engine.stored(name):
        other = closest(unit, engine.stored(name), no_unit(name).removesuffix("."), listed=False)
        raise InputError(f"Table {name} has no column {unit}: {other}")
    return replace(rules, unit=unit, limits=rules.limits if rules.limited else limits)


def _known(policy: Policy, engine: Source, *, database: bool) -> None:
    also = " (a view must be stored as a table first)" if database else ""
    for name in policy.tables:
        if name not in engine.tables:
            raise policy_error(
                inside("tables", name), f"names a table that is not there{also}: {closest(name, engine.tables)}"
            )


def _stored(name: str, rules: TableRules, tables: Any, engine: Source) -> dict[str, str]:
    """The stored columns without an index of pandas; of a CSV file those whose type is declared."""
    stored = {c: kept for c, kept in engine.stored(name).items() if not c.startswith(_INDEX)}
    if not _holds_text(name, tables):
        check_formats(name, rules, stored)
        return stored
    return {column: kept for column, kept in stored.items() if column in rules.columns}


def _holds_text(name: str, tables: Any) -> bool:
    """Whether a table is read from CSV."""
    return isinstance(tables, Mapping) and is_csv(tables[name])

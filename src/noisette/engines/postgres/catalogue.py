"""What a PostgreSQL database stores, by its catalogue alone, and SELECTs that read it without failing on a value.

Only stored rows can be asked about: tables, partitioned tables and materialised views. A view or a foreign table is
computed as it is read, and a computation can fail on one row; so can a virtual column, or a partition that is a
foreign table. Under row-level security, rows
that an account does not see would depend on conditions that can fail, too.

Columns are read as they are stored, with four exceptions. Dates come as numbers of days, since the driver cannot hold
infinite ones. A timestamp beyond the years 1 to 9999 is read as the first or last moment of them, since the driver
cannot hold all others, and infinite ones travel as one that is beyond. Decimals come as text, since NaN is one of them;
a decimal of no declared size is read as the nearest double. UUIDs and enumerated types come as text. Everything is
compared in this process, by its bytes, so that no collation makes two values one. Timestamps and decimals of no size
cannot say whose a row is: two units would be read as one, and who leaves would make room for rows of the other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from sqlglot import exp

from noisette.engines.contract import Dialect
from noisette.engines.sql.syntax import binary, choose, column, is_null, text_of, try_cast
from noisette.engines.sql.totals import Total, added_up

__all__ = [
    "CHANGES",
    "COLUMNS",
    "DATABASE",
    "PLACE",
    "SIZES",
    "TABLES",
    "StoredColumn",
    "adding_up",
    "columns_of",
    "digit",
    "few_rows",
    "reading",
]

DATABASE = (
    "SELECT current_setting('server_encoding') AS encoding, current_setting('server_version_num')::int AS version"
)

PLACE = (
    "SELECT CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE') "
    "THEN (SELECT system_identifier FROM pg_control_system())::text ELSE '' END AS system, "
    "(SELECT oid FROM pg_database WHERE datname = current_database())::int8 AS database"
)

TABLES = (
    "SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, "
    "row_security_active(c.oid) AS hidden, has_table_privilege(c.oid, 'SELECT') "
    "OR has_any_column_privilege(c.oid, 'SELECT') AS readable, n.nspname = current_schema() AS near, "
    "EXISTS (WITH RECURSIVE tree AS (SELECT c.oid AS oid "
    "UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree t ON i.inhparent = t.oid) "
    "SELECT FROM tree JOIN pg_class r ON r.oid = tree.oid WHERE r.relkind NOT IN ('r', 'p', 'm')) AS computed "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f') AND NOT c.relispartition "
    "AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
)

COLUMNS = (
    "SELECT a.attrelid::int8 AS oid, a.attname::text AS name, b.typname::text AS type, b.typtype::text AS sort, "
    "CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS modifier, a.attgenerated::text AS generated, "
    "coalesce((SELECT l.collisdeterministic FROM pg_collation l WHERE l.oid = a.attcollation), TRUE) AS bytewise "
    "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
    "JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END "
    "WHERE a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(a.attrelid, a.attnum, 'SELECT') "
    "ORDER BY a.attrelid, a.attnum"
)

CHANGES = (
    "WITH RECURSIVE tree AS (SELECT unnest(ARRAY[{oids}]::oid[]) AS oid "
    "UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree t ON i.inhparent = t.oid) "
    "SELECT r.oid::int8 AS oid, r.relfilenode::int8 AS file, pg_relation_size(r.oid) AS size, "
    "CASE WHEN current_setting('track_counts') = 'on' "
    "THEN s.n_tup_ins || '+' || s.n_tup_upd || '+' || s.n_tup_del END AS changes "
    "FROM tree JOIN pg_class r ON r.oid = tree.oid LEFT JOIN pg_stat_all_tables s ON s.relid = r.oid ORDER BY r.oid"
)
"""How many rows were inserted, updated and deleted, for tables and their partitions; NULL where none are counted."""


SIZES = (
    "SELECT s.attname::text AS name, s.n_distinct::float8 AS different, c.reltuples::float8 AS rows "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.inherited = (c.relkind = 'p') "
    "WHERE c.oid = {oid}"
)
"""How many rows a table has, and how many different values each column; below 0 the latter is a part of the rows."""


@dataclass(frozen=True)
class StoredColumn:
    """A column: its name, the type it is stored as (`contract.STORED`), what reads it on the server.

    `travels` as a number of days; as a moment within the years 1 to 9999, or beyond them if infinite; as text; or, if
    None, as it is. It is `exact` where different values stay different, and `bytewise` where the server takes those
    for equal, and no others, that it reads alike.
    """

    name: str
    stored: str
    read: exp.Expr
    travels: OneOf["day", "moment", "text"] | None = None
    exact: bool = True
    bytewise: bool = True

    @property
    def there(self) -> str:
        """The type that the server itself computes with: a decimal of no declared size is no double, and may overflow.

        >>> columns_of([{"name": "x", "type": "numeric", "sort": "b", "generated": "", "modifier": -1}])[0].there
        'NUMERIC'
        """
        return "NUMERIC" if self.travels == "text" and self.stored == "DOUBLE" else self.stored

    def arrived(self, name: str) -> exp.Expr:
        """What DuckDB makes of the column that came under a name; no value can make it fail."""
        if self.travels in (None, "day"):  # days are seen as dates already
            return column(name)
        if self.travels == "text":
            return try_cast(column(name), self.stored)
        ends = [exp.cast(exp.Literal.string(end), self.stored) for end in (*_MOMENTS[self.stored.lower()], *_INFINITE)]
        below, above = (
            node(this=column(name), expression=end) for node, end in zip((exp.LT, exp.GT), ends, strict=False)
        )
        return choose((below, ends[2]), (above, ends[3]), otherwise=column(name))


_PLAIN = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
}
_MOMENTS = {"timestamp": ("0001-01-01", "9999-12-31 23:59:59.999999")}
_POSTGRES = Dialect(
    "postgres", is_nan=lambda node: binary(exp.EQ, node.this, exp.cast(exp.Literal.string("NaN"), "DOUBLE"))
)
_LAST_DAY = 2**31 - 1  # what Arrow and DuckDB take for infinity; no date of a server is that far
_INFINITE = ("-infinity", "infinity")
_BEYOND = ("0002-01-01 BC", "10000-01-01")
_WIDEST = 38  # digits of a decimal
_MANY, _MOST = 50_000, 4096  # rows from which on it is worth it to count equal ones, and how many may differ


def columns_of(described: Iterable[Mapping[str, Any]]) -> list[StoredColumn]:
    """The columns of a table, from the rows of `COLUMNS`."""
    return [_column(str(row["name"]), str(row["type"]), row) for row in described]


def _column(name: str, type: str, row: Mapping[str, Any]) -> StoredColumn:
    own = column(name)
    if row["generated"] == "v":
        return StoredColumn(name, "GENERATED", own)
    if row["sort"] == "e" or type == "uuid":
        return StoredColumn(name, "VARCHAR", exp.cast(own, "text"))
    if type in _PLAIN:
        alike = bool(row.get("bytewise", True)) and not type.startswith("float")  # -0 equals 0 there
        return StoredColumn(name, _PLAIN[type], own, bytewise=alike)
    if type == "date":
        return StoredColumn(name, "DATE", _days(own), "day")
    if type in _MOMENTS:
        return StoredColumn(name, type.upper(), _moment(own, type), "moment", exact=False)
    if type == "numeric":
        stored = _decimal(int(row["modifier"]))
        return StoredColumn(name, stored, exp.cast(own, "text"), "text", exact=stored != "DOUBLE")
    return StoredColumn(name, _OTHERS.get(type, type.upper()), own)


_OTHERS = {"bpchar": "CHARACTER", "timestamptz": "TIMESTAMP WITH TIME ZONE"}


def _decimal(modifier: int) -> str:
    """The type of a decimal: by its digits and those after the point, or a double where they are not declared.

    >>> _decimal(((9 << 16) | 2) + 4), _decimal(-1), _decimal(((2 << 16) | 5) + 4)
    ('DECIMAL(9,2)', 'DOUBLE', 'DOUBLE')
    """
    digits, after = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    return f"DECIMAL({digits},{after})" if modifier >= 4 and after <= digits <= _WIDEST else "DOUBLE"


def _days(own: exp.Column) -> exp.Expr:
    """Days since 1970, which no finite date makes fail, and the last number there is for infinity."""
    ends = [exp.cast(exp.Literal.string(end), "date") for end in (*_INFINITE, "1970-01-01")]
    days = [exp.cast(exp.Literal.number(n), "int") for n in (-_LAST_DAY, _LAST_DAY)]
    infinite = [(binary(exp.EQ, own, end), day) for end, day in zip(ends, days, strict=False)]
    return choose(*infinite, otherwise=exp.Sub(this=own.copy(), expression=ends[2]))


def _moment(own: exp.Column, type: str) -> exp.Expr:
    def at(moment: str) -> exp.Expr:
        return exp.cast(exp.Literal.string(moment), type)

    first, last = map(at, _MOMENTS[type])
    within = exp.Greatest(this=exp.Least(this=own.copy(), expressions=[last]), expressions=[first])
    infinite = [(binary(exp.EQ, own, at(end)), at(beyond)) for end, beyond in zip(_INFINITE, _BEYOND, strict=True)]
    return choose(*infinite, (is_null(own), exp.null()), otherwise=within)  # LEAST and GREATEST skip NULL


def reading(schema: str, table: str, columns: Sequence[StoredColumn], *, counted: bool = False) -> str:
    """The SELECT of some columns of a table; or of its different rows, `counted`.

    >>> age = columns_of([{"name": "Age", "type": "int4", "sort": "b", "generated": ""}])
    >>> reading("public", "visits", age)
    'SELECT "Age" AS "c0" FROM "public"."visits"'
    >>> reading("public", "visits", age, counted=True)
    'SELECT "Age" AS "c0", COUNT(*) AS "n" FROM "public"."visits" GROUP BY 1'
    """
    made = [exp.alias_(one.read, f"c{i}", quoted=True) for i, one in enumerate(columns)]
    place = _place(schema, table)
    if not counted:
        made = made or [exp.alias_(exp.true(), "nothing", quoted=True)]
        return exp.select(*made).from_(place).sql(dialect="postgres")
    every = exp.alias_(exp.Count(this=exp.Star()), "n", quoted=True)
    groups = [exp.Literal.number(i + 1) for i in range(len(columns))]
    return exp.select(*made, every).from_(place).group_by(*groups).sql(dialect="postgres")


def _place(schema: str, table: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(table, quoted=True), db=exp.to_identifier(schema, quoted=True))


def digit(name: str) -> StoredColumn:
    """A column of whole numbers that the server computed."""
    return StoredColumn(name, "BIGINT", column(name))


def adding_up(schema: str, table: str, by: Sequence[StoredColumn], totals: Sequence[Total]) -> str:
    """The SELECT of groups of a table's rows, with the digits of their totals (`sql.totals`).

    >>> from noisette.query.measure import Measure
    >>> adding_up("public", "visits", [], [Total(Measure("rows"))])
    'SELECT "sum0" AS "c0" FROM (SELECT CAST(SUM("steps0") AS BIGINT) AS "sum0" FROM (SELECT 1 AS "steps0" FROM ...'
    """
    digits = [f"c{len(by) + i}" for i in range(sum(len(total.weights) for total in totals))]
    places = {f"c{i}": one.read for i, one in enumerate(by)}
    return text_of(added_up(_place(schema, table), places, totals, digits), _POSTGRES)


def few_rows(columns: Iterable[StoredColumn], sizes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a large table has few different rows of these columns, by the rows of `SIZES`.

    >>> ages = columns_of([{"name": "age", "type": "int4", "sort": "b", "generated": ""}])
    >>> few_rows(ages, [{"name": "age", "different": 90.0, "rows": 1e6}])
    True
    >>> few_rows(ages, [{"name": "age", "different": -0.9, "rows": 1e6}])
    False
    """
    known = {row["name"]: row for row in sizes}
    rows = max([float(row["rows"]) for row in known.values()], default=0.0)
    groups = 1.0
    for one in columns:
        different = known[one.name]["different"] if one.bytewise and one.name in known else -1.0
        groups *= 1 + (different if different >= 0 else -different * rows)  # NULL is one more
    return rows >= _MANY and groups <= _MOST

"""Tables of Arrow in a PostgreSQL server, as a database would store the same values."""

import datetime

import psycopg
import pyarrow

from noisette.engines.files import valid_text

_TYPES = {
    "int8": "int2",
    "int16": "int2",
    "int32": "int4",
    "int64": "int8",
    "uint64": "numeric(20,0)",
    "float": "float4",
    "double": "float8",
    "string": "text",
    "bool": "bool",
    "date32[day]": "date",
    "uint8": "int2",
    "uint16": "int4",
    "uint32": "int8",
    "timestamp[s]": "timestamp",
    "timestamp[ms]": "timestamp",
    "timestamp[us]": "timestamp",
    "timestamp[ns]": "timestamp",
}
_FIRST = (datetime.date(1, 1, 1) - datetime.date(1970, 1, 1)).days
_LAST = (datetime.date(9999, 12, 31) - datetime.date(1970, 1, 1)).days


def stored(url: str, tables: dict[str, pyarrow.Table]) -> None:
    """Write tables into the schema of a URL."""
    with psycopg.connect(url) as connection:
        for name, table in tables.items():
            columns = ", ".join(f'"{c.name}" {_type(c.type)}' for c in table.schema)
            connection.execute(f'CREATE TABLE "{name}" ({columns})')
            values = [_values(table.column(c)) for c in table.column_names]
            with connection.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
                for row in zip(*values, strict=True):
                    copy.write_row(row)


def _type(arrow: pyarrow.DataType) -> str:
    if pyarrow.types.is_dictionary(arrow):
        return _type(arrow.value_type)
    if pyarrow.types.is_decimal(arrow):
        return f"numeric({arrow.precision},{arrow.scale})"
    return _TYPES[str(arrow)]


def _values(column: pyarrow.ChunkedArray) -> list[object]:
    if pyarrow.types.is_date(column.type):
        return [None if day is None else _day(day) for day in column.cast(pyarrow.int32()).to_pylist()]
    if pyarrow.types.is_dictionary(column.type):
        return _values(column.cast(column.type.value_type))
    if pyarrow.types.is_string(column.type):
        valid = valid_text(column.combine_chunks().view(pyarrow.binary()).cast(pyarrow.large_binary())).to_pylist()
        return [text and text.replace("\0", "?") for text in valid]  # no text of a server holds that byte
    if pyarrow.types.is_timestamp(column.type):
        return [None if at is None else _moment(at) for at in _microseconds(column)]
    return column.to_pylist()


def _microseconds(column: pyarrow.ChunkedArray) -> list[int | None]:
    unit = {"s": 10**6, "ms": 1000, "us": 1, "ns": 0}[column.type.unit]
    return [n if n is None else n * unit if unit else n // 1000 for n in column.cast(pyarrow.int64()).to_pylist()]


def _moment(at: int) -> str:
    """A moment as PostgreSQL writes it: that of its day, and the time of the day."""
    if abs(at) >= 2**63 - 1:
        return "infinity" if at > 0 else "-infinity"
    day, rest = divmod(at, 86_400 * 10**6)
    seconds, micro = divmod(rest, 10**6)
    date, _, era = _day(day).partition(" ")
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micro:06}"
    return f"{date} {clock} {era}".strip()


def _day(day: int) -> str:
    """A day as PostgreSQL writes it: those that DuckDB takes for infinite are, and none is before its first one."""
    if abs(day) >= 2**31 - 1:
        return "infinity" if day > 0 else "-infinity"
    if day < _FIRST:
        return "4713-01-01 BC"
    return "99999-01-01" if day > _LAST else str(datetime.date(1970, 1, 1) + datetime.timedelta(day))

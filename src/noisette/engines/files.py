"""Files and frames: what a table may be given as, whichever engine reads it, and text in it that is valid.

An engine fails on text that is not UTF-8, so that one row could stop a question: such bytes are read as question marks,
value by value. Parquet files are read so by the engine itself.
"""

import codecs
import glob
import re
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow

from noisette.errors import InputError

__all__ = [
    "QUESTION_MARK", "Opened", "family_of", "files_of", "is_csv", "is_database", "is_frame", "is_postgres", "is_server",
    "is_spark", "no_file", "valid_table", "valid_text",
]  # fmt: skip

Opened: TypeAlias = Any
"""A path, a glob or a list of paths (.parquet, .csv, .duckdb), a frame, or a pair (DuckDB file or URL, table)."""

_ADDRESS = re.compile(r"://|@|\b(password|passfile|pwd|token)\s*=", re.IGNORECASE)
_PARQUET, _CSV, _DATABASE = {".parquet", ".pq"}, {".csv", ".tsv"}, {".duckdb", ".db"}


def is_frame(source: Opened) -> bool:
    """Whether it is a table in memory that speaks Arrow."""
    return hasattr(source, "__arrow_c_stream__")


def files_of(source: Opened) -> list[str]:
    """The files that a source names, all of them there."""
    if isinstance(source, tuple) and len(source) == 2 and (source[1] is None or is_database(source[0])):
        if source[1] is None and not is_database(source[0]):
            raise InputError("Give each file the name of its table: {'visits': 'visits.parquet'}.")
        source = source[0]
    listed = source if isinstance(source, list | tuple) else [source]
    if not listed or not all(isinstance(part, str | Path) for part in listed):
        raise InputError("A table is a path, a list of paths, or a frame that speaks Arrow (pandas, polars, pyarrow).")
    found = [path for part in listed for path in _expanded(str(part))]
    if len({family_of(path) for path in found}) > 1:
        raise InputError("The files of one table must be of one kind.")
    return found


def _expanded(path: str) -> list[str]:
    if Path(path).is_file():
        return [str(Path(path).resolve())]
    found = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not found:
        raise no_file(path)
    return [str(Path(name).resolve()) for name in found if Path(name).is_file()]


def no_file(path: str) -> InputError:
    """That a file is not there; what may be an address is not repeated, since it may hold a password.

    >>> str(no_file("visits.parquet"))
    'There is no file visits.parquet.'
    >>> str(no_file("postgres+x://ann:secret@host/clinic"))
    'There is no file of this name; the address of a server begins with postgresql://, sc:// or spark://.'
    """
    if _ADDRESS.search(path):
        server = "the address of a server begins with postgresql://, sc:// or spark://"
        return InputError(f"There is no file of this name; {server}.")
    return InputError(f"There is no file {path}.")


def is_database(path: Any) -> bool:
    """Whether a file holds tables of its own."""
    return _suffix(path) in _DATABASE


def is_postgres(source: Opened) -> bool:
    """Whether it is a PostgreSQL database by its URL, or a pair (URL, table)."""
    url = source[0] if isinstance(source, tuple) and source else source
    return isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))


_MASTERS = ("sc://", "spark://", "k8s://", "local[", "local-cluster[")


def is_spark(source: Opened) -> bool:
    """Whether it is a session or a frame of Spark, the URL of a Spark server, or a master of Spark's.

    >>> is_spark("sc://host:15002"), is_spark("local[2]"), is_spark("k8s://host"), is_spark("visits.parquet")
    (True, True, True, False)
    """
    if isinstance(source, str):
        return source.startswith(_MASTERS)
    return type(source).__module__.partition(".")[0] == "pyspark"


def is_server(place: Any) -> bool:
    """Whether a text is the address of a server, with or without #table behind it.

    >>> is_server("postgresql://host/clinic#public.visits"), is_server("sc://host"), is_server("visits.parquet")
    (True, True, False)
    """
    return isinstance(place, str) and (is_postgres(place) or is_spark(place))


def is_csv(source: Opened) -> bool:
    """Whether a table is one CSV file, a pattern of names or a list of them."""
    one = source[0] if isinstance(source, list | tuple) and source else source
    return _suffix(one) in _CSV and not is_postgres(one) and not is_spark(one)


def _suffix(path: Any) -> str:
    return Path(path).suffix.lower() if isinstance(path, str | Path) else ""


def family_of(path: str) -> str:
    """The ending that stands for all files of one kind: .csv, .db or .parquet."""
    suffix = _suffix(path)
    for family in (_PARQUET, _CSV, _DATABASE):
        if suffix in family:
            return min(family)
    raise InputError(f"Files that end in {suffix or 'nothing'} cannot be opened: use .parquet, .csv or .duckdb.")


# Text that is valid whatever bytes are stored


_SOME = 1 << 16  # values that are decoded one by one if one of them is not valid
_TEXT = {
    pyarrow.string(): pyarrow.binary(),
    pyarrow.large_string(): pyarrow.large_binary(),
    pyarrow.string_view(): pyarrow.binary_view(),
}

QUESTION_MARK = "noisette.question_mark"
"""The way in which bytes are decoded: a question mark stands for what is not valid."""

codecs.register_error(QUESTION_MARK, lambda fault: ("?", getattr(fault, "end", 0)))


def valid_table(table: pyarrow.Table, name: str) -> pyarrow.Table:
    """The same table with text that is valid; a sentence where an array is damaged in another way."""
    for i, column in enumerate(table.column_names):
        try:
            table.column(i).validate(full=True)
        except pyarrow.ArrowInvalid:
            table = table.set_column(i, column, _mended(table.column(i), column, name))
    return table


def _mended(column: pyarrow.ChunkedArray, name: str, table: str) -> pyarrow.ChunkedArray:
    try:
        return pyarrow.chunked_array([_of_chunk(chunk) for chunk in column.chunks])
    except pyarrow.ArrowException:
        pass
    raise InputError(f"Column {name} of table {table} holds arrays that are damaged: make the frame anew.")


def _of_chunk(chunk: pyarrow.Array) -> pyarrow.Array:
    if isinstance(chunk, pyarrow.DictionaryArray):
        return pyarrow.DictionaryArray.from_arrays(chunk.indices, _of_chunk(chunk.dictionary))
    if chunk.type not in _TEXT:
        raise pyarrow.ArrowInvalid
    plain = chunk.view(_TEXT[chunk.type])
    plain.validate(full=True)
    return valid_text(plain.cast(pyarrow.large_binary()))


def valid_text(values: pyarrow.Array) -> pyarrow.Array:
    """Bytes of any kind as valid text.

    >>> valid_text(pyarrow.array([b"caf\\xc3\\xa9", b"caf\\xe9", None], pyarrow.large_binary())).to_pylist()
    ['café', 'caf?', None]
    """
    parts = [_valid(values.slice(at, _SOME)) for at in range(0, len(values), _SOME)]
    return pyarrow.chunked_array(parts, pyarrow.large_string()).combine_chunks()


def _valid(part: pyarrow.Array) -> pyarrow.Array:
    text = part.view(pyarrow.large_string())
    try:
        text.validate(full=True)
    except pyarrow.ArrowInvalid:
        decoded = [None if v is None else v.decode("utf-8", QUESTION_MARK) for v in part.to_pylist()]
        return pyarrow.array(decoded, pyarrow.large_string())
    return text

"""Files and frames: what a table may be given as, whichever engine reads it."""

import glob
from pathlib import Path
from typing import Any, TypeAlias

from noisette.errors import InputError

__all__ = ["Opened", "family_of", "files_of", "is_csv", "is_database", "is_frame"]

Opened: TypeAlias = Any
"""A path, a glob or a list of paths (.parquet, .csv, .duckdb), a pair (path of a DuckDB file, table), or a frame."""

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
        raise InputError(f"There is no file {path}.")
    return [str(Path(name).resolve()) for name in found if Path(name).is_file()]


def is_database(path: Any) -> bool:
    """Whether a file holds tables of its own."""
    return _suffix(path) in _DATABASE


def is_csv(source: Opened) -> bool:
    """Whether a table is one CSV file, a pattern of names or a list of them."""
    return _suffix(source[0] if isinstance(source, list | tuple) and source else source) in _CSV


def _suffix(path: Any) -> str:
    return Path(path).suffix.lower() if isinstance(path, str | Path) else ""


def family_of(path: str) -> str:
    """The ending that stands for all files of one kind: .csv, .db or .parquet."""
    suffix = _suffix(path)
    for family in (_PARQUET, _CSV, _DATABASE):
        if suffix in family:
            return min(family)
    raise InputError(f"Files that end in {suffix or 'nothing'} cannot be opened: use .parquet, .csv or .duckdb.")

"""Fingerprints of what was opened, from its description alone: no value of any row goes in.

They tell whether a ledger is about these data: where a table lies, its columns and the types they are stored as, who is
protected. What may change without another budget is left out: rows, and what the policy declares of a column (type,
bounds, keys) and of a table (limits), since each charge says its sensitivities. A CSV file stores text alone, so its
columns have names and no types.
"""

import glob
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from noisette.exact.random import SYSTEM
from noisette.privacy import Neighbours
from noisette.query.schema import Schema

__all__ = ["Columns", "contents", "declared_columns", "fingerprints", "state"]

_BYTES, _FILES = 2**16, 32  # of a file, and files of a table, that are read to know a copy again

Columns: TypeAlias = Mapping[str, str | None]
"""The columns of a table and the types they are stored as; None where a file stores text alone."""


def fingerprints(tables: Any, schema: Schema, neighbours: Neighbours, stored: Mapping[str, Columns]) -> dict[str, str]:
    """A fingerprint of each table; `tables` are sources by name, or one database for all of them."""
    sources = tables if isinstance(tables, Mapping) else dict.fromkeys(schema, tables)
    return {
        name: _hashed([_where(sources.get(name)), _sorted(stored[name]), table.unit, table.public, str(neighbours)])
        for name, table in sorted(schema.items())
    }


def declared_columns(schema: Schema) -> dict[str, Columns]:
    """The columns with their declared types: what fingerprints of earlier versions were made of."""
    return {name: {column.name: column.kind.type for column in table.columns} for name, table in schema.items()}


def _sorted(columns: Columns) -> list[tuple[str, str | None]]:
    return sorted(columns.items(), key=lambda column: column[0])


def _hashed(described: list[Any]) -> str:
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _where(source: Any) -> list[str]:
    """The absolute paths of files; a frame is somewhere in memory.

    >>> _where(object())
    ['memory']
    """
    return [str(Path(part).resolve()) if isinstance(part, str | Path) else "memory" for part in _parts(source)]


def contents(tables: Any, schema: Schema) -> list[str]:
    """What the files of each private table hold, in a few letters, wherever they lie: a copy has the same ones.

    It is cheap: the sizes of all files, and both ends of some. What is in memory has none, and neither has a public
    table, which other data may share. These are for a keyed name alone (see `ledger.heads`): they are not kept.
    """
    if isinstance(tables, Mapping):
        sources = [tables[name] for name, table in sorted(schema.items()) if not table.public]
    else:
        sources = [] if all(table.public for table in schema.values()) else [tables]
    held = [_held([name for part in _parts(source) for name in _names(part)]) for source in sources]
    return [print for print in held if print is not None]


def _held(names: Sequence[str]) -> str | None:
    try:
        sizes = sorted(os.stat(name).st_size for name in names)
        ends = sorted(_ends(name) for name in names[:_FILES])
    except OSError:
        return None
    return _hashed([sizes, ends]) if sizes else None


def _ends(name: str) -> str:
    """A hash of the first and the last bytes of a file; all of a small one."""
    with open(name, "rb") as file:
        first = file.read(_BYTES)
        file.seek(-min(_BYTES, os.stat(name).st_size), os.SEEK_END)
        return hashlib.sha256(first + file.read(_BYTES)).hexdigest()


def state(tables: Any) -> str:
    """When the files were written last, in a few letters: answers that were kept are about data in this state.

    What is in memory can be anything the next time, so its state never comes again.

    >>> state({"visits": object()}) == state({"visits": object()})
    False
    """
    sources = [tables[name] for name in sorted(tables)] if isinstance(tables, Mapping) else [tables]
    parts = [part for source in sources for part in _parts(source)]
    return _hashed([_written(part) for part in parts])


def _parts(source: Any) -> Sequence[Any]:
    return source if isinstance(source, list | tuple) else [source]


def _names(part: Any) -> list[str]:
    """The files that a path or a pattern names."""
    return sorted(glob.glob(str(part))) or [str(part)] if isinstance(part, str | Path) else []


def _written(part: Any) -> list[str]:
    try:
        return [f"{name} {Path(name).stat().st_mtime_ns}" for name in _names(part)] or [_never()]
    except OSError:
        return [_never()]


def _never() -> str:
    return f"{SYSTEM.bits(128):032x}"

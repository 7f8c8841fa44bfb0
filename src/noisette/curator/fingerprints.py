"""Fingerprints of what was opened, from its description alone: no value of any row goes in.

They tell whether a ledger is about these data: where a table lies, its columns and the types they are stored as, who is
protected. What may change without another budget is left out: rows, and what the policy declares of a column (type,
bounds, keys) and of a table (limits), since each charge says its sensitivities. A CSV file stores text alone, so its
columns have names and no types.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from noisette.curator.pins import names_of, parts_of
from noisette.privacy import Neighbours
from noisette.query.schema import Schema, Table

__all__ = ["Columns", "contents", "declared_columns", "fingerprints"]

_BYTES, _FILES = 2**16, 32  # of a file, and files of a table, that are read to know a copy again

Columns: TypeAlias = Mapping[str, str | None]
"""The columns of a table and the types they are stored as; None where a file stores text alone."""


def fingerprints(
    tables: Any,
    schema: Schema,
    neighbours: Neighbours,
    stored: Mapping[str, Columns],
    places: Mapping[str, str | None],
) -> dict[str, str]:
    """A fingerprint of each table; `tables` are sources by name, or one database for all of them.

    `places` says where a table is that is in no file.
    """
    sources = tables if isinstance(tables, Mapping) else dict.fromkeys(schema, tables)
    where = {name: [place] if (place := places.get(name)) else _where(sources.get(name)) for name in schema}
    return {
        name: _hashed([where[name], _sorted(stored[name]), _whose(table), table.public, str(neighbours)])
        for name, table in sorted(schema.items())
    }


def _whose(table: Table) -> Any:
    """The unit, and the foreign keys that lead to it, if there are any."""
    return [table.unit, *([link.table, link.on] for link in table.through)] if table.through else table.unit


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
    return [str(Path(part).resolve()) if isinstance(part, str | Path) else "memory" for part in parts_of(source)]


def contents(tables: Any, schema: Schema) -> list[str]:
    """What the files of each private table hold, in a few letters, wherever they lie: a copy has the same ones.

    It is cheap: the sizes of all files, and both ends of some. What is in memory has none, and neither has a public
    table, which other data may share. These are for a keyed name alone (see `ledger.heads`): they are not kept.
    """
    if isinstance(tables, Mapping):
        sources = [tables[name] for name, table in sorted(schema.items()) if not table.public]
    else:
        sources = [] if all(table.public for table in schema.values()) else [tables]
    held = [_held([name for part in parts_of(source) for name in names_of(part)]) for source in sources]
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

"""Fingerprints of what was opened, from its description alone: no value of any row goes in.

They tell whether a ledger is about these data: where a table lies, its columns and their types, who is protected. What
may change without another budget is left out: rows, bounds, keys and limits, since each charge says its sensitivities.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noisette.privacy import Neighbours
from noisette.query.schema import Schema, Table

__all__ = ["fingerprints"]


def fingerprints(tables: Any, schema: Schema, neighbours: Neighbours) -> dict[str, str]:
    """A fingerprint of each table; `tables` are sources by name, or one database for all of them."""
    sources = tables if isinstance(tables, Mapping) else dict.fromkeys(schema, tables)
    return {name: _fingerprint(sources.get(name), table, neighbours) for name, table in sorted(schema.items())}


def _fingerprint(source: Any, table: Table, neighbours: Neighbours) -> str:
    columns = sorted((column.name, column.kind.type) for column in table.columns)
    said = [_where(source), columns, table.unit, table.public, str(neighbours)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _where(source: Any) -> list[str]:
    """The absolute paths of files; a frame is somewhere in memory.

    >>> _where(object())
    ['memory']
    """
    parts = source if isinstance(source, list | tuple) else [source]
    return [str(Path(part).resolve()) if isinstance(part, str | Path) else "memory" for part in parts]

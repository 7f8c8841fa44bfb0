"""Fingerprints of what was opened, from its description alone: no value of any row goes in.

They tell whether a ledger is about these data: where a table lies, its columns and their types, who is protected. What
may change without another budget is left out: rows, bounds, keys and limits, since each charge says its sensitivities.
"""

import glob
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noisette.exact.random import SYSTEM
from noisette.privacy import Neighbours
from noisette.query.schema import Schema, Table

__all__ = ["fingerprints", "state"]


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


def state(tables: Any) -> str:
    """When the files were written last, in a few letters: answers that were kept are about data in this state.

    What is in memory can be anything the next time, so its state never comes again.

    >>> state({"visits": object()}) == state({"visits": object()})
    False
    """
    sources = [tables[name] for name in sorted(tables)] if isinstance(tables, Mapping) else [tables]
    parts = [part for source in sources for part in (source if isinstance(source, list | tuple) else [source])]
    return hashlib.sha256(json.dumps([_written(part) for part in parts]).encode()).hexdigest()


def _written(part: Any) -> list[str]:
    names = sorted(glob.glob(str(part))) or [str(part)] if isinstance(part, str | Path) else []
    try:
        return [f"{name} {Path(name).stat().st_mtime_ns}" for name in names] or [_never()]
    except OSError:
        return [_never()]


def _never() -> str:
    return f"{SYSTEM.bits(128):032x}"

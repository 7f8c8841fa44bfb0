"""LRU cache of bounded tables: a question with the same bounds as an earlier one is a plain group-by."""

from collections import OrderedDict
from collections.abc import Collection, Hashable
from dataclasses import dataclass

import pyarrow

from noisette.engines.duckdb.retained import RetainedRows
from noisette.engines.duckdb.session import Session

__all__ = ["BoundedTable", "Cache"]


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

    def holds(self, columns: Collection[str], *, firsts: bool) -> bool:
        """Whether all that is wanted is there."""
        return set(columns) <= set(self.columns) and (self.firsts or not firsts)


class Cache:
    """The bounded tables that were used last, limited by count and bytes."""

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

"""Kept rows inside the engine: a question with the same bounds as an earlier one is a plain group-by."""

from collections import OrderedDict
from collections.abc import Collection, Hashable
from dataclasses import dataclass

import pyarrow

from noisette.engines.duckdb.retained import Survivors
from noisette.engines.duckdb.session import Session

__all__ = ["Kept", "Shelf"]


@dataclass(frozen=True)
class Kept:
    """A table of kept rows: its name, its columns by those of the relation, whether it has heads, what codes mean."""

    name: str
    columns: dict[str, str]
    heads: bool
    size: int
    keys: pyarrow.Table | None
    bytes: int

    def holds(self, columns: Collection[str], *, heads: bool) -> bool:
        """Whether all that is wanted is there."""
        return set(columns) <= set(self.columns) and (self.heads or not heads)


class Shelf:
    """The kept tables that were used last, at most so many and so large together."""

    def __init__(self, session: Session, *, most_tables: int, most_bytes: int) -> None:
        self._session, self._most_tables, self._most_bytes = session, most_tables, most_bytes
        self._tables: OrderedDict[Hashable, Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tables)

    def find(self, frame: Hashable) -> Kept | None:
        """The table of a frame: a relation with its keys, domains, limits, secret, and what tells its rows apart."""
        if frame in self._tables:
            self._tables.move_to_end(frame)
        return self._tables.get(frame)

    def put(self, frame: Hashable, found: Survivors, columns: dict[str, str], *, heads: bool) -> Kept:
        """Lend rows to the engine, in place of the table that the frame had; the newest stays, however large."""
        if frame in self._tables:
            self._session.drop(self._tables.pop(frame).name)
        kept = Kept(self._session.keep(found.rows), columns, heads, found.size, found.keys, found.rows.nbytes)
        self._tables[frame] = kept
        while len(self._tables) > 1 and self._full():
            self._session.drop(self._tables.popitem(last=False)[1].name)
        return kept

    def _full(self) -> bool:
        return len(self._tables) > self._most_tables or sum(k.bytes for k in self._tables.values()) > self._most_bytes

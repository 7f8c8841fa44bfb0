"""What an engine must be able to do; everything else is public and happens before or after it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from noisette.query.measure import Exact, Request
from noisette.query.plan import Relation
from noisette.query.schema import Schema, Table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Source"]


class Source(Protocol):
    """Tables somewhere, and an engine that computes over them.

    Nothing it raises may quote data: an engine's own words stay inside.
    """

    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table and the types they are stored as, from metadata alone."""
        ...

    def repeats(self, table: Table) -> dict[str, int]:
        """For each column of a public table, in how many rows one clean value stands, by the comparison of joins."""
        ...

    def compute(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures; `secret` keys the choice of the rows that are kept of each unit."""
        ...

    def rows(self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes) -> "pyarrow.Table":
        """Columns of a relation under new names, and `unit`, a number for each unit unless each row is one."""
        ...

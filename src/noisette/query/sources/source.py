"""What an engine must be able to do; everything else is public and happens before or after it."""

from typing import Protocol

from noisette.query.measure import Exact, Request
from noisette.query.schema import Schema

__all__ = ["Source"]


class Source(Protocol):
    """Tables somewhere, and an engine that computes over them.

    Nothing it raises may quote data: an engine's own words stay inside.
    """

    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table and the types they are stored as, from metadata alone."""
        ...

    def unique(self, table: str) -> frozenset[str]:
        """The columns of a public table whose values do not repeat."""
        ...

    def compute(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures; `secret` keys the choice of the rows that are kept of each unit."""
        ...

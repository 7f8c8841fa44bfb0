"""Compute what is known of a relation once for all that is done for a question about it."""

import threading
from collections.abc import Callable
from functools import wraps
from operator import is_
from typing import Any, TypeVar

from noisette.query.plan import Relation
from noisette.query.schema import Schema, Table

__all__ = ["once"]

R = TypeVar("R", bound=Relation)
T = TypeVar("T")

_MOST = 512  # relations that are remembered, of which a question has a few dozen


class _Found(threading.local):
    """What a thread found out last: of which tables, and by function and relation.

    Whatever is remembered holds its tables and relation, so that no other object gets their identity.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.tables: list[Table] = []
        self.of: dict[tuple[Any, int], tuple[Any, Any]] = {}

    def under(self, schema: Schema) -> dict[tuple[Any, int], tuple[Any, Any]]:
        """What was found under a schema; of others nothing is remembered."""
        names, tables = list(schema), list(schema.values())
        same = names == self.names and all(map(is_, tables, self.tables))
        if not same or len(self.of) >= _MOST:
            self.names, self.tables, self.of = names, tables, {}
        return self.of


_FOUND = _Found()


def once(function: Callable[[R, Schema], T]) -> Callable[[R, Schema], T]:
    """The same function, computed once for each relation; a relation under the same tables is not looked at again.

    A join asks for the shapes of its sides several times, so the work would grow exponentially with the joins. Plans
    and tables are values: nothing that is known of them changes.

    >>> from noisette.query.expression import Literal
    >>> from noisette.query.plan import Scan, Where
    >>> calls = []
    >>> @once
    ... def depth(relation, schema):
    ...     calls.append(relation)
    ...     inner = getattr(relation, "source", None)
    ...     return 0 if inner is None else max(depth(inner, schema), depth(inner, schema)) + 1
    >>> plan = Where(Where(Scan("visits", "v"), Literal(True)), Literal(True))
    >>> depth(plan, {}), depth(plan, {}), len(calls)
    (2, 2, 3)
    """

    @wraps(function)
    def computed(relation: R, schema: Schema) -> T:
        found = _FOUND.under(schema)
        key = function, id(relation)
        if key not in found:
            found[key] = relation, function(relation, schema)
        made: T = found[key][1]
        return made

    return computed

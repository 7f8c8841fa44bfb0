"""What public tables hold: the values of keys over a public relation, read once and remembered."""

import math
import weakref
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from noisette.engines.contract import Source
from noisette.engines.memory.values import value_of
from noisette.errors import InputError
from noisette.query.beyond import listed_within
from noisette.query.expression import Expression, columns_of
from noisette.query.kind import Kind, Value
from noisette.query.operations import kind_of
from noisette.query.plan import as_json, expression_tree, relation_tree
from noisette.query.public_parts import Part
from noisette.query.schema import Schema, Tuples
from noisette.query.stability import shape_of

__all__ = ["MOST_LISTED", "Listing"]

MOST_LISTED = 100_000
"""Of a public table with more combinations of values than these, the keys are not listed one by one."""


class Listing:
    """Reads public relations of a source: which values some expressions have in their rows.

    Only public tables are read, so this costs no privacy. Values are those of the clean columns, as joins compare them.
    Tables hold it and are remembered, so it holds no source open: once that is closed, nothing is listed.
    """

    def __init__(self, source: Source) -> None:
        self._source: Callable[[], Source | None] = weakref.ref(source)
        self._found: dict[str, Tuples | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What travels to executors: the tables are there, and nothing is listed."""
        return {"_source": _closed, "_found": {}}

    def __call__(self, part: Part, keys: Sequence[Expression], schema: Schema) -> Tuples | None:
        """The distinct tuples of the keys; None if there are too many, or one cannot be listed."""
        asked = _text(part, keys)
        if asked not in self._found:
            if len(self._found) >= 1_000:
                self._found.clear()
            self._found[asked] = self._read(part, keys, schema)
        return self._found[asked]

    def _read(self, part: Part, keys: Sequence[Expression], schema: Schema) -> Tuples | None:
        source = self._source()
        if source is None:
            return None
        relation, asked = listed_within(part.relation, part.conditions, keys, schema)
        scope = shape_of(relation, schema).columns
        used = sorted({name for e in (*keys, *asked) for name in columns_of(e)})
        numbered = {name: f"c{i}" for i, name in enumerate(used)}
        table = source.rows(relation, numbered, schema, b"").group_by(list(numbered.values())).aggregate([])
        if len(table) > MOST_LISTED:
            return None
        columns = [table.column(short).to_pylist() for short in numbered.values()]
        rows: list[dict[str, Any]] = [dict(zip(used, values, strict=True)) for values in zip(*columns, strict=True)]
        if part.outer:
            rows.append(dict.fromkeys(used))
            scope = {name: kind.maybe() for name, kind in scope.items()}
        try:
            conditions = [value_of(each, scope) for each in asked]
            made = [(value_of(key, scope), kind_of(key, scope)) for key in keys]
        except InputError:  # deeper than what can be computed at once
            return None
        kept = [row for row in rows if all(holds(row) for holds in conditions)]
        found = {tuple(_exact(of(row), kind) for of, kind in made) for row in kept}
        return None if any(math.inf in row for row in found) else tuple(found)


def _closed() -> None:
    """No source."""


def _text(part: Part, keys: Sequence[Expression]) -> str:
    """What is read, as a text that differs for 1 and TRUE."""
    written = [list(map(expression_tree, some)) for some in (part.conditions, keys)]
    return as_json([relation_tree(part.relation), part.outer, *written])


def _exact(value: Any, kind: Kind) -> Value:
    """A double as the number that it stands for, on its grid if it has one; infinity stays."""
    if not isinstance(value, float):
        return value  # type: ignore[no-any-return]
    if math.isinf(value):
        return math.inf  # type: ignore[return-value]
    return Fraction(value) if kind.grid is None else round(Fraction(value) / kind.grid) * kind.grid

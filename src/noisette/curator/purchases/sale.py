"""What is for sale, which question buys it, and what was found."""

from typing import Any, NamedTuple

from noisette.answers import Release
from noisette.curator.purchases.bounds import Bounds, found_bounds
from noisette.curator.purchases.purchase import Place, What
from noisette.curator.purchases.rows import Rows
from noisette.errors import InputError, NoisetteError
from noisette.privacy import Promise
from noisette.query.expression import Name
from noisette.query.kind import Value, in_order
from noisette.query.plan import Key, Query, Scan
from noisette.query.schema import Schema, Table
from noisette.questions.parts.queries import Queries

__all__ = ["Terms", "for_sale", "found", "purchase_question"]


class Terms(NamedTuple):
    """On which terms a limit on rows is bought: the largest one, and what later questions spend; None by default."""

    most: int | None = None
    for_spend: Promise | None = None

    @property
    def text(self) -> str:
        """Those that were given, as the purchase records them.

        >>> Terms(most=64).text
        'most = 64'
        """
        return ", ".join(f"{name} = {part!r}" for name, part in sorted(self._asdict().items()) if part is not None)


def for_sale(schema: Schema, what: What, name: str | None) -> Place:
    """What is bought under a name: `table.column` or `table`, without the table if there is only one."""
    if what == "rows":
        return _rows_for_sale(schema, name)
    table_name, _, column_name = (name or "").rpartition(".")
    table = schema.get(table_name or _only(schema))
    if table is None:
        raise InputError(f"Name the column with its table, one of {', '.join(sorted(schema))}: visits.age.")
    column = table.column(column_name)
    if not (column.private_bounds if what == "bounds" else column.private_keys):
        raise InputError(f'The {what} of {column.name} are not for sale: its owner can write {what} = "private".')
    if what == "keys" and column.kind.type == "real":
        raise InputError(f"{column.name} holds real numbers, which make no keys: declare it as integer, or its bounds.")
    return Place(table.name, column.name, what)


def _rows_for_sale(schema: Schema, name: str | None) -> Place:
    table = schema.get(name or _only(schema))
    if table is None:
        raise InputError(f"Name the table whose limit is to be bought: one of {', '.join(sorted(schema))}.")
    if not table.private_rows:
        raise InputError(f'The limit on rows of {table.name} is not for sale: its owner can write rows = "private".')
    return Place(table.name, None, "rows")


def _only(schema: Schema) -> str:
    """The name of the only table, or no name."""
    return next(iter(schema)) if len(schema) == 1 else ""


def purchase_question(schema: Schema, place: Place, terms: Terms) -> Any:
    """What to ask for a purchase."""
    table = schema[place.table]
    if place.column is None:
        return Rows(table, terms.most, terms.for_spend)
    if place.what == "bounds":
        return Bounds(table, table.column(place.column))
    return Queries((_keys(table, place.column),))


def found(schema: Schema, place: Place, answer: Release) -> tuple[Value, ...]:
    """What was bought, from the answer; raise NoisetteError where the answer is that nothing can be released."""
    if place.column is None:
        return (int(answer.columns[0].values[0].as_py()),)
    if place.what == "bounds":
        cells = [(row["low"], row["high"]) for row in answer.rows()]
        return found_bounds(schema[place.table].column(place.column), cells)
    return _found_keys(answer.columns[0].values.to_pylist())


def _keys(table: Table, column: str) -> Query:
    """Which values enough units share."""
    return Query(Scan(table.name, "t1"), (Name(f"t1.{column}"),), ((column, Key(0)),))


def _found_keys(keys: list[Value]) -> tuple[Value, ...]:
    """The keys that were released; rows with other keys, or with NULL, are left out from now on."""
    if not in_order(keys):
        raise NoisetteError(
            "No key is shared by enough people to be released, which is an answer and was charged: spend more, or let "
            "the owner declare the keys."
        )
    return in_order(keys)

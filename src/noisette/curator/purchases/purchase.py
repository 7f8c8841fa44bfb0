"""A purchase: bounds, keys or a limit that were bought, as an entry of the ledger holds them; and what is for sale.

An entry holds the lines that could stand in the policy, and the price. The policy is its owner's and stays as it is: a
purchase is used where the policy says "private", by all who ask, and not where the owner declares something. Earlier
versions wrote a file for each purchase into `.noisette/bought`; these still count where the ledger has no later one.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from noisette.answers import Release
from noisette.answers.figures import promise
from noisette.curator.purchases.bounds import Bounds, found_bounds
from noisette.curator.purchases.rows import Rows
from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.ledger import Ledger
from noisette.ledger.entry import promise_of, to_record
from noisette.names import closest
from noisette.policy.policy import read_policy
from noisette.policy.rules import ColumnRules, TableRules
from noisette.policy.tables import purchased
from noisette.policy.toml import as_toml
from noisette.privacy import Neighbours, Promise, Pure
from noisette.query.expression import Name
from noisette.query.kind import Value, in_order
from noisette.query.plan import Key, Query, Scan
from noisette.query.schema import Limits, Schema, Table
from noisette.questions.parts.queries import Queries

__all__ = [
    "Place",
    "Purchase",
    "Shop",
    "Terms",
    "What",
    "for_sale",
    "found",
    "from_files",
    "from_ledger",
    "purchase_question",
    "settled",
    "with_purchases",
]

What: TypeAlias = Literal["bounds", "keys", "rows"]


class Place(NamedTuple):
    """What a purchase is about; a limit on rows has no column."""

    table: str
    column: str | None
    what: What


@dataclass(frozen=True)
class Purchase:
    """The bounds or the keys of a column, or the limit on a table's rows: what was paid for them and by whom.

    `terms` are the other options of the purchase.

    >>> from fractions import Fraction
    >>> print(Purchase(Place("visits", "age", "bounds"), (Fraction(16), Fraction(128)), Pure("1/2")).lines)
    [tables.visits.columns.age]
    bounds = [16, 128]
    """

    place: Place
    values: tuple[Value, ...]
    spend: Promise
    analyst: str | None = None
    terms: str = ""

    @property
    def rules(self) -> TableRules:
        """What the policy would say of the table."""
        _, column, what = self.place
        if column is None:
            [rows] = self.values
            assert isinstance(rows, int)
            return TableRules(limits=Limits(rows=rows))
        if what == "keys":
            return TableRules(columns={column: ColumnRules(keys=self.values)})
        low, high = self.values
        return TableRules(columns={column: ColumnRules(bounds=(low, high))})

    @property
    def lines(self) -> str:
        """The lines to write into a policy."""
        whole = as_toml(Pure(1), Neighbours.ADD_REMOVE, {self.place.table: self.rules})
        place, line = whole.rstrip().rsplit("\n", 2)[1:]  # texts in TOML hold no line breaks
        return f"{place}\n{line.rpartition('  # ')[0]}"

    @property
    def body(self) -> dict[str, Any]:
        """What the ledger's entry says."""
        paid = {"spend": to_record(self.spend), "analyst": self.analyst, "terms": self.terms}
        return {**self.place._asdict(), "policy": self.lines, **paid}


def from_ledger(body: Mapping[str, Any]) -> Purchase:
    """A purchase from its entry."""
    try:
        return _read(tomllib.loads(body["policy"]), body)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PrivacyError(
            "A purchase in the ledger cannot be read: update Noisette, or restore a backup of the ledger."
        ) from None


def from_files(folder: Path) -> list[Purchase]:
    """The purchases that earlier versions wrote into a folder."""
    return [_from_file(path) for path in sorted(folder.glob("*.toml"))]


def _from_file(path: Path) -> Purchase:
    try:
        parts = tomllib.loads(path.read_text(encoding="utf-8"))
        return _read(parts, parts.pop("bought"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path.name} of this project was changed: restore it, or remove it and buy again.") from None


def _read(parts: dict[str, Any], paid: Mapping[str, Any]) -> Purchase:
    """A purchase from the lines of a policy, and from what was paid."""
    how = promise_of(paid["spend"]), paid.get("analyst"), paid.get("terms", "")
    ((table, given),) = parts["tables"].items()
    if set(given) == {"rows"}:
        return Purchase(Place(table, None, "rows"), (Limits(rows=given["rows"]).rows,), *how)
    rules = read_policy(parts, Pure(1)).tables[table]
    ((column, declared),) = rules.columns.items()
    values = declared.bounds or declared.keys
    if not values:
        raise InputError("A purchase names bounds, keys or rows.")
    return Purchase(Place(table, column, "bounds" if declared.bounds else "keys"), values, *how)


def with_purchases(schema: Schema, purchases: Iterable[Purchase]) -> Schema:
    """The schema with what was bought, wherever it says "private"."""
    tables = dict(schema)
    for purchase in purchases:
        name = purchase.place.table
        if name in tables:
            tables[name] = purchased(tables[name], purchase.rules)
    return tables


# The tables as they are described at present: what the owner declares, with what was bought


class Shop:
    """What the owner `declared`, and purchases from before ledgers held them; both never change.

    Later purchases are read from the ledger each time, so whoever shares a ledger sees those of all others.
    """

    def __init__(self, declared: Schema, former: Iterable[Purchase] = ()) -> None:
        self.declared: Schema = MappingProxyType(dict(declared))
        self._former = tuple(former)
        self._sells = any(map(_sells, declared.values()))

    def purchases(self, ledger: Ledger) -> dict[Place, Purchase]:
        """What was bought, by what it is about; of two purchases of the same the later one holds."""
        if not self._sells:
            return {}
        every = (*self._former, *map(from_ledger, ledger.purchases))
        return {purchase.place: purchase for purchase in every}

    def schema(self, ledger: Ledger, *, without: Place | None = None) -> Schema:
        """The tables with what was bought by now, or with all of it `without` one purchase."""
        used = [purchase for place, purchase in self.purchases(ledger).items() if place != without]
        return MappingProxyType(with_purchases(self.declared, used)) if used else self.declared


def settled(old: Purchase, spend: Promise, terms: str) -> Purchase:
    """What was bought before, if it was for the same price and on the same terms; else say that it was not."""
    if (old.spend, old.terms) != (spend, terms):
        said = f"{promise(old.spend)}{old.terms and f' ({old.terms})'}"
        table, column, what = old.place
        raise InputError(
            f"The {what} of {column or table} were bought already, for {said}: use them, or buy others with again=True."
        )
    return old


def _sells(table: Table) -> bool:
    """Whether something of a table is for sale."""
    return table.private_rows or any(column.private_bounds or column.private_keys for column in table.columns)


# What is for sale, which question buys it, and what was found


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
        known = closest(table_name, sorted(schema), "one of")
        raise InputError(f"Name the column with its table, visits.age: {known}")
    column = table.column(column_name)
    if not (column.private_bounds if what == "bounds" else column.private_keys):
        raise InputError(f'The {what} of {column.name} are not for sale: its owner can write {what} = "private".')
    if what == "keys" and column.kind.type == "real":
        raise InputError(f"{column.name} holds real numbers, which make no keys: declare it as integer, or its bounds.")
    return Place(table.name, column.name, what)


def _rows_for_sale(schema: Schema, name: str | None) -> Place:
    table = schema.get(name or _only(schema))
    if table is None:
        raise InputError(f"Name the table whose limit is to be bought: {closest(name or '', sorted(schema), 'one of')}")
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

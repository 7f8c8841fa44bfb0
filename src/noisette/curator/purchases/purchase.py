"""A purchase: bounds, keys or a limit that were bought, as an entry of the ledger holds them.

An entry holds the lines that could stand in the policy, and the price. The policy is its owner's and stays as it is: a
purchase is used where the policy says "private", by all who ask, and not where the owner declares something. Earlier
versions wrote a file for each purchase into `.noisette/bought`; these still count where the ledger has no later one.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from noisette.errors import InputError, PrivacyError
from noisette.ledger.entry import promise_of, to_record
from noisette.policy.policy import read_policy
from noisette.policy.rules import ColumnRules, TableRules
from noisette.policy.tables import purchased
from noisette.policy.toml import as_toml
from noisette.privacy import Neighbours, Promise, Pure
from noisette.query.kind import Value
from noisette.query.schema import Limits, Schema

__all__ = ["Place", "Purchase", "What", "from_files", "from_ledger", "with_purchases"]

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

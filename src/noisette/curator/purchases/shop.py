"""The tables as they are described at present: what the owner declares, with what was bought."""

from collections.abc import Iterable
from types import MappingProxyType

from noisette.answers.figures import promise
from noisette.curator.purchases.purchase import Place, Purchase, from_ledger, with_purchases
from noisette.errors import InputError
from noisette.ledger import Ledger
from noisette.privacy import Promise
from noisette.query.schema import Schema, Table

__all__ = ["Shop", "settled"]


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

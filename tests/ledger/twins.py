"""Broken twins of the ledger, which the tests must catch."""

import time
from dataclasses import replace

from noisette.ledger import book as books
from noisette.ledger import open_ledger
from noisette.ledger.book import Book
from noisette.ledger.entry import charge_body
from noisette.ledger.sqlite import SQLite
from noisette.ledger.transactions import append, locked, now


class Outside(Book):
    """Decides outside the transaction that writes."""

    def _charged(self, draft):
        self.standing(draft.analyst).after(draft.guarantee, draft.analyst)
        time.sleep(0.001)
        with self._store.transaction(write=True):
            head, standing = locked(self._store, draft.analyst)
            written = append(self._store, head, standing, charge_body(draft), now())
        return replace(draft, number=written["number"])


class Late(SQLite):
    """Commits when the next transaction begins: what is drawn meanwhile is not paid for yet."""

    def _commit(self):
        return None

    def _begin(self, *, write):
        if self._connection.in_transaction:
            self.run("COMMIT")
        super()._begin(write=write)


def opened(where, twin="", **options):
    """A ledger, or a twin of it."""
    book = open_ledger(where, timeout=options.pop("timeout", 30), **options)
    if twin == "outside":
        return Outside(book._store)
    if twin == "late":
        book.close()
        return books.Book(Late(where), **options)
    return book

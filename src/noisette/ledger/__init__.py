"""What was spent, entry by entry. Charge first, then draw noise.

A ledger lives in memory, in a SQLite file or in a PostgreSQL database. The last two keep a chain of entries that
survives crashes, is shared by any number of processes and shows where it was tampered with.
"""

from noisette.ledger.book import Book
from noisette.ledger.chain import Head
from noisette.ledger.entry import Entry
from noisette.ledger.heads import KnownError, elsewhere
from noisette.ledger.ledger import Ledger, Memory
from noisette.ledger.opening import accept, open_ledger, rebind

__all__ = ["Book", "Entry", "Head", "KnownError", "Ledger", "Memory", "accept", "elsewhere", "open_ledger", "rebind"]

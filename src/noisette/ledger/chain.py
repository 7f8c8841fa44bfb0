"""The chain: each entry's hash covers its text and the hash before it, so nothing can be changed behind the last head.

    hash of entry n  =  SHA-256(hash of entry n-1, a line break, the entry's text)

A head, the number and hash of the last entry, stands for everything before it. Keep one elsewhere: whoever can write
the ledger can also write a new chain, but not one that a head from before fits.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import whole_of
from noisette.ledger.entry import FORMAT

__all__ = ["START", "Head", "Row", "link", "parsed", "walk"]


class Row(NamedTuple):
    """An entry as it is stored."""

    number: int
    body: str
    hash: str
    key: str | None = None


class Head(NamedTuple):
    """The number and hash of the last entry; as a text, something to write down elsewhere.

    >>> print(Head.read(str(START)).number)
    0
    """

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @property
    def padded(self) -> str:
        """A line that is as long as that of any other head, so that one can be written over another."""
        return f"{self.number:018d}:{self.hash}\n"

    @staticmethod
    def read(text: "str | Head") -> "Head":
        """A head from its text."""
        found = re.fullmatch(r"\s*(\d{1,18}):([0-9a-f]{64})\s*", str(text))
        if found is None:
            raise InputError("This is not the head of a ledger: it looks like 12:6b86b273…, a number and 64 digits.")
        return Head(whole_of(found[1], "The number of a head"), found[2])


START = Head(0, "0" * 64)


def link(previous: str, body: str) -> str:
    """The hash of an entry after another.

    >>> link(START.hash, "{}")[:8]
    '5649d09e'
    """
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def parsed(row: Row) -> dict[str, Any]:
    """The entry of a row; raise PrivacyError if this is none, or one of a newer version."""
    try:
        body = json.loads(row.body)
        known = body["number"] == row.number and body.get("key") == row.key
    except (ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise PrivacyError(_bad(row.number, "does not say what its row says"))
    if body["format"] != FORMAT:
        raise InputError(
            f"Entry {row.number} was written by a newer version of Noisette: update it to read this ledger."
        )
    return dict(body)


def walk(rows: Iterable[Row], *, until: Head, known: Head | None = None) -> Iterator[dict[str, Any]]:
    """The entries of a whole chain, each checked; raise PrivacyError that names the first bad one.

    `until` is the head stored beside them, `known` one from elsewhere that must lie on the chain.
    """
    head = START
    if known is not None and known.number == 0 and known != START:
        raise PrivacyError("The known head names no entry, and an empty ledger has another: use one that was exported.")
    for row in rows:
        if row.number != head.number + 1:
            raise PrivacyError(_bad(head.number + 1, "is missing"))
        if link(head.hash, row.body) != row.hash:
            raise PrivacyError(_bad(row.number, "was changed, or one before it was taken out"))
        head = Head(row.number, row.hash)
        if known is not None and known.number == row.number and known.hash != row.hash:
            raise PrivacyError(_bad(row.number, "or one before it is not what the known head stands for"))
        yield parsed(row)
    if head.number < until.number:
        raise PrivacyError(_bad(head.number + 1, "is missing"))
    if head != until:
        raise PrivacyError(_bad(head.number, "is not the one that the stored head names"))
    if known is not None and known.number > head.number:
        raise PrivacyError(_bad(head.number + 1, "is missing, though a head from elsewhere knows it"))


def _bad(number: int, what: str) -> str:
    return f"Entry {number} of the ledger {what}: stop, and restore the ledger from before the fault."

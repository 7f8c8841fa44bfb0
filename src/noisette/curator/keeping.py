"""Answers that are kept, so that the same question is free in every process: charge, draw, keep, hand out.

A ledger on disk keeps what was drawn before anybody sees it, and from then on only that is handed out. After a crash
in between, the charge is there and the answer is not: it is drawn again, for free, since nobody has seen the first.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from noisette.curator.ledger import Book, Ledger
from noisette.query.question import Offer

__all__ = ["key_of", "paid"]

_FORMAT = 1  # how answers are kept; with another number those before are not found


def key_of(*what: str | None) -> str:
    """What makes two questions the same one, in a few letters.

    >>> key_of("a count", "Pure('1/2')") == key_of("a count", "Pure('1/3')")
    False
    """
    return hashlib.sha256(json.dumps([_FORMAT, *what]).encode()).hexdigest()


def paid(ledger: Ledger, offer: Offer, key: str, draw: Callable[[Offer], Any], *, analyst: str | None) -> Any:
    """What a ledger has kept under the key; if that is nothing, charge for it, draw it and keep it."""
    if not isinstance(ledger, Book):
        ledger.charge(offer.text, offer.guarantee, offer.parts, analyst=analyst)
        return draw(offer)
    kept = ledger.answer(key)
    if kept is None:
        parts = sorted(offer.parts, key=lambda part: json.dumps(part, sort_keys=True, default=str))
        ledger.charge(offer.text, offer.guarantee, parts, analyst=analyst, key=key)
        kept = ledger.keep(key, offer.pack(draw(offer)))
    return offer.unpack(kept)

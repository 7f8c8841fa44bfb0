"""Answers that are kept, so that the same question is free in every process: charge, draw, keep, hand out.

What was drawn is kept by the ledger before anybody sees it, and from then on only that is handed out. After the charge
a question has one of three ends:

answered     what was drawn is kept; it is the same for ever
failed       the engine or the draw raised an Exception, whichever: that is kept in place of an answer and is the same
             for ever, so that nobody can ask again and again until it works, and one sentence stands for all reasons
unfinished   the process was killed or interrupted, or the ledger was out of reach, before anything was kept: the same
             question is drawn anew under the same charge, since nobody has seen the first draw
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from noisette.answers import Release
from noisette.errors import FailedError
from noisette.ledger import Book, Ledger
from noisette.questions.contract import Offer

__all__ = ["attempted", "key_of", "paid", "recorded"]

T = TypeVar("T")

_FORMAT = 1  # how answers are kept; with another number those before are not found
_FAILED = b"noisette: this question failed after its charge"  # no answer: those are Arrow streams


def key_of(*what: str | None) -> str:
    """What makes two questions the same one, in a few letters.

    >>> key_of("a count", "Pure('1/2')") == key_of("a count", "Pure('1/3')")
    False
    """
    return hashlib.sha256(json.dumps([_FORMAT, *what]).encode()).hexdigest()


def paid(ledger: Ledger, offer: Offer, key: str, draw: Callable[[Offer], Any], *, analyst: str | None) -> Any:
    """What a ledger has kept under the key; if that is nothing, charge for it, draw it and keep it.

    Raise FailedError where what is kept is that the question failed.
    """
    kept = ledger.answer(key)
    if kept is None:
        parts = sorted(offer.parts, key=lambda part: json.dumps(part, sort_keys=True, default=str))
        ledger.charge(offer.text, offer.guarantee, parts, analyst=analyst, key=key)
        drawn = attempted(lambda: offer.pack(draw(offer)))
        kept = ledger.keep(key, _FAILED if drawn is None else drawn)
    if kept == _FAILED:
        raise FailedError
    return offer.unpack(kept)


def attempted(act: Callable[[], T]) -> T | None:
    """What `act` returns, or None where it raised an Exception: that may quote data, and goes no further than here.

    An interrupt is no Exception: it goes on, and leaves a question unfinished.

    >>> attempted(lambda: 1 // 0) is None
    True
    """
    try:
        return act()
    except Exception:
        return None


def recorded(ledger: Ledger, key: str, releases: Sequence[Release]) -> list[Release]:
    """Releases as they are handed out: with where they stand in the ledger, and what is spent and left with them.

    A ledger in memory proves nothing later, and the record says so by naming no entry.
    """
    if isinstance(ledger, Book):
        found = ledger.recorded(key, [release.digest for release in releases])
        spent, left, place = found.spent, found.left, found.said
    else:
        spent, left, place = ledger.spent, ledger.left, None
    return [replace(each, spent=spent, left=left, record={**each.record, "ledger": place}) for each in releases]

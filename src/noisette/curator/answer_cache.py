"""Answers are drawn once: charge, draw, keep, release.

The ledger keeps what was drawn before anybody sees it, and from then on only that is released. After the charge a
question has one of three ends:

answered     what was drawn is kept; it is the same for ever
failed       the engine or the draw raised an Exception, whichever: that is kept in place of an answer and is the same
             for ever, so that nobody can ask again and again until it works, and one sentence stands for all reasons
unfinished   the process was killed, or interrupted twice (`cancelling`), or the ledger was out of reach, before
             anything was kept: the same question is drawn anew under the same charge, since nobody has seen the first
             draw

The cache only saves time: an answer that it has dropped is read from the ledger, never drawn again. Each question has a
lock of its own, so the same question from several threads is drawn once, and others do not wait for it.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

from noisette.answers import Release
from noisette.curator.cancelling import Cancel, check_cancelled, finished_first
from noisette.errors import FailedError, UnfinishedError
from noisette.ledger import Ledger
from noisette.ledger.pins import State
from noisette.questions.contract import Offer

__all__ = ["FAILED", "AnswerCache", "Locks", "attempted", "key_of", "recorded"]

T = TypeVar("T")

_FORMAT = 1  # how answers are kept; with another number those before are not found
FAILED = b"noisette: this question failed after its charge"  # no answer: those are Arrow streams


def key_of(*what: str | None) -> str:
    """What makes two questions the same one, in a few letters.

    >>> key_of("a count", "Pure('1/2')") == key_of("a count", "Pure('1/3')")
    False
    """
    return hashlib.sha256(json.dumps([_FORMAT, *what]).encode()).hexdigest()


class Locks:
    """A lock for each key, which is there while somebody holds it or waits for it.

    >>> locks = Locks()
    >>> with locks("a"), locks("b"):
    ...     len(locks)
    2
    >>> len(locks)
    0
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._users: dict[str, tuple[Lock, int]] = {}

    def __len__(self) -> int:
        return len(self._users)

    @contextmanager
    def __call__(self, key: str) -> Iterator[None]:
        """Hold the lock of a key."""
        with self._guard:
            lock, users = self._users.get(key, (Lock(), 0))
            self._users[key] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._guard:
                _, users = self._users.pop(key)
                if users > 1:
                    self._users[key] = lock, users - 1


class AnswerCache:
    """LRU cache of what was drawn, limited by the number of answers and by their packed bytes."""

    def __init__(self, *, most_answers: int = 256, most_bytes: int = 2**27) -> None:
        self._most_answers, self._most_bytes = most_answers, most_bytes
        self._answers: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._guard, self._questions = Lock(), Locks()

    def __len__(self) -> int:
        return len(self._answers)

    def drawn(
        self,
        ledger: Ledger,
        offer: Offer,
        key: str,
        draw: Callable[[], Any],
        *,
        analyst: str | None = None,
        about: State | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """What was drawn under a key; if nothing was, charge for it, draw it and let the ledger keep it.

        Raise FailedError if the ledger has kept that the question failed.
        """
        cached = self._find(key)
        if cached is not None:
            return cached[0]
        with self._questions(key):
            cached = self._find(key)  # another thread may have asked the same
            if cached is None:
                packed = _kept(ledger, offer, key, draw, analyst, about, cancel)
                cached = offer.unpack(packed), len(packed)
                self._store(key, cached)
            return cached[0]

    def _find(self, key: str) -> tuple[Any, int] | None:
        with self._guard:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def _store(self, key: str, answer: tuple[Any, int]) -> None:
        with self._guard:
            self._answers[key] = answer
            self._bytes += answer[1]
            while len(self._answers) > self._most_answers or self._bytes > self._most_bytes:
                _, (_, size) = self._answers.popitem(last=False)
                self._bytes -= size


def _kept(
    ledger: Ledger,
    offer: Offer,
    key: str,
    draw: Callable[[], Any],
    analyst: str | None,
    about: State | None,
    cancel: Cancel | None,
) -> bytes:
    """What the ledger keeps under a key, at first after charging and drawing."""
    kept = ledger.answer(key)
    if kept is None:
        parts = sorted(offer.parts, key=lambda part: json.dumps(part, sort_keys=True, default=str))
        check_cancelled(cancel)
        with finished_first():
            ledger.charge(offer.text, offer.guarantee, parts, analyst=analyst, key=key, about=about)
            packed = attempted(lambda: offer.pack(draw()))
            kept = ledger.keep(key, FAILED if packed is None else packed)
        check_cancelled(cancel, charged=True)
    if kept == FAILED:
        raise FailedError
    return kept


def attempted(act: Callable[[], T]) -> T | None:
    """What `act` returns, or None where it raised an Exception: that may quote data, and goes no further than here.

    An interrupt is no Exception: it goes on, and leaves a question unfinished. So does a server that is not there.

    >>> attempted(lambda: 1 // 0) is None
    True
    """
    try:
        return act()
    except UnfinishedError:
        raise UnfinishedError from None
    except Exception:
        return None


def recorded(ledger: Ledger, key: str, releases: Sequence[Release]) -> list[Release]:
    """Releases with their place in the ledger, and what is spent and left with them."""
    receipt = ledger.recorded(key, [release.digest for release in releases])
    return [
        replace(each, spent=receipt.spent, left=receipt.left, record={**each.record, "ledger": receipt.place})
        for each in releases
    ]

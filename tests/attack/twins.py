"""Guilty twins: sources and ledgers with one hole each, which the attacks must find.

A twin of a source looks for the marker in the column g of table v, as a hole in an engine might: it then does what no
source may do. Without the marker it is innocent.
"""

import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.curator.hostile import CANARY

from noisette.engines.contract import Source
from noisette.errors import NoisetteError
from noisette.ledger import Book, Memory
from noisette.ledger.entry import Entry
from noisette.ledger.receipt import Receipt
from noisette.ledger.sqlite import SQLite
from noisette.query.measure import Exact
from noisette.query.plan import Scan

# Sources


class Twin:
    """A source like another one."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    release = Source.release

    def aggregate(self, request: Any, schema: Any, secret: bytes) -> Exact:
        """What the source measures, and whatever is done with the marker."""
        found = self.source.rows(Scan("v", "v"), {"v.g": "g"}, schema, secret).column("g").to_pylist()
        marked = next((text for text in found if text and CANARY in text), None)
        if marked is not None:
            self.marked(marked)
        return self.source.aggregate(request, schema, secret)  # type: ignore[no-any-return]

    def marked(self, text: str) -> None:
        """What is done where the marker is."""


class Twice(Twin):
    """Counts every row twice, so that one unit moves twice of what is stated."""

    def aggregate(self, request: Any, schema: Any, secret: bytes) -> Exact:
        """Twice of all."""
        exact = self.source.aggregate(request, schema, secret)
        return replace(exact, measures=tuple(2 * measure for measure in exact.measures))


class Unbounded(Twin):
    """Retains all rows of a unit, whatever the limits say."""

    def aggregate(self, request: Any, schema: Any, secret: bytes) -> Exact:
        """The rows of a unit that has many."""
        if request.limits is None:
            return self.source.aggregate(request, schema, secret)  # type: ignore[no-any-return]
        loose = replace(request.limits, rows=10**6, groups=10**6, rows_per_group=10**6)
        return self.source.aggregate(replace(request, limits=loose), schema, secret)  # type: ignore[no-any-return]


class Scattering(Twin):
    """Moves each score by the number of rows with the marker."""

    def aggregate(self, request: Any, schema: Any, secret: bytes) -> Exact:
        """More than is there."""
        found = self.source.rows(Scan("v", "v"), {"v.g": "g"}, schema, secret).column("g").to_pylist()
        exact = self.source.aggregate(request, schema, secret)
        return replace(exact, measures=tuple(measure - found.count(CANARY) for measure in exact.measures))


class Leaving(Twin):
    """Hands out one row less of somebody else where the marker is: rows of two units differ."""

    def rows(self, relation: Any, columns: Any, schema: Any, secret: bytes) -> Any:
        """The rows of a relation."""
        found = self.source.rows(relation, columns, schema, secret)
        marked = any(CANARY in str(row) for row in found.to_pylist())
        return found.slice(1) if marked else found


class Raising(Twin):
    """Fails on a value."""

    def marked(self, text: str) -> None:
        """In words that say nothing."""
        raise NoisetteError("The engine could not compute this; what it said stays inside, since it may quote data.")


class Quoting:
    """A curator that quotes a cell in its error."""

    def __init__(self, curator: Any) -> None:
        self.curator = curator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.curator, name)

    def ask(self, *_: Any, **__: Any) -> Any:
        """As engines do."""
        raise NoisetteError(f"Could not convert string '{CANARY}' to INT32.")


class Chaining(Quoting):
    """Hides the engine's own words behind an error of ours, where a traceback shows them."""

    def ask(self, *_: Any, **__: Any) -> Any:
        """As `raise` within `except` does."""
        try:
            raise ValueError(f"Could not convert string '{CANARY}' to INT32.")
        except ValueError as error:
            raise NoisetteError("The engine could not compute this.") from error


class Logging(Twin):
    """Logs a cell."""

    def marked(self, text: str) -> None:
        """Where nobody looks."""
        logging.getLogger("noisette.query").debug("grouping by %s", text)


class Warning(Twin):
    """Warns of a cell."""

    def marked(self, text: str) -> None:
        """As libraries do."""
        warnings.warn(f"{text} is no number", stacklevel=2)


class Printing(Twin):
    """Shows its progress with a cell in it."""

    def marked(self, text: str) -> None:
        """On the error stream."""
        sys.stderr.write(f"\rgrouping {text}")


class Writing(Twin):
    """Leaves a temporary file behind."""

    def marked(self, text: str) -> None:
        """With numbers alone, as an engine stores them."""
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(text.encode("utf-16-le"))


class Slow(Twin):
    """Takes longer where the marker is."""

    def marked(self, text: str) -> None:
        """Processor time, as a loop over rows takes it."""
        end = time.process_time() + 0.7
        while time.process_time() < end:
            pass


# Ledgers


class Forgetful(Memory):
    """Lives in memory and forgets which process it is: a forked child has a budget of its own."""

    @contextmanager
    def _own(self, key: str | None = None) -> Iterator[None]:
        with self._lock:
            yield


class Amnesiac(Book):
    """Forgets what was answered and what a key stands for: the same question is charged and drawn anew."""

    def answer(self, key: str) -> bytes | None:
        """Nothing."""
        return None

    def keep(self, key: str, answer: bytes) -> bytes:
        """The answer itself, which is not kept."""
        return answer

    def charge(self, *asked: Any, key: str | None = None, **more: Any) -> Entry:
        """Each time anew."""
        return super().charge(*asked, **more)

    def recorded(self, key: str, digests: Any) -> Any:
        """Nowhere."""
        return Receipt(self.spent, self.left, None)


def gullible(where: str) -> Book:
    """A ledger that is opened without a look at what is in it."""
    return Book(SQLite(where))

"""Retained rows that Spark holds between questions, so that the next one with the same bounds reads no table.

They are held by Spark's own cache on the executors, as bytes, and computed again where an executor is lost: the same
rows, since the secret and the rows decide which are retained. Where nothing says in which state the data is, nothing is
held.
"""

import atexit
from collections import OrderedDict
from collections.abc import Collection, Hashable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from sys import is_finalizing
from threading import Thread
from typing import TYPE_CHECKING
from weakref import WeakSet

from noisette.engines.duckdb.held import serves
from noisette.engines.spark.executor import Layout
from noisette.query.measure import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Held", "HeldRows", "held_by_spark"]

_MOST = 4  # frames, as many as the engine for files holds tables
_FORGETTING: WeakSet[Thread] = WeakSet()
_ADAPTIVE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"


@dataclass(frozen=True)
class HeldRows:
    """A frame of retained rows, how the rows travelled that they are of, and what it has of them (`duckdb.held`)."""

    frame: "DataFrame"
    layout: Layout
    columns: dict[str, str]
    firsts: bool

    @property
    def what(self) -> tuple[Collection[str], bool]:
        """Its columns, and whether the first row of each unit in each group is marked."""
        return self.columns, self.firsts


class Held:
    """The frames that were asked for last."""

    def __init__(self) -> None:
        self._frames: OrderedDict[Hashable, HeldRows] = OrderedDict()

    def find(self, key: Hashable) -> HeldRows | None:
        """The rows of a relation with its keys, domains, limits, secret and state."""
        if key in self._frames:
            self._frames.move_to_end(key)
        return self._frames.get(key)

    def serving(self, key: Hashable, request: Request) -> HeldRows | None:
        """The same, if they have all that a request measures."""
        found = self.find(key)
        return found if found is not None and serves(request, found.columns, firsts=found.firsts) else None

    def put(self, key: Hashable, rows: HeldRows) -> None:
        """Hold rows in place of those that the key had."""
        if key in self._frames:
            _forget(self._frames.pop(key))
        self._frames[key] = rows
        while len(self._frames) > _MOST:
            _forget(self._frames.popitem(last=False)[1])

    def __del__(self) -> None:
        _forget(*self._frames.values())


def held_by_spark(frame: "DataFrame") -> "DataFrame":
    """Let Spark hold a frame when it is computed, in as few tasks as its rows need, as with all other frames."""
    settings = frame.sparkSession.conf
    with ExitStack() as restored:
        with suppress(Exception):  # some servers have no such setting, or let nobody change it
            before = settings.get(_ADAPTIVE) or "true"
            settings.set(_ADAPTIVE, "true")
            restored.callback(settings.set, _ADAPTIVE, before)
        return frame.persist()


def _forget(*held: HeldRows) -> None:
    """Let Spark forget frames, without waiting: a client tries for minutes to reach a server that is gone."""

    def forget() -> None:
        for rows in held:
            with suppress(Exception):  # a session that has ended has forgotten them already
                rows.frame.unpersist()

    if held and not is_finalizing():  # a process that ends starts no thread, and its session ends with it
        thread = Thread(target=forget, daemon=True)
        _FORGETTING.add(thread)
        thread.start()


@atexit.register
def _wait_a_moment() -> None:
    """Let threads end before the process does: what one still holds, DuckDB would report as leaked."""
    for thread in list(_FORGETTING):
        thread.join(1)

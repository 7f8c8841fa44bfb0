"""Cancelling a question: before its charge it costs nothing, after it the answer is finished and kept.

Ctrl-C raises KeyboardInterrupt at once until the charge. From the charge until the answer is kept it waits: the first
one is noted and raised as soon as the answer is kept, so that the same question is answered for free. A second one is
raised at once: the question is then unfinished (`answer_cache`), and free when it is asked again, too. A program
cancels with `cancel=`, an event that another thread sets. Only the caller decides; no row of the data has a part in it.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from noisette.errors import CancelledError

__all__ = ["Cancel", "check_cancelled", "finished_first"]

_WAIT = (
    "\nIt is charged already, so its answer is finished and kept, and free when you ask again. "
    "Ctrl-C once more stops at once.\n"
)


class Cancel(Protocol):
    """What says that a question is no longer wanted: a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether the question is cancelled."""


def check_cancelled(cancel: Cancel | None, *, charged: bool = False) -> None:
    """Raise CancelledError if the question is cancelled.

    >>> check_cancelled(None), check_cancelled(threading.Event())
    (None, None)
    """
    if cancel is not None and cancel.is_set():
        raise CancelledError(charged=charged)


@contextmanager
def finished_first() -> Iterator[None]:
    """Let the first Ctrl-C wait for the end of the block; in other threads than the main one none arrives."""
    before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(before):  # another thread, or the system's own handling, which ends the process
        yield
        return
    waiting: list[Any] = []

    def note(number: int, frame: Any) -> None:
        if waiting:
            before(number, frame)
            return
        waiting.append(frame)
        if sys.stderr is not None and sys.stderr.isatty():
            os.write(2, _WAIT.encode())

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        before(signal.SIGINT, waiting[0])

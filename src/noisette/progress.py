"""What is being done just now, for whoever waits: fixed words, so that they show nothing of the data.

A step that may take more than a second says so by `doing`, and a shell shows it by `showing`. There are no numbers of
rows, tasks or bytes and no shares of what is done: these depend on the data. When a step ends can be seen, as the time
of the whole question can.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["doing", "showing"]

_SHOW = ContextVar[Callable[[str], None] | None]("noisette_show", default=None)
_STEPS = ContextVar[tuple[str, ...]]("noisette_steps", default=())


@contextmanager
def showing(show: Callable[[str], None]) -> Iterator[None]:
    """Call a function with each step of this thread as it begins, and with the one around it, or "", as it ends."""
    before = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(before)


@contextmanager
def doing(step: str) -> Iterator[None]:
    """Say what the block does, in fixed words.

    >>> with showing(print), doing("starting Spark"):
    ...     pass
    starting Spark
    <BLANKLINE>
    """
    before = _STEPS.set((*_STEPS.get(), step))
    _show()
    try:
        yield
    finally:
        _STEPS.reset(before)
        _show()


def _show() -> None:
    show, steps = _SHOW.get(), _STEPS.get()
    if show is not None:
        show(steps[-1] if steps else "")

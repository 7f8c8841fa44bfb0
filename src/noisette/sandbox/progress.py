"""A progress bar for blocks or runs. Their number is public, so the bar says nothing about the rows."""

import sys
from collections.abc import Callable

__all__ = ["bar"]

_WIDTH = 30


def bar(count: int, slot: float | None = None, at_once: int = 1, what: str = "blocks") -> Callable[[int], None]:
    """What to call with the number of blocks that are over; it writes to a terminal only.

    With a `slot`, the seconds that each takes, it says how long the rest will take.
    """
    if not sys.stderr.isatty():
        return lambda _: None

    def shown(done: int) -> None:
        full = _WIDTH * done // count
        left = "" if slot is None else f", {-(-(count - done) // at_once) * slot:,.0f} s left"
        end = "\n" if done >= count else ""
        sys.stderr.write(f"\r{'█' * full}{'░' * (_WIDTH - full)} {done:,}/{count:,} {what}{left} {end}")
        sys.stderr.flush()

    shown(0)
    return shown

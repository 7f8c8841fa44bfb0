"""A bar that grows with the waves of blocks, which take the same time whatever the rows: it tells nothing of them."""

import sys
from collections.abc import Callable

__all__ = ["bar"]

_WIDTH = 30


def bar(blocks: int, slot: float, at_once: int) -> Callable[[int], None]:
    """What to call with the number of blocks that are over; it writes to a terminal only."""
    if not sys.stderr.isatty():
        return lambda _: None

    def told(done: int) -> None:
        left = -(-(blocks - done) // at_once) * slot
        full = _WIDTH * done // blocks
        end = "\n" if done >= blocks else ""
        sys.stderr.write(f"\r{'█' * full}{'░' * (_WIDTH - full)} {done:,}/{blocks:,} blocks, {left:,.0f} s left {end}")
        sys.stderr.flush()

    told(0)
    return told

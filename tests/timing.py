"""A test that would never end is a failure, not a wait; and a ratio of times is one of processor time."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def times_as_long(call: Callable[[], object], other: Callable[[], object], rounds: int = 9) -> float:
    """Return the processor time of a call over that of another.

    Of each the least of interleaved rounds counts: whatever else the machine does can only lengthen a round, and all
    rounds of one call would have to be unlucky.
    """
    least = [float("inf")] * 2
    for _ in range(rounds):
        for i, one in enumerate((call, other)):
            begun = time.process_time()
            one()
            least[i] = min(least[i], time.process_time() - begun)
    return least[0] / least[1]

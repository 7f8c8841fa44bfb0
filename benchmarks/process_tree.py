"""CPU time of a process and of all that it started; needs Linux, and nothing but Python, so that peers use it too."""

import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["seconds_of", "tree_seconds"]


def tree_seconds() -> float:
    """CPU time so far of this process and of all below it, with those that have ended."""
    tick, about = os.sysconf("SC_CLK_TCK"), {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            about[int(place.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    total, below = 0, [os.getpid()]
    while below:
        process = below.pop()
        total += about.get(process, (0, 0))[1]
        below += [child for child, (parent, _) in about.items() if parent == process]
    return total / tick


def seconds_of(run: Callable[[], object]) -> float:
    """Seconds of CPU that a run takes in the whole tree; it runs again if a process ended that nobody waited for."""
    while True:
        before = tree_seconds()
        run()
        if (spent := tree_seconds() - before) > 0:
            return spent

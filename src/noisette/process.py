"""Which process this is: what stands in for a budget is void in the copy of it that a fork makes.

The number of a process can come again once its owner has ended, so forks are counted as well; a fork that Python does
not see still changes the number.

>>> here() == here()
True
"""

import os

__all__ = ["here"]

_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # not on systems without fork
    os.register_at_fork(after_in_child=_forked)


def here() -> tuple[int, int]:
    """Something that is equal in one process alone; no object that is older than a fork has that of the child."""
    return os.getpid(), _forks

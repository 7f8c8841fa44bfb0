"""Which process this is: what stands in for a budget is void in the copy of it that a fork makes.

The number of a process can come again once its owner has ended, so forks are counted as well; a fork that Python does
not see still changes the number.

>>> here() == here()
True
"""

import os
from typing import Any

from noisette.errors import PrivacyError

__all__ = ["Origin", "here"]

_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # not on systems without fork
    os.register_at_fork(after_in_child=_forked)


def here() -> tuple[int, int]:
    """Something that is equal in one process alone; no object that is older than a fork has that of the child."""
    return os.getpid(), _forks


class Origin:
    """The process that an object was made in, which alone goes on with it: two that do would release twice as much.

    An object that is unpickled, or resumed from a state, has its origin where that happens.

    >>> Origin().check("stream")
    """

    def __init__(self) -> None:
        self._process = here()

    def check(self, what: str) -> None:
        """Raise in a process that was forked since; `what` says what the object is."""
        if here() != self._process:
            raise PrivacyError(
                f"This {what} belongs to the parent process: go on there, or hand its state over before the fork."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return Origin, ()

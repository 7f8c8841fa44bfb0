"""Every example that the suites run over."""

from collections.abc import Iterator
from typing import Any

from noisette.mechanisms.catalogue import instances, mechanisms

__all__ = ["discovered", "names"]


def discovered() -> Iterator[tuple[str, Any]]:
    """Yield (class name, example) for every example of every mechanism."""
    for example in instances():
        yield type(example).__name__, example


def names() -> list[str]:
    """Return the names of all mechanisms.

    >>> "Geometric" in names()
    True
    """
    return sorted(mechanisms())

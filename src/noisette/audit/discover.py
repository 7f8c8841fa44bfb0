"""Find every mechanism by itself: each module of `noisette.mechanisms` that lists `examples`.

Only tests, audits and documentation discover; product code imports by name.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from noisette import mechanisms as package

__all__ = ["discovered", "names"]


def discovered() -> Iterator[tuple[str, Any]]:
    """Yield (class name, example) for every example of every mechanism.

    >>> [example.scale for name, example in discovered() if name == "Geometric"][:2]
    [Fraction(1, 1), Fraction(5, 2)]
    """
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for example in getattr(importlib.import_module(module.name), "examples", []):
            yield type(example).__name__, example


def names() -> list[str]:
    """Return the names of all mechanisms.

    >>> "Geometric" in names()
    True
    """
    return sorted({name for name, _ in discovered()})

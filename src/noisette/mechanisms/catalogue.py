"""Find every mechanism: each class whose module lists `examples` of it.

It loads every file of the package. Whoever needs one mechanism imports it by name.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from noisette.mechanisms.contract import Mechanism

__all__ = ["instances", "mechanisms"]


def instances() -> Iterator[Any]:
    """Yield every example of every mechanism, by family and module.

    >>> [m.scale for m in instances() if type(m).__name__ == "Geometric"][:2]
    [Fraction(1, 1), Fraction(5, 2)]
    """
    for module in pkgutil.walk_packages([str(Path(__file__).parent)], f"{__package__}."):
        yield from getattr(importlib.import_module(module.name), "examples", [])


@cache
def mechanisms() -> dict[str, type[Mechanism]]:
    """Return all mechanisms by their names.

    >>> mechanisms()["Geometric"].__module__
    'noisette.mechanisms.additive.geometric'
    """
    return {type(example).__name__: type(example) for example in instances()}

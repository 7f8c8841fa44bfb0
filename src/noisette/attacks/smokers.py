"""The textbook's table: how many cigarettes the participants of a study smoke a day.

The five people with names and the histogram [10, 2, 4, 13, 44, 35] of 0 to 5 cigarettes are those of G. Bassi's
lecture *Differential privacy and generalization* (KTH); the people between Diana and Zoe, dots there, are filled in.
All of them are made up.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["SMOKERS"]

_NAMED = {"Alice": 3, "Bob": 5, "Charles": 1, "Diana": 0, "Zoe": 4}
_HISTOGRAM = (10, 2, 4, 13, 44, 35)


def _table() -> dict[str, int]:
    named = list(_NAMED.values())
    unnamed = [value for value, count in enumerate(_HISTOGRAM) for _ in range(count - named.count(value))]
    return _NAMED | {f"person {number}": value for number, value in enumerate(unnamed, start=len(named) + 1)}


SMOKERS: Mapping[str, int] = MappingProxyType(_table())
"""Cigarettes a day of 108 made-up people; Bob smokes 5."""

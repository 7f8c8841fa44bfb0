"""Made-up secrets to attack: from numpy's generator, which never makes noise for a release."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from noisette.exact.number import whole

__all__ = ["SMOKERS", "Population", "bits", "population"]


def bits(n: int, generator: np.random.Generator | None = None) -> NDArray[np.int64]:
    """Return n independent fair bits: one secret for each of n people.

    >>> bits(200).shape
    (200,)
    """
    return (generator or np.random.default_rng()).integers(0, 2, whole(n, "n"))


@dataclass(frozen=True)
class Population:
    """Rows of 0s and 1s of those in the table and of others like them, and how frequent each attribute is."""

    inside: NDArray[np.bool_] = field(repr=False)
    outside: NDArray[np.bool_] = field(repr=False)
    frequencies: NDArray[np.float64] = field(repr=False)


def population(
    people: int, attributes: int, others: int = 1000, generator: np.random.Generator | None = None
) -> Population:
    """Return people with independent attributes of frequencies p ~ Beta(1/2, 1/2), like those of genetic variants.

    >>> population(100, 50).inside.shape
    (100, 50)
    """
    n, d, k = whole(people, "people"), whole(attributes, "attributes"), whole(others, "others")
    generator = generator or np.random.default_rng()
    p = generator.beta(0.5, 0.5, d)
    rows = generator.random((n + k, d), dtype=np.float32) < p.astype(np.float32)
    return Population(rows[:n], rows[n:], p)


# A study of smokers. The five people with names and the histogram [10, 2, 4, 13, 44, 35] of 0 to 5 cigarettes a day are
# those of G. Bassi's lecture "Differential privacy and generalization" (KTH); the other people are filled in.


_NAMED = {"Alice": 3, "Bob": 5, "Charles": 1, "Diana": 0, "Zoe": 4}
_HISTOGRAM = (10, 2, 4, 13, 44, 35)


def _table() -> dict[str, int]:
    named = list(_NAMED.values())
    unnamed = [value for value, count in enumerate(_HISTOGRAM) for _ in range(count - named.count(value))]
    return _NAMED | {f"person {number}": value for number, value in enumerate(unnamed, start=len(named) + 1)}


SMOKERS: Mapping[str, int] = MappingProxyType(_table())
"""Cigarettes a day of 108 made-up people; Bob smokes 5."""

"""Made-up secrets to attack: from numpy's generator, which never makes noise for a release."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisette.exact.number import whole

__all__ = ["Population", "bits", "population"]


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

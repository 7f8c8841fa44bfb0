"""Affine maps v -> (a v + b) mod P with P prime, a != 0: a public family whose pairs of values are equally likely.

For a uniform map two different values go to each ordered pair of different residues with probability 1/(P (P - 1)). So
every statement about two values is exact, the same for all of them, and needs no assumption about a hash.

A report (a, b) supports the values whose image lies in an arc of residues. All reports with one multiplier are counted
together: +1 where an arc begins, -1 where it ends, running sums, and a look at a v for each v. That takes O(n + P^2)
steps at most for all P - 1 multipliers, where one report after the other takes n P.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError

__all__ = ["LARGEST", "in_arcs", "prime_from", "supported"]

LARGEST = 4_294_967_291
"""The largest prime below 2^32: products of two residues fit into 64 bits."""

_CELLS = 1 << 20  # numbers in a table of arcs or of images

Ints = NDArray[np.int64]


@lru_cache(maxsize=256)
def prime_from(n: int) -> int:
    """Return the least prime that is at least n.

    >>> prime_from(2), prime_from(1000), prime_from(1009)
    (2, 1009, 1009)
    """
    if n > LARGEST:
        raise InputError(f"domain must be at most {LARGEST:,}: hash longer values to 32 bits first.")
    return next(p for p in range(max(2, n), 2 * n + 3) if all(p % d for d in range(2, math.isqrt(p) + 1)))


def supported(multipliers: Ints, starts: Ints, lengths: Any, prime: int, domain: int) -> Ints:
    """Return for each value v how many reports have a v mod P in the arc of `lengths` residues from `starts` on."""
    total = np.zeros(domain, np.int64)
    distinct, row = np.unique(multipliers, return_inverse=True)
    order = np.argsort(row, kind="stable")
    row, starts, lengths = row[order], starts[order], np.broadcast_to(lengths, starts.shape)[order]
    step = max(1, _CELLS // prime)
    for first in range(0, len(distinct), step):
        at = slice(*np.searchsorted(row, [first, first + step]))
        some = distinct[first : first + step]
        total += _looked_up(_covered(row[at] - first, starts[at], lengths[at], len(some), prime), some, prime, domain)
    return total


def _covered(row: Ints, starts: Ints, lengths: Ints, rows: int, prime: int) -> Ints:
    """How many arcs of each row cover each residue."""
    ends, wide = starts + lengths, prime + 1
    wrapped = ends > prime
    change = np.bincount(row * wide + starts, minlength=rows * wide)
    change -= np.bincount(row * wide + np.where(wrapped, ends - prime, ends), minlength=rows * wide)
    change[np.arange(rows) * wide] += np.bincount(row, wrapped, minlength=rows).astype(np.int64)  # these begin before 0
    return np.asarray(np.cumsum(change.reshape(rows, wide), axis=1)[:, :prime])


def _looked_up(covered: Ints, multipliers: Ints, prime: int, domain: int) -> Ints:
    """The sum over rows of what covers a v."""
    total = np.zeros(domain, np.int64)
    step = max(1, _CELLS // len(multipliers))
    factors = multipliers.astype(np.uint64)[:, None]
    for first in range(0, domain, step):
        images = factors * np.arange(first, min(first + step, domain), dtype=np.uint64) % np.uint64(prime)
        total[first : first + step] = np.take_along_axis(covered, images.astype(np.int64), axis=1).sum(axis=0)
    return total


def in_arcs(multipliers: Ints, starts: Ints, lengths: Any, prime: int, values: Ints) -> Ints:
    """Return the same counts for a list of values, one report after the other: for domains too large to list."""
    total = np.zeros(len(values), np.int64)
    lengths = np.broadcast_to(lengths, starts.shape)
    step = max(1, _CELLS // max(1, len(values)))
    for first in range(0, len(starts), step):
        a, start, length = (x[first : first + step].astype(np.uint64)[:, None] for x in (multipliers, starts, lengths))
        offset = (a * values.astype(np.uint64) + (np.uint64(prime) - start)) % np.uint64(prime)
        total += (offset < length).sum(axis=0)
    return total

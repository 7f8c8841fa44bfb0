"""The bound on groups where there are few of them: a table with a place for every pair, and nothing to sort.

It retains the same groups as `choice` does, those of the smallest tags. But a pair is tagged once, however many rows it
has, and a unit's tags lie side by side, so that its last one is found without carrying owners along.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from noisette.engines.bounding.keys import Tags, settled
from noisette.engines.bounding.words import SPARSE, Codes, Mask, Words, pieces

__all__ = ["MOST_GROUPS", "first_groups"]

MOST_GROUPS = 64
"""With more groups the table is mostly empty, or too large."""

_ENTRIES = 1 << 15  # of the table at a time, which stay in the cache
_ABSENT = np.uint32(2**32 - 1)

Part: TypeAlias = tuple[Codes, Codes]


def first_groups(parts: Sequence[Part], *, groups: int, limit: int, key: bytes) -> list[Mask] | None:
    """Return which rows are in the first groups of their unit; None if the units are too far apart for a table.

    Each part has the units of its rows and their groups, numbers below `groups`. Rows of one unit may be in many parts.

    >>> unit, group = np.array([7, 7, 7, 7, 9]), np.array([1, 1, 2, 3, 1])
    >>> [mask] = first_groups([(unit, group)], groups=4, limit=2, key=bytes(16))
    >>> len(set(group[mask & (unit == 7)])), bool(mask[4])
    (2, True)
    """
    some = [unit for unit, _ in parts if len(unit)]
    if not some:
        return [np.ones(0, np.bool_) for _ in parts]
    least = min(int(unit.min()) for unit in some)
    owners = max(int(unit.max()) for unit in some) - least + 1
    if owners * groups > SPARSE * sum(map(len, some)):
        return None
    there = np.zeros(owners * groups, np.bool_)
    for unit, group in parts:
        for piece in pieces(len(unit)):
            place = unit[piece] - least
            place *= groups
            place += group[piece]
            there[place] = True
    chosen = _chosen(there.reshape(owners, groups), least, limit, Tags(key))
    return [_looked_up(chosen, unit, group, least) for unit, group in parts]


def _chosen(there: Mask, least: int, limit: int, tags: Tags) -> Words:
    """Return the first groups of each unit as the bits of a word; the rows of the table are units from `least` on."""
    owners, groups = there.shape
    bits = (1 << np.arange(groups, dtype=np.uint64)).astype(np.min_scalar_type(2**groups - 1))
    chosen, step = np.empty(owners, bits.dtype), max(1, _ENTRIES // groups)
    for owner in range(0, owners, step):
        first = _first(there[owner : owner + step], least + owner, limit, tags)
        np.matmul(first.view(np.uint8), bits, out=chosen[owner : owner + step])
    return chosen


def _first(there: Mask, unit: int, limit: int, tags: Tags) -> Mask:
    """Return which pairs are within the limit, where the rows of the table are units from `unit` on."""
    groups = there.shape[1]
    place = np.flatnonzero(there)
    owner = place // groups
    group = place - owner * groups
    tag = tags.groups(owner + unit, group)
    ranks = np.full(there.shape, _ABSENT)
    ranks.reshape(-1)[place] = np.minimum(tag >> np.uint64(32), _ABSENT - np.uint32(1))
    beyond = np.partition(ranks, limit, axis=1)[:, limit]
    first: Mask = ranks < beyond[:, np.newaxis]
    crowded = beyond != _ABSENT
    if np.count_nonzero(first[crowded]) < limit * np.count_nonzero(crowded):  # what ties with the one beyond is not in
        first.reshape(-1)[place] = settled(owner, np.full(len(owner), limit), tag, group, distinct=True)
    return first


def _looked_up(chosen: Words, unit: Codes, group: Codes, least: int) -> Mask:
    mask = np.empty(len(unit), np.bool_)
    for piece in pieces(len(mask)):
        bits = chosen.take(unit[piece] - least, mode="clip")
        bits >>= group[piece].astype(bits.dtype)
        mask[piece] = bits & 1
    return mask

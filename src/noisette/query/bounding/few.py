"""The bound on groups where there are few of them: a table with a place for every pair, and nothing to sort.

It keeps the same groups as `choice` does, those of the smallest tags. But a pair is tagged once, however many rows it
has, and a unit's tags lie side by side, so that its last one is found without carrying owners along.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from noisette.query.bounding.keys import settled
from noisette.query.bounding.tags import Tags
from noisette.query.bounding.words import SPARSE, Codes, Mask, pieces

__all__ = ["MOST_GROUPS", "first_groups"]

MOST_GROUPS = 64
"""With more groups the table is mostly empty, or too large."""

_ENTRIES = 1 << 15  # of the table at a time, which stay in the cache
_ABSENT = np.uint64(2**64 - 1)

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
    table = np.zeros(owners * groups, np.bool_)
    for part in parts:
        for piece in pieces(len(part[0])):
            table[_places(part, piece, least, groups)] = True
    tags, step = Tags(key), max(1, _ENTRIES // groups)
    for owner in range(0, owners, step):
        _keep_first(table[owner * groups : (owner + step) * groups], least + owner, groups, limit, tags)
    return [_looked_up(table, part, least, groups) for part in parts]


def _places(part: Part, piece: slice, least: int, groups: int) -> Codes:
    unit, group = part
    places = unit[piece] - least
    places *= groups
    places += group[piece]
    return places


def _looked_up(table: Mask, part: Part, least: int, groups: int) -> Mask:
    mask = np.empty(len(part[0]), np.bool_)
    for piece in pieces(len(mask)):
        table.take(_places(part, piece, least, groups), mode="clip", out=mask[piece])
    return mask


def _keep_first(there: Mask, unit: int, groups: int, limit: int, tags: Tags) -> None:
    """Take the pairs beyond the limit out of a part of the table, which begins with `unit`."""
    place = np.flatnonzero(there)
    owner = place // groups
    group = place - owner * groups
    tag = tags.groups(owner + unit, group)
    words = np.full(len(there), _ABSENT)
    words[place] = np.minimum(tag, _ABSENT - np.uint64(1))
    by_owner = words.reshape(-1, groups)
    beyond = np.partition(by_owner, limit, axis=1)[:, limit]
    first = by_owner < beyond[:, np.newaxis]
    crowded = beyond != _ABSENT
    if np.count_nonzero(first[crowded]) == limit * np.count_nonzero(crowded):
        there[:] = first.reshape(-1)
    else:  # some tie with the one beyond
        there[place] = settled(owner, np.full(len(owner), limit), tag, group, distinct=True)

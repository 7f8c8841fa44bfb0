"""The bounds, one after the other: groups of a unit, rows of a pair, rows of a unit.

Where there are few groups, a table has a place for every pair, and there is nothing to sort: `first_groups` retains the
same groups, those of the smallest tags. But a pair is tagged once, however many rows it has, and a unit's tags lie side
by side, so that its last one is found without carrying owners along.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from noisette.engines.bounding.keys import Layout, Tags, cut, settled, too_many
from noisette.engines.bounding.words import (
    MIX,
    SPARSE,
    Codes,
    Mask,
    Places,
    Words,
    dense,
    distinct,
    members,
    pieces,
    repeated,
    replaced,
    starts,
    touched,
)
from noisette.errors import InputError
from noisette.query.schema import Limits

__all__ = ["MOST_GROUPS", "Content", "first_groups", "own_groups", "retained"]


class Content(Protocol):
    """A hash of each row: an array of uint64, or what computes the words of the rows that are looked at."""

    @property
    def dtype(self) -> np.dtype[np.uint64]:
        """64-bit words."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """One word a row."""
        ...

    def __getitem__(self, at: "slice | Places", /) -> Words:
        """Return the words of some rows."""
        ...


def retained(
    unit: Codes,
    *,
    rows: Content | None,
    key: bytes,
    limits: Limits,
    group: Codes | None = None,
    identity: Codes | None = None,
) -> Mask:
    """Return the mask of the rows that are retained.

    `unit` and `group` say whose row it is and where it counts, `rows` is a hash of the row's content. All of them must
    be functions of the row itself (an identifier, its hash), not of its place in the table. `key` is 16 secret bytes.
    Which of several rows with one hash are retained is arbitrary: they are the same row. Without `rows` all rows of a
    unit in a group are alike. Where two units may share a number, `identity` says whose a row is: any numbers that are
    equal for one unit and different for two. The choice does not depend on which numbers these are.

    The package says why the bounded table changes by one unit's bounded rows when that unit comes or goes.

    >>> unit, group = np.array([7, 7, 7, 7, 9]), np.array([1, 1, 2, 3, 1])
    >>> rows = np.array([11, 12, 13, 14, 15], np.uint64)
    >>> mask = retained(unit, group=group, rows=rows, key=bytes(16), limits=Limits(groups=2, rows_per_group=1))
    >>> len(set(group[mask & (unit == 7)])), int(mask.sum())
    (2, 3)
    """
    _check(unit, identity, group, rows, key)
    table = _Table(unit, np.broadcast_to(np.int64(0), len(unit)) if group is None else group, rows, Tags(key))
    units = _Owned(*dense(unit if identity is None else identity), slice(None))
    mask = np.ones(len(unit), np.bool_)
    if limits.groups is not None and group is not None:
        crowded = _crowded(units, limits.groups)
        mask[crowded.place] = _first_groups(table, crowded, limits.groups)
    if limits.rows_per_group is not None:
        _bound_pairs(table, units[_where(mask)], limits.rows_per_group, mask)
    if limits.rows is not None:
        one = replace(table, rows=_zeros(len(unit))) if rows is None and group is not None else table
        _bound_rows(one, units[_where(mask)], limits.rows, mask)
    return mask


def own_groups(identity: Codes, group: Codes, code: Codes, some: Places) -> Codes:
    """Return the groups, where each unit that has two groups with one number gets the ranks of its own groups' codes.

    `identity` says whose a row is. Codes are exact, in ascending order of the keys; `some` are the places of the rows
    whose group may share its number with another one. Codes of other units do not change a rank.

    >>> identity, group, code = np.array([1, 1, 1, 2, 2]), np.array([7, 7, 8, 7, 8]), np.array([50, 30, 40, 30, 40])
    >>> own_groups(identity, group, code, np.arange(5))
    array([2, 0, 1, 7, 8])
    """
    order = some[np.lexsort([code[some], group[some], identity[some]])]
    shared = ~starts(identity[order]) & ~starts(group[order]) & starts(code[order])
    at = np.flatnonzero(np.isin(identity, identity[order[shared]]))
    order = at[np.lexsort([code[at], identity[at]])]
    begins = starts(identity[order])
    rank = np.cumsum(begins | starts(code[order])) - 1
    owned = group.copy()
    owned[order] = rank - rank[begins][np.cumsum(begins) - 1]
    return owned


def _check(unit: Codes, identity: Codes | None, group: Codes | None, rows: Content | None, key: bytes) -> None:
    if unit.dtype != np.int64 or (rows is not None and rows.dtype != np.uint64):
        raise InputError("Give units as int64 and rows as uint64.")
    if group is not None and group.dtype.kind != "i":
        raise InputError("Give groups as whole numbers with a sign.")
    if identity is not None and identity.dtype != np.int64:
        raise InputError("Give identities as int64.")
    if any(column is not None and column.shape != (len(unit),) for column in (unit, identity, group, rows)):
        raise InputError("Give unit, identity, group and rows as one value per row.")
    if len(key) != 16:
        raise InputError("The key must be 16 bytes.")


def _zeros(n: int) -> Words:
    return np.broadcast_to(np.uint64(0), n)


# Rows


@dataclass(frozen=True)
class _Table:
    """All rows, by their places; without `rows` their places distinguish them."""

    unit: Codes
    group: Codes
    rows: Content | None
    tags: Tags

    def content(self, at: Places | slice) -> Words:
        """Return the hash of rows."""
        if self.rows is not None:
            return self.rows[at]
        return np.arange(len(self.unit))[at].view(np.uint64) if isinstance(at, slice) else at.view(np.uint64)

    def group_tags(self, at: Places | slice) -> Words:
        """Return the tags of the groups of rows."""
        return self.tags.groups(self.unit[at], _wide(self.group[at]))

    def row_tags(self, at: Places | slice, content: Words) -> Words:
        """Return the tags of rows."""
        return self.tags.rows(self.unit[at], _wide(self.group[at]), content)


@dataclass(frozen=True)
class _Owned:
    """Some rows by their places; `owner` numbers whoever is bounded, below `owners`."""

    owner: Codes
    owners: int
    place: Places | slice

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, at: slice | Places) -> "_Owned":
        if isinstance(at, slice) and at == slice(None):
            return self
        return _Owned(self.owner[at], self.owners, at if isinstance(self.place, slice) else self.place[at])


def _wide(codes: Codes) -> Codes:
    return codes.astype(np.int64, copy=False)


def _where(mask: Mask) -> slice | Places:
    """Select what is True: all of it without a copy."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def _crowded(rows: _Owned, limit: int) -> _Owned:
    """Select the rows of owners with more rows than the limit, with their owners numbered anew.

    If that is most rows anyway, or is likely to be by their number, it is all of them.
    """
    if len(rows) > 2 * limit * rows.owners:
        return rows
    sizes = np.bincount(rows.owner, minlength=rows.owners)
    crowded = sizes > limit
    owners = np.flatnonzero(crowded)
    if 4 * sizes[owners].sum() > 3 * len(rows):
        return rows
    part = rows[np.flatnonzero(crowded.take(rows.owner, mode="clip"))]
    sizes[owners] = np.arange(len(owners))
    return replace(part, owner=sizes[part.owner], owners=len(owners))


# The bounds


def _first_groups(table: _Table, rows: _Owned, limit: int) -> Mask:
    """Return the rows that are in the first groups of their owner."""
    code, codes = dense(table.group[rows.place])
    if codes <= limit:
        return np.ones(len(rows), np.bool_)
    layout = Layout.of(rows.owners, codes)
    keys = np.empty(len(rows), np.uint64)
    for piece in pieces(len(rows)):
        part = rows[piece]
        keys[piece] = layout.pack(part.owner, table.group_tags(part.place), _wide(code[piece]))
    last = cut(distinct(np.sort(keys)), rows.owners, limit, layout)
    mask = last.mask(rows.owner, keys)
    at = last.in_doubt(rows.owner, keys)
    doubt = rows[at]
    tag, group = table.group_tags(doubt.place), table.group[doubt.place]
    mask[at] = settled(doubt.owner, last.quota(doubt.owner), tag, group, distinct=True)
    return mask


def _first_rows(table: _Table, rows: _Owned, limit: int) -> Mask:
    """Return the first rows of each owner."""
    layout = Layout.of(rows.owners)
    content = table.content(rows.place)
    keys = _row_keys(table, rows, content, layout)
    ordered = np.sort(keys)
    alike = repeated(ordered, limit=1)
    if len(alike):
        at = np.flatnonzero(touched(layout.owner(alike), rows.owners).take(rows.owner, mode="clip"))
        words = _numbered(keys[at], table.group[rows[at].place], content[at])
        new = words != content[at]
        at = at[new]
        content = content.copy()
        content[at] = words[new]
        old, keys[at] = keys[at], _row_keys(table, rows[at], content[at], layout)
        ordered = replaced(ordered, old, keys[at])
    last = cut(ordered, rows.owners, limit, layout)
    mask = last.mask(rows.owner, keys)
    at = last.in_doubt(rows.owner, keys)
    doubt, word = rows[at], content[at]
    tag, group = table.row_tags(doubt.place, word), table.group[doubt.place]
    mask[at] = settled(doubt.owner, last.quota(doubt.owner), tag, word, group, distinct=False)
    return mask


def _row_keys(table: _Table, rows: _Owned, content: Words, layout: Layout) -> Words:
    keys = np.empty(len(rows), np.uint64)
    for piece in pieces(len(rows)):
        part = rows[piece]
        keys[piece] = layout.pack(part.owner, table.row_tags(part.place, content[piece]))
    return keys


def _numbered(keys: Words, group: Codes, content: Words) -> Words:
    """Return the hash of each row; of rows of one pair that share it, the j-th has j multiples of a constant more.

    Alike rows have one key. Where different rows have one too, since tags are cut, the columns decide.
    """
    order = np.argsort(keys)
    begins = starts(keys[order])
    if np.any((starts(group[order]) | starts(content[order])) & ~begins):
        order = np.lexsort([content, group, keys])
        begins = np.any([starts(column[order]) for column in (keys, group, content)], axis=0)
    start = np.flatnonzero(begins)
    number = np.arange(len(order)) - np.repeat(start, np.diff(start, append=len(order)))
    words = content.copy()
    words[order] += number.view(np.uint64) * MIX
    return words


def _bound_rows(table: _Table, rows: _Owned, limit: int, mask: Mask) -> None:
    """Bound the rows of each owner: take the others out of the mask."""
    crowded = _crowded(rows, limit)
    mask[crowded.place] = _first_rows(table, crowded, limit)


def _bound_pairs(table: _Table, rows: _Owned, limit: int, mask: Mask) -> None:
    """Bound the rows of each pair: take the others out of the mask."""
    code, codes = dense(table.group[rows.place])
    pairs = rows.owners * codes
    if pairs >= 1 << 63:
        raise too_many()
    pair = rows.owner * codes
    pair += code
    if pairs <= SPARSE * len(rows):
        _bound_rows(table, replace(rows, owner=pair, owners=pairs), limit, mask)
        return
    crowded = repeated(np.sort(pair), limit)
    at = np.flatnonzero(touched(crowded // codes, rows.owners).take(rows.owner, mode="clip"))
    hit, number = members(crowded, pair[at])
    part = replace(rows[at[hit]], owner=number, owners=len(crowded))
    mask[part.place] = _first_rows(table, part, limit)


# Few groups


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

"""The bounds, one after the other: groups of a unit, rows of a pair, rows of a unit."""

from dataclasses import dataclass, replace
from typing import Protocol

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

__all__ = ["Content", "retained"]


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


def retained(unit: Codes, *, rows: Content | None, key: bytes, limits: Limits, group: Codes | None = None) -> Mask:
    """Return the mask of the rows that are retained.

    `unit` and `group` say whose row it is and where it counts, `rows` is a hash of the row's content. All of them must
    be functions of the row itself (an identifier, its hash), not of its place in the table. `key` is 16 secret bytes.
    Which of several rows with one hash are retained is arbitrary: they are the same row. Without `rows` all rows of a
    unit in a group are alike.

    The package says why the bounded table changes by one unit's bounded rows when that unit comes or goes.

    >>> unit, group = np.array([7, 7, 7, 7, 9]), np.array([1, 1, 2, 3, 1])
    >>> rows = np.array([11, 12, 13, 14, 15], np.uint64)
    >>> mask = retained(unit, group=group, rows=rows, key=bytes(16), limits=Limits(groups=2, rows_per_group=1))
    >>> len(set(group[mask & (unit == 7)])), int(mask.sum())
    (2, 3)
    """
    _check(unit, group, rows, key)
    table = _Table(unit, np.broadcast_to(np.int64(0), len(unit)) if group is None else group, rows, Tags(key))
    units = _Owned(*dense(unit), slice(None))
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


def _check(unit: Codes, group: Codes | None, rows: Content | None, key: bytes) -> None:
    if unit.dtype != np.int64 or (rows is not None and rows.dtype != np.uint64):
        raise InputError("Give units as int64 and rows as uint64.")
    if group is not None and group.dtype.kind != "i":
        raise InputError("Give groups as whole numbers with a sign.")
    if any(column is not None and column.shape != (len(unit),) for column in (unit, group, rows)):
        raise InputError("Give unit, group and rows as one value per row.")
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

"""Which rows of a unit count: at most so many groups, so many rows in each, so many rows in all.

A unit (a person, a household) may own any number of rows, and noise hides one unit only if what it adds is bounded.
`kept` says which rows survive. Every group of a unit has a keyed tag and every row too, and the smallest tags survive:

    group tag  g = AES_k1(unit ‖ group)                 ranked within the unit by (first 8 bytes of g, group)
    row tag    r = AES_k2(g ⊕ (0 ‖ hash of the row))    ranked by (first 8 bytes of r, hash of the row, group)

k1 and k2 are AES_key(1) and AES_key(2), so the row tag is a CBC-MAC of one fixed length under two independent keys.
Rows of one pair with one hash are alike but still several: their hashes are told apart by numbering them, so that each
of a hundred rows has the same chance as the one that is different.

**Stability.** The choice for a unit is a function of the key and of that unit's rows alone: not of other units, nor of
the order of the rows. A unit that comes or goes changes the surviving table by its own surviving rows and by nothing
else, and those obey the limits. This holds for every key, a published one too, so privacy does not rest on the secret.

**What the secret is for.** Without the key the tags look like coins, so nobody who writes rows into the table can
arrange that theirs, or somebody else's, are the ones that survive, and each group of a unit survives equally often.

How it is fast: owner, tag and group are packed into 64-bit keys, which NumPy sorts without carrying positions along.
The sorted keys give one threshold per owner, and a row survives if its key is not above its owner's. A tag cut to fit
may tie with its neighbour across the threshold: those owners are *contested* and settled by the whole tags.

Vocabulary: `owner` number 0, 1, … of who is bounded (a unit, or a pair) · `pair` a unit and one of its groups ·
`layout` the bits of a key, high to low: owner, tag, code · `crowded` an owner that has more than its bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.query.schema import Limits

__all__ = ["dense", "kept"]

_CHUNK: Final = 1 << 15  # rows at a time where an intermediate array should stay in the cache
_SPARSE: Final = 4  # codes that span more than this many times their number are numbered anew
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: to multiply by it permutes the 64-bit words

_Codes = NDArray[np.int64]
_Words = NDArray[np.uint64]
_Mask = NDArray[np.bool_]
_Places = NDArray[np.intp]


def kept(unit: _Codes, *, rows: _Words | None, key: bytes, limits: Limits, group: _Codes | None = None) -> _Mask:
    """Return the mask of the rows that survive the bounds.

    `unit` and `group` say whose row it is and where it counts, `rows` is a hash of the row's content. All of them must
    be functions of the row itself (an identifier, its hash), not of its place in the table. `key` is 16 secret bytes.
    Which of several rows with one hash survive is arbitrary: they are the same row. Without `rows` all rows of a unit
    in a group are alike.

    The module says why the surviving table changes by one unit's bounded rows when that unit comes or goes.

    >>> unit, group = np.array([7, 7, 7, 7, 9]), np.array([1, 1, 2, 3, 1])
    >>> rows = np.array([11, 12, 13, 14, 15], np.uint64)
    >>> mask = kept(unit, group=group, rows=rows, key=bytes(16), limits=Limits(groups=2, rows_per_group=1))
    >>> len(set(group[mask & (unit == 7)])), mask.sum()
    (2, np.int64(3))
    """
    content = np.zeros(len(unit), np.uint64) if rows is None else rows
    _check(unit, group, content, key)
    tags = _Tags(key)
    table = _table(unit, group, content)
    mask = np.ones(len(unit), np.bool_)
    if limits.groups is not None and group is not None:
        at, crowded = _crowded(table, limits.groups)
        mask[at] = _first_groups(crowded, limits.groups, tags)
    if limits.rows_per_group is not None:
        left = _where(mask)
        pairs = _anyhow(table[left]) if rows is None else table[left]
        mask[left] = _bounded_pairs(pairs, limits.rows_per_group, tags)
    if limits.rows is not None:
        left = _where(mask)
        units = _anyhow(table[left]) if rows is None and group is None else table[left]
        mask[left] = _bounded_rows(units, limits.rows, tags)
    return mask


def dense(codes: _Codes) -> tuple[_Codes, int]:
    """Number arbitrary codes from 0: return the numbers and how many there may be.

    Equal codes have equal numbers, and different codes different ones. Codes that span at most a few times as many
    values as there are rows are only shifted, which leaves numbers that nobody has; others are numbered anew.

    >>> dense(np.array([-3, -1, -3]))
    (array([0, 2, 0]), 3)
    >>> dense(np.array([10**18, 5, 10**18]))[1]
    2
    """
    if not len(codes):
        return codes, 0
    least, most = int(codes.min()), int(codes.max())
    if most - least < _SPARSE * len(codes):
        return (codes - least if least else codes), most - least + 1
    mixed = _mixed(codes)
    known = _distinct(np.sort(mixed))
    return _found(known, mixed), len(known)


def _check(unit: _Codes, group: _Codes | None, rows: _Words, key: bytes) -> None:
    columns = [(unit, np.int64), (rows, np.uint64), *([] if group is None else [(group, np.int64)])]
    if any(column.dtype != dtype or column.shape != (len(unit),) for column, dtype in columns):
        raise InputError("Give unit and group as int64 and rows as uint64, each one value per row.")
    if len(key) != 16:
        raise InputError("The key must be 16 bytes.")


# Tags


class _Tags:
    """The keyed tags of groups and rows; the module's docstring defines them."""

    def __init__(self, key: bytes) -> None:
        schedule = _ecb(key)
        self._pair, self._row = (_ecb(schedule.update(number.to_bytes(16, "little"))) for number in (1, 2))

    def groups(self, unit: _Codes, group: _Codes) -> _Words:
        """Tag groups."""
        return self._pairs(unit, group)[:, 0]

    def rows(self, unit: _Codes, group: _Codes, rows: _Words) -> _Words:
        """Tag rows."""
        blocks = self._pairs(unit, group).copy()
        blocks[:, 1] ^= rows
        return _encrypted(self._row, blocks)[:, 0]

    def _pairs(self, unit: _Codes, group: _Codes) -> _Words:
        blocks = np.empty((len(unit), 2), "<u8")
        blocks[:, 0] = unit.view(np.uint64)
        blocks[:, 1] = group.view(np.uint64)
        return _encrypted(self._pair, blocks)


def _ecb(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def _encrypted(cipher: Any, blocks: _Words) -> _Words:
    return np.frombuffer(cipher.update(blocks.view(np.uint8).data), "<u8").reshape(-1, 2)


# Rows and keys


@dataclass(frozen=True)
class _Rows:
    """Columns of equal length; `owner` numbers whoever is bounded, below `owners`."""

    owner: _Codes
    owners: int
    unit: _Codes
    group: _Codes
    content: _Words

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, at: slice | _Places) -> "_Rows":
        return _Rows(self.owner[at], self.owners, self.unit[at], self.group[at], self.content[at])

    def chunks(self) -> Iterator[tuple[slice, "_Rows"]]:
        """Walk the rows in pieces that stay in the cache."""
        for piece in _pieces(len(self)):
            yield piece, self[piece]


def _table(unit: _Codes, group: _Codes | None, rows: _Words) -> _Rows:
    owner, owners = dense(unit)
    return _Rows(owner, owners, unit, np.broadcast_to(np.int64(0), len(unit)) if group is None else group, rows)


def _pieces(n: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))


def _where(mask: _Mask) -> slice | _Places:
    """Select what is True: all of it without a copy."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def _crowded(table: _Rows, limit: int) -> tuple[slice | _Places, _Rows]:
    """Select the rows of owners with more rows than the limit, with their owners numbered anew.

    If that is most rows anyway, or is likely to be by their number, it is all of them.
    """
    if len(table) > 2 * limit * table.owners:
        return slice(None), table
    sizes = np.bincount(table.owner, minlength=table.owners)
    crowded = sizes > limit
    owners = np.flatnonzero(crowded)
    if 4 * sizes[owners].sum() > 3 * len(table):
        return slice(None), table
    at = np.flatnonzero(crowded.take(table.owner, mode="clip"))
    sizes[owners] = np.arange(len(owners))
    part = table[at]
    return at, replace(part, owner=sizes[part.owner], owners=len(owners))


@dataclass(frozen=True)
class _Layout:
    """How a 64-bit key is laid out, from high to low: the owner, as much of the tag as fits, a code."""

    owner_bits: int
    code_bits: int = 0

    @staticmethod
    def of(owners: int, codes: int = 1) -> "_Layout":
        owner_bits, code_bits = (owners - 1).bit_length(), (codes - 1).bit_length()
        if owner_bits + code_bits > 64:
            raise _too_many()
        return _Layout(owner_bits, code_bits)

    def pack(self, owner: _Codes, tag: _Words, code: _Codes | None = None) -> _Words:
        """Make keys; a shift by the full 64 bits gives 0."""
        keys = tag >> np.uint64(self.owner_bits + self.code_bits)
        keys <<= np.uint64(self.code_bits)
        keys |= owner.view(np.uint64) << np.uint64(64 - self.owner_bits)
        if code is not None:
            keys |= code.view(np.uint64)
        return keys

    def owner(self, keys: _Words) -> _Codes:
        """Return the owners of keys."""
        return (keys >> np.uint64(64 - self.owner_bits)).view(np.int64)

    def first(self, ordered: _Words) -> _Places:
        """Return where each owner's sorted keys begin."""
        starts = np.ones(len(ordered), np.bool_)
        for piece in _pieces(len(ordered)):
            starts[piece] = _starts(self.owner(ordered[piece]))
            if piece.start:
                starts[piece.start] = self.owner(ordered[piece.start]) != self.owner(ordered[piece.start - 1])
        return np.flatnonzero(starts)

    def lowest(self, keys: _Words) -> _Words:
        """Return the lowest key with the owner and the cut tag of each key."""
        return keys >> np.uint64(self.code_bits) << np.uint64(self.code_bits)

    def same_tag(self, keys: _Words, others: _Words) -> _Mask:
        """Return where keys of one owner agree in the cut tag."""
        return np.equal(self.lowest(keys), self.lowest(others))


def _too_many() -> InputError:
    return InputError("There are too many rows for one pass: bound them in parts, each with all rows of its units.")


# Thresholds


@dataclass(frozen=True)
class _Cut:
    """Where each owner's keys are cut: those up to `last[owner]` are in.

    Of a contested owner the keys that tie with its last are in doubt, and as many of them as its quota are in.
    """

    layout: _Layout
    last: _Words
    contested: _Codes
    quotas: _Codes

    def mask(self, owner: _Codes, keys: _Words) -> _Mask:
        """Return which keys are not beyond their owner's last."""
        mask = np.empty(len(keys), np.bool_)
        for piece in _pieces(len(keys)):
            np.less_equal(keys[piece], self.last.take(owner[piece], mode="clip"), out=mask[piece])
        return mask

    def in_doubt(self, owner: _Codes, keys: _Words) -> _Places:
        """Return where a key ties with the last of a contested owner."""
        if not len(self.contested):
            return np.empty(0, np.intp)
        contested = np.zeros(len(self.last), np.bool_)
        contested[self.contested] = True
        at = np.flatnonzero(contested.take(owner, mode="clip"))
        return at[self.layout.same_tag(keys[at], self.last[owner[at]])]

    def quota(self, owner: _Codes) -> _Codes:
        """Return the quota of owners that are contested."""
        return self.quotas.take(np.searchsorted(self.contested, owner))


def _cut(items: _Words, owners: int, limit: int, layout: _Layout) -> _Cut:
    """Cut after the first `limit` of each owner's sorted items."""
    first = layout.first(items)
    first = first[np.diff(first, append=len(items)) > limit]
    crowded, edge = layout.owner(items[first]), items[first + limit - 1]
    last = np.full(owners, np.iinfo(np.uint64).max)
    last[crowded] = edge
    tied = layout.same_tag(edge, items[first + limit])
    above = np.searchsorted(items, layout.lowest(edge[tied])) - first[tied]
    return _Cut(layout, last, crowded[tied], limit - above)


def _settled(owner: _Codes, quota: _Codes, *ranks: NDArray[Any], distinct: bool) -> _Mask:
    """Return which rows are among the first `quota` of their owner by the ranks, the most important first.

    If `distinct`, rows that agree in all ranks count as one.
    """
    order = np.lexsort([*reversed(ranks), owner])
    ordered = owner[order]
    step = np.ones(len(order), np.bool_)
    if distinct:
        step = np.any([_starts(column[order]) for column in (owner, *ranks)], axis=0)
    count = np.cumsum(step)
    mask = np.empty(len(order), np.bool_)
    mask[order] = count - count[np.searchsorted(ordered, ordered)] < quota[order]
    return mask


# The bounds


def _first_groups(table: _Rows, limit: int, tags: _Tags) -> _Mask:
    """Return the rows that are in the first groups of their owner."""
    code, codes = dense(table.group)
    if codes <= limit:
        return np.ones(len(table), np.bool_)
    layout = _Layout.of(table.owners, codes)
    keys = np.empty(len(table), np.uint64)
    for piece, part in table.chunks():
        keys[piece] = layout.pack(part.owner, tags.groups(part.unit, part.group), code[piece])
    cut = _cut(_distinct(np.sort(keys)), table.owners, limit, layout)
    mask = cut.mask(table.owner, keys)
    at = cut.in_doubt(table.owner, keys)
    doubt = table[at]
    tag = tags.groups(doubt.unit, doubt.group)
    mask[at] = _settled(doubt.owner, cut.quota(doubt.owner), tag, doubt.group, distinct=True)
    return mask


def _first_rows(table: _Rows, limit: int, tags: _Tags) -> _Mask:
    """Return the first rows of each owner."""
    layout = _Layout.of(table.owners)
    keys = _row_keys(table, layout, tags)
    ordered = np.sort(keys)
    alike = _repeated(ordered, limit=1)
    if len(alike):
        at, _ = _members(alike.view(np.int64), keys.view(np.int64))
        content = table.content.copy()
        content[at] = _told_apart(table[at])
        table = replace(table, content=content)
        keys[at] = _row_keys(table[at], layout, tags)
        ordered = np.sort(keys)
    cut = _cut(ordered, table.owners, limit, layout)
    mask = cut.mask(table.owner, keys)
    at = cut.in_doubt(table.owner, keys)
    doubt = table[at]
    tag = tags.rows(doubt.unit, doubt.group, doubt.content)
    mask[at] = _settled(doubt.owner, cut.quota(doubt.owner), tag, doubt.content, doubt.group, distinct=False)
    return mask


def _anyhow(table: _Rows) -> _Rows:
    """Tell the rows apart by their places, which is allowed where all rows of an owner are alike."""
    return replace(table, content=np.arange(len(table), dtype=np.uint64))


def _row_keys(table: _Rows, layout: _Layout, tags: _Tags) -> _Words:
    keys = np.empty(len(table), np.uint64)
    for piece, part in table.chunks():
        keys[piece] = layout.pack(part.owner, tags.rows(part.unit, part.group, part.content))
    return keys


def _told_apart(table: _Rows) -> _Words:
    """Return the hash of each row; of rows of one pair that share it, the j-th has j multiples of a constant more."""
    order = np.lexsort([table.content, table.group, table.owner])
    columns = [column[order] for column in (table.owner, table.group, table.content)]
    start = np.flatnonzero(np.any([_starts(column) for column in columns], axis=0))
    number = np.arange(len(order)) - np.repeat(start, np.diff(start, append=len(order)))
    content = table.content.copy()
    content[order] += number.view(np.uint64) * _MIX
    return content


def _bounded_rows(table: _Rows, limit: int, tags: _Tags) -> _Mask:
    """Bound the rows of each owner."""
    mask = np.ones(len(table), np.bool_)
    at, crowded = _crowded(table, limit)
    mask[at] = _first_rows(crowded, limit, tags)
    return mask


def _bounded_pairs(table: _Rows, limit: int, tags: _Tags) -> _Mask:
    """Bound the rows of each pair."""
    code, codes = dense(table.group)
    pairs = table.owners * codes
    if pairs >= 1 << 63:
        raise _too_many()
    pair = table.owner * codes + code
    if pairs <= _SPARSE * len(table):
        return _bounded_rows(replace(table, owner=pair, owners=pairs), limit, tags)
    mask = np.ones(len(table), np.bool_)
    crowded = _repeated(np.sort(pair), limit)
    at = np.flatnonzero(_touched(crowded // codes, table.owners).take(table.owner, mode="clip"))
    hit, number = _members(crowded, pair[at])
    at = at[hit]
    mask[at] = _first_rows(replace(table[at], owner=number, owners=len(crowded)), limit, tags)
    return mask


# Sorted words


def _starts(ordered: NDArray[Any]) -> _Mask:
    """Return where a run of equal values begins."""
    starts = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts


def _distinct(ordered: _Words) -> _Words:
    """Return the distinct values of sorted ones, in their memory."""
    starts = _starts(ordered)
    size = 0
    for piece in _pieces(len(ordered)):
        part = ordered[piece][starts[piece]]
        ordered[size : size + len(part)] = part
        size += len(part)
    return ordered[:size]


def _repeated(ordered: NDArray[Any], limit: int) -> NDArray[Any]:
    """Return, once each, the sorted values that occur more often than the limit."""
    if limit >= len(ordered):
        return ordered[:0]
    often = ordered[np.flatnonzero(ordered[limit:] == ordered[:-limit])]
    return often[_starts(often)]


def _touched(numbers: _Codes, count: int) -> _Mask:
    mask = np.zeros(count, np.bool_)
    mask[numbers] = True
    return mask


def _members(known: _Codes, values: _Codes) -> tuple[_Places, _Codes]:
    """Return where a value is a known one, and which: a number below `len(known)`."""
    if not len(known):
        return np.empty(0, np.intp), np.empty(0, np.int64)
    words, mixed = np.sort(_mixed(known)), _mixed(values)
    place = _found(words, mixed)
    hit = np.flatnonzero(words.take(place, mode="clip") == mixed)
    return hit, place[hit]


def _mixed(codes: _Codes) -> _Words:
    """Spread codes over the 64-bit words, one to one."""
    return codes.view(np.uint64) * _MIX


def _found(known: _Words, words: _Words) -> _Codes:
    """Return `searchsorted(known, words)`, quickly if the known words are spread evenly.

    The top bits of a word point to a bucket of about a quarter of a known word; a binary search within the bucket does
    the rest, so that uneven words cost rounds and nothing else.
    """
    shift = np.uint64(max(0, 64 - (4 * len(known)).bit_length()))
    buckets = 1 << (64 - int(shift))
    size = np.bincount((known >> shift).view(np.int64), minlength=buckets)
    end = np.cumsum(size, dtype=np.int32 if len(known) < 1 << 31 else np.int64)
    rounds = int(size.max()).bit_length()
    place = np.empty(len(words), np.int64)
    for piece in _pieces(len(words)):
        place[piece] = _found_in_buckets(known, words[piece], end, shift, rounds)
    return place


def _found_in_buckets(known: _Words, words: _Words, end: NDArray[Any], shift: np.uint64, rounds: int) -> _Codes:
    bucket = (words >> shift).view(np.int64)
    high = end.take(bucket, mode="clip").astype(np.int64)
    low = np.where(bucket > 0, end.take(bucket - 1, mode="clip"), 0).astype(np.int64)
    for _ in range(rounds):
        middle = (low + high) >> 1
        above = (known.take(middle, mode="clip") < words) & (low < high)
        low = np.where(above, middle + 1, low)
        high = np.where(above, high, middle)
    return low

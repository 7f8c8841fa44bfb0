"""Keyed tags, and packed 64-bit keys: high to low the owner, as much of the tag as fits and a code; where they are cut.

A tag is AES of a unit and its group, and of that with a row; the package defines them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.engines.bounding.words import Codes, Mask, Places, Words, pieces, starts
from noisette.errors import InputError

__all__ = ["Cut", "Layout", "Tags", "cut", "settled", "too_many"]

# Tags


class Tags:
    """The tags under one key of 16 bytes."""

    def __init__(self, key: bytes) -> None:
        schedule = _ecb(key)
        self._pair, self._row = (_ecb(schedule.update(number.to_bytes(16, "little"))) for number in (1, 2))

    def groups(self, unit: Codes, group: Codes) -> Words:
        """Tag groups."""
        return self._pairs(unit, group)[:, 0]

    def rows(self, unit: Codes, group: Codes, rows: Words) -> Words:
        """Tag rows."""
        blocks = self._pairs(unit, group).copy()
        blocks[:, 1] ^= rows
        return _encrypted(self._row, blocks)[:, 0]

    def _pairs(self, unit: Codes, group: Codes) -> Words:
        blocks = np.empty((len(unit), 2), "<u8")
        blocks[:, 0] = unit.view(np.uint64)
        blocks[:, 1] = group.view(np.uint64)
        return _encrypted(self._pair, blocks)


def _ecb(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def _encrypted(cipher: Any, blocks: Words) -> Words:
    return np.frombuffer(cipher.update(blocks.reshape(-1).view(np.uint8).data), "<u8").reshape(-1, 2)


# Keys


@dataclass(frozen=True)
class Layout:
    """How a 64-bit key is laid out."""

    owner_bits: int
    code_bits: int = 0

    @staticmethod
    def of(owners: int, codes: int = 1) -> "Layout":
        """The layout for a number of owners and of codes."""
        owner_bits, code_bits = (owners - 1).bit_length(), (codes - 1).bit_length()
        if owner_bits + code_bits > 64:
            raise too_many()
        return Layout(owner_bits, code_bits)

    def pack(self, owner: Codes, tag: Words, code: Codes | None = None) -> Words:
        """Make keys; a shift by the full 64 bits gives 0."""
        keys = tag >> np.uint64(self.owner_bits + self.code_bits)
        keys <<= np.uint64(self.code_bits)
        keys |= owner.view(np.uint64) << np.uint64(64 - self.owner_bits)
        if code is not None:
            keys |= code.view(np.uint64)
        return keys

    def owner(self, keys: Words) -> Codes:
        """Return the owners of keys."""
        return (keys >> np.uint64(64 - self.owner_bits)).view(np.int64)

    def first(self, ordered: Words) -> Places:
        """Return where each owner's sorted keys begin."""
        begins = np.ones(len(ordered), np.bool_)
        for piece in pieces(len(ordered)):
            begins[piece] = starts(self.owner(ordered[piece]))
            if piece.start:
                begins[piece.start] = self.owner(ordered[piece.start]) != self.owner(ordered[piece.start - 1])
        return np.flatnonzero(begins)

    def lowest(self, keys: Words) -> Words:
        """Return the lowest key with the owner and the cut tag of each key."""
        return keys >> np.uint64(self.code_bits) << np.uint64(self.code_bits)

    def same_tag(self, keys: Words, others: Words) -> Mask:
        """Return where keys of one owner agree in the cut tag."""
        return np.equal(self.lowest(keys), self.lowest(others))


def too_many() -> InputError:
    """The refusal where owners and codes do not fit one key."""
    return InputError("There are too many rows for one pass: bound them in parts, each with all rows of its units.")


@dataclass(frozen=True)
class Cut:
    """Where each owner's keys are cut: those up to `last[owner]` are in.

    Of a contested owner the keys that tie with its last are in doubt, and as many of them as its quota are in.
    """

    layout: Layout
    last: Words
    contested: Codes
    quotas: Codes

    def mask(self, owner: Codes, keys: Words) -> Mask:
        """Return which keys are not beyond their owner's last."""
        mask = np.empty(len(keys), np.bool_)
        for piece in pieces(len(keys)):
            np.less_equal(keys[piece], self.last.take(owner[piece], mode="clip"), out=mask[piece])
        return mask

    def in_doubt(self, owner: Codes, keys: Words) -> Places:
        """Return where a key ties with the last of a contested owner."""
        if not len(self.contested):
            return np.empty(0, np.intp)
        contested = np.zeros(len(self.last), np.bool_)
        contested[self.contested] = True
        at = np.flatnonzero(contested.take(owner, mode="clip"))
        return at[self.layout.same_tag(keys[at], self.last[owner[at]])]

    def quota(self, owner: Codes) -> Codes:
        """Return the quota of owners that are contested."""
        return self.quotas.take(np.searchsorted(self.contested, owner))


def cut(items: Words, owners: int, limit: int, layout: Layout) -> Cut:
    """Cut after the first `limit` of each owner's sorted items."""
    first = layout.first(items)
    first = first[np.diff(first, append=len(items)) > limit]
    crowded, edge = layout.owner(items[first]), items[first + limit - 1]
    last = np.full(owners, np.iinfo(np.uint64).max)
    last[crowded] = edge
    tied = layout.same_tag(edge, items[first + limit])
    above = np.searchsorted(items, layout.lowest(edge[tied])) - first[tied]
    return Cut(layout, last, crowded[tied], limit - above)


def settled(owner: Codes, quota: Codes, *ranks: NDArray[Any], distinct: bool) -> Mask:
    """Return which rows are among the first `quota` of their owner by the ranks, the most important first.

    If `distinct`, rows that agree in all ranks count as one.
    """
    order = np.lexsort([*reversed(ranks), owner])
    ordered = owner[order]
    step = np.ones(len(order), np.bool_)
    if distinct:
        step = np.any([starts(column[order]) for column in (owner, *ranks)], axis=0)
    count = np.cumsum(step)
    mask = np.empty(len(order), np.bool_)
    mask[order] = count - count[np.searchsorted(ordered, ordered)] < quota[order]
    return mask

"""Columns that break ties among a unit's rows, hashed to 64 bits; and the keys that the secret gives to each choice.

Questions about one table with the same keys and limits retain the same rows, whatever they sum or average: answers fit
together, and the rows that were retained for one question are there for the next. So besides the columns that a
question asks about, all numbers with declared bounds break ties, and it does not matter what was asked before. Reading
them pays only if they are few and of one table: in joins and sub-queries, only the columns asked about break ties.

A column that is read within its bounds (`query.beyond`) tells rows apart where it differs from the column itself, and
nowhere else: without values beyond the bounds, such questions retain the same rows as all others.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.query.expression import Name
from noisette.query.kind import Kind
from noisette.query.measure import Request
from noisette.query.plan import Relation, Scan, Where
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.query.variants import plain

__all__ = [
    "NULL",
    "TieBreak",
    "choice_key",
    "join_seed",
    "mix_of",
    "narrowest",
    "own_places",
    "tie_breakers",
    "words_of",
]

Words = NDArray[np.uint64]

_FEW = 8  # columns that are read only to break ties
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
_HALF = np.uint64(32)

NULL = -(2**63)
"""Stands for NULL among whole numbers: clean ones are larger."""


def tie_breakers(request: Request, asked: Collection[str], schema: Schema) -> tuple[str, ...]:
    """The columns that break ties, in the order of the relation.

    >>> from fractions import Fraction
    >>> from noisette.query.schema import Column, Limits, Table
    >>> stay = Column("stay", Kind("integer", Fraction(0), Fraction(90)))
    >>> columns = (*(Column(name, Kind("text")) for name in ("id", "ward", "note")), stay)
    >>> request = Request(Scan("visits", "v"), (Name("v.ward"),), (None,), (), Limits(rows=1))
    >>> schema = {"visits": Table("visits", columns, unit="id")}
    >>> tie_breakers(request, (), schema), tie_breakers(request, {"v.ward", "v.note"}, schema)
    (('v.stay',), ('v.note', 'v.stay'))
    """
    scope = shape_of(request.source, schema).columns
    same = {key.name for key in request.keys if isinstance(key, Name)}
    scan = _only_table(request.source)
    if scan is not None:
        same.add(f"{scan.alias}.{schema[scan.table].unit_column}")
    numbers = {name for name, kind in scope.items() if kind.number and kind.bounded and name == plain(name)} - same
    more = numbers if scan is not None and len(numbers) <= _FEW else set()
    return tuple(name for name in scope if name not in same and (name in asked or name in more))


def _only_table(relation: Relation) -> Scan | None:
    """The table whose rows these are, one for one."""
    match relation:
        case Scan():
            return relation
        case Where(source):
            return _only_table(source)
        case _:
            return None


def own_places(ties: Sequence[str]) -> tuple[int | None, ...]:
    """For each tie-breaking column that is read within its bounds the place of the column itself, if it is there.

    >>> own_places(["t1.age", "t1 within.age", "t1 within.day"])
    (None, 0, None)
    """
    return tuple(ties.index(plain(name)) if plain(name) != name and plain(name) in ties else None for name in ties)


# What the secret gives to each choice


def choice_key(secret: bytes) -> bytes:
    """The key by which the rows of a unit are chosen (`bounding`)."""
    return hashlib.sha256(b"noisette: which rows of a unit are kept" + secret).digest()[:16]


def mix_of(secret: bytes) -> np.uint64:
    """The odd number by which the columns of a row become one word."""
    digest = hashlib.sha256(b"noisette: what tells rows apart" + secret).digest()
    return np.uint64(int.from_bytes(digest[:8], "big") | 1)


def join_seed(secret: bytes) -> int:
    """The number that is hashed with each row that a join may retain."""
    return int.from_bytes(hashlib.sha256(b"noisette: which rows a join retains" + secret).digest()[:7], "big")


# Columns as words


def narrowest(kind: Kind) -> str | None:
    """The smallest type that holds the clean integers of a kind, where that is less than 64 bits.

    >>> from fractions import Fraction
    >>> narrowest(Kind("integer", Fraction(0), Fraction(120)))
    'TINYINT'
    """
    if kind.type != "integer" or kind.low is None or kind.high is None:
        return None
    size = max(-int(kind.low), int(kind.high) + 1)
    return next((name for name, bits in (("TINYINT", 7), ("SMALLINT", 15), ("INTEGER", 31)) if size <= 1 << bits), None)


def words_of(found: pyarrow.Array | pyarrow.ChunkedArray) -> Words:
    """A column as 64-bit words: equal words for equal clean values, and one that none of them has for NULL."""
    if pyarrow.types.is_date32(found.type):
        found = found.cast(pyarrow.int32())
    if not pyarrow.types.is_floating(found.type) and (found.null_count or not pyarrow.types.is_integer(found.type)):
        found = found.cast(pyarrow.int64())
    if found.null_count:
        found = found.fill_null(np.nan if pyarrow.types.is_floating(found.type) else NULL)
    return _words(np.asarray(found.to_numpy(zero_copy_only=False)))


@dataclass(frozen=True)
class TieBreak:
    """One word for each row, made of all tie-breaking columns and computed on demand; of several columns a hash.

    Rows with equal words are alike to the choice. `mix` is odd and secret, so that nobody can write two rows with equal
    words, which could let the order of the table decide.

    >>> words = TieBreak((np.array([1, 1, 2, 1]), np.array([2.5, 1.5, 1.5, 2.5])))
    >>> len(set(words[:].tolist())), len(words[1:])
    (3, 3)
    """

    columns: tuple[NDArray[Any], ...]
    mix: np.uint64 = _MIX
    own: tuple[int | None, ...] = ()  # for each column that is read within its bounds, the place of the column itself

    @property
    def dtype(self) -> np.dtype[np.uint64]:
        """As arrays have it."""
        return np.dtype(np.uint64)

    @property
    def shape(self) -> tuple[int, ...]:
        """As arrays have it."""
        return self.columns[0].shape

    def __getitem__(self, at: slice | NDArray[np.intp]) -> Words:
        pairs = list(zip(self.columns, self.own or (None,) * len(self.columns), strict=True))
        first, *others = (column for column, own in pairs if own is None)
        content = _words(first[at]).copy()
        for column in others:
            content *= self.mix
            content ^= content >> _HALF
            content ^= _words(column[at])
        for number, (column, own) in enumerate(pairs):
            if own is not None:
                differs = _words(column[at]) != _words(self.columns[own][at])
                content[differs] ^= np.array([2 * number + 1], np.uint64) * self.mix
        return content


def _words(numbers: NDArray[Any]) -> Words:
    return (numbers if numbers.dtype.itemsize == 8 else numbers.astype(np.int64)).view(np.uint64)

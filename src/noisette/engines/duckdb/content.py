"""What tells the rows of a unit in one group apart: which columns, and one 64-bit word made of them for each row.

Questions about one table with the same keys and limits should keep the same rows, whatever they sum or average: then
answers fit together, and the rows that were kept for one are there for the next. So besides the columns that a question
asks about, all numbers with declared bounds decide, and no matter what was asked before. To read them although nobody
asked pays only while they are few, and of one table: of joins and sub-queries, the columns asked about decide.
"""

from collections.abc import Collection
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

__all__ = ["NULL", "Apart", "narrowest", "telling", "words_of"]

Words = NDArray[np.uint64]

_FEW = 8  # columns that are read although nobody asked for them
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
_HALF = np.uint64(32)

NULL = -(2**63)
"""Stands for NULL among whole numbers: clean ones are larger."""


def telling(request: Request, asked: Collection[str], schema: Schema) -> tuple[str, ...]:
    """The columns that tell rows apart, in the order of the relation.

    >>> from fractions import Fraction
    >>> from noisette.query.schema import Column, Limits, Table
    >>> stay = Column("stay", Kind("integer", Fraction(0), Fraction(90)))
    >>> columns = (*(Column(name, Kind("text")) for name in ("id", "ward", "note")), stay)
    >>> request = Request(Scan("visits", "v"), (Name("v.ward"),), (None,), (), Limits(rows=1))
    >>> schema = {"visits": Table("visits", columns, unit="id")}
    >>> telling(request, (), schema), telling(request, {"v.ward", "v.note"}, schema)
    (('v.stay',), ('v.note', 'v.stay'))
    """
    scope = shape_of(request.source, schema).columns
    same = {key.name for key in request.keys if isinstance(key, Name)}
    scan = _only_table(request.source)
    if scan is not None:
        same.add(f"{scan.alias}.{schema[scan.table].unit}")
    numbers = {name for name, kind in scope.items() if kind.number and kind.bounded} - same
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
class Apart:
    """One word of all the columns of each row, computed where it is looked at: of several columns a hash.

    Rows with one word are alike to whoever chooses among them. `mix` is odd and secret, so that nobody can write two
    rows with one word, which could let the order of the table decide.

    >>> apart = Apart((np.array([1, 1, 2, 1]), np.array([2.5, 1.5, 1.5, 2.5])))
    >>> len(set(apart[:].tolist())), len(apart[1:])
    (3, 3)
    """

    columns: tuple[NDArray[Any], ...]
    mix: np.uint64 = _MIX

    @property
    def dtype(self) -> np.dtype[np.uint64]:
        """As arrays have it."""
        return np.dtype(np.uint64)

    @property
    def shape(self) -> tuple[int, ...]:
        """As arrays have it."""
        return self.columns[0].shape

    def __getitem__(self, at: slice | NDArray[np.intp]) -> Words:
        first, *others = self.columns
        content = _words(first[at]).copy()
        for column in others:
            content *= self.mix
            content ^= content >> _HALF
            content ^= _words(column[at])
        return content


def _words(numbers: NDArray[Any]) -> Words:
    return (numbers if numbers.dtype.itemsize == 8 else numbers.astype(np.int64)).view(np.uint64)

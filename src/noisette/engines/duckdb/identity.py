"""Numbers that say exactly which rows are of one unit, without holding the value of each row.

Values are compared as they are, by Arrow's dictionaries. They come in pieces; whenever as many wait as are known, or a
batch of them, they are numbered together with the known ones, which come first and so retain their numbers. What is
held are the different values, a number for each row, and those that wait: in all no more work than to number all rows
at once, and less memory, which costs more than the work.
"""

import numpy as np
import pyarrow
from numpy.typing import NDArray

__all__ = ["Identities", "bytes_of", "in_order"]

_WAITING = 1 << 17  # values that are numbered at once, at least


class Identities:
    """The numbers of values from 0: equal values have equal numbers, and different values different ones.

    >>> found = Identities()
    >>> found.append(pyarrow.array(["b", "a", "b"]))
    >>> found.append(bytes_of(pyarrow.array(["a", "c"])))
    >>> found.whole()
    array([0, 1, 0, 1, 2])
    """

    def __init__(self) -> None:
        self._known: list[pyarrow.Array] = []
        self._waiting: list[pyarrow.Array] = []
        self._rows = 0
        self._numbers: list[NDArray[np.int32]] = []
        self._missing = False

    def append(self, piece: pyarrow.Array) -> None:
        """Add the next values; after a NULL there are no numbers any more."""
        self._missing = self._missing or piece.null_count > 0
        self._waiting.append(piece)
        self._rows += len(piece)
        if self._missing:
            self._waiting, self._known = [], []
        elif self._rows > max(_WAITING, sum(map(len, self._known))):
            self._number()

    def _number(self) -> None:
        pieces = self._known + self._waiting
        if len({piece.type for piece in pieces}) > 1:
            pieces = [piece.cast(pyarrow.binary()) for piece in pieces]
        encoded = pyarrow.chunked_array(pieces).dictionary_encode().chunks  # they share one dictionary
        self._numbers += [piece.indices.to_numpy() for piece in encoded[len(self._known) :]]
        self._known, self._waiting, self._rows = [piece.dictionary for piece in encoded[:1]], [], 0

    def whole(self) -> NDArray[np.int64] | None:
        """The numbers of all values; None if one was NULL."""
        if self._missing:
            return None
        if self._waiting:
            self._number()
        return np.concatenate([np.empty(0, np.int64), *self._numbers])


def bytes_of(values: pyarrow.Array) -> pyarrow.Array:
    """Texts that have one length as their bytes, which are where they were; other values as they are."""
    if not pyarrow.types.is_string(values.type) or values.null_count or not len(values):
        return values
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    width = int(ends[1] - ends[0])
    if not width or np.any(np.diff(ends) != width):
        return values
    whole = data.slice(int(ends[0]), len(values) * width)
    return pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(width), len(values), [None, whole])


def in_order(values: pyarrow.Array, order: NDArray[np.intp]) -> pyarrow.Array:
    """Some values, in that order; bytes of one width by NumPy, whose memory has fewer page faults."""
    if not pyarrow.types.is_fixed_size_binary(values.type):
        return values.take(pyarrow.array(order))
    rows = np.frombuffer(values.buffers()[1], f"V{values.type.byte_width}", len(values)).take(order)
    return pyarrow.FixedSizeBinaryArray.from_buffers(values.type, len(rows), [None, pyarrow.py_buffer(rows)])

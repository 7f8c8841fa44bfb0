"""A set of records on disk, in sorted runs: what is in memory is one batch of them.

A record is an id and a report. Of each id the two least different records are kept: one is a report, and two say that
the id was used for different ones. The least of a union do not depend on order or grouping, so neither does the set.
"""

import tempfile
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from noisette.local.wire import ID, Rows

__all__ = ["SortedRuns", "is_run", "on_disk", "pieces"]

_BYTES = 1 << 24  # bytes sorted at once


class SortedRuns:
    """Records of one size, and their union.

    >>> runs = SortedRuns(ID + 1, batch=2)
    >>> runs.add(np.array([[9] * 17, [1] * 17, [9] * 17, [4] * 17], np.uint8))
    >>> [row[0] for row in runs.united().tolist()]
    [1, 4, 9]
    """

    def __init__(self, size: int, batch: int | None = None) -> None:
        self.size, self.batch = size, batch or 1 + _BYTES // size
        self._runs: list[Rows] = []
        self._recent: list[Rows] = []
        self._waiting = 0

    def add(self, rows: Rows) -> None:
        """Add records in any order."""
        self._recent.append(rows)
        self._waiting += len(rows)
        if self._waiting >= self.batch:
            self._sort_recent()

    def include(self, run: Rows) -> None:
        """Add a run that is sorted."""
        if len(run):
            self._runs.append(run)

    def _sort_recent(self) -> None:
        if self._waiting:
            self._runs.append(on_disk([_distinct(np.concatenate(self._recent))], self.size))
            self._recent, self._waiting = [], 0

    def united(self) -> Rows:
        """Return all records, sorted, as a file that is mapped into memory."""
        self._sort_recent()
        if len(self._runs) > 1:
            self._runs = [on_disk(self._merged(), self.size)]
        return self._runs[0] if self._runs else np.zeros((0, self.size), np.uint8)

    def _merged(self) -> Iterator[Rows]:
        """Merge the runs between cuts, so that at most about two batches lie between two of them."""
        step = max(1, self.batch // len(self._runs))
        cuts = np.sort(_keys(np.concatenate([run[step::step] for run in self._runs])))[:: len(self._runs)]
        rows = cuts.copy().view(np.uint8).reshape(-1, self.size)
        rows[:, ID:] = 0  # all records of one id lie on one side
        ends = [np.searchsorted(_keys(run), _keys(rows)) for run in self._runs]
        bounds = [np.concatenate([[0], end, [len(run)]]) for run, end in zip(self._runs, ends, strict=True)]
        for i in range(len(rows) + 1):
            parts = [run[b[i] : b[i + 1]] for run, b in zip(self._runs, bounds, strict=True)]
            yield _distinct(np.concatenate(parts))

    def batches(self) -> Iterator[tuple[Rows, NDArray[np.bool_]]]:
        """Return all records, and for each whether it is the only one of its id."""
        rows, first = self.united(), 0
        while first < len(rows):
            last = min(first + self.batch, len(rows))
            if last < len(rows) and (rows[last - 1, :ID] == rows[last, :ID]).all():
                last += 1
            some = np.asarray(rows[first:last])
            same = (some[1:, :ID] == some[:-1, :ID]).all(axis=1)
            yield some, ~(np.append(same, False) | np.insert(same, 0, False))
            first = last


def on_disk(batches: Iterator[Rows] | list[Rows], size: int) -> Rows:
    """Write records to a file without a name and return them mapped into memory; the file ends with its last use."""
    with tempfile.TemporaryFile() as file:
        for rows in batches:
            file.write(rows.tobytes())
        file.flush()
        return np.memmap(file, np.uint8, "r").reshape(-1, size) if file.tell() else np.zeros((0, size), np.uint8)


def pieces(rows: Rows, *, overlap: int = 0) -> Iterator[Rows]:
    """Rows in pieces that fit into memory; each begins with that many rows of the one before."""
    step = 1 + _BYTES // rows.shape[1]
    for at in range(0, len(rows), step):
        yield np.asarray(rows[max(0, at - overlap) : at + step])


def is_run(rows: Rows) -> bool:
    """Whether records are sorted and distinct, with at most two of each id.

    >>> is_run(np.array([[1] * 17, [4] * 17], np.uint8)), is_run(np.array([[4] * 17, [1] * 17], np.uint8))
    (True, False)
    """

    def fine(some: Rows) -> bool:
        keys, ids = _keys(some), _keys(some[:, :ID])
        return bool((keys[1:] > keys[:-1]).all() and (ids[2:] != ids[:-2]).all())

    return all(fine(some) for some in pieces(rows, overlap=2))


def _keys(rows: Rows) -> NDArray[np.bytes_]:
    """Records as texts of one length, which are compared byte by byte."""
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]


def _distinct(rows: Rows) -> Rows:
    """Sort records and drop those that are equal, and all but the first two of an id."""
    keys = np.sort(_keys(rows)) if len(rows) else _keys(np.zeros((0, rows.shape[1]), np.uint8))
    found = keys[np.insert(keys[1:] != keys[:-1], 0, True)] if len(keys) else keys
    once = found.view(np.uint8).reshape(-1, rows.shape[1])
    same = (once[1:, :ID] == once[:-1, :ID]).all(axis=1)
    return np.asarray(once[np.concatenate([np.ones(min(2, len(once)), bool), ~(same[1:] & same[:-1])])])

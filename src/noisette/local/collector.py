"""Collect the reports of a round: files and streams in any order, by any number of collectors, each report once.

What a collector keeps is the sorted set of (id, report). Unions of sets are the same in any order and grouping; so are
saved partial aggregates, byte for byte, and a file that is read twice changes no estimate. Counts alone could not do
that: where two collectors received the same record, one of them must be taken back, so ids must be kept, 16 bytes each.
They are kept on disk, in sorted runs. Memory holds one batch and the counts, so it grows with the domain and not with
users. A Bloom filter would need less, but it loses reports, and two of them do not say what both have counted.

Rejected are
    malformed       bytes that are no undamaged record: each stretch of a stream, or line of a text, counts once
    foreign         records of another protocol, version or round
    out of domain   reports that no client of the protocol can have made
    conflicting     ids that came with different reports: which of them is true cannot be known, so none counts
The rest is not biased, since what is rejected never depends on the value of a client that follows the protocol.

Clients that make up ids cannot be detected: somebody who sends a thousand reports counts as a thousand people.
"""

import base64
import binascii
import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from noisette.local.contract import Aggregate
from noisette.local.partial import COUNTED, is_partial, read_partial, write_partial
from noisette.local.sorted_runs import SortedRuns
from noisette.local.wire import BODY, ID, OVERHEAD, Round, Rows, in_bytes, sound

__all__ = ["Collected", "Collector"]

_CHUNK = 1 << 23  # bytes that are read at once
_LONGEST = 1 << 17  # bytes: no record is longer, even in base64
_TEXT = re.compile(rb"[A-Za-z0-9+/=\s]*")


@dataclass(frozen=True)
class Collected:
    """What was collected: an aggregate of the reports that count, how many came again, and how many were rejected."""

    round: Round
    aggregate: Aggregate
    repeated: int
    rejected: dict[str, int]

    def estimate(self) -> Any:
        """Return the estimate: `Shares`, `Mean`, `VectorMean`, `Distribution` or `MeanPlace`, as the protocol says."""
        return self.round.protocol.estimate(self.aggregate)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return the estimate as a table with error bars, values by their names; without rows if nobody reported."""
        rows: list[dict[str, Any]] = self.estimate().rows(level) if self.aggregate.people else []
        names = self.round.values
        return rows if names is None else [row | {"value": names[row["value"]]} for row in rows]


class Collector:
    """Reads records of one round, from files, streams and other collectors.

    >>> from noisette.local import GRR
    >>> survey = Round(GRR(1, domain=3))
    >>> record, other = survey.encode([2]), survey.encode([0])
    >>> collector = Collector(survey)
    >>> collector.add(record + other + record + b"noise")
    >>> found = collector.result()
    >>> found.aggregate.people, found.repeated, found.rejected["malformed"]
    (2, 1, 1)
    """

    def __init__(self, survey: Round, *, batch: int | None = None) -> None:
        self.round = survey
        self.counts = Counter(dict.fromkeys(COUNTED, 0))
        self._runs = SortedRuns(ID + survey.report_bytes, batch)

    def add(self, records: bytes) -> None:
        """Count records, or lines of base64."""
        self.read(io.BytesIO(in_bytes(records)))

    def read(self, stream: BinaryIO) -> None:
        """Count the records of a stream of any length, or a saved partial aggregate.

        A partial aggregate that is refused leaves what was collected as it was.
        """
        left = in_bytes(stream.read(_CHUNK))
        if is_partial(left):
            counts, run = read_partial(self.round, left, stream)
            self.counts.update(counts)
            self._runs.include(run)
            return
        count = self._lines if self._is_text(left) else self._records
        while more := stream.read(_CHUNK):
            left = count(left, last=False) + more
        count(left, last=True)

    def save(self, stream: BinaryIO) -> None:
        """Write a partial aggregate: the same bytes for the same records, read in any order."""
        write_partial(self.round, dict(self.counts), self._runs.united(), stream)

    def result(self) -> Collected:
        """Return what was collected so far."""
        aggregate, people, conflicting = self.round.protocol.empty(), 0, 0
        for rows, alone in self._runs.batches():
            aggregate.add(self.round.reports(rows[alone, ID:]))
            conflicting += (len(rows) - int(alone.sum())) // 2
            people += len(rows)
        rejected = {reason: self.counts[reason] for reason in COUNTED[1:]}
        return Collected(self.round, aggregate, self.counts["read"] - people, rejected | {"conflicting": conflicting})

    def _is_text(self, start: bytes) -> bool:
        """Whether a stream that starts like this has lines of base64: a damaged byte must not decide it."""
        lines, records = start.count(base64.b64encode(self.round.header[:9])), start.count(self.round.header)
        return lines > records if lines or records else _TEXT.fullmatch(start) is not None

    def _lines(self, text: bytes, *, last: bool) -> bytes:
        """Count records in base64, except a last line that may be incomplete; that one is returned."""
        size, records = self.round.record_bytes, []
        whole, _, rest = (text, b"", b"") if last else text.rpartition(b"\n")
        for line in filter(None, map(bytes.strip, whole.splitlines())):
            record = _decoded(line)
            if len(record) == size and record.startswith(self.round.header):
                records.append(record)
            else:
                self.counts["foreign" if sound(record) else "malformed"] += 1
        rows = np.frombuffer(b"".join(records), np.uint8).reshape(-1, size)
        fine = self.round.sound_rows(rows)
        self.counts["malformed"] += len(rows) - int(fine.sum())
        self._keep(rows[fine, BODY])
        if len(rest) <= _LONGEST:
            return rest
        self.counts["malformed"] += 1
        return b""

    def _records(self, data: bytes, *, last: bool) -> bytes:
        """Count the records in bytes, wherever they begin; what may be the start of another one is returned."""
        size, end = self.round.record_bytes, 0
        found = (match.start() for match in re.finditer(re.escape(self.round.header), data))
        starts = np.fromiter((at for at in found if at + size <= len(data)), np.int64)
        for some in np.array_split(starts, 1 + len(starts) * size // _CHUNK):
            rows = _rows(data, some, size)
            fine = self.round.sound_rows(rows)
            fine[fine] = _apart(some[fine], size, end)
            self._keep(rows[fine, BODY])
            edges = np.concatenate([[end], some[fine] + size])
            for i in np.flatnonzero(edges[:-1] < some[fine]):
                self._between(data[edges[i] : some[fine][i]])
            end = int(edges[-1])
        return self._between(data[end:], last=last)

    def _between(self, data: bytes, *, last: bool = True) -> bytes:
        """Count what lies between records of this round: foreign ones, and stretches that are malformed."""
        at = 0
        while 0 <= at < len(data):
            size = OVERHEAD + int.from_bytes(data[at + 1 : at + 3], "little")
            known = sound(data[at : at + size])
            if not (known or last) and len(data) - at <= _LONGEST:
                return data[at:]
            self.counts["foreign" if known else "malformed"] += 1
            at = at + size if known else data.find(self.round.header, at + 1)
        return b""

    def _keep(self, bodies: Rows) -> None:
        """Keep ids and reports that are possible."""
        fine = self.round.possible(bodies[:, ID:])
        self.counts["out of domain"] += len(fine) - int(fine.sum())
        self.counts["read"] += int(fine.sum())
        self._runs.add(bodies[fine])


def _decoded(line: bytes) -> bytes:
    try:
        return binascii.a2b_base64(line, strict_mode=True)
    except binascii.Error:
        return b""


def _rows(data: bytes, starts: NDArray[np.int64], size: int) -> Rows:
    if not len(starts):
        return np.zeros((0, size), np.uint8)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), size)[starts])


def _apart(starts: NDArray[np.int64], size: int, end: int) -> NDArray[np.bool_]:
    """Which records begin after the one before has ended: a report may look as if another record began within it."""
    if (np.diff(starts, prepend=end - size) >= size).all():
        return np.ones(len(starts), bool)
    kept = np.zeros(len(starts), bool)
    for i, start in enumerate(starts.tolist()):
        if start >= end:
            kept[i], end = True, start + size
    return kept

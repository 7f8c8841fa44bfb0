"""Partial aggregates as files: a line of JSON with the round and the counts, then the sorted records.

Whoever can write a file can write its checksum too, so what is read is checked: the counts, the order of the records,
and that each report is possible. A file that no collector can have written is refused when it is read, and changes
nothing.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from noisette.errors import InputError
from noisette.local.sorted_runs import is_run, on_disk, pieces
from noisette.local.wire import ID, Round, Rows

__all__ = ["COUNTED", "is_partial", "read_partial", "round_in", "write_partial"]

COUNTED = ("read", "malformed", "foreign", "out of domain")
"""The names of the counts: the records that were read, and those that were rejected, by reason."""

_START = b'{"format":"noisette partial aggregate"'
_BATCH = 1 << 18
_MOST = 2**63 - 1  # records
_DAMAGED = "This partial aggregate is damaged: write it again from its reports."
_UNLIKELY = (
    "This partial aggregate has counts, records or an order that no collector writes: write it again from its reports."
)


def is_partial(start: bytes) -> bool:
    """Return whether a file that starts like this is a partial aggregate."""
    return start.startswith(_START)


def write_partial(survey: Round, counts: dict[str, int], rows: Rows, stream: BinaryIO) -> None:
    """Write a partial aggregate."""
    said: dict[str, Any] = {"version": 1, "round": json.loads(survey.to_json()), "counts": dict(sorted(counts.items()))}
    said["records"] = len(rows)
    digest = hashlib.sha256(_text(said))
    for at in range(0, len(rows), _BATCH):
        digest.update(rows[at : at + _BATCH].tobytes())
    stream.write(_START + b"," + _text(said | {"sha256": digest.hexdigest()})[1:] + b"\n")
    for at in range(0, len(rows), _BATCH):
        stream.write(rows[at : at + _BATCH].tobytes())


def _text(said: dict[str, Any]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()


def _head(start: bytes) -> tuple[Round, dict[str, Any], bytes]:
    """The round, the line of JSON, and what follows it."""
    line, _, rest = start.partition(b"\n")
    try:
        said = json.loads(line)
        return Round.from_json(json.dumps(said["round"])), said, rest
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InputError(_DAMAGED) from None


def round_in(start: bytes) -> Round:
    """Return the round of a partial aggregate that starts like this, or of a round file."""
    return _head(start)[0] if is_partial(start) else Round.from_json(start)


def read_partial(survey: Round, start: bytes, stream: BinaryIO) -> tuple[dict[str, int], Rows]:
    """Read a partial aggregate whose first bytes are given; one that no collector of the round wrote is refused."""
    found, said, rest = _head(start)
    if found != survey:
        raise InputError("A partial aggregate is of another round: merge those of one round only.")
    stated = said.pop("sha256", None)
    digest = hashlib.sha256(_text({name: x for name, x in said.items() if name != "format"}))

    def batches() -> Iterator[Rows]:
        part = rest
        while part:
            digest.update(part)
            yield np.frombuffer(part, np.uint8)
            part = stream.read(_BATCH)

    try:
        rows = on_disk(batches(), ID + survey.report_bytes)
        fine = (said["version"], said["records"], stated) == (1, len(rows), digest.hexdigest())
        counts = said["counts"]
    except (ValueError, LookupError, TypeError):
        raise InputError(_DAMAGED) from None
    if not fine:
        raise InputError(_DAMAGED)
    possible = is_run(rows) and all(survey.possible(some[:, ID:]).all() for some in pieces(rows))
    if not (possible and _are_counts(counts) and counts["read"] >= len(rows)):
        raise InputError(_UNLIKELY)
    return counts, rows


def _are_counts(counts: Any) -> bool:
    """Whether these are whole numbers of records, by the names that collectors count.

    >>> _are_counts(dict.fromkeys(COUNTED, 3)), _are_counts(dict.fromkeys(COUNTED, -1)), _are_counts({"read": 3})
    (True, False, False)
    """
    named = isinstance(counts, dict) and set(counts) == set(COUNTED)
    return named and all(type(count) is int and 0 <= count <= _MOST for count in counts.values())

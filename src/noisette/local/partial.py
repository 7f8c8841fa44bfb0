"""Partial aggregates as files: a line of JSON with the round and the counts, then the sorted records."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from noisette.errors import InputError
from noisette.local.sorted_runs import on_disk
from noisette.local.wire import ID, Round, Rows

__all__ = ["is_partial", "read_partial", "round_in", "write_partial"]

_START = b'{"format":"noisette partial aggregate"'
_BATCH = 1 << 18
_DAMAGED = "This partial aggregate is damaged: write it again from its reports."


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
    except (ValueError, LookupError, TypeError):
        raise InputError(_DAMAGED) from None


def round_in(start: bytes) -> Round:
    """Return the round of a partial aggregate that starts like this, or of a round file."""
    return _head(start)[0] if is_partial(start) else Round.from_json(start)


def read_partial(survey: Round, start: bytes, stream: BinaryIO) -> tuple[dict[str, int], Rows]:
    """Read a partial aggregate whose first bytes are given; one that is damaged or of another round is refused."""
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
        counts = {str(name): int(count) for name, count in said["counts"].items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InputError(_DAMAGED) from None
    if not fine:
        raise InputError(_DAMAGED)
    return counts, rows

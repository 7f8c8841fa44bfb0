"""Reports on the wire: a public `Round` says what is asked, and each report is a short record that belongs to it.

    byte 0          version, 0xD1; later ones will count up
    bytes 1-2       length of the report in bytes, R
    bytes 3-6       fingerprint: the first bytes of SHA-256 of the round's protocol, parameters and values
    bytes 7-10      number of the round
    bytes 11-26     id, 128 random bits; a client that sends again sends the same bytes
    R bytes         the report: its numbers, each in as many bits as its range needs, or a bit for each value
    last 4 bytes    CRC-32 of all bytes before

Whole numbers are little-endian, and the first number of a report has the lowest bits. A file of reports is one record
after the other, or a text with a record in base64 on each line.

The checksum keeps damage from bias: without it, a damaged report would count if it happens to be possible, and be
rejected otherwise. It is no proof of who sent a report.
"""

import base64
import hashlib
import json
import zlib
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, default, frozen, set_fields
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.affine_subsets import AffineSubsets
from noisette.local.bitsets import checked_sets, width
from noisette.local.contract import Collectable, Layout, as_reports, checked_reports
from noisette.local.density import SquareWave
from noisette.local.grr import GRR
from noisette.local.hadamard import HadamardResponse
from noisette.local.means import Duchi, Hybrid, Piecewise
from noisette.local.olh import OLH
from noisette.local.planar_laplace import PlanarLaplace
from noisette.local.projective import ProjectiveGeometry
from noisette.local.rappor import Rappor
from noisette.local.split_queries import SplitQueries
from noisette.local.subset import SubsetSelection
from noisette.local.unary import OUE, SUE
from noisette.local.vectors import PrivUnitG

__all__ = ["BODY", "ID", "KINDS", "OVERHEAD", "Round", "as_lines", "in_bytes", "sound"]

VERSION = 0xD1  # no text begins with it
ID = 16
_BEFORE_ID, _BEFORE_REPORT, _CHECKSUM = 11, 27, 4
BODY = slice(_BEFORE_ID, -_CHECKSUM)  # id and report
OVERHEAD = _BEFORE_REPORT + _CHECKSUM
_FORMAT = "noisette local round"
_LONGEST = 100_000_000  # characters of a round file

Rows: TypeAlias = NDArray[np.uint8]
KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(GRR, OUE, SUE, SubsetSelection, Rappor, OLH, AffineSubsets, HadamardResponse, ProjectiveGeometry),
        *(SplitQueries, Duchi, Piecewise, Hybrid, SquareWave, PrivUnitG, PlanarLaplace),
    )
}
"""The protocols whose reports can be collected, by name."""


def _number(value: int, name: str) -> int:
    if whole(value, name, least=0) >= 1 << 32:
        raise InputError(f"{name} must be below 2^32.")
    return int(value)


@frozen
class Round:
    """One collection: a protocol, a number, and what its values mean. It is public, and clients read it as JSON.

    >>> survey = Round(GRR(1, domain=3), number=7, values=("cat", "dog", "none"))
    >>> record = survey.encode([2])
    >>> len(record), survey.decode(record)
    (32, [2])
    >>> Round.from_json(survey.to_json()) == survey
    True
    """

    protocol: Collectable
    _: KW_ONLY
    number: Annotated[int, _number] = 1
    values: tuple[str, ...] | None = default(None)

    def __post_init__(self) -> None:
        if type(self.protocol) not in KINDS.values():
            raise InputError(f"protocol must be one of {', '.join(KINDS)}.")
        if self.values is not None:
            set_fields(self, values=tuple(map(str, self.values)))
            domain = getattr(self.protocol, "domain", None)
            if domain is None:
                raise InputError("values are names for a domain of values, which this protocol does not have.")
            if len(set(self.values)) != domain:
                raise InputError(f"values must be {domain} different names, one for each value.")

    # The round as JSON

    def _terms(self) -> dict[str, Any]:
        """What all reports of a round have in common, except its number."""
        given = {f.name: getattr(self.protocol, f.name) for f in fields(self.protocol)}  # type: ignore[arg-type]
        parameters = {name: str(x) if isinstance(x, Fraction) else x for name, x in given.items()}
        layout = {"bits": self.layout} if isinstance(self.layout, int) else {"limits": list(map(len, self.layout))}
        derived = {"derived": self.protocol.derived()} if self.protocol.derived() else {}
        values = None if self.values is None else list(self.values)
        said = {"format": _FORMAT, "version": 1, "protocol": type(self.protocol).__name__, "parameters": parameters}
        return said | layout | derived | {"values": values}

    @cached_property
    def fingerprint(self) -> bytes:
        """Four bytes by which reports of other protocols, parameters or values are known to be foreign."""
        text = json.dumps(self._terms(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).digest()[:4]

    def to_json(self) -> str:
        """Return the round as JSON, one line."""
        return json.dumps({**self._terms(), "round": self.number, "fingerprint": self.fingerprint.hex()})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Round":
        """Read a round; one with terms or a fingerprint that do not follow from its protocol is refused."""
        if len(text) > _LONGEST:
            raise InputError(f"A round file has at most {_LONGEST:,} characters: ask for fewer values.")
        try:
            found = json.loads(text)
            kind, given = KINDS[found["protocol"]], found["parameters"]
            made = cls(kind(**given), number=found["round"], values=found["values"] and tuple(found["values"]))
            same = found == json.loads(made.to_json())
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
            raise InputError("This is not a round file: write one with `noisette collect new`.") from None
        if not same:
            raise InputError("This round file was changed, or is of another version: write it again.")
        return made

    # Records

    @cached_property
    def layout(self) -> Layout:
        """The number of bits of a report, or the ranges of its numbers."""
        return self.protocol.layout

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many bits each number of a report takes."""
        layout = self.layout
        return () if isinstance(layout, int) else tuple((len(numbers) - 1).bit_length() for numbers in layout)

    @cached_property
    def report_bytes(self) -> int:
        """The length of a report."""
        return max(1, width(self.protocol.bits))

    @property
    def record_bytes(self) -> int:
        """The length of a record."""
        return OVERHEAD + self.report_bytes

    @cached_property
    def header(self) -> bytes:
        """What each record of this round begins with."""
        return b"%c%b%b%b" % (
            VERSION, self.report_bytes.to_bytes(2, "little"), self.fingerprint, self.number.to_bytes(4, "little")
        )  # fmt: skip

    def encode(self, reports: Any, rng: Random = SYSTEM) -> bytes:
        """Return the records of reports, with a new id for each.

        A client that sends a report again, because it does not know whether it arrived, sends the same record again.
        """
        packed = self._packed(as_reports(self.protocol, reports))
        rows = np.empty((len(packed), self.record_bytes), np.uint8)
        rows[:, :_BEFORE_ID] = np.frombuffer(self.header, np.uint8)
        rows[:, _BEFORE_ID:_BEFORE_REPORT] = rng.words(ID * len(rows), np.uint8).reshape(-1, ID)
        rows[:, _BEFORE_REPORT:-_CHECKSUM] = packed
        rows[:, -_CHECKSUM:] = _checksums(rows[:, :-_CHECKSUM])
        return rows.tobytes()

    def decode(self, records: bytes) -> list[Any]:
        """Return the reports of records; all must be of this round. `Collector` reads files that have others, too."""
        rows = np.frombuffer(in_bytes(records), np.uint8)
        if len(rows) % self.record_bytes:
            raise InputError("These are not whole records of this round.")
        rows = rows.reshape(-1, self.record_bytes)
        packed = rows[:, BODY][:, ID:]
        if not (self.sound_rows(rows) & self.possible(packed)).all():
            raise InputError("Some of these records are damaged, or of another round.")
        found = self.reports(packed).tolist()
        return found if found and isinstance(found[0], int) else [tuple(report) for report in found]

    def sound_rows(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows are undamaged records of this round."""
        mine = (rows[:, :_BEFORE_ID] == np.frombuffer(self.header, np.uint8)).all(axis=1)
        return np.asarray(mine & (rows[:, -_CHECKSUM:] == _checksums(rows[:, :-_CHECKSUM])).all(axis=1))

    def _packed(self, reports: NDArray[Any]) -> Rows:
        """Reports as bytes; what no client can have made is refused."""
        if isinstance(self.layout, int):
            return checked_sets(self.protocol, reports)
        numbers = checked_reports(self.protocol, reports, *self.layout).reshape(-1, len(self.widths))
        return self._bits(numbers - np.array([r.start for r in self.layout]))

    def _bits(self, numbers: NDArray[np.int64]) -> Rows:
        """Numbers side by side, each in as many bits as its range needs."""
        bits, at = np.zeros((len(numbers), 8 * self.report_bytes), np.uint8), 0
        for number, size in zip(numbers.T, self.widths, strict=True):
            places = np.ascontiguousarray(number, "<u8").view(np.uint8).reshape(-1, 8)
            bits[:, at : at + size] = np.unpackbits(places, axis=1, bitorder="little")[:, :size]
            at += size
        return np.packbits(bits, axis=1, bitorder="little")

    def reports(self, packed: Rows) -> NDArray[Any]:
        """Return reports from their bytes, as the protocol counts them."""
        if isinstance(self.layout, int):
            return packed
        numbers = self._numbers(packed) + np.array([r.start for r in self.layout])
        return np.asarray(numbers if len(self.widths) > 1 else numbers[:, 0])

    def _numbers(self, packed: Rows) -> NDArray[np.int64]:
        """The numbers in bytes, each counted from the start of its range."""
        bits = np.unpackbits(packed, axis=1, bitorder="little")
        numbers, at = np.zeros((len(packed), len(self.widths)), np.int64), 0
        for i, size in enumerate(self.widths):
            places = np.zeros((len(packed), 64), np.uint8)
            places[:, :size] = bits[:, at : at + size]
            numbers[:, i] = np.packbits(places, axis=1, bitorder="little").view("<i8")[:, 0]
            at += size
        return numbers

    def possible(self, packed: Rows) -> NDArray[np.bool_]:
        """Return which reports a client can have made: numbers in their ranges, unused bits 0, sets of one size."""
        fine = packed[:, -1] >> (self.protocol.bits - 1) % 8 + 1 == 0
        if isinstance(self.layout, int):
            return np.asarray(fine & self.protocol.possible(packed))
        return np.asarray(fine & (self._numbers(packed) < list(map(len, self.layout))).all(axis=1))


def in_bytes(records: bytes) -> bytes:
    """Return records, and refuse what is no bytes."""
    if not isinstance(records, bytes | bytearray | memoryview):
        raise InputError("Records are bytes: open files of reports in binary mode.")
    return records


def as_lines(records: bytes, size: int) -> str:
    """Return records of one size as base64, one on each line."""
    return "".join(f"{base64.b64encode(records[at : at + size]).decode()}\n" for at in range(0, len(records), size))


def _checksums(rows: Rows) -> Rows:
    """CRC-32 of each row, as bytes."""
    texts = np.ascontiguousarray(rows).tobytes()
    size = rows.shape[1]
    found = [zlib.crc32(texts[at : at + size]) for at in range(0, len(texts), size)]
    return np.array(found, "<u4").view(np.uint8).reshape(-1, 4)


def sound(record: bytes) -> bool:
    """Return whether bytes are one undamaged record of any round."""
    return (
        len(record) > OVERHEAD
        and record[0] >> 4 == VERSION >> 4  # other versions have the same first and last bytes
        and len(record) == OVERHEAD + int.from_bytes(record[1:3], "little")
        and zlib.crc32(record[:-_CHECKSUM]) == int.from_bytes(record[-_CHECKSUM:], "little")
    )

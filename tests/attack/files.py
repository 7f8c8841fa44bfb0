"""Odd files and frames: lines of CSV, bytes that are no text, files of different schemas, types that nobody expects.

Each is a world like those of `tables`, with the same tables and columns, so that the same questions can be asked of it.
Either its owner is told what to mend when opening it, or every question is answered, and moves by what is stated.
"""

import datetime
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet

from noisette.privacy import Neighbours

DAY = datetime.date(2020, 1, 1)
PUBLIC = {
    "p": {"public": True, "columns": {"f": {"bounds": [1, 3]}}},
    "q": {"public": True, "columns": {"f": {"bounds": [1, 3]}}},
}


def _others() -> dict[str, pyarrow.Table]:
    """The tables beside v, which are plain."""
    return {
        "l": pyarrow.table({"u": ["p1", "p2"], "k": [0, 1], "y": [1.0, 2.0]}),
        "p": pyarrow.table({"j": [0, 1, 2], "f": [1, 2, 3]}),
        "q": pyarrow.table({"g": ["a", "b"], "f": [1, 2]}),
    }


def _policy(columns: dict[str, Any], **rules: Any) -> dict[str, Any]:
    return {"tables": {"v": {**rules, "columns": columns}, "l": {"unit": "u", "rows": 2}, **PUBLIC}}


# Lines of CSV

TYPES = {"u": "text", "g": "text", "k": "integer", "x": "real", "d": "date", "b": "boolean"}
HEADER = b"u,g,k,x,d,b"
PLAIN = [
    b"p1,a,1,0.5,2020-01-01,true",
    b"p2,b,2,1.5,2020-01-02,false",
    b"p3,a,0,,2020-01-03,true",
    b"p1,b,1,2,2020-01-01,",
]
ODD = [
    b'p9,"a,1,0.5,2020-01-01,true',
    b'p9,a",1,0.5,2020-01-01,true',
    b'"p9,a,1,0.5,2020-01-01,true',
    b'p9,a,1,0.5,2020-01-01,"true',
    b'p9,"a"b,1,0.5,2020-01-01,true',
    b'p9,"a""b,1,0.5,2020-01-01,true',
    b'p9,a,1,0.5,2020-01-01,true"',
    b'p9,"a\\",1,0.5,2020-01-01,true',
    b"p9,a\x00b,1,0.5,2020-01-01,true",
    b"\x00",
    b"p9,\xff\xfe,1,0.5,2020-01-01,true",
    b"p9,\xc3,1,0.5,2020-01-01,true",
    b"p9,a,1,0.5,2020-01-01,true,more,and,more",
    b"p9",
    b"p9,,,,,",
    b",,,,,",
    b"p9,a,999999999999999999999,1e999,0000-00-00,maybe",
    b"p9,a,1,0.5,2020-01-01,true" + b" " * 70_000,
    b"p9," + b"a" * 300_000 + b",1,0.5,2020-01-01,true",
    b"p9," + "é".encode() * 40_000 + b",1,1,,",
    b"#p9,a,1,0.5,2020-01-01,true",
    b"p9;a;1;0.5;2020-01-01;true",
    b"p9\ta\t1",
    b"'p9,a,1,0.5,2020-01-01,true",
    b"\xef\xbb\xbfp9,a,1,1,,",
]


@dataclass(frozen=True)
class Lines:
    """A CSV file: a line is a row, and the victim's is one line."""

    before: tuple[bytes, ...]
    victim: tuple[bytes, ...]
    after: tuple[bytes, ...]
    other: tuple[bytes, ...]
    ends: tuple[bytes, ...]
    policy: dict[str, Any]

    def neighbours(self) -> dict[Neighbours, "Lines"]:
        """Without the victim's line, or with another one in its place."""
        return {
            Neighbours.ADD_REMOVE: replace(self, victim=()),
            Neighbours.REPLACE: replace(self, victim=self.other),
        }

    def smaller(self, question: str) -> Iterator["Lines"]:
        """Fewer lines around it."""
        for name in ("before", "after"):
            lines = getattr(self, name)
            for part in (lines[: len(lines) // 2], lines[1:], lines[:-1]):
                if len(part) < len(lines):
                    yield replace(self, **{name: part})
        if self.ends != (b"\n",):
            yield replace(self, ends=(b"\n",))

    def stored(self, folder: Path, engine: duckdb.DuckDBPyConnection) -> Any:
        """A file, and the other tables in memory."""
        lines = (HEADER, *self.before, *self.victim, *self.after)
        ends = [self.ends[i % len(self.ends)] for i in range(len(lines))]
        (folder / "v.csv").write_bytes(b"".join(line + end for line, end in zip(lines, ends, strict=True)))
        return {"v": str(folder / "v.csv"), **_others()}

    def __str__(self) -> str:
        shown = [line if len(line) < 200 else line[:40] + b" ... " + line[-40:] for line in self.victim]
        around = f"{len(self.before)} lines before and {len(self.after)} after it"
        return f"CSV, the victim's line {shown}, {around}; in its place {self.other}"


def random_lines(rng: random.Random) -> Lines:
    """Plain lines, and among them an odd one."""
    columns = {name: {"type": type} for name, type in TYPES.items()}
    columns["k"] |= {"bounds": [0, 2]}
    columns["x"] |= {"bounds": [0, 2]}
    owned = {} if rng.random() < 0.6 else {"unit": "u", "rows": 2}
    around = [tuple(rng.choice(PLAIN) for _ in range(rng.choice([0, 3, 40, 300]))) for _ in range(2)]
    ends = rng.choice([(b"\n",), (b"\n",), (b"\r\n",), (b"\n", b"\r\n", b"\r\n")])
    return Lines(
        around[0], (rng.choice(ODD),), around[1], (rng.choice([*ODD, *PLAIN]),), ends, _policy(columns, **owned)
    )


# Files and frames

Row = dict[str, Any]
ROWS: list[Row] = [
    {
        "u": f"p{i}",
        "g": b"ab"[i % 2 : i % 2 + 1],
        "k": i % 3,
        "x": i / 2,
        "d": DAY + datetime.timedelta(i),
        "b": i % 2 == 0,
    }
    for i in range(5)
]
VICTIM: Row = {"u": "p9", "g": b"a", "k": 1, "x": 0.5, "d": DAY, "b": True}


def text(values: list[bytes | None]) -> pyarrow.Array:
    """Bytes that are said to be text, whatever they are."""
    raw = pyarrow.array(values, pyarrow.binary())
    return pyarrow.StringArray.from_buffers(
        len(raw), raw.buffers()[1], raw.buffers()[2], raw.buffers()[0], raw.null_count
    )


def table(rows: list[Row], **types: pyarrow.DataType) -> pyarrow.Table:
    """Rows as Arrow; `types` of some columns."""
    made = {}
    for name in TYPES:
        values = [row[name] for row in rows]
        raw = name == "g" and all(value is None or isinstance(value, bytes) for value in values) and name not in types
        made[name] = (
            text(values) if raw else pyarrow.array([_fitting(v, types.get(name)) for v in values], types.get(name))
        )
    return pyarrow.table(made)


def _fitting(value: Any, type: pyarrow.DataType | None) -> Any:
    """A value, or NULL if there is none such of that type."""
    if type == pyarrow.float16() and isinstance(value, float):
        value = np.float16(value)  # older versions of Arrow take no others
    try:
        pyarrow.scalar(value, type)
    except (pyarrow.ArrowException, TypeError, OverflowError):
        return None
    return value


def _parquet(folder: Path, *tables: pyarrow.Table) -> list[str]:
    paths = [folder / f"part{i}.parquet" for i in range(len(tables))]
    for path, one in zip(paths, tables, strict=True):
        pyarrow.parquet.write_table(one, path)
    return [str(path) for path in paths]


Maker = Callable[[Path, list[Row], list[Row]], Any]  # folder, plain rows, rows of the victim


def _alone(**types: pyarrow.DataType) -> Maker:
    """One frame in memory."""
    return lambda folder, plain, victim: table(plain + victim, **types)


def _file(**types: pyarrow.DataType) -> Maker:
    """One Parquet file."""
    return lambda folder, plain, victim: _parquet(folder, table(plain + victim, **types))


def _two(**types: pyarrow.DataType) -> Maker:
    """Two Parquet files, the victim's rows in the second, whose columns have other types."""
    return lambda folder, plain, victim: _parquet(folder, table(plain), table(victim, **types))


def _narrow(folder: Path, plain: list[Row], victim: list[Row]) -> Any:
    return _parquet(folder, table(plain), table(victim).drop_columns(["k"]))


def _turned(folder: Path, plain: list[Row], victim: list[Row]) -> Any:
    return _parquet(folder, table(plain), table(victim).select(["b", "d", "x", "k", "g", "u"]))


def _view(folder: Path, plain: list[Row], victim: list[Row]) -> Any:
    """A DuckDB file with a view that casts."""
    rows = table(plain + victim)
    with duckdb.connect(str(folder / "v.duckdb")) as file:
        file.register("rows", rows)
        file.execute("CREATE TABLE t AS SELECT * FROM rows")
        file.execute("CREATE VIEW v AS SELECT u, g, CAST(k AS INTEGER) AS k, x, d, b FROM t")
    return folder / "v.duckdb", "v"


D = Decimal
FILES: dict[str, tuple[Maker, Row, Row]] = {
    "frame, bytes that are no text": (_alone(), {"g": b"\xff\xfe"}, {"g": b"a\xc3"}),
    "file, bytes that are no text": (_file(), {"g": b"\xff\xfe"}, {"g": b"\xed\xa0\x80"}),
    "frame, NUL": (_alone(), {"g": b"a\x00b"}, {"g": b"\x00"}),
    "file, NUL": (_file(), {"g": b"a\x00b"}, {"g": None}),
    "dictionary": (_alone(g=pyarrow.dictionary(pyarrow.int8(), pyarrow.string())), {"g": "é"}, {"g": None}),
    "large text": (_alone(g=pyarrow.large_string()), {"g": "x" * 100_000}, {"g": ""}),
    "two files, whole numbers and texts": (_two(k=pyarrow.string()), {"k": "x"}, {"k": "1"}),
    "two files, whole numbers and reals": (_two(k=pyarrow.float64()), {"k": math.nan}, {"k": 1e300}),
    "two files, narrow and wide": (_two(k=pyarrow.decimal128(38, 0)), {"k": D(10**37)}, {"k": D(-(10**37))}),
    "two files, dates and times": (_two(d=pyarrow.timestamp("s")), {"d": datetime.datetime(9999, 12, 31)}, {"d": None}),
    "two files, one without a column": (_narrow, {}, {"k": None}),
    "two files, columns in another order": (_turned, {}, {"k": 999}),
    "a view that casts": (_view, {"k": 10**12}, {"k": -(10**18)}),
    "decimals of many digits": (
        _file(x=pyarrow.decimal128(38, 37)),
        {"x": D("9.9999999999999999999999999999999999999")},
        {"x": None},
    ),
    "decimals of 256 bits": (_alone(x=pyarrow.decimal256(76, 0)), {"x": D(10**75)}, {"x": D(-(10**75))}),
    "halves": (_alone(x=pyarrow.float16()), {"x": 65504.0}, {"x": math.inf}),
    "unsigned": (_alone(k=pyarrow.uint64()), {"k": 2**64 - 1}, {"k": 0}),
    "nothing but NULL": (_alone(k=pyarrow.null()), {"k": None}, {"k": None}),
    "lists": (_alone(k=pyarrow.list_(pyarrow.int64())), {"k": [1] * 100}, {"k": None}),
    "time zones": (_alone(d=pyarrow.timestamp("us", "Europe/Paris")), {"d": None}, {"d": None}),
    "far moments in seconds": (_alone(d=pyarrow.timestamp("s")), {"d": 2**60}, {"d": -(2**60)}),
    "far moments in milliseconds": (_alone(d=pyarrow.timestamp("ms")), {"d": 2**62}, {"d": -(2**62)}),
    "far moments in nanoseconds": (_alone(d=pyarrow.timestamp("ns")), {"d": 2**63 - 1}, {"d": -(2**63) + 1}),
    "far days": (_alone(d=pyarrow.date32()), {"d": 2**31 - 1}, {"d": -(2**31)}),
    "far days in a file": (_file(d=pyarrow.date32()), {"d": 2**31 - 2}, {"d": -(2**31) + 2}),
    "days in milliseconds": (_alone(d=pyarrow.date64()), {"d": 86_400_000 * (2**31)}, {"d": -86_400_000 * (2**31)}),
    "times of a day": (_alone(d=pyarrow.time64("us")), {"d": datetime.time(23, 59)}, {"d": None}),
    "durations": (_alone(d=pyarrow.duration("us")), {"d": datetime.timedelta(10**6)}, {"d": None}),
}
"""For each: how it is made, and what is odd about the victim and about whoever comes in its place."""


@dataclass(frozen=True)
class Files:
    """A table v as frames or files of some odd sort."""

    name: str
    victim: bool | None  # False: without; None: another one
    policy: dict[str, Any]

    def neighbours(self) -> dict[Neighbours, "Files"]:
        """Without the victim, or with another one in its place."""
        return {Neighbours.ADD_REMOVE: replace(self, victim=False), Neighbours.REPLACE: replace(self, victim=None)}

    def smaller(self, question: str) -> Iterator["Files"]:
        """It is as small as it gets."""
        return iter(())

    def stored(self, folder: Path, engine: duckdb.DuckDBPyConnection) -> Any:
        """All tables, v in its odd sort."""
        make, odd, other = FILES[self.name]
        mine = [] if self.victim is False else [VICTIM | (odd if self.victim else other)]
        return {"v": make(folder, ROWS, mine), **_others()}

    def __str__(self) -> str:
        return f"{self.name}: the victim is {VICTIM | FILES[self.name][1]}"


def random_files(rng: random.Random) -> Files:
    """One of the odd sorts, with or without a unit, with or without declarations."""
    return files(rng.choice(sorted(FILES)), rng)


def files(name: str, rng: random.Random) -> Files:
    """A world of that sort."""
    bounded = {"k": {"bounds": [0, 2]}, "x": {"bounds": [0, 2]}, "g": {"keys": ["a", "b"]}}
    columns = {column: rules for column, rules in bounded.items() if rng.random() < 0.5}
    if name == "lists":
        columns.pop("k", None)
    return Files(name, True, _policy(columns, **({} if rng.random() < 0.5 else {"unit": "u", "rows": 2})))

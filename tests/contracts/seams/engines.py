"""Tables, texts and files that engines cut into pieces: what is found of them, and what is so by definition."""

import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
from tests.contracts.seams.judging import Pairs
from tests.engines.test_bounding import KEY, crowd, reference
from tests.engines.test_bounding import surviving as bounded
from tests.engines.test_bounding_few import expected as of_few
from tests.engines.test_bounding_few import surviving as few

from noisette.engines import csv
from noisette.engines.bounding import dense
from noisette.engines.bounding.words import distinct, found, sampled
from noisette.engines.duckdb import retained
from noisette.engines.duckdb.identity import Identities
from noisette.engines.duckdb.retained import RetainedRows
from noisette.engines.files import valid_text
from noisette.engines.spark import executor, packing
from noisette.query.schema import Limits

N = 60
ROWS = crowd(1, N)


def bounding() -> Pairs:
    """Rows that are retained, and what is found of units on the way, with many places where a piece may end."""
    of_rows = [Limits(groups=2), Limits(rows=2), Limits(groups=3, rows_per_group=1, rows=4)]
    made = [bounded(ROWS, KEY, limits) for limits in of_rows]
    pairs = [(unit, group) for unit, group, _ in ROWS]
    by_hand = [reference(ROWS, KEY, limits) for limits in of_rows]
    yield made, by_hand
    yield few(pairs, 2, parts=3).tolist(), of_few(pairs, 2).tolist()
    yield from _codes()
    one, other = np.flatnonzero(sampled(np.arange(1000)))[:2].tolist()
    for units, mostly in (([one] * 3 + [other], False), ([one] * 3 + [other, one], True), ([one, other], False)):
        yield retained._mostly_crowded([np.array(units), np.empty(0, np.int64)], Limits(rows=1)), mostly


def _codes() -> Pairs:
    """Numbers of codes, and places among known words."""
    random = np.random.default_rng(3)
    spread = random.integers(0, 9, N) << 40 | 5
    yield dense(spread)[0].tolist(), np.unique(spread, return_inverse=True)[1].tolist()
    apart = np.array([0, 4 << 20, 8 << 20, 1 << 20] * 5 + [1 << 18]) + 3  # the last one has fewer zeros at its end
    yield len(set(dense(apart)[0].tolist())), 5
    words = np.sort(np.append(random.integers(0, 9, N), 10).astype(np.uint64))  # the last one is there once
    yield distinct(words.copy()).tolist(), sorted(set(words.tolist()))
    known = np.unique(words) << np.uint64(60)
    yield found(known, words << np.uint64(60)).tolist(), np.searchsorted(known, words << np.uint64(60)).tolist()
    units = pyarrow.chunked_array([pyarrow.array(range(n), pyarrow.int32()) for n in (0, 5, 30)])
    buckets = packing._buckets(units, 8, None).tolist()
    yield buckets, [(((u ^ u >> 32) * int(packing._MIX) % 2**64 >> 32) * 8) >> 32 for n in (5, 30) for u in range(n)]


def table_of_groups() -> Pairs:
    """The first groups of each unit where a table has a place for every pair."""
    pairs = [(unit, group) for unit, group, _ in ROWS]
    for limit in (1, 4):
        yield few(pairs, limit, parts=2).tolist(), of_few(pairs, limit).tolist()


def identities() -> Pairs:
    """Numbers of texts that come a few at a time."""
    texts = [f"unit {i % 7}" for i in range(N)]
    numbers = Identities()
    for at in range(0, N, 4):
        numbers.append(pyarrow.array(texts[at : at + 4]))
    first = list(dict.fromkeys(texts))
    yield numbers.whole().tolist(), [first.index(text) for text in texts]


def texts() -> Pairs:
    """Bytes of which some are not valid."""
    stored = [b"fine", None, b"caf\xe9", b"", "é".encode(), b"\xff\xfe"] * 5
    by_hand = ["fine", None, "caf?", "", "é", "??"] * 5
    yield valid_text(pyarrow.array(stored, pyarrow.large_binary())).to_pylist(), by_hand


def lines() -> Pairs:
    """Whole lines of a file, in as many blocks as it takes."""
    body = [f"{i},{'x' * (i % 5)}\n".encode() for i in range(20)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(b"a,b\n" + b"".join(body))
        blocks = list(csv.blocks(str(path)))
    yield b"".join(blocks), b"".join(body)
    yield all(block.endswith(b"\n") for block in blocks), True


# Executors


BATCHES = [pyarrow.RecordBatch.from_pydict({"c0": list(range(at, at + 5))}) for at in range(0, 30, 5)]
LAYOUT = SimpleNamespace(arrive=iter, engine=lambda rows: rows)
SCHEMA = BATCHES[0].schema


def numbers_of(batches) -> list[int]:
    """What the only column of some batches holds."""
    return [n for batch in batches for n in batch.column(0).to_pylist()]


def executors() -> Pairs:
    """Rows that are computed with some at a time, that are held in several parts, and copies of counted ones."""
    alone = executor.of_units(LAYOUT, lambda rows: rows, SCHEMA, whole=False)
    yield numbers_of(alone(iter(BATCHES))), list(range(30))
    held = executor.retaining(LAYOUT, lambda rows: RetainedRows(rows, 30, None))(iter(BATCHES))
    yield (
        [n for one in held for n in executor.table_of(one.column("rows")[0].as_py()).column(0).to_pylist()],
        [*range(30)],
    )
    for counts in ([1, 1, 1], [1 + 50 * i for i in range(30)]):
        yield _copied(counts), counts
    counted = [pyarrow.RecordBatch.from_pydict({"c0": list(range(30)), "count": counts})]
    parts = pyarrow.schema({"value": pyarrow.int64(), "n": pyarrow.int64()})
    each = executor.of_counted(LAYOUT, lambda rows: pyarrow.table({"value": [0], "n": [len(rows)]}), parts)
    yield sum(n for batch in each(iter(counted)) for n in batch.column(1).to_pylist()), sum(counts)


def _copied(counts: list[int]) -> list[int]:
    """How often each row is among the copies."""
    found = Counter()
    for times, copies in executor._copies(pyarrow.table({"c0": range(len(counts)), "count": counts})):
        for n in copies.column("c0").to_pylist():
            found[n] += times
    return [found[i] for i in range(len(counts))]


def sent() -> Pairs:
    """Rows that are packed for the bucket of their unit, and unpacked there."""
    units = [7] * 40 + list(range(20))
    rows = pyarrow.table({"unit": units, "c0": list(range(len(units)))})
    with_units = executor.reading
    try:
        executor.reading = lambda *_: lambda batches: batches
        send = executor.sending(None, [], rows.schema, "unit", [0, 1, 2, 3], 0)
        packets = list(send(iter(rows.to_batches(max_chunksize=3))))
    finally:
        executor.reading = with_units
    found = [row for batch in packing.unpacked(packets, rows.schema, None) for row in batch.to_pylist()]
    yield sorted(map(repr, found)), sorted(map(repr, rows.to_pylist()))


def gathered() -> Pairs:
    """Batches that are put together up to a number of rows, or of bytes."""
    yield [n for some in executor._gathered(iter(BATCHES), 12) for n in some.column(0).to_pylist()], list(range(30))

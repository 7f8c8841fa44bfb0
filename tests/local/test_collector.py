"""Collectors: what is malformed, foreign, impossible or repeated does not count, in any order and grouping."""

import hashlib
import io
import itertools
import json
import math
import zlib

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from noisette import local
from noisette.errors import InputError
from noisette.local import sorted_runs
from noisette.local.collector import Collector
from noisette.local.partial import is_partial
from noisette.local.sorted_runs import SortedRuns, is_run
from noisette.local.wire import BODY, ID, OVERHEAD, Round, as_lines

SURVEY = Round(local.OLH(1, domain=50), number=3)
SIZE = SURVEY.record_bytes


def records(survey, count):
    return survey.encode(survey.protocol.clients(np.arange(count) % survey.protocol.domain))


def each(data, size=SIZE):
    return [data[at : at + size] for at in range(0, len(data), size)]


def collected(*inputs, survey=SURVEY, batch=None):
    collector = Collector(survey, batch=batch)
    for data in inputs:
        collector.add(data)
    return collector


def saved(collector):
    stream = io.BytesIO()
    collector.save(stream)
    return stream.getvalue()


def rejected(*inputs, survey=SURVEY):
    found = collected(*inputs, survey=survey).result()
    return found.aggregate.people, found.repeated, {name: n for name, n in found.rejected.items() if n}


def resealed(record):
    """The record with a checksum that fits."""
    return record[:-4] + zlib.crc32(record[:-4]).to_bytes(4, "little")


@pytest.mark.parametrize("kind", [local.GRR, local.OUE, local.OLH, local.HadamardResponse, local.SubsetSelection])
@pytest.mark.parametrize("form", ["records", "lines"])
def test_the_tally_is_that_of_the_reports(kind, form):
    survey = Round(kind(1, domain=50))
    reports = survey.protocol.clients(np.arange(500) % 50)
    data = survey.encode(reports)
    if form == "lines":
        data = as_lines(data, survey.record_bytes).encode()
    found = collected(data, survey=survey, batch=64).result()
    assert found.aggregate.people == 500
    assert (found.aggregate.counts == survey.protocol.empty().add(reports).counts).all()
    assert (found.estimate().shares == survey.protocol.estimate(reports).shares).all()
    assert not any(found.rejected.values())


@pytest.mark.slow
def test_every_damaged_bit_is_seen():
    before, record, after = each(records(SURVEY, 3))
    for bit in range(8 * SIZE):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert rejected(before + bytes(damaged) + after) == (2, 0, {"malformed": 1}), bit
        line = as_lines(bytes(damaged), SIZE).encode()
        assert rejected(as_lines(before + after, SIZE).encode() + line) == (2, 0, {"malformed": 1}), bit


@pytest.mark.parametrize("junk", [b"no base64!", b"\xff\x80", b"QUJD REVG", "früh".encode()])
def test_a_damaged_line_costs_one_record_only(junk):
    text = as_lines(records(SURVEY, 3), SIZE).encode().splitlines()
    assert rejected(b"\n".join([junk, text[0], b"", text[1] + b"\r", junk, text[2]])) == (3, 0, {"malformed": 2})


@pytest.mark.parametrize("cut", range(1, SIZE - 3))  # one lost byte may be the next record's first, by chance
@pytest.mark.slow_after(3)
def test_a_lost_or_added_stretch_costs_one_record_only(cut):
    before, record, after = each(records(SURVEY, 3))
    assert rejected(before + record[:cut] + after) == (2, 0, {"malformed": 1})
    assert rejected(before + record[cut:] + after) == (2, 0, {"malformed": 1})
    assert rejected(before + record + record[:cut] + after) == (3, 0, {"malformed": 1})
    assert rejected(before + after + record[:cut]) == (2, 0, {"malformed": 1})


@pytest.mark.parametrize(
    "other",
    [
        Round(local.OLH(1, domain=50), number=4),
        Round(local.OLH("1.1", domain=50), number=3),
        Round(local.OLH(1, domain=51), number=3),
        Round(local.GRR(1, domain=50), number=3),
        Round(local.OUE(1, domain=500), number=3),
        Round(local.OLH(1, domain=50), number=3, values=tuple(map(str, range(50)))),
    ],
    ids=["round", "epsilon", "domain", "protocol", "longer", "values"],
)
def test_reports_of_another_round_are_foreign(other):
    mine, foreign = each(records(SURVEY, 4)), records(other, 2)
    assert rejected(mine[0] + foreign + b"".join(mine[1:])) == (4, 0, {"foreign": 2})
    assert rejected(foreign) == (0, 0, {"foreign": 2})
    assert rejected(as_lines(foreign, other.record_bytes).encode()) == (0, 0, {"foreign": 2})


def test_reports_of_another_version_are_foreign():
    [record] = each(records(SURVEY, 1))
    assert rejected(resealed(b"\xd2" + record[1:])) == (0, 0, {"foreign": 1})


@pytest.mark.parametrize(
    ("protocol", "report"),
    [
        (local.GRR(1, domain=5), [5]),
        (local.GRR(1, domain=5), [8]),
        (local.OUE(1, domain=5), [32]),
        (local.SubsetSelection(1, domain=5, size=2), [1]),
        (local.OLH(1, domain=5, buckets=3), [0b11 << 5]),
        (local.OLH(1, domain=5, buckets=3), [0b101 << 2]),
        (local.HadamardResponse(2, domain=7, blocks=3), [12]),
    ],
)
def test_reports_that_no_client_makes_are_out_of_domain(protocol, report):
    survey = Round(protocol)
    fine, other = each(records(survey, 2), survey.record_bytes)
    record = resealed(fine[:27] + bytes(report) + fine[-4:])
    assert len(record) == survey.record_bytes
    assert rejected(record + other, survey=survey) == (1, 0, {"out of domain": 1})


def test_equal_ids_count_once_and_different_reports_of_one_id_never():
    one, two, three = each(records(SURVEY, 3))
    assert rejected(one + two + one + three, two) == (3, 2, {})
    other = resealed(one[:11] + two[11:27] + one[27:])  # the id of two
    assert other[27:-4] != two[27:-4]
    assert rejected(one + two + other) == (1, 0, {"conflicting": 1})
    third = resealed(three[:11] + two[11:27] + three[27:])
    assert rejected(other + two, one, third + other) == (1, 2, {"conflicting": 1})


@pytest.mark.slow
@given(st.data())
def test_any_order_and_any_grouping_give_the_same_bytes(data):
    mine = each(records(SURVEY, 12))
    twin = resealed(mine[0][:11] + mine[1][11:27] + mine[0][27:])
    lines = [as_lines(record, SIZE).encode() for record in mine[:3]]
    pieces = [*mine, *mine[:4], *lines, twin, records(Round(local.GRR(1, domain=50)), 1), mine[5][:20]]
    whole = collected(*pieces)
    order = data.draw(st.permutations(pieces))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pieces)), max_size=4)))
    batch = data.draw(st.sampled_from([1, 2, 5, None]))
    groups = [order[a:b] for a, b in itertools.pairwise([0, *cuts, len(order)])]
    partials = [saved(collected(*group, batch=batch)) for group in groups]
    tree = collected(saved(collected(*partials[:2])), *partials[2:], batch=batch)
    assert saved(tree) == saved(whole)
    assert (tree.result().aggregate.counts == whole.result().aggregate.counts).all()
    assert tree.result().rejected == whole.result().rejected


def test_a_partial_aggregate_that_is_merged_twice_changes_no_estimate():
    partial = saved(collected(records(SURVEY, 100)))
    found = collected(partial, partial).result()
    assert (found.aggregate.people, found.repeated) == (100, 100)


@pytest.mark.parametrize("at", [60, 300, 400, 480, 560, -1])
def test_damaged_partial_aggregates_are_refused(at):
    whole = bytearray(saved(collected(records(SURVEY, 100))))
    whole[at] ^= 1
    collector = Collector(SURVEY)
    with pytest.raises(InputError, match=r"damaged|not a round file|was changed|another round"):
        collector.add(bytes(whole))
    assert collector.result().aggregate.people == 0
    with pytest.raises(InputError, match="damaged"):
        collector.add(bytes(whole[:-1]))
    with pytest.raises(InputError, match="another round"):
        Collector(Round(SURVEY.protocol, number=9)).add(saved(collected(records(SURVEY, 1))))


def forged(whole, rows=None, **counts):
    """A partial aggregate with other records or counts, and the checksum that belongs to them."""
    head, kept = whole.split(b"\n", 1)
    said, rows = json.loads(head), kept if rows is None else rows
    start = {"format": said.pop("format")}
    said["counts"] |= counts
    said["records"] = len(rows) // (ID + SURVEY.report_bytes)
    del said["sha256"]
    digest = hashlib.sha256(json.dumps(said, separators=(",", ":")).encode() + rows).hexdigest()
    return json.dumps(start | said | {"sha256": digest}, separators=(",", ":")).encode() + b"\n" + rows


def size_and_rows(whole):
    size, rows = ID + SURVEY.report_bytes, whole.split(b"\n", 1)[1]
    return size, [rows[at : at + size] for at in range(0, len(rows), size)]


def others(whole):
    """Records that no collector writes: out of order, twice, three of an id, impossible."""
    size, rows = size_and_rows(whole)
    yield rows[1] + rows[0]
    yield rows[0] * 2
    yield b"".join(bytes(ID) + report + bytes(size - ID - 1) for report in (b"\x00", b"\x01", b"\x02"))
    yield bytes(ID) + b"\xff" * (size - ID)


@pytest.mark.parametrize("which", range(4))
def test_records_that_no_collector_writes_are_refused_when_they_are_read(which):
    whole = saved(collected(records(SURVEY, 100)))
    collector = collected(records(SURVEY, 100))
    before = saved(collector)
    with pytest.raises(InputError, match="no collector writes"):
        collector.add(forged(whole, list(others(whole))[which]))
    assert saved(collector) == before
    collector.add(forged(whole))  # the same, not changed
    assert collector.result().rejected["conflicting"] == 0


@pytest.mark.parametrize(
    "counts",
    [
        {"malformed": -5},
        {"read": 10**400},
        {"read": 99},  # fewer than there are records
        {"foreign": 1.0},
        {"foreign": True},
        {"foreign": "1"},
        {"foreign": math.inf},
        {"more": 1},
    ],
    ids=str,
)
def test_counts_that_no_collector_writes_are_refused_when_they_are_read(counts):
    whole, collector = saved(collected(records(SURVEY, 100))), Collector(SURVEY)
    with pytest.raises(InputError, match="no collector writes"):
        collector.add(forged(whole, **counts))
    assert collector.result().rejected == dict.fromkeys(("malformed", "foreign", "out of domain", "conflicting"), 0)
    assert not collector.counts["read"]


def test_a_head_that_is_nested_deeply_is_damaged():
    with pytest.raises(InputError, match="damaged"):
        Collector(SURVEY).add(b'{"format":"noisette partial aggregate","round":' + b"[" * 100_000)


def test_runs_are_looked_at_across_pieces(monkeypatch):
    """What is out of order may lie at the edge of two pieces, and three records of one id as well."""
    monkeypatch.setattr(sorted_runs, "_BYTES", 1)  # a piece is two records
    rows = np.zeros((5, ID + 1), np.uint8)
    rows[:, 0], rows[:, -1] = [1, 2, 2, 3, 4], [0, 0, 1, 0, 0]
    assert is_run(rows)
    assert not is_run(rows[[0, 2, 1, 3, 4]])
    assert not is_run(rows[[0, 1, 3, 2, 4]])
    rows[:, 0], rows[:, -1] = [1, 2, 2, 2, 3], [0, 0, 1, 2, 0]
    assert not is_run(rows)


@pytest.mark.parametrize("size", [SIZE + 1, 64, 100])
def test_streams_are_read_in_pieces(monkeypatch, size):
    monkeypatch.setattr("noisette.local.collector._CHUNK", size)
    data, foreign = records(SURVEY, 30), records(Round(local.OUE(1, domain=500)), 2)
    noisy = data[: 5 * SIZE] + foreign + data[5 * SIZE : -3]
    assert rejected(noisy) == (29, 0, {"foreign": 2, "malformed": 1})
    assert rejected(as_lines(data, SIZE).encode()) == (30, 0, {})


@pytest.mark.slow
def test_long_streams_are_read_in_pieces(monkeypatch):
    monkeypatch.setattr("noisette.local.collector._CHUNK", 100)
    data = records(SURVEY, 200)
    noisy = data[: 50 * SIZE] + records(Round(local.OUE(1, domain=500)), 3) + data[50 * SIZE : -3]
    assert rejected(noisy) == (199, 0, {"foreign": 3, "malformed": 1})
    assert rejected(as_lines(data, SIZE).encode()) == (200, 0, {})
    assert rejected(b"A" * (1 << 18)) == (0, 0, {"malformed": 2})
    monkeypatch.setattr("noisette.local.collector._LONGEST", 200)
    foreign = records(Round(local.OUE(1, domain=500)), 50)
    assert rejected(foreign) == (0, 0, {"foreign": 50})
    assert rejected(data + foreign + data[:-1]) == (200, 199, {"foreign": 50, "malformed": 1})


def test_a_record_within_a_report_is_no_record():
    survey = Round(local.OUE(1, domain=8 * 200))
    outer, inner = each(records(survey, 2), survey.record_bytes)
    hidden = resealed(outer[:27] + inner[:150] + outer[177:])
    assert rejected(hidden + inner, survey=survey) == (2, 0, {})
    small = Round(local.GRR(1, domain=4))
    within = records(small, 1)
    carrier = resealed(outer[:27] + within + outer[27 + len(within) :])
    assert rejected(carrier, survey=survey) == (1, 0, {})


def test_rejection_does_not_bias():
    """Damage that hits a third of all bytes at random leaves the exact aggregate of the others."""
    survey = Round(local.GRR(2, domain=5))
    reports = survey.protocol.clients(np.arange(3000) % 5)
    rows = np.frombuffer(survey.encode(reports), np.uint8).reshape(3000, -1).copy()
    hit = np.arange(3000) % 3 == 0
    rows[hit, 27] ^= 1 + (np.arange(1000) % 7).astype(np.uint8)  # the report itself
    found = collected(rows.tobytes(), survey=survey).result()
    assert (found.aggregate.counts == survey.protocol.counted(reports[~hit])).all()
    assert found.rejected["malformed"] == 1000


def test_sorted_runs_are_the_sorted_set():
    rows = np.random.default_rng(1).integers(0, 2, (500, 18)).astype(np.uint8) * 200
    rows[:, :12] = 0
    runs = SortedRuns(18, batch=7)
    for start in range(0, 500, 3):
        runs.add(rows[start : start + 3])
    expected = sorted({bytes(row) for row in rows})
    kept = [row for i, row in enumerate(expected) if i < 2 or expected[i - 2][:16] != row[:16]]
    assert [bytes(row) for row in runs.united()] == kept


@pytest.mark.slow
def test_memory_does_not_grow_with_users(monkeypatch):
    """What is sorted or held at once is about two batches, even if all ids begin alike."""
    import noisette.local.sorted_runs as module

    sizes, distinct = [], module._distinct
    monkeypatch.setattr(module, "_distinct", lambda rows: sizes.append(len(rows)) or distinct(rows))
    runs = SortedRuns(20, batch=1000)
    rows = np.zeros((50_000, 20), np.uint8)
    rows[:, 14:16] = np.arange(50_000, dtype=">u2").view(np.uint8).reshape(-1, 2)
    for start in range(0, 50_000, 500):
        runs.add(rows[np.random.default_rng(start).permutation(50_000)[:500]])
    runs.united()
    assert max(sizes) <= 2 * 1000 + 100


def test_the_constants_of_the_format():
    assert OVERHEAD == 31
    assert (BODY.start, BODY.stop) == (11, -4)


@pytest.mark.slow
@given(st.lists(st.one_of(st.binary(max_size=80), st.integers(0, 3), st.integers(4, 3 * SIZE)), max_size=12))
def test_any_bytes_are_read(pieces):
    """Whole records count among any bytes, and nothing else does; that junk has a fitting checksum is ruled out."""
    mine = each(records(SURVEY, 4))
    parts = [p if isinstance(p, bytes) else mine[p] if p < 4 else b"".join(mine)[-p:][:SIZE] for p in pieces]
    data = b"".join(parts)
    assume(not is_partial(data))  # a partial aggregate that is damaged is refused
    found = collected(data).result()
    assert found.aggregate.people == len({record for record in mine if record in data})
    assert found.aggregate.people >= len(set(parts) & set(mine))

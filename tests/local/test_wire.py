"""Records: every report of every protocol comes back, and what is said about a round is what was said."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisette import local
from noisette.errors import InputError
from noisette.local.wire import Round, as_lines

KINDS = [local.GRR, local.OUE, local.SUE, local.OLH, local.HadamardResponse, local.AffineSubsets,
         local.SubsetSelection, local.ProjectiveGeometry]  # fmt: skip
ROUNDS = [
    *(Round(kind(1, domain=20)) for kind in KINDS),
    Round(local.HadamardResponse(3, domain=9, blocks=None)),
    Round(local.SplitQueries(1, queries=3)),
    Round(local.Rappor(f="1/2", p="1/2", q="3/4", domain=4, length=7, hashes=2)),
    Round(local.OLH(1, domain=4_000_000_000)),
]


def plain(reports):
    rows = np.asarray(reports).tolist()
    return [tuple(row) if isinstance(row, list) else row for row in rows]


@pytest.mark.slow
@given(
    st.sampled_from(KINDS),
    st.integers(2, 70),
    st.fractions("1/10", 6),
    st.lists(st.integers(0, 10**6), max_size=9),
    st.integers(0, 2**32 - 1),
)
def test_reports_come_back(kind, domain, epsilon, values, number):
    survey = Round(kind(epsilon, domain=domain), number=number)
    reports = survey.protocol.clients(np.array(values, int) % domain)
    assert survey.decode(survey.encode(reports)) == plain(reports)
    assert Round.from_json(survey.to_json()) == survey


@pytest.mark.parametrize("survey", ROUNDS, ids=lambda x: x.fingerprint.hex())
def test_a_report_takes_no_more_bytes_than_its_bits(survey):
    assert survey.report_bytes <= -(-survey.protocol.bits // 8)
    assert Round.from_json(survey.to_json()).header == survey.header
    value = next(iter(survey.protocol.values()))
    report = survey.protocol.client(value)
    assert survey.decode(survey.encode([report])) == [report]


def test_every_possible_report_comes_back_and_no_other_is_possible():
    for protocol in (local.GRR(1, domain=5), local.OLH(1, domain=5, buckets=3), local.SubsetSelection(1, domain=5)):
        survey = Round(protocol)
        every = list(protocol.reports())
        assert survey.decode(survey.encode(every)) == every
        rows = np.arange(256**survey.report_bytes, dtype="<u4").view(np.uint8).reshape(-1, 4)[:, : survey.report_bytes]
        assert survey.possible(np.ascontiguousarray(rows)).sum() == len(every)


def test_the_bytes_are_as_documented():
    survey = Round(local.OLH(1, domain=1000), number=258)
    record = survey.encode([(1007, 5, 3)])
    assert record[:3] == b"\xd1\x03\x00"
    assert (record[3:7], record[7:11]) == (survey.fingerprint, b"\x02\x01\x00\x00")
    assert int.from_bytes(record[27:30], "little") == 1007 | 5 << 10 | 3 << 20
    assert len(record) == 34


def test_fingerprints_differ_and_stay():
    assert len({survey.fingerprint for survey in ROUNDS}) == len(ROUNDS)
    assert Round(local.GRR(math.log(3), domain=2)).fingerprint != Round(local.GRR("1.1", domain=2)).fingerprint
    assert Round(local.GRR(1, domain=2), number=1).fingerprint == Round(local.GRR(1, domain=2), number=2).fingerprint
    assert Round(local.GRR(1, domain=2)).fingerprint.hex() == "2b593546"


def test_ids_are_fresh():
    survey = Round(local.GRR(1, domain=2))
    ids = {survey.encode([1])[11:27] for _ in range(50)}
    assert len(ids) == 50
    rows = np.frombuffer(survey.encode(np.ones(1000, int)), np.uint8).reshape(1000, -1)
    assert len({bytes(row[11:27]) for row in rows}) == 1000


def test_lines():
    survey = Round(local.GRR(1, domain=2))
    assert as_lines(survey.encode([0, 1]), survey.record_bytes).count("\n") == 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Round(local.GRR(1, domain=2), number=-1),
        lambda: Round(local.GRR(1, domain=2), number=2**32),
        lambda: Round(local.GRR(1, domain=2), values=("a",)),
        lambda: Round(local.GRR(1, domain=2), values=("a", "a")),
        lambda: Round("GRR"),
        lambda: Round(local.GRR(1, domain=2)).encode([2]),
        lambda: Round(local.GRR(1, domain=2)).encode([-1]),
        lambda: Round(local.OUE(1, domain=5)).encode([[32]]),
        lambda: Round(local.GRR(1, domain=2)).decode(b"x"),
        lambda: Round(local.GRR(1, domain=2)).decode(b"x" * 32),
        lambda: Round(local.GRR(1, domain=2)).decode(Round(local.GRR(1, domain=3)).encode([1])),
        lambda: Round.from_json("canaryqx"),
        lambda: Round.from_json("[]"),
        lambda: Round.from_json(Round(local.GRR(1, domain=2)).to_json().replace('"1"', '"2"')),
        lambda: Round.from_json(Round(local.GRR(1, domain=2)).to_json().replace("GRR", "canaryqx")),
    ],
)
def test_bad_input_gets_one_sentence_that_quotes_nothing(wrong):
    with pytest.raises(InputError) as refused:
        wrong()
    text = str(refused.value)
    assert text.endswith(".")
    assert "canaryqx" not in text


def test_the_json_says_all_that_a_client_needs():
    found = json.loads(Round(local.OLH(1, domain=1000), number=7).to_json())
    assert found["limits"] == [1008, 1009, 4]
    assert found["parameters"] == {"epsilon": "1", "domain": 1000, "buckets": 4}
    assert (found["round"], found["version"], len(found["fingerprint"])) == (7, 1, 8)


@pytest.mark.parametrize(
    "number", ["9" * 4000, "1e308", "-1", '"1e1000000000"', '"1e-1000000000"', "[]", "{}", "null", "1.5"]
)
@pytest.mark.parametrize("name", ["epsilon", "domain"])
def test_numbers_of_a_strangers_round_are_refused(name, number):
    said = json.loads(Round(local.GRR(1, domain=3), number=7).to_json())
    said["parameters"][name] = "@"
    with pytest.raises(InputError, match=r"^This (is not a round file|round file was changed)"):
        Round.from_json(json.dumps(said).replace('"@"', number))


def test_a_large_round_is_not_read(monkeypatch):
    text = Round(local.GRR(1, domain=3), number=7).to_json()
    monkeypatch.setattr("noisette.local.wire._LONGEST", len(text) - 1)
    with pytest.raises(InputError, match=r"^A round file has at most"):
        Round.from_json(text)

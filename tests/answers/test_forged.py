"""Records of strangers: whatever they say, checking them ends, and what cannot be checked is one sentence."""

import json
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.answers import check, record
from noisette.answers.check import promised_by
from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.mechanisms.catalogue import instances
from noisette.mechanisms.record import from_record, to_record
from noisette.privacy import sensitivity

NUMBER = "^A number of the record must be"
KINDS = {type(mechanism).__name__: mechanism for mechanism in instances()}
EXTREME = [
    "1e400",
    "-1e-400",
    "1e9",
    "7" * 4000,
    "1/" + "3" * 4000,
    "1" * 10_000,
    "nan",
    "inf",
    "",
    "None",
    [],
    {},
    1,
    0.5,
]


@pytest.fixture(scope="module")
def asked():
    data = nz.open({"v": pyarrow.table({"x": [1, 2, 3]})}, budget=nz.Approx(10, "1e-3"))
    return data, data.sql("SELECT count(*) AS n FROM v", spend=1).to_json()


@pytest.fixture
def forged(asked):
    return json.loads(asked[1])


@pytest.mark.parametrize("number", ["1e400", "1e-400", "1e1000000000", "1e-1000000000"])  # short to write, long to read
@pytest.mark.parametrize(
    "path",
    [
        ("mechanisms", 0, "parameters", "scale"),
        *(("mechanisms", 0, "sensitivity", name) for name in ("l1", "l2_squared", "linf")),
        ("guarantee", "epsilon"),
    ],
)
def test_numbers_that_are_too_long_are_refused(forged, path, number):
    *way, last = path
    part = forged
    for step in way:
        part = part[step]
    part[last] = number
    with pytest.raises(InputError, match=NUMBER):
        check(json.dumps(forged))


def places(part, way=()):
    """The way to each value within a part of a record."""
    if isinstance(part, dict):
        for name, inner in part.items():
            yield from places(inner, (*way, name))
    else:
        yield way


def changed(part, way, value):
    made = json.loads(json.dumps(part))
    inner = made
    for step in way[:-1]:
        inner = inner[step]
    inner[way[-1]] = value
    return made


@pytest.mark.slow_after(12)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_number_of_every_mechanism_may_be_anything(kind):
    part = to_record(KINDS[kind], "rows", sensitivity.count())
    claim = {"neighbours": "add/remove", "guarantee": {"kind": "Approx", "epsilon": "1000000", "delta": "1/2"}}
    said = []
    for way in places({name: part[name] for name in ("parameters", "sensitivity")}):
        for value in EXTREME:
            try:
                promised_by({"mechanisms": [changed(part, way, value)], **claim})
            except NoisetteError as fault:
                said.append(str(fault))
    assert said
    assert max(map(len, said)) < 300  # one sentence, whatever the number


def test_what_is_recorded_is_read_again_however_long_its_numbers_are():
    long = nz.mechanisms.Geometric(Fraction(10**700, 10**700 - 1))
    assert from_record(to_record(long, "rows", sensitivity.count())) == long


def test_few_enough_mechanisms(forged, monkeypatch):
    monkeypatch.setattr(record, "_MOST", 3)
    forged["guarantee"]["epsilon"] = "3"
    forged["mechanisms"] *= 3
    assert check(json.dumps(forged)) == nz.Pure(3, neighbours=nz.Neighbours.ADD_REMOVE)
    [part, *_] = forged["mechanisms"]
    for many in ([part] * 4, [{"one of": {"a": [part, part], "b": [part]}, "promise": {}}]):
        with pytest.raises(InputError, match=r"^This record is too large to be checked: "):
            check(json.dumps({**forged, "mechanisms": many}))


def test_few_enough_that_differ(forged, monkeypatch):
    monkeypatch.setattr(record, "_MOST_TEXT", 1000)
    [part] = forged["mechanisms"]
    different = [changed(part, ("parameters", "scale"), str(n)) for n in range(100, 120)]
    forged["guarantee"]["epsilon"] = "20"
    check(json.dumps({**forged, "mechanisms": [part] * 20}))
    with pytest.raises(InputError, match=r"^This record is too large to be checked: "):
        check(json.dumps({**forged, "mechanisms": different}))


def test_a_record_of_many_characters_is_not_read(asked, monkeypatch):
    monkeypatch.setattr(record, "LONGEST", 100)
    with pytest.raises(InputError, match=r"^A record has at most 100 characters"):
        check(asked[1])


@pytest.mark.parametrize("depth", [12, 200])
def test_plans_within_plans_are_no_record(forged, depth):
    for _ in range(depth):
        forged["mechanisms"] = [{"one of": {"a": forged["mechanisms"]}, "promise": forged["guarantee"]}]
    with pytest.raises(InputError, match="not the record of a release"):
        check(json.dumps(forged))


@pytest.mark.parametrize("parts", [[3], [None], {"a": 1}, "text", [["one of"]], [{"one of": 3}], [{"candidates": [3]}]])
def test_parts_that_are_no_mechanisms_are_no_record(forged, parts):
    with pytest.raises(InputError):
        check(json.dumps({**forged, "mechanisms": parts}))


def test_a_ledger_in_memory_confirms_nothing(asked):
    data, text = asked
    with pytest.raises(InputError, match=r"^A ledger in memory proves nothing later: "):
        check(text, ledger=data.ledger)


def test_different_mechanisms_are_added_in_about_linear_time(forged, monkeypatch):
    """Counted in the losses that are hashed: one sum after the other would hash each of them for every later one."""
    from noisette.privacy.pld.loss import LatticeLaplace

    hashed = np.zeros(1, int)
    original = LatticeLaplace.__hash__

    def counted(self):
        hashed[0] += 1
        return original(self)

    [part] = forged["mechanisms"]
    forged["mechanisms"] = [changed(part, ("parameters", "scale"), str(n)) for n in range(1000, 1300)]
    monkeypatch.setattr(LatticeLaplace, "__hash__", counted)
    assert promised_by(forged) <= nz.Pure(1)
    assert 300 <= hashed[0] < 20 * 300


def test_a_false_claim_is_still_found_out(forged):
    forged["guarantee"]["epsilon"] = "1/2"
    with pytest.raises(PrivacyError, match="claims more"):
        check(json.dumps(forged))


@pytest.mark.parametrize("ledger", ["visits.ledger", 3, [], b"visits.ledger"])
def test_a_ledger_is_one_that_is_open(asked, ledger):
    with pytest.raises(InputError, match=r"^ledger must be the ledger of a curator, such as data\.ledger"):
        check(asked[1], ledger=ledger)

"""A record is held against the ledger that it was charged to: whatever was changed in it is found."""

import copy
import json

import pytest
from tests.curator.clinic import opened

import noisette as nz
from noisette.answers import check
from noisette.answers.digest import digest_of_record
from noisette.answers.record import stated
from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.ledger import accept, open_ledger

WARDS = "SELECT ward, count(*) AS n, avg(age) AS a FROM visits GROUP BY ward ORDER BY n DESC"
QUESTIONS = {
    "groups": (WARDS, 1),
    "gaussian": ("SELECT sum(cost) AS s, count(*) AS n FROM visits", nz.Approx(1, "1e-8")),
    "quantile": ("SELECT median(age) AS m FROM visits", 1),
    "unknown keys": ("SELECT note, count(*) AS n FROM visits GROUP BY note", nz.Approx(3, "1e-7")),
    "dates and truth values": (
        "SELECT smoker, count(*) AS n, count(*) > 3 AS many FROM visits GROUP BY smoker",
        nz.Approx(3, "1e-7"),
    ),
    "nobody": ("SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING n > 1000000", 1),
    "mode": (lambda data: nz.Mode("ward", of=data.table("visits")), 1),
    "top": (lambda data: nz.Top("ward", 2, of=data.table("visits")), 1),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    curator = opened(nz.Approx(60, "1e-6"), ledger=tmp_path_factory.mktemp("receipts") / "x.ledger")
    yield curator
    curator.ledger.close()


@pytest.fixture(scope="module")
def records(data):
    asked = {name: (q(data) if callable(q) else q, spend) for name, (q, spend) in QUESTIONS.items()}
    return {name: json.loads(data.ask(q, spend=spend).to_json()) for name, (q, spend) in asked.items()}


def leaves(value, path=()):
    """Every place in a record that holds something."""
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, name))
    if path:
        yield path


def at(record, path):
    for name in path:
        record = record[name]
    return record


def others(value):
    """Other things that could stand there."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1, str(value)]
        case str():
            return [value + "0", value[:-1]] if len(value) < 9 else [value[:-1]]
        case None:
            return [0, "x"]
        case dict():
            return [{}, {**value, "more": 1}]
        case _:
            return [[], [*value, *value[:1]] or [1]]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", QUESTIONS)
def test_any_change_of_a_record_is_found(data, records, name):
    record, tried = records[name], 0
    check(json.dumps(record), ledger=data.ledger)
    for path in leaves(record):
        for other in others(at(record, path)):
            changed = copy.deepcopy(record)
            at(changed, path[:-1])[path[-1]] = other
            if changed == record:
                continue
            with pytest.raises(NoisetteError):
                check(json.dumps(changed), ledger=data.ledger)
            tried += 1
    assert tried > 30


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", QUESTIONS)
def test_anything_that_is_taken_out_or_put_in_is_found(data, records, name):
    record = records[name]
    for path in [path for path in leaves(record) if isinstance(path[-1], str)]:
        changed = copy.deepcopy(record)
        del at(changed, path[:-1])[path[-1]]
        with pytest.raises(NoisetteError):
            check(json.dumps(changed), ledger=data.ledger)
    for more in ({"note": "approved by the board"}, {"format": 2}):
        with pytest.raises(NoisetteError):
            check(json.dumps({**record, **more}), ledger=data.ledger)
    for rows in (record["rows"][:-1], record["rows"][::-1]):
        if rows != record["rows"]:
            with pytest.raises(PrivacyError, match="not as it was released"):
                check(json.dumps({**record, "rows": rows}), ledger=data.ledger)


# What a record alone does not prove


def forged(record):
    """Twins whose mechanisms still promise what is claimed."""
    value, bar, both, question, unit = (copy.deepcopy(record) for _ in range(5))
    value["rows"][0]["n"] += 100
    bar["rows"][0]["n_low"] += 5
    part = both["mechanisms"][0]
    part["parameters"]["scale"] = "1"
    part["sensitivity"] = {"l0": 1, "l1": "1/8", "l2_squared": "1/64", "linf": "1/8"}
    question["question"] = question["question"].replace("age", "cost")
    unit["unit"] = "household"
    return {"value": value, "bar": bar, "sensitivity and scale": both, "question": question, "unit": unit}


@pytest.mark.parametrize("what", ["value", "bar", "sensitivity and scale", "question", "unit"])
def test_these_changes_show_against_the_ledger_alone(data, records, what):
    twin = json.dumps(forged(records["groups"])[what])
    check(twin)
    with pytest.raises(PrivacyError, match="The record"):
        check(twin, ledger=data.ledger)


def test_a_column_under_another_name_is_found(data, records):
    record = records["groups"]
    rows = [{("m" if name == "n" else name): value for name, value in row.items()} for row in record["rows"]]
    with pytest.raises(PrivacyError, match="not as it was released"):
        check(json.dumps({**record, "rows": rows}), ledger=data.ledger)


def test_a_head_that_never_was_is_found(data, records):
    place = records["groups"]["ledger"]
    number = place["head"].partition(":")[0]
    for head in (f"{number}:{'0' * 64}", f"999:{'0' * 64}"):
        with pytest.raises(PrivacyError, match="ledger"):
            check(json.dumps({**records["groups"], "ledger": {**place, "head": head}}), ledger=data.ledger)


@pytest.mark.slow
def test_another_charge_for_the_same_question_is_not_that_of_the_record(tmp_path):
    """A frame may be another one the next time, so the same question about it is charged again."""
    found = []
    for _ in range(2):
        curator = opened(nz.Approx(4, "1e-6"), ledger=tmp_path / "x.ledger")
        found.append(json.loads(curator.sql(WARDS, spend=1).to_json()))
        curator.ledger.close()
    first, second = found
    swapped = {**first, "ledger": second["ledger"], "spent": second["spent"]}
    book = open_ledger(tmp_path / "x.ledger")
    assert first["ledger"]["entry"] != second["ledger"]["entry"]
    for record in found:
        check(json.dumps(record), ledger=book)
    with pytest.raises(PrivacyError, match="does not say what entry"):
        check(json.dumps(swapped), ledger=book)
    book.close()


def test_a_record_that_says_something_else_than_its_charge_is_found(data, records):
    """Even if an entry was written for it."""
    twin = forged(records["groups"])["sensitivity and scale"]
    charge = data.ledger.history[twin["ledger"]["entry"] - 1]
    receipt = data.ledger.recorded(charge["key"], [digest_of_record(twin)])
    twin.update(ledger=receipt.place, spent=json.loads(json.dumps(stated(receipt.spent))))
    with pytest.raises(PrivacyError, match="does not say what entry"):
        check(json.dumps(twin), ledger=data.ledger)


# Forms of one record


def test_a_record_that_was_laid_out_anew_is_the_same(data, records):
    for record in records.values():
        text = json.dumps(dict(reversed(record.items())), indent=3, ensure_ascii=True)
        check(text, ledger=data.ledger)
        check(text.replace(".0,", ","), ledger=data.ledger)


def test_a_name_that_stands_there_twice_is_refused(data, records):
    text = json.dumps(records["groups"])
    with pytest.raises(InputError, match="not the record of a release"):
        check(text.replace("{", '{"rows": [{"ward": "north", "n": 9}], ', 1), ledger=data.ledger)


def test_each_form_of_an_answer_is_recorded_once(data, records):
    kinds = [body["kind"] for body in data.ledger.history]
    again = json.loads(data.ask(*QUESTIONS["groups"][:1], spend=1).to_json())
    assert [body["kind"] for body in data.ledger.history] == kinds
    assert again["rows"] == records["groups"]["rows"]
    check(json.dumps(again), ledger=data.ledger)  # with another head, and what was spent since
    at_90 = data.sql(WARDS, spend=1, level=0.9).to_json()
    assert [body["kind"] for body in data.ledger.history] == [*kinds, "release"]
    check(at_90, ledger=data.ledger)


def test_a_head_from_before_the_release_is_found(data, records):
    first = json.loads(data.sql(WARDS, spend=1, level=0.8).to_json())
    later = json.loads(data.sql(WARDS, spend=1, level=0.7).to_json())
    assert (first["spent"], first["ledger"]["entry"]) == (later["spent"], later["ledger"]["entry"])
    check(json.dumps({**first, "ledger": later["ledger"]}), ledger=data.ledger)  # true as well
    with pytest.raises(PrivacyError, match="not as it was released"):
        check(json.dumps({**later, "ledger": first["ledger"]}), ledger=data.ledger)


def test_questions_that_are_asked_together_have_a_record_each(data):
    answers = data.ask(["SELECT count(*) AS n FROM visits", "SELECT avg(age) AS a FROM visits"], spend=1)
    found = [json.loads(answer.to_json()) for answer in answers]
    assert found[0]["ledger"]["entry"] == found[1]["ledger"]["entry"]
    for record in found:
        check(json.dumps(record), ledger=data.ledger)
    with pytest.raises(PrivacyError, match="not as it was released"):
        check(json.dumps({**found[0], "rows": [found[0]["rows"][0] | found[1]["rows"][0]]}), ledger=data.ledger)


# Ledgers


@pytest.mark.slow_after(1)
def test_both_databases(where):
    curator = opened(nz.Approx(2, "1e-6"), ledger=where)
    text = curator.sql(WARDS, spend=1).to_json()
    curator.ledger.close()
    book = open_ledger(where)
    assert check(text, ledger=book) == nz.Pure(1, neighbours=nz.Neighbours.ADD_REMOVE)
    with pytest.raises(PrivacyError, match="not as it was released"):
        check(text.replace("north", "nowhere"), ledger=book)
    assert book.check() == 1
    book.close()


def test_a_record_that_names_an_entry_with_another_hash(data):
    record = json.loads(data.sql("SELECT count(*) AS n FROM visits", spend=1).to_json())
    other = {**record, "ledger": {**record["ledger"], "hash": "0" * 64}}
    with pytest.raises(PrivacyError, match="names is not in the ledger"):
        check(json.dumps(other), ledger=data.ledger)


@pytest.mark.slow
def test_the_record_of_another_ledger(data, tmp_path):
    other = opened(nz.Approx(60, "1e-6"), ledger=tmp_path / "y.ledger")
    text = other.sql(WARDS, spend=1).to_json()
    with pytest.raises(PrivacyError, match="of another ledger"):
        check(text, ledger=data.ledger)
    other.ledger.close()


@pytest.mark.slow
def test_a_record_is_a_head_that_is_kept_elsewhere(tmp_path):
    """A ledger that was rolled back to before the record, and accepted, is convicted by it."""
    where, backup = tmp_path / "x.ledger", tmp_path / "backup"
    curator = opened(nz.Approx(2, "1e-6"), ledger=where)
    curator.ledger.close()
    backup.write_bytes(where.read_bytes())
    curator = opened(nz.Approx(2, "1e-6"), ledger=where)
    text = curator.sql(WARDS, spend=1).to_json()
    curator.ledger.close()
    where.write_bytes(backup.read_bytes())
    accept(where, why="nobody will notice")
    book = open_ledger(where)
    with pytest.raises(PrivacyError, match="ledger"):
        check(text, ledger=book)
    book.close()


def test_without_a_ledger_the_record_says_so():
    curator = opened(nz.Approx(2, "1e-6"))
    text = curator.sql(WARDS, spend=1).to_json()
    assert json.loads(text)["ledger"] is None
    assert check(text) == nz.Pure(1, neighbours=nz.Neighbours.ADD_REMOVE)


def test_a_record_of_an_earlier_version_checks_as_before(data, records):
    old = {name: part for name, part in records["groups"].items() if name != "ledger"}
    check(json.dumps(old))
    with pytest.raises(InputError, match="names no entry"):
        check(json.dumps(old), ledger=data.ledger)


def test_only_what_was_charged_is_recorded(data):
    with pytest.raises(PrivacyError, match="Nothing was charged under this key"):
        data.ledger.recorded("no such key", ["ab" * 32])
    assert all(body.get("key") != "record\n" + "ab" * 32 for body in data.ledger.history)


def test_no_key_of_a_charge_looks_like_that_of_a_record(data):
    with pytest.raises(InputError, match="printable"):
        data.ledger.charge("q", nz.Pure("0.01"), [], key="record\n" + "ab" * 32)

"""What an answer is about: pins stay in the ledger, records name the state by a keyed hash that says nothing else."""

import hashlib
import hmac
import itertools
import json
import os
from fractions import Fraction

import pyarrow
import pytest
from pyarrow import parquet

import noisette as nz
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.ledger import open_ledger, pins
from noisette.ledger.chain import link
from noisette.policy.policy import read_policy

pytestmark = pytest.mark.slow_after(3)
COUNT = "SELECT COUNT(*) AS n FROM visits"
VISITS = pyarrow.table({"who": [1, 1, 2, 3], "age": [30, 31, 50, 70]})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "visits.parquet"
    parquet.write_table(VISITS, path)
    return path


def opened(source, tmp_path, **policy):
    return nz.open(source, budget=1, policy=policy or None, ledger=tmp_path / "x.ledger")


def asked(source, tmp_path, **policy):
    """The record of one question, from a process of its own."""
    data = opened(source, tmp_path, **policy)
    text = data.sql(COUNT, spend="1/8").to_json()
    data.ledger.close()
    return json.loads(text), text


def history(tmp_path):
    book = open_ledger(tmp_path / "x.ledger")
    found = book.history
    book.close()
    return found


def test_files_with_sizes_and_times_are_in_the_ledger_and_only_a_name_in_the_record(file, tmp_path):
    record, text = asked(file, tmp_path)
    opening, charge, *_ = history(tmp_path)
    about = file.stat()
    assert json.loads(charge["pin"]) == {"files": [[str(file), about.st_size, about.st_mtime_ns]]}
    assert charge["state"] == record["state"]
    key = bytes.fromhex(opening["pin_key"])
    assert record["state"] == hmac.new(key, charge["pin"].encode(), hashlib.sha256).hexdigest()
    for secret in (opening["pin_key"], charge["pin"], charge["salt"], charge["key"], str(about.st_mtime_ns), str(file)):
        assert secret not in text


def test_an_equal_state_has_an_equal_name_and_is_free_and_another_one_is_charged(file, tmp_path):
    first, again = (asked(file, tmp_path)[0] for _ in range(2))
    assert (first["state"], first["rows"], first["spent"]) == (again["state"], again["rows"], again["spent"])
    os.utime(file, ns=(0, 0))  # the same bytes, written at another time
    later = asked(file, tmp_path)[0]
    parquet.write_table(VISITS.slice(1), file)
    os.utime(file, ns=(0, 0))  # the same time, another size
    last = asked(file, tmp_path)[0]
    assert len({first["state"], later["state"], last["state"]}) == 3
    charges = [body for body in history(tmp_path) if body["kind"] == "charge"]
    assert ["pin" in body for body in charges] == [True] * 3


def test_a_pin_is_written_once_for_a_state(file, tmp_path):
    data = opened(file, tmp_path)
    for size in (8, 16, 32):
        data.sql(COUNT, spend=f"1/{size}")
    data.ledger.close()
    charges = [body for body in history(tmp_path) if body["kind"] == "charge"]
    assert [("pin" in body, body["state"] == charges[0]["state"]) for body in charges] == [
        (True, True),
        (False, True),
        (False, True),
    ]


def test_two_ledgers_name_one_state_differently(file, tmp_path):
    names = [nz.open(file, budget=1).sql(COUNT, spend="1/8").record["state"] for _ in range(2)]
    assert names[0] != names[1]


def guessed(record, opening, charge, salt):
    """Who knows all of the ledger except the pin tries sizes until an entry has the hash that the record shows."""
    [[name, size, time]] = json.loads(charge["pin"])["files"]
    for tried in range(size - 50, size + 50):
        body = {**charge, "pin": json.dumps({"files": [[name, tried, time]]}), "salt": salt}
        body.pop("hash")
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        if link(opening["hash"], text) == record["ledger"]["hash"]:
            return tried
    return None


def test_hashes_of_entries_do_not_tell_the_size_of_a_file(file, tmp_path):
    """The salt hides the pin from who tries all sizes; with the salt, they would find it."""
    record, _ = asked(file, tmp_path)
    book = open_ledger(tmp_path / "x.ledger")
    with book._store.transaction(write=False):
        rows = list(itertools.islice(book._store.rows(), 2))
    book.close()
    opening, charge = ({**json.loads(row.body), "hash": row.hash} for row in rows)
    size = file.stat().st_size
    assert guessed(record, opening, charge, charge["salt"]) == size  # the attack works
    assert guessed(record, opening, charge, pins.new_pin_key()) is None


def test_a_record_that_names_another_state_is_refused(file, tmp_path):
    data = opened(file, tmp_path)
    record = json.loads(data.sql(COUNT, spend="1/8").to_json())
    assert data.ledger.confirm(record) == 2
    with pytest.raises(PrivacyError, match="does not say what entry 2"):
        data.ledger.confirm({**record, "state": "0" * 64})
    data.ledger.close()


def test_files_that_change_while_they_are_open_are_refused_before_a_charge(file, tmp_path):
    data = opened(file, tmp_path)
    parquet.write_table(VISITS.slice(1), file)
    with pytest.raises(InputError, match="open the data again"):
        data.sql(COUNT, spend="1/8")
    assert data.budget.left.epsilon == Fraction("1")
    data.ledger.close()


def test_frames_are_pinned_while_the_process_lives(tmp_path):
    data = opened({"visits": VISITS}, tmp_path)
    assert data.sql(COUNT, spend="1/8").rows() == data.sql(COUNT, spend="1/8").rows()
    assert data.budget.left.epsilon == Fraction("7/8")
    data.ledger.close()
    asked({"visits": VISITS}, tmp_path)
    assert len([body for body in history(tmp_path) if body["kind"] == "charge"]) == 2


def test_where_nothing_pins_the_data_each_question_is_charged(file, tmp_path):
    records = [asked(file, tmp_path, pinned=False)[0] for _ in range(3)]
    assert {record["state"] for record in records} == {"unpinned"}
    charges = [body for body in history(tmp_path) if body["kind"] == "charge"]
    assert (len(charges), {"pin" in body for body in charges}) == (3, {False})


def test_what_is_unfinished_goes_on_under_its_charge_where_nothing_pins_the_data(file, tmp_path, monkeypatch):
    data = opened(file, tmp_path, pinned=False)
    with monkeypatch.context() as patched:
        patched.setattr(type(data), "_draw", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            data.sql(COUNT, spend="1/8")
    data.sql(COUNT, spend="1/8")
    assert data.budget.left.epsilon == Fraction("7/8")  # nobody saw the first draw
    data.sql(COUNT, spend="1/8")
    assert data.budget.left.epsilon == Fraction("3/4")
    data.ledger.close()


def test_an_approval_holds_for_one_answer_where_nothing_pins_the_data(file, tmp_path):
    rules = {"rules": {"approval_above": "0.01"}, "pinned": False}
    data = opened(file, tmp_path, **rules)
    for wanted in (1, 2):
        for _ in range(2):
            with pytest.raises(BudgetError, match="approv"):
                data.sql(COUNT, spend="1/8")
        [waiting] = [request for request in data.ledger.requests if request.state == "pending"]
        data.ledger.approve(waiting.id)
        data.sql(COUNT, spend="1/8")
        assert len(data.ledger.entries) == wanted
    data.ledger.close()


def test_pinned_is_read_and_written():
    policy = read_policy({"budget": {"epsilon": 1}, "pinned": False})
    assert "pinned = false" in policy.to_toml()
    assert "pinned" not in read_policy({"budget": {"epsilon": 1}, "pinned": True}).to_toml()
    with pytest.raises(InputError, match="pinned in the policy must be true, or false"):
        read_policy({"budget": {"epsilon": 1}, "pinned": "no"})

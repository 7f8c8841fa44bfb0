"""Purchases are entries of the chain: seen by all who share a ledger, written once, and the later one holds."""

import pytest
from tests.ledger.tools import quoted, tamper

from noisette.errors import PrivacyError
from noisette.ledger import Memory, open_ledger
from noisette.ledger.entry import to_record
from noisette.privacy import Pure


def bought(column="age", high=128, spend="1/10"):
    policy = f"[tables.visits.columns.{column}]\nbounds = [16, {high}]"
    paid = {"spend": to_record(Pure(spend)), "analyst": None, "terms": ""}
    return {"table": "visits", "column": column, "what": "bounds", "policy": policy, **paid}


def told(ledger):
    return [(one["column"], one["policy"].rpartition(" ")[2]) for one in ledger.purchases]


def used(ledger):
    ledger.charge("bounds", Pure("1/10"), [], key="k1")
    for purchase in (bought(), bought(), bought("cost"), bought(), bought(high=64), bought()):
        ledger.record_purchase("k1", purchase)
    assert told(ledger) == [("age", "128]"), ("cost", "128]"), ("age", "64]"), ("age", "128]")]
    with pytest.raises(PrivacyError, match="Nothing was charged"):
        ledger.record_purchase("k2", bought("weight"))
    assert len(ledger.purchases) == 4
    assert ledger.spent.epsilon == Pure("1/10").epsilon


def test_in_memory():
    used(Memory(Pure(1)))


def test_in_a_database_and_seen_by_all(where):
    one = open_ledger(where, budget=Pure(1))
    two = open_ledger(where)
    assert two.purchases == ()
    used(one)
    assert told(two) == told(one)
    two.record_purchase("k1", bought("weight"))
    assert told(one)[-1] == ("weight", "128]")
    assert one.verify().number == len(one.history) == 7
    for book in (one, two):
        book.close()


def test_a_question_cannot_look_like_a_purchase(where):
    book = open_ledger(where, budget=Pure(1))
    book.charge('{"kind":"purchase"}', Pure("1/10"), [{"kind": "purchase"}], key="k1")
    assert book.purchases == ()
    book.close()


def test_one_that_was_changed_is_found(where):
    book = open_ledger(where, budget=Pure(1))
    used(book)
    book.close()
    tamper(where, f"UPDATE ledger_entries SET body = replace(body, {quoted('64]')}, {quoted('65]')})")
    with pytest.raises(PrivacyError, match="was changed"):
        open_ledger(where)

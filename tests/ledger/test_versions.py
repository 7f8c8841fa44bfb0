"""A ledger of every version that ever was opens, says what it said, and goes on. Files in `versions` never change."""

import sqlite3
from pathlib import Path

import pytest
from tests.ledger.tools import tamper

from noisette.errors import BudgetError, PrivacyError
from noisette.ledger import accept, open_ledger
from noisette.ledger.store import MIGRATIONS
from noisette.privacy import Approx, Neighbours, Pure

VERSIONS = sorted(Path(__file__).with_name("versions").glob("*.sql"), key=lambda path: int(path.stem))
HEADS = {
    "1": "4:f4207300b11e5ab0ad45d8e3be13c19dda50a388599bc43138fd00164091071a",
    "2": "5:e586f6b5bf97be83b6f1ae105a5ac085e40a8354409cb26a4e0631c1c5b9166b",
    "3": "6:8827d57b296eaa7c5dfd125ec62d07394f5864aaee95ccff78c3cc97238cd2de",
    "4": "7:b90c77be1bae6b8d2624d0848887758b16baa9c6ffe52d5634331d395e8def9e",
}
ACCEPTED = {
    "1": 6,
    "2": 6,
    "3": 7,
    "4": 8,
}  # entries once accepted; the first version also gets one for its answer


def test_there_is_one_of_each():
    assert [int(path.stem) for path in VERSIONS] == list(range(1, len(MIGRATIONS) + 1))


def made(version, folder):
    where = folder / "visits.ledger"
    connection = sqlite3.connect(where)
    connection.executescript(version.read_text())
    connection.close()
    return where


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.stem)
def test_it_opens_and_goes_on(version, tmp_path):
    where, head = made(version, tmp_path), HEADS[version.stem]
    with pytest.raises(PrivacyError, match="accept"):
        open_ledger(where)  # made from a text, so it is a copy
    accept(where, why="a test")
    book = open_ledger(where, budget=Approx(3, "1e-6"), data={"visits": "ab" * 32})
    assert book.verify(head=head).number == ACCEPTED[version.stem]
    assert book.check() == 2
    assert [(e.analyst, e.key) for e in book.entries] == [("ana", "k1"), ("bob", None)]
    assert [body["of"] for body in book.history if body["kind"] == "answer"] == ["k1"]
    assert book.answer("k1") == b"42"
    assert book.spent.epsilon == Pure("13/30").epsilon
    assert book._store.version() == len(MIGRATIONS)
    with pytest.raises(BudgetError):
        book.charge("more", Pure("0.3", neighbours=Neighbours.ADD_REMOVE), [], analyst="bob")
    assert (
        book.charge("more", Pure("0.3", neighbours=Neighbours.ADD_REMOVE), [], analyst="ana").number
        == ACCEPTED[version.stem] + 1
    )
    book.verify(head=head)
    book.close()


def test_answers_from_before_they_had_entries_get_theirs_once(tmp_path):
    where = made(VERSIONS[0], tmp_path)
    accept(where, why="a test")
    for _ in range(2):
        book = open_ledger(where)
        assert [body["kind"] for body in book.history] == ["open", "charge", "charge", "act", "answer", "act"]
        assert book.keep("k1", b"43") == b"42"
        book.close()
    tamper(str(where), "UPDATE ledger_answers SET body = '43'")
    with pytest.raises(PrivacyError, match="The answer of entry 5 of the ledger was changed"):
        open_ledger(where)

"""A ledger of every version that ever was opens, says what it said, and goes on. Files in `versions` never change."""

import sqlite3
from pathlib import Path

import pytest

from noisette.curator.ledger import accept, open_ledger
from noisette.curator.ledger.store import MIGRATIONS
from noisette.errors import BudgetError, PrivacyError
from noisette.privacy import Approx, Neighbours, Pure

VERSIONS = sorted(Path(__file__).with_name("versions").glob("*.sql"), key=lambda path: int(path.stem))
HEAD = "4:f4207300b11e5ab0ad45d8e3be13c19dda50a388599bc43138fd00164091071a"


def test_there_is_one_of_each():
    assert [int(path.stem) for path in VERSIONS] == list(range(1, len(MIGRATIONS) + 1))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.stem)
def test_it_opens_and_goes_on(version, tmp_path):
    where = tmp_path / "visits.ledger"
    connection = sqlite3.connect(where)
    connection.executescript(version.read_text())
    connection.close()
    with pytest.raises(PrivacyError, match="accept"):
        open_ledger(where)  # made from a text, so it is a copy
    accept(where, why="a test")
    book = open_ledger(where, budget=Approx(3, "1e-6"), data={"visits": "ab" * 32})
    assert book.verify(head=HEAD).number == 5
    assert book.check() == 2
    assert [(e.number, e.analyst, e.key) for e in book.entries] == [(2, "ana", "k1"), (3, "bob", None)]
    assert book.answer("k1") == b"42"
    assert book.spent.eps == Pure("13/30").eps
    assert book._store.version() == len(MIGRATIONS)
    with pytest.raises(BudgetError):
        book.charge("more", Pure("0.3", neighbours=Neighbours.ADD_REMOVE), [], analyst="bob")
    assert book.charge("more", Pure("0.3", neighbours=Neighbours.ADD_REMOVE), [], analyst="ana").number == 6
    book.verify(head=HEAD)
    book.close()

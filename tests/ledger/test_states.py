"""States of what is charged once and goes on: no number twice, whoever writes; the last one is found again."""

import os

import pytest
from tests.ledger.tools import quoted, tamper

from noisette.errors import InputError, PrivacyError
from noisette.ledger import open_ledger
from noisette.privacy import Pure


@pytest.fixture
def book(where):
    book = open_ledger(where, budget=Pure(1))
    book.charge("a stream", Pure("1/2"), [], key="s")
    yield book
    book.close()


def test_states_follow_each_other_and_the_last_is_found(book):
    assert book.latest("s") is None
    for number in range(40):
        assert book.advance("s", number, b"state %d" % number)
        assert book.latest("s") == (number, b"state %d" % number)
    assert book.latest("t") is None
    assert [entry.question for entry in book.entries] == ["a stream"]
    assert book.spent == Pure("1/2")


def test_a_number_is_kept_once_even_with_the_same_bytes(book):
    assert book.advance("s", 0, b"first")
    assert not book.advance("s", 0, b"second")
    assert not book.advance("s", 0, b"first")
    assert book.latest("s") == (0, b"first")


def test_what_was_not_charged_and_what_leaves_a_gap_is_refused(book):
    with pytest.raises(PrivacyError, match="charged"):
        book.advance("t", 0, b"")
    with pytest.raises(PrivacyError, match="one after the other"):
        book.advance("s", 1, b"")
    for number in (-1, True, 0.5, "0", None):
        with pytest.raises(InputError):
            book.advance("s", number, b"")
    assert book.latest("s") is None


def test_states_are_part_of_the_chain(book, where):
    for number in range(3):
        book.advance("s", number, b"state")
    again = open_ledger(where)
    assert again.latest("s") == (2, b"state")
    again.close()
    tamper(where, f"DELETE FROM ledger_answers WHERE key = {quoted('s#2')}")
    with pytest.raises(PrivacyError, match="missing"):
        open_ledger(where)


@pytest.mark.slow_after(1)
def test_of_many_processes_one_keeps_each_number(where, tmp_path):
    book = open_ledger(where, budget=Pure(1), timeout=120)
    book.charge("a stream", Pure("1/2"), [], key="s")
    book.close()
    children = []
    for who in range(4):
        child = os.fork()
        if not child:
            try:
                own = open_ledger(where, timeout=120)
                won = [number for number in range(12) if own.advance("s", number, b"%d" % who)]
                (tmp_path / str(who)).write_text(repr(won))
            finally:
                os._exit(0)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    won = sorted(number for who in range(4) for number in eval((tmp_path / str(who)).read_text()))
    assert won == list(range(12))

"""A ledger shows where it was tampered with, and a copy or a backup gives no fresh budget."""

import json
import os
import shutil
import sqlite3

import pytest
from tests.ledger.tools import quoted, read, rehashed, tamper

from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.ledger import Book, accept, open_ledger, rebind
from noisette.ledger.entry import canonical, digest
from noisette.ledger.opening import store_of
from noisette.privacy import Pure


@pytest.fixture
def full(where):
    """A ledger with an opening and nine charges, and its head."""
    book = open_ledger(where, budget=Pure(1))
    for i in range(9):
        book.charge(f"q{i}", Pure("0.01"), [], key=f"k{i}")
    head = str(book.head())
    book.close()
    return where, head


def edited(where, number, **changes):
    body = json.loads(read(where, f"SELECT body FROM ledger_entries WHERE number = {number}")[0][0])
    return f"UPDATE ledger_entries SET body = {quoted(canonical(body | changes))} WHERE number = {number}"


def fault(where, head=None):
    """What opening or verifying says."""
    with pytest.raises(PrivacyError) as found:  # noqa: PT012
        book = open_ledger(where)
        try:
            book.verify(head=head)
        finally:
            book.close()
    return str(found.value)


def test_what_nobody_touched_is_well(full):
    where, head = full
    book = open_ledger(where)
    assert str(book.verify(head=head)) == head
    book.charge("one more", Pure("0.01"), [])
    assert book.verify(head=head).number == 11
    book.close()


def test_an_edit_is_named(full):
    where, _ = full
    tamper(where, edited(where, 5, question="something else"))
    assert "Entry 5 of the ledger was changed" in fault(where)


def test_a_deletion_is_named(full):
    where, _ = full
    tamper(where, "DELETE FROM ledger_entries WHERE number = 5")
    assert "Entry 5 of the ledger is missing" in fault(where)


def test_a_deletion_that_closes_the_gap_is_named(full):
    where, _ = full
    tamper(
        where,
        "DELETE FROM ledger_entries WHERE number = 5",
        *(f"UPDATE ledger_entries SET number = {n - 1} WHERE number = {n}" for n in range(6, 11)),
    )
    assert "Entry 5 of the ledger was changed" in fault(where)


def test_another_order_is_named(full):
    where, _ = full
    moves = [(4, 99), (7, 4), (99, 7)]
    tamper(where, *(f"UPDATE ledger_entries SET number = {b} WHERE number = {a}" for a, b in moves))
    assert "Entry 4 of the ledger was changed" in fault(where)


def test_a_cut_is_named(full):
    where, _ = full
    tamper(where, "DELETE FROM ledger_entries WHERE number > 7")
    assert "Entry 8 of the ledger is missing" in fault(where)


def shorten(where):
    """Take the last entries away, and make head and sums fit: what a thorough forger or an old backup leaves."""
    book = open_ledger(where)
    book.close()
    tamper(where, "DELETE FROM ledger_entries WHERE number > 7", *["UPDATE ledger_head SET number = 7"])
    spent = json.loads(read(where, "SELECT state FROM ledger_accounts")[0][0])
    spent["total"] |= {"eps": "3/50", "rho": "3/10000", "square": str(6 * frac(spent["total"]["square"]) / 9)}
    tamper(where, *rehashed(where, 8), f"UPDATE ledger_accounts SET state = {quoted(canonical(spent))}")


def frac(text):
    from fractions import Fraction

    return Fraction(text)


def test_a_rollback_that_fits_in_itself_shows_against_a_head_from_elsewhere(full):
    where, head = full
    shorten(where)
    if os.path.exists(f"{where}-head"):
        assert "not the one that was written last" in fault(where)  # the head beside the file knows better
        os.remove(f"{where}-head")
        assert "not the one that was written last" in fault(where)
        accept(where, why="a forger would say so")
        assert "Entry 9 of the ledger is missing" in fault(where, head)
    else:
        assert "Entry 8 of the ledger is missing" in fault(where, head)


def test_a_chain_that_was_written_anew_shows_against_a_head_from_elsewhere(full):
    where, head = full
    tamper(where, edited(where, 5, question="something else"))
    tamper(where, *rehashed(where, 5))
    if os.path.exists(f"{where}-head"):
        assert "not the one that was written last" in fault(where)
        os.remove(f"{where}-head")
        accept(where, why="a forger would say so")
    assert "Entry 10 of the ledger or one before it" in fault(where, head)


def test_sums_that_were_changed_are_found(full):
    where, _ = full
    state = json.loads(read(where, "SELECT state FROM ledger_accounts")[0][0])
    state["total"]["eps"] = "0"
    tamper(where, f"UPDATE ledger_accounts SET state = {quoted(canonical(state))}")
    assert "running sums" in fault(where)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_accounts SET state = '{}'",
        "UPDATE ledger_accounts SET state = 'x'",
        "DELETE FROM ledger_accounts",
        "UPDATE ledger_head SET about = '{}'",
        "UPDATE ledger_head SET about = 'x'",
        "UPDATE ledger_head SET number = 9",
        "UPDATE ledger_head SET hash = 'x'",
        "DELETE FROM ledger_head",
        "INSERT INTO ledger_accounts SELECT 'eve', state FROM ledger_accounts",
        "UPDATE ledger_entries SET key = 'other' WHERE number = 3",
        "UPDATE ledger_entries SET body = 'x' WHERE number = 3",
    ],
)
def test_nothing_that_was_changed_goes_unnoticed(full, statement):
    where, _ = full
    tamper(where, statement)
    with pytest.raises(NoisetteError):
        open_ledger(where, budget=Pure(1)).close()


def test_an_overdrawn_budget_is_found_even_if_all_hashes_fit(full):
    where, _ = full
    taken = {"eps": "2", "rho": "2", "square": "8", "delta": "0", "slack": "0"}
    tamper(where, edited(where, 5, charge=taken))
    tamper(where, *rehashed(where, 5))
    if os.path.exists(f"{where}-head"):
        os.remove(f"{where}-head")
        with pytest.raises(PrivacyError, match="take more than the budget"):
            accept(where, why="x")
    else:
        assert "take more than the budget" in fault(where)


def test_the_database_itself_refuses_to_change_entries(full):
    where, _ = full
    statements = ["UPDATE ledger_entries SET body = 'x'", "DELETE FROM ledger_entries"]
    for statement in statements:
        if where.startswith("postgresql"):
            import psycopg

            with psycopg.connect(where) as connection, pytest.raises(psycopg.Error, match="append only"):
                connection.execute(statement)
        else:
            connection = sqlite3.connect(where)
            with pytest.raises(sqlite3.Error, match="append only"):
                connection.execute(statement)
            connection.close()


# Answers


@pytest.fixture
def answered(where):
    """A ledger with two charges; the first has an answer, entry 3."""
    book = open_ledger(where, budget=Pure(1))
    for key in ("k0", "k1"):
        book.charge("q", Pure("0.1"), [], key=key)
        if key == "k0":
            assert book.keep(key, b"42") == book.keep(key, b"43") == b"42"
    assert [body["kind"] for body in book.history] == ["open", "charge", "answer", "charge"]
    assert book.verify() == book.head()
    book.close()
    return where


def test_a_kept_answer_that_was_changed_is_named(answered):
    tamper(answered, "UPDATE ledger_answers SET body = '43'")
    assert "The answer of entry 3 of the ledger was changed" in fault(answered)


def test_a_kept_answer_that_was_taken_away_is_named(answered):
    """Or else it would be drawn anew under the same charge."""
    tamper(answered, "DELETE FROM ledger_answers")
    assert "The answer of entry 3 of the ledger is missing" in fault(answered)


def test_an_answer_that_was_put_in_is_found(answered):
    tamper(answered, "INSERT INTO ledger_answers (key, body) VALUES ('k1', '42')")
    assert "an answer that no entry knows" in fault(answered)


def test_an_answer_that_was_changed_with_its_entry_shows_like_any_edit(answered):
    tamper(answered, "UPDATE ledger_answers SET body = '43'", edited(answered, 3, sha256=digest(b"43")))
    assert "Entry 3 of the ledger was changed" in fault(answered)


def test_an_answer_is_kept_only_where_the_ledger_is(answered):
    if answered.startswith("postgresql"):
        tamper(answered, "UPDATE ledger_head SET about = replace(about, 'postgresql:', 'postgresql:9')")
        book = Book(store_of(answered, 5))
        with pytest.raises(PrivacyError, match="copied, moved or restored"):
            book.keep("k1", b"42")
    else:
        book = Book(store_of(answered, 5))
        os.remove(f"{answered}-head")
        with pytest.raises(PrivacyError, match="not the one that was written last"):
            book.keep("k1", b"42")
    book.close()


# Places


def copied(path, to):
    book = open_ledger(path)
    book._store.run("PRAGMA wal_checkpoint(TRUNCATE)")
    book.close()
    shutil.copy(path, to)


@pytest.fixture
def path(tmp_path):
    book = open_ledger(tmp_path / "visits.ledger", budget=Pure(1))
    book.charge("q", Pure("0.5"), [])
    book.close()
    return tmp_path / "visits.ledger"


@pytest.mark.parametrize("with_head", [False, True])
def test_a_copy_is_refused_until_the_owner_accepts_it(path, tmp_path, with_head):
    copy = tmp_path / "copy.ledger"
    copied(path, copy)
    if with_head:
        shutil.copy(f"{path}-head", f"{copy}-head")
    with pytest.raises(PrivacyError, match=r"copy|copied"):
        open_ledger(copy, budget=Pure(1))
    accept(copy, why="the old disk is gone")
    book = open_ledger(copy, budget=Pure(1))
    assert book.left == Pure("0.5")
    assert (book.history[-1]["act"], book.history[-1]["why"]) == ("accept", "the old disk is gone")
    book.close()


@pytest.mark.parametrize("put_back", ["copy over it", "move over it"])
def test_a_backup_that_is_put_back_is_refused_until_the_owner_accepts_it(path, tmp_path, put_back):
    backup = tmp_path / "backup"
    copied(path, backup)
    book = open_ledger(path)
    for _ in range(3):
        book.charge("q", Pure("0.1"), [])
    book._store.run("PRAGMA wal_checkpoint(TRUNCATE)")
    book.close()
    if put_back == "copy over it":
        shutil.copyfile(backup, path)
    else:
        os.replace(backup, path)
    with pytest.raises(PrivacyError, match="accept"):
        open_ledger(path, budget=Pure(1))
    accept(path, why="the disk broke")
    book = open_ledger(path)
    assert book.left == Pure("0.5")  # what the backup does not know is for the owner to charge
    book.charge("answers that the backup does not know", Pure("0.3"), [])
    assert book.left == Pure("0.2")
    book.close()


def test_a_file_that_is_replaced_while_it_is_open_is_not_written(path, tmp_path):
    backup = tmp_path / "backup"
    copied(path, backup)
    book = open_ledger(path)
    os.replace(backup, path)
    with pytest.raises(PrivacyError, match="moved or replaced while it was open"):
        book.charge("q", Pure("0.1"), [])
    book.close()


def test_a_ledger_that_is_used_again_after_it_was_closed_is_looked_at_again(path, tmp_path):
    book = open_ledger(path)
    book.close()
    copied(path, tmp_path / "backup")
    os.replace(tmp_path / "backup", path)
    with pytest.raises(PrivacyError, match="copied, moved or restored"):
        book.charge("q", Pure("0.1"), [])
    book.close()


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_lost_file_does_not_start_afresh(path, how):
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.unlink() if how == "deleted" else path.write_bytes(b"")
    with pytest.raises(PrivacyError, match="not the one that was written last"):
        open_ledger(path, budget=Pure(1))


def test_there_must_be_something_to_accept(tmp_path):
    for act in (accept, rebind):
        with pytest.raises(InputError, match="There is no ledger"):
            act(tmp_path / "x.ledger", why="x")
    with pytest.raises(InputError, match="There is no ledger yet"):
        open_ledger(tmp_path / "x.ledger")
    assert list(tmp_path.iterdir()) == []
    open_ledger(tmp_path / "y.ledger", budget=Pure(1)).close()
    with pytest.raises(InputError, match="Say why"):
        accept(tmp_path / "y.ledger", why="")


def test_a_restored_dump_is_refused_until_the_owner_accepts_it(server):
    import psycopg

    first, second = server("original"), server("restored")
    book = open_ledger(first, budget=Pure(1))
    book.charge("q", Pure("0.5"), [])
    book.close()
    open_ledger(second, budget=Pure(1)).close()
    tables = ["ledger_entries", "ledger_head", "ledger_accounts"]
    tamper(second, *(f"DELETE FROM {table}" for table in tables))
    with psycopg.connect(second, autocommit=True) as connection:
        for table in tables:
            connection.execute(f"INSERT INTO restored.{table} SELECT * FROM original.{table}")
    with pytest.raises(PrivacyError, match="copied, moved or restored"):
        open_ledger(second)
    accept(second, why="moved to a new server")
    book = open_ledger(second)
    assert book.left == Pure("0.5")
    book.close()


# Data


def test_a_ledger_is_about_its_data(where):
    open_ledger(where, budget=Pure(1), data={"visits": "a" * 64}).close()
    open_ledger(where, budget=Pure(1), data={"visits": "a" * 64}).close()
    with pytest.raises(PrivacyError, match="The data changed since"):
        open_ledger(where, budget=Pure(1), data={"visits": "b" * 64})
    rebind(where, why="a column was added")
    open_ledger(where, budget=Pure(1), data={"visits": "b" * 64}).close()
    with pytest.raises(PrivacyError, match="The data changed since"):
        open_ledger(where, budget=Pure(1), data={"visits": "a" * 64})
    book = open_ledger(where)
    assert [body.get("act") for body in book.history] == [None, "data", "data"]
    book.close()


def test_fingerprints_of_an_earlier_version_are_replaced_once(where):
    old, new = {"visits": "a" * 64}, {"visits": "b" * 64}
    open_ledger(where, budget=Pure(1), data=old).close()
    for _ in range(2):
        open_ledger(where, data=new, formerly=old).close()
    book = open_ledger(where)
    assert [body["data"] for body in book.history] == [old, new]
    book.close()
    with pytest.raises(PrivacyError, match="The data changed"):
        open_ledger(where, data={"visits": "c" * 64}, formerly=old)

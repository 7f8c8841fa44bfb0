"""Whatever fails, nothing is charged by half, and one sentence says what to do."""

import errno
import os
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from tests.ledger.tools import counted

from noisette.errors import BudgetError, InputError, NoisetteError, PrivacyError
from noisette.ledger import open_ledger, sqlite, store
from noisette.privacy import Pure


@pytest.fixture
def path(tmp_path):
    book = open_ledger(tmp_path / "visits.ledger", budget=Pure(1))
    book.charge("q", Pure("0.1"), [])
    book.close()
    return tmp_path / "visits.ledger"


def one_sentence(fault):
    text = str(fault.value)
    return text.endswith(".") and text.count(". ") == 0 and ": " in text


def test_a_full_disk(path):
    book = open_ledger(path)
    pages = book._store.run("PRAGMA page_count")[0][0]
    book._store.run(f"PRAGMA max_page_count = {pages}")
    before = book.head()
    with pytest.raises(NoisetteError, match="free some disk space") as fault:  # noqa: PT012
        for _ in range(100):
            book.charge("x" * 2000, Pure("0.001"), [])
            before = book.head()
    assert one_sentence(fault)
    assert book.head() == book.verify() == before
    book._store.run("PRAGMA max_page_count = 100000")
    assert book.charge("q", Pure("0.1"), []).number == before.number + 1  # there is room again
    book.verify()
    book.close()


@pytest.mark.slow
def test_a_file_that_may_not_grow(path):
    code = """
import resource, signal, sys
from noisette.ledger import open_ledger
from noisette.errors import NoisetteError
from noisette.privacy import Pure
book = open_ledger(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
charged = 1
try:
    while charged < 1000:
        book.charge("x" * 2000, Pure("0.0001"), [])
        charged += 1
except NoisetteError as fault:
    assert str(fault).endswith("check its disk.") or "free some disk space" in str(fault), fault
assert 1 < charged < 1000 and len(book.entries) == charged == book.verify().number - 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
book.charge("there is room again", Pure("0.0001"), [])
book.verify()
book.close()
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=300)


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "disk space"), (errno.EROFS, "read-only"), (5, "check its")]
)
def test_a_head_beside_the_file_that_cannot_be_written(path, monkeypatch, number, said):
    book = open_ledger(path)
    before = book.head()

    def fail(*_):
        raise OSError(number, "somewhere")

    monkeypatch.setattr(sqlite.os, "write", fail)
    with pytest.raises(NoisetteError, match=said) as fault:
        book.charge("q", Pure("0.1"), [])
    monkeypatch.undo()
    assert one_sentence(fault)
    assert book.head() == before
    book.close()


def test_a_file_that_may_not_be_written(path):
    book = open_ledger(path)
    book._store.run("PRAGMA query_only = ON")  # root may write everything, so the database is told not to
    with pytest.raises(InputError, match="read-only: allow") as fault:
        book.charge("q", Pure("0.1"), [])
    assert one_sentence(fault)
    assert len(book.entries) == 1
    book.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_without_permission(path):
    """It can be read, and nothing can be charged."""
    path.chmod(0o400)
    book = open_ledger(path)
    assert len(book.entries) == 1
    with pytest.raises(InputError, match="read-only: allow") as fault:
        book.charge("q", Pure("0.1"), [])
    assert one_sentence(fault)
    assert len(book.entries) == 1
    book.close()


def test_a_ledger_that_is_locked_too_long(path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    with pytest.raises(NoisetteError, match="busy too long: ask again") as fault:
        open_ledger(path, timeout=0.2)
    assert one_sentence(fault)
    assert 0.15 < time.monotonic() - begun < 20  # without the timeout it waits for 30 s
    other.close()
    book = open_ledger(path)
    assert len(book.entries) == 1
    book.close()


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be read as one" * 100, b"short"])
def test_a_file_that_is_no_ledger(tmp_path, content):
    path = tmp_path / "visits.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"visits\.csv is not a ledger") as fault:
        open_ledger(path, budget=Pure(1))
    assert one_sentence(fault)
    assert path.read_bytes() == content


def test_a_database_that_is_no_ledger(tmp_path):
    path = tmp_path / "visits.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE visits (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="a database but not a ledger") as fault:
        open_ledger(path, budget=Pure(1))
    assert one_sentence(fault)
    assert path.read_bytes() == before


def test_a_damaged_file(path):
    book = open_ledger(path)
    guarantee, parts = counted(1000)
    for _ in range(50):
        book.charge("q", guarantee, parts)
    book._store.run("PRAGMA wal_checkpoint(TRUNCATE)")
    before, found = (book.history, book.left), set()
    book.close()
    whole = path.read_bytes()
    size = int.from_bytes(whole[16:18], "big")
    for page in range(len(whole) // size):
        damaged = bytearray(whole)
        damaged[page * size + 100 : (page + 1) * size] = b"\xa5" * (size - 100)
        path.write_bytes(bytes(damaged))
        with pytest.raises(NoisetteError) as fault:  # noqa: PT012
            book = open_ledger(path)
            assert (book.history, book.left) == before  # where nothing is stored, nothing is damaged
            book.close()
            raise NoisetteError("Nothing was damaged: go on.")
        assert one_sentence(fault)
        found.add(str(fault.value))
    assert len(found) > 2
    path.write_bytes(whole)
    open_ledger(path).close()


def test_every_byte_counts(path):
    """A flipped bit in an entry's page is found: by the database, by the chain, or by the sums."""
    book = open_ledger(path)
    book._store.run("PRAGMA wal_checkpoint(TRUNCATE)")
    before = book.history, book.left
    book.close()
    whole = path.read_bytes()
    place = whole.index(b'"question":"q"')
    for offset in range(0, 300, 7):
        damaged = bytearray(whole)
        damaged[place - 150 + offset] ^= 0x04
        path.write_bytes(bytes(damaged))
        try:
            book = open_ledger(path)
        except NoisetteError:
            continue
        assert (book.history, book.left) == before
        book.close()
    path.write_bytes(whole)


def test_a_newer_version_of_the_tables(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match="newer version of Noisette: update") as fault:
        open_ledger(path)
    assert one_sentence(fault)


def test_a_directory_that_is_missing_and_one_that_is_no_file(tmp_path):
    for path in (tmp_path / "none" / "x.ledger", tmp_path):
        with pytest.raises(InputError, match=r"create it first|name a file") as fault:
            open_ledger(path, budget=Pure(1))
        assert one_sentence(fault)


@pytest.mark.parametrize("where", ["", "mysql://x/y", 7, None])
def test_places_that_are_none(where):
    with pytest.raises(InputError, match="path of a file or a URL"):
        open_ledger(where, budget=Pure(1))


def test_an_error_while_charging_leaves_no_trace(where):
    def fail(step):
        if step == "written":
            raise RuntimeError("out of the blue")

    open_ledger(where, budget=Pure(1)).close()
    book = open_ledger(where, step=fail)
    with pytest.raises(RuntimeError):
        book.charge("q", Pure("0.1"), [], key="k")
    assert (book.entries, book.left) == ((), Pure(1))
    book.close()
    again = open_ledger(where)
    again.charge("q", Pure("0.1"), [], key="k")
    again.verify()
    again.close()


def test_a_refusal_writes_nothing(where):
    book = open_ledger(where, budget=Pure(1))
    head = book.head()
    with pytest.raises(BudgetError):
        book.charge("q", Pure(2), [])
    with pytest.raises(InputError, match="finite"):
        book.charge("q", Pure("0.1"), [{"mechanism": float("nan")}])
    assert book.head() == head
    book.close()


def test_it_is_as_durable_as_it_says(path):
    book = open_ledger(path)
    settings = [book._store.run(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]
    book.close()


def test_a_server_that_is_out_of_reach():
    pytest.importorskip("psycopg")
    with pytest.raises(NoisetteError, match="out of reach") as fault:
        open_ledger("postgresql://nobody:secret@127.0.0.1:1/none", budget=Pure(1), timeout=1)
    assert one_sentence(fault)
    assert "secret" not in str(fault.value)


def test_a_server_that_closes_the_connection(server):
    import psycopg

    url = server()
    book = open_ledger(url, budget=Pure(1))
    pid = book._store.run("SELECT pg_backend_pid()")[0][0]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])  # returns when it is gone
    with pytest.raises(NoisetteError, match="out of reach"):
        book.charge("q", Pure("0.1"), [])
    book.charge("q", Pure("0.1"), [])  # on a new connection
    assert len(book.entries) == 1
    book.close()


def test_a_server_that_is_busy_or_refuses(server):
    import psycopg

    url = server()
    patient = open_ledger(url, budget=Pure(1), timeout=77)
    assert patient._store.run("SHOW lock_timeout") == [("77s",)]
    patient.close()
    book = open_ledger(url)
    book._store.run("SET lock_timeout TO '300ms'")  # for this connection, whose making may take as long as it needs
    with psycopg.connect(url) as connection:
        connection.execute("SELECT * FROM ledger_head FOR UPDATE")
        with pytest.raises(NoisetteError, match="busy too long") as fault:
            book.charge("q", Pure("0.1"), [])
    assert one_sentence(fault)
    book._store.run("SET default_transaction_read_only TO on")
    with pytest.raises(InputError, match="read-only") as fault:
        book.charge("q", Pure("0.1"), [])
    assert one_sentence(fault)
    book._store.run("SET default_transaction_read_only TO off")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        schema = connection.execute("SELECT current_schema()").fetchone()[0]
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    with pytest.raises(InputError, match="may not be written") as fault:
        open_ledger(url.replace("postgres:@", "reader:@"))
    assert one_sentence(fault)
    assert book.charge("q", Pure("0.1"), []).number == 2
    book.close()


def test_a_server_setting_cannot_make_commits_less_durable(server):
    url = server() + "%20-csynchronous_commit%3Doff"
    book = open_ledger(url, budget=Pure(1))
    assert book._store.run("SHOW synchronous_commit") == [("on",)]
    book.close()


def test_postgres_needs_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"noisette\[postgres\]"):
        open_ledger("postgresql://x/y", budget=Pure(1))


@pytest.mark.slow
def test_a_forked_process_opens_a_connection_of_its_own(where):
    code = """
import os, sys
from noisette.ledger import open_ledger
from noisette.privacy import Pure
book = open_ledger(sys.argv[1], budget=Pure(1))
book.charge("before", Pure("0.1"), [])
child = os.fork()
for _ in range(3):
    book.charge("after", Pure("0.1"), [])
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert len(book.entries) == 7, book.entries
    book.verify()
else:
    os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code, where], check=True, timeout=300)


# Versions


def test_a_migration_that_fails_leaves_the_old_version(path, monkeypatch):
    monkeypatch.setattr(store, "MIGRATIONS", [*store.MIGRATIONS, ["ALTER TABLE ledger_head ADD COLUMN a", "nonsense"]])
    with pytest.raises(NoisetteError):
        open_ledger(path)
    monkeypatch.undo()
    book = open_ledger(path)
    assert (book._store.version(), len(book.entries)) == (len(store.MIGRATIONS), 1)
    book.close()


def test_a_migration_happens_once_and_keeps_everything(path, monkeypatch):
    monkeypatch.setattr(store, "MIGRATIONS", [*store.MIGRATIONS, ["CREATE TABLE ledger_more (a {blob})"]])
    for _ in range(2):
        book = open_ledger(path)
        assert (book._store.version(), len(book.entries)) == (len(store.MIGRATIONS), 1)
        book.charge("q", Pure("0.01"), [], key=None) if _ else None
        book.close()
    monkeypatch.undo()
    with pytest.raises(InputError, match="newer version"):
        open_ledger(path)


def test_all_faults_of_the_file_have_a_sentence():
    sentences = [*sqlite._SENTENCES.values(), sqlite._OTHER]
    assert all(issubclass(kind, NoisetteError) and ": " in text and text.endswith(".") for kind, text in sentences)
    assert issubclass(PrivacyError, NoisetteError)


# Beginning


def a_writer_of(path):
    """A new file that somebody else writes at the moment, so that nobody can switch it to WAL."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE t (a)")
    other.execute("BEGIN IMMEDIATE")
    return other


def test_whoever_begins_a_ledger_waits_for_the_others(tmp_path):
    other = a_writer_of(tmp_path / "x")
    connection = sqlite3.connect(tmp_path / "x", timeout=30, isolation_level=None)
    begun = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        connection.execute("PRAGMA journal_mode = WAL")  # by itself SQLite does not wait
    assert time.monotonic() - begun < 20
    threading.Timer(0.2, lambda: other.execute("COMMIT")).start()
    sqlite._write_ahead(connection, 30)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    other.close()


def test_nobody_waits_for_ever(tmp_path):
    other = a_writer_of(tmp_path / "x")
    connection = sqlite3.connect(tmp_path / "x", timeout=30, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite._write_ahead(connection, 0.1)
    connection.close()
    other.close()

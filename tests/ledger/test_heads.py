"""Heads outside of the ledger's folder: deleted, copied and restored ledgers are missed on the user's machine."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

import noisette as nz
from noisette.curator.described import described_data
from noisette.curator.fingerprints import contents
from noisette.errors import InputError, PrivacyError
from noisette.ledger import KnownError, accept, elsewhere, open_ledger
from noisette.ledger.chain import Head
from noisette.ledger.heads import guarded
from noisette.privacy import Pure

COUNT = "SELECT count(*) AS n FROM data"


def state():
    return Path(os.environ["NOISETTE_STATE"])


def write(path, rows=300, **columns):
    parquet.write_table(pyarrow.table({"p": range(rows), **columns}), path)
    return path


def ask(source, ledger, text=COUNT, spend="0.25", **options):
    curator = nz.open({"data": source}, budget=1, ledger=ledger, **options)
    curator.sql(text, spend=spend)
    left = curator.budget.left.epsilon
    curator.ledger.close()
    return left


def delete(ledger):
    for path in Path(ledger).parent.glob(f"{Path(ledger).name}*"):
        path.unlink()


@pytest.mark.slow
def test_a_deleted_ledger_is_missed(tmp_path):
    data, ledger = write(tmp_path / "data.parquet"), tmp_path / "x.ledger"
    assert ask(data, ledger) == Pure("0.75").epsilon
    delete(ledger)
    with pytest.raises(KnownError, match=r"start over .*start_over='why' in Python"):
        ask(data, ledger)
    assert ask(data, ledger, start_over="the first was a trial") == Pure("0.75").epsilon
    book = open_ledger(ledger)
    assert book.history[0]["start_over"] == "the first was a trial"
    book.close()
    with pytest.raises(InputError, match="There is a ledger, and it goes on"):
        ask(data, ledger, start_over="again")
    assert ask(data, ledger, spend="0.5") == Pure("0.25").epsilon


@pytest.mark.slow
def test_a_second_ledger_for_the_same_data(tmp_path):
    data = write(tmp_path / "data.parquet")
    ask(data, tmp_path / "x.ledger")
    with pytest.raises(KnownError):
        ask(data, tmp_path / "y.ledger")
    with pytest.raises(KnownError):
        ask(shutil.copy(data, tmp_path / "copy.parquet"), tmp_path / "y.ledger")
    assert ask(data, tmp_path / "x.ledger", spend="0.5") == Pure("0.25").epsilon  # the first one goes on


@pytest.mark.slow
def test_data_that_change_stay_with_their_ledger(tmp_path):
    data, ledger = tmp_path / "data.parquet", tmp_path / "x.ledger"
    for rows in (300, 299, 500):
        ask(write(data, rows), ledger)
    for rows in (300, 299, 500):  # all states that were asked about are known
        with pytest.raises(KnownError):
            ask(write(tmp_path / "other.parquet", rows), tmp_path / "y.ledger")


def test_a_frame_in_memory_is_known_by_its_place_alone(tmp_path):
    frame = pyarrow.table({"p": [1, 2, 3]})
    ask(frame, tmp_path / "x.ledger")
    ask(frame, tmp_path / "y.ledger")
    delete(tmp_path / "x.ledger")
    with pytest.raises(KnownError):
        ask(frame, tmp_path / "x.ledger")


def test_without_a_ledger_nothing_is_remembered(tmp_path):
    data = write(tmp_path / "data.parquet")
    nz.open({"data": data}, budget=1).sql(COUNT, spend="0.5")
    book = open_ledger(tmp_path / "x.ledger", budget=Pure(1))
    book.charge("q", Pure("0.5"), [])
    book.close()
    accept(tmp_path / "x.ledger", why="a test")
    assert not state().exists()


def test_nothing_is_remembered_before_the_first_charge(tmp_path):
    data = write(tmp_path / "data.parquet")
    for _ in range(2):
        nz.open({"data": data}, budget=1, ledger=tmp_path / "x.ledger").ledger.close()
        delete(tmp_path / "x.ledger")
    assert not state().exists()


@pytest.mark.slow
def test_a_database_is_known_by_its_data(tmp_path, server):
    data = write(tmp_path / "data.parquet")
    url = server()
    ask(data, url)
    ask(data, url)
    with pytest.raises(KnownError):
        ask(data, server())
    with pytest.raises(KnownError):
        ask(data, tmp_path / "x.ledger")
    assert not (state() / "ledgers").exists()


def test_a_charge_is_remembered_before_it_counts(tmp_path):
    """Of a ledger alone: the place and the data are noted, and with each charge the head before it."""
    place, other = tmp_path / "x.ledger", tmp_path / "y.ledger"
    book = open_ledger(place, budget=Pure(1), elsewhere=elsewhere(place, ["content"]))
    assert not elsewhere(place, ["content"]).known()
    book.charge("q", Pure("0.5"), [])
    opened, first = elsewhere(place).head(), book.head()
    assert opened.number == first.number - 1
    book.charge("r", Pure("0.25"), [])
    assert elsewhere(place).head() == first
    book.close()
    delete(place)
    for where, what in ((place, []), (place, ["content"]), (other, ["content"])):
        with pytest.raises(KnownError):
            open_ledger(where, budget=Pure(1), elsewhere=elsewhere(where, what))


# Ledgers that were put back


def put_back(ledger, backup):
    """Write the files of a backup into the ones that are there: inodes, and so the place, stay the same."""
    for path in ledger.parent.glob(f"{ledger.name}*"):
        path.write_bytes(backup.get(path, b""))


def backup_of(ledger):
    return {path: path.read_bytes() for path in ledger.parent.glob(f"{ledger.name}*")}


@pytest.mark.slow
def test_a_backup_with_its_head_is_found_until_it_is_accepted(tmp_path):
    data, ledger = write(tmp_path / "data.parquet"), tmp_path / "x.ledger"
    ask(data, ledger)
    backup = backup_of(ledger)
    ask(data, ledger, spend="0.5")  # one charge more is enough
    put_back(ledger, backup)
    with pytest.raises(PrivacyError, match="not the one that was written last"):
        ask(data, ledger)
    open_ledger(ledger).close()  # nothing but the head elsewhere knows
    accept(ledger, why="the disk failed")
    assert ask(data, ledger) == Pure("0.75").epsilon


def test_a_head_that_cannot_be_read(tmp_path):
    data, ledger = write(tmp_path / "data.parquet"), tmp_path / "x.ledger"
    ask(data, ledger)
    (place,) = (state() / "ledgers").iterdir()
    place.write_text("something else that is longer than any head could ever be" * 3)
    with pytest.raises(PrivacyError, match="cannot be read"):
        ask(data, ledger)
    accept(ledger, why="it was edited")
    assert Head.read(place.read_text()).number > 0
    ask(data, ledger)


# The state folder


def test_many_at_once_have_one_secret():
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: guarded(), range(64)))
    assert len((state() / "secret").read_bytes()) == 32
    assert os.listdir(state()) == ["secret"]


def test_another_secret_has_other_names(tmp_path, monkeypatch):
    names = []
    for folder in "ab":
        monkeypatch.setenv("NOISETTE_STATE", str(tmp_path / folder))
        elsewhere(tmp_path / "x.ledger", ["content"]).remember(Head(1, "a" * 64), "b" * 32)
        names.append({path.name for path in (tmp_path / folder).rglob("*") if path.is_file()} - {"secret"})
        assert len(names[-1]) == 2
    assert not names[0] & names[1]


def test_it_cannot_stop_a_question(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NOISETTE_STATE", str(tmp_path / "file" / "state"))
    data, ledger = write(tmp_path / "data.parquet"), tmp_path / "x.ledger"
    assert not guarded()
    ask(data, ledger)
    assert ask(data, ledger, spend="0.5") == Pure("0.25").epsilon


# What files hold


def held(source, **rules):
    found = described_data(source, budget=1, policy={"tables": rules} if rules else None)
    return contents(found.tables, found.schema)


@pytest.mark.slow
def test_contents_are_those_of_a_copy(tmp_path):
    one = write(tmp_path / "a.parquet", 50_000, more=[f"{i:0100}" for i in range(50_000)])
    two = shutil.copy(one, tmp_path / "b.parquet")
    other = write(tmp_path / "c.parquet", 50_000, more=[f"{i:0100}" for i in range(1, 50_001)])
    assert held({"x": one}) == held({"y": two}) == held({"y": [two]}) != held({"x": other})
    assert one.stat().st_size > 2**17


@pytest.mark.parametrize("line", [1, 20_000])
def test_either_end_of_a_file_counts(tmp_path, line):
    lines = [f"{i:09}" for i in range(20_001)]
    types = {"columns": {"p": {"type": "integer"}}}
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("\n".join(["p", *lines]))
        lines[line] = "123456789"
    first, second = (held({"x": tmp_path / f"{name}.csv"}, x=types) for name in "ab")
    assert first != second


@pytest.mark.slow
def test_contents_of_many_files_and_of_none(tmp_path):
    for i in range(40):
        write(tmp_path / f"part-{i:02}.parquet", i + 1)
    many = held({"x": str(tmp_path / "part-*.parquet")})
    assert many == held({"x": sorted(tmp_path.glob("part-*.parquet"))})
    (tmp_path / "part-39.parquet").unlink()
    assert held({"x": str(tmp_path / "part-*.parquet")}) != many
    assert held({"x": pyarrow.table({"p": [1]})}) == []
    assert held({"x": tmp_path / "part-00.parquet"}, x={"public": True}) == []

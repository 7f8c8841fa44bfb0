"""`nz.open` with a ledger: every question is charged there, and what was spent is spent after a restart."""

import hashlib
import json
import sqlite3
from fractions import Fraction

import pytest
from tests.curator.clinic import opened

import noisette as nz
from noisette.engines.contract import Source
from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, PrivacyError
from noisette.ledger import Book, Memory, open_ledger, rebind

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
BUDGET = nz.Approx(1, "1e-6")


def test_without_a_ledger_charges_are_in_memory():
    assert isinstance(opened(BUDGET).ledger, Memory)


@pytest.mark.slow_after(1)
def test_what_was_spent_is_spent_after_a_restart(where):
    curator = opened(BUDGET, ledger=where)
    curator.sql(COUNT, spend="0.3")
    curator.sql(COUNT, spend="0.3")  # the same answer, for free
    spent, left = curator.budget.spent, curator.budget.left
    curator.ledger.close()
    again = opened(BUDGET, ledger=where)
    assert isinstance(again.ledger, Book)
    assert (again.budget.spent, again.budget.left) == (spent, left)
    assert [entry.number for entry in again.ledger.entries] == [2]
    again.sql(COUNT, spend="0.3")  # frames in memory may be others now, so it is drawn anew, and charged
    assert len(again.ledger.entries) == 2
    with pytest.raises(BudgetError):
        again.sql(COUNT, spend="0.9")
    assert again.ledger.check() == 2
    again.ledger.close()


@pytest.mark.slow
def test_answers_about_files_are_kept_and_those_about_newer_ones_are_charged(tmp_path):
    import pyarrow
    from pyarrow import parquet

    def asked():
        curator = nz.open(tmp_path / "a.parquet", budget=1, ledger=tmp_path / "x.ledger")
        rows = curator.sql("SELECT COUNT(*) AS n FROM a", spend="0.01").rows()
        charged = len(curator.ledger.entries)
        curator.ledger.close()
        return rows, charged

    parquet.write_table(pyarrow.table({"x": [1] * 10}), tmp_path / "a.parquet")
    first = asked()
    assert [asked() for _ in range(3)] == [first] * 3
    parquet.write_table(pyarrow.table({"x": [1] * 10}), tmp_path / "a.parquet")
    assert asked()[1] == 2


QUESTIONS = [
    (COUNT, "0.1"),
    ("SELECT AVG(age) AS a, SUM(cost) AS s, COUNT(DISTINCT patient_id) AS p FROM visits", "0.1"),
    ("SELECT MEDIAN(age) AS m FROM visits", "0.1"),
    ("SELECT note, COUNT(*) AS n FROM visits GROUP BY note", nz.Approx("0.1", "1e-8")),
    ("SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY ward", nz.Approx("0.1", "1e-8")),
    (COUNT, nz.ZCDP("0.001")),
]


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add/remove", "replace"])
def test_every_sort_of_question_can_be_checked_from_its_entry_alone(tmp_path, neighbours):
    from tests.curator.clinic import POLICY

    policy = {**POLICY, "budget": {"epsilon": "9", "delta": "1e-6", "neighbours": neighbours}}
    curator = opened(nz.Approx(9, "1e-6"), policy=policy, ledger=tmp_path / "x.ledger")
    asked = 0
    for text, spend in QUESTIONS:
        try:
            curator.sql(text, spend=spend)
            asked += 1
        except InputError:  # not every relation can be asked everything
            continue
    book = curator.ledger
    assert book.check() == len(book.entries) == asked >= 4
    kept = curator.budget
    book.close()
    again = open_ledger(tmp_path / "x.ledger")
    assert [e.guarantee for e in again.entries] == [e.guarantee for e in kept.entries]
    assert again.tight("1e-6") <= again.budget.epsilon
    again.close()


def test_a_question_is_charged_before_the_data_is_touched_and_stays_charged(tmp_path):
    curator = opened(BUDGET, ledger=tmp_path / "x.ledger")
    seen = []

    class Broken:
        release = Source.release

        def aggregate(self, *_):
            entries = open_ledger(tmp_path / "x.ledger")  # what others see now
            seen.append(len(entries.entries))
            entries.close()
            raise RuntimeError("patient p001")

    curator._source = Broken()
    with pytest.raises(FailedError):
        curator.sql(COUNT, spend="0.3")
    assert len(curator.ledger.entries) == 1
    assert seen == [1]
    curator.ledger.close()


def test_nothing_is_drawn_if_the_charge_cannot_be_written(tmp_path):
    curator = opened(BUDGET, ledger=tmp_path / "x.ledger")
    curator.ledger._store.timeout = 0.1
    curator.ledger.close()
    other = sqlite3.connect(tmp_path / "x.ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    class Untouched:
        release = Source.release

        def aggregate(self, *_):
            raise AssertionError("the data was touched")

    curator._source = Untouched()
    with pytest.raises(NoisetteError, match="busy too long"):
        curator.sql(COUNT, spend="0.3")
    other.close()
    curator.ledger.close()


@pytest.mark.slow
def test_analysts_have_shares(tmp_path):
    curator = opened(BUDGET, ledger=tmp_path / "x.ledger")
    curator.ledger.share({"ana": nz.Pure("0.2")}, why="a pilot")
    curator.sql(COUNT, spend="0.1", analyst="ana")
    assert not curator.explain(COUNT, spend="0.15", analyst="ana").allowed
    with pytest.raises(BudgetError):
        curator.sql(COUNT, spend="0.15", analyst="ana")
    assert curator.ledger.entries[0].analyst == "ana"
    curator.ledger.close()
    nobody = opened(BUDGET, ledger=tmp_path / "x.ledger")
    with pytest.raises(PrivacyError, match="no share"):
        nobody.sql(COUNT, spend="0.01")
    nobody.ledger.close()


@pytest.mark.slow
def test_the_ledger_of_other_data_is_refused(tmp_path):
    import pyarrow
    from pyarrow import parquet

    tables = {"a": {"x": [1, 2]}, "b": {"x": [1, 2]}, "c": {"x": [1, 2], "y": [1, 2]}}
    for name, columns in tables.items():
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    ledger = tmp_path / "x.ledger"
    nz.open(tmp_path / "a.parquet", budget=1, ledger=ledger).ledger.close()
    nz.open(tmp_path / "a.parquet", budget=1, ledger=ledger).ledger.close()
    with pytest.raises(PrivacyError, match="The data changed since"):
        nz.open(tmp_path / "b.parquet", budget=1, ledger=ledger)
    with pytest.raises(PrivacyError, match="The data changed since"):
        nz.open(tmp_path / "a.parquet", budget=1, ledger=ledger, unit="x")
    (tmp_path / "c.parquet").replace(tmp_path / "a.parquet")
    with pytest.raises(PrivacyError, match="The data changed since"):
        nz.open(tmp_path / "a.parquet", budget=1, ledger=ledger)
    rebind(ledger, why="a column was added")
    nz.open(tmp_path / "a.parquet", budget=1, ledger=ledger).ledger.close()


def test_rows_may_change(tmp_path):
    import pyarrow
    from pyarrow import parquet

    for rows in ([1], [2, 3]):
        parquet.write_table(pyarrow.table({"x": rows}), tmp_path / "a.parquet")
        nz.open(tmp_path / "a.parquet", budget=1, ledger=tmp_path / "x.ledger").ledger.close()


def test_another_budget_is_refused(tmp_path):
    opened(BUDGET, ledger=tmp_path / "x.ledger").ledger.close()
    with pytest.raises(InputError, match="another budget"):
        opened(nz.Approx(2, "1e-6"), ledger=tmp_path / "x.ledger")


@pytest.mark.slow
def test_a_ledger_whose_fingerprints_have_declared_types_goes_on(tmp_path):
    """Earlier versions hashed the declared types of a CSV file; the owner may edit these from now on."""
    file, ledger = tmp_path / "a.csv", tmp_path / "x.ledger"
    file.write_text("p,x,y\n1,2,3\n")
    rules = {"unit": "p", "rows": 1, "columns": {"p": {"type": "integer"}, "x": {"type": "integer"}}}
    said = [[str(file.resolve())], [["p", "integer"], ["x", "integer"]], "p", False, "add/remove"]
    old = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    open_ledger(ledger, budget=nz.Pure(1), data={"a": old}).close()
    for kind in ("integer", "real", "text"):
        rules["columns"]["x"]["type"] = kind
        nz.open(file, budget=1, policy={"tables": {"a": rules}}, ledger=ledger).ledger.close()
    rules["unit"] = "x"
    with pytest.raises(PrivacyError, match="The data changed"):
        nz.open(file, budget=1, policy={"tables": {"a": rules}}, ledger=ledger)


# A ledger and links to it are one ledger


def spent_twice(first, second):
    """A question through one path and another one through the next, and what is spent by then."""
    for n, path in enumerate((first, second)):
        curator = opened(BUDGET, ledger=path)
        curator.sql(f"SELECT COUNT(*) AS n FROM visits WHERE age > {n}", spend="0.3")
        spent = curator.budget.spent
        curator.ledger.close()
    return spent


@pytest.mark.parametrize("linked_first", [True, False])
def test_a_ledger_that_is_opened_through_a_link_is_the_same(tmp_path, linked_first):
    (tmp_path / "other").mkdir()
    file, link = tmp_path / "l.db", tmp_path / "other" / "linked.db"
    link.symlink_to(file)
    pair = (link, file) if linked_first else (file, link)
    assert spent_twice(*pair).epsilon == Fraction(6, 10)
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == ["linked.db"]


def test_a_head_that_an_earlier_version_kept_beside_a_link_is_known(tmp_path):
    (tmp_path / "other").mkdir()
    file, link = tmp_path / "l.db", tmp_path / "other" / "linked.db"
    link.symlink_to(file)
    opened_once = opened(BUDGET, ledger=file)
    opened_once.sql(COUNT, spend="0.3")
    opened_once.ledger.close()
    (tmp_path / "l.db-head").rename(tmp_path / "other" / "linked.db-head")
    assert spent_twice(link, file).epsilon == Fraction(9, 10)


def test_without_its_head_a_linked_ledger_is_still_refused(tmp_path):
    file, link = tmp_path / "l.db", tmp_path / "linked.db"
    link.symlink_to(file)
    spent_twice(file, link)
    (tmp_path / "l.db-head").unlink()
    for path in (file, link):
        with pytest.raises(PrivacyError, match="not the one that was written last"):
            spent_twice(path, path)


def test_links_in_a_circle_are_one_sentence(tmp_path):
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(NoisetteError):
        opened(BUDGET, ledger=tmp_path / "a.db")


@pytest.mark.parametrize("url", ["postgresql://ann:secret@[bad/db", "postgresql://ann:se%zzcret@h/db"])
def test_no_traceback_quotes_the_address_of_a_ledger(url):
    """The driver's own error does, and it would stand above ours."""
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match=r"^The URL of the ledger cannot be read") as caught:
        open_ledger(url, budget=nz.Pure(1))
    assert caught.value.__cause__ is caught.value.__context__ is None

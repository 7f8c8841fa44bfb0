"""`noisette buy`: bounds and keys that outlive the process, are paid once, and leave the owner's policy alone."""

import json
import tomllib

import pyarrow
import pyarrow.parquet
import pytest
from tests.cli.tools import CANARY, refused, run, texts, well

RULES = """
[budget]
epsilon = "40"
delta = "1e-6"
[tables.visits]
unit = "patient_id"
rows = 1
[tables.visits.columns]
age = { bounds = "private", nullable = false }
ward = { keys = "private", nullable = false }
cost = { keys = "private" }
note = { keys = "private" }
"""
MEAN, WARDS = "SELECT avg(age) AS age FROM visits", "SELECT ward, count(*) AS n FROM visits GROUP BY ward"
ROWS = 2_000


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {
        "patient_id": list(range(ROWS)),
        "age": [20 + i % 40 for i in range(ROWS)],
        "ward": [CANARY if i == 7 else ["north", "south"][i % 2] for i in range(ROWS)],
        "cost": [i / 2 for i in range(ROWS)],
        "note": [f"{CANARY} {i}" for i in range(ROWS)],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), "visits.parquet")
    (tmp_path / "rules.toml").write_text(RULES)
    well("open", "visits.parquet", "--policy", "rules.toml")
    return tmp_path


def charges():
    return json.loads(well("budget", "--json"))["charges"]


def purchases():
    entries = json.loads(well("ledger", "show", "--json"))["entries"]
    return [body for body in entries if body["kind"] == "purchase"]


@pytest.mark.slow
def test_bounds_serve_later_questions_and_the_policy_is_left_alone(shop):
    assert "buy them" in refused(2, "ask", MEAN, "--spend", "1")
    shown = well("buy", "bounds", "age", "--spend", "4")
    low, high = tomllib.loads(shown.partition("\n\n")[0])["tables"]["visits"]["columns"]["age"]["bounds"]
    assert low <= 21 < 58 <= high
    assert "rules.toml" in shown
    assert "±" in well("ask", MEAN, "--spend", "1")
    assert (shop / "rules.toml").read_text() == RULES
    assert f"{low} to {high}" in " ".join(well("open", "visits.parquet").split())


def test_keys_are_those_that_many_share(shop):
    assert "needs a delta" in refused(2, "buy", "keys", "ward", "--spend", "4")
    told = json.loads(well("buy", "keys", "visits.ward", "--spend", "4,1e-7", "--json"))
    assert (told["table"], told["column"], told["keys"]) == ("visits", "ward", ["north", "south"])
    assert told["spend"] == {"kind": "Approx", "epsilon": "4", "delta": "1/10000000"}
    rows = json.loads(well("ask", WARDS, "--spend", "1", "--json"))["rows"]
    assert [row["ward"] for row in rows] == ["north", "south"]
    assert CANARY.encode() not in texts(shop)


@pytest.mark.slow
def test_the_same_purchase_is_free_for_everybody(shop):
    first = well("buy", "bounds", "age", "--spend", "4", "--json")
    assert well("buy", "bounds", "visits.age", "--spend", "8/2", "--json", "--analyst", "ana") == first
    assert "were bought already, for ε = 4" in refused(2, "buy", "bounds", "age", "--spend", "5")
    assert charges() == 1
    assert (
        json.loads(well("buy", "bounds", "age", "--spend", "4", "--json", "--again"))["bounds"]
        == json.loads(first)["bounds"]
    )
    assert charges() == 1
    well("buy", "bounds", "age", "--spend", "5", "--again")
    assert charges() == 2


@pytest.mark.slow
def test_what_the_owner_declares_comes_first(shop):
    well("buy", "bounds", "age", "--spend", "4")
    (shop / "rules.toml").write_text(RULES.replace('age = { bounds = "private"', "age = { bounds = [0, 1]"))
    assert "0 to 1 " in " ".join(well("open", "visits.parquet").split())
    assert "not for sale" in refused(2, "buy", "bounds", "age", "--spend", "4")
    (shop / "rules.toml").write_text(RULES.replace('age = { bounds = "private", ', "age = { "))
    assert "needs bounds" in refused(2, "ask", MEAN, "--spend", "1")


@pytest.mark.slow
def test_refusals_cost_nothing_and_leave_nothing(shop):
    for arguments, words in [
        (("bounds", "nothing", "--spend", "1"), "no column nothing"),
        (("bounds", "ward", "--spend", "1"), "not for sale"),
        (("keys", "cost", "--spend", "1,1e-8"), "real numbers"),
        (("bounds", "age", "--spend", "0"), "--spend must be above 0"),
        (("bounds", "age"), "Missing option"),
    ]:
        assert words in refused(2, "buy", *arguments)
    assert "this question costs ε = 41" in refused(3, "buy", "bounds", "age", "--spend", "41")
    assert charges() == 0
    assert purchases() == []


@pytest.mark.slow
def test_keys_that_nobody_shares_are_an_answer_that_is_paid_once(shop):
    for _ in range(2):
        assert "which is an answer and was charged" in refused(1, "buy", "keys", "note", "--spend", "1,1e-18")
    assert charges() == 1
    assert CANARY.encode() not in texts(shop)


@pytest.mark.slow
def test_an_analyst_pays_from_a_share(shop):
    well("ledger", "share", "ana=2", "--why", "a pilot")
    assert "--analyst" in refused(4, "buy", "bounds", "age", "--spend", "1")
    assert "The share of ana" in refused(3, "buy", "bounds", "age", "--spend", "3", "--analyst", "ana")
    well("buy", "bounds", "age", "--spend", "1", "--analyst", "ana")
    assert [bought["analyst"] for bought in purchases()] == ["ana"]


BOUGHT = """# Bought for ε = 4, and used while the policy says bounds = "private".

[bought]
spend = { kind = "Pure", epsilon = "4" }
analyst = "ana"
time = "2026-01-01T12:00:00+00:00"

[tables.visits.columns.age]
bounds = [16, 64]
"""


@pytest.mark.slow
def test_purchases_of_earlier_versions_still_count(shop):
    (shop / ".noisette" / "bought").mkdir()
    (shop / ".noisette" / "bought" / "visits.age.bounds.toml").write_text(BOUGHT)
    assert "16 to 64" in " ".join(well("open", "visits.parquet").split())
    assert "±" in well("ask", MEAN, "--spend", "1")
    assert json.loads(well("buy", "bounds", "age", "--spend", "4", "--json"))["bounds"] == ["16", "64"]
    assert (charges(), purchases()) == (1, [])
    well("buy", "bounds", "age", "--spend", "5", "--again")
    assert "bought already, for ε = 5" in refused(2, "buy", "bounds", "age", "--spend", "4")


@pytest.mark.slow
def test_a_file_that_was_changed_is_named(shop):
    file = shop / ".noisette" / "bought" / "visits.age.bounds.toml"
    file.parent.mkdir()
    for text in ("", "[bought", BOUGHT.replace("bounds = [", "bound = ["), "[tables.visits.columns.age]\n"):
        file.write_text(text)
        assert "visits.age.bounds.toml" in refused(2, "ask", MEAN, "--spend", "1")
    file.unlink()
    assert "buy them" in refused(2, "ask", MEAN, "--spend", "1")


@pytest.mark.slow
def test_a_crash_before_it_was_written_costs_nothing_more(shop, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("noisette.ledger.Book.record_purchase", lambda *_: 1 / 0)
        assert run("buy", "bounds", "age", "--spend", "4").exit_code == 1
    well("buy", "bounds", "age", "--spend", "4")
    assert charges() == 1


# Limits on rows


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """A project whose limit on rows is for sale: 300 units have four rows and two have eight."""
    monkeypatch.chdir(tmp_path)
    who = [i for i in range(300) for _ in range(4)] + [i for i in (300, 301) for _ in range(8)]
    pyarrow.parquet.write_table(pyarrow.table({"patient_id": who, "note": [CANARY] * len(who)}), "visits.parquet")
    rules = '[budget]\nepsilon = "100"\n[tables.visits]\nunit = "patient_id"\nrows = "private"\n'
    (tmp_path / "rules.toml").write_text(rules)
    assert "rows for sale" in well("open", "visits.parquet", "--policy", "rules.toml")
    return tmp_path


COUNT = "SELECT count(*) AS n FROM visits"
BUY = ("buy", "rows", "visits", "--spend", "30", "--for", "1")


@pytest.mark.slow
def test_a_limit_serves_later_questions_and_the_policy_is_left_alone(clinic):
    before = (clinic / "rules.toml").read_text()
    assert "`noisette buy rows`" in refused(2, "ask", COUNT, "--spend", "1")
    assert charges() == 0
    shown = well(*BUY)
    assert shown.startswith("[tables.visits]\nrows = 4\n")  # another limit once in 1e12 times
    assert "±" in well("ask", COUNT, "--spend", "1")
    assert (clinic / "rules.toml").read_text() == before
    assert "(rows 4)" in well("open", "visits.parquet")
    assert json.loads(well("open", "visits.parquet", "--json"))["tables"]["visits"]["rows"] == 4
    assert CANARY.encode() not in texts(clinic)


@pytest.mark.slow
def test_the_same_limit_is_free_and_other_terms_are_another_purchase(clinic):
    first = well(*BUY, "--json")
    told = json.loads(first)
    assert (told["table"], told["column"], told["rows"]) == ("visits", None, 4)
    assert well("buy", "rows", "--spend", "30", "--for", "2/2", "--json") == first
    assert "bought already, for ε = 30 (for_spend = Pure('1'))" in refused(2, *BUY, "--most", "64")
    assert "bought already" in refused(2, "buy", "rows", "--spend", "30")
    assert charges() == 1
    well(*BUY, "--again")
    assert charges() == 1
    well(*BUY, "--most", "64", "--again")
    assert charges() == 2


@pytest.mark.slow
def test_another_limit_is_another_question(clinic):
    well(*BUY)
    for asked in (2, 2):
        well("ask", COUNT, "--spend", "1")
        assert charges() == asked
    (clinic / "rules.toml").write_text((clinic / "rules.toml").read_text().replace('"private"', "4"))
    well("ask", COUNT, "--spend", "1")
    assert charges() == 2  # the owner declares what was bought
    (clinic / "rules.toml").write_text((clinic / "rules.toml").read_text().replace("rows = 4", "rows = 8"))
    well("ask", COUNT, "--spend", "1")
    assert charges() == 3
    assert "not for sale" in refused(2, *BUY)


@pytest.mark.slow
def test_limits_that_cannot_be_bought_cost_nothing(clinic):
    assert "one of visits" in refused(2, "buy", "rows", "people", "--spend", "1")
    assert "--for must be" in refused(2, "buy", "rows", "--spend", "1", "--for", "much")
    assert "most must be a whole number" in refused(2, "buy", "rows", "--spend", "1", "--most", "1")
    assert charges() == 0


@pytest.mark.slow
def test_what_limits_leave_out_can_be_asked_before_any_is_bought(clinic):
    told = json.loads(well("left-out", "visits", "--rows", "1,2,4,8", "--spend", "80", "--json"))
    assert [(row["rows"], row["units"]) for row in told["rows"]][2:] == [
        (4, 2),
        (8, 0),
    ]  # noise that moves them has a chance of e^-40
    assert "±" in well("left-out", "--groups", "1,2", "--by", "note", "--spend", "1")
    assert charges() == 2
    assert "1,2,4,8" in refused(2, "left-out", "--rows", "1;2", "--spend", "1")
    assert "two values" in refused(2, "left-out", "--column", "note", "--bounds", "0", "--spend", "1")
    assert "days that there are" in refused(
        2, "left-out", "--column", "note", "--bounds", "2020-02-31,2020-03-01", "--spend", "1"
    )
    assert "Name candidates" in refused(2, "left-out", "--rows", "1", "--groups", "1", "--spend", "1")
    assert charges() == 2


@pytest.mark.slow
def test_a_file_of_a_limit_that_was_changed_is_named(clinic):
    file = clinic / ".noisette" / "bought" / "visits.rows.toml"
    file.parent.mkdir()
    whole = '[bought]\nspend = { kind = "Pure", epsilon = "30" }\ntime = ""\n\n[tables.visits]\nrows = 4\n'
    file.write_text(whole)
    well("ask", COUNT, "--spend", "1")
    for old, new in (
        ("rows = 4", "rows = 0"),
        ("rows = 4", 'rows = "4"'),
        ("rows = 4", "row = 4"),
        ("[bought]", "[b]"),
    ):
        file.write_text(whole.replace(old, new))
        assert "visits.rows.toml" in refused(2, "ask", COUNT, "--spend", "1")

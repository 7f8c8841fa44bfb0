"""Limits per calendar period from the policy to the answer: a third year makes no year wrong."""

import datetime
import json

import pyarrow
import pytest
from typer.testing import CliRunner

import noisette as nz
from noisette.cli import app
from noisette.curator.described import described_data

DAY = datetime.date
BY_YEAR = "SELECT EXTRACT(year FROM d) AS y, COUNT(*) AS n FROM t GROUP BY y"
PEOPLE = 50
BOUNDS = {"bounds": [DAY(2022, 1, 1), DAY(2024, 12, 31)]}


def visits(years=(2022, 2023, 2024), people=PEOPLE):
    """Patients with a visit in each month of each year."""
    rows = [(p, DAY(y, m, 1 + p % 28)) for p in range(people) for y in years for m in range(1, 13)]
    return pyarrow.table({"u": [u for u, _ in rows], "d": pyarrow.array([d for _, d in rows], pyarrow.date32())})


def policy(rows, **more):
    return {"tables": {"t": {"unit": "u", "rows": rows, "columns": {"d": BOUNDS}, **more}}}


def opened(rows, data=None, **more):
    return nz.open({"t": visits() if data is None else data}, budget=10**6, policy=policy(rows, **more))


PER_YEAR = {"most": 12, "per": "year", "of": "d"}


def test_a_third_year_makes_no_year_wrong():
    """By a limit in all each year loses a third of its rows; by one per year none does."""
    wrong = opened(24).sql(BY_YEAR, spend=10**5).to_pandas()["n"][:3]
    right = opened(PER_YEAR).sql(BY_YEAR, spend=10**5).to_pandas()["n"]
    assert list(right) == [12 * PEOPLE] * 3  # noise for 36 rows at ε = 10^5 is 0, but with p < 1e-1000
    assert all(n < 0.7 * 12 * PEOPLE for n in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("spend", [1, nz.ZCDP("1/8")])
def test_each_year_is_right_within_its_bar(spend):
    data = nz.open({"t": visits(people=2000)}, budget=nz.ZCDP(10) if spend != 1 else 10, policy=policy(PER_YEAR))
    column = data.sql(BY_YEAR, spend=spend, level=1 - 1e-13).columns[1]
    assert all(column.low <= 24_000)  # fails with p < 1e-12
    assert all(column.high >= 24_000)  # fails with p < 1e-12


def half(data, text, spend=1):
    return data.explain(text, spend=spend).columns[0].half_width


def test_noise_is_of_the_periods_that_are_asked():
    data = opened(PER_YEAR)
    one = half(data, "SELECT COUNT(*) AS n FROM t WHERE d >= DATE '2024-01-01'")
    assert half(opened(12), "SELECT COUNT(*) AS n FROM t") == one
    assert half(data, "SELECT COUNT(*) AS n FROM t") == half(opened(36), "SELECT COUNT(*) AS n FROM t") > 2.9 * one
    assert half(data, BY_YEAR) == half(opened(36), BY_YEAR)  # a pure ε pays for all years together
    rho = nz.ZCDP("1/8")
    one, every = (nz.open({"t": visits()}, budget=rho, policy=policy(rows)) for rows in (PER_YEAR, 36))
    gained = half(every, BY_YEAR, rho) / half(one, BY_YEAR, rho)
    assert 1.7 < gained < 1.75  # 36 rows in one year, or 12 in each of 3: sqrt(3)


def said(rows):
    return opened(rows).explain(BY_YEAR, spend=1).offer.caveats[0]


def test_what_is_said():
    caveats = said(PER_YEAR)
    assert caveats[:2] == (
        "At most 12 rows of each u per year of d are used; further rows are left out.",
        "Rows of t whose d is NULL or beyond [2022-01-01, 2024-12-31] are left out.",
    )
    assert "nearer bound" not in " ".join(caveats)
    one = said({"most": 1, "per": "quarter", "of": "d"})[0]
    assert one == "At most 1 row of each u per quarter of d is used; further rows are left out."


def test_another_limit_is_another_question_about_the_same_data():
    """A ledger goes on when its owner limits periods, and no kept answer is given again."""
    table, texts = visits(people=2), {}
    rules = [36, PER_YEAR, {**PER_YEAR, "most": 11}, {**PER_YEAR, "per": "quarter"}]
    found = [described_data({"t": table}, budget=1, policy=policy(each)) for each in rules]
    assert len({json.dumps(one.fingerprints) for one in found}) == 1
    for one in found:
        texts[one.curator(None).explain("SELECT COUNT(*) AS n FROM t", spend=1).offer.text] = one
    assert len(texts) == len(rules)


def test_periods_of_a_table_whose_unit_is_reached_through_a_key():
    patients = pyarrow.table({"u": range(10), "key": range(100, 110)})
    rows = visits(people=10)
    linked = pyarrow.table({"key": [100 + u for u in rows.column("u").to_pylist()], "d": rows.column("d")})
    link = {"through": "patients", "on": {"key": "key"}}
    rules = {"patients": {"unit": "u", "rows": 1}, **policy({**PER_YEAR, "most": 5}, unit=link)["tables"]}
    data = nz.open({"patients": patients, "t": linked}, budget=10**6, policy={"tables": rules})
    assert list(data.sql(BY_YEAR, spend=10**5).to_pandas()["n"]) == [50] * 3
    joined = "SELECT COUNT(*) AS n FROM t JOIN patients AS p ON t.key = p.key WHERE EXTRACT(year FROM t.d) = 2023"
    assert list(data.sql(joined, spend=10**5).to_pandas()["n"]) == [50]
    assert half(data, joined) == half(opened(5), "SELECT COUNT(*) AS n FROM t")


def test_policy_check_and_open_accept_it(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(
        '[budget]\nepsilon = 1\n[tables.t]\nunit = "u"\nrows = { most = 12, per = "year", of = "d" }\n'
        '[tables.t.columns.u]\ntype = "integer"\n[tables.t.columns.d]\ntype = "date"\n'
        "bounds = [2022-01-01, 2024-12-31]\n"
    )
    (tmp_path / "t.csv").write_text("u,d\n1,2022-05-05\n1,2023-05-05\n2,\n2,nothing\n")
    asked = ["policy", "check", str(file), "--data", str(tmp_path / "t.csv")]
    assert CliRunner().invoke(app, asked).exit_code == 0
    file.write_text(file.read_text().replace('"year"', '"decade"'))
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code == 2
    assert "line 5" in refused.output + refused.stderr
    assert "must be one of year, quarter, month, week, day" in " ".join((refused.output + refused.stderr).split())


def test_rows_of_texts_that_are_no_dates_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("u,d\n1,2022-05-05\n1,2023-05-05\n2,\n2,nothing\n3,2025-01-01\n")
    types = {"u": {"type": "integer"}, "d": {"type": "date", **BOUNDS}}
    data = nz.open(tmp_path / "t.csv", budget=10**6, policy=policy(PER_YEAR, columns=types))
    assert list(data.sql("SELECT COUNT(*) AS n FROM t", spend=10**5).to_pandas()["n"]) == [2]

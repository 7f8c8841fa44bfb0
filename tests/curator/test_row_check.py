"""How rows meet a policy: the same counts as plain Python, from every kind of source, and nowhere but for the owner."""

import ast
import datetime
import itertools
import math
import random
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
from tests.postgres import stored

import noisette as nz
from noisette.curator import row_check, value_check
from noisette.curator.described import described_data
from noisette.curator.row_check import check_rows
from noisette.engines.duckdb.source import DuckDB
from noisette.errors import InputError

SRC = Path(nz.__file__).parent
DAY = datetime.date
COLUMNS = {
    "day": {"type": "date", "format": "%d.%m.%Y", "bounds": [DAY(2023, 1, 1), DAY(2024, 12, 31)]},
    "ward": {"keys": ["a", "b"], "trim": True, "fold": True},
    "age": {"type": "integer", "bounds": [0, 110], "nullable": False},
    "pay": {"type": "real", "bounds": [0, 5]},
}
POLICY = {"budget": {"epsilon": 1}, "tables": {"visits": {"unit": "who", "rows": 3, "columns": COLUMNS}}}


def random_visits(seed, n=300):
    """Rows as they are messy in files: texts alone, None where a field is empty."""
    rng = random.Random(seed)
    days = ["01.02.2023", "3.4.2024", "05.06.2025", "2024-01-01", "31.02.2024", "n/a", None]
    ages = ["7", "-3", "111", "seven", None, "0", "110"]
    wards = ["a", " B", "c", None, "A"]
    pays = ["1.5", "-1", "9", "1,5", None]
    people = [None, *"pqrstuvw" * 3, *map(str, range(60))]
    return [tuple(rng.choice(some) for some in (people, days, wards, ages, pays)) for _ in range(n)]


def said(check):
    return {(one.column, one.what.partition(":")[0]): one.rows for one in check.findings}


def expected(rows):
    """The same counts, row by row."""
    days = [datetime.datetime.strptime(d, "%d.%m.%Y").date() if d and d[0] in "0" + "3" and d != "31.02.2024" else None
            for _, d, *_ in rows]  # fmt: skip
    ages = [int(a) if a and a.lstrip("-").isdigit() else None for *_, a, _ in rows]
    pays = [float(p) if p and "," not in p else None for *_, p in rows]
    units = Counter(who for who, *_ in rows if who is not None)
    many = sum(n > 3 for n in units.values())
    found = {
        ("day", "cannot be read as date by %d.%m.%Y"): sum(
            r[1] is not None and d is None for r, d in zip(rows, days, strict=True)
        ),
        ("day", "above the bound 2024-12-31"): sum(d is not None and d > DAY(2024, 12, 31) for d in days),
        ("ward", "none of the 2 declared keys"): sum(w == "c" for _, _, w, *_ in rows),
        ("age", "cannot be read as integer"): sum(a == "seven" for *_, a, _ in rows),
        ("age", "NULL, though declared nullable = false"): sum(a is None for *_, a, _ in rows),
        ("age", "below the bound 0"): sum(a is not None and a < 0 for a in ages),
        ("age", "above the bound 110"): sum(a is not None and a > 110 for a in ages),
        ("pay", "cannot be read as real"): sum(p == "1,5" for *_, p in rows),
        ("pay", "below the bound 0"): sum(p is not None and p < 0 for p in pays),
        ("pay", "above the bound 5"): sum(p is not None and p > 5 for p in pays),
        (None, "without a unit"): sum(who is None for who, *_ in rows),
        (None, "beyond rows = 3"): sum(max(n - 3, 0) for n in units.values()),
    }
    years = Counter(None if d is None else d.year for r, d in zip(rows, days, strict=True) if r[0] is not None)
    left = Counter()
    for row, day in zip(rows, days, strict=True):
        if row[0] is not None and units[row[0]] > 3:
            left[None if day is None else day.year] += (units[row[0]] - 3) / units[row[0]]
    return found, len(units), many, years, left


def columns(rows):
    return dict(zip(("who", "day", "ward", "age", "pay"), map(list, zip(*rows, strict=True)), strict=True))


def as_csv(folder, rows):
    lines = [",".join("" if x is None else f'"{x}"' if "," in x else x for x in row) for row in rows]
    (folder / "visits.csv").write_text("\n".join(["who,day,ward,age,pay", *lines]) + "\n")
    types = {name: {"type": "text"} for name in ("who", "ward")}
    made = {name: {**types.get(name, {}), **COLUMNS.get(name, {})} for name in ("who", *COLUMNS)}
    return folder / "visits.csv", {**POLICY, "tables": {"visits": {**POLICY["tables"]["visits"], "columns": made}}}


def as_parquet(folder, rows):
    pyarrow.parquet.write_table(pyarrow.table(columns(rows)), folder / "visits.parquet")
    return folder / "visits.parquet", POLICY


def as_duckdb(folder, rows):
    frame = pyarrow.table(columns(rows))
    with duckdb.connect(str(folder / "v.duckdb")) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE visits AS FROM frame")
    return (str(folder / "v.duckdb"), "visits"), POLICY


def as_frame(folder, rows):
    return pyarrow.table(columns(rows)), POLICY


def checked(made):
    source, policy = made
    [check] = check_rows(described_data({"visits": source}, policy=policy))
    return check


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("made", [as_csv, as_parquet, as_duckdb, as_frame], ids=lambda one: one.__name__)
def test_the_counts_are_those_of_plain_python(tmp_path, made):
    rows = random_visits(1)
    check, (found, units, many, years, left) = checked(made(tmp_path, rows)), expected(rows)
    assert all(found.values())
    assert said(check) == found
    assert (check.rows, check.units) == (len(rows), units)
    assert f"{many} of {units} units have more" in next(x.what for x in check.findings if "beyond rows" in x.what)
    assert [one.rows for one in check.findings] == sorted((one.rows for one in check.findings), reverse=True)
    assert check.date == "day"
    assert {one.year: one.rows for one in check.periods} == years
    assert {one.year: one.beyond_bounds for one in check.periods if one.beyond_bounds} == {2025: years[2025]}
    assert all(abs(one.beyond_limits - left[one.year]) <= 0.5 for one in check.periods)


def test_what_is_in_order_is_said_to_be(tmp_path):
    rows = [("p", "01.02.2023", "a", "7", "1"), ("q", "1.2.2024", " B ", "110", "5"), ("r", None, None, "0", None)]
    check = checked(as_csv(tmp_path, rows))
    assert (check.rows, check.units, check.findings, check.date, check.periods) == (3, 3, (), None, ())


def test_no_rows_at_all():
    empty = pyarrow.schema([(name, pyarrow.string()) for name in ("who", "day", "ward", "age", "pay")]).empty_table()
    check = checked((empty, POLICY))
    assert (check.rows, check.units, check.findings) == (0, 0, ())


def test_a_check_that_looks_at_cleaned_values_is_convicted(tmp_path, monkeypatch):
    """A twin that reads values as questions do: within their bounds."""
    made = as_frame(tmp_path, random_visits(2, 40))
    assert ("age", "above the bound 110") in said(checked(made))
    monkeypatch.setattr(value_check, "free", lambda kind: kind)
    assert ("age", "above the bound 110") not in said(checked(made))


def test_values_that_cannot_be_read_are_not_quoted(tmp_path):
    days = ["canary 4-ü", "canary 5-ü", "1.1.2024"]
    rows = [("p", day, "a", "1", "1") for day in days]
    check = checked(as_frame(tmp_path, rows))
    assert {one.looks for one in check.findings} == {None, "aaaaaa 9-a"} - {None}
    assert "canary" not in repr(check)
    assert "ü" not in repr(check)


def test_how_lines_are_written(tmp_path):
    content = 'who,ward\np,a\nq,"a\nb"\nr\ns,a,b\nt,é\n'.encode("latin-1")
    (tmp_path / "visits.csv").write_bytes(content)
    text = {"who": {"type": "text"}, "ward": {"type": "text"}}

    def found(**form):
        rules = {"budget": {"epsilon": 1}, "tables": {"visits": {**form, "unit": "who", "rows": 1, "columns": text}}}
        return said(checked((tmp_path / "visits.csv", rules)))

    fields = {(None, f"with {what} fields than the first line has"): 1 for what in ("fewer", "more")}
    coded, quotes = (None, 'with bytes that are not UTF-8, so "?"'), (None, "with an odd number of quotes")
    assert found() == {**fields, coded: 1, quotes: 2}
    assert found(line_breaks=True) == {**fields, coded: 1}
    assert found(line_breaks=True, encoding="latin-1") == fields


# Foreign keys

LINKED = {
    "budget": {"epsilon": 1},
    "tables": {
        "people": {"unit": "id", "rows": 1},
        "visits": {"unit": {"through": "people", "on": {"person": "id"}}, "rows": 2},
        "labs": {"unit": {"through": "visits", "on": {"visit": "id"}}, "rows": 2},
    },
}


def linked(**more):
    tables = {
        "people": {"id": [1, 2, 3, None]},
        "visits": {"person": [1, 1, 1, 2, 9, None], "id": [10, 11, 12, 13, 14, 15]},
        "labs": {"visit": [10, 10, 11, 13, 14, 99, None]},
    }
    frames = {name: pyarrow.table(part) for name, part in {**tables, **more}.items()}
    return {one.table: one for one in check_rows(described_data(frames, policy=LINKED, repeated_keys=True))}


def test_rows_that_lead_to_nobody():
    """Without a row to refer to, or through one that has no unit itself."""
    found = linked()
    assert said(found["people"]) == {(None, "without a unit"): 1}
    assert said(found["visits"]) == {("person", "refers to no row of people"): 2, (None, "beyond rows = 2"): 1}
    assert said(found["labs"]) == {
        ("visit", "refers to no row of visits"): 2,
        (None, "without a unit"): 1,
        (None, "beyond rows = 2"): 1,
    }
    assert {name: one.units for name, one in found.items()} == {"people": 3, "visits": 2, "labs": 2}


def test_repeated_keys_are_counted_and_units_behind_them_are_not():
    found = linked(people={"id": [1, 2, 2, 2, None, None]})
    assert said(found["people"])["id", "a key that other rows have, too"] == 3
    assert [found[name].units for name in ("people", "visits", "labs")] == [2, None, None]
    frames = {"people": pyarrow.table({"id": [1, 1]}), "visits": pyarrow.table({"person": [1], "id": [1]})}
    with pytest.raises(InputError, match="refers to several rows of people"):
        described_data(frames | {"labs": pyarrow.table({"visit": [1]})}, policy=LINKED)


def test_keys_that_are_one_once_they_are_clean():
    """Questions compare clean values, and check_unique refuses these."""
    policy = {"budget": {"epsilon": 1}, "tables": {"far": {"unit": "u", "rows": 1, "columns": {"k": {"fold": True}}}}}
    policy["tables"]["near"] = {"unit": {"through": "far", "on": {"k": "k"}}, "rows": 1}
    frames = {"far": pyarrow.table({"u": [1, 2], "k": ["a", "A"]}), "near": pyarrow.table({"k": ["a"]})}
    found = {one.table: one for one in check_rows(described_data(frames, policy=policy, repeated_keys=True))}
    assert said(found["far"]) == {("k", "a key that other rows have, too"): 2}


# Odd values, and what has no bounds


def test_numbers_that_are_none_and_moments_without_end():
    frame = pyarrow.table({"x": [math.nan, math.inf, -math.inf, 1.0, None], "y": [1, 2, 3, 4, None]})
    rules = {"x": {"bounds": [0, 5]}, "y": {"keys": [1, 2, 9]}}
    policy = {"budget": {"epsilon": 1}, "tables": {"t": {"columns": rules}}}
    [check] = check_rows(described_data({"t": frame}, policy=policy))
    assert said(check) == {
        ("x", "cannot be read as real"): 1,
        ("x", "below the bound 0"): 1,
        ("x", "above the bound 5"): 1,
        ("y", "none of the 3 declared keys"): 2,
    }
    assert (check.units, check.periods) == (None, ())


def test_years_of_rows_that_are_units_by_themselves():
    days = [DAY(year, 1, 1) for year in (2023, 2024, 2025, 2025)]
    policy = {"tables": {"t": {"columns": {"day": {"bounds": [DAY(2023, 1, 1), DAY(2024, 12, 31)]}}}}}
    [check] = check_rows(described_data({"t": pyarrow.table({"day": days})}, budget=1, policy=policy))
    assert [tuple(one) for one in check.periods] == [(2023, 1, 0, 0), (2024, 1, 0, 0), (2025, 2, 2, 0)]


def test_few_queries_of_each_table(tmp_path, monkeypatch):
    """As many for thirty columns as for one."""
    asked = []
    monkeypatch.setattr(DuckDB, "exact", lambda self, q, t=(), inner=DuckDB.exact: asked.append(q) or inner(self, q, t))
    for n in (1, 30):
        frame = pyarrow.table({"who": [1, 2], **{f"x{i}": [1, 200] for i in range(n)}})
        rules = {f"x{i}": {"bounds": [0, 100]} for i in range(n)}
        policy = {"budget": {"epsilon": 1}, "tables": {"t": {"unit": "who", "rows": 1, "columns": rules}}}
        [check] = check_rows(described_data({"t": frame}, policy=policy))
        assert len(check.findings) == n
    assert len(asked) == 2 * 2


# For the owner alone


def importers(module):
    """Files of the package that name a module of it."""
    found = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if module in [name for name in names if name]:
                found.add(path.relative_to(SRC).as_posix())
    return found


@pytest.mark.slow
def test_nothing_that_analysts_use_counts_exactly():
    assert importers("noisette.curator.row_check") == {"cli/policy.py"}
    assert importers("noisette.curator.value_check") == {"curator/row_check.py"}
    public = itertools.chain(dir(nz), dir(nz.Curator))
    assert not [name for name in public if name in (*row_check.__all__, *value_check.__all__)]


def test_a_source_that_is_neither_is_refused():
    found = described_data({"t": pyarrow.table({"x": [1]})}, budget=1)
    with pytest.raises(InputError, match="Rows of Spark tables are not checked: leave --rows out"):
        check_rows(found._replace(engine=object()))


@pytest.mark.slow
def test_rows_of_a_server_are_counted_alike(server):
    rows = random_visits(3)
    url = server()
    stored(url, {"visits": pyarrow.table(columns(rows))})
    found = described_data(url, policy=POLICY)
    assert check_rows(found) == check_rows(described_data({"visits": pyarrow.table(columns(rows))}, policy=POLICY))
    assert found.engine.state() is not None


def test_limits_per_period_are_counted_in_each_of_them():
    """Of p four rows of 2023, of which two are beyond the limit, and one of 2024; rows beyond the bounds are none."""
    days = ["2023-01-01", "2023-05-01", "2023-07-01", "2023-09-01", "2024-01-01", "2031-01-01", None, "2023-02-02"]
    who = ["p"] * 7 + ["q"]
    table = pyarrow.table({"who": who, "day": pyarrow.array([d and DAY.fromisoformat(d) for d in days])})
    limit = {"most": 2, "per": "year", "of": "day"}
    column = {"day": {"bounds": [DAY(2023, 1, 1), DAY(2024, 12, 31)]}}
    policy = {"budget": {"epsilon": 1}, "tables": {"visits": {"unit": "who", "rows": limit, "columns": column}}}
    [check] = check_rows(described_data({"visits": table}, policy=policy))
    assert said(check)[None, "beyond rows = 2 per year of day"] == 2
    assert said(check)["day", "above the bound 2024-12-31"] == 1
    assert check.units == 2
    assert [(one.year, one.rows, one.beyond_limits) for one in check.periods] == [
        (2023, 5, 2), (2024, 1, 0), (2031, 1, 0), (None, 1, 0),
    ]  # fmt: skip

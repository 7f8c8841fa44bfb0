"""The first question about users, against the same SQL with `count(DISTINCT user)` in DuckDB alone.

Users follow Zipf's law: of ten million rows of a million users the first has one in twenty, and most users have a few.
Each first question has a curator of its own, opened before, so that nothing of an earlier one is cached.
"""

import tempfile
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

import noisette as nz
from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, duration

RAW = "DuckDB"
KEYS = [f"region {i}" for i in range(300)]
GROUPS, ROWS_PER_GROUP = 3, 2
UNITS = {"whole numbers": "user_id", "text": "uuid", "each row": None}
NUMBERS = "count(*) AS n, sum(cost) AS total"
FIRST_AT_MOST, ROW_AT_MOST = 1.0, 1.2
SPENDS = (1 + Fraction(i, 1000) for i in count())  # every one is new: the same question for the same spend is free


def written(folder: Path, rows: int) -> Path:
    """Write that number of visits, ten for each user there could be; every run makes the same ones.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = written(Path(folder), 2000)
    ...     duckdb.sql(f"SELECT count(*), count(DISTINCT uuid) <= 200, max(length(uuid)) FROM '{path}'").fetchall()
    [(2000, True, 36)]
    """
    path = folder / f"zipf{rows}.parquet"
    user, region, cost = (
        f"(hash(hash(i, '{name}')) >> 11)::DOUBLE / pow(2, 53)" for name in ("user", "region", "cost")
    )
    numbers = f"""SELECT floor(pow({rows // 10}, {user}))::BIGINT AS user_id, round(100 * {cost}, 2) AS cost,
        'region ' || floor({len(KEYS)} * {region})::BIGINT AS region FROM range({rows}) t(i)"""
    cuts = ((1, 8), (9, 12), (13, 16), (17, 20), (21, 32))
    uuid = " || '-' || ".join(f"md5(user_id::VARCHAR)[{first}:{last}]" for first, last in cuts)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT *, {uuid} AS uuid FROM ({numbers})) TO '{path}' (FORMAT parquet)")
    return path


def opened(path: Path, unit: str | None) -> nz.Curator:
    """A curator for users by that column, or with each row a unit."""
    region = {"type": "text", "keys": KEYS, "nullable": False}
    columns = {"region": region, "cost": {"type": "real", "bounds": [0, 100], "nullable": False}}
    limits: dict[str, Any] = {"unit": unit, "groups": GROUPS, "rows_per_group": ROWS_PER_GROUP} if unit else {}
    return nz.open({"visits": path}, budget=10**6, policy={"tables": {"visits": {"columns": columns}}}, **limits)


def asked(unit: str | None) -> dict[str, str]:
    """The questions in SQL, the same for both."""
    users = {} if unit is None else {"users": f"count(DISTINCT {unit}) AS users"}
    every = {"rows and sum" + (", users" if users else ""): ", ".join([NUMBERS, *users.values()])}
    return {name: f"SELECT region, {what} FROM visits GROUP BY region" for name, what in (users | every).items()}


def first_questions(bench: Bench, path: Path, rows: int) -> tuple[Table, list[Check]]:
    """Users by whole numbers and by text, then each row a unit."""
    lines, checks, rounds = [], [], bench.pick(5, 3)
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW visits AS FROM '{path}'")
    for (name, unit), (what, sql) in ((case, one) for case in UNITS.items() for one in asked(case[1]).items()):
        curators = iter([opened(path, unit) for _ in range(rounds + 1)])
        jobs = [
            Job(RAW, lambda text=sql: connection.sql(text).to_arrow_table()),  # type: ignore[misc]
            Job(OURS, lambda text=sql, c=curators: next(c).sql(text, spend=next(SPENDS))),  # type: ignore[misc]
        ]
        ns = bench.measure(f"{rows:,} rows, units: {name}, {what}", jobs, rounds=rounds)
        most = ROW_AT_MOST if unit is None else FIRST_AT_MOST
        checks.append(Check(f"first question, {rows:,} rows, {name}, {what}", ns[OURS] / ns[RAW], at_most=most))
        lines.append([name, what, duration(ns[RAW]), duration(ns[OURS]), *checks[-1].cells])
    title = f"First question, {rows:,} rows, {len(KEYS)} groups of text, {GROUPS} groups × {ROWS_PER_GROUP} rows"
    return Table(title, ["units", "asked for", RAW, OURS, "ratio", "target", ""], lines), checks


def run(bench: Bench) -> Section:
    """A million rows and ten million."""
    tables, checks = [], []
    for rows in (10**6,) if bench.quick else (10**6, 10**7):
        with tempfile.TemporaryDirectory() as folder:
            table, found = first_questions(bench, written(Path(folder), rows), rows)
        tables.append(table)
        checks += found
    return Section(tables, checks)

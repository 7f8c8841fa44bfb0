"""A question from SQL to the answer: against the same group-by in DuckDB alone, SQL written by hand, and peers."""

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

import noisette as nz
from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, duration, times
from benchmarks.visits import GROUPS, HIGHEST, KEYS, ROWS_PER_GROUP, Visits, plain, thresholds, windows, written

RAW, WINDOWS, THRESHOLDS = "DuckDB", "window functions", "threshold join"
FIRST, AGAIN, OTHER, LATER = "first time", "other spend", "sum only", "sum after count"
ROW_AT_MOST, FIRST_AT_MOST, AGAIN_AT_MOST = 1.2, 10.0, 1.25
COLD_AT_MOST, MEMORY_AT_MOST, GROWTH_AT_MOST = 2.0, 1.5, 1.5
SPENDS = (1 + Fraction(i, 1000) for i in count())  # every one is new: the same question for the same spend is free
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Measured(Check):
    """A check of something that is not a ratio."""

    unit: str = "s"

    @property
    def target(self) -> str:
        """The target as text."""
        return "" if self.at_most is None else f"≤ {self.at_most:g} {self.unit}"

    @property
    def cells(self) -> list[str]:
        """The last three cells of a table's row."""
        return [f"{self.value:.3g} {self.unit}", *super().cells[1:]]


# Asking


def opened(visits: Visits, key: str, *, users: bool) -> nz.Curator:
    """A curator with all keys declared; each row is a unit, or each user with limits."""
    known = {"bounds": [0, HIGHEST], "nullable": False}
    columns: dict[str, Any] = {"cost": {"type": "real", **known}, "score": {"type": "integer", **known}}
    if key == "address":
        columns[key] = {"type": "text", "keys": [f"street {i}" for i in range(KEYS["street"])], "nullable": False}
    else:
        columns[key] = {"type": "integer", "bounds": [0, KEYS[key] - 1], "nullable": False}
    limits: dict[str, Any] = {"unit": "user_id", "groups": GROUPS, "rows_per_group": ROWS_PER_GROUP} if users else {}
    policy = {"tables": {"visits": {"columns": columns}}}
    return nz.open({"visits": visits.path}, budget=10**6, policy=policy, **limits)


def ask(curator: nz.Curator, key: str, *wanted: str) -> object:
    """Ask for aggregates by a key, for a spend that was not used before."""
    return curator.sql(f"SELECT {key}, {', '.join(wanted)} FROM visits GROUP BY {key}", spend=next(SPENDS))


def sql(connection: duckdb.DuckDBPyConnection, text: str) -> Callable[[], object]:
    """Run SQL, with an answer that is as much at hand as ours."""
    return lambda: connection.sql(text).to_arrow_table()


class Asker:
    """Questions about users in turn: `first` opens the data anew, the others go on from there."""

    def __init__(self, visits: Visits, key: str, value: str) -> None:
        self.visits, self.key, self.value = visits, key, value
        self.curator: nz.Curator | None = None

    def first(self, *wanted: str) -> object:
        """Open and ask."""
        self.curator = opened(self.visits, self.key, users=True)
        return ask(self.curator, self.key, *wanted)

    def again(self, *wanted: str) -> object:
        """Ask what was opened before."""
        assert self.curator is not None
        return ask(self.curator, self.key, *wanted)

    def jobs(self) -> list[Job]:
        """Every way to ask, in the order in which they depend on each other."""
        total = f"sum({self.value})"
        return [
            Job(FIRST, lambda: self.first("count(*)", total)),
            Job(AGAIN, lambda: self.again("count(*)", total)),
            Job(OTHER, lambda: self.again(total)),
            Job("count first", lambda: self.first("count(*)")),
            Job(LATER, lambda: self.again(total)),
        ]


# Rows as units, users as units


def by_row(bench: Bench, visits: Visits) -> tuple[Table, list[Check]]:
    """Count and sum where each row is a unit."""
    rows, checks = [], []
    cases = [(key, value) for key in KEYS for value in ("cost", "score")] + [("address", "cost")]
    for key, value in cases:
        curator = opened(visits, key, users=False)
        connection = duckdb.connect()
        jobs = [
            Job(RAW, sql(connection, plain(visits, key, value))),
            Job(OURS, lambda c=curator, k=key, v=value: ask(c, k, "count(*)", f"sum({v})")),  # type: ignore[misc]
        ]
        what = f"{named(key)}, sum of {value}s"
        ns = bench.measure(f"{visits.rows:,} rows, {what}, each row a unit", jobs, rounds=bench.pick(5, 3))
        checks.append(Check(f"each row a unit, {what}, against DuckDB", ns[OURS] / ns[RAW], at_most=ROW_AT_MOST))
        rows.append([what, duration(ns[RAW]), duration(ns[OURS]), *checks[-1].cells])
    header = ["count and sum by", RAW, OURS, "ratio", "target", ""]
    return Table(f"Each row a unit, {visits.rows:,} rows", header, rows), checks


def by_user(bench: Bench, visits: Visits) -> tuple[Table, list[Check]]:
    """Count and sum where each user is a unit: three groups, one row in each."""
    rows, checks = [], []
    for key in KEYS:
        raw = Job(RAW, sql(duckdb.connect(), plain(visits, key, "cost")))
        case = f"{visits.rows:,} rows, {named(key)}, each user a unit"
        ns = bench.measure(case, [raw, *Asker(visits, key, "cost").jobs()], rounds=3)
        for who in (FIRST, AGAIN, OTHER, LATER):
            most = FIRST_AT_MOST if who == FIRST else AGAIN_AT_MOST
            check = Check(f"each user a unit, {named(key)}, {who}, against DuckDB", ns[who] / ns[RAW], at_most=most)
            rows.append([f"{named(key)}: {who}", duration(ns[RAW]), duration(ns[who]), *check.cells])
            checks.append(check)
    note = f"{FIRST}: the file is opened, too. {OTHER} and {AGAIN}: after that. {LATER}: after a count alone."
    header = ["count and sum by", RAW, OURS, "ratio", "target", ""]
    return Table(f"Each user a unit, {visits.rows:,} rows", header, rows, note), checks


def named(key: str) -> str:
    """A key by how many values it has.

    >>> named("street"), named("address")
    ('1,000 groups', '1,000 groups of text')
    """
    return f"{KEYS['street']:,} groups of text" if key == "address" else f"{KEYS[key]:,} groups"


# More rows


def growth(bench: Bench, sizes: Sequence[Visits]) -> tuple[Table, list[Check]]:
    """The cost of a row should not depend on how many there are."""
    ns: dict[str, list[float]] = {RAW: [], OURS: [], FIRST: []}
    for visits in sizes:
        curator, connection = opened(visits, "street", users=False), duckdb.connect()
        asker = Asker(visits, "street", "cost")
        jobs = [
            Job(RAW, sql(connection, plain(visits, "street", "cost")), visits.rows),
            Job(OURS, lambda c=curator: ask(c, "street", "count(*)", "sum(cost)"), visits.rows),  # type: ignore[misc]
            Job(FIRST, lambda a=asker: a.first("count(*)", "sum(cost)"), visits.rows),  # type: ignore[misc]
        ]
        found = bench.measure(f"growth, {visits.rows:,} rows", jobs, rounds=3)
        for who, costs in ns.items():
            costs.append(found[who])
    names = {RAW: RAW, OURS: "each row a unit", FIRST: "each user a unit, first time"}
    rows, checks = [], []
    for who, costs in ns.items():
        most = None if who == RAW else GROWTH_AT_MOST
        what = f"cost of a row, {sizes[-1].rows:,} rows against {sizes[0].rows:,}, {names[who]}"
        checks.append(Check(what, costs[-1] / costs[0], at_most=most))
        rows.append([names[who], *map(duration, costs), *checks[-1].cells])
    header = ["a row", *(f"of {visits.rows:,}" for visits in sizes), "last / first", "target", ""]
    return Table("Growth: flat is 1 ×", header, rows), checks


# Processes of their own


START = """
import sys
from pathlib import Path
import duckdb
from benchmarks import visits as made
visits = made.Visits(Path(sys.argv[1]), int(sys.argv[2]))
"""
ASK = f"""{START}
from benchmarks.asking import ask, opened
print(ask(opened(visits, "{{key}}", users={{users}}), "{{key}}", "count(*)", "sum(cost)"))
"""
SQL = f"""{START}
print(duckdb.connect().sql(made.{{text}}(visits, "{{key}}", "cost")).to_arrow_table().num_rows)
"""
PEAK = """
import resource
from pathlib import Path
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
peaks = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
print(peaks[0] if peaks else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def alone(code: str, visits: Visits) -> str:
    """Run code in a process of its own; return its last line."""
    command = [sys.executable, "-c", code, str(visits.path), str(visits.rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return done.stdout.splitlines()[-1]


def children_seconds(code: str, visits: Visits) -> float:
    """CPU time of a process, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    alone(code, visits)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def cold(bench: Bench, visits: Visits) -> tuple[Table, list[Check]]:
    """The first answer of a process: interpreter, imports, opening, question."""
    rounds = bench.pick(7, 3)
    codes = {
        f"{'user' if users else 'row'}s as units": ASK.format(key="ward", users=users) for users in (False, True)
    } | {RAW: SQL.format(text="plain", key="ward")}
    seconds: dict[str, list[float]] = {name: [] for name in codes}
    bench.say(f"cold processes, {visits.rows:,} rows")
    for turn in range(rounds + 1):
        bench.say("cold processes", detail=f"round {turn}/{rounds}")
        for name, code in codes.items():
            seconds[name].append(children_seconds(code, visits))
    found = {name: statistics.median(each[1:]) for name, each in seconds.items()}  # the first may compile
    bench.measured += [
        {"section": bench.section, "case": "cold process", "job": name, "ns": 1e9 * s} for name, s in found.items()
    ]
    checks: list[Check] = [
        Measured(f"first answer of a process, {name}", s, at_most=None if name == RAW else COLD_AT_MOST)
        for name, s in found.items()
    ]
    rows = [[name, *check.cells] for name, check in zip(found, checks, strict=True)]
    title = f"First answer of a process, {visits.rows:,} rows: CPU time from its start to its end"
    return Table(title, ["", "seconds", "target", ""], rows), checks


def memory(bench: Bench, visits: Visits) -> tuple[Table, list[Check]]:
    """The largest memory that a process has in use for one question about users."""
    bench.say(f"memory, {visits.rows:,} rows")
    rows: list[list[str]] = []
    checks: list[Check] = []
    for key in ("street", "postcode"):
        codes = {OURS: ASK.format(key=key, users=True)}
        codes |= {text: SQL.format(text=text, key=key) for text in ("plain", "windows", "thresholds")}
        peaks = {name: int(alone(code + PEAK, visits)) for name, code in codes.items()}
        bench.measured += [
            {"section": bench.section, "case": f"peak memory, {named(key)}", "job": name, "bytes": size}
            for name, size in peaks.items()
        ]
        what = f"peak memory, {named(key)}"
        held = Check(f"{what}, against window functions", peaks[OURS] / peaks["windows"], at_most=MEMORY_AT_MOST)
        told = Check(f"{what}, against the plain group-by", peaks[OURS] / peaks["plain"])
        sizes = [f"{size / 1e6:,.0f} MB" for size in peaks.values()]
        rows.append([named(key), *sizes, times(told.value), *held.cells])
        checks += [held, told]
    header = ["", OURS, "group-by", WINDOWS, THRESHOLDS, "/ group-by", "/ windows", "target", ""]
    return Table(f"Peak memory of a process, {visits.rows:,} rows, each user a unit", header, rows), checks


# Peers


def beside_peers(bench: Bench, visits: Visits) -> tuple[Table, list[Check]]:
    """The cost of a row, on fewer rows, since some peers take long; PipelineDP gets a tenth of them."""
    key, connection = "street", duckdb.connect()
    curator, asker = opened(visits, key, users=False), Asker(visits, key, "cost")
    jobs = [
        Job(RAW, sql(connection, plain(visits, key, "cost")), visits.rows),
        Job(OURS, lambda: ask(curator, key, "count(*)", "sum(cost)"), visits.rows),
        Job(f"{OURS}, users", lambda: asker.first("count(*)", "sum(cost)"), visits.rows),
        Job(WINDOWS + ", users", sql(connection, windows(visits, key, "cost")), visits.rows),
        Job(THRESHOLDS + ", users", sql(connection, thresholds(visits, key, "cost")), visits.rows),
        *peers(bench, visits, key),
    ]
    ns = bench.measure(f"peers, {visits.rows:,} rows", jobs, rounds=bench.pick(3, 1))
    rows, checks = [], []
    for who, cost in ns.items():
        ours = ns[f"{OURS}, users"] if who.endswith("users") else ns[OURS]
        rows.append([who, duration(cost), times(cost / ns[RAW]), times(cost / ours)])
        if OURS not in who:
            checks.append(Check(f"cost of a row, {named(key)}, {who} / {OURS}", cost / ours))
    note = "users: three groups of each, one row in each. diffprivlib counts only; PipelineDP runs in Python alone."
    header = ["a row", "cost", f"/ {RAW}", f"/ {OURS}"]
    return Table(f"Peers, {visits.rows:,} rows, {named(key)}", header, rows, note), checks


def peers(bench: Bench, visits: Visits, key: str) -> list[Job]:
    """The peers that are here; for the others the reason goes into the record."""
    found: list[Job] = []
    for name, load in {"OpenDP": _opendp, "diffprivlib": _diffprivlib, "PipelineDP": _pipeline_dp}.items():
        try:
            found += load(visits, key)
        except Exception as error:
            bench.failed("peers", name, error)
    return found


def _opendp(visits: Visits, key: str) -> list[Job]:
    """Its frames, on Polars: public keys joined, a sum of doubles, and truncation for users."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    keys = pl.LazyFrame({key: pl.Series(range(KEYS[key]), dtype=pl.Int64)})
    margin = dp.polars.Margin(by=(), max_length=visits.rows, max_groups=KEYS[key])

    def asked(*, users: bool) -> object:
        # A user has at most all rows; which of them count is for the truncation to say.
        unit = dp.unit_of(contributions=visits.rows, identifier="user_id") if users else dp.unit_of(contributions=1)
        loss = dp.loss_of(epsilon=1.0)
        data = pl.scan_parquet(visits.path)
        context = dp.Context.compositor(
            data=data, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=[margin]
        )
        query = context.query()
        if users:  # its random choice of groups fails for a single key, so the first ones are kept
            query = query.truncate_per_group(ROWS_PER_GROUP, by=[key])
            query = query.truncate_num_groups(GROUPS, by=[key], keep="first")
        total = pl.col("cost").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, float(HIGHEST)))
        return query.group_by(key).agg(dp.len(signed=True), total).with_keys(keys).release().collect()

    return [
        Job("OpenDP", lambda: asked(users=False), visits.rows),
        Job("OpenDP, users", lambda: asked(users=True), visits.rows),
    ]


def _diffprivlib(visits: Visits, key: str) -> list[Job]:
    """Its histogram of a NumPy column, read by DuckDB."""
    from diffprivlib.tools import histogram

    connection = duckdb.connect()

    def asked() -> object:
        column = connection.sql(f"SELECT {key} FROM {visits.table}").fetchnumpy()[key]
        return histogram(column, epsilon=1.0, bins=KEYS[key], range=(0, KEYS[key] - 1))

    return [Job("diffprivlib", asked, visits.rows)]


def _pipeline_dp(visits: Visits, key: str) -> list[Job]:
    """Its local backend, on a tenth of the rows, which are in memory as it wants them."""
    import pipeline_dp

    few = visits.rows // 10
    rows = duckdb.sql(f"SELECT user_id, {key}, cost FROM {visits.table} LIMIT {few}").fetchall()
    wanted = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM],
        max_partitions_contributed=GROUPS,
        max_contributions_per_partition=ROWS_PER_GROUP,
        min_value=0.0,
        max_value=float(HIGHEST),
    )
    parts = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def asked() -> object:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        found = engine.aggregate(rows, wanted, parts, public_partitions=list(range(KEYS[key])))
        accountant.compute_budgets()
        return list(found)

    return [Job("PipelineDP, users", asked, few)]


# The section


def run(bench: Bench) -> Section:
    """Measure all of it, on files that are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        bench.say("writing files")
        tiny, small, large = (
            written(Path(folder), rows) for rows in (1000, bench.pick(10**6, 10**5), bench.pick(10**7, 10**6))
        )
        sizes = [small, large]
        if not bench.quick and roomy():
            sizes.append(written(Path(folder), 5 * 10**7))
        found = [
            memory(bench, large),  # first, while this process is small
            cold(bench, tiny),
            by_row(bench, large),
            by_user(bench, large),
            growth(bench, sizes),
            beside_peers(bench, small),
        ]
    return Section([table for table, _ in found], [check for _, checks in found for check in checks])


def roomy() -> bool:
    """Whether fifty million rows fit: 12 GB of memory that nobody uses."""
    status = Path("/proc/meminfo")
    lines = status.read_text().splitlines() if status.exists() else []
    return any(line.startswith("MemAvailable") and int(line.split()[1]) > 12 * 10**6 for line in lines)

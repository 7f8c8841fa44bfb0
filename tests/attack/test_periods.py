"""Policies that limit rows in each calendar period: no unit moves an answer by more than it states.

The victim has many rows on a few days, some of them without a date and some beyond the bounds. Conditions and keys ask
for periods in every way; what a unit can move follows from them, and twins that misread them are convicted.
"""

import datetime
import random
from dataclasses import replace

import pytest
from tests.attack.questions import PYTHON, SPENDS, Question, _sql
from tests.attack.tables import POOLS, Table, World, random_world
from tests.attack.trial import Convicted, attacked
from tests.nightly import each_night

from noisette.engines.sql import retention, tables
from noisette.engines.sql.syntax import column, selected
from noisette.query.periods import Periods

DAY = datetime.date
BOUNDS = [(DAY(2020, 1, 1), DAY(2020, 1, 3)), (DAY(2019, 12, 30), DAY(2020, 2, 2)), (DAY(2020, 1, 2), DAY(2021, 1, 1))]
PERS = ["day", "week", "month", "quarter", "year"]
CONDITIONS = [
    "EXTRACT(day FROM v.d) = 2",
    "EXTRACT(day FROM v.d) IN (1, 3) OR v.k = 1",
    "NOT EXTRACT(day FROM v.d) > 1",
    "EXTRACT(year FROM v.d) = 2020 AND EXTRACT(month FROM v.d) <> 2",
    "v.d = DATE '2020-01-02'",
    "v.d >= DATE '2020-01-02' AND v.d < DATE '2020-01-03'",
    "v.d BETWEEN TIMESTAMP '2020-01-01 00:00:01' AND TIMESTAMP '2020-01-01 12:00:00'",
    "DATE_TRUNC('month', v.d) = DATE '2020-01-01'",
    "STRFTIME(v.d, '%m') = '01'",
    "v.d IS NULL",
    "v.k = 2",
    "CAST(v.d AS DATE) + INTERVAL 1 DAY = DATE '2020-01-03'",
]
KEYS = [
    "v.d",
    "EXTRACT(year FROM v.d)",
    "EXTRACT(month FROM v.d)",
    "EXTRACT(day FROM v.d)",
    "EXTRACT(week FROM v.d)",
    "DATE_TRUNC('week', v.d)",
    "DATE_TRUNC('day', v.d)",
    "STRFTIME(v.d, '%Y-%m-%d')",
    "EXTRACT(year FROM v.d) * 100 + EXTRACT(month FROM v.d)",
    "CASE WHEN v.b THEN EXTRACT(day FROM v.d) END",
    "v.b",
]
SOURCES = [
    "v",
    "c AS v",
    "v JOIN p ON v.k = p.j",
    "v JOIN v AS w ON v.u = w.u",
    "c AS v JOIN o ON v.r = o.r",
    "v JOIN l ON v.u = l.u",
    "(SELECT u, d, b, COUNT(*) AS k, MAX(x) AS x FROM v GROUP BY u, d, b) AS v",
    "(SELECT u, EXTRACT(day FROM d) AS e, COUNT(*) AS k FROM v GROUP BY u, EXTRACT(day FROM d)) AS v",
    "(SELECT d, b, k + 1 AS k FROM v WHERE d > DATE '2020-01-01') AS v",
    "(SELECT u, d, k, b FROM v UNION ALL SELECT u, d, k + 1, b FROM v WHERE k > 0) AS v",
]


def world(rng):
    """A random world with limits per period; whoever is the victim has many rows."""
    found = random_world(rng)
    while found.victim is None:
        found = random_world(rng)
    rules = dict(found.policy["tables"])
    for name in "vc":
        others = {part: rule for part, rule in rules[name].items() if part not in ("rows", "groups", "rows_per_group")}
        others.pop("most_rows", None)
        rows = {"most": rng.randint(1, 2), "per": rng.choice(PERS), "of": "d"}
        dated = {"bounds": list(rng.choice(BOUNDS)), "nullable": rng.random() < 0.7}
        rules[name] = {**others, "rows": rows, "columns": {**others["columns"], "d": dated}}
    table = found.tables["v"]
    mine = tuple(row for name in ("v",) for row in (found.other[name] * 4)[:8])
    at = [name for name, _ in table.columns].index("d")
    days = POOLS[dict(table.columns)["d"]][:4]
    mine = tuple((*row[:at], rng.choice([*days * 3, "NULL"]), *row[at + 1 :]) for row in mine)
    grown = {**found.tables, "v": Table(table.columns, (*table.rows, *mine))}
    return replace(found, tables=grown, policy={"tables": rules})


def question(rng):
    aggregates = rng.sample(["COUNT(*)", "SUM(v.k)", "COUNT(DISTINCT v.u)", "AVG(v.x)", "COUNT(DISTINCT v.d)"], 2)
    where, keys = (tuple(rng.sample(some, rng.choice([0, 1, 1, 2]))) for some in (CONDITIONS, KEYS))
    source = rng.choice(SOURCES) if rng.random() < 0.5 else "v"
    return Question(source=source, where=where, keys=keys, aggregates=tuple(aggregates), spend=rng.choice(SPENDS))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("seed", each_night(range(30), first=10, why="more random worlds with limits per period"))
def test_random_tables_and_questions(shelf, seed):
    rng = random.Random(f"periods {seed}")
    attacked(shelf, world(rng), [*(question(rng) for _ in range(6)), _sql(rng)])


STREAMS = ("Above", "Oracle", "Stream", "json oracle")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("form", each_night(range(2), first=1, why="a second random form of each question"))
@pytest.mark.parametrize("name", sorted(name for name in PYTHON if name not in STREAMS))
def test_every_question(shelf, name, form):
    rng = random.Random(f"periods of {name} {form}")
    attacked(shelf, world(rng), [Question(python=PYTHON[name](rng), spend=s) for s in SPENDS[:2]])


# Twins


def visits(per="year", most=1):
    """A world of whole numbers and days: the victim has four rows in January of each of three years, others one."""
    days = [f"'{y}-{m}-{d}'" for y in (2019, 2020, 2021) for m in ("01", "02") for d in ("03", "04")]
    rows = [("1", day, str(i % 2)) for i, day in enumerate([*days, "NULL", "NULL", "'2030-01-01'"])]
    made = Table((("u", "BIGINT"), ("d", "DATE"), ("k", "BIGINT")), (*rows, ("2", days[0], "0"), ("3", days[9], "1")))
    columns = {"d": {"bounds": [DAY(2019, 1, 1), DAY(2021, 12, 31)]}, "k": {"bounds": [0, 1], "nullable": False}}
    rules = {"v": {"unit": "u", "rows": {"most": most, "per": per, "of": "d"}, "columns": columns}}
    return World({"v": made}, {"tables": rules}, "1", {"v": ()}, "arrow")


TOTAL = Question(aggregates=("COUNT(*)",))
ONE_YEAR = replace(TOTAL, where=("EXTRACT(year FROM v.d) = 2020",))
YEARS = replace(TOTAL, keys=("EXTRACT(year FROM v.d)",))
MONTHS = replace(TOTAL, keys=("EXTRACT(month FROM v.d)",))
EITHER = replace(TOTAL, where=("EXTRACT(year FROM v.d) = 2020 OR v.k >= 0",))
OTHER = replace(TOTAL, where=("v.k >= 0",))
EVERY = [TOTAL, ONE_YEAR, YEARS, MONTHS, EITHER, OTHER]


def test_the_world_of_the_twins_is_innocent(shelf):
    assert attacked(shelf, visits(), EVERY)["answered"] == 2 * len(EVERY)


def without_the_year(patch):
    """A period computed without the year: January of all years is one, in what a unit can have."""
    patch.setattr(Periods, "total", property(lambda self: self.most))


def another_column(patch):
    """A condition on another column is taken for one on the date."""
    plain = Periods.where
    patch.setattr(Periods, "where", lambda self, e: replace(plain(self, e), spans=self.spans[:1]))


def everything(patch):
    """All rows of a period are retained."""
    patch.setattr(tables, "per_period", lambda rows, names, limit: selected(rows, {n: column(n) for n in names}))


def all_keys_apart(patch):
    """Every key is taken for one that tells the periods apart."""
    plain = Periods.spread
    patch.setattr(Periods, "spread", lambda self, keys: (plain(self, keys)[0], self.most))


def one_more(patch):
    plain = retention.per_period
    patch.setattr(tables, "per_period", lambda rows, names, limit: plain(rows, names, limit + 1))


TWINS = [
    (without_the_year, TOTAL),
    (another_column, OTHER),
    (another_column, EITHER),
    (everything, YEARS),
    (all_keys_apart, MONTHS),
    (one_more, YEARS),
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("twin", "asked"), TWINS, ids=lambda part: getattr(part, "__name__", None))
def test_twins_are_convicted(shelf, twin, asked, monkeypatch):
    shelf.shrinks = False
    twin(monkeypatch)
    with pytest.raises(Convicted, match=r"sensitivity: .* moved by"):
        attacked(shelf, visits(), [asked])

"""Tumult Analytics on a local Spark; a form may do arithmetic on what was released."""

import math
import os
import sys
import tempfile

import pandas
from pyspark.sql import SparkSession
from tmlt import analytics as ta

sys.path.insert(0, sys.argv[1])
from questions import DIAGNOSES, QUESTIONS, WARDS, said, tables

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
held = tables()
held["people"]["smoker"] = [int(smokes) for smokes in held["people"]["smoker"]]  # it reads no truth values
FRAMES = {name: spark.createDataFrame(pandas.DataFrame(columns)) for name, columns in held.items()}


def session():
    """A session with a fresh budget."""
    made = ta.Session.Builder().with_privacy_budget(ta.ApproxDPBudget(1, 1e-7)).with_id_space("patients")
    for name in ("visits", "people"):
        made = made.with_private_dataframe(name, FRAMES[name], protected_change=ta.AddRowsWithID("patient", "patients"))
    return made.with_public_dataframe("wards", FRAMES["wards"]).build()


def rows(table="visits"):
    """Rows, three of each patient at most."""
    return ta.QueryBuilder(table).enforce(ta.MaxRowsPerID(3))


def keys(**values):
    """Groups by known values."""
    return ta.KeySet.from_dict(values)


def found(query):
    """The rows of an answer."""
    opened = session()
    return [tuple(row) for row in opened.evaluate(query, opened.remaining_privacy_budget).collect()]


def named(**made):
    """The rows with a new column, made by a function of the row."""
    [(name, (function, kind))] = made.items()
    return rows().map(lambda row: {name: function(row)}, {name: kind}, augment=True)


def unlisted():
    """Keys that are bought first, then counts."""
    opened = session()
    known = opened.evaluate(rows().get_groups(["doctor"]), ta.ApproxDPBudget(0.5, 1e-7))
    asked = rows().groupby(ta.KeySet.from_dataframe(known)).count()
    return [tuple(row) for row in opened.evaluate(asked, ta.PureDPBudget(0.5)).collect()]


WHOLE, TEXT, REAL = ta.ColumnType.INTEGER, ta.ColumnType.VARCHAR, ta.ColumnType.DECIMAL
wards, codes = {"ward": WARDS}, {"diagnosis": DIAGNOSES}


def _who(row):
    return "child" if row["age"] < 18 else "adult" if row["age"] < 65 else "old"


FORMS = {
    "how many visits": lambda: found(rows().count()),
    "how many with a condition": lambda: found(rows().filter("age >= 65 AND sex = 'F'").count()),
    "how many patients": lambda: found(ta.QueryBuilder("visits").count_distinct(["patient"])),
    "counts by a column with known values": lambda: found(rows().groupby(keys(**wards)).count()),
    "counts by a column whose values nobody listed": unlisted,
    "counts by two columns": lambda: found(rows().groupby(keys(**wards, sex=["F", "M"])).count()),
    "a sum": lambda: found(rows().sum("cost", 0, 5000)),
    "averages by group": lambda: found(rows().groupby(keys(**wards)).average("age", 0, 100)),
    "a standard deviation": lambda: found(rows().stdev("age", 0, 100)),
    "a median": lambda: found(rows().median("age", 0, 100)),
    "the largest value": lambda: found(rows().max("age", 0, 100)),
    "the first three groups": lambda: sorted(found(rows().groupby(keys(**codes)).count()), key=lambda r: -r[1])[:3],
    "groups above a size": lambda: [row for row in found(rows().groupby(keys(**wards)).count()) if row[1] > 500],
    "the share for which something is true": lambda: found(
        named(f=(lambda row: int(row["sex"] == "F"), WHOLE)).groupby(keys(**wards)).average("f", 0, 1)
    ),
    "groups by CASE": lambda: found(named(who=(_who, TEXT)).groupby(keys(who=["child", "adult", "old"])).count()),
    "a histogram": lambda: found(rows().histogram("age", ta.BinningSpec(list(range(0, 101, 10))))),
    "every range of a column at once": lambda: found(rows().groupby(keys(age=list(range(100)))).count()),
    "counts by month": lambda: found(
        named(m=(lambda row: row["admitted"].month, WHOLE)).groupby(keys(m=list(range(1, 13)))).count()
    ),
    "counts by day of the week": lambda: found(
        named(d=(lambda row: row["admitted"].weekday(), WHOLE)).groupby(keys(d=list(range(7)))).count()
    ),
    "a length of stay": lambda: found(
        named(stay=(lambda row: (row["discharged"] - row["admitted"]).days, WHOLE)).average("stay", 0, 30)
    ),
    "the last thirty days": lambda: found(rows().filter("admitted >= DATE '2026-10-02'").count()),
    "groups by the beginning of a code": lambda: found(
        named(c=(lambda row: row["diagnosis"][:1], TEXT)).groupby(keys(c=["J", "I", "S", "O"])).count()
    ),
    "a text in any case": lambda: found(rows().filter("diagnosis ILIKE 'j1%'").count()),
    "a pattern": lambda: found(rows().filter("diagnosis RLIKE '^[IJ][0-9]+$'").count()),
    "a logarithm": lambda: found(named(x=(lambda row: math.log(1 + row["cost"]), REAL)).average("x", 0, 9)),
    "a public table's column as the group": lambda: found(
        rows().join_public("wards").groupby(keys(floor=[1, 2, 3])).count()
    ),
    "a left join with a public table": lambda: found(
        rows().join_public("wards", how="left").groupby(keys(floor=[1, 2, 3, None])).count()
    ),
    "values that a public table lists": lambda: found(rows().join_public("wards").filter("floor = 1").count()),
    "values that a public table does not list": lambda: found(
        rows().join_public("wards", how="left").filter("floor <> 1").count()
    ),
    "two private tables joined on the patient": lambda: found(
        ta.QueryBuilder("visits")
        .join_private("people")
        .filter("smoker = 1")
        .enforce(ta.MaxRowsPerID(3))
        .groupby(keys(**wards))
        .count()
    ),
    "shares of the total": lambda: _shares(found(rows().groupby(keys(**wards)).count())),
}


def _shares(counted):
    total = sum(size for _, size in counted)
    return [(name, size / total) for name, size in counted]


for asked in QUESTIONS:
    said(asked.what, lambda form: form(), [FORMS[asked.what]] if asked.what in FORMS else [])

"""OpenDP's Polars interface; a form may do arithmetic on what was released."""

import datetime
import sys

import opendp.prelude as dp
import polars as pl

sys.path.insert(0, sys.argv[1])
from questions import DIAGNOSES, QUESTIONS, WARDS, said, tables

dp.enable_features("contrib", "honest-but-curious")
HELD = {name: pl.DataFrame(columns).lazy() for name, columns in tables().items()}
KEYS = {"ward": pl.LazyFrame({"ward": WARDS}), "diagnosis": pl.LazyFrame({"diagnosis": DIAGNOSES})}
SEXES = pl.LazyFrame({"sex": ["F", "M"]})
AGES = list(range(101))
STAY = (pl.col("discharged") - pl.col("admitted")).dt.total_days()
OLD = pl.when(pl.col("age") < 18).then(pl.lit("child")).when(pl.col("age") < 65).then(pl.lit("adult"))


def rows(*, whole: bool = False):
    """The visits, three of each patient, or all of them."""
    context = dp.Context.compositor(
        data=HELD["visits"],
        privacy_unit=dp.unit_of(contributions=3, identifier=pl.col("patient")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-7),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=100_000)],
    )
    return context.query() if whole else context.query().truncate_per_group(3)


def counts(frame, key: str):
    """How many rows each key has."""
    grouped = frame.group_by(key).agg(dp.len())
    return (grouped.with_keys(KEYS[key]) if key in KEYS else grouped).release().collect().rows()


def number(frame, *expressions):
    """What expressions give over all rows."""
    return frame.select(*expressions).release().collect().rows()


def mean(expression, low, high, key=None):
    """A mean from a sum and a count."""
    parts = (expression.fill_null(low).dp.sum((low, high)), dp.len())
    if key is None:
        [(total, size)] = number(rows(), *parts)
        return [(total / size,)]
    found = rows().group_by(key).agg(*parts).with_keys(KEYS[key]).release().collect().rows()
    return [(name, total / max(size, 1)) for name, total, size in found if size > 50]


age, text = pl.col("age").fill_null(0), pl.col("diagnosis")
FORMS = {
    "how many visits": lambda: number(rows(), dp.len()),
    "how many with a condition": lambda: number(
        rows().filter((pl.col("age") >= 65) & (pl.col("sex") == "F")), dp.len()
    ),
    "how many patients": lambda: number(rows(), pl.col("patient").dp.n_unique()),
    "counts by a column with known values": lambda: counts(rows(), "ward"),
    "counts by a column whose values nobody listed": lambda: counts(rows(), "doctor"),
    "counts by two columns": lambda: (
        rows()
        .group_by("ward", "sex")
        .agg(dp.len())
        .with_keys(KEYS["ward"].join(SEXES, how="cross"))
        .release()
        .collect()
        .rows()
    ),
    "a sum": lambda: number(rows(), pl.col("cost").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 5000.0))),
    "averages by group": lambda: mean(pl.col("age"), 0, 100, "ward"),
    "a standard deviation": lambda: number(rows(), age.dp.std((0, 100))),
    "a median": lambda: number(rows(), age.dp.median(AGES)),
    "several quantiles at once": lambda: [
        (sum(number(rows(), *(age.dp.quantile(q, AGES).alias(str(q)) for q in (0.25, 0.5, 0.75)))[0]),)
    ],
    "the largest value": lambda: number(rows(), age.dp.quantile(1.0, AGES)),
    "the most frequent value": lambda: number(rows(), text.dp.mode()),
    "the first three groups": lambda: sorted(counts(rows(), "diagnosis"), key=lambda row: -row[1])[:3],
    "groups above a size": lambda: [row for row in counts(rows(), "ward") if row[1] > 500],
    "the share for which something is true": lambda: mean((pl.col("sex") == "F").cast(int), 0, 1, "ward"),
    "groups by CASE": lambda: counts(rows().with_columns(who=OLD.otherwise(pl.lit("old"))), "who"),
    "a histogram": lambda: counts(rows().with_columns(b=pl.col("age").cut(list(range(10, 100, 10)))), "b"),
    "every range of a column at once": lambda: counts(rows(), "age"),
    "counts by month": lambda: counts(rows().with_columns(m=pl.col("admitted").dt.month()), "m"),
    "counts by day of the week": lambda: counts(rows().with_columns(d=pl.col("admitted").dt.weekday()), "d"),
    "a length of stay": lambda: mean(STAY, 0, 30),
    "the last thirty days": lambda: number(rows().filter(pl.col("admitted") >= datetime.date(2026, 10, 2)), dp.len()),
    "groups by the beginning of a code": lambda: counts(rows().with_columns(c=text.str.slice(0, 1)), "c"),
    "a text in any case": lambda: number(rows().filter(text.str.to_lowercase().str.starts_with("j1")), dp.len()),
    "a pattern": lambda: number(rows().filter(text.str.contains("^[IJ][0-9]+$")), dp.len()),
    "a logarithm": lambda: mean((pl.col("cost") + 1.0).log(), 0.0, 9.0),
    "a public table's column as the group": lambda: counts(rows().join(HELD["wards"], on="ward"), "floor"),
    "a left join with a public table": lambda: counts(rows().join(HELD["wards"], on="ward", how="left"), "floor"),
    "values that a public table lists": lambda: number(
        rows().filter((pl.col("ward") == "north") | (pl.col("ward") == "south")), dp.len()
    ),
    "values that a public table does not list": lambda: number(
        rows().filter((pl.col("ward") != "north") & (pl.col("ward") != "south")), dp.len()
    ),
    "patients by number of visits": lambda: counts(rows(whole=True).group_by("patient").agg(k=pl.len()), "k"),
    "two private tables joined on the patient": lambda: counts(rows().join(HELD["people"], on="patient"), "ward"),
    "shares of the total": lambda: _shares(counts(rows(), "ward")),
}


def _shares(found):
    total = sum(size for _, size in found)
    return [(name, size / total) for name, size in found]


for asked in QUESTIONS:
    said(asked.what, lambda form: form(), [FORMS[asked.what]] if asked.what in FORMS else [])

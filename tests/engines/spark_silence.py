"""Runs in a process of its own: what Spark says, in all logs it has, while questions are asked about marked cells.

`python spark_silence.py FOLDER PART` prints plans and errors; FOLDER gets `log.json` and `events`.
Parts: `asked` asks and lets tasks fail · `frame` asks about a frame that fails by itself, with logs switched off ·
`guilty` lets Spark itself cast, as Noisette never does.
"""

import os
import sys
import traceback
import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyarrow
from pyarrow import parquet

import noisette as nz
from noisette.engines.spark import commit, source
from noisette.engines.spark.cells import CellLayout
from noisette.engines.spark.executor import of_retained, of_units, retaining
from noisette.engines.spark.scratch import Scratch
from noisette.engines.spark.source import Spark

MARK = "canary-4711-"
FAR = 2**63 - 1097  # Spark has reasons of its own to say 2**63 - 1
ROWS = 600
TWIN = "--- from here on errors are logged ---"
LOGS = """
rootLogger.level = {level}
rootLogger.appenderRef.plain.ref = plain
rootLogger.appenderRef.json.ref = json
appender.plain.type = Console
appender.plain.name = plain
appender.plain.target = SYSTEM_ERR
appender.plain.layout.type = PatternLayout
appender.plain.layout.pattern = %p %c: %m%n%ex
appender.json.type = File
appender.json.name = json
appender.json.fileName = {folder}/log.json
appender.json.layout.type = JsonTemplateLayout
appender.json.layout.eventTemplateUri = classpath:org/apache/spark/SparkLayout.json
"""


def write_tables(folder):
    """Visits with extreme numbers, NaN and texts that are no numbers; stays that refer to a visit by a marked text."""
    some = range(ROWS)
    visits = pyarrow.table({
        "who": pyarrow.array([(FAR, -FAR)[i % 2] if i % 3 == 0 else i // 6 for i in some], pyarrow.int64()),
        "note": [f"{MARK}{i % 4 if i % 2 else i}" for i in some],
        "age": [f"{MARK}age" if i % 5 == 0 else str(i % 90) for i in some],
        "amount": pyarrow.array([(FAR, -FAR)[i % 7 == 0] for i in some], pyarrow.int64()),
        "level": [(float("nan"), float("inf"), 1e308, 7.5)[i % 4] for i in some],
        "day": [f"{MARK}day" if i % 2 else "2026-01-03" for i in some],
    })  # fmt: skip
    keys = [f"{MARK}{i}" for i in range(0, ROWS, 2)]
    people = pyarrow.table({"name": keys, "who": list(range(len(keys)))})
    stays = pyarrow.table({"name": [keys[i % len(keys)] for i in some], "days": [FAR - i for i in some]})
    for name, table in {"visits": visits, "people": people, "stays": stays, "single": visits}.items():
        parquet.write_table(table, f"{folder}/{name}.parquet")


POLICY = {
    "tables": {
        "visits": {
            "unit": "who",
            "rows": 3,
            "columns": {
                "age": {"type": "integer", "bounds": [0, 120]},
                "amount": {"bounds": [-(2**51), 2**51]},
                "level": {"bounds": [0, 10]},
                "day": {"type": "date"},
                "note": {"type": "text"},
            },
        },
        "people": {"unit": "who", "rows": 1},
        "stays": {
            "unit": {"through": "people", "on": {"name": "name"}},
            "rows": 3,
            "columns": {"days": {"bounds": [0, 2**40]}},
        },
        "single": {"columns": {"amount": {"bounds": [-(2**51), 2**51]}, "level": {"bounds": [0, 10]}}},
    }
}
QUESTIONS = [
    "SELECT age < 40 AS young, count(*) AS n, sum(amount) AS s, avg(level) AS l FROM visits GROUP BY age < 40",
    "SELECT note, count(*) AS n, sum(amount) AS s FROM visits GROUP BY note",
    "SELECT day, count(*) AS n FROM visits GROUP BY day",
    "SELECT count(*) AS n, sum(days) AS d FROM stays",
    "SELECT note, sum(amount) AS s, avg(level) AS l FROM single GROUP BY note",  # which Spark adds up
]


@contextmanager
def replaced(owner, name, made):
    """Another attribute, for a while."""
    old = getattr(owner, name)
    setattr(owner, name, made)
    try:
        yield old
    finally:
        setattr(owner, name, old)


class QuotingLayout:
    """Makes an executor fail, with an error that quotes all rows it has."""

    def __init__(self, layout):
        self.arrive = layout.arrive

    def engine(self, rows):
        raise ValueError(str(rows.to_pylist()))


class QuotingDraw:
    """Makes an executor fail that noises cells, with an error that quotes their keys."""

    def __call__(self, exact, rng=None):
        if len(exact.measures[0]):
            raise ValueError(str(exact.keys.to_pylist()))
        return exact.keys, exact.measures[0]

    def table(self, drawn):
        return pyarrow.table({"key 0": drawn[0].column(0), "n": pyarrow.array(drawn[1])})


def tried(act):
    """Print all that an error says; there must be one."""
    try:
        act()
    except Exception:
        print("Error:", traceback.format_exc())
    else:
        raise AssertionError("it did not fail")


def asked(folder):
    """Ordinary questions, with their plans; then the same with tasks that fail and quote."""
    data, parts = opened(folder), Spark._parts

    def explained(self, *given):
        frame, columns = parts(self, *given)
        frame.explain("extended")
        return frame, columns

    with replaced(Spark, "_parts", explained):
        for text in QUESTIONS:
            data.sql(text, spend=nz.Approx(1, "1e-9"))

    def failing(layout, compute, result, whole):
        return of_units(QuotingLayout(layout), compute, result, whole=whole)

    def quoting(engine, held):
        raise ValueError(str(held.rows.to_pylist()))

    with replaced(source, "of_units", failing):
        tried(lambda: data.sql(QUESTIONS[-1], spend=nz.Approx(2, "1e-9")))
    with replaced(source, "of_retained", lambda layout, _, result: of_retained(layout, quoting, result)):
        tried(lambda: data.sql(QUESTIONS[1], spend=nz.Approx(2, "1e-9")))
    with replaced(source, "retaining", lambda layout, *made: retaining(QuotingLayout(layout), *made)):
        tried(lambda: data.sql("SELECT sum(level) AS l FROM visits", spend=2))
    with replaced(source, "retaining", lambda layout, retain, _: retaining(layout, retain, quoting)):
        tried(lambda: data.sql("SELECT sum(level) AS l FROM visits", spend=2))
    cells = visits(folder).selectExpr("note AS k0", "amount AS m0").dropDuplicates(["k0"])
    scratch = Scratch.of(folder / "scratch")
    tried(lambda: commit.noised_once(cells, QuotingDraw(), CellLayout(("text",), (None,)), scratch))


def frame(folder):
    """A question about a frame that casts, which nobody should give: this process says nothing of it; its twin does."""
    broken = opened(folder) and visits(folder).selectExpr("who", "CAST(age AS INT) AS age")
    data = nz.open({"visits": broken}, budget=9, policy={"tables": {"visits": {"unit": "who", "rows": 3}}})
    tried(lambda: data.sql("SELECT count(age) AS n FROM visits", spend=1))
    print(TWIN, file=sys.stderr, flush=True)
    with replaced(source, "unlogged", nullcontext):
        tried(lambda: data.sql("SELECT count(age) AS n FROM visits", spend=2))


def guilty(folder):
    """What Spark says of a text and a number that it cannot cast, and of a worker that quotes a day."""
    opened(folder)
    rows = visits(folder)
    tried(lambda: rows.select(rows.age.cast("int")).toArrow())
    tried(lambda: rows.select(rows.amount.cast("int")).toArrow())
    tried(lambda: rows.select("day").mapInArrow(quoted, "day string").toArrow())
    rows.limit(1).selectExpr("who", f"'{MARK}folder' AS ward").write.partitionBy("ward").parquet(f"{folder}/parts")
    session().read.parquet(f"{folder}/parts").toArrow()


def quoted(batches):
    for batch in batches:
        raise ValueError(str(batch.to_pylist()))
    yield


def visits(folder):
    return session().read.parquet(f"{folder}/visits.parquet")


def opened(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a ledger is, and others
        tables = {name: f"{folder}/{name}.parquet" for name in POLICY["tables"]}
        data = nz.open("local[2]", tables=tables, scratch=folder / "scratch", budget="100,0.1", policy=POLICY)
    assert session().sparkContext.getConf().get("spark.ui.showConsoleProgress") == "false"  # a bar of tasks
    return data


def session():
    from pyspark.sql import SparkSession

    return SparkSession.active()


def main(folder, part):
    for name in ("events", "scratch"):
        (folder / name).mkdir()
    write_tables(folder)
    (folder / "log4j2.properties").write_text(LOGS.format(folder=folder, level="off" if part == "frame" else "info"))
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties",
        "spark.log.structuredLogging.enabled": "true",
        "spark.eventLog.enabled": str(part != "frame").lower(),
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.eventLog.compress": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(f"--conf {k}={v}" for k, v in settings.items()) + " pyspark-shell"
    PARTS[part](folder)
    session().stop()


PARTS = {"asked": asked, "frame": frame, "guilty": guilty}

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

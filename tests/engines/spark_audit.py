"""Runs in a process of its own: a cluster that fails in every way it can, and what was drawn meanwhile.

`python spark_audit.py FOLDER` prints a JSON object; FOLDER holds what the tasks write down of their draws.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow

from noisette.engines.spark.cells import CellLayout
from noisette.engines.spark.commit import noised, noised_once
from noisette.engines.spark.scratch import Scratch
from noisette.errors import NoisetteError
from noisette.exact.keyed import KeyedRandom
from noisette.exact.random import SYSTEM
from noisette.mechanisms import Geometric

CELLS = 1000
CANARY = "canary-4711-"


class Watched:
    """Geometric noise on a number for each key; each draw is written down, and the first of a mode goes wrong after it.

    `afresh`: the twin, which takes coins of its own in the task.
    """

    def __init__(self, folder, mode="", afresh=False):
        self.folder, self.mode, self.afresh = str(folder), mode, afresh

    def __call__(self, exact, rng=SYSTEM):
        numbers = exact.measures[0]
        if not len(numbers):
            return exact.keys, numbers
        noisy = Geometric(1000)(numbers, SYSTEM if self.afresh else rng)
        self._write_down(exact.keys, noisy)
        self._go_wrong()
        return exact.keys, noisy

    def _write_down(self, keys, noisy):
        path = Path(self.folder, f"{SYSTEM.bits(64):x}.json")
        path.write_text(json.dumps(dict(zip(keys.column(0).to_pylist(), np.asarray(noisy).tolist(), strict=True))))

    def _go_wrong(self):
        """Once in all tasks: the file says that it happened."""
        if not self.mode:
            return
        try:
            os.close(os.open(f"{self.folder}/{self.mode}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        match self.mode:
            case "fails":
                raise ValueError(CANARY)
            case "killed":
                os.kill(_java(), signal.SIGKILL)
                time.sleep(60)

    def table(self, drawn):
        keys, numbers = drawn
        return pyarrow.table({"key 0": keys.column(0), "n": pyarrow.array(np.asarray(numbers, float))})

    def read(self, table):
        return dict(zip(table["key 0"].to_pylist(), table["n"].to_pylist(), strict=True))


class Failing(Watched):
    """Fails whenever it is tried."""

    def _go_wrong(self):
        raise ValueError(CANARY)


def _java():
    """The executor of this task: the nearest process above that runs Java."""
    process = os.getppid()
    while Path(f"/proc/{process}/comm").read_text().strip() != "java":
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process


def cells(spark):
    """Text keys and a number for each; lazy, so that every action computes it again."""
    from pyspark.sql import functions as f

    return spark.range(CELLS).select(
        f.concat(f.lit(CANARY), f.col("id")).alias("k0"), (f.col("id") * 1_000_003).alias("m0")
    )


def drawn(folder):
    """All that was ever drawn of each key."""
    found = {}
    for path in folder.glob("*.json"):
        for key, number in json.loads(path.read_text()).items():
            found.setdefault(key, []).append(number)
    return found


def ways(spark, scratch):
    """How an answer may come about: once committed, or by looking at the lazy frame again and again."""
    layout = CellLayout(("text",), (None,))

    def committed(draw):
        answer = noised_once(cells(spark), draw, layout, scratch)
        seen = drawn(Path(draw.folder))
        assert len(answer) == CELLS
        assert all(number in seen[key] for key, number in answer.items())

    def looked_at(draw):
        """Two actions at once, as copies of a slow task are; Spark itself starts copies on other machines alone."""
        frame = noised(cells(spark), draw, layout)
        other = Thread(target=frame.count)
        other.start()
        frame.orderBy("c0").collect()
        other.join()

    return {
        "fails": (committed, "fails"),
        "killed": (committed, "killed"),
        "again": (looked_at, ""),
    }


def asked(spark, scratch):
    """A question with unknown keys through the source, with hardly any noise, on Spark and in process."""
    from tests.query.worlds import table

    from noisette.engines.duckdb.source import DuckDB
    from noisette.engines.spark.opening import spark_tables
    from noisette.engines.spark.source import Spark
    from noisette.privacy import Approx, Neighbours
    from noisette.query.kind import Kind
    from noisette.query.schema import Limits
    from noisette.query.sql import parse
    from noisette.questions.parts.queries import Queries

    users = [user for user in range(300) for _ in range(3)]
    ages = [(7 * i) % 50 for i in range(900)]
    towns = [None if i % 9 == 0 else f"t{i % 8 if i % 8 < 6 else i}" for i in range(900)]  # some have one user alone
    rows = pyarrow.table({"user": users, "town": towns, "age": ages})
    columns = {"user": Kind("integer"), "town": Kind("text"), "age": Kind("integer", 0, 50, 1)}
    schema = {"t": table("t", columns, unit="user", limits=Limits(groups=3, rows_per_group=3))}
    text = "SELECT town, count(*), count(DISTINCT user), sum(age), median(age) FROM t GROUP BY town"
    offer = Queries((parse(text, schema),)).offer(schema, Approx(5000, "1e-6"), Neighbours.ADD_REMOVE, 0.95)
    sources = {
        "spark": Spark(spark_tables(spark, {"t": spark.createDataFrame(rows)}, scratch.path)),
        "process": DuckDB({"t": rows}),
    }
    drawn = {name: offer.procedure.draw(source, schema, bytes(32), SYSTEM) for name, source in sources.items()}
    return {
        name: [[str(v) for v in c.values] for c in offer.procedure.answers(each)[0]] for name, each in drawn.items()
    } | {"ages": {str(town): [a for a, t in zip(ages, towns, strict=True) if t == town] for town in set(towns)}}


class Dying:
    """A function of an executor whose first task dies after it made something."""

    def __init__(self, folder, function):
        self.folder, self.function = str(folder), function

    def __call__(self, batches):
        for batch in self.function(batches):
            Watched(self.folder, "killed")._go_wrong()
            yield batch


def lost(spark, root):
    """Exact numbers of users in files, where an executor dies: as it packs rows, retains them, or holds them."""
    from pyarrow import parquet
    from tests.query.worlds import table

    from noisette.engines.duckdb.source import DuckDB
    from noisette.engines.spark import routing, source
    from noisette.engines.spark.opening import spark_tables
    from noisette.query.expression import Name
    from noisette.query.kind import Kind
    from noisette.query.measure import Measure, Request
    from noisette.query.plan import Scan
    from noisette.query.schema import Limits

    routing._A_BUCKET = 1  # so that few rows are sent to several tasks
    rows = pyarrow.table(
        {
            "user": [i % 300 for i in range(6000)],
            "town": [i % 11 for i in range(6000)],
            "age": [i % 50 for i in range(6000)],
        }
    )
    columns = {"user": Kind("integer"), "town": Kind("integer"), "age": Kind("integer", 0, 50, 1)}
    schema = {"t": table("t", columns, unit="user", limits=Limits(groups=3, rows_per_group=2))}
    measures = Measure("rows"), Measure("sum", Name("t.age"), 1, 0, 50)
    request = Request(Scan("t", "t"), (Name("t.town"),), (tuple(range(11)),), measures, schema["t"].limits)
    right = [m.tolist() for m in DuckDB({"t": rows}).aggregate(request, schema, bytes(16)).measures]
    found = {}
    for name, place in {"sending": routing, "retaining": source, "of_retained": source}.items():
        folder = root / name
        (folder / "t").mkdir(parents=True)
        for i in range(4):
            parquet.write_table(rows.slice(1500 * i, 1500), folder / "t" / f"{i}.parquet", row_group_size=400)
        made, kept = getattr(place, name), source.Spark(spark_tables(spark, {"t": f"{folder}/t"}))
        setattr(place, name, lambda *given, made=made, folder=folder: Dying(folder, made(*given)))
        answers = [kept.aggregate(request, schema, bytes(16)) for _ in range(2)]
        setattr(place, name, made)
        same = all([m.tolist() for m in answer.measures] == right for answer in answers)
        found[name] = {"right": same, "died": (folder / "killed").exists()}
    return found


def failure(spark, scratch, folder):
    """What is left, and said, when every attempt fails."""
    try:
        noised_once(cells(spark), Failing(folder), CellLayout(("text",), (None,)), scratch)
    except NoisetteError as error:
        return {"error": type(error).__name__, "words": str(error), "context": error.__context__ is not None}
    return {}


def session(root):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.task.maxFailures": "4",
        "spark.speculation": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{root}/events",
        "spark.eventLog.compress": "false",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        "spark.io.encryption.enabled": "true",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(root):
    (root / "events").mkdir()
    (root / "scratch").mkdir()
    spark, scratch, found = session(root), Scratch.of(root / "scratch"), {}
    spark.sparkContext.setLogLevel("OFF")
    for name, (act, mode) in ways(spark, scratch).items():
        for afresh in (False, True) if name in ("fails", "again") else (False,):
            folder = root / f"{name} {afresh}"
            folder.mkdir()
            start = time.time()
            act(Watched(folder, mode, afresh))
            seen = drawn(folder)
            found[f"{name} {'afresh' if afresh else 'keyed'}"] = {
                "cells": len(seen),
                "again": sum(len(each) > 1 for each in seen.values()),
                "two noises": sum(len(set(each)) > 1 for each in seen.values()),
                "seconds": round(time.time() - start, 1),
            }
    (root / "failure").mkdir()
    found["failure"] = failure(spark, scratch, root / "failure")
    found["asked"] = asked(spark, scratch)
    found["lost"] = lost(spark, root)
    found["plan"] = plan(spark, root)
    found["scratch"] = [path.name for path in (root / "scratch").iterdir()]
    spark.stop()
    found["events"] = logged(root / "events")
    print(json.dumps(found))


def plan(spark, root):
    """Whether the key of a frame is in its plan text; the coins are fixed, so that it is known."""
    import contextlib
    import io

    (root / "plan").mkdir()
    coins = KeyedRandom(bytes(32))
    frame, text = noised(cells(spark), Watched(root / "plan"), CellLayout(("text",), (None,)), coins), io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain("extended")
        frame.explain("formatted")
    frame.write.parquet(f"{root}/plan/out")
    return {"letters": len(text.getvalue()), "secret": [form for form in forms() if form in text.getvalue()]}


def forms():
    """The key of the frame of `plan` as texts: what `noised` draws first is the salt, then the key."""
    import base64

    coins = KeyedRandom(bytes(32))
    coins.bits(62)
    key = coins.bits(256).to_bytes(32, "little")
    return [
        key.hex(),
        base64.b64encode(key).decode()[:40],
        repr(key)[2:-1],
        key.decode("latin-1"),
        str(list(key))[1:-1],
    ]


def logged(folder):
    text = "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    values = [f"{CANARY}{i}" for i in range(0, CELLS, 7) if f"{CANARY}{i}" in text]
    return {"letters": len(text), "secret": [form for form in forms() if form in text], "values": values}


if __name__ == "__main__":
    main(Path(sys.argv[1]))

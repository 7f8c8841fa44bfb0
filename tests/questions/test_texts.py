"""Texts, records and kept bytes of questions are stored in ledgers: they stay as they were written first.

`texts.json` was written by the first version that had these questions. The coins are scripted, so what is kept is the
same, too; of `Apply` the function's bytes depend on Python's version and are left out. Where values beyond the bounds
got another meaning, in keys and comparisons, `declared` is another digest since then. Where bars of quantiles hold
whatever the values are, other mechanisms draw them, under another text: what was kept before is not taken for it.
"""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from tests.contracts.world import VISITS, WARDS, opened

import noisette as nz
from noisette.exact.random import SystemRandom
from noisette.query.sql import parse
from noisette.questions.parts.queries import Queries

WRITTEN, ROOT = Path(__file__).with_name("texts.json"), Path(__file__).resolve().parents[2]
SPENDS = {"pure": nz.Pure(2), "approx": nz.Approx(2, "1e-7"), "zcdp": nz.ZCDP("1/4")}


def two(rows):
    ages = rows["age"].to_numpy()
    return ages.mean(), ages.max()


QUICK = {"seconds": 0.3, "memory": "128 MiB", "columns": ["age"]}
SUMS = "SELECT SUM(age - 40) FROM visits WHERE ward = '{}'"


def questions(curator):
    rows = curator.table("visits").where("age >= 18")
    return {
        "sql": queries(curator, "SELECT ward, SUM(age) AS s, AVG(age) AS a FROM visits GROUP BY ward"),
        "batch": queries(
            curator, "SELECT COUNT(*) AS n FROM visits", "SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward"
        ),
        "pairs": queries(
            curator, "SELECT ward, CORR(age, age * 2) AS r, REGR_SLOPE(age, 2 * age) AS s FROM visits GROUP BY ward"
        ),
        "quantiles": nz.Quantiles("age"),
        "rollup": queries(curator, "SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ROLLUP (ward)"),
        "unknown keys": queries(curator, "SELECT illness, COUNT(*) AS n FROM visits GROUP BY illness"),
        "apply": nz.Apply(lambda rows: 1.0, blocks=2, bounds=(0, 100), **QUICK),
        "apply, winsorized": nz.Apply(two, blocks=2, bounds=(0, 100), outputs=2, aggregate="winsorized", **QUICK),
        "apply, median": nz.Apply(two, blocks=2, bounds=(0, 100), outputs=2, aggregate="median", of=rows, **QUICK),
        "apply, mode": nz.Apply(lambda rows: "a", blocks=2, labels=["a", "b"], aggregate="mode", **QUICK),
        "mode": nz.Mode("ward"),
        "mode of some rows": nz.Mode("ward", of=rows),
        "mode of an expression": nz.Mode("FLOOR(age / 10)"),
        "mode with its lead": nz.Mode("ward", lead=True),
        "mode of unknown keys": nz.Mode("illness"),
        "choose": nz.Choose([30, 60, 90], score=lambda age: f"SELECT COUNT(*) FROM visits WHERE age < {age}"),
        "choose by sums": nz.Choose(WARDS, score=SUMS.format),
        "choose by frames": nz.Choose(
            [18, 30], score=lambda age: curator.table("visits").where(f"age >= {age}").count()
        ),
        "choose with a lead": nz.Choose(WARDS, score=SUMS.format, lead=True),
        "best": nz.Best(
            {f"below {a}": f"SELECT SUM({a}) AS s, AVG(age) AS a FROM visits WHERE age < {a}" for a in (30, 60)},
            by="s",
            runs=2,
        ),
        "best of values": nz.Best([nz.OrderStatistic("age"), nz.OrderStatistic("age", "9/10")], by="value", runs=2),
        "top": nz.Top("ward", 2),
        "top ages": nz.Top("age", 5, of=rows),
        "top of unknown keys": nz.Top("illness", 2),
        "multiplicative weights": nz.MultiplicativeWeights(
            ["ward", "age"], [{"age": [0, 17]}, {"age": [18, None]}, {"ward": WARDS[0], "age": [60, None]}], rounds=2
        ),
        "multiplicative weights of marginals": nz.MultiplicativeWeights(["ward", "age"], ways=1, total=100, of=rows),
        "nearest": nz.Nearest("FLOOR(age / 10)", "age - 5", place=(3, 4), k=20),
        "nearest place": nz.Nearest("FLOOR(age / 10)", "age - 5", place=(3, 4), k=20, tell="place"),
        "spread": nz.Spread("age"),
        "centre": nz.Centre("age", width=5),
        "centre and spread": nz.Centre("age", of=rows),
        "trimmed mean": nz.TrimmedMean("age", trim=100),
        "order statistic": nz.OrderStatistic("age"),
        "order statistic by smooth sensitivity": nz.OrderStatistic("age", "9/10", by="smooth"),
        "triangles": nz.Triangles("age", "age + 1"),
        "triangles on a ladder": nz.Triangles("age", "FLOOR(age / 2)", by="inverse"),
        "distinct": nz.Distinct("illness"),
        "self join": nz.SelfJoin("illness", most=16),
        "frequency sketch": nz.FrequencySketch("illness", of=rows, width=64),
        "heavy hitters": nz.HeavyHitters("illness", memory=10),
        "cube": nz.Cube({"ward": "ward", "decade": "FLOOR(age / 10)", "old": "age > 60"}),
        "cube of one column": nz.Cube(["ward"], ways=1, of=rows),
        "left out by limits on rows": nz.LeftOut(rows=[1, 2, 4, 8, 16]),
        "left out by limits on groups": nz.LeftOut(groups=[1, 2], by=["ward", "illness"]),
        "flows": nz.Flows(("age", "FLOOR(age / 2)"), ("age + 1", "FLOOR(age / 3)"), cells=8),
        "map": nz.Map("age", "FLOOR(age / 2)", cells=16),
        "map, quartered within bounds": nz.Map(
            "age", "age + 1", bounds=(10, 11, 60, 61), cells=8, of=rows, strategy="quadtree"
        ),
        "sparse table": nz.SparseTable(["ward", "age"]),
        "sparse table, filtered": nz.SparseTable(["ward", "FLOOR(age / 10)"], threshold=9, of=rows),
        "sparse table, sampled": nz.SparseTable(["ward", "FLOOR(age / 10)"], sample=12),
        "left out by bounds": nz.LeftOut("age", bounds=[(0, 50), (10, 80)], of=curator.table("visits")),
    }


def queries(curator, *texts):
    return Queries(tuple(parse(text, curator.schema) for text in texts))


class Scripted(SystemRandom):
    """Coins that fall the same way every time."""

    secure = False

    def __init__(self):
        self.coins = random.Random(1)

    def bits(self, count):
        return self.coins.getrandbits(count) if count else 0

    def below(self, n):
        return self.coins.randrange(n)

    def words(self, count, dtype):
        return np.frombuffer(self.coins.randbytes(count * np.dtype(dtype).itemsize), dtype).copy()


NAMES = sorted(questions(opened()))


CASES = [("approx", nz.Neighbours.ADD_REMOVE), ("pure", nz.Neighbours.REPLACE), ("zcdp", nz.Neighbours.ADD_REMOVE)]


def written(curator, question, name):
    found = {}
    for spend, neighbours in CASES:
        try:
            offer = question.offer(curator.schema, SPENDS[spend], neighbours, 0.95)
        except nz.errors.InputError:
            continue
        drawn = offer.unpack(offer.pack(offer.draw(curator._source, curator.schema, bytes(16), Scripted())))
        kept = f"{drawn.schema}{drawn.to_pylist()}" if isinstance(drawn, pyarrow.Table) else ""
        parts = json.dumps(offer.parts, sort_keys=True, default=str)
        found |= {"text": without_function(offer.text), "unit": offer.unit}
        found[f"{spend}, {neighbours}"] = {
            "guarantee": repr(offer.guarantee),
            "parts": hashlib.sha256(parts.encode()).hexdigest()[:16],
            "kept": hashlib.sha256(kept.encode()).hexdigest()[:16],
        }
    return found


def without_function(text):
    found = json.loads(text)
    return json.dumps(found | {"function": ""}) if "function" in found else text


@pytest.fixture(scope="module")
def curator():
    return opened()


@pytest.fixture(scope="module")
def found():
    """What a new process writes: how many coins a draw takes depends on the tables that were made before."""
    command = [sys.executable, "-m", "tests.questions.test_texts"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_stays_as_it_was_written(found, name):
    assert found[name] == json.loads(WRITTEN.read_text())[name]


def test_there_is_something_to_compare(curator):
    assert set(json.loads(WRITTEN.read_text())) == set(NAMES)
    assert all(json.loads(WRITTEN.read_text()).values())
    assert VISITS.num_rows == 3_000


if __name__ == "__main__":
    data = opened()
    print(json.dumps({name: written(data, questions(data)[name], name) for name in NAMES}))

"""Tumult Analytics: count and sum by ward, users as units. `python tumult.py ROOT DATA ROUNDS` prints JSON."""

import json
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])

from pyspark.sql import SparkSession
from tmlt import analytics as ta

from benchmarks.process_tree import seconds_of

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.shuffle.partitions", "8")
    .config("spark.driver.memory", "4g")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
KEYS = ta.KeySet.from_dict({"ward": list(range(1000))})


def asked():
    """Both numbers, each for half of the budget."""
    session = (
        ta.Session.Builder()
        .with_privacy_budget(ta.PureDPBudget(2))
        .with_id_space("users")
        .with_private_dataframe(
            "visits", spark.read.parquet(sys.argv[2]), protected_change=ta.AddRowsWithID("who", "users")
        )
        .build()
    )
    rows = (
        ta.QueryBuilder("visits").enforce(ta.MaxGroupsPerID("ward", 3)).enforce(ta.MaxRowsPerGroupPerID("ward", 2))
    ).groupby(KEYS)
    for query in (rows.count(), rows.sum("age", 0, 120)):
        assert len(session.evaluate(query, ta.PureDPBudget(1)).collect()) == 1000


asked()
print(json.dumps({"seconds": [seconds_of(asked) for _ in range(int(sys.argv[3]))]}), flush=True)
spark.stop()

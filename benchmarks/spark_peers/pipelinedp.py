"""PipelineDP: count and sum by ward, users as units. `python pipelinedp.py ROOT DATA ROUNDS` prints JSON."""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])

import pipeline_dp
from pyspark.sql import SparkSession

from benchmarks.process_tree import seconds_of

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.default.parallelism", "8")
    .config("spark.driver.memory", "4g")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
WANTED = pipeline_dp.AggregateParams(
    noise_kind=pipeline_dp.NoiseKind.LAPLACE,
    metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM],
    max_partitions_contributed=3,
    max_contributions_per_partition=2,
    min_value=0.0,
    max_value=120.0,
)
PARTS = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)


def asked():
    """Both numbers for each ward."""
    rows = spark.read.parquet(sys.argv[2]).select("who", "ward", "age").rdd.map(tuple)
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=2.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.SparkRDDBackend(spark.sparkContext))
    found = engine.aggregate(rows, WANTED, PARTS, public_partitions=list(range(1000)))
    accountant.compute_budgets()
    assert len(found.collect()) == 1000


asked()
print(json.dumps({"seconds": [seconds_of(asked) for _ in range(int(sys.argv[3]))]}), flush=True)
spark.stop()

"""Tables of Arrow as files that Spark reads, in several partitions; and sessions for tests."""

import os
import random
import sys
import warnings

import pyarrow
import pytest
from pyarrow import parquet

from noisette.engines.files import valid_table
from noisette.engines.spark import routing
from noisette.engines.spark.opening import SparkTable, spark_tables
from noisette.engines.spark.source import Spark
from tests import services

PARTITIONS = 3
routing._A_BUCKET = 1  # so that the few rows of a test are sent to several tasks


def stored(session, folder, tables, *, valid=False):
    """A source of tables, whose rows lie in several partitions."""
    made = frames(session, folder, tables, valid=valid)
    return Spark({name: SparkTable(session, frame) for name, frame in made.items()})


def in_files(session, folder, tables, *, valid=False):
    """A source of tables by the paths of Parquet files, which executors read themselves where they can."""
    return Spark(files(session, folder, tables, valid=valid))


def files(session, folder, tables, *, valid=False):
    """Tables as several Parquet files each, by their paths."""
    for name, table in tables.items():
        (folder / name).mkdir()
        made = _readable(valid_table(table, name) if valid else table, valid=valid)
        step = max(1, -(-len(made) // PARTITIONS))
        for i in range(PARTITIONS):
            parquet.write_table(
                made.slice(i * step, step), folder / name / f"{i}.parquet", row_group_size=step // 2 + 1
            )
    return spark_tables(session, {name: f"{folder}/{name}" for name in tables})


def frames(session, folder, tables, *, valid=False):
    """Tables as frames whose rows lie in several partitions; with `valid`, as pysail can read them."""
    made = {}
    for name, table in tables.items():
        path = f"{folder}/{name}.parquet"
        parquet.write_table(_readable(valid_table(table, name) if valid else table, valid=valid), path)
        made[name] = session.read.parquet(path).repartition(PARTITIONS)
    return made


def _readable(table: pyarrow.Table, *, valid: bool) -> pyarrow.Table:
    """The same values as types that Spark reads; with `valid`, pysail, which takes uint64 for signed."""
    types = pyarrow.types
    for i, field in enumerate(table.schema):
        other = (
            field.type.value_type if types.is_dictionary(field.type)
            else pyarrow.timestamp("us") if types.is_timestamp(field.type) and field.type.unit == "ns"
            else pyarrow.decimal128(20, 0) if valid and types.is_uint64(field.type)
            else None
        )  # fmt: skip
        if other is not None:
            table = table.set_column(i, field.name, table.column(i).cast(other, safe=False))
    return table


def classic():
    """A session of Spark itself, in this process and a virtual machine of its own."""
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    services.java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.io.encryption.enabled": "true",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",  # small ones would become one, and hide mistakes
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder.config(map=settings).getOrCreate()


def connect():
    """A server that speaks Spark Connect without Java, and its URL."""
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    pysail = pytest.importorskip("pysail.spark", reason="no server of Spark Connect to start")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["RUST_LOG"] = "off"
    os.environ["SAIL_SPARK__SESSION_TIMEOUT_SECS"] = "86400"  # a session that nobody used for some minutes would end
    from pyspark.sql.connect.client import retries

    retries.random = random.Random()  # tries again in the background must not take numbers from tests by examples
    server = pysail.SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    return server, f"sc://127.0.0.1:{server.listening_address[1]}"

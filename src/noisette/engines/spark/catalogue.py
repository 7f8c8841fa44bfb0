"""Stored types of Spark, by its schema alone, and the types in which columns come back from executors.

A column of another type, of a collation or with a time zone is stored as what no question can use: to read it could
fail, or make two values one. Dates and timestamps come as they are stored, however far away they are.
"""

from typing import TYPE_CHECKING, Any

import pyarrow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["functions_of", "quoted", "spark_schema", "stored_type"]

_STORED = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ltz": "TIMESTAMP WITH TIME ZONE",
}


def stored_type(kind: "DataType") -> str:
    """The name of a Spark type (`contract.STORED`).

    >>> from types import SimpleNamespace as Type
    >>> stored_type(Type(simpleString=lambda: "decimal(9,2)")), stored_type(Type(simpleString=lambda: "array<int>"))
    ('DECIMAL(9,2)', 'ARRAY<INT>')
    """
    name = kind.simpleString()
    return "CHARACTER" if name.startswith("char(") else _STORED.get(name, name.upper())


def spark_schema(schema: pyarrow.Schema) -> "StructType":
    """The Spark schema of Arrow columns that executors return."""
    from pyspark.sql import types

    made: dict[Any, DataType] = {
        pyarrow.int8(): types.ByteType(),
        pyarrow.int16(): types.ShortType(),
        pyarrow.int32(): types.IntegerType(),
        pyarrow.int64(): types.LongType(),
        pyarrow.float32(): types.FloatType(),
        pyarrow.float64(): types.DoubleType(),
        pyarrow.bool_(): types.BooleanType(),
        pyarrow.string(): types.StringType(),
        pyarrow.binary(): types.BinaryType(),
        pyarrow.date32(): types.DateType(),
        pyarrow.timestamp("us"): types.TimestampNTZType(),
        pyarrow.list_(pyarrow.int64()): types.ArrayType(types.LongType()),
    }
    fields = []
    for field in schema:
        wide = pyarrow.types.is_decimal(field.type)
        kind = types.DecimalType(field.type.precision, field.type.scale) if wide else made[field.type]
        fields.append(types.StructField(field.name, kind))
    return types.StructType(fields)


def functions_of(frame: "DataFrame") -> Any:
    """Spark's functions for the columns of a frame: those of Spark Connect if it is one, whatever else is in use."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect import functions as of_connect

        return of_connect
    from pyspark.sql import functions

    return functions


def quoted(frame: "DataFrame", name: str) -> "Column":
    """A column by its name, whatever letters it has."""
    made: Column = functions_of(frame).col("`" + name.replace("`", "``") + "`")
    return made

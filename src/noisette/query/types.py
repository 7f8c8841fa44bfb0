"""How the types of a plan are held by Arrow and by the engine."""

import pyarrow

from noisette.query.kind import Type

__all__ = ["ARROW", "ENGINE"]

ARROW: dict[Type, pyarrow.DataType] = {
    "integer": pyarrow.int64(),
    "real": pyarrow.float64(),
    "text": pyarrow.string(),
    "boolean": pyarrow.bool_(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us"),
}

ENGINE: dict[Type, str] = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}

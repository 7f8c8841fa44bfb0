"""How Arrow holds the types of a plan."""

import pyarrow

from noisette.query.kind import Type

__all__ = ["ARROW"]

ARROW: dict[Type, pyarrow.DataType] = {
    "integer": pyarrow.int64(),
    "real": pyarrow.float64(),
    "text": pyarrow.string(),
    "boolean": pyarrow.bool_(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us"),
}

"""Stored types: the names that every source uses for how a column is stored, and which of them a plan's type may have.

A source whose engine has other names says these instead: what PostgreSQL calls int4 is an INTEGER.
"""

from noisette.query.kind import Type

__all__ = ["CLEAN", "FLOATS", "INTEGERS", "STORED", "base_type"]

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
"""Types whose values all fit 64 bits with a sign."""

WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL")
FLOATS = ("FLOAT", "DOUBLE")
MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")

STORED: dict[Type, tuple[str, ...]] = {
    "integer": INTEGERS + WIDE + FLOATS,
    "real": INTEGERS + WIDE + FLOATS,
    "text": ("VARCHAR", "ENUM", "UUID"),
    "boolean": ("BOOLEAN",),
    "date": MOMENTS,
    "timestamp": MOMENTS,
}
"""How a column that is declared as a type may be stored; an engine could fail to read anything else."""

CLEAN: dict[Type, str] = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
"""The type of clean values."""


def base_type(stored: str) -> str:
    """The name of a stored type without its parameters.

    >>> base_type("DECIMAL(10,2)")
    'DECIMAL'
    """
    return stored.upper().partition("(")[0].strip()

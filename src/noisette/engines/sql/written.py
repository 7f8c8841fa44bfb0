"""An expression on its way to the engine, with what is known of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from noisette.engines.sql.syntax import try_cast
from noisette.query.kind import Kind, Value

__all__ = ["Writer", "Written"]


@dataclass(frozen=True)
class Written:
    """An expression for the engine; one of the conditions `missing` holds just where it is NULL."""

    sql: exp.Expr
    kind: Kind
    missing: tuple[exp.Expr, ...] = ()
    double: bool = False

    def as_double(self) -> exp.Expr:
        """The same number as a DOUBLE."""
        return self.sql if self.double else exp.cast(self.sql, "DOUBLE")

    def as_integer(self) -> exp.Expr:
        """The same whole number as a BIGINT."""
        return try_cast(self.sql, "BIGINT") if self.double else self.sql

    @property
    def constant(self) -> Value:
        """The value of what is written down."""
        assert self.kind.keys is not None
        return self.kind.keys[0]


Writer: TypeAlias = Callable[[Sequence[Written], Kind], exp.Expr]

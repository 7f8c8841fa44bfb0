"""What rows are grouped by: each key as what can be matched with its domain, a whole number wherever possible."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow
from sqlglot import exp

from noisette.engines.contract import INTEGERS, base_type
from noisette.engines.sql.expressions import to_engine, to_steps
from noisette.engines.sql.stored import Stored
from noisette.engines.sql.syntax import binary, choose, column, is_null, number, try_cast
from noisette.query.expression import Call, Expression, Name, columns_of
from noisette.query.kind import Kind, Type, Value
from noisette.query.measure import Request
from noisette.query.operations import kind_of
from noisette.query.plan import Join, Relation, Scan, Where
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.query.types import ARROW

__all__ = ["Key", "key_of", "keys_of", "postponed"]


_FEW = 2**16  # groups; to add up more of them twice would cost more than it saves


@dataclass(frozen=True)
class Key:
    """A key that rows are grouped by.

    `sql` is what is matched with `values`, the domain in its own terms: steps of a grid, 0 and 1 for FALSE and TRUE,
    else the values as they are; `stored` is their type. Domain and values are None where they are unknown. A `late` key
    is grouped by as it is stored (of which kind, as which type), and each group's key is cleaned afterwards, which is
    less work than each row's. A `clean` key is a stored column that was cut to bounds: no row is outside of them.
    """

    sql: exp.Expr
    type: Type
    stored: pyarrow.DataType
    domain: tuple[Value, ...] | None
    values: tuple[Value, ...] | None
    late: tuple[Kind, str] | None = None
    clean: bool = False

    @cached_property
    def first(self) -> int | None:
        """The least value, if the values are consecutive whole numbers; NULL may come last."""
        found = self.values[:-1] if self.values and self.values[-1] is None else self.values
        if not found or not isinstance(found[0], int) or isinstance(found[0], bool):
            return None
        return found[0] if found == tuple(range(found[0], found[0] + len(found))) else None

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values or ())

    @property
    def null(self) -> int | None:
        """The code of NULL, if it is in the domain."""
        return self.size - 1 if self.values and self.values[-1] is None else None

    def inside(self, name: str) -> exp.Expr | None:
        """The condition that a row is in the domain, where a comparison can say it."""
        if self.first is None:
            return None
        last = self.first + self.size - 1 - (self.null is not None)
        between = exp.Between(this=column(name), low=number(self.first), high=number(last))
        return between if self.null is None else exp.Or(this=between, expression=is_null(column(name)))

    def code(self, name: str) -> exp.Expr:
        """The code of a row that is in the domain, where a subtraction can find it."""
        assert self.first is not None
        shifted = binary(exp.Sub, column(name), number(self.first)) if self.first else column(name)
        return shifted if self.null is None else choose((is_null(column(name)), number(self.null)), otherwise=shifted)

    def table(self) -> pyarrow.Table:
        """The domain as a table: `match` the value, `code` its place, `released` the value as it is released."""
        assert self.domain is not None
        assert self.values is not None
        columns = {
            "match": pyarrow.array(_plain(self.values), self.stored),
            "code": pyarrow.array(np.arange(self.size)),
            "released": pyarrow.array(_plain(self.domain), ARROW[self.type]),
        }
        return pyarrow.table(columns)


def _plain(values: tuple[Value, ...]) -> list[Value | float]:
    return [float(value) if isinstance(value, Fraction) else value for value in values]


def keys_of(request: Request, schema: Schema) -> tuple[Key, ...]:
    """The keys of a request."""
    scope = shape_of(request.source, schema).columns
    found = []
    for expression, domain in zip(request.keys, request.domains, strict=True):
        key = key_of(expression, domain, scope)
        clean = _cut(expression, kind_of(expression, scope), domain) and _is_stored(expression, request.source)
        found.append(replace(key, clean=clean))
    return tuple(found)


def key_of(expression: Expression, domain: tuple[Value, ...] | None, scope: Mapping[str, Kind]) -> Key:
    """A key as it is matched: a real number that has a grid in steps, since two ways to one double can differ."""
    kind = kind_of(expression, scope)
    plain = to_engine(expression, scope)
    if kind.type == "integer" and isinstance(expression, Call) and not kind.bounded:
        plain = try_cast(plain, "BIGINT")
    if domain is None:
        return Key(plain, kind.type, ARROW[kind.type], None, None)
    if kind.type == "boolean":
        return Key(exp.cast(plain, "BIGINT"), kind.type, pyarrow.int64(), domain, _each(domain, 1))
    if kind.type != "real" or kind.grid is None or not kind.bounded:
        return Key(plain, kind.type, ARROW[kind.type], domain, domain)
    steps = to_steps(expression, kind, kind.grid, scope)
    return Key(steps, kind.type, pyarrow.int64(), domain, _each(domain, kind.grid))


def _cut(expression: Expression, kind: Kind, domain: tuple[Value, ...] | None) -> bool:
    """Whether a column was cut to the bounds between which the domain has all whole numbers, and NULL if there is."""
    if domain is None or kind.type != "integer" or kind.keys is not None or kind.grid != 1:
        return False
    return kind.count == len(domain) - kind.nullable and domain[0] == kind.low


def _is_stored(expression: Expression, relation: Relation) -> bool:
    """Whether a column is one of a table, which is cleaned where it is read, and not computed from others."""
    match relation:
        case Scan(_, alias):
            return isinstance(expression, Name) and expression.name.startswith(f"{alias}.")
        case Where(source):
            return _is_stored(expression, source)
        case Join(left, right):
            return _is_stored(expression, left) or _is_stored(expression, right)
        case _:
            return False


def _each(domain: tuple[Value, ...], grid: Fraction | int) -> tuple[Value, ...]:
    return tuple(int(Fraction(v) / grid) if isinstance(v, int | Fraction) else None for v in domain)


def postponed(keys: Sequence[Key], request: Request, schema: Schema, stored: Stored) -> tuple[Key, ...]:
    """The same keys, late where that gives the same and pays: plain integers, few groups, measures that add up."""
    few = math.prod(max(key.size, 1) for key in keys) <= _FEW
    if not few or any(measure.what in ("distinct", "histogram") for measure in request.measures):
        return tuple(keys)
    return tuple(
        replace(key, late=_late(expression, request.source, schema, stored)) if key.first is not None else key
        for expression, key in zip(request.keys, keys, strict=True)
    )


def _late(expression: Expression, relation: Relation, schema: Schema, stored: Stored) -> tuple[Kind, str] | None:
    """The declared kind and the stored type of a whole number that can be cleaned after it was grouped by."""
    kind, base = plain(expression, relation, schema, stored)
    return (kind, base) if kind is not None and kind.type == "integer" and base in INTEGERS else None


def plain(
    expression: Expression, relation: Relation, schema: Schema, stored: Stored
) -> tuple[Kind, str] | tuple[None, str]:
    """The declared kind and the stored type of a column that comes from its table as it is; no condition needs it."""
    match relation:
        case Where(source, condition) if isinstance(expression, Name) and expression.name not in columns_of(condition):
            return plain(expression, source, schema, stored)
        case Scan(table, alias, also) if isinstance(expression, Name) and expression.name not in also:
            name = expression.name.removeprefix(f"{alias}.")
            return schema[table].column(name).kind, base_type(stored[table].get(name, ""))
        case _:
            return None, ""

"""What the names in a query mean: columns of the tables after FROM, with or without the table before them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from noisette.errors import InputError
from noisette.query.expression import Expression
from noisette.query.kind import Kind
from noisette.query.sql.refusals import shown

__all__ = ["Reader", "Scope", "find", "matches"]


Reader: TypeAlias = Callable[[exp.Expr], Expression | None]


@dataclass(frozen=True)
class Scope:
    """What the names in an expression mean.

    `columns` by their full names, `table.column` · `hidden` ones need the table before them (the second key of USING) ·
    `units` hold the unit · `special` reads some nodes in another way, where they stand for a column already computed.
    """

    columns: Mapping[str, Kind]
    hidden: frozenset[str] = frozenset()
    units: tuple[str, ...] = ()
    special: Reader | None = None


def find(column: exp.Column, scope: Scope) -> str:
    """The full name of a column; letter case matters only where the name is quoted or needed to tell two apart."""
    found = matches(column, scope)
    if len(found) == 1:
        return found[0]
    name = shown(column.name)
    if found:
        tables = " or ".join(f"{shown(full.partition('.')[0])}.{name}" for full in found[:3])
        raise InputError(f"{name} is in more than one table: write {tables}.")
    raise InputError(f"There is no column {name} here: use one of {', '.join(_visible(scope))}.")


def matches(column: exp.Column, scope: Scope) -> list[str]:
    """The full names that a column can mean."""
    identifier, table = column.this, column.args.get("table")
    if not isinstance(identifier, exp.Identifier):
        raise InputError("* stands for no value: name a column, or write COUNT(*).")
    candidates = [full for full in scope.columns if full not in scope.hidden or table]
    if table:
        candidates = _named(table, candidates, 0)
    return _named(identifier, candidates, 2)


def _named(identifier: exp.Identifier, candidates: list[str], part: int) -> list[str]:
    exact = [full for full in candidates if full.partition(".")[part] == identifier.name]
    if exact or identifier.args.get("quoted"):
        return exact
    return [full for full in candidates if full.partition(".")[part].casefold() == identifier.name.casefold()]


def _visible(scope: Scope) -> Iterator[str]:
    names = [shown(full.partition(".")[2]) for full in scope.columns if full not in scope.hidden]
    yield from names[:20]
    if len(names) > 20:
        yield f"{len(names) - 20} more"

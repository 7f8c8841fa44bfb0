"""UNION ALL of slices of one table: each row once for every slice, numbered, and what that slice selects of it.

    (SELECT a FROM t WHERE c UNION ALL SELECT b FROM t WHERE d)
    SELECT CASE WHEN n = 1 THEN a ELSE b END FROM two copies of t, numbered n WHERE n = 1 AND c OR n = 2 AND d

A row that is in two slices is there twice, and both belong to its unit: limits hold for the rows of the union.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from noisette.errors import InputError
from noisette.query.expression import Call, Expression, Literal, Name, replaced
from noisette.query.plan import Copies, Relation, Scan, Select, Where
from noisette.query.sql.expression import expression
from noisette.query.sql.groups import items_of, names_of, without_stars
from noisette.query.sql.names import Scope, alike
from noisette.query.sql.result import has_aggregate

__all__ = ["MOST_SLICES", "slices", "slices_of"]

MOST_SLICES = 8
"""The most slices of one UNION ALL."""

_PLAIN = ("expressions", "from_", "where")


@dataclass(frozen=True)
class _Slice:
    scan: Scan
    names: list[str]
    values: tuple[Expression, ...]
    condition: Expression | None

    def called(self, alias: str, scope: Scope) -> "_Slice":
        """The same with another name of its table."""
        own = {name: Name(f"{alias}.{name.removeprefix(f'{self.scan.alias}.')}") for name in scope.columns}
        condition = None if self.condition is None else replaced(self.condition, own)
        scan = Scan(self.scan.table, alias)
        return _Slice(scan, self.names, tuple(replaced(value, own) for value in self.values), condition)


def slices(
    union: exp.Union, alias: str, table: Callable[[exp.Expr], Relation], scope_of: Callable[[Relation], Scope]
) -> Relation:
    """The rows of UNION ALL as columns of a sub-query; `table` reads what stands after FROM."""
    parts = [_slice(select, table, scope_of) for select in _flat(union)]
    first = parts[0].scan
    if any(part.scan.table != first.table for part in parts):
        raise InputError("UNION ALL takes slices of one table: ask about each table by itself, or join them.")
    if len({len(part.values) for part in parts}) > 1:
        raise InputError("The parts of UNION ALL select different numbers of columns: select the same from each.")
    parts = [part.called(first.alias, scope_of(part.scan)) for part in parts]
    number = Name("slices.number" if first.alias.casefold() != "slices" else "copies.number")
    relation: Relation = Copies(first, len(parts), number.name)
    columns = scope_of(relation).columns
    if any(part.condition is not None for part in parts):
        relation = Where(relation, Call("or", tuple(_within(number, i, part) for i, part in enumerate(parts, 1))))
    by_column = zip(*(part.values for part in parts), strict=True)
    values = [_chosen(number, alike(tuple(values), columns)) for values in by_column]
    return Select(relation, tuple((f"{alias}.{n}", value) for n, value in zip(parts[0].names, values, strict=True)))


def _flat(union: exp.Expr) -> list[exp.Select]:
    found: list[exp.Select] = []
    stack = [union]
    while stack:
        node = stack.pop().unnest()
        if isinstance(node, exp.Union):
            stack += [node.expression, node.this]
        elif isinstance(node, exp.Select):
            found.append(node)
        else:
            raise InputError("UNION ALL stands between SELECTs: write SELECT a FROM t UNION ALL SELECT b FROM t.")
    if len(found) > MOST_SLICES:
        raise InputError(f"UNION ALL has too many parts: write at most {MOST_SLICES}.")
    return found


def _slice(select: exp.Select, table: Callable[[exp.Expr], Relation], scope_of: Callable[[Relation], Scope]) -> _Slice:
    more = [part for part, value in select.args.items() if value and part not in _PLAIN]
    start = select.args.get("from_")
    scan = table(start.this) if start is not None and isinstance(start.this, exp.Table) else None
    if more or not isinstance(scan, Scan) or any(map(has_aggregate, select.expressions)):
        raise InputError(
            "A part of UNION ALL selects columns of one table: write SELECT a, b FROM t WHERE c, and group afterwards."
        )
    scope = scope_of(scan)
    items = without_stars(items_of(select), scope)
    where = select.args.get("where")
    values = tuple(expression(item.node, scope) for item in items)
    return _Slice(scan, names_of(items, scope), values, expression(where.this, scope) if where else None)


def _is(number: Name, place: int) -> Expression:
    return Call("equal", (number, Literal(place)))


def _within(number: Name, place: int, part: _Slice) -> Expression:
    chosen = _is(number, place)
    return chosen if part.condition is None else Call("and", (chosen, part.condition))


def _chosen(number: Name, values: Sequence[Expression]) -> Expression:
    """The value of the slice that a copy belongs to."""
    if all(value == values[0] for value in values):
        return values[0]
    cases = [part for i, value in enumerate(values[:-1], 1) for part in (_is(number, i), value)]
    return Call("case", (*cases, values[-1]))


# Back


Columns: TypeAlias = Sequence[tuple[str, Expression]]


def slices_of(source: Relation, columns: Columns) -> list[tuple[Relation, Columns]] | None:
    """The parts of a union, each with its columns: the inverse of `slices`; None if the rows are no copies."""
    copies, condition = (source.source, source.condition) if isinstance(source, Where) else (source, None)
    if not isinstance(copies, Copies):
        return None
    found: list[tuple[Relation, Columns]] = []
    for place in range(1, copies.times + 1):
        kept = True if condition is None else _decided(condition, copies.number, place)
        values = [(name, _decided(value, copies.number, place)) for name, value in columns]
        part = copies.source if isinstance(kept, bool) else Where(copies.source, kept)
        found.append((part, [(name, Literal(e) if isinstance(e, bool) else e) for name, e in values]))
    return found


def _decided(e: Expression, number: str, place: int) -> Expression | bool:
    """An expression in one slice: what asks which slice it is, is decided."""
    match e:
        case Call("equal", (Name(name), Literal(i)) | (Literal(i), Name(name))) if name == number:
            return i == place
        case Call("and" | "or" as operation, arguments):
            ends = operation == "or"
            parts = [_decided(each, number, place) for each in arguments]
            left = [part for part in parts if not isinstance(part, bool)]
            if ends in parts or not left:
                return ends if ends in parts else not ends
            return left[0] if len(left) == 1 else Call(operation, tuple(left))
        case Call("case", arguments):
            for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
                if (held := _decided(condition, number, place)) is True:
                    return _decided(value, number, place)
                if not isinstance(held, bool):
                    return e
            return _decided(arguments[-1], number, place)
        case _:
            return e

"""Canonical texts, which the ledger holds, back as SQL for people to read: the inverse of `plan.relation_tree`.

Output names, HAVING, ORDER BY and LIMIT are no part of a canonical text, so they are not shown: they cost nothing.
"""

import datetime
import json
from collections.abc import Mapping
from typing import Any

from noisette.errors import InputError
from noisette.exact.number import fraction_of
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import Value
from noisette.query.plan import Aggregate, Copies, Join, Key, PerUnit, Query, Relation, Scan, Select, Where
from noisette.query.sql.writer import query_sql

__all__ = ["sql_of"]

_UNIT = "unit"  # the canonical text does not name the column


def sql_of(text: str) -> str | None:
    """The SQL of a canonical text; None where SQL has no sentence for it.

    >>> sql_of('{"aggregates":[["rows"]],"keys":[["name","t1.ward"]],"source":["scan","visits","t1"]}')
    'SELECT ward, COUNT(*) FROM visits GROUP BY ward'
    """
    try:
        tree = json.loads(text)
        scans = _scans(tree["source"])
        query = _query(tree, {alias: table for table, alias in scans} if len(scans) == 1 else {})
        return query_sql(query, [_UNIT], named=False)
    except (InputError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def _scans(tree: Any) -> list[tuple[str, str]]:
    if isinstance(tree, list) and tree[:1] == ["scan"] and len(tree) == 3:
        return [(tree[1], tree[2])]
    return [found for part in tree for found in _scans(part)] if isinstance(tree, list) else []


def _query(tree: Mapping[str, Any], alone: Mapping[str, str]) -> Query:
    keys = tuple(_expression(key, alone) for key in tree["keys"])
    outputs = [(f"key {i}", Key(i)) for i in range(len(keys))]
    aggregates = [(f"number {i}", _aggregate(each, alone)) for i, each in enumerate(tree["aggregates"])]
    return Query(_relation(tree["source"], alone), keys, (*outputs, *aggregates))


def _relation(tree: list[Any], alone: Mapping[str, str]) -> Relation:
    match tree:
        case ["scan", table, alias]:
            return Scan(table, alone.get(alias, alias))
        case ["where", source, condition]:
            return Where(_relation(source, alone), _expression(condition, alone))
        case ["select", source, columns]:
            return Select(_relation(source, alone), tuple((name, _expression(each, alone)) for name, each in columns))
        case ["copies", source, times, number]:
            return Copies(_relation(source, alone), times, number)
        case [("inner" | "left") as how, left, right, on]:
            pairs = tuple((a, b) for a, b in on)
            return Join(_relation(left, alone), _relation(right, alone), pairs, how)
        case ["per_unit", source, keys, aggregates]:
            named = tuple((name, _expression(each, alone)) for name, each in keys)
            numbers = tuple((name, _aggregate(each, alone)) for name, each in aggregates)
            return PerUnit(_relation(source, alone), named, numbers)
    raise ValueError


def _aggregate(tree: list[Any], alone: Mapping[str, str]) -> Aggregate:
    function, *rest = tree
    of = _expression(rest[0], alone) if rest else None
    return Aggregate(function, of, fraction_of(rest[1], "at") if len(rest) > 1 else None)


def _expression(tree: list[Any], alone: Mapping[str, str]) -> Expression:
    match tree:
        case ["name", full]:
            alias, _, name = full.partition(".")
            return Name(name if alias in alone else full)
        case ["null"] | ["boolean" | "number" | "text" | "timestamp" | "date", _]:
            return Literal(_value(*tree))
        case [operation, *arguments]:
            return Call(operation, tuple(_expression(each, alone) for each in arguments))
    raise ValueError


def _value(kind: str, value: Any = None) -> Value:
    match kind:
        case "number":
            found = fraction_of(value, kind)
            return found.numerator if found.denominator == 1 else found
        case "timestamp":
            return datetime.datetime.fromisoformat(value)
        case "date":
            return datetime.date.fromisoformat(value)
    return value  # type: ignore[no-any-return]

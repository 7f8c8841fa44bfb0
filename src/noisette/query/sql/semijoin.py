"""IN (SELECT ...) and EXISTS about a public table: rows are kept whose value is among the keys of that table.

Each is a join with a public table in which every key stands once, so a row meets one partner or none, and nothing is
multiplied. They stand after WHERE, joined by AND.

    x IN (SELECT k FROM p WHERE c)                      JOIN p ON x = p.k, where c
    EXISTS (SELECT * FROM p WHERE p.k = x AND c)        the same
    NOT EXISTS (SELECT * FROM p WHERE p.k = x AND c)    LEFT JOIN, where no partner is found; x may be NULL
    x NOT IN (SELECT k FROM p WHERE c)                  the same, and x is not NULL; never true if some k is NULL
"""

from dataclasses import dataclass, replace

from sqlglot import exp

from noisette.errors import InputError

__all__ = ["SemiJoin", "semi_joins"]


@dataclass(frozen=True)
class SemiJoin:
    """A public table as it is written, the columns that meet, and the conditions on its rows.

    `sure`: the column of the rows comes first in a pair, as in IN; of EXISTS the names tell which one it is.
    `negated`: rows are kept that meet none.
    """

    table: exp.Table
    pairs: tuple[tuple[exp.Column, exp.Column], ...]
    conditions: tuple[exp.Expr, ...]
    sure: bool
    negated: bool = False


def semi_joins(condition: exp.Expr) -> tuple[list[SemiJoin], list[exp.Expr]]:
    """The semi-joins among the conditions of WHERE, and the other conditions."""
    condition = condition.unnest()
    parts = [part.unnest() for part in (condition.flatten() if isinstance(condition, exp.And) else (condition,))]
    found: list[SemiJoin] = []
    others: list[exp.Expr] = []
    for part in parts:
        negated = isinstance(part, exp.Not)
        inner = part.this.unnest() if negated else part
        if isinstance(inner, exp.In) and inner.args.get("query"):
            found.append(replace(_in(inner), negated=negated))
        elif isinstance(inner, exp.Exists):
            found.append(replace(_exists(inner), negated=negated))
        else:
            others.append(part)
    return found, others


def _in(node: exp.In) -> SemiJoin:
    table, items, conditions = _parts(node.args["query"])
    if not isinstance(node.this, exp.Column) or len(items) != 1 or not isinstance(items[0], exp.Column):
        raise InputError("IN (SELECT ...) compares a column with a column: write x IN (SELECT key FROM public_table).")
    return SemiJoin(table, ((node.this, items[0]),), conditions, True)


def _exists(node: exp.Exists) -> SemiJoin:
    table, _, conditions = _parts(node.this)
    pairs: list[tuple[exp.Column, exp.Column]] = []
    others: list[exp.Expr] = []
    for part in conditions:
        if isinstance(part, exp.EQ) and isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column):
            pairs.append((part.left, part.right))
        else:
            others.append(part)
    return SemiJoin(table, tuple(pairs), tuple(others), False)


_PLAIN = ("expressions", "from_", "where", "distinct")


def _parts(node: exp.Expr) -> tuple[exp.Table, list[exp.Expr], tuple[exp.Expr, ...]]:
    """The table of a plain SELECT, what it lists, and its conditions."""
    select = node.unnest() if isinstance(node, exp.Subquery) else node
    start = select.args.get("from_")
    more = [part for part, value in select.args.items() if value and part not in _PLAIN]
    if not isinstance(select, exp.Select) or more or start is None or not isinstance(start.this, exp.Table):
        raise InputError("A sub-query after IN or EXISTS reads one public table: write SELECT key FROM p WHERE ....")
    where = select.args.get("where")
    condition = where.this.unnest() if where else None
    chain = condition.flatten() if isinstance(condition, exp.And) else [condition] if condition is not None else []
    return start.this, list(select.expressions), tuple(part.unnest() for part in chain)

"""Which rows a join retains of each unit, or of each value: the first ones in an order that their own columns give.

A column "order" travels along with rows that may be left out: the columns of the row's table that the question reads,
behind a hash of them. The first rows of a unit in that order are retained, so the choice depends on the unit's own rows
alone; both sides of a self-join choose alike; and rows that tie are the same to the question. Where rows of different
units meet, those with each value are then retained in the same way, by the columns that are used.
"""

from collections.abc import Iterable, Sequence

from sqlglot import exp

from noisette.engines.sql.syntax import chain, column, hash_of, number, row_of, selected
from noisette.query.multiplicity import PerValue
from noisette.query.shape import UNIT

__all__ = ["CHOSEN_BY", "ORDER", "PERIOD", "order_of", "per_period", "per_value", "retained", "retained_of_few"]

ORDER = "order"
"""The column by which rows of a unit are retained; like `UNIT` no other column can have its name."""

PERIOD, CHOSEN_BY = "period", "chosen by"
"""The period that a row lies in, and what orders the rows of a unit there."""


def order_of(parts: Sequence[exp.Expr], salt: int) -> exp.Expr:
    """What rows are ordered by: a hash of their parts, then the parts, since hashes may be equal."""
    return row_of(hash_of(number(salt), *parts), *parts)


def retained(rows: exp.Select, names: Iterable[str], limit: int) -> exp.Select:
    """The first rows of each unit in the order."""
    return _first(rows, names, limit, [UNIT], column(ORDER))


def per_value(rows: exp.Select, names: Sequence[str], limit: PerValue, salt: int) -> exp.Select:
    """The first rows with each value, by all columns that the question uses: rows that tie are the same to it."""
    known = chain(exp.And, [exp.Not(this=exp.Is(this=column(name), expression=exp.null())) for name in limit.columns])
    order = order_of([column(name) for name in names], salt)
    return _first(selected(rows, {n: column(n) for n in names}).where(known), names, limit.rows, limit.columns, order)


def _first(rows: exp.Select, names: Iterable[str], limit: int, by: Sequence[str], order_by: exp.Expr) -> exp.Select:
    """The first rows in an order among those that agree in some columns."""
    order = exp.Order(expressions=[exp.Ordered(this=order_by, nulls_first=False)])
    rank = exp.Window(this=exp.RowNumber(), partition_by=[column(name) for name in by], order=order)
    same = {name: column(name) for name in names}
    ranked = selected(rows, {**same, "rank": rank})
    return selected(ranked, same).where(exp.LTE(this=column("rank"), expression=number(limit)), copy=False)


def per_period(rows: exp.Select, names: Iterable[str], limit: int) -> exp.Select:
    """The first rows of each unit in each period."""
    return _of_few(rows, names, limit, [UNIT, PERIOD], column(CHOSEN_BY))


def retained_of_few(rows: exp.Select, names: Iterable[str], limit: int) -> exp.Select:
    """The same, where few units have more rows than the limit: only theirs are ordered, which costs a tenth."""
    return _of_few(rows, names, limit, [UNIT], column(ORDER))


def _of_few(rows: exp.Select, names: Iterable[str], limit: int, by: Sequence[str], order_by: exp.Expr) -> exp.Select:
    same = {name: column(name) for name in names}
    more = exp.GT(this=exp.Count(this=exp.Star()), expression=number(limit))
    crowded = (
        selected(rows.copy(), {UNIT: column(UNIT)}).group_by(*map(column, by), copy=False).having(more, copy=False)
    )
    among = exp.In(this=column(UNIT), query=crowded.subquery(copy=False))
    others = selected(rows.copy(), same).where(exp.Not(this=among.copy()), copy=False)
    some = exp.select(exp.Star()).from_(rows.subquery("rows", copy=False), copy=False).where(among, copy=False)
    return selected(exp.union(others, _first(some, same, limit, by, order_by), distinct=False, copy=False), same)

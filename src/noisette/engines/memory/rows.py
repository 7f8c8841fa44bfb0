"""The rows of a relation: its columns by name, "unit" if it has one, and "order", by which joins retain rows."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from noisette.engines.contract import FLOATS, base_type
from noisette.engines.memory.values import clamped, clean, is_inside, scaled, steps_of, value_of
from noisette.query.expression import Expression, columns_of
from noisette.query.intervals import most_steps, step_bounds, sum_grid
from noisette.query.kind import Kind
from noisette.query.moments import truncated
from noisette.query.multiplicity import PerValue
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Aggregate, Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.reads import expressions_in
from noisette.query.requirements import moment
from noisette.query.schema import RowsPerPeriod, Schema, Table
from noisette.query.shape import UNIT
from noisette.query.stability import retention, shape_of
from noisette.query.variants import inside, plain, telling_apart, within

__all__ = ["Hash", "Row", "Rows"]

_ORDER = "order"

Row: TypeAlias = dict[str, Any]
Hash: TypeAlias = Callable[..., int]
"""64 bits that depend on some values alone."""


@dataclass(frozen=True)
class Rows:
    """A relation with what its rows depend on beside it.

    `needed` columns of it · `tables`: stored rows, each value with its type · `read`: the columns of each table that
    the question reads · `limited`: those that it reads within their bounds.
    """

    relation: Relation
    needed: Collection[str]
    schema: Schema
    tables: Mapping[str, list[Row]]
    hash_of: Hash
    salt: int
    read: Mapping[str, Sequence[str]]
    limited: Mapping[str, Sequence[str]]

    def rows(self) -> Iterator[Row]:
        """The rows with their columns, unit and order."""
        match self.relation:
            case Scan():
                return self._scan(self.relation)
            case Where(source, condition):
                inner, scope = self._below(source, (condition,), self.needed)
                holds = value_of(condition, scope)
                return (row for row in inner if holds(row))
            case Select(source, columns):
                inner, scope = self._below(source, [e for name, e in columns if name in self.needed], ())
                made = {name: value_of(e, scope) for name, e in columns if name in self.needed}
                return ({n: of(row) for n, of in made.items()} | _carried(row) for row in inner)
            case Join():
                return iter(self._join(self.relation))
            case PerUnit():
                return self._per_unit(self.relation)
            case Copies():
                return self._copies(self.relation)
            case _:
                assert_never(self.relation)

    def _below(
        self, source: Relation, used: Iterable[Expression], names: Iterable[str]
    ) -> tuple[Iterator[Row], Mapping[str, Kind]]:
        needed = {*names, *(name for e in used for name in columns_of(e))}
        return replace(self, relation=source, needed=needed).rows(), shape_of(source, self.schema).columns

    def _order(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        return (self.hash_of(self.salt, *parts), *parts)

    def _scan(self, scan: Scan) -> Iterator[Row]:
        """Clean values; a row whose unit is NULL or NaN, or that leads to none, belongs to nobody and is left out."""
        table = self.schema[scan.table]
        rows = self._owned(scan, table)
        return (row for _, row in rows) if table.per_period is None else self._per_period(scan, table, table.per_period)

    def _per_period(self, scan: Scan, table: Table, limit: RowsPerPeriod) -> Iterator[Row]:
        """Of each unit the first rows in each period, in an order by all that tells rows apart; none without a date."""
        kind = declared(table.column(limit.of).kind)
        of_any_date = replace(kind, low=None, high=None, keys=None, nullable=True)
        low, high = (moment(end, kind.type) for end in kind.ends)
        found = []
        for stored, row in self._owned(scan, table):
            value, stored_as = stored[limit.of]
            date = clean(value, of_any_date, stored_as)
            if date is not None and low <= date <= high:
                order = self._order(
                    [
                        row[name] if name == plain(name) else _variant(name, row, stored, table)
                        for name in telling_apart(table, scan.alias)
                    ]
                )
                found.append({UNIT: (row[UNIT], truncated(limit.per, date)), _ORDER: order, "row": row})
        return (row["row"] for row in _retained(found, limit.most))

    def _owned(self, scan: Scan, table: Table) -> Iterator[tuple[Row, Row]]:
        """The stored rows of a table, each with what it is in the relation."""
        units = None if table.public or table.unit is None else self._units(table)
        for stored in self.tables[scan.table]:
            row = {c.name: clean(stored[c.name][0], c.kind, stored[c.name][1]) for c in table.columns}
            made = {f"{scan.alias}.{name}": value for name, value in row.items()}
            made |= {name: _variant(name, made, stored, table) for name in scan.also}
            if units is None:
                yield stored, made
                continue
            for unit in units(stored):
                read = [row[name] for name in self.read.get(table.name, ())]
                limited = [
                    _variant(within(f"{scan.alias}.{name}"), made, stored, table)
                    for name in self.limited.get(table.name, ())
                ]
                yield stored, made | {UNIT: unit, _ORDER: self._order([*read, *limited])}

    def _units(self, table: Table) -> Callable[[Row], list[Any]]:
        """Whose a stored row is: its own unit, or the unit of the row that its key refers to; NULL refers to none."""
        if not table.through:
            return lambda stored: _unit(*stored[table.unit or ""])
        link = table.through[0]
        above = self._units(self.schema[link.table])
        found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
        for row in self.tables[link.table]:
            found[tuple(row[name][0] for name in link.there)] += above(row)

        def units(stored: Row) -> list[Any]:
            key = tuple(stored[name][0] for name in link.here)
            return [] if None in key else found.get(key, [])

        return units

    def _join(self, join: Join) -> list[Row]:
        """Pairs of rows; two private sides must have the same unit."""
        shapes = [shape_of(side, self.schema) for side in (join.left, join.right)]
        limits = retention(join, self.schema)
        used = {*self.needed, *(name for pair in join.on for name in pair)}
        left, right = (
            _retained(replace(self, relation=side, needed=used).rows(), limit)
            for side, limit in ((join.left, limits.left), (join.right, limits.right))
        )
        if limits.by_value is not None:
            names = [[name for name in shape.columns if name in used] for shape in shapes]
            rows = zip((left, right), names, limits.by_value, strict=True)
            left, right = (self._per_value(side, own, most) for side, own, most in rows)
        private = not shapes[0].public and not shapes[1].public and limits.by_value is None
        nobody: Row = dict.fromkeys((*shapes[1].columns, UNIT, _ORDER))
        found = []
        for a in left:
            partners = [
                b for b in right
                if all(a[x] is not None and a[x] == b[y] for x, y in join.on) and (not private or a[UNIT] == b[UNIT])
            ]  # fmt: skip
            for b in partners or ([nobody] if join.how == "left" else []):
                made = {name: value for row in (a, b) for name, value in row.items() if name not in (UNIT, _ORDER)}
                parts = [
                    part
                    for row, shape in zip((a, b), shapes, strict=True)
                    for part in ([row[n] for n in shape.columns if n in used] if shape.public else [row.get(_ORDER)])
                ]
                owner = {} if limits.by_value is not None else _carried(b if shapes[0].public else a)
                if owner and (limits.multiplies or private):
                    owner[_ORDER] = self._order(parts)
                found.append(made | owner)
        return _retained(found, limits.result)

    def _copies(self, relation: Copies) -> Iterator[Row]:
        """Each row several times, numbered; by the number its order in a join differs, too."""
        inner, _ = self._below(relation.source, (), self.needed)
        for row in inner:
            for i in range(1, relation.times + 1):
                order = {_ORDER: self._order([row[_ORDER], i])} if _ORDER in row else {}
                yield row | {relation.number: i} | order

    def _per_value(self, rows: list[Row], names: Sequence[str], limit: PerValue) -> list[Row]:
        """The first rows with each value, by the columns that are used; NULL meets nobody."""
        places = [tuple(row[name] for name in limit.columns) for row in rows]
        orders = [self._order([row[name] for name in names]) for row in rows]
        made = [{UNIT: place, _ORDER: order} for place, order in zip(places, orders, strict=True) if None not in place]
        kept = Counter((row[UNIT], row[_ORDER]) for row in _retained(made, limit.rows))
        found = []
        for row, each in zip(rows, zip(places, orders, strict=True), strict=True):
            if kept[each]:
                kept[each] -= 1
                found.append(row)
        return found

    def _per_unit(self, relation: PerUnit) -> Iterator[Row]:
        inner, scope = self._below(relation.source, expressions_in(relation), ())
        keys = {name: value_of(e, scope) for name, e in relation.keys}
        groups = defaultdict(list)
        for row in inner:
            groups[row[UNIT], *(of(row) for of in keys.values())].append(row)
        for (unit, *values), rows in groups.items():
            made = dict(zip(keys, values, strict=True))
            made |= {name: _of_one_unit(a, rows, scope) for name, a in relation.aggregates}
            yield made | {UNIT: unit, _ORDER: self._order(values)}


def _variant(name: str, clean_row: Row, stored: Row, table: Table) -> Any:
    """A further column of a column with bounds (`query.variants`)."""
    column = table.column(plain(name).partition(".")[2])
    there = is_inside(stored[column.name][0], column.kind, stored[column.name][1])
    return there if name == inside(plain(name)) else clean_row[plain(name)] if there else None


def _unit(value: Any, stored: str) -> list[Any]:
    if value is None or value != value:
        return []
    return [value + 0.0 if base_type(stored) in FLOATS else value]


def _carried(row: Row) -> Row:
    return {name: row[name] for name in (UNIT, _ORDER) if name in row}


def _retained(rows: Iterable[Row], limit: int | None) -> list[Row]:
    """The first rows of each unit in the order."""
    if limit is None:
        return list(rows)
    counts: Counter[Any] = Counter()
    found = []
    for row in sorted(rows, key=lambda row: row[_ORDER][0]):
        counts[row[UNIT]] += 1
        if counts[row[UNIT]] <= limit:
            found.append(row)
    return found


def _of_one_unit(aggregate: Aggregate, rows: Sequence[Row], scope: Mapping[str, Kind]) -> Any:
    """An aggregate of one unit's rows; sums are of whole steps."""
    if aggregate.of is None:
        return len(rows)
    kind, of = kind_of(aggregate.of, scope), value_of(aggregate.of, scope)
    values = [x for row in rows if (x := of(row)) is not None]
    if aggregate.function == "count":
        return len(values)
    if not values or aggregate.function == "quantile":
        return (max if aggregate.at else min)(values, default=None)
    grid = sum_grid(kind)
    steps = steps_of(aggregate.of, grid, *step_bounds(kind, grid), scope)
    total = sum(x for row in rows if (x := steps(row)) is not None)
    if aggregate.function == "mean":
        mean, known = (
            scaled(float(total) / float(len(values)), grid),
            declared(replace(kind, type="real", grid=None, keys=None)),
        )
        return clamped(mean, float(known.low or 0), float(known.high or 0), mean)
    within = clamped(total, -most_steps(kind, grid), most_steps(kind, grid), total)
    return within if kind.type == "integer" else scaled(float(within), grid)

"""Frames: the same questions as SQL, built call by call; every call gives a new value and nothing is computed.

    Frame    rows, grouped or not:     where, select, join, per_unit, group_by, then count, sum, mean, agg and others
    Values   one column of them:       frame["age"], then mean, sum, count, median, quantile, var, std, value_counts
    Asked    a question about them:    having, order_by, limit, query, release, explain

Who comes from pandas writes `filter` for `where` and `groupby` for `group_by`.

Expressions are SQL texts, read by the same reader; frames and statements that say the same are the same plan.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, overload
from typing import Literal as OneOf

from sqlglot import exp

from noisette.errors import InputError
from noisette.names import closest
from noisette.query.expression import Name
from noisette.query.plan import Named, Query, Relation, Scan, Select, Where
from noisette.query.schema import COLUMN_HEAD, Column, Schema, least_rows, shown
from noisette.query.sql.expression import expression
from noisette.query.sql.groups import Item, check_keys, distinct, free, name_of, names_of
from noisette.query.sql.lists import without_lists
from noisette.query.sql.names import Scope, find, written
from noisette.query.sql.relation import joined, per_unit, scope_of
from noisette.query.sql.result import Groups, result
from noisette.query.sql.statement import checked, having, limited, ordering
from noisette.query.sql.text import read_clause
from noisette.query.sql.writer import query_sql, quoted
from noisette.query.stability import shape_of
from noisette.text import aligned

__all__ = ["Asked", "Asker", "Frame", "Values", "frame"]


class Asker(Protocol):
    """Whoever answers questions: a curator."""

    def ask(self, question: Any, *, spend: Any = None, **options: Any) -> Any:
        """Answer a question for a price."""

    def explain(self, question: Any, *, spend: Any = None, error: Any = None, analyst: str | None = None) -> Any:
        """Say what a question would cost and how exact it would be."""


def frame(schema: Schema, table: str, *, curator: Asker | None = None) -> "Frame":
    """The rows of a table.

    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> visits = Table("visits", (Column("patient", Kind("text")), Column("ward", Kind("text"))), unit="patient")
    >>> frame({"visits": visits}, "visits").where("ward <> 'A'").group_by("ward").count().query.outputs
    (('ward', Key(position=0)), ('count', Aggregate(function='rows', of=None, at=None)))
    """
    if table not in schema:
        raise InputError(f"There is no table {table}: {closest(str(table), sorted(schema), 'there are')}")
    return Frame(least_rows(schema), Scan(table, table.replace(".", "_")), curator=curator)


@dataclass(frozen=True, repr=False)
class Frame:
    """Rows of a relation; with `keys`, groups of them. `hidden` columns need their table's name before them."""

    schema: Schema
    relation: Relation
    hidden: frozenset[str] = frozenset()
    keys: tuple[tuple[str, exp.Expr], ...] | None = None
    curator: Asker | None = None

    # Rows

    def where(self, condition: str) -> "Frame":
        """The rows for which a condition is true."""
        return self._rows(Where(self.relation, expression(_node(condition), self._scope)), self.hidden)

    def text(self, column: str) -> str:
        """A column as a condition names it: that of this very name, in quotes if need be, or else the expression."""
        return quoted(column) if _named(column, self._scope) else column

    def select(self, *columns: str, **named: str) -> "Frame":
        """Rows with other columns: some of these, and new ones by name."""
        items = _items(columns, named, self._scope)
        return self._rows(Select(self.relation, self._columns(items)), frozenset())

    def join(
        self, other: "Frame", *, on: str | Iterable[str] | Mapping[str, str], how: OneOf["inner", "left"] = "inner"
    ) -> "Frame":
        """Pairs of rows with equal columns: `on` names them, or maps those of this frame to those of the other."""
        if other.schema != self.schema:
            raise InputError("Frames are joined within one schema: take both from the same curator.")
        other = other._apart({full.partition(".")[0] for full in self._scope.columns})
        shared = [on] if isinstance(on, str) else on
        pairs = dict(shared) if isinstance(shared, Mapping) else {name: name for name in shared}
        found = tuple((_find(a, self._scope), _find(b, other._scope)) for a, b in pairs.items())
        second = frozenset() if isinstance(on, Mapping) else frozenset(b for _, b in found)
        if how not in ("inner", "left"):
            raise InputError('Frames are joined how="inner" or how="left".')
        relation = joined(self.relation, other.relation, found, how, self.schema)
        return self._rows(relation, self.hidden | other.hidden | second)

    def per_unit(self, *keys: str, **columns: str) -> "Frame":
        """One row for each unit (and each combination of keys within it), with aggregates of that unit's rows."""
        unit = [written(full) for full in self._scope.units[:1]]
        items = [Item(node) for node in (*unit, *(_column(key, self._scope) for key in keys))]
        grouped = distinct([expression(item.node, self._scope) for item in items])
        items += [Item(_node(text), name) for name, text in columns.items()]
        if not items:
            raise InputError("Each row is a unit of its own, or public: ask for the rows themselves, without per_unit.")
        pairs = tuple(zip(names_of(items, self._scope), (item.node for item in items), strict=True))
        relation = per_unit(self.relation, self._scope, grouped, pairs, self._name, self.schema)
        return self._rows(relation, frozenset())

    # Groups and questions

    def group_by(self, *keys: str, **named: str) -> "Frame":
        """Groups of rows, by columns or by expressions with a name."""
        items = _items(keys, named, self._scope)
        self._ungrouped()
        check_keys(item.node for item in items)
        return replace(self, keys=tuple(zip(names_of(items, self._scope), (i.node for i in items), strict=True)))

    filter, groupby = where, group_by

    @overload
    def __getitem__(self, name: str) -> "Values": ...
    @overload
    def __getitem__(self, name: list[str]) -> "Frame": ...
    def __getitem__(self, name: Any) -> Any:
        """One column (or expression) to be aggregated, or with a list the rows with these columns alone."""
        if isinstance(name, list):
            return self.select(*name)
        if not isinstance(name, str):
            raise InputError('Name a column, such as visits["age"]; conditions are texts: visits.filter("age >= 18").')
        _column(name, self._scope)
        return Values(self, name)

    def __iter__(self) -> Iterator[None]:
        raise InputError("The rows of a frame stay where they are: ask about them, with count(), for example.")

    def agg(self, **outputs: str) -> "Asked":
        """Numbers about each group, by name: agg(n="COUNT(*)", mean_age="AVG(age)")."""
        return self._asked([Item(_node(text), name) for name, text in outputs.items()])

    def count(self) -> "Asked":
        """How many rows each group has."""
        return self._asked([Item(exp.Count(this=exp.Star()))])

    def sum(self, of: str) -> "Asked":
        """The sum of an expression over each group."""
        return self[of].sum()

    def mean(self, of: str) -> "Asked":
        """The mean of an expression over each group."""
        return self[of].mean()

    def median(self, of: str) -> "Asked":
        """The median of an expression over each group."""
        return self[of].median()

    def quantile(self, of: str, at: float | str) -> "Asked":
        """A quantile of an expression over each group, such as 0.9."""
        return self[of].quantile(at)

    def quantiles(self, of: str, at: Iterable[float | str]) -> "Asked":
        """Several quantiles of an expression over each group, such as [0.25, 0.5, 0.75], drawn together."""
        listed = exp.Array(expressions=[exp.Literal.number(str(each)) for each in at])
        return self._asked([Item(exp.Quantile(this=_column(of, self._scope), quantile=listed))])

    def corr(self, x: str, y: str) -> "Asked":
        """The correlation of two expressions over each group."""
        return self._asked([Item(exp.Corr(this=_column(x, self._scope), expression=_column(y, self._scope)))])

    # Within

    def __repr__(self) -> str:
        """The columns as they are declared; nothing of the data."""
        by = "" if self.keys is None else f", grouped by {', '.join(name for name, _ in self.keys)}"
        columns = [Column(name.partition(".")[2], kind) for name, kind in self._scope.columns.items()]
        return f"Frame of {self._name}{by}\n{aligned(COLUMN_HEAD, [shown(column) for column in columns])}"

    @property
    def _scope(self) -> Scope:
        return scope_of(self.relation, self.schema, self.hidden)

    @property
    def _name(self) -> str:
        return next(iter(self._scope.columns), "rows.").partition(".")[0]

    def _ungrouped(self) -> None:
        if self.keys is not None:
            raise InputError("Groups are made last: call where, select and join before group_by.")

    def _rows(self, relation: Relation, hidden: frozenset[str]) -> "Frame":
        self._ungrouped()
        shape_of(relation, self.schema)
        return replace(self, relation=relation, hidden=hidden)

    def _columns(self, items: list[Item]) -> tuple[Named, ...]:
        names = names_of(items, self._scope)
        return tuple((f"{self._name}.{n}", expression(i.node, self._scope)) for n, i in zip(names, items, strict=True))

    def _apart(self, taken: set[str]) -> "Frame":
        """The same rows under names of tables that are not taken."""
        self._ungrouped()
        tables = dict.fromkeys(full.partition(".")[0] for full in self._scope.columns)
        folded = {name.casefold() for name in taken}
        renamed = {name: free(name, folded) for name in tables}
        if all(new == old for old, new in renamed.items()):
            return self
        new = {full: f"{renamed[full.partition('.')[0]]}.{full.partition('.')[2]}" for full in self._scope.columns}
        relation = Select(self.relation, tuple((name, Name(full)) for full, name in new.items()))
        return replace(self, relation=relation, hidden=frozenset(new[full] for full in self.hidden))

    def _asked(self, items: list[Item]) -> "Asked":
        scope, keys = self._scope, self.keys or ()
        groups = Groups(scope, distinct([expression(node, scope) for _, node in keys]))
        asked = without_lists(items, lambda item: name_of(item.node, scope))
        everything = [*(Item(node, name) for name, node in keys), *asked]
        values = [result(item.node, groups) for item in everything]
        outputs = tuple(zip(names_of(everything, scope), values, strict=True))
        query = checked(Query(self.relation, groups.keys, outputs), self.schema, scope)
        return Asked(query, replace(groups, outputs=dict(outputs)), self.curator)


@dataclass(frozen=True)
class Values:
    """The values of a column, or of an expression, in the rows of a frame or in each of its groups.

    >>> from fractions import Fraction
    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> age = Column("age", Kind("integer", Fraction(0), Fraction(120)))
    >>> people = frame({"people": Table("people", (age, Column("sex", Kind("text"))))}, "people")
    >>> people.filter("age >= 18").groupby("sex")["age"].mean().query.outputs[1]
    ('avg_age', Aggregate(function='mean', of=Name(name='people.age'), at=None))
    """

    frame: Frame
    of: str

    def count(self) -> "Asked":
        """How many of them are not NULL."""
        return self._asked(exp.Count)

    def sum(self) -> "Asked":
        """Their sum."""
        return self._asked(exp.Sum)

    def mean(self) -> "Asked":
        """Their mean."""
        return self._asked(exp.Avg)

    def median(self) -> "Asked":
        """Their median."""
        return self._asked(exp.Median)

    def quantile(self, at: float | str) -> "Asked":
        """A quantile, such as 0.9."""
        return self._asked(exp.Quantile, quantile=exp.Literal.number(str(at)))

    def var(self) -> "Asked":
        """Their variance."""
        return self._asked(exp.Variance)

    def std(self) -> "Asked":
        """Their standard deviation."""
        return self._asked(exp.Stddev)

    def nunique(self) -> "Asked":
        """How many different values they have."""
        return self.frame._asked([Item(exp.Count(this=exp.Distinct(expressions=[self._node])))])

    def value_counts(self) -> "Asked":
        """How many rows each value has, most first."""
        return self.frame.group_by(self.of).count().order_by("count DESC")

    @property
    def _node(self) -> exp.Expr:
        return _column(self.of, self.frame._scope)

    def _asked(self, function: type[exp.Expr], **more: exp.Expr) -> "Asked":
        return self.frame._asked([Item(function(this=self._node, **more))])


@dataclass(frozen=True, repr=False)
class Asked:
    """A question; what is done to it here works on the released numbers and costs nothing more."""

    query: Query
    groups: Groups
    curator: Asker | None = None

    def having(self, condition: str) -> "Asked":
        """Only the released rows for which a condition is true."""
        return replace(self, query=replace(self.query, having=having(_node(condition), self.groups)))

    def order_by(self, *by: str) -> "Asked":
        """The released rows in order: order_by("n DESC")."""
        orders = [each for text in by for each in _part("SELECT 1 ORDER BY", text, "order").expressions]
        return replace(self, query=replace(self.query, order=tuple(ordering(each, self.groups) for each in orders)))

    def limit(self, rows: int) -> "Asked":
        """The first of the released rows."""
        clause = exp.Limit(expression=exp.Literal.number(str(rows)))
        return replace(self, query=replace(self.query, limit=limited(clause)))

    def release(self, *, spend: Any = None, **options: Any) -> Any:
        """Ask the curator: the answer, noised, for a price or with an error."""
        return self._asker().ask(self.query, spend=spend, **options)

    def explain(self, **options: Any) -> Any:
        """Ask the curator what to expect; spends nothing."""
        return self._asker().explain(self.query, **options)

    def __repr__(self) -> str:
        """The question as SQL, if SQL has a sentence for it; not its answer."""
        try:
            return f"Asked: {query_sql(self.query, self.groups.scope.units)}"
        except InputError:
            return f"Asked: {', '.join(name for name, _ in self.query.outputs)}"

    def _asker(self) -> Asker:
        if self.curator is None:
            raise InputError("This frame belongs to no curator: take it from one, or hand its query to ask.")
        return self.curator


# Texts


def _node(text: str) -> exp.Expr:
    """The syntax tree of one expression."""
    found = _part("SELECT", text, "expressions")
    if len(found) != 1 or isinstance(found[0], exp.Alias):
        raise InputError('Write one expression without AS, such as "age >= 18": names are given as keywords.')
    node: exp.Expr = found[0]
    return node


def _part(before: str, text: str, part: str) -> Any:
    """What a text fills in a statement, if it fills nothing else."""
    tree = read_clause(before, text)
    if any(value and name not in (part, "expressions") for name, value in tree.args.items()):
        raise InputError("Write one expression, not a statement: each clause is a call of its own.")
    return tree.args[part]


def _column(text: str, scope: Scope) -> exp.Expr:
    """The column of that very name, such as "hours-per-week", or else an expression."""
    if _named(text, scope):
        return exp.column(exp.to_identifier(text, quoted=True))
    return _node(text)


def _named(text: str, scope: Scope) -> bool:
    return isinstance(text, str) and any(full.partition(".")[2] == text for full in scope.columns)


def _items(texts: tuple[str, ...], named: Mapping[str, str], scope: Scope) -> list[Item]:
    plain = [Item(_column(text, scope)) for text in texts]
    return [*plain, *(Item(_column(text, scope), name) for name, text in named.items())]


def _find(text: str, scope: Scope) -> str:
    node = _column(text, scope)
    if not isinstance(node, exp.Column):
        raise InputError("Frames are joined on columns: name one of each side.")
    return find(node, scope)

"""SQL as a front end: a text becomes a plan, or a sentence that says what to write instead.

    SELECT keys, aggregates and arithmetic on these      FROM table [AS a] [[LEFT] JOIN b ON a.k = b.k | USING (k)] ...
    [WHERE condition]  [GROUP BY keys]  [HAVING condition on results]  [ORDER BY results]  [LIMIT n]

Sub-queries stand after FROM and in WITH; they select columns of rows, or group by the unit. The grammar is an
allow-list (`text`), names mean what the owner declared, and nothing is looked up in the data.
"""

from dataclasses import replace

from sqlglot import exp

from noisette.errors import InputError
from noisette.query.expression import Name
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate, Key, Ordering, Query, Result, ResultCall
from noisette.query.schema import Schema, least_rows
from noisette.query.sql.grouping_sets import plain_group, sets_of
from noisette.query.sql.groups import items_of, keys_of, name_of, names_of, positions_of
from noisette.query.sql.lists import without_lists
from noisette.query.sql.names import Scope, number
from noisette.query.sql.refusals import shown
from noisette.query.sql.relation import Context, rows_of, with_names
from noisette.query.sql.result import Groups, has_total, result, result_type
from noisette.query.sql.text import read
from noisette.query.stability import shape_of

__all__ = ["checked", "having", "limited", "ordering", "parse"]


def parse(text: str, schema: Schema) -> Query:
    """The query that an SQL text asks.

    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> ward = Column("ward", Kind("text", keys=("A", "B")))
    >>> visits = Table("visits", (Column("patient", Kind("text")), ward), unit="patient")
    >>> parse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", {"visits": visits}).outputs
    (('ward', Key(position=0)), ('n', Aggregate(function='rows', of=None, at=None)))
    """
    select, schema = read(text), least_rows(schema)
    context = with_names(select, Context(schema))
    source, scope = rows_of(select, context)
    items = without_lists(items_of(select), lambda item: name_of(item.node, scope))
    sets = sets_of(select)
    if sets is not None:
        select.set("group", plain_group(sets))
    groups = Groups(scope, keys_of(select, items, scope))
    values = [result(item.node, groups) for item in items]
    outputs = tuple(zip(names_of(items, scope), values, strict=True))
    query = checked(Query(source, groups.keys, outputs), schema, scope)
    if sets is not None:
        query = replace(query, sets=positions_of(sets, items, groups))
        if any(has_total(value) for value in values):
            raise InputError("ROLLUP has totals as rows of their own: leave OVER out, or ask without ROLLUP.")
    groups = replace(groups, outputs=dict(outputs))
    if clause := select.args.get("having"):
        query = replace(query, having=having(clause.this, groups))
    if clause := select.args.get("order"):
        query = replace(query, order=tuple(ordering(each, groups) for each in clause.expressions))
    if clause := select.args.get("limit"):
        query = replace(query, limit=limited(clause))
    return query


def checked(query: Query, schema: Schema, scope: Scope) -> Query:
    """The same query, if it is about private rows and tells something about groups."""
    if shape_of(query.source, schema).public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    for key in query.keys:
        if isinstance(key, Name) and key.name in scope.units:
            unit = shown(key.name.partition(".")[2])
            raise InputError(
                f"One group for each {unit} would show single units: use a sub-query, or COUNT(DISTINCT {unit})."
            )
        kind_of(key, scope.columns)
    groups = Groups(scope, query.keys)
    for _, value in query.outputs:
        result_type(value, groups)
    if not any(_tells(value) for _, value in query.outputs):
        raise InputError("The query asks for constants alone: add COUNT(*), or a column that it groups by.")
    _check_names(query)
    return query


def _check_names(query: Query) -> None:
    """Refuse a column that is called like an end of another one's error bar: a table would hold one of them alone."""
    names = {name.casefold() for name, _ in query.outputs}
    for noisy in (name for name, value in query.outputs if not isinstance(value, Key)):
        for end in (f"{noisy}_low", f"{noisy}_high"):
            if end.casefold() in names:
                raise InputError(f"{shown(end)} is an end of the error bar of {shown(noisy)}: rename one with AS.")


def _tells(value: Result) -> bool:
    match value:
        case Key() | Aggregate():
            return True
        case ResultCall(_, arguments):
            return any(map(_tells, arguments))
        case _:
            return False


def having(node: exp.Expr, groups: Groups) -> Result:
    """A condition on released numbers."""
    condition = result(node, groups)
    if result_type(condition, groups) != "boolean":
        raise InputError("HAVING needs a condition that is true or false, such as COUNT(*) > 100.")
    if has_total(condition):
        raise InputError("HAVING decides which groups are added up, so it cannot use OVER: write ORDER BY and LIMIT.")
    return condition


def ordering(node: exp.Ordered, groups: Groups) -> Ordering:
    """What the released rows are sorted by: an output by its name or its place, or anything made of results."""
    by, descending = node.this, bool(node.args.get("desc"))
    if isinstance(by, exp.Literal) and not by.is_string:
        place = number(by.this)
        if not isinstance(place, int) or not 1 <= place <= len(groups.outputs):
            raise InputError(f"ORDER BY counts what is selected: write a number from 1 to {len(groups.outputs)}.")
        return Ordering(list(groups.outputs.values())[place - 1], descending)
    if isinstance(by, exp.Column) and not by.args.get("table") and by.name in groups.outputs:
        return Ordering(groups.outputs[by.name], descending)
    value = result(by, groups)
    result_type(value, groups)
    if not _tells(value):
        raise InputError("ORDER BY a constant sorts nothing: write the name of an output.")
    return Ordering(value, descending)


def limited(clause: exp.Expr) -> int:
    """The number of rows after LIMIT."""
    count = clause.args.get("expression")
    if isinstance(count, exp.Literal) and not count.is_string:
        rows = number(count.this)
        if isinstance(rows, int) and 1 <= rows <= 10**9:
            return rows
    raise InputError("LIMIT needs a whole number of rows above 0: write LIMIT 10.")

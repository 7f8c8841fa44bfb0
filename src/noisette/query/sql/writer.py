"""Plans as SQL texts: what a frame or a query stands for, as `parse` reads it.

Conditions on one side of a join go after WHERE; the canonical form puts them back. Names are written with their table.
A plan that SQL has no sentence for (a join whose right side is a join) is refused.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from sqlglot.dialects.duckdb import DuckDB

from noisette.errors import InputError
from noisette.query.aggregate import values_of
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import Value
from noisette.query.plan import (
    Aggregate,
    Copies,
    Join,
    Key,
    PerUnit,
    Query,
    Relation,
    Result,
    ResultCall,
    ResultLiteral,
    Scan,
    Select,
    Where,
)
from noisette.query.requirements import SIGNS
from noisette.query.sql.slices import slices_of

__all__ = ["expression_sql", "query_sql", "quoted", "reserved", "rows_sql"]

_DIGITS = 40  # of a number, as the reader takes them
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_PREFIX = {"negate": "-", "not": "NOT "}
_INFIX: dict[str, str] = {name: sign for name, sign in SIGNS.items() if name not in ("negate", "is_null")}
_INFIX |= {"and": "AND", "or": "OR", "like": "LIKE"}
_FUNCTION = {  # others as they are named
    "weekday": "ISODOW", "day_of_year": "DAYOFYEAR", "weekday_name": "DAYNAME", "month_name": "MONTHNAME",
    "matches": "REGEXP_MATCHES",
}  # fmt: skip
_INTERVALS = {"add_months": "MONTH", "add_days": "DAY", "add_seconds": "SECOND"}
_CASTS = {
    "as_text": "CAST({} AS VARCHAR)", "as_date": "CAST({} AS DATE)", "as_timestamp": "CAST({} AS TIMESTAMP)",
    "try_integer": "TRY_CAST({} AS BIGINT)", "try_real": "TRY_CAST({} AS DOUBLE)", "try_date": "TRY_CAST({} AS DATE)",
    "day_number": "DATE_DIFF('day', DATE '0001-01-01', {})",
}  # fmt: skip
_AGGREGATES = {
    "count": "COUNT", "sum": "SUM", "mean": "AVG", "variance": "VARIANCE", "deviation": "STDDEV",
    "covariance": "COVAR_POP", "correlation": "CORR", "determination": "REGR_R2", "slope": "REGR_SLOPE",
    "intercept": "REGR_INTERCEPT", "pairs": "REGR_COUNT",
}  # fmt: skip

Names = Mapping[str, str]
"""What stands for a column that a sub-query groups by or aggregates."""


def rows_sql(relation: Relation, hidden: frozenset[str] = frozenset()) -> str:
    """The rows of a relation, with all its columns; `hidden` are the second keys of USING.

    >>> rows_sql(Where(Scan("visits", "visits"), Call("at_least", (Name("visits.age"), Literal(18)))))
    'SELECT * FROM visits WHERE visits.age >= 18'
    """
    return f"SELECT * {_after_from(relation, hidden)}"


def query_sql(query: Query, units: Sequence[str] = (), *, named: bool = True) -> str:
    """A query, with the names of its outputs; `units` hold the unit, which COUNT(DISTINCT unit) needs."""
    listed = ", ".join(
        _result(value, query, units) + (f" AS {quoted(name)}" if named else "") for name, value in query.outputs
    )
    text = f"SELECT {listed} {_after_from(query.source)}"
    if query.sets:
        sets = (", ".join(_expression(query.keys[at]) for at in one) for one in query.sets)
        text += f" GROUP BY GROUPING SETS ({', '.join(f'({one})' for one in sets)})"
    elif query.keys:
        text += f" GROUP BY {', '.join(map(_expression, query.keys))}"
    if query.having is not None:
        text += f" HAVING {_result(query.having, query, units)}"
    if query.order:
        orders = (f"{_result(one.by, query, units)}{' DESC' * one.descending}" for one in query.order)
        text += f" ORDER BY {', '.join(orders)}"
    return text if query.limit is None else f"{text} LIMIT {query.limit}"


def expression_sql(expression: Expression) -> str:
    """An expression over the columns of a row.

    >>> expression_sql(Call("at_least", (Name("visits.age"), Literal(18))))
    'visits.age >= 18'
    """
    return _expression(expression)


# Relations


def _after_from(relation: Relation, hidden: frozenset[str] = frozenset()) -> str:
    tables, conditions = _tables(relation, hidden)
    return f"FROM {tables}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")


def _tables(relation: Relation, hidden: frozenset[str]) -> tuple[str, list[str]]:
    """What stands after FROM, and the conditions after WHERE."""
    match relation:
        case Scan(table, alias):
            return (quoted(table) if table == alias else f"{quoted(table)} AS {quoted(alias)}"), []
        case Where(source, condition):
            tables, conditions = _tables(source, hidden)
            return tables, [*conditions, _expression(condition)]
        case Select(source, columns):
            return f"({_selected(source, columns)}) AS {quoted(_alias(columns[0][0]))}", []
        case Join():
            return _joined(relation, hidden)
        case PerUnit() | Copies():
            raise _unwritable()
        case _:
            assert_never(relation)


def _joined(join: Join, hidden: frozenset[str]) -> tuple[str, list[str]]:
    left, before = _tables(join.left, hidden)
    right, after = _tables(join.right, hidden)
    inner: Relation = join.right
    while isinstance(inner, Where):
        inner = inner.source
    if isinstance(inner, Join):
        raise _unwritable()
    if join.how == "left" and after:  # these hold before the join
        name = inner.alias if isinstance(inner, Scan) else _alias(next(iter(b for _, b in join.on)))
        right, after = f"(SELECT * FROM {right} WHERE {' AND '.join(after)}) AS {quoted(name)}", []
    word = "LEFT JOIN" if join.how == "left" else "JOIN"
    if all(b in hidden and a.partition(".")[2] == b.partition(".")[2] for a, b in join.on):
        on = f"USING ({', '.join(quoted(b.partition('.')[2]) for _, b in join.on)})"
    else:
        on = f"ON {' AND '.join(f'{_name(a)} = {_name(b)}' for a, b in join.on)}"
    return f"{left} {word} {right} {on}", [*before, *after]


def _selected(source: Relation, columns: Sequence[tuple[str, Expression]]) -> str:
    """A sub-query: columns of rows, of the parts of a union, or of the groups of a unit."""
    if (parts := slices_of(source, columns)) is not None:
        return " UNION ALL ".join(_selected(*part) for part in parts)
    having = source.condition if isinstance(source, Where) and isinstance(source.source, PerUnit) else None
    grouped = source.source if isinstance(source, Where) and having is not None else source
    names: dict[str, str] = {}
    if isinstance(grouped, PerUnit):
        names = {name: _expression(key) for name, key in grouped.keys}
        names |= {name: _aggregate(each, ()) for name, each in grouped.aggregates}
    listed = ", ".join(f"{_expression(e, names)} AS {quoted(name.partition('.')[2])}" for name, e in columns)
    if not isinstance(grouped, PerUnit):
        return f"SELECT {listed} {_after_from(source)}"
    keys = ", ".join(_expression(key) for _, key in grouped.keys)
    text = f"SELECT {listed} {_after_from(grouped.source)} GROUP BY {keys}"
    return text if having is None else f"{text} HAVING {_expression(having, names)}"


def _alias(full: str) -> str:
    return full.partition(".")[0]


def _unwritable() -> InputError:
    return InputError("These rows have no SQL text: join one table after the other, and then choose rows.")


# Expressions and results


def _expression(expression: Expression, names: Names | None = None, *, inside: bool = False) -> str:
    match expression:
        case Name(name):
            return (names or {}).get(name) or _name(name)
        case Literal(value):
            return _constant(value)
        case Call(operation, arguments):
            parts = [_expression(argument, names, inside=True) for argument in arguments]
            return _call(operation, parts, inside=inside)


def _call(operation: str, parts: list[str], *, inside: bool) -> str:
    match operation:
        case "case":
            pairs = zip(parts[:-1:2], parts[1::2], strict=True)
            return f"CASE {' '.join(f'WHEN {a} THEN {b}' for a, b in pairs)} ELSE {parts[-1]} END"
        case "is_null":
            text = f"{parts[0]} IS NULL"
        case "in":
            text = f"{parts[0]} IN ({', '.join(parts[1:])})"
        case _ if operation in _INTERVALS:
            back = parts[1].startswith("-")
            text = f"{parts[0]} {'-' if back else '+'} INTERVAL {parts[1].removeprefix('-')} {_INTERVALS[operation]}"
        case _ if operation in _CASTS:
            return _CASTS[operation].format(parts[0])
        case _ if operation in _INFIX:
            text = f" {_INFIX[operation]} ".join(parts)
        case _ if operation in _PREFIX:
            text = f"{_PREFIX[operation]}{parts[0]}"
        case _:
            return f"{_FUNCTION.get(operation, operation.upper())}({', '.join(parts)})"
    return f"({text})" if inside else text


def _result(result: Result, query: Query, units: Sequence[str], *, inside: bool = False) -> str:
    match result:
        case Key(position):
            return _expression(query.keys[position], inside=inside)
        case Aggregate():
            return _aggregate(result, units)
        case ResultLiteral(value):
            return _constant(value)
        case ResultCall("grouping", keys):
            return f"GROUPING({', '.join(_result(key, query, units) for key in keys)})"
        case ResultCall("total", (of, *keys)):
            by = ", ".join(_result(key, query, units) for key in keys)
            return f"SUM({_result(of, query, units)}) OVER ({f'PARTITION BY {by}' if by else ''})"
        case ResultCall(operation, arguments):
            return _call(operation, [_result(one, query, units, inside=True) for one in arguments], inside=inside)


def _aggregate(aggregate: Aggregate, units: Sequence[str]) -> str:
    if aggregate.function == "rows":
        return "COUNT(*)"
    if aggregate.function == "units":
        if not units:
            raise InputError("COUNT(DISTINCT unit) of a bare plan has no SQL text: write the question in SQL.")
        return f"COUNT(DISTINCT {_name(units[0])})"
    assert aggregate.of is not None
    of = ", ".join(map(_expression, values_of(aggregate.of)))
    if aggregate.function == "distinct":
        return f"COUNT(DISTINCT {of})"
    if aggregate.function == "quantile":
        return f"QUANTILE({of}, {_constant(aggregate.at)})"
    return f"{_AGGREGATES[aggregate.function]}({of})"


# Names and constants


def _name(full: str) -> str:
    table, _, name = full.partition(".")
    return f"{quoted(table)}.{quoted(name)}" if name else quoted(table)


def reserved(name: str) -> bool:
    """Whether SQL has a word for itself, so that as a name it stands in quotes."""
    return name.upper() in DuckDB.Tokenizer.KEYWORDS or name.upper() in DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS


def quoted(name: str) -> str:
    """A name as SQL reads it: in quotes where it is more than a word, or a word of SQL's own.

    >>> quoted("age"), quoted("hours-per-week"), quoted("when")
    ('age', '"hours-per-week"', '"when"')
    """
    if _PLAIN.fullmatch(name) and not reserved(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def _constant(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Fraction():
            return _number(Fraction(value))
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"


def _number(value: Fraction) -> str:
    """A number as decimal digits.

    >>> _number(Fraction(-1, 8)), _number(Fraction(10**3))
    ('-0.125', '1000')
    """
    places = next((n for n in range(_DIGITS + 1) if 10**n % value.denominator == 0), None)
    if places is None or abs(value) >= 10**_DIGITS:
        raise InputError("A number of this plan has no decimal digits: write the question in SQL.")
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if value < 0 else text

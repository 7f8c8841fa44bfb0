"""Small parts of a query for the engine, as syntax trees: constants, conditions, clamping, rounding to a grid.

Each part is one operand as it stands: whatever could bind to its neighbours is in parentheses. Parts are copied when
they are put together, so one part can be used twice.
"""

import datetime
import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from noisette.engines.contract import Dialect
from noisette.query.kind import Value

__all__ = [
    "any_of", "binary", "chain", "choose", "clamped", "column", "constant", "greatest", "hash_of", "is_finite",
    "is_nan", "is_null", "least", "listed", "number", "own", "positive_zero", "rounded", "row_of", "scaled", "selected",
    "snapped", "text_of", "try_cast",
]  # fmt: skip


# What engines write differently


def text_of(tree: exp.Expr, dialect: Dialect) -> str:
    """The text that an engine reads.

    >>> half_away = lambda node: exp.Anonymous(this="nearest", expressions=[node.this])
    >>> text_of(rounded(column("x")), Dialect("postgres", round=half_away))
    'NEAREST("x")'
    """
    writers = {part: write for part in _PARTS if (write := getattr(dialect, part)) is not None}
    if writers:
        tree = _rewritten(tree.copy(), writers)
    return tree.sql(dialect=dialect.name, comments=False, copy=False)  # what we write stays as it is: no copy is needed


def _rewritten(tree: exp.Expr, writers: Mapping[str, Callable[[exp.Expr], exp.Expr]]) -> exp.Expr:
    """Each node as its writer writes it, the innermost first."""
    for node in reversed(list(tree.dfs())):
        if (write := writers.get(_part_of(node))) is not None:
            new = write(node)
            tree = new if node is tree else tree
            node.replace(new)
    return tree


_NODES: dict[type[exp.Expr], str] = {
    exp.TryCast: "try_cast",
    exp.IsNan: "is_nan",
    exp.Round: "round",
    exp.Least: "least",
    exp.Greatest: "greatest",
}
_FUNCTIONS = {"hash": "hash", "row": "row", "ISFINITE": "is_finite"}
_PARTS = (*_NODES.values(), *_FUNCTIONS.values())


def _part_of(node: exp.Expr) -> str:
    """The field of `Dialect` that writes a node, if there is one."""
    return _FUNCTIONS.get(node.name, "") if isinstance(node, exp.Anonymous) else _NODES.get(type(node), "")


def try_cast(sql: exp.Expr, to: str) -> exp.Expr:
    """The same value as another type, or NULL where that cannot be: a cast that does not fail."""
    return exp.TryCast(this=own(sql), to=exp.DataType.build(to, dialect="duckdb"))


def own(sql: exp.Expr) -> exp.Expr:
    """A tree for a new place: the same where it has none yet, or else a copy. Copies are most of what trees cost."""
    return sql if sql.parent is None else sql.copy()


def _own_each(*trees: exp.Expr) -> list[exp.Expr]:
    """Trees for new places in one node; one that comes twice is copied the second time."""
    first = {id(tree): i for i, tree in reversed(list(enumerate(trees)))}
    return [own(tree) if first[id(tree)] == i else tree.copy() for i, tree in enumerate(trees)]


def hash_of(*values: exp.Expr) -> exp.Expr:
    """The engine's 64-bit hash of values."""
    return exp.Anonymous(this="hash", expressions=_own_each(*values))


def row_of(*values: exp.Expr) -> exp.Expr:
    """Several values as one, ordered by the first, then by the second."""
    return exp.Anonymous(this="row", expressions=_own_each(*values))


def is_nan(sql: exp.Expr) -> exp.Expr:
    """Whether a double is no number."""
    return exp.IsNan(this=own(sql))


def is_finite(sql: exp.Expr) -> exp.Expr:
    """Whether a date or timestamp is an actual one."""
    return exp.Anonymous(this="ISFINITE", expressions=[own(sql)])


def rounded(sql: exp.Expr) -> exp.Expr:
    """The nearest whole number, halves away from 0."""
    return exp.Round(this=own(sql))


def least(first: exp.Expr, *others: exp.Expr) -> exp.Expr:
    """The least of some values, NULL aside."""
    first, *rest = _own_each(first, *others)
    return exp.Least(this=first, expressions=rest, ignore_nulls=True)


def greatest(first: exp.Expr, *others: exp.Expr) -> exp.Expr:
    """The greatest of some values, NULL aside; NaN is above all numbers."""
    first, *rest = _own_each(first, *others)
    return exp.Greatest(this=first, expressions=rest, ignore_nulls=True)


# What all engines write alike


def column(name: str, table: str | None = None) -> exp.Column:
    """A column by its name, quoted; and of which table, where several have it."""
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(table) if table else None)


def constant(value: Value) -> exp.Expr:
    """A value as the engine reads it: Fractions as the nearest DOUBLE, integers as integers."""
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.true() if value else exp.false()
        case int():
            return number(value)
        case Fraction():
            return number(float(value))
        case str():
            return exp.Literal.string(value)
        case datetime.datetime():
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
        case datetime.date():
            return exp.cast(exp.Literal.string(value.isoformat()), "DATE")


def number(value: int | float) -> exp.Expr:
    """An integer, or a float with as many digits as it takes; the exponent makes it a DOUBLE, not a DECIMAL."""
    digits = repr(abs(value))
    if isinstance(value, float) and "e" not in digits:
        digits += "e0"
    literal = exp.Literal.number(digits)
    return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal


def binary(node: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Two expressions and what is between them, in parentheses."""
    made = node(this=own(left))
    made.set("expression", own(right))  # by now the left one has its place: the two may be one tree
    return exp.Paren(this=made)


def any_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """One of these conditions holds."""
    return chain(exp.Or, conditions)


def chain(node: type[exp.Binary], parts: Sequence[exp.Expr]) -> exp.Expr:
    """Any number of expressions with the same word between them."""
    made = exp.Paren(this=own(parts[0]))
    for part in parts[1:]:
        made.set("this", node(this=made.this))
        made.this.set("expression", own(part))
    return made


def is_null(sql: exp.Expr) -> exp.Expr:
    """Whether it is NULL."""
    return binary(exp.Is, sql, exp.null())


def choose(*branches: tuple[exp.Expr, exp.Expr], otherwise: exp.Expr) -> exp.Expr:
    """The value of the first condition that holds."""
    *parts, default = _own_each(*itertools.chain(*branches), otherwise)
    ifs = [exp.If(this=condition, true=value) for condition, value in zip(parts[::2], parts[1::2], strict=True)]
    return exp.Case(ifs=ifs, default=default)


def clamped(
    sql: exp.Expr,
    low: exp.Expr | None,
    high: exp.Expr | None,
    inside: exp.Expr,
    *first: tuple[exp.Expr, exp.Expr],
) -> exp.Expr:
    """`inside`, or the bound that the value is beyond; of NULL, what `inside` makes of it."""
    branches = list(first)
    if low is not None:
        branches.append((exp.LT(this=own(sql), expression=low), low))
    if high is not None:
        branches.append((exp.GT(this=own(sql), expression=high), high))
    return choose(*branches, otherwise=inside) if branches else inside


def snapped(sql: exp.Expr, grid: Fraction) -> exp.Expr:
    """The double nearest to the multiple of the grid that is nearest to a double."""
    return positive_zero(scaled(rounded(scaled(sql, 1 / grid)), grid))


def scaled(sql: exp.Expr, by: Fraction) -> exp.Expr:
    """A double times a fraction, rounded at most twice: once if the product with the numerator is exact."""
    if by.numerator != 1:
        sql = binary(exp.Mul, sql, number(float(by.numerator)))
    if by.denominator != 1:
        sql = binary(exp.Div, sql, number(float(by.denominator)))
    return sql


def positive_zero(sql: exp.Expr) -> exp.Expr:
    """-0.0 becomes 0.0, nothing else changes."""
    return binary(exp.Add, sql, number(0.0))


def selected(rows: exp.Select | exp.Union, columns: Mapping[str, exp.Expr]) -> exp.Select:
    """Named expressions over the rows of another SELECT; at least one column, as SQL wants it."""
    return exp.select(*listed(columns), copy=False).from_(rows.subquery("rows", copy=False), copy=False)


def listed(columns: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    """Named expressions, one after the other; where there is none, a constant."""
    named = (columns or {"nothing": exp.true()}).items()
    return [exp.Alias(this=own(sql), alias=exp.to_identifier(name, quoted=True)) for name, sql in named]

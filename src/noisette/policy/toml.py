"""A policy as a TOML file with comments, to be read and edited by people, and the lines that it does not have yet.

A line that begins with `# ` is TOML to be taken in; `## ` begins a remark. So the file stays valid TOML when every `# `
is taken away, and is a policy once each placeholder is replaced: while one is left, it is refused.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from noisette.engines.csv_form import PLAIN
from noisette.policy.rules import PLACEHOLDER, ColumnRules, TableRules, inside, toml_text
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure
from noisette.query.recode import Recode
from noisette.query.schema import Column, Limits, Link, RowsPerPeriod, Schema, Table
from noisette.query.units import in_words

__all__ = ["Gap", "as_toml", "gaps", "sections", "with_gaps", "with_types"]

_HEAD = "## What may be released about these tables. Every key is explained in docs/policy.md."
_TYPES = '# or "integer", "real", "boolean", "date", "timestamp"'
_REMARK = """## A CSV file does not say the types of its columns: choose each one. What cannot be read as that is NULL.
## Nobody can ask for a column whose section is taken out."""


def as_toml(
    budget: Promise,
    neighbours: Neighbours,
    tables: Mapping[str, TableRules],
    house: Mapping[str, tuple[object, str]] | None = None,
    *,
    pinned: bool = True,
) -> str:
    """The file's text.

    >>> from noisette.query.schema import Limits
    >>> print(as_toml(Pure("0.5"), Neighbours.ADD_REMOVE, {"visits": TableRules("patient_id", Limits(rows=10))}))
    ## What may be released about these tables. Every key is explained in docs/policy.md.
    <BLANKLINE>
    [budget]  # what all answers together may cost
    epsilon = "0.5"
    neighbours = "add/remove"  # one unit's rows are there or not; "replace": they are others
    <BLANKLINE>
    [tables.visits]
    unit = "patient_id"  # whose data a row is: each one of these is protected
    rows = 10  # of one unit, in all
    <BLANKLINE>
    """
    lines = [
        _HEAD,
        "",
    ]
    if not pinned:
        lines += [_line("pinned", False, "nothing says in which state the data are: each question is charged"), ""]
    lines += ["[budget]  # what all answers together may cost", *_budget(budget)]
    lines += [_line("neighbours", str(neighbours), 'one unit\'s rows are there or not; "replace": they are others')]
    if house:
        lines += ["", "[rules]  # of the house", *(_line(name, value, why) for name, (value, why) in house.items())]
    for name, rules in tables.items():
        lines += ["", *_table(inside("tables", name), rules)]
    return "\n".join(lines) + "\n"


def _budget(budget: Promise) -> list[str]:
    match budget:
        case Pure(eps):
            return [_line("epsilon", _written(eps))]
        case Approx(eps, delta):
            return [_line("epsilon", _written(eps)), _line("delta", _written(delta), "far below one in all units")]
        case ZCDP(rho):
            return [_line("rho", _written(rho), "zero-concentrated differential privacy")]


def _table(place: str, rules: TableRules) -> Iterator[str]:
    yield from [f"[{place}]", *_own_lines(rules)]
    for name, column in rules.columns.items():
        yield from ["", f"[{inside(inside(place, 'columns'), name)}]", *_column(column, dated=_dates(rules, name))]


def _own_lines(rules: TableRules) -> Iterator[str]:
    """What is declared of a table itself."""
    if rules.public:
        yield _line("public", True, "it protects nobody")
    if isinstance(rules.unit, Link):
        yield f"unit = {_link(rules.unit)}  # whose data a row is: that of the row it refers to"
    elif rules.unit is not None:
        yield _line("unit", rules.unit, "whose data a row is: each one of these is protected")
    limits = rules.limits
    if rules.per_period is not None:
        yield f"rows = {_per_period(rules.per_period)}  # of one unit in each calendar period"
    for name, number, why in (
        ("rows", _rows(rules), "of one unit, in all"),
        ("most_rows", rules.chosen_rows, "the largest limit that a question may choose"),
        ("groups", limits.groups, "of a question that one unit may appear in"),
        ("rows_per_group", limits.rows_per_group, "of one unit in each of them"),
    ):
        if number is not None:
            yield _line(name, number, why)
    if rules.today is not None:
        yield _line("today", rules.today, "what CURRENT_DATE means in a question")
    for name, value in vars(rules.form).items():
        if value != getattr(PLAIN, name):
            yield _line(name, value, _FORM[name])


_FORM = {
    "encoding": "of the CSV files",
    "delimiter": "between the fields of the CSV files",
    "line_breaks": "there are some within quotes, in CSV files that quote as RFC 4180 says",
}


def _dates(rules: TableRules, column: str) -> bool:
    """Whether the limit of rows is per period of a column."""
    return rules.per_period is not None and rules.per_period.of == column


def _link(link: Link) -> str:
    pairs = ", ".join(f"{inside('', here)} = {toml_text(there)}" for here, there in link.on)
    return f"{{ through = {toml_text(link.table)}, on = {{ {pairs} }} }}"


def _per_period(limit: RowsPerPeriod) -> str:
    """A limit per period as it is written.

    >>> print(_per_period(RowsPerPeriod(8, "year", "admitted")))
    { most = 8, per = "year", of = "admitted" }
    """
    return f"{{ {', '.join(f'{name} = {_value(value)}' for name, value in vars(limit).items())} }}"


def _rows(rules: TableRules) -> str | int | None:
    return "private" if rules.private_rows else "each question" if rules.chosen_rows else rules.limits.rows


def _column(rules: ColumnRules, *, dated: bool) -> Iterator[str]:
    if rules.type is not None:
        yield _line("type", rules.type)
    if rules.format is not None:
        yield _line("format", rules.format, "how texts write it")
    if rules.bounds is not None or rules.private_bounds:
        beyond = "rows beyond them are left out" if dated else "beyond them: in no group, the nearer bound in sums"
        yield _line("bounds", rules.bounds or "private", beyond)
    if rules.grid is not None:
        yield _line("grid", rules.grid, "values are rounded to multiples of it")
    if rules.keys is not None or rules.private_keys:
        yield _line("keys", rules.keys or "private", "all values there can be; others are left out")
    if rules.recode is not None:
        yield from _recode(rules.recode)
    if not rules.nullable:
        yield _line("nullable", False, "there is no NULL")
    if not rules.group:
        yield _line("group", False, "it may be filtered but not grouped")
    if rules.rows_per_value is not None:
        yield _line("rows_per_value", rules.rows_per_value, "with one value of it, in joins of different units")


def _recode(how: Recode) -> Iterator[str]:
    if how.trim:
        yield _line("trim", True, "blanks at both ends do not count")
    if how.fold:
        yield _line("fold", True, "upper and lower case do not count")
    more = {name: tuple(text for text in texts if text != how.plain(name)) for name, texts in how.names}
    if mapped := [f"{inside('', name)} = {_value(texts)}" for name, texts in more.items() if texts]:
        yield f"map = {{ {', '.join(mapped)} }}  # further texts that mean a key"
    if how.other is not None:
        yield _line("other", how.other, "all texts that mean no key")


def _line(name: str, value: object, why: str = "") -> str:
    return f"{name} = {_value(value)}" + (f"  # {why}" if why else "")


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Fraction():
            return str(value) if value.denominator == 1 and abs(value) < 2**63 else toml_text(_written(value))
        case datetime.date():
            return value.isoformat()
        case tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return toml_text(str(value))


def _written(number: Fraction) -> str:
    """A number as people write it, if that is exact: 0.5, 1e-6, 1/3.

    >>> _written(Fraction(1, 2)), _written(Fraction(1, 10**6)), _written(Fraction(1, 3))
    ('0.5', '1e-6', '1/3')
    """
    short = f"{float(number):g}".replace("e-0", "e-") if abs(number) < 10**15 else str(number)
    return short if Fraction(short) == number else str(number)


# What a policy does not say yet, with the lines to write; nothing is looked up in the data


@dataclass(frozen=True)
class Gap:
    """Something that is not declared: where it would stand, the line (with names to be replaced), and what for."""

    table: str
    column: str | None
    place: str
    line: str
    why: str


def gaps(schema: Schema) -> list[Gap]:
    """What is missing of the tables that protect somebody."""
    return [
        gap for table in schema.values() if not table.public for gap in _of_table(table, _identifying(table, schema))
    ]


def _identifying(table: Table, schema: Schema) -> set[str | None]:
    """The columns of a table that say whose a row is: no group is made of them, and they are not added up."""
    steps = [(other.name, other.through[0]) for other in schema.values() if other.through]
    here = {name for child, link in steps if child == table.name for name in link.here}
    return here | {name for _, link in steps if link.table == table.name for name in link.there} | {table.unit_column}


def _of_table(table: Table, identifying: set[str | None]) -> Iterator[Gap]:
    place = inside("tables", table.name)
    silent = table.limits == Limits() and not table.private_rows and not table.chosen_rows and not table.per_period
    if table.unit is not None and silent:
        yield Gap(
            table.name,
            None,
            place,
            f"rows = {_OPEN}",
            f'a number of rows of one {in_words(table.unit)}, as 10; or "private", bought once, or "each question"',
        )
    for column in table.columns:
        missing = None if column.name in identifying else _missing(column)
        if missing is not None:
            at = inside(inside(place, "columns"), column.name)
            yield Gap(table.name, column.name, at, *missing)
            if column.kind.type == "text" and column.kind.recode is None:
                yield Gap(table.name, column.name, at, "trim = true", "and fold, map, other: for messy values")


_OPEN = toml_text(PLACEHOLDER)
_EXAMPLES = {
    "integer": "0, 100",
    "real": "0, 100",
    "date": "2020-01-01, 2029-12-31",
    "timestamp": "2020-01-01T00:00:00, 2029-12-31T23:59:59",
}


def _missing(column: Column) -> tuple[str, str] | None:
    kind = column.kind
    if kind.type == "text" and kind.keys is None and not column.private_keys and column.group:
        return (
            f"keys = [{_OPEN}, {_OPEN}]",
            "all values, to group by it; else only keys that many share are released, with a delta",
        )
    if kind.type in _EXAMPLES and not kind.bounded and not column.private_bounds:
        return (
            f"bounds = [{_OPEN}, {_OPEN}]",
            f"low and high, such as {_EXAMPLES[kind.type]}: for sums, means, quantiles",
        )
    return None


def _by_section(missing: Iterable[Gap]) -> dict[str, list[str]]:
    """The lines that are missing, by the section that they belong into."""
    found: dict[str, list[str]] = {}
    for gap in missing:
        found.setdefault(gap.place, []).append(f"{gap.line}  # {gap.why}")
    return found


def sections(missing: Sequence[Gap], tables: Mapping[str, TableRules]) -> str:
    """The sections with missing lines, each with all that is declared in it, so that it can stand in for the old one.

    >>> gaps = [Gap("a", "x", "tables.a.columns.x", 'bounds = ["…", "…"]', "for sums")]
    >>> print(sections(gaps, {"a": TableRules(columns={"x": ColumnRules(type="integer")})}))
    [tables.a.columns.x]
    type = "integer"
    bounds = ["…", "…"]  # for sums
    """
    rules = {gap.place: (tables.get(gap.table, TableRules()), gap.column) for gap in missing}
    there = {
        place: _own_lines(table)
        if column is None
        else _column(table.columns.get(column, ColumnRules()), dated=_dates(table, column))
        for place, (table, column) in rules.items()
    }
    written = ([f"[{place}]", *there[place], *lines] for place, lines in _by_section(missing).items())
    return "\n\n".join("\n".join(lines) for lines in written)


def with_gaps(text: str, missing: Iterable[Gap]) -> str:
    """A policy file with the missing lines as comments, whose placeholders are to be replaced by what is true.

    >>> print(with_gaps("[tables.a]", [Gap("a", "x", "tables.a.columns.x", 'bounds = ["…", "…"]', "for sums")]))
    [tables.a]
    <BLANKLINE>
    # [tables.a.columns.x]
    # bounds = ["…", "…"]  # for sums
    <BLANKLINE>
    """
    blocks = text.strip().split("\n\n")
    for place, lines in _by_section(missing).items():
        comments = [f"# {line}" for line in lines]
        at = next((i for i, block in enumerate(blocks) if block.splitlines()[0] == f"[{place}]"), None)
        if at is None:
            blocks.append("\n".join([f"# [{place}]", *comments]))
        else:
            blocks[at] = "\n".join([blocks[at], *comments])
    return "\n\n".join(blocks) + "\n"


def with_types(text: str, tables: Iterable[str]) -> str:
    """A policy file that names the types to choose from behind each type of some tables.

    >>> print(with_types('[tables.a.columns.x]\\ntype = "text"', ["a"]).splitlines()[-1])
    type = "text"  # or "integer", "real", "boolean", "date", "timestamp"
    """
    starts = tuple(f"[{inside('tables', name)}.columns." for name in tables)
    if not starts:
        return text
    blocks = text.split("\n\n")
    for i, block in enumerate(blocks):
        if block.startswith(starts):
            blocks[i] = "\n".join(f"{x}  {_TYPES}" if x.startswith("type = ") else x for x in block.split("\n"))
    return "\n\n".join([f"{blocks[0]}\n{_REMARK}" if blocks[0] == _HEAD else blocks[0], *blocks[1:]])

"""A policy as a TOML file with comments, to be read and edited by people, and the lines that it does not have yet."""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from noisette.policy.rules import ColumnRules, TableRules, inside
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure
from noisette.query.schema import Column, Limits, Schema, Table

__all__ = ["Gap", "as_toml", "gaps", "with_gaps"]

_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_toml(budget: Promise, neighbours: Neighbours, tables: Mapping[str, TableRules]) -> str:
    """The file's text.

    >>> from noisette.query.schema import Limits
    >>> print(as_toml(Pure("0.5"), Neighbours.ADD_REMOVE, {"visits": TableRules("patient_id", Limits(rows=10))}))
    # What may be released about these tables. Every key is explained in docs/policy.md.
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
        "# What may be released about these tables. Every key is explained in docs/policy.md.",
        "",
    ]
    lines += ["[budget]  # what all answers together may cost", *_budget(budget)]
    lines += [_line("neighbours", str(neighbours), 'one unit\'s rows are there or not; "replace": they are others')]
    for name, rules in tables.items():
        lines += ["", *_table(f"tables.{_key(name)}", rules)]
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
    yield f"[{place}]"
    if rules.public:
        yield _line("public", True, "it protects nobody")
    if rules.unit is not None:
        yield _line("unit", rules.unit, "whose data a row is: each one of these is protected")
    limits = rules.limits
    for name, number, why in (
        ("rows", "private" if rules.private_rows else limits.rows, "of one unit, in all"),
        ("groups", limits.groups, "of a question that one unit may appear in"),
        ("rows_per_group", limits.rows_per_group, "of one unit in each of them"),
    ):
        if number is not None:
            yield _line(name, number, why)
    for name, column in rules.columns.items():
        yield from ["", f"[{place}.columns.{_key(name)}]", *_column(column)]


def _column(rules: ColumnRules) -> Iterator[str]:
    if rules.type is not None:
        yield _line("type", rules.type)
    if rules.bounds is not None or rules.private_bounds:
        yield _line("bounds", rules.bounds or "private", "values beyond them are clamped")
    if rules.grid is not None:
        yield _line("grid", rules.grid, "values are rounded to multiples of it")
    if rules.keys is not None or rules.private_keys:
        yield _line("keys", rules.keys or "private", "all values there can be; others are left out")
    if not rules.nullable:
        yield _line("nullable", False, "there is no NULL")


def _line(name: str, value: object, why: str = "") -> str:
    return f"{name} = {_value(value)}" + (f"  # {why}" if why else "")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Fraction():
            return str(value) if value.denominator == 1 and abs(value) < 2**63 else _text(_written(value))
        case datetime.date():
            return value.isoformat()
        case tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return _text(str(value))


def _text(text: str) -> str:
    r"""A TOML string.

    >>> print(_text('a "b" \x07'))
    "a \"b\" \u0007"
    """
    return (
        '"'
        + "".join(_ESCAPED.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in text)
        + '"'
    )


def _written(number: Fraction) -> str:
    """A number as people write it, if that is exact: 0.5, 1e-06, 1/3.

    >>> _written(Fraction(1, 2)), _written(Fraction(1, 10**6)), _written(Fraction(1, 3))
    ('0.5', '1e-06', '1/3')
    """
    short = f"{float(number):g}" if abs(number) < 10**15 else str(number)
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
    return [gap for table in schema.values() if not table.public for gap in _of_table(table)]


def _of_table(table: Table) -> Iterator[Gap]:
    place = inside("tables", table.name)
    if table.unit is not None and table.limits == Limits() and not table.private_rows:
        yield Gap(
            table.name, None, place, "rows = number", f"of one {table.unit} that may count; every question needs it"
        )
    for column in table.columns:
        missing = None if column.name == table.unit else _missing(column)
        if missing is not None:
            yield Gap(table.name, column.name, inside(inside(place, "columns"), column.name), *missing)


def _missing(column: Column) -> tuple[str, str] | None:
    kind = column.kind
    if kind.type == "text" and kind.keys is None and not column.private_keys:
        return (
            "keys = [all, values]",
            "to group by it; else only keys that many share are released, with a delta",
        )
    if kind.type not in ("text", "boolean") and not kind.bounded and not column.private_bounds:
        return "bounds = [low, high]", "for sums, means and quantiles"
    return None


def with_gaps(text: str, missing: Iterable[Gap]) -> str:
    """A policy file with the missing lines as comments: they cannot be taken in as they are.

    >>> print(with_gaps("[tables.a]", [Gap("a", "x", "tables.a.columns.x", "bounds = [low, high]", "for sums")]))
    [tables.a]
    <BLANKLINE>
    # [tables.a.columns.x]
    # bounds = [low, high]  # for sums
    <BLANKLINE>
    """
    blocks = text.strip().split("\n\n")
    for gap in missing:
        comment = f"# {gap.line}  # {gap.why}"
        at = next((i for i, block in enumerate(blocks) if block.splitlines()[0] == f"[{gap.place}]"), None)
        if at is None:
            blocks.append(f"# [{gap.place}]\n{comment}")
        else:
            blocks[at] += f"\n{comment}"
    return "\n\n".join(blocks) + "\n"

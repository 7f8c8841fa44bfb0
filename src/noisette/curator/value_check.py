"""What is wrong with the values of a column, by what is declared of it: conditions and counts, as DuckDB reads them."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from sqlglot import exp

from noisette.engines.contract import CLEAN, FLOATS, TEXTS, base_type
from noisette.engines.duckdb.opening import Csv
from noisette.engines.duckdb.session import text_of
from noisette.engines.sql.expressions import normalised
from noisette.engines.sql.syntax import column, constant
from noisette.query.kind import Kind
from noisette.query.requirements import moment
from noisette.query.schema import Column

__all__ = ["Finding", "ValueCheck", "end_of", "free", "quoted", "value_check"]


class Finding(NamedTuple):
    """How many rows do not meet what is declared of a column, or of the whole table, and how most of them look."""

    column: str | None
    what: str
    rows: int
    looks: str | None = None


def quoted(name: str) -> str:
    """A name as the engine reads it."""
    return exp.to_identifier(name, quoted=True).sql("duckdb")


def free(kind: Kind) -> Kind:
    """What a column is read as, before bounds and keys."""
    return Kind(kind.type, recode=kind.recode, format=kind.format)


def end_of(kind: Kind, end: Fraction) -> str:
    """A bound as the engine reads it."""
    if kind.type in ("date", "timestamp"):
        return text_of(constant(moment(end, kind.type)))
    return text_of(constant(end if kind.type == "real" else int(end)))


def _looks(text: str) -> str:
    """A text without its letters and digits, and without what is no plain character."""
    for pattern, sign in (("[0-9]", "9"), ("\\p{L}", "a"), ("[^ -~]", "?")):
        text = f"regexp_replace({text}, '{pattern}', '{sign}', 'g')"
    return f"left({text}, 24)"


@dataclass(frozen=True)
class ValueCheck:
    """A column in one query about all of them: `raw` is stored, and `read` is what is made of it.

    `fallible`: whether there may be texts, or NaN, that are read as NULL.
    """

    column: Column
    number: int
    raw: str
    read: str
    fallible: bool

    @property
    def made(self) -> str:
        """What the counts are about, as SELECT lists it."""
        return f"{self.raw} AS r{self.number}, {self.read} AS v{self.number}"

    @property
    def asked(self) -> dict[str, tuple[str, str]]:
        """What can be wrong: the condition, and what is said of the rows for which it holds."""
        kind, raw, read = self.column.kind, f"r{self.number}", f"v{self.number}"
        found = {}
        if self.fallible:
            how = f"{kind.type} by {kind.format}" if kind.format else kind.type
            found["unreadable"] = f"{raw} IS NOT NULL AND {read} IS NULL", f"cannot be read as {how}: NULL"
        if not kind.nullable:
            found["missing"] = f"{raw} IS NULL", "NULL, though declared nullable = false"
        if kind.bounded:
            (low, high), words = kind.ends, kind.bounds or ("", "")
            found["below"] = f"{read} < {end_of(kind, low)}", f"below the bound {words[0]}"
            found["above"] = f"{read} > {end_of(kind, high)}", f"above the bound {words[1]}"
        if kind.keys:
            inside = "".join(f"NOT ({found[end][0]}) AND " for end in ("below", "above") if end in found)
            keys = ", ".join(text_of(constant(key)) for key in kind.keys)
            found["other"] = f"{inside}{read} NOT IN ({keys})", f"none of the {len(kind.keys):,} declared keys"
        return found

    @property
    def counted(self) -> list[str]:
        """The counts, as SELECT lists them."""
        found = [f"count(*) FILTER (WHERE {where}) AS {what}{self.number}" for what, (where, _) in self.asked.items()]
        if self.fallible:
            looks = _looks(f"CAST(r{self.number} AS VARCHAR)")
            found.append(f"mode(CASE WHEN {self.asked['unreadable'][0]} THEN {looks} END) AS looks{self.number}")
        return found

    def findings(self, counts: dict[str, Any]) -> Iterator[Finding]:
        """What the counts say."""
        for what, (_, words) in self.asked.items():
            looks = counts[f"looks{self.number}"] if what == "unreadable" else None
            yield Finding(self.column.name, words, counts[f"{what}{self.number}"], looks)


def value_check(number: int, each: Column, stored: str, written: Csv | None) -> ValueCheck:
    """The check of a column that is stored as a type, or written in CSV files and then read as that."""
    if written is None:
        raw, base = quoted(each.name), base_type(stored)
        tree: exp.Expr = column(each.name)
        fallible = base in FLOATS or (base in TEXTS and each.kind.type != "text")
    else:
        raw, base = f"nullif({quoted(each.name)}, '')", CLEAN[each.kind.type]
        tree, fallible = written.reading(column(each.name), each.name), each.kind.type != "text"
    is_moment = each.kind.type in ("date", "timestamp") and base == each.kind.type.upper()
    read = tree if is_moment else normalised(tree, free(each.kind), stored)  # so infinite dates are beyond bounds
    return ValueCheck(each, number, raw, text_of(read), fallible)

"""Bounds, keys and limits that were bought in a project, with their price: a file each in `.noisette/bought`.

Each file holds the lines that could stand in the policy, and what was paid for them. The policy is its owner's, so it
is left alone: what was bought is used where the policy says "private", and not where the owner declares something.
"""

import datetime
import hashlib
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from noisette.answers.figures import promise
from noisette.errors import InputError
from noisette.ledger.entry import promise_of, said
from noisette.policy.policy import Policy, read_policy
from noisette.policy.rules import ColumnRules, TableRules
from noisette.policy.toml import as_toml
from noisette.privacy import Neighbours, Promise, Pure
from noisette.query.kind import Value
from noisette.query.schema import Limits

__all__ = ["Bought", "What", "keep", "kept", "now", "with_bought"]

What: TypeAlias = Literal["bounds", "keys", "rows"]


@dataclass(frozen=True)
class Bought:
    """The bounds or the keys of a column, or the limit on a table's rows: what was paid for them, by whom and when.

    A limit has no column; `terms` are what else was said when it was bought.

    >>> from fractions import Fraction
    >>> print(Bought("visits", "age", "bounds", (Fraction(16), Fraction(128)), Pure("1/2"), None, "").lines)
    [tables.visits.columns.age]
    bounds = [16, 128]
    """

    table: str
    column: str | None
    what: What
    values: tuple[Value, ...]
    spend: Promise
    analyst: str | None
    time: str
    terms: str = ""

    @property
    def place(self) -> tuple[str, str | None, What]:
        """What it is about."""
        return self.table, self.column, self.what

    @property
    def rules(self) -> TableRules:
        """What the policy would say of the table."""
        if self.column is None:
            [rows] = self.values
            assert isinstance(rows, int)
            return TableRules(limits=Limits(rows=rows))
        if self.what == "keys":
            return TableRules(columns={self.column: ColumnRules(keys=self.values)})
        low, high = self.values
        return TableRules(columns={self.column: ColumnRules(bounds=(low, high))})

    @property
    def lines(self) -> str:
        """The lines to write into a policy."""
        whole = as_toml(Pure(1), Neighbours.ADD_REMOVE, {self.table: self.rules})
        place, line = whole.rstrip().rsplit("\n", 2)[1:]  # texts in TOML hold no line breaks
        return f"{place}\n{line.rpartition('  # ')[0]}"

    @property
    def text(self) -> str:
        """The file."""
        paid = ", ".join(f'{name} = "{part}"' for name, part in said(self.spend).items())
        who = "" if self.analyst is None else f"analyst = {_quoted(self.analyst)}\n"
        who += f"terms = {_quoted(self.terms)}\n" if self.terms else ""
        return (
            f'# Bought for {promise(self.spend)}, and used while the policy says {self.what} = "private".\n'
            "# The owner may write the last two lines into the policy instead.\n\n"
            f'[bought]\nspend = {{ {paid} }}\n{who}time = "{self.time}"\n\n{self.lines}\n'
        )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def now() -> str:
    """The wall clock, for people."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def keep(folder: Path, bought: Bought) -> None:
    """Write what was bought, in place of what was bought before."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        file, name = tempfile.mkstemp(dir=folder, suffix=".new")
        with os.fdopen(file, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(bought.text)
        os.replace(name, folder / _name(*bought.place))
    except OSError:
        raise InputError(
            f"What was bought cannot be written into {folder.name}: allow it, then buy the same again for free."
        ) from None


def _name(table: str, column: str | None, what: str) -> str:
    """A file's name, with a few letters more where the names are not plain.

    >>> _name("visits", "age", "bounds"), _name("my visits", "age", "keys")
    ('visits.age.bounds.toml', 'my_visits.age.keys-d7c439b2.toml')
    """
    parts = [part for part in (table, column, what) if part is not None]
    plain = [re.sub(r"\W", "_", part, flags=re.ASCII) for part in parts]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
    return ".".join(plain) + ("" if plain == parts else f"-{digest}") + ".toml"


def kept(folder: Path) -> list[Bought]:
    """All that was bought."""
    return [_read(path) for path in sorted(folder.glob("*.toml"))]


def _read(path: Path) -> Bought:
    try:
        parts = tomllib.loads(path.read_text(encoding="utf-8"))
        paid = parts.pop("bought")
        how = promise_of(paid["spend"]), paid.get("analyst"), paid["time"], paid.get("terms", "")
        ((table, given),) = parts["tables"].items()
        if set(given) == {"rows"}:
            return Bought(table, None, "rows", (Limits(rows=given["rows"]).rows,), *how)
        rules = read_policy(parts, Pure(1)).tables[table]
        ((column, found),) = rules.columns.items()
        what: What = "bounds" if found.bounds is not None else "keys"
        values = found.bounds or found.keys
        if not values:
            raise InputError("It names neither bounds nor keys.")
        return Bought(table, column, what, values, *how)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path.name} of this project was changed: restore it, or remove it and buy again.") from None


def with_bought(policy: Policy, purchases: Iterable[Bought]) -> Policy:
    """The policy with what was bought, wherever it says "private"."""
    tables = dict(policy.tables)
    for bought in purchases:
        if bought.table in tables:
            tables[bought.table] = _with(tables[bought.table], bought)
    return replace(policy, tables=tables)


def _with(rules: TableRules, bought: Bought) -> TableRules:
    """The rules of a table with what was bought, if they say "private" there."""
    if bought.column is None:
        limits = replace(rules.limits, rows=bought.rules.limits.rows)
        return replace(rules, limits=limits, private_rows=False) if rules.private_rows else rules
    column, found = rules.columns.get(bought.column, ColumnRules()), bought.rules.columns[bought.column]
    if bought.what == "bounds" and column.private_bounds:
        column = replace(column, bounds=found.bounds, private_bounds=False)
    elif bought.what == "keys" and column.private_keys:
        column = replace(column, keys=found.keys, private_keys=False)
    else:
        return rules
    return replace(rules, columns={**rules.columns, bought.column: column})

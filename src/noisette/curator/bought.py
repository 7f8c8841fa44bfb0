"""Bounds and keys that were bought in a project, with their price: a file each in `.noisette/bought`.

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

from noisette.curator.ledger.entry import promise_of, said
from noisette.curator.policy import Policy, read_policy
from noisette.curator.rules import ColumnRules, TableRules
from noisette.curator.toml import as_toml
from noisette.errors import InputError
from noisette.privacy import Neighbours, Promise, Pure
from noisette.query.kind import Value
from noisette.releases.figures import promise

__all__ = ["Bought", "What", "keep", "kept", "now", "with_bought"]

What: TypeAlias = Literal["bounds", "keys"]


@dataclass(frozen=True)
class Bought:
    """The bounds or the keys of a column, what was paid for them, by whom and when.

    >>> from fractions import Fraction
    >>> print(Bought("visits", "age", "bounds", (Fraction(16), Fraction(128)), Pure("1/2"), None, "").lines)
    [tables.visits.columns.age]
    bounds = [16, 128]
    """

    table: str
    column: str
    what: What
    values: tuple[Value, ...]
    spend: Promise
    analyst: str | None
    time: str

    @property
    def rules(self) -> ColumnRules:
        """What the policy would say of the column."""
        if self.what == "keys":
            return ColumnRules(keys=self.values)
        low, high = self.values
        return ColumnRules(bounds=(low, high))

    @property
    def lines(self) -> str:
        """The lines to write into a policy."""
        whole = as_toml(Pure(1), Neighbours.ADD_REMOVE, {self.table: TableRules(columns={self.column: self.rules})})
        place, line = whole.rstrip().rsplit("\n", 2)[1:]  # texts in TOML hold no line breaks
        return f"{place}\n{line.rpartition('  # ')[0]}"

    @property
    def text(self) -> str:
        """The file."""
        paid = ", ".join(f'{name} = "{part}"' for name, part in said(self.spend).items())
        who = "" if self.analyst is None else f"analyst = {_quoted(self.analyst)}\n"
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
        os.replace(name, folder / _name(bought.table, bought.column, bought.what))
    except OSError:
        raise InputError(
            f"What was bought cannot be written into {folder.name}: allow it, then buy the same again for free."
        ) from None


def _name(table: str, column: str, what: str) -> str:
    """A file's name, with a few letters more where the names are not plain.

    >>> _name("visits", "age", "bounds"), _name("my visits", "age", "keys")
    ('visits.age.bounds.toml', 'my_visits.age.keys-d7c439b2.toml')
    """
    parts = (table, column, what)
    plain = [re.sub(r"\W", "_", part, flags=re.ASCII) for part in parts]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
    return ".".join(plain) + ("" if plain == list(parts) else f"-{digest}") + ".toml"


def kept(folder: Path) -> list[Bought]:
    """All that was bought."""
    return [_read(path) for path in sorted(folder.glob("*.toml"))]


def _read(path: Path) -> Bought:
    try:
        parts = tomllib.loads(path.read_text(encoding="utf-8"))
        paid = parts.pop("bought")
        ((table, rules),) = read_policy(parts, Pure(1)).tables.items()
        ((column, found),) = rules.columns.items()
        what: What = "bounds" if found.bounds is not None else "keys"
        values = found.bounds or found.keys
        if not values:
            raise InputError("It names neither bounds nor keys.")
        return Bought(table, column, what, values, promise_of(paid["spend"]), paid.get("analyst"), paid["time"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path.name} of this project was changed: restore it, or remove it and buy again.") from None


def with_bought(policy: Policy, purchases: Iterable[Bought]) -> Policy:
    """The policy with what was bought, wherever it says "private"."""
    tables = dict(policy.tables)
    for bought in purchases:
        rules = tables.get(bought.table, TableRules())
        column = rules.columns.get(bought.column, ColumnRules())
        if bought.what == "bounds" and column.private_bounds:
            column = replace(column, bounds=bought.rules.bounds, private_bounds=False)
        elif bought.what == "keys" and column.private_keys:
            column = replace(column, keys=bought.rules.keys, private_keys=False)
        else:
            continue
        tables[bought.table] = replace(rules, columns={**rules.columns, bought.column: column})
    return replace(policy, tables=tables)

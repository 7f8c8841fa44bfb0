"""CSV files: they hold text alone, so their types are declared, never guessed from the rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noisette.engines.csv import first_line
from noisette.errors import InputError
from noisette.policy.errors import inside, policy_error
from noisette.policy.rules import TableRules

__all__ = ["check_csv", "header", "is_csv"]

_ENDINGS = (".csv", ".tsv")


def is_csv(source: Any) -> bool:
    """Whether a table is one CSV file, a pattern of names or a list of them."""
    first = source[0] if isinstance(source, list | tuple) and source else source
    return isinstance(first, str | Path) and Path(first).suffix.lower() in _ENDINGS


def check_csv(tables: Any, rules: Mapping[str, TableRules], unit: str | None) -> None:
    """Refuse CSV files without types, with the lines to write."""
    for name, source in tables.items() if isinstance(tables, Mapping) else ():
        if is_csv(source):
            _check(name, source, rules.get(name, TableRules()), unit)


def _check(name: str, source: Any, rules: TableRules, unit: str | None) -> None:
    place = inside(inside("tables", name), "columns")
    if not any(column.type for column in rules.columns.values()):
        raise InputError(
            f"A CSV file does not say what its columns are: write into the policy\n\n{_lines(place, source)}"
        )
    for column, declared in rules.columns.items():
        if declared.type is None:
            raise policy_error(
                inside(place, column), 'needs a type, since a CSV file does not say it: type = "integer".'
            )
    whose = rules.unit or (None if rules.public else unit)
    if whose is not None and whose not in rules.columns:
        raise policy_error(
            inside(place, whose), 'is missing: the unit of a CSV file needs a type, such as type = "text".'
        )


def _lines(place: str, source: Any) -> str:
    lines = [f'{inside("", column)} = {{ type = "text" }}' for column in header(source)]
    kinds = "# or integer, real, boolean, date, timestamp; what is not listed cannot be asked for"
    return "\n".join([f"[{place}]  {kinds}", *(lines or ['patient_id = { type = "text" }'])])


def header(source: Any) -> list[str]:
    """The names in the first line, as far as they can be read."""
    try:
        return first_line(str(source[0] if isinstance(source, list | tuple) else source), "")
    except InputError:
        return []

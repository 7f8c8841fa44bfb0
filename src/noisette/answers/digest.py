"""The digest of a record: one SHA-256 for everything that a release says, the same from the release and from its JSON.

    digest  =  SHA-256(the claim as JSON, then each column of the rows: its name, its form, its values)

A column of numbers goes in as doubles, any other as a JSON list. Both forms are exact: a whole number that no double
holds makes its column a list. JSON that was laid out anew has the same digest: names in another order, 1 for 1.0.
Left out is what a ledger confirms by itself: where the release stands in it, and what was spent by then.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noisette.answers.record import as_json
from noisette.errors import InputError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["digest_of_record", "digest_of_release"]

_APART = ("rows", "ledger", "spent")
_EXACT = 2**53  # whole numbers up to this are doubles


def digest_of_release(claim: Mapping[str, Any], table: "pyarrow.Table") -> str:
    """The digest of a release: what it says, and its numbers as an Arrow table."""
    columns = {name: table.column(name) for name in table.column_names} if table.num_rows else {}
    return _digest(claim, {name: _from_arrow(column) for name, column in columns.items()})


def digest_of_record(record: Mapping[str, Any]) -> str:
    """The digest of a record that was read from JSON.

    >>> digest_of_record({"unit": "p", "rows": [{"n": 3}]}) == digest_of_record({"rows": [{"n": 3.0}], "unit": "p"})
    True
    >>> digest_of_record({"unit": "p", "rows": [{"n": 3}]}) == digest_of_record({"unit": "p", "rows": [{"n": 4}]})
    False
    """
    rows = record.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
        raise InputError("The rows of the record are not those of a table: give the text that to_json wrote.")
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return _digest(record, {name: _form(values) for name, values in columns.items()})


def _digest(claim: Mapping[str, Any], columns: Mapping[str, tuple[str, bytes]]) -> str:
    stated = json.loads(as_json({name: part for name, part in claim.items() if name not in _APART}))
    whole = hashlib.sha256(_text(_even(stated)))
    for name, (form, values) in sorted(columns.items()):
        whole.update(_text(["", name, form, len(values)]))
        whole.update(values)
    return whole.hexdigest()


def _from_arrow(column: "pyarrow.ChunkedArray") -> tuple[str, bytes]:
    """The values of a column as bytes, as `_form` finds them in JSON; whole columns at once where there can be many."""
    import pyarrow
    import pyarrow.compute as compute
    from pyarrow import types

    if types.is_integer(column.type):
        ends = compute.min_max(column).as_py().values()
        if all(end is None or abs(end) <= _EXACT for end in ends):
            return _numbers(column.cast(pyarrow.float64()).to_numpy())
    if types.is_floating(column.type):
        return _numbers(column.to_numpy())
    if types.is_string(column.type) and column.null_count < len(column):
        return "list", _text(column.to_pylist())
    return _form(json.loads(as_json({"": column.to_pylist()}))[""])


def _form(values: Sequence[Any]) -> tuple[str, bytes]:
    """The values of a column as bytes: doubles where all of them are numbers, NaN for none."""
    if all(value is None or (type(value) in (int, float) and _is_double(value)) for value in values):
        return _numbers([np.nan if value is None else value for value in values])
    return "list", _text([value if type(value) is str else _even(value) for value in values])


def _is_double(value: int | float) -> bool:
    return isinstance(value, float) or abs(value) <= _EXACT


def _numbers(values: Any) -> tuple[str, bytes]:
    """Doubles, with one form of what JSON has none for, and of zero."""
    doubles = np.asarray(values, dtype="<f8")
    return "doubles", np.where(np.isfinite(doubles), doubles + 0.0, np.nan).astype("<f8").tobytes()


def _even(value: Any) -> Any:
    """The same with whole numbers as such, however they are written."""
    match value:
        case dict():
            return {name: _even(part) for name, part in value.items()}
        case list() | tuple():
            return [_even(part) for part in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

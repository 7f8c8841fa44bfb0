"""CSV files: a row is a line, and no line can change what is read of another one, whatever bytes it holds.

A line ends with \\n, and \\r before it is no part of it. Delimiters separate fields, except between quotes; a field
within quotes is what is between them, where two quotes stand for one. In a line with an odd number of quotes they are
letters like any other. Hence a line break within quotes ends the line as anywhere else, unless their owner declares
that there are such line breaks (`csv_records`).

| line | row |
|---|---|
| empty, or longer than 16 MiB | none |
| with too few fields | the missing ones are NULL |
| with too many fields | those beyond the header are ignored |
| with bytes that are not in the encoding (UTF-8, if none is declared) | question marks in their place |

An empty field is NULL, and so is what cannot be read as the declared type.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute

from noisette.engines.csv_form import DELIMITERS, ENCODINGS, PLAIN, Form
from noisette.engines.csv_records import LINE_BREAK, LONGEST, joined
from noisette.engines.files import QUESTION_MARK, valid_text
from noisette.errors import InputError

__all__ = ["Tally", "blocks", "fields", "first_line", "no_column", "not_in_encoding", "records", "tally"]

_BLOCK = 1 << 22  # bytes that are read at once, and then up to the end of a line
_LONGEST = LONGEST  # bytes of a row
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_MARK = b"\xef\xbb\xbf"  # which some programs write before UTF-8

_Places = NDArray[np.int64]


def first_line(path: str, name: str, form: Form = PLAIN) -> list[str]:
    """The names in the first line of a CSV file; where it has none, a sentence on what the file is instead."""
    try:
        with open(path, "rb") as file:
            line = file.readline(_LONGEST).removeprefix(_MARK).rstrip(b"\r\n")
    except OSError:
        raise InputError(f"The file of table {name} cannot be read: check its permissions.") from None
    delimiter = form.separator(path)
    if fault := _fault(line, delimiter.decode(), form):
        raise InputError(f"The file of table {name} {fault}")
    line = _in_utf8(line, form)
    split = fields(line + b"\n", delimiter, line.count(delimiter) + 1)
    found = [part for values in split for part in values.to_pylist() if part is not None]
    if not found or len({c.lower() for c in found}) < len(found) or not all(found) or b"\r" in line:
        raise InputError(
            f"The first line of table {name} must name its columns, each one differently, and end with a line feed."
        )
    return found


def no_column(table: str, column: str, header: Sequence[str], cure: str = "let it name all columns.") -> InputError:
    """What is said of a column that the first line does not name.

    That line may be a row and not a header, so nothing of it is quoted but the same name in another spelling.

    >>> str(no_column("visits", "patient_id", ["Patient ID", "age"]))
    'The first line of table visits names no column patient_id: did you mean Patient ID?'
    """
    same = next((name for name in header if _letters(name) == _letters(column)), None)
    meant = cure if same is None else f"did you mean {same}?"
    return InputError(f"The first line of table {table} names no column {column}: {meant}")


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


_SIGNS = {  # what the first bytes of other files are
    b"PK\x03\x04": "is a spreadsheet or an archive: export it as CSV, in UTF-8.",
    b"PAR1\x15": "is a Parquet file: let its name end in .parquet.",
    b"\x1f\x8b": "is compressed: unpack it first.",
}


def _fault(line: bytes, delimiter: str, form: Form) -> str | None:
    """What is wrong with the first line of a file as a whole; None if it may name columns."""
    if found := next((fault for sign, fault in _SIGNS.items() if line.startswith(sign)), None):
        return found
    if line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line:
        return "is saved as UTF-16: save it as UTF-8."
    if not line.strip():
        return "has no first line that names its columns: is it empty?"
    coded = not form.is_valid(line)
    other = next((sign for sign in DELIMITERS if sign.encode() in line and delimiter.encode() not in line), None)
    if not coded and other is None:
        return None
    likely = " (Latin-1 or Windows-1252 are likely)" if form.encoding == "utf-8" else ""
    faults = [f"is not saved as {form.encoding.upper()}{likely}"] * coded
    faults += [] if other is None else [f"separates its columns by {DELIMITERS[other]}"]
    cures = ["as UTF-8"] * coded + ([] if other is None else [f"with {DELIMITERS[delimiter]} instead"])
    written = ['encoding = "latin-1"'] * coded + ([] if other is None else [f"delimiter = {_toml(other)}"])
    return f"{' and '.join(faults)}: save it {', '.join(cures)}, or let its policy say {' and '.join(written)}."


def _toml(delimiter: str) -> str:
    return '"\\t"' if delimiter == "\t" else f'"{delimiter}"'


def blocks(path: str) -> Iterator[bytes]:
    """The lines below the header, some at a time."""
    with open(path, "rb") as file:
        file.readline()
        while block := file.read(_BLOCK):
            yield block + file.readline()


def records(path: str, form: Form, count: int) -> Iterator[bytes]:
    """The same in UTF-8, with `csv_records.LINE_BREAK` for each line break that stands within quotes."""
    parts = (_in_utf8(block, form) for block in blocks(path))
    return joined(parts, form.separator(path), count) if form.line_breaks else parts


def _in_utf8(block: bytes, form: Form) -> bytes:
    """The same lines in UTF-8; what is not valid there stays, and is read as question marks."""
    codec = ENCODINGS[form.encoding]
    return block if codec == "utf-8" else block.decode(codec, QUESTION_MARK).encode()


def fields(block: bytes, delimiter: bytes, count: int, *, line_breaks: bool = False) -> list[pyarrow.Array]:
    """The first `count` fields of the lines of a block, as one array of text for each; NULL where a line has fewer.

    >>> [found.to_pylist() for found in fields(b'a,"b ""c"", d"\\n\\ne,f"\\r\\ng', b",", 2)]
    [['a', 'e', 'g'], ['b "c", d', 'f"', None]]
    """
    found = _lines(block, delimiter)
    begin, size = found.begin, found.size
    return [_column(found, np.where(i < size, begin + i, 0), i >= size, line_breaks=line_breaks) for i in range(count)]


class _Lines(NamedTuple):
    """The fields of all lines, one after the other, and of each line that is a row the first one and their number."""

    pieces: pyarrow.Array
    quoted: NDArray[np.bool_]
    balanced: NDArray[np.bool_]
    begin: _Places
    size: _Places


def _lines(block: bytes, delimiter: bytes) -> _Lines:
    block = block if block.endswith(b"\n") else block + b"\n"
    letters = np.frombuffer(block, np.uint8)
    last, balanced = _separators(letters, ord(delimiter))  # what ends each field
    ending = letters[last] == _NEWLINE
    first = np.append(0, last[:-1] + 1)
    last -= ending & (last > first) & (letters[last - 1] == _RETURN)
    quoted = balanced & (last - first > 1) & (letters[first] == _QUOTE) & (letters[last - 1] == _QUOTE)
    pieces = _pieces(block, first + quoted, last - quoted)
    end = np.flatnonzero(ending)  # the last field of each line
    begin = np.append(0, end[:-1] + 1)
    length = last[end] - first[begin]
    some = (length > 0) & (length <= _LONGEST)
    return _Lines(pieces, quoted, balanced, begin[some], (end - begin + 1)[some])


def _separators(letters: NDArray[np.uint8], delimiter: int) -> tuple[_Places, NDArray[np.bool_]]:
    """Line ends and the delimiters that are not between quotes; and whether the quotes of that line are even."""
    found = np.flatnonzero((letters == _NEWLINE) | (letters == delimiter))
    quotes = np.flatnonzero(letters == _QUOTE)
    if not len(quotes):
        return found, np.ones(len(found), bool)
    before = np.searchsorted(quotes, found)
    ending = letters[found] == _NEWLINE
    total = np.append(0, before[ending])  # quotes before each line, and all of them
    line = np.cumsum(ending) - ending
    balanced = (np.diff(total) % 2 == 0)[line]
    separates = ending | ~balanced | ((before - total[line]) % 2 == 0)
    return found[separates], balanced[separates]


def _pieces(block: bytes, first: _Places, last: _Places) -> pyarrow.Array:
    """The bytes of each field, and after it those between it and the next one; none is copied."""
    borders = np.empty(2 * len(first) + 1, np.int64)
    borders[0:-1:2], borders[1::2], borders[-1] = first, last, len(block)
    buffers = [None, pyarrow.py_buffer(borders), pyarrow.py_buffer(block)]
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(borders) - 1, buffers, null_count=0)


def _column(found: _Lines, at: _Places, missing: NDArray[np.bool_], *, line_breaks: bool) -> pyarrow.Array:
    """One field of each line."""
    values = found.pieces.take(pyarrow.array(2 * at, mask=missing))
    if found.quoted[at].any():
        single = compute.replace_substring(values, b'""', b'"')
        values = compute.if_else(pyarrow.array(found.quoted[at]), single, values)
    return valid_text(compute.replace_substring(values, LINE_BREAK, b"\n") if line_breaks else values)


# For the owner: how lines meet what is declared of them


class Tally(NamedTuple):
    """How many rows there are, and how many of them were not written as it is declared."""

    rows: int = 0
    not_in_encoding: int = 0
    odd_quotes: int = 0
    fewer_fields: int = 0
    more_fields: int = 0


def tally(path: str, form: Form, count: int) -> Tally:
    """Count the lines of a file with `count` columns that are not written as it is declared."""
    parts = (_of_block(block, form.separator(path), count) for block in records(path, form, count))
    total = Tally(*map(sum, zip(*parts, strict=True)))
    return total._replace(not_in_encoding=not_in_encoding(path, form))


def not_in_encoding(path: str, form: Form) -> int:
    """How many lines of a file hold bytes that are not of its encoding."""
    return sum(_undecodable(block, form) for block in blocks(path))


def _of_block(block: bytes, delimiter: bytes, count: int) -> Tally:
    found = _lines(block, delimiter)
    odd = ~found.balanced[found.begin]
    fewer, more = (found.size < count) & ~odd, (found.size > count) & ~odd
    return Tally(len(found.size), 0, int(odd.sum()), int(fewer.sum()), int(more.sum()))


def _undecodable(block: bytes, form: Form) -> int:
    return 0 if form.is_valid(block) else sum(not form.is_valid(line) for line in block.split(b"\n"))

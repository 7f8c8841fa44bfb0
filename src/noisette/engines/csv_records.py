"""CSV files whose quoted fields may hold line breaks: which lines are one row, for who declares that there are such.

A row is then a record of RFC 4180: a field is within quotes, where two quotes stand for one, or holds none; a line
break stands within quotes alone. A program that quotes so writes one record for each row, whatever the row holds, and
no record can change what is read of another one.

Where lines are no such record, they stay rows by themselves: lines are joined only from one with an odd number of
quotes to the next such line, and only if they are a record with as many fields as the header. Hence one stray quote
costs its own line, and not the rest of the file, unless lines below it happen to end such a record.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

__all__ = ["LINE_BREAK", "LONGEST", "joined"]

LONGEST = 1 << 24
"""The most bytes of a row."""

LINE_BREAK = b"\xff"
"""Stands for a line break within quotes: no byte of UTF-8. Where a file holds it, a question mark is in its place."""


def joined(blocks: Iterable[bytes], delimiter: bytes, count: int) -> Iterator[bytes]:
    r"""Blocks of whole lines, with LINE_BREAK in place of each line break within a record of `count` fields.

    >>> [*joined([b'1,"a\n', b'b"\n2,"c\n3,d\n'], b",", 2)]
    [b'', b'1,"a\xffb"\n', b'2,"c\n3,d\n']
    """
    record, rest = _record_of(delimiter, count), b""
    for block in blocks:
        block = block if block.endswith(b"\n") else block + b"\n"  # the last line of a file may lack it
        done, rest = _joined(rest + block.replace(LINE_BREAK, b"?"), record)
        yield done
        if len(rest) > LONGEST:  # longer than any row: its first line is one by itself
            yield rest
            rest = b""
    yield rest


def _record_of(delimiter: bytes, count: int) -> re.Pattern[bytes]:
    sign = re.escape(delimiter)
    field = rb'(?:"(?:[^"]|"")*+"|[^"' + sign + rb"\n]*+)"
    return re.compile(field + rb"(?:" + sign + field + rb"){%d}\r?\n" % (count - 1))


def _joined(block: bytes, record: re.Pattern[bytes]) -> tuple[bytes, bytes]:
    """The lines that are settled, joined, and those from the first one on that more lines may complete."""
    letters = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    quotes = np.searchsorted(np.flatnonzero(letters == ord('"')), np.append(-1, ends), "right")
    odd = np.flatnonzero(np.diff(quotes) % 2)  # lines with an odd number of quotes
    parts, at, i = [], 0, 0
    while i + 1 < len(odd):
        first, last = int(ends[odd[i] - 1]) + 1 if odd[i] else 0, int(ends[odd[i + 1]]) + 1
        if last - first <= LONGEST and record.fullmatch(block, first, last):
            parts += [block[at:first], block[first : last - 1].replace(b"\n", LINE_BREAK)]
            at, i = last - 1, i + 2
        else:
            i += 1
    open_at = len(block) if i == len(odd) else int(ends[odd[i] - 1]) + 1 if odd[i] else 0
    return b"".join([*parts, block[at:open_at]]), block[open_at:]

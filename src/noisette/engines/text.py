"""Text that is valid whatever bytes are stored: the engine fails on other text, so that one row could stop a question.

Bytes that are not UTF-8 are read as question marks, value by value. Parquet files are read so by the engine itself.
"""

import codecs

import pyarrow

from noisette.errors import InputError

__all__ = ["valid_table", "valid_text"]

_SOME = 1 << 16  # values that are decoded one by one if one of them is not valid
_TEXT = {
    pyarrow.string(): pyarrow.binary(),
    pyarrow.large_string(): pyarrow.large_binary(),
    pyarrow.string_view(): pyarrow.binary_view(),
}

codecs.register_error("noisette.question_mark", lambda fault: ("?", getattr(fault, "end", 0)))


def valid_table(table: pyarrow.Table, name: str) -> pyarrow.Table:
    """The same table with text that is valid; a sentence where an array is damaged in another way."""
    for i, column in enumerate(table.column_names):
        try:
            table.column(i).validate(full=True)
        except pyarrow.ArrowInvalid:
            table = table.set_column(i, column, _mended(table.column(i), column, name))
    return table


def _mended(column: pyarrow.ChunkedArray, name: str, table: str) -> pyarrow.ChunkedArray:
    try:
        return pyarrow.chunked_array([_of_chunk(chunk) for chunk in column.chunks])
    except pyarrow.ArrowException:
        pass
    raise InputError(f"Column {name} of table {table} holds arrays that are damaged: make the frame anew.")


def _of_chunk(chunk: pyarrow.Array) -> pyarrow.Array:
    if isinstance(chunk, pyarrow.DictionaryArray):
        return pyarrow.DictionaryArray.from_arrays(chunk.indices, _of_chunk(chunk.dictionary))
    if chunk.type not in _TEXT:
        raise pyarrow.ArrowInvalid
    plain = chunk.view(_TEXT[chunk.type])
    plain.validate(full=True)
    return valid_text(plain.cast(pyarrow.large_binary()))


def valid_text(values: pyarrow.Array) -> pyarrow.Array:
    """Bytes of any kind as valid text.

    >>> valid_text(pyarrow.array([b"caf\\xc3\\xa9", b"caf\\xe9", None], pyarrow.large_binary())).to_pylist()
    ['café', 'caf?', None]
    """
    parts = [_valid(values.slice(at, _SOME)) for at in range(0, len(values), _SOME)]
    return pyarrow.chunked_array(parts, pyarrow.large_string()).combine_chunks()


def _valid(part: pyarrow.Array) -> pyarrow.Array:
    text = part.view(pyarrow.large_string())
    try:
        text.validate(full=True)
    except pyarrow.ArrowInvalid:
        decoded = [None if v is None else v.decode("utf-8", "noisette.question_mark") for v in part.to_pylist()]
        return pyarrow.array(decoded, pyarrow.large_string())
    return text

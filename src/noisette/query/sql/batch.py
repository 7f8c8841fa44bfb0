"""Several statements in one text."""

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from noisette.errors import InputError

__all__ = ["statements"]


def statements(text: str) -> list[str]:
    """The statements of a text, separated by semicolons; those within quotation marks and comments separate nothing.

    >>> statements("SELECT ';'; -- a;b\\nSELECT 2;")
    ["SELECT ';'", 'SELECT 2']
    """
    try:
        tokens = DuckDB().tokenize(text)
    except Exception:
        raise InputError("The queries cannot be read: check that every quotation mark is closed.") from None
    found: list[str] = []
    start, last = None, 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found += [] if start is None else [text[start:last]]
            start = None
        else:
            start, last = token.start if start is None else start, token.end + 1
    return found if start is None else [*found, text[start:last]]

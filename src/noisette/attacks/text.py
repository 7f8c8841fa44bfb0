"""Small tables for people to read."""

from collections.abc import Sequence

__all__ = ["as_text"]


def as_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns aligned to the right.

    >>> print(as_text(["n", "square"], [["2", "4"], ["10", "100"]]))
     n  square
     2       4
    10     100
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)

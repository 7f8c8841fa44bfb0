"""Whose a row is: the column that names its unit, or each row by itself, which no column can be called."""

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["ROW", "EachRow", "Unit", "in_words"]


class EachRow(Enum):
    """Each row is a unit by itself: there is no column of units to travel.

    >>> ROW == "row", {ROW: 1}.get("row")
    (False, None)
    """

    ROW = "row"


ROW: Final = EachRow.ROW

Unit: TypeAlias = str | EachRow
"""The name of the declared unit column, whatever it is called, or ROW."""


def in_words(unit: Unit | None) -> str:
    """Who is protected, in a word for sentences and records; a column stands in quotes if it is called like that word.

    >>> in_words("patient_id"), in_words(ROW), in_words("row")
    ('patient_id', 'row', '"row"')
    """
    if unit is ROW:
        return ROW.value
    return f'"{unit}"' if unit == ROW.value else str(unit)

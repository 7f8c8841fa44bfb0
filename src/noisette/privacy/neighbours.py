"""Neighbouring tables: what the presence of one person can change."""

from enum import Enum
from typing import Annotated, TypeAlias

from noisette.errors import InputError, PrivacyError

__all__ = ["Neighbours", "Relation"]


class Neighbours(Enum):
    """The neighbouring relation of a guarantee.

    ADD_REMOVE: one person's rows are added or removed; the size of the table is private.
    REPLACE: one person's rows are replaced by others; the size of the table is public.
    """

    ADD_REMOVE = "add/remove"
    REPLACE = "replace"

    def __str__(self) -> str:
        return self.value


def _relation(given: Neighbours, name: str) -> Neighbours:
    if not isinstance(given, Neighbours):
        raise InputError(f"{name} must be Neighbours.ADD_REMOVE or Neighbours.REPLACE.")
    return given


Relation: TypeAlias = Annotated[Neighbours, _relation]


def common(a: Neighbours | None, b: Neighbours | None) -> Neighbours | None:
    """Return the common relation of two guarantees; one without a relation takes the other's.

    >>> str(common(None, Neighbours.REPLACE))
    'replace'
    """
    if a is not None and b is not None and a is not b:
        raise PrivacyError(
            f"A guarantee under {a} does not add to one under {b}: "
            "convert the add/remove one with .under(Neighbours.REPLACE) first."
        )
    return b if a is None else a

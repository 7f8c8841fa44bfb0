"""What a curator needs of a ledger."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from noisette.curator.ledger.entry import Entry
from noisette.curator.ledger.standing import Share
from noisette.exact.number import Number
from noisette.privacy import Guarantee, Promise

__all__ = ["Ledger"]


class Ledger(Protocol):
    """Where charges are written before anything is drawn."""

    @property
    def budget(self) -> Promise:
        """What may be spent in all."""
        ...

    @property
    def spent(self) -> Promise:
        """What is spent."""
        ...

    @property
    def left(self) -> Promise:
        """What is left."""
        ...

    @property
    def shares(self) -> dict[str, Share]:
        """The share of each analyst who has one: in all, spent, left."""
        ...

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order."""
        ...

    def tight(self, delta: Number) -> float:
        """The epsilon of all charges together at a delta, had they been settled in advance."""
        ...

    def allows(self, guarantee: Guarantee, *, analyst: str | None = None, times: int = 1) -> bool:
        """Whether a charge would be accepted now, so many times."""
        ...

    def charge(
        self,
        question: str,
        guarantee: Guarantee,
        parts: Sequence[Mapping[str, Any]],
        *,
        analyst: str | None = None,
        key: str | None = None,
    ) -> Entry:
        """Write a charge, or raise BudgetError and write nothing; a key that was charged is not charged again."""
        ...

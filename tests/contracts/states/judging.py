"""What an adapter finds, and how it is judged: the truth may not exceed what is stated, and must come near it."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

ROUNDING = 1e-6  # of the floats in which laws are added up


class Convicted(AssertionError):  # noqa: N818
    """A stated guarantee that is below the truth, with its witness."""


@dataclass(frozen=True)
class Found:
    """What is stated for some events, and the true loss against a neighbour, or a number that it is not below."""

    events: Hashable
    neighbour: Hashable
    stated: float
    true: float

    @property
    def used(self) -> float:
        """The part of what is stated that is true."""
        return self.true / self.stated if self.stated > 0 else float("inf") if self.true > 1e-12 else 0.0


def judged(subject: Any, found: Iterable[Found], reached: float) -> Found:
    """The worst of all histories: not above what is stated, and not below the part that `reached` says."""
    worst = max(found, key=lambda one: one.used)
    if worst.used > 1 + ROUNDING:
        raise Convicted(
            f"{subject!r} states {worst.stated:.6g} for the events {worst.events!r}, and the truth is at least "
            f"{worst.true:.6g} against the neighbour {worst.neighbour!r}."
        )
    if worst.used < reached:
        raise Convicted(
            f"{subject!r} uses {worst.used:.4f} of what it states, at most, where {reached} is known to be reached: "
            "either it states too much, or its adapter does not see what it releases."
        )
    return worst

"""What a local protocol is. Read this file first, then `grr.py`, the smallest real one.

In the local model nobody is trusted: each person's device turns its own value into a report with coins of its own, and
only the report leaves. A protocol is a frozen dataclass with both sides: `client` makes a report, `estimate` reads
many. A new protocol is one file of this package: the class, and a list `examples` of its instances, which the suite
`tests/contracts/test_local.py` finds and tests; the gallery finds it, too. `KINDS` of `wire.py` lists the protocols
whose reports can be collected.

A report is a whole number or a tuple of them; the reports of many people are an array with one row for each. `layout`
says which numbers: how reports are checked, how long they are and how they travel (`wire.py`) follows from it.
Collectors need not keep reports: an `Aggregate` holds the counts that the estimate needs and grows with the domain
alone; aggregates add up in any order.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, PrivacyError
from noisette.exact.frozen import Read
from noisette.exact.number import Number, positive
from noisette.exact.random import Random
from noisette.exact.rational import exp_down
from noisette.privacy import Neighbours, Pure

__all__ = [
    "Aggregate",
    "Collectable",
    "Epsilon",
    "Estimate",
    "Layout",
    "LocalProtocol",
    "Report",
    "as_reports",
    "checked_reports",
    "epsilon_of",
    "foreign",
    "odds",
    "pure_of",
    "rectangular",
]

Report: TypeAlias = int | tuple[int, ...]
Layout: TypeAlias = int | tuple[range, ...]
"""What a report holds: a row of bytes with that many bits, or whole numbers from these ranges."""
LARGEST_AGGREGATE = 1 << 26  # counts, for which an aggregate takes half a gigabyte


def epsilon_of(value: Number, name: str = "epsilon") -> Fraction:
    """Read what a report may cost: at least 1e-9, at most 100."""
    number = positive(value, name, most=100)
    if number < Fraction(1, 10**9):
        raise InputError(f"{name} must be at least 1e-9: with less, reports say nothing.")
    return number


Epsilon: TypeAlias = Annotated[Read[Number, Fraction], epsilon_of]
"""What each report costs its sender; above 100 there is no privacy to speak of."""


@lru_cache(maxsize=256)
def odds(epsilon: Fraction) -> Fraction:
    """Return e^epsilon as a rational, rounded down by less than 2^-90 of it: stated probabilities are built on it.

    >>> float(odds(Fraction(1)))
    2.718281828459045
    """
    return exp_down(epsilon)


class Estimate(Protocol):
    """What a collector learns: an unbiased estimate with its error."""

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return the estimate as a table: a row for each number, with the ends `low` and `high` of its error bar."""
        ...

    def variance(self) -> Any:
        """Return the variance of the estimate over the coins of the clients."""
        ...

    def interval(self, level: float = 0.95) -> Any:
        """Return (low, high), which contain the truth with at least that probability."""
        ...


@runtime_checkable
class Collectable(Protocol):
    """What a collector knows about a protocol: which reports there are, how to count them, and what they say."""

    epsilon: Any

    @property
    def cells(self) -> int:
        """The length of an aggregate."""
        ...

    @property
    def layout(self) -> Layout:
        """What a report holds: a whole number below `cells`, unless the protocol says otherwise."""
        return (range(self.cells),)

    @property
    def bits(self) -> int:
        """The length of a report in bits."""
        layout = self.layout
        return layout if isinstance(layout, int) else sum((len(numbers) - 1).bit_length() for numbers in layout)

    def possible(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which reports of this layout a client can make: all, unless the protocol says otherwise."""
        return np.ones(len(reports), bool)

    def derived(self) -> dict[str, int]:
        """Return numbers that clients in other languages need and cannot compute from the fields exactly."""
        return {}

    def counted(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Return the cells of an aggregate for these reports; the cells of two batches add up."""
        assert not isinstance(self.layout, int)
        return np.bincount(checked_reports(self, reports, *self.layout), minlength=self.cells)

    def estimated(self, aggregate: "Aggregate") -> Any:
        """Return the estimate from an aggregate with at least one report."""
        ...

    def guarantee(self) -> Any:
        """Return what holds for each report, whoever reads it."""
        ...

    def empty(self) -> "Aggregate":
        """Return an aggregate without reports."""
        if self.cells > LARGEST_AGGREGATE:
            raise InputError(
                "This domain is too large for an aggregate: use OLH, and ask its `supports` for a list of values."
            )
        return Aggregate(self, np.zeros(self.cells, np.int64))

    def estimate(self, reports: Any) -> Any:
        """Return the estimate from reports, or from an aggregate of them."""
        aggregate = reports if isinstance(reports, Aggregate) else self.empty().add(reports)
        if aggregate.protocol != self:
            raise InputError(
                "These are the counts of another protocol: estimate with the protocol that collected them."
            )
        if not aggregate.people:
            raise InputError("There are no reports yet: add some before you estimate.")
        return self.estimated(aggregate)


@runtime_checkable
class LocalProtocol(Collectable, Protocol):
    """How one person reports, and what many reports say."""

    def client(self, value: Any, rng: Random = ...) -> Report:
        """Return one person's report, the specification of `clients`; how long it takes depends on its coins."""
        ...

    def clients(self, values: Any, rng: Random = ...) -> NDArray[Any]:
        """Return the reports of many people, one row each, with the law of `client`."""
        ...

    def likelihood(self, report: Report, value: Any) -> Fraction:
        """Return P(report | value) for one of `reports()`, exact in terms of `odds(epsilon)`."""
        ...

    def values(self) -> Iterable[Any]:
        """Return every value that a person can have."""
        ...

    def reports(self) -> Iterable[Report]:
        """Return every report that a client can make; only for small domains."""
        layout = self.layout
        assert not isinstance(layout, int)
        return layout[0] if len(layout) == 1 else product(*layout)

    def guarantee(self) -> Pure:
        """Return what holds for each report, whoever reads it: Pure(epsilon) under replace."""
        return Pure(self.epsilon, neighbours=Neighbours.REPLACE)


@dataclass(eq=False)
class Aggregate:
    """What a collector keeps: counts, and how many people reported. It never keeps a report.

    >>> from noisette.local import GRR
    >>> protocol = GRR(1, domain=3)
    >>> morning, evening = protocol.empty().add([0, 2, 2]), protocol.empty().add([1])
    >>> (morning + evening).counts.tolist(), (morning + evening).people
    ([1, 1, 2], 4)
    """

    protocol: Collectable
    counts: NDArray[np.int64]
    people: int = 0

    def add(self, reports: Any) -> "Aggregate":
        """Count more reports; if one of them cannot be of this protocol, none is counted."""
        array = as_reports(self.protocol, reports)
        self.counts = self.counts + self.protocol.counted(array)
        self.people += len(array)
        return self

    def __add__(self, other: "Aggregate") -> "Aggregate":
        """Return the aggregate of both collectors' reports."""
        if self.protocol != other.protocol:
            raise InputError("Only aggregates of the same protocol with the same parameters add up.")
        return Aggregate(self.protocol, self.counts + other.counts, self.people + other.people)


def rectangular(given: Any) -> NDArray[Any] | None:
    """Return lists as an array, or None if rows differ in length or numbers are too large for one."""
    try:
        return np.asarray(given)
    except (ValueError, OverflowError):
        return None


def as_reports(protocol: object, reports: Any) -> NDArray[Any]:
    """Return reports as an array, whatever they hold."""
    array = rectangular(reports)
    if array is None:
        raise foreign(protocol, "a row of the same length")
    return array


def pure_of(protocol: LocalProtocol) -> Pure:
    """Return the guarantee of a protocol; one that promises no differential privacy is refused."""
    found = protocol.guarantee() if isinstance(protocol, Collectable) else None
    if not isinstance(found, Pure):
        raise PrivacyError("This protocol promises no differential privacy: use one with an epsilon for each report.")
    return found


def foreign(protocol: object, form: str) -> InputError:
    """Return the error for reports that no client of this protocol can have made."""
    return InputError(f"These are not reports of this {type(protocol).__name__} protocol: give {form} for each person.")


def checked_reports(protocol: object, reports: Any, *layout: range) -> NDArray[np.int64]:
    """Read reports of whole numbers: one column for each range, which contains its numbers."""
    *others, last = [f"{numbers[0]} to {numbers[-1]}" for numbers in layout]
    form = f"whole numbers from {', '.join(others)} and {last}" if others else f"a whole number from {last}"
    array = as_reports(protocol, reports)
    shape = array.shape[1:] == (() if len(layout) == 1 else (len(layout),))
    if array.size and (array.dtype.kind not in "iu" or not shape or array.ndim == 0):
        raise foreign(protocol, form)
    if array.size and not ((array >= [r.start for r in layout]) & (array < [r.stop for r in layout])).all():
        raise foreign(protocol, form)
    return array.astype(np.int64).reshape((-1,) if len(layout) == 1 else (-1, len(layout)))

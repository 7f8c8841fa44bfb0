"""What is spent and what is left, for people to look at."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from noisette import text
from noisette.curator.ledger import Entry
from noisette.privacy import Approx, Guarantee, Promise
from noisette.releases.figures import left, promise, rounded, spent

__all__ = ["Budget"]

_MOST = 1_000_000


@dataclass(frozen=True, repr=False)
class Budget:
    """The owner's budget: in all, spent, left, and the charges so far.

    `spent` is the least budget of this kind that would have allowed the charges, `left` the most that one more question
    may cost. The delta of an Approx budget stands for all of it and is set aside from the start: it is not spent bit by
    bit, but for the part that questions with unknown keys take (`left.delta0`). `allows` tells whether a cost fits.

    >>> from noisette.privacy import Pure
    >>> entry = Entry(1, "a question", Pure("0.1"), ())
    >>> left = Approx("0.9", "5e-7")
    >>> Budget(Approx(1, "1e-6"), Approx("0.1", "1e-6"), left, (entry,), lambda cost: cost <= left)
    budget  ε = 1 at δ = 1e-6
    spent   ε = 0.1
    left    ε = 0.9 in one question; δ = 5e-7 for unknown keys
    1 question was charged; 9 more like the last fit
    """

    total: Promise
    spent: Promise
    left: Promise
    entries: tuple[Entry, ...]
    allows: Callable[[Guarantee], bool] = field(compare=False)

    @cached_property
    def more(self) -> int | None:
        """How many more questions at the price of the last one fit, up to a million; None before the first."""
        if not self.entries:
            return None
        return _most(lambda k: self.allows(self.entries[-1].guarantee * k))

    def _rows(self) -> list[list[str]]:
        return [["budget", _total(self.total)], ["spent", spent(self.spent)], ["left", _left(self.left)]]

    def _note(self) -> str:
        count = len(self.entries)
        charged = "1 question was charged" if count == 1 else f"{count:,} questions were charged"
        if self.more is None:
            return "Nothing was asked yet"
        known = (
            f"{self.more:,} more like the last fit" if self.more < _MOST else f"more than {_MOST:,} like the last fit"
        )
        return f"{charged}; {known}" if self.more else f"{charged}; no more like the last fits"

    def __repr__(self) -> str:
        return "\n".join([*(f"{name.ljust(6)}  {amount}" for name, amount in self._rows()), self._note()])

    def _repr_html_(self) -> str:
        return text.as_html("", ["", "guarantee"], self._rows(), [self._note()])


def _total(total: Promise) -> str:
    if isinstance(total, Approx):
        return f"ε = {rounded(total.eps, up=True)} at δ = {rounded(total.delta0, up=True, digits=3)}"
    return promise(total)


def _left(amount: Promise) -> str:
    own = amount.delta0 if isinstance(amount, Approx) else 0
    keys = f"; δ = {rounded(own, up=False, digits=3)} for unknown keys" if own else ""
    return f"{left(amount)} in one question{keys}"


def _most(fits: Callable[[int], bool]) -> int:
    """The largest number that fits, by doubling and bisection.

    >>> _most(lambda k: k <= 37)
    37
    """
    low, high = 0, 1
    while high <= _MOST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return min(low, _MOST)

"""What is spent and what is left, for people to look at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

from noisette.answers.figures import left, promise, rounded, spent
from noisette.answers.record import laid_out, stated
from noisette.curator.pricing import MOST, how_often
from noisette.ledger import Entry, Ledger
from noisette.ledger.accounts import ALL, Share
from noisette.ledger.ledger import tight
from noisette.privacy import ZCDP, Approx, Promise
from noisette.text import as_html, in_notebook

__all__ = ["Budget"]

_QUICK = 100  # different costs that are composed in a fraction of a second
_DELTA = Fraction(1, 10**6)  # for a budget that names none


@dataclass(frozen=True, repr=False)
class Budget:
    """The owner's budget: in all, spent, left, and the charges so far.

    `spent` is the least budget of this kind that would have allowed the charges, `left` the most that one more question
    may cost. The delta of an Approx budget stands for all of it and is set aside from the start: it is not spent bit by
    bit, except the part that questions with unknown keys take (`left.delta`). `allows` says whether a cost fits a given
    number of times, `shares` are those of analysts: of the one who looks, or of all.

    >>> from noisette.privacy import Pure
    >>> entry = Entry(1, "a question", Pure("0.1"), ())
    >>> left = Approx("0.9", "5e-7")
    >>> Budget(Approx(1, "1e-6"), Approx("0.1", "1e-6"), left, (entry,), lambda cost, times: cost * times <= left)
    budget  ε = 1 at δ = 1e-6
    spent   ε = 0.1
    left    ε = 0.9 in one question; δ = 5e-7 for unknown keys
    1 question was charged; 9 more like the last fit
    """

    total: Promise
    spent: Promise
    left: Promise
    entries: tuple[Entry, ...]
    allows: Callable[..., bool] | None = field(compare=False)
    shares: Mapping[str, Share] = field(default_factory=dict)

    @staticmethod
    def of(ledger: Ledger, analyst: str | None = None) -> "Budget":
        """The budget of a ledger as an analyst sees it, or as its owner does."""
        standing = ledger.standing(everyone=True)  # read once: others may charge meanwhile
        account = standing.accounts[ALL]
        shares = {who: share for who, share in standing.shares.items() if analyst in (None, who)}
        allows = None if shares and analyst is None else partial(ledger.allows, analyst=analyst)
        return Budget(account.budget, account.filter.spent, account.filter.left, ledger.entries, allows, shares)

    @cached_property
    def more(self) -> int | None:
        """How many more questions at the price of the last one fit, up to a million; None if that is unknown.

        Before the first question, and for all analysts together where each has a share, it is unknown.
        """
        allows = self.allows
        if not self.entries or allows is None:
            return None
        return how_often(allows, self.entries[-1].guarantee)

    @property
    def delta(self) -> Fraction | None:
        """The delta of the tight figure: the budget's own, a millionth for zCDP, none for a pure epsilon."""
        match self.total:
            case Approx(_, delta):
                return delta or None
            case ZCDP():
                return _DELTA
            case _:
                return None

    @cached_property
    def tight(self) -> float | None:
        """The epsilon of all charges at `delta`, composed tightly: what they promise had all been settled in advance.

        It shows how much the filter leaves unused, and is no promise to one who chose costs along the way. With many
        different costs it takes a while, so it is shown only where there are few.
        """
        return None if self.delta is None else tight((entry.guarantee for entry in self.entries), self.delta)

    @property
    def _quick(self) -> bool:
        if len(self.entries) > 10 * _QUICK:
            return False
        return len({(entry.guarantee, entry.guarantee.losses) for entry in self.entries}) <= _QUICK

    def _tightly(self) -> list[list[str]]:
        """A row for the tight figure, if it shows something that the filter's does not."""
        if not self.entries or not self._quick or self.tight is None or self.delta is None:
            return []
        figure = f"ε = {rounded(self.tight, up=True)}"
        if isinstance(self.spent, Approx) and self.tight > 0.999 * self.spent.epsilon:
            return []
        at = f" at δ = {rounded(self.delta, up=True, digits=3)}" if isinstance(self.total, ZCDP) else ""
        return [["tight", f"{figure}{at}, had all costs been settled in advance"]]

    def _rows(self) -> list[list[str]]:
        rows = [["budget", _total(self.total)], ["spent", spent(self.spent)], *self._tightly()]
        rows.append(["left", _left(self.left)])
        return rows + [[f"share of {who}", _share(share)] for who, share in self.shares.items()]

    def _note(self) -> str:
        count = len(self.entries)
        charged = "1 question was charged" if count == 1 else f"{count:,} questions were charged"
        if self.more is None:
            return charged if count else "Nothing was asked yet"
        known = f"{self.more:,} more like the last fit" if self.more < MOST else f"more than {MOST:,} like the last fit"
        return f"{charged}; {known}" if self.more else f"{charged}; no more like the last fits"

    def to_json(self) -> str:
        """All of it as JSON, with exact numbers as texts; `tight` takes a while with many different costs."""
        shares = {who: {part: stated(x) for part, x in share._asdict().items()} for who, share in self.shares.items()}
        return laid_out(
            {
                "budget": stated(self.total),
                "spent": stated(self.spent),
                "left": stated(self.left),
                "tight": None if self.tight is None else {"epsilon": self.tight, "delta": str(self.delta)},
                "charges": len(self.entries),
                "more_like_last": self.more,
                "shares": shares,
            }
        )

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join([*(f"{name.ljust(width)}  {amount}" for name, amount in rows), self._note()])

    def _repr_html_(self) -> str:
        return in_notebook(_bar(self.spent, self.total)) + as_html("", ["", "guarantee"], self._rows(), [self._note()])


def _bar(spent: Promise, total: Promise) -> str:
    """How much of the budget is spent, as a bar."""
    share = 100 * min(1.0, float(spent.size / total.size)) if total.size else 100.0
    return f'<div class="bar" title="{share:.0f} % spent"><div style="width: {share:.1f}%"></div></div>'


def _total(total: Promise) -> str:
    if isinstance(total, Approx):
        return f"ε = {rounded(total.epsilon, up=True)} at δ = {rounded(total.delta, up=True, digits=3)}"
    return promise(total)


def _left(amount: Promise) -> str:
    own = amount.delta
    keys = f"; δ = {rounded(own, up=False, digits=3)} for unknown keys" if own else ""
    return f"{left(amount)} in one question{keys}"


def _share(share: Share) -> str:
    return f"{promise(share.total)}; spent {spent(share.spent)}, left {left(share.left)} in one question"

"""A budget and what was taken from it, as a value that can be written down and read back exactly."""

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from noisette.errors import BudgetError, PrivacyError
from noisette.ledger.advice import RESTORE
from noisette.ledger.entry import amounts, canonical, promise_of, said, written
from noisette.ledger.refusal import refusal, unfit
from noisette.privacy import Approx, Filter, Guarantee, Neighbours, Promise, Pure
from noisette.privacy.charges import Charge, FilterState

__all__ = ["PLAIN", "Account"]

PLAIN = Fraction(1, 10)
"""The part of delta for plain sums with Gaussian noise in them, of a ledger that is begun now."""


@dataclass(frozen=True)
class Account:
    """A budget and what was taken from it; every decision is that of `privacy.Filter`.

    Half of a budget's delta is set aside for answers that have a delta of their own (unknown keys): it costs the others
    next to nothing, since epsilon grows with the logarithm of 1/delta. `plain` is the part of delta with which Gaussian
    noise takes part in plain sums; a ledger that was begun without it stays so, since what is promised does not change.
    """

    budget: Promise
    state: FilterState
    plain: Fraction = PLAIN

    @staticmethod
    def of(budget: Promise, plain: Fraction = PLAIN) -> "Account":
        """An account from which nothing was taken."""
        return Account(budget, FilterState(Charge(), budget.neighbours, None), plain)

    @property
    def filter(self) -> Filter:
        """The filter that goes on from here."""
        if not isinstance(self.budget, Approx):
            return Filter(self.budget, state=self.state)
        d = self.budget.delta
        return Filter(self.budget, reserve=d / 2, plain=self.plain * d, state=self.state)

    def under(self, budget: Promise) -> "Account":
        """What was taken, under another budget; raise PrivacyError where their relations differ."""
        return replace(self, budget=budget, state=self.state.plus(Charge(), budget.neighbours))

    def plus(self, charge: Charge, neighbours: Neighbours | None) -> "Account":
        """The account after a charge that was accepted."""
        return replace(self, state=self.state.plus(charge, neighbours))

    def charged(self, guarantee: Guarantee, whose: str = "The budget") -> "Account":
        """The account after a charge; raise BudgetError if it does not fit, PrivacyError if it is of another kind."""
        filter = self.filter
        try:
            filter.charge(guarantee)
        except BudgetError:
            raise BudgetError(refusal(filter, guarantee, whose)) from None
        except PrivacyError as fault:
            raise PrivacyError(unfit(self.budget, guarantee) or str(fault)) from None
        return replace(self, state=filter.state)

    def fits(self) -> bool:
        """Whether what was taken keeps the budget."""
        return self.filter.allows(Pure(0))

    # As texts

    @property
    def text(self) -> str:
        """All of it as JSON, in one form."""
        relation = None if self.state.neighbours is None else str(self.state.neighbours)
        return canonical(
            {
                "budget": said(self.budget),
                "total": written(self.state.total),
                "neighbours": relation,
                "rule": self.state.rule,
                **({"plain": self.plain} if self.plain else {}),
            }
        )

    @staticmethod
    def read(text: str) -> "Account":
        """An account from its text.

        >>> from noisette.privacy import Pure
        >>> account = Account.of(Pure(1)).charged(Pure("1/3"))
        >>> Account.read(account.text) == account, account.filter.left
        (True, Pure('2/3'))
        """
        try:
            parts: dict[str, Any] = json.loads(text)
            relation = None if parts["neighbours"] is None else Neighbours(parts["neighbours"])
            state = FilterState(amounts(parts["total"]), relation, parts["rule"])
            return Account(promise_of(parts["budget"]), state, Fraction(parts.get("plain", 0)))
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
            raise PrivacyError(f"The running sums of the ledger were changed: {RESTORE}.") from None

"""A budget and what was taken from it, as a value that can be written down and read back exactly."""

import json
from dataclasses import dataclass, replace
from typing import Any

from noisette.curator.ledger.entry import amounts, canonical, promise_of, said, written
from noisette.errors import PrivacyError
from noisette.privacy import Approx, Filter, Guarantee, Neighbours, Promise, Pure
from noisette.privacy.charges import Charge, State

__all__ = ["Account"]


@dataclass(frozen=True)
class Account:
    """A budget and what was taken from it; every decision is that of `privacy.Filter`.

    Half of a budget's delta is set aside for answers that have a delta of their own (unknown keys, Gaussian noise): it
    costs the others next to nothing, since epsilon grows with the logarithm of 1/delta.
    """

    budget: Promise
    state: State

    @staticmethod
    def of(budget: Promise) -> "Account":
        """An account from which nothing was taken."""
        return Account(budget, State(Charge(), budget.neighbours, None))

    @property
    def filter(self) -> Filter:
        """The filter that goes on from here."""
        reserve = self.budget.delta0 / 2 if isinstance(self.budget, Approx) else None
        return Filter(self.budget, reserve=reserve, state=self.state)

    def under(self, budget: Promise) -> "Account":
        """What was taken, under another budget; raise PrivacyError where their relations differ."""
        return Account(budget, self.state.plus(Charge(), budget.neighbours))

    def plus(self, charge: Charge, neighbours: Neighbours | None) -> "Account":
        """The account after a charge that was accepted."""
        return replace(self, state=self.state.plus(charge, neighbours))

    def charged(self, guarantee: Guarantee) -> "Account":
        """The account after a charge; raise BudgetError if it does not fit."""
        filter = self.filter
        filter.charge(guarantee)
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
            return Account(promise_of(parts["budget"]), State(amounts(parts["total"]), relation, parts["rule"]))
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
            raise PrivacyError("The running sums of the ledger were changed: restore a backup and accept it.") from None

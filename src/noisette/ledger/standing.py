"""Where a ledger stands: what its entries add up to. One rule for writing one and for reading all again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from noisette.errors import InputError, PrivacyError
from noisette.ledger.account import PLAIN, Account
from noisette.ledger.entry import FORMAT, amounts, name, promise_of, relation, said
from noisette.privacy import Guarantee, Promise

__all__ = ["ALL", "Share", "Standing", "act_body", "open_body", "replayed"]

ALL = ""
"""The account of all analysts together."""

_NO_SHARE = (
    "The budget is shared out and this analyst has no share: say who asks (--analyst, or analyst= in Python), or let "
    "the owner give a share (`noisette ledger share`, or ledger.share in Python)."
)


class Share(NamedTuple):
    """What an analyst may spend in all, what is spent of it, and what is left."""

    total: Promise
    spent: Promise
    left: Promise


@dataclass
class Standing:
    """What the entries add up to.

    `accounts` by analyst, ALL for the budget · `shared` whether analysts have shares · `dataset` the ledger's own
    random name · `data` fingerprints of what was opened, by table · `place` where it was created or accepted.
    """

    accounts: dict[str, Account] = field(default_factory=dict)
    shared: bool = False
    dataset: str = ""
    data: Mapping[str, str] | None = None
    place: str = ""

    @property
    def about(self) -> dict[str, Any]:
        """All but the accounts."""
        return {"shared": self.shared, "dataset": self.dataset, "data": self.data, "place": self.place}

    def concerned(self, analyst: str | None) -> list[str]:
        """Whose accounts a charge takes from."""
        if not self.shared:
            return [ALL]
        if analyst is None:
            raise PrivacyError(_NO_SHARE)
        return [ALL, analyst]

    def after(self, guarantee: Guarantee, analyst: str | None) -> dict[str, Account]:
        """The accounts that a charge changes; raise BudgetError if one of them does not hold it."""
        return {
            whose: self._known(whose).charged(guarantee, f"The share of {whose}" if whose else "The budget")
            for whose in self.concerned(analyst)
        }

    def allows(self, guarantee: Guarantee, analyst: str | None, times: int = 1) -> bool:
        """Whether all accounts that a charge takes from hold it, so many times."""
        return all(self._known(whose).filter.allows(guarantee, times=times) for whose in self.concerned(analyst))

    def _known(self, whose: str) -> Account:
        if whose not in self.accounts:
            raise PrivacyError(_NO_SHARE)
        return self.accounts[whose]

    def apply(self, body: Mapping[str, Any]) -> None:
        """Take in an entry that was accepted."""
        match body["kind"], body.get("act"):
            case "charge", _:
                for whose in self.concerned(body["analyst"]):
                    self.accounts[whose] = self.accounts[whose].plus(amounts(body["charge"]), relation(body))
            case "answer" | "release" | "purchase", _:
                return
            case "open", _:
                self.accounts = {ALL: Account.of(promise_of(body["budget"]), Fraction(body.get("plain", 0)))}
                self.dataset, self.data, self.place = body["dataset"], body["data"], body["place"]
                self._share(body["shares"])
            case "act", "budget":
                self.accounts[ALL] = self.accounts[ALL].under(promise_of(body["budget"]))
            case "act", "share":
                self._share(body["shares"])
            case "act", "accept":
                self.place = body["place"]
            case "act", "data":
                self.data = body["data"]
            case _:
                raise InputError(f"Entry {body['number']} is of an unknown kind: update Noisette to read this ledger.")

    def _share(self, shares: Mapping[str, Any] | None) -> None:
        """Give analysts new shares; who had one keeps what was taken from it, and nobody loses a share."""
        self.shared = self.shared or shares is not None
        for analyst, share in (shares or {}).items():
            new = promise_of(share)
            fresh = Account.of(new, self.accounts[ALL].plain)
            self.accounts[analyst] = self.accounts.get(analyst, fresh).under(new)

    @property
    def shares(self) -> dict[str, Share]:
        """The shares of analysts, by name."""
        accounts = ((who, account) for who, account in sorted(self.accounts.items()) if who != ALL)
        return {who: Share(a.budget, a.filter.spent, a.filter.left) for who, a in accounts}

    def sound(self) -> bool:
        """Whether no account is overdrawn."""
        return all(account.fits() for account in self.accounts.values())


def replayed(bodies: Iterable[Mapping[str, Any]]) -> Standing:
    """Where these entries lead; raise PrivacyError that names the first at which a budget is overdrawn.

    Sums only grow, so it is enough to look before each act and at the end.
    """
    standing, last = Standing(), 0
    for body in bodies:
        if (body["kind"] == "open") != (last == 0):
            raise PrivacyError(f"Entry {body['number']} of the ledger opens it a second time, or another one should.")
        if body["kind"] == "act" and not standing.sound():
            raise PrivacyError(_overdrawn(last))
        try:
            standing.apply(body)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise PrivacyError(f"Entry {body['number']} of the ledger makes no sense after those before it.") from None
        last = body["number"]
    if not standing.sound():
        raise PrivacyError(_overdrawn(last))
    return standing


def _overdrawn(number: int) -> str:
    return f"The entries up to {number} of the ledger take more than the budget of their time: stop, and find out why."


def open_body(
    budget: Promise,
    shares: Mapping[str, Promise] | None,
    data: Mapping[str, str] | None,
    start_over: str | None = None,
) -> dict[str, Any]:
    """The first entry but for the names of the ledger and its place: whose budget this is, and how large.

    Where there was a ledger before, it says why its owner starts over.
    """
    fingerprints = None if data is None else dict(data)
    return {
        "format": FORMAT,
        "kind": "open",
        "data": fingerprints,
        "budget": said(budget),
        "shares": said_shares(shares),
        "plain": str(PLAIN),
        **({} if start_over is None else {"start_over": reason(start_over)}),
    }


def act_body(act: str, why: str, **what: Any) -> dict[str, Any]:
    """Something that the owner did, with the reason."""
    return {"format": FORMAT, "kind": "act", "act": act, "why": reason(why), **what}


def reason(why: str) -> str:
    """The reason of something that the owner did."""
    if not isinstance(why, str) or not why.strip():
        raise InputError("Say why, for those who read the ledger later, such as 'the ethics board agreed'.")
    return why


def said_shares(shares: Mapping[str, Promise] | None) -> dict[str, Any] | None:
    """Shares as exact texts."""
    return None if shares is None else {str(name(who, "analyst")): said(share) for who, share in shares.items()}

"""The running sums of a ledger: each budget with what was taken from it, and what all entries add up to.

`Account` is one budget, `Standing` all that the entries say: one rule for writing one entry and for reading all again.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.exact.number import Number, fraction, fraction_of
from noisette.ledger.entry import FORMAT, amounts, canonical, name, promise_of, relation, to_record, written
from noisette.ledger.refusal import RESTORE, refusal, unfit
from noisette.privacy import Approx, Filter, Guarantee, Neighbours, Promise, Pure
from noisette.privacy.charges import Charge, FilterState, Rule

__all__ = ["ALL", "Account", "Parts", "Share", "Standing", "act_body", "open_body", "replayed", "share_records"]

_MOST = Fraction(9, 10)


@dataclass(frozen=True)
class Parts:
    """The parts of a budget's delta, as fractions of it: they are written when a ledger opens and never change.

    `own` for answers that have a delta of their own, as unknown keys do · `plain` for Gaussian noise in plain sums ·
    `zcdp` for the zCDP rule beside the Gaussian one, which has the rest; 0 in a ledger of earlier versions, whose first
    charge chose between the two.
    """

    own: Fraction = Fraction(1, 2)
    plain: Fraction = Fraction(0)
    zcdp: Fraction = Fraction(0)

    @staticmethod
    def new(budget: Promise, keys_delta: Number | None = None) -> "Parts":
        """The parts of a ledger that is begun now: of what `keys_delta` leaves, an 18th, three 18ths and the rest.

        >>> {name: str(part) for name, part in vars(Parts.new(Approx(1, "1e-6"))).items()}
        {'own': '1/10', 'plain': '1/20', 'zcdp': '3/20'}
        """
        own = Fraction(1, 10)
        if keys_delta is not None:
            if not budget.delta:
                raise InputError("keys_delta is a part of the budget's delta: leave it out, or open with a delta.")
            own = fraction(keys_delta, "keys_delta") / budget.delta
            if not 0 <= own <= _MOST:
                raise InputError(
                    f"keys_delta must lie between 0 and {_MOST} of the budget's delta: it is a part of it."
                )
        return Parts(own, (1 - own) / 18, (1 - own) / 6)

    @staticmethod
    def read(texts: Mapping[str, Any]) -> "Parts":
        """The parts that an opening or an account names; what one of an earlier version does not name is as it was."""
        old = Parts()
        return Parts(*(fraction_of(texts.get(name, part), "A part of delta") for name, part in vars(old).items()))

    @property
    def texts(self) -> dict[str, str]:
        """What `read` reads: what differs from the first version."""
        return {name: str(part) for name, part in vars(self).items() if part != getattr(Parts(), name)}

    @property
    def rule(self) -> Rule | None:
        """The rule of all charges; None where the first charge chooses it."""
        return "both" if self.zcdp else None


@dataclass(frozen=True)
class Account:
    """A budget and what was taken from it; every decision is that of `privacy.Filter`.

    `parts` of delta were settled when the ledger opened: what is promised does not change.
    """

    budget: Promise
    state: FilterState
    parts: Parts

    @staticmethod
    def of(budget: Promise, parts: Parts | None = None) -> "Account":
        """An account from which nothing was taken."""
        settled = Parts.new(budget) if parts is None else parts
        return Account(budget, FilterState(Charge(), budget.neighbours, settled.rule), settled)

    @property
    def filter(self) -> Filter:
        """The filter that goes on from here."""
        if not isinstance(self.budget, Approx):
            return Filter(self.budget, state=self.state)
        d, parts = self.budget.delta, self.parts
        zcdp = parts.zcdp * d if parts.rule == "both" else None
        return Filter(self.budget, reserve=parts.own * d, plain=parts.plain * d, zcdp=zcdp, state=self.state)

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
                "budget": to_record(self.budget),
                "total": written(self.state.total),
                "neighbours": relation,
                "rule": self.state.rule,
                **self.parts.texts,
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
            return Account(promise_of(parts["budget"]), state, Parts.read(parts))
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
            raise PrivacyError(f"The running sums of the ledger were changed: {RESTORE}.") from None


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
    random name · `data` fingerprints of what was opened, by table · `place` where it was created or accepted ·
    `pin_key` keys the names of states (see `pins`; none in earlier versions) · `state` that was pinned last.
    """

    accounts: dict[str, Account] = field(default_factory=dict)
    shared: bool = False
    dataset: str = ""
    data: Mapping[str, str] | None = None
    place: str = ""
    pin_key: str = ""
    state: str = ""

    @property
    def about(self) -> dict[str, Any]:
        """All but the accounts."""
        pins = {"pin_key": self.pin_key, "state": self.state}
        known = {name: part for name, part in pins.items() if part}
        return {"shared": self.shared, "dataset": self.dataset, "data": self.data, "place": self.place, **known}

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
        """Whether all accounts that a charge takes from hold it, `times` times."""
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
                self.state = body["state"] if "pin" in body else self.state
            case ("answer" | "release" | "purchase" | "request", _) | ("act", "approve" | "decline"):
                return
            case "open", _:
                self.accounts = {ALL: Account.of(promise_of(body["budget"]), Parts.read(body))}
                self.dataset, self.data, self.place = body["dataset"], body["data"], body["place"]
                self.pin_key = body.get("pin_key", "")
                self._share(body["shares"])
            case "act", "budget":
                self.accounts[ALL] = self.accounts[ALL].under(promise_of(body["budget"]))
            case "act", "share":
                self._share(body["shares"])
            case "act", "accept":
                self.place = body["place"]
            case "act", "data":
                self.data = body["data"]
            case "act", "pins":
                self.pin_key = body["pin_key"]
            case _:
                raise InputError(f"Entry {body['number']} is of an unknown kind: update Noisette to read this ledger.")

    def _share(self, shares: Mapping[str, Any] | None) -> None:
        """Give analysts new shares; who had one keeps what was taken from it, and nobody loses a share."""
        self.shared = self.shared or shares is not None
        for analyst, share in (shares or {}).items():
            new = promise_of(share)
            fresh = Account.of(new, self.accounts[ALL].parts)
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
    start_over: str | None,
    parts: Parts,
) -> dict[str, Any]:
    """The first entry without the names of the ledger and its place: whose budget this is, and how large.

    Where there was a ledger before, it says why its owner starts over.
    """
    fingerprints = None if data is None else dict(data)
    return {
        "format": FORMAT,
        "kind": "open",
        "data": fingerprints,
        "budget": to_record(budget),
        "shares": share_records(shares),
        **parts.texts,
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


def share_records(shares: Mapping[str, Promise] | None) -> dict[str, Any] | None:
    """Shares as exact texts."""
    return None if shares is None else {str(name(who, "analyst")): to_record(share) for who, share in shares.items()}

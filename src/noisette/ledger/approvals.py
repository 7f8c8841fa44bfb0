"""Questions that wait for the owner: requests, and what the owner said to them, all entries of the ledger.

A request names the key under which its question would be charged, so an approval holds for one charge and no other. Its
short name is the beginning of that key; the decision is written with the whole key.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from noisette.errors import BudgetError, InputError
from noisette.ledger.entry import FORMAT, name, promise_of, to_record
from noisette.privacy import Promise

__all__ = ["Request", "check_number", "request_body", "requested", "waiting"]

_SHORT = 12
_MOST = 100


@dataclass(frozen=True)
class Request:
    """A question above the spend that needs no approval: who asks what, for how much, and what the owner said."""

    key: str
    question: str
    spend: Promise
    analyst: str | None
    state: Literal["pending", "approved", "declined"] = "pending"

    @property
    def id(self) -> str:
        """What the owner calls it."""
        return self.key[:_SHORT]


def request_body(request: Request) -> dict[str, Any]:
    """A request without its number and time."""
    return {
        "format": FORMAT,
        "kind": "request",
        "of": name(request.key, "key"),
        "question": request.question,
        "spend": to_record(request.spend),
        "analyst": name(request.analyst, "analyst"),
    }


def requested(bodies: Iterable[Mapping[str, Any]]) -> dict[str, Request]:
    """The requests among some entries by their key, with the last decision on each."""
    found: dict[str, Request] = {}
    for body in bodies:
        match body["kind"], body.get("act"):
            case "request", _:
                new = Request(body["of"], body["question"], promise_of(body["spend"]), body["analyst"])
                found.setdefault(new.key, new)
            case "act", "approve" | "decline" as act if body["of"] in found:
                state: Any = "approved" if act == "approve" else "declined"
                found[body["of"]] = replace(found[body["of"]], state=state)
    return found


def waiting(requests: Iterable[Request], short: str) -> Request:
    """The one request whose key begins with a short name; raise InputError if there is none, or more than one."""
    known = [one for one in requests if isinstance(short, str) and short and one.key.startswith(short)]
    if not known:
        raise InputError("No question of that name waits for approval: `noisette approve` lists those that do.")
    if len(known) > 1:
        raise InputError("Several questions begin with that name: give more letters of it (`noisette approve --json`).")
    return known[0]


def check_number(requests: Iterable[Request], analyst: str | None) -> None:
    """Refuse a further request of an analyst of whom too many wait already."""
    if sum(one.analyst == analyst and one.state == "pending" for one in requests) >= _MOST:
        raise BudgetError(f"{_MOST} questions wait for the owner's approval already: wait for it, or spend less.")

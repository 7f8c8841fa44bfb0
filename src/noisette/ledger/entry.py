"""What an entry is: a JSON text that says what was done, in one form, forever.

format      1: the meaning of what is written never changes; a new meaning is a new number
kind        open (the first one), charge, answer (to a charge), release (of a record), purchase (of a declaration),
            request (of a question that needs the owner's approval), or act (what the owner did)
number      1, 2, 3, ...
time        the wall clock, for people: nothing depends on it

A charge says who asked (analyst), what (question, in canonical form), under which idempotency key, with which
mechanisms, parameters and sensitivities, under which relation (neighbours), what that guarantees, and what it takes
from a budget by each rule (`charge`, exact fractions; see noisette.privacy.charges). Where it is known by rho alone it
has a pair for plain sums (`plain`, `aside`); the opening says which part of delta is for these (`plain`; else none).
An answer says under which key it is kept, and the SHA-256 of its bytes: who changes, takes away or puts in an answer
is found like one who edits an entry. A release is written for each record that is released (see `receipt`). A purchase
says which bounds, keys or limit were bought with a charge, as lines of a policy, at what price and on which terms.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from noisette.answers.check import promised_by
from noisette.answers.record import FORMAT as RECORD
from noisette.answers.record import stated
from noisette.errors import InputError, NoisetteError
from noisette.exact.number import fraction_of
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Promise, Pure
from noisette.privacy.charges import Charge, charge_of

__all__ = [
    "FORMAT",
    "Entry",
    "amounts",
    "answer_body",
    "bought_last",
    "canonical",
    "charge_body",
    "checked",
    "covers",
    "digest",
    "drafted",
    "entry_of",
    "name",
    "new_key",
    "promise_of",
    "purchase_body",
    "relation",
    "same",
    "to_record",
    "written",
]

FORMAT = 1
_LONGEST = 200
_RULES, _PAIR = ("eps", "rho", "square", "delta", "slack"), ("plain", "aside")
_PURCHASE = ("table", "column", "what", "policy", "spend", "analyst", "terms")  # the first three: what it is about
_SAME = ("analyst", "question", "neighbours", "guarantee", "mechanisms")
_NUMBER = "A number of the ledger"
_MARGIN = 1 + Fraction(1, 2**30)  # numerical libraries differ in their last digits


@dataclass(frozen=True)
class Entry:
    """One charge: what was asked, in canonical form, what it promised, and with which mechanisms.

    `state` names the state of the data (see `pins`), `pin` says which it is, where an entry says so.
    """

    number: int
    question: str
    guarantee: Guarantee
    parts: tuple[Mapping[str, Any], ...]
    analyst: str | None = None
    key: str | None = None
    time: str = ""
    state: str | None = None
    pin: str | None = None


def drafted(
    question: str, guarantee: Guarantee, parts: Sequence[Mapping[str, Any]], analyst: str | None, key: str | None
) -> Entry:
    """A charge that any ledger can hold, before it has a number; raise InputError that says which part is none."""
    if not isinstance(question, str):
        raise InputError("The question of a charge must be a text that says what is measured.")
    charge_of(guarantee)
    if not isinstance(parts, Sequence) or not all(isinstance(part, Mapping) for part in parts):
        raise InputError("The mechanisms of a charge must be a list of records, a dictionary each; [] for none.")
    canonical({"question": question, "mechanisms": [dict(part) for part in parts]})
    return Entry(0, question, guarantee, tuple(parts), name(analyst, "analyst"), name(key, "key"))


def canonical(body: Mapping[str, Any]) -> str:
    """JSON in one form: names in order, no spaces, ASCII alone; what is no number or text as a text.

    >>> canonical({"b": Fraction(1, 3), "a": "é"})
    '{"a":"\\\\u00e9","b":"1/3"}'
    """
    try:
        return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False, default=str)
    except (ValueError, TypeError, RecursionError):
        raise InputError("A ledger holds texts and finite numbers, by names that are texts: write others so.") from None


def name(text: str | None, what: str) -> str | None:
    """An analyst or a key: None, or a text that any database can hold."""
    if text is not None and not (isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable()):
        raise InputError(f"The {what} must be a text of 1 to {_LONGEST} printable characters.")
    return text


def new_key(key: str | None) -> None:
    """Refuse a key for a new charge that could be the place of a state (`Book.advance`); those written before stay."""
    if key is not None and re.search(r"#[0-9]+\Z", key):
        raise InputError(
            "The key must not end in # and a number, which names the states of a stream: take another one."
        )


def charge_body(entry: Entry) -> dict[str, Any]:
    """A charge without its number and time."""
    return {
        "format": FORMAT,
        "kind": "charge",
        "analyst": name(entry.analyst, "analyst"),
        "key": name(entry.key, "key"),
        "question": entry.question,
        "neighbours": None if entry.guarantee.neighbours is None else str(entry.guarantee.neighbours),
        "guarantee": stated(entry.guarantee),
        "mechanisms": [dict(part) for part in entry.parts],
        "charge": written(charge_of(entry.guarantee)),
    }


def answer_body(key: str, answer: bytes) -> dict[str, Any]:
    """An answer that is kept, without its number and time."""
    return {"format": FORMAT, "kind": "answer", "of": key, "sha256": digest(answer)}


def purchase_body(key: str, purchase: Mapping[str, Any]) -> dict[str, Any]:
    """A purchase without its number and time: table, column, what, policy, spend, analyst and terms."""
    return {"format": FORMAT, "kind": "purchase", "of": key, **{name: purchase[name] for name in _PURCHASE}}


def bought_last(purchase: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> bool:
    """Whether this very purchase is the one that holds for what it is about."""
    about = [old for old in earlier if all(old[name] == purchase[name] for name in _PURCHASE[:3])]
    return bool(about) and all(about[-1][name] == purchase[name] for name in _PURCHASE)


def digest(answer: bytes) -> str:
    """What stands for the bytes of an answer in the chain."""
    return hashlib.sha256(answer).hexdigest()


def same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two charges are the same except for their number and time."""
    return all(canonical({"": old[name]}) == canonical({"": new[name]}) for name in _SAME)


# Reading


def to_record(budget: Promise) -> dict[str, Any]:
    """A budget as exact texts, with its relation if it names one."""
    if not isinstance(budget, Pure | Approx | ZCDP):
        raise InputError("A budget must be Pure, Approx or ZCDP: Approx(2, '1e-6').")
    return stated(budget) | ({} if budget.neighbours is None else {"neighbours": str(budget.neighbours)})


def promise_of(said: Mapping[str, Any], neighbours: Neighbours | None = None) -> Promise:
    """A promise from its exact texts.

    >>> promise_of(to_record(Approx("1/3", "1e-6", neighbours=Neighbours.REPLACE)))
    Approx('1/3', '1/1000000', neighbours=REPLACE)
    """
    if "neighbours" in said:
        neighbours = Neighbours(said["neighbours"])
    match said["kind"]:
        case "Pure":
            return Pure(said["epsilon"], neighbours=neighbours)
        case "Approx":
            return Approx(said["epsilon"], said["delta"], neighbours=neighbours)
        case "ZCDP":
            return ZCDP(said["rho"], neighbours=neighbours)
        case _:
            raise InputError("This guarantee has no plain statement: only its mechanisms say what it promises.")


def relation(body: Mapping[str, Any]) -> Neighbours | None:
    """The neighbouring relation of a charge."""
    return None if body["neighbours"] is None else Neighbours(body["neighbours"])


def written(charge: Charge) -> dict[str, str | None]:
    """What a charge takes by each rule, as exact texts; its pair for plain addition only if it is not pure."""
    taken = {rule: None if amount is None else str(amount) for rule, amount in charge.amounts.items()}
    return {
        rule: text
        for rule, text in taken.items()
        if rule not in _PAIR or (charge.epsilon is None and charge.plain is not None)
    }


def amounts(texts: Mapping[str, str | None]) -> Charge:
    """What a charge takes by each rule, from its texts.

    >>> amounts(written(Charge(Fraction(1, 3), None))) == Charge(Fraction(1, 3), None)
    True
    """
    return _amounts(*(texts[rule] for rule in _RULES), *(texts.get(rule) for rule in _PAIR))


@lru_cache(maxsize=4096)
def _amounts(*texts: str | None) -> Charge:
    read = (None if text is None else fraction_of(text, _NUMBER) for text in texts)
    eps, rho, square, delta, slack, plain, aside = read
    zero = Fraction(0)
    return Charge(eps, rho, square, delta or zero, slack or zero, plain, aside or zero)


@lru_cache(maxsize=4096)
def _checked(record: str) -> Guarantee:
    """What an entry of one's own ledger promises, however much that is."""
    return promised_by(json.loads(record))


def checked(body: Mapping[str, Any]) -> Guarantee:
    """What the mechanisms of a charge promise; raise PrivacyError if the entry claims more.

    A charge without mechanisms has its statement alone.
    """
    if not body["mechanisms"]:
        return promise_of(body["guarantee"], relation(body))
    neighbours = body["neighbours"] or str(Neighbours.ADD_REMOVE)
    record = {"format": RECORD, **{name: body[name] for name in ("mechanisms", "guarantee")}, "neighbours": neighbours}
    return _checked(canonical(record))


def covers(body: Mapping[str, Any], guarantee: Guarantee) -> bool:
    """Whether a charge takes as much from a budget by each rule as a guarantee would."""
    charge = amounts(body["charge"])
    taken, wanted = charge.amounts, charge_of(guarantee).amounts
    rules = _RULES if charge.plain is None else _RULES + _PAIR  # without a pair, none of its delta is taken
    return all(_enough(taken[rule], wanted[rule]) for rule in rules)


def _enough(written: Fraction | None, wanted: Fraction | None) -> bool:
    return written is None or (wanted is not None and wanted <= written * _MARGIN)


def entry_of(body: Mapping[str, Any]) -> Entry:
    """A charge as a value; its guarantee knows the losses of its mechanisms, if this version knows them."""
    try:
        guarantee = checked(body)
    except NoisetteError:
        guarantee = promise_of(body["guarantee"], relation(body))
    parts = tuple(body["mechanisms"])
    state = body.get("state"), body.get("pin")
    return Entry(body["number"], body["question"], guarantee, parts, body["analyst"], body["key"], body["time"], *state)

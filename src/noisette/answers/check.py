"""Check a release's record: build its mechanisms again, add up what they promise, compare, and ask its ledger.

What the record alone proves: the stated mechanisms, at the stated sensitivities, promise what is claimed. What only the
ledger proves: that these numbers, bars, mechanisms and sensitivities are those of an answer that was handed out.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from noisette.answers.record import read
from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.mechanisms.contract import Output
from noisette.mechanisms.record import from_record, number_of
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Profile, Pure
from noisette.privacy.guarantee import together
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["check", "promised_by"]


class Chain(Protocol):
    """A ledger that remembers what it handed out."""

    def confirm(self, record: Mapping[str, Any]) -> int:
        """The number of the charge that a record is about; raise PrivacyError if anything in it was changed."""
        ...


def check(record: str, *, ledger: Chain | None = None) -> Guarantee:
    """What the mechanisms of a record promise together; raise PrivacyError if it claims more.

    Without a `ledger` it takes numbers and sensitivities from the record: who changed a number, or a sensitivity and a
    scale together, is not found. With the ledger that the release was charged to, any change is found.
    """
    if ledger is not None and not hasattr(ledger, "confirm"):
        raise InputError("ledger must be the ledger of a curator, such as data.ledger: open the data, then check.")
    found = read(record)
    total = promised_by(found)
    if ledger is not None:
        ledger.confirm(found)
    return total


def promised_by(found: Mapping[str, Any]) -> Guarantee:
    """What the mechanisms of a record promise together, if that is what is claimed."""
    try:
        neighbours = Neighbours(found["neighbours"])
        total = together([_promised(part, neighbours) for part in found["mechanisms"]]).under(neighbours)
        kept = _kept(total, found["guarantee"], neighbours)
    except NoisetteError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError):
        raise InputError("The mechanisms of the record cannot be built again: check it with a newer version.") from None
    if not kept:
        raise PrivacyError("The record claims more than its mechanisms promise: do not rely on it.")
    return total


def _promised(part: Mapping[str, Any], neighbours: Neighbours) -> Guarantee:
    """The guarantee of one mechanism."""
    if "one of" in part:
        return _one_of(part, neighbours)
    mechanism = from_record(part)
    if mechanism.kind is Output.GROUPS and "relation" not in part:  # each unit moves each of its groups by the weight
        return mechanism.guarantee(neighbours=neighbours)  # type: ignore[no-any-return]
    for parts in part.get("candidates", {}).values():
        _check_candidate(parts, mechanism.each, neighbours)
    moved = part["sensitivity"]
    l1, l2_squared, linf = (number_of(moved[name]) for name in ("l1", "l2_squared", "linf"))
    relation = Neighbours(part.get("relation", neighbours))  # outputs of blocks are replaced, whatever units do
    made: Guarantee = mechanism.guarantee(Sensitivity(l1, l2_squared, linf, moved["l0"], neighbours=relation))
    return made if relation is neighbours else made.restated(neighbours)


def _one_of(part: Mapping[str, Any], neighbours: Neighbours) -> Guarantee:
    """The promise that each of several plans keeps; which of them was carried out, an earlier part decided."""
    for parts in part["one of"].values():
        total = together([_promised(one, neighbours) for one in parts]).under(neighbours)
        if not _kept(total, part["promise"], neighbours):
            raise PrivacyError("A plan of the record costs more than it may: do not rely on it.")
    return _claimed(part["promise"], neighbours)


def _check_candidate(parts: Any, each: Fraction, neighbours: Neighbours) -> None:
    """What a run of `BestOf` costs is what its guarantee rests on."""
    if not together([_promised(one, neighbours) for one in parts]) <= Pure(each, neighbours=neighbours):
        raise PrivacyError("A candidate of the record costs more than a run may: do not rely on it.")


def _kept(total: Guarantee, claim: Mapping[str, Any], neighbours: Neighbours) -> bool:
    if claim["kind"] in ("Pure", "Approx", "ZCDP"):
        return total <= _claimed(claim, neighbours)
    return isinstance(total, Profile) and all(total.epsilon_at(d) <= e for d, e in claim["at"].items())


def _claimed(claim: Mapping[str, Any], neighbours: Neighbours) -> Guarantee:
    """A promise that a record states."""
    match claim["kind"]:
        case "Pure":
            return Pure(number_of(claim["epsilon"]), neighbours=neighbours)
        case "Approx":
            epsilon, delta = (number_of(claim[name]) for name in ("epsilon", "delta"))
            return Approx(epsilon, delta, neighbours=neighbours)
        case _:
            return ZCDP(number_of(claim["rho"]), neighbours=neighbours)

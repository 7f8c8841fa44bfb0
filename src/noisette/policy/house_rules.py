"""Rules of the house: what the owner asks of questions and answers beyond their privacy.

[rules]
minimum_frequency = 10      # units behind every group that is shown
failure = "1e-6"            # the most with which a group of fewer is shown all the same
rounding = 5                # printed numbers are multiples of it
largest_spend = "0.5"       # of one question; "0.5,1e-8" names its delta as well
approval_above = "0.1"      # a question that spends more waits for the owner
least_difference = 10       # filters that differ by one condition must differ by that many units

Where a rule on spends names an epsilon alone, a question may take a thousandth of the budget's delta beside it: that is
what unknown keys take by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from noisette.errors import InputError
from noisette.exact.number import fraction, whole
from noisette.policy.rules import inside, only, policy_error, section
from noisette.privacy import ZCDP, Approx, Promise, Pure, as_promise
from noisette.query.frequency import MinimumFrequency

__all__ = ["HouseRules", "beside", "house_rules", "within"]

_NAMES = ("minimum_frequency", "failure", "rounding", "largest_spend", "approval_above", "least_difference")
_PLACE = "rules"
_BESIDE = Fraction(1, 1000)  # of the budget's delta


@dataclass(frozen=True)
class HouseRules:
    """The rules of a policy; None where there is none.

    >>> house_rules({"minimum_frequency": 10, "rounding": 5}).frequency
    MinimumFrequency(units=10, failure=Fraction(1, 1000000))
    """

    frequency: MinimumFrequency | None = None
    rounding: Fraction | None = None
    largest_spend: Promise | None = None
    approval_above: Promise | None = None
    least_difference: int | None = None

    def __post_init__(self) -> None:
        if self.least_difference is not None and self.frequency is None:
            raise policy_error(
                inside(_PLACE, "least_difference"), "reads the numbers of minimum_frequency: declare that as well."
            )

    @property
    def lines(self) -> dict[str, tuple[object, str]]:
        """The rules as a policy file has them, each with a comment."""
        rule = self.frequency
        found: dict[str, tuple[object, str]] = {
            "minimum_frequency": (rule and rule.units, "units behind every group that is shown"),
            "failure": (rule and rule.failure, "the most with which a group of fewer is shown all the same"),
            "rounding": (self.rounding, "printed numbers are multiples of it"),
            "largest_spend": (_text(self.largest_spend), "of one question"),
            "approval_above": (_text(self.approval_above), "a question that spends more waits for the owner"),
            "least_difference": (self.least_difference, "units between filters that differ by one condition"),
        }
        return {name: line for name, line in found.items() if line[0] is not None}


def house_rules(given: Any) -> HouseRules:
    """Read the section [rules], or say what is wrong with it and where."""
    only(section(given, _PLACE), _NAMES, _PLACE)
    return HouseRules(
        _frequency(given),
        _step(given.get("rounding")),
        _spend(given, "largest_spend"),
        _spend(given, "approval_above"),
        _whole(given, "least_difference"),
    )


def _whole(given: Mapping[str, Any], name: str) -> int | None:
    return whole(given[name], f"{inside(_PLACE, name)} in the policy") if name in given else None


def _frequency(given: Mapping[str, Any]) -> MinimumFrequency | None:
    units = _whole(given, "minimum_frequency")
    if units is None:
        if "failure" in given:
            raise policy_error(inside(_PLACE, "failure"), "belongs to minimum_frequency: declare that as well.")
        return None
    failure = fraction(given.get("failure", "1e-6"), f"{inside(_PLACE, 'failure')} in the policy")
    try:
        return MinimumFrequency(units, failure)
    except InputError:
        raise policy_error(inside(_PLACE, "failure"), "must lie between 1e-30 and 1: a usual one is 1e-6.") from None


def _step(given: Any) -> Fraction | None:
    if given is None:
        return None
    step = fraction(given, f"{inside(_PLACE, 'rounding')} in the policy")
    if not Fraction(1, 10**9) <= step <= 10**12:
        raise policy_error(inside(_PLACE, "rounding"), "must lie between 1e-9 and 1e12: it is a step, such as 5.")
    return step


def _spend(given: Mapping[str, Any], name: str) -> Promise | None:
    if name not in given:
        return None
    found = as_promise(given[name], f"{inside(_PLACE, name)} in the policy")
    if not found.size:
        raise policy_error(inside(_PLACE, name), "must be above 0: nothing could be asked.")
    return found


def _text(spend: Promise | None) -> str | None:
    """A spend as a policy file has it.

    >>> _text(Approx("0.5", "1e-8")), _text(ZCDP("0.01")), _text(None)
    ('1/2,1/100000000', 'rho=1/100', None)
    """
    match spend:
        case ZCDP(rho):
            return f"rho={rho}"
        case Approx(epsilon, delta):
            return f"{epsilon},{delta}"
        case Pure(epsilon):
            return str(epsilon)
        case _:
            return None


def beside(budget: Promise) -> Fraction:
    """The delta that one question may take where a rule names an epsilon alone; none if the budget has none.

    >>> beside(Approx(2, "1e-6")) == Fraction("1e-9"), beside(Pure(2)) == beside(ZCDP(2)) == 0
    (True, True)
    """
    return _BESIDE * budget.delta


def within(spend: Promise, limit: Promise, delta: Fraction = Fraction(0)) -> bool:
    """Whether a spend is no larger than a limit: a pair limits both numbers, a rho what has a rho.

    An epsilon alone limits epsilon, and leaves room for the `delta` given.

    >>> within(Approx("0.1", "1e-8"), Pure("0.1")), within(Approx("0.1", "1e-8"), Pure("0.1"), Fraction("1e-8"))
    (False, True)
    >>> within(Approx("0.1", "1e-8"), Approx("0.1", "1e-9")), within(Approx("0.1", "1e-9"), Approx("0.1", "1e-9"))
    (False, True)
    >>> within(Pure("0.1"), ZCDP("0.005")), within(ZCDP("0.001"), Approx(1, "1e-6")), within(ZCDP("0.001"), Pure(1))
    (True, True, False)
    """
    match spend, limit:
        case ZCDP(rho), ZCDP(most):
            return rho <= most
        case ZCDP(), Approx(most, delta):
            return Fraction(spend.epsilon_at(delta)) <= most
        case ZCDP(), _:
            return False  # no pure epsilon holds for it
        case _, ZCDP(most):
            return not spend.delta and spend.epsilon**2 / 2 <= most
        case _, Approx(most, delta):
            return spend.epsilon <= most and spend.delta <= delta
        case _:
            return spend.epsilon <= limit.epsilon and spend.delta <= delta

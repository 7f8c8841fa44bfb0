"""The paragraph that goes with a release, for readers who must judge it without formulas."""

import math
from collections.abc import Sequence

from noisette.answers.figures import at_some_delta, percent, promise, rounded, spent
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Profile, Pure

__all__ = ["promise", "statement"]

_CHANGE = {
    Neighbours.ADD_REMOVE: "all data of any one {unit} had been left out, or those of one more had been added",
    Neighbours.REPLACE: "all data of any one {unit} had been replaced by other data",
}

_NOISY = "Random noise was added to these numbers so that each of them"
_PLAIN = "Chance had a part in choosing this answer, so that it"


def statement(
    guarantee: Guarantee, total: Guarantee, *, unit: str, level: float | None, caveats: Sequence[str] = ()
) -> str:
    """What is promised to whom, and what is not; without a level, of an answer without numbers.

    `caveats` are sentences about what was left out before any noise.

    >>> print(statement(Pure(1), Pure(2), unit="patient_id", level=0.95)[:101])
    Random noise was added to these numbers so that each of them would be almost as likely if all data of
    """
    relation = guarantee.neighbours or Neighbours.ADD_REMOVE
    change = _CHANGE[relation].format(unit=unit)
    return (
        f"{_PLAIN if level is None else _NOISY} would be almost as likely if {change}. "
        f"That holds for every {unit} and against anyone, whatever else they know. "
        f"The release is differentially private with {promise(guarantee)} under the relation {relation}: "
        f"{_meaning(guarantee)}. "
        f"With it, {spent(total)} of the owner's budget is spent in all. "
        f"Not promised is that nothing can be learned about a {unit} from the data of all the others, from other "
        f"sources, or from answers that were given outside this budget."
        f"{'' if level is None else _error_bars(level)}{''.join(f' {caveat}' for caveat in caveats)}"
    )


def _error_bars(level: float) -> str:
    return (
        f" Each error bar holds the number without noise with a probability of {percent(level)}, and where nothing "
        "vouches for that there is no number; it does not account for faults in the data."
    )


def _meaning(guarantee: Guarantee) -> str:
    """A guarantee in words."""
    match guarantee:
        case Pure(eps):
            return _at_most(float(eps))
        case Approx(eps, delta):
            return f"{_at_most(float(eps))}, except with a probability of {rounded(delta, up=True, digits=3)}"
        case ZCDP() | Profile():
            at, epsilon = at_some_delta(guarantee)
            return f"{_at_most(epsilon)}, except with a probability of {at}"


def _at_most(eps: float) -> str:
    return f"no answer is more than {_factor(eps)} times as likely in one case as in the other"


def _factor(eps: float) -> str:
    """e^eps, rounded up.

    >>> _factor(1.0), _factor(1000.0)
    ('2.72', 'e^1,000')
    """
    return rounded(math.exp(eps), up=True, digits=3) if eps < 50 else f"e^{rounded(eps, up=True)}"

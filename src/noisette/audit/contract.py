"""The contract of a mechanism, as a list of named checks.

Each check is a function (mechanism, effort) -> Finding. Whoever adds a check adds a broken twin that it convicts.
"""

from collections.abc import Callable
from typing import Final

from noisette.audit.checks import accuracy, attacks, manners, privacy, sampling
from noisette.audit.finding import THOROUGH, Effort, Finding
from noisette.audit.procedures import PROCEDURES
from noisette.audit.subject import Subject, is_procedure

__all__ = ["CHECKS", "Check", "checks_of", "examined"]

Check = Callable[[Subject, Effort], Finding]

CHECKS: Final[dict[str, Check]] = {
    "sums to one": privacy.sums_to_one,
    "private": privacy.private,
    "loss": privacy.bounded_loss,
    "tight": privacy.tight,
    "delta curve": privacy.delta_curve,
    "arrays": sampling.arrays,
    "one by one": sampling.one_by_one,
    "independent": sampling.independent,
    "variance": accuracy.variance,
    "interval": accuracy.interval,
    "relations": manners.relations,
    "refusals": manners.refusals,
    "lattice": manners.lattice,
    "black box": attacks.black_box,
    "floating point": attacks.floating_point,
}


def checks_of(mechanism: Subject) -> dict[str, Check]:
    """The checks that a mechanism is held to, by whether it releases numbers."""
    return PROCEDURES if is_procedure(mechanism) else CHECKS


def examined(mechanism: Subject, effort: Effort = THOROUGH) -> list[Finding]:
    """Return what every check finds about a mechanism.

    >>> from noisette.audit.finding import QUICK
    >>> from noisette.mechanisms import Geometric
    >>> all(finding.passed for finding in examined(Geometric(2), QUICK))
    True
    """
    return [check(mechanism, effort) for check in checks_of(mechanism).values()]

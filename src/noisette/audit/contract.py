"""The contract of a mechanism, as one table of named checks, and the examples that it is held to.

Each check says for which kinds it applies. Whoever adds a check adds a broken twin that it convicts (`audit/twins.py`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from noisette.audit.checks import accuracy, calibrated, interface, outcomes, privacy, sampling
from noisette.audit.finding import THOROUGH, Effort, Finding
from noisette.audit.subject import ENUMERATED, Subject
from noisette.mechanisms.catalogue import instances, mechanisms
from noisette.mechanisms.contract import Output

__all__ = ["CHECKS", "Check", "checks_of", "discovered", "examined", "names"]


def discovered() -> Iterator[tuple[str, Any]]:
    """Yield (class name, example) for every example of every mechanism."""
    for example in instances():
        yield type(example).__name__, example


def names() -> list[str]:
    """Return the names of all mechanisms.

    >>> "Geometric" in names()
    True
    """
    return sorted(mechanisms())


# Checks


_ALL = frozenset(Output)
_OUTCOME = frozenset({Output.OUTCOME})


@dataclass(frozen=True)
class Check:
    """A question to mechanisms of some kinds; no two checks of one kind have the same name."""

    name: str
    kinds: frozenset[Output]
    look: Callable[[Subject, Effort], Finding]

    def __call__(self, mechanism: Subject, effort: Effort) -> Finding:
        """Return what was found."""
        return self.look(mechanism, effort)


CHECKS: Final[tuple[Check, ...]] = (
    Check("sums to one", ENUMERATED, privacy.sums_to_one),
    Check("private", ENUMERATED, privacy.private),
    Check("loss", ENUMERATED, privacy.bounded_loss),
    Check("tight", ENUMERATED, privacy.tight),
    Check("delta curve", ENUMERATED, privacy.delta_curve),
    Check("arrays", ENUMERATED - {Output.VECTOR}, sampling.arrays),
    Check("one by one", ENUMERATED, sampling.one_by_one),
    Check("independent", ENUMERATED, sampling.independent),
    Check("variance", ENUMERATED, accuracy.variance),
    Check("interval", ENUMERATED, accuracy.interval),
    Check("relations", ENUMERATED, interface.relations),
    Check("refusals", ENUMERATED, interface.refusals),
    Check("lattice", ENUMERATED, interface.lattice),
    Check("black box", ENUMERATED, sampling.black_box),
    Check("floating point", frozenset({Output.NUMBERS, Output.VECTOR}), sampling.floating_point),
    Check("calibrated", _ALL, calibrated.calibrated),
    Check("sums to one", _OUTCOME, outcomes.sums_to_one),
    Check("private", _OUTCOME, outcomes.private),
    Check("tight", _OUTCOME, outcomes.tight),
    Check("one by one", _OUTCOME, outcomes.one_by_one),
    Check("independent", _OUTCOME, outcomes.independent),
    Check("interval", _OUTCOME, outcomes.interval),
    Check("relations", _OUTCOME, outcomes.relations),
    Check("refusals", _OUTCOME, outcomes.refusals),
    Check("black box", _OUTCOME, outcomes.black_box),
)


def checks_of(mechanism: Subject) -> dict[str, Check]:
    """Return the checks that apply to a mechanism's kind, by name."""
    return {check.name: check for check in CHECKS if mechanism.kind in check.kinds}


def examined(mechanism: Subject, effort: Effort = THOROUGH) -> list[Finding]:
    """Return what every check finds about a mechanism.

    >>> from noisette.audit.finding import QUICK
    >>> from noisette.mechanisms import Geometric
    >>> all(finding.passed for finding in examined(Geometric(2), QUICK))
    True
    """
    return [check(mechanism, effort) for check in checks_of(mechanism).values()]

"""The audit: every mechanism is found by itself and held to its contract, by enumeration and by attack.

>>> from noisette.audit import epsilon_lower_bound
>>> from noisette.mechanisms import Geometric
>>> epsilon_lower_bound(Geometric(1), 0, 1, confidence=1 - 1e-9) <= 1
True
"""

from noisette.audit.contract import CHECKS, discovered, examined
from noisette.audit.divergence import hockey_stick, renyi
from noisette.audit.finding import QUICK, THOROUGH, Effort, Finding
from noisette.audit.report import Audit, audited
from noisette.audit.sampled import epsilon_lower_bound, floating_point_epsilon

__all__ = [
    "CHECKS",
    "QUICK",
    "THOROUGH",
    "Audit",
    "Effort",
    "Finding",
    "audited",
    "discovered",
    "epsilon_lower_bound",
    "examined",
    "floating_point_epsilon",
    "hockey_stick",
    "renyi",
]

"""How much error to expect, how much budget or how many people a target needs, and which mechanism to take.

All of it is read off mechanisms, sensitivities and guarantees: no data is touched and nothing is spent.
"""

from noisette.accuracy.compare import Compared, Comparison, compare
from noisette.accuracy.error import ErrorLaw, chance_above, clamping_bias, error_law, expected_error, largest_error
from noisette.accuracy.inverse import epsilon_for, rho_for
from noisette.accuracy.medians import Medians, compare_medians
from noisette.accuracy.people import People, people_bound, people_for, people_table

__all__ = [
    "Compared",
    "Comparison",
    "ErrorLaw",
    "Medians",
    "People",
    "chance_above",
    "clamping_bias",
    "compare",
    "compare_medians",
    "epsilon_for",
    "error_law",
    "expected_error",
    "largest_error",
    "people_bound",
    "people_for",
    "people_table",
    "rho_for",
]

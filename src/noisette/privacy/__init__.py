"""What is promised: guarantees, neighbouring relations and sensitivities; knows no mechanism and no data.

guarantee, promise        Pure, Approx, ZCDP and Profile with their algebra; promises as people write them
neighbours, sensitivity   which tables are neighbours, and how far an answer moves between them
sampling, parallel        amplification by sampling; releases on disjoint parts of the data
convert, theorems         conversions between guarantees, and the composition theorems, one function each
filters, odometer         budgets and running totals for costs that depend on earlier answers
pld/                      privacy-loss distributions, which compose tightly
"""

from typing import TYPE_CHECKING, Any

from noisette.names import absent
from noisette.privacy import sensitivity, theorems
from noisette.privacy.filters import Filter
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Profile, Promise, Pure
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.odometer import Odometer
from noisette.privacy.parallel import parallel
from noisette.privacy.promise import Spend, as_promise
from noisette.privacy.sampling import fixed_size, poisson

__all__ = [
    "ZCDP",
    "Approx",
    "Filter",
    "Guarantee",
    "Neighbours",
    "Odometer",
    "Profile",
    "Promise",
    "Pure",
    "Spend",
    "as_promise",
    "fixed_size",
    "parallel",
    "poisson",
    "sensitivity",
    "theorems",
]


if not TYPE_CHECKING:  # type checkers know the names

    def __getattr__(name: str) -> Any:
        """Say which name may have been meant."""
        raise absent(__name__, name, __all__)

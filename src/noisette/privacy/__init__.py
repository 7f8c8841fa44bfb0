"""What is promised: guarantees, neighbouring relations and sensitivities; knows no mechanism and no data."""

from noisette.privacy import sensitivity, theorems
from noisette.privacy.filters import Filter, Odometer
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Profile, Promise, Pure, Spend, as_promise
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.parallel import parallel
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

"""What is promised: guarantees, neighbouring relations and sensitivities; knows no mechanism and no data."""

from noisette.privacy import sensitivity
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Profile, Promise, Pure
from noisette.privacy.neighbours import Neighbours

__all__ = ["ZCDP", "Approx", "Guarantee", "Neighbours", "Profile", "Promise", "Pure", "sensitivity"]

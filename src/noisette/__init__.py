"""Noisette: differential privacy that is exact where others approximate.

>>> import noisette as nz
>>> m = nz.calibrate(nz.Geometric, nz.Pure("1/2"), sensitivity=1)
>>> noisy = m(42)                       # a private count
>>> m.guarantee(1), m.interval(0.95)    # the promise, and the error to expect
(Pure('1/2'), 6.0)
"""

import importlib as _importlib
from types import ModuleType as _ModuleType

from noisette import errors, exact, laws, mechanisms, privacy
from noisette.mechanisms import (
    Gaussian,
    Geometric,
    KNorm,
    Laplace,
    RandomizedResponse,
    Staircase,
    TruncatedGeometric,
    calibrate,
)
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Profile, Pure, sensitivity

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "Approx",
    "Gaussian",
    "Geometric",
    "Guarantee",
    "KNorm",
    "Laplace",
    "Neighbours",
    "Profile",
    "Pure",
    "RandomizedResponse",
    "Staircase",
    "TruncatedGeometric",
    "accuracy",
    "attacks",
    "audit",
    "calibrate",
    "errors",
    "exact",
    "laws",
    "mechanisms",
    "plot",
    "privacy",
    "sensitivity",
]

_LATE = {"accuracy", "attacks", "audit", "plot"}


def __getattr__(name: str) -> _ModuleType:
    """Load what is not needed to release an answer only when it is asked for."""
    if name in _LATE:
        return _importlib.import_module(f"noisette.{name}")
    raise AttributeError(f"noisette has no {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})

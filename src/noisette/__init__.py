"""Noisette: differential privacy that is exact where others approximate.

>>> import noisette as nz
>>> m = nz.calibrate(nz.Geometric, nz.Pure("1/2"), sensitivity=1)
>>> noisy = m(42)                       # a private count
>>> m.guarantee(1), m.interval(0.95)    # the promise, and the error to expect
(Pure('1/2'), 6.0)
"""

import importlib as _importlib
from typing import Any as _Any

from noisette import errors, exact, laws, mechanisms, privacy
from noisette.mechanisms import (
    Exponential,
    Gaussian,
    Geometric,
    Keep,
    KNorm,
    Laplace,
    PermuteAndFlip,
    Quantile,
    RandomizedResponse,
    Staircase,
    Threshold,
    TruncatedGeometric,
    calibrate,
)
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Profile, Pure, sensitivity
from noisette.version import __version__ as __version__

_QUESTIONS = sorted(_importlib.import_module("noisette.questions").FILES.values())

__all__ = [
    *_QUESTIONS,
    "ZCDP",
    "Approx",
    "Curator",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Guarantee",
    "KNorm",
    "Keep",
    "Laplace",
    "Neighbours",
    "PermuteAndFlip",
    "Policy",
    "Profile",
    "Pure",
    "Quantile",
    "RandomizedResponse",
    "Release",
    "Staircase",
    "Threshold",
    "TruncatedGeometric",
    "accuracy",
    "answers",
    "attacks",
    "audit",
    "calibrate",
    "charts",
    "curator",
    "errors",
    "exact",
    "holdout",
    "laws",
    "load_ipython_extension",
    "local",
    "mechanisms",
    "open",
    "open_holdout",
    "open_leaderboard",
    "privacy",
    "query",
    "questions",
    "sensitivity",
]

_LATE = {"accuracy", "answers", "attacks", "audit", "charts", "curator", "holdout", "local", "query", "questions"}
_LATE_NAMES = {
    **dict.fromkeys(_QUESTIONS, "questions"),
    "Curator": "curator",
    "Policy": "curator",
    "Release": "answers",
    "open": "curator",
    "open_holdout": "curator",
    "open_leaderboard": "curator",
}


def __getattr__(name: str) -> _Any:
    """Load what is not needed to release an answer only when it is asked for."""
    if name in _LATE:
        return _importlib.import_module(f"noisette.{name}")
    if name in _LATE_NAMES:
        return getattr(_importlib.import_module(f"noisette.{_LATE_NAMES[name]}"), name)
    if name in mechanisms.__all__:
        return getattr(mechanisms, name)
    raise AttributeError(f"noisette has no {name!r}{_where(name)}", name=name)


def _where(name: str) -> str:
    """Where a name is, or which one may have been meant."""
    from noisette.names import closest

    if name.startswith("_"):
        return ""
    parts = [part for part in sorted(_LATE | {"exact", "laws", "privacy"}) if name in _names_of(part)]
    return (
        f": it is noisette.{parts[0]}.{name}."
        if parts
        else f": {closest(name, [*__all__, *mechanisms.__all__], 'see its documentation', listed=False)}"
    )


def _names_of(part: str) -> list[str]:
    return list(getattr(_importlib.import_module(f"noisette.{part}"), "__all__", ()))


def load_ipython_extension(ipython: _Any) -> None:
    """Make the magic `%%noisette` known to a notebook: `%load_ext noisette`."""
    _importlib.import_module("noisette.notebook").load(ipython)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *_LATE_NAMES})

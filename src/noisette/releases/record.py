"""The record of a release: everything with which a stranger can check its claim, as JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Pure

__all__ = ["as_json", "stated"]

FORMAT = 1
"""The meaning of a record that is written never changes; a new meaning is a new number."""


def stated(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as exact texts.

    >>> stated(Approx("1/3", "1e-6"))
    {'kind': 'Approx', 'epsilon': '1/3', 'delta': '1/1000000'}
    """
    match guarantee:
        case Pure(eps):
            return {"kind": "Pure", "epsilon": str(eps)}
        case Approx(eps, delta):
            return {"kind": "Approx", "epsilon": str(eps), "delta": str(delta)}
        case ZCDP(rho):
            return {"kind": "ZCDP", "rho": str(rho)}
        case Profile():
            return {"kind": "Profile", "at": {delta: guarantee.epsilon(delta) for delta in ("1e-6", "1e-9")}}


def as_json(parts: Mapping[str, Any]) -> str:
    """JSON that any reader understands: no NaN, no infinity, dates as texts, names in order."""
    return json.dumps(_plain({"format": FORMAT, **parts}), sort_keys=True, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case str() | bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case Sequence():
            return [_plain(part) for part in value]
        case _:
            return str(value)

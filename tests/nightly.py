"""What `make nightly` runs: it protects something rare at a great cost, and the mark of each case says what.

Nothing stands there alone that a fault in privacy needs to be convicted.
"""

from collections.abc import Iterable
from typing import Any

import pytest


def each_night(values: Iterable[Any], *, first: int, why: str) -> list[Any]:
    """Parameters of which the first few are tried by every run and the others each night."""
    return [
        pytest.param(value, marks=[pytest.mark.nightly(why)] if i >= first else []) for i, value in enumerate(values)
    ]

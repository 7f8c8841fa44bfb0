"""Arbitrary-precision floating point (mpmath) that threads cannot disturb: each has a context of its own."""

import threading
from typing import Any

__all__ = ["precision"]

_local = threading.local()


def precision(bits: int) -> Any:
    """Return this thread's mpmath context, set to that many bits; use it at once, the next call may change it.

    >>> ctx = precision(200)
    >>> str(ctx.exp(1))[:20]
    '2.718281828459045235'
    """
    if not hasattr(_local, "context"):
        import mpmath

        _local.context = mpmath.mp.clone()
    _local.context.prec = bits
    return _local.context

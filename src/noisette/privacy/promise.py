"""Promises as people write them: numbers, pairs and texts."""

from collections.abc import Sequence
from typing import TypeAlias

from noisette.errors import InputError
from noisette.exact.number import Number
from noisette.privacy.guarantee import ZCDP, Approx, Promise, Pure

__all__ = ["Spend", "as_promise"]

Spend: TypeAlias = Promise | Number | tuple[Number, Number]
"""A promise as people write it: 0.1, "0.1,1e-8", (0.1, 1e-8), "rho=0.01" or a guarantee."""


def as_promise(value: Spend, name: str = "spend") -> Promise:
    """Return the promise that a value stands for; errors call the value `name`.

    A bare number is a pure epsilon; a pair, or a text with a comma, is an epsilon and a delta.

    >>> as_promise(0.1), as_promise("2,1e-6"), as_promise((2, "1e-6")), as_promise("rho=0.01")
    (Pure('1/10'), Approx('2', '1/1000000'), Approx('2', '1/1000000'), ZCDP('1/100'))
    """
    if isinstance(value, Pure | Approx | ZCDP):
        return value
    written = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    parts: Sequence[Number] = written if isinstance(written, list | tuple) else [written]
    try:
        match parts:
            case [str(one)] if one.startswith("rho="):
                return ZCDP(one.removeprefix("rho="))
            case [one]:
                return Pure(one)
            case [epsilon, delta]:
                return Approx(epsilon, delta)
            case _:
                raise InputError("give one number or two.")
    except InputError as fault:
        forms = "an epsilon (0.1), an epsilon and a delta ('0.1,1e-8') or a rho ('rho=0.01')"
        raise InputError(f"{name} must be {forms}: {fault}") from None

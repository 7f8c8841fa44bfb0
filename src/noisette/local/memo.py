"""Longitudinal memoisation: a device that answers the same value with the same report, so that reports do not add up.

The first time a value occurs, its report is drawn and kept; later the kept report is sent again. All reports together
are a function of the kept ones. So for two sequences of values that are equal up to a renaming of their values, the
probabilities of all that is ever sent are at most e^(k epsilon) apart, where k is the number of distinct values: each
kept report is drawn once.   [the permanent response of Erlingsson-Pihur-Korolova 2014; Ding-Kulkarni-Yekhanin 2017]

What it does not protect:

- **when the value changes**: another report often means another value, and the same report the same value or chance;
- **which reports belong to one person**: equal reports link a device's days, as its address does;
- **more than k values**: `most` bounds them, and then the device falls silent, which can be seen too.

When: the same question is asked every day, and most people's answer changes rarely. `Rappor` noises again each day.
Textbook: lecture on local privacy, repeated collection.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.contract import LocalProtocol, Report, pure_of
from noisette.privacy import Pure
from noisette.process import Origin

__all__ = ["Memo"]


@dataclass
class Memo:
    """The memory of one device: at most `most` distinct values, each with its report.

    >>> from noisette.local import GRR
    >>> phone = Memo(GRR(1, domain=8), most=3)
    >>> [phone.client(5) for _ in range(7)] == [phone.client(5)] * 7
    True
    >>> phone.guarantee_of_value(), phone.epsilon_forever(), phone.spent()
    (Pure('1', neighbours=REPLACE), Fraction(3, 1), Fraction(1, 1))
    """

    protocol: LocalProtocol
    most: int
    kept: dict[Any, Report] = field(default_factory=dict)
    _origin: Origin = field(default_factory=Origin, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.most = whole(self.most, "most")
        pure_of(self.protocol)
        if len(self.kept) > self.most:
            raise InputError("kept has more values than most allows: raise most, which is public, for all devices.")

    def client(self, value: Any, rng: Random = SYSTEM) -> Report:
        """Return the kept report of a value, or draw and keep one."""
        key = tuple(np.asarray(value).tolist()) if isinstance(value, list | np.ndarray) else value
        if not isinstance(key, Hashable) or key not in self.kept:
            self._origin.check("device's memory")
            report = self.protocol.client(value, rng)  # refuses bad values before anything is kept
            if len(self.kept) == self.most:
                raise InputError(f"This device has reported {self.most} distinct values, its most: send nothing.")
            self.kept[key] = report
        return self.kept[key]

    def guarantee_of_value(self) -> Pure:
        """Return the promise for all reports of somebody whose value never changes."""
        return self.protocol.guarantee()

    def epsilon_forever(self) -> Fraction:
        """Return most times epsilon, for all reports ever, between sequences that are equal up to renaming."""
        return self.protocol.guarantee().epsilon * self.most

    def spent(self) -> Fraction:
        """Return epsilon times the number of distinct values so far; known to the device alone."""
        return self.protocol.guarantee().epsilon * len(self.kept)

"""Odometers: a running epsilon without a budget, valid at any time, by the zCDP and pure rules of `charges`."""

import math
import threading
from dataclasses import replace
from fractions import Fraction

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, nearest_float, positive
from noisette.privacy.charges import Charge, FilterState, charge_of, checked_reserve
from noisette.privacy.convert import zcdp_epsilon
from noisette.privacy.guarantee import Guarantee
from noisette.process import here

__all__ = ["Odometer"]

_BASEL = Fraction(607_927, 10**6)  # below 6/pi^2
_GROWTH = Fraction(5, 4)

FORKED = "This budget is counted in the parent process: charge there, or share a ledger file (open_ledger)."
"""The error in a forked process, whose copy of the budget does not see what others charge."""


class Odometer:
    """A running epsilon that is valid whenever the analyst stops, even if costs and stopping depend on the answers.

    For all neighbours x, x' and all sets S of transcripts, with `epsilon` as it is when the analyst stops:
        P(x -> S) <= E(e^epsilon; x' -> S) + delta.
    Proof. Level j is a zCDP filter with rho_j = first (5/4)^(j-1), which alone keeps (e_j, d_j)-DP, d_j = 6 d/(pi j)^2.
    The odometer reports the e_j of the first level that holds all costs, or their pure sum if that is less. Split S
    by the level reported: each piece lies within its own filter, and the d_j add up to at most d; the pure sum bounds
    every loss and needs no delta. The costs' own deltas add up to at most the `reserve`, a part of delta; beyond it,
    or for a cost known neither by epsilon nor by rho, epsilon is infinite.   [in the style of Rogers et al. 2016]

    Without a budget, epsilon is about 1.2 to 1.4 times that of a filter. It never decreases, and it is rounded up.

    >>> from noisette.privacy import Pure
    >>> o = Odometer("1e-6")
    >>> o.charge(Pure("0.1")); o.epsilon
    0.1
    >>> for _ in range(99): o.charge(Pure("0.1"))
    >>> round(o.epsilon, 3), round((Pure("0.1") * 100).epsilon_at("1e-6"), 3)      # the second if fixed in advance
    (6.65, 4.775)
    """

    def __init__(self, delta: Number, *, reserve: Number | None = None, first: Number = "0.001") -> None:
        whole = positive(delta, "delta")
        if whole >= 1:
            raise InputError("delta must be above 0 and below 1: a usual one is '1e-6'.")
        self.delta, self.reserve, self.first = whole, checked_reserve(reserve, whole), positive(first, "first")
        self._lock, self._process = threading.Lock(), here()
        self._state = FilterState(Charge(), None, "zcdp")

    def __repr__(self) -> str:
        return f"Odometer({str(self.delta)!r}, epsilon={self.epsilon!r})"

    def charge(self, cost: Guarantee) -> None:
        """Count the cost; refuse only another neighbouring relation and a forked process."""
        charge = charge_of(cost)
        if here() != self._process:
            raise PrivacyError(FORKED)
        with self._lock:
            self._state = self._state.plus(replace(charge, square=None), cost.neighbours)

    @property
    def epsilon(self) -> float:
        """Return the epsilon that holds now, with the odometer's delta; rounded up."""
        total = self._state.total
        if total.delta > self.reserve:
            return math.inf
        bounds = [math.inf] if total.epsilon is None else [nearest_float(total.epsilon, up=True)]
        if total.rho:
            level, rho = 1, self.first
            while rho < total.rho:
                level, rho = level + 1, rho * _GROWTH
            bounds.append(zcdp_epsilon(rho, _BASEL * (self.delta - self.reserve) / level**2))
        return min(bounds)

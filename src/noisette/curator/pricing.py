"""What to spend for an error: of all noises that keep it, the one that takes least of what is left in the ledger.

For one question alone Laplace noise is often best, for many Gaussian noise: with the same error bar, 236 counts fit
into a budget instead of 83. So the least epsilon is sought, and the least rho, and that cost is chosen which fits most
often into what is left, by the rules that were settled when the ledger opened. A delta is spent only where the plan
needs one, for unknown keys; that follows from the question and the declarations, never from the data.
"""

import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

from noisette.errors import InputError
from noisette.exact.number import nearest_float
from noisette.exact.rational import sqrt_up
from noisette.laws.law import smallest
from noisette.privacy import ZCDP, Approx, Guarantee, Promise, Pure
from noisette.privacy.charges import charge_of
from noisette.privacy.convert import zcdp_epsilon
from noisette.privacy.pld.loss import Normal
from noisette.privacy.pld.tight import tight_epsilon

__all__ = ["MOST", "alone", "how_often", "least_spends"]

MOST = 1_000_000
_TIGHT = 1.001
_MOST_ERROR = sys.float_info.max
_SHARE = Fraction(1, 100)  # of the delta for unknown keys, for one question
_USUAL = Fraction(1, 10**6)
_SMALL, _LARGE, _STEPS = 2.0**-24, 2.0**16, 100
_FAR = 2.0**100  # a ratio of errors beyond all sizes, whose power is still a number

Family: TypeAlias = tuple[Callable[[Fraction], Promise], int]  # promises by size, and how its size grows with 1/error


def least_spends(
    width: Callable[[Promise], float],
    error: float,
    *,
    budget: Promise,
    delta: Fraction | None,
    keys_delta: Fraction,
    most_delta: Fraction | None = None,
) -> list[Promise]:
    """The least epsilon and the least rho, each to a thousandth, at which the error is small enough.

    `width` is the error of a promise · `delta` one to spend beside epsilon · `keys_delta` what the ledger has in all
    for questions with unknown keys: a hundredth of it is spent on one that cannot be asked without a delta, or
    `most_delta`, if that is less and not 0.
    """
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error <= _MOST_ERROR:
        raise InputError("error must be a number above 0: half the width of the error bar you can live with.")
    found, fault, share = [], None, _SHARE * keys_delta
    share = min(share, most_delta or share)
    for families in _families(budget, delta, share):
        for family in families:
            try:
                found.append(_least(width, family, error))
            except InputError as refused:
                fault = fault or refused
        if found:
            return found
    assert fault is not None
    raise fault


def _families(budget: Promise, delta: Fraction | None, share: Fraction) -> Iterator[list[Family]]:
    """Kinds of promises that the budget can count, those with a delta only if the others cannot be had."""
    if delta is not None:
        yield [(lambda size: Approx(size, delta), 1)]
        return
    yield [(Pure, 1)] if isinstance(budget, Pure) else [(Pure, 1), (ZCDP, 2)]
    if share:
        yield [(lambda size: Approx(size, share), 1)]


def _least(width: Callable[[Promise], float], family: Family, error: float) -> Promise:
    """The least promise of a family: sizes are tried where a power law of the error would have them."""
    made, power = family

    def tried(size: float) -> float:
        try:
            return width(made(_rounded_up(size)))
        except InputError:  # so little that its noise cannot be drawn
            return math.inf

    size, low, high = 1.0, _SMALL**power, _LARGE**power
    at = width(made(Fraction(1)))
    if at == math.inf:
        raise InputError(
            "The error of a column depends on how many rows a group has: name a number, such as rows=1000, or say what "
            "to spend, where it depends on a limit that the question chooses."
        )
    for step in range(_STEPS):
        low, high = (low, size) if at <= error else (size, high)
        if high <= low * _TIGHT:
            break
        near = size * min(at / error, _FAR) ** power * (1 + 2e-4) if 0 < at < math.inf else 0.0
        size = near if low < near < high and step % 4 < 3 else math.sqrt(low * high)
        at = tried(size)
    if high >= _LARGE**power:
        raise InputError("No epsilon makes the error that small: ask for a larger one.")
    return made(_rounded_up(high))


def _rounded_up(size: float) -> Fraction:
    """Four digits, rounded up.

    >>> float(_rounded_up(0.00213712)), float(_rounded_up(31))
    (0.002138, 31.0)
    """
    unit = Fraction(10) ** (math.floor(math.log10(size)) - 3)
    return math.ceil(Fraction(size) / unit) * unit


def how_often(allows: Callable[..., bool], cost: Guarantee) -> int:
    """How often a cost fits, up to a million, by doubling and bisection.

    >>> how_often(lambda cost, times: cost * times <= Pure(1), Pure("0.3"))
    3
    """
    return min(MOST, smallest(lambda k: k >= MOST or not allows(cost, times=k + 1)))


def alone(cost: Guarantee, delta: Fraction) -> tuple[float, Fraction]:
    """An epsilon, rounded up, that a cost keeps by itself at a delta, from what a filter knows of it: at once.

    Where the cost has no epsilon at this delta, it is another one: the cost's own and a millionth.

    >>> alone(Pure("0.1"), Fraction("1e-6"))[0], round(alone(ZCDP("0.005"), Fraction(0))[0], 3)
    (0.1, 0.43)
    """
    charge = charge_of(cost)
    if charge.epsilon is not None:
        return nearest_float(charge.epsilon, up=True), max(delta, charge.delta)
    at = delta if delta > charge.delta else charge.delta + _USUAL
    bounds = [] if charge.rho is None else [zcdp_epsilon(charge.rho, at - charge.delta)]
    if charge.square is not None:
        bounds.append(tight_epsilon(((Normal(sqrt_up(charge.square)), 1),), Fraction(0), at - charge.delta))
    return min(bounds) if bounds else cost.epsilon_at(at), at

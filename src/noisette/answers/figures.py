"""Guarantees in symbols, for people: promises rounded up, what is left rounded down."""

import datetime
import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from noisette.mechanisms.record import number_of
from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Promise, Pure

__all__ = ["at_some_delta", "bound", "failure", "left", "percent", "promise", "promised", "rounded", "spent"]

_DIGITS, _HIDDEN = 6, Fraction(1, 10**7)
_DELTAS = (
    "1e-6",
    "1e-5",
    "1e-4",
    "1e-3",
    "0.01",
    "0.1",
    "0.5",
    "0.9",
    "0.99",
    "0.999",
    "0.9999",
    "0.99999",
    "0.999999",
)


def rounded(number: Fraction | float, *, up: bool, digits: int = _DIGITS) -> str:
    """A number with six digits, rounded up or down; less than a ten-millionth of it is not shown.

    >>> rounded(Fraction(1, 3), up=True), rounded(Fraction(1, 3), up=False)
    ('0.333334', '0.333333')
    >>> rounded(2000, up=True), rounded(1e-6, up=True), rounded(Fraction(10**10 + 1, 10**10), up=True)
    ('2,000', '1e-6', '1')
    """
    given = Fraction(str(number)) if isinstance(number, float) else Fraction(number)
    exact = given * (1 - _HIDDEN if up else 1 + _HIDDEN)
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    short = context.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize()
    return f"{short:,f}" if not short or -4 <= short.adjusted() < 12 else f"{short:e}"


def failure(rules: Mapping[str, Any]) -> str:
    """What a minimum frequency may show all the same, beside epsilon and delta and part of neither.

    >>> failure({"minimum_frequency": 10, "failure": "1/1000000"}), failure({})
    (' · failure ≤ 1e-6', '')
    """
    if "failure" not in rules:
        return ""
    return f" · failure ≤ {rounded(number_of(rules['failure']), up=True, digits=3)}"


def promise(guarantee: Guarantee) -> str:
    """A guarantee in symbols.

    >>> promise(Approx("0.5", "1e-6")), promise(ZCDP("0.1"))
    ('ε = 0.5, δ = 1e-6', 'ρ = 0.1 (zero-concentrated)')
    """
    match guarantee:
        case Pure(eps):
            return f"ε = {rounded(eps, up=True)}"
        case Approx(eps, delta):
            return f"ε = {rounded(eps, up=True)}, δ = {rounded(delta, up=True, digits=3)}"
        case ZCDP(rho):
            return f"ρ = {rounded(rho, up=True)} (zero-concentrated)"
        case Profile():
            at, epsilon = at_some_delta(guarantee)
            return f"ε = {rounded(epsilon, up=True)} at δ = {at}"


def promised(guarantee: Guarantee, asked: Promise | None) -> Guarantee:
    """The promise to print: the one that was asked for, where the noise uses its delta to keep a larger pure epsilon.

    Noise for (ε, δ) may be ε'-DP with ε' slightly above ε, which implies (ε, δ) (`pure_within_approx`). The ledger
    counts ε'.

    >>> promised(Pure("0.50000015"), Approx("0.5", "1e-7")), promised(Pure("0.4"), Approx("0.5", "1e-7"))
    (Approx('1/2', '1/10000000'), Pure('2/5'))
    """
    if not isinstance(guarantee, Pure) or not isinstance(asked, Approx):
        return guarantee
    wanted = Approx(asked.epsilon, asked.delta, neighbours=guarantee.neighbours)
    larger = guarantee.epsilon > asked.epsilon and promise(guarantee) != promise(Pure(asked.epsilon))
    return wanted if larger and guarantee <= wanted else guarantee


def at_some_delta(guarantee: Guarantee) -> tuple[str, float]:
    """A delta and its epsilon: 1e-6, or where that is not enough for any epsilon the least of a few larger ones.

    >>> at_some_delta(Approx(1, "1e-4") + ZCDP("0.1"))[0]
    '1e-3'
    """
    known = ((delta, guarantee.epsilon_at(delta)) for delta in _DELTAS)
    return next(((delta, epsilon) for delta, epsilon in known if epsilon < math.inf), ("1", 0.0))


def spent(guarantee: Guarantee) -> str:
    """What is spent: of an Approx budget its epsilon, since its delta stands for all of it from the start.

    >>> spent(Approx(1, "1e-6")), spent(Pure(1))
    ('ε = 1', 'ε = 1')
    """
    return f"ε = {rounded(guarantee.epsilon, up=True)}" if isinstance(guarantee, Approx) else promise(guarantee)


def left(guarantee: Promise) -> str:
    """What the next question may cost, rounded down.

    >>> left(Approx("1/3", "1e-8")), left(Pure("0.5"))
    ('ε = 0.333333', 'ε = 0.5')
    """
    if isinstance(guarantee, ZCDP):
        return f"ρ = {rounded(guarantee.rho, up=False)} (zero-concentrated)"
    return f"ε = {rounded(guarantee.epsilon, up=False)}"


def percent(level: float) -> str:
    """A level as a percentage.

    >>> percent(0.95), percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:.6g}%"


def bound(end: Fraction | float | datetime.date) -> str:
    """A declared bound as the engine compares with it: every digit, so that it can be found in the policy.

    >>> bound(Fraction(5000)), bound(Fraction(1, 10)), bound(datetime.date(2024, 1, 31))
    ('5000', '0.1', '2024-01-31')
    """
    if isinstance(end, datetime.date):
        return end.isoformat()
    return str(int(end)) if end == int(end) else repr(float(end))

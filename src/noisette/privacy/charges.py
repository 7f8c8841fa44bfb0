"""What a cost takes from a budget by each rule of filters and odometers.

These rules hold even if each cost is chosen after seeing earlier answers. Sums are over the costs actually charged:
 - pure:      sum of e_i <= e keeps e-DP, since the losses themselves are bounded one by one;
 - zCDP:      sum of rho_i <= rho keeps rho-zCDP.   [Feldman-Zrnic 2021; Whitehouse-Ramdas-Rogers-Wu 2023]
 - Gaussian:  sum of mu_i^2 <= mu^2 keeps mu-GDP: if each mu_i is fixed by earlier answers, E exp(s sum of mu_i Z_i) is
              that of one normal variable.   [Smith-Thakurta 2022; Koskela-Tobaben-Honkela 2023]
Tight numerical composition of the costs so far is NOT such a rule, and neither is "this rule or that one" if each uses
the whole delta. The pure rule needs no delta, so it can stand beside another rule: transcripts that end within the pure
rule add nothing to delta, and the others end within the other rule.

Plain addition beside another rule, for costs that are known by rho alone. Each of these costs is also
(plain_i, aside_i)-DP, for an aside_i that is a constant of this module. Split delta = own + plain + rule in advance.
Accept while the costs' own deltas sum to at most `own`, and either
    (A)  sum of plain_i <= e  and  sum of aside_i <= plain,   or   (B)  the other rule keeps (e, rule)-DP.
This keeps (e, delta)-DP. Proof. Take neighbours x, x'. Let p_i be the law of the i-th answer on x given all earlier
answers, and q_i that on x'. Split p_i = p'_i + r_i + s_i: r_i is the event of the cost's own delta, of mass d_i, and
s_i the part of the rest above e^(plain_i) q_i, of mass at most aside_i. Sums only grow, so a transcript that ends
within (A) was within (A) throughout.
 - Transcripts that end within (A): the product of the p'_i is at most e^e times that of the q_i. It falls short of the
   product of the p_i by at most the sum over j of p_1 ... p_(j-1) (r_j + s_j) p_(j+1) ...; the s_j contribute at most
   E(sum of aside_j) <= plain, as an observer who stops where (A) would end sees all of this.
 - Transcripts that end within (B) but not (A): without the r_j, the other rule leaves mass at most `rule` above e^e
   times the q_i.
 - The r_j of both have mass at most E(sum of d_j) <= own, since that bound holds for every transcript.
The three add up to delta. Costs may depend on everything seen so far; the parts of delta may not.   [basic composition
as a filter: Rogers-Roth-Ullman-Vadhan 2016; Whitehouse-Ramdas-Rogers-Wu 2023]
In the same way the zCDP and the Gaussian rule may stand beside each other, each with its own part of delta ("both";
docs/proofs/composition.md).

Vocabulary: `e`, `d` epsilon and delta · `rho` zCDP · `square` mu^2 · `slack` total variation · `reserve` the part of
delta for the costs' own deltas · `plain`, `aside` a pair (epsilon, delta) for plain addition.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, TypeAlias

from noisette.errors import InputError
from noisette.exact.frozen import set_fields
from noisette.exact.number import Number, fraction
from noisette.privacy.convert import pure_to_zcdp, zcdp_epsilon
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Losses, Profile, Pure
from noisette.privacy.neighbours import Neighbours, common
from noisette.privacy.pld.loss import FixedSample, Loss, Normal, Response, Subsampled
from noisette.privacy.pld.ranges import BoundedRange
from noisette.privacy.sampling import amplified

__all__ = ["Charge", "FilterState", "Rule", "bounded", "charge_of", "checked_reserve", "square_of_pure"]

Rule: TypeAlias = Literal["zcdp", "gaussian", "both"]

_RESERVE = Fraction(1, 100)
_LONG, _STEP = 1 << 512, 1 << 256
_HALF_PI = Fraction(355, 226)  # above pi/2
_FEW = 64  # releases whose failure probabilities are multiplied out
_ASIDE = Fraction(1, 10**11)  # the delta at which a cost that is known by rho alone enters the plain sum


@dataclass(frozen=True)
class Charge:
    """What a cost takes by each rule; None where the rule cannot count it. For a pure cost `plain` equals `epsilon`."""

    epsilon: Fraction | None = Fraction(0)
    rho: Fraction | None = Fraction(0)
    square: Fraction | None = Fraction(0)
    delta: Fraction = Fraction(0)
    slack: Fraction = Fraction(0)
    plain: Fraction | None = None
    aside: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            set_fields(self, plain=self.epsilon)

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(
            _plus(self.epsilon, other.epsilon),
            _plus(self.rho, other.rho),
            _plus(self.square, other.square),
            _short(self.delta + other.delta),
            _short(self.slack + other.slack),
            _plus(self.plain, other.plain),
            _short(self.aside + other.aside),
        )

    def __mul__(self, k: int) -> "Charge":
        amounts = (self.epsilon, self.rho, self.square, self.plain)
        epsilon, rho, square, plain = (None if a is None else k * a for a in amounts)
        return Charge(epsilon, rho, square, k * self.delta, k * self.slack, plain, k * self.aside)

    @property
    def amounts(self) -> dict[str, Fraction | None]:
        """All amounts, by the names under which ledgers store them."""
        return {"eps" if name == "epsilon" else name: amount for name, amount in vars(self).items()}


_UNKNOWN = Charge(None, None, None)


def _plus(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else _short(a + b)


def _short(number: Fraction) -> Fraction:
    """The number; rounded up by less than 2^-256 if its denominator reaches 2^512, so that sums stay short."""
    return number if number.denominator < _LONG else Fraction(math.ceil(number * _STEP), _STEP)


def _least(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return min((x for x in (a, b) if x is not None), default=None)


def square_of_pure(e: Fraction) -> Fraction:
    """The mu^2 of the Gaussian pair that dominates every e-DP mechanism, rounded up.

    mu = 2 Phi^-1(e^e / (1 + e^e)): there the two trade-off curves touch, and both are convex. It is below e sqrt(pi/2).
    [Blackwell 1953 and Dong-Roth-Su 2022, for the pair of Kairouz-Oh-Viswanath 2015]
    Losses within a range r have the mu^2 of r/2: their odds rise by at most e^r.   (docs/proofs/composition.md)

    >>> round(float(square_of_pure(Fraction(1))) ** 0.5, 6)
    1.232035
    """
    if e <= Fraction(1, 64):
        return _HALF_PI * e * e
    if e > 700:
        return 8 * e  # Phi(-x) <= e^(-x^2/2) / 2
    mu = -2 * NormalDist().inv_cdf(1 / (1 + math.exp(e))) * (1 + 2.0**-36)
    return min(_HALF_PI * e * e, Fraction(mu) ** 2)


def bounded(e: Fraction, d: Fraction = Fraction(0)) -> Charge:
    """(e, d)-DP: with probability d everything may be revealed, otherwise it is e-DP.   [Kairouz-Oh-Viswanath 2015]"""
    return Charge(e, pure_to_zcdp(e), square_of_pure(e), d)


def _of_loss(loss: Loss) -> Charge:
    match loss:
        case Response(e, d):
            return bounded(e, d)
        case Subsampled(base=Response(e, d), rate=q) | FixedSample(base=Response(e, d), rate=q):
            return bounded(amplified(e, q), q * d)
        case BoundedRange():
            return replace(bounded(loss.epsilon), rho=loss.concentrated, square=square_of_pure(loss.width / 2))
        case Normal(mu, variation):
            return Charge(None, mu**2 / 2, mu**2, slack=variation)
        case _:
            bound = loss.pure()
            return Charge(None, loss.rho(), None) if bound is None else bounded(bound)


def _of_losses(losses: Losses) -> Charge:
    """The sum of all parts; for plain addition, the parts known by rho alone share one pair."""
    pure, rest = Charge(), Charge(None, losses.rho, None) if losses.rho else Charge()
    for loss, count in losses.parts:
        part = _of_loss(loss) * count
        pure, rest = (pure, rest + part) if part.epsilon is None else (pure + part, rest)
    total = pure + _paired(rest)
    return replace(total, delta=_failure(losses)) if total.delta else total


def _failure(losses: Losses) -> Fraction:
    """The probability that some part fails, rounded up: failures are independent. For many releases, the sum."""
    failure = Fraction(0)
    for loss, count in losses.parts:
        delta = _of_loss(loss).delta
        if count > _FEW:
            failure += count * delta
            continue
        for _ in range(count if delta else 0):
            failure = _short(failure + delta * (1 - failure))
    return min(failure, Fraction(1))


def _of_statement(cost: Guarantee) -> Charge:
    match cost:
        case Pure():
            return bounded(cost.epsilon)
        case Approx():
            return bounded(cost.epsilon, cost.delta)
        case ZCDP():
            return Charge(None, cost.rho, None)
        case Profile():
            return _UNKNOWN


def charge_of(cost: Guarantee) -> Charge:
    """What a cost takes by each rule: the smaller amount of its statement and its losses.

    With a delta, one of the two counts for all rules (the losses if they can), since the failure must be one event.
    """
    if not isinstance(cost, Pure | Approx | ZCDP | Profile):
        raise InputError("A cost must be a Pure, Approx, ZCDP or Profile: take a mechanism's .guarantee(distance).")
    stated = _of_statement(cost)
    known = _UNKNOWN if cost.losses is None else _of_losses(cost.losses)
    if stated.delta or known.delta:
        return _paired(stated if known.rho is None else known)
    return _paired(
        Charge(
            _least(stated.epsilon, known.epsilon),
            _least(stated.rho, known.rho),
            _least(stated.square, known.square),
            slack=known.slack,
            plain=known.plain,
            aside=known.aside,
        )
    )


def _paired(charge: Charge) -> Charge:
    """The charge with a pair for plain addition if epsilon is unknown: that of its rho, unless it has a smaller one."""
    if charge.epsilon is not None or charge.rho is None:
        return charge
    whole = _plain(charge.rho)
    return charge if charge.plain is not None and charge.plain <= whole else replace(charge, plain=whole, aside=_ASIDE)


@lru_cache(maxsize=1024)
def _plain(rho: Fraction) -> Fraction:
    return Fraction(zcdp_epsilon(rho, _ASIDE)) if rho else Fraction(0)


def checked_reserve(reserve: Number | None, delta: Fraction) -> Fraction:
    """The part of delta for the costs' own deltas, by default a hundredth."""
    part = _RESERVE * delta if reserve is None else fraction(reserve, "reserve")
    if not 0 <= part <= delta:
        raise InputError("reserve must lie between 0 and delta: it is the part of delta for the costs' own deltas.")
    return part


@dataclass(frozen=True)
class FilterState:
    """What was spent, under which relation, and the rule that counts an Approx budget."""

    total: Charge
    neighbours: Neighbours | None
    rule: Rule | None

    def plus(self, charge: Charge, neighbours: Neighbours | None) -> "FilterState":
        """Return the state after a charge; raise PrivacyError where the relations differ."""
        rule = self.rule
        if rule is None and charge != Charge():
            rule = "gaussian" if charge.epsilon is None and charge.square is not None else "zcdp"
        return FilterState(self.total + charge, common(self.neighbours, neighbours), rule)

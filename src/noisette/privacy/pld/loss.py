"""Privacy losses: for each kind of mechanism a dominating pair of laws (P, Q), the pair easiest to tell apart.

The privacy loss is L = ln(P/Q). A loss gives its distribution as tails, `above(t)` = (P(L > t), Q(L > t)) and
`below(t)` = (P(L <= t), Q(L <= t)) for arrays of t, or as atoms; Q has mass e^-L where P has mass 1. If the pair
dominates every pair of neighbours, delta(epsilon) = E_P(1 - e^(epsilon - L))_+ bounds the mechanism's, alone and
composed.   [Zhu-Dong-Wang 2022]

Vocabulary: `t` loss · `p` masses under P · `slack` distance between the noise that is drawn and the noise accounted.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import nearest_float
from noisette.exact.rational import exp_up, ln_bounds

__all__ = [
    "FixedSample",
    "LatticeLaplace",
    "LatticeNormal",
    "Loss",
    "Normal",
    "Response",
    "Subsampled",
    "at_least_one",
]

Floats: TypeAlias = NDArray[np.float64]

_LARGEST_SAMPLED = 500
_COARSEST = Fraction(1, 8)
_DEVIATIONS = 20.0  # standard deviations: beyond lies 1e-88


class Loss:
    """A dominating pair of laws; frozen and hashable, so that equal losses can be counted.

    Where a pair says nothing else it is symmetric, both laws have the same support, and losses are unbounded.
    """

    symmetric: ClassVar[bool] = True  # whether (Q, P) has the same distribution of losses as (P, Q)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Return (losses, masses under P) if the distribution is a short list of atoms, else None."""
        return None

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """Return P(L > t) and Q(L > t); not needed where there are atoms."""
        raise NotImplementedError

    def below(self, t: Floats) -> tuple[Floats, Floats]:
        """Return P(L <= t) and Q(L <= t); not needed where there are atoms."""
        raise NotImplementedError

    def ends(self, tail: float) -> tuple[float, float]:
        """Return two losses beyond which, on either side, lies at most mass `tail`."""
        raise NotImplementedError

    def certain(self) -> float:
        """Return the mass of P where Q has none, that is, where the loss is infinite."""
        return 0.0

    def slack(self) -> float:
        """Return n/(8 s^2) for discrete noise that is accounted as continuous; it bounds their total variation."""
        return 0.0

    def pure(self) -> Fraction | None:
        """Return the largest loss, or None if losses are unbounded or infinite with positive probability."""
        return None

    def rho(self) -> Fraction | None:
        """Return a rho for which the release is rho-zCDP, or None; epsilon^2/2 if bounded.   [Bun-Steinke 2016]"""
        bound = self.pure()
        return None if bound is None else bound * bound / 2


@dataclass(frozen=True)
class Response(Loss):
    """Randomized response, which dominates every (epsilon, delta)-DP mechanism.   [Kairouz-Oh-Viswanath 2015]"""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def atoms(self) -> tuple[Floats, Floats]:
        """The losses ±epsilon, with odds e^epsilon."""
        e = float(self.epsilon)
        truth = 1 / (1 + math.exp(-e))
        return np.array([-e, e]), float(1 - self.delta) * np.array([math.exp(-e) * truth, truth])

    def ends(self, tail: float) -> tuple[float, float]:
        """±epsilon."""
        return -float(self.epsilon), float(self.epsilon)

    def certain(self) -> float:
        """Delta, rounded up."""
        return nearest_float(self.delta, up=True)

    def between_ends(self) -> float:
        """P(|L| < epsilon) = 0."""
        return 0.0

    def pure(self) -> Fraction | None:
        """Epsilon; None with a delta."""
        return None if self.delta else self.epsilon


@dataclass(frozen=True)
class Normal(Loss):
    """Gaussian noise at distance mu standard deviations: L is N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q.

    `variation` is n/(8 s^2) for discrete noise of s lattice steps on n numbers that move, 0 for continuous noise.
    """

    mu: Fraction
    variation: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.variation > _COARSEST:
            raise InputError(
                "Discrete noise below one lattice step is far from continuous noise: use LatticeNormal, not Normal."
            )

    def _places(self, t: Floats) -> tuple[Floats, Floats]:
        mu = float(self.mu)
        return t / mu - mu / 2, t / mu + mu / 2

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """Normal upper tails."""
        from scipy.special import ndtr

        under_p, under_q = self._places(t)
        return ndtr(-under_p), ndtr(-under_q)

    def below(self, t: Floats) -> tuple[Floats, Floats]:
        """Normal lower tails."""
        from scipy.special import ndtr

        under_p, under_q = self._places(t)
        return ndtr(under_p), ndtr(under_q)

    def ends(self, tail: float) -> tuple[float, float]:
        """sqrt(2 ln(1/tail)) standard deviations around the mean, since P(X > x) < e^(-x^2/2)."""
        mu, deviations = float(self.mu), math.sqrt(-2 * math.log(tail))
        return mu * (mu / 2 - deviations), mu * (mu / 2 + deviations)

    def slack(self) -> float:
        """n/(8 s^2), rounded up."""
        return nearest_float(self.variation, up=True)

    def rho(self) -> Fraction | None:
        """mu^2/2, for discrete noise too."""
        return self.mu**2 / 2


@dataclass(frozen=True)
class LatticeLaplace(Loss):
    """Discrete Laplace noise on a number that moves by `steps` lattice points, at epsilon in all.

    With a = e^(-epsilon/steps): L = epsilon (1 - 2j/steps) has mass a^j (1-a)/(1+a), 0 < j < steps; the ends have
    1/(1+a) and a^steps/(1+a). It also dominates moves of the same l1 length along several coordinates
    (docs/proofs/composition.md).
    """

    epsilon: Fraction
    steps: int

    def _split(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """How many atoms lie above t, and their masses under P and Q."""
        e, k = float(self.epsilon), self.steps
        count = np.clip(np.ceil((1 - t / e) * k / 2), 0, k + 1)
        share = 1 / (1 + math.exp(-e / k))
        under_p = np.where(count > k, 1.0, np.where(count > 0, -np.expm1(-e * count / k + math.log(share)), 0.0))
        under_q = np.where(count > k, 1.0, np.where(count > 0, share * np.exp(-e * (k + 1 - count) / k), 0.0))
        return count, under_p, under_q

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """Geometric sums."""
        return self._split(t)[1:]

    def below(self, t: Floats) -> tuple[Floats, Floats]:
        """Geometric sums from the other end: Q mirrors P."""
        e, k = float(self.epsilon), self.steps
        count, _, under_q = self._split(t)
        share = 1 / (1 + math.exp(-e / k))
        under_p = np.where(count > k, 0.0, np.where(count > 0, share * np.exp(-e * count / k), 1.0))
        return under_p, 1 - under_q

    def ends(self, tail: float) -> tuple[float, float]:
        """±epsilon."""
        return -float(self.epsilon), float(self.epsilon)

    def between_ends(self) -> float:
        """P(|L| < epsilon)."""
        ends = 1 + math.exp(-float(self.epsilon))
        return max(0.0, 1 - ends / (1 + math.exp(-float(self.epsilon) / self.steps)))

    def pure(self) -> Fraction | None:
        """Epsilon."""
        return self.epsilon


@dataclass(frozen=True)
class LatticeNormal(Loss):
    """Discrete Gaussian noise of parameter s2 on one whole number that moves by `shift`."""

    s2: Fraction
    shift: int

    def atoms(self) -> tuple[Floats, Floats]:
        """L = (2 shift y + shift^2) / (2 s2) with y from the same discrete Gaussian."""
        sigma = math.sqrt(self.s2)
        y = np.arange(-math.ceil(_DEVIATIONS * sigma) - 2, math.ceil(_DEVIATIONS * sigma) + 3)
        weights = np.exp(-(y * y) / (2 * float(self.s2)))
        return (2 * self.shift * y + self.shift**2) / (2 * float(self.s2)), weights / weights.sum()

    def ends(self, tail: float) -> tuple[float, float]:
        """The losses of the outermost atoms."""
        losses, _ = self.atoms()
        return float(losses[0]), float(losses[-1])

    def rho(self) -> Fraction | None:
        """shift^2 / (2 s2)."""
        return self.shift**2 / (2 * self.s2)


@dataclass(frozen=True)
class Subsampled(Loss):
    """A mechanism on a Poisson sample, under add/remove: each person is in it with probability `rate`.

    P' = (1 - q) Q + q P against Q' = Q, so L' = ln(1 - q + q e^L); the other direction is computed separately.
    [Zhu-Dong-Wang 2022, Theorem 11]
    """

    base: Loss
    rate: Fraction
    symmetric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        bound = self.base.pure()
        if bound is not None and bound > _LARGEST_SAMPLED:
            raise InputError(f"A release on a sample must have an epsilon of at most {_LARGEST_SAMPLED}: spend less.")

    def _mixed(self, pair: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        q = float(self.rate)
        return (1 - q) * pair[1] + q * pair[0], pair[1]

    def _inner(self, t: Floats) -> Floats:
        """The loss of the base that becomes t; -inf where t is below ln(1 - q)."""
        q = float(self.rate)
        inside = 1 + np.expm1(t) / q
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(inside > 0, np.log(np.maximum(inside, 1e-320)), -np.inf)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """The atoms of the base, each at its new loss."""
        base = self.base.atoms()
        if base is None:
            return None
        losses, p = base
        q, alone = float(self.rate), self.base.certain()  # where P has none of Q's mass, L' is ln(1 - q)
        with_rest = np.append(losses, -np.inf) if alone and q < 1 else losses
        masses = p * ((1 - q) * np.exp(-losses) + q)
        return np.log1p(q * np.expm1(with_rest)), np.append(masses, (1 - q) * alone) if len(with_rest) > len(
            p
        ) else masses

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """Mixed upper tails."""
        return self._mixed(self.base.above(self._inner(t)))

    def below(self, t: Floats) -> tuple[Floats, Floats]:
        """Mixed lower tails."""
        return self._mixed(self.base.below(self._inner(t)))

    def ends(self, tail: float) -> tuple[float, float]:
        """The ends of the base at their new losses."""
        low, high = self.base.ends(tail)
        q = float(self.rate)
        new_high = math.log1p(q * math.expm1(high)) if high < 700 else high + math.log(q)
        return math.log1p(q * math.expm1(low)), new_high

    def certain(self) -> float:
        """The rate times that of the base: people outside the sample are safe."""
        return float(self.rate) * self.base.certain()

    def slack(self) -> float:
        """At most that of the base."""
        return self.base.slack()

    def pure(self) -> Fraction | None:
        """ln(1 + q (e^epsilon - 1)), rounded up."""
        bound = self.base.pure()
        if bound is None:
            return None
        return Fraction(ln_bounds(1 + self.rate * (exp_up(bound) - 1), 96)[1], 1 << 96)


@dataclass(frozen=True)
class FixedSample(Loss):
    """A mechanism on a sample of fixed size, `rate` of the people, under replace; its loss is symmetric.

    Losses above 0 are those of P' = (1 - q) Q + q P against Q, losses below 0 their mirror image, and the rest of the
    mass lies at 0. This pair has the largest delta(epsilon) at every epsilon, for x against x' and back.
    [after Balle-Barthe-Gaboardi 2018, Theorem 9, and Zhu-Dong-Wang 2022; proof: docs/proofs/composition.md]
    """

    base: Loss
    rate: Fraction

    @property
    def _one_way(self) -> Subsampled:
        return Subsampled(self.base, self.rate)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """The atoms above 0, their mirror images, and one at 0."""
        found = self.base.atoms()
        if found is None:
            return None
        q, up = float(self.rate), found[0] > 0
        losses = np.log1p(q * np.expm1(found[0][up]))
        p = found[1][up] * ((1 - q) * np.exp(-found[0][up]) + q)
        rest = max(0.0, 1 - self.certain() - float(p.sum()) - float((p * np.exp(-losses)).sum()))
        return np.concatenate([-losses, [0.0], losses]), np.concatenate([p * np.exp(-losses), [rest], p])

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """Mixed upper tails from 0 on; below 0 what the lower tails leave."""
        up, down = self._one_way.above(np.maximum(t, 0.0)), self._mirrored(t)
        under_p, under_q = (np.where(t >= 0, a, 1 - b) for a, b in zip(up, down, strict=True))
        return under_p, under_q

    def below(self, t: Floats) -> tuple[Floats, Floats]:
        """The mirror image of the upper tails below 0; from 0 on what the upper tails leave."""
        up, down = self._one_way.above(np.maximum(t, 0.0)), self._mirrored(t)
        under_p, under_q = (np.where(t >= 0, 1 - a, b) for a, b in zip(up, down, strict=True))
        return under_p, under_q

    def _mirrored(self, t: Floats) -> tuple[Floats, Floats]:
        """P(L <= t) = Q(L >= -t) and Q(L <= t) = P(L >= -t), for t < 0."""
        under_p, under_q = self._one_way.above(np.nextafter(np.maximum(-t, 0.0), -np.inf))
        return under_q, under_p

    def ends(self, tail: float) -> tuple[float, float]:
        """The larger end, on either side."""
        high = self._one_way.ends(tail)[1]
        return -high, high

    def certain(self) -> float:
        """The rate times that of the base: people outside the sample are safe."""
        return self._one_way.certain()

    def slack(self) -> float:
        """At most that of the base."""
        return self.base.slack()

    def pure(self) -> Fraction | None:
        """ln(1 + q (e^epsilon - 1)), rounded up."""
        return self._one_way.pure()


def at_least_one(chances: Iterable[tuple[float, int]]) -> float:
    """The chance that some of independent events happens, each given with its count.

    >>> at_least_one([(0.5, 2)]), at_least_one([(1.0, 1), (0.5, 1)])
    (0.75, 1.0)
    """
    none = sum(k * (math.log1p(-p) if p < 1 else -math.inf) for p, k in chances)
    return -math.expm1(none)

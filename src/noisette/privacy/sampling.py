"""Amplification by subsampling: a release on a random part of the people promises more to each of them.

Vocabulary: `q` the chance of one person to be in the sample · `e`, `d` what the release promises to those in it.

What is sampled must be the people, by secret fresh coins, for every release anew, and nobody may learn who is in the
sample. Shuffling the people and cutting batches, as training loops do, is NOT Poisson sampling: its guarantee can be
far weaker than the one computed here.   [Chua-Ghazi-Kamath-Kumar-Manurangsi-Sinha-Zhang 2024]
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, whole
from noisette.exact.rational import exp_up, ln_bounds
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Losses, Profile, Pure
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.pld.loss import Floats, Loss, Pair, Response, Subsampled

__all__ = ["FixedSample", "amplified", "fixed_size", "poisson"]

_BITS = 96
_ENOUGH = Fraction(200)  # e^-200 is nothing beside any rate


@dataclass(frozen=True)
class FixedSample(Pair):
    """A mechanism on a sample of fixed size, `rate` of the people, under replace; its loss is symmetric.

    For losses above 0 the pair is P' = (1 - q) Q + q P against Q, for those below 0 its mirror image, and the rest lies
    at 0: this has the largest delta(epsilon) at every epsilon, above 0 and below, for x against x' and back.
    [after Balle-Barthe-Gaboardi 2018, Theorem 9, and Zhu-Dong-Wang 2022; proof: docs/proofs/composition.md]
    """

    base: Loss
    rate: Fraction

    @property
    def _one_way(self) -> Subsampled:
        return Subsampled(self.base, self.rate)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Those above 0, their mirror images, and 0."""
        found = self.base.atoms()
        if found is None:
            return None
        q, up = float(self.rate), found[0] > 0
        losses = np.log1p(q * np.expm1(found[0][up]))
        p = found[1][up] * ((1 - q) * np.exp(-found[0][up]) + q)
        rest = max(0.0, 1 - self.certain() - float(p.sum()) - float((p * np.exp(-losses)).sum()))
        return np.concatenate([-losses, [0.0], losses]), np.concatenate([p * np.exp(-losses), [rest], p])

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """Mixed upper tails from 0 on, and what the lower tails leave."""
        up, down = self._one_way.above(np.maximum(t, 0.0)), self._mirrored(t)
        under_p, under_q = (np.where(t >= 0, a, 1 - b) for a, b in zip(up, down, strict=True))
        return under_p, under_q

    def below(self, t: Floats) -> tuple[Floats, Floats]:
        """The mirror image of the upper tails below 0, and what the upper tails leave."""
        up, down = self._one_way.above(np.maximum(t, 0.0)), self._mirrored(t)
        under_p, under_q = (np.where(t >= 0, 1 - a, b) for a, b in zip(up, down, strict=True))
        return under_p, under_q

    def _mirrored(self, t: Floats) -> tuple[Floats, Floats]:
        """P(L <= t) = Q(L >= -t) and Q(L <= t) = P(L >= -t), for t < 0."""
        under_p, under_q = self._one_way.above(np.nextafter(np.maximum(-t, 0.0), -np.inf))
        return under_q, under_p

    def ends(self, tail: float) -> tuple[float, float]:
        """The larger end, on both sides."""
        high = self._one_way.ends(tail)[1]
        return -high, high

    def certain(self) -> float:
        """Only the people taken can be told for certain."""
        return self._one_way.certain()

    def slack(self) -> float:
        """No more than the base's."""
        return self.base.slack()

    def pure(self) -> Fraction | None:
        """ln(1 + q (e^epsilon - 1)), rounded up."""
        return self._one_way.pure()


def amplified(e: Fraction, q: Fraction) -> Fraction:
    """ln(1 + q (e^e - 1)), rounded up by about 2^-90 and never above e.

    It is e + ln(q + (1 - q) e^-e), in numbers that stay small.

    >>> float(amplified(Fraction(1), Fraction(1, 10)))
    0.1585650787404291
    """
    if not e or q == 1:
        return e
    return min(e, e + Fraction(ln_bounds(q + (1 - q) * exp_up(-min(e, _ENOUGH)), _BITS)[1], 1 << _BITS))


def poisson(guarantee: Guarantee, rate: Number) -> Guarantee:
    """What one release promises under add/remove if each person is in its data with probability `rate`, independently.

    (e, d)-DP becomes (ln(1 + q (e^e - 1)), q d)-DP.   [Li-Qardaji-Su 2012; Balle-Barthe-Gaboardi 2018, Theorem 8]
    The result also knows its whole loss, so that sums of it compose tightly; for Gaussian noise, which has neither a
    pure nor a zCDP guarantee any more, it is a `Profile`.   [Zhu-Dong-Wang 2022, Theorem 11]

    Batches cut from shuffled people are not Poisson samples, and this is not their guarantee.   [Chua et al. 2024]

    >>> step = poisson(Pure(1), "0.1")
    >>> str(step), round((step * 100).epsilon_at("1e-6"), 4)
    ('0.158565…-DP under add/remove', 5.2955)
    """
    q = _rate(rate)
    _refuse_other(guarantee, Neighbours.ADD_REMOVE, "replace", "fixed_size(guarantee, m, n)")
    loss = _single(guarantee)
    if q == 1:
        return guarantee.under(Neighbours.ADD_REMOVE)
    if loss is None:
        raise PrivacyError(
            "zCDP alone says nothing better about a sample: sample a mechanism's own guarantee, or one restated as "
            "Approx(epsilon, delta)."
        )
    losses = Losses(((_sampled(loss, q), 1),))
    if isinstance(guarantee, Pure | Approx):
        return _amplified(guarantee, q, Neighbours.ADD_REMOVE, losses)
    return Profile(losses, neighbours=Neighbours.ADD_REMOVE)


def fixed_size(guarantee: Guarantee, m: int, n: int) -> Guarantee:
    """What one release promises under replace if its data are m of the n people, drawn without replacement.

    (e, d)-DP becomes (ln(1 + q (e^e - 1)), q d)-DP with q = m/n.   [Balle-Barthe-Gaboardi 2018, Theorem 9]
    The result also knows its whole loss (`FixedSample`), so that sums of it compose tightly; for Gaussian noise it is a
    `Profile`.

    >>> step = fixed_size(Approx(1, "1e-6"), 10, 100)
    >>> step.delta, round((fixed_size(Pure(1), 10, 100) * 100).epsilon_at("1e-6"), 4)
    (Fraction(1, 10000000), 5.9931)
    """
    size, people = whole(m, "m"), whole(n, "n")
    if size > people:
        raise InputError("m must be at most n: a sample without replacement is not larger than the whole.")
    _refuse_other(guarantee, Neighbours.REPLACE, "add/remove", "poisson(guarantee, rate)")
    loss, q = _single(guarantee), Fraction(size, people)
    if q == 1:
        return guarantee.under(Neighbours.REPLACE)
    if loss is None or not loss.symmetric:
        raise PrivacyError(
            "zCDP alone says nothing better about a sample: sample a mechanism's own guarantee, or one restated as "
            "Approx(epsilon, delta)."
        )
    base, rate = (loss.base, loss.rate) if isinstance(loss, FixedSample) else (loss, Fraction(1))
    losses = Losses(((cast(Loss, FixedSample(base, rate * q)), 1),))
    if isinstance(guarantee, Pure | Approx):
        return _amplified(guarantee, q, Neighbours.REPLACE, losses)
    return Profile(losses, neighbours=Neighbours.REPLACE)


def _rate(value: Number) -> Fraction:
    q = fraction(value, "rate")
    if not 0 < q <= 1:
        raise InputError("rate must be above 0 and at most 1: it is each person's chance to be in the sample.")
    return q


def _refuse_other(guarantee: Guarantee, wanted: Neighbours, other: str, instead: str) -> None:
    if not isinstance(guarantee, Pure | Approx | ZCDP | Profile):
        raise InputError("guarantee must be a Pure, Approx, ZCDP or Profile: take a mechanism's .guarantee(distance).")
    if guarantee.neighbours not in (None, wanted):
        raise PrivacyError(f"This sampling amplifies guarantees under {wanted} alone: under {other} use {instead}.")


def _single(guarantee: Guarantee) -> Loss | None:
    """The loss of a single release; randomized response stands for a plain (epsilon, delta)."""
    losses = guarantee.losses
    if losses is None:
        return Response(guarantee.epsilon, guarantee.delta) if isinstance(guarantee, Pure | Approx) else None
    if losses.rho or [count for _, count in losses.parts] != [1]:
        raise PrivacyError(
            "A sum of releases is not sampled as one: sample each release by itself, then add them; for several "
            "releases on one and the same sample, restate their sum as a new Pure or Approx."
        )
    return losses.parts[0][0]


def _sampled(loss: Loss, q: Fraction) -> Loss:
    """A sample of a sample is a sample."""
    base, rate = (loss.base, loss.rate) if isinstance(loss, Subsampled) else (loss, Fraction(1))
    return cast(Loss, Subsampled(base, rate * q))


def _amplified(g: Pure | Approx, q: Fraction, neighbours: Neighbours, losses: Losses | None) -> Pure | Approx:
    eps = amplified(g.epsilon, q)
    if isinstance(g, Pure):
        return Pure(eps, neighbours=neighbours, losses=losses)
    return Approx(eps, q * g.delta, neighbours=neighbours, losses=losses)

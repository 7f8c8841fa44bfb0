"""Amplification by subsampling: a release on a random sample of the people has a stronger guarantee.

Vocabulary: `q` the probability that a person is in the sample · `e`, `d` the guarantee for the people in it.

The sample must be of people, drawn with secret, fresh coins for every release, and nobody may learn who is in it.
Shuffling the people and cutting batches, as training loops do, is NOT Poisson sampling: its guarantee can be far weaker
than the one computed here.   [Chua-Ghazi-Kamath-Kumar-Manurangsi-Sinha-Zhang 2024]
"""

from fractions import Fraction
from typing import cast

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, whole
from noisette.exact.rational import exp_up, ln_bounds
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Losses, Profile, Pure
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.pld.loss import FixedSample, Loss, Response, Subsampled

__all__ = ["amplified", "fixed_size", "poisson"]

_BITS = 96
_LARGEST_EXPONENT = Fraction(200)  # e^-200 is negligible beside any rate


def amplified(e: Fraction, q: Fraction) -> Fraction:
    """ln(1 + q (e^e - 1)), rounded up by about 2^-90 and never above e.

    It is computed as e + ln(q + (1 - q) e^-e), which does not overflow.

    >>> float(amplified(Fraction(1), Fraction(1, 10)))
    0.1585650787404291
    """
    if not e or q == 1:
        return e
    return min(e, e + Fraction(ln_bounds(q + (1 - q) * exp_up(-min(e, _LARGEST_EXPONENT)), _BITS)[1], 1 << _BITS))


def poisson(guarantee: Guarantee, rate: Number) -> Guarantee:
    """The guarantee, under add/remove, of a release on a Poisson sample: each person is in it with probability `rate`.

    (e, d)-DP becomes (ln(1 + q (e^e - 1)), q d)-DP.   [Li-Qardaji-Su 2012; Balle-Barthe-Gaboardi 2018, Theorem 8]
    The result also carries its loss, so that sums of it compose tightly. On a sample, Gaussian noise has neither a pure
    nor a zCDP guarantee, so there it is a `Profile`.   [Zhu-Dong-Wang 2022, Theorem 11]

    Batches cut from shuffled people are not Poisson samples; this is not their guarantee.   [Chua et al. 2024]

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
            "zCDP alone is not amplified by sampling: pass a mechanism's own guarantee, or restate it as "
            "Approx(epsilon, delta)."
        )
    losses = Losses(((_sampled(loss, q), 1),))
    if isinstance(guarantee, Pure | Approx):
        return _amplified(guarantee, q, Neighbours.ADD_REMOVE, losses)
    return Profile(losses, neighbours=Neighbours.ADD_REMOVE)


def fixed_size(guarantee: Guarantee, m: int, n: int) -> Guarantee:
    """The guarantee, under replace, of a release on m of the n people, drawn without replacement.

    (e, d)-DP becomes (ln(1 + q (e^e - 1)), q d)-DP with q = m/n.   [Balle-Barthe-Gaboardi 2018, Theorem 9]
    The result also carries its loss (`FixedSample`), so that sums of it compose tightly; for Gaussian noise it is a
    `Profile`.

    >>> step = fixed_size(Approx(1, "1e-6"), 10, 100)
    >>> step.delta, round((fixed_size(Pure(1), 10, 100) * 100).epsilon_at("1e-6"), 4)
    (Fraction(1, 10000000), 5.9931)
    """
    size, people = whole(m, "m"), whole(n, "n")
    if size > people:
        raise InputError("m must be at most n: a sample without replacement holds at most all n people.")
    _refuse_other(guarantee, Neighbours.REPLACE, "add/remove", "poisson(guarantee, rate)")
    loss, q = _single(guarantee), Fraction(size, people)
    if q == 1:
        return guarantee.under(Neighbours.REPLACE)
    if loss is None or not loss.symmetric:
        raise PrivacyError(
            "zCDP alone is not amplified by sampling: pass a mechanism's own guarantee, or restate it as "
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
        raise PrivacyError(f"This kind of sampling needs a guarantee under {wanted}: under {other} use {instead}.")


def _single(guarantee: Guarantee) -> Loss | None:
    """The loss of a single release; randomized response for a plain (epsilon, delta); None for zCDP alone."""
    losses = guarantee.losses
    if losses is None:
        return Response(guarantee.epsilon, guarantee.delta) if isinstance(guarantee, Pure | Approx) else None
    if losses.rho or [count for _, count in losses.parts] != [1]:
        raise PrivacyError(
            "A sum of releases cannot be sampled as one: sample each release, then add them; for several releases on "
            "the same sample, restate their sum as a new Pure or Approx."
        )
    return losses.parts[0][0]


def _sampled(loss: Loss, q: Fraction) -> Loss:
    """A sample of a sample is a sample."""
    base, rate = (loss.base, loss.rate) if isinstance(loss, Subsampled) else (loss, Fraction(1))
    return cast(Loss, Subsampled(base, rate * q))


def _amplified(g: Pure | Approx, q: Fraction, neighbours: Neighbours, losses: Losses | None) -> Pure | Approx:
    epsilon = amplified(g.epsilon, q)
    if isinstance(g, Pure):
        return Pure(epsilon, neighbours=neighbours, losses=losses)
    return Approx(epsilon, q * g.delta, neighbours=neighbours, losses=losses)

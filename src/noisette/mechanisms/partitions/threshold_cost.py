"""What releasing noisy counts above a threshold costs: counts that move, and counts that begin.   (docs/proofs/keys.md)

Vocabulary: an old count is above 0 with and without the unit, a new one only with it · `move` how far a unit moves
counts: `keys` of them by up to `weight` each · `new` the chance that a new count is seen · D the delta of old ones.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from noisette.exact.number import nearest_float
from noisette.exact.rational import sqrt_up
from noisette.laws import DiscreteGaussian
from noisette.mechanisms.partitions.bounded_laplace import Geometrical, tail_up
from noisette.privacy import Approx
from noisette.privacy.convert import gaussian_delta as continuous_delta
from noisette.privacy.convert import zcdp_delta
from noisette.privacy.pld.loss import LatticeNormal, Normal
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["gaussian_delta", "is_plain", "keys_of", "least_sigma", "old_delta", "old_loss", "tail", "weight_of"]

Noises: TypeAlias = Geometrical | DiscreteGaussian

_UP = 1 + 1e-9  # covers the rounding of sums of floats
_ROOM = 1 + 1e-8  # left to the threshold by calibration
_WIDE = 2**24  # from this variance on a sum over the integers would take long, and continuous noise is like discrete
_FARTHEST = 190  # 2 e^-190 is below 1e-80


def keys_of(move: Sensitivity) -> int:
    """How many counts a unit moves, at most."""
    return math.floor(min(move.l1, Fraction(move.l0)))


def weight_of(move: Sensitivity) -> int:
    """How far it moves each of them, at most."""
    return math.floor(move.linf)


@lru_cache(maxsize=1024)
def tail(law: Noises, least: int) -> Fraction:
    """P(Z >= least), rounded up."""
    if not isinstance(law, DiscreteGaussian):
        return tail_up(law, least)
    if least > 0:
        return min(Fraction(1), Fraction(float(law.upper(least)) * _UP + 1e-300))
    return min(Fraction(1), Fraction((1 - float(law.upper(1 - least))) * _UP))


def is_plain(move: Sensitivity, sigma: Fraction) -> bool:
    """Tell whether all counts may move by the whole weight, and noise is wide enough to know the law of its sums."""
    keys, weight = keys_of(move), weight_of(move)
    return (weight <= 1 or move.l2_squared >= keys * weight**2) and (keys == 1 or sigma >= 1)


def gaussian_delta(s2: Fraction, move: Sensitivity, new: Fraction, epsilon: Fraction) -> float:
    """The largest delta over how many of the counts are new, rounded up."""
    return _worst(s2, keys_of(move), weight_of(move), nearest_float(new, up=True), epsilon)


@lru_cache(maxsize=4096)
def _worst(s2: Fraction, keys: int, weight: int, new: float, epsilon: Fraction) -> float:
    """Each number j of new counts among `keys`, from 30 on bounded for ranges a .. b."""
    if new >= 1:
        return 1.0
    e, log_p = nearest_float(epsilon, up=False), math.log1p(-new)
    starts = sorted({*range(30), *(math.ceil(30 * 1.1**i) for i in range(500))})
    starts = [j for j in starts if j <= keys]
    worst = 0.0
    for a, b in zip(starts, [*(j - 1 for j in starts[1:]), keys], strict=True):
        unseen = math.exp(b * log_p)
        worst = max(worst, -math.expm1(b * log_p) + unseen * old_delta(s2, keys - a, e, weight))
    return min(1.0, worst * _UP)


@lru_cache(maxsize=4096)
def old_delta(s2: Fraction, n: int, e: float, weight: int = 1) -> float:
    """D: delta(e) of discrete Gaussian noise on n counts that move by w = `weight` each, rounded up.

    The loss is (2 w Y + n w^2)/(2 s2), Y the sum of n noises, which is discrete Gaussian with n s2 up to a factor
    e^±t, t = 5 (n-1) e^(-pi^2 s2), by Poisson summation (proof note). Wide noise is accounted as continuous.
    """
    if n == 0:
        return 0.0
    mixed = math.exp(min(5 * (n - 1) * math.exp(-(math.pi**2) * float(s2)), 700.0))  # e^700 1e-80 > 1
    near = n * s2 >= min(_WIDE, _FARTHEST * 2**11 / e if e else _WIDE)  # it costs 2^-14 of e at most, or 24/_WIDE
    found = (_smooth if near else _summed)(n * s2, n * weight, e)
    return min(1.0, (found * _UP + 1e-80) * mixed)


def _summed(variance: Fraction, shift: int, e: float) -> float:
    """delta(e) of one discrete Gaussian that moves by `shift`, up to 1e-80.   [CKS 2020, Theorem 7]"""
    v = float(variance)
    first, reach = math.floor(e * v / shift - shift / 2), math.ceil(20 * math.sqrt(v)) + 20
    y = np.arange(max(first, -reach), reach)
    loss = (2 * shift * y + shift * shift) / (2 * v) - e
    return float((DiscreteGaussian(variance).pmf(y) * -np.expm1(-np.maximum(loss, 0))).sum())


def _smooth(variance: Fraction, shift: int, e: float) -> float:
    """The same, up to 1e-80, from continuous noise: delta(e' + V (e' + 190)) <= e^(V/2) (delta'(e') + 2 e^-190).

    V = 1/(8 variance); the proof is that of docs/proofs/composition.md with 190 for 835 (docs/proofs/keys.md).
    """
    v = 1 / (8 * variance)
    inner = (Fraction(e) - _FARTHEST * v) / (1 + v)
    return continuous_delta(sqrt_up(shift**2 / variance), inner) * math.exp(v / 2)


def old_loss(variance: Fraction, shift: int) -> LatticeNormal | Normal:
    """The loss of old counts, whose sum moves by `shift` under noise of this variance; wide noise is continuous."""
    if variance < _WIDE:
        return LatticeNormal(variance, shift)
    return Normal(sqrt_up(shift**2 / variance), 1 / (8 * variance))


def least_sigma(promise: Approx, move: Sensitivity) -> Fraction:
    """Bisect for the least sigma with which old counts alone keep the promise, rounded up."""

    def kept(sigma: Fraction) -> bool:
        if is_plain(move, sigma):
            delta = old_delta(sigma**2, keys_of(move), float(promise.epsilon), weight_of(move))
            return Fraction(delta * _ROOM) <= promise.delta
        return Fraction(zcdp_delta(move.l2_squared / (2 * sigma**2), promise.epsilon)) < promise.delta

    high = Fraction(1)
    while not kept(high):
        high *= 2
    low = high / 2
    while kept(low):
        low, high = low / 2, low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high

"""Cauchy, Student or Laplace noise of some size, rounded to a whole number with as many bits as that takes.

Floats tell what is far apart; multiprecision decides the rest, so what comes out never depends on their rounding.
"""

from collections.abc import Callable
from typing import Any

from noisette.exact.random import Random
from noisette.exact.real import Uniform
from noisette.mechanisms.smooth.admissible import Noise, exact_tail, near_tail

__all__ = ["rounded_noise"]

_ROOM = 2.0**-36  # far more than floats err by
_LEAST = 1e-290


def rounded_noise(noise: Noise, scale: float, exact_scale: Callable[[Any], Any], most: int, rng: Random) -> int:
    """Draw |scale Z|, rounded, but no more than `most`; `exact_scale` computes the scale in multiprecision.

    It is the largest w with V < P(|Z| > (w - 1/2)/scale), V uniform.
    """
    v = Uniform(rng)
    start, end = map(float, v.to(64))

    def below(w: int) -> bool:
        near = max(_LEAST, 2 * near_tail(noise, (w - 0.5) / scale))
        if end <= near * (1 - _ROOM) and near > _LEAST:
            return True
        return False if start >= near * (1 + _ROOM) else _surely_below(v, w, noise, exact_scale)

    low, high = 0, 1
    while high <= most and below(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _surely_below(v: Uniform, w: int, noise: Noise, exact_scale: Callable[[Any], Any]) -> bool:
    bits = 128

    def z(mp: Any) -> Any:
        return (2 * w - 1) / (2 * exact_scale(mp))

    while True:
        (lo, hi), (least, most) = v.to(bits), exact_tail(noise, z, bits)
        if hi <= 2 * least or lo >= 2 * most:
            return hi <= 2 * least
        bits *= 2

"""delta(epsilon) and epsilon(delta) of many losses together, never below the truth.

1. Each loss is put on multiples of a step h, so that the pair is easier to tell apart if anything: lattice.py.
2. The masses are tilted by e^(λL), λ the saddle point for the epsilon in question, so that the sum of losses has its
   mean there; then one FFT gives the composed masses with full relative precision, be delta 1e-3 or 1e-300. Its window
   is short: what lies above is added by Chernoff's bound, what lies below can only be counted on top: tilted.py and
   curve.py.
3. h is chosen so that what step 1 can have added, about n (λ+1) h²/8 in epsilon for n losses off the lattice, is below
   a relative 1e-7, or more where that would take too many points. λ and the window are found on a rough lattice first;
   where it has little mass, the fine one skips multiples: parts.py and direction.py.
4. A direction is left out where Chernoff's bound shows that the other one is the worse.

Why all this holds: docs/proofs/composition.md.
Vocabulary: `parts` {loss: count} · `K(λ)` = ln E e^(λ sum of losses) · `h` step.
"""

import math
from collections.abc import Callable

from noisette.privacy.pld.direction import Direction
from noisette.privacy.pld.lattice import on_lattice
from noisette.privacy.pld.parts import Parts, aligned, off_lattice, tail_of, widest
from noisette.privacy.pld.tilted import LossSum, log_delta_near

__all__ = ["composed_delta", "composed_epsilon", "moments_of"]

_SOME_TAIL = 1e-255  # of all losses, until delta is known
_HARDLY = 1e-250  # a bound on delta that need not be improved
_ROUGH = 1 << 13  # points of one loss where only the tilt is looked for
_PASSES = 6


def composed_delta(parts: Parts, epsilon: float) -> float:
    """Return delta(epsilon) of all losses together, rounded up."""
    worst = 0.0
    for direction in sorted(_directions(parts, lambda total: total.tilt_for_mean(epsilon)), key=lambda d: -d.log_delta):
        bound = direction.bound(epsilon)
        if bound > worst:
            worst = max(worst, min(bound, direction.curve().delta_at(epsilon)) if bound > _HARDLY else bound)
    return worst


def composed_epsilon(parts: Parts, delta: float) -> float:
    """Return the smallest epsilon with delta(epsilon) <= delta, rounded up; infinite if none is found."""
    certain = -math.expm1(sum(k * math.log1p(-loss.certain()) for loss, k in parts.items()))
    if delta <= certain:
        return math.inf
    found = _directions(parts, lambda total: total.tilt_for_delta(delta - certain))
    worst = 0.0
    for direction in sorted(found, key=lambda d: -d.moments[1]):
        if not worst or direction.bound(worst) > delta:
            worst = max(worst, direction.epsilon_at(delta))
    return worst


def moments_of(parts: Parts) -> tuple[Callable[[float], float], float]:
    """Return K(λ) = ln E e^(λ L), λ times the Rényi divergence of order λ + 1, and the mass beyond, at worst."""
    tail = 1e-60 / sum(parts.values())
    h = aligned(parts, widest(parts, tail) / 4000)
    sums = [_sum(parts, h, tail, reverse=reverse) for reverse in _both(parts)]
    return lambda tilt: max(total.log_moment(tilt) for total in sums), max(total.certain for total in sums)


def _directions(parts: Parts, tilt_of: Callable[[LossSum], float]) -> list[Direction]:
    return [_roughly(parts, tilt_of, reverse=reverse) for reverse in _both(parts)]


def _both(parts: Parts) -> list[bool]:
    """Forth, and back where that is not the same."""
    return [False] if all(loss.symmetric for loss in parts) else [False, True]


def _roughly(parts: Parts, tilt_of: Callable[[LossSum], float], *, reverse: bool) -> Direction:
    """Put the losses on a lattice fine enough to tell the tilt: it moves the mean by a tenth of its spread at most."""
    off, tail = off_lattice(parts), _SOME_TAIL / sum(parts.values())
    wide = widest(parts, tail)
    h = wide / 128
    for _ in range(_PASSES):
        total = _sum(parts, max(aligned(parts, h), wide / _ROUGH), tail, reverse=reverse)
        tilt = tilt_of(total)
        log, mean, variance = total.moments(tilt)
        tail = tail_of(log_delta_near(tilt, log, mean, variance), parts)
        before, wide = wide, widest(parts, tail)
        enough = max(wide / _ROUGH, math.sqrt(math.sqrt(variance) / (off * (2 * tilt + 1))))
        if h <= enough and 0.9 < wide / before < 1.1:
            break
        h = min(h, wide / 64, enough)
    return Direction(parts, reverse, total, tilt)


def _sum(parts: Parts, h: float, tail: float, *, reverse: bool) -> LossSum:
    return LossSum([on_lattice(loss, h, tail, reverse=reverse) for loss in parts], list(parts.values()))

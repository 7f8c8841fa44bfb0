"""One loss on the multiples of a step h, and which step to choose for several losses together.

Connect the dots: the mass between two multiples of h goes to both of them, such that its weight under P and under Q
stays the same. The new pair dominates the old one, so every bound computed from it holds, and it is exact at the
multiples.   [Doroshenko-Ghazi-Kamath-Kumar-Manurangsi 2022]   Proof: docs/proofs/composition.md

Vocabulary: `h` step · `p` masses on the lattice of its multiples · `parts` {loss: count} · `tail` mass cut off.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.privacy.pld.loss import Floats, LatticeLaplace, Loss, Response

__all__ = [
    "LOG_TINY",
    "Masses",
    "Parts",
    "Strides",
    "Whole",
    "aligned",
    "off_lattice",
    "on_lattice",
    "share_off",
    "tail_of",
    "widest",
]

Whole: TypeAlias = NDArray[np.int64]
Parts: TypeAlias = Mapping[Loss, int]

LOG_TINY = -17.0
"""Each cut adds at most e^-17 of delta to the bound."""


@dataclass(frozen=True)
class Masses:
    """Finite masses at the losses index · h, and the mass `beyond`, whose loss is counted as infinite."""

    index: Whole
    h: float
    p: Floats
    beyond: float

    @property
    def losses(self) -> Floats:
        """Where the masses are."""
        return np.asarray(self.index * self.h, dtype=np.float64)


class Strides(NamedTuple):
    """The distance between lattice points in multiples of h: `steps[i]` from `edges[i - 1]` to `edges[i]`."""

    edges: Floats
    steps: Whole


def on_lattice(loss: Loss, h: float, tail: float, *, reverse: bool, strides: Strides | None = None) -> Masses:
    """Put a loss, or in reverse the loss of Q against P, on multiples of h; at most `tail` lies beyond its ends."""
    reverse = reverse and not loss.symmetric
    found = loss.atoms()
    if found is not None:
        losses, p = found
        return _atoms_on_lattice(*((-losses, p * np.exp(-losses)) if reverse else (losses, p)), h, loss.certain())
    low, high = loss.ends(tail)
    if reverse:
        low, high = -high, -low
    index = _knots(math.floor(low / h), math.ceil(high / h) + 1, h, strides)
    t = np.asarray(index * h, dtype=np.float64)
    if reverse:  # the loss is -L, under Q
        up, down = loss.below(-t)[::-1], loss.above(-t)[::-1]
    else:
        up, down = loss.above(t), loss.below(t)
    p, q = (_between(a, b) for a, b in zip(up, down, strict=True))
    outer = np.clip((p - q * np.exp(np.minimum(t[:-1], 700.0))) / -np.expm1(-np.diff(t)), 0, p)
    masses = np.zeros(len(t))
    masses[:-1] += p - outer
    masses[1:] += outer
    masses[0] += down[0][0]  # smaller losses are rounded up to the first point
    return _trimmed(index, h, masses, loss.certain() + float(up[0][-1]))


def _knots(first: int, last: int, h: float, strides: Strides | None) -> Whole:
    """The multiples of h, from the first to the last, at which the loss is evaluated."""
    if strides is None:
        return np.arange(first, last + 1)
    edges = np.clip(np.rint(strides.edges / h), first, last).astype(np.int64)
    turns = np.flatnonzero(np.diff(strides.steps))  # runs of equal steps end here
    starts, stops = np.append(first, edges[turns]), np.append(edges[turns], last)
    steps = np.append(strides.steps[turns], strides.steps[-1])
    runs = [np.arange(*run) for run in zip(starts, stops, steps, strict=True)]
    return np.append(np.concatenate(runs), last)


def _trimmed(index: Whole, h: float, masses: Floats, beyond: float) -> Masses:
    there = masses > 0
    return Masses(index[there], h, masses[there], beyond)


def _between(up: Floats, down: Floats) -> Floats:
    """Masses between neighbouring points, from the smaller tail, which has more digits."""
    return np.maximum(0.0, np.where(up[:-1] < 0.5, up[:-1] - up[1:], down[1:] - down[:-1]))


def _atoms_on_lattice(losses: Floats, p: Floats, h: float, beyond: float) -> Masses:
    place = np.floor(losses / h).astype(np.int64)
    outer = np.clip(p * np.expm1(place * h - losses) / math.expm1(-h), 0, p)
    return _trimmed(np.append(place, place + 1), h, np.append(p - outer, outer), beyond)


# Which step


def tail_of(log_delta: float, parts: Parts) -> float:
    """The mass that one loss may have beyond its ends, where it is counted as infinite."""
    return math.exp(max(-600.0, log_delta + LOG_TINY)) / sum(parts.values())


def widest(parts: Parts, tail: float) -> float:
    """The width of the widest loss, from end to end."""
    return max(1e-9, *(high - low for low, high in (loss.ends(tail) for loss in parts)))


def _bounded(parts: Parts) -> dict[Loss, float]:
    return {loss: float(loss.epsilon) for loss in parts if isinstance(loss, Response | LatticeLaplace) and loss.epsilon}


def aligned(parts: Parts, h: float) -> float:
    """A step, at most h, that divides the smallest bounded loss, so that the atoms at its ends stay where they are."""
    smallest = min(_bounded(parts).values(), default=h)
    return smallest / math.ceil(smallest / h)


def share_off(loss: Loss) -> float:
    """The share of a loss that lies off a lattice aligned with its ends."""
    return max(1e-6, loss.between_ends()) if isinstance(loss, Response | LatticeLaplace) else 1.0


def off_lattice(parts: Parts) -> float:
    """The expected number of losses off an aligned lattice: bounded losses that are multiples have their ends on it."""
    bounded = _bounded(parts)
    total = 0.0
    for loss, k in parts.items():
        multiple = bounded.get(loss, 0.5) / min(bounded.values(), default=1.0)
        on_lattice = loss in bounded and abs(multiple - round(multiple)) < 1e-12 * multiple
        total += k * (share_off(loss) if on_lattice else 1.0)
    return max(1.0, total)

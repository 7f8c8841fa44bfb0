"""One loss on multiples of a step h.

The mass between two multiples goes to both ends, such that its weight under P and under Q stays ("connect the dots":
Doroshenko-Ghazi-Kamath-Kumar-Manurangsi 2022). That makes the pair easier to tell apart, so every bound from it holds,
and it is exact at the multiples. Why: docs/proofs/composition.md.
Vocabulary: `h` step · `p` masses on the lattice.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.privacy.pld.loss import Loss

__all__ = ["Floats", "Masses", "Strides", "Whole", "on_lattice"]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Masses:
    """Finite masses at the losses index · h, and the mass `beyond` that is counted as certain to be told."""

    index: Whole
    h: float
    p: Floats
    beyond: float

    @property
    def losses(self) -> Floats:
        """Where the masses are."""
        return np.asarray(self.index * self.h, dtype=np.float64)


class Strides(NamedTuple):
    """How many multiples of h to go at a time: `steps[i]` from `edges[i - 1]` to `edges[i]`."""

    edges: Floats
    steps: Whole


def on_lattice(loss: Loss, h: float, tail: float, *, reverse: bool, strides: Strides | None = None) -> Masses:
    """Put a loss, or in reverse that of telling Q from P, on multiples of h; `tail` may lie beyond its ends."""
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
    masses[0] += down[0][0]  # what loses less loses this much
    return _trimmed(index, h, masses, loss.certain() + float(up[0][-1]))


def _knots(first: int, last: int, h: float, strides: Strides | None) -> Whole:
    """The multiples of h, from the first to the last, at which the loss is looked at."""
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
    """Masses between neighbouring points, from whichever tail is smaller."""
    return np.maximum(0.0, np.where(up[:-1] < 0.5, up[:-1] - up[1:], down[1:] - down[:-1]))


def _atoms_on_lattice(losses: Floats, p: Floats, h: float, beyond: float) -> Masses:
    place = np.floor(losses / h).astype(np.int64)
    outer = np.clip(p * np.expm1(place * h - losses) / math.expm1(-h), 0, p)
    return _trimmed(np.append(place, place + 1), h, np.append(p - outer, outer), beyond)

"""Losses with their counts: how wide they are, and which step puts the fewest of them off the lattice."""

import math
from collections.abc import Mapping
from typing import TypeAlias

from noisette.privacy.pld.loss import LatticeLaplace, Loss, Response

__all__ = ["LOG_TINY", "Parts", "aligned", "off_lattice", "share_off", "tail_of", "widest"]

Parts: TypeAlias = Mapping[Loss, int]

LOG_TINY = -17.0
"""What is cut off, and added, is e^-17 of delta."""


def tail_of(log_delta: float, parts: Parts) -> float:
    """What one loss may have beyond its ends, to be counted as certain."""
    return math.exp(max(-600.0, log_delta + LOG_TINY)) / sum(parts.values())


def widest(parts: Parts, tail: float) -> float:
    """From end to end of the loss that has them furthest apart."""
    return max(1e-9, *(high - low for low, high in (loss.ends(tail) for loss in parts)))


def _bounded(parts: Parts) -> dict[Loss, float]:
    return {loss: float(loss.epsilon) for loss in parts if isinstance(loss, Response | LatticeLaplace) and loss.epsilon}


def aligned(parts: Parts, h: float) -> float:
    """A step, at most h, of which the smallest bounded loss is a multiple: atoms at its ends stay where they are."""
    smallest = min(_bounded(parts).values(), default=h)
    return smallest / math.ceil(smallest / h)


def share_off(loss: Loss) -> float:
    """The share of a loss that lies off a lattice aligned with its ends."""
    return max(1e-6, loss.between_ends()) if isinstance(loss, Response | LatticeLaplace) else 1.0


def off_lattice(parts: Parts) -> float:
    """How many losses, in the mean, lie off an aligned lattice: the ends of those that are multiples do not."""
    bounded = _bounded(parts)
    total = 0.0
    for loss, k in parts.items():
        multiple = bounded.get(loss, 0.5) / min(bounded.values(), default=1.0)
        on_lattice = loss in bounded and abs(multiple - round(multiple)) < 1e-12 * multiple
        total += k * (share_off(loss) if on_lattice else 1.0)
    return max(1.0, total)

"""Mechanisms whose release is not one number: an index with its gap, a list of candidates, a transcript.

They state their law as a table of outcomes, so that audits can enumerate it for small inputs.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from noisette.exact.random import Random
from noisette.mechanisms.contract import Distance
from noisette.privacy.guarantee import Promise

__all__ = ["Procedure"]


@runtime_checkable
class Procedure(Protocol):
    """Turns an input into an outcome; frozen, and found by the suites through its module's `examples`."""

    @classmethod
    def calibrated(cls, *promise: Any, **options: Any) -> Any:
        """Return the most accurate one that keeps a guarantee for a sensitivity; options are its own."""
        ...

    def __call__(self, x: Any, rng: Random = ...) -> Hashable:
        """Release an outcome for the input x."""
        ...

    def guarantee(self, distance: Distance = ...) -> Promise:
        """Return what holds for two inputs at most `distance` apart."""
        ...

    def law(self, x: Any) -> Mapping[Hashable, float]:
        """Return the probabilities of outcomes that carry all but 1e-12 of it, for an input small enough to do so."""
        ...

    def error(self, y: Any, x: Any) -> float:
        """Return how far off an outcome is: what `interval` is about."""
        ...

    def interval(self, level: float = 0.95) -> float:
        """Return a t for which error <= t with at least that probability, whatever the input."""
        ...

    def pairs(self) -> Sequence[tuple[Any, Any, Any]]:
        """Return neighbouring inputs, some of which show what the guarantee is worth: (x, x', their distance)."""
        ...

    @property
    def tightness(self) -> float:
        """Return the part of epsilon (of delta, where it is what is spent) that some of the pairs reach at least."""
        ...

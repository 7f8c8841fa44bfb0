"""What a mechanism is. Read this file first, then `additive/geometric.py`, the smallest real mechanism.

A mechanism is a frozen dataclass that turns a true answer x into a private release y and states its own law and its own
guarantee. Calibration, audits, accuracy, records and the gallery are read off that value. A new mechanism is one file
in a family of this package: the class, and a list `examples` of its instances, which the suites find and test.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

from noisette.exact.number import Number
from noisette.exact.random import Random
from noisette.privacy.guarantee import Guarantee
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Distance", "Mechanism", "Outcomes", "Output", "Probabilities"]

Distance = Number | Sensitivity
"""How far one person can move the true answer: a number in the mechanism's norm, or a `Sensitivity`."""


class Output(Enum):
    """What a mechanism releases, and which attributes it has for that. All but OUTCOME state `Probabilities`."""

    NUMBERS = "each number plus its own draw of `law`, in units of `grid`; distances are in `norm`"
    CLAMPED = "whole numbers from `unclamped`, a mechanism of NUMBERS, moved into `low` .. `high`"
    VECTOR = "`dimension` numbers plus one draw of `law`, in units of `step`; `calibrated` takes `norm` and `dimension`"
    GROUPS = "for each group, given its number of units, a bit or a noisy count; `worst()` counts and `error(y, x)`"
    REPORT = "one of `categories` for each person; `estimate` turns reports into shares"
    TABLE = "one of `cells`, given how many values each cell has; errors are ranks away from the quantile `q`"
    CHOICE = "one of `candidates`, given their scores; errors are losses of score"
    OUTCOME = "anything else that can be hashed; it states `Outcomes`"


@runtime_checkable
class Mechanism(Protocol):
    """Turns a true answer into a private one."""

    kind: ClassVar[Output]
    sized_by: ClassVar[str] = "scale"  # the field that sets the size of the noise: "scale", "sigma" or "epsilon"
    own_relation: ClassVar[bool] = False  # whether it holds for its own `neighbours` if a distance names none
    own_curve: ClassVar[bool] = False  # whether `delta_at` is smaller than what `guarantee` implies

    @classmethod
    def calibrated(cls, *promise: Any, **options: Any) -> Any:
        """Return the most accurate one that keeps a guarantee for a sensitivity; options are the mechanism's own.

        `calibrate` refuses what does not keep it.
        """
        ...

    def __call__(self, x: Any, /, rng: Random = ...) -> Any:
        """Release a private version of the true answer x."""
        ...

    def guarantee(self, distance: Any = ...) -> Guarantee:
        """Return what holds for two answers at most `distance` apart."""
        ...

    def interval(self, level: float = 0.95) -> float:
        """Return a t for which the error is at most t with at least that probability."""
        ...

    def pairs(self) -> Sequence[tuple[Any, Any, Any]]:
        """Return neighbouring answers at which the guarantee is tight: (x, x', their distance)."""
        ...

    def delta_at(self, epsilon: Number, distance: Distance = 1) -> float:
        """Return the smallest delta known for which (epsilon, delta)-DP holds at that distance."""
        return self.guarantee(distance).delta_at(epsilon)

    def epsilon_at(self, delta: Number, distance: Distance = 1) -> float:
        """Return the smallest epsilon known for which (epsilon, delta)-DP holds at that distance."""
        return self.guarantee(distance).epsilon_at(delta)


@runtime_checkable
class Probabilities(Mechanism, Protocol):
    """How every kind except OUTCOME states its law."""

    def pmf(self, y: Any, x: Any) -> Any:
        """Return the probability that x is released as y, for one y or an array of them."""
        ...

    def support(self, x: Any) -> Any:
        """Return outputs that carry all but 1e-14 of the probability, for audits that enumerate them."""
        ...

    def variance(self) -> float:
        """Return the mean squared error of one release, at worst over x."""
        ...


@runtime_checkable
class Outcomes(Mechanism, Protocol):
    """How a mechanism of kind OUTCOME states its law."""

    def outcomes(self, x: Any) -> Mapping[Any, float]:
        """Return outcomes with their probabilities, all but 1e-12, for an input that is small enough."""
        ...

    def error(self, y: Any, x: Any) -> float:
        """Return how far off an outcome is: what `interval` bounds."""
        ...

    @property
    def tightness(self) -> float:
        """Return the part of epsilon (or of delta, if that is spent) that some of the pairs reach at least."""
        ...

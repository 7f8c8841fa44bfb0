"""Running sums of keys that nobody declared: a key opens in the step in which its noisy sum reaches a threshold.

Vocabulary: `most` how far one unit moves a sum · `delta` the chance with which a key that one unit alone has opens in
any step.

Every key has the noise of a sum that runs since step 1, whenever it is first seen: before that its noisy sums are drawn
and dropped. It is compared with the threshold from the step on in which it is seen. Once open it stays open. Each step
draws the past of one sum at least: how long it takes does not tell whether there are new keys.

**Privacy.** Give every key that either of two neighbours has its sums in all steps: that is the counter's guarantee.
What opens is a function of those noisy sums and of the steps in which a key is compared. Both neighbours compare the
same keys in the same steps, except while a key has rows of the one unit alone, or of nobody. So they differ only if
such a noisy sum, of a true one of at most `most`, reaches the threshold: delta, for all steps together.
(docs/proofs/streams.md)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Approx, Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.process import Origin
from noisette.query.kind import Value
from noisette.releases.streams.buffered import BufferedCounter
from noisette.releases.streams.contract import STREAM, Floats
from noisette.releases.streams.participation import ONCE, Participation

__all__ = ["OpeningCounter", "reaching"]

MOST_OPENING_STEPS = 1 << 10
_MOST_KEYS = 1 << 24
_UP = 1 + 1e-9
_LEAST = Fraction(1, 10**200)  # normal tails stay far from where floats end
_BLOCKS = 256  # of steps, in which the largest deviation stands for all


@dataclass(frozen=True)
class OpeningCounter:
    """Sums of keys from the step on in which they reach the threshold.

    `charged` is the same counter for the keys in which one unit has rows: in all others what runs is the same for both
    neighbours, to the last bit.

    >>> opening = OpeningCounter.calibrated(Approx(1, "1e-9"), horizon=365)
    >>> opening.threshold, opening.guarantee() <= Approx(1, "1e-9")
    (114, True)
    >>> running = opening.begin()
    >>> running.step({"flu": 1000, "rare": 1}), running.opened
    ([...], ['flu'])
    """

    counter: BufferedCounter
    threshold: int
    delta: Fraction
    charged: BufferedCounter | None = None

    @classmethod
    def calibrated(
        cls,
        spend: Promise,
        *,
        horizon: int,
        who: Participation = ONCE,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> "OpeningCounter":
        """The least noise for the promise with half of its delta, and the least threshold for the other half."""
        if not isinstance(spend, Approx) or not spend.delta:
            raise InputError(
                "Without declared keys, only groups shared by enough people are released, and that needs a delta: "
                'spend="0.1,1e-8", or declare keys in the policy.'
            )
        if spend.delta < _LEAST:
            raise InputError("This delta is too small for keys to open: spend one of at least 1e-200.")
        if horizon > MOST_OPENING_STEPS:
            raise InputError(
                f"Without declared keys there are at most {MOST_OPENING_STEPS:,} steps: make each one longer."
            )
        half, keys = spend.delta / 2, who.groups * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        counter = BufferedCounter.calibrated(
            Approx(spend.epsilon, half), horizon=horizon, who=who, neighbours=neighbours, many=keys
        )
        threshold = who.events + _least(counter, half / keys)
        return cls(replace(counter, many=_MOST_KEYS), threshold, half, counter)

    @property
    def horizon(self) -> int:
        """After how many steps it ends."""
        return self.counter.horizon

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The mechanisms of the sums."""
        return (self.charged or self.counter).parts

    def guarantee(self) -> Guarantee:
        """What holds for one unit over all steps together: that of the sums, and delta once."""
        sums = (self.charged or self.counter).guarantee()
        return sums + Approx(0, self.delta, neighbours=sums.neighbours)

    def begin(self, many: int = 1) -> "Opening":
        """No key is seen yet."""
        return Opening(self, 0, [], [], self.counter.begin(1).state())

    def resume(self, state: dict[str, Any]) -> "Opening":
        """Go on from a state."""
        return Opening(self, int(state["steps"]), list(state["keys"]), list(state["opened"]), state["running"])

    def deviations(self, steps: Any) -> Floats:
        """The standard deviation of the sum of an open key after each of these steps."""
        return self.counter.deviations(steps)

    def between(self, first: Any, last: Any) -> Floats:
        """The standard deviation of the sum after step `last` minus that after step `first`."""
        return self.counter.between(first, last)


class Opening:
    """`keys` that were seen, with their sums so far behind one that is nobody's. SECRET: not all of them are open."""

    def __init__(
        self, made: OpeningCounter, steps: int, keys: list[Value], opened: list[Value], running: dict[str, Any]
    ) -> None:
        self._made, self.steps, self.keys, self.opened, self._running = made, steps, keys, opened, running
        self._origin = Origin()

    def step(self, came: Mapping[Value, int], rng: Random = SYSTEM) -> list[int]:
        """Release the sums of all open keys, in the order in which they opened, after what came in this step."""
        self._origin.check(STREAM)
        known, counter = set(self.keys), self._made.counter
        new = [key for key in came if key not in known]
        silent = self._silent(max(1, len(new)), rng)
        running = counter.resume(counter.joined(self._running, silent) if new else self._running)
        self.keys = [*self.keys, *new]
        _, *noisy = running.step(np.array([0, *(came.get(key, 0) for key in self.keys)], np.int64), rng)
        sums = dict(zip(self.keys, map(int, noisy), strict=True))
        reached = {key for key, number in sums.items() if number >= self._made.threshold}
        self.opened = [*self.opened, *sorted(reached.difference(self.opened), key=repr)]
        self._running, self.steps = running.state(), self.steps + 1
        return [sums[key] for key in self.opened]

    def _silent(self, many: int, rng: Random) -> dict[str, Any]:
        """Sums that have run since step 1 without anything that came."""
        running = self._made.counter.begin(many)
        for _ in range(self.steps):
            running.step(np.zeros(many, np.int64), rng)
        return running.state()

    def state(self) -> dict[str, Any]:
        """All that `resume` needs, as JSON has it."""
        self._origin.check(STREAM)
        return {"steps": self.steps, "keys": self.keys, "opened": self.opened, "running": self._running}


# The threshold


def _least(counter: BufferedCounter, delta: Fraction) -> int:
    """The least number that the noise of one key reaches with a chance of at most delta, in all steps together."""
    low, high = 0, 1
    while reaching(counter, high, delta) > delta:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaching(counter, middle, delta) <= delta else (middle, high)
    return high


def reaching(counter: BufferedCounter, number: int, delta: Fraction) -> float:
    """The chance that the noise of one key rounds to a number or more in any step, rounded up: a sum over steps.

    The noise is Gaussian up to a factor that _UP covers, and Laplace noise r of scale 1/32 by which it is rounded: each
    cell of r counts with its upper end, and r beyond the last cell, far less likely than delta, wholly. Deviations grow
    from step to step.
    """
    from scipy.special import ndtr

    last = np.unique(np.linspace(1, counter.horizon, min(counter.horizon, _BLOCKS)).astype(np.int64))
    steps = np.diff(last, prepend=0)
    wide = float(counter.sigma) * np.sqrt(counter.buffers.noise(last)) * _UP
    far = 2 + math.ceil(-math.log(delta) / 32)
    r = np.arange(-64, 64 * far + 1) / 64
    below = np.where(r < 0, np.exp(-32 * np.abs(r)) / 2, 1 - np.exp(-32 * np.abs(r)) / 2)
    tails = ndtr(-(number - 0.5 - r[None]) / wide[:, None])
    return float(steps @ (tails @ np.diff(below, prepend=0.0) + math.exp(-32 * far))) * _UP

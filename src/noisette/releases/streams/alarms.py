"""Alarms: tell when a stream has changed, at the price of one comparison however long it is quiet.

Vocabulary: `x` what came in a step · `drift` what is taken off in each step: what is usual, and some allowance · the
`statistic` is max(0, statistic + x - drift), Page's cumulative sum · an alarm ends a *quiet* and begins the next.

The statistic grows where more comes than usual, and it is the largest excess over all pasts of the present step. It
moves by no more than x moves, since taking the maximum and adding are steps of slope 1, and it never falls when an
event comes. The sparse vector compares it with the threshold after each step; below, nothing is paid.
[Page 1954; Cummings-Krehbiel-Mei-Tuo-Zhang 2018]

**Privacy.** After an alarm the statistic begins at 0 and the threshold has fresh noise: what comes later depends on
later events only. So an event counts in one quiet, and there may be any number of alarms for the price of one. A unit
of k events pays in proportion in each quiet in which it has some, k in all; under replace it may leave one quiet and
come in another, and pays for both.   (docs/proofs/streams.md)

Quiet is an answer, too: `step` tells it in every step, whether or not anything came.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import SparseVector
from noisette.mechanisms.sparse_vector.stream import State
from noisette.privacy import Guarantee, Neighbours, Pure, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.process import Origin
from noisette.releases.linear import pure_part

__all__ = ["Alarm"]

_RUNS = 2000
_LARGEST = 1 << 61


@dataclass(frozen=True)
class Alarm:
    """Tells when more than usual has come, `threshold` in all, and begins anew.

    >>> alarm = Alarm.calibrated(1, drift=110, threshold=200)
    >>> alarm.guarantee()
    Pure('1', neighbours=ADD_REMOVE)
    >>> watching = alarm.begin()
    >>> [watching.step(x) for x in [100, 102, 95]], watching.step(10_000) > 9_000
    ([None, None, None], True)
    """

    mechanism: SparseVector
    moved: Sensitivity
    neighbours: Neighbours
    drift: int
    threshold: int

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        drift: int,
        threshold: int,
        events: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> "Alarm":
        """The least noise that keeps a promise for a unit of at most that many events."""
        k = whole(events, "events") * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        moved = Sensitivity(2 * k, 2 * k**2, k, 2, neighbours=Neighbours.ADD_REMOVE)
        promise = Pure(pure_part(as_promise(spend)), neighbours=Neighbours.ADD_REMOVE)
        mechanism = SparseVector.calibrated(promise, moved, positives=1, monotone=True)
        return cls(mechanism, moved, neighbours, _number(drift, "drift"), _number(threshold, "threshold"))

    def guarantee(self) -> Guarantee:
        """What holds for one unit over all steps and alarms together."""
        return Pure(self.mechanism.guarantee(self.moved).epsilon, neighbours=self.neighbours)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The sparse vector of one quiet."""
        return [(self.mechanism, self.moved)]

    def begin(self, rng: Random = SYSTEM) -> "Watching":
        """Nothing has come yet."""
        return Watching(self, self._fresh(rng), 0)

    def resume(self, state: dict[str, Any]) -> "Watching":
        """Go on from a state."""
        return Watching(self, State(**state["comparing"]), int(state["statistic"]))

    def _fresh(self, rng: Random) -> State:
        return self.mechanism.begin(self.threshold, rng).state()

    # Known before

    def false_alarms(self, usual: float, steps: int, *, runs: int = _RUNS, rng: Random = SYSTEM) -> float:
        """The mean number of alarms in that many steps if nothing changes and Poisson many come, `usual` on average.

        It is estimated from simulated streams, and draws on no data.
        """
        return float(self._alarms(np.full(whole(steps, "steps"), float(usual)), whole(runs, "runs"), rng).mean())

    def delay(self, changed: float, *, runs: int = _RUNS, most: int = 1000, rng: Random = SYSTEM) -> float:
        """The mean number of steps to an alarm once Poisson many come, `changed` on average; `most` at most."""
        n = whole(runs, "runs")
        statistic, waited, waiting = np.zeros(n, np.int64), np.full(n, float(most)), np.ones(n, bool)
        level = self._levels(n, rng)
        for step in range(1, most + 1):
            statistic = self._next(statistic, _poisson(changed, n))
            hit = waiting & (statistic + self._noise(n, rng) >= level)
            waited[hit], waiting = step, waiting & ~hit
            if not waiting.any():
                break
        return float(waited.mean())

    def _alarms(self, usual: NDArray[np.float64], runs: int, rng: Random) -> NDArray[np.int64]:
        """How often each of some simulated streams raises an alarm."""
        statistic, alarms, level = np.zeros(runs, np.int64), np.zeros(runs, np.int64), self._levels(runs, rng)
        for mean in usual.tolist():
            statistic = self._next(statistic, _poisson(mean, runs))
            hit = statistic + self._noise(runs, rng) >= level
            alarms += hit
            statistic[hit] = 0
            level[hit] = self._levels(int(hit.sum()), rng)
        return alarms

    def _next(self, statistic: Any, x: Any) -> Any:
        return np.minimum(np.maximum(statistic + x - self.drift, 0), _LARGEST)

    def _levels(self, many: int, rng: Random) -> NDArray[np.int64]:
        return self.threshold + np.asarray(self.mechanism.threshold_noise.sample(many, rng))

    def _noise(self, many: int, rng: Random) -> NDArray[np.int64]:
        return np.asarray(self.mechanism.query_noise.sample(many, rng))


class Watching:
    """A stream that is watched."""

    def __init__(self, alarm: Alarm, comparing: State, statistic: int) -> None:
        self._alarm, self._comparing, self._statistic, self._origin = alarm, comparing, statistic, Origin()

    def step(self, x: int, rng: Random = SYSTEM) -> int | None:
        """None while it is quiet; in an alarm, about how much more than usual has come since the last one."""
        self._origin.check("alarm")
        alarm, kept = self._alarm, list[State]()
        self._statistic = int(alarm._next(self._statistic, min(max(_number(x, "x"), -_LARGEST), _LARGEST)))
        gap = alarm.mechanism.resume(self._comparing, rng, keep=kept.append).ask(self._statistic)
        self._comparing = kept[-1]
        if gap is None:
            return None
        self._comparing, self._statistic = alarm._fresh(rng), 0
        return alarm.threshold + gap  # type: ignore[operator]

    def state(self) -> dict[str, Any]:
        """All that `resume` needs, as JSON has it; SECRET."""
        self._origin.check("alarm")
        return {"comparing": asdict(self._comparing), "statistic": self._statistic}


def _number(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} must be a whole number: put real numbers on a public grid first.")
    return int(value)


def _poisson(mean: float, many: int) -> NDArray[np.int64]:
    """Simulated counts: they are about no data, so any generator will do."""
    return np.random.default_rng().poisson(mean, many)

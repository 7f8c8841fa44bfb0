"""Running sums under pure epsilon: a tree of fan-out b in which sums may also be reached from above.

Vocabulary: a node of level l holds b^l steps · `digits` of t: how many nodes are added (or, below 0, subtracted) at
each level to reach the sum after step t from the nearest multiple one level up · `T` the horizon, `h` levels.

Every node has noise of its own; an event lies in one node of each level, so noise of scale h/epsilon is enough. The
sum after t is the sum of all noisy nodes up to a multiple of b^l near t, minus the noisy nodes beyond t: what comes
after t cancels out, so it is the true sum so far plus the noise of those nodes. A level uses about (b^2 - 1)/(4 b) of
them, where a binary tree uses half a node on each of many more levels.
[Dwork-Naor-Pitassi-Rothblum 2010; Chan-Shi-Song 2011; Andersson-Pagh-Steiner-Torkamani 2024]

**Privacy.** Let one event come in step j. Lower the noise of the h nodes that hold j by 1: then all releases are the
same as before, those until j because what they use of these nodes cancels out. That move of the noise changes its
probability by at most e^(h/scale), whatever was released before: streams may be chosen as one goes.
(docs/proofs/streams.md)
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Geometric
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.process import Origin
from noisette.releases.linear import pure_part, variance_of
from noisette.releases.streams.contract import STREAM, Floats, read_horizon, read_keys, read_step
from noisette.releases.streams.participation import ONCE, Participation

__all__ = ["TreeCounter", "best_fan", "digits"]

_MOST_KEYS = 1 << 24
_FANS = range(2, 65)
_TRIED = 4096  # steps, evenly spread, whose digits stand for all


@dataclass(frozen=True)
class TreeCounter:
    """Sums after each of `horizon` steps; nodes get `noise`, and one unit moves `moved` of them.

    >>> counter = TreeCounter.calibrated(1, horizon=1024)
    >>> counter.fan, counter.levels, counter.guarantee()
    (13, 3, Pure('1', neighbours=ADD_REMOVE))
    """

    noise: Geometric
    moved: Sensitivity
    fan: int
    horizon: int
    who: Participation = ONCE

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        horizon: int,
        who: Participation | None = None,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        fan: int | None = None,
    ) -> "TreeCounter":
        """The least noise that keeps a promise, with the fan-out of least mean variance."""
        b = best_fan(read_horizon(horizon)) if fan is None else whole(fan, "fan")
        if b < 2:
            raise InputError("fan must be at least 2: how many nodes make one of the level above.")
        one, h = who or ONCE, _levels(horizon, b)
        far = h * one.total * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        most = one.events + one.taken
        moved = Sensitivity(far, far * most, most, far, neighbours=neighbours)
        return cls(Geometric(moved.l1 / pure_part(as_promise(spend))), moved, b, horizon, one)

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return _levels(self.horizon, self.fan)

    def guarantee(self) -> Guarantee:
        """What holds for one unit over all steps together."""
        return self.noise.guarantee(self.moved)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The Laplace mechanism on the nodes of all levels."""
        return [(self.noise, self.moved)]

    def begin(self, many: int = 1) -> "Running":
        """Sums of that many keys."""
        read_keys(many, _MOST_KEYS)
        return Running(self, 0, np.zeros(many, np.int64), np.zeros((self.levels, self.fan, many), np.int64))

    def resume(self, state: dict[str, Any]) -> "Running":
        """Go on from a state."""
        noise = np.array(state["noise"], np.int64)
        return Running(self, int(state["steps"]), np.array(state["sums"], np.int64), noise)

    # The error

    def deviations(self, steps: Any) -> Floats:
        """The standard deviation of the sum after each of these steps."""
        used = np.abs(digits(np.asarray(steps), self.fan, self.levels)).sum(axis=-1)
        return np.asarray(np.sqrt(variance_of(self.noise) * used))

    def between(self, first: Any, last: Any) -> Floats:
        """The standard deviation of the sum after step `last` minus that after step `first`: nodes of both cancel."""
        start, stop = np.broadcast_arrays(np.asarray(first), np.asarray(last))
        found = [_apart(int(s), int(t), self.fan, self.levels) for s, t in zip(start.flat, stop.flat, strict=True)]
        return np.sqrt(variance_of(self.noise) * np.array(found, float)).reshape(start.shape)


class Running:
    """Sums so far: of each level, the noise of the nodes below the node that holds the present step."""

    def __init__(self, counter: TreeCounter, steps: int, sums: NDArray[np.int64], noise: NDArray[np.int64]) -> None:
        self._counter, self.steps, self._sums, self._noise = counter, steps, sums, noise
        self._origin = Origin()

    def step(self, x: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Release the sums after one more step, in which x came."""
        made = self._counter
        came = read_step(x, len(self._sums), self.steps, made.horizon, self._origin)
        noise = self._noise.copy()
        for level in range(made.levels):
            if self.steps % made.fan ** (level + 1) == 0:  # a new node one level up: its children get noise
                noise[level] = made.noise(np.zeros(noise[level].shape, np.int64), rng)
        self._noise, self._sums, self.steps = noise, self._sums + came, self.steps + 1
        found = self._sums.copy()
        for level, (digit, place) in enumerate(_places(self.steps, made.fan, made.levels)):
            used = noise[level, place - digit : place] if digit > 0 else noise[level, place : place - digit]
            found = found + (1 if digit > 0 else -1) * used.sum(axis=0)
        return found

    def state(self) -> dict[str, Any]:
        """All that `resume` needs, as JSON has it."""
        self._origin.check(STREAM)
        return {"steps": self.steps, "sums": self._sums.tolist(), "noise": self._noise.tolist()}


def digits(steps: Any, fan: int, levels: int) -> NDArray[np.int64]:
    """How many nodes of each level are added (subtracted, below 0) for the sum after each step, from the lowest level.

    >>> digits(np.array([1, 8, 9, 10, 17]), 10, 2).tolist()
    [[1, 0], [-2, 1], [-1, 1], [0, 1], [-3, 2]]
    """
    rest, found = np.asarray(steps, np.int64), []
    for level in range(levels):
        digit = rest % fan
        digit = np.where(2 * digit > fan, digit - fan, digit) if level < levels - 1 else rest
        found.append(digit)
        rest = (rest - digit) // fan
    return np.stack(found, axis=-1)


def _places(step: int, fan: int, levels: int) -> list[tuple[int, int]]:
    """The digit of each level, and where among its siblings the sum so far ends."""
    rest, found = step, []
    for digit in digits(step, fan, levels).tolist():
        found.append((digit, rest if digit == rest else rest % fan))
        rest = (rest - digit) // fan
    return found


def _apart(first: int, last: int, fan: int, levels: int) -> int:
    """How many nodes differ between two sums, each by how often; nodes that both use cancel."""
    at, rows = (first, last), [digits(step, fan, levels).tolist() for step in (first, last)]
    total = 0
    for level in range(levels):
        (s, t), (p, q) = at, (rows[0][level], rows[1][level])
        if p * q > 0 and ((s - p) == (t - q)):  # runs from the same multiple
            total += abs(abs(p) - abs(q))
        else:
            total += abs(p) + abs(q)
        at = ((s - p) // fan, (t - q) // fan)
    return total


def _levels(horizon: int, fan: int) -> int:
    """How many levels sums up to the horizon need: the top one has at most `fan` nodes."""
    levels, reach = 1, fan
    while reach < horizon:
        levels, reach = levels + 1, reach * fan
    return levels


@lru_cache(maxsize=256)
def best_fan(horizon: int) -> int:
    """The fan-out of least mean variance over all steps."""
    some = np.unique(np.linspace(1, horizon, min(horizon, _TRIED)).astype(np.int64))

    def mean(fan: int) -> float:
        h = _levels(horizon, fan)
        return h**2 * float(np.abs(digits(some, fan, h)).sum(axis=-1).mean())

    return min((fan for fan in _FANS if fan <= max(2, horizon)), key=mean)

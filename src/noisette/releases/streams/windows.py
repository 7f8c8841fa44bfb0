"""Sums of the last W steps, after every step and for ever: running sums that begin anew every W steps.

Vocabulary: `W` the width of the window · a `block` of W steps has a running sum of its own · `r` how many steps of the
present block are over.

A window that ends r steps into a block is the sum of that block so far, plus the sum of the block before it minus that
after its first r steps. An event lies in one block, so the window costs what one running sum of W steps costs, however
long the stream is. Of k events, all in one block are worst: squares and sums of parts of k are at most those of k.

The difference of two sums of one long stream has noise that grows with the stream (`between` of its counter): in units
of the noise for one event, at W = 1 024, 4.85 in 16 windows, 5.10 in 64 and 5.57 in 1 024, where windows by blocks have
5.21 at most in any stream.

Windows that tile the time (every W steps one number about the last W) need no more than noise on each: `horizon=1`.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Guarantee, Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.process import Origin
from noisette.releases.streams.contract import STREAM, Counter, Floats, Running

__all__ = ["SlidingWindow"]


@dataclass(frozen=True)
class SlidingWindow:
    """Sums of the last `counter.horizon` steps, after every step, from a running sum that begins anew.

    There are at most `blocks` of them, or any number.

    >>> from noisette.privacy import ZCDP
    >>> from noisette.releases.streams.square_root import SquareRootCounter
    >>> window = SlidingWindow(SquareRootCounter.calibrated(ZCDP("1/2"), horizon=1024))
    >>> float(window.deviations([1024 + 512]).round(2)[0])
    5.2
    """

    counter: Counter
    blocks: int | None = None

    def __post_init__(self) -> None:
        if self.counter.who.apart:
            raise InputError("Events with steps between them may lie in several blocks: calibrate with apart=0.")

    @property
    def width(self) -> int:
        """How many steps a window has."""
        return self.counter.horizon

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The mechanisms of one block; what a block rounds is paid for in each block in which a unit has events."""
        [sums, *rounding] = self.counter.parts
        many = self.counter.who.total * (1 if sums[1].neighbours is Neighbours.ADD_REMOVE else 2)
        times = many if self.blocks is None else min(many, self.blocks)
        return [sums, *((noise, _repeated(moved, times)) for noise, moved in rounding)]

    def guarantee(self) -> Guarantee:
        """What holds for one unit, however many steps there are."""
        costs: list[Guarantee] = [noise.guarantee(moved) for noise, moved in self.parts]
        return reduce(add, costs)

    def begin(self, many: int = 1) -> "Windows":
        """Windows of that many keys."""
        return Windows(self, self.counter.begin(many), [], [], 0)

    def resume(self, state: dict[str, Any]) -> "Windows":
        """Go on from a state."""
        before, now = ([np.array(row) for row in state[name]] for name in ("before", "now"))
        return Windows(self, self.counter.resume(state["running"]), before, now, int(state["steps"]))

    def deviations(self, steps: Any) -> Floats:
        """The standard deviation of the window that ends with each of these steps."""
        at, w = np.asarray(steps, np.int64), self.width
        r = (at - 1) % w + 1
        square = self.counter.deviations(r) ** 2
        old = (at > w) & (r < w)
        if old.any():
            square[old] += self.counter.between(r[old], np.full(int(old.sum()), w)) ** 2
        return np.asarray(np.sqrt(square))


def _repeated(moved: Sensitivity, times: int) -> Sensitivity:
    """The move of numbers that are each moved, in several blocks."""
    return Sensitivity(
        moved.l1 * times, moved.l2_squared * times, moved.linf, int(moved.l0) * times, neighbours=moved.neighbours
    )


class Windows:
    """Windows so far: sums of the present block, and of the block before it, as they were released."""

    def __init__(
        self,
        window: SlidingWindow,
        running: Running,
        before: list[NDArray[Any]],
        now: list[NDArray[Any]],
        steps: int,
    ) -> None:
        self._window, self._running, self._before, self._now, self.steps = window, running, before, now, steps
        self._origin = Origin()

    def step(self, x: Any, rng: Random = SYSTEM) -> NDArray[Any]:
        """Release the sums of the last W steps, in the last of which x came."""
        self._origin.check(STREAM)
        if len(self._now) == self._window.width:
            self._before, self._now = self._now, []
            self._running = self._window.counter.begin(len(self._before[0]))
        self._now.append(np.asarray(self._running.step(x, rng)))
        self.steps += 1
        r = len(self._now)
        if not self._before or r == self._window.width:
            return self._now[-1]
        return np.asarray(self._now[-1] + self._before[-1] - self._before[r - 1])

    def state(self) -> dict[str, Any]:
        """All that `resume` needs, as JSON has it."""
        self._origin.check(STREAM)
        return {
            "steps": self.steps,
            "running": self._running.state(),
            "before": [row.tolist() for row in self._before],
            "now": [row.tolist() for row in self._now],
        }

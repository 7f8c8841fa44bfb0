"""What a stream does from step to step, and the state that is kept after each.

Vocabulary: `most` the largest numbers so far, which what comes is measured from; for rows that are pushed, their sums
so far · `released` the sums of each step · `fell` by how much the numbers of a step were below the largest so far, for
the owner alone · `grid` the unit of what is counted: 1 for rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import add
from typing import Any

import numpy as np

from noisette.errors import BudgetError, FailedError
from noisette.releases.streams.contract import Counter
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.windows import SlidingWindow

__all__ = ["OpeningSteps", "State", "Steps"]


@dataclass(frozen=True)
class State:
    """Where a stream is: SECRET. Without declared keys, `opened` are those that were released, in their order."""

    asked: int
    running: dict[str, Any] = field(repr=False)
    most: list[Any] = field(repr=False)
    released: list[list[float]]
    failed: bool = False
    opened: list[Any] = field(default_factory=list)
    fell: list[int] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Steps:
    """A counter of `many` keys from step to step; with `taken`, as many further numbers are taken away.

    What is measured is what there is so far, or, where rows are `pushed`, what came in a step.
    """

    counter: Counter | SlidingWindow
    steps: int
    many: int
    grid: Fraction = Fraction(1)
    taken: bool = False
    pushed: bool = False

    def begin(self) -> State:
        """Nothing is counted yet."""
        return State(0, self.counter.begin(self.many).state(), [0] * self.many * (1 + self.taken), [])

    def step(self, state: State, value: list[int]) -> tuple[list[float], State]:
        """Count what came, and release the sums."""
        running = self.counter.resume(state.running)
        most = _joined(state.most, value, self.pushed)
        came = np.array(_less(most, state.most), np.int64)
        came = came[: self.many] - came[self.many :] if self.taken else came
        released = [float(Fraction(float(v)) * self.grid) for v in running.step(came)]
        fell = 0 if self.pushed else sum(_less(most, value))
        state = replace(state, running=running.state(), most=most, fell=[*state.fell, fell])
        return released, replace(state, asked=state.asked + 1, released=[*state.released, released])

    def failed(self, state: State) -> State:
        """The last state."""
        return replace(state, asked=state.asked + 1, failed=True)

    def check(self, state: State) -> None:
        """Raise if no step may follow."""
        if state.failed:
            raise FailedError
        if state.asked >= self.steps:
            raise BudgetError(f"All {self.steps:,} steps of this stream are released: begin one that lasts longer.")

    def read(self, stored: dict[str, Any]) -> State:
        """A state as it was kept."""
        return State(**stored)


@dataclass(frozen=True)
class OpeningSteps:
    """The same where keys open as they come: `most` are numbers of all keys that were seen, open or not."""

    counter: OpeningCounter
    plain: Steps

    def begin(self) -> State:
        """No key is seen yet."""
        return State(0, self.counter.begin().state(), [], [])

    def step(self, state: State, value: list[Any]) -> tuple[list[float], State]:
        """Count what came of each key; one or two numbers each, the second of which is taken away."""
        running, nothing = self.counter.resume(state.running), [0] * (1 + self.plain.taken)
        most = dict(zip(running.keys, state.most, strict=True))
        now = {key: _joined(most.get(key, nothing), numbers, self.plain.pushed) for key, *numbers in value}
        risen = {key: _less(numbers, most.get(key, nothing)) for key, numbers in now.items()}
        released = running.step({key: first - sum(taken) for key, (first, *taken) in risen.items()})
        sums = [float(v * self.plain.grid) for v in released]
        largest = [now.get(key) or most[key] for key in running.keys]
        fell = sum(sum(_less(numbers, last)) for (_, *last), numbers in zip(value, now.values(), strict=True))
        gone = sum(sum(numbers) for key, numbers in most.items() if key not in now)
        state = replace(state, running=running.state(), most=largest, opened=running.opened)
        state = replace(state, fell=[*state.fell, 0 if self.plain.pushed else fell + gone])
        return sums, replace(state, asked=state.asked + 1, released=[*state.released, sums])

    def failed(self, state: State) -> State:
        """The last state."""
        return self.plain.failed(state)

    def check(self, state: State) -> None:
        """Raise if no step may follow."""
        self.plain.check(state)

    def read(self, stored: dict[str, Any]) -> State:
        """A state as it was kept."""
        return self.plain.read(stored)


def _joined(most: Iterable[int], value: Iterable[int], pushed: bool) -> list[int]:
    """The largest numbers so far, or the sums so far of what is pushed."""
    return list(map(add if pushed else max, most, value))


def _less(some: Iterable[int], others: Iterable[int]) -> list[int]:
    return [a - b for a, b in zip(some, others, strict=True)]

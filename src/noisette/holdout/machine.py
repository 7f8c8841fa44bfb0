"""Thresholdout from state to state, and a line of states in memory.

A state holds the threshold's noise, which nobody may know. `curator.kept_line` keeps such states in a ledger; `Kept`
keeps them in this process. A question that fails ends the stream, as in every stream: `given` is then budget + 1.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from noisette.errors import BudgetError, FailedError, PrivacyError
from noisette.exact.integers import gathered
from noisette.exact.random import SYSTEM, Random
from noisette.holdout.thresholdout import Thresholdout
from noisette.mechanisms.sparse_vector.stream import compared
from noisette.process import here

__all__ = ["Keeper", "Kept", "Machine", "OneProcess", "Released", "State", "Steps"]


@dataclass(frozen=True)
class Steps:
    """One question in steps: its exact answer on the holdout, which is SECRET, its public guess, and the threshold.

    Where there is no guess of its own, it is what was last released from the holdout.
    """

    exact: int = field(repr=False)
    guess: int | None
    threshold: int


@dataclass(frozen=True)
class Released:
    """About how much the exact answer is, in steps; `gap` is known if it came from the comparison.

    `sign` is that of its difference to the guess, where the gap is known.
    """

    steps: int
    gap: int | None = None
    sign: int = 1


@dataclass(frozen=True)
class State:
    """How many questions were asked, how many were answered from the holdout, and the threshold's noise: SECRET."""

    asked: int
    given: int
    noise: int = field(repr=False)
    last: int = 0  # what was last released from the holdout, in steps


class Machine:
    """What a reusable holdout does from state to state; `start` is what counts as released before."""

    def __init__(self, mechanism: Thresholdout, rng: Random = SYSTEM, *, start: int = 0) -> None:
        self._mechanism, self._rng, self._start = mechanism, rng, start

    def begin(self) -> State:
        """Draw the threshold's noise."""
        return State(0, 0, int(self._mechanism.comparing.threshold_noise.sample(None, self._rng)), self._start)

    def step(self, state: State, value: Steps) -> tuple[Released | None, State]:
        """About how much the exact answer is, or None if the guess is near enough; and the next state."""
        m, guess = self._mechanism, state.last if value.guess is None else value.guess
        differences = m.differences(value.exact - guess)
        queries = gathered([each - value.threshold for each in differences], len(differences))
        found, noise = compared(m.comparing, queries, state.noise, 1, self._rng)
        if not found:
            return None, replace(state, asked=state.asked + 1)
        [(place, gap)] = found
        sign = (1, -1)[place]
        if m.gaps:
            released = Released(guess + sign * (value.threshold + gap), gap, sign)
        else:
            released = Released(self._answered(value.exact, gap))
        return released, State(state.asked + 1, state.given + 1, noise, released.steps)

    def _answered(self, exact: int, gap: int) -> int:
        m = self._mechanism
        if m.answering is None:
            return int(m.comparing.report(exact, gap, self._rng))
        return int(m.answering(exact, self._rng))

    def failed(self, state: State) -> State:
        """The last state."""
        return replace(state, asked=state.asked + 1, given=self._mechanism.budget + 1)

    def check(self, state: State) -> None:
        """Raise if nothing may be asked after this state."""
        budget = self._mechanism.budget
        if state.given > budget:
            raise FailedError
        if state.given == budget:
            raise BudgetError(
                f"The holdout has given all {budget} answers of its budget and is locked: go on with fresh data."
            )

    def read(self, stored: dict[str, Any]) -> State:
        """A state as it was kept."""
        return State(**stored)


class Keeper(Protocol):
    """One line of states that all who share a holdout go on from."""

    @property
    def last(self) -> State:
        """The newest state."""
        ...

    def ask(self, compute: Callable[[], Any]) -> tuple[Any, State]:
        """What is released of a question and the state after it; a line that has ended computes nothing."""
        ...


class Kept:
    """A line of states in this process."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._last, self._lock = machine, machine.begin(), threading.Lock()

    @property
    def last(self) -> State:
        """The newest state."""
        return self._last

    def ask(self, compute: Callable[[], Steps]) -> tuple[Released | None, State]:
        """What is released of a question and the state after it; what is computed may ask questions itself."""
        self._machine.check(self._last)
        value = _computed(compute)
        with self._lock:
            self._machine.check(self._last)
            if value is None:
                self._last = self._machine.failed(self._last)
                raise FailedError
            released, self._last = self._machine.step(self._last, value)
            return released, self._last


def _computed(compute: Callable[[], Steps]) -> Steps | None:
    """None where it fails: why may tell of a record."""
    try:
        return compute()
    except Exception:
        return None


class OneProcess:
    """A line that only the process that opened it can ask: a copy in a forked one would leak a second time."""

    def __init__(self, line: Keeper) -> None:
        self._line, self._process = line, here()

    @property
    def last(self) -> State:
        """The newest state."""
        return self._line.last

    def ask(self, compute: Callable[[], Steps]) -> tuple[Released | None, State]:
        """As the line does."""
        if here() != self._process:
            raise PrivacyError("This holdout belongs to the parent process: open it here, with the same ledger.")
        return self._line.ask(lambda: self._here(compute))

    def _here(self, compute: Callable[[], Steps]) -> Steps:
        value = compute()
        if here() != self._process:
            os._exit(1)  # the function that was asked about has forked, and this is the child
        return value

"""Streams of queries against a threshold: the loop of the sparse vector mechanisms, and the object that runs it.

The threshold has noise Z, drawn once or anew after every positive; query i has noise N_i of its own. The query is above
if its gap q_i + N_i - Z is at least 0. Thresholds are public: what is compared is query minus threshold.

A stream that is to survive a crash keeps its state before it releases an answer, whatever the answer is: where that
fails nothing is released, and the failure says nothing about the data. What a ledger has to do for that:

1. Charge the guarantee of the mechanism, in full and once, before `begin`; nothing is given back.
2. `keep(state)`: store it durably, where no analyst reads it, and raise if that (stream, asked) is there already.
3. After a restart: `resume` the state with the largest `asked`.

So there is one line of answers, and at most `positives` of them above, even if an old state is resumed, or one twice:
the first answer that would branch off is refused. To ask the same query again is to ask one more query.

Vocabulary: `asked` queries so far · `given` positives so far · `left` positives that may still come.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, NoReturn, Protocol, TypeAlias

import numpy as np

from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.exact.integers import CHUNK, Integers, added, gathered
from noisette.exact.random import Random
from noisette.process import here

__all__ = ["Keep", "Rules", "State", "Stream", "compared", "whole_number"]

MOST = 2**62
_WINDOW, _NEAR = 1 << 13, 1 << 6  # how many are looked at together; few where the last positive was near


class StreamNoise(Protocol):
    """What is asked of a law here; probabilities serve audits, draws are exact."""

    def pmf(self, z: Any) -> Any:
        """P(noise = z)."""
        ...

    def cdf(self, z: Any) -> Any:
        """P(noise <= z)."""
        ...

    def sample(self, size: int | tuple[int, ...] | None, rng: Random) -> int | Integers:
        """Draw exactly."""
        ...


class Rules(Protocol):
    """What the loop needs to know of a mechanism."""

    positives: int  # after how many it ends
    refreshed: ClassVar[bool]  # whether the threshold's noise is drawn anew after every positive

    @property
    def threshold_noise(self) -> StreamNoise:
        """The law of Z."""
        ...

    @property
    def query_noise(self) -> StreamNoise:
        """The law of each N."""
        ...

    def report(self, query: int, gap: int, rng: Random) -> Hashable:
        """What is reported of a positive."""
        ...


def compared(m: Rules, queries: Integers, z: int, left: int, rng: Random) -> tuple[list[tuple[int, int]], int]:
    """Return the positives as (position, gap) until none are left, and the threshold's noise from there on."""
    found: list[tuple[int, int]] = []
    noise, window = m.query_noise, _WINDOW
    for start in range(0, len(queries), CHUNK):
        part = queries[start : start + CHUNK]
        heights = added(part, np.asarray(noise.sample(part.shape, rng)))
        at = 0
        while at < len(heights) and left:
            gaps = added(heights[at : at + window], gathered([-z], 1))
            hits = np.flatnonzero(gaps >= 0)[: 1 if m.refreshed else left]
            found += [(start + at + int(i), int(gaps[i])) for i in hits]
            left -= len(hits)
            if m.refreshed and len(hits):
                at, window, z = at + int(hits[0]) + 1, _NEAR, int(m.threshold_noise.sample(None, rng))
            else:
                at, window = at + window, min(2 * window, _WINDOW)
        if not left:
            break
    return found, z


def whole_number(value: Any, name: str) -> int:
    """Read a query or a threshold; `name` is what the error calls it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number: put real numbers on a public grid first.")
    if abs(int(value)) >= MOST:
        raise InputError(f"{name} must lie between -2^62 and 2^62: use a coarser unit.")
    return int(value)


@dataclass(frozen=True)
class State:
    """Where a stream is. `noise` is SECRET: with it the answers are no longer private, so it is never shown.

    For storage: `dataclasses.asdict(state)` has plain numbers and texts, and `State(**stored)` reads them.
    """

    mechanism: str
    stream: str
    threshold: int
    asked: int
    given: int
    noise: int = field(repr=False)


Keep: TypeAlias = Callable[[State], object]


class Stream:
    """Takes queries one at a time and ends after `positives` answers above; safe to share among threads.

    It can be neither copied nor pickled, and a forked process cannot use it: two that go on would leak twice as much.

    >>> from noisette.mechanisms.sparse_vector.sparse_vector import SparseVector
    >>> stream = SparseVector("1/100", "1/100", positives=1).begin(threshold=50)       # next to no noise
    >>> stream.ask(20), stream.ask(70), stream.left
    (None, 20, 0)
    """

    def __init__(self, mechanism: Rules, state: State, keep: Keep | None, rng: Random) -> None:
        self._mechanism, self._state, self._keep, self._rng = mechanism, state, keep, rng
        self._lock, self._process, self._closed = threading.Lock(), here(), False

    @property
    def left(self) -> int:
        """How many positives may still come."""
        return max(0, self._mechanism.positives - self._state.given)

    def ask(self, query: int, threshold: int | None = None) -> Hashable:
        """Tell whether a query is above the stream's threshold, or one of its own: None if it is not."""
        q = whole_number(query, "query")
        t = self._state.threshold if threshold is None else whole_number(threshold, "threshold")
        self._check_process()
        with self._lock:
            self._check_open()
            found, z = compared(self._mechanism, gathered([q - t], 1), self._state.noise, self.left, self._rng)
            released = self._mechanism.report(q, found[0][1], self._rng) if found else None
            asked, given = self._state.asked + 1, self._state.given + len(found)
            self._advance(replace(self._state, asked=asked, given=given, noise=z))
            return released

    def _check_process(self) -> None:
        """Refuse before the lock, which a thread of the parent may have held when this process was forked."""
        if here() != self._process:
            raise PrivacyError("This stream belongs to the parent process: hand it over with state() and resume().")

    def _check_open(self) -> None:
        if self._closed:
            raise PrivacyError("This stream was handed over or could not be kept: resume it from its last state.")
        if not self.left:
            c = self._mechanism.positives
            raise BudgetError(f"This stream has ended with positive number {c}: begin a new one, at the same price.")

    def _advance(self, state: State) -> None:
        """Keep the next state before anything is released; if that fails nothing is, and this stream is closed."""
        if self._keep is not None:
            try:
                self._keep(state)
            except BaseException:
                self._closed = True
                raise
        self._state = state

    def state(self) -> State:
        """Hand over: return where the stream is, for `resume`, and answer no more."""
        self._check_process()
        with self._lock:
            self._closed = True
            return self._state

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A stream cannot be copied: hand it over with state() and go on with resume().")

    def __repr__(self) -> str:
        ends = "closed" if self._closed else f"{self.left} of {self._mechanism.positives} positives left"
        return f"<Stream of {self._mechanism!r}, threshold {self._state.threshold}: {ends}>"

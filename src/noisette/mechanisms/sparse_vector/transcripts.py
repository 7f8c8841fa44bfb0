"""Shared by mechanisms that report which queries are above a threshold: releases, errors and laws.

Vocabulary: `released` the reports on the queries so far · `z` values of the threshold's noise Z.
"""

import secrets
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, PrivacyError
from noisette.exact.integers import Integers
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.laws.law import smallest
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.contract import Mechanism, Output
from noisette.mechanisms.sparse_vector.stream import MOST, Keep, Rules, State, Stream, compared, whole_number

__all__ = ["BEYOND", "ThresholdQueries"]

Floats: TypeAlias = NDArray[np.float64]
Reports: TypeAlias = tuple[Hashable, ...]
T = TypeVar("T")

BEYOND = 45  # scales: e^-45 is lost in the rounding of floats
_GRID, _OUTCOMES = 20_000, 200_000


class ThresholdQueries(Rules, Mechanism):
    """The loop of `stream`, for a list or for a stream; a mechanism says which noise there is and what it reports."""

    kind = Output.OUTCOME

    def _telling(self, query: int, z: Integers, top: int) -> tuple[list[Any], Floats]:
        """All possible reports of a positive, and for each the chance of it at every z; `top` is the largest query."""
        raise NotImplementedError

    def _rises(self, n: int) -> float:
        """P(a query n below the threshold is reported above), or a bound of it."""
        raise NotImplementedError

    def _falls(self, n: int) -> float:
        """P(a query n above the threshold is reported below), or a bound of it."""
        raise NotImplementedError

    @property
    def _reach(self) -> int:
        """How far Z strays, all but never."""
        raise NotImplementedError

    # What it releases

    def begin(self, threshold: int = 0, rng: Random = SYSTEM, *, keep: Keep | None = None) -> Stream:
        """Draw the threshold's noise and take queries one by one; charge the whole guarantee before.

        `keep` stores the state at once, and then before each answer is released; see `stream` for what it has to do.
        """
        t = whole_number(threshold, "threshold")
        if keep is not None and not callable(keep):
            raise InputError("keep must be a function that stores a State, or None.")
        state = State(repr(self), secrets.token_hex(16), t, 0, 0, self._drawn(rng))
        if keep is not None:
            keep(state)
        return Stream(self, state, keep, rng)

    def resume(self, state: State, rng: Random = SYSTEM, *, keep: Keep) -> Stream:
        """Go on where a state was kept: with the same noisy threshold, and with the positives that were left then."""
        if not isinstance(state, State) or not callable(keep):
            raise InputError("A stream is resumed from a State, and with a function keep that stores the next ones.")
        if state.mechanism != repr(self):
            raise PrivacyError("The state belongs to a stream of another mechanism: resume it with that one.")
        return Stream(self, state, keep, rng)

    def __call__(self, queries: Any, rng: Random = SYSTEM) -> Reports:
        """Tell of each query, its threshold subtracted, whether it is above zero: None if not."""
        q = _read(queries)
        found, _ = compared(self, q, self._drawn(rng), self.positives, rng)
        released: list[Hashable] = [None] * (found[-1][0] + 1 if len(found) == self.positives else len(q))
        for i, gap in found:
            released[i] = self.report(int(q[i]), gap, rng)
        return tuple(released)

    def _drawn(self, rng: Random) -> int:
        return int(self.threshold_noise.sample(None, rng))

    # What to expect

    def error(self, y: Any, x: Any) -> float:
        """How far a query was on the wrong side of its report, at most."""
        return float(max(0, *(int(q) if released is None else -int(q) for released, q in zip(y, x, strict=False))))

    def interval(self, level: float = 0.95, *, queries: int = 1000) -> float:
        """Return a t for which all of several queries are reported right, except for those within t of the threshold.

        With at least that probability, also if queries depend on answers: a union bound over all that are reported
        above although t + 1 below, and over the first `positives` that are reported below although t + 1 above.
        """
        level_of(level)
        most = whole(queries, "queries")
        return float(smallest(lambda t: self._misses(t, most, min(most, self.positives)) <= 1 - level))

    def _misses(self, t: int, queries: int, positives: int) -> float:
        return queries * self._rises(t + 1) + positives * self._falls(t + 1)

    # For audits

    def outcomes(self, x: Any) -> Mapping[Hashable, float]:
        """The probabilities of all reports on a few queries, good to about 1e-12 relative.

        For each value z of the threshold's noise the chances of the reports multiply; then they are summed over z.
        """
        q = [int(value) for value in _read(x)]
        z, first = self._grid(q)
        alive: dict[Reports, Floats] = {(): first}
        ended: dict[Reports, float] = {}
        for query in q:
            silent, (reports, chances) = self.query_noise.cdf(z - query - 1), self._telling(query, z, max(q))
            if len(alive) * len(reports) > _OUTCOMES:
                raise InputError("The law is enumerated for a few queries only: pass fewer.")
            before, alive = alive, {(*released, None): w * silent for released, w in alive.items()}
            for released, w in before.items():
                if sum(report is not None for report in released) == self.positives - 1:
                    ended |= _longer(released, reports, (chances @ w).tolist())
                else:
                    alive |= _longer(released, reports, self._after(chances * w, first))
        ended |= {released: float(w.sum()) for released, w in alive.items()}
        return {released: p for released, p in ended.items() if p > 0}

    def _grid(self, q: list[int]) -> tuple[Integers, Floats]:
        """Values of Z, as far beyond zero and all queries as it strays, and their probabilities."""
        low, high = min(0, *q) - self._reach, max(0, *q) + self._reach
        if high - low > _GRID:
            raise InputError("The law is enumerated for small scales and queries only: use a coarser unit.")
        z = np.arange(low, high + 1)
        p = np.asarray(self.threshold_noise.pmf(z), float)
        return z[p > 0], p[p > 0]

    def _after(self, weights: Floats, first: Floats) -> Floats:
        """What is known of the threshold's noise after each positive: nothing if it is drawn anew."""
        return np.multiply.outer(weights.sum(axis=1), first) if self.refreshed else weights


def _longer(released: Reports, reports: list[Any], values: Iterable[T]) -> dict[Reports, T]:
    return {(*released, report): value for report, value in zip(reports, values, strict=True)}


def _read(queries: Any) -> Integers:
    try:
        q = integer_answer(queries)
    except InputError:
        q = np.zeros((0, 0))
    if q.ndim != 1:
        raise InputError("The queries must be a list of whole numbers: put real answers on a public grid first.")
    if q.min() <= -MOST or q.max() >= MOST:
        raise InputError("The queries must lie between -2^62 and 2^62: use a coarser unit.")
    return q.astype(np.int64)

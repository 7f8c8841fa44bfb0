"""k yes-or-no questions at the price of one: each person answers one of them, drawn by lot, by randomized response.

A report is (j, y), the question j drawn uniformly and the answer y, true with probability e^epsilon/(e^epsilon + 1). To
answer all k questions with epsilon/k each would need k times as many people for the same error.

With c = (e^epsilon - 1)/(e^epsilon + 1), the mean over all reports of k (y - 1/2)/c + 1/2, where the first term counts
for reports about the question alone, is unbiased. Its variance over lots and coins is (k/(4 c^2) - 1/4)/n for all data.

When: each person has many bits, and the share of ones of each is wanted.
Textbook: lecture on workloads, randomized response for k counting queries (erratum E18).
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, Whole, frozen
from noisette.exact.random import SYSTEM, Random
from noisette.local.contract import Aggregate, Epsilon, checked_reports, odds, rectangular
from noisette.local.frequencies import Floats, FrequencyOracle, Shares
from noisette.local.intervals import binomial_means

__all__ = ["SplitQueries"]


@frozen
class SplitQueries(FrequencyOracle):
    """Values are lists of 0 and 1, an answer to each query; reports are (query, answer); shares are those of 1.

    >>> m = SplitQueries(1, queries=20)
    >>> round(m.variance(people=125_208) ** 0.5, 4), m.clients([[0, 1] * 10] * 3).shape     # α = 0.05 is 3.7 of these
    (0.0136, (3, 2))
    """

    epsilon: Epsilon
    _: KW_ONLY
    queries: Whole

    @property
    def contrast(self) -> Fraction:
        """c = (e^epsilon - 1)/(e^epsilon + 1)."""
        return (odds(self.epsilon) - 1) / (odds(self.epsilon) + 1)

    @property
    def domain(self) -> int:  # type: ignore[override]
        """How many shares are estimated."""
        return self.queries

    @property
    def cells(self) -> int:
        """No and yes for each query."""
        return 2 * self.queries

    @property
    def layout(self) -> tuple[range, ...]:
        """A query and an answer."""
        return range(self.queries), range(2)

    def values(self) -> Iterable[tuple[int, ...]]:
        """All lists of answers."""
        return product((0, 1), repeat=self.queries)

    def _answers(self, values: Any) -> NDArray[np.int64]:
        array = rectangular(values)
        if array is not None and array.shape == (0,):
            array = np.zeros((0, self.queries))
        if array is None or array.ndim != 2 or array.shape[1] != self.queries or not np.isin(array, (0, 1)).all():
            raise InputError(f"Each person's value must be a list of {self.queries} answers, 0 or 1.")
        return array.astype(np.int64)

    def client(self, value: Any, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return a query and an answer to it."""
        [answers] = self._answers([value]).tolist()
        query = rng.below(self.queries)
        return query, int(answers[query] == samplers.logistic(self.epsilon, rng=rng))

    def clients(self, values: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Return the queries and answers of many people, a row of two numbers each."""
        answers = self._answers(values)
        query = vector.uniform(self.queries, len(answers), rng=rng)
        kept = vector.logistic(self.epsilon, len(answers), rng=rng)
        return np.stack([query, answers[np.arange(len(answers)), query] == kept], axis=1)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        query, answer = report
        e = odds(self.epsilon)
        return (e if value[query] == answer else 1) / (e + 1) / self.queries

    def counted(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Count both answers to each query."""
        query, answer = checked_reports(self, reports, *self.layout).T
        return np.bincount(2 * query + answer, minlength=self.cells)

    def estimated(self, aggregate: Aggregate) -> Shares:
        """Return unbiased shares of people whose answer is 1."""
        no, yes = aggregate.counts.reshape(-1, 2).T
        scale = self.queries / (2 * float(self.contrast) * aggregate.people)
        return Shares(self, np.asarray((yes - no) * scale + 0.5), aggregate)

    def noise(self) -> tuple[Fraction, Fraction]:
        """Return k/(4 c^2) - 1/4, whatever the share."""
        both = self.queries / (4 * self.contrast**2) - Fraction(1, 4)
        return both, both

    def bounds(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """Return ends of error bars, from the answers to each query: these people are a sample of all, by lot."""
        no, yes = aggregate.counts.reshape(-1, 2).T
        asked, c = no + yes, float(self.contrast)
        low, high = binomial_means(yes, np.maximum(asked, 1), level)
        return np.where(asked, (low - 0.5) / c + 0.5, 0.0), np.where(asked, (high - 0.5) / c + 0.5, 1.0)

    def consistent(self, shares: Floats) -> Floats:
        """Return shares within 0 .. 1; they need not sum to one."""
        return np.clip(shares, 0, 1)


examples = [SplitQueries(1, queries=3), SplitQueries("1/2", queries=1), SplitQueries(3, queries=2)]

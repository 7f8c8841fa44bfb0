"""Choose a limit on what one unit contributes, with a share of what a question spends.

Candidates are t = 1, 2, 4, ... up to a public most. With f(u) the size of unit u, at most that most, and
N(t) = #{u: f(u) > t}, the exponential mechanism chooses t with a probability proportional to

    t^(-5/4) · exp(-e N(t)).

Why N(t): a limit that is one higher retains N(t) more. Why t^(-5/4): above the largest f(u) all t score the same, and
the lowest of them is wanted; the mean of what the noise then costs stays bounded however many candidates there are,
while 1 % of all units with most of the rows still outweigh it. `benchmarks/limits.py` compares choosers.

Sensitivity: a unit of size f that comes or goes moves N(t) by one for each t < f and no other; one that is replaced
moves N(t) by one between both sizes, in one direction. So under both relations all scores that move do so by one and in
one direction: two of them move apart by at most 1, which is what e counts. As only differences of scores matter, that
is stated as half a step of each score. The number N(t) at the chosen t moves by at most 1 as well, and is released with
noise: how many units the limit cuts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noisette.answers.figures import bound
from noisette.answers.record import stated
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.mechanisms import Exponential, Geometric, calibrate
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity, count
from noisette.query.design import recorded
from noisette.query.frequency import MinimumFrequency
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema

__all__ = [
    "CHOOSING",
    "COUNTING",
    "REST",
    "Chosen",
    "LimitChoice",
    "TotalWords",
    "Words",
    "limit_choice",
    "more_than",
    "one_of",
    "prior",
    "scores",
]

CHOOSING, COUNTING = Fraction(3, 10), Fraction(1, 20)
"""The shares of a question's spend that choose its limits and that count the units which have more."""

REST = 1 - CHOOSING - COUNTING

_BITS = 80


class Chosen(NamedTuple):
    """Which candidate was chosen, and the noisy number of units that have more."""

    place: int
    above: int


class Words(NamedTuple):
    """What is limited: rows of each `unit`, groups, or rows `per` group; in one table of several where it is named."""

    unit: str
    table: str = ""
    noun: str = "row"
    per: str = ""

    @property
    def about(self) -> str:
        """What is limited, for the text of a question."""
        return f"{self.noun}s{self.per} {self.table}".rstrip()

    def limit(self, number: int) -> str:
        """A limit in words.

        >>> Words("patient").limit(8), Words("patient", "visits").limit(1), Words("patient", per=" per group").limit(4)
        ('8 rows', '1 row in visits', '4 rows per group')
        """
        return f"{number:,} {self.noun}{'' if number == 1 else 's'}{self.per}{self._where}"

    @property
    def _where(self) -> str:
        return f" in {self.table}" if self.table else ""

    def before(self, limits: tuple[int, ...]) -> str:
        """What is left out, before a limit is chosen."""
        return (
            f"This question chooses how many {self.noun}s{self.per} of each {self.unit}{self._where} are used, from "
            f"{limits[0]:,} to {limits[-1]:,}; further rows are left out."
        )

    def after(self, number: int, more: str) -> str:
        """What is left out, once it is chosen."""
        used = f"{self._replace(table='').limit(number)} of each {self.unit}{self._where}"
        verb = "is" if number == 1 else "are"
        return f"At most {used} {verb} used, as this question chose; {more} have more, which is left out."


class TotalWords(NamedTuple):
    """What each `unit` adds to a sum is limited."""

    unit: str

    @property
    def about(self) -> str:
        """What is limited, for the text of a question."""
        return "total"

    def limit(self, total: Fraction) -> str:
        """A limit in words.

        >>> TotalWords("patient").limit(Fraction(1, 2))
        '0.5'
        """
        return bound(total)

    def before(self, limits: tuple[Fraction, ...]) -> str:
        """What is left out, before a limit is chosen."""
        return (
            f"This question chooses how much each {self.unit} may add to the sum, from {bound(limits[0])} to "
            f"{bound(limits[-1])}; what exceeds it is left out."
        )

    def after(self, total: Fraction, more: str) -> str:
        """What is left out, once it is chosen."""
        return (
            f"Each {self.unit} adds at most {bound(total)} to the sum, as this question chose; {more} have more, which "
            "is left out."
        )


@dataclass(frozen=True)
class LimitChoice:
    """One limit to choose: its words, the candidates, the units between them, and the mechanisms."""

    words: Words | TotalWords
    limits: tuple[Any, ...]
    prepared: Prepared
    chooser: Exponential
    counter: Geometric
    neighbours: Neighbours
    level: float

    @property
    def about(self) -> str:
        """What is limited, for the question's text."""
        return self.words.about

    def named(self, place: int) -> str:
        """A candidate in words."""
        return self.words.limit(self.limits[place])

    @property
    def outlook(self) -> str:
        """What is left out, before a limit is chosen."""
        return self.words.before(self.limits)

    def outcome(self, found: Chosen, rule: MinimumFrequency | None = None) -> str:
        """What is left out, once it is chosen; those who have more are a group, too, which a rule may not show."""
        more = f"about {max(found.above, 0):,} (± {self.counter.interval(self.level):,.0f})"
        if rule is not None and found.above < (least := rule.threshold(self.counter)):
            more = f"fewer than about {least:,}"
        return self.words.after(self.limits[found.place], f"{more} {self.words.unit}s")

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the scores."""
        return _moved(len(self.limits), self.neighbours)

    @property
    def guarantee(self) -> Guarantee:
        """Of the limit and of how many units have more."""
        counted = self.counter.guarantee(count(neighbours=self.neighbours))
        return self.chooser.guarantee(self.sensitivity) + counted

    @property
    def parts(self) -> list[dict[str, object]]:
        """Both mechanisms, for the record."""
        measure = self.prepared.request.measures[0]
        return [
            recorded(self.chooser, measure, self.sensitivity),
            recorded(self.counter, measure, count(neighbours=self.neighbours)),
        ]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> Chosen:
        """Count the units between candidates, choose, and count those that have more with noise."""
        above = more_than(source.aggregate(self.prepared.request, schema, secret).measures[0])
        place = self.chooser(scores(above), rng)
        return Chosen(place, int(np.asarray(self.counter(above[place : place + 1], rng))[0]))


def limit_choice(
    words: Words | TotalWords,
    prepared: Prepared,
    limits: tuple[Any, ...],
    spend: Promise,
    neighbours: Neighbours,
    level: float,
    *,
    times: int = 1,
) -> LimitChoice:
    """The mechanisms for one limit of several, which share what `spend` leaves for them."""
    choosing, counting = (spend.share(part / times, delta=0) for part in (CHOOSING, COUNTING))
    moved = _moved(len(limits), neighbours)
    chooser = Exponential.calibrated(choosing, moved, candidates=len(limits), measure=prior(limits))
    counter = calibrate(Geometric, counting, sensitivity=count(neighbours=neighbours))
    return LimitChoice(words, limits, prepared, chooser, counter, neighbours, level)


def _moved(k: int, neighbours: Neighbours) -> Sensitivity:
    """How far one unit moves k scores, up to a number that is common to all: half a step each."""
    return Sensitivity(Fraction(k, 2), Fraction(k, 4), Fraction(1, 2), k, neighbours=neighbours)


def prior(limits: Sequence[Any]) -> tuple[int, ...]:
    """2^80 t^(-5/4) of each candidate t, in units of the first and rounded down; any public measure is private.

    >>> [round(2**80 / weight, 2) for weight in prior((3, 6, 48))]
    [1.0, 2.38, 32.0]
    """
    ratios = [Fraction(limit) / limits[0] for limit in limits]
    return tuple(max(isqrt(isqrt(int(2 ** (4 * _BITS) / ratio**5))), 1) for ratio in ratios)


def more_than(units: NDArray[np.int64]) -> NDArray[np.int64]:
    """N(t) of each candidate, from the units in each cell: the last cell is beyond all candidates.

    >>> more_than(np.array([5, 3, 1, 0])).tolist()
    [4, 1, 0]
    """
    return np.asarray(units[::-1].cumsum()[::-1][1:], dtype=np.int64)


def scores(above: NDArray[np.int64]) -> NDArray[np.int64]:
    """-N(t), in which a unit beyond the last candidate counts as one of that size: the owner allows no larger limit.

    >>> scores(np.array([9, 9, 9])).tolist()
    [-9, -9, 0]
    """
    return np.append(-above[:-1], 0)


def one_of(promise: Promise, plans: dict[str, list[dict[str, object]]]) -> dict[str, object]:
    """For the record: plans that all keep the promise; one of them is carried out."""
    return {"mechanism": "one plan of several", "promise": stated(promise), "one of": plans}

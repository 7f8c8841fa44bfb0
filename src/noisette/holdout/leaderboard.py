"""Leaderboards: who submits predictions learns only whether they are the best so far, and by about how much.

`Leaderboard` is the sparse vector technique: the score of a submission is compared with the best released one plus a
step, both with noise; a submission that is not above costs nothing, and after `budget` that are it is locked. It is
differentially private for the labels, so strangers may submit as often as they like.

`Ladder` adds no noise: it releases a score, rounded to a multiple of its step, if that beats the best by more than one.
It has a generalisation bound and NO epsilon, so it cannot be charged to a budget of privacy.   [Blum-Hardt 2015]
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, level_of, positive, whole
from noisette.holdout.losses import AUC, Loss, read_loss
from noisette.holdout.machine import Keeper, Kept, Machine, OneProcess, Steps
from noisette.holdout.records import Floats, Records, on_grid, values
from noisette.holdout.thresholdout import GRID, Thresholdout
from noisette.privacy import Guarantee, Spend

__all__ = ["Ladder", "Leaderboard", "Standing"]


@dataclass(frozen=True, repr=False)
class Standing:
    """What is released of a submission: its score and error bar if it is the best so far, else the best one's score.

    >>> Standing("forest", True, 0.81, 0.8, 0.83, 0.95, 4)
    forest leads with 0.81 (0.8 to 0.83 at 95 %), 4 left
    """

    name: str
    leads: bool
    score: float
    low: float
    high: float
    level: float
    left: int | None

    def __repr__(self) -> str:
        left = "" if self.left is None else f", {self.left} left"
        if not self.leads:
            return f"{self.name} does not beat {self.score:.4g}{left}"
        bar = f"({self.low:.4g} to {self.high:.4g} at {100 * self.level:.6g} %)"
        return f"{self.name} leads with {self.score:.4g} {bar}{left}"


class Leaderboard:
    """Submissions of predictions against private labels, each compared with the best so far plus a step.

    `budget` is how many leaders there may be, `spend` what all that is released is worth, under replace of one label;
    `start` is the score that the first leader has to beat. Scores are means in [0, 1], greater is better; a loss counts
    as 1 minus itself, its bounds moved to [0, 1].

    >>> board = Leaderboard([0, 1] * 500, budget=3, spend=2, start="0.5", step="0.05")
    >>> board.submit("all ones", [1] * 1000)
    all ones does not beat 0.5, 3 left
    >>> board.submit("right", [0, 1] * 500).leads
    True
    """

    def __init__(
        self,
        y: Any,
        *,
        budget: int = 10,
        spend: Spend = 1,
        step: Number | None = None,
        start: Number = 0,
        loss: Loss | str = "accuracy",
        kept: tuple[Thresholdout, Keeper] | None = None,
    ) -> None:
        self._loss, self._y = _per_record(loss), _labels(y)
        if kept is None:
            mechanism = board_mechanism(len(self._y), budget, spend, step)
            kept = mechanism, Kept(board_machine(mechanism, start))
        self.mechanism: Thresholdout = kept[0]
        self._line = OneProcess(kept[1])
        self.standings: list[Standing] = []

    @property
    def guarantee(self) -> Guarantee:
        """What all that is released is worth, however many submissions there are; neighbours replace one label."""
        return self.mechanism.guarantee

    @property
    def left(self) -> int:
        """How many leaders there may still be."""
        return max(0, self.mechanism.budget - self._line.last.given)

    def submit(self, name: str, predictions: Any, *, level: float = 0.95) -> Standing:
        """Compare predictions, one for each record in its order, with the best so far."""
        level_of(level)
        given, m = _predictions(predictions, len(self._y)), self.mechanism
        threshold = math.ceil(m.threshold * m.records * m.grid)
        released, after = self._line.ask(lambda: Steps(self._exact(given), None, threshold))
        ends = (0, 0) if released is None else m.released_ends(1, released.gap, after.asked, level)
        score, low, high = (self._share(after.last + off) for off in (0, *ends))
        standing = Standing(str(name), released is not None, score, low, high, float(level), self.left)
        if standing.leads:
            self.standings.append(standing)
        return standing

    def _exact(self, predictions: Any) -> int:
        return on_grid(_values(self._loss, self._y, predictions), self.mechanism.grid)

    def _share(self, steps: int) -> float:
        return min(max(steps / (self.mechanism.records * self.mechanism.grid), 0.0), 1.0)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A leaderboard cannot be copied: use it in one process, or keep it in a ledger.")

    def __repr__(self) -> str:
        left = f"{self.left} of {self.mechanism.budget} leaders left"
        return f"<leaderboard of {len(self._y):,} labels: {left}, {self.guarantee}>"


def board_mechanism(labels: int, budget: int, spend: Spend, step: Number | None) -> Thresholdout:
    """The mechanism of a leaderboard: gaps of one-sided comparisons."""
    return Thresholdout.calibrated(spend, budget=budget, records=labels, threshold=step, one_sided=True)


def board_machine(mechanism: Thresholdout, start: Number) -> Machine:
    """The machine of a leaderboard whose first leader has to beat `start`."""
    first = fraction(start, "start")
    if not 0 <= first < 1:
        raise InputError("start must be at least 0 and below 1: the score that the first leader has to beat.")
    return Machine(mechanism, start=round(first * mechanism.records * mechanism.grid))


# The ladder


class Ladder:
    """A leaderboard without noise and without an epsilon: its promise is a generalisation bound, `bound`.

    Scores are as those of `Leaderboard`. A submission leads if it beats the best so far by more than `step`; its score
    is rounded to a multiple of `step`.   [Blum-Hardt 2015, arXiv 1502.04585]

    >>> ladder = Ladder([0, 1] * 500, step="0.05")
    >>> ladder.submit("right", [0, 1] * 500)
    right leads with 1 (0.8918 to 1 at 95 %)
    >>> ladder
    <ladder of 1,000 labels: best 1, no epsilon>
    """

    def __init__(self, y: Any, *, step: Number, loss: Loss | str = "accuracy") -> None:
        self._loss, self._y, self.step = _per_record(loss), _labels(y), positive(step, "step")
        if self.step > 1:
            raise InputError("step must be at most 1: scores lie between 0 and 1.")
        self._best, self._asked = Fraction(0), 0

    @property
    def guarantee(self) -> NoReturn:
        """There is none."""
        raise PrivacyError("The ladder adds no noise and has no epsilon to charge: use Leaderboard for privacy.")

    def bound(self, submissions: int | None = None, level: float = 0.95) -> float:
        """How far the best score may be from the best true one, for all submissions so far or for that many.

        Values that are released are multiples of the step and rise, so t submissions have at most
        N = sum over j of C(t, j) C(v, j) transcripts, v = floor(1/step) + 1, and an analyst at most t N predictions to
        make. By Hoeffding all their scores are within e of the truth, except with probability 2 t N exp(-2 n e^2); the
        best score on these labels is within a step of what is released.
        """
        t = whole(self._asked if submissions is None else submissions, "submissions")
        v = math.floor(1 / self.step) + 1
        transcripts = sum(math.comb(t, j) * math.comb(v, j) for j in range(min(t, v) + 1))
        e = math.sqrt((math.log(2 * t * transcripts) - math.log(1 - level_of(level))) / (2 * len(self._y)))
        return e + float(self.step)

    def submit(self, name: str, predictions: Any, *, level: float = 0.95) -> Standing:
        """Compare predictions with the best so far; the error bar is about the truth, by `bound`."""
        level_of(level)
        found = _values(self._loss, self._y, _predictions(predictions, len(self._y)))
        score, self._asked = Fraction(on_grid(found, GRID), len(found) * GRID), self._asked + 1
        leads = score > self._best + self.step
        if leads:
            self._best = min(Fraction(1), round(score / self.step) * self.step)
        best, off = float(self._best), self.bound(level=level)
        return Standing(str(name), leads, best, max(0.0, best - off), min(1.0, best + off), float(level), None)

    def __repr__(self) -> str:
        return f"<ladder of {len(self._y):,} labels: best {float(self._best):.4g}, no epsilon>"


# Labels and predictions


def _labels(y: Any) -> Any:
    return Records.of(y, None, "set of labels").X


def _per_record(loss: Loss | str) -> Loss:
    read = read_loss(loss)
    if isinstance(read, AUC) or read.uses != "labels":
        raise InputError(
            "A leaderboard compares one prediction for each label: use accuracy or squared_error(low, high)."
        )
    return read


def _predictions(given: Any, labels: int) -> Any:
    try:
        read = np.array(given)
    except ValueError:
        read = np.zeros(0)
    if read.shape != (labels,):
        raise InputError(f"A submission has one prediction for each of the {labels:,} records, in their order.")
    return read


def _values(loss: Loss, y: Any, predictions: Any) -> Floats:
    """The score of each record between 0 and 1, greater is better, whatever the loss does."""

    def phi(given: Any, labels: Any) -> Any:
        found = loss.values(labels, given, None)
        return found if loss.greater_is_better else 1 - found

    return values(phi, Records(predictions, y), "all")

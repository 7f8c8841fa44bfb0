"""Which noise each measure gets, so that all of them together keep a promise.

Every measure, every quantile and the choice of unknown keys is one part, and parts share the promise evenly, which
makes the product of their errors least. Numbers of rows that are measured for nothing but to vouch for error bars take
a tenth first, all of them together. Measures get Laplace or Gaussian noise, all of them the same, whichever errs
less: the one grows with how many numbers a unit can move, the other with the root of that, but it needs a delta.

Unknown keys take their part of epsilon and half of delta; by basic composition the rest is for the numbers. Where the
owner asks for a minimum frequency, the number of units is one of the measures, and what was drawn of it decides.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from noisette.errors import InputError
from noisette.exact.number import floor_log2
from noisette.mechanisms import Gaussian, Geometric, Keep, Threshold, calibrate
from noisette.mechanisms.record import to_record
from noisette.privacy import Approx, Guarantee, Neighbours, Promise
from noisette.privacy.guarantee import together
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.frequency import MinimumFrequency
from noisette.query.measure import Contribution, Measure, Request, sensitivity
from noisette.query.prepare import Prepared, deciding, members
from noisette.query.rank_tree import RankTree
from noisette.query.ranks import Ranks, ranked

__all__ = ["Design", "Task", "among", "design", "recorded", "tasks_of"]

_MOST_READ, _MOST_NUMBERS = 100, 400
_READ_EACH = ("histogram", "distinct")

Noisy: TypeAlias = Geometric | Gaussian
Place: TypeAlias = tuple[int, Measure]  # which task, which measure
Ranking: TypeAlias = Mapping[tuple[int, Measure, tuple[Fraction, ...]], Ranks | RankTree]  # and which quantiles

_VOUCHING = Fraction(1, 10)  # of the promise, for numbers of rows that are measured for error bars alone


@dataclass(frozen=True)
class Task:
    """One pass over the data: what is measured of the same groups, for one question or for several.

    `members` decides which unknown keys are released, `deciding` which declared groups are shown, by `frequency`;
    `vouching` are the numbers of rows that error bars rest on; bars of quantiles hold for `among` groups at once.
    """

    request: Request
    part: Contribution
    asked: frozenset[Measure]
    quantiles: tuple[tuple[Measure, Fraction], ...]
    members: Measure | None
    deciding: Measure | None = None
    frequency: MinimumFrequency | None = None
    vouching: frozenset[Measure] = frozenset()
    among: int = 1

    @staticmethod
    def of(question: Prepared) -> "Task":
        """The pass that one question needs."""
        return Task(
            question.request,
            question.part,
            question.asked,
            question.quantiles,
            members(question),
            deciding(question),
            question.frequency,
            question.vouching,
            question.among,
        )

    @property
    def used(self) -> frozenset[Measure]:
        """What answers and their error bars are computed from."""
        return self.asked | self.vouching

    @property
    def noised(self) -> tuple[Measure, ...]:
        """The measures that get noise of their own: all but histograms and what decides about unknown keys."""
        return tuple(m for m in self.request.measures if m.what != "histogram" and m != self.members)


def tasks_of(prepared: Sequence[Prepared]) -> tuple[list[Task], list[int]]:
    """The passes that several questions need, and for each question which of them is its own."""
    tasks: dict[Request, Task] = {}
    places = []
    for question in prepared:
        frame = replace(question.request, measures=())
        new = Task.of(question)
        tasks[frame] = _merged(tasks[frame], new) if frame in tasks else new
        places.append(list(tasks).index(frame))
    return list(tasks.values()), places


def _merged(a: Task, b: Task) -> Task:
    measures = tuple(dict.fromkeys(a.request.measures + b.request.measures))
    quantiles = tuple(dict.fromkeys(a.quantiles + b.quantiles))
    return replace(
        a,
        request=replace(a.request, measures=measures),
        asked=a.asked | b.asked,
        quantiles=quantiles,
        vouching=a.vouching | b.vouching,
        among=max(a.among, b.among),
    )


@dataclass(frozen=True)
class Design:
    """The mechanisms of every part and the guarantee of them all.

    `noise` of each measure · `quantiles` of each histogram · `keys`: which unknown keys are released · `why` this
    noise · `shown`: with which noisy number of units a group of declared keys is shown.
    """

    tasks: tuple[Task, ...]
    noise: Mapping[Place, Noisy]
    quantiles: Ranking
    keys: Mapping[int, Keep | Threshold]
    guarantee: Guarantee
    why: str
    shown: Mapping[int, int] = field(default_factory=dict)

    def ranked(self, index: int, measure: Measure, at: Fraction) -> Ranks | RankTree:
        """What a quantile is drawn by."""
        return next(one for (i, m, each), one in self.quantiles.items() if (i, m) == (index, measure) and at in each)

    def parts(self, neighbours: Neighbours) -> list[dict[str, Any]]:
        """The mechanisms with what they are applied to, for the record."""
        found = []
        for (i, measure), mechanism in self.noise.items():
            found.append(recorded(mechanism, measure, _sensitivity(self.tasks, i, measure, neighbours)))
        for (i, measure, _), one in self.quantiles.items():
            change = one.moved(_sensitivity(self.tasks, i, measure, neighbours))
            found.extend(recorded(mechanism, measure, change) for mechanism in one.mechanisms)
        for i, rule in self.keys.items():
            members = self.tasks[i].members
            assert members is not None
            found.append(recorded(rule, members, _sensitivity(self.tasks, i, members, neighbours)))
        return found


def recorded(mechanism: Any, measure: Measure, change: Sensitivity) -> dict[str, Any]:
    """A mechanism with what it is applied to, for the record."""
    return to_record(mechanism, measure.what, change, grid=measure.grid)


def design(tasks: Sequence[Task], spend: Promise, neighbours: Neighbours, level: float = 0.95) -> Design:
    """The best mechanisms with which all tasks together keep the promise; `level` is that of quantiles' error bars."""
    _check_work(tasks)
    opened = [i for i, task in enumerate(tasks) if task.members]
    places = [(i, m) for i, task in enumerate(tasks) for m in task.noised if not _only_vouches(task, m)]
    vouching = [(i, m) for i, task in enumerate(tasks) for m in task.noised if _only_vouches(task, m)]
    quiet = spend.share(_VOUCHING, delta=0) if vouching else None
    spend = spend.share(1 - _VOUCHING, delta=1) if vouching else spend
    asked = sum(len(task.quantiles) for task in tasks)
    parts = len(opened) + len(places) + asked
    keys = _keys(tasks, opened, spend, parts, neighbours)
    rest = _rest(spend, len(opened), parts)
    quantiles = _quantiles(tasks, _part(rest, 1 if asked else 0, len(places) + asked), neighbours, level)
    noise, why = _noise(tasks, places, _part(rest, len(places), len(places) + asked), neighbours)
    if vouching:
        noise |= _noise(tasks, vouching, quiet, neighbours)[0]
        why += " A tenth of the spend goes to numbers of rows, which vouch for error bars."
    costs = [
        *(keys[i].guarantee(neighbours=neighbours) for i in opened),
        *(mechanism.guarantee(_sensitivity(tasks, i, m, neighbours)) for (i, m), mechanism in noise.items()),
        *(
            mechanism.guarantee(one.moved(_sensitivity(tasks, i, m, neighbours)))
            for (i, m, _), one in quantiles.items()
            for mechanism in one.mechanisms
        ),
    ]
    total = together(costs).under(neighbours)
    return Design(tuple(tasks), noise, quantiles, keys, total, why, _shown(tasks, noise))


def _check_work(tasks: Sequence[Task]) -> None:
    """Raise if to measure everything that is asked at once would take long: a few questions measure the same.

    Each number that is ranked, or of which different values are counted, takes a reading of its own.
    """
    read = sum(m.what in _READ_EACH for task in tasks for m in task.request.measures)
    if read > _MOST_READ:
        raise InputError(
            f"This question takes quantiles, or COUNT(DISTINCT), of {read:,} different numbers, counted in each set of "
            f"groups: ask for at most {_MOST_READ} at once."
        )
    measured = sum(len(task.request.measures) for task in tasks)
    if measured > _MOST_NUMBERS:
        raise InputError(
            f"This question measures {measured:,} numbers of each group, counted in each set of groups: ask for at "
            f"most {_MOST_NUMBERS} at once (SUM takes one, AVG one and the number of rows, CORR six)."
        )


def _shown(tasks: Sequence[Task], noise: Mapping[Place, Noisy]) -> dict[int, int]:
    """The thresholds of tasks with declared keys under a minimum frequency."""
    found = ((i, task.deciding, task.frequency) for i, task in enumerate(tasks))
    return {i: rule.threshold(noise[i, units]) for i, units, rule in found if units is not None and rule is not None}


def _only_vouches(task: Task, measure: Measure) -> bool:
    return measure in task.vouching and measure not in task.asked and measure != task.deciding


def _sensitivity(tasks: Sequence[Task], i: int, measure: Measure, neighbours: Neighbours) -> Sensitivity:
    return sensitivity(measure, tasks[i].part, neighbours)


def among(level: float, groups: int) -> float:
    """The level at which each of so many bars holds if all of them hold at once at the level that is named."""
    return 1 - (1 - level) / groups


# Sharing the promise


def _rest(spend: Promise, opened: int, parts: int) -> Promise:
    """What is left when unknown keys took theirs."""
    if not opened:
        return spend
    return spend.share(Fraction(parts - opened, parts), delta=Fraction(1, 2))


def _part(promise: Promise, some: int, parts: int) -> Promise | None:
    """The share of some of the parts."""
    return promise.share(Fraction(some, parts), delta=1) if some else None


def _keys(
    tasks: Sequence[Task], opened: list[int], spend: Promise, parts: int, neighbours: Neighbours
) -> dict[int, Keep | Threshold]:
    if not opened:
        return {}
    if not isinstance(spend, Approx) or not spend.delta:
        raise InputError(
            "Without declared keys, only groups shared by enough people are released, and that needs a delta: "
            'spend="0.1,1e-8", or declare keys in the policy.'
        )
    alone = parts == len(opened)
    delta = (spend.delta if alone else spend.delta / 2) / len(opened)
    promise = Approx(spend.epsilon / parts, delta, neighbours=neighbours)
    return {
        i: _opening(tasks[i].part.groups, promise, tasks[i].members in tasks[i].used, tasks[i].frequency)
        for i in opened
    }


@lru_cache(maxsize=64)
def _opening(groups: int, promise: Approx, counted: bool, frequency: MinimumFrequency | None) -> Keep | Threshold:
    """Only the keys: the rule that keeps half of the smallest groups, optimal for each key by itself.

    With the number of units: noise and a threshold, which release it as well, by the product of threshold and error.
    Gaussian noise hides best what a unit does in many groups; otherwise no other noise beats the truncated one.
    Under a minimum frequency noise decides, never the number of units itself, and the threshold is raised for it.
    """
    gaussian = Threshold.calibrated(promise, groups=groups, noise="gaussian")
    if not counted and frequency is None:
        try:
            keep = Keep.calibrated(promise, groups=groups)
        except InputError:  # its table would be too long
            return gaussian
        return keep if keep.least(0.5) <= gaussian.threshold else gaussian
    both = [Threshold.calibrated(promise, groups=groups, noise="truncated"), gaussian]
    both = both if frequency is None else [frequency.raised(rule) for rule in both]
    if not counted:
        return min(both, key=lambda m: m.threshold)
    return min(both, key=lambda m: m.threshold * math.sqrt(m.variance()))


# Quantiles


def _quantiles(tasks: Sequence[Task], share: Promise | None, neighbours: Neighbours, level: float) -> Ranking:
    """What each quantile is drawn by; the share is that of one."""
    found: dict[tuple[int, Measure, tuple[Fraction, ...]], Ranks | RankTree] = {}
    for i, task in enumerate(tasks):
        for measure in dict.fromkeys(m for m, _ in task.quantiles):
            assert share is not None
            at, change = [q for m, q in task.quantiles if m == measure], _sensitivity(tasks, i, measure, neighbours)
            each = ranked(measure, at, share, change, among(level, task.among))
            found |= {(i, measure, one.at): one for one in each}
    return found


# Noise


def _noise(
    tasks: Sequence[Task], places: list[Place], promise: Promise | None, neighbours: Neighbours
) -> tuple[dict[Place, Noisy], str]:
    """Laplace or Gaussian noise for all measures, by the product of the errors."""
    if promise is None:
        return {}, "Quantiles and keys are drawn by mechanisms of their own, so no number gets noise here."
    changes = [_sensitivity(tasks, i, m, neighbours) for i, m in places]
    laplace = _laplace(promise, changes)
    if promise.is_pure:
        return dict(zip(places, laplace, strict=True)), "Laplace noise: a pure epsilon allows no Gaussian."
    gaussian = _gaussian(promise, changes)
    logs = [math.log(b.variance() / a.variance()) for a, b in zip(laplace, gaussian, strict=True)]
    ratio = math.exp(sum(logs) / len(logs) / 2)
    if ratio < 1:
        why = f"Gaussian noise: its standard deviation is {ratio:.2f} of what Laplace noise needs for the same promise."
        return dict(zip(places, gaussian, strict=True)), why
    why = f"Laplace noise: Gaussian noise needs {ratio:.2f} times its standard deviation for the same promise."
    return dict(zip(places, laplace, strict=True)), why


def _laplace(promise: Promise, changes: list[Sensitivity]) -> list[Noisy]:
    """Each measure e-DP with the same e: any such mechanisms cost no more than as many geometric ones at distance 1."""
    base = _base(Geometric, promise, len(changes))
    return [Geometric(base.scale * (change.l1 or 1)) for change in changes]


def _gaussian(promise: Promise, changes: list[Sensitivity]) -> list[Noisy]:
    """Each measure with the same ratio of distance to sigma, on a lattice as fine: all cost what the first one does."""
    base = _base(Gaussian, promise, len(changes))
    sizes = [change.l2 or Fraction(1) for change in changes]
    return [Gaussian(base.sigma * size, grid=base.grid * Fraction(2) ** floor_log2(size)) for size in sizes]


@lru_cache(maxsize=64)
def _base(kind: Any, promise: Promise, times: int) -> Any:
    """The mechanism for a distance of 1: plans that differ in their limits alone share it."""
    return calibrate(kind, promise, sensitivity=1, times=times)

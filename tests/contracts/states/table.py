"""One row for each class that keeps a state: how its events look, and which part of what it states is reached.

A row is a function that yields what is found of all short histories; `reached` is the part of the stated guarantee that
these histories are known to use (with longer ones it may be more). Those that are `slow` run with `make test`.
"""

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow
from tests.contracts.states.budgets import filtered, in_memory, metered, on_disk
from tests.contracts.states.clients import memo, rappor
from tests.contracts.states.counters import counter, opening, publishing, window
from tests.contracts.states.holdouts import leaderboard, oracle, reusable
from tests.contracts.states.judging import Found
from tests.contracts.states.watched import above, pan_private, sparse
from tests.contracts.states.watched import alarm as watch

import noisette as nz
from noisette.holdout.leaderboard import Leaderboard
from noisette.holdout.reusable import ReusableHoldout
from noisette.holdout.thresholdout import Thresholdout
from noisette.ledger import Memory
from noisette.ledger.book import Book
from noisette.local import GRR
from noisette.local.memo import Memo
from noisette.local.rappor import Rappor
from noisette.mechanisms import AboveThreshold, NumericSparse, Sparse, SparseVector
from noisette.privacy import ZCDP, Approx, Filter, Neighbours, Odometer, Pure
from noisette.questions.above import Above, Watching
from noisette.questions.oracle import Consulting, Oracle
from noisette.questions.stream import Publishing, Stream
from noisette.releases.streams.alarms import Alarm
from noisette.releases.streams.buffered import BufferedCounter
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.pan_private import PanPrivateDensity
from noisette.releases.streams.participation import Participation
from noisette.releases.streams.square_root import SquareRootCounter
from noisette.releases.streams.tree_counter import TreeCounter
from noisette.releases.streams.windows import SlidingWindow

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
TWICE, APART = Participation(2), Participation(2, apart=2)
GROUPS, TAKEN, ALL = Participation(2, groups=2), Participation(2, taken=1), Participation(2, groups=2, taken=1)
UNITS = [Participation(3), Participation(3, apart=1), Participation(2, apart=3), TAKEN, GROUPS, ALL]
FINE = Approx(1, "1e-6")
BUDGET = Approx(1, "0.1")
BLOOM = {"f": "1/2", "p": "1/2", "q": "3/4", "domain": 2, "length": 3, "hashes": 1}


@dataclass(frozen=True)
class Row:
    """How the events of one class look."""

    reached: float
    found: Callable[[], Iterator[Found]]
    slow: bool = False


# What is judged: small, and with little noise where laws are added up, so that few values are likely


def density(epsilon: Any, release_epsilon: Any = 1) -> PanPrivateDensity:
    """The state of one person."""
    return PanPrivateDensity(1, epsilon=epsilon, release_epsilon=release_epsilon)


def alarm(**terms: Any) -> Alarm:
    """An alarm with little noise."""
    return Alarm.calibrated(12, drift=1, threshold=2, **terms)


def held(positives: int = 1, grid: int = 1, quiet: int = 3, **terms: Any) -> Thresholdout:
    """The mechanism of a holdout of two records."""
    comparing = SparseVector(Fraction(grid, 2 * quiet), Fraction(grid, quiet), positives=positives)
    return Thresholdout(comparing, records=2, threshold="1/2", grid=grid, **terms)


def published(noise: str) -> Thresholdout:
    """The same as it was published."""
    return Thresholdout.published(noise, budget=1, records=2, threshold="1/2", grid=1)


def tree(horizon: int = 4, **terms: Any) -> TreeCounter:
    """Sums with Laplace noise."""
    return TreeCounter.calibrated(1, horizon=horizon, **terms)


def root(**terms: Any) -> SquareRootCounter:
    """Sums with Gaussian noise."""
    return SquareRootCounter.calibrated(ZCDP("1/2"), horizon=4, **terms)


def buffers(horizon: int = 4, **terms: Any) -> BufferedCounter:
    """Sums with Gaussian noise and a small state."""
    return BufferedCounter.calibrated(FINE, horizon=horizon, **terms)


def units(counted: Callable[[Participation], Iterator[Found]]) -> Iterator[Found]:
    """All ways in which a unit may take part."""
    for who in UNITS:
        yield from counted(who)


def keys(**terms: Any) -> OpeningCounter:
    """Keys that open."""
    return OpeningCounter.calibrated(FINE, horizon=2, who=TWICE, **terms)


@cache
def schema() -> Any:
    """A table of days and of one column with three values."""
    table = pyarrow.table({"k": [0, 1, 2], "day": [datetime.date(2026, 1, 1)] * 3})
    rules = {"columns": {"k": {"bounds": [0, 2], "nullable": False}}}
    return nz.open({"t": table}, budget=9, policy={"tables": {"t": rules}}).schema


def days(spend: Any, neighbours: Neighbours = ADD, **terms: Any) -> Any:
    """A stream of three days."""
    asked = Stream("day", since="2026-01-01", until="2026-01-04", every="1 day", **terms)
    return asked.stream(schema(), spend, neighbours)


def compared(of: Any, neighbours: Neighbours) -> Any:
    """Questions above a threshold."""
    return Above(2, of=of).stream({}, Pure(12), neighbours)


def consulting(spend: int, neighbours: Neighbours = ADD, **terms: Any) -> Any:
    """An oracle with one update."""
    return Oracle("k", updates=1, threshold=1, **terms).stream(schema(), Pure(spend), neighbours)


def pure(*costs: str) -> list[Pure]:
    """Costs to choose from."""
    return [Pure(cost) for cost in costs]


ROWS: dict[type, dict[str, Row]] = {
    PanPrivateDensity: {
        "default": Row(0.9999, lambda: pan_private(density("1/10"))),
        "loud": Row(0.9999, lambda: pan_private(density(1, 10))),
        "quiet": Row(0.9999, lambda: pan_private(density(1, "1/4"))),
        "even": Row(0.9999, lambda: pan_private(density("1/2", 2))),
        "near": Row(0.9999, lambda: pan_private(density(1, 3))),
        "releases alone": Row(0.999, lambda: pan_private(density(20, 2), letters="AR", longest=4)),
    },
    Alarm: {
        "add": Row(0.99, lambda: watch(alarm())),
        "replace": Row(0.49, lambda: watch(alarm(neighbours=REPLACE)), slow=True),
        "two events": Row(0.74, lambda: watch(alarm(events=2), events=2), slow=True),
    },
    SparseVector: {
        "one": Row(0.9999, lambda: sparse(SparseVector("1/4", "1/4"))),
        "one move": Row(0.9999, lambda: sparse(SparseVector("1/4", "1/4", positives=2), together=1), slow=True),
        "two moves": Row(0.9999, lambda: sparse(SparseVector("1/4", "1/3", positives=2), together=2), slow=True),
        "two": Row(0.9999, lambda: sparse(SparseVector("1/2", "1/2", positives=2)), slow=True),
        "monotone": Row(0.99, lambda: sparse(SparseVector("1/4", "1/4", positives=2, monotone=True)), slow=True),
    },
    AboveThreshold: {"one": Row(0.49, lambda: sparse(AboveThreshold("1/8"), 2))},
    Sparse: {
        "one": Row(0.49, lambda: sparse(Sparse("1/8", positives=1), 2)),
        "two": Row(0.37, lambda: sparse(Sparse("1/4", positives=2), 3), slow=True),
    },
    NumericSparse: {"one": Row(0.45, lambda: sparse(NumericSparse("1/8", value_scale="1/6", positives=1), 1))},
    Watching: {
        "counts": Row(0.99, lambda: above(compared("counts", ADD))),
        "counts, replace": Row(0.99, lambda: above(compared("counts", REPLACE))),
        "numbers": Row(0.99, lambda: above(compared("numbers", ADD))),
        "numbers, replace": Row(0.99, lambda: above(compared("numbers", REPLACE))),
    },
    Consulting: {
        "known total": Row(0.99, lambda: oracle(consulting(16, total=3), asked=1)),
        "counted": Row(0.99, lambda: oracle(consulting(20), asked=1), slow=True),
        "replace": Row(0.99, lambda: oracle(consulting(16, REPLACE, total=3)), slow=True),
    },
    ReusableHoldout: {
        "one question": Row(0.99, lambda: reusable(held(quiet=5), asked=1)),
        "two questions": Row(0.99, lambda: reusable(held()), slow=True),
        "two answers": Row(0.99, lambda: reusable(held(2)), slow=True),
        "a function": Row(0.6, lambda: reusable(held(grid=2), asked=1), slow=True),
        "published": Row(0.5, lambda: reusable(published("1/25"), asked=1), slow=True),
    },
    Leaderboard: {
        "one leader": Row(0.99, lambda: leaderboard(held(one_sided=True))),
        "two leaders": Row(0.66, lambda: leaderboard(held(2, one_sided=True)), slow=True),
    },
    TreeCounter: {
        "one event": Row(0.9999, lambda: counter(tree())),
        "replace": Row(0.9999, lambda: counter(tree(fan=2, neighbours=REPLACE))),
        "two keys": Row(0.9999, lambda: counter(tree(fan=2, who=GROUPS), 3, 2)),
        "taken": Row(0.5, lambda: counter(tree(fan=3, who=TAKEN, neighbours=REPLACE), 3), slow=True),
        "all units": Row(0.9999, lambda: units(lambda who: counter(tree(fan=2, who=who), 3, who.groups)), slow=True),
    },
    SquareRootCounter: {
        "one event": Row(0.9999, lambda: counter(root())),
        "replace": Row(0.76, lambda: counter(root(neighbours=REPLACE))),
        "apart": Row(0.9999, lambda: counter(root(who=APART))),
        "taken": Row(0.84, lambda: counter(root(who=ALL), 3, 2), slow=True),
        "all units": Row(0.9999, lambda: units(lambda who: counter(root(who=who), 4, who.groups)), slow=True),
    },
    BufferedCounter: {
        "one event": Row(0.9999, lambda: counter(buffers())),
        "replace, two steps": Row(0.68, lambda: counter(buffers(2, neighbours=REPLACE), 2)),
        "replace": Row(0.78, lambda: counter(buffers(neighbours=REPLACE)), slow=True),
        "apart": Row(0.9999, lambda: counter(buffers(who=APART)), slow=True),
        "fading": Row(0.9999, lambda: counter(buffers(who=TWICE, half_life=2)), slow=True),
        "all units": Row(
            0.9999, lambda: units(lambda w: counter(buffers(who=w, many=w.groups), 4, w.groups)), slow=True
        ),
    },
    SlidingWindow: {
        "tree": Row(0.9999, lambda: window(SlidingWindow(tree(2, who=TWICE)))),
        "one event, replace": Row(0.9999, lambda: window(SlidingWindow(tree(2, neighbours=REPLACE)), 4)),
        "tree, replace": Row(0.9999, lambda: window(SlidingWindow(tree(2, who=TWICE, neighbours=REPLACE))), slow=True),
        "buffers": Row(0.9999, lambda: window(SlidingWindow(buffers(2, who=TWICE))), slow=True),
        "replace": Row(0.9999, lambda: window(SlidingWindow(buffers(2, who=TWICE, neighbours=REPLACE))), slow=True),
    },
    OpeningCounter: {
        "add": Row(0.96, lambda: opening(keys())),
        "replace": Row(0.96, lambda: opening(keys(neighbours=REPLACE))),
    },
    Publishing: {
        "tree": Row(0.9999, lambda: publishing(days(Pure(1), events=2), steps=2)),
        "buffers": Row(0.9999, lambda: publishing(days(FINE)), slow=True),
        "replace, two steps": Row(0.5, lambda: publishing(days(Pure(1), REPLACE, events=2), steps=2)),
        "replace": Row(0.5, lambda: publishing(days(Pure(1), REPLACE, events=2)), slow=True),
        "windows": Row(0.9999, lambda: publishing(days(Pure(1), events=2, window=2)), slow=True),
        "fading": Row(0.9999, lambda: publishing(days(FINE, events=2, half_life=1)), slow=True),
    },
    Filter: {
        "pure": Row(0.9999, lambda: filtered(Filter, Pure(1), pure("0.4", "0.3"))),
        "zcdp": Row(0.88, lambda: filtered(Filter, ZCDP("0.3"), pure("0.3", "0.6"))),
        "approx": Row(0.2, lambda: filtered(Filter, BUDGET, pure("0.3", "0.6", "0.9"), reserve=0)),
        "both": Row(0.3, lambda: filtered(Filter, BUDGET, pure("0.2", "0.6"), rule="both"), slow=True),
        "deltas": Row(0.3, lambda: filtered(Filter, BUDGET, [Approx("0.4", "0.02"), *pure("0.3")], reserve="0.05")),
    },
    Odometer: {
        "deltas": Row(0.96, lambda: metered(Odometer("0.1", reserve="0.1"), [Approx("0.3", "0.02")], 6)),
        "many": Row(0.3, lambda: metered(Odometer("0.3", first="0.3"), pure("0.3", "0.5"), 20), slow=True),
    },
    Memory: {
        "pure": Row(0.9999, lambda: in_memory(Memory, Pure(1), pure("0.4", "0.3"))),
        "approx": Row(0.2, lambda: in_memory(Memory, BUDGET, pure("0.4", "0.3")), slow=True),
    },
    Book: {"pure": Row(0.9999, lambda: on_disk(Pure(1), pure("0.4", "0.6")))},
    Memo: {
        "two values": Row(0.9999, lambda: memo(Memo(GRR(1, domain=3), most=2))),
        "one value": Row(0.9999, lambda: memo(Memo(GRR("1/2", domain=2), most=1))),
    },
    Rappor: {"one hash": Row(0.9999, lambda: rappor(Rappor(**BLOOM)))},
}
